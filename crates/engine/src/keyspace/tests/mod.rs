//! Compares the keyspace with a plain map, and tests the guarantees of its walks.

mod evict;
mod expire;
mod model;
mod relayed;
mod walks;

use super::*;
use crate::base::random::Random;
use crate::command::args::PreparedKey;
use crate::env::Env;
use crate::run::exec::prepare;

const HOME: DbIndex = DbIndex::FIRST;

/// A keyspace with one thread, at 1000 ms.
struct World {
    keyspace: Keyspace,
    env: Env,
}

impl World {
    fn new() -> World {
        let keyspace = Keyspace::new(3, KeyHasher::seeded(11, 12));
        let env = Env::new(keyspace.tally(), Random::seeded(13));
        env.set_now(UnixMs(1000));
        World { keyspace, env }
    }

    /// Runs `action` with the keys `names` of `db` locked. Expired keys are removed first.
    fn with<R>(
        &self,
        db: DbIndex,
        names: &[&[u8]],
        action: impl FnOnce(&mut Keys<'_>, &[Key<'_>]) -> R,
    ) -> R {
        let found: Vec<Key<'_>> =
            names.iter().map(|name| self.keyspace.hasher().key(name)).collect();
        let prepared: Vec<PreparedKey> =
            found.iter().enumerate().map(|(index, key)| prepare(index, key)).collect();
        let mut keys = Keys::lock(&self.keyspace, &self.env, db, &prepared).unwrap();
        keys.remove_expired(found.iter().copied(), false);
        action(&mut keys, &found)
    }

    /// Runs `action` with no slot locked.
    fn unlocked<R>(&self, action: impl FnOnce(&mut Keys<'_>) -> R) -> R {
        action(&mut Keys::unlocked(&self.keyspace, &self.env, HOME))
    }

    fn set(&self, name: &str, deadline: Option<u64>) {
        let deadline = deadline.map_or(Overwrite::Persist, |at| Overwrite::ExpireAt(UnixMs(at)));
        self.with(HOME, &[name.as_bytes()], |keys, found| {
            keys.set_string(&found[0], b"value", deadline, "set");
        });
    }

    fn delete(&self, name: &str) -> bool {
        self.with(HOME, &[name.as_bytes()], |keys, found| keys.delete(&found[0]))
    }

    fn exists(&self, name: &str) -> bool {
        self.with(HOME, &[name.as_bytes()], |keys, found| keys.contains(&found[0]))
    }

    fn touch(&self, name: &str) {
        self.with(HOME, &[name.as_bytes()], |keys, found| assert!(keys.touch(&found[0])));
    }

    fn count(&self) -> u64 {
        self.keyspace.key_count(HOME)
    }
}

/// Numbered names. Every second one is in a shared slot.
fn name(n: usize) -> String {
    if n.is_multiple_of(2) { format!("key:{n}") } else { format!("{{crowd}}:{n}") }
}
