//! Expected replies, events and effects are those of Redis 7.0.15.

use crate::env::effect::EventClass;
use crate::env::{Dialect, EvictionPolicy};
use crate::keyspace::UnixMs;
use crate::testing::Db;

const SAME: &str = "(error) ERR source and destination objects are the same";
const NO_DB: &str = "(error) ERR DB index is out of range";
const NO_INTEGER: &str = "(error) ERR value is not an integer or out of range";
const NO_INT: &str =
    "(error) ERR value is out of range, value must between -2147483648 and 2147483647";
const SYNTAX: &str = "(error) ERR syntax error";

/// All classes selected by `notify-keyspace-events KEAmn`.
fn all_events() -> EventClass {
    EventClass::all()
}

/// A database with these keys. The value of each key is its own name.
fn with_keys(names: &[&str]) -> Db {
    let mut db = Db::new();
    for name in names {
        db.check(&format!("SET {name} {name}"), "OK");
    }
    db
}

fn dirty(db: &mut Db, line: &str) -> u64 {
    db.run_counting(line).1
}

#[test]
fn del_and_unlink_count_what_they_removed() {
    let mut db = with_keys(&["a", "b", "c"]);
    db.check("DEL a b nokey a", "(integer) 2");
    db.check("UNLINK nokey", "(integer) 0");
    db.check("UNLINK c", "(integer) 1");
    db.check("DBSIZE", "(integer) 0");
    db.invariants();
}

#[test]
fn del_is_propagated_as_sent_if_it_removed_something() {
    let mut db = with_keys(&["a", "b"]);
    db.effects("DEL nokey", &[]);
    db.effects("unlink a nokey", &["unlink a nokey"]);
    db.events("DEL b nokey", &["del b"]);
}

#[test]
fn exists_and_touch_count_each_mention() {
    let mut db = with_keys(&["a"]);
    db.check("EXISTS a a nokey", "(integer) 2");
    db.check("TOUCH a a nokey", "(integer) 2");
    db.events_of(all_events(), "EXISTS nokey a", &["keymiss nokey"]);
    db.events_of(all_events(), "TOUCH nokey a", &["keymiss nokey"]);
    db.check("EXISTS", "(error) ERR wrong number of arguments for 'exists' command");
}

#[test]
fn exists_leaves_the_access_clock_alone_and_touch_moves_it() {
    let mut db = with_keys(&["a"]);
    db.at(11_000).check("EXISTS a", "(integer) 1");
    db.check("TYPE a", "string");
    db.check("TTL a", "(integer) -1");
    db.check("OBJECT IDLETIME a", "(integer) 10");
    db.env().touch.set(false);
    db.check("TOUCH a", "(integer) 1");
    db.check("OBJECT IDLETIME a", "(integer) 0");
    assert!(!db.env().touch.get(), "TOUCH leaves CLIENT NO-TOUCH as it was");
}

#[test]
fn type_names_the_type() {
    let mut db = with_keys(&["a"]);
    db.check("TYPE a", "string");
    db.check("TYPE nokey", "none");
    db.events_of(all_events(), "TYPE nokey", &["keymiss nokey"]);
}

#[test]
fn ttl_is_rounded_to_the_nearest_second() {
    let mut db = with_keys(&["k", "eternal"]);
    for (left_ms, seconds) in [(1, 0), (499, 0), (500, 1), (1499, 1), (1500, 2), (10_000, 10)] {
        db.check(&format!("PEXPIRE k {left_ms}"), "(integer) 1");
        db.check("TTL k", &format!("(integer) {seconds}"));
        db.check("PTTL k", &format!("(integer) {left_ms}"));
        db.check("PEXPIRETIME k", &format!("(integer) {}", 1000 + left_ms));
    }
    db.check("PEXPIREAT k 1499", "(integer) 1").check("EXPIRETIME k", "(integer) 1");
    db.check("PEXPIREAT k 1500", "(integer) 1").check("EXPIRETIME k", "(integer) 2");
    for command in ["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"] {
        db.check(&format!("{command} nokey"), "(integer) -2");
        db.check(&format!("{command} eternal"), "(integer) -1");
    }
}

