//! A fake primary: a test controls everything that it sends.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// The replication ID of the fake primary.
pub const ID: &str = "0123456789abcdef0123456789abcdef01234567";

const TIMEOUT: Duration = Duration::from_secs(30);

/// Opens the listener of the fake primary. Returns it and its port.
///
/// # Panics
/// If no port is available.
#[track_caller]
pub fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    (listener, port)
}

/// Replies to everything that a replica reports about itself, and returns its PSYNC, to which the
/// caller replies.
///
/// # Panics
/// If the server does not connect, or sends an unusable request.
#[track_caller]
pub fn accept_psync(listener: &TcpListener) -> (TcpStream, String) {
    accept_psync_with_reply(listener, "+OK\r\n")
}

/// Like [`accept_psync`], with this reply to everything except PING.
///
/// # Panics
/// If the server does not connect, or sends an unusable request.
#[track_caller]
pub fn accept_psync_with_reply(listener: &TcpListener, usual: &str) -> (TcpStream, String) {
    accept_psync_with_replies(listener, "+PONG\r\n", usual)
}

/// Like [`accept_psync_with_reply`], with this reply to PING.
///
/// # Panics
/// If the server does not connect, or sends an unusable request.
#[track_caller]
pub fn accept_psync_with_replies(
    listener: &TcpListener,
    pong: &str,
    usual: &str,
) -> (TcpStream, String) {
    let (stream, _) = listener.accept().expect("it comes");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a socket");
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    loop {
        let words = request(&mut reader);
        let reply = if words[0] == "PING" { pong } else { usual };
        if words[0] == "PSYNC" {
            return (stream, words.join(" "));
        }
        (&stream).write_all(reply.as_bytes()).expect("it reads");
    }
}

/// Reads the next request, and returns its arguments.
///
/// # Panics
/// If no request arrives.
pub fn request(reader: &mut impl BufRead) -> Vec<String> {
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).expect("it speaks");
        line.trim_end().to_owned()
    };
    let count: usize = line()[1..].parse().expect("an array");
    (0..count)
        .map(|_| {
            line();
            line()
        })
        .collect()
}
