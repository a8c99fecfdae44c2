//! One command on the command line: the output on both streams and the exit code are those of `redis-cli`, with a real
//! Redis and with our server, in a pipe and on a terminal.

use crate::harness::{self, Case, assert_same, brisk_cli, ours, prepare, run, servers, text};

/// Arguments after the port. Running a case twice gives the same output twice.
const CASES: &[&[&str]] = &[
    &["ping"],
    &["PING", "hello world"],
    &["get", "greeting"],
    &["get", "nothing"],
    &["get", "binary"],
    &["lrange", "list", "0", "-1"],
    &["hgetall", "hash"],
    &["-3", "hgetall", "hash"],
    &["-3", "smembers", "set"],
    &["-3", "zrange", "zset", "0", "-1", "withscores"],
    &["-2", "zrange", "zset", "0", "-1", "withscores"],
    &["xrange", "stream", "-", "+"],
    &["--csv", "lrange", "list", "0", "-1"],
    &["--json", "hgetall", "hash"],
    &["--json", "-2", "hgetall", "hash"],
    &["--quoted-json", "get", "binary"],
    &["--json", "get", "binary"],
    &["--no-raw", "get", "binary"],
    &["--raw", "lrange", "list", "0", "2"],
    &["-d", ",", "lrange", "list", "0", "-1"],
    &["-D", "", "get", "greeting"],
    &["-D", "--", "-r", "3", "get", "greeting"],
    &["unknown-command"],
    &["-e", "unknown-command"],
    &["-e", "get", "list"],
    &["get"],
    &["incr", "greeting"],
    &["--csv", "incr", "greeting"],
    &["--json", "incr", "greeting"],
    &["-n", "3", "dbsize"],
    &["-n", "99", "ping"],
    &["-n", "abc", "dbsize"],
    &["-r", "3", "ping"],
    &["-r", "0", "ping"],
    &["-r", "abc", "ping"],
    &["-r", "2", "-i", "0.01", "ping"],
    &["--quoted-input", "echo", "\"a\\x00b\""],
    &["--quoted-input", "echo", "\"a\"b"],
    &["--quoted-input", "echo", "a b"],
    &["echo", "\"a\\x00b\""],
    &["-a", "wrong", "ping"],
    &["-a", "wrong", "--no-auth-warning", "ping"],
    &["--user", "nobody", "--pass", "wrong", "ping"],
    &["--user", "nobody", "ping"],
    &["select", "3"],
    &["select", "99"],
    &["multi"],
    &["exec"],
    &["monitor", "x"],
    &["shutdown", "nonsense"],
    &["--show-pushes", "maybe", "ping"],
    &["--show-pushes", "no", "ping"],
    &["--latency", "-2", "-3", "ping"],
    &["-3", "-2", "ping"],
    &["-x", "-X", "tag", "ping"],
    &["-X", "tag", "set", "key", "value"],
    &["--quoted-pattern", "\"a", "--scan"],
    &["--nonsense"],
    &["-n"],
    &["--rdb", "a", "--functions-rdb", "b"],
    &["-c", "-s", "/nowhere", "ping"],
    &["--verbose", "ping"],
    &["--askpass", "ping"],
    &[""],
    &["set a b"],
    &["--eval", "/nowhere/script.lua"],
    &["--cluster", "nonsense"],
    &["--cluster", "check"],
    &["--cluster", "create", "127.0.0.1:1"],
    &["--cluster", "create", "127.0.0.1:1", "127.0.0.1:1"],
    &["command", "count", "x"],
    &["object", "encoding", "list"],
    &["config", "get", "maxmemory"],
    &["-3", "config", "get", "maxmemory"],
    &["client", "list", "nonsense"],
    &["client", "info", "nonsense"],
    &["cluster", "info", "nonsense"],
    &["latency", "doctor"],
    &["memory", "doctor"],
    &["info", "nonsense"],
    &["debug", "protocol", "string"],
    &["-3", "debug", "protocol", "map"],
    &["-3", "debug", "protocol", "set"],
    &["-3", "debug", "protocol", "push"],
    &["-3", "debug", "protocol", "verbatim"],
    &["-3", "debug", "protocol", "double"],
    &["-3", "--json", "debug", "protocol", "map"],
    &["-3", "command", "info", "get", "set", "xgroup"],
    &["command", "docs", "get", "client"],
    &["-3", "command", "docs", "get", "client"],
    &["--json", "command", "docs", "set"],
];

#[test]
fn a_command_prints_the_same_on_both_streams_and_ends_with_the_same_code() {
    for server in servers() {
        let port = server.port().to_string();
        for args in CASES {
            let args: Vec<&str> = ["-p", &port].into_iter().chain(args.iter().copied()).collect();
            assert_same(&Case::new(&args));
            assert_same(&Case::new(&args).with_var("FAKETTY", "1"));
        }
    }
}

