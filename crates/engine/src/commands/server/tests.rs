//! Expected replies and effects are those of Redis 7.0.15.

use crate::testing::Db;

#[test]
fn flushdb_empties_one_database_and_flushall_all() {
    let mut db = Db::new();
    for index in [0, 1, 2] {
        db.select(index).check("MSET a 1 b 2", "OK").check("SET c 3 EX 10", "OK");
    }
    db.select(1).check("FLUSHDB", "OK").check("DBSIZE", "(integer) 0");
    db.select(2).check("DBSIZE", "(integer) 3").check("FLUSHALL ASYNC", "OK");
    db.invariants();
    for index in [0, 1, 2] {
        db.select(index).check("DBSIZE", "(integer) 0").check("EXISTS a b c", "(integer) 0");
    }
    db.check("SET a 1 PX 5", "OK").check("FLUSHALL", "OK").check("SET a 1", "OK");
    db.at(5000).check("GET a", "\"1\"");
    db.invariants();
}

#[test]
fn flushing_takes_one_mode_argument() {
    let mut db = Db::new();
    for line in ["FLUSHALL foo", "FLUSHALL ASYNC SYNC", "FLUSHDB foo", "FLUSHDB SYNC x"] {
        db.check(line, "(error) ERR syntax error");
    }
    db.check("FLUSHALL sync", "OK").check("FLUSHDB async", "OK");
}

#[test]
fn flushing_is_propagated_even_if_nothing_was_there() {
    let mut db = Db::new();
    db.effects("flushall", &["flushall"]);
    db.effects("FLUSHDB async", &["FLUSHDB async"]);
    db.effects("GET nokey", &[]);
    db.events("FLUSHDB", &[]);
}

#[test]
fn flushing_counts_a_change_for_each_key() {
    let mut db = Db::new();
    db.check("MSET a 1 b 2 c 3", "OK");
    assert_eq!(db.run_counting("FLUSHDB"), ("OK".to_owned(), 3));
    assert_eq!(db.run_counting("FLUSHALL"), ("OK".to_owned(), 0));
}

#[test]
fn swapdb_exchanges_keys_and_ttls() {
    let mut db = Db::new();
    db.check("MSET a 1 b 2", "OK").check("SET c 3 PX 50", "OK");
    db.effects("swapdb 0 1", &["swapdb 0 1"]);
    db.check("DBSIZE", "(integer) 0").invariants();
    db.select(1).check("DBSIZE", "(integer) 3").check("PTTL c", "(integer) 50");
    db.at(1050).check("GET c", "(nil)");
    db.check("SWAPDB 1 1", "OK").check("DBSIZE", "(integer) 2");
    db.check("SWAPDB 2 3", "OK");
    db.invariants();
}

#[test]
fn swapdb_reports_which_index_is_wrong() {
    let mut db = Db::new();
    for (words, want) in [
        ("a b", "ERR invalid first DB index"),
        ("a 99", "ERR invalid first DB index"),
        ("99999999999 0", "ERR invalid first DB index"),
        ("0 b", "ERR invalid second DB index"),
        ("0 99999999999", "ERR invalid second DB index"),
        ("99 b", "ERR invalid second DB index"),
        ("0 99", "ERR DB index is out of range"),
        ("99 0", "ERR DB index is out of range"),
        ("-1 0", "ERR DB index is out of range"),
        ("0 -1", "ERR DB index is out of range"),
    ] {
        db.check(&format!("SWAPDB {words}"), &format!("(error) {want}"));
    }
}
