//! Fields with TTLs, in both encodings that support them. The clock of [`Db`] starts at 1000.

use crate::keyspace::expire::{SweepOutcome, Sweeper};
use crate::testing::Db;

const TABLE: usize = 0;
const LISTPACK: usize = 512;

fn each_encoding(test: impl Fn(&mut Db)) {
    for entries in [LISTPACK, TABLE] {
        let mut db = Db::new();
        db.settings().limits.hash_max_listpack_entries = entries;
        db.run("HSET h a 1 b 2 c 3");
        test(&mut db);
        db.invariants();
    }
}

#[test]
fn no_command_sees_an_expired_field() {
    each_encoding(|db| {
        db.check("HPEXPIRE h 500 FIELDS 2 a none", "1) (integer) 1\n2) (integer) -2");
        db.at(1499).check("HGET h a", "\"1\"").check("HLEN h", "(integer) 3");
        db.at(1500).check("HLEN h", "(integer) 2").check("HGET h a", "(nil)");
        db.check("HEXISTS h a", "(integer) 0").check("HSTRLEN h a", "(integer) 0");
        db.check("HTTL h FIELDS 1 a", "1) (integer) -2");
        db.check("HSETNX h a 9", "(integer) 1").check("HTTL h FIELDS 1 a", "1) (integer) -1");
    });
}

#[test]
fn reading_ttls_rounds_up_and_reports_missing_fields() {
    each_encoding(|db| {
        db.check("HPEXPIREAT h 3001 FIELDS 1 a", "1) (integer) 1");
        db.check("HPEXPIRETIME h FIELDS 2 a b", "1) (integer) 3001\n2) (integer) -1");
        db.check("HEXPIRETIME h FIELDS 1 a", "1) (integer) 4");
        db.check("HPTTL h FIELDS 2 a z", "1) (integer) 2001\n2) (integer) -2");
        db.check("HTTL h FIELDS 1 a", "1) (integer) 3");
        db.check("HTTL none FIELDS 2 a b", "1) (integer) -2\n2) (integer) -2");
        db.check("HPERSIST h FIELDS 3 a b z", "1) (integer) 1\n2) (integer) -1\n3) (integer) -2");
        db.at(9000).check("HGET h a", "\"1\"");
    });
}

#[test]
fn conditions_compare_with_the_present_ttl() {
    each_encoding(|db| {
        db.check("HEXPIRE h 10 XX FIELDS 1 a", "1) (integer) 0");
        db.check("HEXPIRE h 10 GT FIELDS 1 a", "1) (integer) 0");
        db.check("HEXPIRE h 10 NX FIELDS 1 a", "1) (integer) 1");
        db.check("HEXPIRE h 20 NX FIELDS 1 a", "1) (integer) 0");
        db.check("HEXPIRE h 20 LT FIELDS 2 a b", "1) (integer) 0\n2) (integer) 1");
        db.check("HEXPIRE h 20 GT FIELDS 1 a", "1) (integer) 1");
        db.check("HEXPIRE h 15 xx FIELDS 1 a", "1) (integer) 1");
        db.check("HTTL h FIELDS 2 a b", "1) (integer) 15\n2) (integer) 20");
    });
}

#[test]
fn a_ttl_in_the_past_removes_the_field() {
    each_encoding(|db| {
        db.events("HPEXPIREAT h 1000 FIELDS 1 a", &["hdel h"]);
        db.effects("HEXPIRE h 0 FIELDS 1 b", &["HDEL h b"]);
        db.check("HLEN h", "(integer) 1");
        db.events("HEXPIRE h 0 FIELDS 2 c z", &["hdel h", "del h"]);
        db.check("EXISTS h", "(integer) 0");
    });
}

#[test]
fn writing_a_field_drops_its_ttl_and_counting_keeps_it() {
    each_encoding(|db| {
        db.check("HEXPIRE h 10 FIELDS 2 a b", "1) (integer) 1\n2) (integer) 1");
        db.check("HINCRBY h a 5", "(integer) 6").check("HTTL h FIELDS 1 a", "1) (integer) 10");
        db.check("HINCRBYFLOAT h a 0.5", "\"6.5\"").check("HTTL h FIELDS 1 a", "1) (integer) 10");
        db.check("HSET h a 7", "(integer) 0").check("HTTL h FIELDS 1 a", "1) (integer) -1");
        db.check("HTTL h FIELDS 1 b", "1) (integer) 10");
    });
}

#[test]
fn effects_are_absolute_and_name_the_fields_that_changed() {
    each_encoding(|db| {
        let want = &["HPEXPIREAT h 11000 FIELDS 2 a b"];
        db.effects("HEXPIRE h 10 FIELDS 3 a z b", want);
        db.events("HEXPIRE h 10 FIELDS 1 a", &["hexpire h"]);
        db.events("HEXPIRE h 10 FIELDS 1 z", &[]).effects("HEXPIRE h 10 FIELDS 1 z", &[]);
        db.events("HPERSIST h FIELDS 1 a", &["hpersist h"]);
        db.effects("HPERSIST h FIELDS 1 b", &["HPERSIST h FIELDS 1 b"]);
    });
}

