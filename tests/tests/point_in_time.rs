//! The file of a BGSAVE is a point-in-time snapshot, no matter what clients do in the meantime.
//!
//! Clients maintain invariants that hold at each moment: sums that do not change, and values that are changed together
//! in transactions and scripts. A file that violates an invariant is not a point-in-time snapshot. Each file is loaded
//! by our server and by a real Redis.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::random::Random;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, TempDir, assert_reply, wait_until};
use brisk_tests::with_workers;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const ACCOUNTS: u64 = 40;
const PAIRS: u64 = 12;
/// Number of elements of values that are shared with the snapshot's writer instead of being copied.
const LARGE: usize = 3000;

fn save(conn: &mut Conn) {
    assert_reply!(conn, "BGSAVE", "Background saving started");
    wait_until("the snapshot has ended", || conn.info("rdb_bgsave_in_progress") == "0");
    assert_eq!(conn.info("rdb_last_bgsave_status"), "ok");
}

/// Starts a server that loads the file.
fn load(program: Launch, rdb: &[u8]) -> Server {
    let home = TempDir::new();
    fs::write(home.path("dump.rdb"), rdb).unwrap();
    let server = program.set("dir", home.path("").to_str().unwrap()).start();
    // A real server replies while it loads.
    server.wait_for_info("loading", |loading| loading == "0");
    server
}

fn run(conn: &mut Conn, lines: &[String]) {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for (line, reply) in lines.iter().zip(conn.pipeline(&lines)) {
        let reply = reply.to_string();
        assert!(!reply.starts_with("(error)"), "{line}: {reply}");
    }
}

/// Writes all values that the invariants are about, and additional keys that make the snapshot take longer.
fn fill(conn: &mut Conn) {
    assert_reply!(conn, "DEBUG POPULATE 20000 filler 40", "OK");
    let mut lines = Vec::new();
    for account in 0..ACCOUNTS {
        lines.push(format!("SET account:{account} 1000"));
    }
    for n in 0..200 {
        lines.push(format!("RPUSH shelf:{} item{n}", n % 5));
        lines.push(format!("SADD bag:{} item{n}", n % 5));
    }
    for n in 0..PAIRS {
        lines.push(format!("SET source:{n} 0"));
        lines.push(format!("SET target:{n} 0"));
    }
    let many = |head: &str, item: &dyn Fn(usize) -> String| {
        (0..LARGE).fold(head.to_owned(), |line, n| format!("{line} {}", item(n)))
    };
    lines.push(many("HSET large:hash", &|n| format!("m{n} {n}")));
    lines.push(many("ZADD large:zset", &|n| format!("{n} m{n}")));
    lines.push(many("SADD large:set", &|n| format!("m{n}")));
    lines.push(many("RPUSH large:list", &|n| format!("m{n}")));
    lines.push(many("RPUSH large:twin", &|n| format!("m{n}")));
    lines.push(format!("SETRANGE large:string {} .", 200_000));
    lines.push(format!("SETRANGE large:other {} .", 200_000));
    for (db, key) in [(9, "left"), (10, "right")] {
        lines.extend(["SELECT ".to_owned() + &db.to_string(), format!("SET {key} 0")]);
    }
    lines.push("SELECT 0".to_owned());
    run(conn, &lines);
}

