//! Interpreters that turn bytes into operations and compare the result with a plain model. They are
//! the bodies of the fuzz targets, and of tests with random bytes. They panic on a difference.

use crate::entry::{Entry, INLINE_LEN_MAX, ValueRef};
use crate::hyperloglog::{self, Form, Mark, REGISTERS};
use crate::intset::IntSet;
use crate::listpack::{Checked, Item, ListPack, element_at};
use crate::lzf;
use crate::table::Table;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Takes numbers from the front of the input; returns zero once the input is used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }
}

/// The hash of a key. The fuzzer chooses position bits through the key itself.
fn hash_of(key: u16) -> u64 {
    let [low, high] = key.to_le_bytes();
    // Many keys share a position, and positions form clusters.
    u64::from(high) << 56 | u64::from(low & 0x0f) << 40
}

fn number(entry: &Entry<u16>) -> u16 {
    match entry.value() {
        ValueRef::Int(int) => int as u16,
        ValueRef::Object(object) => *object,
        ValueRef::Bytes(bytes) => u16::from_le_bytes([bytes[0], bytes[1]]),
    }
}

fn entry(key: u16, value: u16) -> Entry<u16> {
    match value % 3 {
        0 => Entry::new_int(&key.to_le_bytes(), 0, i64::from(value)),
        1 => Entry::new_object(&key.to_le_bytes(), 0, value),
        _ => Entry::new_bytes(&key.to_le_bytes(), 0, &value.to_le_bytes()),
    }
}

/// A scan in progress: the keys that it has visited, and the keys that have existed since it began.
struct Scan {
    cursor: u32,
    seen: HashSet<Vec<u8>>,
    throughout: HashSet<u16>,
}

/// Compares a table with `HashMap`, while a scan continues across all changes. O(input).
pub fn fuzz_table(data: &[u8]) {
    let mut input = Input(data);
    let mut table = Table::<u16>::new();
    let mut model = HashMap::<u16, u16>::new();
    let mut scan: Option<Scan> = None;
    while !input.0.is_empty() {
        let (operation, key, value) = (input.byte(), input.word(), input.word());
        let (hash, bytes) = (hash_of(key), key.to_le_bytes());
        let mut t = table.view_mut();
        match operation % 9 {
            0..=2 => {
                let old = t.replace(hash, entry(key, value));
                assert_eq!(old.map(|e| number(&e)), model.insert(key, value));
            }
            3 | 4 => {
                assert_eq!(t.remove(hash, &bytes).map(|e| number(&e)), model.remove(&key));
            }
            5 => {
                let found = t.find_mut(hash, &bytes).map(|mut found| {
                    found.set_deadline((value % 2 == 0).then_some(1));
                    found.set_bytes(&vec![1; usize::from(value % 700)]);
                    found.set_int(i64::from(value));
                });
                assert_eq!(found, model.get_mut(&key).map(|old| *old = value));
            }
            6 => match value % 8 {
                0 => {
                    t.retain(|e| !number(&e).is_multiple_of(3));
                    model.retain(|_, value| !value.is_multiple_of(3));
                }
                1 => {
                    assert_eq!(t.take().view().len(), model.len());
                    model.clear();
                }
                _ => t.shrink_to_fit(),
            },
            7 => assert_eq!(t.as_ref().sample(hash).is_some(), !model.is_empty()),
            _ => scan = step(scan.take(), &table, &model),
        }
        if let Some(scan) = &mut scan {
            scan.throughout.retain(|key| model.contains_key(key));
        }
        table.view().check();
        assert_eq!(table.view().len(), model.len());
    }
    for (key, value) in &model {
        let found = table.view().find(hash_of(*key), &key.to_le_bytes());
        assert_eq!(found.map(|e| number(&e)), Some(*value));
    }
}

/// Continues a scan, or begins one. At its end, every key that existed throughout must have been
/// visited.
fn step(scan: Option<Scan>, table: &Table<u16>, model: &HashMap<u16, u16>) -> Option<Scan> {
    let mut scan = scan.unwrap_or_else(|| Scan {
        cursor: 0,
        seen: HashSet::new(),
        throughout: model.keys().copied().collect(),
    });
    scan.cursor = table.view().scan(scan.cursor, |e| {
        scan.seen.insert(e.key().to_vec());
    });
    if scan.cursor != 0 {
        return Some(scan);
    }
    for key in &scan.throughout {
        assert!(scan.seen.contains(key.to_le_bytes().as_slice()), "the scan missed {key}");
    }
    None
}

