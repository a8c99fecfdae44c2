//! TTLs that a replica's own clients have set on keys of a writable replica. The primary does not
//! know these TTLs, so the replica itself removes the keys.
//!
//! The names of the keys are in a queue. The replica looks up the key at the front and puts its
//! name back at the end, unless the key no longer has a TTL.

use crate::env::Env;
use crate::keyspace::keys::{after_expiry, detach, lock_blocking, must_postpone_writes, seal_slot};
use crate::keyspace::{DbIndex, Key, Keyspace, UnixMs};
use brisk_structures::poison::EvenPoisoned;
use std::collections::{HashSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of names. Further keys are only hidden when they expire, and stay in memory.
const KEYS_MAX: usize = 1 << 20;

type Name = (DbIndex, Box<[u8]>);

#[derive(Debug, Default)]
pub(in crate::keyspace) struct ReplicaExpires {
    names: Mutex<Names>,
    /// The queue's length, for frequent readers.
    count: AtomicUsize,
}

/// Each known name is in the queue once.
#[derive(Debug, Default)]
struct Names {
    queue: VecDeque<Name>,
    known: HashSet<Name>,
}

/// What to do with a name.
enum Fate {
    /// The key has a TTL that has not passed.
    Keeps,
    Leaves,
    /// Writes are postponed; try again later.
    Later,
}

impl Keyspace {
    /// Called when a client of a replica has set a TTL.
    #[cold]
    pub(in crate::keyspace) fn note_replica_expire(&self, db: DbIndex, key: &Key<'_>) {
        let mut names = self.replica_expires.names.lock().even_poisoned();
        let name: Name = (db, key.bytes.into());
        if names.queue.len() < KEYS_MAX && names.known.insert(name.clone()) {
            names.queue.push_back(name);
            self.replica_expires.count.store(names.queue.len(), Ordering::Relaxed);
        }
    }

    /// Called when the primary has set a TTL, so that the primary removes the key.
    #[inline]
    pub(in crate::keyspace) fn forget_replica_expire(&self, db: DbIndex, key: &Key<'_>) {
        if self.replica_expires.count.load(Ordering::Relaxed) > 0 {
            self.forget_known(db, key);
        }
    }

    /// The name leaves the queue when its turn comes.
    #[cold]
    fn forget_known(&self, db: DbIndex, key: &Key<'_>) {
        let mut names = self.replica_expires.names.lock().even_poisoned();
        names.known.remove(&(db, key.bytes.into()));
    }

    /// Checks up to `most` of the keys and removes those that have expired. Called by the timers of
    /// a replica. O(`most`).
    pub fn expire_replica_keys(&self, env: &Env, most: usize) {
        for _ in 0..self.replica_expires.count.load(Ordering::Relaxed).min(most) {
            // The lock is not held together with a slot: the holder of a slot may be about to add a
            // name.
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

    /// Called when this server is no longer a replica and removes all expired keys itself, or when
    /// its dataset was replaced.
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
            return Fate::Keeps;
        }
        if let Some(entry) = detach(self, env, *db, &mut guard, key.hash, bytes) {
            after_expiry(env, *db, entry);
        }
        seal_slot(self, env, (*db, key.slot), &mut guard);
        Fate::Leaves
    }
}
