//! SORT with other keys on another thread returns the same result as an immediate SORT, and a
//! point-in-time result.

use crate::base::steps::LONG_STEPS_MIN;
use crate::env::EvictionPolicy;
use crate::env::effect::Hooks;
use crate::keyspace::{DbIndex, on_slot_wait, postpone_writes_while};
use crate::run::finish::{FinishResult, finish};
use crate::testing::{Db, take_transactions};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

const MANY: usize = LONG_STEPS_MIN + 100;

fn numbers() -> Vec<String> {
    (0..MANY).map(|i| (i * 7919 % 10_007).to_string()).collect()
}

fn run_with(db: &mut Db, first: &[&str], rest: &[String]) {
    let words: Vec<&str> = first.iter().copied().chain(rest.iter().map(String::as_str)).collect();
    db.run_args(&words);
}

/// A list of numbers, and weights `w:` for most of them.
fn weighted() -> Db {
    let mut db = Db::new();
    run_with(&mut db, &["RPUSH", "l"], &numbers());
    let weight = |i: usize| [format!("w:{i}"), (i * 31 % 1009).to_string()];
    let weights: Vec<String> = (0..10_007).filter(|i| i % 10 != 0).flat_map(weight).collect();
    run_with(&mut db, &["MSET"], &weights);
    db
}

