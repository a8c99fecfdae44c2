//! Requests of many connections that the loop finds at the same time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::line_server::{Options, Server, each_backend, pattern, skipped, start, wait_until};
use brisk_reactor::{
    Accept, BackendChoice, CloseReason, Control, Handler, Listener, Reactor, ReactorConfig,
    TcpOptions, Token, batches_available, uring_available,
};
use socket2::SockRef;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

type Client = BufReader<TcpStream>;

/// Connects `count` clients, which the server accepts in this order. The one with number 0 is for
/// [`while_blocked`].
fn connect(server: &Server, count: usize) -> Vec<Client> {
    (1..=count)
        .map(|open| {
            let client = BufReader::new(server.connect());
            server.wait_for_open(open);
            client
        })
        .collect()
}

/// Executes `send` while the server does nothing, so that it then finds everything at once.
fn while_blocked(server: &Server, clients: &mut [Client], send: impl FnOnce(&mut [Client])) {
    server.observed.blocked.store(false, Ordering::SeqCst);
    server.observed.unblock.store(false, Ordering::SeqCst);
    self::send(&mut clients[0], "block\n");
    wait_until("the server is blocked", || server.observed.blocked.load(Ordering::SeqCst));
    send(clients);
    server.observed.unblock.store(true, Ordering::SeqCst);
}

fn send(client: &mut Client, lines: &str) {
    client.get_mut().write_all(lines.as_bytes()).unwrap();
}

/// Waits until the socket of the server has everything that the client has sent.
fn wait_until_arrived(client: &Client) {
    let fd = client.get_ref().as_raw_fd();
    wait_until("the bytes to arrive", || {
        let mut left: libc::c_int = -1;
        // SAFETY: the call stores the number of bytes that the peer has not acknowledged.
        let result = unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut left) };
        assert_eq!(result, 0);
        left == 0
    });
}