#[test]
fn input_becomes_an_argument_or_lines_of_commands() {
    for server in servers() {
        let port = server.port().to_string();
        let at = |args: &[&'static str]| -> Vec<String> {
            ["-p", &port].iter().chain(args).map(|arg| (*arg).to_owned()).collect()
        };
        let inputs: &[(&[&str], &[u8])] = &[
            (&["-x", "echo"], b"line one\nline two\0\n"),
            (&["-X", "TAG", "echo", "TAG"], b"from input"),
            (&["-x", "echo"], b""),
            (&[], b"ping\nget greeting\nget nothing\n"),
            (&[], b"  \n\nset x 'it\\'s'\nget x\nget \"x\nget 'x'y\n"),
            (&[], b"3 ping\n0 ping\n-1 ping\n1x ping\n'' ping\n5\n"),
            (&[], b"select 2\nget greeting\nselect 0\nget greeting"),
            (&[], b"multi\nget greeting\nexec\ndiscard\n"),
            (&[], b"unknown\nping\nquit\nping\n"),
            (&["-e"], b"unknown\nping\n"),
            (&[], b":set hints\n:set nonsense\n:nonsense\n:set\nrestart\n"),
            (&[], b"help @nonsense\nhelp nonsense\nQUIT\n"),
            (&[], b"get \"\\x62inary\"\nEXIT\n"),
            (&["-3"], b"hgetall hash\nreset\nhgetall hash\n"),
            (&[], b"connect 127.0.0.1 1\nping\n"),
            (&["-n", "2"], b"set y 1\nget y\n"),
            (&["--csv"], b"lrange list 0 2\n"),
            (&["--no-raw"], b"lrange list 0 2\nget greeting\n"),
        ];
        for (args, input) in inputs {
            let args = at(args);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            assert_same(&Case::new(&args).with_stdin(input));
        }
    }
}

#[test]
fn help_for_every_command_is_what_redis_cli_knows_by_heart() {
    let server = brisk_testkit::Launch::redis().start();
    let port = server.port().to_string();
    let groups = [
        "generic",
        "string",
        "list",
        "set",
        "sorted-set",
        "hash",
        "pubsub",
        "transactions",
        "connection",
        "server",
        "scripting",
        "hyperloglog",
        "cluster",
        "geo",
        "stream",
        "bitmap",
    ];
    let groups = groups.map(|group| format!("@{group}"));
    for topic in groups.iter().map(String::as_str).chain(["set", "ACL", "acl setuser", "nonsense"])
    {
        let mut args = vec!["-p", &port, "help"];
        args.extend(topic.split(' '));
        assert_same(&Case::new(&args));
    }
}

#[test]
fn servers_are_found_by_port_socket_or_address_and_missing_ones_are_reported() {
    for server in servers() {
        let port = server.port().to_string();
        let socket = server.unix_socket().display().to_string();
        let address = format!("redis://127.0.0.1:{port}/2");
        let with_password = format!("redis://user:pa%73s@127.0.0.1:{port}");
        for args in [
            &["-s", &socket, "get", "greeting"][..],
            &["-u", &address, "dbsize"],
            &["-u", &with_password, "ping"],
            &["-h", "localhost", "-p", &port, "get", "greeting"],
            &["-p", "1", "ping"],
            &["-p", "abc", "ping"],
            &["-h", "nosuch.invalid", "ping"],
            &["-s", "/nowhere/socket", "ping"],
            &["-u", "http://x", "ping"],
            &["-u", "redis://%zz@h", "ping"],
            &["-p", "1", "--scan"],
            &["-p", "1", "--bigkeys"],
            &["-p", "1", "--pipe"],
            &["-p", "1", "--stat"],
            &["-p", "1"],
        ] {
            assert_same(&Case::new(args).with_stdin(b"ping\n"));
        }
    }
}

#[test]
fn passwords_come_from_the_variable_the_option_or_the_address() {
    for launch in [brisk_testkit::Launch::redis(), brisk_testkit::Launch::subject()] {
        let server = launch.start();
        server.connect().cmd("ACL SETUSER joe on >secret ~* &* +@all");
        server.connect().cmd("CONFIG SET requirepass open");
        let port = server.port().to_string();
        for case in [
            Case::new(&["-p", &port, "ping"]),
            Case::new(&["-p", &port, "-a", "open", "ping"]),
            Case::new(&["-p", &port, "ping"]).with_var("REDISCLI_AUTH", "open"),
            Case::new(&["-p", &port, "-a", "wrong", "ping"]).with_var("REDISCLI_AUTH", "open"),
            Case::new(&["-p", &port, "--user", "joe", "--pass", "secret", "acl", "whoami"]),
            Case::new(&["-p", &port, "--askpass", "ping"]).with_stdin(b"open\n"),
            Case::new(&["-p", &port, "--askpass"]).with_stdin(b"open\nping\nping\n"),
            Case::new(&["-p", &port, "-n", "4", "-3", "-a", "wrong", "ping"]),
            Case::new(&["-p", &port])
                .with_stdin(b"ping\nauth open\nping\nauth joe secret\nacl whoami\n"),
        ] {
            assert_same(&case);
        }
    }
}

