//! Replies and events are those of Redis 7.0.15, encodings those of 7.2.

use crate::testing::Db;

const DIGEST_OF_NUMBERS: &str = "2a462a3f51a1db89738ebbeef0c47ce1bbc85246";
const DIGEST_OF_WORDS: &str = "dd99329063ca0f1f28df2ac68d94b82fd95501c6";

/// A database whose sets change their encoding early.
fn small() -> Db {
    let mut db = Db::new();
    let limits = &mut db.settings().limits;
    limits.set_max_intset_entries = 4;
    limits.set_max_listpack_entries = 3;
    limits.set_max_listpack_value = 5;
    db
}

fn sorted(db: &mut Db, line: &str) -> String {
    let reply = db.run(line);
    let mut members: Vec<&str> = reply
        .lines()
        .map(|line| line.split_once(") ").map_or(line, |(_, member)| member))
        .collect();
    members.sort_unstable();
    members.join(" ")
}

#[test]
fn members_are_added_counted_and_removed() {
    let mut db = Db::new();
    db.check("SADD s a b a", "(integer) 2")
        .check("SADD s a", "(integer) 0")
        .check("SCARD s", "(integer) 2")
        .check("SISMEMBER s a", "(integer) 1")
        .check("SISMEMBER s z", "(integer) 0")
        .check("SMISMEMBER s a z b", "1) (integer) 1\n2) (integer) 0\n3) (integer) 1")
        .check("SMISMEMBER none a", "1) (integer) 0")
        .check("SMEMBERS none", "(empty array)")
        .check("SREM s a z", "(integer) 1")
        .check("SREM s b", "(integer) 1")
        .check("EXISTS s", "(integer) 0")
        .check("SREM s b", "(integer) 0")
        .check("SET str x", "OK");
    for line in ["SADD str a", "SREM str a", "SCARD str", "SMEMBERS str", "SISMEMBER str a"] {
        db.check(line, "(error) WRONGTYPE Operation against a key holding the wrong kind of value");
    }
}

#[test]
fn a_set_is_encoded_as_a_set_in_resp3() {
    let mut db = Db::new();
    db.run("SADD s a");
    let wire = |db: &mut Db, words: &[&str]| String::from_utf8(db.resp3().wire(words)).unwrap();
    assert_eq!(wire(&mut db, &["SMEMBERS", "s"]), "~1\r\n$1\r\na\r\n");
    assert_eq!(wire(&mut db, &["SMEMBERS", "none"]), "~0\r\n");
    assert_eq!(wire(&mut db, &["SINTER", "s", "s"]), "~1\r\n$1\r\na\r\n");
    assert_eq!(wire(&mut db, &["SRANDMEMBER", "s", "2"]), "*1\r\n$1\r\na\r\n");
    assert_eq!(wire(&mut db, &["SMISMEMBER", "s", "a"]), "*1\r\n:1\r\n");
    assert_eq!(wire(&mut db, &["SSCAN", "s", "0"]), "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n");
    assert_eq!(wire(&mut db, &["SPOP", "none"]), "_\r\n");
    assert_eq!(wire(&mut db, &["SPOP", "s", "0"]), "~0\r\n");
    assert_eq!(wire(&mut db, &["SPOP", "s", "5"]), "~1\r\n$1\r\na\r\n");
}

#[test]
fn the_encoding_follows_the_members() {
    for (lines, encoding) in [
        ("SADD s 1 2 3 4", "intset"),
        ("SADD s 1 2 3 4 5", "hashtable"),
        ("SADD s 1 2 3 4|SADD s 5", "hashtable"),
        // The number of members in the request counts, not the number of new ones.
        ("SADD s 1 1 1 1 1", "hashtable"),
        ("SADD s 1|SADD s 1 1 1 1 1", "hashtable"),
        ("SADD s 1 a", "listpack"),
        ("SADD s 1 2|SADD s a", "listpack"),
        ("SADD s 1 2 3|SADD s a", "hashtable"),
        ("SADD s 100000|SADD s a", "hashtable"),
        ("SADD s 1|SADD s abcdef", "hashtable"),
        ("SADD s a b c", "listpack"),
        ("SADD s a b c d", "hashtable"),
        ("SADD s a b c|SADD s d", "hashtable"),
        ("SADD s a b c|SADD s a", "listpack"),
        ("SADD s abcde", "listpack"),
        ("SADD s abcdef", "hashtable"),
        // A set does not return to an earlier encoding on its own.
        ("SADD s a b c d|SREM s b c d", "hashtable"),
        ("SADD s 1 a|SREM s a", "listpack"),
        ("SADD t a 1|SMOVE t s a", "listpack"),
        ("SADD t a 1|SMOVE t s 1", "intset"),
    ] {
        let mut db = small();
        lines.split('|').for_each(|line| {
            db.run(line);
        });
        assert_eq!(db.run("OBJECT ENCODING s"), format!("\"{encoding}\""), "{lines}");
        db.invariants();
    }
}

