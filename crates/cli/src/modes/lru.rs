//! `--lru-test`: simulates a cache under load. A few keys get most of the requests. The hit rate shows how suitable the
//! server's eviction policy is.

use super::bigkeys::percentage;
use crate::link::LinkError;
use crate::screen;
use crate::session::Session;
use std::time::{Duration, Instant};

const CYCLE: Duration = Duration::from_secs(1);
/// Number of requests that are sent together.
const BATCH: usize = 250;
/// The exponent of the distribution: about 80% of the requests use 20% of the keys.
const EXPONENT: f64 = 6.2;

/// Pseudorandom numbers, not cryptographically secure.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 1 to `most`. Small numbers are far more frequent.
    fn skewed(&mut self, most: f64) -> u64 {
        let uniform = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        let (low, high) = (1.0f64.powf(EXPONENT), most.powf(EXPONENT));
        (most - ((high - low) * uniform + low).powf(1.0 / EXPONENT) + 1.0) as u64
    }
}

pub(super) fn run(session: &mut Session) -> i32 {
    let most = session.options.lru_keys.max(1) as f64;
    let mut seed = [0; 8];
    if getrandom::fill(&mut seed).is_err() {
        seed = [1; 8];
    }
    let mut random = Random(u64::from_le_bytes(seed) | 1);
    loop {
        match cycle(session, &mut random, most) {
            Ok((hits, misses)) => {
                let all = hits + misses;
                let (hit, missed) = (percentage(hits, all), percentage(misses, all));
                screen::print(format!(
                    "{all} Gets/sec | Hits: {hits} ({hit:.2}%) | Misses: {misses} ({missed:.2}%)\n"
                ));
                screen::flush();
            }
            Err(_) => {
                screen::flush();
                screen::warn("I/O error during LRU test\n");
                return 1;
            }
        }
    }
}

fn cycle(session: &mut Session, random: &mut Random, most: f64) -> Result<(u64, u64), LinkError> {
    let begin = Instant::now();
    let (mut hits, mut misses) = (0, 0);
    while begin.elapsed() < CYCLE {
        let mut key = || format!("lru:{}", random.skewed(most)).into_bytes();
        let sets: Vec<_> =
            (0..BATCH).map(|_| vec![b"SET".to_vec(), key(), b"brisk".to_vec()]).collect();
        let gets: Vec<_> = (0..BATCH).map(|_| vec![b"GET".to_vec(), key()]).collect();
        session.request_all(&sets)?;
        for reply in session.request_all(&gets)? {
            if reply.as_bytes().is_some() {
                hits += 1;
            } else {
                misses += 1;
            }
        }
    }
    Ok((hits, misses))
}
