//! The tracking state of a session, and the tracking sessions of a worker.

use brisk_reactor::Token;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The keys whose changes are sent to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The keys it read.
    Read,
    /// The keys it read right after CLIENT CACHING YES.
    OptIn,
    /// The keys it read, except right after CLIENT CACHING NO.
    OptOut,
    /// The keys with certain prefixes.
    Broadcast,
}

/// The tracking options of a session.
#[derive(Debug)]
pub struct Tracker {
    mode: Mode,
    /// It is not sent its own changes.
    noloop: bool,
    /// The client that receives its invalidations; 0 for itself.
    redirect: u64,
    /// That client has disconnected.
    broken: bool,
    /// CLIENT CACHING was the last command.
    caching: bool,
    prefixes: BTreeSet<Box<[u8]>>,
}

impl Tracker {
    pub fn new(mode: Mode, noloop: bool, redirect: u64) -> Tracker {
        let prefixes = BTreeSet::new();
        Tracker { mode, noloop, redirect, broken: false, caching: false, prefixes }
    }

    /// Takes over the options of another call of CLIENT TRACKING. CLIENT CACHING still applies if it was called
    /// before.
    pub fn change(&mut self, mode: Mode, noloop: bool, redirect: u64) {
        (self.mode, self.noloop, self.redirect, self.broken) = (mode, noloop, redirect, false);
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Reports whether the session is not sent its own changes.
    pub fn noloop(&self) -> bool {
        self.noloop
    }

    /// The client that receives its invalidations; 0 for itself.
    pub fn redirect(&self) -> u64 {
        self.redirect
    }

    /// Reports whether the client that receives its invalidations has disconnected.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Notes that the client that receives its invalidations has disconnected.
    pub fn note_broken(&mut self) {
        self.broken = true;
    }

    /// Reports whether CLIENT CACHING was the last command.
    #[inline]
    pub fn is_caching(&self) -> bool {
        self.caching
    }

    /// Sets whether CLIENT CACHING was the last command.
    pub fn set_caching(&mut self, on: bool) {
        self.caching = on;
    }

    /// The prefixes that it tracks.
    pub fn prefixes(&self) -> &BTreeSet<Box<[u8]>> {
        &self.prefixes
    }

    /// Adds a prefix. False if it is tracked already.
    pub fn add_prefix(&mut self, prefix: &[u8]) -> bool {
        self.prefixes.insert(prefix.into())
    }

    /// Reports whether the keys that the next command reads are remembered.
    pub fn remembers(&self) -> bool {
        match self.mode {
            Mode::Read => true,
            Mode::OptIn => self.caching,
            Mode::OptOut => !self.caching,
            Mode::Broadcast => false,
        }
    }
}

/// The sessions of one worker that track.
#[derive(Debug, Default)]
pub struct TrackingSessions {
    /// All, by client id.
    pub clients: HashMap<u64, Token>,
    /// The sessions that track prefixes.
    pub prefixes: HashMap<Box<[u8]>, HashSet<Token>>,
}
