//! Replies are those of Redis 7.0.15.

use crate::testing::Db;

const NOT_NUMBERS: &str = "(error) ERR One or more scores can't be converted into double";

fn numbers() -> Db {
    let mut db = Db::new();
    db.run("RPUSH l 3 1 2");
    db.run("MSET w_1 30 w_2 20 w_3 10");
    db
}

/// The elements of a reply in one line.
fn words(db: &mut Db, line: &str) -> String {
    let reply = db.run(line);
    let element = |line: &str| line.split_once(") ").map_or(line, |parts| parts.1).replace('"', "");
    reply.lines().map(element).collect::<Vec<_>>().join(" ")
}

#[test]
fn elements_are_sorted_by_number_or_text() {
    let mut db = numbers();
    for (line, want) in [
        ("SORT l", "1 2 3"),
        ("SORT l DESC", "3 2 1"),
        ("SORT l ASC DESC ASC", "1 2 3"),
        ("SORT l LIMIT -5 2", "1 2"),
        ("SORT l LIMIT 1 -5", "2 3"),
        ("SORT l DESC LIMIT 1 5", "2 1"),
        ("SORT_RO l LIMIT 1 1", "2"),
        ("SORT none", "(empty array)"),
        ("SORT l LIMIT 1 0", "(empty array)"),
        ("SORT l LIMIT 5 1", "(empty array)"),
    ] {
        assert_eq!(words(&mut db, line), want, "{line}");
    }
    db.run("SADD s 5 4 10");
    db.run("ZADD z 3 a 2 b 1 c");
    db.run("RPUSH m 1.5 0x10 inf -1e3");
    for (line, want) in [
        ("SORT s", "4 5 10"),
        ("SORT s ALPHA", "10 4 5"),
        ("SORT z ALPHA DESC", "c b a"),
        ("SORT m", "-1e3 1.5 0x10 inf"),
    ] {
        assert_eq!(words(&mut db, line), want, "{line}");
    }
}

#[test]
fn only_numbers_can_be_sorted_by_number() {
    for (element, is_number) in [
        ("\"\"", true),
        ("\" 3\"", true),
        ("\"77\\x00x\"", true),
        ("+1", true),
        ("-inf", true),
        ("1e5", true),
        ("\"3 \"", false),
        ("\"  \"", false),
        ("0x", false),
        ("nan", false),
        ("1e400", false),
        ("1e-400", false),
        ("1e-320", false),
        ("a", false),
    ] {
        let mut db = Db::new();
        db.run(&format!("RPUSH m {element}"));
        assert_eq!(db.run("SORT m") != NOT_NUMBERS, is_number, "{element}");
    }
}

#[test]
fn an_existing_order_can_be_kept() {
    let mut db = numbers();
    db.run("ZADD z 3 a 2 b 1 c");
    for (line, want) in [
        ("SORT l BY nosort", "3 1 2"),
        ("SORT l BY nosort DESC", "2 1 3"),
        ("SORT l BY nosort DESC LIMIT 0 2", "2 1"),
        ("SORT l BY nosort DESC LIMIT 1 5", "1 3"),
        ("SORT l BY nosort LIMIT 1 1", "1"),
        ("SORT l BY w_* BY nosort", "3 1 2"),
        ("SORT l BY nosort BY w_*", "3 1 2"),
        ("SORT z BY nosort", "c b a"),
        ("SORT z BY nosort DESC LIMIT 0 2", "a b"),
        ("SORT z BY nosort LIMIT 1 1", "b"),
        ("SORT z BY nosort LIMIT 3 1", "(empty array)"),
    ] {
        assert_eq!(words(&mut db, line), want, "{line}");
    }
    // A set has no order, so a stored result is sorted.
    db.run("SADD s 5 4 10");
    db.check("SORT s BY nosort DESC STORE d", "(integer) 3");
    assert_eq!(words(&mut db, "LRANGE d 0 -1"), "5 4 10");
    db.check("SORT s BY nosort STORE d", "(integer) 3");
    assert_eq!(words(&mut db, "LRANGE d 0 -1"), "10 4 5");
    assert_eq!(words(&mut db, "SORT s BY nosort LIMIT 1 2").split(' ').count(), 2);
}

