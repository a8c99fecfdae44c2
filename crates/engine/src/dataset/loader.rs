//! Loading the entries of an RDB file into the keyspace, on one thread.
//!
//! Any number of threads can load at the same time, each with its own [`Env`], while no thread runs
//! commands on keys. A slot is locked for one key at a time.

use super::snapshot::{Duplicate, LoadFailure, LoadSummary};
use crate::env::Env;
use crate::env::effect::Hooks;
use crate::keyspace::{
    DbIndex, Entry, Key, Keys, Keyspace, SLOTS, SlotId, SnapshotWalker, UnixMs, evict,
};
use crate::types::dump::entry_of;
use crate::types::string;
use brisk_persist::rdb::{BlockEntry, EntryContent, KeyMetadata, RdbBlock};
use brisk_structures::reclaim;
use std::borrow::Cow;
use std::collections::VecDeque;

/// Number of keys that are built before they are inserted together. While keys are built, the
/// memory that inserting reads is prefetched.
const GROUP: usize = 32;
/// Number of groups between two reclamation boundaries, at which arrays that growing tables have
/// replaced are freed. Keeping all of them until the end of loading would need as much additional
/// memory as the tables.
const GROUPS_PER_BOUNDARY: u64 = 8;
/// Maximum number of empty keys whose names are kept for the log.
const EMPTY_KEYS_MAX: usize = 10;

/// Loads blocks of entries on one thread. Loaded keys are not changes: no notifications are sent.
pub struct Loader<'a> {
    keyspace: &'a Keyspace,
    env: &'a Env,
    duplicate: Duplicate,
    loaded: LoadSummary,
    /// Maximum number of bytes of the names of expired keys that are kept.
    expired_bytes_max: u64,
    /// Number of keys that are inserted together.
    group: usize,
    /// Expected number of keys in a slot after loading; 0 if unknown.
    expected: u32,
    groups: u64,
    /// Keys without elements that have not been reported yet.
    empty_keys: Vec<Box<[u8]>>,
    /// Number of effects that existed before loading began.
    effects: usize,
    hooks: Hooks,
}

/// Loaded keys for which clients wait.
#[derive(Debug, Default)]
pub struct AwaitedKeys(VecDeque<(DbIndex, Box<[u8]>)>);

impl AwaitedKeys {
    /// Adds the keys of another thread.
    pub fn append(&mut self, mut other: AwaitedKeys) {
        self.0.append(&mut other.0);
    }
}

/// An entry that is built but not inserted yet.
struct Built<'b> {
    key: Cow<'b, [u8]>,
    slot: SlotId,
    hash: u64,
    entry: Entry,
}

impl<'a> Loader<'a> {
    /// Creates a loader. It does not load keys that have expired at the time of `env`.
    pub fn new(keyspace: &'a Keyspace, env: &'a Env, duplicate: Duplicate) -> Loader<'a> {
        let effects = env.aftermath.borrow().effects.len();
        let hooks = env.hooks.replace_own(Hooks::empty());
        Loader {
            keyspace,
            env,
            duplicate,
            loaded: LoadSummary::default(),
            expired_bytes_max: 0,
            group: GROUP,
            expected: 0,
            groups: 0,
            empty_keys: Vec::new(),
            effects,
            hooks,
        }
    }

    /// Sets whether each key is inserted separately. By default a few are inserted together.
    pub fn set_one_by_one(&mut self, on: bool) {
        self.group = if on { 1 } else { GROUP };
    }

    /// Keeps the names of expired keys that are not loaded, up to this number of bytes.
    pub fn keep_expired_names(&mut self, bytes_max: u64) {
        self.expired_bytes_max = bytes_max;
    }

    /// Sets the expected number of keys that the database of the next blocks will have. A table is
    /// allocated for its share, with some spare room, when it gets its first key. A number that is
    /// too large costs memory, and a number that is too small costs time.
    pub fn expect(&mut self, keys: u64) {
        let of_slot = keys / SLOTS as u64;
        // Keys do not spread evenly, and growing once costs more than a little spare room.
        self.expected = u32::try_from(of_slot + of_slot / 8).unwrap_or(0);
    }

    /// Loads the entries of a block. `reached` is called after every few keys with the offset in
    /// the file up to which entries were loaded, and the number of these keys. O(block).
    ///
    /// # Errors
    /// The fault, and the offset in the file that was reached. Keys loaded before the fault stay.
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

    /// The first few keys that were skipped since the last call because they had no elements.
    pub fn take_empty_keys(&mut self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.empty_keys)
    }

    /// Ends loading. Returns what was loaded, and the loaded keys for which clients wait.
    #[must_use]
    pub fn finish(self) -> (LoadSummary, AwaitedKeys) {
        let env = self.env;
        // Drops the effects of removing expired keys that were replaced. They were collected
        // because PROPAGATE is set for all threads.
        env.aftermath.borrow_mut().effects.truncate(self.effects);
        env.hooks.replace_own(self.hooks);
        // A snapshot in progress may need the replaced keys.
        SnapshotWalker::default().walk(self.keyspace, env, || false);
        (self.loaded, AwaitedKeys(std::mem::take(&mut *env.ready.borrow_mut())))
    }

    /// `None` if the entry is skipped.
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
            self.loaded.expired_keys.push(db, &key, self.expired_bytes_max);
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
            reclaim::announce_boundary();
        }
        Ok(())
    }

    fn insert(&mut self, db: DbIndex, built: Built<'_>) -> Result<(), LoadFailure> {
        let Built { key, slot, hash, entry } = built;
        let key = Key { bytes: &key, slot, hash };
        let mut keys = Keys::unlocked(self.keyspace, self.env, db);
        // Other threads hold a slot only for one key.
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
    /// Takes over keys for which clients wait, as if this thread had created them.
    pub fn announce_awaited(&self, awaited: AwaitedKeys) {
        self.ready.borrow_mut().extend(awaited.0);
    }
}

impl std::ops::AddAssign for LoadSummary {
    fn add_assign(&mut self, other: LoadSummary) {
        self.keys += other.keys;
        self.expired += other.expired;
        self.empty += other.empty;
        self.expired_keys.append(other.expired_keys);
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
) -> (LoadSummary, AwaitedKeys) {
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
    fn loading_leaves_no_effects_and_does_not_change_hooks() {
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
        // One array may have been replaced since the last boundary.
        assert!(participant.limbo_len() < 2, "{} arrays are kept", participant.limbo_len());
    }
}
