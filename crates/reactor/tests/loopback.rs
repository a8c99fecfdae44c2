//! Tests that connections over real sockets behave the same with both back ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::line_server::{
    Options, Server, each_backend, each_backend_with, pattern, start, wait_until,
};
use brisk_reactor::{BackendChoice, CloseReason};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn read_line(stream: &mut impl Read) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

fn read_rest(stream: &mut impl Read) -> Vec<u8> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    rest
}

#[test]
fn requests_get_replies_in_order_even_if_pipelined_or_split() {
    each_backend(|server| {
        let mut client = server.connect();
        client.write_all(b"echo one\necho two\nec").unwrap();
        assert_eq!(read_line(&mut client), "one");
        assert_eq!(read_line(&mut client), "two");
        client.write_all(b"ho three\n").unwrap();
        assert_eq!(read_line(&mut client), "three");
        let many: String = (0..20_000).map(|i| format!("echo {i}\n")).collect();
        let mut writer = client.try_clone().unwrap();
        let sender = std::thread::spawn(move || writer.write_all(many.as_bytes()).unwrap());
        let mut reader = std::io::BufReader::new(&client);
        for i in 0..20_000 {
            assert_eq!(read_line(&mut reader), i.to_string());
        }
        sender.join().unwrap();
        let address = client.local_addr().unwrap().to_string();
        assert_eq!(*server.observed.peers.lock().unwrap(), [address]);
        drop(client);
        server.wait_for_open(0);
        assert_eq!(server.reasons(), [CloseReason::PeerFinished]);
    });
}

#[test]
fn a_peer_that_shuts_its_sending_side_gets_the_replies_it_is_owed() {
    each_backend(|server| {
        let mut client = server.connect();
        client.write_all(b"echo first\ncopy 3000000\necho last\n").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let replies = read_rest(&mut client);
        assert_eq!(replies.len(), 6 + 3_000_000 + 5);
        assert!(replies.ends_with(b"last\n"));
        server.wait_for_open(0);
        assert_eq!(server.reasons(), [CloseReason::PeerFinished]);
    });
}

#[test]
fn a_slow_reader_gets_all_of_a_big_reply_and_unsent_bytes_are_counted() {
    const LEN: usize = 50_000_000;
    each_backend(|server| {
        let mut client = server.connect();
        client.write_all(format!("copy {LEN}\n").as_bytes()).unwrap();
        wait_until("the reply is queued", || server.observed.unsent.load(Ordering::SeqCst) == LEN);
        assert_eq!(server.observed.drained.load(Ordering::SeqCst), 0);
        let mut got = vec![0; LEN];
        client.read_exact(&mut got).unwrap();
        assert!(got.iter().enumerate().all(|(i, byte)| *byte == pattern(i)));
        wait_until("drained is called", || server.observed.drained.load(Ordering::SeqCst) == 1);
        client.write_all(b"echo after\n").unwrap();
        assert_eq!(read_line(&mut client), "after");
        assert_eq!(server.observed.unsent.load(Ordering::SeqCst), 6);
    });
}

#[test]
fn shared_segments_arrive_intact_and_are_released() {
    const LEN: usize = 20_000_000;
    each_backend(|server| {
        let mut client = server.connect();
        let lines = format!("share {LEN}\necho between\nshare 5000\nshare 3\n");
        client.write_all(lines.as_bytes()).unwrap();
        let mut got = vec![0; LEN];
        client.read_exact(&mut got).unwrap();
        assert!(got == **server.shared);
        assert_eq!(read_line(&mut client), "");
        assert_eq!(read_line(&mut client), "between");
        let mut small = vec![0; 5000 + 1 + 3 + 1];
        client.read_exact(&mut small).unwrap();
        assert_eq!(small[..5000], server.shared[..5000]);
        // The test and the handler hold one reference each.
        wait_until("the references are dropped", || Arc::strong_count(&server.shared) == 2);
        // This many pieces need several gathered sends.
        client.write_all("share 2100\n".repeat(300).as_bytes()).unwrap();
        let mut pieces = vec![0; 300 * 2101];
        client.read_exact(&mut pieces).unwrap();
        assert!(pieces.chunks(2101).all(|piece| piece[..2100] == server.shared[..2100]));
        client.write_all(format!("share {LEN}\n").as_bytes()).unwrap();
        wait_until("it is queued", || Arc::strong_count(&server.shared) == 3);
        drop(client); // with the reply unread
        wait_until("the reference is dropped", || Arc::strong_count(&server.shared) == 2);
    });
}

