//! The modes with real data. The output is compared with that of `redis-cli` where both print the same.

use crate::harness::terminal::Terminal;
use crate::harness::{
    self, Case, assert_same, brisk_cli, ours, run, servers, text, wait_until_same,
};
use brisk_testkit::server::redis_tool;
use brisk_testkit::{Launch, Server, TempDir, wait_until};
use std::io::Read;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Servers with many keys, and keys of every type.
fn with_keys() -> Vec<Server> {
    let servers = servers();
    for server in &servers {
        let mut conn = server.connect();
        for number in 0..300 {
            conn.cmd(&format!("SET key:{number} {}", "x".repeat(number % 50)));
        }
        // The key has no NUL byte, at which `redis-cli --scan` would truncate the line.
        conn.cmd("SET \"we ird\\n\\x01\" value");
    }
    servers
}

#[test]
fn searches_of_all_keys_print_what_redis_cli_prints() {
    for server in with_keys() {
        let port = server.port().to_string();
        for args in [
            &["--scan"][..],
            &["--scan", "--pattern", "key:1?"],
            &["--scan", "--quoted-pattern", "\"we*\\x01\""],
            &["--scan", "--no-raw", "--pattern", "we*"],
            &["--scan", "--csv", "--pattern", "we*"],
            &["--scan", "-i", "0.001", "--pattern", "list"],
            &["--bigkeys"],
            &["--bigkeys", "-i", "0.001"],
            &["--bigkeys", "--pattern", "key:1*"],
            &["--memkeys"],
            &["--memkeys-samples", "3"],
        ] {
            let args: Vec<&str> = ["-p", &port].into_iter().chain(args.iter().copied()).collect();
            // While a table is being rehashed after it has grown, the order of its keys changes.
            wait_until_same(&Case::new(&args));
        }
        let few = brisk_cli(&server, &["--scan", "--count", "1000", "--pattern", "key:7"]);
        assert_eq!(text(&few.stdout), "key:7\n");
    }
}

#[test]
fn keys_in_use_are_found_as_redis_cli_finds_them() {
    let server = Launch::redis().set("maxmemory-policy", "allkeys-lfu").start();
    harness::prepare(&server);
    let mut conn = server.connect();
    for (key, times) in [("greeting", 500), ("number", 200)] {
        for _ in 0..times {
            conn.cmd(&format!("GET {key}"));
        }
    }
    let port = server.port().to_string();
    assert_same(&Case::new(&["-p", &port, "--hotkeys"]));
}

#[test]
fn hot_keys_are_sampled_without_an_lfu_policy() {
    for server in servers() {
        let stops = AtomicBool::new(false);
        let mut conn = server.connect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stops.load(Ordering::Relaxed) {
                    for key in ["greeting", "greeting", "greeting", "other"] {
                        conn.cmd(&format!("GET {key}"));
                    }
                }
            });
            let args = ["--hotkeys", "--count", "2", "-i", "0.01"];
            let sampled = |more: &[&str], line: &str| {
                brisk_testkit::wait::holds_within(Duration::from_secs(60), || {
                    let found = brisk_cli(&server, &[&args[..], more].concat());
                    let said = text(&found.stdout);
                    let first = said.lines().find(|line| line.starts_with("hot key found "));
                    found.status.code() == Some(0)
                        && said.contains("# The maxmemory-policy is noeviction, ")
                        && said.contains("[burst 2 of 2] ")
                        && said.contains("This is a sample: ")
                        && first.is_some_and(|first| first.ends_with(line))
                })
            };
            let found = sampled(&[], "keyname: \"greeting\"");
            let matching = sampled(&["--pattern", "o*r"], "keyname: \"other\"");
            stops.store(true, Ordering::Relaxed);
            assert!(found && matching);
        });
        let idle = brisk_cli(&server, &["--hotkeys", "--count", "1"]);
        assert!(text(&idle.stdout).contains("No request with a matching key was sampled"));
    }
}

