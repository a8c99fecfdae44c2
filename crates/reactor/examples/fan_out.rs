//! The minimum work of a fan-out: one `write` per subscriber and request. Any additional cost of
//! PUBLISH in a server is the server's own. Only a server with fewer system calls can be cheaper.
//!
//! `fan_out [--port N]`. The program serves connections one after the other. Connections that begin
//! with SUBSCRIBE are subscribed and kept. The first connection that begins with another command is
//! the publisher. When the publisher closes its connection, the program ends.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;

/// Maximum number of bytes that a publisher may send at once.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Reads more bytes into `buffer`. Returns false at the end of the stream.
fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut chunk = [0; 64 * 1024];
    let read = stream.read(&mut chunk)?;
    if buffer.len() + read > REQUEST_BYTES_MAX {
        return Err(io::Error::other("a request is too long"));
    }
    buffer.extend_from_slice(&chunk[..read]);
    Ok(read > 0)
}

/// Returns the number after `sign` at `at`, and the offset of the next line.
fn number(bytes: &[u8], at: usize, sign: u8) -> Option<(usize, usize)> {
    let line = bytes.get(at..)?.strip_prefix(&[sign])?;
    let end = line.windows(2).position(|two| two == b"\r\n")?;
    let digits = std::str::from_utf8(&line[..end]).ok()?;
    Some((digits.parse().ok()?, at + 1 + end + 2))
}

/// Returns the arguments of the first request in `bytes`, and its length.
fn request(bytes: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let (count, mut at) = number(bytes, 0, b'*')?;
    let mut args = Vec::new();
    for _ in 0..count {
        let (len, begin) = number(bytes, at, b'$')?;
        args.push(bytes.get(begin..begin + len)?);
        at = begin + len + 2;
    }
    (at <= bytes.len()).then_some((args, at))
}

fn push(out: &mut Vec<u8>, args: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args {
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

/// Forwards published messages until the publisher disconnects.
fn publish(
    mut publisher: TcpStream,
    mut buffer: Vec<u8>,
    subscribers: &mut [TcpStream],
) -> io::Result<()> {
    let (mut messages, mut replies) = (Vec::new(), Vec::new());
    loop {
        let mut taken = 0;
        while let Some((args, len)) = request(&buffer[taken..]) {
            match args[..] {
                [b"PUBLISH", channel, payload] => {
                    push(&mut messages, &[b"message", channel, payload]);
                    replies.extend_from_slice(format!(":{}\r\n", subscribers.len()).as_bytes());
                }
                _ => replies.extend_from_slice(b"+OK\r\n"),
            }
            taken += len;
        }
        buffer.drain(..taken);
        // If the buffer ends with an incomplete request, wait for the rest, so that all messages
        // are sent with one write.
        if buffer.is_empty() {
            for subscriber in &mut *subscribers {
                subscriber.write_all(&messages)?;
            }
            publisher.write_all(&replies)?;
            messages.clear();
            replies.clear();
        }
        if !read_more(&mut publisher, &mut buffer)? {
            return Ok(());
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut port: u16 = 7000;
    let mut args = std::env::args().skip(1);
    while let Some(option) = args.next() {
        let value = args.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--port" => port = value.parse()?,
            _ => return Err(format!("unknown option {option} {value}").into()),
        }
    }
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let mut subscribers = Vec::new();
    loop {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut buffer = Vec::new();
        // A client that connects and sends nothing only checks that the port is open.
        let first = loop {
            if let Some((args, _)) = request(&buffer) {
                break Some(args.iter().map(|arg| arg.to_vec()).collect::<Vec<_>>());
            }
            if !read_more(&mut stream, &mut buffer)? {
                break None;
            }
        };
        match first.as_deref() {
            None => {}
            Some([subscribe, channel]) if subscribe == b"SUBSCRIBE" => {
                let mut reply = b"*3\r\n$9\r\nsubscribe\r\n".to_vec();
                reply.extend_from_slice(format!("${}\r\n", channel.len()).as_bytes());
                reply.extend_from_slice(channel);
                reply.extend_from_slice(b"\r\n:1\r\n");
                stream.write_all(&reply)?;
                subscribers.push(stream);
            }
            Some(_) => return Ok(publish(stream, buffer, &mut subscribers)?),
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fan_out: {error}");
            ExitCode::FAILURE
        }
    }
}
