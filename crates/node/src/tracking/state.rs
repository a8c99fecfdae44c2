//! A session that tracks: which keys, and who of a worker does.

use brisk_reactor::Token;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Which keys a session hears of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Those it read.
    Read,
    /// Those it read right after CLIENT CACHING YES.
    OptIn,
    /// Those it read, but for those right after CLIENT CACHING NO.
    OptOut,
    /// Those with certain prefixes.
    Broadcast,
}

/// How a session tracks.
#[derive(Debug)]
pub struct Tracker {
    pub mode: Mode,
    /// It does not hear of its own changes.
    pub noloop: bool,
    /// The client that hears instead of it; 0 if it does itself.
    pub redirect: u64,
    /// That client is gone.
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

    /// Whether what the next command reads is remembered.
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
    /// Those that listen to prefixes.
    pub prefixes: HashMap<Box<[u8]>, HashSet<Token>>,
}
