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

/// A cache of TLS sessions.
pub(super) struct SessionCache {
    sessions_max: usize,
    age_max: Duration,
    cached: Mutex<CachedSessions>,
}

#[derive(Default)]
struct CachedSessions {
    sessions: HashMap<Vec<u8>, TlsSession>,
    order: VecDeque<(Instant, u64, Vec<u8>)>,
    next_serial: u64,
}

struct TlsSession {
    since: Instant,
    serial: u64,
    secret: Vec<u8>,
}

impl SessionCache {
    /// Keeps `sessions_max` sessions (0: [`UNLIMITED`]), each for `age_max`.
    pub(super) fn new(sessions_max: usize, age_max: Duration) -> SessionCache {
        let sessions_max = if sessions_max == 0 { UNLIMITED } else { sessions_max.min(UNLIMITED) };
        SessionCache { sessions_max, age_max, cached: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, CachedSessions> {
        self.cached.lock().even_poisoned()
    }

    fn put_at(&self, key: Vec<u8>, secret: Vec<u8>, now: Instant) {
        let mut cached = self.lock();
        let cached = &mut *cached;
        let serial = cached.next_serial;
        cached.next_serial += 1;
        cached.order.push_back((now, serial, key.clone()));
        cached.sessions.insert(key, TlsSession { since: now, serial, secret });
        while let Some((since, serial, key)) = cached.order.front() {
            let alive = cached.sessions.get(key).is_some_and(|session| session.serial == *serial);
            let aged = now.saturating_duration_since(*since) >= self.age_max;
            if alive && !aged && cached.sessions.len() <= self.sessions_max {
                break;
            }
            if alive {
                cached.sessions.remove(key);
            }
            cached.order.pop_front();
        }
        if cached.order.len() > 2 * self.sessions_max {
            let sessions = &cached.sessions;
            let is_alive = |key: &Vec<u8>, serial| {
                sessions.get(key).is_some_and(|session| session.serial == serial)
            };
            cached.order.retain(|(_, serial, key)| is_alive(key, *serial));
        }
    }

    fn get_at(&self, key: &[u8], now: Instant) -> Option<Vec<u8>> {
        let mut cached = self.lock();
        let session = cached.sessions.get(key)?;
        if self.has_aged(session, now) {
            cached.sessions.remove(key);
            return None;
        }
        Some(session.secret.clone())
    }

    fn take_at(&self, key: &[u8], now: Instant) -> Option<Vec<u8>> {
        let session = self.lock().sessions.remove(key)?;
        (!self.has_aged(&session, now)).then_some(session.secret)
    }

    fn has_aged(&self, session: &TlsSession, now: Instant) -> bool {
        now.saturating_duration_since(session.since) >= self.age_max
    }
}

/// Does not show the secrets.
impl std::fmt::Debug for SessionCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cached = self.lock().sessions.len();
        f.debug_struct("SessionCache").field("cached", &cached).finish_non_exhaustive()
    }
}

impl rustls::server::StoresServerSessions for SessionCache {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.put_at(key, value, Instant::now());
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.get_at(key, Instant::now())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.take_at(key, Instant::now())
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
        let cache = SessionCache::new(2, Duration::from_secs(9));
        let now = Instant::now();
        for n in 0..3 {
            cache.put_at(key(n), vec![n, n], now);
        }
        assert_eq!(cache.get_at(&key(0), now), None);
        assert_eq!(cache.get_at(&key(1), now), Some(vec![1, 1]));
        assert_eq!(cache.take_at(&key(2), now), Some(vec![2, 2]));
        assert_eq!(cache.take_at(&key(2), now), None);
    }

    #[test]
    fn a_session_ages() {
        let cache = SessionCache::new(2, Duration::from_secs(9));
        let now = Instant::now();
        cache.put_at(key(1), vec![1], now);
        assert!(cache.get_at(&key(1), now + Duration::from_secs(8)).is_some());
        assert!(cache.get_at(&key(1), now + Duration::from_secs(9)).is_none());
        assert_eq!(cache.lock().sessions.len(), 0);
    }

    #[test]
    fn endless_storing_and_taking_or_replacing_keeps_memory_bounded() {
        let cache = SessionCache::new(4, Duration::from_secs(9));
        let now = Instant::now();
        cache.put_at(key(9), vec![9], now);
        for n in 0..100 {
            cache.put_at(key(n % 3), vec![n], now);
            cache.take_at(&key(n % 2), now);
            assert!(cache.lock().order.len() <= 9 && cache.lock().sessions.len() <= 4);
        }
    }
}
