//! The registry of connected clients, with the data of CLIENT LIST. Any worker can read it.
//!
//! Each session publishes data in its own record. The registry finds records by id, by address and by worker. Removing
//! a record is O(1) (S1).

pub mod accounts;
pub mod address;
pub mod weights;

use crate::clients::address::{Address, AddressKey, IdHasher};
use crate::clients::weights::{Weight, Weights};
use crate::pubsub::Space;
use brisk_engine::keyspace::{Waiter, Watcher};
use brisk_reactor::Token;
use brisk_structures::poison::EvenPoisoned;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Flags of a client, most of which CLIENT LIST shows as letters.
pub mod flag {
    pub const MONITOR: u32 = 1;
    pub const CLOSE_AFTER_REPLY: u32 = 1 << 1;
    pub const CLOSE_ASAP: u32 = 1 << 2;
    pub const BLOCKED: u32 = 1 << 3;
    pub const UNIX_SOCKET: u32 = 1 << 4;
    pub const NO_EVICT: u32 = 1 << 5;
    pub const NO_TOUCH: u32 = 1 << 6;
    pub const TRACKING: u32 = 1 << 7;
    /// The client is a replica, which follows the stream of changes.
    pub const REPLICA: u32 = 1 << 9;
    /// The client is the primary of this server.
    pub const PRIMARY: u32 = 1 << 14;
    /// The client can be redirected to another server (CLIENT CAPA redirect).
    pub const REDIRECTS: u32 = 1 << 8;
    /// The client wants to read from this server even if it is a replica (READONLY).
    pub const READS_REPLICA: u32 = 1 << 15;
    /// A replica whose snapshot has not been sent yet. It receives no other output and executes
    /// nothing.
    pub const IN_FULL_SYNC: u32 = 1 << 13;
    /// The client that receives this client's invalidations has disconnected.
    pub const TRACKING_BROKEN: u32 = 1 << 10;
    /// The client tracks prefixes.
    pub const TRACKING_BROADCAST: u32 = 1 << 11;
    /// The client connected through the admin lane.
    pub const ADMIN: u32 = 1 << 12;
    /// The client has a subscription.
    pub const PUBSUB: u32 = 1 << 16;
    /// The client's user has been changed since the last check.
    pub const USER_CHANGED: u32 = 1 << 17;
    /// The client waits within SHUTDOWN and gets a reply only if the server does not exit.
    pub const AWAITS_END: u32 = 1 << 18;
    /// The client is another node of the cluster, which forwards messages.
    pub const CLUSTER_PEER: u32 = 1 << 19;
    /// The client has logged in, or the default user needs no password.
    pub const AUTHENTICATED: u32 = 1 << 20;
}

/// The data of a client that other threads may read.
#[derive(Debug)]
pub struct ClientRecord {
    pub id: u64,
    pub worker: usize,
    pub token: Token,
    pub fd: i32,
    /// True if the client is on this machine and uses a Unix socket or a loopback address.
    pub local: bool,
    pub addr: Address,
    /// The address of this server's end of the connection.
    pub laddr: Address,
    pub created_ms: u64,
    /// Bits of [`flag`].
    pub flags: AtomicU32,
    pub last_active_ms: AtomicU64,
    pub db: AtomicU32,
    pub resp: AtomicU8,
    /// The id of the client that receives its invalidations; 0 for the client itself, -1 if it does not track.
    pub redirect: AtomicI64,
    /// Row id of the last command; `u32::MAX` before the first.
    pub last_command: AtomicU32,
    /// Received bytes that are not parsed yet.
    pub query_bytes: AtomicU64,
    /// Bytes of an incomplete request that have been parsed.
    pub argument_bytes: AtomicU64,
    pub query_capacity: AtomicU64,
    pub output_bytes: AtomicU64,
    /// Bytes received, after decryption.
    pub bytes_in: AtomicU64,
    /// Bytes of output produced, before encryption.
    pub bytes_out: AtomicU64,
    /// Commands that ended within the client's turns, including those that its scripts called.
    pub commands: AtomicU64,
    /// Commands that ended outside of the client's turns, because they waited or another thread computed them.
    pub commands_elsewhere: AtomicU64,
    /// Subscriptions by [`crate::pubsub::Space`].
    pub subscriptions: [AtomicU32; 3],
    /// True if the client is to be closed. It is no longer listed.
    pub killed: AtomicBool,
    pub texts: Mutex<ClientTexts>,
    /// Bytes of the texts.
    pub text_bytes: AtomicU64,
    /// The memory that the client takes.
    pub weight: Weight,
    /// The part of the memory that is used for requests waiting to be executed.
    pub input_weight: Weight,
    /// The waiter of the client's blocked command, if any.
    pub waiter: Mutex<Option<Arc<Waiter>>>,
    /// Commands queued since MULTI; -1 outside of a transaction.
    pub queued: AtomicI64,
    /// Bytes of memory that the queued commands take.
    pub queued_memory: AtomicU64,
    /// The number of keys that the client watches.
    pub watched: AtomicU64,
    /// Records whether a watched key was changed. Set by the first WATCH.
    pub watcher: OnceLock<Arc<Watcher>>,
    /// The client's subscriptions, by [`Space`]. Created by the first subscription.
    pub topics: OnceLock<Box<Mutex<TopicNames>>>,
}