#[test]
fn a_paused_connection_receives_nothing_until_it_is_resumed() {
    each_backend(|server| {
        let mut client = server.connect();
        client.write_all(b"pause\n").unwrap();
        wait_until("it is paused", || server.observed.paused.load(Ordering::SeqCst) == 1);
        let before = server.observed.received_bytes.load(Ordering::SeqCst);
        client.write_all(b"echo held\necho back\n").unwrap();
        // Other clients are served in the meantime, which gives the bytes time to arrive.
        let mut other = server.connect();
        for _ in 0..50 {
            other.write_all(b"echo x\n").unwrap();
            assert_eq!(read_line(&mut other), "x");
        }
        assert_eq!(server.observed.received_bytes.load(Ordering::SeqCst), before + 50 * 7);
        server.resume();
        assert_eq!(read_line(&mut client), "held");
        assert_eq!(read_line(&mut client), "back");
        for _ in 0..20 {
            client.write_all(b"pause\n").unwrap();
            client.write_all(b"echo again\n").unwrap();
            let paused = server.observed.paused.load(Ordering::SeqCst);
            wait_until("paused", || server.observed.paused.load(Ordering::SeqCst) >= paused);
            server.resume();
            client.write_all(b"echo and on\n").unwrap();
            // The pause may come after that wake-up, so wake the server until the pause is over.
            let mut reader = client.try_clone().unwrap();
            reader.set_read_timeout(Some(std::time::Duration::from_millis(5))).unwrap();
            let mut byte = [0];
            while reader.read(&mut byte).is_err() {
                server.resume();
            }
            reader.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
            assert_eq!(format!("{}{}", char::from(byte[0]), read_line(&mut reader)), "again");
            assert_eq!(read_line(&mut client), "and on");
        }
    });
}

#[test]
fn data_that_arrives_during_a_pause_within_one_round_is_read_after_it() {
    data_during_a_pause(false);
    data_during_a_pause(true);
}

fn data_during_a_pause(hangs_up: bool) {
    each_backend(|server| {
        // Connect one after the other, so that their numbers are known.
        let mut clients = Vec::new();
        for number in 0..4 {
            clients.push(server.connect());
            server.wait_for_open(number + 1);
        }
        // While the first client keeps the server busy, the bytes of the others arrive in this
        // order. The server finds all of them in its next round.
        clients[0].write_all(b"block\n").unwrap();
        wait_until("it is busy", || server.observed.blocked.load(Ordering::SeqCst));
        clients[1].write_all(b"hold 2\n").unwrap();
        clients[2].write_all(b"echo held\n").unwrap();
        if hangs_up {
            clients[2].shutdown(Shutdown::Write).unwrap();
        }
        clients[3].write_all(b"release 2\n").unwrap();
        server.observed.unblock.store(true, Ordering::SeqCst);
        assert_eq!(read_line(&mut clients[2]), "held");
    });
}

#[test]
fn data_after_urgent_data_is_read_with_the_data_before() {
    each_backend(|server| {
        let (mut blocking, client) = (server.connect(), server.connect());
        server.wait_for_open(2);
        blocking.write_all(b"block\n").unwrap();
        wait_until("it is busy", || server.observed.blocked.load(Ordering::SeqCst));
        let client = socket2::Socket::from(client);
        client.send(b"echo before\n").unwrap();
        client.send_out_of_band(b"!").unwrap();
        client.send(b"echo after!\n").unwrap();
        server.observed.unblock.store(true, Ordering::SeqCst);
        let mut client = std::net::TcpStream::from(client);
        assert_eq!(read_line(&mut client), "before");
        assert_eq!(read_line(&mut client), "after!");
    });
}

#[test]
fn data_after_a_passed_descriptor_is_read_with_the_data_before() {
    each_backend(|server| {
        let mut other = server.connect();
        let mut client = server.connect_unix();
        client.write_all(b"echo here\n").unwrap();
        assert_eq!(read_line(&mut client), "here");
        other.write_all(b"block\n").unwrap();
        wait_until("blocked", || server.observed.blocked.load(Ordering::SeqCst));
        // Both messages have arrived when the server reads, and a receive stops after the first.
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let sent = [client.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&sent)));
        let first = [IoSlice::new(b"echo first\n")];
        sendmsg(&client, &first, &mut control, SendFlags::empty()).unwrap();
        client.write_all(b"echo second\n").unwrap();
        server.observed.unblock.store(true, Ordering::SeqCst);
        assert_eq!(read_line(&mut client), "first");
        assert_eq!(read_line(&mut client), "second");
    });
}

