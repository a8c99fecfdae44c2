//! The script language compared with Lua 5.1: numbers as text, KEYS and ARGV, the standard functions, and missing
//! functions. `tests/data/script-language.txt` contains scripts with the replies of a real Redis, which can also run
//! them (`BRISK_TEST_SUBJECT=redis`).
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::{subject_is_redis, workspace_root};
use brisk_testkit::{Conn, Launch};
use std::fs;

/// The number of differences that are printed before the test ends.
const SHOWN_MAX: usize = 40;

/// A script, and the expected reply.
struct Case {
    script: String,
    redis: String,
    /// The reply of Brisk, if it differs and the difference is accepted.
    brisk: Option<String>,
}

/// Parses the file. A script is on one line, the reply of Redis follows `= `, and a different reply of Brisk follows `!
/// `.
fn cases() -> Vec<Case> {
    let text = fs::read_to_string(workspace_root().join("tests/data/script-language.txt")).unwrap();
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let last = cases.last_mut();
        if let Some(reply) = line.strip_prefix("= ") {
            last.unwrap().redis = reply.to_owned();
        } else if let Some(reply) = line.strip_prefix("! ") {
            last.unwrap().brisk = Some(reply.to_owned());
        } else {
            cases.push(Case { script: line.to_owned(), redis: String::new(), brisk: None });
        }
    }
    cases
}

/// The reply on one line, without the name of the script.
fn reply(conn: &mut Conn, script: &str) -> String {
    conn.cmd("FLUSHALL");
    let reply = conn.call(&["EVAL", script, "2", "k1", "k2", "a1", "a2", "a3"]).to_string();
    let reply = reply.replace('\n', " | ");
    match reply.split_once(" script: ") {
        Some((text, place)) => format!("{text}{}", place.trim_start_matches(char::is_alphanumeric)),
        None => reply,
    }
}

#[test]
fn characters_that_no_editor_shows_mean_what_they_mean_in_lua_5_1() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    for (script, expected) in [
        ("return 'a\0b'", "\"a\\x00b\""),
        ("return 'a\\\x001'", "\"a\\x001\""),
        ("return [[\n\"\\a\0\n]]", "\"\\\"\\\\a\\x00 | \""),
        ("--a\0b\nreturn 1", "(integer) 1"),
        ("--[[a\0b]] return 1", "(integer) 1"),
        ("--a\rreturn 1", "(integer) 1"),
        ("return 'a\\\r\nb\\\n\rc\\\rd'", "\"a | b | c | d\""),
        ("return [[\r\na\rb\n\rc\r\nd]]", "\"a | b | c | d\""),
        ("\r\r\n\n\rerror('x')", "(error) ERR user_script:4: x, on @user_script:4."),
    ] {
        assert_eq!(reply(&mut conn, script), expected.replace(" | ", "\\n"), "{script:?}");
    }
    for script in ["return 1 \0", "return 1 \0 x", "\0return 1"] {
        let given = reply(&mut conn, script);
        assert!(given.starts_with("(error) ERR Error compiling script"), "{script:?}: {given}");
    }
}

#[test]
fn scripts_give_what_lua_5_1_gives() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    let cases = cases();
    assert!(cases.len() > 300, "only {} scripts", cases.len());
    let mut differences = Vec::new();
    for Case { script, redis, brisk } in &cases {
        let expected = brisk.as_ref().filter(|_| !subject_is_redis()).unwrap_or(redis);
        let given = reply(&mut conn, script);
        if given != *expected {
            differences.push(format!("{script}\n= {given}\n  not {expected}"));
        }
    }
    let shown = differences.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differences:\n{shown}", differences.len());
}