/// An atomic step of a client: the invariants hold before and after.
fn step(random: &mut Random, serial: u64) -> Vec<String> {
    let mut below = |bound: u64| random.below(bound as usize) as u64;
    let (pair, n) = (below(PAIRS), below(100));
    let (m, value) = (below(LARGE as u64), below(1_000_000));
    let lines: Vec<String> = match below(17) {
        0 | 1 => {
            let (from, to) = (below(ACCOUNTS), below(ACCOUNTS));
            vec![format!("DECRBY account:{from} {n}"), format!("INCRBY account:{to} {n}")]
        }
        2 => vec![
            format!("RPUSH pair:a:{pair} {serial}"),
            format!("RPUSH pair:b:{pair} {serial}"),
            format!("LTRIM pair:a:{pair} -50 -1"),
            format!("LTRIM pair:b:{pair} -50 -1"),
        ],
        3 => vec![
            format!("SET source:{pair} {}", "x".repeat(n as usize) + &serial.to_string()),
            format!("COPY source:{pair} target:{pair} REPLACE"),
        ],
        4 => vec![
            format!("HSET hash:{pair} m{n} {value}"),
            format!("ZADD zset:{pair} {value} m{n}"),
            format!("SADD set:{pair} m{n}"),
        ],
        5 => vec![
            format!("HDEL hash:{pair} m{n}"),
            format!("ZREM zset:{pair} m{n}"),
            format!("SREM set:{pair} m{n}"),
        ],
        6 => vec![format!("XADD stream:{pair} * n {serial}"), format!("INCR entries:{pair}")],
        // A single command with two keys.
        7 => return vec![format!("LMOVE shelf:{} shelf:{} LEFT RIGHT", n % 5, value % 5)],
        8 => return vec![format!("SMOVE bag:{} bag:{} item{}", n % 5, m % 5, value % 200)],
        9 => {
            let script = "local n = redis.call('decrby', KEYS[1], ARGV[1]) \
                          return redis.call('incrby', KEYS[2], ARGV[1])";
            let (from, to) = (below(ACCOUNTS), below(ACCOUNTS));
            return vec![format!("EVAL \"{script}\" 2 account:{from} account:{to} {n}")];
        }
        10 => vec![
            format!("HSET large:hash m{m} {value}"),
            format!("ZADD large:zset {value} m{m}"),
            format!("LSET large:list {m} {value}"),
            format!("LSET large:twin {m} {value}"),
        ],
        11 => vec![
            format!("SETRANGE large:string {} {value}", m * 60),
            format!("SETRANGE large:other {} {value}", m * 60),
        ],
        12 => vec![
            "SELECT 11".to_owned(),
            "FLUSHDB".to_owned(),
            format!("MSET first {serial} second {serial} third {serial}"),
            "SELECT 0".to_owned(),
        ],
        13 => return vec!["SWAPDB 9 10".to_owned()],
        14 => vec![
            format!("RENAME account:{} account:away", n % ACCOUNTS),
            format!("RENAME account:away account:{}", n % ACCOUNTS),
        ],
        15 => vec![
            format!("SET brief:{n} {serial} PX {}", 1 + m % 30),
            format!("SET lasting:{n} {serial} EX 1000"),
            format!("DEL filler:{value}"),
            format!("SET filler:{} {serial}", value % 20_000),
        ],
        _ => vec![format!("DEL moving:{pair}"), format!("SET staying:{pair} {serial}")],
    };
    let mut all = vec!["MULTI".to_owned()];
    all.extend(lines);
    all.push("EXEC".to_owned());
    all
}

fn numbers(conn: &mut Conn, line: &str) -> Vec<String> {
    conn.cmd(line).elements().iter().map(|element| element.text()).collect()
}

fn sorted(conn: &mut Conn, line: &str) -> Vec<String> {
    let mut all = numbers(conn, line);
    all.sort();
    all
}

/// Checks the invariants in the dataset that a server has loaded.
fn check(conn: &mut Conn) {
    let sum: i64 = (0..ACCOUNTS)
        .map(|n| conn.cmd(&format!("GET account:{n}")).text().parse::<i64>().unwrap())
        .sum();
    assert_eq!(sum, 1000 * ACCOUNTS as i64);
    for (prefix, all) in [("shelf", "LRANGE {} 0 -1"), ("bag", "SMEMBERS {}")] {
        let mut items: Vec<String> = (0..5)
            .flat_map(|n| numbers(conn, &all.replace("{}", &format!("{prefix}:{n}"))))
            .collect();
        items.sort();
        let mut want: Vec<String> = (0..200).map(|n| format!("item{n}")).collect();
        want.sort();
        assert_eq!(items, want, "{prefix}");
    }
    for n in 0..PAIRS {
        let same = |conn: &mut Conn, line: &str, a: &str, b: &str| {
            let [a, b] = [a, b].map(|key| conn.cmd(&line.replace("{}", key)).to_string());
            assert_eq!(a, b, "{line} {n}");
        };
        same(conn, "LRANGE {} 0 -1", &format!("pair:a:{n}"), &format!("pair:b:{n}"));
        same(conn, "GET {}", &format!("source:{n}"), &format!("target:{n}"));
        same_members(conn, &format!("hash:{n}"), &format!("zset:{n}"));
        let members = sorted(conn, &format!("SMEMBERS set:{n}"));
        assert_eq!(sorted(conn, &format!("HKEYS hash:{n}")), members);
        let entries = conn.cmd(&format!("XLEN stream:{n}")).integer();
        let counted = conn.cmd(&format!("GET entries:{n}"));
        assert_eq!(if entries == 0 { "0".into() } else { counted.text() }, entries.to_string());
    }
    same_members(conn, "large:hash", "large:zset");
    assert_reply!(conn, "HLEN large:hash", format!("(integer) {LARGE}"));
    assert_reply!(conn, "SCARD large:set", format!("(integer) {LARGE}"));
    let [list, twin] =
        ["list", "twin"].map(|key| numbers(conn, &format!("LRANGE large:{key} 0 -1")));
    assert!(list == twin && list.len() == LARGE, "large lists differ");
    let [string, other] = ["string", "other"].map(|key| conn.cmd(&format!("GET large:{key}")));
    assert!(string.text() == other.text(), "large strings differ");
    let [at_9, at_10] = [9, 10].map(|db| {
        conn.cmd(&format!("SELECT {db}"));
        numbers(conn, "MGET left right").join(",")
    });
    assert!(
        [("0,", ",0"), (",0", "0,")].contains(&(&at_9, &at_10)),
        "{at_9} and {at_10}: one has the left, the other the right"
    );
    conn.cmd("SELECT 11");
    let three = numbers(conn, "MGET first second third");
    assert!(three[0] == three[1] && three[1] == three[2], "{three:?}");
    assert!(["(integer) 0", "(integer) 3"].contains(&conn.cmd("DBSIZE").to_string().as_str()));
    conn.cmd("SELECT 0");
}

