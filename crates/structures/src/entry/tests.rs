//! Compares every form of value with a plain model, with keys and values of awkward lengths.

use super::{CLOCK_MASK, Entry, INLINE_LEN_MAX, ValueRef, size_class};
use crate::table::{EntryMut, Table};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// An object that fills all of its room and owns memory.
type Full = (Box<str>, u64);
type Text = Entry<Full>;

fn full(text: &str) -> Full {
    (text.into(), !(text.len() as u64))
}

fn key_of(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + 3) as u8).collect()
}

fn lengths() -> Vec<usize> {
    if cfg!(miri) {
        vec![0, 1, 16, 254, 255, 256]
    } else {
        vec![0, 1, 7, 8, 9, 15, 16, 17, 100, 254, 255, 256, 300, 4096, INLINE_LEN_MAX]
    }
}

#[test]
fn size_classes_are_those_of_jemalloc() {
    let expected = [
        8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896,
        1024, 1280,
    ];
    let mut classes: Vec<usize> = (1..=1280).map(size_class).collect();
    classes.dedup();
    assert_eq!(classes, expected);
}

#[test]
fn short_keys_take_32_bytes_with_a_short_value_and_48_or_64_with_an_object() {
    assert_eq!(Text::new_bytes(&[b'k'; 16], 1, &[b'v'; 8]).allocated_bytes(), 32);
    assert_eq!(Text::new_int(&[b'k'; 16], 1, 5).allocated_bytes(), 32);
    for (key_len, bytes, with_deadline) in [(8, 48, 48), (16, 48, 64), (17, 64, 64), (32, 64, 80)] {
        let mut entry = Text::new_object(&key_of(key_len), 1, full(""));
        assert_eq!(entry.allocated_bytes(), bytes);
        entry.set_deadline(Some(1));
        assert_eq!(entry.allocated_bytes(), with_deadline);
    }
    assert_eq!(size_of::<Option<Text>>(), 8);
}

#[test]
fn keys_and_values_of_every_length_come_back() {
    for key_len in lengths() {
        let key = key_of(key_len);
        for value_len in lengths() {
            let value = key_of(value_len);
            let entry = Text::new_bytes(&key, 9, &value);
            entry.check();
            assert_eq!(entry.key(), key);
            assert_eq!(entry.kind(), 9);
            assert!(matches!(entry.value(), ValueRef::Bytes(v) if v == value));
            assert_eq!(entry.deadline(), None);
        }
    }
}

#[test]
fn clock_and_kind_do_not_disturb_each_other() {
    let mut entry = Text::new_int(b"k", 7, 1);
    entry.set_clock(CLOCK_MASK);
    assert_eq!((entry.kind(), entry.clock()), (7, CLOCK_MASK));
    entry.set_kind(255);
    entry.set_clock(CLOCK_MASK + 2);
    assert_eq!((entry.kind(), entry.clock()), (255, 1));
}

/// The expected content of an entry.
#[derive(Clone, Debug, PartialEq)]
enum Model {
    Bytes(Vec<u8>),
    Int(i64),
    Object(Full),
}

fn assert_holds(entry: &Text, key: &[u8], model: &Model, deadline: Option<u64>) {
    entry.check();
    assert_eq!(entry.key(), key);
    assert_eq!(entry.deadline(), deadline);
    assert_eq!((entry.kind(), entry.clock()), (3, 77));
    let value = match entry.value() {
        ValueRef::Bytes(bytes) => Model::Bytes(bytes.to_vec()),
        ValueRef::Int(int) => Model::Int(int),
        ValueRef::Object(object) => Model::Object(object.clone()),
    };
    assert_eq!(value, *model);
}

