//! Work that is left to be done elsewhere, by hand.

use super::*;
use crate::testing::Db;

/// Members of the sets, enough for every command to be long.
const MANY: usize = LONG_STEPS_MIN + 100;

/// Two large sets that overlap, two sorted sets, a list of numbers, and huge strings.
fn large() -> Db {
    let mut db = Db::new();
    let words = |first: &str, rest: Box<dyn Iterator<Item = String>>| -> Vec<String> {
        let first = first.split(' ').map(str::to_owned);
        first.chain(rest).collect()
    };
    let names = |from: usize| (from..from + MANY).map(|i| format!("m{i}"));
    db.run_words(&words("SADD a", Box::new(names(0))));
    db.run_words(&words("SADD b", Box::new(names(50))));
    for (key, from) in [("za", 0), ("zb", 50)] {
        let pairs = (from..from + MANY).flat_map(|i| [(i * 7 % 1009).to_string(), format!("m{i}")]);
        db.run_words(&words(&format!("ZADD {key}"), Box::new(pairs)));
    }
    let numbers = (0..MANY).map(|i| (i * 7919 % 10_007).to_string());
    db.run_words(&words("RPUSH l", Box::new(numbers)));
    let far = LONG_STEPS_MIN * BYTES_PER_STEP * 8;
    db.run(&format!("SETBIT bits {far} 1"));
    db.run(&format!("SETBIT bits {} 1", far - 9));
    db.run("SET small abc");
    db.run_words(&["SET", "text1", &"abcdefghij".repeat(900)]);
    db.run_words(&["SET", "text2", &"jxbcyefzhi".repeat(900)]);
    db
}

/// Does the work of a command until it is over.
fn to_the_end(db: &mut Db, line: &str) -> String {
    let mut done = db.begin(line);
    assert!(done.is_err(), "{line} is not long");
    loop {
        match done {
            Ok(reply) => return reply,
            Err(long) => done = db.finish(long),
        }
    }
}

#[test]
fn what_is_computed_elsewhere_is_what_would_be_at_once() {
    let mut db = large();
    for line in [
        "SINTER a b",
        "SINTERCARD 2 a b",
        "SINTERCARD 2 a b LIMIT 7",
        "SUNION a b nothing",
        "SDIFF a b",
        "SDIFF a a",
        "ZUNION 2 za zb WEIGHTS 2 0.5 AGGREGATE MAX WITHSCORES",
        "ZINTER 3 za zb a WITHSCORES",
        "ZDIFF 2 za b",
        "ZINTERCARD 2 za zb LIMIT 3",
        "SORT l",
        "SORT l DESC LIMIT 3 20",
        "SORT a ALPHA",
        "SORT za BY nosort DESC LIMIT 5 10",
        "SORT a",
        "KEYS *",
        "LCS text1 text2 LEN",
        "LCS text1 text2 IDX WITHMATCHLEN MINMATCHLEN 3",
        "LCS text1 text2",
        "BITCOUNT bits",
        "BITCOUNT bits 100 -100",
        "BITPOS bits 1",
        "BITPOS bits 0 -1",
        "DUMP a",
        "DUMP bits",
    ] {
        let at_once = db.run(line);
        if line == "KEYS *" {
            // There are few: it is over at once.
            assert_eq!(db.begin(line).ok(), Some(at_once));
        } else {
            assert_eq!(to_the_end(&mut db, line), at_once, "{line}");
        }
    }
    for line in [
        "SINTERSTORE d a b",
        "SUNIONSTORE d a b",
        "SUNIONSTORE a a b",
        "SDIFFSTORE d a b",
        "ZUNIONSTORE d 2 za zb WEIGHTS 1 3",
        "ZINTERSTORE d 2 za b AGGREGATE MIN",
        "ZDIFFSTORE d 2 za zb",
        "SORT l LIMIT 10 9000 STORE d",
        "SORT a ALPHA STORE d",
        "BITOP NOT d bits",
        "BITOP XOR d bits small nothing",
    ] {
        let (mut here, mut elsewhere) = (large(), large());
        assert_eq!(to_the_end(&mut elsewhere, line), here.run(line), "{line}");
        for key in ["a", "d"] {
            let dump = |db: &mut Db| db.run(&format!("DUMP {key}"));
            assert!(dump(&mut elsewhere) == dump(&mut here), "{line}: another {key}");
        }
        assert_eq!(elsewhere.env().tally.hits.get(), here.env().tally.hits.get(), "{line}");
        elsewhere.invariants();
    }
}

