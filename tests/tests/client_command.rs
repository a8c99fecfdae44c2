//! CLIENT: seeing, naming, closing, pausing and silencing connections.

use brisk_testkit::{Conn, assert_reply, each_config, wait_until};
use std::time::Duration;

/// The value of `field` in the CLIENT LIST line of connection `id`.
fn listed(conn: &mut Conn, id: i64, field: &str) -> Option<String> {
    let text = conn.cmd("CLIENT LIST").text();
    let line = text.lines().find(|line| line.starts_with(&format!("id={id} ")))?;
    let mark = format!("{field}=");
    line.split(' ').find_map(|word| word.strip_prefix(&mark)).map(str::to_owned)
}

#[test]
fn list_and_info_tell_the_same_fields_in_the_same_order() {
    const FIELDS: [&str; 27] = [
        "id",
        "addr",
        "laddr",
        "fd",
        "name",
        "age",
        "idle",
        "flags",
        "db",
        "sub",
        "psub",
        "ssub",
        "multi",
        "qbuf",
        "qbuf-free",
        "argv-mem",
        "multi-mem",
        "rbs",
        "rbp",
        "obl",
        "oll",
        "omem",
        "tot-mem",
        "events",
        "cmd",
        "user",
        "redir",
    ];
    each_config(|server| {
        let mut conn = server.connect();
        conn.cmd("CLIENT SETNAME me");
        conn.cmd("SELECT 3");
        for text in [conn.cmd("CLIENT LIST").text(), conn.cmd("CLIENT INFO").text()] {
            let line = text.lines().find(|line| line.contains("name=me")).unwrap();
            let words: Vec<(&str, &str)> =
                line.split(' ').map(|word| word.split_once('=').unwrap()).collect();
            // Later versions add `resp` at the end.
            let names: Vec<&str> = words.iter().map(|w| w.0).take(FIELDS.len()).collect();
            assert_eq!(names, FIELDS);
            let value = |name| words.iter().find(|w| w.0 == name).unwrap().1;
            assert_eq!(value("db"), "3");
            assert_eq!(value("user"), "default");
            assert_eq!(value("flags"), "N");
            assert_eq!(value("multi"), "-1");
            assert_eq!(value("laddr"), server.address());
        }
        let id = conn.id();
        assert_eq!(listed(&mut conn, id, "cmd").unwrap(), "client|list");
    });
}

#[test]
fn names_are_kept_and_checked() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CLIENT GETNAME", "(nil)");
        assert_reply!(conn, "CLIENT SETNAME worker-1", "OK");
        assert_reply!(conn, "CLIENT GETNAME", "\"worker-1\"");
        assert_reply!(
            conn,
            "CLIENT SETNAME 'with blank'",
            "(error) ERR Client names cannot contain spaces, newlines or special characters."
        );
        assert_reply!(conn, "CLIENT SETNAME ''", "OK");
        assert_reply!(conn, "CLIENT GETNAME", "(nil)");
    });
}

#[test]
fn ids_only_grow() {
    each_config(|server| {
        let first = server.connect().id();
        let second = server.connect().id();
        assert!(second > first);
    });
}

#[test]
fn kill_closes_the_one_that_is_meant() {
    each_config(|server| {
        let [mut killer, mut by_id, mut by_address, mut stays] = server.connections();
        let id = by_id.id();
        assert_reply!(killer, &format!("CLIENT KILL ID {id}"), "(integer) 1");
        by_id.read_to_end();
        let other = by_address.id();
        let address = listed(&mut killer, other, "addr").unwrap();
        assert_reply!(killer, &format!("CLIENT KILL {address}"), "OK");
        by_address.read_to_end();
        assert_reply!(killer, &format!("CLIENT KILL ID {id}"), "(integer) 0");
        assert_reply!(killer, "CLIENT KILL 1.2.3.4:5", "(error) ERR No such client");
        stays.assert_in_step();
    });
}

#[test]
fn kill_may_close_the_caller_after_its_reply() {
    each_config(|server| {
        let mut conn = server.connect();
        let id = conn.id();
        conn.send(&format!("CLIENT KILL ID {id} SKIPME no"));
        assert_eq!(conn.read_to_end(), b":1\r\n");
    });
}

#[test]
fn pause_write_lets_reads_pass() {
    each_config(|server| {
        let [mut control, mut writer, mut reader] = server.connections();
        assert_reply!(control, "CLIENT PAUSE 100000 WRITE", "OK");
        writer.send("SET k v");
        wait_until("the writer waits", || control.info("blocked_clients") == "1");
        assert_reply!(reader, "GET k", "(nil)");
        assert!(!writer.has_reply_within(Duration::from_millis(50)));
        assert_reply!(control, "CLIENT UNPAUSE", "OK");
        assert_eq!(writer.reply().to_string(), "OK");
        assert_reply!(reader, "GET k", "\"v\"");
    });
}

#[test]
fn pause_all_ends_by_itself() {
    each_config(|server| {
        let [mut control, mut other] = server.connections();
        assert_reply!(control, "CLIENT PAUSE 50", "OK");
        assert_reply!(other, "PING", "PONG"); // waits for the end of the pause
    });
}

#[test]
fn reply_off_and_skip_silence_exactly_what_they_say() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.send_raw(b"CLIENT REPLY SKIP\r\nECHO a\r\nECHO b\r\n");
        conn.expect_bytes(b"$1\r\nb\r\n");
        conn.send_raw(b"CLIENT REPLY OFF\r\nECHO c\r\nSET k v\r\nCLIENT REPLY ON\r\nGET k\r\n");
        conn.expect_bytes(b"+OK\r\n$1\r\nv\r\n");
        assert_reply!(conn, "CLIENT REPLY x", "(error) ERR syntax error");
    });
}

#[test]
fn no_evict_is_shown_in_the_flags() {
    each_config(|server| {
        let mut conn = server.connect();
        let id = conn.id();
        assert_reply!(conn, "CLIENT NO-EVICT on", "OK");
        assert_eq!(listed(&mut conn, id, "flags").unwrap(), "e");
        assert_reply!(conn, "CLIENT NO-EVICT off", "OK");
        assert_eq!(listed(&mut conn, id, "flags").unwrap(), "N");
        assert_reply!(conn, "CLIENT NO-EVICT x", "(error) ERR syntax error");
    });
}

#[test]
fn idle_connections_are_closed_after_the_timeout() {
    each_config(|server| {
        let [mut idle, mut busy] = server.connections();
        idle.assert_in_step();
        assert_reply!(busy, "CONFIG SET timeout 1", "OK");
        wait_until("the idle connection is closed", || {
            busy.cmd("CLIENT LIST").text().lines().count() == 1
        });
        assert_eq!(idle.read_to_end(), b"");
        busy.assert_in_step();
    });
}
