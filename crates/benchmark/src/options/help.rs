//! The text of `--help`.

/// What `--help` prints.
pub const HELP: &str = "\
Usage: brisk-benchmark [OPTIONS] [COMMAND ARGS...]
       brisk-benchmark compare SERVER SERVER... [OPTIONS]
       brisk-benchmark experiments [NAME...] [OPTIONS]
       brisk-benchmark delay-proxy --listen ADDRESS --to ADDRESS --delay MS [--jitter MS]

Measures a server that speaks the Redis protocol. Options of redis-benchmark mean what they mean there.

Server:
 -h <hostname>      Host (default 127.0.0.1)
 -p <port>          Port (default 6379)
 -s <socket>        Unix socket (instead of host and port)
 -u <uri>           redis://[user[:password]@]host[:port][/database], or rediss:// for TLS
 -a <password>      Password for AUTH
 --user <username>  User for AUTH; needs -a
 --dbnum <db>       Database to select (default 0)
 -3                 Speak RESP3
 --enable-tracking  Send CLIENT TRACKING on before the first request
 --cluster          Cluster mode: the server is one node of a cluster, and all primaries get requests,
                    over -c connections in all and, without --threads, one thread each. All keys for
                    a primary have one hash tag, key:{tag}:..., which changes when the primary
                    redirects (MOVED). In a command of your own {tag} stands for the hash tag. Results
                    are printed for each primary as well (not with --csv)
 --tls              Use TLS
 --sni <host>       Name to ask for, and to check the certificate against
 --cacert <file>, --cacertdir <dir>   Trusted authorities (default: the system's)
 --insecure         Accept any certificate
 --cert <file>, --key <file>          Certificate and key to authenticate with
 --tls-ciphers <list>, --tls-ciphersuites <list>   Ciphers to offer, separated by colons

Load:
 -c <clients>       Parallel connections (default 50)
 -n <requests>      Requests in all (default 100000)
 --duration <s>     Measure for this time instead
 --warmup <s>       Load before the measurement begins (default 0)
 --rate <n>         Open loop: n requests per second, whether or not earlier ones were answered.
                    Latency counts from when a request was due, so a stalled server cannot hide it
 --arrivals even|poisson              How requests of an open loop follow each other (default even)
 -P <numreq>        Requests sent together (default 1); in an open loop, most under way per
                    connection. Several: -P 1,16,100
 -k <boolean>       1=keep alive 0=a connection per batch (default 1); to loopback addresses these
                    come from many addresses of 127.0.0.0/8, so that ports do not run out
 --threads <num>    Threads (default 1)
 --client <which>   Who sends: engine (default: ours, which costs little), library (the client library
                    `brisk`: -c are its connections, and -c times -P callers share them), or
                    library-pool (the same, each connection taken by one command at a time).
                    Requests are told apart by the word behind their name, so -r spreads them
 -I                 Open the connections and keep them idle
 -l                 Run the tests again and again

Requests:
 -t <tests>         Tests to run, separated by commas: ping, ping_inline, ping_mbulk, set, get, incr,
                    lpush, rpush, lpop, rpop, sadd, hset, spop, zadd, zpopmin, lrange, lrange_100,
                    lrange_300, lrange_500, lrange_600, mset
 COMMAND ARGS...    A command of your own instead. __rand_int__ becomes 12 digits (with -r), __data__
                    a value
 -x                 The command's last argument is read from standard input
 --command <text>   The same in one argument; may be repeated
 --weight <n>       How often the --command before is sent among the others (default 1)
 --mix <list>       Tests with weights in one load: get:9,set:1
 -r <keyspacelen>   Numbers from 0 to keyspacelen-1 for keys, elements and scores
 --keys <how>       uniform (default), zipf[:exponent], hot:<% of keys>:<% of requests>, sequential
 -d <size>          Bytes of values (default 3): 64, or 16-4096, or with weights 16:90,1024:10
 --fill             Write all values of -r and -d before the first test
 --seed <n>         Of all random choices (default 1)
 --verify           Judge every reply; values of 12 and more bytes carry their key's number
 --count-errors     Count error replies; without it the first ends the run

Output:
 -q                 One line per test
 --csv              The same as CSV
 --json             One JSON object per test
 --precision <n>    Significant figures of latencies, 1 to 4 (default 3)
 --pin <s>/<l>      Processors of servers started here, and of the load: 0/1, 0,1/2-3, or /1

Comparing. A SERVER is an address (host:port, or a path), or a command that starts one, with {port}
where its port belongs; name=SERVER names it:
   brisk-benchmark compare 'redis=redis-server --port {port} --save \"\"' \\
      'brisk=brisk-server --port {port} --save \"\"' -t get,set -P 1,16 -r 100000 --fill --pin 0/1
 --rounds <n>       Rounds; servers take turns within each (default 5)
 --baseline <name>  The server others are compared with (default: the first)
 --format <f>       table (default), markdown, csv or json
 --save <file>      Writes .md, .csv or .json as well; may be repeated
 --html <file>      Writes a page with plots that needs no network
 --syscalls         Count system calls with perf, in rounds of their own

Experiments: what articles on Redis measured, beside their figures. s1 s2 i1 (many connections), p2 p3 p4
p5 (pipelines), unfinished (halves of large requests), unread (clients that do not read), m1 m2 m3
m4 m5 m6 m8 (memory), c1 c2 c3 (the client library); and figures (CPU per request of many commands). All without a name. Servers are started anew for each.
 --servers <s>...   As of compare (default: redis-server and brisk-server beside this program, or in
                    PATH); the first is what others are compared with
 --short            Less data and one round
 --scale <part>     Part of the article's gigabytes in m6 (default 0.05; short 0.01)
 --rounds <n>       Rounds of what is timed (default 3; short 1)
 --pin <s>/<l>      As above
 --json <file>, --html <file>, --markdown <file>
 --list             Tell what each of them does

delay-proxy forwards TCP connections, each byte later by --delay ms in each direction (half of what a
round trip takes longer), and by up to --jitter ms more, in order.

 --help, --version
";
