//! Work on another thread, executed by hand.

use super::*;
use crate::base::steps::BYTES_PER_STEP;
use crate::env::effect::{EventClass, Hooks};
use crate::testing::{Db, take_transactions};
use brisk_persist::rdb;

/// Members of the sets, enough to make every command long.
const MANY: usize = LONG_STEPS_MIN + 100;

/// Two large sets that overlap, two sorted sets, geo members, a list of numbers, and huge strings.
fn large() -> Db {
    let mut db = Db::new();
    let words = |first: &str, rest: Box<dyn Iterator<Item = String>>| -> Vec<String> {
        let first = first.split(' ').map(str::to_owned);
        first.chain(rest).collect()
    };
    let names = |from: usize| (from..from + MANY).map(|i| format!("m{i}"));
    db.run_args(&words("SADD a", Box::new(names(0))));
    db.run_args(&words("SADD b", Box::new(names(50))));
    for (key, from) in [("za", 0), ("zb", 50)] {
        let pairs = (from..from + MANY).flat_map(|i| [(i * 7 % 1009).to_string(), format!("m{i}")]);
        db.run_args(&words(&format!("ZADD {key}"), Box::new(pairs)));
    }
    // All within 400 km of the center.
    let degrees = |from: usize, i: usize| format!("{}.{:04}", from + i % 4, i % 10_000);
    let place = |i: usize| [degrees(2, i * 7919), degrees(46, i * 31 / 4), format!("p{i}")];
    db.run_args(&words("GEOADD g", Box::new((0..MANY).flat_map(place))));
    let numbers = (0..MANY).map(|i| (i * 7919 % 10_007).to_string());
    db.run_args(&words("RPUSH l", Box::new(numbers)));
    let far = LONG_STEPS_MIN * BYTES_PER_STEP * 8;
    db.run(&format!("SETBIT bits {far} 1"));
    db.run(&format!("SETBIT bits {} 1", far - 9));
    db.run("SET small abc");
    db.run_args(&["SET", "text1", &"abcdefghij".repeat(900)]);
    db.run_args(&["SET", "text2", &"jxbcyefzhi".repeat(900)]);
    db
}

/// The reply of a command with its side effects: effects to propagate and keyspace events.
fn heard(db: &mut Db, act: impl FnOnce(&mut Db) -> String) -> (String, Vec<String>) {
    db.env().set_hooks(Hooks::PROPAGATE | Hooks::NOTIFY, true);
    db.settings().events = EventClass::all() - EventClass::KEY_MISS;
    let reply = act(db);
    db.env().set_hooks(Hooks::all(), false);
    let transactions = take_transactions(db.keyspace());
    let events = std::mem::take(&mut db.env().aftermath.borrow_mut().events);
    db.env().aftermath.borrow_mut().clear();
    let effects = transactions.iter().flatten().map(|(_, words)| format!("{words:?}"));
    let events = events.iter().map(|event| format!("{} {:?}", event.name, event.key));
    (reply, effects.chain(events).collect())
}

/// Runs a command and its work until it ends.
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

/// Replaces `$k` with the payload of key `k`.
fn with_payload(db: &mut Db, line: &str) -> String {
    let Some((before, rest)) = line.split_once('$') else { return line.to_owned() };
    let (key, after) = rest.split_once(' ').unwrap_or((rest, ""));
    format!("{before}{} {after}", db.run(&format!("DUMP {key}")))
}

/// This is also true of large values.
#[test]
fn a_result_that_is_found_early_is_returned_at_once() {
    let mut db = large();
    for (line, reply) in [
        ("SINTERCARD 2 a b LIMIT 7", "(integer) 7"),
        ("SINTERCARD 2 a a LIMIT 4000", "(integer) 4000"),
        ("ZINTERCARD 2 za zb LIMIT 3", "(integer) 3"),
        ("ZINTERCARD 3 za zb a LIMIT 300", "(integer) 300"),
        ("SORT l BY nosort LIMIT 3 2", "1) \"3743\"\n2) \"1655\""),
        ("SORT za BY nosort DESC LIMIT 1 1 GET #", "1) \"m8216\""),
        ("SORT small_list BY nosort LIMIT 0 1", "(empty array)"),
    ] {
        assert_eq!(db.begin(line).ok().as_deref(), Some(reply), "{line}");
    }
}

