//! Sessions that clients may resume, in memory: bounded by number and age.
//!
//! Invariants
//!  1. Every key in `sessions` is also in `order`, with the same serial. Entries of `order` whose
//!     serial no longer exists are left over from taken or replaced sessions.
//!  2. `order` is in ascending order of time. It has at most twice as many entries as sessions may
//!     be kept, plus one.

use brisk_structures::poison::EvenPoisoned;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum number of sessions if `tls-session-cache-size` is 0, which means "no limit". A session
/// takes about 1 KiB.
const UNLIMITED: usize = 1 << 20;

/// A store of sessions.
pub(super) struct Resumption {
    kept_max: usize,
    age_max: Duration,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    sessions: HashMap<Vec<u8>, Session>,
    order: VecDeque<(Instant, u64, Vec<u8>)>,
    next_serial: u64,
}

struct Session {
    since: Instant,
    serial: u64,
    secret: Vec<u8>,
}

impl Resumption {
    /// Keeps `kept_max` sessions (0: [`UNLIMITED`]), each for `age_max`.
    pub(super) fn new(kept_max: usize, age_max: Duration) -> Resumption {
        let kept_max = if kept_max == 0 { UNLIMITED } else { kept_max.min(UNLIMITED) };
        Resumption { kept_max, age_max, kept: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().even_poisoned()
    }

    fn put_at(&self, key: Vec<u8>, secret: Vec<u8>, now: Instant) {
        let mut kept = self.lock();
        let kept = &mut *kept;
        let serial = kept.next_serial;
        kept.next_serial += 1;
        kept.order.push_back((now, serial, key.clone()));
        kept.sessions.insert(key, Session { since: now, serial, secret });
        while let Some((since, serial, key)) = kept.order.front() {
            let alive = kept.sessions.get(key).is_some_and(|session| session.serial == *serial);
            let aged = now.saturating_duration_since(*since) >= self.age_max;
            if alive && !aged && kept.sessions.len() <= self.kept_max {
                break;
            }
            if alive {
                kept.sessions.remove(key);
            }
            kept.order.pop_front();
        }
        if kept.order.len() > 2 * self.kept_max {
            let sessions = &kept.sessions;
            let is_alive = |key: &Vec<u8>, serial| {
                sessions.get(key).is_some_and(|session| session.serial == serial)
            };
            kept.order.retain(|(_, serial, key)| is_alive(key, *serial));
        }
    }

    fn find(&self, key: &[u8], take: bool, now: Instant) -> Option<Vec<u8>> {
        let mut kept = self.lock();
        let session = kept.sessions.get(key)?;
        let aged = now.saturating_duration_since(session.since) >= self.age_max;
        if take || aged {
            let session = kept.sessions.remove(key)?;
            return (!aged).then_some(session.secret);
        }
        Some(session.secret.clone())
    }
}

/// Does not show the secrets.
impl std::fmt::Debug for Resumption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kept = self.lock().sessions.len();
        f.debug_struct("Resumption").field("kept", &kept).finish_non_exhaustive()
    }
}

impl rustls::server::StoresServerSessions for Resumption {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.put_at(key, value, Instant::now());
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.find(key, false, Instant::now())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.find(key, true, Instant::now())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> Vec<u8> {
        vec![n]
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let store = Resumption::new(2, Duration::from_secs(9));
        let now = Instant::now();
        for n in 0..3 {
            store.put_at(key(n), vec![n, n], now);
        }
        assert_eq!(store.find(&key(0), false, now), None);
        assert_eq!(store.find(&key(1), false, now), Some(vec![1, 1]));
        assert_eq!(store.find(&key(2), true, now), Some(vec![2, 2]));
        assert_eq!(store.find(&key(2), true, now), None);
    }

    #[test]
    fn a_session_ages() {
        let store = Resumption::new(2, Duration::from_secs(9));
        let now = Instant::now();
        store.put_at(key(1), vec![1], now);
        assert!(store.find(&key(1), false, now + Duration::from_secs(8)).is_some());
        assert!(store.find(&key(1), false, now + Duration::from_secs(9)).is_none());
        assert_eq!(store.lock().sessions.len(), 0);
    }

    #[test]
    fn endless_storing_and_taking_or_replacing_keeps_memory_bounded() {
        let store = Resumption::new(4, Duration::from_secs(9));
        let now = Instant::now();
        store.put_at(key(9), vec![9], now);
        for n in 0..100 {
            store.put_at(key(n % 3), vec![n], now);
            store.find(&key(n % 2), true, now);
            assert!(store.lock().order.len() <= 9 && store.lock().sessions.len() <= 4);
        }
    }
}