#[test]
fn a_paused_connection_takes_at_most_one_receive_buffer_from_the_kernel() {
    const BUFFER: u64 = 16 * 1024;
    each_backend(|server| {
        let mut client = server.connect();
        let flood = format!("pause\n{}", "echo x\n".repeat(300_000));
        let mut flooding = client.try_clone().unwrap();
        let flood = std::thread::spawn(move || flooding.write_all(flood.as_bytes()).unwrap());
        wait_until("it is paused", || server.observed.paused.load(Ordering::SeqCst) == 1);
        // Other clients are served in the meantime, which gives the bytes time to arrive.
        let mut other = server.connect();
        for _ in 0..200 {
            other.write_all(b"echo x\n").unwrap();
            assert_eq!(read_line(&mut other), "x");
        }
        server.resume();
        let mut replies = vec![0; 2 * 300_000];
        client.read_exact(&mut replies).unwrap();
        assert_eq!(replies, b"x\n".repeat(300_000));
        flood.join().unwrap();
        drop((client, other));
        let held = server.stop().held_max;
        assert!(held <= BUFFER, "{held}");
    });
}

#[test]
fn a_peer_that_leaves_while_paused_is_noticed_and_its_requests_are_still_read() {
    each_backend(|server| {
        let mut client = server.connect();
        client.write_all(b"pause\n").unwrap();
        wait_until("it is paused", || server.observed.paused.load(Ordering::SeqCst) == 1);
        client.write_all(b"echo late\n").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        wait_until("it is noticed", || server.observed.hung_up.load(Ordering::SeqCst) == 1);
        assert_eq!(server.observed.open.load(Ordering::SeqCst), 1);
        server.resume();
        assert_eq!(read_rest(&mut client), b"late\n");
        server.wait_for_open(0);
    });
}

#[test]
fn requests_of_a_local_peer_that_closed_its_end_are_still_read() {
    each_backend(|server| {
        // A peer that leaves replies unread leaves an error at this end.
        for leaves_replies in [false, true] {
            let noticed = server.observed.hung_up.load(Ordering::SeqCst);
            let mut client = server.connect_unix();
            client.write_all(b"echo x\necho y\npause\n").unwrap();
            let mut replies = [0; 4];
            let read = if leaves_replies { &mut replies[..2] } else { &mut replies };
            client.read_exact(read).unwrap();
            // These lines have no replies, and do not fit into one receive.
            let late = "gather 0\n".repeat(10_000);
            client.write_all(late.as_bytes()).unwrap();
            let before = server.observed.received_bytes.load(Ordering::SeqCst);
            drop(client);
            wait_until("it is noticed", || {
                server.observed.hung_up.load(Ordering::SeqCst) > noticed
            });
            assert_eq!(server.observed.open.load(Ordering::SeqCst), 1);
            server.resume();
            server.wait_for_open(0);
            let received = server.observed.received_bytes.load(Ordering::SeqCst);
            assert_eq!(received - before, late.len());
        }
    });
}

#[test]
fn closing_with_a_flush_sends_everything_first_and_gives_up_after_the_linger_time() {
    each_backend(|server| {
        let mut client = server.connect();
        client.write_all(b"copy 3000000\nquit\n").unwrap();
        let replies = read_rest(&mut client);
        assert_eq!(replies.len(), 3_000_004);
        assert!(replies.ends_with(b"bye\n"));
        server.wait_for_open(0);
        assert_eq!(server.reasons(), [CloseReason::Requested]);

        let mut lazy = server.connect();
        lazy.write_all(b"copy 50000000\nquit\n").unwrap();
        wait_until("it is given up", || server.reasons().len() == 2);
        assert_eq!(server.reasons()[1], CloseReason::LingerExpired);
    });
}

#[test]
fn closing_at_once_drops_the_queued_output() {
    each_backend(|server| {
        let mut client = server.connect();
        client.write_all(b"copy 50000000\n").unwrap();
        let mut first = [0; 1000];
        client.read_exact(&mut first).unwrap();
        client.write_all(b"drop\n").unwrap();
        server.wait_for_open(0);
        assert_eq!(server.reasons(), [CloseReason::Requested]);
        let mut rest = Vec::new();
        let end = client.read_to_end(&mut rest);
        assert!(rest.len() < 49_000_000);
        assert!(end.is_ok() || end.is_err_and(|e| e.kind() == ErrorKind::ConnectionReset));
    });
}

