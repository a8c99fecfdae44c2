//! The tracking state of a session, and the tracking sessions of a worker.

use brisk_reactor::Token;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The keys for which a session receives invalidations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackingMode {
    /// The keys that the session read.
    Read,
    /// The keys that the session read right after CLIENT CACHING YES.
    OptIn,
    /// The keys that the session read, except right after CLIENT CACHING NO.
    OptOut,
    /// The keys with certain prefixes.
    Broadcast,
}

/// The tracking options of a session.
#[derive(Debug)]
pub struct Tracker {
    mode: TrackingMode,
    /// True if the session is not sent invalidations for its own changes.
    noloop: bool,
    /// The id of the client that receives the session's invalidations; 0 for the session itself.
    redirect: u64,
    /// True if the client of `redirect` has disconnected.
    broken: bool,
    /// True if the last command was CLIENT CACHING.
    caching: bool,
    prefixes: BTreeSet<Box<[u8]>>,
}

impl Tracker {
    pub fn new(mode: TrackingMode, noloop: bool, redirect: u64) -> Tracker {
        let prefixes = BTreeSet::new();
        Tracker { mode, noloop, redirect, broken: false, caching: false, prefixes }
    }

    /// Adopts the options of another CLIENT TRACKING command. An earlier CLIENT CACHING still applies.
    pub fn change(&mut self, mode: TrackingMode, noloop: bool, redirect: u64) {
        (self.mode, self.noloop, self.redirect, self.broken) = (mode, noloop, redirect, false);
    }

    pub fn mode(&self) -> TrackingMode {
        self.mode
    }

    /// Reports whether the session is not sent invalidations for its own changes.
    pub fn noloop(&self) -> bool {
        self.noloop
    }

    /// The id of the client that receives the session's invalidations; 0 for the session itself.
    pub fn redirect(&self) -> u64 {
        self.redirect
    }

    /// Reports whether the client that receives the session's invalidations has disconnected.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Notes that the client that receives the session's invalidations has disconnected.
    pub fn note_broken(&mut self) {
        self.broken = true;
    }

    /// Reports whether the last command was CLIENT CACHING.
    #[inline]
    pub fn is_caching(&self) -> bool {
        self.caching
    }

    /// Sets whether the last command was CLIENT CACHING.
    pub fn set_caching(&mut self, on: bool) {
        self.caching = on;
    }

    /// The prefixes that the session tracks.
    pub fn prefixes(&self) -> &BTreeSet<Box<[u8]>> {
        &self.prefixes
    }

    /// Adds a prefix. Returns false if it is already tracked.
    pub fn add_prefix(&mut self, prefix: &[u8]) -> bool {
        self.prefixes.insert(prefix.into())
    }

    /// Reports whether the keys that the next command reads are remembered.
    pub fn remembers(&self) -> bool {
        match self.mode {
            TrackingMode::Read => true,
            TrackingMode::OptIn => self.caching,
            TrackingMode::OptOut => !self.caching,
            TrackingMode::Broadcast => false,
        }
    }
}

/// The sessions of one worker that use tracking.
#[derive(Debug, Default)]
pub struct TrackingSessions {
    /// All tracking sessions, by client id.
    clients: HashMap<u64, Token>,
    /// The sessions that track prefixes.
    prefixes: HashMap<Box<[u8]>, HashSet<Token>>,
    /// True if the session was sent invalidations, for keys that were evicted on its behalf, before its current
    /// request.
    sent_before_request: bool,
}

impl TrackingSessions {
    /// Adds a session.
    pub(super) fn add(&mut self, client: u64, token: Token) {
        self.clients.insert(client, token);
    }

    /// Removes a session.
    pub(super) fn remove(&mut self, client: u64) {
        self.clients.remove(&client);
    }

    /// Adds a prefix to the prefixes that a session tracks.
    pub(super) fn add_prefix(&mut self, prefix: &[u8], token: Token) {
        self.prefixes.entry(prefix.into()).or_default().insert(token);
    }

    /// Removes a prefix from the prefixes that a session tracks.
    pub(super) fn remove_prefix(&mut self, prefix: &[u8], token: Token) {
        if let Some(tokens) = self.prefixes.get_mut(prefix) {
            tokens.remove(&token);
            if tokens.is_empty() {
                self.prefixes.remove(prefix);
            }
        }
    }

    /// The session of a client, if the client uses tracking.
    pub fn find(&self, client: u64) -> Option<Token> {
        self.clients.get(&client).copied()
    }

    /// All sessions.
    pub fn all(&self) -> Vec<Token> {
        self.clients.values().copied().collect()
    }

    /// The sessions that track a prefix.
    pub fn with_prefix(&self, prefix: &[u8]) -> Vec<Token> {
        self.prefixes.get(prefix).into_iter().flatten().copied().collect()
    }

    /// Reports whether the session must be sent invalidations before its current request. Returns true at most once per
    /// request. `any` is true if there are invalidations.
    pub(crate) fn must_send_before_request(&mut self, any: bool) -> bool {
        self.sent_before_request = !self.sent_before_request && any;
        self.sent_before_request
    }
}