/// Asserts that the fields and values of the hash are the members and scores of the sorted set.
fn same_members(conn: &mut Conn, hash: &str, zset: &str) {
    let pairs = |list: Vec<String>| {
        let mut pairs: Vec<(String, String)> =
            list.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        pairs.sort();
        pairs
    };
    let fields = pairs(numbers(conn, &format!("HGETALL {hash}")));
    let members = pairs(numbers(conn, &format!("ZRANGE {zset} 0 -1 WITHSCORES")));
    assert!(fields == members, "{hash} and {zset} differ");
}

/// Runs clients that maintain the invariants while `body` runs. Returns the number of steps that they took.
fn during_writes(server: &Server, clients: u64, body: impl FnOnce(&dyn Fn() -> u64)) -> u64 {
    let (ends, steps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (ends, steps) = (&ends, &steps);
            let mut conn = server.connect();
            scope.spawn(move || {
                let mut random = Random::new(client + 1);
                while !ends.load(Ordering::Relaxed) {
                    let serial = steps.fetch_add(1, Ordering::Relaxed);
                    run(&mut conn, &step(&mut random, serial));
                }
            });
        }
        let guard = EndsAtLast(&ends);
        body(&|| steps.load(Ordering::Relaxed));
        drop(guard);
    });
    steps.into_inner()
}

/// Ends the writers even if an assertion fails.
struct EndsAtLast<'e>(&'e AtomicBool);

impl Drop for EndsAtLast<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn every_file_is_the_dataset_of_one_moment() {
    for workers in [2, 4] {
        let server = with_workers(workers).start();
        let mut conn = server.connect();
        fill(&mut conn);
        let mut files = Vec::new();
        during_writes(&server, 6, |steps| {
            for round in 0..4 {
                let begun = steps();
                wait_until("clients write", || steps() > begun + 200);
                // Some snapshots are slow, so that more values are changed before they are written.
                assert_reply!(
                    conn,
                    &format!("CONFIG SET rdb-key-save-delay {}", round % 2 * 30),
                    "OK"
                );
                save(&mut conn);
                files.push(fs::read(server.dir().join("dump.rdb")).unwrap());
            }
        });
        for rdb in &files {
            for program in [Launch::subject(), Launch::redis()] {
                check(&mut load(program, rdb).connect());
            }
        }
        check(&mut conn);
    }
}

