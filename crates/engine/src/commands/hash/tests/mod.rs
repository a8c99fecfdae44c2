//! Compares replies, effects and events of hash commands with those recorded from a real server.
//! Commands that are newer than that server follow the specifications of Redis 7.4 and 8.0.

use crate::testing::Db;

mod deadlines;

#[test]
fn replies_are_those_of_a_real_server() {
    let mut db = Db::new();
    db.replay(include_str!("transcript.txt")).invariants();
}

#[test]
fn changes_are_counted_published_and_propagated_as_in_redis() {
    let mut db = Db::new();
    db.events("HSET h a 1 b 2", &["hset h"]).effects("HSET h a 1 b 2", &["HSET h a 1 b 2"]);
    assert_eq!(db.run_counting("HSET h a 1 b 2 c 3").1, 3);
    db.events("HSETNX h a 1", &[]).effects("HSETNX h a 1", &[]);
    db.events("HSETNX h d 1", &["hset h"]).events("HINCRBY h d 1", &["hincrby h"]);
    db.events("HINCRBYFLOAT h d 1.5", &["hincrbyfloat h"]);
    db.effects("HINCRBYFLOAT h d 1", &["HSET h d 4.5"]);
    db.events("HDEL h a nofield", &["hdel h"]).effects("HDEL h nofield", &[]);
    assert_eq!(db.run_counting("HDEL h b c nofield").1, 2);
    db.events("HDEL h d", &["hdel h", "del h"]).check("EXISTS h", "(integer) 0").invariants();
}

#[test]
fn a_rejected_change_creates_no_key() {
    let mut db = Db::new();
    db.check("HINCRBY h f x", "(error) ERR value is not an integer or out of range");
    db.check("HINCRBYFLOAT h f inf", "(error) ERR value is NaN or Infinity");
    db.check("HSET h f v", "(integer) 1").check("HDEL h f", "(integer) 1");
    db.check("EXISTS h", "(integer) 0");
}

/// A full iteration over a table visits all fields that exist throughout, regardless of changes
/// during it.
#[test]
fn a_scan_shows_the_fields_that_stay_while_the_hash_grows_and_shrinks() {
    let mut db = Db::new();
    db.settings().limits.hash_max_listpack_entries = 8;
    for i in 0..3000 {
        db.run(&format!("HSET h stays:{i} {i}"));
    }
    db.check("OBJECT ENCODING h", "\"hashtable\"");
    let (mut cursor, mut seen) = (String::from("0"), std::collections::HashSet::new());
    let mut round = 0;
    loop {
        let reply = db.run(&format!("HSCAN h {cursor} COUNT 100 MATCH stays:* NOVALUES"));
        let mut words = reply.split('"').skip(1).step_by(2).map(String::from);
        cursor = words.next().expect("a cursor");
        seen.extend(words);
        if cursor == "0" {
            break;
        }
        for i in 0..200 {
            let (new, old) = (round * 200 + i, round.max(2) * 200 - 400 + i);
            db.run(&format!("HSET h new:{new} {i}"));
            db.run(&format!("HDEL h new:{old}"));
        }
        round += 1;
    }
    assert_eq!(seen.len(), 3000);
    db.invariants();
}

#[test]
fn large_hashes_are_shown_completely_from_a_view() {
    let mut db = Db::new();
    for i in 0..20_000 {
        db.run(&format!("HSET h field:{i} {i}"));
    }
    for (command, words) in [("HGETALL h", 40_000), ("HKEYS h", 20_000), ("HVALS h", 20_000)] {
        let reply = db.run(command);
        assert_eq!(reply.lines().count(), words, "{command}");
    }
    let reply = db.resp3().run("HGETALL h");
    assert_eq!(reply.lines().count(), 20_000);
}

#[test]
fn random_fields_come_in_the_shape_of_the_protocol() {
    let mut db = Db::new();
    db.run("HSET h f v");
    db.check("HRANDFIELD h", "\"f\"").check("HRANDFIELD h 5", "1) \"f\"");
    db.check("HRANDFIELD h 5 WITHVALUES", "1) \"f\"\n2) \"v\"");
    db.check("HRANDFIELD h -2 withvalues", "1) \"f\"\n2) \"v\"\n3) \"f\"\n4) \"v\"");
    db.resp3().check("HRANDFIELD h 5 WITHVALUES", "1) 1) \"f\"\n   2) \"v\"");
    assert_eq!(db.run("HRANDFIELD h -10000").lines().count(), 10_000);
    assert_eq!(db.run("HRANDFIELD h -10000 WITHVALUES").lines().count(), 20_000);
}

#[test]
fn random_fields_of_either_encoding_are_distinct_and_all_come_up() {
    for limit in [512, 4] {
        let mut db = Db::new();
        db.settings().limits.hash_max_listpack_entries = limit;
        (0..40).for_each(|i| drop(db.run(&format!("HSET h f{i} v"))));
        let mut all = std::collections::HashSet::new();
        for _ in 0..400 {
            let reply = db.run("HRANDFIELD h 7");
            let fields: std::collections::HashSet<&str> =
                reply.lines().filter_map(|line| line.split('"').nth(1)).collect();
            assert_eq!(fields.len(), 7, "{reply}");
            all.extend(fields.into_iter().map(String::from));
        }
        assert_eq!(all.len(), 40);
    }
}
