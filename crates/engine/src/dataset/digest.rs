//! Digests of values and of the whole dataset, as DEBUG DIGEST shows them. Equal data has equal
//! digests, regardless of its order and encoding, on any server that computes them this way.
//!
//! There are two ways to add to a digest: *xor* ignores the order of what is added, *mix* keeps it.
//! The elements of an unordered collection are xored, and parts in an order are mixed.

use crate::base::number::Digits;
use crate::keyspace::{DbIndex, EntryRef, Keys};
use crate::types::hash::Hash;
use crate::types::list::{End, List};
use crate::types::set::Set;
use crate::types::stream::StreamId;
use crate::types::{SortedSet, ValueKind};
use brisk_resp::reply::encode;
use brisk_structures::sha1::{DIGEST_LEN, sha1};
use std::ops::ControlFlow;

/// Twenty bytes, shown as 40 hexadecimal digits; all zero for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest([u8; DIGEST_LEN]);

impl Digest {
    fn xor(&mut self, data: &[u8]) {
        for (byte, other) in self.0.iter_mut().zip(sha1(data)) {
            *byte ^= other;
        }
    }

    fn mix(&mut self, data: &[u8]) {
        self.xor(data);
        self.0 = sha1(&self.0);
    }

    /// Adds the type, the value and whether the key has a TTL.
    fn add_value(&mut self, entry: &EntryRef<'_>) {
        self.mix(&type_number(entry.kind()).to_be_bytes());
        if let Some(string) = entry.string() {
            self.mix(&string.contiguous(&mut Digits::new()));
        }
        if let Some(list) = entry.get::<List>() {
            let mut digits = itoa::Buffer::new();
            list.walk(0, End::Front, |_, item| {
                self.mix(item.text(&mut digits));
                ControlFlow::<()>::Continue(())
            });
        }
        if let Some(hash) = entry.get::<Hash>() {
            self.add_hash(hash);
        }
        if let Some(set) = entry.get::<SortedSet>() {
            let mut text = Vec::new();
            for (member, score) in set.iter(0..set.len()) {
                let mut element = Digest::default();
                element.mix(member.text(&mut itoa::Buffer::new()));
                text.clear();
                encode::double_text(&mut text, score);
                element.mix(&text);
                self.xor(&element.0);
            }
        }
        if let Some(set) = entry.get::<Set>() {
            let mut digits = itoa::Buffer::new();
            set.each(|member| self.xor(member.text(&mut digits)));
        }
        if let Some(stream) = entry.stream() {
            for entry in stream.entries().range(StreamId::MIN, StreamId::MAX) {
                self.mix(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
                for (field, value) in entry.pairs() {
                    self.mix(&field.to_vec());
                    self.mix(&value.to_vec());
                }
            }
        }
        if entry.deadline().is_some() {
            self.xor(b"!!expire!!");
        }
    }

    fn add_hash(&mut self, hash: &Hash) {
        let mut digits = itoa::Buffer::new();
        hash.each_timed(|field, value, deadline| {
            let mut of_field = Digest::default();
            of_field.mix(field.text(&mut digits));
            of_field.mix(value.text(&mut digits));
            if deadline.is_some() {
                of_field.xor(b"!!hexpire!!");
            }
            self.xor(&of_field.0);
        });
    }

    /// The digest of a value. O(value).
    #[must_use]
    pub fn of_value(entry: &EntryRef<'_>) -> Digest {
        let mut digest = Digest::default();
        digest.add_value(entry);
        digest
    }

    /// The digest of all databases, including expired keys. O(all data). For a point-in-time
    /// digest, no other thread may change anything during the call.
    #[must_use]
    pub fn of_dataset(keys: &Keys<'_>) -> Digest {
        let mut all = Digest::default();
        let count = keys.keyspace().database_count();
        for db in DbIndex::all(count).filter(|db| keys.keyspace().key_count(*db) > 0) {
            all.mix(&db.number().to_be_bytes());
            keys.each_slot(db, |_, slot| {
                slot.table().for_each(|stored| {
                    let entry = EntryRef(stored);
                    let mut digest = Digest::default();
                    digest.mix(entry.key());
                    digest.add_value(&entry);
                    all.xor(&digest.0);
                });
                ControlFlow::Continue(())
            });
        }
        all
    }
}

/// The number of the type in digests, which is that of the dump format.
const fn type_number(kind: ValueKind) -> u32 {
    match kind {
        ValueKind::String => 0,
        ValueKind::List => 1,
        ValueKind::Set => 2,
        ValueKind::SortedSet => 3,
        ValueKind::Hash => 4,
        ValueKind::Stream => 6,
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