#[test]
fn results_get_the_smallest_encoding_again() {
    for (line, encoding) in [
        ("SINTERSTORE d words words few", "listpack"),
        ("SINTERSTORE d numbers mixed", "intset"),
        ("SINTERSTORE d mixed mixed", "hashtable"),
        ("SUNIONSTORE d few", "listpack"),
        ("SUNIONSTORE d few numbers", "hashtable"),
        ("SUNIONSTORE d words few", "hashtable"),
        ("SDIFFSTORE d mixed words", "intset"),
        ("SDIFFSTORE d words few", "listpack"),
    ] {
        let mut db = small();
        db.run("SADD words a b c d e f");
        db.run("SADD numbers 1 2 3 4 5");
        db.run("SADD mixed a b 1 2 3");
        db.run("SADD few a b c d");
        db.run("SREM few d");
        db.run(line);
        assert_eq!(db.run("OBJECT ENCODING d"), format!("\"{encoding}\""), "{line}");
    }
}

#[test]
fn a_member_is_moved_between_sets() {
    let mut db = Db::new();
    db.check("SADD s a b", "(integer) 2").check("SET str x", "OK");
    db.events("SMOVE s t a", &["srem s", "sadd t"]);
    db.events("SMOVE s t b", &["srem s", "del s", "sadd t"]);
    db.run("SADD s a");
    db.events("SMOVE s t a", &["srem s", "del s"]);
    db.effects("SMOVE t t a", &[]).effects("SMOVE t s a", &["SMOVE t s a"]);
    db.check("SMOVE t t b", "(integer) 1")
        .check("SMOVE t t z", "(integer) 0")
        .check("SMOVE none str a", "(integer) 0");
    let wrong = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    db.check("SMOVE t str z", wrong).check("SMOVE str t z", wrong).check("SMOVE str str z", wrong);
    for (line, changes) in [("SMOVE t u b", 2), ("SADD t b", 1), ("SMOVE t u b", 1)] {
        assert_eq!(db.run_counting(line).1, changes, "{line}");
    }
}

#[test]
fn popping_is_propagated_as_what_was_removed() {
    let mut db = Db::new();
    db.run("SADD s a");
    db.effects("SPOP s", &["SREM s a"]).effects("SPOP s", &[]);
    db.run("SADD s a b c");
    db.effects("SPOP s 0", &[]).effects("SPOP s 3", &["DEL s"]);
    db.run("SADD s a b c");
    db.settings().lazy_server_del = true;
    db.effects("SPOP s 9", &["UNLINK s"]);
    db.run("SADD s 1 2 3");
    db.events("SPOP s", &["spop s"]).events("SPOP s 1", &["spop s"]);
    db.events("SPOP s", &["spop s", "del s"]);
    db.run("SADD s 1 2 3");
    db.events("SPOP s 3", &["spop s", "del s"]);
    db.run("SADD s 1 2 3 4");
    assert_eq!(db.run_counting("SPOP s 3").1, 3);
    assert_eq!(db.run_counting("SPOP s 3").1, 1);
    for (line, want) in [
        ("SPOP none", "(nil)"),
        ("SPOP none 2", "(empty array)"),
        ("SPOP s -1", "(error) ERR value is out of range, must be positive"),
        ("SPOP s x", "(error) ERR value is out of range, must be positive"),
        ("SPOP s 1 2", "(error) ERR syntax error"),
    ] {
        db.check(line, want);
    }
}