#[test]
fn expiry_times_reach_to_the_end_of_the_number_range() {
    let mut db = with_keys(&["d"]);
    db.check("EXPIRE d 9223372036854775807", "(error) ERR invalid expire time in 'expire' command");
    db.check("EXPIRE d 9223372036854775", "(error) ERR invalid expire time in 'expire' command");
    db.check(
        "EXPIRE d -9223372036854775808",
        "(error) ERR invalid expire time in 'expire' command",
    );
    db.check(
        "PEXPIRE d 9223372036854775807",
        "(error) ERR invalid expire time in 'pexpire' command",
    );
    db.check(
        "EXPIREAT d 9223372036854776",
        "(error) ERR invalid expire time in 'expireat' command",
    );
    db.check(
        "EXPIRE nokey 9223372036854775807",
        "(error) ERR invalid expire time in 'expire' command",
    );
    db.check("PEXPIREAT d 9223372036854775807", "(integer) 1");
    db.check("PEXPIRETIME d", "(integer) 9223372036854775807");
    db.check("EXPIRETIME d", "(integer) 9223372036854776");
    db.check("EXPIREAT d 9223372036854775", "(integer) 1");
    db.check("EXPIRETIME d", "(integer) 9223372036854775");
    db.check("EXPIRE d -9223372036854775 XX GT", "(integer) 0");
    db.check("PEXPIRE d -9223372036854775808", "(integer) 1");
    db.check("EXISTS d", "(integer) 0");
    db.invariants();
}

