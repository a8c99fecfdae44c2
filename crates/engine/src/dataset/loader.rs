//! The entries of an RDB file on their way into the keyspace: one thread's part of them.
//!
//! Any number of threads load at a time, each with an [`Env`] of its own, while no thread that runs
//! commands looks at keys. A slot is locked for one key.

use super::snapshot::{Duplicate, LoadFailure, Loaded};
use crate::env::Env;
use crate::env::effect::Hooks;
use crate::keyspace::{
    CutWalker, DbIndex, Entry, Key, Keys, Keyspace, SLOTS, SlotId, UnixMs, evict,
};
use crate::types::dump::entry_of;
use crate::types::string;
use brisk_persist::rdb::{BlockEntry, EntryContent, KeyMetadata, RdbBlock};
use brisk_structures::reclaim;
use std::borrow::Cow;
use std::collections::VecDeque;

/// So many keys are built before they are inserted together: what inserting reads of the memory is
/// asked for meanwhile.
const GROUP: usize = 32;
/// So many groups are loaded between two boundaries, at which the arrays are freed that the growing
/// tables have replaced: all of them at the end would be as much as the tables once more.
const GROUPS_PER_BOUNDARY: u64 = 8;
/// Keys without elements that are kept to be told of, at most.
const EMPTY_KEYS_MAX: usize = 10;

/// Loads blocks of entries on one thread. Nobody hears of the keys: they are no changes.
pub struct Loader<'a> {
    keyspace: &'a Keyspace,
    env: &'a Env,
    duplicate: Duplicate,
    loaded: Loaded,
    /// Bytes of the names of expired keys that are kept, at most.
    gone_bytes_max: u64,
    /// How many keys are inserted together.
    group: usize,
    /// How many keys a slot is expected to have in the end; 0 if nobody knows.
    expected: u32,
    groups: u64,
    /// Keys without elements that nobody was told of yet.
    empty_keys: Vec<Box<[u8]>>,
    /// How many effects were there before.
    effects: usize,
    hooks: Hooks,
}

/// Keys that somebody waits for and that were loaded.
#[derive(Debug, Default)]
pub struct Awaited(VecDeque<(DbIndex, Box<[u8]>)>);

impl Awaited {
    /// Adds those of another thread.
    pub fn append(&mut self, mut other: Awaited) {
        self.0.append(&mut other.0);
    }
}

/// An entry that is built and not inserted.
struct Built<'b> {
    key: Cow<'b, [u8]>,
    slot: SlotId,
    hash: u64,
    entry: Entry,
}