#[test]
fn other_keys_provide_the_weights_and_the_values_shown() {
    let mut db = numbers();
    for (line, want) in [
        ("SORT l BY w_*", "3 2 1"),
        ("SORT l BY w_* LIMIT 1 1 GET #", "2"),
        ("SORT l BY w_* GET w_* GET #", "10 3 20 2 30 1"),
        ("SORT l BY none_*", "1 2 3"),
        ("SORT l BY x*y*z", "1 2 3"),
        ("SORT l GET nostar", "(nil) (nil) (nil)"),
        ("SORT l GET # GET #", "1 1 2 2 3 3"),
        ("SORT l BY w_* GET l*", "(nil) (nil) (nil)"),
    ] {
        assert_eq!(words(&mut db, line), want, "{line}");
    }
    db.run("SET w_3 xx");
    db.run("DEL w_2");
    db.check("SORT l BY w_*", NOT_NUMBERS);
    assert_eq!(words(&mut db, "SORT l BY w_* ALPHA"), "2 1 3");
    assert_eq!(words(&mut db, "SORT l BY w_* ALPHA DESC"), "3 1 2");
    db.run("HSET h1 f 9");
    db.run("HSET h2 f 1");
    for (line, want) in [
        ("SORT l BY h*->f GET h*->f", "(nil) 1 9"),
        ("SORT l BY h*->f->g", "1 2 3"),
        ("SORT l BY h* GET h*", "(nil) (nil) (nil)"),
    ] {
        assert_eq!(words(&mut db, line), want, "{line}");
    }
    db.run("SET h3-> y");
    assert_eq!(words(&mut db, "SORT l GET h*->"), "(nil) (nil) y");
}

#[test]
fn a_result_is_stored_as_a_list() {
    let mut db = numbers();
    db.events("SORT l BY w_* STORE d", &["sortstore d"]);
    assert_eq!(words(&mut db, "LRANGE d 0 -1"), "3 2 1");
    assert_eq!(db.run_counting("SORT l GET # GET none_* STORE d").1, 6);
    assert_eq!(words(&mut db, "LRANGE d 0 -1"), "1  2  3 ");
    db.effects("SORT l LIMIT 9 9 STORE d", &["SORT l LIMIT 9 9 STORE d"]);
    db.check("EXISTS d", "(integer) 0").effects("SORT none STORE d", &[]);
    db.events("SORT none STORE w_1", &["del w_1"]);
    db.check("SORT l STORE d STORE l", "(integer) 3").check("EXISTS d", "(integer) 0");
    assert_eq!(words(&mut db, "LRANGE l 0 -1"), "1 2 3");
    db.check("OBJECT ENCODING l", "\"listpack\"");
}

#[test]
fn texts_end_at_a_nul_unless_they_are_stored() {
    let mut db = Db::new();
    db.run("RPUSH m \"a\\x00c\" \"a\\x00b\" a");
    assert_eq!(words(&mut db, "SORT m ALPHA"), "a\\x00c a\\x00b a");
    assert_eq!(words(&mut db, "SORT m ALPHA DESC"), "a\\x00c a\\x00b a");
    db.run("SORT m ALPHA STORE n");
    assert_eq!(words(&mut db, "LRANGE n 0 -1"), "a a\\x00b a\\x00c");
    assert_eq!(words(&mut db, "SORT m ALPHA GET \"#\\x00x\""), "a\\x00c a\\x00b a");
}

#[test]
fn arguments_are_checked_before_the_key() {
    let mut db = numbers();
    for line in [
        "SORT a STORE",
        "SORT a LIMIT 1",
        "SORT a BY",
        "SORT a GET",
        "SORT_RO a STORE d",
        "SORT w_1 FOO",
    ] {
        db.check(line, "(error) ERR syntax error");
    }
    let not_integer = "(error) ERR value is not an integer or out of range";
    db.check("SORT a LIMIT x 1 FOO", not_integer).check("SORT a LIMIT 1 x", not_integer);
    db.check(
        "SORT w_1",
        "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

#[test]
fn a_window_of_many_elements_equals_that_part_of_the_sorted_list() {
    let mut db = Db::new();
    let mut numbers: Vec<u64> = (0..2000).map(|i| i * 7919 % 5000).collect();
    for chunk in numbers.chunks(100) {
        let chunk: Vec<String> = chunk.iter().map(u64::to_string).collect();
        db.run(&format!("RPUSH l {}", chunk.join(" ")));
    }
    numbers.sort_unstable();
    for (start, count) in [(0, 5), (700, 30), (1990, 50), (0, 2000)] {
        let wanted: Vec<String> =
            numbers.iter().skip(start).take(count).map(u64::to_string).collect();
        let line = format!("SORT l LIMIT {start} {count}");
        assert_eq!(words(&mut db, &line), wanted.join(" "), "{line}");
    }
}

#[test]
fn the_key_of_store_is_found_among_the_arguments() {
    for (line, want) in [
        ("SORT a", vec![1]),
        ("SORT a BY w_* GET x_* STORE d", vec![1, 7]),
        ("SORT a STORE d STORE e", vec![1, 5]),
        ("SORT a LIMIT store store STORE d", vec![1, 6]),
        ("SORT a BY store GET store store d", vec![1, 7]),
        ("SORT a STORE", vec![1]),
        ("SORT a FOO BAR STORE d", vec![1, 5]),
        ("SORT_RO a STORE d", vec![1]),
    ] {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let command = if words[0] == b"SORT" { &super::SORT } else { &super::SORT_RO };
        let found = crate::command::keyspec::find_keys(&command.spec, words.len(), &|at| words[at]);
        let found: Vec<usize> = found.unwrap().iter().map(|key| key.index).collect();
        assert_eq!(found, want, "{line}");
    }
}
