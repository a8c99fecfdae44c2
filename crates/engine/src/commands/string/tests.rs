//! Compares replies, effects and events of string commands with those recorded from a real server.

use crate::env::Dialect;
use crate::env::effect::EventClass;
use crate::keyspace::UnixMs;
use crate::testing::Db;

#[test]
fn replies_are_those_of_a_real_server() {
    let mut db = Db::new();
    db.at(1_700_000_000_000);
    db.replay(include_str!("tests/transcript.txt")).invariants();
}

/// The lines have the form `a|b|subsequence|runs`. A run has the form `first-last=first-last`, and
/// the last run comes first.
#[test]
fn lcs_chooses_the_subsequence_that_a_real_server_chooses() {
    let mut db = Db::new();
    for line in include_str!("tests/subsequences.txt").lines() {
        let [a, b, common, runs] = line.split('|').collect::<Vec<_>>()[..] else {
            panic!("four fields: {line}");
        };
        db.check(&format!("MSET a {a} b {b}"), "OK");
        db.check("LCS a b", &format!("\"{common}\""));
        db.check("LCS a b LEN", &format!("(integer) {}", common.len()));
        let found: Vec<String> = super::subsequence::common_matches(a.as_bytes(), b.as_bytes())
            .iter()
            .map(|run| {
                let (a, b, more) = (run.a, run.b, run.len - 1);
                format!("{a}-{}={b}-{}", a + more, b + more)
            })
            .collect();
        assert_eq!(found.join(" "), runs);
    }
}

#[test]
fn lcs_replies_with_a_map_in_resp3() {
    let mut db = Db::new();
    db.resp3().check("MSET a ohmytext b mynewtext", "OK");
    let want = [
        "1# \"matches\" => ",
        "   1) 1) 1) (integer) 4",
        "         2) (integer) 7",
        "      2) 1) (integer) 5",
        "         2) (integer) 8",
        "   2) 1) 1) (integer) 2",
        "         2) (integer) 3",
        "      2) 1) (integer) 0",
        "         2) (integer) 1",
        "2# \"len\" => (integer) 6",
    ];
    db.check("LCS a b IDX", &want.join("\n"));
    db.check("GET missing", "(nil)");
}

#[test]
fn lcs_bounds_its_table_before_it_allocates() {
    let mut db = Db::new();
    db.check("SETRANGE a 40000000 x", "(integer) 40000001");
    db.check(
        "LCS a a LEN",
        "(error) ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
    );
}

#[test]
fn set_is_propagated_with_its_expiry_time() {
    let mut db = Db::new();
    db.effects("SET k v", &["SET k v"]);
    db.effects("SET k v EX 100", &["SET k v PXAT 101000"]);
    db.effects("set k v px 100", &["SET k v PXAT 1100"]);
    db.effects("SET k v EXAT 9999999999", &["SET k v PXAT 9999999999000"]);
    db.effects("SET k v PXAT 9999999999999", &["SET k v PXAT 9999999999999"]);
    db.effects("SET k v EX 100 GET", &["SET k v PXAT 101000"]);
    db.effects("SET k v XX EX 100", &["SET k v PXAT 101000"]);
    db.effects("SET new v NX EX 100", &["SET new v PXAT 101000"]);
    db.effects("SETEX k 100 v", &["SET k v PXAT 101000"]);
    db.effects("PSETEX k 100 v", &["SET k v PXAT 1100"]);
}

#[test]
fn set_is_propagated_without_get() {
    let mut db = Db::new();
    db.effects("SET k v GET", &["SET k v"]);
    db.effects("SET k v XX GET", &["SET k v XX"]);
    db.effects("SET k v get KEEPTTL GET", &["SET k v KEEPTTL"]);
    db.effects("SET k v KEEPTTL", &["SET k v KEEPTTL"]);
    db.effects("SET k v NX GET", &[]);
    db.effects("SET k v NX", &[]);
    db.effects("SET new v NX", &["SET new v NX"]);
    db.effects("GETSET k w", &["SET k w"]);
}

#[test]
fn a_ttl_in_the_past_is_stored_and_found_expired_by_the_next_command() {
    let mut db = Db::new();
    db.effects("SET k v PXAT 1", &["SET k v PXAT 1"]);
    db.effects("GET k", &["DEL k"]);
    db.check("SET k v PXAT 1 GET", "(nil)");
    db.check("GET k", "(nil)");
    db.events("SET k v PXAT 1", &["set k", "expire k"]);
    db.events("SET k v", &["expired k", "set k"]);
    db.settings().lazy_expire = true;
    db.effects("SET k v PXAT 1", &["SET k v PXAT 1"]);
    db.effects("SETEX k 1 v", &["UNLINK k", "SET k v PXAT 2000"]);
    db.invariants();
}