#[test]
fn a_hundred_thousand_commands_go_through_the_pipe_and_errors_are_counted() {
    for server in servers() {
        let mut input = Vec::new();
        for number in 0..100_000 {
            let key = format!("piped:{number}");
            input.extend(
                format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n$1\r\nx\r\n", key.len()).into_bytes(),
            );
        }
        let port = server.port().to_string();
        let args = ["-p", &port, "--pipe"];
        let found = run(&ours(), &Case::new(&args).with_stdin(&input));
        assert_eq!(
            (text(&found.stdout).as_str(), text(&found.stderr).as_str(), found.status.code()),
            (
                "All data transferred. Waiting for the last reply...\n\
                 Last reply received from server.\nerrors: 0, replies: 100000\n",
                "",
                Some(0)
            )
        );
        assert_eq!(text(&brisk_cli(&server, &["get", "piped:99999"]).stdout), "x\n");
        for input in [&b"*1\r\n$4\r\nPING\r\n*1\r\n$3\r\nFOO\r\nPING\r\n"[..], b"", b"SET a"] {
            assert_same(&Case::new(&args).with_stdin(input));
        }
    }
}

#[test]
fn a_pipe_does_not_wait_for_ever() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = silent.local_addr().expect("it is bound").port().to_string();
    let case = Case::new(&["-p", &port, "--pipe", "--pipe-timeout", "1"]).with_stdin(b"PING\r\n");
    assert_same(&case);
}

#[test]
fn no_mode_begins_with_a_rejected_password_or_database() {
    let home = TempDir::new();
    let script = home.path("script.lua");
    std::fs::write(&script, "return 1").expect("it can be written");
    let (script, file) = (script.display().to_string(), home.path("file").display().to_string());
    for server in servers() {
        let port = server.port().to_string();
        for refused in [&["-a", "wrong"][..], &["--user", "joe", "-a", "wrong"], &["-n", "99"]] {
            for mode in [
                &["--scan"][..],
                &["--bigkeys"],
                &["--memkeys"],
                &["--hotkeys"],
                &["--stat"],
                &["--latency"],
                &["--latency-history"],
                &["--latency-dist"],
                &["--lru-test", "10"],
                &["--pipe"],
                &["--rdb", &file],
                &["--functions-rdb", &file],
                &["--replica"],
                &["--eval", &script],
                &["--ldb", "--eval", &script],
            ] {
                assert_same(&Case::new(&[&["-p", &port][..], refused, mode].concat()));
            }
            let found = brisk_cli(&server, &[refused, &["analyze"]].concat());
            assert_eq!((found.status.code(), found.stdout.is_empty()), (Some(1), true));
        }
        assert!(!home.path("file").exists(), "no snapshot was fetched");
    }
}

#[test]
fn a_server_that_never_replies_is_given_up_after_the_time_limit() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = silent.local_addr().expect("it is bound").port().to_string();
    let limited = ["-p", &port, "-t", "0.05"];
    for rest in [&["ping"][..], &["-n", "3", "ping"], &["--scan"], &["--bigkeys"], &["--latency"]] {
        let found = run(&ours(), &Case::new(&[&limited[..], rest].concat()));
        assert_eq!((found.status.code(), found.stdout.is_empty()), (Some(1), true), "{found:?}");
    }
    let found = run(&ours(), &Case::new(&[&limited[..], &["subscribe", "a"]].concat()));
    let expected = "Error: The server did not reply within the time that -t allows\n";
    assert_eq!((found.status.code(), text(&found.stderr).as_str()), (Some(1), expected));
}

