//! The whole dataset as an RDB file, out and in. Only while no other thread runs commands.

use crate::env::Env;
use crate::env::effect::Hooks;
use crate::keyspace::{DbIndex, EntryRef, Keys, Keyspace, UnixMs, evict, notes};
use crate::types::dump::entry_of;
use brisk_persist::LoadError;
use brisk_persist::rdb::{
    Entry, Event, Notes, RdbReader, RdbWriter, VERSION, VERSION_FIELD_TTL, version_of_kind,
};
use brisk_structures::reclaim;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;

/// The version of the file that [`save`] writes: later than usual only if fields of hashes have
/// deadlines. O(databases) if none ever had, else O(keys of the slots where some had).
#[must_use]
pub fn version(keyspace: &Keyspace, env: &Env) -> u32 {
    let keys = Keys::unlocked(keyspace, env, DbIndex::default());
    let mut latest = VERSION;
    let databases = (0..keyspace.database_count()).map(DbIndex);
    for db in databases.filter(|db| keyspace.field_deadlines(*db)) {
        keys.each_slot_of_field_deadlines(db, |slot| {
            slot.table().for_each(|stored| {
                let kind = EntryRef(stored).dumpable().kind();
                latest = latest.max(version_of_kind(kind));
            });
        });
    }
    latest
}

/// The version of a file for a snapshot of this moment without a look at the keys: a later one if fields
/// of hashes may have deadlines. O(databases) if none ever had, else O(slots with keys).
#[must_use]
pub fn version_at_least(keyspace: &Keyspace, env: &Env) -> u32 {
    let keys = Keys::unlocked(keyspace, env, DbIndex::default());
    let mut latest = VERSION;
    let databases = (0..keyspace.database_count()).map(DbIndex);
    for db in databases.filter(|db| keyspace.field_deadlines(*db)) {
        keys.each_slot_of_field_deadlines(db, |_| latest = VERSION_FIELD_TTL);
    }
    latest
}

/// Writes all databases, expired keys that are still there included. O(all data).
///
/// # Errors
/// The first of the writer. What would have followed is not looked at: a full disk is no reason to
/// walk through everything.
pub fn save<W: Write>(keyspace: &Keyspace, env: &Env, out: &mut RdbWriter<W>) -> io::Result<()> {
    let totals = keyspace.totals();
    let keys = Keys::unlocked(keyspace, env, DbIndex::default());
    for (number, database) in totals.databases.iter().enumerate() {
        if database.keys == 0 {
            continue;
        }
        out.select_db(number as u64);
        out.resize_db(database.keys, database.with_deadline);
        let mut written = Ok(());
        keys.each_slot(DbIndex(number as u32), |_, slot| {
            slot.table().for_each(|stored| {
                if written.is_err() {
                    return;
                }
                let entry = EntryRef(stored);
                let value = entry.dumpable();
                value.write(out.begin_entry(value.kind(), entry.key(), notes(&entry, env)));
                written = out.check();
            });
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        written?;
    }
    out.check()
}

/// So many keys are loaded between two boundaries, at which the arrays are freed that the growing
/// tables have replaced: all of them at the end would be as much as the tables once more.
const KEYS_PER_BOUNDARY: u64 = 256;

/// What to do with a key that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicate {
    /// The file is not the snapshot of a dataset: [`LoadFailure::Duplicate`].
    Refuse,
    /// What was loaded takes its place.
    Replace,
}

/// Why a file was not loaded, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadFailure {
    #[error(transparent)]
    File(#[from] LoadError),
    #[error("database {0} does not exist: raise `databases`")]
    Database(u64),
    #[error("the key {0:?} is there already")]
    Duplicate(String),
    #[error("the value of the key {0:?} breaks a rule of its type")]
    Value(String),
}

/// What a file held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    pub keys: u64,
    /// Keys left out because they had expired.
    pub expired: u64,
    /// Collections without elements, which are left out.
    pub empty: u64,
}

/// Reads a file to its end without keeping anything but the sources of its libraries of functions:
/// whether [`load`] will find it whole. O(file).
///
/// # Errors
/// What is wrong with the file; the reader stands behind it.
pub fn verify<R: Read>(
    reader: &mut RdbReader<R>,
    databases: u32,
) -> Result<Vec<Vec<u8>>, LoadFailure> {
    let mut functions = Vec::new();
    while let Some(event) = reader.next_event()? {
        match event {
            Event::SelectDb(number) => {
                database(number, databases)?;
            }
            Event::Function(source) => functions.push(source),
            _ => {}
        }
    }
    Ok(functions)
}