fn line(client: &mut Client) -> String {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn each_epoll(test: impl Fn(Server, bool)) {
    let options =
        Options { backend: BackendChoice::Epoll, refuse_above: usize::MAX, keepalive_s: 300 };
    test(start(options), false);
    if batches_available().is_ok() {
        test(start(Options { backend: BackendChoice::BatchedEpoll, ..options }), true);
    } else {
        skipped("no io_uring on this machine");
    }
}

#[test]
fn many_connections_with_requests_at_once_all_get_their_own_replies() {
    const BYTES: usize = 100_000;
    each_backend(|server| {
        let mut clients = connect(&server, 100);
        while_blocked(&server, &mut clients, |clients| {
            for (number, client) in clients.iter_mut().enumerate() {
                send(client, &format!("echo {number}\n"));
                match number % 10 {
                    3 => send(client, &format!("copy {BYTES}\n")),
                    5 => send(client, &format!("share {BYTES}\n")),
                    7 => send(client, "copy 5000000\n"),
                    9 => client.get_ref().shutdown(Shutdown::Write).unwrap(),
                    _ => {}
                }
            }
            // These clients shut down before they read anything.
            for client in clients.iter().skip(7).step_by(10) {
                client.get_ref().shutdown(Shutdown::Both).unwrap();
            }
        });
        for (number, client) in clients.iter_mut().enumerate() {
            if number % 10 == 7 {
                continue;
            }
            assert_eq!(line(client), number.to_string());
            let mut bytes = vec![0; BYTES];
            match number % 10 {
                3 | 5 => {
                    client.read_exact(&mut bytes).unwrap();
                    assert!((0..BYTES).all(|i| bytes[i] == pattern(i)), "of client {number}");
                }
                9 => assert_eq!(client.read(&mut bytes).unwrap(), 0, "the server closes, too"),
                _ => {}
            }
        }
        server.wait_for_open(80);
    });
}

#[test]
fn receives_and_sends_are_batched_only_with_that_back_end() {
    each_epoll(|server, batched| {
        let mut clients = connect(&server, 6);
        while_blocked(&server, &mut clients, |clients| {
            clients.iter_mut().for_each(|client| send(client, "echo it\n"));
        });
        clients.iter_mut().for_each(|client| assert_eq!(line(client), "it"));
        let counters = server.stop();
        // One batch of receives, and one of sends.
        assert_eq!(counters.batches, if batched { 2 } else { 0 });
        assert_eq!((counters.receives, counters.sends), (7, 6));
    });
}

#[test]
fn many_connections_with_long_pipelines_at_once_get_all_replies() {
    // More than a receive buffer of a batch.
    const LINES: usize = 4000;
    each_backend(|server| {
        let mut clients = connect(&server, 10);
        while_blocked(&server, &mut clients, |clients| {
            for (number, client) in clients.iter_mut().enumerate() {
                let lines: String = (0..LINES).map(|i| format!("echo {number} {i}\n")).collect();
                send(client, &lines);
            }
        });
        for (number, client) in clients.iter_mut().enumerate() {
            for i in 0..LINES {
                assert_eq!(line(client), format!("{number} {i}"));
            }
        }
    });
}

#[test]
fn a_request_that_pauses_other_connections_delays_requests_that_arrived_at_the_same_time() {
    each_epoll(check_hold);
}

fn check_hold(server: Server, batched: bool) {
    let mut clients = connect(&server, 9);
    let received = || server.observed.received_bytes.load(Ordering::SeqCst);
    while_blocked(&server, &mut clients, |clients| {
        send(&mut clients[1], "hold 2\nhold 3\nhold 4\nhold 5\nhold 6\necho paused\n");
        // The loop finds the connections in the order in which their bytes arrived.
        wait_until_arrived(&clients[1]);
        send(&mut clients[2], "echo two\n");
        send(&mut clients[3], "echo three\n");
        clients[3].get_ref().shutdown(Shutdown::Write).unwrap();
        clients[4].get_ref().shutdown(Shutdown::Write).unwrap();
        send(&mut clients[5], "echo nobody reads this\n");
        send(&mut clients[6], "echo nobody executes this\n");
        send(&mut clients[7], "echo seven\n");
        send(&mut clients[8], "echo eight\n");
    });
    assert_eq!(line(&mut clients[1]), "paused");
    assert_eq!(line(&mut clients[7]), "seven");
    assert_eq!(line(&mut clients[8]), "eight");
    let holds = (2..=6).map(|number| format!("hold {number}"));
    let others = ["block", "echo paused", "echo seven", "echo eight"].map(str::to_owned);
    let delivered: usize = holds.chain(others).map(|line| line.len() + 1).sum();
    assert_eq!(received(), delivered, "nothing of the paused connections");

    send(&mut clients[2], "echo later\n");
    clients[5].get_ref().shutdown(Shutdown::Both).unwrap();
    wait_until("the hang-ups are noticed", || server.observed.hung_up.load(Ordering::SeqCst) >= 3);
    assert_eq!(received(), delivered);

    // A new connection in the place of one whose bytes were held.
    send(&mut clients[1], "end 6\necho ended\n");
    assert_eq!(line(&mut clients[1]), "ended");
    server.wait_for_open(8);
    clients[6] = BufReader::new(server.connect());
    send(&mut clients[6], "echo new\n");
    assert_eq!(line(&mut clients[6]), "new");

    send(&mut clients[1], "release 2\nrelease 3\nrelease 4\nrelease 5\necho resumed\n");
    assert_eq!(line(&mut clients[1]), "resumed");
    assert_eq!(line(&mut clients[2]), "two");
    assert_eq!(line(&mut clients[2]), "later");
    assert_eq!(line(&mut clients[3]), "three");
    for ended in [3, 4] {
        assert_eq!(line(&mut clients[ended]), "", "the server closes, too");
    }
    server.wait_for_open(6);
    assert_eq!(server.stop().held_max > 0, batched);
}

#[test]
fn a_pause_that_ends_among_requests_that_arrived_at_the_same_time_loses_nothing() {
    const LINES: usize = 5000;
    each_epoll(|server, batched| {
        let mut clients = connect(&server, 5);
        while_blocked(&server, &mut clients, |clients| {
            send(&mut clients[1], "hold 2\nhold 3\necho paused\n");
            wait_until_arrived(&clients[1]);
            send(&mut clients[2], "echo two\n");
            clients[2].get_ref().shutdown(Shutdown::Write).unwrap();
            wait_until_arrived(&clients[2]);
            // More than a receive buffer of a batch.
            let lines: String = (0..LINES).map(|i| format!("echo {i}\n")).collect();
            send(&mut clients[3], &lines);
            wait_until_arrived(&clients[3]);
            send(&mut clients[4], "release 2\nrelease 3\necho resumed\n");
        });
        assert_eq!(line(&mut clients[1]), "paused");
        assert_eq!(line(&mut clients[4]), "resumed");
        assert_eq!(line(&mut clients[2]), "two");
        assert_eq!(line(&mut clients[2]), "", "the server closes, too");
        for i in 0..LINES {
            assert_eq!(line(&mut clients[3]), i.to_string());
        }
        server.wait_for_open(4);
        assert_eq!(server.stop().held_max > 0, batched);
    });
}

#[test]
fn urgent_data_among_requests_at_once_hides_nothing() {
    each_backend(|server| {
        let mut clients = connect(&server, 6);
        while_blocked(&server, &mut clients, |clients| {
            for client in clients.iter_mut() {
                send(client, "echo before\n");
                SockRef::from(client.get_ref()).send_out_of_band(b"!").unwrap();
                send(client, "echo after\n");
            }
        });
        for client in &mut clients {
            assert_eq!(line(client), "before");
            assert_eq!(line(client), "after");
        }
    });
}

/// Greets each connection while it is being accepted.
#[derive(Default)]
struct Greeting {
    greeted: usize,
}

impl Handler for Greeting {
    fn accepted(&mut self, io: &mut Control, token: Token, _: usize) -> Accept {
        io.when_drained(token, 0);
        Accept::Keep
    }

    fn drained(&mut self, io: &mut Control, token: Token) {
        self.greeted += 1;
        io.output(token).extend_from_slice(b"hello\n");
        io.send(token);
    }

    fn received(&mut self, _: &mut Control, _: Token, _: &[u8]) {}

    fn closed(&mut self, _: &mut Control, _: Token, _: CloseReason) {}
}

#[test]
fn output_that_is_queued_during_accept_is_sent_once() {
    const CLIENTS: usize = 8;
    for backend in [BackendChoice::Epoll, BackendChoice::BatchedEpoll, BackendChoice::Uring] {
        if backend == BackendChoice::Uring && uring_available().is_err() {
            skipped("no io_uring on this machine");
            continue;
        }
        let mut reactor = Reactor::new(&ReactorConfig { backend }).unwrap();
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), &TcpOptions::default()).unwrap();
        let address = listener.local_addr().unwrap();
        reactor.listen(listener).unwrap();
        let clients: Vec<_> = (0..CLIENTS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut handler = Greeting::default();
        let deadline = Instant::now() + Duration::from_secs(20);
        while reactor.io().counters().bytes_out < (CLIENTS * b"hello\n".len()) as u64 {
            assert!(Instant::now() < deadline);
            reactor.poll(&mut handler, Some(Duration::from_millis(1))).unwrap();
        }
        assert_eq!(handler.greeted, CLIENTS);
        drop(reactor);
        for mut client in clients {
            let mut greeting = String::new();
            client.read_to_string(&mut greeting).unwrap();
            assert_eq!(greeting, "hello\n");
        }
    }
}
