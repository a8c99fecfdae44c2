//! The replies of a server about features that it does not have: a cluster, and modules.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::{Launch, assert_reply};

const DISABLED: &str = "(error) ERR This instance has cluster support disabled";

#[test]
fn commands_of_a_cluster_are_rejected() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    for command in [
        "READONLY",
        "READWRITE",
        "ASKING",
        "CLUSTER INFO",
        "CLUSTER HELP",
        "CLUSTER KEYSLOT a",
        "CLUSTER RESET",
        "CLUSTER SETSLOT 1 STABLE",
    ] {
        assert_eq!(conn.cmd(command).to_string(), DISABLED, "{command}");
    }
    assert_reply!(
        conn,
        "CLUSTER NOSUCH",
        "(error) ERR unknown subcommand 'NOSUCH'. Try CLUSTER HELP."
    );
    assert_reply!(
        conn,
        "CLUSTER KEYSLOT",
        "(error) ERR wrong number of arguments for 'cluster|keyslot' command"
    );
    assert_reply!(
        conn,
        "READONLY x",
        "(error) ERR wrong number of arguments for 'readonly' command"
    );
}

#[test]
fn modules_are_not_supported() {
    let server = Launch::subject().set("enable-module-command", "yes").start();
    let mut conn = server.connect();
    assert_reply!(conn, "MODULE LIST", "(empty array)");
    let failed = "(error) ERR Error loading the extension. Please check the server logs.";
    assert_reply!(conn, "MODULE LOAD /no/such/file", failed);
    assert_reply!(conn, "MODULE LOADEX /no/such/file ARGS a", failed);
    let unknown = "(error) ERR Error unloading module: no such module with that name";
    assert_reply!(conn, "MODULE UNLOAD abc", unknown);
    let help = conn.cmd("MODULE HELP").elements()[0].text();
    assert!(help.starts_with("MODULE <subcommand> "), "{help}");
    let locked = Launch::subject().start();
    let mut conn = locked.connect();
    assert_reply!(conn, "MODULE LIST", "(empty array)");
    let reply = conn.cmd("MODULE LOAD /no/such/file").to_string();
    assert!(reply.starts_with("(error) ERR MODULE command not allowed."), "{reply}");
}