/// The expected content of an entry. The object fills all of its room and owns memory.
#[derive(Debug, PartialEq)]
enum Held {
    Bytes(Vec<u8>),
    Int(i64),
    Object((Box<u64>, [u64; 2])),
}

/// Compares an entry with a key, a value and a deadline that are stored separately. O(input * value
/// length).
pub fn fuzz_entry(data: &[u8]) {
    let mut input = Input(data);
    let mut key = vec![b'k'; usize::from(input.word() % 600)];
    let mut entry = Entry::new_bytes(&key, 1, b"");
    let mut held = Held::Bytes(vec![]);
    let mut deadline = None;
    while !input.0.is_empty() {
        let (operation, word) = (input.byte(), input.word());
        let len = usize::from(word) % if operation >= 128 { INLINE_LEN_MAX + 1 } else { 300 };
        let number = u64::from(word);
        match operation % 7 {
            0 | 1 => {
                let value = vec![operation; len];
                entry.set_bytes(&value);
                held = Held::Bytes(value);
            }
            2 => {
                entry.resize_bytes(len);
                let mut value = match held {
                    Held::Bytes(value) => value,
                    Held::Int(_) | Held::Object(_) => vec![],
                };
                value.resize(len, 0);
                held = Held::Bytes(value);
            }
            3 => {
                entry.set_int(i64::from(word));
                held = Held::Int(i64::from(word));
            }
            4 => {
                let object = || (Box::new(number), [!number, number << 40]);
                entry.set_object(object());
                held = Held::Object(object());
            }
            5 => {
                deadline = (operation >= 128).then_some(number);
                entry.set_deadline(deadline);
            }
            _ => {
                key = vec![operation; len % 600];
                entry = entry.with_key(&key);
            }
        }
        entry.check();
        assert_eq!((entry.key(), entry.deadline(), entry.kind()), (&*key, deadline, 1));
        match (entry.value(), &held) {
            (ValueRef::Bytes(value), Held::Bytes(bytes)) => assert_eq!(value, bytes),
            (ValueRef::Int(value), Held::Int(int)) => assert_eq!(value, *int),
            (ValueRef::Object(value), Held::Object(object)) => assert_eq!(value, object),
            (value, held) => panic!("{value:?} where {held:?} should be"),
        }
    }
}