/// The texts that a client has set, for example its name.
#[derive(Debug, Clone, Default)]
pub struct ClientTexts {
    pub name: String,
    pub lib_name: String,
    pub lib_version: String,
    pub user: String,
}

/// Totals since the connection began.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    /// Bytes received, after decryption.
    pub bytes_in: u64,
    /// Bytes of output produced, before encryption.
    pub bytes_out: u64,
    /// Commands that ended within the session's turns.
    pub commands: u64,
}

impl ClientRecord {
    /// The record of a connection that was accepted at `now_ms`. `unix` is true for a Unix socket.
    #[expect(clippy::too_many_arguments, reason = "each is a fact of the connection")]
    pub fn new(
        id: u64,
        worker: usize,
        token: Token,
        fd: i32,
        local: bool,
        unix: bool,
        (addr, laddr): (Address, Address),
        now_ms: u64,
    ) -> ClientRecord {
        ClientRecord {
            id,
            worker,
            token,
            fd,
            local,
            addr,
            laddr,
            created_ms: now_ms,
            flags: AtomicU32::new(if unix { flag::UNIX_SOCKET } else { 0 }),
            last_active_ms: AtomicU64::new(now_ms),
            db: AtomicU32::new(0),
            resp: AtomicU8::new(2),
            redirect: AtomicI64::new(-1),
            last_command: AtomicU32::new(u32::MAX),
            query_bytes: AtomicU64::new(0),
            argument_bytes: AtomicU64::new(0),
            query_capacity: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            commands_elsewhere: AtomicU64::new(0),
            subscriptions: [const { AtomicU32::new(0) }; 3],
            killed: AtomicBool::new(false),
            texts: Mutex::default(),
            text_bytes: AtomicU64::new(0),
            weight: Weight::default(),
            input_weight: Weight::default(),
            waiter: Mutex::default(),
            queued: AtomicI64::new(-1),
            queued_memory: AtomicU64::new(0),
            watched: AtomicU64::new(0),
            watcher: OnceLock::new(),
            topics: OnceLock::new(),
        }
    }

    /// The session's totals at the end of its last turn.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            commands: self.commands.load(Ordering::Relaxed),
        }
    }

    pub fn texts(&self) -> ClientTexts {
        self.held_texts().clone()
    }

    /// Like [`Self::texts`], without a copy. The lock must only be held briefly.
    pub fn held_texts(&self) -> MutexGuard<'_, ClientTexts> {
        self.texts.lock().even_poisoned()
    }

    /// Reports whether the client acts as the default user.
    pub fn is_default_user(&self) -> bool {
        // The primary does not act as any user.
        !self.has(flag::PRIMARY) && self.texts.lock().even_poisoned().user.is_empty()
    }

    pub fn edit_texts(&self, edit: impl FnOnce(&mut ClientTexts)) {
        let mut texts = self.texts.lock().even_poisoned();
        edit(&mut texts);
        let ClientTexts { name, lib_name, lib_version, user } = &*texts;
        let bytes: usize = [name, lib_name, lib_version, user].map(String::capacity).iter().sum();
        self.text_bytes.store(bytes as u64, Ordering::Relaxed);
    }

    /// The waiter of the client's blocked command, if any.
    pub fn waiter(&self) -> MutexGuard<'_, Option<Arc<Waiter>>> {
        self.waiter.lock().even_poisoned()
    }

    /// Notes a new subscription to `name`.
    pub fn note_topic(&self, space: Space, name: &Arc<[u8]>) {
        let topics = self.topics.get_or_init(Box::default);
        let mut topics = topics.lock().even_poisoned();
        topics[space.index()].push(Arc::clone(name));
    }

    /// Notes the end of subscription number `at`. The last subscription gets that number.
    pub fn forget_topic(&self, space: Space, at: usize) {
        if let Some(topics) = self.topics.get() {
            let mut topics = topics.lock().even_poisoned();
            topics[space.index()].swap_remove(at);
        }
    }

    /// Reports whether `fits` is true for all subscriptions of the client.
    pub fn listens_only_to(&self, fits: impl Fn(Space, &[u8]) -> bool) -> bool {
        let Some(topics) = self.topics.get() else { return true };
        let topics = topics.lock().even_poisoned();
        Space::ALL.iter().all(|space| topics[space.index()].iter().all(|name| fits(*space, name)))
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    pub fn set(&self, flag: u32, on: bool) {
        if on {
            self.flags.fetch_or(flag, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flag, Ordering::Relaxed);
        }
    }
}