#[test]
fn keys_of_many_are_listed_elsewhere() {
    let mut db = Db::new();
    for i in 0..MANY {
        db.run(&format!("SET key:{i} v"));
    }
    db.run("SET gone v PX 1");
    db.at(2000);
    assert_eq!(to_the_end(&mut db, "KEYS *"), db.run("KEYS *"));
    assert_eq!(to_the_end(&mut db, "KEYS *:77"), "1) \"key:77\"");
    assert_eq!(db.begin("KEYS key:1").ok().as_deref(), Some("1) \"key:1\""));
}

#[test]
fn in_transactions_and_scripts_nothing_is_left_to_be_done() {
    let mut db = large();
    assert_eq!(db.run("SINTERCARD 2 a b"), format!("(integer) {}", MANY - 50));
    assert!(db.env().take_long().is_none());
}

#[test]
fn an_answer_is_that_of_the_moment_of_the_command() {
    let mut db = large();
    let want = db.run("SINTER a b");
    let Err(long) = db.begin("SINTER a b") else { panic!("it is long") };
    db.run("DEL a");
    db.run("SADD b new");
    assert_eq!(db.finish(long).ok(), Some(want));
}

#[test]
fn what_is_stored_is_of_one_moment_although_the_sources_change() {
    let mut db = large();
    let Err(long) = db.begin("SUNIONSTORE d a b") else { panic!("it is long") };
    db.check("SADD a new", "(integer) 1");
    db.check("EXISTS d", "(integer) 0");
    let Err(again) = db.finish(long) else { panic!("the sources have changed") };
    // Now it insists: who would write to a source waits, reading goes on.
    db.check("SADD a newer", "(error) ERR internal: slot frozen");
    db.check("SISMEMBER a new", "(integer) 1");
    db.check("SET other 1", "OK");
    assert_eq!(db.finish(again).ok(), Some(format!("(integer) {}", MANY + 51)));
    db.check("SISMEMBER d new", "(integer) 1");
    db.check("SADD a newer", "(integer) 1");
    db.invariants();
}

#[test]
fn sources_that_are_taken_away_are_noticed() {
    for (change, want) in [
        ("DEL a", MANY),
        ("FLUSHDB", 0),
        ("RENAME b a", MANY),
        ("SWAPDB 0 1", 0),
        ("SREM a m0 m1", MANY + 48),
        ("COPY a b REPLACE", MANY),
    ] {
        let mut db = large();
        let Err(long) = db.begin("SUNIONSTORE d a b") else { panic!("it is long") };
        db.run(change);
        let reply = match db.finish(long) {
            Ok(reply) => reply,
            Err(again) => db.finish(again).ok().expect("nothing has changed since"),
        };
        assert_eq!(reply, format!("(integer) {want}"), "{change}");
        db.invariants();
    }
    let mut db = large();
    let Err(long) = db.begin("SUNIONSTORE d a b") else { panic!("it is long") };
    db.run("SET a text");
    let want = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(db.finish(long).ok().as_deref(), Some(want));
    db.check("EXISTS d", "(integer) 0");
}

#[test]
fn a_command_that_stores_is_propagated_once_as_it_was_sent() {
    let mut db = large();
    db.env().armed.set(crate::effect::Armed::PROPAGATE);
    let Err(long) = db.begin("SUNIONSTORE d a b") else { panic!("it is long") };
    assert!(db.env().sealed.borrow().is_empty());
    assert!(db.finish(long).is_ok());
    let sealed = std::mem::take(&mut *db.env().sealed.borrow_mut());
    let words: Vec<&[u8]> = sealed[0].effects[0].words.iter().map(Vec::as_slice).collect();
    assert_eq!((sealed.len(), sealed[0].effects.len()), (1, 1));
    assert_eq!(words, [&b"SUNIONSTORE"[..], b"d", b"a", b"b"]);
}

#[test]
fn errors_found_elsewhere_are_answered() {
    let mut db = large();
    let want = "(error) ERR One or more scores can't be converted into double";
    assert_eq!(to_the_end(&mut db, "SORT a"), want);
    assert_eq!(to_the_end(&mut db, "SORT a STORE d"), want);
    db.check("EXISTS d", "(integer) 0");
}
