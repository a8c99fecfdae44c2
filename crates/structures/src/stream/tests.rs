//! Compares streams with `std`'s tree maps after random changes, and tests old views and groups.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

const LIMITS: BlockLimits = BlockLimits { bytes: 300, entries: 7 };

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

type Words = Vec<Vec<u8>>;

fn words(random: &mut Random) -> Words {
    let fields = 1 + random.below(3);
    let mut words = Vec::new();
    for field in 0..fields {
        words.push(if random.below(4) == 0 { b"other".to_vec() } else { vec![b'a' + field as u8] });
        words.push(random.below(100_000).to_string().into_bytes());
    }
    words
}

fn read<'a>(entry: &Entry<'a>) -> (StreamId, Words) {
    let pairs = entry.pairs().flat_map(|(field, value)| [field.to_vec(), value.to_vec()]);
    (entry.id, pairs.collect())
}

fn same(stream: &Stream, model: &BTreeMap<StreamId, Words>, random: &mut Random) {
    stream.check();
    assert_eq!(stream.len(), model.len());
    let (a, b) = (StreamId::new(random.below(400), random.below(3)), random.below(400));
    let b = StreamId::new(a.ms + b, 1);
    let wanted: Vec<_> = model.range(a..=b).map(|(id, words)| (*id, words.clone())).collect();
    let entries = stream.entries();
    let found: Vec<_> = entries.range(a, b).map(|entry| read(&entry)).collect();
    assert_eq!(found, wanted);
    let mut reversed: Vec<_> = entries.range_reversed(a, b).map(|entry| read(&entry)).collect();
    reversed.reverse();
    assert_eq!(reversed, wanted);
    assert_eq!(entries.count(a, b), wanted.len());
    assert_eq!(entries.count(b, a), 0);
}

#[test]
fn entries_agree_with_a_tree_and_old_views_stay() {
    let mut random = Random(1);
    let mut stream = Stream::new();
    let mut model = BTreeMap::new();
    let mut views: Vec<(Entries, usize)> = Vec::new();
    for step in 0..4000 {
        match random.below(20) {
            0..=11 => {
                let id = StreamId::new(stream.last_id.ms + random.below(2), stream.last_id.seq + 1);
                let words = words(&mut random);
                stream.append(id, words.iter().map(|word| &word[..]), &LIMITS);
                model.insert(id, words);
            }
            12..=16 => {
                let id = StreamId::new(random.below(400), random.below(40));
                let near = model.range(id..).next().map_or(id, |(id, _)| *id);
                assert_eq!(stream.delete(near), model.remove(&near).is_some());
            }
            17 => {
                let len_max = stream.len() as u64 - random.below(1 + stream.len() as u64 / 4);
                let removed = stream.trim(Trim::MaxLen(len_max), false, 0);
                (0..removed).for_each(|_| drop(model.pop_first()));
                assert!(stream.len() as u64 <= len_max);
            }
            18 => {
                let id = model.keys().nth(random.below(8) as usize).copied().unwrap_or_default();
                let removed = stream.trim(Trim::MinId(id), false, 0);
                (0..removed).for_each(|_| drop(model.pop_first()));
                assert!(stream.first_id() >= id || stream.is_empty());
            }
            _ => views.push((stream.entries().clone(), stream.len())),
        }
        if step % 20 == 0 {
            same(&stream, &model, &mut random);
        }
    }
    for (view, len) in views {
        assert_eq!(view.range(StreamId::MIN, StreamId::MAX).count(), len);
    }
}

#[test]
fn approximate_trimming_removes_whole_blocks_within_its_limit() {
    let mut stream = Stream::new();
    for ms in 1..=70 {
        stream.append(StreamId::new(ms, 0), [&b"f"[..], b"v"].into_iter(), &LIMITS);
    }
    assert_eq!(stream.trim(Trim::MaxLen(50), true, 0), 14);
    assert_eq!(stream.trim(Trim::MaxLen(0), true, 20), 14);
    assert_eq!(stream.trim(Trim::MinId(StreamId::new(41, 0)), true, 0), 7);
    assert_eq!((stream.len(), stream.first_id()), (35, StreamId::new(36, 0)));
    stream.check();
}

#[test]
fn maps_of_ids_agree_with_a_tree() {
    let mut random = Random(3);
    let mut map = IdMap::default();
    let mut model = BTreeMap::new();
    for _ in 0..5000 {
        let id = StreamId::new(random.below(300), random.below(2));
        match random.below(5) {
            0..=2 => {
                let value = random.below(9);
                map.insert(id, value);
                model.insert(id, value);
            }
            3 => assert_eq!(map.remove(id), model.remove(&id)),
            _ => {
                assert_eq!(map.get(id), model.get(&id));
                let (found, wanted) = (map.iter_from(id), model.range(id..));
                assert!(found.eq(wanted.map(|(id, value)| (*id, value))));
            }
        }
        assert_eq!((map.first_id(), map.last_id()), {
            (model.keys().next().copied(), model.keys().next_back().copied())
        });
    }
    map.check();
}