/// The subscriptions of a client, by [`Space`], in the order in which they were made.
type TopicNames = [Vec<Arc<[u8]>>; 3];

/// One worker's clients.
#[derive(Debug, Default)]
struct Records {
    by_id: HashMap<u64, Arc<ClientRecord>, BuildHasherDefault<IdHasher>>,
    /// Ids of TCP clients by address. There is one id per address, unless a client connects from one port to several
    /// listeners. Clients of a Unix socket all have the same address.
    by_addr: HashMap<AddressKey, SmallVec<[u64; 1]>>,
}

impl Records {
    fn add(&mut self, record: Arc<ClientRecord>) {
        if let Some(address) = record.addr.tcp() {
            self.by_addr.entry(AddressKey(address)).or_default().push(record.id);
        }
        self.by_id.insert(record.id, record);
    }

    fn remove(&mut self, record: &ClientRecord) {
        self.by_id.remove(&record.id);
        let Some(address) = record.addr.tcp() else { return };
        if let Entry::Occupied(mut entry) = self.by_addr.entry(AddressKey(address)) {
            entry.get_mut().retain(|id| *id != record.id);
            if entry.get().is_empty() {
                entry.remove();
            }
        }
    }
}

/// All clients, in one map per worker so that workers do not contend for a lock.
#[derive(Debug)]
pub struct Clients {
    workers: Box<[Mutex<Records>]>,
    next_id: AtomicU64,
    /// Number of connected clients, including clients that are to be closed, but without clients of the admin lane.
    count: AtomicI64,
    /// The number of clients of the admin lane.
    admins: AtomicI64,
    /// Number of clients that wait inside a command or for the end of CLIENT PAUSE.
    blocked: AtomicI64,
    /// Number of clients that have a subscription.
    subscribed: AtomicI64,
    /// True if a client that could be redirected has ever connected.
    pub had_redirected: AtomicBool,
    /// The memory of each client.
    pub weights: Weights,
    /// The part of the memory that is used for requests waiting to be executed.
    pub input_weights: Weights,
}

impl Clients {
    pub fn new(workers: usize) -> Clients {
        Clients {
            workers: (0..workers).map(|_| Mutex::default()).collect(),
            next_id: AtomicU64::new(1),
            count: AtomicI64::new(0),
            admins: AtomicI64::new(0),
            blocked: AtomicI64::new(0),
            subscribed: AtomicI64::new(0),
            had_redirected: AtomicBool::new(false),
            weights: Weights::of_memory(workers),
            input_weights: Weights::of_input(workers),
        }
    }

    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a connection if fewer than `max` connections of its kind exist. Connections of the admin lane are one
    /// kind, all other connections are the other.
    pub fn admit(&self, admin: bool, max: u64) -> bool {
        let before = self.counter(admin).fetch_add(1, Ordering::Relaxed);
        let fits = before < max as i64;
        if !fits {
            self.retract(admin);
        }
        fits
    }

    /// Takes back the admission of a connection that has failed.
    pub fn retract(&self, admin: bool) {
        self.counter(admin).fetch_sub(1, Ordering::Relaxed);
    }

    fn counter(&self, admin: bool) -> &AtomicI64 {
        if admin { &self.admins } else { &self.count }
    }

