//! DEBUG, SLOWLOG, LATENCY, MEMORY and SHUTDOWN: inspecting a server, and stopping it.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use std::time::Duration;

fn server() -> (Server, Conn) {
    let server = Launch::subject().start();
    let conn = server.connect();
    (server, conn)
}

/// The expected digests are those of Redis 7.0.15.
#[test]
fn digests_are_those_of_redis() {
    let (_server, mut conn) = server();
    let none = "0".repeat(40);
    assert_reply!(conn, "DEBUG DIGEST", none.clone());
    for line in ["SET foo bar", "SELECT 3", "SET a b"] {
        assert_reply!(conn, line, "OK");
    }
    assert_reply!(conn, "DEBUG DIGEST", "8be0b12646f1aa3a330e510a5c82579cc9ff7312");
    assert_reply!(conn, "SELECT 0", "OK");
    let digest = conn.cmd("DEBUG DIGEST-VALUE foo nokey").to_string();
    assert!(digest.contains("68467c70ae30376e7ce005bcc8827f5ba7fd67dc"), "{digest}");
    assert!(digest.contains(&none), "{digest}");
    assert_reply!(conn, "PEXPIRE foo 1000000", "(integer) 1");
    assert_reply!(conn, "DEBUG DIGEST", "534feb0a40fe06925eca13492d128a264b046100");
}

#[test]
fn wrong_arguments_get_the_errors_of_redis() {
    let (_server, mut conn) = server();
    assert_reply!(conn, "SET foo bar", "OK");
    let count = "ERR count should be greater than or equal to -1";
    let positive = "ERR value is out of range, must be positive";
    let integer = "ERR value is not an integer or out of range";
    let arity = |name: &str| format!("ERR wrong number of arguments for '{name}' command");
    let unknown = |container: &str, word: &str| {
        format!(
            "ERR unknown subcommand or wrong number of arguments for '{word}'. Try {container} \
             HELP."
        )
    };
    for (line, want) in [
        ("SLOWLOG GET x", count.to_owned()),
        ("SLOWLOG GET -2", count.to_owned()),
        ("SLOWLOG GET 1 2", unknown("SLOWLOG", "GET")),
        ("SLOWLOG LEN x", arity("slowlog|len")),
        ("LATENCY GRAPH foo", "ERR No samples available for event 'foo'".to_owned()),
        ("LATENCY HISTORY", arity("latency|history")),
        ("MEMORY USAGE foo SAMPLES -1", "ERR syntax error".to_owned()),
        ("MEMORY USAGE foo SAMPLES x", integer.to_owned()),
        ("MEMORY USAGE foo bar", "ERR syntax error".to_owned()),
        ("MEMORY foo", "ERR unknown subcommand 'foo'. Try MEMORY HELP.".to_owned()),
        ("DEBUG", arity("debug")),
        ("DEBUG foo", unknown("DEBUG", "foo")),
        ("DEBUG OBJECT nokey", "ERR no such key".to_owned()),
        ("DEBUG OBJECT a b", unknown("DEBUG", "OBJECT")),
        ("DEBUG POPULATE -1", positive.to_owned()),
        ("DEBUG HTSTATS 99", "ERR Out of range database".to_owned()),
        ("DEBUG HTSTATS x", integer.to_owned()),
        ("DEBUG HTSTATS-KEY nokey", "ERR no such key".to_owned()),
        ("DEBUG ERROR \"ERR a\nb\"", "ERR a b".to_owned()),
        ("DEBUG PROTOCOL push", "ERR RESP2 is not supported by this command".to_owned()),
        ("FUNCTION FLUSH x", "ERR FUNCTION FLUSH only supports SYNC|ASYNC option".to_owned()),
        ("SHUTDOWN foo", "ERR syntax error".to_owned()),
        ("SHUTDOWN NOSAVE SAVE", "ERR syntax error".to_owned()),
        ("SHUTDOWN NOW ABORT", "ERR syntax error".to_owned()),
        ("SHUTDOWN ABORT", "ERR No shutdown in progress.".to_owned()),
    ] {
        assert_reply!(conn, line, format!("(error) {want}"));
    }
    assert_reply!(conn, "MEMORY USAGE nokey", "(nil)");
}

#[test]
fn populate_leaves_existing_keys_and_pads_values() {
    let (_server, mut conn) = server();
    assert_reply!(conn, "SET p:0 mine", "OK");
    assert_reply!(conn, "DEBUG POPULATE 10 p 20", "OK");
    assert_reply!(conn, "DBSIZE", "(integer) 10");
    assert_reply!(conn, "GET p:0", "\"mine\"");
    assert_reply!(conn, "STRLEN p:9", "(integer) 20");
    assert_reply!(conn, "GETRANGE p:9 0 6", "\"value:9\"");
    assert_reply!(conn, "DEBUG POPULATE 2", "OK");
    assert_reply!(conn, "GET key:1", "\"value:1\"");
}

