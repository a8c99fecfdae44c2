//! Sorted sets in dumps.

use super::SortedSet;
use crate::types::EncodingLimits;
use brisk_persist::rdb::value::SortedSetValue;
use brisk_persist::rdb::{Encoder, Sink, kind};
use brisk_structures::listpack::Item;
use brisk_structures::ordered::{MEMBER_BYTES_MAX, Ordered};

impl SortedSet {
    pub(in crate::types) fn dump_kind(&self) -> u8 {
        match self {
            SortedSet::ListPack(_) => kind::ZSET_LISTPACK,
            SortedSet::SkipList(_) => kind::ZSET_2,
        }
    }

    pub(in crate::types) fn dump<S: Sink>(&self, encoder: &mut Encoder<S>) {
        match self {
            SortedSet::ListPack(list) => encoder.string(list.as_bytes()),
            SortedSet::SkipList(tree) => {
                encoder.length(tree.len() as u64);
                // In descending order, as in Redis, because loading adds each member at the front.
                for (member, score) in tree.iter().rev() {
                    encoder.string(member);
                    encoder.double(score);
                }
            }
        }
    }

    /// `None` if a member is too long.
    pub(in crate::types) fn of_dumped(
        value: SortedSetValue,
        limits: &EncodingLimits,
    ) -> Option<SortedSet> {
        match value {
            SortedSetValue::Packed(list) => {
                let is_long = list.len() / 2 > limits.zset_max_listpack_entries;
                let mut set = SortedSet::ListPack(list);
                if is_long {
                    set.as_tree(limits);
                }
                Some(set)
            }
            SortedSetValue::Members(members, scores) => {
                if members.iter().any(|member| member.len() > MEMBER_BYTES_MAX) {
                    return None;
                }
                if members.len() <= limits.zset_max_listpack_entries {
                    let mut few: Vec<_> = members.iter().map(Item::Str).zip(scores).collect();
                    SortedSet::sort(&mut few);
                    return Some(SortedSet::of_sorted(&few, limits));
                }
                let mut tree = Ordered::new(limits.hash_key);
                let mut all: Vec<_> = members.iter().zip(scores).collect();
                // Servers write members in descending order. In ascending order, the leaves are
                // filled one after the other.
                if all.first().map(|(_, score)| score) > all.last().map(|(_, score)| score) {
                    all.reverse();
                }
                for (member, score) in all {
                    tree.insert(member, score);
                }
                Some(SortedSet::SkipList(Box::new(tree)))
            }
        }
    }
}
