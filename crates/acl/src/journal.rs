//! The content of ACL LOG: rejected commands and failed logins, the latest first.

use super::check::Reason;
use std::collections::VecDeque;

/// Where a rejected command came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// A client sent the command on its own.
    TopLevel,
    /// The command was to be queued, or EXEC ran it.
    Multi,
    /// A script called the command.
    Script,
}

impl Context {
    /// Returns the name for ACL LOG.
    pub const fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Multi => "multi",
            Context::Script => "lua",
        }
    }
}

/// An event, with the number of times it occurred.
#[derive(Debug, Clone)]
pub struct Entry {
    pub reason: Reason,
    pub context: Context,
    /// The command, key or channel.
    pub object: Vec<u8>,
    pub user: Vec<u8>,
    /// The last client that caused it, as CLIENT LIST shows it.
    pub client: String,
    pub count: u64,
    /// Unique among all entries since the server started.
    pub id: u64,
    pub created_ms: u64,
    pub updated_ms: u64,
}

impl Entry {
    /// Creates the entry of a first occurrence.
    pub fn new(
        reason: Reason,
        context: Context,
        object: &[u8],
        user: &[u8],
        client: String,
        now_ms: u64,
    ) -> Entry {
        let (object, user) = (object.to_vec(), user.to_vec());
        let (created_ms, updated_ms) = (now_ms, now_ms);
        Entry { reason, context, object, user, client, count: 1, id: 0, created_ms, updated_ms }
    }

    fn is_like(&self, other: &Entry) -> bool {
        self.reason == other.reason
            && self.context == other.context
            && self.updated_ms.abs_diff(other.updated_ms) <= MERGED_WITHIN_MS
            && self.object == other.object
            && self.user == other.user
    }
}

/// Time in ms within which an equal event is counted instead of logged again.
const MERGED_WITHIN_MS: u64 = 60_000;
/// Number of recent entries that are compared with a new event.
const LOOKED_AT_MAX: usize = 10;

/// The log entries.
#[derive(Debug, Default)]
pub struct Journal {
    entries: VecDeque<Entry>,
    next_id: u64,
}

impl Journal {
    /// Records an event and keeps at most `len_max` entries.
    pub fn add(&mut self, mut new: Entry, len_max: usize) {
        if len_max > 0 {
            let alike = self.entries.iter().take(LOOKED_AT_MAX).position(|old| old.is_like(&new));
            if let Some(mut old) = alike.and_then(|at| self.entries.remove(at)) {
                old.count += 1;
                (old.client, old.updated_ms) = (new.client, new.updated_ms);
                self.entries.push_front(old);
                return;
            }
            new.id = self.next_id;
            self.next_id += 1;
            self.entries.push_front(new);
        }
        self.entries.truncate(len_max);
    }

    /// Returns the entries, the latest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }
}
