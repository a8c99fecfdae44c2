//! The memory of clients, and how the largest clients are closed if all clients together use too much.

use brisk_testkit::{Conn, Server, each_backend, wait_until};
use brisk_tests::with_workers;

/// Sends an incomplete request with one argument of `bytes` bytes, of which the last one is missing.
fn hold(conn: &mut Conn, bytes: usize) {
    let mut request = format!("*1\r\n${bytes}\r\n").into_bytes();
    request.resize(request.len() + bytes - 1, b'v');
    conn.send_raw(&request);
}

/// A client with this name that has this many bytes of incomplete input.
fn holder(server: &Server, name: &str, bytes: usize) -> Conn {
    let mut conn = server.connect();
    conn.cmd(&format!("CLIENT SETNAME {name}"));
    hold(&mut conn, bytes);
    let mut watcher = server.connect();
    watcher.cmd("CLIENT NO-EVICT ON");
    wait_until("all is received", || {
        field(&mut watcher, name, "qbuf").is_none_or(|qbuf| qbuf + 1 >= bytes as u64)
    });
    conn
}

/// A numeric field in CLIENT LIST of the client with this name; `None` if the client is gone.
fn field(conn: &mut Conn, name: &str, field: &str) -> Option<u64> {
    let list = conn.cmd("CLIENT LIST").text();
    let line = list.lines().find(|line| line.contains(&format!(" name={name} ")))?;
    let value = line.split(' ').find_map(|word| word.strip_prefix(field)?.strip_prefix('='))?;
    value.parse().ok()
}

fn exists(conn: &mut Conn, name: &str) -> bool {
    field(conn, name, "id").is_some()
}

fn control(server: &Server) -> Conn {
    let mut conn = server.connect();
    conn.cmd("CLIENT NO-EVICT ON");
    conn
}

#[test]
fn the_largest_clients_go_first_and_only_until_the_rest_fits() {
    each_backend(
        || with_workers(2),
        |server| {
            let mut control = control(server);
            let sizes = [("small", 100_000), ("middle", 700_000), ("large", 3_000_000)];
            let _held: Vec<Conn> =
                sizes.iter().map(|(name, bytes)| holder(server, name, *bytes)).collect();
            for (limit, closed) in [(2_000_000, 1), (400_000, 2), (1_000, 3)] {
                control.cmd(&format!("CONFIG SET maxmemory-clients {limit}"));
                wait_until("the largest are closed", || {
                    sizes.iter().rev().take(closed).all(|(name, _)| !exists(&mut control, name))
                });
                for (name, _) in sizes.iter().rev().skip(closed) {
                    assert!(exists(&mut control, name), "{name} at {limit}");
                }
                assert_eq!(control.info("evicted_clients"), closed.to_string());
            }
        },
    );
}

#[test]
fn a_client_with_no_evict_is_not_closed_for_its_memory() {
    each_backend(
        || with_workers(2),
        |server| {
            let mut control = control(server);
            control.cmd("CONFIG SET maxmemory-clients 500000");
            let mut spared = server.connect();
            spared.cmd("CLIENT SETNAME spared");
            spared.cmd("CLIENT NO-EVICT ON");
            hold(&mut spared, 1_000_000);
            wait_until("it is large", || {
                field(&mut control, "spared", "tot-mem").is_some_and(|bytes| bytes > 1_000_000)
            });
            let mut other = server.connect();
            hold(&mut other, 1_000_000);
            assert!(other.read_to_end().is_empty());
            assert!(exists(&mut control, "spared"));
            assert_eq!(control.info("evicted_clients"), "1");
        },
    );
}

#[test]
fn everything_a_client_holds_counts() {
    let server = with_workers(2).start();
    let mut control = control(&server);
    control.cmd("CONFIG SET maxmemory-clients 300000");
    type Line = fn(usize) -> String;
    let ways: [(&str, Line); 4] = [
        ("WATCH", |at| format!("WATCH key:{at}")),
        ("SUBSCRIBE", |at| format!("SUBSCRIBE channel:{at}")),
        ("MULTI", |at| format!("SET key:{at} {}", "v".repeat(100))),
        ("prefixes", |at| format!("CLIENT TRACKING ON BCAST PREFIX prefix:{at:09}")),
    ];
    for (at, (name, line)) in ways.iter().enumerate() {
        let mut conn = server.connect();
        if *name == "MULTI" {
            conn.cmd("MULTI");
        }
        let closed = (0..50_000).any(|at| conn.try_cmd(&line(at)).is_err());
        assert!(closed, "{name}");
        wait_until("it is counted", || control.info("evicted_clients") == (at + 1).to_string());
    }
}

