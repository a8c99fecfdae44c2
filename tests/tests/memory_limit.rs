//! `maxmemory`: the memory that counts toward it, and the memory that does not.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, assert_reply, wait_until};
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// Sets the limit to the memory in use plus `room`.
fn limit(conn: &mut Conn, policy: &str, room: u64) {
    let used: u64 = conn.info("used_memory").parse().unwrap();
    assert_reply!(conn, &format!("CONFIG SET maxmemory-policy {policy}"), "OK");
    assert_reply!(conn, &format!("CONFIG SET maxmemory {}", used + room), "OK");
}

fn push_numbers(conn: &mut Conn, first: &str, numbers: std::ops::Range<usize>) {
    let numbers: Vec<usize> = numbers.collect();
    for some in numbers.chunks(10_000) {
        let words: Vec<String> = some.iter().map(usize::to_string).collect();
        conn.cmd(&format!("{first} {}", words.join(" ")));
    }
}

/// Temporary memory of a running long command does not cause keys to be evicted or other clients' writes to be
/// rejected.
#[test]
fn memory_of_a_running_long_command_evicts_no_keys() {
    const NUMBERS: usize = 200_000;
    let server = Launch::subject().start();
    let [mut sorter, mut writer] = server.connections();
    push_numbers(&mut sorter, "RPUSH numbers", 0..NUMBERS);
    for first in (0..NUMBERS).step_by(10_000) {
        let words: Vec<String> =
            (first..first + 10_000).map(|i| format!("weight:{i} {}", NUMBERS - i)).collect();
        assert_reply!(sorter, &format!("MSET {}", words.join(" ")), "OK");
    }
    assert_eq!(writer.cmd("EVAL 'return 1' 0").integer(), 1);
    for policy in ["allkeys-random", "noeviction"] {
        limit(&mut sorter, policy, 4 * MIB);
        sorter.send("SORT numbers BY weight:* LIMIT 0 1 STORE sorted");
        while !sorter.has_reply_within(Duration::from_millis(1)) {
            assert_reply!(writer, "SET hot value", "OK");
        }
        assert_eq!(sorter.reply().integer(), 1);
        assert_eq!(writer.info("evicted_keys"), "0", "{policy}");
        assert_reply!(writer, "LRANGE sorted 0 -1", format!("1) \"{}\"", NUMBERS - 1));
    }
}

/// Deleted data counts as free immediately, whichever thread frees it.
#[test]
fn memory_that_is_about_to_be_freed_evicts_no_keys() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    assert_eq!(conn.cmd("EVAL 'return 1' 0").integer(), 1);
    for delete in [
        "DEL big",
        "SET big small",
        "SUNIONSTORE big nothing",
        "RENAME small big",
        "EVAL \"return redis.call('DEL', 'big')\" 0",
        "EVAL \"return redis.call('FLUSHALL')\" 0",
        "FLUSHALL",
    ] {
        assert_reply!(conn, "CONFIG SET maxmemory 0", "OK");
        assert_reply!(conn, "SET small value", "OK");
        push_numbers(&mut conn, "SADD big a", 0..400_000);
        limit(&mut conn, "noeviction", MIB / 2);
        // These writes need twice the memory that was free before the delete.
        let sets: Vec<String> = (0..4_000).map(|i| format!("SET {i} {:0300}", 0)).collect();
        let lines: Vec<&str> =
            std::iter::once(delete).chain(sets.iter().map(String::as_str)).collect();
        let replies = conn.pipeline(&lines);
        let refused = replies[1..].iter().filter(|reply| matches!(reply, Reply::Error(_))).count();
        assert_eq!(refused, 0, "{delete}: {:?}", replies.last());
        assert_reply!(conn, "FLUSHALL", "OK");
    }
}

/// The replies of several clients that do not read share the same bytes.
#[test]
fn a_value_that_only_unread_replies_refer_to_evicts_no_key() {
    const BIG: usize = 64 << 20;
    const KEYS: usize = 100;
    if subject_is_redis() {
        return; // It counts replies as data.
    }
    let server = Launch::subject().start();
    let mut conn = server.connect();
    for replace in ["SET big small", "DEL big", "COPY key:1 big REPLACE"] {
        assert_reply!(conn, "CONFIG SET maxmemory 0", "OK");
        assert_reply!(conn, "FLUSHALL", "OK");
        for number in 0..KEYS {
            assert_reply!(conn, &format!("SET key:{number} value"), "OK");
        }
        let value = "x".repeat(BIG);
        assert_reply!(conn, &format!("SET big {value}"), "OK");
        let mut readers = server.connections::<3>();
        readers.iter_mut().for_each(|reader| reader.send("GET big"));
        wait_until("all replies are queued", || {
            let list = conn.cmd("CLIENT LIST").text();
            let omem = |line: &str| {
                let field = line.split(" omem=").nth(1).unwrap().split(' ').next().unwrap();
                field.parse::<usize>().unwrap()
            };
            list.lines().filter(|line| omem(line) > BIG / 2).count() == readers.len()
        });
        limit(&mut conn, "allkeys-random", 2 * MIB);
        conn.cmd(replace);
        // Only the part of the old value that was sent is free, which is less than the new value takes.
        assert_reply!(conn, &format!("SET other {}", "y".repeat(BIG / 4)), "OK");
        for number in 0..KEYS {
            assert_reply!(conn, &format!("EXISTS key:{number}"), "(integer) 1");
        }
        assert_eq!(conn.info("evicted_keys"), "0", "{replace}");
        for reader in &mut readers {
            assert_eq!(reader.reply().text().len(), BIG, "{replace}");
        }
    }
    wait_until("no output is unread", || {
        conn.info("mem_not_counted_for_evict").parse::<u64>().unwrap() < MIB
    });
}
