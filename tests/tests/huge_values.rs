//! Huge values are freed in the background, and replies show the value at the time of the read.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::Launch;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::wait::holds_within;
use brisk_testkit::{Conn, assert_reply, each_backend, each_config, wait_until};
use std::time::Duration;

/// Number of elements of a few hundred bytes each, which is more than the kernel buffers of an unread reply.
const MANY: usize = 20_000;

/// Adds many elements to a key, a thousand with each command.
fn build(conn: &mut Conn, command: &str, key: &str) {
    for start in (0..MANY).step_by(1000) {
        let mut words = vec![command.to_owned(), key.to_owned()];
        for i in start..start + 1000 {
            match command {
                "ZADD" => words.extend([i.to_string(), format!("member:{i:0100}")]),
                "HSET" => words.extend([format!("member:{i:0100}"), format!("value:{i}")]),
                _ => words.push(format!("member:{i:0100}")),
            }
        }
        conn.call(&words);
    }
}

fn metric(conn: &mut Conn, name: &str) -> u64 {
    conn.info(name).parse().unwrap()
}

#[test]
fn another_thread_frees_huge_values_however_they_are_removed() {
    if subject_is_redis() {
        return; // frees most of them at once
    }
    each_backend(Launch::subject, |server| {
        let mut conn = server.connect();
        // On a loaded machine, the slow log would fill up. Its 128 entries would need about 430 kB here.
        conn.cmd("CONFIG SET slowlog-log-slower-than -1");
        conn.cmd("SADD few a b");
        let empty = metric(&mut conn, "used_memory");
        for command in ["SADD", "ZADD", "HSET", "RPUSH"] {
            for loss in [
                "DEL big",
                "UNLINK big",
                "PEXPIRE big 1",
                "RENAME other big",
                "SET big text",
                "SUNIONSTORE big few",
                "COPY few big REPLACE",
                "FLUSHALL ASYNC",
            ] {
                conn.cmd("SET other text");
                conn.cmd("SADD few a b");
                build(&mut conn, command, "big");
                let freed = metric(&mut conn, "lazyfreed_objects");
                assert!(metric(&mut conn, "used_memory") > empty + 400_000, "{command}");
                conn.cmd(loss);
                wait_until(&format!("it is freed: {command}, {loss}"), || {
                    metric(&mut conn, "lazyfreed_objects") > freed
                        && metric(&mut conn, "lazyfree_pending_objects") == 0
                        && metric(&mut conn, "used_memory") < empty + 400_000
                });
                conn.cmd("DEL big");
            }
        }
    });
}

#[test]
fn flushall_replies_when_the_memory_is_free() {
    each_backend(Launch::subject, |server| {
        let mut conn = server.connect();
        // Two million bytes of members are sent. Only the client's buffers remain allocated.
        let empty = metric(&mut conn, "used_memory");
        for command in ["SADD", "ZADD", "HSET", "RPUSH"] {
            for flush in ["FLUSHALL", "FLUSHALL SYNC", "FLUSHDB", "FLUSHDB SYNC"] {
                build(&mut conn, command, "big");
                assert!(metric(&mut conn, "used_memory") > empty + 2_000_000, "{command}");
                assert_reply!(conn, flush, "OK");
                let used = metric(&mut conn, "used_memory");
                assert!(used < empty + 1_000_000, "{command}, {flush}: {used} after {empty}");
                assert_eq!(metric(&mut conn, "lazyfree_pending_objects"), 0);
            }
        }
        // Each command is a change, and wakes clients that are blocked on the keys.
        build(&mut conn, "SADD", "big");
        conn.cmd("XGROUP CREATE stream group $ MKSTREAM");
        let mut waiting = server.connect();
        waiting.send("XREADGROUP GROUP group me BLOCK 0 STREAMS stream >");
        wait_until("it waits", || metric(&mut conn, "blocked_clients") == 1);
        let before = metric(&mut conn, "rdb_changes_since_last_save");
        let replies = conn.pipeline(&["SET k v", "FLUSHALL", "DBSIZE", "PING"]);
        let shown: Vec<String> = replies.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["OK", "OK", "(integer) 0", "PONG"]);
        assert!(metric(&mut conn, "rdb_changes_since_last_save") > before);
        assert!(waiting.reply().to_string().starts_with("(error)"));
    });
}

/// The reply waits until the memory is freed. This must not lose or duplicate any other effect of the command.
#[test]
fn a_slow_flush_is_monitored_once_and_obeys_client_reply() {
    each_backend(Launch::subject, |server| {
        let [mut conn, mut watcher] = server.connections();
        conn.cmd("CONFIG RESETSTAT");
        build(&mut conn, "SADD", "big");
        assert_reply!(watcher, "MONITOR", "OK");
        conn.send_raw(b"CLIENT REPLY SKIP\r\nFLUSHALL\r\nDBSIZE\r\n");
        conn.expect_bytes(b":0\r\n");
        conn.assert_in_step();
        conn.send_raw(b"CLIENT REPLY OFF\r\nFLUSHALL\r\nCLIENT REPLY ON\r\n");
        conn.expect_bytes(b"+OK\r\n");
        for words in [
            "\"CLIENT\" \"REPLY\" \"SKIP\"",
            "\"FLUSHALL\"",
            "\"DBSIZE\"",
            "\"ECHO\" \"in-step\"",
            "\"CLIENT\" \"REPLY\" \"OFF\"",
            "\"FLUSHALL\"",
            "\"CLIENT\" \"REPLY\" \"ON\"",
        ] {
            let line = watcher.reply().text();
            assert!(line.ends_with(&format!("] {words}")), "{line}");
        }
        assert_reply!(watcher, "RESET", "RESET");
        build(&mut conn, "HSET", "big");
        let clients = metric(&mut conn, "connected_clients");
        let mut disconnected = server.connect();
        disconnected.send("FLUSHALL");
        drop(disconnected);
        wait_until("all is gone, and so is the client", || {
            conn.cmd("DBSIZE").to_string() == "(integer) 0"
                && metric(&mut conn, "lazyfree_pending_objects") == 0
                && metric(&mut conn, "connected_clients") == clients
        });
        let calls = conn.info("cmdstat_flushall");
        assert!(calls.starts_with("calls=3,"), "{calls}");
    });
}