/// Like [`weighted`], with a set and a sorted set, texts `t:` and hashes `h:` for most numbers, and
/// other types.
fn large() -> Db {
    let mut db = weighted();
    run_with(&mut db, &["SADD", "s"], &numbers());
    let scored: Vec<String> = numbers().into_iter().flat_map(|n| ["1".to_owned(), n]).collect();
    run_with(&mut db, &["ZADD", "z"], &scored);
    let text = |i: usize| [format!("t:{i}"), format!("text{}", i * 17 % 4001)];
    let texts: Vec<String> = (0..10_007).filter(|i| i % 10 != 0).flat_map(text).collect();
    run_with(&mut db, &["MSET"], &texts);
    for i in (0..10_007).filter(|i| i % 10 != 0) {
        db.run(&format!("HSET h:{i} f {} g value{i}", i * 13 % 997));
    }
    db.run("SET h:5 text");
    db.run("DEL w:6");
    db.run("RPUSH w:6 list");
    db
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

const READING: &[&str] = &[
    "SORT l BY w:*",
    "SORT l BY w:* DESC LIMIT 5 10",
    "SORT_RO s BY w:* GET # GET t:* GET fixed",
    "SORT z BY t:* ALPHA GET w:*",
    "SORT l BY h:*->f GET h:*->g LIMIT 100 50",
    "SORT l GET #",
    "SORT l GET t:* LIMIT 0 3",
    "SORT s BY nosort GET w:*",
    "SORT z BY nosort DESC GET w:* LIMIT 3 -1",
    "SORT l BY none:* GET none:*",
    "SORT l BY {one}:* GET {one}:*",
    "SORT l BY w:* LIMIT 0 0",
    "SORT l BY t:*",
];

#[test]
fn results_gathered_by_another_thread_are_those_of_a_short_sort() {
    let mut db = large();
    let one: Vec<String> =
        (0..10_007).flat_map(|i| [format!("{{one}}:{i}"), (i * 31 % 1009).to_string()]).collect();
    run_with(&mut db, &["MSET"], &one);
    for line in READING {
        let found = |db: &Db| (db.env().tally.hits.get(), db.env().tally.misses.get());
        let at_first = found(&db);
        let at_once = db.run(line);
        let between = found(&db);
        assert!(to_the_end(&mut db, line) == at_once, "{line}");
        let counted = |a: (i64, i64), b: (i64, i64)| (b.0 - a.0, b.1 - a.1);
        assert_eq!(counted(between, found(&db)), counted(at_first, between), "{line}");
    }
    db.resp3();
    let line = "SORT l BY w:* GET none LIMIT 0 1";
    let at_once = db.run(line);
    assert_eq!(to_the_end(&mut db, line), at_once);
    for line in [
        "SORT l BY w:* STORE d",
        "SORT s BY t:* ALPHA GET t:* GET # STORE d",
        "SORT z BY w:* LIMIT 3 4 GET none:* STORE d",
        "SORT l BY h:*->f STORE l",
    ] {
        let (mut short, mut elsewhere) = (large(), large());
        assert_eq!(to_the_end(&mut elsewhere, line), short.run(line), "{line}");
        for key in ["d", "l"] {
            let dump = |db: &mut Db| db.run(&format!("DUMP {key}"));
            assert!(dump(&mut elsewhere) == dump(&mut short), "{line}: another {key}");
        }
        elsewhere.invariants();
    }
}

const FIRST: &str = "SORT l BY w:* LIMIT 0 1";

#[test]
fn the_reply_shows_a_single_point_in_time_although_keys_change() {
    // Each of these changes makes a different element the first one. Before the change, the first
    // element is 1 with weight -1.
    for (change, first) in [
        ("SET w:9 -7", "9"),
        ("INCRBY w:9 -100000", "9"),
        ("RENAME other w:9", "9"),
        ("COPY other w:9 REPLACE", "9"),
        ("MSET w:9 -8 w:11 5", "9"),
        ("GETSET w:9 -9", "9"),
        ("SET w:10 -10", "10"),
        ("DEL w:1", "0"),
        ("UNLINK w:1", "0"),
        ("MOVE w:1 1", "0"),
        ("RENAME w:1 away", "0"),
        ("FLUSHALL", ""),
        ("SWAPDB 0 1", ""),
        ("LTRIM l 3 -1", "1"),
        ("LPOP l", "1"),
    ] {
        let mut db = weighted();
        db.run("SET w:1 -1");
        db.run("SET other -5");
        let Err(long) = db.begin(FIRST) else { panic!("it is long") };
        let computed = long.compute(db.keyspace());
        db.run(change);
        let now = db.run(FIRST);
        let want = if first.is_empty() { "(empty array)" } else { &format!("1) \"{first}\"") };
        assert_eq!(now, want, "{change}");
        let reply = match db.end(computed) {
            Ok(reply) => reply,
            Err(again) => db.finish(again).ok().expect("nothing has changed since"),
        };
        assert_eq!(reply, now, "{change}");
        // Nothing is left that would block writers.
        db.check("MSET w:9 1 w:1 2 other 3", "OK");
        db.invariants();
    }
}

#[test]
fn changes_without_effect_on_the_result_do_not_restart_the_command() {
    let mut db = weighted();
    let want = db.run(FIRST);
    let Err(long) = db.begin(FIRST) else { panic!("it is long") };
    let computed = long.compute(db.keyspace());
    // These commands change slots of keys that were read.
    db.check("INCR {w:1}counter", "(integer) 1");
    db.check("SET w:9 279", "OK");
    assert_eq!(db.end(computed).ok(), Some(want));
}

#[test]
fn from_the_second_attempt_on_writers_wait_and_readers_do_not() {
    let mut db = large();
    let Err(long) = db.begin("SORT l BY w:* LIMIT 0 1 GET t:* STORE d") else { panic!("long") };
    let computed = long.compute(db.keyspace());
    db.run("SET w:9 -7");
    let Err(again) = db.end(computed) else { panic!("another weight") };
    let frozen = "(error) ERR internal: slot frozen";
    for line in ["SET w:9 -8", "DEL w:11", "LPUSH l 1", "SET t:9 other"] {
        // GET reads only the first element.
        let is_read = line != "SET t:9 other";
        assert_eq!(db.run(line) == frozen, is_read, "{line}");
    }
    db.check("GET w:9", "\"-7\"");
    let computed = again.compute(db.keyspace());
    // A transaction does not wait, and makes the attempt fail.
    db.unit(&["SET w:13 -100"], &["OK"], &["SET w:13 -100"]);
    let Err(again) = db.end(computed) else { panic!("another weight") };
    db.check("SET w:13 1", frozen);
    assert_eq!(db.finish(again).ok().as_deref(), Some("(integer) 1"));
    db.check("LRANGE d 0 -1", &format!("1) \"text{}\"", 13 * 17));
    db.check("SET w:13 1", "OK");
    db.check("LPUSH l 1", &format!("(integer) {}", MANY + 1));
    db.invariants();
}

#[test]
fn expired_keys_and_fields_do_not_exist() {
    let mut db = large();
    db.at(1000);
    db.run("SET w:9 -7 PX 500");
    db.run("HSET h:9 f -70");
    db.run("HPEXPIRE h:9 500 FIELDS 1 f");
    let by_field = "SORT l BY h:*->f LIMIT 0 1";
    for line in [FIRST, by_field] {
        assert_eq!(to_the_end(&mut db, line), "1) \"9\"", "{line}");
    }
    db.at(1600);
    for line in [FIRST, by_field] {
        // The expired keys have not been removed yet.
        assert_eq!(to_the_end(&mut db, line), "1) \"0\"", "{line}");
        assert_eq!(db.run(line), "1) \"0\"", "{line}");
    }
    db.run("SET w:9 -7 PX 500");
    let Err(long) = db.begin(FIRST) else { panic!("it is long") };
    let computed = long.compute(db.keyspace());
    db.at(2200).check("EXISTS w:9", "(integer) 0");
    let Err(again) = db.end(computed) else { panic!("a lookup removed the expired key") };
    assert_eq!(db.finish(again).ok().as_deref(), Some("1) \"0\""));
}

#[test]
fn keys_that_keep_changing_are_finally_read_in_one_step() {
    let mut db = weighted();
    let mut done = db.begin("SORT l BY w:* LIMIT 0 1 STORE d");
    for weight in 1.. {
        let Err(long) = done else { break };
        let computed = long.compute(db.keyspace());
        let change = format!("SET w:9 -{weight}");
        db.unit(&[&change], &["OK"], &[&change]);
        done = db.end(computed);
        assert!(weight < 20, "it gives up before");
    }
    assert_eq!(done.ok().as_deref(), Some("(integer) 1"));
    db.check("LRANGE d 0 -1", "1) \"9\"");
    db.check("MSET w:9 1 d 2", "OK");
}

#[test]
fn several_long_commands_at_a_time_are_independent() {
    let mut db = weighted();
    let Err(first) = db.begin(FIRST) else { panic!("it is long") };
    let Err(second) = db.begin(FIRST) else { panic!("it is long") };
    let (first, second) = (first.compute(db.keyspace()), second.compute(db.keyspace()));
    assert!(db.end(first).is_ok());
    db.run("SET w:9 -7");
    let Err(again) = db.end(second) else { panic!("another weight") };
    assert_eq!(db.finish(again).ok().as_deref(), Some("1) \"9\""));
}

#[test]
fn lookups_of_another_thread_update_access_clocks() {
    for (policy, line) in [
        (EvictionPolicy::AllKeysLru, "OBJECT IDLETIME w:9"),
        (EvictionPolicy::AllKeysLfu, "OBJECT FREQ w:9"),
    ] {
        let mut db = weighted();
        db.settings().eviction = policy;
        db.at(0).run("SET w:9 1");
        db.at(90_000);
        let before = db.run(line);
        to_the_end(&mut db, FIRST);
        assert_ne!(db.run(line), before, "{policy:?}");
    }
}

#[test]
fn errors_and_odd_requests_get_the_replies_of_a_short_sort() {
    let mut db = weighted();
    db.run("SET w:9 abc");
    let want = "(error) ERR One or more scores can't be converted into double";
    assert_eq!(to_the_end(&mut db, "SORT l BY w:*"), want);
    assert_eq!(to_the_end(&mut db, "SORT l BY w:* STORE d"), want);
    let Err(long) = db.begin("SORT l BY w:* STORE d") else { panic!("it is long") };
    db.run("SET l text");
    let want = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(db.finish(long).ok().as_deref(), Some(want));
    db.check("EXISTS d", "(integer) 0");
    // The command is propagated in the form in which it was sent.
    let mut db = weighted();
    db.env().set_hooks(Hooks::PROPAGATE, true);
    to_the_end(&mut db, "SORT l BY w:* STORE d");
    let transactions = take_transactions(db.keyspace());
    assert_eq!((transactions.len(), transactions[0][0].1.len()), (1, 6));
}

/// The slots of the keys that were read are held. The list that appeared in the meantime needs one
/// more slot.
#[test]
fn a_command_that_gave_up_its_result_runs_while_writes_are_postponed() {
    let mut db = weighted();
    let Err(long) = db.begin("SORT l BY w:* STORE d") else { panic!("it is long") };
    let computed = long.compute(db.keyspace());
    let hasher = db.keyspace().hasher();
    let slot_of = |i: usize| hasher.key(format!("w:{i}").as_bytes()).slot;
    let mut free = [true; crate::keyspace::SLOTS];
    (0..10_007).for_each(|i| free[slot_of(i).index()] = false);
    let other = (20_000..).find(|i| free[slot_of(*i).index()]).expect("not all slots are used");
    let slot = slot_of(other);
    db.run(&format!("MSET w:{other} -1"));
    db.run("DEL l");
    db.run(&format!("RPUSH l 2 {other}"));
    // Writes are postponed from the second call on. At the first call, the result still exists and
    // would be kept for later.
    let is_later_call = Cell::new(false);
    postpone_writes_while(move || is_later_call.replace(true));
    let (release, held) = mpsc::channel();
    let (ready, is_ready) = mpsc::channel();
    let waits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&waits);
    on_slot_wait(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        // The slot may be free already.
        let _ = release.send(());
    });
    let keyspace = db.keyspace();
    let finished = std::thread::scope(|scope| {
        scope.spawn(move || {
            let guard =
                keyspace.database(DbIndex::FIRST).slot(slot).try_lock().expect("it is free");
            ready.send(()).expect("the test waits for it");
            held.recv().expect("a thread waits for the slot");
            drop(guard);
        });
        is_ready.recv().expect("the slot is held");
        finish(keyspace, db.env(), computed)
    });
    assert!(matches!(finished, FinishResult::Over(_)));
    assert!(waits.load(Ordering::Relaxed) > 0, "nothing was in its way");
    postpone_writes_while(|| false);
    db.check("LRANGE d 0 -1", &format!("1) \"{other}\"\n2) \"2\""));
    db.invariants();
}
