//! The text of `--help`.

/// All options, each with a line or two.
pub(crate) fn text() -> String {
    format!("brisk-cli {}\n\n{TEXT}", env!("CARGO_PKG_VERSION"))
}

const TEXT: &str = "\
Usage: brisk-cli [options] [command [argument ...]]

Without a command, a session begins in which commands are typed.

Where the server is, and who asks
  -h <host>            Host (127.0.0.1).
  -p <port>            Port (6379).
  -s <path>            Unix socket, instead of host and port.
  -u <uri>             All in one: redis://user:password@host:port/database,
                       rediss:// for TLS.
  -a, --pass <word>    Password. Others on this machine may see it: the variable
                       REDISCLI_AUTH is safer.
  --user <name>        User, with a password.
  --askpass            Asks for the password.
  --no-auth-warning    Does not warn of passwords on the command line.
  -n <number>          Database.
  -2, -3               Version of the protocol.
  -c                   Follows MOVED and ASK to the nodes of a cluster.

TLS
  --tls                Speaks TLS.
  --sni <host>         Name the server is asked for, and must have.
  --cacert <file>      Trusted authorities, in PEM format; else those of the system.
  --cacertdir <dir>    A folder with such files.
  --insecure           Trusts any certificate.
  --cert <file>        Our own certificate, with
  --key <file>         its key.
  --tls-ciphers <list>, --tls-ciphersuites <list>
                       Cipher suites that may be used, separated by colons.

What is sent
  -r <count>           Sends the command so many times; -1 for ever.
  -i <seconds>         Waits so long after each, such as 0.1; also between the steps
                       of --scan, --stat, --latency, and after 100 steps of --bigkeys.
  -x                   Adds what standard input holds as last argument.
  -X <tag>             Puts it in the place of the argument <tag>.
  --quoted-input       Arguments are strings in quotes, with escapes such as \\x00.
  -e                   Exits with 1 if the server answers with an error.

How replies are shown
  --raw                Bytes as they are (so it is in a pipe).
  --no-raw             Numbered, with types (so it is on a terminal).
  --csv                Values separated by commas.
  --json               JSON; in RESP3, unless -2 is said.
  --quoted-json        The same in ASCII.
  -d <text>            Between the elements of a raw reply, instead of a line end.
  -D <text>            Behind each raw reply, instead of a line end.
  --show-pushes <yn>   Whether to show what the server sends unasked (on a terminal: yes).

Keys and data
  --scan               Lists all keys.
  --bigkeys            Finds the keys with the most elements of each type.
  --memkeys            Finds the keys that take the most memory.
  --memkeys-samples <n>
                       The same, looking at so many elements of each.
  --hotkeys            Finds the keys that are used most (needs a policy of LFU).
  --pattern <pattern>  Only keys like this one; for the four above.
  --quoted-pattern <pattern>
                       The same, in quotes.
  --count <number>     Keys that each step of --scan looks at (10).
  --pipe               Sends requests from standard input as they are.
  --pipe-timeout <seconds>
                       Longest wait for the last replies (30; 0 for ever).
  --rdb <file>         Fetches a snapshot; - for standard output.
  --functions-rdb <file>
                       Fetches one that holds only the functions.
  --replica            Shows what a replica is told.
  analyze [file]       What keys take by pattern, and what would save how much, of a
                       server or of a file; `brisk-cli analyze --help`.

Scripts
  --eval <file> [key ... [, argument ...]]
                       Runs a script; a comma stands between keys and arguments.
  --ldb                Runs it in the debugger of a server that has one.
  --ldb-sync-mode      The same, but the server waits, and changes stay.

Measuring
  --stat               A line of figures each second.
  --latency            How long PING takes, until Ctrl-C; in a pipe, with --raw or
                       --csv, for one second.
  --latency-history    The same in spans of 15 seconds.
  --latency-dist       The same as a band of colours for each second.
  --lru-test <keys>    A cache under load, of which few keys get most.
  --intrinsic-latency <seconds>
                       What this machine adds by itself.

Clusters
  --cluster <command> [argument ...] [option ...]
                       `brisk-cli --cluster help` lists them.

  --verbose            Says more.
  --help, --version

Examples
  brisk-cli set greeting hello
  brisk-cli -x set photo < photo.jpg
  brisk-cli -r -1 -i 1 info clients
  brisk-cli --eval limit.lua user:7 , 100 60
  brisk-cli --scan --pattern 'session:*'
";
