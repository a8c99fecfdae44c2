//! A session that tracks: how, and what its worker knows of it.

use crate::clients::flag;
use crate::core::Core;
use crate::core::session::Session;
use brisk_engine::effect::Armed;
use brisk_engine::keyspace::Reader;
use brisk_reactor::Token;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::Ordering;

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
pub struct Listeners {
    /// All, by client id.
    pub clients: HashMap<u64, Token>,
    /// Those that listen to prefixes.
    pub prefixes: HashMap<Box<[u8]>, HashSet<Token>>,
}

impl Core {
    /// The session tracks from now on, or otherwise than before; `prefixes` come to those it has.
    pub fn begin_tracking<'p>(
        &mut self,
        session: &mut Session,
        tracker: Tracker,
        prefixes: impl Iterator<Item = &'p [u8]>,
    ) {
        let id = session.id();
        if session.tracker.is_none() {
            self.listeners.clients.insert(id, session.token);
            self.shared.keyspace.begin_tracking(id);
        }
        let Tracker { mode, noloop, redirect, .. } = tracker;
        let own = session.tracker.get_or_insert_with(|| Box::new(tracker));
        // CLIENT CACHING still counts if it came before.
        (own.mode, own.noloop, own.redirect, own.broken) = (mode, noloop, redirect, false);
        for prefix in prefixes {
            if own.prefixes.insert(prefix.into()) {
                let tokens = self.listeners.prefixes.entry(prefix.into()).or_default();
                tokens.insert(session.token);
                let tracking = self.shared.keyspace.tracking();
                self.shared.tracking.add(prefix, self.id, |any| tracking.set_broadcasts(any));
            }
        }
        session.note_hearing();
        session.publish_tracking();
        self.remember_for(session);
    }

    /// The session does not track any more. O(its prefixes): what is remembered of it is left to be
    /// met.
    pub fn end_tracking(&mut self, session: &mut Session) {
        let Some(tracker) = session.tracker.take() else { return };
        self.listeners.clients.remove(&session.id());
        for prefix in &tracker.prefixes {
            if let Some(tokens) = self.listeners.prefixes.get_mut(prefix) {
                tokens.remove(&session.token);
                if tokens.is_empty() {
                    self.listeners.prefixes.remove(prefix);
                }
            }
            let tracking = self.shared.keyspace.tracking();
            self.shared.tracking.remove(prefix, self.id, |any| tracking.set_broadcasts(any));
        }
        self.shared.keyspace.tracking().leave(session.id());
        session.note_hearing();
        session.publish_tracking();
        self.remember_for(session);
    }

    /// Commands that run from now on are the session's.
    #[inline]
    pub fn act_for(&self, session: &Session) {
        self.env.touch.set(!session.no_touch);
        self.env.client.set(session.id());
        if session.tracker.is_some() {
            self.remember_for(session);
        }
    }

    /// Commands of a session run again, whose tracking it was decided about before: `remembers` is
    /// what [`Core::remembers`] said then.
    pub fn act_again_for(&self, session: &Session, remembers: bool) {
        self.act_for(session);
        self.env.reader.set(Some(Reader::new(self.id, session.id())));
        self.env.arm(Armed::REMEMBER, remembers);
    }

    /// Whether what the present session's commands read is remembered.
    pub fn remembers(&self) -> bool {
        self.env.armed.get().contains(Armed::REMEMBER)
    }

    /// No session's commands run.
    #[inline]
    pub fn act_for_nobody(&self) {
        self.env.client.set(0);
        self.env.arm(Armed::REMEMBER, false);
    }

    /// Has what the session's next command reads remembered, or not.
    pub fn remember_for(&self, session: &Session) {
        let remembers = session.tracker.as_ref().is_some_and(|tracker| tracker.remembers());
        self.env.reader.set(Some(Reader::new(self.id, session.id())));
        self.env.arm(Armed::REMEMBER, remembers);
    }
}

impl Session {
    /// After it began, or ceased, to listen or to track.
    pub fn note_hearing(&mut self) {
        self.hears = self.listens || self.tracker.is_some();
    }

    /// Publishes what CLIENT LIST shows of its tracking.
    pub fn publish_tracking(&self) {
        let tracker = self.tracker.as_deref();
        self.record.set(flag::TRACKING, tracker.is_some());
        self.record.set(flag::TRACKING_BROKEN, tracker.is_some_and(|t| t.broken));
        let broadcast = tracker.is_some_and(|t| t.mode == Mode::Broadcast);
        self.record.set(flag::TRACKING_BROADCAST, broadcast);
        let redirect = tracker.map_or(-1, |t| t.redirect as i64);
        self.record.redirect.store(redirect, Ordering::Relaxed);
    }
}
