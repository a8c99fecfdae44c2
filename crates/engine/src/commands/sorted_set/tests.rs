//! Expected replies, events and effects are those of Redis 7.0.15, and of 7.2 for WITHSCORE.

use crate::testing::Db;

const SYNTAX: &str = "(error) ERR syntax error";
const NO_FLOAT: &str = "(error) ERR value is not a valid float";

/// A database in which `k` has the members a, b, c and d with the scores 1 to 4, in the compact or
/// the other encoding.
fn with_letters(compact: bool) -> Db {
    let mut db = Db::new();
    if !compact {
        db.settings().limits.zset_max_listpack_entries = 2;
    }
    db.check("ZADD k 1 a 2 b 3 c 4 d", "(integer) 4");
    db.check("OBJECT ENCODING k", if compact { "\"listpack\"" } else { "\"skiplist\"" });
    db
}

fn in_both_encodings(test: impl Fn(&mut Db)) {
    for compact in [true, false] {
        let mut db = with_letters(compact);
        test(&mut db);
        db.invariants();
    }
}

fn list(items: &str) -> String {
    let width = items.split_whitespace().count().to_string().len();
    let items = items.split_whitespace().zip(1..);
    items.map(|(item, i)| format!("{i:width$}) \"{item}\"")).collect::<Vec<_>>().join("\n")
}

#[test]
fn zadd_judges_options_then_scores_then_the_key() {
    let mut db = Db::new();
    db.check("SET s x", "OK");
    let nx_xx = "(error) ERR XX and NX options at the same time are not compatible";
    let gt_lt = "(error) ERR GT, LT, and/or NX options at the same time are not compatible";
    db.check("ZADD s nx xx 1 a", nx_xx);
    db.check("ZADD s gt lt 1 a", gt_lt);
    db.check("ZADD s nx gt 1 a", gt_lt);
    let single = "(error) ERR INCR option supports a single increment-element pair";
    db.check("ZADD s incr 1 a 2 b", single);
    db.check("ZADD s nx xx", SYNTAX);
    db.check("ZADD s 1 a 2", SYNTAX);
    for score in ["nan", "abc", "1e400", "1e-400", "1x"] {
        db.check(&format!("ZADD s {score} a"), NO_FLOAT);
    }
    let wrong = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    db.check("ZADD s 1 a", wrong);
    db.check("ZADD new XX 1 a", "(integer) 0").check("EXISTS new", "(integer) 0");
}

#[test]
fn zadd_changes_what_its_options_allow() {
    in_both_encodings(|db| {
        for (line, want, score) in [
            ("ZADD k NX 9 a", 0, "1"),
            ("ZADD k XX CH 9 a", 1, "9"),
            ("ZADD k GT CH 8 a", 0, "9"),
            ("ZADD k LT CH 8 a", 1, "8"),
            ("ZADD k GT CH 8.5 a", 1, "8.5"),
            ("ZADD k CH 8.5 a", 0, "8.5"),
            ("ZADD k 0x10 a", 0, "16"),
            ("ZADD k 3.1 a", 0, "3.1000000000000001"),
            ("ZADD k -inf a", 0, "-inf"),
        ] {
            db.check(line, &format!("(integer) {want}"));
            db.check("ZSCORE k a", &format!("\"{score}\""));
        }
        db.check("ZADD k INCR inf a", "(error) ERR resulting score is not a number (NaN)");
        db.check("ZADD k NX INCR 1 a", "(nil)");
        db.check("ZINCRBY k 0.5 b", "\"2.5\"");
        db.check("ZINCRBY k 1 new", "\"1\"").check("ZCARD k", "(integer) 5");
    });
}

