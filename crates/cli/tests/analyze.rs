//! `brisk-cli analyze` with files and servers. The tests of `brisk-analyze` check the numbers.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use crate::harness::*;
use brisk_testkit::{Server, TempDir};
use std::fs;

/// Servers with two hundred keys of one pattern, and keys of all types.
fn filled() -> Vec<Server> {
    let servers = servers();
    for server in &servers {
        let mut conn = server.connect();
        for n in 0..200 {
            conn.cmd(&format!("SET user:{n}:name name-{n}"));
        }
    }
    servers
}

fn code_and_texts(args: &[&str]) -> (Option<i32>, String, String) {
    let output = run(&ours(), &Case::new(args));
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_server_and_its_file_show_the_same_patterns() {
    for server in filled() {
        assert_eq!(server.connect().cmd("SAVE").to_string(), "OK");
        let file = server.dir().join("dump.rdb");
        let of_file = code_and_texts(&["analyze", file.to_str().unwrap()]);
        let output = brisk_cli(&server, &["analyze", "--share", "100%"]);
        let of_server = (output.status.code(), text(&output.stdout), text(&output.stderr));
        for (code, out, err) in [of_file, of_server] {
            assert_eq!((code, &err[..]), (Some(0), ""), "{out}");
            assert!(out.contains("209 keys in 1 database:"), "{out}");
            let line = out.lines().find(|line| line.contains("user:<n>:name")).unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[..5], ["0", "user:<n>:name", "string", "embstr", "200"]);
        }
    }
}

#[test]
fn reports_are_text_json_and_a_page() {
    let server = filled().remove(0);
    let home = TempDir::new();
    let page = home.path("page.html");
    let words =
        ["analyze", "--json", "--top", "0", "--share", "100%", "--html", page.to_str().unwrap()];
    let output = brisk_cli(&server, &words);
    assert_eq!(output.status.code(), Some(0));
    let json = text(&output.stdout);
    assert!(json.starts_with("{\n") && json.ends_with("}\n"), "{json}");
    assert!(json.contains("\"pattern\": \"user:<n>:name\""), "{json}");
    let html = fs::read_to_string(page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("user:&lt;n&gt;:name"));
}

#[test]
fn unreadable_input_gives_exit_code_1_and_a_reason() {
    let server = filled().remove(0);
    assert_eq!(server.connect().cmd("SAVE").to_string(), "OK");
    let whole = fs::read(server.dir().join("dump.rdb")).unwrap();
    let home = TempDir::new();
    let path = home.path("cut.rdb");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let (code, out, err) = code_and_texts(&["analyze", path.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    let reason = format!("the data ends at byte {}", whole.len() / 2);
    assert!(err.contains(&reason) && out.contains(&reason), "{out}\n{err}");
    assert!(out.contains("user:<n>:name"), "{out}");

    let (code, _, err) = code_and_texts(&["analyze", "missing.rdb"]);
    assert_eq!(
        (code, &err[..]),
        (Some(1), "missing.rdb: No such file or directory (os error 2)\n")
    );
    let (code, _, err) = code_and_texts(&["-p", "1", "analyze"]);
    assert_eq!(
        (code, &err[..]),
        (Some(1), "Could not connect to Redis at 127.0.0.1:1: Connection refused\n")
    );
    let (code, _, err) = code_and_texts(&["analyze", "--tpo"]);
    assert_eq!((code, &err[..]), (Some(1), "unknown option of analyze: --tpo\n"));
    let (code, out, _) = code_and_texts(&["analyze", "--help"]);
    assert!(code == Some(0) && out.contains("--resume FILE"), "{out}");
}
