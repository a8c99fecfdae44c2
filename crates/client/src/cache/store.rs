//! The cached replies by command, and the entries to drop when a key changes.
//!
//! An entry is a placeholder from before its request is sent until the reply arrives, and a value afterwards. It is
//! dropped when one of its keys changes, when the connection is lost, when it is too old, or to make room. A reply is
//! stored only if its own placeholder still exists.

use super::flight::Flight;
use crate::error::{Error, Kind};
use crate::lane::cell::Submitted;
use crate::lane::driver::PushHandler;
use crate::lane::pending_reply::PendingReply;
use crate::poison::lock;
use crate::reply::Reply;
use brisk_resp::reply::read::Part;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The size of an entry in addition to its command and its reply: its place in the list and in the table, and the
/// allocator's overhead. This is an estimate from the sizes of the types.
pub(super) const ENTRY_BYTES: usize = 256;
/// The estimated size of the record of each key of an entry, in bytes.
pub(super) const KEY_BYTES: usize = 32;
/// If nothing has arrived on the connection for this long, serving a value also sends a PING. This way, a lost
/// connection is noticed even if no requests are sent.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// The counters of a cache; see [`Cache::stats`](super::Cache::stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Reads that were served without a request.
    pub hits: u64,
    /// Reads that sent a request.
    pub misses: u64,
    /// Reads that waited for the request of another caller.
    pub shared: u64,
    /// Values that were evicted to make room.
    pub evictions: u64,
    /// Values and pending requests that were dropped because a key had changed.
    pub invalidations: u64,
    /// How many times everything was dropped because the connection was lost.
    pub losses: u64,
    /// The current number of values and pending requests.
    pub entries: usize,
    /// The approximate memory of these entries, in bytes.
    pub bytes: usize,
}

pub(super) struct Store {
    state: Mutex<State>,
    bytes_max: usize,
    hasher: RandomState,
}

struct State {
    by_command: HashMap<Arc<[u8]>, u32>,
    /// The entries of each key, by the key's hash. If two hashes collide, an unaffected entry is removed as well, which
    /// does no harm.
    by_key: BTreeSet<(u64, u32)>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// The clock hand: the position at which the search for the next entry to evict starts.
    hand: usize,
    stats: CacheStats,
    heard: Instant,
    needs_ping: bool,
}

struct Entry {
    command: Arc<[u8]>,
    keys: Box<[u64]>,
    bytes: usize,
    content: Content,
}

enum Content {
    /// The request is in progress.
    InFlight(Arc<Flight>),
    Value(Value),
}

pub(super) struct Value {
    pub(super) reply: Reply,
    /// When the request was made.
    pub(super) since: Instant,
    /// The earliest expiry time of its keys.
    pub(super) until: Option<Instant>,
    /// True if the entry has been used since the hand last passed it.
    pub(super) was_used: bool,
}

/// The result of looking up a command.
pub(super) enum Lookup {
    /// The cached reply. If `needs_ping` is true, nothing has arrived for a while, and the caller must send a PING.
    Value { reply: Reply, needs_ping: bool },
    /// The request of another caller is in progress.
    Shared(Submitted),
    /// A new request, which this caller sends.
    Started(Arc<Flight>),
}

