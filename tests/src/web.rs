//! An HTTP client. It is independent of the server's parser, so that it cannot share its bugs.

use brisk_testkit::port::Port;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long to wait for a response, or for the end of a connection. It is longer than the server waits for a request.
const DEADLINE: Duration = Duration::from_secs(40);

/// One connection.
#[derive(Debug)]
pub struct Web {
    stream: TcpStream,
    input: Vec<u8>,
}

/// A response.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    pub status: u16,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl HttpResponse {
    /// The value of a header; empty if it is missing.
    pub fn header(&self, name: &str) -> String {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map_or_else(String::new, |(_, value)| value.clone())
    }
}

impl Web {
    /// Connects to this port.
    #[track_caller]
    pub fn connect(port: &Port) -> Web {
        let stream = TcpStream::connect(("127.0.0.1", port.number()));
        let stream = stream.unwrap_or_else(|error| panic!("no connection by HTTP: {error}"));
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout that is not zero");
        Web { stream, input: Vec::new() }
    }

    /// Sends bytes unchanged.
    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        let sent = self.stream.write_all(bytes);
        sent.unwrap_or_else(|error| panic!("cannot send: {error}"));
    }

    /// Sends bytes. Returns false if the server does not accept all of them within `limit`.
    pub fn send_within(&mut self, limit: Duration, bytes: &[u8]) -> bool {
        self.stream.set_write_timeout(Some(limit)).is_ok() && self.stream.write_all(bytes).is_ok()
    }

    /// Shuts down the sending direction.
    pub fn finish_sending(&self) {
        // If the connection is gone, there is nothing to shut down.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Sends a GET request with these header lines.
    #[track_caller]
    pub fn get(&mut self, path: &str, headers: &str) -> HttpResponse {
        self.request("GET", path, headers, b"")
    }

    /// Sends a request with these header lines and this body.
    #[track_caller]
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> HttpResponse {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{headers}\r\n");
        self.send(&[head.as_bytes(), body].concat());
        self.answer(method == "HEAD")
    }

    /// Reads the next response. The response to HEAD has no body.
    #[track_caller]
    pub fn answer(&mut self, to_head: bool) -> HttpResponse {
        let end = loop {
            if let Some(at) = self.input.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.receive(), "the connection ended: {:?}", self.text());
        };
        let head: Vec<u8> = self.input.drain(..end).collect();
        let head = String::from_utf8(head).expect("a head is text");
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
        let status = status.and_then(|line| line.get(..3)?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {head:?}"));
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").expect("a header has a name");
            (name.to_ascii_lowercase(), value.to_owned())
        });
        let mut response = HttpResponse { status, headers: headers.collect(), body: String::new() };
        let length: usize = response.header("content-length").parse().expect("a length");
        if !to_head {
            while self.input.len() < length {
                assert!(self.receive(), "the connection ended within a body");
            }
            let body = self.input.drain(..length).collect();
            response.body = String::from_utf8(body).expect("a body is text");
        }
        response
    }

    /// Reports whether the server closes the connection without another reply.
    pub fn is_closed(&mut self) -> bool {
        self.input.is_empty() && !self.receive() && self.input.is_empty()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.input).into_owned()
    }

    /// Receives more data. Returns false at the end of the stream. Panics on a timeout.
    #[track_caller]
    fn receive(&mut self) -> bool {
        receive(&mut self.stream, &mut self.input)
    }
}

/// Appends received data to `input`. Returns false at the end of the stream. Panics on a timeout.
#[track_caller]
pub(crate) fn receive(stream: &mut TcpStream, input: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 4096];
    match stream.read(&mut bytes) {
        Ok(0) => false,
        Ok(read) => {
            input.extend_from_slice(&bytes[..read]);
            true
        }
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
        Err(error) => panic!("no data by HTTP: {error}"),
    }
}

/// The Authorization header line for a user and a password.
pub fn basic(user: &str, password: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in format!("{user}:{password}").as_bytes().chunks(3) {
        let number = three.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        let number = number << (8 * (3 - three.len()));
        for digit in 0..4 {
            let value = number >> (18 - 6 * digit) & 63;
            text.push(if digit > three.len() { '=' } else { char::from(DIGITS[value as usize]) });
        }
    }
    format!("Authorization: Basic {text}\r\n")
}

/// The output of a program with this input; `None` if it is not installed.
pub fn piped(program: &str, words: &[&str], input: &str) -> Option<String> {
    let child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    child.stdin.take()?.write_all(input.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}
