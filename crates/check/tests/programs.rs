//! The programs themselves: exit codes, and the prompt of `--fix`. `tests/tests/check_tools.rs`
//! compares their output with that of the real Redis tools.
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
    // A program that does not prompt may exit before it has read its input. Then this write fails.
    let _ = child.stdin.take().unwrap().write_all(answer.as_bytes());
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_torn_file_is_rejected_and_truncated_after_yes() {
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
}

#[test]
fn help_and_version_are_printed_and_no_file_is_looked_for() {
    for (program, name) in [(AOF, "brisk-check-aof"), (RDB, "brisk-check-rdb")] {
        for option in ["-v", "--version"] {
            let version = run(program, &[option], "");
            let line = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
            assert_eq!((version.status.code(), stdout(&version)), (Some(0), line), "{option}");
        }
        let usage = run(program, &[], "");
        let usage = stdout(&usage) + &String::from_utf8_lossy(&usage.stderr);
        for option in ["-h", "--help"] {
            let help = run(program, &[option], "");
            assert_eq!((help.status.code(), help.stderr.len()), (Some(0), 0), "{option}");
            assert!(stdout(&help).starts_with(&usage), "{option}");
            for described in ["-h, --help", "-v, --version"] {
                assert!(stdout(&help).contains(described), "{described}");
            }
        }
        // All other options are taken as file names, as the Redis tools do.
        for file in ["-x", "./-v", "./--help"] {
            let missing = run(program, &[file], "");
            let said = stdout(&missing) + &String::from_utf8_lossy(&missing.stderr);
            assert_eq!(missing.status.code(), Some(1), "{file}");
            assert!(said.contains(&format!("Cannot open file {file}: ")), "{said}");
        }
    }
    assert!(stdout(&run(AOF, &["--help"], "")).contains("--fix "));
}