impl Store {
    pub(super) fn new(bytes_max: usize) -> Store {
        let state = State {
            by_command: HashMap::new(),
            by_key: BTreeSet::new(),
            entries: Vec::new(),
            free: Vec::new(),
            hand: 0,
            stats: CacheStats::default(),
            heard: Instant::now(),
            needs_ping: false,
        };
        Store { state: Mutex::new(state), bytes_max, hasher: RandomState::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The hash under which a key is stored.
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns a command's reply no older than `age_max`, or the pending request for it, or the request that `begin`
    /// makes. All of this happens under one lock, so only one of many callers sends the request. O(bytes of the
    /// command).
    pub(super) fn find(
        &self,
        command: &[u8],
        age_max: Duration,
        timeout: Option<Duration>,
        waker: &Waker,
        begin: impl FnOnce() -> Result<(Arc<Flight>, Box<[u64]>), Error>,
    ) -> Result<Lookup, Error> {
        let now = Instant::now();
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(at) = state.by_command.get(command).copied() {
            let is_young = |since: Instant| now.saturating_duration_since(since) < age_max;
            match state.content(at) {
                Some(Content::Value(value))
                    if is_young(value.since) && value.until.is_none_or(|until| now < until) =>
                {
                    value.was_used = true;
                    let reply = value.reply.clone();
                    state.stats.hits += 1;
                    let is_silent = now.saturating_duration_since(state.heard) >= HEARTBEAT;
                    let needs_ping =
                        is_silent && !std::mem::replace(&mut state.needs_ping, is_silent);
                    return Ok(Lookup::Value { reply, needs_ping });
                }
                Some(Content::InFlight(flight))
                    if is_young(flight.since) && flight.timeout == timeout =>
                {
                    let pending_reply = PendingReply::take(waker);
                    flight.join(crate::sync::Arc::clone(&pending_reply));
                    state.stats.shared += 1;
                    return Ok(Lookup::Shared(Submitted::Waits(pending_reply)));
                }
                _ => {}
            }
        }
        let (flight, keys) = begin()?;
        if let Some(before) = state.by_command.get(command).copied() {
            state.remove(before);
        }
        state.stats.misses += 1;
        state.insert(keys, Arc::clone(&flight));
        Ok(Lookup::Started(flight))
    }

    /// Completes a request. Its reply is stored if the placeholder still exists. From now on, no caller joins the
    /// request.
    pub(super) fn settle(&self, flight: &Arc<Flight>, value: Option<Value>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if value.is_some() {
            state.heard = Instant::now();
        }
        let Some(at) = state.by_command.get(flight.command()).copied() else { return };
        let is_ours = matches!(state.content(at), Some(Content::InFlight(present)) if Arc::ptr_eq(present, flight));
        if !is_ours {
            return;
        }
        let Some(value) = value else { return state.remove(at) };
        let more = reply_bytes(&value.reply);
        let entry = state.entries.get_mut(at as usize).and_then(Option::as_mut);
        let Some(entry) = entry.filter(|entry| entry.bytes + more <= self.bytes_max) else {
            return state.remove(at);
        };
        entry.bytes += more;
        entry.content = Content::Value(value);
        state.stats.bytes += more;
        state.make_room(self.bytes_max);
    }

    /// Records that a PING has ended, with or without a reply.
    pub(super) fn ping_ended(&self, has_reply: bool) {
        let mut state = self.lock();
        state.needs_ping = false;
        if has_reply {
            state.heard = Instant::now();
        }
    }

    /// Drops the entries that have this key.
    pub(super) fn forget(&self, key: &[u8]) -> usize {
        let hash = self.hash(key);
        self.lock().forget(hash)
    }

    pub(super) fn forget_all(&self) -> usize {
        self.lock().clear()
    }

    pub(super) fn stats(&self) -> CacheStats {
        let state = self.lock();
        CacheStats { entries: state.by_command.len(), ..state.stats }
    }

    /// Drops the entries of the keys in an invalidation message. Other messages are ignored; a malformed one is an
    /// error.
    fn invalidate(&self, message: &Reply) -> Result<(), Error> {
        let mut reader = message.reader();
        reader.part()?;
        if reader.part()?.as_bytes() != Some(b"invalidate") {
            return Ok(());
        }
        let part = reader.part()?;
        let dropped = match part {
            Part::Null => self.forget_all(),
            Part::Array(count) => {
                let mut dropped = 0;
                for _ in 0..count {
                    let key = reader.part()?;
                    let key = key.as_bytes();
                    dropped +=
                        self.forget(key.ok_or_else(|| Error::new(Kind::Protocol, "no key"))?);
                }
                dropped
            }
            _ => return Err(Error::new(Kind::Protocol, "no keys")),
        };
        let mut state = self.lock();
        state.stats.invalidations += dropped as u64;
        state.heard = Instant::now();
        Ok(())
    }
}

/// The driver calls this after it has delivered the replies that precede the message, and before those that follow it.
impl PushHandler for Store {
    fn push(&self, message: Reply) {
        if self.invalidate(&message).is_err() {
            // The message is malformed, so any key may have changed.
            self.forget_all();
        }
    }

    fn lost(&self) {
        let mut state = self.lock();
        state.clear();
        state.stats.losses += 1;
    }
}

fn reply_bytes(reply: &Reply) -> usize {
    if reply.is_small() { 0 } else { reply.as_bytes().len() }
}

impl State {
    fn content(&mut self, at: u32) -> Option<&mut Content> {
        let entry = self.entries.get_mut(at as usize)?.as_mut()?;
        Some(&mut entry.content)
    }

    fn insert(&mut self, keys: Box<[u64]>, flight: Arc<Flight>) {
        let at = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            // Each entry takes hundreds of bytes, so memory runs out long before this limit.
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        let bytes = ENTRY_BYTES + flight.command().len() + keys.len() * KEY_BYTES;
        self.stats.bytes += bytes;
        self.by_key.extend(keys.iter().map(|key| (*key, at)));
        let command = Arc::clone(flight.command());
        self.by_command.insert(Arc::clone(&command), at);
        let entry = Entry { command, keys, bytes, content: Content::InFlight(flight) };
        if let Some(slot) = self.entries.get_mut(at as usize) {
            *slot = Some(entry);
        }
    }

    fn remove(&mut self, at: u32) {
        let Some(entry) = self.entries.get_mut(at as usize).and_then(Option::take) else { return };
        self.by_command.remove(&entry.command);
        for key in &entry.keys {
            self.by_key.remove(&(*key, at));
        }
        self.stats.bytes -= entry.bytes;
        self.free.push(at);
    }

    /// Drops all entries that have a key with this hash. Returns the number of dropped entries, and takes time
    /// proportional to that number.
    fn forget(&mut self, key: u64) -> usize {
        let mut count = 0;
        while let Some((_, at)) = self.by_key.range((key, 0)..=(key, u32::MAX)).next().copied() {
            self.remove(at);
            count += 1;
        }
        count
    }

    fn clear(&mut self) -> usize {
        let count = self.by_command.len();
        self.by_command = HashMap::new();
        self.by_key = BTreeSet::new();
        self.entries = Vec::new();
        self.free = Vec::new();
        self.hand = 0;
        self.stats.bytes = 0;
        count
    }

    /// Evicts values until the rest fits. The hand moves around the entries like the hand of a clock, and evicts those
    /// that have not been used since the hand last passed them. Requests in progress stay; the lane's budget limits
    /// them.
    fn make_room(&mut self, bytes_max: usize) {
        let mut steps = 2 * self.entries.len();
        while self.stats.bytes > bytes_max && steps > 0 {
            steps -= 1;
            let at = self.hand % self.entries.len();
            self.hand = at + 1;
            let Ok(at) = u32::try_from(at) else { continue };
            match self.content(at) {
                Some(Content::Value(value)) if value.was_used => value.was_used = false,
                Some(Content::Value(_)) => {
                    self.remove(at);
                    self.stats.evictions += 1;
                }
                _ => {}
            }
        }
    }
}
