//! Compares replies, effects and events of bitmap commands with those recorded from a real server.

use crate::testing::Db;

#[test]
fn replies_are_those_of_a_real_server() {
    Db::new().replay(include_str!("tests/transcript.txt")).invariants();
}

#[test]
fn only_changes_publish_events() {
    let mut db = Db::new();
    db.events("SETBIT k 3 0", &["setbit k"]).effects("SETBIT k 3 0", &[]);
    db.events("SETBIT k 3 0", &[]).effects("SETBIT k 3 1", &["SETBIT k 3 1"]);
    db.events("BITFIELD k SET u8 0 1 SET u8 8 2", &["setbit k"]);
    db.events("BITFIELD k SET u8 0 1 SET u8 8 2", &[]);
    assert_eq!(db.run_counting("BITFIELD k SET u8 0 2 SET u8 8 3").1, 2);
    assert_eq!(db.run_counting("BITFIELD k SET u8 100 0 SET u8 0 2").1, 2);
    db.effects("BITFIELD k OVERFLOW FAIL INCRBY u8 0 300", &[]);
    db.events("BITOP OR d k k", &["set d"]).events("BITOP OR d no no", &["del d"]);
    db.events("BITOP OR d no no", &[]);
}

#[test]
fn a_string_that_only_grew_is_propagated() {
    let mut db = Db::new();
    db.effects("BITFIELD k OVERFLOW FAIL SET u2 100 9", &["BITFIELD k OVERFLOW FAIL SET u2 100 9"]);
    db.check("STRLEN k", "(integer) 13");
}

#[test]
fn large_strings_are_changed_in_place() {
    let mut db = Db::new();
    db.check("SETBIT k 8388608 1", "(integer) 0").check("STRLEN k", "(integer) 1048577");
    db.check("SETBIT k 5 1", "(integer) 0").check("BITCOUNT k", "(integer) 2");
    db.check("BITPOS k 1 1", "(integer) 8388608");
    db.check("BITOP NOT n k", "(integer) 1048577").check("BITCOUNT n", "(integer) 8388614");
    db.check("BITOP AND n n k", "(integer) 1048577").check("BITCOUNT n", "(integer) 0");
    db.check("BITFIELD k GET u2 8388607 SET i64 #100 -1", "1) (integer) 1\n2) (integer) 0");
    db.check("SET k 5", "OK").check("BITOP OR n k k", "(integer) 1");
    db.check("GET n", "\"5\"").check("OBJECT ENCODING n", "\"raw\"").invariants();
}
