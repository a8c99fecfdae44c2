//! The text of `--help`.

/// The text that `--help` prints.
pub const HELP: &str = "\
Usage: brisk-benchmark [OPTIONS] [COMMAND ARGS...]
       brisk-benchmark compare SERVER SERVER... [OPTIONS]
       brisk-benchmark experiments [NAME...] [OPTIONS]
       brisk-benchmark plot RESULTS.json PLOT.svg
       brisk-benchmark delay-proxy --listen ADDRESS --to ADDRESS --delay MS [--jitter MS]

Load generator for servers with the Redis protocol. Options of redis-benchmark have the same meaning.

Server:
 -h <hostname>      Host (default 127.0.0.1)
 -p <port>          Port (default 6379)
 -s <socket>        Unix socket, instead of host and port
 -u <uri>           redis://[user[:password]@]host[:port][/database], or rediss:// for TLS
 -a <password>      Password for AUTH; the default is the variable REDISCLI_AUTH, which is safer: other
                    users of the host cannot see it
 --user <username>  User for AUTH; needs -a
 --dbnum <db>       Database to select (default 0)
 -3                 Use RESP3
 --enable-tracking  Send CLIENT TRACKING on before the first request
 --cluster          Cluster mode: the server is one node of a cluster; requests go to all primaries.
                    -c is the total number of connections; the default of --threads is one per
                    primary. All keys for a primary have one hash tag, key:{tag}:..., which changes
                    if the primary redirects (MOVED). In custom commands {tag} is replaced by the
                    hash tag. Results are also printed per primary (not with --csv)
 --tls              Use TLS
 --sni <host>       Server name to request (SNI) and to verify
 --cacert <file>, --cacertdir <dir>   Trusted CA certificates (default: the system's)
 --insecure         Do not verify the certificate
 --cert <file>, --key <file>          Client certificate and private key
 --tls-ciphers <list>, --tls-ciphersuites <list>   Allowed ciphers, separated by colons

Load:
 -c <clients>       Parallel connections (default 50)
 -n <requests>      Total number of requests (default 100000)
 --duration <s>     Measure for this time, instead of -n
 --warmup <s>       Warm up for this time before measuring (default 0)
 --rate <n>         Open loop: n requests per second, even if earlier ones have no reply yet.
                    Latency is measured from the scheduled time, so stalls of the server are included
 --arrivals even|poisson              Distribution of requests in an open loop (default even)
 -P <numreq>        Pipeline depth (default 1); in an open loop, maximum pending requests per
                    connection. Several values: -P 1,16,100
 -k <boolean>       1=keep alive 0=one connection per batch (default 1). On loopback, the connections
                    use many source addresses of 127.0.0.0/8, so that ports do not run out
 --threads <num>    Threads (default 1)
 --client <which>   Client: engine (default, built in, little overhead), library (the client library
                    `brisk`: -c is its number of connections, shared by -c times -P callers), or
                    library-pool (the same, but a connection carries one command at a time).
                    Requests are distributed by the first argument of the command, so use -r
 -I                 Open the connections and keep them idle
 -l                 Loop: run the tests forever

Requests:
 -t <tests>         Tests to run, separated by commas: ping, ping_inline, ping_mbulk, set, get, incr,
                    lpush, rpush, lpop, rpop, sadd, hset, spop, zadd, zpopmin, lrange, lrange_100,
                    lrange_300, lrange_500, lrange_600, mset
 COMMAND ARGS...    A custom command. __rand_int__ is replaced by 12 digits (with -r), __data__
                    by a value
 -x                 Read the last argument of the command from standard input
 --command <text>   A custom command as one argument; may be repeated
 --weight <n>       Relative frequency of the preceding --command (default 1)
 --mix <list>       Mixed load of tests with weights: get:9,set:1
 -r <keyspacelen>   Numbers from 0 to keyspacelen-1 for keys, elements and scores
 --keys <how>       uniform (default), zipf[:exponent], hot:<% of keys>:<% of requests>, sequential
 -d <size>          Bytes of values (default 3): 64, or 16-4096, or with weights 16:90,1024:10
 --fill             Write all values of -r and -d before the first test
 --seed <n>         Seed for random numbers (default 1)
 --verify           Verify every reply; values of 12 bytes or more contain the number of their key
 --count-errors     Count error replies, instead of stopping at the first one

Output:
 -q                 One line per test
 --csv              The same as CSV
 --json             One JSON object per test
 --precision <n>    Significant digits of latencies, 1 to 4 (default 3)
 --pin <s>/<l>      CPUs of started servers and of the load generator: 0/1, 0,1/2-3, or /1

Comparison. A SERVER is an address (host:port, or a path), or a command that starts a server, with
{port} in place of its port. name=SERVER gives it a name.
   brisk-benchmark compare 'redis=redis-server --port {port} --save \"\"' \\
      'brisk=brisk-server --port {port} --save \"\"' -t get,set -P 1,16 -r 100000 --fill --pin 0/1
 --rounds <n>       Rounds; in each round the servers are measured in turn (default 5)
 --baseline <name>  Server to compare the others with (default: the first)
 --format <f>       table (default), markdown, csv or json
 --save <file>      Also write a .md, .csv or .json file; may be repeated
 --html <file>      Also write a self-contained HTML page with plots
 --public           Leave directories, addresses and single rounds out of all results
 --syscalls         Count system calls with perf, in separate rounds

plot draws the JSON of a comparison (--save) as an SVG file: CPU time of the servers per request over the
pipeline depth, with a panel per test and the ratio of two servers. The comparison needs two or more depths.

Experiments: measurements from articles about Redis, with the numbers of the articles. s1 s2 i1 (many
connections), p2 p3 p4 p5 (pipelines), unfinished (incomplete large requests), unread (clients that do
not read), m1 m2 m3 m4 m5 m6 m8 (memory), c1 c2 c3 (the client library); and figures (CPU per request
of many commands). Without NAME, all are run. Each experiment starts its own servers.
 --servers <s>...   As for compare (default: redis-server and brisk-server next to this program, or in
                    PATH); the others are compared with the first
 --short            Less data and one round
 --scale <part>     Part of the article's data in m6 (default 0.05; with --short 0.01)
 --rounds <n>       Rounds of timed parts (default 3; with --short 1)
 --pin <s>/<l>      As above
 --json <file>, --html <file>, --markdown <file>
 --list             Describe the experiments

delay-proxy forwards TCP connections and delays each byte by --delay ms in each direction (half of the
added round trip time), and by up to --jitter ms more. The order of bytes is kept.

 --help, --version
";
