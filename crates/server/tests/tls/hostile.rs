//! Sends bytes that are not TLS or only almost TLS. The server must continue and leak no resources.

use super::client::{self, Site};
use brisk_testkit::random::Random;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Server, each_backend, wait_until, words};
use rustls::ClientConnection;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Returns the first bytes that a client sends.
fn client_hello(site: &Site) -> Vec<u8> {
    let config = client::config(&site.authority, None, rustls::ALL_VERSIONS);
    let name = "localhost".try_into().unwrap();
    let mut hello = Vec::new();
    ClientConnection::new(config, name).unwrap().write_tls(&mut hello).unwrap();
    hello
}

fn mutated(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match random.below(4) {
        0 => bytes.truncate(random.below(bytes.len())),
        1 => bytes.extend_from_within(..),
        _ => {}
    }
    for _ in 0..random.below(6) {
        let at = random.below(bytes.len().max(1));
        if let Some(byte) = bytes.get_mut(at) {
            *byte = random.bits() as u8;
        }
    }
    bytes
}

fn noise(random: &mut Random) -> Vec<u8> {
    let most = if random.percent(10) { 200_000 } else { 600 };
    let len = 1 + random.below(most);
    let mut bytes: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
    if random.percent(50) {
        // Begin with the header of a record, so that the server parses further.
        let head = [20 + random.below(5) as u8, 3, random.below(5) as u8];
        for (byte, wanted) in bytes.iter_mut().zip(head) {
            *byte = wanted;
        }
    }
    bytes
}

/// Sends bytes to the port, and sometimes waits for a response. The server may close the connection at any time.
fn throw(port: u16, bytes: &[u8], waits: bool) {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(client::DEADLINE)).unwrap();
    let _ = socket.write_all(bytes);
    if waits {
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        assert!(rest.len() < 64 * 1024, "{} bytes in answer to nonsense", rest.len());
    }
}

fn assert_unharmed(site: &Site, server: &mut Server, fds: usize) {
    assert!(server.is_running());
    assert_eq!(site.client().request(&["PING"]).to_string(), "PONG");
    wait_until("as few descriptors as before", || server.open_fds() <= fds);
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn bytes_that_are_not_a_handshake_do_no_harm() {
    let site = Site::new();
    let hello = client_hello(&site);
    each_backend(
        || site.launch(),
        |server| {
            wait_until("the connection of the start to be gone", || {
                server.log().contains("Ready to accept connections")
            });
            let fds = server.open_fds();
            let mut random = Random::new(7);
            for round in 0..400 {
                let bytes = match round % 3 {
                    0 => noise(&mut random),
                    1 => mutated(&mut random, &hello),
                    _ => [&hello[..], &noise(&mut random)].concat(),
                };
                let waits = random.percent(50);
                throw(site.port.number(), &bytes, waits);
            }
            throw(site.port.number(), b"PING\r\n", true);
            throw(site.port.number(), b"*1\r\n$4\r\nPING\r\n", true);
            assert_unharmed(&site, server, fds);
        },
    );
}

#[test]
fn garbage_after_a_handshake_closes_the_connection_after_earlier_commands() {
    let site = Site::new();
    each_backend(
        || site.launch(),
        |server| {
            let fds = server.open_fds();
            let mut random = Random::new(11);
            for round in 0..60 {
                let mut client = site.client();
                let key = format!("k{round}");
                // Use one write, so that the valid record and the garbage arrive together.
                let mut bytes = Vec::new();
                let set = words::encode(&["SET", &key, "v"]);
                client.stream.conn.writer().write_all(&set).unwrap();
                client.stream.conn.write_tls(&mut bytes).unwrap();
                bytes.extend([23, 3, 3, 0, 64]);
                bytes.extend((0..64).map(|_| random.bits() as u8));
                client.stream.sock.write_all(&bytes).unwrap();
                let _ = client.read_to_end();
                assert_eq!(server.connect().cmd(&format!("GET {key}")).to_string(), "\"v\"");
            }
            assert_unharmed(&site, server, fds);
        },
    );
}

#[test]
fn clients_that_never_finish_the_handshake_are_disconnected() {
    if subject_is_redis() {
        return; // Redis waits forever
    }
    let site = Site::new();
    let server = site.start();
    let fds = server.open_fds();
    let mut silent = TcpStream::connect(("127.0.0.1", site.port.number())).unwrap();
    let mut halfway = TcpStream::connect(("127.0.0.1", site.port.number())).unwrap();
    halfway.write_all(&client_hello(&site)[..20]).unwrap();
    for socket in [&mut silent, &mut halfway] {
        socket.set_read_timeout(Some(client::DEADLINE)).unwrap();
        let mut rest = Vec::new();
        assert!(socket.read_to_end(&mut rest).is_ok() && rest.is_empty());
    }
    wait_until("as few descriptors as before", || server.open_fds() <= fds);
}
