//! Keys of a writable replica to which its own clients gave a deadline: no primary says when they are gone.
//!
//! A key is known by its name, so what becomes of it meanwhile is looked up when it is its turn. Keys go
//! around in a queue; those without a deadline leave it.

use crate::env::Env;
use crate::keyspace::keys::{after_expiry, detach, lock_blocking, must_postpone_writes, seal_slot};
use crate::keyspace::{DbIndex, Key, Keyspace, UnixMs};
use brisk_structures::poison::EvenPoisoned;
use std::collections::{HashSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More keys are not known: they are hidden when they have expired, and stay.
const KEYS_MAX: usize = 1 << 20;

type Name = (DbIndex, Box<[u8]>);

#[derive(Debug, Default)]
pub(in crate::keyspace) struct ReplicaExpires {
    names: Mutex<Names>,
    /// For those who look often.
    count: AtomicUsize,
}

/// Each that is known is once in the queue.
#[derive(Debug, Default)]
struct Names {
    queue: VecDeque<Name>,
    known: HashSet<Name>,
}

/// What is to become of a name.
enum Fate {
    /// It has a deadline that is still to come.
    Stays,
    Leaves,
    /// Its slot is not to be waited for now.
    Later,
}

impl Keyspace {
    /// A client of a replica gave a key a deadline.
    #[cold]
    pub(in crate::keyspace) fn note_replica_expire(&self, db: DbIndex, key: &Key<'_>) {
        let mut names = self.replica_expires.names.lock().even_poisoned();
        let name: Name = (db, key.bytes.into());
        if names.queue.len() < KEYS_MAX && names.known.insert(name.clone()) {
            names.queue.push_back(name);
            self.replica_expires.count.store(names.queue.len(), Ordering::Relaxed);
        }
    }

    /// The primary gave it one: it says what becomes of the key.
    #[inline]
    pub(in crate::keyspace) fn forget_replica_expire(&self, db: DbIndex, key: &Key<'_>) {
        if self.replica_expires.count.load(Ordering::Relaxed) > 0 {
            self.forget_known(db, key);
        }
    }

    /// Its place in the queue goes when it is its turn.
    #[cold]
    fn forget_known(&self, db: DbIndex, key: &Key<'_>) {
        let mut names = self.replica_expires.names.lock().even_poisoned();
        names.known.remove(&(db, key.bytes.into()));
    }

    /// Removes those of the keys that have expired, of `most` that are looked at. For the timers of a
    /// replica. O(`most`).
    pub fn expire_replica_keys(&self, env: &Env, most: usize) {
        for _ in 0..self.replica_expires.count.load(Ordering::Relaxed).min(most) {
            // Not held while a slot is: who has a slot may be about to add a name.
            let next = {
                let mut names = self.replica_expires.names.lock().even_poisoned();
                let next = names.queue.pop_front();
                next.map(|name| (names.known.contains(&name), name))
            };
            let Some((is_known, name)) = next else { break };
            let fate = if is_known { self.expire_if_due(env, &name) } else { Fate::Leaves };
            let mut names = self.replica_expires.names.lock().even_poisoned();
            if let Fate::Leaves = fate {
                names.known.remove(&name);
            } else {
                names.queue.push_back(name);
            }
            self.replica_expires.count.store(names.queue.len(), Ordering::Relaxed);
            if let Fate::Later = fate {
                break;
            }
        }
    }

    /// This server is no replica any more, so all that expires goes; or it has another dataset.
    pub fn forget_replica_expires(&self) {
        if self.replica_expires.count.load(Ordering::Relaxed) > 0 {
            let mut names = self.replica_expires.names.lock().even_poisoned();
            *names = Names::default();
            self.replica_expires.count.store(0, Ordering::Relaxed);
        }
    }

    fn expire_if_due(&self, env: &Env, (db, bytes): &Name) -> Fate {
        let Some(database) = self.database_if_used(*db) else { return Fate::Leaves };
        let key = self.hasher().key(bytes);
        let mut guard = lock_blocking(database, key.slot);
        if must_postpone_writes() {
            return Fate::Later;
        }
        let found = guard.table().find(key.hash, bytes);
        let Some(deadline) = found.and_then(|entry| entry.deadline()) else { return Fate::Leaves };
        if UnixMs(deadline) > env.now() {
            return Fate::Stays;
        }
        if let Some(entry) = detach(self, env, *db, &mut guard, key.hash, bytes) {
            after_expiry(env, *db, entry);
        }
        seal_slot(self, env, (*db, key.slot), &mut guard);
        Fate::Leaves
    }
}