#[test]
fn each_pending_entry_belongs_to_one_consumer() {
    let mut random = Random(5);
    let mut stream = Stream::new();
    assert!(
        stream.create_group(b"g", StreamId::MIN, 0) && !stream.create_group(b"g", StreamId::MIN, 0)
    );
    let names = [&b"a"[..], b"b", b"c"];
    let mut pending = BTreeSet::new();
    for _ in 0..2000 {
        let group = stream.group_mut(b"g").unwrap();
        let name = names[random.below(3) as usize];
        let id = StreamId::new(random.below(200), 0);
        match random.below(10) {
            0..=5 => {
                group.create_consumer(name, 1);
                group.assign(id, name, 5, 1);
                pending.insert(id);
            }
            6..=8 => assert_eq!(group.acknowledge(id), pending.remove(&id)),
            _ if random.below(10) == 0 => {
                let dropped = group.consumer(name).map(|owner| owner.pending().clone());
                let count = group.delete_consumer(name);
                assert_eq!(count, dropped.as_ref().map(IdMap::len));
                let dropped = dropped.unwrap_or_default();
                dropped.iter_from(StreamId::MIN).for_each(|(id, ())| _ = pending.remove(&id));
            }
            _ => group.redeliver(id, 7),
        }
        assert_eq!(group.pending().len(), pending.len());
    }
    stream.check();
}

#[test]
fn a_stream_built_from_loaded_blocks_equals_the_original() {
    let mut random = Random(11);
    let mut stream = Stream::new();
    for ms in 1..200 {
        let words = words(&mut random);
        stream.append(StreamId::new(ms, 0), words.iter().map(Vec::as_slice), &LIMITS);
    }
    for _ in 0..60 {
        stream.delete(StreamId::new(random.below(200), 0));
    }
    let blocks = || stream.packed_blocks().map(|(id, pack)| (id, pack.clone()));
    let mut copy = Stream::from_blocks(blocks()).unwrap();
    copy.check();
    let all = |stream: &Stream| -> Vec<_> {
        stream.entries().range(StreamId::MIN, StreamId::MAX).map(|entry| read(&entry)).collect()
    };
    assert_eq!(all(&copy), all(&stream));
    assert_eq!((copy.first_id(), copy.len()), (stream.first_id(), stream.len()));
    copy.trim(Trim::MaxLen(10), false, 0);
    copy.check();
    let reversed: Vec<_> = blocks().collect();
    assert!(Stream::from_blocks(reversed.into_iter().rev()).is_err());
}

#[test]
fn deleting_many_entries_of_a_block_with_long_flags_marks_the_right_ones() {
    // The flags of both entries are 13-bit integers, which we would write in one byte.
    let mut pack = ListPack::new();
    for item in [2, 0, 1, 7, 0, 300, 0, 0, 8, 4, 300, 0, 1, 9, 4] {
        pack.push_back(item);
    }
    let bytes = pack.into_bytes();
    let long = [0xc1, 0x2c, 0x02];
    assert_eq!(bytes.windows(3).filter(|three| *three == long).count(), 2);
    let bytes: Vec<u8> = {
        // 300 is 0x012c in 13 bits; 2 is 0x0002.
        let mut bytes = bytes;
        while let Some(at) = bytes.windows(3).position(|three| three == long) {
            bytes[at..at + 2].copy_from_slice(&[0xc0, 0x02]);
        }
        bytes
    };
    let pack = ListPack::from_bytes(bytes).unwrap();
    let mut stream = Stream::from_blocks([(StreamId::new(5, 0), pack)]).unwrap();
    assert_eq!(stream.len(), 2);
    stream.append(StreamId::new(6, 0), [&b"a"[..], b"b"].into_iter(), &LIMITS);
    assert_eq!(stream.trim(Trim::MaxLen(1), false, 0), 2);
    stream.check();
    assert_eq!(stream.entries().first().unwrap().id, StreamId::new(6, 0));
}

/// From 128 on, each count in a block's master entry takes one more byte, which moves the entries.
#[test]
fn trimming_one_by_one_finds_the_first_entry_however_long_the_counts_are() {
    const ONE_BLOCK: BlockLimits = BlockLimits { bytes: 0, entries: 0 };
    let mut stream = Stream::new();
    let append = |stream: &mut Stream, ms| {
        stream.append(StreamId::new(ms, 0), [&b"f"[..], b"v"].into_iter(), &ONE_BLOCK);
    };
    for ms in 1..=120 {
        append(&mut stream, ms);
    }
    // Both counts pass 128 on the way, with and without an entry added at the same time.
    for trimmed in 1..=200 {
        (0..2).for_each(|more| append(&mut stream, 119 + 2 * trimmed + more));
        assert_eq!(stream.trim(Trim::MaxLen(stream.len() as u64 - 1), false, 0), 1);
        assert_eq!(stream.first_id(), StreamId::new(trimmed + 1, 0));
        stream.check();
    }
    for left in (1..stream.len() as u64).rev() {
        assert_eq!(stream.trim(Trim::MaxLen(left), false, 0), 1);
        assert_eq!((stream.len() as u64, stream.first_id()), (left, StreamId::new(521 - left, 0)));
        stream.check();
    }
    assert_eq!(stream.blocks(), 1);
}