#[test]
fn debug_protocol_returns_every_type_of_reply() {
    let (_server, mut conn) = server();
    let wire: &[(&str, &str, &str)] = &[
        ("integer", ":12345\r\n", ":12345\r\n"),
        ("double", "$5\r\n3.141\r\n", ",3.141\r\n"),
        ("null", "$-1\r\n", "_\r\n"),
        ("set", "*3\r\n:0\r\n:1\r\n:2\r\n", "~3\r\n:0\r\n:1\r\n:2\r\n"),
        (
            "map",
            "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
            "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
        ),
        (
            "verbatim",
            "$25\r\nThis is a verbatim\nstring\r\n",
            "=29\r\ntxt:This is a verbatim\nstring\r\n",
        ),
        ("true", ":1\r\n", "#t\r\n"),
    ];
    for (name, in_resp2, _) in wire {
        conn.send(&format!("DEBUG PROTOCOL {name}"));
        conn.expect_bytes(in_resp2.as_bytes());
    }
    conn.hello(3);
    for (name, _, in_resp3) in wire {
        conn.send(&format!("DEBUG PROTOCOL {name}"));
        conn.expect_bytes(in_resp3.as_bytes());
    }
}

#[test]
fn a_slow_command_is_in_the_slow_log_and_among_the_spikes() {
    let (_server, mut conn) = server();
    for line in [
        "CLIENT SETNAME sleeper",
        "CONFIG SET slowlog-log-slower-than 10000",
        "CONFIG SET latency-monitor-threshold 10",
        "SLOWLOG RESET",
    ] {
        assert_reply!(conn, line, "OK");
    }
    conn.cmd("LATENCY RESET");
    assert_reply!(conn, "DEBUG SLEEP 0.02", "OK");
    let log = conn.cmd("SLOWLOG GET");
    let entries = log.elements();
    let slept = entries.iter().find(|entry| entry.to_string().contains("SLEEP")).unwrap();
    let fields = slept.elements();
    assert_eq!(fields.len(), 6);
    assert!(fields[2].integer() >= 20_000, "{slept}");
    assert_eq!(fields[5].text(), "sleeper");
    let latest = conn.cmd("LATENCY LATEST");
    let spike = latest.elements()[0].elements();
    assert_eq!(spike[0].text(), "command");
    assert!(spike[2].integer() >= 20 && spike[3].integer() >= spike[2].integer());
    assert!(conn.cmd("LATENCY GRAPH command").text().starts_with("command - high "));
    assert_eq!(conn.cmd("LATENCY HISTORY command").elements().len(), 1);
    assert_reply!(conn, "LATENCY RESET nothing command", "(integer) 1");
    assert_reply!(conn, "LATENCY HISTORY command", "(empty array)");
}

#[test]
fn histograms_count_all_calls_cumulatively() {
    let (_server, mut conn) = server();
    assert_reply!(conn, "CONFIG RESETSTAT", "OK");
    for _ in 0..100 {
        assert_reply!(conn, "SET k v", "OK");
    }
    conn.hello(3);
    let histogram = conn.cmd("LATENCY HISTOGRAM set nosuchcommand");
    let set = histogram.field("set").unwrap();
    assert_eq!(set.field("calls").unwrap().integer(), 100);
    let brisk_testkit::reply::Reply::Map(buckets) = set.field("histogram_usec").unwrap() else {
        panic!("no map: {set}");
    };
    let counts: Vec<i64> = buckets.iter().map(|(_, count)| count.integer()).collect();
    assert!(counts.is_sorted() && counts.last() == Some(&100), "{set}");
}

#[test]
fn memory_stats_add_up() {
    let (_server, mut conn) = server();
    assert_reply!(conn, "DEBUG POPULATE 1000 key 100", "OK");
    conn.hello(3);
    let stats = conn.cmd("MEMORY STATS");
    let number = |name: &str| stats.field(name).unwrap().integer();
    assert_eq!(number("keys.count"), 1000);
    assert_eq!(number("dataset.bytes") + number("overhead.total"), number("total.allocated"));
    assert!(number("dataset.bytes") > 100_000);
    assert!(stats.field("db.0").unwrap().field("overhead.hashtable.main").is_some());
    assert!(conn.cmd("MEMORY USAGE key:1").integer() > 100);
}

