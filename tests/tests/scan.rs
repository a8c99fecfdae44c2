//! SCAN's guarantee: keys that exist during the whole iteration are returned, no matter what is written in the
//! meantime.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::{Conn, assert_reply, each_config, each_protocol};
use std::collections::BTreeSet;

/// Returns all elements of a full iteration. `between` runs after every step.
fn iterate(conn: &mut Conn, command: &str, mut between: impl FnMut()) -> Vec<String> {
    let (name, options) = command.split_once(" CURSOR").unwrap();
    let mut cursor = "0".to_owned();
    let mut found = Vec::new();
    for _ in 0..100_000 {
        let reply = conn.cmd(&format!("{name} {cursor}{options}"));
        let parts = reply.elements();
        cursor = parts[0].text();
        found.extend(parts[1].elements().iter().map(|item| item.text()));
        if cursor == "0" {
            return found;
        }
        between();
    }
    panic!("the cursor never came back to 0");
}

fn fill(conn: &mut Conn, keys: std::ops::Range<usize>, prefix: &str) {
    let lines: Vec<String> = keys.map(|i| format!("SET {prefix}{i} v")).collect();
    for chunk in lines.chunks(1000) {
        conn.pipeline(&chunk.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn keys_present_throughout_are_found_while_others_come_and_go() {
    each_config(|server| {
        let [mut conn, mut writer] = server.connections();
        fill(&mut conn, 0..2_000, "stays:");
        let mut step = 0;
        let found = iterate(&mut conn, "SCAN CURSOR COUNT 20", || {
            // Grow at first, then shrink, so that the table is resized in both directions during the iteration.
            let range = (step % 40) * 50..(step % 40) * 50 + 50;
            let verb = if step < 40 { "SET" } else { "DEL" };
            let value = if step < 40 { " v" } else { "" };
            let lines: Vec<String> = range.map(|i| format!("{verb} passes:{i}{value}")).collect();
            writer.pipeline(&lines.iter().map(String::as_str).collect::<Vec<_>>());
            step = (step + 1) % 80;
        });
        let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
        for i in 0..2_000 {
            assert!(found.contains(format!("stays:{i}").as_str()), "stays:{i} was not found");
        }
    });
}

#[test]
fn without_writes_every_key_is_found() {
    each_protocol(|server| {
        let mut conn = server.connect();
        fill(&mut conn, 0..5_000, "key:");
        for count in [1, 10, 1000, 100_000] {
            let found = iterate(&mut conn, &format!("SCAN CURSOR COUNT {count}"), || {});
            let distinct: BTreeSet<&String> = found.iter().collect();
            assert_eq!(distinct.len(), 5_000, "COUNT {count}");
        }
    });
}

#[test]
fn count_is_honored_within_reason() {
    each_protocol(|server| {
        let mut conn = server.connect();
        fill(&mut conn, 0..10_000, "key:");
        let reply = conn.cmd("SCAN 0 COUNT 100");
        let got = reply.elements()[1].elements().len();
        assert!((50..=400).contains(&got), "{got} keys for COUNT 100");
    });
}

#[test]
fn match_and_type_filter() {
    each_protocol(|server| {
        let mut conn = server.connect();
        fill(&mut conn, 0..100, "one:");
        fill(&mut conn, 0..100, "two:");
        let ones: BTreeSet<String> =
            iterate(&mut conn, "SCAN CURSOR MATCH *:1 COUNT 1000", || {}).into_iter().collect();
        assert_eq!(ones, BTreeSet::from(["one:1", "two:1"].map(String::from)));
        let strings: BTreeSet<String> =
            iterate(&mut conn, "SCAN CURSOR TYPE string", || {}).into_iter().collect();
        assert_eq!(strings.len(), 200);
        assert!(iterate(&mut conn, "SCAN CURSOR TYPE list", || {}).is_empty());
        assert!(iterate(&mut conn, "SCAN CURSOR TYPE nosuch", || {}).is_empty());
    });
}

#[test]
fn odd_cursors_are_rejected_or_harmless() {
    each_protocol(|server| {
        let mut conn = server.connect();
        fill(&mut conn, 0..100, "key:");
        assert_reply!(conn, "SCAN x", "(error) ERR invalid cursor");
        assert_reply!(conn, "SCAN 0 COUNT 0", "(error) ERR syntax error");
        assert_reply!(
            conn,
            "SCAN 0 COUNT x",
            "(error) ERR value is not an integer or out of range"
        );
        // Any number is a valid cursor, because the server keeps no state.
        let reply = conn.cmd("SCAN 18446744073709551615 COUNT 5");
        assert_eq!(reply.elements().len(), 2);
        conn.assert_in_step();
    });
}
