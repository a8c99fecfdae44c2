//! `brisk-cli migrate` between real servers.

use crate::harness::terminal::Terminal;
use crate::harness::{Case, ours, prepare, run, text};
use brisk_testkit::port::Port;
use brisk_testkit::{Launch, Server, wait_until};
use std::process::Output;

fn uri(server: &Server) -> String {
    format!("redis://127.0.0.1:{}", server.port())
}

fn migrate(old: &Server, new: &Server, more: &[&str]) -> Output {
    let (old, new) = (uri(old), uri(new));
    run(&ours(), &Case::new(&[&["migrate", &old, &new][..], more].concat()))
}

#[track_caller]
fn must(old: &Server, new: &Server, more: &[&str]) -> String {
    let found = migrate(old, new, more);
    assert_eq!(found.status.code(), Some(0), "{}{}", text(&found.stdout), text(&found.stderr));
    text(&found.stdout)
}

#[track_caller]
fn must_fail(old: &Server, new: &Server, reason: &str) {
    let found = migrate(old, new, &["--switch"]);
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stdout));
    assert!(text(&found.stderr).contains(reason), "{}", text(&found.stderr));
    assert_eq!(new.info("role"), "master");
}

#[test]
fn data_moves_to_the_new_server_and_back() {
    for old in [Launch::redis(), Launch::subject()] {
        let (old, new) = (old.start(), Launch::subject().start());
        prepare(&old);
        old.connect().cmd("SET brief x EX 86400");
        // Without --switch and without a terminal, the new server stays a replica.
        let shown = must(&old, &new, &[]);
        assert!(shown.contains(" is in sync with ") && shown.contains(": equal.\n"), "{shown}");
        assert!(shown.contains(" --switch\n"), "{shown}");
        assert_eq!(
            (new.info("role").as_str(), new.info("connected_slaves").as_str()),
            ("slave", "0")
        );
        let shown = must(&old, &new, &["--switch"]);
        assert!(shown.contains("already is a replica of"), "{shown}");
        assert!(shown.contains("The way back:"), "{shown}");
        assert_eq!(new.info("role"), "master");
        let mut conn = new.connect();
        assert_eq!(conn.cmd("GET greeting").text(), "hello");
        conn.cmd("SET later written");
        // A write to the old server waits, so no write is accepted by both.
        let mut writer = old.connect();
        writer.send("SET lost write");
        wait_until("the write waits", || old.info("blocked_clients") == "1");
        drop(writer);
        wait_until("the client has gone", || old.info("blocked_clients") == "0");
        let shown = must(&old, &new, &["--back"]);
        assert!(shown.contains("is a replica of"), "{shown}");
        wait_until("the write arrives", || old.connect().cmd("GET later").text() == "written");
        assert_eq!(old.connect().cmd("EXISTS lost").text(), "0");
        must(&new, &old, &["--switch"]);
        assert_eq!(
            (old.info("role"), old.connect().cmd("SET again ok").text()),
            ("master".to_owned(), "OK".to_owned())
        );
    }
}

#[test]
fn the_credentials_of_the_address_are_used_for_replication() {
    let old = Launch::redis().start();
    prepare(&old);
    old.connect().cmd("ACL SETUSER copier on >pw +@all ~* &*");
    old.connect().cmd("ACL SETUSER default off");
    let new = Launch::subject().start();
    let from = format!("redis://copier:pw@127.0.0.1:{}", old.port());
    let args = ["--no-auth-warning", "migrate", &from, &uri(&new), "--switch"];
    let found = run(&ours(), &Case::new(&args));
    assert_eq!(found.status.code(), Some(0), "{}{}", text(&found.stdout), text(&found.stderr));
    assert!(!text(&found.stdout).contains("pw@"), "{}", text(&found.stdout));
    assert_eq!(new.connect().cmd("GET greeting").text(), "hello");
}

