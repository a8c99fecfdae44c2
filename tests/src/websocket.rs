//! A WebSocket client. It is independent of the server's implementation, so that it cannot share its bugs.

use crate::web;
use brisk_testkit::port::Port;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

/// How long to wait for a message. It is longer than the server waits for the rest of a frame.
const DEADLINE: Duration = Duration::from_secs(40);
/// The key of each handshake, and the server's proof that it has read it: the example of RFC 6455.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const PROOF: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

pub const TEXT: u8 = 1;
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// One connection after its handshake.
#[derive(Debug)]
pub struct WebSocket {
    stream: TcpStream,
    input: Vec<u8>,
    /// Received bytes of binary messages.
    pub binary: Vec<u8>,
}

/// The header lines of a handshake for this host and origin.
pub fn handshake(host: &str, origin: &str, subprotocol: &str) -> String {
    format!(
        "Host: {host}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\
         Sec-WebSocket-Protocol: {subprotocol}\r\n"
    )
}

impl WebSocket {
    /// Opens a WebSocket as a page of this server does.
    ///
    /// # Errors
    /// The status of the response that rejects it.
    pub fn open(port: &Port, path: &str, subprotocol: &str) -> Result<WebSocket, u16> {
        let host = format!("127.0.0.1:{}", port.number());
        WebSocket::connect(port, path, &handshake(&host, &format!("http://{host}"), subprotocol))
    }

    /// Opens a WebSocket with these header lines.
    ///
    /// # Errors
    /// The status of the response that rejects it.
    pub fn connect(port: &Port, path: &str, headers: &str) -> Result<WebSocket, u16> {
        WebSocket::connect_to(port.number(), path, headers)
    }

    /// Opens a WebSocket to a port that this process has not claimed.
    ///
    /// # Errors
    /// The status of the response that rejects it.
    pub fn connect_to(port: u16, path: &str, headers: &str) -> Result<WebSocket, u16> {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout that is not zero");
        let mut socket = WebSocket { stream, input: Vec::new(), binary: Vec::new() };
        socket.send_bytes(format!("GET {path} HTTP/1.1\r\n{headers}\r\n").as_bytes());
        let end = loop {
            if let Some(at) = socket.input.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(socket.receive(), "the connection ended within the handshake");
        };
        let head: Vec<u8> = socket.input.drain(..end).collect();
        let head = String::from_utf8(head).expect("a head is text");
        let status = head.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
        if status != 101 {
            return Err(status);
        }
        assert!(head.contains(&format!("\r\nSec-WebSocket-Accept: {PROOF}\r\n")), "{head}");
        Ok(socket)
    }

    /// Sends bytes unchanged.
    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server receives bytes");
    }

    /// Sends a message in one frame.
    #[track_caller]
    pub fn send(&mut self, opcode: u8, payload: &[u8]) {
        self.send_bytes(&frame(0x80 | opcode, payload));
    }

    /// Receives the next frame, which the server never fragments. `None` at the end of the connection.
    pub fn receive_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let head = loop {
            let extended = match self.input.get(1) {
                Some(126) => 2,
                Some(127) => 8,
                _ => 0,
            };
            if self.input.len() >= 2 + extended {
                break 2 + extended;
            }
            if !self.receive() {
                return None;
            }
        };
        let short = usize::from(self.input[1]);
        let length = match head {
            2 => short,
            _ => self.input[2..head].iter().fold(0, |all, byte| all << 8 | usize::from(*byte)),
        };
        while self.input.len() < head + length {
            if !self.receive() {
                return None;
            }
        }
        let bytes: Vec<u8> = self.input.drain(..head + length).collect();
        Some((bytes[0] & 0x0F, bytes[head..].to_vec()))
    }

    /// Receives the next text message. Collects the binary messages before it.
    #[track_caller]
    pub fn text(&mut self) -> String {
        loop {
            match self.receive_frame().expect("a message before the end of the connection") {
                (TEXT, text) => return String::from_utf8(text).expect("the text is UTF-8"),
                (BINARY, bytes) => self.binary.extend_from_slice(&bytes),
                _ => {}
            }
        }
    }

    /// Sends a command and receives binary messages until they end with `end`. Returns all of them.
    #[track_caller]
    pub fn ask(&mut self, command: &str, end: &str) -> Vec<u8> {
        self.send(BINARY, format!("{command}\r\n").as_bytes());
        while !self.binary.ends_with(end.as_bytes()) {
            match self.receive_frame() {
                Some((BINARY, bytes)) => self.binary.extend_from_slice(&bytes),
                Some(_) => {}
                None => panic!("ended: {}", String::from_utf8_lossy(&self.binary)),
            }
        }
        std::mem::take(&mut self.binary)
    }

    /// The status of the close frame, which follows after any other frames.
    #[track_caller]
    pub fn close_status(&mut self) -> u16 {
        loop {
            match self.receive_frame().expect("a close frame") {
                (CLOSE, status) => return u16::from_be_bytes([status[0], status[1]]),
                (BINARY, bytes) => self.binary.extend_from_slice(&bytes),
                _ => {}
            }
        }
    }

    fn receive(&mut self) -> bool {
        web::receive(&mut self.stream, &mut self.input)
    }
}

/// A frame of a client. `first` is its first byte.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(0x80 | length as u8),
        length @ 126..=65_535 => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    let mask = [0x1F, 0xA0, 0x33, 0x04];
    bytes.extend_from_slice(&mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}
