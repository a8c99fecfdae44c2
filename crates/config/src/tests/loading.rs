//! Tests of files and options at startup: error texts, and the settings that are read.

use super::*;
use crate::fuzzing::Lenient;

/// Returns what redis-server prints after the banner of a fatal configuration error.
fn redis_refuses(arguments: &[&str], stdin: &str) -> Option<String> {
    let child = Command::new("redis-server")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, after) = text.split_once(" ***\n").unwrap_or_else(|| panic!("{stdin:?}: {text:?}"));
    Some(after.trim_end().to_owned())
}

fn we_refuse(arguments: &[&str], stdin: &str) -> String {
    let text = load(&launch(arguments), &mut stdin.as_bytes(), &Lenient).unwrap_err().to_string();
    let banner =
        format!("\n*** FATAL CONFIG FILE ERROR (Brisk {}) ***\n", env!("CARGO_PKG_VERSION"));
    text.strip_prefix(&banner).unwrap_or_else(|| panic!("{text}")).trim_end().to_owned()
}

#[test]
fn bad_lines_are_rejected_with_the_texts_of_redis() {
    let lines = [
        "port abc",
        "PoRt 99999",
        "foo bar",
        "port",
        "port 1 2",
        "save 1",
        "maxmemory 1xb",
        "bind\nport x",
        "daemonize maybe",
        "requirepass \"abc",
        "requirepass \"a\"b",
        "   port   abc  ",
        "\"\" x",
        "rename-command get",
        "user",
        "user default on\nuser default off",
        "loglevel foo",
        "unixsocketperm 999",
        "unixsocketperm 1000",
        "dbfilename a/b",
        "appendfilename \"\"",
        "appenddirname a/b",
        "client-output-buffer-limit normal 1",
        "notify-keyspace-events q",
        "oom-score-adj-values 1 2",
        "replicaof a",
        "replicaof a b",
        "maxmemory-clients 200%",
        "shutdown-on-sigint foo",
        "shutdown-on-sigint save nosave",
        "maxclients 0",
        "dir /nonexistent",
        "list-max-ziplist-entries",
        "list-max-ziplist-entries 5\nport x",
        "sentinel monitor x",
        "timeout \"\"",
        "timeout 5 # not a comment",
        "# a comment\n\n \t# another\r\nport 1\r\nport abc\r",
        "cluster-enabled yes\nreplicaof 1.1.1.1 5",
        "include a b",
        "save \"900\"",
    ];
    for text in lines {
        let Some(theirs) = redis_refuses(&["-"], text) else { return };
        assert_eq!(we_refuse(&["-"], text), theirs, "{text:?}");
    }
}

#[test]
fn bad_options_are_rejected_with_the_texts_of_redis() {
    let dir = TempDir::new();
    std::fs::write(dir.path("t.conf"), "port 0\n").unwrap();
    let file = dir.path("t.conf");
    let file = file.to_str().unwrap();
    let cases: [&[&str]; 15] = [
        &["--port", "abc"],
        &["--port abc"],
        &["--port"],
        &["--port", "1", "2"],
        &["--save", "", "--port", "abc"],
        &["--save", "--port", "abc"],
        &["--foo", "a b"],
        &[file, "port", "abc"],
        &[file, "--port", "abc"],
        &["--requirepass", "--foo", "--port", "abc"],
        &["--requirepass", "--timeout", "5"],
        &["--timeout", "--5"],
        &["--notify-keyspace-events", "K", "A"],
        &["--loadmodule", "/x", "a", "--b", "c"],
        &["-x"],
    ];
    for arguments in cases {
        let Some(theirs) = redis_refuses(arguments, "") else { return };
        assert_eq!(we_refuse(arguments, ""), theirs, "{arguments:?}");
    }
}

#[test]
fn files_and_options_give_the_values_redis_reads() {
    for (text, name, expected) in [
        ("save 60 1\nsave 30 2\n", "save", "60 1 30 2"),
        ("save 60 1\nsave \"\"\nsave 5 5\n", "save", "5 5"),
        ("timeout 5\nsave\n", "save", ""),
        (
            "client-output-buffer-limit slave 1 1 1\n",
            "client-output-buffer-limit",
            "normal 0 0 0 slave 1 1 1 pubsub 33554432 8388608 60",
        ),
        ("bind \"\"\n", "bind", ""),
        ("bind * -::*\n", "bind", "* -::*"),
        ("unixsocketperm 0700\n", "unixsocketperm", "700"),
        ("requirepass \"a\\x41\\q\"\n", "requirepass", "aAq"),
        ("slaveof no one\n", "replicaof", ""),
        ("replicaof h 5\n", "slaveof", "h 5"),
        ("hz 1000\n", "hz", "500"),
        ("timeout\t5\n", "timeout", "5"),
    ] {
        assert_eq!(get(&load_text(text).unwrap(), name), expected, "{text:?}");
    }
    let options =
        |arguments: &[&str]| load(&launch(arguments), &mut std::io::empty(), &Lenient).unwrap();
    assert_eq!(get(&options(&["--save", "60 1", "--save", "30 2"]), "save"), "60 1 30 2");
    assert_eq!(get(&options(&["--save"]), "save"), "");
    assert_eq!(get(&options(&["--masterauth", "--timeout 5"]), "masterauth"), "--timeout 5");
    assert_eq!(
        get(&options(&["--shutdown-on-sigint", "nosave", "force"]), "shutdown-on-sigint"),
        "nosave force"
    );
    assert_eq!(get(&options(&["--io-threads", "3"]), "threads"), "3");
}

#[test]
fn includes_take_patterns_and_end_when_they_nest_too_deep() {
    let dir = TempDir::new();
    std::fs::write(dir.path("a1.inc"), "timeout 7\n").unwrap();
    std::fs::write(dir.path("a2.inc"), "hz 20\n").unwrap();
    std::fs::write(dir.path(".a3.inc"), "hz 30\n").unwrap();
    let base = dir.path("").to_str().unwrap().to_owned();
    let store = load_text(&format!("include {base}a?.inc\ninclude {base}none*.inc\n")).unwrap();
    assert_eq!((get(&store, "timeout"), get(&store, "hz")), ("7".into(), "20".into()));
    // After `dir`, relative names are looked up in that directory.
    let store = load_text(&format!("dir {base}\ninclude a[2].inc\n")).unwrap();
    assert_eq!(get(&store, "hz"), "20");

    let missing = load_text(&format!("include {base}missing\n")).unwrap_err().to_string();
    assert_eq!(
        missing,
        format!("Fatal error, can't open config file '{base}missing': No such file or directory")
    );
    std::fs::write(dir.path("loop"), format!("include {base}loop\n")).unwrap();
    let error = load_text(&format!("include {base}loop\n")).unwrap_err();
    assert!(matches!(error, FileError::Limit { .. }), "{error}");
    std::fs::write(dir.path("bad"), "# one\nport abc\n").unwrap();
    let error = load_text(&format!("\n\n\ninclude {base}bad\n")).unwrap_err();
    assert!(matches!(error, FileError::Line { line: 2, .. }), "{error}");
}
