//! `--pipe`: sends requests from standard input unchanged, as fast as the server reads them. Replies are only counted,
//! and errors are reported. An ECHO of random bytes after all requests marks the last reply.

use crate::link::{Link, LinkError};
use crate::options::Options;
use crate::progress::{Progress, Unit};
use crate::screen;
use brisk_resp::reply::decode::{ReplyDecoder, ReplyLimits, ReplyStep};
use brisk_resp::{Value, request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

const BUFFER_BYTES: usize = 64 * 1024;
const MAGIC_BYTES: usize = 20;
/// Interval between checks whether the server has stopped replying.
const LOOK: Duration = Duration::from_secs(1);

/// The state of the transfer.
struct Transfer {
    decoder: ReplyDecoder,
    unread: Vec<u8>,
    pending: Vec<u8>,
    sent: usize,
    sent_in_all: u64,
    progress: Progress,
    magic: [u8; MAGIC_BYTES],
    is_all_read: bool,
    is_done: bool,
    errors: u64,
    replies: u64,
    heard: Instant,
}

pub(super) fn run(link: &mut Link, options: &Options) -> i32 {
    let mut magic = [0; MAGIC_BYTES];
    if getrandom::fill(&mut magic).is_err() || link.stream().set_nonblocking(true).is_err() {
        screen::warn("Random bytes or non-blocking sockets are not available on this system.\n");
        return 1;
    }
    let mut transfer = Transfer {
        decoder: ReplyDecoder::new(ReplyLimits::default()),
        unread: Vec::new(),
        pending: Vec::new(),
        sent: 0,
        sent_in_all: 0,
        progress: Progress::new("Sending", Unit::Bytes, None),
        magic,
        is_all_read: false,
        is_done: false,
        errors: 0,
        replies: 0,
        heard: Instant::now(),
    };
    let silence = Duration::from_secs(options.pipe_timeout_s);
    while !transfer.is_done {
        if let Err(error) = transfer.step(link) {
            screen::flush();
            screen::warn(match error {
                LinkError::Closed | LinkError::Protocol(_) => {
                    "Error reading replies from server\n".to_owned()
                }
                error => format!("Error writing to the server: {error}\n"),
            });
            return 1;
        }
        let waits = transfer.is_all_read && !silence.is_zero();
        if waits && !transfer.is_done && transfer.heard.elapsed() > silence {
            screen::flush();
            screen::warn(format!("No replies for {} seconds: exiting.\n", options.pipe_timeout_s));
            transfer.errors += 1;
            break;
        }
    }
    screen::print(format!("errors: {}, replies: {}\n", transfer.errors, transfer.replies));
    i32::from(transfer.errors > 0)
}

impl Transfer {
    /// Waits until data can be read or written, and reads or writes it.
    fn step(&mut self, link: &mut Link) -> Result<(), LinkError> {
        let has_more = !self.is_all_read || self.sent < self.pending.len();
        let (readable, writable) =
            if link.stream().has_decrypted() { (true, false) } else { ready(link, has_more)? };
        if readable {
            self.receive(link)?;
        }
        if writable && has_more {
            self.send(link)?;
        }
        Ok(())
    }

    fn receive(&mut self, link: &mut Link) -> Result<(), LinkError> {
        let mut buffer = [0; BUFFER_BYTES];
        match link.stream().read(&mut buffer) {
            Ok(0) => return Err(LinkError::Closed),
            Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
            Err(error) if is_for_later(&error) => return Ok(()),
            Err(_) => return Err(LinkError::Closed),
        }
        self.heard = Instant::now();
        let mut at = 0;
        while !self.is_done {
            match self.decoder.decode(&self.unread[at..])? {
                ReplyStep::Value { consumed, value } => {
                    at += consumed;
                    self.count(&value);
                }
                ReplyStep::Incomplete { consumed, .. } => {
                    at += consumed;
                    break;
                }
            }
        }
        self.unread.drain(..at);
        Ok(())
    }

    fn count(&mut self, value: &Value) {
        match value {
            Value::Push(_) => return,
            Value::Error(text) => {
                self.progress.clear();
                screen::warn([text, &b"\n"[..]].concat());
                self.errors += 1;
            }
            Value::Bulk(bytes) if self.is_all_read && *bytes == self.magic => {
                screen::print("Last reply received from server.\n");
                self.is_done = true;
                return;
            }
            _ => {}
        }
        self.replies += 1;
    }

    /// Sends pending bytes, as far as the socket accepts them. If there are none, reads standard input first.
    fn send(&mut self, link: &mut Link) -> Result<(), LinkError> {
        if self.sent == self.pending.len() {
            self.refill();
        }
        while self.sent < self.pending.len() {
            match link.stream().write(&self.pending[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    self.sent_in_all += count as u64;
                }
                Err(error) if is_for_later(&error) => break,
                Err(error) => return Err(LinkError::Io(error)),
            }
        }
        if !self.is_all_read {
            self.progress.at(self.sent_in_all);
        }
        match link.stream().flush() {
            Err(error) if !is_for_later(&error) => Err(LinkError::Io(error)),
            _ => Ok(()),
        }
    }

    fn refill(&mut self) {
        self.sent = 0;
        self.pending.resize(BUFFER_BYTES, 0);
        match io::stdin().lock().read(&mut self.pending) {
            Ok(count) if count > 0 => self.pending.truncate(count),
            Ok(_) => {
                self.pending.clear();
                self.is_all_read = true;
                self.heard = Instant::now();
                // Completes a last line that has no newline.
                self.pending.extend_from_slice(b"\r\n");
                request::encode(&mut self.pending, &[&b"ECHO"[..], &self.magic]);
                self.progress.clear();
                screen::print("All data transferred. Waiting for the last reply...\n");
                screen::flush();
            }
            Err(error) => {
                let text = crate::link::plain(&error);
                screen::warn(format!("Error reading from stdin: {text}\n"));
                screen::exit(1);
            }
        }
    }
}

/// Reports whether the connection is readable, and whether it is writable.
fn ready(link: &mut Link, writes: bool) -> Result<(bool, bool), LinkError> {
    let mut wanted = PollFlags::IN;
    if writes {
        wanted |= PollFlags::OUT;
    }
    let limit = Timespec { tv_sec: i64::try_from(LOOK.as_secs()).unwrap_or(1), tv_nsec: 0 };
    let mut fds = [PollFd::new(link.stream(), wanted)];
    match poll(&mut fds, Some(&limit)) {
        Ok(_) => {
            let now = fds[0].revents();
            let ends = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
            Ok((now.intersects(ends), now.contains(PollFlags::OUT)))
        }
        Err(rustix::io::Errno::INTR) => Ok((false, false)),
        Err(error) => Err(LinkError::Io(error.into())),
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
