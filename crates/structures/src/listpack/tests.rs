//! Compares listpacks with a vector and with bytes from a real server, and tests external bytes.

use super::*;

/// Generates the same test input from a seed on every platform.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % bound
    }

    /// Returns a random element. All encodings occur, often with values at the limits between
    /// encodings.
    fn element(&mut self) -> Vec<u8> {
        let around = self.below(3) as i64 - 1;
        match self.below(8) {
            0 => (self.below(300) as i64 - 100).to_string().into_bytes(),
            1 => {
                let shift = [7, 12, 15, 23, 31, 62][self.below(6)];
                let sign = if self.below(2) == 0 { 1 } else { -1 };
                (sign * (1i64 << shift) + around).to_string().into_bytes()
            }
            2 => [i64::MIN, i64::MAX][self.below(2)].to_string().into_bytes(),
            3 => {
                let len = [63, 64, 126, 127, 128, 4095, 4096][self.below(7)];
                vec![b'a' + self.below(26) as u8; len]
            }
            4 => [&b""[..], b"007", b"-0", b"+1", b" 1", b"1.0"][self.below(6)].to_vec(),
            _ => (0..self.below(12)).map(|_| b'a' + self.below(26) as u8).collect(),
        }
    }
}

fn texts(list: &ListPack) -> Vec<Vec<u8>> {
    list.iter().map(Item::to_vec).collect()
}

fn of(elements: &[&[u8]]) -> ListPack {
    let mut list = ListPack::new();
    for &element in elements {
        list.push_back(element);
    }
    list
}

#[test]
fn random_changes_agree_with_a_vector() {
    let mut random = Random(7);
    let mut list = ListPack::new();
    let mut model: Vec<Vec<u8>> = vec![];
    for _ in 0..if cfg!(miri) { 150 } else { 6_000 } {
        let element = random.element();
        let index = random.below(model.len().max(1));
        let at = list.seek(index as i64);
        match (random.below(if model.len() > 60 { 9 } else { 7 }), at) {
            (0 | 1, _) => {
                list.push_back(&element[..]);
                model.push(element);
            }
            (2, _) => {
                list.push_front(&element[..]);
                model.insert(0, element);
            }
            (3, Some(at)) => {
                let new = list.insert_before(at, &element[..]);
                assert!(list.item(new).is(&element));
                model.insert(index, element);
            }
            (4, Some(at)) => {
                let new = list.insert_after(at, &element[..]);
                assert!(list.item(new).is(&element));
                model.insert(index + 1, element);
            }
            (5, Some(at)) => {
                list.replace(at, &element[..]);
                assert!(list.item(at).is(&element));
                model[index] = element;
            }
            (_, Some(at)) => {
                let count = 1 + random.below(3);
                let next = list.delete_range(at, count);
                model.drain(index..(index + count).min(model.len()));
                assert_eq!(next.is_some(), index < model.len());
                assert!(next.is_none_or(|at| list.item(at).is(&model[index])));
            }
            (_, None) => {}
        }
        list.check();
        assert_eq!(texts(&list), model);
        assert_eq!(list.len(), model.len());
    }
}

