//! Typical scripts for job queues, rate limiters, locks and leaderboards, compared with a real Redis. Every reply and
//! the final keys must be the same.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::{Conn, Launch};

/// A script, the number of keys, and the arguments of its calls, one call per line.
struct Case {
    name: &'static str,
    source: &'static str,
    before: &'static [&'static str],
    keys: usize,
    calls: &'static [&'static str],
}

macro_rules! case {
    ($name:literal, $before:expr, $keys:literal, $calls:expr) => {
        Case {
            name: $name,
            source: include_str!(concat!("real_scripts/", $name, ".lua")),
            before: &$before,
            keys: $keys,
            calls: &$calls,
        }
    };
}

const CASES: &[Case] = &[
    case!(
        "sliding_window",
        [],
        1,
        ["hits 1000 500 2 a", "hits 1100 500 2 b", "hits 1200 500 2 c", "hits 1501 500 2 d"]
    ),
    case!(
        "token_bucket",
        ["SET other x"],
        2,
        ["{u}t {u}s 2 10 1 4", "{u}t {u}s 2 10 1 7", "{u}t {u}s 2 10 3 7", "{u}t {u}s 2 10 3 1"]
    ),
    case!("fixed_window", [], 1, ["w 100 2", "w 100 2", "w 100 2", "v 100 1"]),
    case!("unlock", ["SET lock me"], 1, ["lock you", "lock me", "lock me"]),
    case!("lock_extend", [], 1, ["l a 50000", "l a 60000", "l b 50000"]),
    case!("reentrant_lock", [], 1, ["r 60000 a:1", "r 60000 a:1", "r 60000 b:2"]),
    case!(
        "due_jobs",
        ["ZADD {q}delayed 1 a 2 b 3 c 9 d"],
        2,
        ["{q}delayed {q}ready 3 2", "{q}delayed {q}ready 3 10", "{q}delayed {q}ready 3 10"]
    ),
    case!(
        "take_job",
        [
            "RPUSH high h1",
            "RPUSH low l1 l2",
            "HSET jobs h1 '{\"data\":[1,2,\"x\"]}' l1 '{\"attempts\":3}'"
        ],
        4,
        [
            "high low jobs active w1 100",
            "high low jobs active w2 101",
            "high low jobs active w1 102",
            "high low jobs active w1 103"
        ]
    ),
    case!(
        "leaderboard",
        ["ZADD board 10 ann 20 bob 30 cid"],
        1,
        ["board dan 25", "board ann 5", "board ann 40", "board eve 1"]
    ),
    case!("bloom", [], 1, ["bits one two three", "bits two four one", "bits"]),
    case!(
        "reserve",
        ["HSET stock apple 5 pear 1"],
        2,
        [
            "stock orders '[{\"sku\":\"apple\",\"count\":2,\"price\":1.25}]' 1-1",
            "stock orders '[{\"sku\":\"apple\",\"count\":1,\"price\":1},{\"sku\":\"pear\",\"count\":2,\"price\":3}]' 2-1",
            "stock orders '[{\"sku\":\"pear\",\"count\":1,\"price\":3}]' 3-1",
            "stock orders 'no json' 4-1"
        ]
    ),
    case!(
        "session_merge",
        [],
        1,
        [
            "s '{\"user\":\"ann\",\"age\":7,\"tags\":true}'",
            "s '{\"age\":8,\"tags\":null,\"pi\":3.25}'"
        ]
    ),
    case!(
        "delete_by_pattern",
        ["MSET user:1 a user:2 b user:3 c other d"],
        0,
        ["user:*", "user:*", "o*"]
    ),
    case!("ring_buffer", [], 1, ["log 1 hello 2", "log 2 world 2", "log 3 again 2"]),
];

fn run(conn: &mut Conn, case: &Case, digest: Option<&str>, call: &str) -> String {
    let keys = case.keys.to_string();
    let words = brisk_testkit::words::split(call).unwrap();
    let mut request: Vec<Vec<u8>> = match digest {
        Some(digest) => vec![b"EVALSHA".to_vec(), digest.into(), keys.into()],
        None => vec![b"EVAL".to_vec(), case.source.into(), keys.into()],
    };
    request.extend(words);
    conn.call(&request).to_string()
}

fn left(conn: &mut Conn) -> String {
    let digest = conn.cmd("DEBUG DIGEST").to_string();
    let count = conn.cmd("DBSIZE").to_string();
    format!("{count} {digest}")
}

#[test]
fn typical_scripts_give_the_same_results_as_in_redis() {
    let debug = |launch: Launch| launch.set("enable-debug-command", "yes").start();
    let (ours, theirs) = (debug(Launch::subject()), debug(Launch::redis()));
    for version in [2, 3] {
        let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
        ours.hello(version);
        theirs.hello(version);
        for case in CASES {
            for conn in [&mut ours, &mut theirs] {
                conn.cmd("FLUSHALL");
                case.before.iter().for_each(|line| drop(conn.cmd(line)));
            }
            let digest = ours.call(&["SCRIPT", "LOAD", case.source]).to_string();
            assert_eq!(digest, theirs.call(&["SCRIPT", "LOAD", case.source]).to_string());
            let digest = digest.trim_matches('"');
            for (at, call) in case.calls.iter().enumerate() {
                let by = (at % 2 == 1).then_some(digest);
                assert_eq!(
                    run(&mut ours, case, by, call),
                    run(&mut theirs, case, by, call),
                    "{}: {call}",
                    case.name
                );
            }
            assert_eq!(left(&mut ours), left(&mut theirs), "{}: what is left", case.name);
        }
    }
}