#[test]
fn a_client_that_half_closes_after_a_long_command_gets_all_replies() {
    each_backend(Launch::subject, |server| {
        let mut conn = server.connect();
        for long in ["SORT big ALPHA LIMIT 0 1", "SUNIONSTORE to big other", "FLUSHALL"] {
            build(&mut conn, "SADD", "big");
            let mut client = server.connect();
            client.send_raw(format!("{long}\r\nSET after {{}}\r\nPING\r\n").as_bytes());
            client.finish_sending();
            let replies = String::from_utf8(client.read_to_end()).unwrap();
            assert!(replies.ends_with("+OK\r\n+PONG\r\n"), "{long}: {replies:?}");
            assert_reply!(conn, "GETDEL after", "\"{}\"");
        }
    });
}

#[test]
fn a_reply_that_is_read_late_shows_the_value_as_it_was() {
    each_config(|server| {
        let [mut late, mut other] = server.connections();
        for (change, command, read) in [
            ("DEL big", "HSET", "HGETALL big"),
            ("HSET big new changed", "HSET", "HVALS big"),
            ("FLUSHALL", "SADD", "SMEMBERS big"),
            ("ZREMRANGEBYRANK big 0 -2", "ZADD", "ZRANGE big 0 -1"),
            ("SET big text", "RPUSH", "LRANGE big 0 -1"),
            ("LTRIM big 5 6", "RPUSH", "LRANGE big 0 -1"),
        ] {
            build(&mut other, command, "big");
            let at_once = other.cmd(read).to_string();
            late.send(read);
            let name = read.split(' ').next().unwrap().to_ascii_lowercase();
            wait_until("the command has run", || {
                other.cmd("CLIENT LIST").text().contains(&format!("cmd={name} "))
            });
            // The timing of the machine determines whether the change is executed before the last part of the reply is
            // written.
            other.cmd(change);
            other.cmd("SET after 1");
            assert!(late.reply().to_string() == at_once, "{read} beside {change}");
            assert_reply!(late, "GET after", "\"1\"");
            other.cmd("FLUSHALL");
        }
    });
}

#[test]
fn an_idle_server_returns_freed_memory_to_the_system() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    let value = "x".repeat(100);
    let fill = |conn: &mut Conn| {
        for start in (0..400_000).step_by(1000) {
            let mut words = vec!["MSET".to_owned()];
            words.extend((start..start + 1000).flat_map(|i| [format!("key:{i}"), value.clone()]));
            conn.call(&words);
        }
    };
    // Fill twice, so that memory left over from the start is already in use.
    fill(&mut conn);
    conn.cmd("FLUSHALL");
    fill(&mut conn);
    let full = server.rss();
    conn.cmd("FLUSHALL");
    let given_back = || server.rss() < full / 4 * 3;
    assert!(holds_within(Duration::from_secs(60), given_back), "{full} and {}", server.rss());
}

#[test]
fn the_thread_that_gives_memory_back_can_be_switched_off() {
    if subject_is_redis() {
        return; // its threads have other names
    }
    let server = Launch::subject().set("jemalloc-bg-thread", "no").start();
    let threads = || server.thread_names().iter().filter(|name| *name == "jemalloc_bg_thd").count();
    assert_eq!(threads(), 0);
    let mut conn = server.connect();
    assert_reply!(conn, "CONFIG SET jemalloc-bg-thread yes", "OK");
    wait_until("it runs", || threads() == 1);
    assert_reply!(conn, "CONFIG SET jemalloc-bg-thread no", "OK");
    wait_until("it has ended", || threads() == 0);
}

#[test]
fn huge_pages_are_used_only_with_enough_data() {
    let settings = "/sys/kernel/mm/transparent_hugepage/enabled";
    let there_are = std::fs::read_to_string(settings).is_ok_and(|text| !text.contains("[never]"));
    if !there_are {
        brisk_testkit::skipped("no transparent huge pages on this machine");
    }
    if subject_is_redis() || !there_are {
        return;
    }
    let server = Launch::subject().start();
    let mut conn = server.connect();
    for key in 0..10 {
        conn.call(&["SET", &format!("key:{key}"), &"x".repeat(1 << 20)]);
    }
    // Only memory that was allocated before the program disabled huge pages may be in huge pages.
    assert!(server.huge_page_bytes() <= 4 << 20, "{}", server.huge_page_bytes());
    for key in 0..100 {
        conn.call(&["SET", &format!("key:{key}"), &"x".repeat(1 << 20)]);
    }
    wait_until("much of it lies in huge pages", || server.huge_page_bytes() > 20 << 20);
}
