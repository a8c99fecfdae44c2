//! What ACL LOG shows: who tried what he may not, the latest first.

use super::Reason;
use std::collections::VecDeque;

/// Where a refused command came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// A client sent it by itself.
    TopLevel,
    /// It was to be queued, or EXEC ran it.
    Multi,
    /// A script called it.
    Script,
}

impl Context {
    /// As ACL LOG shows it.
    pub const fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Multi => "multi",
            Context::Script => "lua",
        }
    }
}

/// One thing that happened, perhaps several times.
#[derive(Debug, Clone)]
pub struct Entry {
    pub reason: Reason,
    pub context: Context,
    /// The command, key or channel.
    pub object: Vec<u8>,
    pub user: Vec<u8>,
    /// The client that did it last, as CLIENT LIST shows it.
    pub client: String,
    pub count: u64,
    /// Unlike that of all entries since the server began.
    pub id: u64,
    pub created_ms: u64,
    pub updated_ms: u64,
}

impl Entry {
    /// A first time.
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

/// What happens again within this time is counted, not noted again.
const MERGED_WITHIN_MS: u64 = 60_000;
/// How many of the latest entries are looked at for one that is alike.
const LOOKED_AT_MAX: usize = 10;

/// The entries.
#[derive(Debug, Default)]
pub struct Journal {
    entries: VecDeque<Entry>,
    next_id: u64,
}

impl Journal {
    /// Notes what happened; at most `len_max` entries stay.
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

    /// The latest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }
}
