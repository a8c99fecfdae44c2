//! `brisk-cli peek`: values of every type.

use crate::clusters::masters;
use crate::harness::{brisk_cli, servers, text};
use brisk_testkit::Server;

/// The output of `peek`, which must succeed.
#[track_caller]
fn peek(server: &Server, args: &[&str]) -> String {
    let found = brisk_cli(server, &[&["peek"], args].concat());
    assert_eq!(found.status.code(), Some(0), "{}", text(&found.stderr));
    text(&found.stdout)
}

/// The lines after the description of the key.
#[track_caller]
fn content(server: &Server, args: &[&str]) -> String {
    let shown = peek(server, args);
    shown.split_once('\n').expect("there is a description").1.to_owned()
}

#[test]
fn a_line_describes_the_key() {
    for server in servers() {
        let mut conn = server.connect();
        let shown = peek(&server, &["hash"]);
        assert!(shown.starts_with("hash: hash (listpack), 1 field, "), "{shown}");
        assert!(shown.contains(" B of memory, no TTL\n"), "{shown}");
        conn.cmd("SET brief x EX 86400");
        let shown = peek(&server, &["brief"]);
        assert!(shown.starts_with("brief: string (embstr), 1 byte, "), "{shown}");
        assert!(
            shown.contains(", TTL 23 h 59 min\n") || shown.contains(", TTL 1 d 0 h\n"),
            "{shown}"
        );
        let missing = brisk_cli(&server, &["peek", "nothing"]);
        assert_eq!(missing.status.code(), Some(1));
        assert_eq!(text(&missing.stderr), "nothing: no such key\n");
        let usage = brisk_cli(&server, &["peek"]);
        assert_eq!(usage.status.code(), Some(1));
        assert!(text(&usage.stderr).starts_with("Usage: "));
    }
}

#[test]
fn strings_are_shown_as_text_json_or_a_dump() {
    for server in servers() {
        let mut conn = server.connect();
        assert_eq!(content(&server, &["greeting"]), "hello\n");
        conn.cmd(r#"SET json '{"id":7,"tags":["a","b"]}'"#);
        let expected = "{\n  \"id\": 7,\n  \"tags\": [\n    \"a\",\n    \"b\"\n  ]\n}\n";
        assert_eq!(content(&server, &["json"]), expected);
        assert_eq!(
            content(&server, &["binary"]),
            "00000000  61 00 01 0a 0d 09 22 5c  ff                       |a.....\"\\.|\n"
        );
        conn.cmd("SETRANGE zeros 99999 x");
        let shown = content(&server, &["zeros"]);
        assert_eq!(shown.lines().count(), 33);
        assert!(
            shown.ends_with("(512 of 100,000 bytes shown; --all shows everything)\n"),
            "{shown}"
        );
        let all = content(&server, &["zeros", "--all"]);
        assert_eq!(all.lines().count(), 6250);
        assert!(all.ends_with("|...............x|\n"), "{all}");
    }
}

#[test]
fn elements_are_shown_as_tables_with_aligned_columns() {
    for server in servers() {
        let mut conn = server.connect();
        conn.cmd("RPUSH short one two");
        assert_eq!(content(&server, &["short"]), "index  element\n    0  one\n    1  two\n");
        conn.cmd("HSET user name Ada city 'New York' key \"\\x00\"");
        assert_eq!(
            content(&server, &["user"]),
            "field  value\nname   Ada\ncity   New York\nkey    \"\\x00\"\n"
        );
        assert_eq!(content(&server, &["set"]), "member\nmember\n");
        for protocol in ["-2", "-3"] {
            assert_eq!(
                content(&server, &["zset", protocol]),
                "score  member\n  1.5  a\n    2  b\n",
                "{protocol}"
            );
        }
        conn.cmd("XADD events 1-1 user Ada action login");
        conn.cmd("XADD events 2-1 user Grace action logout");
        conn.cmd("XGROUP CREATE events workers 1-1");
        let table = "ID   user   action\n1-1  Ada    login\n2-1  Grace  logout\n";
        let shown = content(&server, &["events"]);
        assert!(shown.starts_with(table), "{shown}");
        assert!(shown.contains("group workers: consumers 0, pending 0, lag "), "{shown}");
        conn.cmd("XADD events 3-1 other field");
        let shown = content(&server, &["events"]);
        assert!(shown.contains("\n3-1  other=field\n"), "{shown}");
    }
}

#[test]
fn only_the_first_elements_are_shown_unless_all_are_requested() {
    for server in servers() {
        let mut conn = server.connect();
        for number in 0..1200 {
            conn.cmd(&format!("RPUSH l {number}"));
            conn.cmd(&format!("SADD s m{number}"));
            conn.cmd(&format!("HSET h f{number} v"));
            conn.cmd(&format!("ZADD z {number} m{number}"));
            conn.cmd(&format!("XADD x {number}-1 f v"));
        }
        for key in ["l", "s", "h", "z", "x"] {
            let shown = content(&server, &[key]);
            assert_eq!(shown.lines().count(), 52, "{key}: {shown}");
            let end = "(50 of 1,200 shown; --all shows everything)\n";
            assert!(shown.ends_with(end), "{key}: {shown}");
            let all = content(&server, &[key, "--all"]);
            assert_eq!(all.lines().count(), 1201, "{key}");
        }
        conn.cmd(&format!("RPUSH long {}", "a".repeat(500)));
        assert!(content(&server, &["long"]).ends_with("a…\n"));
        assert!(content(&server, &["long", "--all"]).ends_with("aaaa\n"));
    }
}

#[test]
fn ttls_of_fields_are_a_column() {
    // Redis 7.0 has no TTLs for fields.
    let server = &servers()[1];
    server.connect().cmd("HSET session token abc user Ada");
    server.connect().cmd("HEXPIRE session 86400 FIELDS 1 token");
    let shown = content(server, &["session"]);
    assert!(shown.starts_with("field"), "{shown}");
    assert!(shown.contains(" TTL  value\n"), "{shown}");
    assert!(shown.contains("-  Ada\n"), "{shown}");
}

#[test]
fn in_cluster_mode_the_node_of_the_key_is_read() {
    let nodes = masters();
    let entry = &nodes[0];
    for key in ["a", "b", "c", "d", "e"] {
        let set = brisk_cli(entry, &["-c", "set", key, "here"]);
        assert_eq!(text(&set.stdout), "OK\n");
    }
    let shown = peek(entry, &["-c", "a", "b", "c", "d", "e"]);
    assert_eq!(shown.matches("\nhere\n").count(), 5, "{shown}");
    let keys = ["a", "b", "c", "d", "e"];
    let refused = keys.iter().map(|key| brisk_cli(entry, &["peek", key]));
    let moved: Vec<String> = refused
        .filter(|found| found.status.code() == Some(1))
        .map(|found| text(&found.stderr))
        .collect();
    assert!(
        !moved.is_empty() && moved.iter().all(|it| it.contains("(-c follows redirections)")),
        "{moved:?}"
    );
}
