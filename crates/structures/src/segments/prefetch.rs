//! Prefetches the cache lines that looking up a group of keys will read.
//!
//! A lookup reads the `Segment` struct, then its index, then its arena. Each address depends on the
//! previous read. If keys are looked up one after another, each waits for memory three times. As a
//! group, all keys together wait three times.

use super::segment::Segment;
use super::{Place, Segments};
use crate::prefetch::prefetch_value;

/// Number of keys in a group. With more keys, their cache lines would evict each other.
const GROUP: usize = 32;
/// With fewer elements, most of the prefetched lines would be in the cache anyway.
const LEN_MIN: usize = if cfg!(test) { 64 } else { 4096 };

impl Segments {
    /// Prefetches the memory that looking up these keys will read. Changes nothing. O(keys).
    pub fn prefetch(&self, keys: &[&[u8]]) {
        if self.len < LEN_MIN {
            return;
        }
        for keys in keys.chunks(GROUP) {
            self.prefetch_group(keys);
        }
    }

    fn prefetch_group(&self, keys: &[&[u8]]) {
        let mut places = [Place { page: 0, segment: 0, tag: 0, depth: 0 }; GROUP];
        let places = &mut places[..keys.len()];
        for (place, key) in places.iter_mut().zip(keys) {
            *place = self.place(self.hash.hash(key));
            prefetch_value(self.segment(*place));
        }
        let each = |step: fn(&Segment, u32)| {
            places.iter().for_each(|place| step(self.segment(*place), place.tag));
        };
        each(Segment::prefetch_word);
        each(Segment::prefetch_entry);
    }
}