impl<'a> Loader<'a> {
    /// What has expired at the moment of `env` is not loaded.
    pub fn new(keyspace: &'a Keyspace, env: &'a Env, duplicate: Duplicate) -> Loader<'a> {
        let effects = env.aftermath.borrow().effects.len();
        let hooks = env.hooks.replace_own(Hooks::empty());
        Loader {
            keyspace,
            env,
            duplicate,
            loaded: Loaded::default(),
            gone_bytes_max: 0,
            group: GROUP,
            expected: 0,
            groups: 0,
            empty_keys: Vec::new(),
            effects,
            hooks,
        }
    }

    /// Each key is inserted by itself from now on, or a few together, which is the usual way.
    pub fn set_one_by_one(&mut self, on: bool) {
        self.group = if on { 1 } else { GROUP };
    }

    /// Keeps the names of keys that are left out because they have expired, of so many bytes at most.
    pub fn keep_gone(&mut self, bytes_max: u64) {
        self.gone_bytes_max = bytes_max;
    }

    /// The database of the next blocks is expected to have so many keys in the end. Tables are made
    /// for that, a few keys more, when they get their first: a number that is too large takes
    /// memory, one that is too small takes time.
    pub fn expect(&mut self, keys: u64) {
        let of_slot = keys / SLOTS as u64;
        // Keys do not spread evenly, and growing once costs more than a little room.
        self.expected = u32::try_from(of_slot + of_slot / 8).unwrap_or(0);
    }

    /// Loads the entries of a block. `reached` hears with each few keys up to which byte the file
    /// was loaded, and how many keys those were. O(block).
    ///
    /// # Errors
    /// What is wrong, and up to which byte the file was read. What was loaded before stays.
    pub fn load(
        &mut self,
        db: DbIndex,
        block: &RdbBlock,
        mut reached: impl FnMut(u64, u64),
    ) -> Result<(), (LoadFailure, u64)> {
        let mut entries = block.entries();
        let mut group = Vec::with_capacity(GROUP);
        loop {
            let next = entries.next_entry().map_err(|error| (error.into(), entries.position()))?;
            let is_end = next.is_none();
            if let Some(entry) = next {
                let built = self.build(db, entry);
                group.extend(built.map_err(|failure| (failure, entries.position()))?);
            }
            if group.len() >= self.group || is_end {
                let keys = group.len() as u64;
                let inserted = self.insert_all(db, &mut group);
                inserted.map_err(|failure| (failure, entries.position()))?;
                reached(entries.position(), keys);
            }
            if is_end {
                return Ok(());
            }
        }
    }

    /// Keys that were left out since the last call because they had no elements: the first few.
    pub fn take_empty_keys(&mut self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.empty_keys)
    }

    /// The end: what was loaded, and keys of it that somebody waits for.
    #[must_use]
    pub fn finish(self) -> (Loaded, Awaited) {
        let env = self.env;
        // Of a key that had expired and was in the way; PROPAGATE is set for all threads.
        env.aftermath.borrow_mut().effects.truncate(self.effects);
        env.hooks.replace_own(self.hooks);
        // What a snapshot wants of keys that were replaced.
        CutWalker::default().walk(self.keyspace, env, || false);
        (self.loaded, Awaited(std::mem::take(&mut *env.ready.borrow_mut())))
    }

    /// `None` if the entry is one that is left out.
    fn build<'b>(
        &mut self,
        db: DbIndex,
        entry: BlockEntry<'b>,
    ) -> Result<Option<Built<'b>>, LoadFailure> {
        let BlockEntry { key, content, metadata } = entry;
        if matches!(content, EntryContent::Empty) {
            self.loaded.empty += 1;
            if self.empty_keys.len() < EMPTY_KEYS_MAX {
                self.empty_keys.push(key.into());
            }
            return Ok(None);
        }
        if has_expired(&metadata, self.env.horizon()) {
            self.loaded.expired += 1;
            self.loaded.gone.push(db, &key, self.gone_bytes_max);
            return Ok(None);
        }
        let Key { slot, hash, .. } = self.keyspace.hasher().key(&key);
        self.keyspace.database(db).slot(slot).prefetch();
        let entry = match content {
            EntryContent::Bytes(bytes) => Some(string::new_entry(&key, &bytes)),
            EntryContent::Value(value) => entry_of(&key, value, &self.env.settings.limits),
            EntryContent::Empty => None,
        };
        let Some(mut entry) = entry else { return Err(LoadFailure::Value(shown(&key))) };
        let (env, policy) = (self.env, self.env.settings.eviction);
        entry.set_deadline(metadata.expire_at_ms.map(i64::cast_unsigned));
        entry.set_clock(match metadata {
            KeyMetadata { idle_seconds: Some(seconds), .. } if !policy.is_lfu() => {
                evict::clock_idle_for(env, seconds)
            }
            KeyMetadata { frequency: Some(uses), .. } if policy.is_lfu() => {
                evict::clock_of_frequency(env, uses)
            }
            _ => evict::initial_clock(env),
        });
        Ok(Some(Built { key, slot, hash, entry }))
    }

    fn insert_all(&mut self, db: DbIndex, group: &mut Vec<Built<'_>>) -> Result<(), LoadFailure> {
        let database = self.keyspace.database(db);
        for built in &*group {
            database.slot(built.slot).prefetch_bucket(built.hash);
        }
        for built in group.drain(..) {
            self.insert(db, built)?;
        }
        self.groups += 1;
        if self.groups.is_multiple_of(GROUPS_PER_BOUNDARY) {
            reclaim::boundary();
        }
        Ok(())
    }

    fn insert(&mut self, db: DbIndex, built: Built<'_>) -> Result<(), LoadFailure> {
        let Built { key, slot, hash, entry } = built;
        let key = Key { bytes: &key, slot, hash };
        let mut keys = Keys::unlocked(self.keyspace, self.env, db);
        // Others hold a slot for one key.
        while keys.lock_also(db, &key).is_err() {
            std::thread::yield_now();
        }
        if keys.contains(&key) {
            if self.duplicate == Duplicate::Refuse {
                return Err(LoadFailure::Duplicate(shown(key.bytes)));
            }
            drop(keys.detach(&key));
        }
        keys.insert_first_of(&key, entry, self.expected);
        self.loaded.keys += 1;
        Ok(())
    }
}