#[test]
fn a_share_of_maxmemory_is_a_limit_too() {
    let server = with_workers(2).start();
    let mut control = control(&server);
    control.cmd("CONFIG SET maxmemory 100mb");
    control.cmd("CONFIG SET maxmemory-clients 1%");
    // This client is so small that the other one is larger when both together exceed the limit.
    let mut small = holder(&server, "small", 100_000);
    let mut large = server.connect();
    hold(&mut large, 1_500_000);
    assert!(large.read_to_end().is_empty());
    assert!(exists(&mut control, "small"));
    small.send_raw(b"v\r\n");
    assert!(small.reply().is_error());
}

#[test]
fn the_sum_of_all_clients_follows_what_they_hold() {
    let server = with_workers(3).start();
    let mut control = server.connect();
    let sum = |control: &mut Conn| control.info("mem_clients_normal").parse::<u64>().unwrap_or(0);
    let before = sum(&mut control);
    let held: Vec<Conn> =
        (0..5).map(|at| holder(&server, &format!("holder-{at}"), 1_000_000)).collect();
    // Redis updates the sum only periodically.
    wait_until("all are counted", || sum(&mut control) >= before + 5_000_000);
    drop(held);
    wait_until("all are gone", || control.info("connected_clients") == "1");
    wait_until("nothing is left of them", || sum(&mut control) < before + 100_000);
}

#[test]
fn a_list_of_many_clients_names_them_all() {
    let server = with_workers(2).start();
    let mut conns: Vec<Conn> = (0..600).map(|_| server.connect()).collect();
    let ids: Vec<i64> = conns.iter_mut().map(Conn::id).collect();
    let mut conn = server.connect();
    conn.send_raw(b"CLIENT LIST\r\nCLIENT LIST TYPE pubsub\r\nECHO after\r\n");
    let list = conn.reply().text();
    for id in ids {
        assert!(list.lines().any(|line| line.starts_with(&format!("id={id} "))), "{id}");
    }
    assert_eq!(conn.reply().text(), "");
    assert_eq!(conn.reply().text(), "after");
    assert_eq!(list.lines().count(), 601);
}

/// The arguments of a request exist twice only while the request is being executed.
#[test]
fn a_request_that_is_not_complete_counts_once() {
    each_backend(
        || with_workers(2),
        |server| {
            let mut control = control(server);
            control.cmd("CONFIG SET maxmemory-clients 3000000");
            // Each request is larger than half of the limit.
            for bytes in [1_600_000, 2_300_000] {
                let conn = holder(server, "partial", bytes);
                assert!(exists(&mut control, "partial"), "{bytes}");
                drop(conn);
                wait_until("the client is gone", || !exists(&mut control, "partial"));
            }
            control.cmd("CONFIG SET maxmemory-clients 300000");
            let conn = holder(server, "partial", 200_000);
            assert!(exists(&mut control, "partial"));
            drop(conn);
            assert_eq!(control.info("evicted_clients"), "0");
        },
    );
}

/// While a request is being executed, its arguments exist twice.
#[test]
fn a_client_whose_request_reaches_the_limit_is_closed_before_it_runs() {
    each_backend(
        || with_workers(2),
        |server| {
            let mut control = control(server);
            control.cmd("CONFIG SET maxmemory-clients 3000000");
            for (bytes, fits) in
                [(1_000_000, true), (2_900_000, false), (3_000_000, false), (6_000_000, false)]
            {
                let (mut conn, value) = (server.connect(), "v".repeat(bytes));
                let request = brisk_testkit::words::encode(&["MSET", "k", "v", "k2", &value]);
                if fits {
                    conn.send_raw(&request);
                    assert_eq!(conn.reply().text(), "OK");
                } else {
                    // The server may close the connection before everything has been sent.
                    let _ = conn.try_send_raw(&request);
                    let replied = std::iter::from_fn(|| conn.try_reply().ok()).count();
                    assert_eq!(replied, 0, "{bytes}");
                }
                assert_eq!(control.cmd("STRLEN k2").integer(), 1_000_000, "{bytes}");
            }
            assert_eq!(control.info("evicted_clients"), "3");
        },
    );
}