#[test]
fn changes_are_counted_published_and_propagated() {
    let mut db = with_letters(true);
    for (line, dirty) in [
        ("ZADD k 1 a", 0),
        ("ZADD k CH 2 a 9 z", 2),
        ("ZINCRBY k 0 a", 0),
        ("ZREM k nope z", 1),
        ("ZPOPMIN k 2", 2),
        ("ZRANGESTORE t k 0 0", 1),
        ("ZRANGESTORE t k 5 6", 1),
        ("ZUNIONSTORE t 1 nokey", 0),
        ("ZREMRANGEBYRANK k 0 -1", 2),
    ] {
        assert_eq!(db.run_counting(line).1, dirty, "{line}");
    }
    db.events("ZADD k 1 a 2 b 3 c 4 d", &["zadd k"]);
    db.events("ZADD k INCR 1 a", &["zincr k"]);
    db.events("ZPOPMAX k", &["zpopmax k"]);
    db.events("ZMPOP 2 nokey k MIN COUNT 10", &["zpopmin k", "del k"]);
    db.events("ZADD k 1 a", &["zadd k"]);
    db.events("ZUNIONSTORE t 1 k", &["zunionstore t"]);
    db.events("ZINTERSTORE t 2 k nokey", &["del t"]);
    db.events("ZREMRANGEBYSCORE k 0 9", &["zremrangebyscore k", "del k"]);
    db.effects("zadd k incr 1 a", &["zadd k incr 1 a"]);
    db.effects("ZADD k 1 a", &[]);
}

#[test]
fn ranges_are_the_same_in_both_encodings() {
    in_both_encodings(|db| {
        db.check("ZRANGE k 0 -1", &list("a b c d"));
        db.check("ZRANGE k -2 10", &list("c d"));
        db.check("ZRANGE k 3 1", "(empty array)");
        db.check("ZREVRANGE k 0 1 WITHSCORES", &list("d 4 c 3"));
        db.check("ZRANGE k 0 0 REV", &list("d"));
        db.check("ZRANGEBYSCORE k (1 3", &list("b c"));
        db.check("ZRANGE k +inf 2 BYSCORE REV LIMIT 1 1", &list("c"));
        db.check("ZRANGEBYSCORE k -inf +inf LIMIT 1 -1", &list("b c d"));
        db.check("ZRANGEBYSCORE k -inf +inf LIMIT -1 2", "(empty array)");
        db.check("ZRANGEBYLEX k [b (d", &list("b c"));
        db.check("ZREVRANGEBYLEX k + [c", &list("d c"));
        db.check("ZCOUNT k 2 (4", "(integer) 2").check("ZLEXCOUNT k - +", "(integer) 4");
        db.check("ZRANK k c", "(integer) 2").check("ZREVRANK k c", "(integer) 1");
        db.check("ZRANK k c WITHSCORE", "1) (integer) 2\n2) \"3\"");
        db.check("ZRANK k x", "(nil)");
        db.check("ZMSCORE k a x", "1) \"1\"\n2) (nil)");
        db.check("ZRANGESTORE t k (1 3 BYSCORE", "(integer) 2")
            .check("ZRANGE t 0 -1", &list("b c"));
        db.check("ZREMRANGEBYLEX k [b [c", "(integer) 2").check("ZRANGE k 0 -1", &list("a d"));
    });
    let mut db = with_letters(true);
    db.check("ZRANGE k a b", "(error) ERR value is not an integer or out of range");
    db.check("ZCOUNT k nan 1", "(error) ERR min or max is not a float");
    db.check("ZLEXCOUNT k a b", "(error) ERR min or max not valid string range item");
    db.check("ZRANGE k 0 1 REV REV", SYNTAX);
}

#[test]
fn scores_come_in_pairs_in_resp3() {
    let mut db = with_letters(false);
    db.resp3();
    db.check(
        "ZRANGE k 0 1 WITHSCORES",
        "1) 1) \"a\"\n   2) (double) 1\n2) 1) \"b\"\n   2) (double) 2",
    );
    db.check("ZPOPMIN k", "1) \"a\"\n2) (double) 1");
    db.check("ZPOPMIN k 1", "1) 1) \"b\"\n   2) (double) 2");
    db.check("ZMPOP 1 k MAX", "1) \"k\"\n2) 1) 1) \"d\"\n      2) (double) 4");
    db.check("ZPOPMIN nokey", "(empty array)").check("ZMPOP 1 nokey MIN", "(nil)");
}