#[test]
fn expired_fields_are_published_and_propagated_before_the_command_that_finds_them() {
    each_encoding(|db| {
        db.run("HPEXPIRE h 10 FIELDS 2 a b");
        db.at(2000).events("HGET h c", &["hexpired h"]);
        db.run("HPEXPIRE h 10 FIELDS 1 c");
        db.at(3000).events("HGET h c", &["hexpired h", "del h"]);
        db.run("HSET h a 1 b 2");
        db.run("HPEXPIRE h 10 FIELDS 1 a");
        db.at(4000).effects("HSET h c 1", &["HDEL h a", "HSET h c 1"]);
    });
}

fn sweep(db: &Db) {
    let mut sweeper = Sweeper::new(0, 1);
    while sweeper.cycle(db.keyspace(), db.env(), || true) != SweepOutcome::All {}
}

#[test]
fn the_expiry_cycle_finds_fields_that_no_command_accesses() {
    each_encoding(|db| {
        for i in 0..50 {
            db.run(&format!("HSET h{i} a 1 b 2"));
            db.run(&format!("HPEXPIRE h{i} {} FIELDS 1 a", 100 + i));
        }
        db.run("HPEXPIRE h 5000 FIELDS 1 a");
        db.run("SET key value PX 9000");
        db.at(1100 + 25);
        sweep(db);
        db.invariants();
        db.at(3000);
        sweep(db);
        db.invariants();
        db.check("HLEN h", "(integer) 3").check("DBSIZE", "(integer) 52");
        db.check("HLEN h49", "(integer) 1").check("PERSIST key", "(integer) 1");
        db.run("HPEXPIRE h1 10 FIELDS 1 b");
        db.at(6001);
        sweep(db);
        db.invariants();
        db.check("DBSIZE", "(integer) 51").check("HLEN h", "(integer) 2");
    });
}

#[test]
fn a_hash_with_very_many_expired_fields_is_swept_in_steps() {
    let mut db = Db::new();
    for i in 0..200 {
        let pairs: String = (0..100).map(|j| format!(" f{i}:{j} v")).collect();
        db.run(&format!("HSETEX h PX 10 FIELDS 100{pairs}"));
    }
    db.check("HLEN h", "(integer) 20000").run("HSET h stays v");
    db.at(2000);
    let mut sweeper = Sweeper::new(0, 1);
    let mut cycles = 0;
    while sweeper.cycle(db.keyspace(), db.env(), || false) != SweepOutcome::All {
        cycles += 1;
        db.invariants();
    }
    assert!(cycles > 5, "{cycles} steps");
    db.check("HGETALL h", "1) \"stays\"\n2) \"v\"").invariants();
}

#[test]
fn field_ttls_move_with_their_hash() {
    each_encoding(|db| {
        db.run("HPEXPIRE h 500 FIELDS 1 a");
        db.check("COPY h copy", "(integer) 1").check("RENAME h renamed", "OK");
        db.check("MOVE renamed 1", "(integer) 1").invariants();
        db.check("SWAPDB 1 2", "OK").invariants();
        db.at(1500).check("HLEN copy", "(integer) 2");
        db.select(2);
        sweep(db);
        db.invariants();
        db.check("HGET renamed a", "(nil)").check("HLEN renamed", "(integer) 2");
        db.check("FLUSHALL", "OK");
    });
}

#[test]
fn encodings_are_those_of_redis() {
    let mut db = Db::new();
    db.settings().limits.hash_max_listpack_entries = 4;
    db.run("HSET h a 1 b 2 c 3");
    db.check("OBJECT ENCODING h", "\"listpack\"");
    db.run("HEXPIRE h 10 FIELDS 1 z");
    db.check("HEXPIRE h 10 FIELDS 1 a", "1) (integer) 1");
    db.check("OBJECT ENCODING h", "\"listpackex\"").check("HGET h b", "\"2\"");
    db.run("HPERSIST h FIELDS 1 a");
    db.check("OBJECT ENCODING h", "\"listpackex\"");
    db.run("HEXPIRE h 10 FIELDS 1 a");
    db.run("HSET h d 4");
    db.check("OBJECT ENCODING h", "\"listpackex\"").run("HSET h e 5");
    db.check("OBJECT ENCODING h", "\"hashtable\"");
    db.check("HTTL h FIELDS 2 a b", "1) (integer) 10\n2) (integer) -1").invariants();
}

