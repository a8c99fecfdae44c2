//! The whole dataset as an RDB file. Only while no other thread runs commands. How a file comes back
//! in is in `loader.rs`.

use crate::env::Env;
use crate::keyspace::{DbIndex, EntryRef, Keys, Keyspace, notes};
use brisk_persist::LoadError;
use brisk_persist::rdb::{
    RdbEvent, RdbReader, RdbWriter, VERSION, VERSION_FIELD_TTL, version_of_kind,
};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;

/// The version of the file that [`save`] writes: later than usual only if fields of hashes have
/// deadlines. O(databases) if none ever had, else O(keys of the slots where some had).
#[must_use]
pub fn version(keyspace: &Keyspace, env: &Env) -> u32 {
    let keys = Keys::unlocked(keyspace, env, DbIndex::default());
    let mut latest = VERSION;
    let databases = keyspace.databases();
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
    let databases = keyspace.databases();
    for db in databases.filter(|db| keyspace.field_deadlines(*db)) {
        keys.each_slot_of_field_deadlines(db, |_| latest = VERSION_FIELD_TTL);
    }
    latest
}

/// The same with a look at about `keys_max` keys: as [`version`] says if that suffices to know.
#[must_use]
pub fn version_within(keyspace: &Keyspace, env: &Env, keys_max: usize) -> u32 {
    let keys = Keys::unlocked(keyspace, env, DbIndex::default());
    let (mut latest, mut keys_left) = (VERSION, keys_max);
    let databases = keyspace.databases();
    for db in databases.filter(|db| keyspace.field_deadlines(*db)) {
        keys.each_slot_of_field_deadlines(db, |slot| {
            if latest >= VERSION_FIELD_TTL {
                return;
            }
            let count = slot.table().len();
            if count > keys_left {
                latest = VERSION_FIELD_TTL;
                return;
            }
            keys_left -= count;
            slot.table().for_each(|stored| {
                let kind = EntryRef(stored).dumpable().kind();
                latest = latest.max(version_of_kind(kind));
            });
        });
    }
    latest
}

/// Writes all databases, expired keys that are still there included; `wrote` hears of each key.
/// O(all data).
///
/// # Errors
/// The first of the writer. What would have followed is not looked at: a full disk is no reason to
/// walk through everything.
pub fn save<W: Write>(
    keyspace: &Keyspace,
    env: &Env,
    out: &mut RdbWriter<W>,
    mut wrote: impl FnMut(),
) -> io::Result<()> {
    let totals = keyspace.totals();
    let keys = Keys::unlocked(keyspace, env, DbIndex::default());
    for (db, database) in keyspace.databases().zip(&totals.databases) {
        if database.keys == 0 {
            continue;
        }
        out.select_db(u64::from(db.number()));
        out.resize_db(database.keys, database.with_deadline);
        let mut written = Ok(());
        keys.each_slot(db, |_, slot| {
            slot.table().for_each(|stored| {
                if written.is_err() {
                    return;
                }
                let entry = EntryRef(stored);
                let value = entry.dumpable();
                value.write(out.begin_entry(value.kind(), entry.key(), notes(&entry, env)));
                written = out.check();
                wrote();
            });
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        written?;
    }
    out.check()
}

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
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// What a file held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    pub keys: u64,
    /// Keys left out because they had expired.
    pub expired: u64,
    /// The names of those.
    pub gone: Gone,
    /// Collections without elements, which are left out.
    pub empty: u64,
}

/// Keys left out because they had expired: who goes on with the history of a dataset has to be told of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gone {
    /// None of them if they were too many.
    pub keys: Vec<(DbIndex, Box<[u8]>)>,
    /// Bytes of all their names.
    pub bytes: u64,
}

impl Gone {
    /// One more; more than `bytes_max` are forgotten.
    pub(super) fn push(&mut self, db: DbIndex, key: &[u8], bytes_max: u64) {
        self.bytes += key.len() as u64;
        if self.bytes <= bytes_max {
            self.keys.push((db, key.into()));
        } else {
            self.keys = Vec::new();
        }
    }

    /// Those of another thread as well.
    pub(super) fn append(&mut self, mut other: Gone) {
        self.bytes += other.bytes;
        self.keys.append(&mut other.keys);
    }
}

/// Reads a file to its end without keeping anything but the sources of its libraries of functions:
/// whether it is whole for those who load it. O(file).
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
            RdbEvent::SelectDb(number) => {
                database(number, databases)?;
            }
            RdbEvent::Function(source) => functions.push(source),
            _ => {}
        }
    }
    Ok(functions)
}

/// The database of a file's number.
///
/// # Errors
/// There are only `count`.
pub fn database(number: u64, count: u32) -> Result<DbIndex, LoadFailure> {
    DbIndex::checked(number, count).ok_or(LoadFailure::Database(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Db;
    use std::io::ErrorKind;

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
            let error = save(db.keyspace(), db.env(), &mut out, || ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            assert!(out.bytes() < (KEYS * value.len() / 10) as u64, "{}", out.bytes());
            db.check("FLUSHALL", "OK");
        }
    }
}