#[test]
fn the_time_limit_bounds_replies_and_not_the_wait_for_messages() {
    for server in servers() {
        let port = server.port().to_string();
        let mut child = Command::new(ours())
            .args(["-p", &port, "-t", "0.05", "subscribe", "news"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut conn = server.connect();
        // The subscriber must wait for longer than the limit.
        wait_until("the subscriber is idle", || {
            let list = conn.cmd("CLIENT LIST TYPE pubsub").text();
            list.contains("idle=") && !list.contains("idle=0")
        });
        conn.cmd("PUBLISH news flash");
        conn.cmd("CLIENT KILL TYPE pubsub");
        let mut shown = String::new();
        let mut stdout = child.stdout.take().expect("it was piped");
        stdout.read_to_string(&mut shown).expect("it is text");
        child.wait().expect("the program ends");
        assert_eq!(shown, "subscribe\nnews\n1\nmessage\nnews\nflash\n");
    }
}

#[test]
fn a_snapshot_is_one_that_redis_accepts() {
    for server in with_keys() {
        let home = TempDir::new();
        let file = home.path("copy.rdb").display().to_string();
        let found = brisk_cli(&server, &["--rdb", &file]);
        assert_eq!(found.status.code(), Some(0), "{}", text(&found.stderr));
        assert!(text(&found.stderr).contains("Transfer finished with success"));
        check_rdb(&file);
        let piped = brisk_cli(&server, &["--rdb", "-"]);
        let other = home.path("piped.rdb");
        std::fs::write(&other, piped.stdout).expect("it can be written");
        check_rdb(&other.display().to_string());
        let nowhere = brisk_cli(&server, &["--rdb", "/nowhere/x.rdb"]);
        assert_eq!(nowhere.status.code(), Some(1));
        assert!(text(&nowhere.stderr).contains("Error opening '/nowhere/x.rdb': No such file"));
    }
}

#[test]
fn long_work_shows_how_far_it_is_on_a_terminal_and_nothing_of_it_in_a_pipe() {
    let home = TempDir::new();
    let file = home.path("copy.rdb").display().to_string();
    for server in with_keys() {
        let port = server.port().to_string();
        let mut shown = Terminal::start(&ours(), &["-p", &port, "--rdb", &file], &[]);
        shown.expect("\rFetching ");
        shown.expect("\r\x1b[K");
        shown.expect("Transfer finished with success");
        assert_eq!(shown.end(), Some(0));
        let mut shown = Terminal::start(&ours(), &["-p", &port, "--memkeys"], &[]);
        shown.expect("\rLooking [");
        shown.expect("% ");
        shown.expect("\r\x1b[K\r\n-------- summary -------");
        assert_eq!(shown.end(), Some(0));
        for args in [&["--rdb", &file][..], &["--bigkeys"], &["--memkeys"]] {
            let found = brisk_cli(&server, args);
            assert!(!text(&found.stderr).contains('\r'), "{}", text(&found.stderr));
        }
    }
}

#[track_caller]
fn check_rdb(file: &str) {
    let checked = Command::new(redis_tool("redis-check-rdb")).arg(file).output().expect("it runs");
    assert!(checked.status.success(), "{}", text(&checked.stdout));
    assert!(text(&checked.stdout).contains("RDB looks OK"), "{}", text(&checked.stdout));
}

#[test]
fn functions_alone_are_fetched_from_a_server_that_can() {
    let server = Launch::redis().start();
    harness::prepare(&server);
    let home = TempDir::new();
    let file = home.path("functions.rdb").display().to_string();
    let found = brisk_cli(&server, &["--functions-rdb", &file]);
    assert_eq!(found.status.code(), Some(0), "{}", text(&found.stderr));
    check_rdb(&file);
}

#[test]
fn scripts_get_keys_before_the_comma_and_arguments_after_it() {
    let home = TempDir::new();
    let file = home.path("script.lua");
    std::fs::write(&file, "return {KEYS[1], KEYS[2] or 'none', ARGV[1], #KEYS, #ARGV}")
        .expect("it can be written");
    let broken = home.path("broken.lua");
    std::fs::write(&broken, "return (").expect("it can be written");
    let (file, broken) = (file.display().to_string(), broken.display().to_string());
    let redis = &servers()[0];
    let port = redis.port().to_string();
    for rest in
        [&["a", "b", ",", "c", "d"][..], &["a", ",", "c"], &[",", "c"], &["a"], &["a,", "b"], &[]]
    {
        let args = [&["-p", &port, "--eval", &file][..], rest].concat();
        assert_same(&Case::new(&args));
        assert_same(&Case::new(&args).with_var("FAKETTY", "1"));
    }
    assert_same(&Case::new(&["-p", &port, "--eval", &broken]));
    let ours = &servers()[1];
    let found = brisk_cli(ours, &["--eval", &file, "a", ",", "c"]);
    assert_eq!(text(&found.stdout), "a\nnone\nc\n1\n1\n");
}

#[test]
fn a_replica_is_shown_what_changes() {
    for server in servers() {
        let port = server.port().to_string();
        let mut shown = Terminal::start(&ours(), &["-p", &port, "--replica"], &[]);
        shown.expect("Logging commands from master.");
        server.connect().cmd("SET seen yes");
        shown.expect("\"seen\",\"yes\"");
        shown.press("\x03");
    }
}

#[test]
fn stat_and_latencies_have_the_layout_of_redis_cli() {
    for server in servers() {
        let port = server.port().to_string();
        let mut shown = Terminal::start(&ours(), &["-p", &port, "--stat", "-i", "0.01"], &[]);
        shown.expect(
            "------- data ------ --------------------- load -------------------- - child -\r\n",
        );
        shown.expect(
            "keys       mem      clients blocked requests            connections          \r\n",
        );
        shown.expect("\r\n");
        let line = shown.expect("\r\n");
        assert_eq!(line.len(), 68, "{line:?}");
        shown.press("\x03");
        let mut shown = Terminal::start(&ours(), &["-p", &port, "--latency"], &[]);
        shown.expect("\x1b[0G\x1b[2Kmin: ");
        shown.expect(" (2 samples)");
        let mut shown =
            Terminal::start(&ours(), &["-p", &port, "--latency-history", "-i", "0.05"], &[]);
        shown.expect(" seconds range\r\n");
        let mut shown =
            Terminal::start(&ours(), &["-p", &port, "--latency-dist", "-i", "0.05"], &[]);
        shown.expect("From 0 to 100%: \x1b[48;5;0m \x1b[48;5;233m ");
        shown.expect("\x1b[38;5;0m\x1b[48;5;0m.");
        let mut shown = Terminal::start(&ours(), &["-p", &port, "--lru-test", "50"], &[]);
        shown.expect(" Gets/sec | Hits: ");
        for (form, separator) in [("--raw", ' '), ("--csv", ',')] {
            let found = brisk_cli(&server, &["--latency", "-i", "0.05", form]);
            assert_eq!(text(&found.stdout).trim().split(separator).count(), 4);
        }
    }
}

#[test]
fn intrinsic_latency_needs_no_server() {
    let found = run(&ours(), &Case::new(&["--intrinsic-latency", "1"]));
    let said = text(&found.stdout);
    assert!(
        said.contains("total runs (avg latency: ") && said.contains("Worst run took "),
        "{said}"
    );
    assert_eq!(found.status.code(), Some(0));
}

#[test]
fn a_subscription_on_the_command_line_prints_messages_until_the_server_ends() {
    for launch in [Launch::redis(), Launch::subject()] {
        let mut server = launch.start();
        let mut child = Command::new(ours())
            .args(["-p", &server.port().to_string(), "subscribe", "news"])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut conn = server.connect();
        brisk_testkit::wait_until("it has subscribed", || {
            conn.cmd("PUBLISH news flash").integer() == 1
        });
        // A publisher gets its reply before the message is sent to the subscriber.
        let expected = "subscribe\nnews\n1\nmessage\nnews\nflash\n";
        let mut printed = vec![0; expected.len()];
        let stdout = child.stdout.as_mut().expect("it is piped");
        stdout.read_exact(&mut printed).expect("all of it is printed");
        assert_eq!(text(&printed), expected);
        server.kill_for_now();
        let found = child.wait_with_output().expect("it ends");
        assert_eq!(text(&found.stdout), "");
        assert_eq!(
            (text(&found.stderr).as_str(), found.status.code()),
            ("Error: Server closed the connection\n", Some(1))
        );
    }
}
