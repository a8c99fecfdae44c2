//! The programs themselves: exit codes, and the question that `--fix` asks. What they say is
//! compared with the tools of a real Redis in `tests/tests/check_tools.rs`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::TempDir;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

const AOF: &str = env!("CARGO_BIN_EXE_brisk-check-aof");
const RDB: &str = env!("CARGO_BIN_EXE_brisk-check-rdb");

fn run(program: &str, args: &[&str], answer: &str) -> Output {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that asks nothing does not wait for the answer.
    let _ = child.stdin.take().unwrap().write_all(answer.as_bytes());
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_torn_file_is_refused_and_cut_when_the_answer_is_yes() {
    let home = TempDir::new();
    let path = home.path("appendonly.aof");
    let whole = b"*1\r\n$4\r\nPING\r\n";
    fs::write(&path, [&whole[..], b"*1\r\n$4\r\nPI"].concat()).unwrap();
    let name = path.to_str().unwrap();
    let refused = run(AOF, &[name], "");
    assert_eq!(refused.status.code(), Some(1));
    assert!(stdout(&refused).contains("ok_up_to=14, ok_up_to_line=6, diff=10"));
    assert_eq!(run(AOF, &["--fix", name], "n\n").status.code(), Some(1));
    let fixed = run(AOF, &["--fix", name], "y\n");
    assert_eq!(fixed.status.code(), Some(0));
    assert!(stdout(&fixed).contains("Continue? [y/N]: Successfully truncated AOF"));
    assert_eq!(fs::read(&path).unwrap(), whole);
    assert_eq!(run(AOF, &[name], "").status.code(), Some(0));
}

#[test]
fn usage_and_files_that_are_missing_are_errors() {
    for program in [AOF, RDB] {
        let usage = run(program, &[], "");
        assert_eq!(usage.status.code(), Some(1));
        let said = stdout(&usage) + &String::from_utf8_lossy(&usage.stderr);
        assert!(said.starts_with("Usage: "), "{said}");
        let missing = run(program, &["/does/not/exist"], "");
        assert_eq!(missing.status.code(), Some(1));
        let said = stdout(&missing) + &String::from_utf8_lossy(&missing.stderr);
        assert!(said.contains("Cannot open file /does/not/exist: No such file"), "{said}");
    }
    let version = run(RDB, &["--version"], "");
    assert_eq!(version.status.code(), Some(0));
    assert!(stdout(&version).starts_with("brisk-check-rdb "));
}
