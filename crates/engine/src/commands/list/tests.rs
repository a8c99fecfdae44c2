//! The list commands. Replies, counts of changes and events are those of a real server. Encodings
//! are those of 7.2, where a list that fits into one node is a listpack.

use crate::testing::Db;

/// Runs each line and checks its reply, its number of changes, and its events.
fn replay(db: &mut Db, steps: &[(&str, &str, u64, &[&str])]) {
    let mut other = Db::new();
    for (line, reply, changes, events) in steps {
        db.events(line, events);
        let (got, counted) = other.run_counting(line);
        assert_eq!(got, *reply, "{line}");
        assert_eq!(counted, *changes, "{line}");
        other.invariants();
    }
}

#[test]
fn changes_are_counted_and_published_as_in_redis() {
    replay(
        &mut Db::new(),
        &[
            ("RPUSH k a b c d e", "(integer) 5", 5, &["rpush k"]),
            ("LPUSH k z", "(integer) 6", 1, &["lpush k"]),
            ("LPUSHX k y", "(integer) 7", 1, &["lpush k"]),
            ("LTRIM k 0 -1", "OK", 0, &["ltrim k"]),
            ("LTRIM k 1 -2", "OK", 2, &["ltrim k"]),
            ("LSET k 0 q", "OK", 1, &["lset k"]),
            ("LSET k 0 q", "OK", 1, &["lset k"]),
            ("LINSERT k BEFORE zzz 1", "(integer) -1", 0, &[]),
            ("LINSERT k BEFORE b 1", "(integer) 6", 1, &["linsert k"]),
            ("LREM k 0 nothing", "(integer) 0", 0, &[]),
            ("LREM k 0 1", "(integer) 1", 1, &["lrem k"]),
            ("LMOVE k k LEFT RIGHT", "\"q\"", 1, &["rpush k", "lpop k"]),
            ("LMOVE k other LEFT LEFT", "\"a\"", 1, &["lpush other", "lpop k"]),
            ("LMOVE other k LEFT LEFT", "\"a\"", 1, &["lpush k", "lpop other", "del other"]),
            ("RPOPLPUSH k k", "\"q\"", 1, &["lpush k", "rpop k"]),
            ("LMPOP 1 k LEFT COUNT 2", "1) \"k\"\n2) 1) \"q\"\n   2) \"a\"", 2, &["lpop k"]),
            ("LPOP k 0", "(empty array)", 0, &[]),
            ("RPOP k 2", "1) \"d\"\n2) \"c\"", 2, &["rpop k"]),
            ("LPOP k 5", "1) \"b\"", 1, &["lpop k", "del k"]),
            ("RPUSH k a", "(integer) 1", 1, &["rpush k"]),
            ("LTRIM k 5 6", "OK", 1, &["ltrim k", "del k"]),
            ("RPUSH k a", "(integer) 1", 1, &["rpush k"]),
            ("LREM k 1 a", "(integer) 1", 1, &["lrem k", "del k"]),
            ("RPUSH k a", "(integer) 1", 1, &["rpush k"]),
            ("LMOVE k k LEFT RIGHT", "\"a\"", 1, &["rpush k", "lpop k"]),
            ("LMOVE k j LEFT RIGHT", "\"a\"", 1, &["rpush j", "lpop k", "del k"]),
            ("LPUSHX k 1", "(integer) 0", 0, &[]),
            ("RPOP j", "\"a\"", 1, &["rpop j", "del j"]),
        ],
    );
}

#[test]
fn numbers_are_read_when_and_as_redis_reads_them() {
    let mut db = Db::new();
    let no_number = "(error) ERR value is not an integer or out of range";
    let not_positive = "(error) ERR value is out of range, must be positive";
    db.check("LPOP none 0", "(nil)")
        .check("LPOP none", "(nil)")
        .check("LPOP none -1", not_positive)
        .check("LPOP none x", not_positive)
        .check("RPOP none 1 2", "(error) ERR wrong number of arguments for 'rpop' command")
        .check("LSET none x y", "(error) ERR no such key")
        .check("LINDEX none x", "(nil)")
        .check("LRANGE none x 1", no_number)
        .check("LTRIM none 0 x", no_number)
        .check("LTRIM none 0 1", "OK")
        .check("LREM none x a", no_number)
        .check("RPUSH k a b a", "(integer) 3")
        .check("LSET k x y", no_number)
        .check("LSET k 3 y", "(error) ERR index out of range")
        .check("LSET k -4 y", "(error) ERR index out of range")
        .check("LINDEX k x", no_number)
        .check("LINDEX k -9223372036854775808", "(nil)")
        .check("LRANGE k -9223372036854775808 9223372036854775807", "1) \"a\"\n2) \"b\"\n3) \"a\"")
        .check("LRANGE k 2 1", "(empty array)")
        .check("LREM k -9223372036854775808 a", "(integer) 2")
        .check("LINSERT k NEAR a b", "(error) ERR syntax error")
        .check("LINSERT none BEFORE a b", "(integer) 0")
        .check("LMOVE k k UP LEFT", "(error) ERR syntax error")
        .check("LMOVE none k LEFT LEFT", "(nil)");
}