#[test]
fn every_change_of_form_keeps_key_deadline_and_header() {
    let mut random = 12_345_u64;
    let mut draw = move |n: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % n
    };
    let lens = lengths();
    let steps = if cfg!(miri) { 60 } else { 2_000 };
    for key_len in [0, 1, 16, 254, 255, 256] {
        let mut key = key_of(key_len);
        let mut entry = Text::new_bytes(&key, 3, b"start");
        entry.set_clock(77);
        let mut model = Model::Bytes(b"start".to_vec());
        let mut deadline = None;
        for step in 0..steps {
            match draw(8) {
                0 | 1 => {
                    let value = key_of(lens[draw(lens.len())]);
                    entry.set_bytes(&value);
                    model = Model::Bytes(value);
                }
                2 => {
                    entry.set_int(step);
                    model = Model::Int(step);
                }
                3 => {
                    let text = format!("object {step}");
                    entry.set_object(full(&text));
                    model = Model::Object(full(&text));
                }
                4 => {
                    deadline = (draw(2) == 0).then_some(step as u64);
                    entry.set_deadline(deadline);
                }
                5 => {
                    let new_len = lens[draw(lens.len())];
                    entry.resize_bytes(new_len);
                    let mut value = match model {
                        Model::Bytes(value) => value,
                        _ => vec![],
                    };
                    value.resize(new_len, 0);
                    model = Model::Bytes(value);
                }
                6 => {
                    key = key_of([0, 3, 16, 254, 255, 400][draw(6)]);
                    entry = entry.with_key(&key);
                }
                _ => match &mut model {
                    Model::Bytes(value) => {
                        let bytes = entry.bytes_mut().expect("bytes");
                        bytes.fill(step as u8);
                        value.fill(step as u8);
                        assert!(entry.object_mut().is_none());
                    }
                    Model::Object(object) => {
                        entry.object_mut().expect("an object").1 ^= step as u64;
                        object.1 ^= step as u64;
                        assert!(entry.bytes_mut().is_none());
                    }
                    Model::Int(_) => assert!(entry.bytes_mut().is_none()),
                },
            }
            assert_holds(&entry, &key, &model, deadline);
        }
    }
}

#[test]
fn overwriting_within_the_size_class_keeps_the_allocation() {
    let mut entry = Text::new_bytes(&[b'k'; 16], 0, b"12345678");
    let before = entry.raw();
    entry.set_bytes(b"1");
    entry.set_int(4);
    entry.set_bytes(b"12345678");
    assert_eq!(entry.raw(), before);
    entry.set_bytes(b"123456789");
    assert_eq!(entry.allocated_bytes(), 48);
}

struct Counted(Rc<Cell<usize>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn every_object_is_dropped_exactly_once() {
    let drops = Rc::new(Cell::new(0));
    let object = || Counted(Rc::clone(&drops));
    let mut entry = Entry::new_object(b"k", 0, object());
    entry.set_object(object());
    assert_eq!(drops.get(), 1);
    entry.set_bytes(b"x");
    assert_eq!(drops.get(), 2);
    entry.set_object(object());
    entry.set_deadline(Some(1));
    entry = entry.with_key(b"another");
    entry.set_deadline(None);
    assert_eq!(drops.get(), 2);
    entry.set_int(0);
    entry.set_object(object());
    entry.resize_bytes(4);
    assert_eq!(drops.get(), 4);
    entry.set_object(object());
    drop(entry);
    assert_eq!(drops.get(), 5);
}

#[test]
fn an_object_stays_unchanged_when_a_rejected_value_panics() {
    let drops = Rc::new(Cell::new(0));
    let mut entry = Entry::new_object(b"k", 0, Counted(Rc::clone(&drops)));
    let too_long = INLINE_LEN_MAX + 1;
    for refused in
        [(|entry, len| entry.resize_bytes(len)) as fn(&mut Entry<Counted>, usize), |entry, len| {
            entry.set_bytes(&vec![0; len])
        }]
    {
        assert!(catch_unwind(AssertUnwindSafe(|| refused(&mut entry, too_long))).is_err());
        assert_eq!(drops.get(), 0);
        assert!(entry.object_mut().is_some());
    }
    drop(entry);
    assert_eq!(drops.get(), 1);
}

/// Panics on drop if armed.
struct Armed(bool);

impl Drop for Armed {
    fn drop(&mut self) {
        assert!(!self.0, "armed");
    }
}

#[test]
fn an_object_that_panics_when_it_is_dropped_leaves_the_new_value() {
    let changes: [fn(&mut EntryMut<'_, Armed>); 4] = [
        |entry| entry.set_bytes(&[b'v'; 100]),
        |entry| entry.set_int(5),
        |entry| entry.resize_bytes(3),
        |entry| entry.set_object(Armed(false)),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut table = Table::new();
        table.view_mut().insert(7, Entry::new_object(b"k", 0, Armed(true)));
        let changed = catch_unwind(AssertUnwindSafe(|| {
            change(&mut table.view_mut().find_mut(7, b"k").expect("it was put there"));
        }));
        assert!(changed.is_err());
        table.view().check();
        let entry = table.view().find(7, b"k").expect("it is still there");
        match entry.value() {
            ValueRef::Bytes(bytes) => assert_eq!(bytes.len(), [100, 0, 3][i]),
            ValueRef::Int(int) => assert_eq!((int, i), (5, 1)),
            ValueRef::Object(object) => assert_eq!((object.0, i), (false, 3)),
        }
    }
}

#[test]
#[should_panic(expected = "cannot stand inline")]
fn a_value_too_long_for_inline_storage_is_rejected() {
    let _ = Text::new_bytes(b"k", 0, &vec![0; INLINE_LEN_MAX + 1]);
}