#[test]
fn a_question_on_the_terminal_comes_before_the_switch() {
    let (old, new) = (Launch::redis().start(), Launch::subject().start());
    prepare(&old);
    let (from, to) = (uri(&old), uri(&new));
    let mut shown = Terminal::start(&ours(), &["migrate", &from, &to], &[]);
    shown.expect("the primary now? [y/N] ");
    shown.press("n\r");
    shown.expect("stays a replica of");
    assert_eq!(shown.end(), Some(0));
    assert_eq!(new.info("role"), "slave");
    let mut shown = Terminal::start(&ours(), &["migrate", &from, &to], &[]);
    shown.expect("the primary now? [y/N] ");
    shown.press("\x03");
    shown.expect("stays a replica of");
    assert_eq!(shown.end(), Some(0));
    let mut shown = Terminal::start(&ours(), &["migrate", &from, &to], &[]);
    shown.expect("the primary now? [y/N] ");
    shown.press("y\r");
    shown.expect("The way back:");
    assert_eq!(shown.end(), Some(0));
    assert_eq!(new.info("role"), "master");
}

#[test]
fn problems_are_found_before_anything_is_changed() {
    let (old, new) = (Launch::redis().start(), Launch::subject().start());
    prepare(&old);
    must_fail(&old, &old, "both addresses belong to the same server");
    let mut conn = new.connect();
    conn.cmd("SET own value");
    must_fail(&old, &new, "has 1 key, which the copy would replace");
    conn.cmd("FLUSHALL");
    old.connect().cmd(&format!("SET large {}", "x".repeat(4 << 20)));
    conn.cmd("CONFIG SET maxmemory 3mb");
    must_fail(&old, &new, "but maxmemory of");
    conn.cmd("CONFIG SET maxmemory 0");
    let few = Launch::subject().set("databases", "1").start();
    old.connect().cmd("SELECT 5");
    let mut other = old.connect();
    other.cmd("SELECT 5");
    other.cmd("SET key value");
    must_fail(&old, &few, "has keys in database 5");
    let nowhere = format!("redis://127.0.0.1:{}", Port::claim().number());
    let found = run(&ours(), &Case::new(&["migrate", &nowhere, &uri(&new)]));
    assert_eq!(found.status.code(), Some(1));
    assert!(text(&found.stderr).contains("Connection refused"), "{}", text(&found.stderr));
    let found = run(&ours(), &Case::new(&["migrate", "x"]));
    assert!(text(&found.stderr).starts_with("Usage: "), "{}", text(&found.stderr));
    assert_eq!(new.info("role"), "master");
}

#[test]
fn a_switch_that_cannot_finish_lets_clients_write_to_the_old_server() {
    let (old, new) = (Launch::redis().start(), Launch::subject().start());
    prepare(&old);
    must(&old, &new, &[]);
    // The new server may not be promoted by this user.
    new.connect().cmd("ACL SETUSER reader on >pw +@all -replicaof ~* &*");
    let to = format!("redis://reader:pw@127.0.0.1:{}", new.port());
    let args = ["--no-auth-warning", "migrate", &uri(&old), &to, "--switch"];
    let found = run(&ours(), &Case::new(&args));
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stdout));
    let said = text(&found.stderr);
    assert!(said.contains("NOPERM") && said.contains("accepts writes as before"), "{said}");
    assert_eq!(old.connect().cmd("SET still writable").text(), "OK");
    assert_eq!(new.info("role"), "slave");
}

#[test]
fn an_interrupted_copy_leaves_both_servers_as_they_were() {
    let (old, new) = (Launch::redis().start(), Launch::subject().start());
    prepare(&old);
    new.connect().cmd("CONFIG SET masterauth before");
    // The primary does not send a snapshot before the delay is over.
    old.connect().cmd("CONFIG SET repl-diskless-sync-delay 3600");
    let from = uri(&old);
    let mut shown = Terminal::start(&ours(), &["migrate", &from, &uri(&new), "--switch"], &[]);
    shown.expect("Waiting for the snapshot of the primary");
    shown.press("\x03");
    shown.expect("Error: ");
    shown.expect("are as before.");
    assert_eq!(shown.end(), Some(1));
    assert_eq!((new.info("role").as_str(), old.info("role").as_str()), ("master", "master"));
    let password = new.connect().cmd("CONFIG GET masterauth");
    assert_eq!(password.field("masterauth").map(|it| it.text()).as_deref(), Some("before"));
    assert_eq!(old.connect().cmd("SET still writable").text(), "OK");
}