#[test]
fn wrong_arguments_get_the_errors_of_redis() {
    let mut db = Db::new();
    db.run("HSET h a 1");
    db.run("SET s 1");
    let number = "(error) ERR Parameter `numFields` should be greater than 0";
    let place = "(error) ERR Mandatory argument FIELDS is missing or not at the right position";
    let count = "(error) ERR The `numfields` parameter must match the number of arguments";
    let positive = "(error) ERR Number of fields must be a positive integer";
    let wrong_type = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    db.check("HEXPIRE h 10 FIELDS 0 a", number).check("HEXPIRE h 10 FIELDS x a", number);
    db.check("HEXPIRE h 10 FOO 1 a", place).check("HEXPIRE h 10 FIELDS 2 a", count);
    db.check("HEXPIRE h x FIELDS 1 a", "(error) ERR value is not an integer or out of range");
    db.check("HEXPIRE h -1 FIELDS 1 a", "(error) ERR invalid expire time, must be >= 0");
    let far = "(error) ERR invalid expire time in 'hpexpireat' command";
    db.check("HPEXPIREAT h 70368744177664 FIELDS 1 a", far);
    db.check("HPEXPIREAT h 70368744177663 FIELDS 1 a", "1) (integer) 1");
    db.check("HEXPIRE s x FIELDS 1 a", wrong_type).check("HTTL s FIELDS 1 a", wrong_type);
    db.check("HTTL h FIELDS 0 a", positive).check("HPERSIST h FIELDS 2 a", count);
    db.check("HGETDEL h FOO 1 a", place).check("HGETDEL s FIELDS 1 a", wrong_type);
    let fields = "(error) ERR invalid number of fields";
    db.check("HGETEX h FIELDS 0 a", fields).check("HSETEX h FIELDS x a 1", fields);
    let arity = "(error) ERR wrong number of arguments for 'hsetex' command";
    db.check("HSETEX h FIELDS 2 a 1", arity).check("HSETEX h FIELDS 1 a 1 b", arity);
    db.check("HSETEX h NX FIELDS 1 a 1", "(error) ERR unknown argument: NX");
    let one = "(error) ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified";
    db.check("HGETEX h EX 1 PERSIST FIELDS 1 a", one);
    let one = "(error) ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
    db.check("HSETEX h EX 1 PX 1 FIELDS 1 a 1", one);
    let one = "(error) ERR Only one of FXX or FNX arguments can be specified";
    db.check("HSETEX h FNX FXX FIELDS 1 a 1", one);
}

#[test]
fn hgetex_reads_and_changes_ttls() {
    each_encoding(|db| {
        let want = "1) \"1\"\n2) (nil)";
        db.check("HGETEX h FIELDS 2 a z", want).check("HTTL h FIELDS 1 a", "1) (integer) -1");
        db.effects("HGETEX h EX 10 FIELDS 2 a z", &["HPEXPIREAT h 11000 FIELDS 1 a"]);
        db.check("HTTL h FIELDS 1 a", "1) (integer) 10");
        db.events("HGETEX h PERSIST FIELDS 2 a b", &["hpersist h"]);
        db.events("HGETEX h PXAT 5 FIELDS 1 a", &["hdel h"]);
        db.check("HGETEX none FIELDS 1 a", "1) (nil)").check("HLEN h", "(integer) 2");
    });
}

#[test]
fn hsetex_sets_all_or_nothing() {
    each_encoding(|db| {
        db.check("HSETEX h FNX FIELDS 2 z 1 a 1", "(integer) 0").check("HLEN h", "(integer) 3");
        db.check("HSETEX h FXX FIELDS 2 z 1 a 1", "(integer) 0").check("HLEN h", "(integer) 3");
        db.events("HSETEX h EX 10 FIELDS 2 z 1 a 1", &["hset h", "hexpire h"]);
        db.effects("HSETEX h FXX PX 20 FIELDS 1 a 2", &["HSETEX h PXAT 1020 FIELDS 1 a 2"]);
        db.check("HSETEX h KEEPTTL FIELDS 1 z 5", "(integer) 1");
        db.check("HPTTL h FIELDS 2 a z", "1) (integer) 20\n2) (integer) 10000");
        db.check("HSETEX h FIELDS 1 z 5", "(integer) 1");
        db.check("HTTL h FIELDS 1 z", "1) (integer) -1");
        db.effects("HSETEX new EXAT 1 FIELDS 1 a 2", &["HDEL new a"]);
        db.check("EXISTS new", "(integer) 0");
    });
}

#[test]
fn hgetdel_reads_for_the_last_time() {
    each_encoding(|db| {
        db.effects("HGETDEL h FIELDS 2 a z", &["HDEL h a"]);
        db.check("HGETDEL h FIELDS 2 b z", "1) \"2\"\n2) (nil)");
        db.events("HGETDEL h FIELDS 1 c", &["hdel h", "del h"]);
        db.check("HGETDEL h FIELDS 1 c", "1) (nil)").check("EXISTS h", "(integer) 0");
    });
}
