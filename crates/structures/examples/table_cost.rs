//! Measures the keyspace's structures: nanoseconds per get and set in prefetched batches, bytes per
//! key, and the longest single insert.
//!
//! ```text
//! cargo run --release -p brisk-structures --example table_cost [keys, default 10,000,000]
//! ```

#![expect(clippy::print_stdout, reason = "printing numbers is this program's purpose")]

use brisk_resp::slot::{SLOTS, key_slot};
use brisk_structures::entry::{Entry, ValueRef};
use brisk_structures::hash::HashKey;
use brisk_structures::reclaim::Participant;
use brisk_structures::slot::Slot;
use brisk_structures::table::Table;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const BATCH: usize = 32;
const OPERATIONS: usize = 4_000_000;
const HASH: HashKey = HashKey { k0: 0x1234, k1: 0x5678 };

/// A point in the CPU time of this thread. Time in which other threads run is not included.
#[derive(Clone, Copy)]
struct Instant(Duration);

impl Instant {
    fn now() -> Self {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid place for the result.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        Self(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    fn elapsed(self) -> Duration {
        Self::now().0 - self.0
    }
}

type Keyspace = Vec<Slot<Vec<u8>, [u64; 4]>>;

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"key:000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0) * 4096
}

fn fill(keyspace: &Keyspace, keys: u64, participant: &Participant) {
    let before = resident_bytes();
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    for number in 0..keys {
        let key = key(number);
        let hash = HASH.hash(&key);
        let one = Instant::now();
        if let Some(mut slot) = keyspace[usize::from(key_slot(&key))].try_lock() {
            slot.table_mut().insert(hash, Entry::new_bytes(&key, 0, b"12345678"));
        }
        longest = longest.max(one.elapsed());
        if number % BATCH as u64 == 0 {
            participant.announce_boundary();
        }
    }
    let per_key = |bytes: u64| bytes as f64 / keys as f64;
    let (mut buckets, mut overflow, mut arrays) = (0, 0, 0);
    for slot in keyspace {
        if let Some(slot) = slot.try_lock() {
            buckets += slot.table().allocated_bytes() as u64;
            overflow += slot.table().overflow_buckets();
            arrays += slot.table().bucket_count();
        }
    }
    println!(
        "fill: {:.0} ns per insert, longest {longest:?}; {:.1} bytes RSS per key, {:.1} of buckets; \
         {:.1} % of buckets overflow",
        start.elapsed().as_nanos() as f64 / keys as f64,
        per_key(resident_bytes() - before),
        per_key(buckets),
        100.0 * overflow as f64 / arrays as f64,
    );
}

fn measure(name: &str, keys: u64, mut batch: impl FnMut(&[[u8; 16]])) {
    let mut random = 88_172_645_463_325_252;
    let wanted: Vec<[u8; 16]> =
        (0..OPERATIONS).map(|_| key(next_random(&mut random) % keys)).collect();
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            wanted.chunks(BATCH).for_each(&mut batch);
            start.elapsed().as_nanos() as f64 / OPERATIONS as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name}: {:.1} ns (median of 5), {:.1} ns at best", times[2], times[0]);
}

/// Hashes a batch and prefetches its cache lines, as the executor does before it takes any lock.
#[inline(always)]
fn prefetch(
    keyspace: &Keyspace,
    keys: &[[u8; 16]],
    places: &mut [(u64, usize); BATCH],
    participant: &Participant,
) {
    for (key, place) in keys.iter().zip(&mut *places) {
        *place = (HASH.hash(key), usize::from(key_slot(key)));
        keyspace[place.1].prefetch();
    }
    for &(hash, slot) in &places[..keys.len()] {
        keyspace[slot].prefetch_bucket(hash);
    }
    for &(hash, slot) in &places[..keys.len()] {
        keyspace[slot].prefetch_entry(hash, participant);
    }
}

