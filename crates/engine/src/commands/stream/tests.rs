//! Compares replies, effects and events of stream commands with those recorded from a real server.
//! Where 7.2 differs from the recording (consumers are created when they first read, and one error
//! names the command), the transcript contains the behavior of 7.2.

use crate::testing::Db;

#[test]
fn replies_are_those_of_a_real_server() {
    let mut db = Db::new();
    db.at(1_700_000_000_000);
    db.replay(include_str!("tests/transcript.txt")).invariants();
}

#[test]
fn chosen_ids_and_approximate_trims_are_propagated_exactly() {
    let mut db = Db::new();
    db.effects("XADD s * a 1", &["XADD s 1000-0 a 1"]);
    db.effects("XADD s * a 1", &["XADD s 1000-1 a 1"]);
    db.effects("XADD s 2000-* a 1", &["XADD s 2000-0 a 1"]);
    db.effects("XADD s 2001 a 1", &["XADD s 2001 a 1"]);
    db.effects("XADD s MAXLEN ~ 2 3000-1 a 1", &["XADD s MAXLEN = 5 3000-1 a 1"]);
    db.effects("XADD s MINID ~ 2000 LIMIT 5 * a 1", &["XADD s MINID = 1000-0 LIMIT 5 3000-2 a 1"]);
    db.effects("XADD s MAXLEN 2 3001 a 1", &["XADD s MAXLEN 2 3001 a 1"]);
    db.settings().limits.stream_node_max_entries = 1;
    db.effects("XADD s 3002 a 1", &["XADD s 3002 a 1"]);
    db.effects("XTRIM s MAXLEN ~ 1", &["XTRIM s MAXLEN = 1"]).effects("XTRIM s MAXLEN ~ 1", &[]);
}

/// The propagated command keeps LIMIT in addition to an exact length, in Redis as well as here.
#[test]
fn a_limit_next_to_an_exact_length_is_ignored_in_a_replay() {
    const REFUSED: &str =
        "(error) ERR syntax error, LIMIT cannot be used without the special ~ option";
    let mut db = Db::new();
    db.check("XADD s 1 a 1", "\"1-0\"").check("XADD s 2 a 1", "\"2-0\"");
    for line in ["XADD s MAXLEN = 2 LIMIT 1 3 a 1", "XTRIM s MINID = 3 LIMIT 1"] {
        db.check(line, REFUSED);
    }
    db.env().begin_replay();
    db.check("XADD s MAXLEN = 2 LIMIT 1 3 a 1", "\"3-0\"").check("XLEN s", "(integer) 2");
    db.check("XTRIM s MINID = 3 LIMIT 0", "(integer) 1");
    db.at(2000).check("XTRIM s MINID = 3 LIMIT 1", REFUSED);
}

#[test]
fn group_reads_are_propagated_as_claims_and_the_last_id() {
    let mut db = Db::new();
    db.check("XGROUP CREATE s g 0 MKSTREAM", "OK");
    for id in 1..=3 {
        db.check(&format!("XADD s {id} a 1"), &format!("\"{id}-0\""));
    }
    let created = "XGROUP CREATECONSUMER s g bob";
    let claim = |id: u32, count: u32, last: u32| {
        format!("XCLAIM s g bob 0 {id}-0 TIME 1000 RETRYCOUNT {count} FORCE JUSTID LASTID {last}-0")
    };
    db.effects(
        "XREADGROUP GROUP g bob COUNT 2 STREAMS s >",
        &[created, &claim(1, 1, 1), &claim(2, 1, 2), "XGROUP SETID s g 2-0 ENTRIESREAD 2"],
    );
    let moved = "XGROUP SETID s g 3-0 ENTRIESREAD 3";
    db.effects("XREADGROUP GROUP g bob NOACK STREAMS s >", &[moved]);
    db.effects("XREADGROUP GROUP g bob STREAMS s >", &[]);
    db.effects("XREADGROUP GROUP g bob STREAMS s 0", &[]);
    db.effects("XCLAIM s g bob 0 1", &[&claim(1, 3, 3)]);
    db.effects("XCLAIM s g bob 5000 1", &[]);
    db.effects("XDEL s 2", &["XDEL s 2"]);
    db.effects("XAUTOCLAIM s g bob 0 0", &[&claim(1, 4, 3), &claim(2, 2, 3)]);
    db.effects("XACK s g 1 2 3", &["XACK s g 1 2 3"]).effects("XACK s g 1", &[]);
}

#[test]
fn changes_are_published_as_events() {
    let mut db = Db::new();
    db.events("XADD s 1 a 1", &["xadd s"]).events("XADD s MAXLEN 1 2 a 1", &["xadd s", "xtrim s"]);
    db.events("XADD none NOMKSTREAM 2 a 1", &[]);
    db.events("XTRIM s MAXLEN 0", &["xtrim s"]).events("XTRIM s MAXLEN 0", &[]);
    db.check("EXISTS s", "(integer) 1");
    db.events("XADD s 3 a 1", &["xadd s"]).events("XDEL s 3 4", &["xdel s"]);
    db.events("XSETID s 9", &["xsetid s"]);
    db.events("XGROUP CREATE s g 0", &["xgroup-create s"]);
    db.events("XGROUP SETID s g $", &["xgroup-setid s"]);
    db.events("XGROUP CREATECONSUMER s g c", &["xgroup-createconsumer s"]);
    db.events("XREADGROUP GROUP g bob STREAMS s >", &["xgroup-createconsumer s"]);
    db.events("XCLAIM s g eve 0 1", &["xgroup-createconsumer s"]).events("XACK s g 1", &[]);
    db.events("XGROUP DELCONSUMER s g c", &["xgroup-delconsumer s"]);
    db.events("XGROUP DESTROY s g", &["xgroup-destroy s"]);
    assert_eq!(db.run_counting("XADD s MAXLEN 1 10 a 1").1, 1);
    assert_eq!(db.run_counting("XADD s 11 a 1").1, 1);
    assert_eq!(db.run_counting("XTRIM s MAXLEN 0").1, 2);
}