#[test]
fn a_rejected_connection_gets_the_reason_and_others_continue() {
    each_backend_with(1, 300, |server| {
        let mut client = server.connect();
        client.write_all(b"echo in\n").unwrap();
        assert_eq!(read_line(&mut client), "in");
        let mut refused = server.connect();
        assert_eq!(read_rest(&mut refused), b"-ERR max number of clients reached\r\n");
        client.write_all(b"echo still in\n").unwrap();
        assert_eq!(read_line(&mut client), "still in");
        assert_eq!(server.reasons(), []);
        let counters = server.stop();
        assert_eq!((counters.accepted, counters.refused), (1, 1));
    });
}

#[test]
fn stale_tokens_do_nothing() {
    each_backend(|server| {
        for _ in 0..3 {
            drop(server.connect());
        }
        wait_until("they are closed", || server.reasons().len() == 3);
        let mut client = server.connect();
        client.write_all(b"stale\necho here\n").unwrap();
        assert_eq!(read_line(&mut client), "ignored");
        assert_eq!(read_line(&mut client), "here");
        assert_eq!(server.reasons().len(), 3);
    });
}

#[test]
fn a_unix_socket_serves_like_tcp() {
    each_backend(|server| {
        use std::os::unix::fs::PermissionsExt;
        let bits = server.path.metadata().unwrap().permissions().mode();
        assert_eq!(bits & 0o777, 0o700);
        let mut client = server.connect_unix();
        client.write_all(b"echo local\ncopy 3000000\necho done\n").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let replies = read_rest(&mut client);
        assert!(replies.starts_with(b"local\n") && replies.ends_with(b"done\n"));
        assert_eq!(*server.observed.peers.lock().unwrap(), ["unix"]);
        server.wait_for_open(0);
    });
}

/// Returns true if io_uring can wait a bounded time for several completions (Linux 6.12).
fn kernel_can_coalesce() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let numbers: Vec<u32> = release.split(['.', '-']).map_while(|n| n.parse().ok()).collect();
    numbers.as_slice() >= [6, 12].as_slice()
}

#[test]
fn wake_ups_for_many_clients_are_coalesced_and_those_for_one_are_not() {
    let options =
        Options { backend: BackendChoice::Epoll, refuse_above: usize::MAX, keepalive_s: 300 };
    check_coalescing(&start(options));
    if brisk_reactor::uring_available().is_ok() && kernel_can_coalesce() {
        check_coalescing(&start(Options { backend: BackendChoice::Uring, ..options }));
    } else {
        crate::line_server::skipped("no io_uring of Linux 6.12 on this machine");
    }
}

fn check_coalescing(server: &Server) {
    let mut alone = server.connect();
    let sleeps = |client: &mut TcpStream| {
        client.write_all(b"sleeps\n").unwrap();
        read_line(client).parse::<u64>().unwrap()
    };
    alone.write_all(b"gather 1000\n").unwrap();
    let mut many: Vec<_> = (0..64).map(|_| server.connect()).collect();
    let deadline = Instant::now() + Duration::from_secs(20);
    while sleeps(&mut alone) == 0 {
        assert!(Instant::now() < deadline, "requests never gathered");
        for client in &mut many {
            client.write_all(b"echo together\n").unwrap();
        }
        for client in &mut many {
            assert_eq!(read_line(client), "together");
        }
    }
    // A few sleeps happen until the loop knows that the client is alone.
    for _ in 0..50 {
        sleeps(&mut alone);
    }
    let before = sleeps(&mut alone);
    for _ in 0..1000 {
        assert_eq!(sleeps(&mut alone), before);
    }
}

#[test]
fn a_waker_reaches_the_loop_from_other_threads_and_wakes_are_merged() {
    each_backend(|server| {
        for round in 1..200 {
            server.waker.wake();
            wait_until("woken is called", || server.observed.wakes.load(Ordering::SeqCst) >= round);
        }
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let waker = server.waker.clone();
                std::thread::spawn(move || (0..10_000).for_each(|_| waker.wake()))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut client = server.connect();
        client.write_all(b"echo alive\n").unwrap();
        assert_eq!(read_line(&mut client), "alive");
    });
}