fn gets_and_sets(keyspace: &Keyspace, keys: u64, participant: &Participant) {
    let mut places = [(0, 0); BATCH];
    let mut out = Vec::with_capacity(4096);
    let mut get = |batch: &[[u8; 16]], prefetching: bool| {
        out.clear();
        if prefetching {
            prefetch(keyspace, batch, &mut places, participant);
        }
        for (key, place) in batch.iter().zip(&places) {
            let (hash, slot) =
                if prefetching { *place } else { (HASH.hash(key), usize::from(key_slot(key))) };
            if let Some(slot) = keyspace[slot].try_lock()
                && let Some(entry) = slot.table().find(hash, key)
                && let ValueRef::Bytes(bytes) = entry.value()
            {
                out.extend_from_slice(bytes);
            }
        }
        assert_eq!(out.len(), 8 * batch.len());
        participant.announce_boundary();
    };
    measure("get, batches of 32 prefetched", keys, |batch| get(batch, true));
    measure("get, no prefetch", keys, |batch| get(batch, false));
    measure("set, batches of 32 prefetched", keys, |batch| {
        prefetch(keyspace, batch, &mut places, participant);
        for (key, &(hash, slot)) in batch.iter().zip(&places) {
            if let Some(mut slot) = keyspace[slot].try_lock()
                && let Some(mut entry) = slot.table_mut().find_mut(hash, key)
            {
                entry.set_bytes(b"abcdefgh");
            }
        }
        participant.announce_boundary();
    });
    measure("hash and slot alone", keys, |batch| {
        for (key, place) in batch.iter().zip(&mut places) {
            *place = (HASH.hash(key), usize::from(key_slot(key)));
        }
        std::hint::black_box(&mut places);
    });
}

/// Measures a single table, in which incremental growth matters.
fn one_table(keys: u64, participant: &Participant) {
    let mut table = Table::<Vec<u8>>::new();
    let mut times = Vec::with_capacity(keys as usize);
    for number in 0..keys {
        let key = key(number);
        let hash = HASH.hash(&key);
        let entry = Entry::new_int(&key, 0, 1);
        let one = Instant::now();
        table.view_mut().insert(hash, entry);
        times.push(one.elapsed().as_nanos() as u32);
        if number % BATCH as u64 == 0 {
            participant.announce_boundary();
        }
    }
    times.sort_unstable();
    let at = |part: f64| times[((keys - 1) as f64 * part) as usize];
    println!(
        "one table of {keys}: insert {} ns median, {} ns 99.9 %, {} us 99.9999 %, {} us longest; \
         {:.1} bytes of buckets per key",
        at(0.5),
        at(0.999),
        at(0.999_999) / 1000,
        at(1.0) / 1000,
        table.view().allocated_bytes() as f64 / keys as f64,
    );
}

/// Measures the bytes of buckets per key at all sizes while a table grows.
fn mean_bucket_bytes() {
    let mut table = Table::<Vec<u8>>::new();
    let (mut from, mut sum, mut n) = (8u64, 0.0, 0);
    let mut number = 0u64;
    for to in [16u64, 64, 256, 1024, 4096, 16_384] {
        while number < to {
            let key = key(number);
            table.view_mut().insert(HASH.hash(&key), Entry::new_int(&key, 0, 1));
            number += 1;
            if number > from && number.is_multiple_of(to / 16) {
                sum += table.view().allocated_bytes() as f64 / number as f64;
                n += 1;
            }
        }
        println!("buckets at {from} to {to} keys: {:.1} bytes per key", sum / f64::from(n));
        (from, sum, n) = (to, 0.0, 0);
    }
}

/// Starts a new process for each part, so that no part inherits the allocator state of another.
fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let keys = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(10_000_000);
    let Some(part) = args.get(2) else {
        for part in ["slots", "one"] {
            let mut child = std::process::Command::new(&args[0]);
            child.args([&keys.to_string(), part]).status()?;
        }
        return Ok(());
    };
    let Some(participant) = Participant::register() else { return Ok(()) };
    if part == "one" {
        one_table(keys, &participant);
        mean_bucket_bytes();
    } else {
        let keyspace: Keyspace = (0..SLOTS).map(|_| Slot::default()).collect();
        fill(&keyspace, keys, &participant);
        gets_and_sets(&keyspace, keys, &participant);
    }
    Ok(())
}