/// Nothing changes between the reply and the digest. Afterwards, while the snapshot is being taken, many keys change.
#[test]
fn a_file_has_the_digest_of_its_moment() {
    let server = with_workers(2).start();
    let mut conn = server.connect();
    fill(&mut conn);
    let mut random = Random::new(7);
    for serial in 0..300 {
        let lines = step(&mut random, serial);
        if !lines.iter().any(|line| line.contains(" PX ")) {
            run(&mut conn, &lines);
        }
    }
    for us_per_key in [0, 50] {
        assert_reply!(conn, &format!("CONFIG SET rdb-key-save-delay {us_per_key}"), "OK");
        let digest = conn.cmd("DEBUG DIGEST").text();
        let size = conn.cmd("DBSIZE").to_string();
        assert_reply!(conn, "BGSAVE", "Background saving started");
        during_writes(&server, 3, |_| {
            wait_until("the snapshot has ended", || conn.info("rdb_bgsave_in_progress") == "0");
        });
        // For the next round: DBSIZE may count expired keys, but they are not loaded.
        let brief: Vec<String> = (0..100).map(|n| format!("brief:{n}")).collect();
        conn.cmd(&format!("DEL {}", brief.join(" ")));
        assert_ne!(conn.cmd("DEBUG DIGEST").text(), digest);
        let rdb = fs::read(server.dir().join("dump.rdb")).unwrap();
        for program in [Launch::subject(), Launch::redis()] {
            let loaded = load(program, &rdb);
            assert_reply!(loaded.connect(), "DBSIZE", size);
            assert_reply!(loaded.connect(), "DEBUG DIGEST", digest);
        }
    }
}

/// Elements of values with 300,000 elements are changed before the snapshot has written them.
#[test]
fn changes_within_huge_values_are_not_in_the_file() {
    const ELEMENTS: usize = 300_000;
    const BATCH: usize = 10_000;
    let server = with_workers(2).start();
    let mut conn = server.connect();
    let mut other = server.connect();
    for first in (0..ELEMENTS).step_by(BATCH) {
        let all = |head: &str, item: &dyn Fn(usize) -> String| {
            (first..first + BATCH).fold(head.to_owned(), |line, n| format!("{line} {}", item(n)))
        };
        conn.cmd(&all("ZADD zset", &|n| format!("{n} m{n}")));
        conn.cmd(&all("HSET hash", &|n| format!("f{n} {n}")));
        conn.cmd(&all("SADD set", &|n| format!("m{n}")));
        conn.cmd(&all("RPUSH list", &|n| format!("e{n}")));
    }
    let digest = conn.cmd("DEBUG DIGEST").text();
    assert_reply!(conn, "BGSAVE", "Background saving started");
    let mut n = 0;
    wait_until("the snapshot has ended", || {
        for _ in 0..20 {
            n = (n + 7919) % ELEMENTS;
            conn.cmd(&format!("ZADD zset -1 m{n}"));
            conn.cmd(&format!("HSET hash f{n} changed"));
            conn.cmd(&format!("SREM set m{n}"));
            conn.cmd(&format!("LSET list {} changed", n % 1000));
        }
        other.info("rdb_bgsave_in_progress") == "0"
    });
    assert_eq!(conn.info("rdb_last_bgsave_status"), "ok");
    assert_ne!(conn.cmd("DEBUG DIGEST").text(), digest);
    let rdb = fs::read(server.dir().join("dump.rdb")).unwrap();
    assert_reply!(load(Launch::redis(), &rdb).connect(), "DEBUG DIGEST", digest);
}

/// Evicted data is kept until it is written, so evicting more would not free memory either.
#[test]
fn eviction_does_not_run_away_while_a_snapshot_is_taken() {
    if subject_is_redis() {
        return; // its child process keeps the memory, so eviction frees nothing either
    }
    let (keys, size) = (400, 100_000);
    let server = with_workers(2).set("maxmemory-policy", "allkeys-lru").start();
    let mut conn = server.connect();
    let value = "v".repeat(size);
    for n in 0..keys {
        conn.call(&["SET", &format!("key:{n}"), &value]);
    }
    let used: u64 = conn.info("used_memory").parse().unwrap();
    assert_reply!(conn, "CONFIG SET rdb-key-save-delay 10000000", "OK");
    assert_reply!(conn, "BGSAVE", "Background saving started");
    // The dataset exceeds the limit by a tenth, and then as much data again arrives. In the meantime, no memory is
    // freed.
    assert_reply!(conn, &format!("CONFIG SET maxmemory {}", used - used / 10), "OK");
    for n in 0..keys / 10 {
        assert_eq!(conn.call(&["SET", &format!("new:{n}"), &value]).to_string(), "OK");
    }
    assert_eq!(conn.info("rdb_bgsave_in_progress"), "1");
    let evicted: usize = conn.info("evicted_keys").parse().unwrap();
    let left = conn.cmd("DBSIZE").integer() as usize;
    assert_eq!(left, keys + keys / 10 - evicted);
    assert!(evicted < keys / 2, "{evicted} of {keys} keys were evicted");
    assert!(conn.info("snapshot_bytes").parse::<usize>().unwrap() > evicted / 2 * size);
}
