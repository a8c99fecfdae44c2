//! The typed commands of the client are those of the server's table (C4). `client_typed.rs` tests their requests and
//! replies.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::workspace_root;
use brisk_tests::client_commands::{DIRECTORY, files, functions, replies_of_nothing, table};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn the_commands_are_those_that_the_table_gives() {
    let directory = workspace_root().join(DIRECTORY);
    let written = files(&table()).unwrap();
    if std::env::var_os("BRISK_BLESS").is_some() {
        let _ = fs::remove_dir_all(&directory);
        for (path, text) in &written {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    let kept: BTreeSet<_> = ["", "methods", "options", "session_methods"]
        .iter()
        .flat_map(|part| {
            fs::read_dir(directory.join(part)).unwrap().map(|file| file.unwrap().path())
        })
        .filter(|path| path.is_file())
        .map(|path| path.strip_prefix(&directory).unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(kept, written.keys().cloned().collect(), "files");
    for (path, text) in &written {
        let kept = fs::read_to_string(directory.join(path)).unwrap_or_default();
        assert!(
            kept == *text,
            "{path} is not what the command table gives: BRISK_BLESS=1 cargo test -p brisk-tests --test it \
             client_commands"
        );
    }
}

#[test]
fn every_command_has_a_function_and_every_reply_a_command() {
    let table = table();
    let functions = functions(&table);
    for row in table.all().filter(|row| !row.is_container()) {
        assert!(functions.contains_key(&row.name), "{} has no function", row.name);
    }
    let names: Vec<_> = functions.values().flatten().collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "two of the same name");
    assert_eq!(replies_of_nothing(&table), Vec::<&str>::new());
}

#[test]
fn commands_that_bind_or_block_a_connection_are_not_methods_of_shared_ones() {
    let files = files(&table()).unwrap();
    let methods = files.iter().filter(|(path, _)| path.starts_with("methods/"));
    let methods: String = methods.map(|(_, text)| text.as_str()).collect();
    let is_method =
        |name: &str| ["<", "("].iter().any(|end| methods.contains(&format!("pub fn {name}{end}")));
    for name in ["get", "set", "xread", "zadd", "client_list", "publish", "script_load", "lmove"] {
        assert!(is_method(name), "{name}");
    }
    for name in [
        "asking",
        "auth",
        "blmpop",
        "blpop",
        "client_caching",
        "client_reply",
        "client_setname",
        "client_tracking",
        "discard",
        "exec",
        "getset",
        "hello",
        "monitor",
        "multi",
        "psubscribe",
        "psync",
        "quit",
        "readonly",
        "replconf",
        "reset",
        "script_debug",
        "select",
        "ssubscribe",
        "subscribe",
        "sunsubscribe",
        "unsubscribe",
        "unwatch",
        "wait",
        "waitaof",
        "watch",
        "xread_block",
        "xreadgroup_block",
    ] {
        assert!(!is_method(name), "{name}");
    }
}
