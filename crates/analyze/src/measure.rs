//! The memory that values would take in other forms, summed over the keys while their values are available.
//! [`crate::advice`] derives savings from these sums.

use crate::model::brisk::{Brisk, Inline};
use crate::model::shape::{LISTPACK_BYTES, Shape, packed_entry, packed_text_entry};
use crate::model::{Bytes, Models};
use crate::record::{Encoding, Kind, Record};
use brisk_persist::rdb::Value;
use brisk_persist::rdb::value::{ListNode, StringValue};
use brisk_structures::listpack::Item;
use brisk_structures::lzf;

/// Limits that may be advised for the number of entries and for the bytes of a text. "Redis in Action" advises up to
/// 1,024 or 2,000 entries (requirement M3).
pub const ENTRIES_STEPS: [u64; 4] = [128, 512, 1000, 2000];
pub const TEXT_STEPS: [u64; 5] = [64, 128, 256, 512, 1024];
/// The maximum size of a listpack that is advised. Larger ones cost more time than the saved memory is worth.
pub const PACKED_BYTES_MAX: u64 = 64 << 10;
/// Values are compressed for measurement for the first `SAMPLED_FIRST` keys of each group, and then for one key in
/// `SAMPLED_EACH`.
const SAMPLED_FIRST: u64 = 200;
const SAMPLED_EACH: u64 = 32;
/// Maximum bytes of a value that are compressed for measurement. The rest is assumed to compress equally.
const SAMPLE_BYTES_MAX: usize = 256 << 10;
/// The minimum length of a value that is worth compressing.
pub const COMPRESSED_MIN: u64 = 64;
/// Nodes of a list that are compressed for measurement.
const NODES_SAMPLED: usize = 4;
/// Nodes at each end of a list that `list-compress-depth 1` leaves uncompressed.
const NODES_LEFT: usize = 1;
/// The minimum average length of members for which integers are advised. With shorter members, integers would save
/// little.
const MEMBER_BYTES_MIN: u64 = 8;
/// Digits of the integers that could replace members, and their width in an intset.
const INTEGER_DIGITS: u64 = 7;
const INTEGER_WIDTH: u64 = 4;
/// The compression level: zstd's default.
const ZSTD_LEVEL: i32 = 3;

/// A possible change of some keys.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Change {
    pub keys: u64,
    /// The current memory of these keys, and the savings.
    pub now: Bytes,
    pub saved: Bytes,
}

impl Change {
    pub fn add(&mut self, now: Bytes, then: Bytes) {
        self.keys += 1;
        self.now.add(now);
        self.saved.add(now.minus(then));
    }

    fn merge(&mut self, other: &Change) {
        self.keys += other.keys;
        self.now.add(other.now);
        self.saved.add(other.saved);
    }
}

/// Plain keys that could be fields of small hashes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packing {
    pub keys: u64,
    pub now: Bytes,
    /// Bytes of the entries that fields and values would be in listpacks.
    pub entries: u64,
    /// True if all fields are numbers, and the range of the numbers.
    pub is_numeric: bool,
    pub least: u64,
    pub most: u64,
}

impl Default for Packing {
    fn default() -> Packing {
        Packing {
            keys: 0,
            now: Bytes::default(),
            entries: 0,
            is_numeric: true,
            least: u64::MAX,
            most: 0,
        }
    }
}

/// Compression of values, measured on samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Compression {
    /// Keys that could be compressed, and their current memory.
    pub keys: u64,
    pub now: Bytes,
    /// Keys whose values were compressed for measurement.
    pub sampled: u64,
    pub sampled_now: Bytes,
    pub raw: u64,
    pub lzf: u64,
    pub zstd: u64,
    pub saved_lzf: Bytes,
    pub saved_zstd: Bytes,
}

/// The limits up to which the server packs collections: the directives that begin with the type names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub hash_entries: u64,
    pub hash_text: u64,
    pub sorted_set_entries: u64,
    pub sorted_set_text: u64,
    pub intset_entries: u64,
}

impl Default for Limits {
    /// The defaults of Redis 7.
    fn default() -> Limits {
        Limits {
            hash_entries: 512,
            hash_text: 64,
            sorted_set_entries: 128,
            sorted_set_text: 64,
            intset_entries: 512,
        }
    }
}

/// The sums; see the module documentation.
#[derive(Debug, Clone, Default)]
pub struct Measures {
    pub packing: Packing,
    /// Tables that would be listpacks or intsets with limits of at least these values.
    pub limits: [[Change; TEXT_STEPS.len()]; ENTRIES_STEPS.len()],
    /// Sets whose members could be integers.
    pub integers: Change,
    /// Lists that could be compressed.
    pub lists: Compression,
    /// Strings that could be compressed.
    pub values: Compression,
}

/// A key whose possible changes are measured.
#[derive(Debug, Clone, Copy)]
pub struct Measure<'a> {
    pub record: &'a Record<'a>,
    pub shape: &'a Shape,
    pub models: &'a Models,
    /// The current memory of the key.
    pub now: Bytes,
    /// The part of the key in which it differs from others.
    pub field: Option<&'a [u8]>,
    pub limits: &'a Limits,
}