#[test]
fn the_doctor_has_nothing_to_say_of_a_server_that_is_nearly_empty() {
    const BIG: u64 = 30_000_000;
    let (server, mut conn) = server();
    let little = if subject_is_redis() { "this instance is empty" } else { "so little memory" };
    let mut doctor = |line: &str| {
        conn.cmd(line);
        conn.cmd("MEMORY DOCTOR").text()
    };
    assert!(doctor("PING").contains(little));
    // The zeros in a long string take no memory.
    doctor(&format!("SETRANGE k {BIG} x"));
    assert!(!doctor("BITOP NOT k k").contains(little));
    server.wait_for_info("used_memory_peak", |peak| peak.parse::<u64>().unwrap() > BIG);
    // MEMORY DOCTOR could only report the previous state.
    assert!(doctor("FLUSHALL SYNC").contains(little));
    doctor("SETRANGE k 6000000 x");
    let text = doctor("BITOP NOT k k").to_ascii_lowercase();
    assert!(text.contains("peak"), "{text}");
    if !subject_is_redis() {
        assert!(text.contains("the allocator may still hold the difference"), "{text}");
    }
}

#[test]
fn the_doctor_says_when_maxmemory_is_reached_and_writes_are_rejected() {
    if subject_is_redis() {
        // Redis does not report its limit.
        return;
    }
    let (_server, mut conn) = server();
    assert_reply!(conn, "SET k v", "OK");
    for policy in ["noeviction", "volatile-lru"] {
        assert_reply!(conn, &format!("CONFIG SET maxmemory 1 maxmemory-policy {policy}"), "OK");
        assert!(conn.cmd("SET k v").to_string().contains("OOM command not allowed"));
        let text = conn.cmd("MEMORY DOCTOR").text();
        assert!(text.contains("maxmemory is reached"), "{text}");
        assert!(text.contains(" of 1 bytes") && text.contains("rejected with OOM"), "{text}");
        assert_eq!(text.contains("is noeviction"), policy == "noeviction", "{text}");
        for limit in ["0", "1gb"] {
            assert_reply!(conn, &format!("CONFIG SET maxmemory {limit}"), "OK");
            let text = conn.cmd("MEMORY DOCTOR").text();
            assert!(!text.contains("maxmemory"), "{text}");
        }
    }
}

#[test]
fn a_large_value_that_expires_is_an_event_of_the_latency_monitor() {
    let (_server, mut conn) = server();
    // On a fast machine, the script creates a million fields.
    conn.give_up_after(Duration::from_secs(240));
    assert_reply!(conn, "CONFIG SET latency-monitor-threshold 1", "OK");
    let mut expire = |lazy: &str, elements: u64| {
        assert_reply!(conn, &format!("CONFIG SET lazyfree-lazy-expire {lazy}"), "OK");
        let script = "for i = 1, ARGV[1] do redis.call('hset', KEYS[1], 'field' .. i, i) end";
        conn.cmd(&format!("EVAL \"{script}\" 1 big {elements}"));
        conn.cmd("LATENCY RESET");
        conn.cmd("PEXPIRE big 1");
        wait_until("the key is gone and its memory free", || {
            conn.cmd("DBSIZE").integer() == 0
                && conn.cmd("INFO memory").text().contains("lazyfree_pending_objects:0\r\n")
        });
        conn.cmd("LATENCY LATEST").to_string()
    };
    // The number of elements needed for a millisecond of work depends on the machine.
    let mut elements = 1 << 16;
    loop {
        let events = expire("no", elements);
        if events.contains("expire-cycle") && events.contains("expire-del") {
            break;
        }
        elements *= 2;
        assert!(elements <= 1 << 20, "{events}");
    }
    if !subject_is_redis() {
        let events = expire("yes", elements);
        assert!(!events.contains("expire-del"), "{events}");
    }
}

#[test]
fn shutdown_ends_the_process_without_a_reply() {
    let (mut server, mut conn) = server();
    assert_reply!(conn, "PING", "PONG");
    conn.send_raw(b"SHUTDOWN NOSAVE\r\nPING\r\n");
    assert_eq!(conn.read_to_end(), b"");
    wait_until("the process has ended", || !server.is_running());
    let log = server.log();
    assert!(log.contains("User requested shutdown..."), "{log}");
    assert!(log.contains("is now ready to exit, bye bye..."), "{log}");
}

#[test]
fn memory_purge_gives_pages_back_to_the_system_at_once() {
    const KEYS: usize = 1_000;
    const MIB: u64 = 1024 * 1024;
    let (server, mut conn) = server();
    let value = "v".repeat(60_000);
    for i in 0..KEYS {
        assert_reply!(conn, &format!("SET key:{i} {value}"), "OK");
    }
    let full = server.rss();
    assert_reply!(conn, "FLUSHALL SYNC", "OK");
    wait_until("the values are freed", || conn.info("lazyfree_pending_objects") == "0");
    assert_reply!(conn, "MEMORY PURGE", "OK");
    let left = server.rss();
    assert!(left + 40 * MIB < full, "{left} of {full}");
}
