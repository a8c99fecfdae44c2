//! The program against real servers: it sends the same requests as redis-benchmark, prints the same output, and detects
//! failures.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use brisk_testkit::{Launch, Server, wait_until};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_brisk-benchmark");

fn output(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs the tool against the server and returns its standard output; it must succeed.
#[track_caller]
fn tool(server: &Server, arguments: &str) -> String {
    let port = server.port().to_string();
    let mut all = vec!["-p", port.as_str()];
    all.extend(arguments.split_whitespace());
    let output = output(&all);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{arguments}: {}\n{out}\n{err}", output.status);
    out
}

/// Runs the tool and returns its standard error; it must succeed.
#[track_caller]
fn stderr(server: &Server, arguments: &str) -> String {
    let port = server.port().to_string();
    let mut all = vec!["-p", port.as_str()];
    all.extend(arguments.split_whitespace());
    let output = output(&all);
    assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    text(&output.stderr)
}

/// Runs the tool and returns its standard error; it must fail.
#[track_caller]
fn fails(server: &Server, arguments: &[&str]) -> String {
    let port = server.port().to_string();
    let output = output(&[&["-p", port.as_str()], arguments].concat());
    assert!(!output.status.success(), "{arguments:?}: {}", text(&output.stdout));
    text(&output.stderr)
}

/// Runs a test against a real Redis and against the server under test.
fn each_server(test: impl Fn(&Server)) {
    test(&Launch::redis().start());
    test(&Launch::subject().start());
}

/// Like [`each_server`], but without protected mode, in which a real Redis rejects most loopback addresses.
fn each_open_server(test: impl Fn(&Server)) {
    test(&Launch::redis().set("protected-mode", "no").start());
    test(&Launch::subject().set("protected-mode", "no").start());
}

fn calls(server: &Server, command: &str) -> u64 {
    let line = server.info(&format!("cmdstat_{command}"));
    let calls = line.split(',').find_map(|field| field.strip_prefix("calls="));
    calls.unwrap().parse().unwrap()
}

#[test]
fn every_test_of_the_suite_sends_its_command_as_often_as_requested() {
    each_server(|server| {
        let out = tool(server, "-n 500 -c 5 -P 4 -r 1000 -d 20 -q --verify");
        let titles: Vec<&str> = out.lines().filter_map(|line| line.split(": ").next()).collect();
        assert_eq!(titles.len(), 21, "{out}");
        for command in ["set", "get", "incr", "rpush", "lpop", "rpop", "sadd", "hset", "spop"] {
            assert_eq!(calls(server, command), 500, "{command}");
        }
        for (command, times) in [("lpush", 1000), ("lrange", 2000), ("mset", 500)] {
            assert_eq!(calls(server, command), times, "{command}");
        }
        // Waiting for the server's start also sends PING.
        assert!(calls(server, "ping") > 1000);
    });
}

#[test]
fn csv_and_titles_are_those_of_redis_benchmark() {
    let server = Launch::redis().start();
    let ours = tool(&server, "-n 50 -c 2 --csv");
    let port = server.port().to_string();
    let theirs = Command::new("redis-benchmark")
        .args(["-p", &port, "-n", "50", "-c", "2", "--csv"])
        .output()
        .unwrap();
    let first_cells = |text: &str| -> Vec<(String, usize)> {
        text.lines()
            .map(|line| {
                let first = line.split("\",\"").next().unwrap_or_default().to_owned();
                (first, line.matches("\",\"").count())
            })
            .collect()
    };
    assert_eq!(first_cells(&ours), first_cells(&text(&theirs.stdout)));
    assert_eq!(ours.lines().next(), text(&theirs.stdout).lines().next());
}

#[test]
fn the_long_report_has_the_lines_of_redis_benchmark() {
    let server = Launch::redis().set("save", "3600 1").start();
    let ours = tool(&server, "-n 300 -c 3 -t get --threads 2");
    let port = server.port().to_string();
    let theirs = Command::new("redis-benchmark")
        .args(["-p", &port, "-n", "300", "-c", "3", "-t", "get", "--threads", "2"])
        .output()
        .unwrap();
    // The parts without measurements: the text up to the first distribution, and the headings after it.
    let fixed = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.rsplit('\r').next().unwrap_or(line));
        lines
            .filter(|line| !line.contains("<=") && !line.contains("seconds"))
            .take_while(|line| !line.contains("throughput summary"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(fixed(&ours), fixed(&text(&theirs.stdout)));
}

#[test]
fn placeholders_of_custom_commands_are_filled() {
    each_server(|server| {
        let arguments =
            "-n 200 -c 1 -r 50 -d 7 -q --keys sequential APPEND k:__rand_int__ __data__";
        tool(server, arguments);
        let mut conn = server.connect();
        assert_eq!(conn.cmd("DBSIZE").text(), "50");
        // 200 sequential requests over 50 keys append 7 bytes four times to each key.
        assert_eq!(conn.cmd("STRLEN k:000000000049").text(), "28");
        // Without a keyspace, the placeholder is not replaced.
        tool(server, "-n 10 -q SET literal:__rand_int__ x");
        assert_eq!(conn.cmd("EXISTS literal:__rand_int__").text(), "1");
    });
}

#[test]
fn the_last_argument_may_come_from_standard_input() {
    let server = Launch::subject().start();
    let port = server.port().to_string();
    let mut child = Command::new(PROGRAM)
        .args(["-p", &port, "-n", "3", "-q", "-x", "SET", "key"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"from stdin").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(server.connect().cmd("GET key").text(), "from stdin");
}

#[test]
fn sessions_begin_with_what_the_options_say() {
    each_server(|server| {
        let mut conn = server.connect();
        conn.cmd("ACL SETUSER ann on >pw ~* &* +@all");
        tool(server, "-n 20 -c 4 --user ann -a pw --dbnum 5 -3 --enable-tracking -q SET a b");
        conn.cmd("SELECT 5");
        assert_eq!(conn.cmd("GET a").text(), "b");
        let error = fails(server, &["--user", "ann", "-a", "wrong", "-q", "PING"]);
        assert!(error.contains("WRONGPASS"), "{error}");
    });
}

#[test]
fn a_unix_socket_works_like_a_port() {
    let server = Launch::subject().start();
    let path = server.unix_socket();
    let path = path.to_str().unwrap();
    let output = output(&["-s", path, "-n", "100", "-q", "-t", "set", "-k", "0"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(calls(&server, "set") >= 100);
}

#[test]
fn reconnecting_opens_a_connection_per_batch() {
    each_open_server(|server| {
        tool(server, "-n 1000 -c 20 -k 0 -q -t get --threads 2");
        let connections: u64 = server.info("total_connections_received").parse().unwrap();
        assert!(connections >= 1000, "{connections}");
        // Requests that were sent before all clients had connected once are not counted.
        assert!(calls(server, "get") >= 1000);
    });
}

#[test]
fn thousands_of_clients_that_reconnect_all_have_their_turn() {
    each_open_server(|server| {
        let error = stderr(server, "-n 5000 -c 2000 -k 0 -q -t get");
        assert!(error.contains("NOTE: at most 240 of the 2000 clients wait"), "{error}");
        // One request per client while connections are being opened, and then exactly the requested number.
        assert_eq!(calls(server, "get"), 2000 + 5000);
    });
}

#[test]
fn short_connections_come_from_many_addresses_where_they_may() {
    let open = Launch::redis().set("protected-mode", "no").start();
    let error = stderr(&open, "-n 200 -c 20 -k 0 -q -t get");
    assert!(!error.contains("NOTE"), "{error}");
    let protected = Launch::redis().start();
    let error = stderr(&protected, "-n 200 -c 20 -k 0 -q -t get");
    assert!(
        error.contains("NOTE: the server rejects all loopback addresses except 127.0.0.1"),
        "{error}"
    );
}

#[test]
fn threads_share_the_requests() {
    let server = Launch::subject().start();
    let out = tool(&server, "-n 10000 -c 9 --threads 4 --json -t set");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["operations"], 10_000);
    assert_eq!(json["generator"]["threads"], 4);
    assert_eq!(calls(&server, "set"), 10_000);
}

#[test]
fn an_error_reply_ends_the_run_unless_it_is_to_be_counted() {
    each_server(|server| {
        server.connect().cmd("SET string x");
        let error = fails(server, &["-n", "100", "-q", "LPUSH", "string", "x"]);
        let wanted = "Error from server: WRONGTYPE Operation against a key holding the wrong kind of \
                      value";
        assert!(error.contains(wanted), "{error}");
        let out = tool(server, "-n 100 --json --count-errors LPUSH string x");
        let json: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(json["errors"]["count"], 100);
        assert_eq!(json["errors"]["by_code"]["WRONGTYPE"], 100);
    });
}

#[test]
fn verification_finds_a_value_that_was_not_written() {
    each_server(|server| {
        tool(server, "-n 300 -q -t set,get -r 10 -d 32 --verify --fill");
        server.connect().cmd("SET key:000000000003 intruder");
        let error =
            fails(server, &["-n", "300", "-q", "-t", "get", "-r", "10", "-d", "32", "--verify"]);
        assert!(error.contains("expected the value of the key of number 3"), "{error}");
    });
}

#[test]
fn mixtures_and_sizes_reach_the_server() {
    each_server(|server| {
        tool(server, "-n 4000 -P 8 -q --mix get:3,set:1 -r 100 -d 20:1,40:1 --verify");
        let (gets, sets) = (calls(server, "get"), calls(server, "set"));
        assert_eq!(gets + sets, 4000);
        assert!((800..1200).contains(&sets), "{sets}");
        let mut conn = server.connect();
        let mut sizes: Vec<String> = (0..100)
            .map(|i| conn.cmd(&format!("STRLEN key:{i:012}")).text())
            .filter(|size| size != "0")
            .collect();
        sizes.sort();
        sizes.dedup();
        assert_eq!(sizes, ["20", "40"]);
    });
}

#[test]
fn a_missing_server_is_reported_as_by_redis_benchmark() {
    // Port 1 of the loopback address has no listener.
    let output = output(&["-p", "1", "-q", "-t", "get"]);
    let error = text(&output.stderr);
    assert!(!output.status.success());
    assert!(
        error.contains("Could not connect to Redis at 127.0.0.1:1: Connection refused"),
        "{error}"
    );
}

#[test]
fn command_line_errors_are_reported_in_a_line_or_two() {
    for (arguments, wanted) in [
        (&["--nonsense"][..], "Invalid option \"--nonsense\" or option argument missing"),
        (&["-c"], "Invalid option \"-c\" or option argument missing"),
        (&["-n", "many"], "-n must be a whole number of at least 0, not \"many\""),
        (
            &["-t", "nonsense"],
            "-t: there is no test \"nonsense\"; the tests are ping_inline, ping,",
        ),
        (&["compare", ":1"], "compare needs at least two servers"),
        (&["compare", ":1", ":2", "--save", "x.pdf"], "--save writes .md, .csv, .json or .txt"),
        (&["compare", ":1", ":2", "--html", "/no/where.html"], "/no/where.html: No such file"),
        (&["experiments", "--html", "/no/where.html"], "/no/where.html: No such file"),
    ] {
        let output = output(arguments);
        let error = text(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
        assert!(error.contains(wanted) && error.lines().count() <= 2, "{arguments:?}: {error}");
    }
}

#[test]
fn an_unknown_test_does_not_stop_the_others() {
    let server = Launch::subject().start();
    let error = stderr(&server, "-n 10 -q -t nonsense,get");
    assert!(error.contains("WARNING: there is no test \"nonsense\"."), "{error}");
    assert_eq!(calls(&server, "get"), 10);
}

#[test]
fn a_missing_or_wrong_password_is_reported() {
    each_server(|server| {
        server.connect().cmd("CONFIG SET requirepass pw");
        let error = fails(server, &["-q", "-t", "get", "-n", "10"]);
        assert_eq!(error, "Error from server: NOAUTH Authentication required.\n");
        let error = fails(server, &["-q", "-t", "get", "-n", "10", "-a", "no"]);
        assert!(error.starts_with("Error from server: WRONGPASS"), "{error}");
        tool(server, "-q -t get -n 10 -a pw");
        let port = server.port().to_string();
        let with_variable = |password: &str, more: &[&str]| {
            let mut command = Command::new(PROGRAM);
            command
                .env("REDISCLI_AUTH", password)
                .args(["-p", &port, "-q", "-t", "get", "-n", "10"]);
            command.args(more).output().unwrap().status.success()
        };
        assert!(with_variable("pw", &[]));
        assert!(!with_variable("no", &[]));
        assert!(with_variable("no", &["-a", "pw"]));
    });
}

#[test]
fn a_server_that_ends_during_a_test_is_reported_with_that_test() {
    for launch in [Launch::redis(), Launch::subject()] {
        let server = launch.start();
        let port = server.port().to_string();
        let child = Command::new(PROGRAM)
            .args(["-p", &port, "-n", "1000000000", "-q", "-t", "set,get"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        server.wait_for_info("total_commands_processed", |count| {
            count.parse().is_ok_and(|count: u64| count > 10_000)
        });
        server.terminate();
        let output = child.wait_with_output().unwrap();
        let error = text(&output.stderr);
        assert!(!output.status.success());
        assert!(error.starts_with("Error: "), "{error}");
        let ways = ["closed the connection", "reset", "Broken pipe"];
        assert!(ways.iter().any(|way| error.contains(way)), "{error}");
        assert!(error.ends_with("(while measuring SET)\n"), "{error}");
    }
}

#[test]
fn idle_clients_connect_and_stay() {
    let server = Launch::subject().start();
    let port = server.port().to_string();
    let mut child = Command::new(PROGRAM)
        .args(["-p", &port, "-c", "300", "-I"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    server.wait_for_info("connected_clients", |count| count == "301");
    child.kill().unwrap();
    child.wait().unwrap();
    server.wait_for_info("connected_clients", |count| count == "1");
}

#[test]
fn servers_are_started_compared_and_stopped() {
    let ours = brisk_testkit::server::brisk_binary().unwrap().display().to_string();
    let redis = brisk_testkit::server::redis_binary().display().to_string();
    // The tool creates the directories of the servers that it starts in this directory.
    let dir = std::env::temp_dir().join(format!("tool-{}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    let arguments = [
        "compare",
        &format!("redis={redis} --port {{port}} --save '' --dir {{dir}}"),
        &format!("brisk={ours} --port {{port}} --dir {{dir}}"),
        "-t",
        "set,get",
        "-P",
        "1,16",
        "-n",
        "2000",
        "-r",
        "100",
        "--fill",
        "--rounds",
        "3",
        "--format",
        "json",
    ];
    let output = Command::new(PROGRAM).env("TMPDIR", &dir).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let titles: Vec<&str> = json["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["SET", "SET", "GET", "GET"]);
    assert_eq!(json["servers"][0]["version"], "Redis 7.0.15");
    for case in json["cases"].as_array().unwrap() {
        let row = |metric: &str| {
            let rows = case["rows"].as_array().unwrap();
            rows.iter().find(|row| row["metric"] == metric).unwrap().clone()
        };
        let rate = row("rate");
        let (value, low, high) = (
            rate["ratios"][1]["value"].as_f64().unwrap(),
            rate["ratios"][1]["low"].as_f64().unwrap(),
            rate["ratios"][1]["high"].as_f64().unwrap(),
        );
        assert!(low <= value && value <= high && low > 0.0, "{rate}");
        assert!(row("server_cpu")["medians"][1].as_f64().unwrap() > 0.0);
        assert!(row("rss")["medians"][0].as_f64().unwrap() > 1.0);
        assert_eq!(case["samples"][0].as_array().unwrap().len(), 3);
    }
    // The started processes have exited, and their directories are deleted.
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    std::fs::remove_dir(&dir).unwrap();
}

#[test]
fn a_running_server_is_compared_by_its_address_and_left_running() {
    let (one, other) = (Launch::redis().start(), Launch::subject().start());
    let output = output(&[
        "compare",
        &format!("one={}", one.address()),
        &format!("other={}", other.address()),
        "-n",
        "500",
        "-t",
        "ping_mbulk",
        "--rounds",
        "1",
        "--baseline",
        "other",
        "--format",
        "csv",
    ]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.contains("\"PING_MBULK\",1,\"one\",\"server CPU\",\"us/request\","), "{out}");
    assert!(err.contains("fewer than 3 rounds"), "{err}");
    wait_until("both still reply", || one.info("loading") == "0" && other.info("loading") == "0");
}
