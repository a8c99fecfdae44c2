//! The connections between servers. Bytes arrive late, in pieces, in one direction only, or not at
//! all.

use super::thread_group::Dial;
use brisk_testkit::random::Random;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of bytes in flight. If there are more, the sender has to wait.
const WINDOW: usize = 64 << 10;

/// One direction of a connection.
#[derive(Default)]
pub(super) struct Lane {
    bytes: VecDeque<u8>,
    /// True if the sender has closed the connection.
    is_ended: bool,
    pub(super) is_held: bool,
}

/// A replica's request for the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PsyncRequest {
    pub(super) id: String,
    pub(super) first: i64,
    pub(super) takes_over: bool,
}

/// A connection of a replica to its primary.
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) from: usize,
    pub(super) to: usize,
    near: UnixStream,
    far: UnixStream,
    signal: Arc<AtomicBool>,
    pub(super) forth: Lane,
    pub(super) back: Lane,
    /// Maximum number of bytes that arrive at a time.
    grain: usize,
    /// The bytes that the replica has sent, until it has requested the stream.
    said: Option<Vec<u8>>,
    /// The replica's request, as long as the reply is not known.
    pub(super) psync: Option<PsyncRequest>,
    heard: Vec<u8>,
}

impl Lane {
    fn collect(&mut self, from: &UnixStream) -> Vec<u8> {
        let mut all = Vec::new();
        let mut bytes = [0; 4096];
        while !self.is_ended && self.bytes.len() < WINDOW {
            match (&*from).read(&mut bytes) {
                Ok(0) => self.is_ended = true,
                Ok(len) => {
                    self.bytes.extend(&bytes[..len]);
                    all.extend_from_slice(&bytes[..len]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.is_ended = true,
            }
        }
        all
    }

    fn deliver(&mut self, to: &UnixStream, most: usize) -> Vec<u8> {
        let some: Vec<u8> = self.bytes.iter().take(most).copied().collect();
        match (&*to).write(&some) {
            Ok(len) => self.bytes.drain(..len).collect(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Vec::new(),
            Err(_) => {
                // The receiver has closed the connection.
                self.bytes.clear();
                self.is_ended = true;
                Vec::new()
            }
        }
    }
}

impl Connection {
    /// Creates a connection. The caller must pass the server's end to the server.
    pub(super) fn new(
        number: u64,
        from: usize,
        dial: Dial,
        random: &mut Random,
    ) -> (Connection, UnixStream) {
        let (far, other) = UnixStream::pair().expect("two sockets");
        far.set_nonblocking(true).expect("a socket");
        other.set_nonblocking(true).expect("a socket");
        let connection = Connection {
            number,
            from,
            to: dial.to,
            near: dial.end,
            far,
            signal: dial.signal,
            forth: Lane::default(),
            back: Lane::default(),
            grain: *random.pick(&[7, 60, 500, 5000, WINDOW, WINDOW]),
            said: Some(Vec::new()),
            psync: None,
            heard: Vec::new(),
        };
        (connection, other)
    }

    /// Takes the bytes that both ends have sent. Returns the reply to the replica's request when it
    /// has arrived.
    pub(super) fn collect(&mut self) -> Option<String> {
        self.forth.collect(&self.near);
        let news = self.back.collect(&self.far);
        self.psync.as_ref()?;
        self.heard.extend(news);
        while self.heard.first().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            self.heard.remove(0);
        }
        let end = self.heard.iter().position(|byte| *byte == b'\r')?;
        self.psync = None;
        Some(String::from_utf8_lossy(&self.heard[..end]).into_owned())
    }

    /// Delivers some bytes to the server, and records a request for the stream. Returns true if there were any bytes.
    pub(super) fn deliver_there(&mut self, random: &mut Random) -> bool {
        if self.forth.is_held {
            return false;
        }
        let most = 1 + random.below(self.grain.min(self.forth.bytes.len().max(1)));
        let news = self.forth.deliver(&self.far, most);
        if let Some(said) = &mut self.said {
            said.extend_from_slice(&news);
            if let Some(psync) = find_psync(said) {
                (self.psync, self.said) = (Some(psync), None);
            }
        }
        !news.is_empty()
    }

    pub(super) fn deliver_back(&mut self, random: &mut Random) -> bool {
        if self.back.is_held {
            return false;
        }
        let most = 1 + random.below(self.grain.min(self.back.bytes.len().max(1)));
        let came = !self.back.deliver(&self.near, most).is_empty();
        if came {
            self.signal.store(true, Ordering::SeqCst);
        }
        came
    }

    /// True if one end has closed the connection and the other end has received everything that was sent before.
    pub(super) fn is_over(&self) -> bool {
        [&self.forth, &self.back].into_iter().any(|lane| lane.is_ended && lane.bytes.is_empty())
    }

    /// Breaks the connection. Bytes in flight are lost.
    pub(super) fn cut(self) {
        // The sockets may already be closed.
        let _ = self.near.shutdown(Shutdown::Both);
        let _ = self.far.shutdown(Shutdown::Both);
        self.signal.store(true, Ordering::SeqCst);
    }
}

/// Returns the request for the stream, if it is complete.
fn find_psync(said: &[u8]) -> Option<PsyncRequest> {
    let text = String::from_utf8_lossy(said);
    let (before, after) = text.split_once("$5\r\nPSYNC\r\n")?;
    let words: usize = before.trim_end().rsplit('*').next()?.parse().ok()?;
    let parts: Vec<&str> = after.split("\r\n").collect();
    // There are a length and a value for each argument, and the rest after the last line ending.
    (parts.len() > 2 * (words - 1)).then(|| PsyncRequest {
        id: parts[1].to_owned(),
        first: parts[3].parse().expect("a number"),
        takes_over: words > 3,
    })
}