#[test]
fn replies_of_long_commands_are_those_of_short_ones() {
    let mut db = large();
    for line in [
        "SINTER a b",
        "SINTERCARD 2 a b",
        "SINTERCARD 2 a b LIMIT 9000",
        "SUNION a b nothing",
        "SDIFF a b",
        "SDIFF a a",
        "ZUNION 2 za zb WEIGHTS 2 0.5 AGGREGATE MAX WITHSCORES",
        "ZINTER 3 za zb a WITHSCORES",
        "ZDIFF 2 za b",
        "ZINTERCARD 2 za zb LIMIT 9000",
        "SORT l",
        "SORT l DESC LIMIT 3 20",
        "SORT a ALPHA",
        "SORT za BY nosort DESC",
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
        "LPOS l nothing",
        "LPOS l 5 COUNT 0",
        "LPOS l nothing RANK -1 MAXLEN 10001",
        "LPOS l 7919 RANK -2",
        "GEOSEARCH g FROMLONLAT 4 48 BYRADIUS 300 km",
        "GEOSEARCH g FROMLONLAT 4 48 BYRADIUS 400 km COUNT 10050 ANY",
        "GEOSEARCH g FROMMEMBER p7 BYBOX 300 900 km DESC COUNT 20 WITHCOORD WITHDIST WITHHASH",
        "GEORADIUS g 4 48 500 km ASC",
        "GEORADIUS_RO g 4 48 500 mi WITHDIST COUNT 100",
        "GEORADIUSBYMEMBER g p7 500 km WITHHASH",
        "GEORADIUSBYMEMBER_RO g p7 500 km COUNT 5",
    ] {
        let at_once = db.run(line);
        if line == "KEYS *" {
            // There are few keys, so the reply is immediate.
            assert_eq!(db.begin(line).ok(), Some(at_once));
        } else {
            assert_eq!(to_the_end(&mut db, line), at_once, "{line}");
        }
    }
}

#[test]
fn results_stored_by_long_commands_are_those_of_short_ones() {
    let mut dumped = large();
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
        "ZRANGESTORE d za 0 -1",
        "ZRANGESTORE d za 5 -5 REV",
        "ZRANGESTORE za za (0 +inf BYSCORE LIMIT 20 10050",
        "ZRANGESTORE d za - + BYLEX",
        "GEOSEARCHSTORE d g FROMMEMBER p7 BYRADIUS 300 km",
        "GEOSEARCHSTORE d g FROMLONLAT 4 48 BYBOX 300 300 km COUNT 50 STOREDIST",
        "GEOSEARCHSTORE g g FROMLONLAT 4 48 BYRADIUS 400 km COUNT 10050 ANY",
        // Some of the cells to search are the same.
        "GEOSEARCHSTORE d g FROMLONLAT 4 48 BYRADIUS 20000 km",
        "GEORADIUS g 4 48 300 km STORE d",
        "GEORADIUS g 4 48 300 km STORE a STOREDIST d",
        // The destination that counts is not among the keys that are locked beforehand.
        "GEORADIUS g 4 48 300 km STORE c STORE d",
        "GEORADIUSBYMEMBER g p7 300 km STOREDIST a",
        "RESTORE d 0 $a",
        "RESTORE a 0 $za REPLACE",
        "RESTORE d 5000 $g",
        "RESTORE d 5000 $g ABSTTL IDLETIME 7",
        "RESTORE a 500 $g ABSTTL REPLACE",
        "RESTORE-ASKING d 0 $za",
    ] {
        let (mut short, mut elsewhere) = (large(), large());
        let line = &with_payload(&mut dumped, line);
        let want = heard(&mut short, |db| db.run(line));
        assert!(heard(&mut elsewhere, |db| to_the_end(db, line)) == want, "{line}");
        for key in ["a", "d", "g", "za"] {
            let dump = |db: &mut Db| db.run(&format!("DUMP {key}"));
            assert!(dump(&mut elsewhere) == dump(&mut short), "{line}: another {key}");
        }
        let found = |db: &Db| (db.env().tally.hits.get(), db.env().tally.misses.get());
        assert_eq!(found(&elsewhere), found(&short), "{line}");
        elsewhere.invariants();
    }
}