    /// Number of connected clients, without clients of the admin lane. O(1).
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed).max(0) as u64
    }

    /// Number of clients of the admin lane. O(1).
    pub fn admins(&self) -> u64 {
        self.admins.load(Ordering::Relaxed).max(0) as u64
    }

    /// Marks a client as blocked or not. O(1).
    pub fn set_blocked(&self, record: &ClientRecord, on: bool) {
        let bits = if on {
            record.flags.fetch_or(flag::BLOCKED, Ordering::Relaxed)
        } else {
            record.flags.fetch_and(!flag::BLOCKED, Ordering::Relaxed)
        };
        if (bits & flag::BLOCKED != 0) != on {
            self.blocked.fetch_add(if on { 1 } else { -1 }, Ordering::Relaxed);
        }
    }

    /// Notes that a client has made its first subscription or ended its last one. O(1).
    pub fn set_subscribed(&self, record: &ClientRecord, on: bool) {
        record.set(flag::PUBSUB, on);
        self.subscribed.fetch_add(if on { 1 } else { -1 }, Ordering::Relaxed);
    }

    /// Number of subscribed clients. O(1).
    pub fn subscribed(&self) -> u64 {
        self.subscribed.load(Ordering::Relaxed).max(0) as u64
    }

    /// Number of blocked clients. O(1).
    pub fn blocked(&self) -> u64 {
        self.blocked.load(Ordering::Relaxed).max(0) as u64
    }

    pub fn add(&self, record: Arc<ClientRecord>) {
        self.map(record.worker).add(record);
    }

    /// Removes a client that has disconnected. O(1).
    pub fn remove(&self, record: &ClientRecord) {
        self.map(record.worker).remove(record);
        self.retract(record.has(flag::ADMIN));
    }

    /// The client with this id, if it is not being killed. O(workers).
    pub fn find(&self, id: u64) -> Option<Arc<ClientRecord>> {
        let found =
            (0..self.workers.len()).find_map(|worker| self.map(worker).by_id.get(&id).cloned());
        found.filter(|record| !record.killed.load(Ordering::Relaxed))
    }

    /// The clients at this address that are not being killed. O(workers + matches); O(clients) for
    /// the path of a Unix socket.
    pub fn at_address(&self, addr: &str) -> Vec<Arc<ClientRecord>> {
        let Ok(address) = addr.parse() else {
            let mut all = self.all();
            all.retain(|record| record.addr.reads(addr.as_bytes()));
            return all;
        };
        let key = AddressKey(address);
        let mut found = Vec::new();
        for worker in 0..self.workers.len() {
            let records = self.map(worker);
            let ids = records.by_addr.get(&key).map(SmallVec::as_slice).unwrap_or_default();
            let alive = |record: &&Arc<ClientRecord>| !record.killed.load(Ordering::Relaxed);
            found.extend(ids.iter().filter_map(|id| records.by_id.get(id)).filter(alive).cloned());
        }
        found
    }

    /// All clients that are not being killed, in order of id. O(clients log clients).
    pub fn list(&self) -> Vec<Arc<ClientRecord>> {
        let mut all = self.all();
        all.sort_unstable_by_key(|record| record.id);
        all
    }

    /// All clients that are not being killed, in no particular order. O(clients).
    pub fn all(&self) -> Vec<Arc<ClientRecord>> {
        let mut all = Vec::new();
        for worker in 0..self.workers.len() {
            let alive = |record: &&Arc<ClientRecord>| !record.killed.load(Ordering::Relaxed);
            all.extend(self.map(worker).by_id.values().filter(alive).cloned());
        }
        all
    }

    fn map(&self, worker: usize) -> MutexGuard<'_, Records> {
        self.workers[worker].lock().even_poisoned()
    }
}

/// Test records.
#[doc(hidden)]
pub mod testing {
    use super::*;
    use brisk_reactor::PeerAddr;

    /// A client of a worker.
    pub fn record(id: u64, worker: usize) -> Arc<ClientRecord> {
        let at = |port: u64| {
            let port = u16::try_from(port).unwrap_or_default();
            Address::Socket(PeerAddr::Tcp(([127, 0, 0, 1], port).into()))
        };
        let addresses = (at(id), at(6379));
        let token = Token::from_u64(id);
        Arc::new(ClientRecord::new(id, worker, token, -1, true, false, addresses, 0))
    }
}
