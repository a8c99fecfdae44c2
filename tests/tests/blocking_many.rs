//! With a thousand blocked clients, every item is delivered once and in order, and no client is left waiting. Ten
//! thousand clients that disconnect at the same time leave no state behind.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::crowd::{ConsumeCommand, Crowd};
use brisk_testkit::{assert_reply, wait_until};
use brisk_tests::with_workers;

const CLIENTS: usize = 1000;
const ITEMS: usize = 50_000;

/// A thousand clients consume fifty thousand items.
fn deliver(command: ConsumeCommand) {
    let server = with_workers(2).set("maxclients", "12000").start();
    let done = Crowd::new(&server, command, CLIENTS).run(ITEMS).unwrap();
    assert_eq!(done.delivered, ITEMS);
    let mut conn = server.connect();
    wait_until("no client waits any longer", || conn.info("blocked_clients") == "0");
    wait_until("all are gone", || conn.info("connected_clients") == "1");
    if command != ConsumeCommand::XReadGroup {
        assert_reply!(conn, "EXISTS jobs", "(integer) 0");
    }
    assert_reply!(conn, "PING", "PONG");
}

#[test]
fn a_thousand_clients_of_blpop_get_every_item_once_and_in_order() {
    deliver(ConsumeCommand::BlPop);
}

#[test]
fn a_thousand_clients_of_blmove_get_every_item_once_and_in_order() {
    deliver(ConsumeCommand::BlMove);
}

#[test]
fn a_thousand_clients_of_xreadgroup_get_every_entry_once_and_in_order() {
    deliver(ConsumeCommand::XReadGroup);
}

#[test]
fn thousands_of_blocked_clients_that_disconnect_leave_nothing() {
    const WAITING: usize = 4000;
    let server = with_workers(2).set("maxclients", "12000").start();
    let mut conn = server.connect();
    let waiting: Vec<_> = (0..WAITING)
        .map(|_| {
            let mut client = server.connect();
            client.send("BLPOP all own nothing 0");
            client
        })
        .collect();
    wait_until("all wait", || conn.info("blocked_clients") == WAITING.to_string());
    drop(waiting);
    wait_until("no client waits", || conn.info("blocked_clients") == "0");
    wait_until("all are gone", || conn.info("connected_clients") == "1");
    assert_reply!(conn, "RPUSH all 1 2 3", "(integer) 3");
    assert_reply!(conn, "LLEN all", "(integer) 3");
    assert_reply!(conn, "BLPOP all own nothing 0", "1) \"all\"\n2) \"1\"");
}