#[test]
fn encodings_change_by_number_and_length_of_members() {
    let mut db = Db::new();
    db.settings().limits.zset_max_listpack_entries = 3;
    db.settings().limits.zset_max_listpack_value = 4;
    let encoding = |db: &mut Db, key: &str, want: &str| {
        db.check(&format!("OBJECT ENCODING {key}"), &format!("\"{want}\""));
    };
    db.check("ZADD few 1 a 2 b 3 c", "(integer) 3");
    encoding(&mut db, "few", "listpack");
    db.check("ZADD few 4 d", "(integer) 1");
    encoding(&mut db, "few", "skiplist");
    db.check("ZREM few d c", "(integer) 2");
    encoding(&mut db, "few", "skiplist");
    db.check("ZUNIONSTORE union 1 few", "(integer) 2");
    encoding(&mut db, "union", "listpack");
    db.check("ZADD long 1 abcde", "(integer) 1");
    encoding(&mut db, "long", "skiplist");
    db.check("ZUNIONSTORE union 2 few long", "(integer) 3");
    encoding(&mut db, "union", "skiplist");
}

#[test]
fn algebra_weighs_and_aggregates_sorted_sets_and_plain_ones() {
    let mut db = Db::new();
    db.check("ZADD x 1 a 2 b 3 c", "(integer) 3").check("ZADD y 10 b 20 c 30 d", "(integer) 3");
    db.check("SADD s a c", "(integer) 2");
    db.check("ZUNION 2 x y WITHSCORES", &list("a 1 b 12 c 23 d 30"));
    db.check("ZUNION 2 x y WEIGHTS 2 -1 WITHSCORES", &list("d -30 c -14 b -6 a 2"));
    db.check("ZINTER 2 x y AGGREGATE MAX WITHSCORES", &list("b 10 c 20"));
    db.check("ZINTER 2 x s WITHSCORES", &list("a 2 c 4"));
    db.check("ZDIFF 2 x s WITHSCORES", &list("b 2"));
    db.check("ZINTERCARD 2 x y", "(integer) 2").check("ZINTERCARD 2 x y LIMIT 1", "(integer) 1");
    db.check("ZDIFFSTORE x 1 x", "(integer) 3");
    db.check("ZUNION 0 x", "(error) ERR at least 1 input key is needed for 'zunion' command");
    db.check("ZUNION 1 x WEIGHTS a", "(error) ERR weight value is not a float");
    db.check("ZDIFF 1 x WEIGHTS 1", SYNTAX);
    db.check("ZINTERCARD 1 x LIMIT -1", "(error) ERR LIMIT can't be negative");
}

#[test]
fn members_are_equal_across_encodings() {
    let mut db = Db::new();
    db.check("SADD ints 5 10 9", "(integer) 3").check("SADD strs 5 a 007", "(integer) 3");
    db.check("ZADD z 1 5 2 a 1 9", "(integer) 3");
    db.check("ZUNION 3 ints strs z WITHSCORES", &list("007 1 10 1 9 2 5 3 a 3"));
    db.check("ZUNION 2 ints strs", &list("007 10 9 a 5"));
    db.check("ZINTER 2 ints z WITHSCORES", &list("5 2 9 2"));
    db.check("ZDIFF 2 z strs WITHSCORES", &list("9 1"));
    db.check("ZUNIONSTORE t 3 ints strs z AGGREGATE MIN", "(integer) 5");
    db.check("ZRANGE t 0 -1 WITHSCORES", &list("007 1 10 1 5 1 9 1 a 1"));
    db.check("ZRANGESTORE u t 0 1 REV", "(integer) 2");
    db.check("ZRANGE u 0 -1 WITHSCORES", &list("9 1 a 1")).invariants();
}