#[test]
fn few_remaining_members_are_moved_to_a_new_set() {
    let mut db = small();
    db.run("SADD s a b c d e f g h i j k l");
    db.run("SPOP s 10");
    db.check("SCARD s", "(integer) 2").check("OBJECT ENCODING s", "\"listpack\"");
    db.run("SADD t a b c d e f g h i j k l");
    db.run("SPOP t 9");
    db.check("SCARD t", "(integer) 3").check("OBJECT ENCODING t", "\"hashtable\"");
}

#[test]
fn members_are_drawn_with_and_without_repeats() {
    for members in ["1 2 3", "a b c", "a b c d e"] {
        let mut db = small();
        db.run(&format!("SADD s {members}"));
        let all = sorted(&mut db, "SMEMBERS s");
        let len = all.split(' ').count();
        assert_eq!(sorted(&mut db, "SRANDMEMBER s 9223372036854775807"), all);
        assert_eq!(db.run(&format!("SRANDMEMBER s {}", len - 1)).lines().count(), len - 1);
        assert_eq!(db.run("SRANDMEMBER s -20").lines().count(), 20);
        // There are enough draws that the reply is streamed.
        assert_eq!(db.run("SRANDMEMBER s -10000").lines().count(), 10_000);
        assert!(all.contains(&db.run("SRANDMEMBER s")));
    }
    let range = "(error) ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
    Db::new()
        .check("SRANDMEMBER none", "(nil)")
        .check("SRANDMEMBER none 3", "(empty array)")
        .check("SRANDMEMBER none -3", "(empty array)")
        .check("SRANDMEMBER none x", "(error) ERR value is not an integer or out of range")
        .check("SRANDMEMBER none -9223372036854775808", range)
        .check("SRANDMEMBER none 1 2", "(error) ERR syntax error");
}

#[test]
fn sets_are_combined() {
    for limits in [small(), Db::new()] {
        let mut db = limits;
        db.run("SADD a 1 2 3 x y");
        db.run("SADD b 2 3 4 y");
        db.run("SADD c 3 y z");
        assert_eq!(sorted(&mut db, "SINTER a b c"), "\"3\" \"y\"");
        assert_eq!(sorted(&mut db, "SINTER a b none"), "(empty array)");
        assert_eq!(
            sorted(&mut db, "SUNION a b c none"),
            "\"1\" \"2\" \"3\" \"4\" \"x\" \"y\" \"z\""
        );
        assert_eq!(sorted(&mut db, "SDIFF a b none c"), "\"1\" \"x\"");
        assert_eq!(sorted(&mut db, "SDIFF none a"), "(empty array)");
        assert_eq!(sorted(&mut db, "SDIFF a a"), "(empty array)");
        db.check("SINTERCARD 3 a b c", "(integer) 2")
            .check("SINTERCARD 3 a b c LIMIT 1", "(integer) 1")
            .check("SINTERCARD 3 a b c limit 0", "(integer) 2")
            .check("SINTERCARD 2 a none", "(integer) 0");
        db.events("SINTERSTORE d a b c", &["sinterstore d"]);
        assert_eq!(sorted(&mut db, "SMEMBERS d"), "\"3\" \"y\"");
        db.events("SINTERSTORE d a none", &["del d"]).events("SINTERSTORE d a none", &[]);
        db.run("SET d string EX 100");
        db.effects("SUNIONSTORE d a b", &["SUNIONSTORE d a b"]);
        db.check("TTL d", "(integer) -1").check("SCARD d", "(integer) 6");
        assert_eq!(db.run_counting("SDIFFSTORE a a b").1, 1);
        assert_eq!(sorted(&mut db, "SMEMBERS a"), "\"1\" \"x\"");
        db.check("SDIFFSTORE a a a", "(integer) 0").check("EXISTS a", "(integer) 0");
        db.invariants();
    }
}