#[test]
fn elements_are_reached_from_both_ends() {
    let mut random = Random(11);
    let elements: Vec<Vec<u8>> = (0..50).map(|_| random.element()).collect();
    let list = of(&elements.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for (index, element) in elements.iter().enumerate() {
        let from_end = index as i64 - 50;
        assert!(list.get(index as i64).is_some_and(|item| item.is(element)));
        assert_eq!(list.seek(from_end), list.seek(index as i64));
    }
    assert!(list.get(50).is_none() && list.get(-51).is_none());
    assert!(list.get(i64::MIN).is_none() && list.get(i64::MAX).is_none());
    let backward: Vec<_> = list.iter().rev().map(Item::to_vec).collect();
    assert!(backward.iter().eq(elements.iter().rev()));
    let mut at = list.last();
    for element in elements.iter().rev() {
        assert!(at.is_some_and(|at| list.item(at).is(element)));
        at = at.and_then(|at| list.prev(at));
    }
    assert_eq!(at, None);
    let mut both = list.iter();
    while let (Some(_), Some(_)) = (both.next(), both.next_back()) {}
    assert_eq!(both.pos(), None);
}

#[test]
fn find_skips_the_other_half_of_pairs() {
    let list = of(&[b"a", b"b", b"b", b"5", b"5", b"x", b"05", b"a"]);
    let first = list.first().unwrap();
    assert_eq!(list.find(first, b"b", 0), list.seek(1));
    assert_eq!(list.find(first, b"b", 1), list.seek(2));
    assert_eq!(list.find(first, b"5", 1), list.seek(4));
    assert_eq!(list.find(first, b"05", 1), list.seek(6));
    assert_eq!(list.find(first, b"x", 1), None);
    assert_eq!(list.find(list.seek(1).unwrap(), b"a", 0), list.seek(7));
    assert_eq!(list.find(first, b"", 0), None);
}

#[test]
fn find_agrees_with_looking_at_each_element() {
    let mut random = Random(5);
    for _ in 0..if cfg!(miri) { 5 } else { 300 } {
        let mut elements: Vec<Vec<u8>> = (0..random.below(40)).map(|_| random.element()).collect();
        // Add elements that differ from others in only one byte, at either end or in the middle.
        for at in 0..elements.len() / 2 {
            let mut other = elements[at].clone();
            let place = random.below(other.len().max(1));
            if let Some(byte) = other.get_mut(place) {
                *byte ^= 1;
            }
            elements.push(other);
        }
        // Add series of elements of equal length.
        for number in 0..random.below(3) * 10 {
            elements.push(format!("row:{number:03}").into_bytes());
        }
        let list = of(&elements.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for _ in 0..40 {
            let wanted = match random.below(2) {
                0 if !elements.is_empty() => elements[random.below(elements.len())].clone(),
                _ => random.element(),
            };
            let (from, skip) = (random.below(elements.len().max(1)), random.below(3));
            let Some(start) = list.seek(from as i64) else { continue };
            let model = (from..elements.len()).step_by(skip + 1);
            let model = model.enumerate().find(|(_, at)| elements[*at] == wanted);
            let found = list.find_counted(start, &wanted, skip);
            let expected = model.map(|(passed, at)| (list.seek(at as i64).unwrap(), passed));
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn ranges_of_indices_agree_with_slices() {
    let mut random = Random(17);
    let elements: Vec<Vec<u8>> = (0..30).map(|_| random.element()).collect();
    let list = of(&elements.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for start in 0..33 {
        for end in 0..33 {
            let expected = elements.get(start..end.min(30)).unwrap_or_default();
            let forward: Vec<_> = list.iter_range(start..end).map(Item::to_vec).collect();
            assert_eq!(forward, expected);
            let backward: Vec<_> = list.iter_range(start..end).rev().map(Item::to_vec).collect();
            assert!(backward.iter().eq(expected.iter().rev()));
            let third = list.iter_range(start..end).nth(2).map(Item::to_vec);
            assert_eq!(third.as_ref(), expected.get(2));
        }
    }
}

#[test]
fn bytes_are_those_of_a_real_server() {
    let numbers = [0, 1, 127, 128, -1, -4096, -4097, 4095, 4096, 32767, 32768, -32768, -32769]
        .into_iter()
        .chain([8_388_607, 8_388_608, -8_388_608, -8_388_609, 2_147_483_647, 2_147_483_648])
        .chain([-2_147_483_648, -2_147_483_649, i64::MAX, i64::MIN]);
    let mut list = ListPack::new();
    numbers.for_each(|number| list.push_back(number));
    for text in [&b""[..], b"007", b"-0", b"9223372036854775808", b"hello"] {
        list.push_back(text);
    }
    // From the DUMP payload of a list with these elements, with RDB compression off.
    let expected = concat!(
        "a40000001c00000101017f01c08002dfff02d00002f1ffef03cfff02f1001003f1ff7f03f2008000",
        "04f1008003f2ff7fff04f2ffff7f04f30000800005f200008004f3ffff7fff05f3ffffff7f05f400",
        "0000800000000009f30000008005f4ffffff7fffffffff09f4ffffffffffffff7f09f40000000000",
        "0000800980018330303704822d30039339323233333732303336383534373735383038148568656c",
        "6c6f06ff",
    );
    let hex: String = list.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected);
}

#[test]
fn long_strings_have_the_lengths_of_a_real_server() {
    for (len, head, tail) in [
        (63, &b"\xbf"[..], &b"y\x40\xff"[..]),
        (64, b"\xe0\x40", b"y\x42\xff"),
        (125, b"\xe0\x7d", b"y\x7f\xff"),
        (126, b"\xe0\x7e", b"y\x01\x80\xff"),
        (4095, b"\xef\xff", b"y\x20\x81\xff"),
        (4096, b"\xf0\0\x10\0\0", b"y\x20\x85\xff"),
        (16_377, b"\xf0\xf9\x3f\0\0", b"y\x7f\xfe\xff"),
        (16_378, b"\xf0\xfa\x3f\0\0", b"y\x00\xff\xff\xff"),
        (16_379, b"\xf0\xfb\x3f\0\0", b"y\x01\x80\x80\xff"),
        (20_000, b"\xf0\x20\x4e\0\0", b"y\x01\x9c\xa5\xff"),
    ] {
        let list = of(&[&vec![b'y'; len]]);
        list.check();
        assert!(list.as_bytes()[HEADER_LEN..].starts_with(head), "{len}");
        assert!(list.as_bytes().ends_with(tail), "{len}");
    }
}

#[test]
fn strings_that_look_like_integers_are_found_in_external_bytes() {
    // "5" as a string, which we would write as an integer, and a 12-bit length for one byte.
    let bytes = b"\x0e\0\0\0\x02\0\x815\x02\xe0\x01x\x03\xff".to_vec();
    let list = ListPack::from_bytes(bytes).unwrap();
    list.check();
    let first = list.first().unwrap();
    assert_eq!(list.find(first, b"5", 0), Some(first));
    assert_eq!(list.find(first, b"x", 0), list.last());
    assert_eq!(list.item(first), Item::Int(5));
}

#[test]
fn malformed_bytes_are_rejected() {
    let good = of(&[b"1000", b"hello", &[b'x'; 200], b"-5"]).into_bytes();
    assert_eq!(validate(&good), Ok(()));
    for len in 0..good.len() {
        assert!(validate(&good[..len]).is_err(), "cut at {len}");
        let mut cut = good[..len].to_vec();
        if len >= 4 {
            cut[..4].copy_from_slice(&(len as u32).to_le_bytes());
        }
        assert!(validate(&cut).is_err(), "cut at {len} with a fitting length");
    }
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            if let Ok(list) = ListPack::from_bytes(bad) {
                list.check();
            }
        }
    }
    // 2^32 - 1 bytes of string in a listpack of 13.
    let huge = b"\x0d\0\0\0\x01\0\xf0\xff\xff\xff\xff\x01\xff";
    assert_eq!(validate(huge).unwrap_err().what, "a listpack entry is cut off");
    // An end byte before the end, a wrong count, and a back length that is not minimal.
    assert!(validate(b"\x09\0\0\0\x01\0\xff\x01\xff").is_err());
    assert!(validate(b"\x09\0\0\0\x02\0\x00\x01\xff").is_err());
    assert!(validate(b"\x0a\0\0\0\x01\0\x00\x00\x81\xff").is_err());
    assert!(validate(b"\x09\0\0\0\xff\xff\x00\x01\xff").is_ok(), "an unknown count is none");
}

#[test]
fn more_elements_than_the_count_can_say() {
    let many = if cfg!(miri) { return } else { 65_537 };
    let mut list = ListPack::new();
    (0..many).for_each(|_| list.push_back(1));
    assert_eq!(list.as_bytes()[4..6], [0xff, 0xff]);
    assert_eq!(list.len(), many);
    assert_eq!(list.seek(-1), list.last());
    assert_eq!(list.seek(many as i64 - 1), list.last());
    assert_eq!(list.seek(many as i64), None);
    list.delete_range(list.seek(2).unwrap(), usize::MAX);
    assert_eq!(list.len(), 2);
    list.check();
}

#[test]
fn memory_follows_the_content() {
    let mut list = ListPack::new();
    assert_eq!(list.allocated_bytes(), 16);
    (0..1000).for_each(|_| list.push_back(b"elements"));
    assert!(list.allocated_bytes() <= list.bytes() * 5 / 4);
    list.delete_range(list.seek(1).unwrap(), usize::MAX);
    assert!(list.allocated_bytes() <= 32, "{}", list.allocated_bytes());
    list.clear();
    list.check();
    assert!(list.is_empty() && list.first().is_none() && list.last().is_none());
}