/// Loads a file's keys. Nobody hears of them: they are no changes. What the file holds besides is
/// given to `other`: notes about it, and libraries of functions. O(file).
///
/// # Errors
/// What is wrong with the file; the reader stands behind it, and what was read before stays.
pub fn load<R: Read>(
    keyspace: &Keyspace,
    env: &Env,
    reader: &mut RdbReader<R>,
    duplicate: Duplicate,
    mut other: impl FnMut(Event),
) -> Result<Loaded, LoadFailure> {
    let hooks = env.hooks.replace_own(Hooks::empty());
    let effects = env.aftermath.borrow().effects.len();
    let mut loaded = Loaded::default();
    let result = (|| {
        let mut db = DbIndex::default();
        while let Some(event) = reader.next_event()? {
            match event {
                Event::SelectDb(number) => db = database(number, keyspace.database_count())?,
                Event::EmptyValue { .. } => loaded.empty += 1,
                Event::Entry(entry) if has_expired(&entry.notes, env.now()) => loaded.expired += 1,
                Event::Entry(entry) => {
                    insert(keyspace, env, db, entry, duplicate)?;
                    loaded.keys += 1;
                    if loaded.keys.is_multiple_of(KEYS_PER_BOUNDARY) {
                        reclaim::boundary();
                    }
                }
                event => other(event),
            }
        }
        Ok(loaded)
    })();
    // Of a key that had expired and was in the way; PROPAGATE is set for all threads.
    env.aftermath.borrow_mut().effects.truncate(effects);
    env.hooks.replace_own(hooks);
    result
}

fn database(number: u64, count: u32) -> Result<DbIndex, LoadFailure> {
    let index = u32::try_from(number).ok().filter(|index| *index < count);
    index.map(DbIndex).ok_or(LoadFailure::Database(number))
}

fn has_expired(notes: &Notes, now: UnixMs) -> bool {
    notes.deadline_ms.is_some_and(|at| at <= now.0.cast_signed())
}

fn insert(
    keyspace: &Keyspace,
    env: &Env,
    db: DbIndex,
    entry: Entry,
    duplicate: Duplicate,
) -> Result<(), LoadFailure> {
    let Entry { key, value, notes } = entry;
    let shown = || String::from_utf8_lossy(&key).into_owned();
    let Some(mut entry) = entry_of(&key, value, &env.settings.limits) else {
        return Err(LoadFailure::Value(shown()));
    };
    let policy = env.settings.eviction;
    entry.set_deadline(notes.deadline_ms.map(i64::cast_unsigned));
    entry.set_clock(match notes {
        Notes { idle_seconds: Some(seconds), .. } if !policy.is_lfu() => {
            evict::clock_idle_for(env, seconds)
        }
        Notes { frequency: Some(uses), .. } if policy.is_lfu() => {
            evict::clock_of_frequency(env, uses)
        }
        _ => evict::initial_clock(env),
    });
    let key = keyspace.hasher().key(&key);
    let mut keys = Keys::unlocked(keyspace, env, db);
    // All slots are free while nobody else runs commands.
    while keys.lock_also(db, &key).is_err() {
        std::thread::yield_now();
    }
    if keys.contains(&key) {
        if duplicate == Duplicate::Refuse {
            return Err(LoadFailure::Duplicate(shown()));
        }
        drop(keys.detach(&key));
    }
    keys.insert(&key, entry);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Db;
    use brisk_structures::reclaim::Participant;
    use std::io::ErrorKind;

    fn saved(db: &Db) -> Vec<u8> {
        let mut writer = RdbWriter::new(Vec::new(), VERSION);
        save(db.keyspace(), db.env(), &mut writer).expect("a Vec takes everything");
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
        let mut reader = RdbReader::new(&file[..]).expect("it was just written");
        let loaded = load(db.keyspace(), env, &mut reader, Duplicate::Replace, |_| {});
        assert_eq!(loaded.expect("it was just written").keys, 2);
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
        let mut reader = RdbReader::new(&file[..]).expect("it was just written");
        let loaded = load(db.keyspace(), db.env(), &mut reader, Duplicate::Refuse, |_| {});
        assert_eq!(loaded.expect("it was just written").keys, KEYS);
        // One may have been replaced since the last boundary.
        assert!(participant.limbo_len() < 2, "{} arrays are kept", participant.limbo_len());
    }

    /// A disk without room.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_walk_ends_at_the_first_failed_write() {
        const KEYS: usize = 2000;
        let mut db = Db::new();
        let value = "v".repeat(1000);
        // In one slot, and in all of them.
        for tag in ["{t}", ""] {
            for number in 0..KEYS {
                db.check(&format!("SET {tag}{number} {value}"), "OK");
            }
            let mut out = RdbWriter::new(Full, VERSION).without_compression();
            let error = save(db.keyspace(), db.env(), &mut out).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            assert!(out.bytes() < (KEYS * value.len() / 10) as u64, "{}", out.bytes());
            db.check("FLUSHALL", "OK");
        }
    }
}
