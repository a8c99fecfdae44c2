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
    pub mode: Mode,
    /// It is not sent its own changes.
    pub noloop: bool,
    /// The client that receives its invalidations; 0 for itself.
    pub redirect: u64,
    /// That client has disconnected.
    pub broken: bool,
    /// CLIENT CACHING was the last command.
    pub caching: bool,
    pub prefixes: BTreeSet<Box<[u8]>>,
}

impl Tracker {
    pub fn new(mode: Mode, noloop: bool, redirect: u64) -> Tracker {
        let prefixes = BTreeSet::new();
        Tracker { mode, noloop, redirect, broken: false, caching: false, prefixes }
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