impl Env {
    /// Takes over keys that somebody waits for, as if this thread had made them.
    pub fn take_awaited(&self, awaited: Awaited) {
        self.ready.borrow_mut().extend(awaited.0);
    }
}

impl std::ops::AddAssign for Loaded {
    fn add_assign(&mut self, other: Loaded) {
        self.keys += other.keys;
        self.expired += other.expired;
        self.empty += other.empty;
        self.gone.append(other.gone);
    }
}

fn shown(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

fn has_expired(metadata: &KeyMetadata, now: UnixMs) -> bool {
    metadata.expire_at_ms.is_some_and(|at| at <= now.0.cast_signed())
}

/// Loads a whole file that was just written.
#[cfg(test)]
pub(crate) fn load_file(
    keyspace: &Keyspace,
    env: &Env,
    file: &[u8],
    duplicate: Duplicate,
) -> (Loaded, Awaited) {
    use brisk_persist::rdb::{RdbEvent, RdbPiece, RdbSplitter};
    let mut splitter = RdbSplitter::new(file).expect("it was just written");
    let mut loader = Loader::new(keyspace, env, duplicate);
    let mut db = DbIndex::default();
    while let Some(piece) = splitter.next_piece().expect("it was just written") {
        match piece {
            RdbPiece::Entries(block) => {
                loader.load(db, &block, |_, _| {}).expect("it was just written");
            }
            RdbPiece::Section(RdbEvent::SelectDb(number)) => {
                db = DbIndex::checked(number, keyspace.database_count())
                    .expect("it was just written");
            }
            RdbPiece::Section(_) => {}
        }
    }
    loader.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::snapshot::save;
    use crate::testing::Db;
    use brisk_persist::rdb::{RdbWriter, VERSION};
    use brisk_structures::reclaim::Participant;

    fn saved(db: &Db) -> Vec<u8> {
        let mut writer = RdbWriter::new(Vec::new(), VERSION);
        save(db.keyspace(), db.env(), &mut writer, || ()).expect("a Vec takes everything");
        writer.finish().expect("a Vec takes everything")
    }

    #[test]
    fn loading_leaves_no_effects_and_leaves_the_hooks_of_others() {
        let mut db = Db::new();
        db.check("SET k 1", "OK").check("SET other 1", "OK");
        let file = saved(&db);
        db.check("SET k 2 PX 500", "OK").at(2000);
        let env = db.env();
        env.set_hooks(Hooks::PROPAGATE | Hooks::NOTIFY, true);
        let (loaded, _) = load_file(db.keyspace(), db.env(), &file, Duplicate::Replace);
        assert_eq!(loaded.keys, 2);
        assert_eq!(env.hooks.get(), Hooks::PROPAGATE | Hooks::NOTIFY);
        let left = std::mem::take(&mut *env.aftermath.borrow_mut());
        assert!(left.effects.is_empty() && left.events.is_empty(), "{left:?}");
        env.set_hooks(Hooks::all(), false);
        db.check("GET k", "\"1\"").invariants();
    }

    #[test]
    fn arrays_that_growing_tables_replace_are_freed_while_loading() {
        const KEYS: u64 = 20_000;
        let mut db = Db::new();
        for number in 0..KEYS {
            db.run(&format!("SET {{slot}}{number} x"));
        }
        let file = saved(&db);
        let db = Db::new();
        let participant = Participant::register().expect("few threads");
        let (loaded, _) = load_file(db.keyspace(), db.env(), &file, Duplicate::Refuse);
        assert_eq!(loaded.keys, KEYS);
        // One may have been replaced since the last boundary.
        assert!(participant.limbo_len() < 2, "{} arrays are kept", participant.limbo_len());
    }
}
