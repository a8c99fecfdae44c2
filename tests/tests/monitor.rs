//! MONITOR and SLOWLOG: watching what a server does.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::reply::Reply;
use brisk_testkit::{assert_reply, each_config};

/// A line of MONITOR without its time: `[db addr] "word" "word"`.
fn line(reply: &Reply) -> String {
    let text = reply.text();
    let (time, rest) = text.split_once(' ').unwrap();
    let (seconds, micros) = time.split_once('.').unwrap();
    assert!(seconds.len() == 10 && micros.len() == 6, "{text}");
    rest.to_owned()
}

#[test]
fn monitor_shows_commands_of_all_connections_as_sent() {
    each_config(|server| {
        let [mut watcher, mut worker] = server.connections();
        assert_reply!(watcher, "MONITOR", "OK");
        worker.cmd("SELECT 2");
        worker.cmd("set \"a\\x00\\n\\\"\" v");
        worker.cmd("nosuch");
        worker.cmd("GET");
        worker.cmd("GET k");
        let words: Vec<String> = (0..3)
            .map(|_| {
                let line = line(&watcher.reply());
                let (place, words) = line.split_once("] ").unwrap();
                assert!(place.starts_with("[0 127.0.0.1:") || place.starts_with("[2 127.0.0.1:"));
                words.to_owned()
            })
            .collect();
        // Neither the unknown command nor the one with too few arguments is executed, or shown.
        assert_eq!(words, [r#""SELECT" "2""#, r#""set" "a\x00\n\"" "v""#, r#""GET" "k""#]);
    });
}

#[test]
fn monitor_hides_secrets() {
    each_config(|server| {
        let [mut watcher, mut worker] = server.connections();
        assert_reply!(watcher, "MONITOR", "OK");
        worker.cmd("AUTH default secret");
        worker.cmd("PING");
        let shown = line(&watcher.reply());
        assert!(shown.ends_with(r#""AUTH" "(redacted)" "(redacted)""#), "{shown}");
        let shown = line(&watcher.reply());
        assert!(shown.ends_with("\"PING\""), "{shown}");
    });
}

#[test]
fn slowlog_keeps_what_was_slower_than_the_limit() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3", "OK");
        assert_reply!(conn, "SLOWLOG RESET", "OK");
        conn.cmd("CLIENT SETNAME me");
        conn.cmd("SET k v");
        assert_reply!(conn, "CONFIG SET slowlog-log-slower-than -1", "OK");
        let entries = conn.cmd("SLOWLOG GET -1");
        let entries = entries.elements();
        assert_eq!(entries.len(), 3); // the reset itself, or the CONFIG SET, makes up the rest
        let set = entries.iter().find(|e| e.elements()[3].elements()[0].text() == "SET").unwrap();
        let parts = set.elements();
        assert_eq!(parts.len(), 6);
        let words: Vec<String> = parts[3].elements().iter().map(|w| w.text()).collect();
        assert_eq!(words, ["SET", "k", "v"]);
        assert!(parts[4].text().starts_with("127.0.0.1:"));
        assert_eq!(parts[5].text(), "me");
        assert_reply!(conn, "SLOWLOG LEN", "(integer) 3");
        assert_reply!(conn, "SLOWLOG RESET", "OK");
        assert_reply!(conn, "SLOWLOG LEN", "(integer) 0");
    });
}

#[test]
fn slowlog_shortens_long_commands() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CONFIG SET slowlog-log-slower-than 0", "OK");
        let many: String = (0..100).map(|i| format!(" e{i}")).collect();
        conn.cmd(&format!("DEL k {}{many}", "x".repeat(200)));
        assert_reply!(conn, "CONFIG SET slowlog-log-slower-than -1", "OK");
        let entries = conn.cmd("SLOWLOG GET");
        let entries = entries.elements();
        let del = entries.iter().find(|e| e.elements()[3].elements()[0].text() == "DEL").unwrap();
        let words: Vec<String> = del.elements()[3].elements().iter().map(|w| w.text()).collect();
        assert_eq!(words.len(), 32);
        assert_eq!(words[2], format!("{}... (72 more bytes)", "x".repeat(128)));
        assert_eq!(words[31], "... (72 more arguments)");
    });
}