/// Interprets arbitrary bytes as a HyperLogLog. No operation may panic. Rejected bytes stay
/// unchanged. Accepted bytes keep their registers through additions and conversion. O(input).
pub fn fuzz_hyperloglog(data: &[u8]) {
    let (element, body) = data.split_at(data.len().min(4));
    let whole = data.starts_with(b"HYLL");
    let bytes =
        if whole { data.to_vec() } else { [b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80", body].concat() };
    if hyperloglog::form(&bytes).is_none() {
        return;
    }
    let mark = Mark::of(element);
    let mut changed = bytes.clone();
    if hyperloglog::mark(&mut changed, mark, 300).is_err() {
        assert_eq!(changed, bytes);
    }
    let mut dense = bytes.clone();
    let mut registers = Box::new([0; REGISTERS]);
    let Ok(()) = hyperloglog::merge(&bytes, &mut registers) else {
        assert!(
            hyperloglog::make_dense(&mut dense).is_err() && hyperloglog::count(&bytes).is_err()
        );
        return;
    };
    assert!(hyperloglog::make_dense(&mut dense).is_ok());
    assert_eq!(hyperloglog::form(&dense), Some(Form::Dense));
    assert_eq!(hyperloglog::count(&dense), hyperloglog::count(&bytes));
    registers[mark.index] = mark.rank.max(registers[mark.index]);
    let mut after = Box::new([0; REGISTERS]);
    assert!(hyperloglog::merge(&changed, &mut after).is_ok());
    assert!(after == registers);
}

/// Interprets bytes as an integer set. If they are valid, the set is changed by operations from the
/// same bytes and compared with a tree. O(input²).
pub fn fuzz_intset(data: &[u8]) {
    let Ok(mut set) = IntSet::from_bytes(data.to_vec()) else { return };
    let mut model: BTreeSet<i64> = set.iter().collect();
    let mut input = Input(data);
    while !input.0.is_empty() {
        let (operation, word) = (input.byte(), input.word());
        let value = i64::from(word as i16) << (operation >> 3);
        match operation % 8 {
            0..=2 => assert_eq!(set.insert(value), model.insert(value)),
            3 | 4 => assert_eq!(set.remove(value), model.remove(&value)),
            5 => assert_eq!(set.contains(value), model.contains(&value)),
            6 => {
                let removed = set.remove_at(usize::from(word));
                assert_eq!(removed, model.iter().nth(usize::from(word)).copied());
                removed.map(|value| model.remove(&value));
            }
            _ => assert_eq!(set.max(), model.last().copied()),
        }
        set.check();
    }
    assert!(set.iter().eq(model));
}

/// Interprets bytes as a listpack. If `validate` accepts them, the listpack is walked in both
/// directions, searched and changed, and stays well-formed. O(input) except for the changes.
pub fn fuzz_listpack(data: &[u8]) {
    let mut met = Vec::new();
    let checked = Checked::new(data, |at, element| {
        assert_eq!(element_at(data, at), Some(element));
        met.push(element);
        Ok(())
    });
    let Ok(mut list) = ListPack::from_bytes(data.to_vec()) else {
        assert!(checked.is_err());
        return;
    };
    assert!(checked.is_ok_and(|bytes| ListPack::copy_of(bytes).iter().eq(met)));
    list.check();
    let forward: Vec<Vec<u8>> = list.iter().map(Item::to_vec).collect();
    let mut backward: Vec<Vec<u8>> = list.iter().rev().map(Item::to_vec).collect();
    backward.reverse();
    assert_eq!(forward, backward);
    assert_eq!(list.len(), forward.len());
    for (index, text) in forward.iter().enumerate().take(64) {
        assert!(list.get(index as i64).is_some_and(|item| item.is(text)));
        let first = list.first().expect("it has elements");
        let found = list.find(first, text, 0).expect("it was just read");
        assert!(list.item(found).is(text));
    }
    list.push_back(b"behind");
    list.push_front(7);
    if let Some(middle) = list.seek(forward.len() as i64 / 2) {
        list.replace(middle, b"in the middle");
        list.delete(middle);
    }
    list.check();
}

/// Interprets bytes as an LZF block, and as content to compress; both are read back. The first two
/// bytes are the claimed length of the content.
pub fn fuzz_lzf(data: &[u8]) {
    let mut input = Input(data);
    let len = usize::from(input.word());
    let block = input.0;
    let mut content = Vec::new();
    match lzf::decompress(block, len, &mut content) {
        Ok(()) => assert_eq!(content.len(), len),
        Err(_) => {
            let most = (block.len() + 1) * lzf::TRUSTED_FACTOR;
            assert!(content.capacity() <= most, "memory for a malformed block");
        }
    }
    let mut again = Vec::new();
    for content in [block, &content] {
        let mut packed = Vec::new();
        lzf::compress(content, usize::MAX, &mut packed).expect("there is no limit");
        again.clear();
        lzf::decompress(&packed, content.len(), &mut again).expect("we compressed it ourselves");
        assert_eq!(again, content);
    }
}

#[cfg(test)]
mod tests {
    use super::{fuzz_entry, fuzz_intset, fuzz_table};

    #[test]
    fn random_bytes_find_no_difference() {
        let (runs, len) = if cfg!(miri) { (2, 600) } else { (300, 3_000) };
        let mut state = 4_711_u64;
        for _ in 0..runs {
            let bytes: Vec<u8> = (0..len)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            fuzz_table(&bytes);
            fuzz_entry(&bytes[..bytes.len() / 4]);
            fuzz_intset(&[b"\x08\0\0\0\x01\0\0\0", &bytes[..8]].concat());
        }
    }
}
