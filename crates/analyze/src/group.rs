//! The totals of the keys with one pattern, type, encoding and database. Groups can be merged. The size of a group does
//! not depend on the number of its keys.

use crate::lengths::Lengths;
use crate::measure::Measures;
use crate::model::Bytes;
use crate::record::{Encoding, Kind};

/// Number of largest keys that a group lists.
pub const BIGGEST_MAX: usize = 5;
/// Maximum number of bytes of a listed key's name.
const NAME_BYTES_MAX: usize = 256;
/// Number of powers of two by which sizes are counted.
pub const SIZES: usize = 48;

/// Upper bounds of time spans in seconds, with their names. Longer times are counted in an additional span.
pub const SPANS: [(u64, &str); 7] = [
    (60, "1 min"),
    (3600, "1 h"),
    (86_400, "1 day"),
    (7 * 86_400, "7 days"),
    (30 * 86_400, "30 days"),
    (90 * 86_400, "90 days"),
    (365 * 86_400, "1 year"),
];

/// Properties that the keys of a group share in addition to their pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKey {
    pub db: u64,
    pub kind: Kind,
    pub encoding: Encoding,
}

/// Keys and bytes by time span.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spans {
    pub keys: [u64; SPANS.len() + 1],
    /// The bytes according to both models.
    pub bytes: [Bytes; SPANS.len() + 1],
}

impl Spans {
    pub fn add(&mut self, seconds: u64, bytes: Bytes) {
        let at = SPANS.iter().position(|(bound, _)| seconds < *bound).unwrap_or(SPANS.len());
        self.keys[at] += 1;
        self.bytes[at].add(bytes);
    }

    fn merge(&mut self, other: &Spans) {
        for at in 0..self.keys.len() {
            self.keys[at] += other.keys[at];
            self.bytes[at].add(other.bytes[at]);
        }
    }

    /// The number of keys.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.keys.iter().sum()
    }
}

/// The largest keys of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Biggest(Vec<(u64, Vec<u8>)>);

impl Biggest {
    pub fn add(&mut self, bytes: u64, key: &[u8]) {
        if self.0.len() == BIGGEST_MAX && self.0.last().is_some_and(|(least, _)| *least >= bytes) {
            return;
        }
        let at = self.0.partition_point(|(more, _)| *more >= bytes);
        self.0.insert(at, (bytes, key[..key.len().min(NAME_BYTES_MAX)].to_vec()));
        self.0.truncate(BIGGEST_MAX);
    }

    fn merge(&mut self, other: Biggest) {
        other.0.into_iter().for_each(|(bytes, key)| self.add(bytes, &key));
    }

    /// Sizes and names, the largest first. Names may be truncated.
    #[must_use]
    pub fn keys(&self) -> &[(u64, Vec<u8>)] {
        &self.0
    }
}

/// The totals of a group; see the module documentation.
#[derive(Debug, Clone)]
pub struct Group {
    pub keys: u64,
    /// Keys whose value was examined. The totals of values and costs cover only these keys.
    pub detailed: u64,
    /// The bytes that the server reported for all keys, and for those that were examined.
    pub reported_bytes: u64,
    pub reported_detailed_bytes: u64,
    /// The bytes according to the models.
    pub bytes: Bytes,
    pub elements: u64,
    pub elements_max: u64,
    pub key_bytes: u64,
    pub value_bytes: u64,
    /// Keys with a TTL, keys that have expired, and the remaining TTLs.
    pub expiring: u64,
    pub expired: u64,
    pub ttl: Spans,
    /// Keys with a known idle time: all of them, and those without a TTL.
    pub idle: Spans,
    pub idle_forever: Spans,
    /// Sum and number of the LFU counters.
    pub frequency: (u64, u64),
    pub biggest: Biggest,
    /// Number of keys by the logarithm of their size.
    pub sizes: [u64; SIZES],
    /// Lengths of keys, and of complete entries in Brisk.
    pub key_lengths: Lengths,
    pub entry_lengths: Lengths,
    /// Bytes of long IDs in key names, such as UUIDs.
    pub id_bytes: u64,
    pub measures: Measures,
}

