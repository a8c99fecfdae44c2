//! One connection: the bytes that it still has to send, and the replies that it waits for.

use crate::error::RunError;
use crate::load::batch::Batch;
use crate::scan::Scanner;
use brisk_dial::tls;
use brisk_resp::{ReplyDecoder, ReplyLimits};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustls::ClientConnection;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

/// A connection and its progress.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Its node, as an index into the nodes of its worker.
    pub(super) site: usize,
    pub(super) socket: Option<OwnedFd>,
    pub(super) tls: Option<Box<ClientConnection>>,
    pub(super) scanner: Scanner,
    /// Set only if replies are verified.
    pub(super) judge: Option<Box<Judge>>,
    pub(super) batch: Batch,
    /// Bytes of the prelude that have not been sent yet.
    prelude_unsent: usize,
    /// Bytes of the batch, and the number of bytes already sent.
    len: usize,
    sent: usize,
    /// Replies to the prelude that have not arrived.
    pub(super) prelude_pending: usize,
    /// Replies to requests that have not arrived.
    pub(super) pending: usize,
    /// True if the batch is measured (closed loop).
    pub(super) counts: bool,
    /// When the batch was sent.
    pub(super) started_ns: u64,
    /// When its pending requests were due (open loop).
    pub(super) due_ns: VecDeque<u64>,
    /// True if it is in the worker's list of lanes with bytes to send.
    pub(super) listed: bool,
    /// True if it is in the worker's list of lanes that can take requests (open loop).
    pub(super) offered: bool,
    /// True if it connects ahead of its turn, and waits for the turn once it is connected.
    pub(super) held: bool,
    /// True if it has ever been connected and received a reply.
    pub(super) greeted: bool,
}

/// The state for verifying the replies of a connection.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) decoder: ReplyDecoder,
    pub(super) unread: Vec<u8>,
}

impl Judge {
    pub(super) fn new() -> Judge {
        Judge { decoder: ReplyDecoder::new(ReplyLimits::default()), unread: Vec::new() }
    }
}

impl Lane {
    /// Creates a lane that is not connected, for the node `site` of its worker. Its replies are checked if `verified`.
    pub(super) fn new(site: usize, verified: bool) -> Lane {
        Lane { site, judge: verified.then(|| Box::new(Judge::new())), ..Lane::default() }
    }

    /// Switches to a new socket. The state of the previous connection is discarded.
    pub(super) fn connected(
        &mut self,
        socket: OwnedFd,
        session: Option<ClientConnection>,
        prelude: (&[u8], usize),
    ) -> io::Result<()> {
        self.socket = Some(socket);
        self.scanner = Scanner::default();
        if self.judge.is_some() {
            self.judge = Some(Box::new(Judge::new()));
        }
        self.batch.forget();
        self.due_ns.clear();
        (self.len, self.sent, self.pending) = (0, 0, 0);
        self.prelude_pending = prelude.1;
        self.prelude_unsent = prelude.0.len();
        self.tls = session.map(Box::new);
        if let Some(session) = &mut self.tls {
            tls::write_plain(session, prelude.0)?;
            self.prelude_unsent = 0;
        }
        Ok(())
    }

    /// Prepares to send a batch of `len` bytes with `count` requests.
    #[inline]
    pub(super) fn load(&mut self, len: usize, count: usize) -> io::Result<()> {
        self.len = len;
        self.sent = 0;
        self.pending += count;
        if let Some(session) = &mut self.tls {
            tls::write_plain(session, self.batch.bytes(len))?;
            self.sent = len;
        }
        Ok(())
    }

    /// Reports whether the last batch has been sent completely, so that another can be written.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.len && self.prelude_unsent == 0
    }

    /// Sends as much as the socket accepts. The rest follows when the socket is writable again.
    #[inline]
    pub(super) fn flush(&mut self, prelude: &[u8]) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Ok(()) };
        if let Some(session) = &mut self.tls {
            return tls::flush(session, &mut Raw(socket)).map(drop);
        }
        while self.prelude_unsent > 0 {
            match put(socket, &prelude[prelude.len() - self.prelude_unsent..])? {
                Some(count) => self.prelude_unsent -= count,
                None => return Ok(()),
            }
        }
        while self.sent < self.len {
            match put(socket, &self.batch.bytes(self.len)[self.sent..])? {
                Some(count) => self.sent += count,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Handles `count` replies. Returns how many of them are replies to requests.
    #[inline]
    pub(super) fn take_replies(&mut self, count: usize) -> Result<usize, RunError> {
        let prelude = count.min(self.prelude_pending);
        self.prelude_pending -= prelude;
        let count = count - prelude;
        self.pending = self.pending.checked_sub(count).ok_or(RunError::Surplus)?;
        Ok(count)
    }
}

/// A socket in the form that the TLS code writes to.
struct Raw<'a>(&'a OwnedFd);

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        put(self.0, bytes)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends some of the bytes. Returns `None` if the socket accepts none now or is still connecting.
#[inline]
fn put(socket: &OwnedFd, bytes: &[u8]) -> io::Result<Option<usize>> {
    match send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(count) => Ok(Some(count)),
        // Unix sockets and connecting sockets report this in different ways.
        Err(Errno::AGAIN) => Ok(None),
        Err(Errno::INTR) => Ok(Some(0)),
        Err(error) => Err(error.into()),
    }
}