#[test]
fn keys_of_a_large_database_are_listed_on_another_thread() {
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
fn in_transactions_and_scripts_no_work_is_left_to_another_thread() {
    let mut db = large();
    assert_eq!(db.run("SINTERCARD 2 a b"), format!("(integer) {}", MANY - 50));
    assert!(db.env().take_long().is_none());
}

#[test]
fn a_reply_shows_the_data_at_the_time_of_the_command() {
    let mut db = large();
    let want = db.run("SINTER a b");
    let Err(long) = db.begin("SINTER a b") else { panic!("it is long") };
    db.run("DEL a");
    db.run("SADD b new");
    assert_eq!(db.finish(long).ok(), Some(want));
}

#[test]
fn a_stored_result_shows_a_single_point_in_time_although_the_sources_change() {
    let mut db = large();
    let Err(long) = db.begin("SUNIONSTORE d a b") else { panic!("it is long") };
    db.check("SADD a new", "(integer) 1");
    db.check("EXISTS d", "(integer) 0");
    let Err(again) = db.finish(long) else { panic!("the sources have changed") };
    // From now on writers to a source wait, and readers do not.
    db.check("SADD a newer", "(error) ERR internal: slot frozen");
    db.check("SISMEMBER a new", "(integer) 1");
    db.check("SET other 1", "OK");
    assert_eq!(db.finish(again).ok(), Some(format!("(integer) {}", MANY + 51)));
    db.check("SISMEMBER d new", "(integer) 1");
    db.check("SADD a newer", "(integer) 1");
    db.invariants();
}

#[test]
fn sources_that_are_deleted_or_replaced_are_noticed() {
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
    db.env().set_hooks(Hooks::PROPAGATE, true);
    let Err(long) = db.begin("SUNIONSTORE d a b") else { panic!("it is long") };
    assert!(!db.keyspace().journal().has_untaken());
    assert!(db.finish(long).is_ok());
    let transactions = take_transactions(db.keyspace());
    let words: Vec<&[u8]> = transactions[0][0].1.iter().map(Vec::as_slice).collect();
    assert_eq!((transactions.len(), transactions[0].len()), (1, 1));
    assert_eq!(words, [&b"SUNIONSTORE"[..], b"d", b"a", b"b"]);
}

#[test]
fn errors_of_long_commands_are_returned() {
    let mut db = large();
    let want = "(error) ERR One or more scores can't be converted into double";
    assert_eq!(to_the_end(&mut db, "SORT a"), want);
    assert_eq!(to_the_end(&mut db, "SORT a STORE d"), want);
    db.check("EXISTS d", "(integer) 0");
}

#[test]
fn near_members_are_found_at_once_in_large_sets() {
    let mut db = large();
    for line in [
        "LPOS l 7919",
        "LPOS l 7919 COUNT 1",
        "LPOS l nothing MAXLEN 9999",
        "LPOS l nothing COUNT 0 RANK -1 MAXLEN 100",
        "GEOSEARCH g FROMMEMBER p7 BYRADIUS 1 km",
        "GEOSEARCH g FROMLONLAT 4 48 BYRADIUS 400 km COUNT 5 ANY",
        "GEOSEARCH g FROMLONLAT -100 -48 BYRADIUS 400 km",
        "GEOSEARCHSTORE d g FROMMEMBER p7 BYRADIUS 1 km",
        "ZRANGESTORE d za 0 9998",
        "ZRANGESTORE d za 5 1",
    ] {
        let at_once = db.run(line);
        assert_eq!(db.begin(line).ok(), Some(at_once), "{line}");
    }
}

#[test]
fn a_search_around_a_member_shows_a_single_point_in_time() {
    let mut db = large();
    let line = "GEOSEARCH g FROMMEMBER p7 BYRADIUS 250 km";
    let want = db.run(line);
    let Err(long) = db.begin(line) else { panic!("it is long") };
    db.check("ZREM g p7", "(integer) 1");
    assert_eq!(db.finish(long).ok(), Some(want));

    let mut db = large();
    let line = "GEOSEARCHSTORE d g FROMMEMBER p7 BYRADIUS 250 km";
    let Err(long) = db.begin(line) else { panic!("it is long") };
    db.check("GEOADD g 3.0001 49.0001 p7", "(integer) 0");
    let Err(again) = db.finish(long) else { panic!("the source has changed") };
    let stored = db.finish(again).ok();
    let dump = db.run("DUMP d");
    assert_eq!(stored, Some(db.run(line)));
    assert!(db.run("DUMP d") == dump, "around another place");

    let Err(long) = db.begin(line) else { panic!("it is long") };
    db.check("ZREM g p7", "(integer) 1");
    let want = "(error) ERR could not decode requested zset member";
    assert_eq!(db.finish(long).ok().as_deref(), Some(want));
    assert!(db.run("DUMP d") == dump, "an error changes nothing");
    db.invariants();
}

#[test]
fn a_stored_range_has_members_added_during_the_command() {
    let mut db = large();
    let Err(long) = db.begin("ZRANGESTORE d za 0 -1") else { panic!("it is long") };
    db.check("ZADD za -1 new", "(integer) 1");
    let Err(again) = db.finish(long) else { panic!("the source has changed") };
    assert_eq!(db.finish(again).ok(), Some(format!("(integer) {}", MANY + 1)));
    db.check("ZRANK d new", "(integer) 0");
    let Err(long) = db.begin("ZRANGESTORE d za 0 -1") else { panic!("it is long") };
    db.check("ZREMRANGEBYRANK za 1 -1", &format!("(integer) {MANY}"));
    // The remaining work is not long.
    assert_eq!(db.finish(long).ok().as_deref(), Some("(integer) 1"));
    db.invariants();
}

#[test]
fn a_restore_checks_its_conditions_before_and_after_the_payload() {
    let mut db = large();
    let broken = db.run("DUMP a").replacen("m77", "m78", 1);
    let busy = "(error) BUSYKEY Target key name already exists.";
    for (line, want) in [
        (format!("RESTORE a 0 {broken}"), busy),
        (format!("RESTORE d x {broken}"), "(error) ERR value is not an integer or out of range"),
        (format!("RESTORE d -1 {broken}"), "(error) ERR Invalid TTL value, must be >= 0"),
        (format!("RESTORE d 0 {broken} MORE"), "(error) ERR syntax error"),
    ] {
        assert_eq!(db.begin(&line).ok().as_deref(), Some(want));
    }
    let line = with_payload(&mut db, "RESTORE d 0 $a");
    let Err(long) = db.begin(&line) else { panic!("it is long") };
    db.check("SET d 1", "OK");
    assert_eq!(db.finish(long).ok().as_deref(), Some(busy));
    db.check("GET d", "\"1\"");
    let Err(long) = db.begin(&format!("{line} REPLACE")) else { panic!("it is long") };
    db.check(
        "RPUSH d 1",
        "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
    );
    assert_eq!(db.finish(long).ok().as_deref(), Some("OK"));
    db.check("SCARD d", &format!("(integer) {MANY}"));
    db.invariants();
}

#[test]
fn a_payload_that_is_bad_changes_nothing() {
    let mut db = large();
    let broken = db.run("DUMP a").replacen("m77", "m78", 1);
    let quoted = |bytes: &[u8]| {
        let digits: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        format!("\"{digits}\"")
    };
    let mut garbage = vec![rdb::kind::SET; LONG_STEPS_MIN * 6];
    rdb::dump::finish(&mut garbage, 10);
    for (payload, want) in [
        (broken, "(error) ERR DUMP payload version or checksum are wrong"),
        (quoted(&garbage), "(error) ERR Bad data format"),
    ] {
        for key in ["small", "d"] {
            let line = format!("RESTORE {key} 0 {payload} REPLACE");
            let heard = heard(&mut db, |db| to_the_end(db, &line));
            assert_eq!(heard, (want.to_owned(), Vec::new()));
            assert_eq!(db.run(&line), want);
        }
        db.check("GET small", "\"abc\"");
        db.check("EXISTS d", "(integer) 0");
    }
    db.invariants();
}

#[test]
fn a_restore_takes_effect_when_its_value_is_built() {
    let mut db = large();
    let line = with_payload(&mut db, "RESTORE d 700 $a");
    let Err(long) = db.begin(&line) else { panic!("it is long") };
    db.at(2000);
    assert_eq!(db.finish(long).ok().as_deref(), Some("OK"));
    db.check("PEXPIRETIME d", "(integer) 2700");
    let line = with_payload(&mut db, "RESTORE d 2200 $a ABSTTL REPLACE");
    let Err(long) = db.begin(&line) else { panic!("it is long") };
    db.at(2500);
    // The key that was to expire at 2200 is gone, and so is the key that it was to replace.
    assert_eq!(db.finish(long).ok().as_deref(), Some("OK"));
    db.check("EXISTS d", "(integer) 0");
    db.invariants();
}
