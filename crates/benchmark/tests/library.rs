//! The client library as the load generator, against real servers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use brisk_testkit::{Launch, Server};
use serde_json::Value;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_brisk-benchmark");

/// Runs the tool against a server. Returns whether it succeeded, its standard output, and its standard error.
fn tool(server: &Server, arguments: &str) -> (bool, String, String) {
    let port = server.port().to_string();
    let output = Command::new(PROGRAM)
        .args(["-p", port.as_str()])
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn calls(server: &Server, command: &str) -> u64 {
    let line = server.info(&format!("cmdstat_{command}"));
    let calls = line.split(',').find_map(|field| field.strip_prefix("calls="));
    calls.unwrap().parse().unwrap()
}

#[test]
fn the_library_sends_each_test_of_the_suite_as_often_as_requested() {
    for server in [Launch::redis().start(), Launch::subject().start()] {
        for (which, times) in [("library", 1), ("library-pool", 2)] {
            let load = format!("--client {which} -n 500 -c 3 -P 4 -r 1000 -d 20 -q --verify");
            let (done, out, err) = tool(&server, &load);
            assert!(done, "{out}\n{err}");
            // All tests are run, except the one with an inline request.
            assert_eq!(out.lines().filter(|line| line.contains("requests per second")).count(), 19);
            for command in ["set", "get", "incr", "rpush", "lpop", "sadd", "hset", "spop"] {
                assert_eq!(calls(&server, command), 500 * times, "{command}");
            }
            assert!(err.contains("12 callers on 3"), "{err}");
        }
    }
}

#[test]
fn requests_are_spread_over_the_requested_connections() {
    for server in [Launch::redis().start(), Launch::subject().start()] {
        let before: u64 = server.info("total_connections_received").parse().unwrap();
        let (done, out, err) = tool(&server, "--client library -c 4 -n 2000 -r 1000 -t get --json");
        assert!(done, "{out}\n{err}");
        let summary: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(summary["operations"], 2000);
        assert!(summary["generator_us"].as_f64().unwrap() > 0.0, "{summary}");
        let after: u64 = server.info("total_connections_received").parse().unwrap();
        // Four connections for the run, one that reads the settings, and those that read this counter.
        assert!((4..10).contains(&(after - before)), "{before} {after}");
        let (done, _, err) = tool(&server, "--client library -c 4 -n 100 -t get -q");
        assert!(done && err.contains("all requests use the same key"), "{err}");
    }
}

#[test]
fn errors_end_the_run_or_are_counted() {
    let server = Launch::subject().start();
    assert_eq!(server.connect().cmd("SET text x").to_string(), "OK");
    let (done, _, err) = tool(&server, "--client library -n 50 -q incr text");
    assert!(!done && err.contains("not an integer"), "{err}");
    let (done, _, err) = tool(&server, "--client library --count-errors -n 50 -q incr text");
    assert!(done && err.contains("50 of 50 replies were errors"), "{err}");
}

#[test]
fn options_that_the_library_does_not_support_are_rejected_with_the_reason() {
    let server = Launch::subject().start();
    for (options, wanted) in [
        ("--client library --rate 10", "--rate cannot be combined"),
        ("--client library-pool -k 0", "-k 0 cannot be combined"),
        ("--client library -I", "-I cannot be combined"),
        ("--client library --enable-tracking", "--enable-tracking cannot be combined"),
        ("--client library --tls", "--tls cannot be combined"),
        ("--client library -t ping_inline", "does not send inline requests"),
        ("--client library select 1", "sends no select over a connection that callers share"),
        ("--client library blpop l 1", "only over a pool"),
    ] {
        let (done, out, err) = tool(&server, options);
        assert!(!done && err.contains(wanted), "{options}: {out}\n{err}");
    }
    let stopped = Launch::subject().start();
    let port = stopped.port();
    drop(stopped);
    let output = Command::new(PROGRAM)
        .args(["-p", &port.to_string(), "--client", "library", "-t", "get"])
        .output()
        .unwrap();
    assert!(!output.status.success());
}