#[test]
fn lpos_counts_ranks_from_either_end() {
    let mut db = Db::new();
    db.run("RPUSH k a b c 1 2 3 c c");
    for (line, want) in [
        ("LPOS k c", "(integer) 2"),
        ("LPOS k c RANK 2", "(integer) 6"),
        ("LPOS k c RANK -1", "(integer) 7"),
        ("LPOS k c RANK 4", "(nil)"),
        ("LPOS k c COUNT 2", "1) (integer) 2\n2) (integer) 6"),
        ("LPOS k c RANK -1 COUNT 2", "1) (integer) 7\n2) (integer) 6"),
        ("LPOS k c RANK 2 COUNT 0", "1) (integer) 6\n2) (integer) 7"),
        ("LPOS k c COUNT 0 MAXLEN 3", "1) (integer) 2"),
        ("LPOS k c COUNT 0 MAXLEN 2", "(empty array)"),
        ("LPOS k c MAXLEN 2", "(nil)"),
        (
            "LPOS k c RANK -9223372036854775808",
            "(error) ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        ),
        ("LPOS k x COUNT 1", "(empty array)"),
        ("LPOS none c COUNT 1", "(empty array)"),
        ("LPOS none c", "(nil)"),
        ("LPOS k 2", "(integer) 4"),
        ("LPOS k 02", "(nil)"),
        ("LPOS k c RANK", "(error) ERR syntax error"),
        ("LPOS k c FOO 1", "(error) ERR syntax error"),
        ("LPOS k c COUNT -1", "(error) ERR COUNT can't be negative"),
        ("LPOS k c MAXLEN x", "(error) ERR MAXLEN can't be negative"),
        ("LPOS k c RANK x", "(error) ERR value is not an integer or out of range"),
        (
            "LPOS k c RANK 0",
            "(error) ERR RANK can't be zero: use 1 to start from the first match, 2 from the second \
             ... or use negative to start from the end of the list",
        ),
    ] {
        db.check(line, want);
    }
}

#[test]
fn lmpop_takes_from_the_first_existing_list() {
    let mut db = Db::new();
    for (line, want) in [
        ("LMPOP 0 k LEFT", "(error) ERR numkeys should be greater than 0"),
        ("LMPOP x k LEFT", "(error) ERR numkeys should be greater than 0"),
        ("LMPOP 2 k LEFT", "(error) ERR syntax error"),
        ("LMPOP 5 k n LEFT", "(error) ERR syntax error"),
        ("LMPOP 1 k UP", "(error) ERR syntax error"),
        ("LMPOP 1 k LEFT COUNT 0", "(error) ERR count should be greater than 0"),
        ("LMPOP 1 k LEFT COUNT x", "(error) ERR count should be greater than 0"),
        ("LMPOP 1 k LEFT COUNT", "(error) ERR syntax error"),
        ("LMPOP 1 k LEFT COUNT 1 COUNT 2", "(error) ERR syntax error"),
        ("LMPOP 2 n k RIGHT", "(nil)"),
        ("RPUSH k 1 2 3", "(integer) 3"),
        ("LMPOP 2 n k RIGHT", "1) \"k\"\n2) 1) \"3\""),
    ] {
        db.check(line, want);
    }
    db.effects("LMPOP 2 n k RIGHT COUNT 9", &["RPOP k 2"]);
    db.check("EXISTS k", "(integer) 0");
}

#[test]
fn other_types_are_rejected_before_anything_happens() {
    let mut db = Db::new();
    let wrong = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    db.run("SET s 1");
    db.run("RPUSH k a");
    for line in [
        "LPUSH s 1",
        "RPUSHX s 1",
        "LPOP s",
        "RPOP s 1",
        "LLEN s",
        "LINDEX s 0",
        "LRANGE s 0 1",
        "LINSERT s BEFORE a b",
        "LSET s 0 a",
        "LREM s 0 a",
        "LTRIM s 0 1",
        "LPOS s a",
        "LMOVE k s LEFT LEFT",
        "LMOVE s k LEFT LEFT",
        "LMPOP 1 s LEFT",
        "LMPOP 2 s k LEFT",
    ] {
        db.check(line, wrong);
    }
    db.check("LRANGE k 0 -1", "1) \"a\"").check("GET k", wrong);
}

/// The encoding of `k` after each line.
fn encodings(size: i64, steps: &[(&str, &str)]) {
    let mut db = Db::new();
    db.settings().limits.list_max_listpack_size = size;
    for (line, want) in steps {
        db.run(line);
        assert_eq!(db.run("OBJECT ENCODING k"), format!("\"{want}\""), "{size}: {line}");
        db.invariants();
    }
}

#[test]
fn a_list_is_a_listpack_as_long_as_it_fits_in_one_node() {
    encodings(
        4,
        &[
            ("RPUSH k 1 2 3 4", "listpack"),
            ("RPUSH k 5", "quicklist"),
            ("LPOP k 3", "quicklist"),
            ("LPOP k", "listpack"),
            ("RPUSH k 1 2", "listpack"),
            ("LINSERT k BEFORE 5 0", "listpack"),
            ("LINSERT k BEFORE none x", "quicklist"),
            ("LTRIM k 0 2", "quicklist"),
            ("LTRIM k 0 1", "listpack"),
            ("RPUSH k a a", "listpack"),
            ("LSET k 9 x", "quicklist"),
            ("LREM k 1 a", "quicklist"),
            ("LREM k 1 a", "listpack"),
        ],
    );
    let long = "x".repeat(4080);
    encodings(
        -1,
        &[
            ("RPUSH k a", "listpack"),
            (&format!("RPUSH k {long}"), "listpack"),
            ("RPUSH k abcdef", "quicklist"),
            ("RPOP k", "quicklist"),
            ("RPOP k", "listpack"),
            (&format!("LSET k 0 {long}{long}"), "quicklist"),
            ("LSET k 0 small", "listpack"),
        ],
    );
}

#[test]
fn long_lists_keep_their_elements_through_all_changes() {
    let mut db = Db::new();
    db.settings().limits.list_max_listpack_size = 5;
    db.settings().limits.list_compress_depth = 1;
    for n in 0..100 {
        db.run(&format!("RPUSH k element-{n}"));
    }
    db.check("OBJECT ENCODING k", "\"quicklist\"")
        .check("LLEN k", "(integer) 100")
        .check("LINDEX k 57", "\"element-57\"")
        .check("LINDEX k -1", "\"element-99\"")
        .check("LINSERT k AFTER element-50 new", "(integer) 101")
        .check("LSET k 0 first", "OK")
        .check("LRANGE k 50 52", "1) \"element-50\"\n2) \"new\"\n3) \"element-51\"")
        .check("LPOS k element-99 RANK -1", "(integer) 100")
        .check("COPY k copy", "(integer) 1")
        .check("LTRIM k 99 -1", "OK")
        .check("LRANGE k 0 -1", "1) \"element-98\"\n2) \"element-99\"")
        .check("LLEN copy", "(integer) 101")
        .check("LINDEX copy 0", "\"first\"")
        .check("RPOP copy 3", "1) \"element-99\"\n2) \"element-98\"\n3) \"element-97\"")
        .check("OBJECT ENCODING k", "\"listpack\"");
}

#[test]
fn a_large_range_is_written_whole() {
    let mut db = Db::new();
    for n in 0..20 {
        db.run(&format!("RPUSH k {}", format!("{n:02}").repeat(5_000)));
    }
    let mut want = b"*18\r\n".to_vec();
    for n in 1..19 {
        want.extend_from_slice(
            format!("$10000\r\n{}\r\n", format!("{n:02}").repeat(5_000)).as_bytes(),
        );
    }
    assert_eq!(db.wire(&["LRANGE", "k", "1", "-2"]), want);
}