#[test]
fn expire_checks_options_then_the_number_then_the_key() {
    let mut db = with_keys(&["d"]);
    let both = "(error) ERR NX and XX, GT or LT options at the same time are not compatible";
    for options in ["NX XX", "NX GT", "lt nx", "GT LT NX"] {
        db.check(&format!("EXPIRE d 100 {options}"), both);
    }
    let gt_lt = "(error) ERR GT and LT options at the same time are not compatible";
    db.check("EXPIRE d abc GT LT", gt_lt);
    db.check("EXPIRE d abc foo", "(error) ERR Unsupported option foo");
    db.check("EXPIRE d 100 NX foo", "(error) ERR Unsupported option foo");
    db.check(r#"EXPIRE d 10 "a\x00b""#, "(error) ERR Unsupported option a");
    db.check(r#"EXPIRE d 10 "a\r\nb""#, "(error) ERR Unsupported option a  b");
    db.check(r#"EXPIRE d 10 """#, "(error) ERR Unsupported option ");
    db.check("EXPIRE d abc NX", NO_INTEGER);
    db.check("EXPIRE nokey abc", NO_INTEGER);
    db.check("EXPIRE nokey 100", "(integer) 0");
    db.check("EXPIRE d", "(error) ERR wrong number of arguments for 'expire' command");
}

#[test]
fn expire_conditions_treat_no_ttl_as_infinitely_late() {
    let mut db = with_keys(&["d"]);
    for (line, want) in [
        ("EXPIRE d 100 XX", 0),
        ("EXPIRE d 100 GT", 0),
        ("EXPIRE d 0 XX", 0),
        ("EXPIRE d 0 GT", 0),
        ("EXPIRE d 100 NX", 1),
        ("EXPIRE d 100 NX", 0),
        ("EXPIRE d 100 GT", 0),
        ("EXPIRE d 100 LT", 0),
        ("EXPIRE d 200 GT", 1),
        ("EXPIRE d 50 GT", 0),
        ("EXPIRE d 50 LT", 1),
        ("EXPIRE d 60 LT XX", 0),
        ("EXPIRE d 40 LT XX", 1),
        ("EXPIRE d 40 XX XX", 1),
        ("PERSIST d", 1),
        ("PERSIST d", 0),
        ("PERSIST nokey", 0),
        ("EXPIRE d 100 LT", 1),
    ] {
        db.check(line, &format!("(integer) {want}"));
    }
    db.invariants();
}

#[test]
fn expire_is_propagated_with_an_absolute_time() {
    let mut db = with_keys(&["a"]);
    db.effects("expire a 100", &["PEXPIREAT a 101000"]);
    db.effects("EXPIRE a 200 GT", &["PEXPIREAT a 201000"]);
    db.effects("EXPIRE a 100 GT", &[]);
    db.effects("PEXPIRE a 5 XX", &["PEXPIREAT a 1005"]);
    db.effects("EXPIREAT a 99", &["PEXPIREAT a 99000"]);
    db.effects("pexpireat a 98000", &["PEXPIREAT a 98000"]);
    db.effects("persist a", &["persist a"]);
    db.effects("persist a", &[]);
    db.events("EXPIRE a 100", &["expire a"]);
    db.events("PERSIST a", &["persist a"]);
}

#[test]
fn an_expiry_time_in_the_past_deletes_and_publishes_it() {
    let mut db = with_keys(&["a", "b", "c", "d"]);
    db.events("EXPIRE a 0", &["del a"]);
    db.effects("EXPIRE b -1 LT", &["DEL b"]);
    db.settings().lazy_expire = true;
    db.effects("PEXPIREAT c 1000", &["UNLINK c"]);
    db.check("EXPIREAT d 1", "(integer) 1");
    db.check("DBSIZE", "(integer) 0");
    db.invariants();
}

#[test]
fn scan_by_type_spares_expired_keys_of_others_in_valkey() {
    for (dialect, left) in [(Dialect::Redis, "(integer) 0"), (Dialect::Valkey, "(integer) 1")] {
        let mut db = with_keys(&["k"]);
        db.settings().dialect = dialect;
        db.check("PEXPIRE k 10", "(integer) 1");
        db.at(1010).run("SCAN 0 TYPE list COUNT 1000000");
        // The key was not looked up, so it was not removed.
        db.check("DBSIZE", left);
    }
}

#[test]
fn no_command_sees_an_expired_key_and_its_removal_is_propagated() {
    let mut db = with_keys(&["k"]);
    db.check("PEXPIRE k 10", "(integer) 1");
    db.at(1009).check("EXISTS k", "(integer) 1");
    db.at(1010);
    db.effects("EXISTS k", &["DEL k"]);
    db.effects("EXISTS k", &[]);
    db.check("SET k v PX 5", "OK");
    db.at(1015);
    db.events("RENAME k other", &["expired k"]);
    db.invariants();
}

#[test]
fn rename_moves_value_and_ttl() {
    let mut db = with_keys(&["a", "b"]);
    db.check("EXPIRE b 100", "(integer) 1");
    db.check("RENAME a b", "OK");
    db.check("TTL b", "(integer) -1");
    db.check("EXPIRE b 50", "(integer) 1").check("RENAME b c", "OK").check("TTL c", "(integer) 50");
    db.check("RENAME c c", "OK");
    db.check("RENAME nokey nokey", "(error) ERR no such key");
    db.check("RENAME nokey c", "(error) ERR no such key");
    db.check("EXISTS a b", "(integer) 0");
    db.invariants();
}

#[test]
fn renamenx_leaves_a_key_that_exists() {
    let mut db = with_keys(&["a", "b"]);
    db.check("RENAMENX a a", "(integer) 0");
    db.check("RENAMENX a b", "(integer) 0");
    db.check("RENAMENX a c", "(integer) 1");
    db.check("RENAMENX nokey b", "(error) ERR no such key");
    db.check("RENAMENX nokey nokey", "(error) ERR no such key");
}

#[test]
fn rename_is_one_change_with_two_events() {
    let mut db = with_keys(&["a", "b"]);
    let events = ["new b", "rename_from a", "rename_to b"];
    db.events_of(all_events(), "RENAME a b", &events);
    assert_eq!(dirty(&mut db, "RENAME b c"), 1);
    assert_eq!(dirty(&mut db, "RENAME c c"), 0);
    db.effects("rename c d", &["rename c d"]);
    db.effects("rename d d", &[]);
}

#[test]
fn copy_copies_value_and_ttl() {
    let mut db = with_keys(&["d"]);
    db.check("EXPIRE d 100", "(integer) 1");
    db.check("COPY d e", "(integer) 1").check("TTL e", "(integer) 100");
    db.check("PERSIST d", "(integer) 1");
    db.check("COPY d e", "(integer) 0");
    db.check("COPY d e replace", "(integer) 1").check("TTL e", "(integer) -1");
    db.check("COPY nokey x", "(integer) 0");
    db.check("COPY d d DB 1", "(integer) 1").check("COPY d d DB 1", "(integer) 0");
    db.check("COPY d d DB 1 REPLACE REPLACE", "(integer) 1");
    db.check("COPY d x DB 3 DB 2", "(integer) 1");
    db.select(2).check("KEYS *", "1) \"x\"");
    db.select(3).check("KEYS *", "(empty array)");
    db.invariants();
}

#[test]
fn copy_checks_errors_in_the_order_of_redis() {
    let mut db = with_keys(&["d"]);
    for (line, want) in [
        ("COPY d d", SAME),
        ("COPY nokey nokey", SAME),
        ("COPY d d DB 0", SAME),
        ("COPY nokey x DB 99", NO_DB),
        ("COPY nokey x DB -1", NO_DB),
        ("COPY nokey x DB 4294967296", NO_INT),
        ("COPY nokey x DB 99999999999999999999", NO_INTEGER),
        ("COPY nokey x DB abc", NO_INTEGER),
        ("COPY d x DB", SYNTAX),
        ("COPY d x DB 1 foo", SYNTAX),
        ("COPY d x foo DB 99", SYNTAX),
        ("COPY d x DB 99 foo", NO_DB),
    ] {
        db.check(line, want);
    }
}

#[test]
fn copy_publishes_an_event_for_the_copy_only() {
    let mut db = with_keys(&["a", "b"]);
    db.events_of(all_events(), "COPY a b REPLACE", &["new b", "copy_to b"]);
    db.events_of(all_events(), "COPY a b DB 1", &["[1] new b", "[1] copy_to b"]);
    db.events_of(all_events(), "COPY nokey b", &["keymiss nokey"]);
    db.effects("copy a c DB 1", &["copy a c DB 1"]);
    db.effects("copy a c DB 1", &[]);
    assert_eq!(dirty(&mut db, "COPY a d"), 1);
}

#[test]
fn a_copy_of_a_large_value_is_independent() {
    let mut db = Db::new();
    let large = "x".repeat(100_000);
    db.check(&format!("SET a {large}"), "OK");
    db.check("COPY a b", "(integer) 1");
    db.check("DEL a", "(integer) 1");
    db.check("RENAME b c", "OK");
    db.check("MOVE c 1", "(integer) 1");
    assert_eq!(db.select(1).run("GET c").len(), large.len() + 2);
    db.invariants();
}

#[test]
fn move_takes_a_key_to_another_database() {
    let mut db = with_keys(&["d", "e"]);
    db.check("EXPIRE d 100", "(integer) 1");
    db.check("MOVE d 1", "(integer) 1").check("EXISTS d", "(integer) 0");
    db.check("SET d again", "OK").check("MOVE d 1", "(integer) 0");
    for (line, want) in [
        ("MOVE d 0", SAME),
        ("MOVE nokey 0", SAME),
        ("MOVE nokey 1", "(integer) 0"),
        ("MOVE d 99", NO_DB),
        ("MOVE d -1", NO_DB),
        ("MOVE d abc", NO_INTEGER),
        ("MOVE d 99999999999", NO_INT),
    ] {
        db.check(line, want);
    }
    db.events_of(all_events(), "MOVE e 1", &["[1] new e", "move_from e", "[1] move_to e"]);
    db.effects("move d 2", &["move d 2"]);
    db.select(1).check("TTL d", "(integer) 100");
    assert_eq!(dirty(&mut db, "MOVE d 3"), 1);
    db.invariants();
}

#[test]
fn move_finds_room_where_an_expired_key_was() {
    let mut db = with_keys(&["k"]);
    db.select(1).check("SET k old PX 10", "OK");
    db.at(2000).select(0).check("MOVE k 1", "(integer) 1");
    db.select(1).check("GET k", "\"k\"");
    db.invariants();
}

#[test]
fn keys_lists_what_matches_and_is_not_expired() {
    let mut db = with_keys(&["one", "two", "three"]);
    db.check("KEYS t?o", "1) \"two\"");
    db.check("KEYS one", "1) \"one\"");
    db.check(r"KEYS o\ne", "1) \"one\"");
    db.check("KEYS [", "(empty array)");
    db.check("KEYS nokey", "(empty array)");
    assert_eq!(db.run("KEYS *").lines().count(), 3);
    db.check("PEXPIRE one 5", "(integer) 1");
    db.at(1005).check("KEYS one", "(empty array)");
    db.check("KEYS o*", "(empty array)");
    assert_eq!(db.run("KEYS *").lines().count(), 2);
}

#[test]
fn the_empty_key_is_found_by_a_single_star_only() {
    let mut db = Db::new();
    db.check(r#"SET "" v"#, "OK");
    db.check("KEYS *", "1) \"\"");
    db.check("KEYS **", "(empty array)");
    db.check(r#"KEYS """#, "1) \"\"");
    db.check("SCAN 0 MATCH *", "1) \"0\"\n2) 1) \"\"");
}

#[test]
fn scan_reads_cursors_as_redis_does() {
    let mut db = with_keys(&["a"]);
    let found = "1) \"0\"\n2) 1) \"a\"";
    for cursor in ["0", "+0", "-0", "00", r#""""#, r#""0\x00abc""#, "-18446744073709551616"] {
        let want = if cursor.len() > 15 { "(error) ERR invalid cursor" } else { found };
        db.check(&format!("SCAN {cursor}"), want);
    }
    for cursor in ["a", "0x", "18446744073709551616", r#""\t0""#, r#""0 ""#, "--1", "-", "+"] {
        db.check(&format!("SCAN {cursor}"), "(error) ERR invalid cursor");
    }
    for cursor in ["-1", "18446744073709551615"] {
        db.check(&format!("SCAN {cursor}"), "1) \"0\"\n2) (empty array)");
    }
}

#[test]
fn scan_options_narrow_what_is_found() {
    let mut db = with_keys(&["a"]);
    let (found, nothing) = ("1) \"0\"\n2) 1) \"a\"", "1) \"0\"\n2) (empty array)");
    for (options, want) in [
        ("COUNT", SYNTAX),
        ("COUNT 0", SYNTAX),
        ("COUNT -1", SYNTAX),
        ("COUNT abc", NO_INTEGER),
        ("COUNT 99999999999999999999", NO_INTEGER),
        ("COUNT 10 MATCH", SYNTAX),
        ("MATCH * COUNT 10 foo", SYNTAX),
        ("TYPE", SYNTAX),
        ("COUNT 9223372036854775807", found),
        ("TYPE string", found),
        ("TYPE STRING", found),
        (r#"TYPE "string\x00a""#, found),
        ("TYPE list TYPE string", found),
        ("TYPE string TYPE list", nothing),
        ("TYPE nosuchtype", nothing),
        ("MATCH a*", found),
        ("MATCH a MATCH b", nothing),
    ] {
        db.check(&format!("SCAN 0 {options}"), want);
    }
    db.check("SCAN x foo", "(error) ERR invalid cursor");
}

#[test]
fn scan_removes_the_expired_keys_that_match_the_pattern() {
    let mut db = Db::new();
    db.check("SET a 1 PX 1", "OK").check("SET b 1 PX 1", "OK").check("SET c 1", "OK").at(5000);
    db.check("KEYS *", "1) \"c\"").check("DBSIZE", "(integer) 3");
    db.events_of(all_events(), "SCAN 0 MATCH b* COUNT 100", &["expired b"]);
    db.check("DBSIZE", "(integer) 2");
    db.run("SCAN 0 COUNT 100 TYPE hash");
    db.check("DBSIZE", "(integer) 1").invariants();
}

#[test]
fn scan_visits_all_keys_in_small_steps() {
    let mut db = Db::new();
    for n in 0..500 {
        db.check(&format!("SET {{tag}}{n} v"), "OK");
        db.check(&format!("SET key{n} v PX {}", 1 + n % 2), "OK");
    }
    db.at(1001);
    let mut cursor = "0".to_owned();
    let mut seen = std::collections::BTreeSet::new();
    loop {
        let reply = db.run(&format!("SCAN {cursor} COUNT 3"));
        let words: Vec<&str> = reply.split('"').skip(1).step_by(2).collect();
        for key in &words[1..] {
            assert!(seen.insert((*key).to_owned()), "{key} came twice");
        }
        assert!(words.len() < 100, "COUNT bounds a step: {}", words.len());
        cursor = words[0].to_owned();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 750);
}

#[test]
fn randomkey_never_names_an_expired_key() {
    let mut db = Db::new();
    db.check("RANDOMKEY", "(nil)");
    for n in 0..300 {
        db.check(&format!("SET gone{n} v PX 5"), "OK");
    }
    db.check("SET stays v", "OK").at(2000);
    for _ in 0..5 {
        db.check("RANDOMKEY", "\"stays\"");
    }
    db.check("DEL stays", "(integer) 1");
    db.check("RANDOMKEY", "(nil)");
    db.invariants();
}

#[test]
fn object_shows_encoding_and_reference_count() {
    let mut db = Db::new();
    for (value, encoding, count) in [
        ("5", "int", i32::MAX),
        ("9999", "int", i32::MAX),
        ("10000", "int", 1),
        ("-1", "int", 1),
        ("abc", "embstr", 1),
    ] {
        db.check(&format!("SET k {value}"), "OK");
        db.check("OBJECT ENCODING k", &format!("\"{encoding}\""));
        db.check("OBJECT REFCOUNT k", &format!("(integer) {count}"));
    }
    db.check("SET k 5", "OK");
    db.settings().eviction = EvictionPolicy::AllKeysLru;
    db.check("OBJECT REFCOUNT k", &format!("(integer) {}", i32::MAX));
    db.settings().limited = true;
    db.check("OBJECT REFCOUNT k", "(integer) 1");
    for subcommand in ["ENCODING", "REFCOUNT", "FREQ", "IDLETIME"] {
        db.check(&format!("OBJECT {subcommand} nokey"), "(nil)");
    }
    db.events_of(all_events(), "OBJECT ENCODING nokey", &[]);
    let wrong = "(error) ERR wrong number of arguments for 'object|encoding' command";
    db.check("OBJECT ENCODING", wrong).check("OBJECT ENCODING a b", wrong);
}

#[test]
fn object_knows_either_idle_time_or_frequency() {
    let mut db = with_keys(&["k"]);
    db.at(61_000).check("OBJECT IDLETIME k", "(integer) 60");
    db.check("OBJECT IDLETIME k", "(integer) 60");
    db.check(
        "OBJECT FREQ k",
        "(error) ERR An LFU maxmemory policy is not selected, access frequency not tracked. \
         Please note that when switching between policies at runtime LRU and LFU data will take \
         some time to adjust.",
    );
    db.settings().eviction = EvictionPolicy::VolatileLfu;
    db.check(
        "OBJECT IDLETIME k",
        "(error) ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that \
         when switching between policies at runtime LRU and LFU data will take some time to adjust.",
    );
    db.check("SET k v", "OK").check("OBJECT FREQ k", "(integer) 5");
    db.at(61_000 + 3 * 60_000).check("OBJECT FREQ k", "(integer) 2");
}

#[test]
fn object_help_lists_every_subcommand() {
    let help = Db::new().run("OBJECT HELP");
    for word in ["ENCODING <key>", "FREQ <key>", "IDLETIME <key>", "REFCOUNT <key>", "HELP"] {
        assert!(help.contains(word), "{word}");
    }
}

/// As in Redis during CLIENT PAUSE. A real server shows the same replies and counts.
#[test]
fn expired_keys_are_hidden_but_kept_while_the_dataset_is_frozen() {
    let mut db = Db::new();
    db.check("SET gone 1 PX 100", "OK");
    db.check("SET stays 2", "OK");
    db.check("HSET h f 1 g 2", "(integer) 2");
    db.check("HPEXPIRE h 100 FIELDS 1 f", "1) (integer) 1");
    db.at(1100).env().keeps_expired.set(true);
    db.events_of(all_events(), "GET gone", &["keymiss gone"]);
    db.effects("EXISTS gone stays gone", &[]);
    db.check("EXISTS gone stays gone", "(integer) 1");
    db.check("TTL gone", "(integer) -2");
    db.check("MGET stays gone", "1) \"2\"\n2) (nil)");
    db.check("SORT_RO gone BY gone GET gone", "(empty array)");
    db.effects("HGETALL h", &[]);
    db.check("HGETALL h", "1) \"g\"\n2) \"2\"");
    db.check("HLEN h", "(integer) 1");
    db.check("KEYS *o*", "(empty array)");
    db.check("SCAN 0 COUNT 1000 TYPE string", "1) \"0\"\n2) 1) \"stays\"");
    for _ in 0..50 {
        assert_ne!(db.run("RANDOMKEY"), "\"gone\"");
    }
    db.check("DBSIZE", "(integer) 3");
    db.invariants();
    assert_eq!(db.keyspace().totals().expired, 0);
    // A command that writes removes the expired key permanently, because it may create it again.
    db.effects("SET gone 3 NX", &["DEL gone", "SET gone 3 NX"]);
    db.check("GET gone", "\"3\"");
    db.env().keeps_expired.set(false);
    db.effects("HLEN h", &["HDEL h f"]);
    db.check("DBSIZE", "(integer) 3");
    assert_eq!(db.keyspace().totals().expired, 1);
    db.invariants();
}

/// A real replica shows and keeps the same keys if its primary does not remove expired keys.
#[test]
fn nothing_expires_for_commands_of_the_primary_but_times_count_from_now() {
    let mut db = Db::new();
    db.check("SET due 1 PX 100", "OK").check("HSET h f 1", "(integer) 1");
    db.check("HPEXPIRE h 100 FIELDS 1 f", "1) (integer) 1");
    let applying = |db: &mut Db| db.env().begin_applying(UnixMs(5000));
    db.at(5000);
    applying(&mut db);
    assert!(db.env().is_replay() && db.env().now() == UnixMs(5000));
    db.effects("APPEND due 2", &["APPEND due 2"]);
    db.check("GET due", "\"12\"").check("HGET h f", "\"1\"");
    db.check("KEYS *u*", "1) \"due\"").check("RANDOMKEY", "\"due\"");
    // A relative time counts from now, and an absolute time is not compared with the clock.
    db.check("SET for 1 PX 50", "OK").check("PEXPIRETIME for", "(integer) 5050");
    db.check("SETEX for 2 1", "OK").check("PEXPIRETIME for", "(integer) 7000");
    db.effects("PEXPIREAT for 4000", &["PEXPIREAT for 4000"]);
    db.check("GETEX for PXAT 3000", "\"1\"").check("PEXPIRETIME for", "(integer) 3000");
    db.check("HPEXPIREAT h 3000 FIELDS 1 f", "1) (integer) 1").check("HLEN h", "(integer) 1");
    db.check("XADD s * f 1", "\"5000-0\"");
    db.env().advance(UnixMs(6000));
    db.check("EXISTS due for", "(integer) 2").check("PTTL due", "(integer) 0");
    db.invariants();
    // Commands that do not come from the primary see that the keys have expired.
    db.at(6000).check("EXISTS due for h", "(integer) 0");
    db.invariants();
}