impl Measures {
    pub fn add(&mut self, measure: &Measure<'_>, compressor: &mut Compressor) {
        let record = measure.record;
        match record.kind {
            Kind::String => {
                self.pack(measure);
                self.compress(measure, compressor);
            }
            Kind::Hash | Kind::SortedSet => self.limit(measure),
            Kind::Set => {
                self.limit(measure);
                self.integers(measure);
            }
            Kind::List => self.compress_nodes(measure, compressor),
            Kind::Stream | Kind::Module => {}
        }
    }

    fn pack(&mut self, measure: &Measure<'_>) {
        let (record, shape) = (measure.record, measure.shape);
        let Some(field) = measure.field else { return };
        let text_max = measure.limits.hash_text;
        // A field has no TTL.
        let fits = shape.elements <= text_max && field.len() as u64 <= text_max;
        if record.deadline_ms.is_some() || !fits {
            return;
        }
        let packing = &mut self.packing;
        packing.keys += 1;
        packing.now.add(measure.now);
        packing.entries += packed_entry(Item::of(field));
        packing.entries += match record.value {
            Some(Value::String(StringValue::Int(number))) => packed_entry(Item::Int(*number)),
            _ => packed_text_entry(shape.elements),
        };
        match str::from_utf8(field).ok().and_then(|text| text.parse::<u64>().ok()) {
            Some(number) => {
                packing.least = packing.least.min(number);
                packing.most = packing.most.max(number);
            }
            None => packing.is_numeric = false,
        }
    }

    fn limit(&mut self, measure: &Measure<'_>) {
        let (record, shape) = (measure.record, measure.shape);
        let (redis, brisk) = (&measure.models.redis, &measure.models.brisk);
        if !matches!(record.encoding, Encoding::HashTable | Encoding::SkipList) {
            return;
        }
        // Redis 7.0 packs sets only if all members are integers.
        let (then, longest) = match (record.kind, shape.int_width) {
            (Kind::Set, Some(width)) => {
                let then =
                    (redis.intset(shape.elements, width), brisk.intset(shape.elements, width));
                (then, 0)
            }
            (Kind::Set, None) => return,
            _ => ((redis.packed(shape.packed), brisk.packed(shape.packed)), shape.longest),
        };
        let entries = ENTRIES_STEPS.iter().position(|step| shape.elements <= *step);
        let text = TEXT_STEPS.iter().position(|step| longest <= *step);
        if let (Some(entries), Some(text)) = (entries, text)
            && shape.packed + LISTPACK_BYTES <= PACKED_BYTES_MAX
        {
            let then = measure.with_value(then.0, Inline::Object, then.1);
            self.limits[entries][text].add(measure.now, then);
        }
    }

    fn integers(&mut self, measure: &Measure<'_>) {
        let (shape, intset_max) = (measure.shape, measure.limits.intset_entries);
        if shape.int_width.is_some() || shape.texts < shape.elements * MEMBER_BYTES_MIN {
            return;
        }
        let (redis, brisk) = (&measure.models.redis, &measure.models.brisk);
        let members = shape.elements;
        let then = if members <= intset_max {
            (redis.intset(members, INTEGER_WIDTH), brisk.intset(members, INTEGER_WIDTH))
        } else {
            let arena = members * Brisk::member(INTEGER_DIGITS);
            let texts = members * redis.sds(INTEGER_DIGITS);
            (redis.table(members, texts), brisk.table(members, arena))
        };
        self.integers.add(measure.now, measure.with_value(then.0, Inline::Object, then.1));
    }

    fn compress(&mut self, measure: &Measure<'_>, compressor: &mut Compressor) {
        let len = measure.shape.elements;
        let Some(Value::String(StringValue::Bytes(text))) = measure.record.value else { return };
        if len < COMPRESSED_MIN {
            return;
        }
        let values = &mut self.values;
        if !values.takes(measure.now) {
            return;
        }
        let sizes = compressor.sizes(text);
        values.raw += len;
        let then = |compressed: u64| {
            let len = compressed.min(len);
            let outside = measure.models.brisk.text_outside(len);
            let then =
                measure.with_value(measure.models.redis.text(len), Inline::Text(len), outside);
            measure.now.minus(then)
        };
        values.lzf += sizes.lzf.min(len);
        values.zstd += sizes.zstd.min(len);
        values.saved_lzf.add(then(sizes.lzf));
        values.saved_zstd.add(then(sizes.zstd));
    }

