//! Tests of the console over TLS: its page, and a session over a WebSocket.

use super::client::{self, Site};
use brisk_testkit::each_backend;
use brisk_testkit::port::Port;
use brisk_testkit::server::subject_is_redis;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;

/// The key of the handshake, and the server's proof that it has read it: the example of RFC 6455.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const PROOF: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// A request with a body longer than several TLS records.
const LONG_BYTES: usize = 100_000;

/// A connection of a browser.
struct Browser(StreamOwned<ClientConnection, TcpStream>);

impl Browser {
    fn connect(port: &Port, site: &Site) -> Browser {
        let socket = TcpStream::connect(("127.0.0.1", port.number())).unwrap();
        socket.set_read_timeout(Some(client::DEADLINE)).unwrap();
        let config = client::config(&site.authority, None, rustls::ALL_VERSIONS);
        let connection = ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
        Browser(StreamOwned::new(connection, socket))
    }

    /// Sends a request, and returns the head of the response.
    fn get(&mut self, path: &str, headers: &str) -> String {
        write!(self.0, "GET {path} HTTP/1.1\r\n{headers}\r\n").unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(self.read(1));
        }
        String::from_utf8(head).unwrap()
    }

    fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Sends bytes in one binary message. Its mask is zero, so the payload is unchanged.
    fn send(&mut self, payload: &[u8]) {
        let length = (payload.len() as u64).to_be_bytes();
        let head = [&[0x82, 0xFF], length.as_slice(), &[0; 4]].concat();
        self.0.write_all(&[head.as_slice(), payload].concat()).unwrap();
    }

    /// The payloads of binary messages, up to a total of `count` bytes.
    fn receive(&mut self, count: usize) -> Vec<u8> {
        let mut payload = Vec::new();
        while payload.len() < count {
            let head = self.read(2);
            assert_eq!(head[0], 0x82);
            let length = match head[1] {
                126 => self.read(2),
                127 => self.read(8),
                length => vec![length],
            };
            let length = length.iter().fold(0, |all, byte| all << 8 | usize::from(*byte));
            payload.extend(self.read(length));
        }
        payload
    }
}

#[test]
fn the_console_works_over_tls() {
    if subject_is_redis() {
        return;
    }
    let (site, port) = (Site::new(), Port::claim());
    let launch = || {
        let launch = site.launch().set("http-port", &port.number().to_string());
        launch.set("http-console", "yes").set("http-tls", "yes")
    };
    each_backend(launch, |_| {
        let host = format!("localhost:{}", port.number());
        let page = Browser::connect(&port, &site).get("/", &format!("Host: {host}\r\n"));
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.contains("\r\nContent-Security-Policy: default-src 'none'; "), "{page}");
        let handshake = |scheme: &str| {
            format!(
                "Host: {host}\r\nOrigin: {scheme}://{host}\r\nUpgrade: websocket\r\n\
                 Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\
                 Sec-WebSocket-Protocol: brisk-console\r\n"
            )
        };
        // A page that was not loaded over TLS is another origin.
        let head = Browser::connect(&port, &site).get("/console/session", &handshake("http"));
        assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
        let mut browser = Browser::connect(&port, &site);
        let head = browser.get("/console/session", &handshake("https"));
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.contains(&format!("\r\nSec-WebSocket-Accept: {PROOF}\r\n")), "{head}");
        browser.send(b"PING\r\n");
        assert_eq!(browser.receive(7), b"+PONG\r\n");
        let value = "v".repeat(LONG_BYTES);
        browser.send(format!("*2\r\n$4\r\nECHO\r\n${LONG_BYTES}\r\n{value}\r\n").as_bytes());
        let reply = format!("${LONG_BYTES}\r\n{value}\r\n");
        assert_eq!(String::from_utf8(browser.receive(reply.len())).unwrap(), reply);
    });
}
