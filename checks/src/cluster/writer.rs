//! A client that continuously writes to one shard, follows redirects, and detects lost writes.
//!
//! It writes increasing numbers to one key with SET … GET. The old value shows which acknowledged writes the shard
//! still has: if it is lower than the last acknowledged number, writes were lost.

use brisk_testkit::Conn;
use brisk_testkit::reply::Reply;
use brisk_testkit::wait::holds_within;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The pause between two attempts while no node accepts the write. A longer pause would affect the result.
const RETRY: Duration = Duration::from_millis(2);
/// Maximum number of redirects that one attempt follows.
const REDIRECTS_MAX: usize = 3;

/// Reported when a different node acknowledges a write for the first time, or when a node has lost writes.
#[derive(Debug, Clone)]
pub(super) struct PrimarySwitch {
    pub(super) at: Instant,
    pub(super) address: String,
    /// Number of acknowledged writes that this node does not have.
    pub(super) lost: u64,
}

#[derive(Default)]
struct Shared {
    is_paused: AtomicBool,
    /// True while no write is in progress.
    is_idle: AtomicBool,
    is_ending: AtomicBool,
    acknowledged: AtomicU64,
}

/// A running client. Dropping this value stops it.
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// One message per failover, or per lost write.
    switches: Receiver<PrimarySwitch>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts a client of the shard that has this key. Initially it is paused.
    pub(super) fn start(addresses: Vec<String>, key: &'static str) -> Writer {
        let shared = Arc::new(Shared { is_paused: AtomicBool::new(true), ..Shared::default() });
        let of_thread = Arc::clone(&shared);
        let (sender, switches) = channel();
        let client = Client::new(addresses);
        let thread = std::thread::spawn(move || of_thread.write(client, key, &sender));
        Writer { shared, switches, thread: Some(thread) }
    }

    /// Stops the writer, after the write in progress.
    pub(super) fn pause(&self) {
        self.shared.is_paused.store(true, Ordering::SeqCst);
        while !self.shared.is_idle.load(Ordering::SeqCst) {
            pass(RETRY);
        }
    }

    pub(super) fn resume(&self) {
        self.shared.is_paused.store(false, Ordering::SeqCst);
    }

    /// The number of acknowledged writes.
    pub(super) fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::SeqCst)
    }

    /// Returns the switches to other primaries since the last call.
    pub(super) fn take_switches(&self) -> Vec<PrimarySwitch> {
        self.switches.try_iter().collect()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn write(&self, mut client: Client, key: &str, switches: &Sender<PrimarySwitch>) {
        let mut history = WriteHistory::default();
        let mut primary = String::new();
        while !self.is_ending.load(Ordering::SeqCst) {
            // Set this before reading `is_paused`, so that `pause` sees either this write or an idle client.
            self.is_idle.store(false, Ordering::SeqCst);
            if self.is_paused.load(Ordering::SeqCst) {
                self.is_idle.store(true, Ordering::SeqCst);
                pass(RETRY);
                continue;
            }
            let Some(previous) = client.set(key, history.next()) else {
                pass(RETRY);
                continue;
            };
            let at = Instant::now();
            let lost = history.acknowledge(previous);
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
            if lost > 0 || client.target != primary {
                primary.clone_from(&client.target);
                // The receiver outlives this thread.
                let _ = switches.send(PrimarySwitch { at, address: primary.clone(), lost });
            }
        }
    }
}

/// Waits for this long.
pub(super) fn pass(span: Duration) {
    holds_within(span, || false);
}

/// The numbers that were written.
#[derive(Debug, Default)]
struct WriteHistory {
    sent: u64,
    acknowledged: u64,
}

impl WriteHistory {
    const fn next(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    /// Records that the last number was acknowledged and has replaced `previous`. Returns how many acknowledged writes
    /// the shard has lost.
    const fn acknowledge(&mut self, previous: u64) -> u64 {
        let lost = self.acknowledged.saturating_sub(previous);
        self.acknowledged = self.sent;
        lost
    }
}

/// Connections to the nodes.
struct Client {
    addresses: Vec<String>,
    conns: BTreeMap<String, Conn>,
    /// The address of the node for the next attempt.
    target: String,
    next: usize,
}

impl Client {
    fn new(addresses: Vec<String>) -> Client {
        let target = addresses.first().cloned().unwrap_or_default();
        Client { addresses, conns: BTreeMap::new(), target, next: 0 }
    }

    /// Tries to write once. Returns the previous number, or `None` if no node has acknowledged the write.
    fn set(&mut self, key: &str, number: u64) -> Option<u64> {
        let line = format!("SET {key} {number} GET");
        for _ in 0..=REDIRECTS_MAX {
            match self.call(&line) {
                Ok(Reply::Null) => return Some(0),
                Ok(reply) if !reply.is_error() => return reply.text().parse().ok(),
                Ok(reply) => match redirect(&reply.to_string()) {
                    Some(address) if address != self.target => self.target = address,
                    _ => break,
                },
                Err(_) => {
                    self.conns.remove(&self.target);
                    break;
                }
            }
        }
        self.next = (self.next + 1) % self.addresses.len();
        self.target.clone_from(&self.addresses[self.next]);
        None
    }

    fn call(&mut self, line: &str) -> io::Result<Reply> {
        if !self.conns.contains_key(&self.target) {
            self.conns.insert(self.target.clone(), Conn::try_tcp(&self.target)?);
        }
        self.conns.get_mut(&self.target).ok_or(io::ErrorKind::NotConnected)?.try_cmd(line)
    }
}

/// The address that an error names as the owner of the slot.
fn redirect(error: &str) -> Option<String> {
    let (_, rest) = error.split_once("MOVED ")?;
    rest.split_whitespace().nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_number_than_the_last_acknowledged_one_is_a_loss() {
        let mut history = WriteHistory::default();
        for (previous, lost) in [(0, 0), (1, 0), (2, 0), (1, 2), (4, 0)] {
            history.next();
            assert_eq!(history.acknowledge(previous), lost);
        }
        // A write that the shard has, but whose reply was lost, is not a loss.
        history.next();
        history.next();
        assert_eq!(history.acknowledge(6), 0);
    }

    #[test]
    fn a_redirect_names_the_owner() {
        let moved = redirect("(error) MOVED 3300 127.0.0.1:7001");
        assert_eq!(moved.as_deref(), Some("127.0.0.1:7001"));
        assert_eq!(redirect("(error) CLUSTERDOWN The cluster is down"), None);
    }
}
