//! Clients that write to every node of a shard, and the rules that their acknowledged writes must follow.
//!
//! A client on each node increments a key in a transaction that also reads the shard's term. So each acknowledged
//! increment has the term in which it was executed. Clients do not follow redirects, so a former primary that still
//! serves would be noticed.

use super::writer::pass;
use brisk_structures::poison::EvenPoisoned as _;
use brisk_testkit::Conn;
use brisk_testkit::reply::Reply;
use brisk_testkit::wait::holds_within;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The pause of a client between two requests.
const PAUSE: Duration = Duration::from_millis(3);
/// The longest wait for a reply, because a stopped node sends no replies.
const REPLY_MAX: Duration = Duration::from_secs(1);

/// An acknowledged increment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Acknowledged {
    term: u64,
    node: usize,
    value: i64,
}

/// The acknowledged increments of a shard.
#[derive(Debug, Default)]
struct ShardHistory {
    /// The last acknowledged increment in the highest term.
    last: Option<Acknowledged>,
    writes: u64,
    /// Number of acknowledged increments that the next term did not have.
    lost: u64,
    violations: Vec<String>,
}

impl ShardHistory {
    /// Records an acknowledged increment. `before` is the last one that was known when the request was sent.
    fn note(&mut self, before: Option<Acknowledged>, new: Acknowledged) {
        self.writes += 1;
        let follows = before.is_none_or(|before| {
            let continues = (new.term, new.node) == (before.term, before.node);
            new.term > before.term || (continues && new.value > before.value)
        });
        if !follows {
            self.violations.push(format!("{new:?} was sent after {before:?} was acknowledged"));
        }
        if let Some(last) = self.last.filter(|last| new.term > last.term) {
            self.lost += u64::try_from(last.value - new.value + 1).unwrap_or_default();
        }
        if self.last.is_none_or(|last| (new.term, new.value) > (last.term, last.value)) {
            self.last = Some(new);
        }
    }
}

/// The running clients of all shards.
pub(super) struct Clients {
    shards: Vec<Arc<Mutex<ShardHistory>>>,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Starts a client for each key at each address.
    pub(super) fn start(addresses: &[String], keys: &[&'static str]) -> Clients {
        let ends = Arc::new(AtomicBool::new(false));
        let (mut shards, mut threads) = (Vec::new(), Vec::new());
        for &key in keys {
            let history = Arc::new(Mutex::new(ShardHistory::default()));
            for (node, address) in addresses.iter().cloned().enumerate() {
                let (history, ends) = (Arc::clone(&history), Arc::clone(&ends));
                threads.push(std::thread::spawn(move || {
                    write(&history, &ends, key, node, &address);
                }));
            }
            shards.push(history);
        }
        Clients { shards, ends, threads }
    }

    /// The numbers of acknowledged increments in all shards, and of those that later terms did not have.
    pub(super) fn counts(&self) -> (u64, u64) {
        let counts = self.shards.iter().map(|shard| {
            let history = shard.lock().even_poisoned();
            (history.writes, history.lost)
        });
        counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// Waits until every shard has acknowledged an increment that was sent after this call. Returns false if that takes
    /// longer than `limit`.
    pub(super) fn all_progress(&self, limit: Duration) -> bool {
        let writes = || -> Vec<u64> {
            let lock = |shard: &Arc<Mutex<ShardHistory>>| shard.lock().even_poisoned().writes;
            self.shards.iter().map(lock).collect()
        };
        let before = writes();
        // Each client has at most one pending request.
        let enough = self.threads.len() as u64 + 1;
        holds_within(limit, || {
            writes().iter().zip(&before).all(|(now, then)| *now >= then + enough)
        })
    }

    /// The violations of the rules since the last call.
    pub(super) fn take_violations(&self) -> Vec<String> {
        let take = |shard: &Arc<Mutex<ShardHistory>>| {
            std::mem::take(&mut shard.lock().even_poisoned().violations)
        };
        self.shards.iter().flat_map(take).collect()
    }

    /// Stops the clients.
    pub(super) fn stop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.stop();
    }
}

fn write(history: &Mutex<ShardHistory>, ends: &AtomicBool, key: &str, node: usize, address: &str) {
    let lock = || history.lock().even_poisoned();
    let mut conn = None;
    while !ends.load(Ordering::SeqCst) {
        pass(PAUSE);
        let before = lock().last;
        match increment(&mut conn, address, key) {
            Ok(Some((value, term))) => lock().note(before, Acknowledged { term, node, value }),
            Ok(None) => {}
            Err(_) => conn = None,
        }
    }
}

/// Runs one transaction. Returns `None` if the node does not serve the key.
fn increment(conn: &mut Option<Conn>, address: &str, key: &str) -> io::Result<Option<(i64, u64)>> {
    if conn.is_none() {
        let mut new = Conn::try_tcp(address)?;
        new.give_up_after(REPLY_MAX);
        *conn = Some(new);
    }
    let conn = conn.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    conn.try_cmd("MULTI")?;
    if conn.try_cmd(&format!("INCR {key}"))?.is_error() {
        conn.try_cmd("DISCARD")?;
        return Ok(None);
    }
    conn.try_cmd("CLUSTER INFO")?;
    let reply = conn.try_cmd("EXEC")?;
    let Reply::Array(_) = &reply else { return Ok(None) };
    let [value, info] = reply.elements()[..] else { return Ok(None) };
    let info = info.text();
    let term = info.lines().find_map(|line| line.strip_prefix("cluster_shard_term:"));
    let (Ok(value), Some(Ok(term))) = (value.text().parse(), term.map(|term| term.trim().parse()))
    else {
        return Ok(None);
    };
    Ok(Some((value, term)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(term: u64, node: usize, value: i64) -> Acknowledged {
        Acknowledged { term, node, value }
    }

    /// Records increments one after the other.
    fn noted(all: &[Acknowledged]) -> ShardHistory {
        let mut history = ShardHistory::default();
        for new in all {
            let before = history.last;
            history.note(before, *new);
        }
        history
    }

    #[test]
    fn terms_and_values_grow() {
        let history = noted(&[at(1, 0, 1), at(1, 0, 2), at(2, 1, 3), at(4, 0, 4)]);
        assert_eq!((history.violations.len(), history.lost, history.writes), (0, 0, 4));
        let lost = noted(&[at(1, 0, 1), at(1, 0, 9), at(2, 1, 8)]);
        assert_eq!((lost.violations.len(), lost.lost), (0, 2));
        for second in [at(1, 1, 8), at(1, 0, 7), at(1, 0, 6), at(2, 1, 9)] {
            let history = noted(&[at(2, 0, 7), second]);
            assert_eq!(history.violations.len(), 1, "{second:?}");
        }
    }

    #[test]
    fn a_request_that_was_under_way_violates_nothing() {
        let mut history = noted(&[at(1, 0, 1)]);
        let before = history.last;
        history.note(before, at(2, 1, 2));
        history.note(before, at(1, 0, 2));
        assert_eq!(history.violations, Vec::<String>::new());
        assert_eq!(history.last, Some(at(2, 1, 2)));
    }
}