#[test]
fn blocks_follow_the_settings_and_copies_stay_apart() {
    let mut db = Db::new();
    db.settings().limits.stream_node_max_entries = 3;
    for id in 1..=10 {
        db.run(&format!("XADD s {id} f {id} g x"));
    }
    db.check("COPY s copy", "(integer) 1").check("XTRIM s MAXLEN ~ 5", "(integer) 3");
    db.check("XLEN copy", "(integer) 10").check("XDEL s 8 9", "(integer) 2");
    db.check("XLEN s", "(integer) 5").check(
        "XRANGE copy 9 9",
        "1) 1) \"9-0\"\n   2) 1) \"f\"\n      2) \"9\"\n      3) \"g\"\n      4) \"x\"",
    );
    db.check("XTRIM copy MINID 5", "(integer) 4").check("XLEN copy", "(integer) 6").invariants();
}

#[test]
fn long_ranges_are_whole_in_both_directions() {
    let mut db = Db::new();
    for id in 1..=3000 {
        db.run(&format!("XADD s {id} f {id}"));
    }
    for line in ["XRANGE s - +", "XREVRANGE s + -"] {
        let reply = db.run(line);
        assert_eq!(reply.matches("-0\"").count(), 3000);
        assert!(reply.contains("\n3000) 1) "));
    }
    let reply = db.run("XRANGE s 5 + COUNT 2000");
    assert!(reply.contains("\"2004-0\"") && !reply.contains("\"2005-0\""));
}

/// The `entries-read` and the lag of group `g` of `x` after each line; `-` means unknown. The
/// values are those of the reports redis#13957 and valkey#1951, and of Redis 8 after their fixes.
#[test]
fn a_groups_lag_counts_what_is_left_to_read() {
    const READ: &str = "XREADGROUP GROUP g c COUNT 1 STREAMS x >";
    const READ_ALL: &str = "XREADGROUP GROUP g c STREAMS x >";
    let scripts: [(u32, &[(&str, &str)]); 9] = [
        // Trimmed by XTRIM and by XADD, beyond the last entry read.
        (5, &[(READ, "1 4"), ("XTRIM x MAXLEN 1", "1 1"), (READ, "5 0"), (READ, "5 0")]),
        (5, &[(READ, "1 4"), ("XADD x MAXLEN 1 6 a b", "1 1"), (READ, "6 0")]),
        (5, &[(READ, "1 4"), ("XTRIM x MINID 4", "1 2"), (READ, "4 1"), (READ, "5 0")]),
        (5, &[(READ, "1 4"), ("XTRIM x MAXLEN 0", "1 0"), ("XADD x 9 a b", "1 1"), (READ, "6 0")]),
        // A trim up to the next unread entry loses no counted entry.
        (5, &[(READ, "1 4"), ("XTRIM x MAXLEN 4", "1 4"), (READ, "2 3"), (READ_ALL, "5 0")]),
        // Deleted between the last entry read and the next one.
        (4, &[(READ, "1 3"), (READ, "2 2"), ("XDEL x 3", "2 -"), (READ_ALL, "4 0")]),
        (3, &[(READ, "1 2"), ("XDEL x 2", "1 -"), ("XDEL x 1", "1 1"), (READ_ALL, "3 0")]),
        (5, &[(READ, "1 4"), ("XDEL x 1 2 3 4 5", "1 0"), ("XADD x 9 a b", "1 1"), (READ, "6 0")]),
        (
            5,
            &[
                (READ, "1 4"),
                ("XDEL x 4", "1 -"),
                ("XTRIM x MAXLEN 2", "1 -"),
                (READ, "- -"),
                (READ, "5 0"),
                ("XADD x 6 a b", "5 1"),
                (READ, "6 0"),
            ],
        ),
    ];
    for (entries, lines) in scripts {
        let mut db = Db::new();
        for id in 1..=entries {
            db.run(&format!("XADD x {id} a b"));
        }
        db.run("XGROUP CREATE x g 0");
        for (number, (line, expected)) in lines.iter().enumerate() {
            db.run(line);
            let shown = db.run("XINFO GROUPS x");
            let number_of = |name: &str| {
                let (_, after) = shown.split_once(name).unwrap();
                let value = after.lines().nth(1).unwrap().split_once(") ").unwrap().1;
                value.strip_prefix("(integer) ").unwrap_or("-").to_owned()
            };
            let found = format!("{} {}", number_of("\"entries-read\""), number_of("\"lag\""));
            assert_eq!(&found, expected, "{entries}, {line}, {number}");
        }
        db.invariants();
    }
}
