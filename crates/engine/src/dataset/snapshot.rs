//! Writing the whole dataset as an RDB file, while no other thread runs commands. `loader.rs` loads
//! a file.

use crate::env::Env;
use crate::keyspace::{DbIndex, EntryRef, Keys, Keyspace, notes};
use brisk_persist::LoadError;
use brisk_persist::rdb::{
    RdbEvent, RdbReader, RdbWriter, VERSION, VERSION_FIELD_TTL, version_of_kind,
};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;

/// The version of the file that [`save`] writes. It is newer than usual only if hash fields have
/// TTLs. O(databases) if none ever had one, else O(keys of the slots with such hashes).
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

/// The version of a file for a snapshot that begins now, determined without reading keys: the newer
/// version if hash fields may have TTLs. O(databases) if none ever had one, else O(slots with
/// keys).
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

/// Like [`version_at_least`], but reads about `keys_max` keys and returns the exact [`version`] if
/// that is enough.
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

/// Writes all databases, including expired keys that have not been removed yet. `wrote` is called
/// for each key. O(all data).
///
/// # Errors
/// The first error of the writer. The rest is not visited: on a full disk, that would be wasted
/// work.
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

/// How a key that already exists is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicate {
    /// Loading fails with [`LoadFailure::Duplicate`].
    Refuse,
    /// The loaded key replaces the existing one.
    Replace,
}

/// The reason why a file was not loaded, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum LoadFailure {
    #[error(transparent)]
    File(#[from] LoadError),
    #[error("database {0} does not exist: raise `databases`")]
    Database(u64),
    #[error("the key {0:?} already exists")]
    Duplicate(String),
    #[error("the value of the key {0:?} breaks a rule of its type")]
    Value(String),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// The contents of a loaded file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadSummary {
    pub keys: u64,
    /// Number of keys that were skipped because they had expired.
    pub expired: u64,
    /// The names of the expired keys.
    pub expired_keys: ExpiredKeys,
    /// Number of collections without elements, which are skipped.
    pub empty: u64,
}

/// Keys that were not loaded because they had expired. A server that continues the history of the
/// dataset has to propagate their removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpiredKeys {
    /// Empty if the names were too large in total.
    pub keys: Vec<(DbIndex, Box<[u8]>)>,
    /// Bytes of all names.
    pub bytes: u64,
}

impl ExpiredKeys {
    /// Adds a key. If the names exceed `bytes_max`, all of them are dropped.
    pub(super) fn push(&mut self, db: DbIndex, key: &[u8], bytes_max: u64) {
        self.bytes += key.len() as u64;
        if self.bytes <= bytes_max {
            self.keys.push((db, key.into()));
        } else {
            self.keys = Vec::new();
        }
    }

    /// Adds the keys of another thread.
    pub(super) fn append(&mut self, mut other: ExpiredKeys) {
        self.bytes += other.bytes;
        self.keys.append(&mut other.keys);
    }
}

/// Reads a file to its end and checks that it is complete. Keeps only the sources of its function
/// libraries. O(file).
///
/// # Errors
/// The fault in the file. The reader is then positioned after the fault.
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

/// The database for a number in a file.
///
/// # Errors
/// If the number is not below `count`, the number of databases of this server.
pub fn database(number: u64, count: u32) -> Result<DbIndex, LoadFailure> {
    DbIndex::checked(number, count).ok_or(LoadFailure::Database(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Db;
    use std::io::ErrorKind;

    /// A full disk.
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
        // In one slot, and in all slots.
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
