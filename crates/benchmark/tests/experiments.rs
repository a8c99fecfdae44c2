//! Experiments and the report from end to end, with a real Redis next to the server under test.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use brisk_testkit::{Launch, Server};
use serde_json::Value;
use std::fs;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_brisk-benchmark");

fn tool(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn address(name: &str, server: &Server) -> String {
    format!("{name}=127.0.0.1:{}", server.port())
}

/// A real Redis and the server under test, and their names on the command line.
fn both() -> ([Server; 2], [String; 2]) {
    let servers = [Launch::redis().start(), Launch::subject().start()];
    let names = [address("redis", &servers[0]), address("ours", &servers[1])];
    (servers, names)
}

#[test]
fn an_experiment_shows_the_articles_number_next_to_both_servers() {
    let (servers, [redis, ours]) = both();
    let dir = std::env::temp_dir().join(format!("brisk-experiments-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let file = |name: &str| dir.join(name).display().to_string();
    let (json, html, markdown) = (file("r.json"), file("r.html"), file("r.md"));
    let (done, out, err) = tool(&[
        "experiments",
        "p2",
        "m5",
        "--short",
        "--servers",
        &redis,
        &ours,
        "--json",
        &json,
        "--html",
        &html,
        "--markdown",
        &markdown,
    ]);
    assert!(done, "{out}\n{err}");
    let report: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let html = fs::read_to_string(html).unwrap();
    let markdown = fs::read_to_string(markdown).unwrap();
    fs::remove_dir_all(dir).unwrap();

    let pings = &report["experiments"][0]["rows"];
    assert_eq!(pings[0]["article"], 263.6);
    assert_eq!(pings[1]["article"], 9.6);
    for server in 0..2 {
        let ms = |row: usize| pings[row]["values"][server].as_f64().unwrap();
        assert!(ms(0) > ms(1) && ms(1) > 0.0, "{pings}");
        let gain = ms(0) / ms(1);
        assert!((ms(2) - gain).abs() < gain * 1e-9, "{pings}");
    }
    // On any server, the data takes less memory as codes than as a key per field.
    let rows = report["experiments"][1]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    for server in 0..2 {
        let bytes = |row: usize| rows[row]["values"][server].as_f64().unwrap();
        assert!(bytes(0) > 2.0 * bytes(4), "{rows:?}");
    }
    assert!(out.contains("P2: ") && out.contains("M5: "), "{out}");
    assert!(html.contains("id=\"p2\"") && html.contains("263.6"));
    assert!(markdown.contains("### M5: "), "{markdown}");
    // Servers that were already running have their original settings and are empty.
    for server in &servers {
        let mut conn = server.connect();
        assert_eq!(conn.cmd("DBSIZE").to_string(), "(integer) 0");
        assert_eq!(
            conn.cmd("CONFIG GET maxclients").to_string(),
            "1) \"maxclients\"\n2) \"10000\""
        );
    }
}

#[test]
fn the_client_library_is_measured_in_all_its_modes() {
    let (_servers, [redis, ours]) = both();
    let file = std::env::temp_dir().join(format!("brisk-callers-{}.json", std::process::id()));
    let json = file.display().to_string();
    let (done, out, err) = tool(&[
        "experiments",
        "c1",
        "c2",
        "c3",
        "--short",
        "--servers",
        &redis,
        &ours,
        "--json",
        &json,
    ]);
    assert!(done, "{out}\n{err}");
    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    fs::remove_file(file).unwrap();
    let rows = |experiment: usize| report["experiments"][experiment]["rows"].as_array().unwrap();
    let row = |experiment: usize, what: &str| {
        let found = rows(experiment).iter().find(|row| row["what"] == what);
        found.unwrap_or_else(|| panic!("{what} is not in {:?}", rows(experiment)))
    };
    let (one, many) = (
        row(0, "SET, one connection, 1 caller, 12 ms"),
        row(0, "SET, one connection, 200 callers, 12 ms"),
    );
    assert_eq!((&one["article"], &many["article"]), (&80.0.into(), &7000.0.into()));
    for server in 0..2 {
        let value = |row: &Value| row["values"][server].as_f64().unwrap();
        // If a client waits for each reply, the round trip limits its rate. If a client does not wait, its rate is
        // higher.
        assert!(value(one) <= 1000.0 / 12.0 * 1.05, "{one}");
        assert!(value(many) > 3.0 * value(one), "{one} {many}");
        for mode in ["one connection", "4 shared", "pool of 8"] {
            for load in
                ["SET, {}, 50 callers", "GET, {}, 200 callers", "SET, {}, 200 callers, 1 ms"]
            {
                let load = load.replace("{}", mode);
                for measurement in ["", ": p50", ": p99", ": client CPU", ": server CPU"] {
                    let row = row(1, &format!("{load}{measurement}"));
                    assert!(value(row) > 0.0, "{row}");
                }
            }
        }
        assert!(value(row(2, "without")) > 0.0 && value(row(2, "with a time limit")) > 0.0);
    }
    assert_eq!(row(2, "rate lost to time limits")["article"], 20.0);
    assert_eq!(report["experiments"][1]["plots"][0]["lines"].as_array().unwrap().len(), 6);
}

#[test]
fn a_server_that_holds_data_is_left_alone() {
    let (servers, [redis, ours]) = both();
    assert_eq!(servers[1].connect().cmd("SET precious 1").to_string(), "OK");
    let (done, out, _) = tool(&["experiments", "p2", "--servers", &redis, &ours]);
    assert!(!done && out.contains("FAILED: ours: it holds data"), "{out}");
    assert_eq!(servers[1].connect().cmd("GET precious").to_string(), "\"1\"");
}

#[test]
fn a_comparison_is_a_page_too() {
    let (_servers, [redis, ours]) = both();
    let file = std::env::temp_dir().join(format!("brisk-comparison-{}.html", std::process::id()));
    let path = file.display().to_string();
    let (done, out, err) = tool(&[
        "compare", &redis, &ours, "-t", "get", "-P", "1,16", "-n", "2000", "-c", "4", "--rounds",
        "3", "--html", &path,
    ]);
    assert!(done, "{out}\n{err}");
    let html = fs::read_to_string(&file).unwrap();
    fs::remove_file(file).unwrap();
    assert!(html.contains("GET: throughput") && html.contains("GET, pipeline 16: latency"));
}

#[test]
fn unknown_experiments_are_reported() {
    let (done, _, err) = tool(&["experiments", "p9", "--servers", ":1", ":2"]);
    assert!(!done && err.contains("there is no experiment \"p9\""), "{err}");
    let (done, out, _) = tool(&["experiments", "--list"]);
    assert!(done && out.contains("m8  Short names") && out.contains("c2  Shared"), "{out}");
}
