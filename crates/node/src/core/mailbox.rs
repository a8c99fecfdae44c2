//! Messages to a worker from other workers or from any other thread.

use crate::clients::{ClientRecord, flag};
use crate::core::Core;
use brisk_acl::Denied;
use brisk_engine::ReplyBuffer;
use brisk_net::listeners::Replacement;
use brisk_reactor::{OutputBytes, PeerAddr, Token, Waker};
use brisk_structures::poison::EvenPoisoned;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Maximum number of unread lines for monitors. If there are more, lines are dropped and the monitors are disconnected,
/// because a client that reads this slowly cannot be served.
const LINES_MAX: usize = 100_000;
/// Maximum number of bytes of unread lines for monitors. A single line may exceed this limit.
const LINE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A request to a worker.
#[derive(Debug)]
pub enum Message {
    /// Close this client.
    Kill { token: Token, id: u64 },
    /// A line for each of the worker's monitors.
    MonitorLine(Arc<OutputBytes>),
    /// CLIENT PAUSE has ended.
    Unpause,
    /// The wait of a client's command is over, and this is the reply.
    Served(DeliveredReply),
    /// The work for a command of one of this worker's clients is done.
    Computed(Box<crate::core::long::ComputedJob>),
    /// Frozen slots were released.
    Thawed,
    /// End the wait of this client's command, for example because of CLIENT UNBLOCK.
    Unblock { token: Token, id: u64, how: Unblocked },
    /// A snapshot for the worker's replicas has been started or written.
    ContinueFullSyncs,
    /// This session runs MONITOR from now on.
    Monitor(Token),
    /// Accept connections on these listeners instead of the current listeners for the same purpose.
    Listen(Replacement),
    /// For connections that are accepted from now on, send TCP keepalive probes after this many idle seconds.
    Keepalive(u32),
    /// Do this work between two commands.
    Run(Work),
    /// Serve this connection, which another thread has accepted.
    Adopt(Box<NewConnection>),
}

/// A connection to be served by a worker, for a client that is connected to another thread.
#[derive(Debug)]
pub struct NewConnection {
    /// The end of a socket pair. The thread forwards the bytes of the client.
    pub socket: OwnedFd,
    /// The address of the client.
    pub peer: PeerAddr,
    /// The address to which the client is connected.
    pub local: PeerAddr,
    /// The worker stores the record of the client here.
    pub record: Arc<OnceLock<Arc<ClientRecord>>>,
}

/// Work that a worker does on behalf of a thread that is not a worker.
pub struct Work(pub Box<dyn FnOnce(&mut Core) + Send>);

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Work")
    }
}

/// The reply to a command that was waiting.
#[derive(Debug)]
pub struct DeliveredReply {
    pub token: Token,
    pub client: u64,
    pub replies: ReplyBuffer,
}

/// The reply to a client whose wait was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unblocked {
    Timeout,
    Error,
    /// This server has become a replica. The connection is closed after the reply.
    RoleChanged,
    /// The shutdown that the client waits for was canceled.
    EndGivenUp,
    /// The client's user no longer has permission to run the command.
    Forbidden(Denied),
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Message>,
    lines: usize,
    line_bytes: usize,
}

/// The mailboxes of all workers.
#[derive(Debug)]
pub struct Mailboxes(Box<[Mailbox]>);

impl Mailboxes {
    pub(super) fn new(workers: usize) -> Mailboxes {
        Mailboxes((0..workers).map(|_| Mailbox::default()).collect())
    }

    /// Number of workers.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The mailbox of a worker.
    #[inline]
    pub fn of(&self, worker: usize) -> &Mailbox {
        &self.0[worker]
    }

    /// Sends a message to a worker, as [`Mailbox::send`] does.
    pub fn send(&self, worker: usize, message: Message) {
        self.0[worker].send(message);
    }

    /// Sends a message to each worker.
    pub fn send_to_all(&self, message: impl Fn() -> Message) {
        for mailbox in &self.0 {
            mailbox.send(message());
        }
    }

    /// Closes a client on any worker. Its worker executes no more commands for it.
    pub fn close(&self, record: &ClientRecord) {
        record.set(flag::CLOSE_ASAP, true);
        let (token, id) = (record.token, record.id);
        self.send(record.worker, Message::Kill { token, id });
    }

    /// Makes a worker begin a round.
    pub fn wake(&self, worker: usize) {
        self.0[worker].wake();
    }

    /// Makes each worker begin a round.
    pub fn wake_all(&self) {
        for mailbox in &self.0 {
            mailbox.wake();
        }
    }
}

/// One worker's mailbox.
#[derive(Debug, Default)]
pub struct Mailbox {
    messages: Mutex<Queue>,
    /// True if lines for monitors were dropped.
    overflow: AtomicBool,
    waker: OnceLock<Waker>,
}

impl Mailbox {
    /// Sets the waker of the worker. Messages that were sent earlier are kept and wake the worker.
    pub fn connect(&self, waker: Waker) {
        // A mailbox has only one worker, so the waker is set once.
        let _ = self.waker.set(waker);
        self.wake();
    }

    /// Reports whether there are messages.
    pub fn has_messages(&self) -> bool {
        !self.messages.lock().even_poisoned().messages.is_empty()
    }

    /// Sends a message. A line for monitors is dropped if there are too many, see
    /// [`Mailbox::take_overflow`].
    pub fn send(&self, message: Message) {
        let mut queue = self.messages.lock().even_poisoned();
        if let Message::MonitorLine(line) = &message {
            if queue.lines >= LINES_MAX || queue.line_bytes >= LINE_BYTES_MAX {
                self.overflow.store(true, Ordering::Relaxed);
                return;
            }
            queue.lines += 1;
            queue.line_bytes += line.len();
        }
        queue.messages.push_back(message);
        drop(queue);
        self.wake();
    }

    /// Reports whether lines for monitors were dropped since the last call.
    pub fn take_overflow(&self) -> bool {
        self.overflow.swap(false, Ordering::Relaxed)
    }

    pub fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// All messages so far.
    pub fn take(&self) -> VecDeque<Message> {
        let mut queue = self.messages.lock().even_poisoned();
        std::mem::take(&mut *queue).messages
    }
}