#[test]
fn a_wrong_type_among_the_sets_is_an_error_even_if_another_is_missing() {
    let mut db = Db::new();
    db.run("SET str x");
    for line in [
        "SINTER none str",
        "SUNION none str",
        "SDIFF none str",
        "SINTERSTORE d none str",
        "SINTERCARD 2 none str",
    ] {
        db.check(line, "(error) WRONGTYPE Operation against a key holding the wrong kind of value");
    }
    for (line, want) in [
        ("SINTERCARD 0 s", "numkeys should be greater than 0"),
        ("SINTERCARD x s", "numkeys should be greater than 0"),
        ("SINTERCARD 5 s", "Number of keys can't be greater than number of args"),
        ("SINTERCARD 1 s LIMIT", "syntax error"),
        ("SINTERCARD 1 s t", "syntax error"),
        ("SINTERCARD 1 s LIMIT -1", "LIMIT can't be negative"),
        ("SINTERCARD 1 str LIMIT x", "LIMIT can't be negative"),
    ] {
        db.check(line, &format!("(error) ERR {want}"));
    }
}

#[test]
fn a_set_is_listed_bit_by_bit() {
    let mut db = Db::new();
    db.run("SADD i 1 2 3");
    db.check("SSCAN i 0 COUNT 1", "1) \"0\"\n2) 1) \"1\"\n   2) \"2\"\n   3) \"3\"")
        .check("SSCAN i 5 MATCH 2", "1) \"0\"\n2) 1) \"2\"")
        .check("SSCAN none 0 FOO", "1) \"0\"\n2) (empty array)")
        .check("SSCAN none x", "(error) ERR invalid cursor")
        .check("SSCAN i 0 COUNT 0", "(error) ERR syntax error")
        .check("SSCAN i 0 COUNT x", "(error) ERR value is not an integer or out of range")
        .check("SSCAN i 0 TYPE set", "(error) ERR syntax error");
    (0..1000).for_each(|i| {
        db.run(&format!("SADD big m{i}"));
    });
    let (mut cursor, mut seen) = ("0".to_owned(), std::collections::BTreeSet::new());
    loop {
        let reply = db.run(&format!("SSCAN big {cursor} COUNT 50 MATCH m*"));
        let mut words = reply.split('"').skip(1).step_by(2).map(str::to_owned);
        cursor = words.next().unwrap();
        let step: Vec<String> = words.collect();
        assert!(step.len() < 100, "{} members in one step", step.len());
        seen.extend(step);
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 1000);
}

#[test]
fn a_large_set_is_streamed_completely_and_as_it_was() {
    let mut db = Db::new();
    let members: Vec<String> = (0..10_000).map(|i| format!("member:{i}")).collect();
    members.chunks(100).for_each(|chunk| {
        db.run(&format!("SADD s {}", chunk.join(" ")));
    });
    let reply = db.run("SMEMBERS s");
    let mut seen: Vec<&str> = reply.split('"').skip(1).step_by(2).collect();
    seen.sort_unstable();
    let mut wanted: Vec<&str> = members.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    assert!(seen == wanted);
    assert_eq!(db.run("SPOP s 20000").lines().count(), 10_000);
    db.check("EXISTS s", "(integer) 0");
}

#[test]
fn the_digest_of_a_set_depends_on_its_members_alone() {
    let digest = |lines: &[&str]| {
        let mut db = small();
        lines.iter().for_each(|line| {
            db.run(line);
        });
        let key = db.keyspace().hasher().key(b"s");
        let keys = [crate::run::exec::prepare(1, &key)];
        let selected = crate::keyspace::DbIndex::FIRST;
        let keys = crate::keyspace::Keys::lock(db.keyspace(), db.env(), selected, &keys).unwrap();
        crate::dataset::digest::Digest::of_value(&keys.inspect(&key).unwrap()).to_string()
    };
    // The result of DEBUG DIGEST-VALUE on a real server.
    assert_eq!(digest(&["SADD s 1 2 3"]), DIGEST_OF_NUMBERS);
    assert_eq!(digest(&["SADD s 3 2 1 4 5", "SREM s 4 5"]), DIGEST_OF_NUMBERS);
    assert_eq!(digest(&["SADD s a b"]), DIGEST_OF_WORDS);
    assert_eq!(digest(&["SADD s a b abcdef", "SREM s abcdef"]), DIGEST_OF_WORDS);
}
