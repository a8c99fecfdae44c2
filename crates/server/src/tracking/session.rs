//! A session begins to track, and ends it; whose commands run, and whether what they read is remembered.

use super::state::Tracker;
use crate::core::Core;
use crate::core::session::Session;
use brisk_engine::effect::Armed;
use brisk_engine::keyspace::Reader;

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