#[test]
fn a_requested_shutdown_of_the_server_is_not_an_error() {
    for launch in [brisk_testkit::Launch::redis(), brisk_testkit::Launch::subject()] {
        let mut server = launch.start();
        let found = brisk_cli(&server, &["shutdown", "nosave"]);
        assert_eq!(
            (found.status.code(), text(&found.stdout), text(&found.stderr)),
            (Some(0), String::new(), String::new())
        );
        brisk_testkit::wait_until("the server ends", || !server.is_running());
    }
}

#[test]
fn help_and_version_are_printed_without_a_server() {
    let help = run(&ours(), &Case::new(&["--help"]));
    assert_eq!(help.status.code(), Some(0));
    // Every option of redis-cli is supported.
    let theirs = text(&run(&harness::theirs(), &Case::new(&["--help"])).stdout);
    let words = theirs.split(|c: char| c.is_whitespace() || c == ',');
    let options = words.filter(|word| word.starts_with("--") && word.len() > 2);
    let options: Vec<&str> = options.map(|word| word.trim_end_matches(['.', ')', '\''])).collect();
    assert!(options.len() > 40, "{options:?}");
    for arguments in [
        &["--help"][..],
        &["--man"],
        &["--completions", "bash"],
        &["--completions", "zsh"],
        &["--completions", "fish"],
    ] {
        let found = run(&ours(), &Case::new(arguments));
        assert_eq!(found.status.code(), Some(0));
        let said = text(&found.stdout).replace("\\-", "-").replace(" -l ", " --");
        for option in &options {
            assert!(said.contains(option), "{arguments:?}: {option}");
        }
    }
    assert_eq!(run(&ours(), &Case::new(&["--completions", "csh"])).status.code(), Some(1));
    let version = run(&ours(), &Case::new(&["--version"]));
    assert!(text(&version.stdout).starts_with("brisk-cli "));
    assert_eq!(run(&ours(), &Case::new(&["--cluster"])).status.code(), Some(1));
}

#[test]
fn bash_completes_options_and_what_follows_them() {
    let home = brisk_testkit::TempDir::new();
    let file = home.path("completions");
    let completions = run(&ours(), &Case::new(&["--completions", "bash"])).stdout;
    std::fs::write(&file, completions).expect("it can be written");
    for (words, expected) in [
        ("brisk-cli --memk", "--memkeys --memkeys-samples\n"),
        ("brisk-cli --cluster re", "reshard rebalance restore-topology\n"),
        ("brisk-cli --show-pushes y", "yes\n"),
        ("brisk-cli -n 1", "\n"),
        ("brisk-cli get", "\n"),
        ("brisk-cli -h host -3 ana", "analyze\n"),
        ("brisk-cli get ana", "\n"),
        ("brisk-cli -h host analyze --q", "--quantum\n"),
        ("brisk-cli analyze --quantum 1", "16\n"),
        ("brisk-cli analyze --resume HOME/comp", "HOME/completions\n"),
        ("brisk-cli analyze HOME/comp", "HOME/completions\n"),
        // Here, `analyze` is not a command but a password.
        ("brisk-cli -a analyze --memk", "--memkeys --memkeys-samples\n"),
    ] {
        let directory = home.path("").display().to_string();
        let (words, expected) =
            (words.replace("HOME/", &directory), expected.replace("HOME/", &directory));
        let script = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _brisk_cli; echo \"${{COMPREPLY[*]}}\"",
            file.display()
        );
        let shell = std::process::Command::new("bash").args(["-c", &script]).output();
        assert_eq!(text(&shell.expect("there is a bash").stdout), expected, "{words}");
    }
}

#[test]
fn a_closed_output_ends_the_program() {
    let server = brisk_testkit::Launch::subject().start();
    prepare(&server);
    let mut child = std::process::Command::new(ours())
        .args(["-p", &server.port().to_string(), "-r", "-1", "ping"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let mut ended = None;
    brisk_testkit::wait_until("the program ends", || {
        ended = child.try_wait().expect("it is ours");
        ended.is_some()
    });
    assert!(!ended.is_some_and(|code| code.success()));
}