#[test]
fn valkey_stores_nothing_with_a_ttl_in_the_past() {
    let mut db = Db::new();
    db.settings().dialect = Dialect::Valkey;
    db.effects("SET k v PXAT 1", &[]);
    db.check("SET k old", "OK");
    db.effects("SET k v PXAT 1 NX", &[]);
    db.effects("SET k v PXAT 1 GET", &["DEL k"]);
    db.check("SET k old", "OK");
    db.events("SET k v EXAT 1 XX", &["del k"]);
    db.settings().lazy_expire = true;
    db.check("SET k old", "OK").effects("SET k v EXAT 1", &["UNLINK k"]);
    db.effects("SET k v PX 10", &["SET k v PXAT 1010"]);
    db.invariants();
}

#[test]
fn getex_is_propagated_as_its_effect() {
    let mut db = Db::new();
    db.check("SET k v", "OK");
    db.effects("GETEX k", &[]);
    db.effects("GETEX k PERSIST", &[]);
    db.effects("GETEX k EX 100", &["PEXPIREAT k 101000"]);
    db.effects("GETEX k PX 100", &["PEXPIREAT k 1100"]);
    db.effects("GETEX k EXAT 9999999999", &["PEXPIREAT k 9999999999000"]);
    db.effects("GETEX k PERSIST", &["PERSIST k"]);
    db.effects("GETEX k PXAT 1", &["DEL k"]);
    db.check("GET k", "(nil)").check("SET k v", "OK");
    db.settings().lazy_expire = true;
    db.effects("GETEX k PXAT 1", &["UNLINK k"]);
    db.effects("GETDEL k", &[]);
    db.check("SET k v", "OK");
    db.effects("GETDEL k", &["DEL k"]);
    db.invariants();
}

#[test]
fn other_writes_are_propagated_as_sent_and_sums_of_decimals_as_their_result() {
    let mut db = Db::new();
    db.effects("SETNX k v", &["SETNX k v"]).effects("SETNX k v", &[]);
    db.effects("MSET a 1 b 2 a 3", &["MSET a 1 b 2 a 3"]);
    db.effects("MSETNX a 1 b 2", &[]).effects("MSETNX c 1 d 2", &["MSETNX c 1 d 2"]);
    db.effects("APPEND a x", &["APPEND a x"]);
    db.effects("APPEND new \"\"", &["APPEND new \"\""]);
    db.effects("SETRANGE a 3 hello", &["SETRANGE a 3 hello"]).effects("SETRANGE a 3 \"\"", &[]);
    db.effects("SETRANGE missing 3 \"\"", &[]);
    db.effects("INCR n", &["INCR n"]).effects("DECRBY n 3", &["DECRBY n 3"]);
    db.effects("INCRBY n 0", &["INCRBY n 0"]);
    db.effects("INCRBYFLOAT n 1.5", &["SET n -0.5 KEEPTTL"]);
    db.effects("INCR a", &[]).effects("INCRBYFLOAT a 1", &[]).effects("DECRBY a x", &[]);
}

#[test]
fn each_write_publishes_the_event_of_redis() {
    let mut db = Db::new();
    db.events("SET k v", &["set k"]).events("SET k v EX 100", &["set k", "expire k"]);
    db.events("SETEX k 100 v", &["set k", "expire k"]);
    db.events("PSETEX k 100 v", &["set k", "expire k"]);
    db.events("GETEX k EX 100", &["expire k"]).events("GETEX k PERSIST", &["persist k"]);
    db.events("GETEX k PERSIST", &[]).events("GETEX k", &[]);
    db.events("GETEX k PXAT 1", &["del k"]).events("SETNX k v", &["set k"]);
    db.events("SETNX k v", &[]).events("GETSET k w", &["set k"]);
    db.events("GETDEL k", &["del k"]).events("GETDEL k", &[]);
    db.events("MSET a 1 b 2 a 3", &["set a", "set b", "set a"]);
    db.events("MSETNX c 1 d 2", &["set c", "set d"]).events("MSETNX c 1 e 2", &[]);
    db.events("APPEND a x", &["append a"]).events("APPEND new x", &["append new"]);
    db.events("SETRANGE a 3 hello", &["setrange a"]).events("SETRANGE a 3 \"\"", &[]);
    db.events("SETRANGE missing 3 x", &["setrange missing"]);
    db.events("INCR n", &["incrby n"]).events("DECR n", &["incrby n"]);
    db.events("INCRBY n 5", &["incrby n"]).events("DECRBY n 3", &["incrby n"]);
    db.events("INCRBYFLOAT n 1.5", &["incrbyfloat n"]).events("INCR n", &[]);
    db.events("SET n 1 KEEPTTL", &["set n"]);
}