impl Default for Group {
    fn default() -> Group {
        Group {
            keys: 0,
            detailed: 0,
            reported_bytes: 0,
            reported_detailed_bytes: 0,
            bytes: Bytes::default(),
            elements: 0,
            elements_max: 0,
            key_bytes: 0,
            value_bytes: 0,
            expiring: 0,
            expired: 0,
            ttl: Spans::default(),
            idle: Spans::default(),
            idle_forever: Spans::default(),
            frequency: (0, 0),
            biggest: Biggest::default(),
            sizes: [0; SIZES],
            key_lengths: Lengths::default(),
            entry_lengths: Lengths::default(),
            id_bytes: 0,
            measures: Measures::default(),
        }
    }
}

impl Group {
    /// Adds another group to this one.
    pub fn merge(&mut self, other: Group) {
        self.keys += other.keys;
        self.detailed += other.detailed;
        self.reported_bytes += other.reported_bytes;
        self.reported_detailed_bytes += other.reported_detailed_bytes;
        self.bytes.add(other.bytes);
        self.elements += other.elements;
        self.elements_max = self.elements_max.max(other.elements_max);
        self.key_bytes += other.key_bytes;
        self.value_bytes += other.value_bytes;
        self.expiring += other.expiring;
        self.expired += other.expired;
        self.ttl.merge(&other.ttl);
        self.idle.merge(&other.idle);
        self.idle_forever.merge(&other.idle_forever);
        self.frequency.0 += other.frequency.0;
        self.frequency.1 += other.frequency.1;
        self.biggest.merge(other.biggest);
        for (size, more) in self.sizes.iter_mut().zip(other.sizes) {
            *size += more;
        }
        self.key_lengths.merge(&other.key_lengths);
        self.entry_lengths.merge(&other.entry_lengths);
        self.id_bytes += other.id_bytes;
        self.measures.merge(&other.measures);
    }

    /// The factor by which to extrapolate sums over examined keys to all keys. It is a ratio of bytes if the server has
    /// reported sizes, otherwise a ratio of keys.
    #[must_use]
    pub fn scale(&self) -> f64 {
        let part = |all: u64, some: u64| all as f64 / some as f64;
        match (self.reported_bytes, self.reported_detailed_bytes, self.detailed) {
            (_, _, 0) => 0.0,
            (reported, of_detailed, _) if of_detailed > 0 => part(reported, of_detailed),
            (_, _, detailed) => part(self.keys, detailed),
        }
    }

    /// The memory of all keys according to the models.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.bytes.times(self.scale())
    }

    /// The size of all keys: as reported by the server, or according to the model of Redis.
    #[must_use]
    pub fn known_bytes(&self) -> f64 {
        if self.reported_bytes > 0 { self.reported_bytes as f64 } else { self.total().redis }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_biggest_are_kept_in_order() {
        let mut biggest = Biggest::default();
        for bytes in [3, 9, 1, 7, 7, 2, 8, 4] {
            biggest.add(bytes, format!("key{bytes}").as_bytes());
        }
        let sizes: Vec<u64> = biggest.keys().iter().map(|(bytes, _)| *bytes).collect();
        assert_eq!(sizes, [9, 8, 7, 7, 4]);
        biggest.add(100, &[b'x'; 1000]);
        assert_eq!(biggest.keys()[0].1.len(), NAME_BYTES_MAX);
    }

    #[test]
    fn totals_are_extrapolated_from_the_sampled_keys() {
        let mut group = Group { keys: 100, detailed: 10, ..Group::default() };
        group.bytes = Bytes::new(1000, 500);
        assert_eq!(group.total(), Bytes::new(10_000, 5000));
        (group.reported_bytes, group.reported_detailed_bytes) = (5000, 1000);
        assert_eq!(group.total(), Bytes::new(5000, 2500));
        assert_eq!(group.known_bytes(), 5000.0);
        let mut all = Group::default();
        all.merge(group.clone());
        all.merge(group);
        assert_eq!((all.keys, all.total()), (200, Bytes::new(10_000, 5000)));
    }
}