    fn compress_nodes(&mut self, measure: &Measure<'_>, compressor: &mut Compressor) {
        let Some(Value::List(nodes)) = measure.record.value else { return };
        let inner = nodes.len().saturating_sub(2 * NODES_LEFT);
        if inner == 0 || !self.lists.takes(measure.now) {
            return;
        }
        let (redis, brisk) = (&measure.models.redis, &measure.models.brisk);
        let step = inner.div_ceil(NODES_SAMPLED);
        let chosen = nodes[NODES_LEFT..nodes.len() - NODES_LEFT].iter().step_by(step);
        let (mut count, mut saved) = (0_u64, Bytes::default());
        for node in chosen {
            count += 1;
            let bytes = match node {
                ListNode::Packed(list) => list.as_bytes(),
                ListNode::Plain(text) => text,
                ListNode::Elements(_) => continue,
            };
            let (len, compressed) = (bytes.len() as u64, compressor.lzf(bytes));
            self.lists.raw += len;
            self.lists.lzf += compressed.min(len);
            if compressed < len {
                let now = Bytes::new(redis.classes().of(len), Brisk::class(len));
                let then = Bytes::new(
                    redis.compressed_node(compressed),
                    brisk.compressed_node(compressed),
                );
                saved.add(now.minus(then));
            }
        }
        self.lists.saved_lzf.add(saved.times(inner as f64 / count.max(1) as f64));
    }

    pub fn merge(&mut self, other: &Measures) {
        let (packing, more) = (&mut self.packing, &other.packing);
        packing.keys += more.keys;
        packing.now.add(more.now);
        packing.entries += more.entries;
        packing.is_numeric &= more.is_numeric;
        packing.least = packing.least.min(more.least);
        packing.most = packing.most.max(more.most);
        for (row, more) in self.limits.iter_mut().zip(&other.limits) {
            row.iter_mut().zip(more).for_each(|(change, more)| change.merge(more));
        }
        self.integers.merge(&other.integers);
        self.lists.merge(&other.lists);
        self.values.merge(&other.values);
    }
}

impl Measure<'_> {
    /// The memory of the key with a different value.
    fn with_value(&self, redis: u64, inline: Inline, outside: u64) -> Bytes {
        let (len, expires) = (self.record.key.len() as u64, self.record.deadline_ms.is_some());
        Bytes::new(
            self.models.redis.key(len, expires) + redis,
            self.models.brisk.key(len, expires, inline, outside),
        )
    }
}

impl Compression {
    /// Counts a key, and returns whether to measure it.
    fn takes(&mut self, now: Bytes) -> bool {
        let takes = self.keys < SAMPLED_FIRST || self.keys.is_multiple_of(SAMPLED_EACH);
        self.keys += 1;
        self.now.add(now);
        if takes {
            self.sampled += 1;
            self.sampled_now.add(now);
        }
        takes
    }

    /// The savings of all keys, extrapolated from the samples.
    #[must_use]
    pub fn scaled(&self, saved: Bytes) -> Bytes {
        if self.sampled_now.redis <= 0.0 {
            return Bytes::default();
        }
        saved.times(self.now.redis / self.sampled_now.redis)
    }

    fn merge(&mut self, other: &Compression) {
        self.keys += other.keys;
        self.now.add(other.now);
        self.sampled += other.sampled;
        self.sampled_now.add(other.sampled_now);
        self.raw += other.raw;
        self.lzf += other.lzf;
        self.zstd += other.zstd;
        self.saved_lzf.add(other.saved_lzf);
        self.saved_zstd.add(other.saved_zstd);
    }
}

/// Compresses bytes to determine their compressed size.
pub struct Compressor {
    zstd: Option<zstd::bulk::Compressor<'static>>,
    room: Vec<u8>,
}

/// Sizes in bytes after compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    pub lzf: u64,
    pub zstd: u64,
}

impl Default for Compressor {
    fn default() -> Compressor {
        // Creating the compressor fails only if memory is exhausted. In this case nothing is measured with zstd.
        Compressor { zstd: zstd::bulk::Compressor::new(ZSTD_LEVEL).ok(), room: Vec::new() }
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Compressor {
    /// The compressed size of a value with both methods. If compression saves nothing, the size is its length or more.
    pub fn sizes(&mut self, value: &[u8]) -> Sizes {
        let part = &value[..value.len().min(SAMPLE_BYTES_MAX)];
        let whole = |bytes: u64| {
            (bytes as f64 * value.len() as f64 / part.len().max(1) as f64).round() as u64
        };
        let zstd = self.zstd.as_mut().and_then(|zstd| zstd.compress(part).ok());
        let zstd = zstd.map_or(part.len(), |block| block.len()) as u64;
        Sizes { lzf: whole(self.lzf(part)), zstd: whole(zstd) }
    }

    /// Like [`Compressor::sizes`], with LZF only.
    pub fn lzf(&mut self, bytes: &[u8]) -> u64 {
        self.room.clear();
        let max = bytes.len().saturating_sub(1);
        lzf::compress(bytes, max, &mut self.room).unwrap_or(bytes.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_measured_and_never_makes_things_larger() {
        let mut compressor = Compressor::default();
        let text = "the same words again and ".repeat(40);
        let sizes = compressor.sizes(text.as_bytes());
        assert!(sizes.lzf < 100 && sizes.zstd < 100, "{sizes:?}");
        let mut state = 1_u64;
        let noise: Vec<u8> = (0..1000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let sizes = compressor.sizes(&noise);
        assert!(sizes.lzf >= 1000 && sizes.zstd >= 1000, "{sizes:?}");
        assert_eq!(compressor.sizes(b""), Sizes { lzf: 0, zstd: compressor.sizes(b"").zstd });
    }
}
