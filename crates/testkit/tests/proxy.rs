//! Tests of the proxy between plain sockets: each fault does what it says, and nothing else.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::proxy::{Direction, Disconnect, Proxy, Split};
use brisk_testkit::random::Random;
use brisk_testkit::wait_until;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use Direction::{ToClient, ToServer};

/// A client and a server with a proxy between them.
struct Link {
    listener: TcpListener,
    proxy: Proxy,
}

impl Link {
    fn new() -> Link {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::to(&listener.local_addr().unwrap().to_string());
        Link { listener, proxy }
    }

    /// The two ends of a new connection.
    fn open(&self) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(self.proxy.address()).unwrap();
        let (server, _) = self.listener.accept().unwrap();
        for socket in [&client, &server] {
            socket.set_read_timeout(Some(brisk_testkit::wait::DEADLINE)).unwrap();
        }
        (client, server)
    }
}

fn noise(len: usize) -> Vec<u8> {
    let mut random = Random::new(len as u64);
    (0..len).map(|_| random.bits() as u8).collect()
}

/// Sends in both directions simultaneously, closes, and asserts that everything arrives.
fn assert_carries(client: TcpStream, server: TcpStream, len: usize) {
    let bytes = noise(len);
    let send = |mut socket: TcpStream| {
        let bytes = &bytes;
        move || {
            socket.write_all(bytes).unwrap();
            socket.shutdown(std::net::Shutdown::Write).unwrap();
        }
    };
    let read = |mut socket: TcpStream| {
        move || {
            let mut got = Vec::new();
            socket.read_to_end(&mut got).unwrap();
            got
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(send(client.try_clone().unwrap()));
        scope.spawn(send(server.try_clone().unwrap()));
        let got = [scope.spawn(read(client)), scope.spawn(read(server))];
        for got in got {
            assert!(got.join().unwrap() == bytes, "other bytes arrived");
        }
    });
}

#[test]
fn bytes_and_ends_of_streams_are_forwarded_both_ways() {
    let link = Link::new();
    let (client, server) = link.open();
    assert_carries(client, server, 3_000_000);
    wait_until("the connection is gone", || link.proxy.open() == 0);
    assert_eq!(Direction::BOTH.map(|way| link.proxy.written_bytes(way)), [3_000_000; 2]);
    assert_eq!(link.proxy.accepted(), 1);
}

#[test]
fn delays_and_splits_do_not_change_the_data() {
    let link = Link::new();
    let split = Some(Split { single_bytes: 500, bytes_max: 900, seed: 1 });
    let (client, server) = link.open();
    link.proxy.split(split);
    assert_carries(client, server, 200_000);
    link.proxy.heal();
    let (client, server) = link.open();
    link.proxy.delay(Duration::from_millis(20));
    assert_carries(client, server, 200_000);
    link.proxy.heal();
    let (client, server) = link.open();
    link.proxy.throttle(Some(2_000_000));
    link.proxy.split(split);
    assert_carries(client, server, 100_000);
}

#[test]
fn a_cut_is_a_reset_or_an_end_as_requested() {
    let link = Link::new();
    for how in [Disconnect::Reset, Disconnect::End] {
        let (mut client, mut server) = link.open();
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0]).unwrap();
        assert_eq!(link.proxy.cut(how), 1);
        assert_eq!(link.proxy.open(), 0);
        for socket in [&mut client, &mut server] {
            match socket.read(&mut [0]) {
                Ok(0) => assert_eq!(how, Disconnect::End),
                Err(error) => {
                    assert_eq!(
                        (error.kind(), how),
                        (ErrorKind::ConnectionReset, Disconnect::Reset)
                    );
                }
                Ok(_) => panic!("nobody sent anything"),
            }
        }
    }
    let (client, server) = link.open();
    assert_carries(client, server, 1000);
}

#[test]
fn a_connection_is_cut_after_exactly_n_bytes() {
    let link = Link::new();
    for (direction, bytes) in [(ToServer, 1), (ToClient, 1), (ToServer, 70_000), (ToClient, 999)] {
        link.proxy.cut_next_after(direction, bytes, Disconnect::End);
        let (client, server) = link.open();
        let (mut from, mut to) = match direction {
            ToServer => (client, server),
            ToClient => (server, client),
        };
        let all = noise(100_000);
        // The write fails if the connection is cut first.
        let _ = from.write_all(&all);
        let mut got = Vec::new();
        to.read_to_end(&mut got).unwrap();
        assert!(got == all[..bytes as usize], "{} bytes came", got.len());
        wait_until("the connection is gone", || link.proxy.open() == 0);
    }
    let (client, server) = link.open();
    assert_carries(client, server, 100_000);
}

#[test]
fn rejected_connections_are_reset_and_open_ones_stay() {
    let link = Link::new();
    let (client, server) = link.open();
    link.proxy.refuse(true);
    let mut refused = TcpStream::connect(link.proxy.address()).unwrap();
    assert_eq!(refused.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_carries(client, server, 1000);
    link.proxy.refuse(false);
    let (client, server) = link.open();
    assert_carries(client, server, 1000);
}

#[test]
fn a_connection_without_a_server_is_reset() {
    let Link { listener, proxy } = Link::new();
    drop(listener);
    let mut refused = TcpStream::connect(proxy.address()).unwrap();
    assert_eq!(refused.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_direction_can_be_stalled_and_resumed() {
    let link = Link::new();
    let (mut client, mut server) = link.open();
    link.proxy.stall(ToClient, true);
    server.write_all(b"answer").unwrap();
    client.write_all(b"request").unwrap();
    server.read_exact(&mut [0; 7]).unwrap();
    client.set_nonblocking(true).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(link.proxy.written_bytes(ToClient), 0);
    client.set_nonblocking(false).unwrap();
    link.proxy.stall(ToClient, false);
    let mut got = [0; 6];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"answer");
    // The connection can be cut even if the receiver reads nothing.
    drop(server.write(&noise(4_000_000)[..100_000]));
    link.proxy.part();
    assert_eq!(link.proxy.cut(Disconnect::Reset), 1);
}

#[test]
fn swallowed_bytes_never_arrive() {
    let link = Link::new();
    let (mut client, mut server) = link.open();
    link.proxy.swallow(ToServer, true);
    client.write_all(b"lost").unwrap();
    wait_until("it is swallowed", || link.proxy.written_bytes(ToServer) == 4);
    link.proxy.swallow(ToServer, false);
    client.write_all(b"kept").unwrap();
    server.write_all(b"back").unwrap();
    let mut got = [0; 4];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"kept");
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"back");
}
