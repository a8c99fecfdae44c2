//! The delay proxy between real sockets, and in front of a real server.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use brisk_benchmark::delay::{DelayPlan, DelayProxy};
use brisk_benchmark::outcome::Latency;
use brisk_benchmark::{End, Material, Plan, Unwatched, run, subject};
use brisk_testkit::Launch;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a test waits before it fails.
const DEADLINE: Duration = Duration::from_secs(60);

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn proxy(to: SocketAddr, delay_ms: u64, jitter_ms: u64) -> DelayProxy {
    let delay = Duration::from_millis(delay_ms);
    let jitter = Duration::from_millis(jitter_ms);
    DelayProxy::start(DelayPlan { listen: any(), to, delay, jitter }).unwrap()
}

/// Both ends of a connection through a proxy.
fn through(delay_ms: u64, jitter_ms: u64) -> (DelayProxy, TcpStream, TcpStream) {
    let listener = TcpListener::bind(any()).unwrap();
    let proxy = proxy(listener.local_addr().unwrap(), delay_ms, jitter_ms);
    let client = TcpStream::connect(proxy.address()).unwrap();
    let (server, _) = listener.accept().unwrap();
    for end in [&client, &server] {
        end.set_nodelay(true).unwrap();
        end.set_read_timeout(Some(DEADLINE)).unwrap();
    }
    (proxy, client, server)
}

/// Bytes whose values show their positions.
fn pattern(len: usize) -> Vec<u8> {
    (0..len / 4).flat_map(|i| (i as u32).to_be_bytes()).collect()
}

#[test]
fn a_byte_takes_at_least_the_delay_in_each_direction() {
    let (_proxy, mut client, mut server) = through(30, 0);
    let mut byte = [0];
    for _ in 0..3 {
        let sent = Instant::now();
        client.write_all(b"x").unwrap();
        server.read_exact(&mut byte).unwrap();
        assert!(sent.elapsed() >= Duration::from_millis(30), "{:?}", sent.elapsed());
        let replied_at = Instant::now();
        server.write_all(b"y").unwrap();
        client.read_exact(&mut byte).unwrap();
        assert!(replied_at.elapsed() >= Duration::from_millis(30), "{:?}", replied_at.elapsed());
    }
}

#[test]
fn bytes_keep_their_order_under_jitter() {
    let (_proxy, mut client, mut server) = through(1, 5);
    let sent = pattern(400_000);
    let writer = std::thread::spawn(move || {
        // Many small pieces, each with its own delay.
        pattern(400_000).chunks(700).for_each(|piece| client.write_all(piece).unwrap());
        client
    });
    let mut got = vec![0; sent.len()];
    server.read_exact(&mut got).unwrap();
    assert!(got == sent);
    writer.join().unwrap();
}

#[test]
fn the_end_of_a_direction_is_passed_on_and_the_other_stays_open() {
    let (_proxy, mut client, mut server) = through(5, 0);
    client.write_all(b"last words").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    server.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"last words");
    server.write_all(b"answer").unwrap();
    drop(server);
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"answer");
}

#[test]
fn the_end_of_the_proxy_ends_its_connections() {
    let (proxy, mut client, mut server) = through(1, 0);
    drop(proxy);
    for end in [&mut client, &mut server] {
        // The connection must end or be reset, but the read must not time out.
        match end.read(&mut [0; 10]) {
            Ok(count) => assert_eq!(count, 0),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
}

#[test]
fn a_missing_server_closes_the_connection() {
    let unused = TcpListener::bind(any()).unwrap().local_addr().unwrap();
    let proxy = proxy(unused, 1, 0);
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    client.set_read_timeout(Some(DEADLINE)).unwrap();
    assert!(matches!(client.read(&mut [0; 10]), Ok(0)));
}

#[test]
fn a_reader_that_does_not_read_holds_the_writer_back() {
    const MANY: usize = 256 << 20;
    let (_proxy, mut client, mut server) = through(1, 0);
    let (sender, progress): (_, Receiver<usize>) = channel();
    let writer = std::thread::spawn(move || {
        let piece = vec![7; 64 << 10];
        let mut sent = 0;
        while sent < MANY {
            client.write_all(&piece).unwrap();
            sent += piece.len();
            sender.send(sent).unwrap();
        }
    });
    // Nothing is being read, so the writer must block long before the end.
    let mut sent = 0;
    while let Ok(so_far) = progress.recv_timeout(Duration::from_secs(1)) {
        sent = so_far;
    }
    assert!(sent > 1 << 20 && sent < MANY / 2, "{sent} bytes were taken");
    let mut buffer = vec![0; 1 << 20];
    let mut got = 0;
    while got < MANY {
        got += server.read(&mut buffer).unwrap();
    }
    writer.join().unwrap();
}

#[test]
fn a_server_after_the_proxy_replies_to_everything_with_a_delay() {
    let server = Launch::redis().start();
    let to = SocketAddr::from(([127, 0, 0, 1], server.port()));
    let proxy = proxy(to, 3, 0);
    let workload = Material::default().own("ping".to_owned(), &["PING"]);
    let plan = Plan {
        clients: 20,
        pipeline: 50,
        end: End::Requests(20_000),
        ..Plan::new(workload, subject::local_target(proxy.address().port()))
    };
    let outcome = run(&plan, &mut Unwatched).unwrap();
    assert_eq!(outcome.operations, 20_000);
    let latency = Latency::of(&outcome.latency);
    assert!(latency.min >= 6.0, "{latency:?}");
}