#[test]
fn unions_of_many_members_agree_with_a_map() {
    for entries_max in [0, 128, 10_000] {
        let mut db = Db::new();
        db.settings().limits.zset_max_listpack_entries = entries_max;
        let mut sums = std::collections::BTreeMap::new();
        for number in 0..3000u32 {
            let (set, score) = (number % 2, number * 7 % 50);
            // Members of all lengths, including numbers.
            let member = match number % 3 {
                0 => (number % 500).to_string(),
                _ => "m".repeat((number % 11) as usize) + &(number % 400).to_string(),
            };
            db.run(&format!("ZADD in{set} {score} {member}"));
            sums.insert((set, member), score);
        }
        let mut expected = std::collections::BTreeMap::new();
        for ((_, member), score) in sums {
            *expected.entry(member).or_insert(0) += score;
        }
        let mut expected: Vec<_> =
            expected.into_iter().map(|(member, sum)| (sum, member)).collect();
        expected.sort();
        let expected: Vec<_> = expected.iter().map(|(sum, m)| format!("{m} {sum}")).collect();
        db.check("ZUNION 2 in0 in1 WITHSCORES", &list(&expected.join(" ")));
        db.check("ZUNIONSTORE out 2 in0 in1", &format!("(integer) {}", expected.len()));
        db.check("ZRANGE out 0 -1 WITHSCORES", &list(&expected.join(" "))).invariants();
    }
}

#[test]
fn a_whole_scan_sees_every_member_with_its_score() {
    let mut db = Db::new();
    db.check("ZADD k 1e17 big -0 zero", "(integer) 2");
    // A listpack stores integers as integers.
    let small =
        "1) \"0\"\n2) 1) \"zero\"\n   2) \"0\"\n   3) \"big\"\n   4) \"100000000000000000\"";
    db.check("ZSCAN k 0", small);
    db.settings().limits.zset_max_listpack_entries = 0;
    for i in 0..300 {
        db.run(&format!("ZADD many {i} m{i}"));
    }
    let (mut cursor, mut seen) = (String::from("0"), 0);
    loop {
        let reply = db.run(&format!("ZSCAN many {cursor} MATCH m* COUNT 7"));
        seen += reply.matches("\"m").count();
        cursor = reply.lines().next().unwrap().trim_start_matches("1) ").trim_matches('"').into();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen, 300);
    db.check("ZADD pair 1 a 2 b", "(integer) 2");
    db.check("ZSCAN pair 0 NOSCORES", "1) \"0\"\n2) 1) \"a\"\n   2) \"b\"");
    db.check("ZSCAN nokey 0 nonsense", "1) \"0\"\n2) (empty array)");
    db.check("ZSCAN many x", "(error) ERR invalid cursor");
}

#[test]
fn random_members_are_distinct_unless_the_count_is_negative() {
    let mut db = with_letters(false);
    let distinct = db.run("ZRANDMEMBER k 3");
    for letter in ["a", "b", "c", "d"] {
        assert!(distinct.matches(letter).count() <= 1, "{distinct}");
    }
    assert_eq!(distinct.lines().count(), 3);
    assert_eq!(db.run("ZRANDMEMBER k -9").lines().count(), 9);
    assert_eq!(db.run("ZRANDMEMBER k -5000 WITHSCORES").lines().count(), 10_000);
    db.check("ZRANDMEMBER k 10", &list("a b c d"));
    db.check("ZRANDMEMBER nokey", "(nil)").check("ZRANDMEMBER nokey 5", "(empty array)");
    db.check("ZRANDMEMBER k 9223372036854775807 WITHSCORES", "(error) ERR value is out of range");
}

#[test]
fn long_ranges_are_written_from_a_view() {
    let mut db = Db::new();
    let words: Vec<String> = (0..5_000).flat_map(|i| [i.to_string(), format!("m{i}")]).collect();
    let request: Vec<&str> =
        ["ZADD", "k"].into_iter().chain(words.iter().map(String::as_str)).collect();
    assert_eq!(db.run_args(&request), "(integer) 5000");
    let forward = db.run("ZRANGE k 0 -1");
    assert_eq!(forward.lines().count(), 5_000);
    assert_eq!(forward.lines().nth(4_321).unwrap(), "4322) \"m4321\"");
    let backward = db.run("ZREVRANGE k 0 -1 WITHSCORES");
    assert_eq!(backward.lines().count(), 10_000);
    assert_eq!(backward.lines().next().unwrap(), "    1) \"m4999\"");
}