#[test]
fn misses_and_new_keys_are_published_if_enabled() {
    let mut db = Db::new();
    let classes = EventClass::KEY_MISS | EventClass::NEW;
    db.events_of(classes, "GET k", &["keymiss k"]);
    db.events_of(classes, "MGET k l", &["keymiss k", "keymiss l"]);
    db.events_of(classes, "GETEX k", &["keymiss k"]);
    db.events_of(classes, "SET k v GET", &["keymiss k", "new k"]);
    db.events_of(classes, "INCRBYFLOAT f 1", &["new f"]);
    db.events_of(classes, "SETRANGE r 1 x", &["new r"]);
    db.events_of(classes, "APPEND a x", &["new a"]).events_of(classes, "INCR i", &["new i"]);
}

#[test]
fn a_write_keeps_or_removes_the_ttl() {
    let deadline = |line: &str| {
        let mut db = Db::new();
        db.check("SET k 1 PXAT 5000", "OK").run(line);
        db.invariants();
        let key = db.keyspace().hasher().key(b"k");
        let words = [crate::run::exec::prepare(1, &key)];
        let keys = crate::keyspace::Keys::lock(
            db.keyspace(),
            db.env(),
            crate::keyspace::DbIndex::FIRST,
            &words,
        );
        keys.unwrap().inspect(&key).and_then(|entry| entry.deadline())
    };
    for line in
        ["SET k 2 KEEPTTL", "INCR k", "INCRBYFLOAT k 1", "APPEND k 1", "SETRANGE k 1 x", "GETEX k"]
    {
        assert_eq!(deadline(line), Some(UnixMs(5000)), "{line}");
    }
    for line in ["SET k 2", "SET k 2 XX GET", "GETSET k 2", "MSET k 2", "GETEX k PERSIST"] {
        assert_eq!(deadline(line), None, "{line}");
    }
    assert_eq!(deadline("SET k 2 EX 9"), Some(UnixMs(10_000)));
    assert_eq!(deadline("GETEX k PX 1"), Some(UnixMs(1001)));
}

#[test]
fn the_encoding_shows_how_a_string_was_created() {
    use crate::types::Encoding::{EmbStr, Int, Raw};
    let forty_five = "SET k 123456789012345678901234567890123456789012345";
    for (lines, want) in [
        (&["SET k 12"][..], Int),
        (&["SET k 012"], EmbStr),
        (&["SET k \"\""], EmbStr),
        (&[&forty_five[..forty_five.len() - 1]], EmbStr),
        (&[forty_five], Raw),
        (&["APPEND k 12"], Int),
        (&["APPEND k 12", "APPEND k 3"], Raw),
        (&["APPEND k \"\""], EmbStr),
        (&["SETRANGE k 0 12"], Raw),
        (&["SETRANGE k 0 12", "INCR k"], Int),
        (&["SET k 123", "SETRANGE k 1 9"], Raw),
        (&["GETSET k 12"], Int),
        (&["INCRBYFLOAT k 5"], EmbStr),
        (&["SET k 5", "INCRBYFLOAT k 1"], EmbStr),
        (&["INCRBYFLOAT k 1e49"], Raw),
        (&["DECR k"], Int),
    ] {
        let mut db = Db::new();
        for line in lines {
            db.run(line);
        }
        let key = db.keyspace().hasher().key(b"k");
        let words = [crate::run::exec::prepare(1, &key)];
        let db_index = crate::keyspace::DbIndex::FIRST;
        let keys = crate::keyspace::Keys::lock(db.keyspace(), db.env(), db_index, &words).unwrap();
        assert_eq!(keys.inspect(&key).unwrap().encoding(), want, "{lines:?}");
    }
}

#[test]
fn large_strings_move_out_of_the_entry_unchanged() {
    let mut db = Db::new();
    let large = vec![b'x'; 100_000];
    db.run_args(&[&b"SET"[..], b"k", &large]);
    db.check("STRLEN k", "(integer) 100000").check("APPEND k y", "(integer) 100001");
    db.check("GETRANGE k 99999 -1", "\"xy\"").check("SETRANGE k 0 ab", "(integer) 100001");
    db.check("GETRANGE k 0 2", "\"abx\"").check("SETRANGE grown 65535 z", "(integer) 65536");
    db.check("APPEND grown z", "(integer) 65537").check("GETRANGE grown -3 -1", "\"\\x00zz\"");
    let wire = db.wire(&["GET", "k"]);
    assert_eq!(wire.len(), "$100001\r\n".len() + 100_001 + "\r\n".len());
    db.check("SET k small", "OK").check("GET k", "\"small\"");
    db.invariants();
}
