//! Handwritten payloads and files: layouts that no fixture has, and invalid values.

use crate::{digest, fixture_files};
use brisk_persist::LoadError;
use brisk_persist::rdb::value::{HashValue, ListNode, SortedSetValue, StringValue};
use brisk_persist::rdb::{Checksum, Encoder, RdbEvent, RdbReader, RdbWriter, Value, dump};
use brisk_structures::alloc::peak_bytes;
use brisk_structures::listpack::{Item, ListPack};
use std::fs::File;

fn pack(words: &str) -> Vec<u8> {
    let mut pack = ListPack::new();
    for word in words.split_whitespace() {
        pack.push_back(Item::of(word.as_bytes()));
    }
    pack.into_bytes()
}

/// Returns a payload's body: its type, followed by the output of `write`.
fn body(kind: u8, write: impl FnOnce(&mut Encoder<Vec<u8>>)) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    encoder.kind(kind);
    write(&mut encoder);
    encoder.into_sink()
}

fn packed(kind: u8, words: &str) -> Vec<u8> {
    body(kind, |encoder| encoder.string(&pack(words)))
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

#[track_caller]
fn rejected(body: &[u8], version: u32) -> String {
    match dump::read_body(body, version) {
        Ok(value) => panic!("read as {value:?}"),
        Err(error) => error.to_string(),
    }
}

type Field = (Vec<u8>, Vec<u8>, Option<u64>);

#[test]
fn field_expiry_times_are_read_in_every_layout() {
    let expected: Vec<Field> =
        vec![(b"a".to_vec(), b"1".to_vec(), Some(1005)), (b"b".to_vec(), b"2".to_vec(), None)];
    let texts = [(1005u64, "a", "1"), (0, "b", "2")];
    let metadata_pre_ga = body(22, |encoder| {
        encoder.length(2);
        for (expire_time, field, text) in texts {
            encoder.length(expire_time);
            encoder.string(field.as_bytes());
            encoder.string(text.as_bytes());
        }
    });
    let metadata = body(24, |encoder| {
        encoder.milliseconds(1000);
        encoder.length(2);
        for (expire_time, field, text) in texts {
            encoder.length(if expire_time == 0 { 0 } else { expire_time - 1000 + 1 });
            encoder.string(field.as_bytes());
            encoder.string(text.as_bytes());
        }
    });
    let valkey = body(22, |encoder| {
        encoder.length(2);
        for (expire_time, field, text) in texts {
            encoder.string(field.as_bytes());
            encoder.string(text.as_bytes());
            encoder.milliseconds(if expire_time == 0 { -1 } else { expire_time as i64 });
        }
    });
    let listpack_pre_ga = packed(23, "a 1 1005 b 2 0");
    let listpack = body(25, |encoder| {
        encoder.milliseconds(1005);
        encoder.string(&pack("a 1 1005 b 2 0"));
    });
    for (body, version) in
        [(metadata_pre_ga, 12), (metadata, 12), (valkey, 80), (listpack_pre_ga, 12), (listpack, 12)]
    {
        let value = dump::read_body(&body, version).unwrap();
        assert_eq!(digest::fields(&value), expected, "type {}", body[0]);
        let payload = dump::write(&value);
        assert_eq!(dump::open(&payload).unwrap().1, 12, "the version that knows such hashes");
        assert_eq!(digest::fields(&dump::read(&payload).unwrap()), expected);
    }
}

#[test]
fn packed_expiry_times_out_of_order_are_returned_one_by_one() {
    let value = dump::read_body(&packed(23, "b 2 0 a 1 1005"), 12).unwrap();
    assert!(matches!(&value, Value::Hash(HashValue::FieldsExpiry(..))));
    let fields = digest::fields(&value);
    assert_eq!((fields[0].2, fields[1].2), (None, Some(1005)));
    for bad in ["a 1", "a 1 x", "a 1 -5", "a 1 5 a 2 6"] {
        rejected(&packed(23, bad), 12);
    }
}

#[test]
fn hashes_without_expiry_times_are_written_for_all_servers() {
    let value = dump::read_body(&packed(23, "a 1 0 b 2 0"), 12).unwrap();
    let payload = dump::write(&value);
    assert_eq!((payload[0], dump::open(&payload).unwrap().1), (4, 10));
}

#[test]
fn invalid_values_are_rejected() {
    let twice = |kind: u8, count: u64, texts: &[&str]| {
        body(kind, |encoder| {
            encoder.length(count);
            texts.iter().for_each(|text| encoder.string(text.as_bytes()));
        })
    };
    let nan = body(5, |encoder| {
        encoder.length(1);
        encoder.string(b"m");
        encoder.double(f64::NAN);
    });
    for (body, text) in [
        (twice(2, 3, &["a", "b", "a"]), "a set has a member twice"),
        (twice(4, 2, &["a", "b", "a", "c"]), "a hash has a field twice"),
        (packed(20, "a 5 a"), "a set has a member twice"),
        (packed(16, "a b a c"), "a hash has a field twice"),
        (packed(16, "a b c"), "an incomplete group of elements"),
        (packed(17, "a 1 a 2"), "a sorted set has a member twice"),
        (packed(17, "a 2 b 1"), "a sorted set is not in order"),
        (packed(17, "b 1 a 1"), "a sorted set is not in order"),
        (packed(17, "10 1 1 1"), "a sorted set is not in order"),
        (packed(17, "a x"), "a score is not a number"),
        (packed(17, "a nan"), "a score is not a number"),
        (packed(17, "a"), "an incomplete group of elements"),
        (nan, "a score is not a number"),
        (hex("03 01 01 6d fd"), "a score is not a number"),
        (hex("0b 0c 0200000002000000 0200 0100"), "before byte"),
        (hex("12 01 03 01 61"), "neither plain nor packed"),
        (
            hex("12 01 01 00"),
            "Quicklist listpack integrity check failed: a plain list node is empty",
        ),
        (hex("09 02 00ff"), "Zipmap integrity check failed: a zipmap has no fields"),
        (hex("00 03 6162"), "the data ends at byte 4"),
        (hex("00 01 61 62"), "1 bytes follow the value's end at byte 3"),
        (hex("08 00"), "unknown value type or opcode 8 at byte 0"),
        (hex("1a 00"), "unknown value type or opcode 26 at byte 0"),
        (hex("06 00"), "pre-release"),
        (hex("02 00"), "the value has no elements"),
        (hex(""), "the data ends at byte 0"),
    ] {
        let error = rejected(&body, 12);
        assert!(error.contains(text), "{body:02x?}: {error}");
    }
}

#[test]
fn inconsistent_stream_groups_are_rejected() {
    // An empty stream that once had one entry, then groups.
    let head = "13 00 00 05 00 00 00 05 00 01";
    let entry = "00000000000000010000000000000001";
    let pending = format!("{entry} 0000000000000000 01");
    let read = |groups: &str| dump::read_body(&hex(&format!("{head} {groups}")), 10);
    let good = format!("01 01 67 00 00 00 01 {pending} 01 01 63 0000000000000000 01 {entry}");
    assert!(matches!(read(&good), Ok(Value::Stream(stream)) if stream.groups_len() == 1));
    for (groups, text) in [
        (format!("01 01 67 00 00 00 01 {pending} 00"), "belongs to no consumer"),
        (
            format!(
                "01 01 67 00 00 00 02 {pending} {pending} 01 01 63 0000000000000000 01 {entry}"
            ),
            "pending twice",
        ),
        (
            format!(
                "01 01 67 00 00 00 01 {pending} 02 01 63 0000000000000000 01 {entry} \
                     01 64 0000000000000000 01 {entry}"
            ),
            "two owners",
        ),
        (
            format!("01 01 67 00 00 00 00 01 01 63 0000000000000000 01 {entry}"),
            "its group does not have",
        ),
        (
            "01 01 67 00 00 00 00 02 01 63 0000000000000000 00 01 63 0000000000000000 00".into(),
            "Duplicate stream consumer detected",
        ),
        ("02 01 67 00 00 00 00 00 01 67 00 00 00 00 00".into(), "two groups with the same name"),
    ] {
        let error = read(&groups).expect_err(text).to_string();
        assert!(error.contains(text), "{groups}: {error}");
    }
    let longer = rejected(&hex("13 00 01 05 00 00 00 05 00 01 00"), 10);
    assert!(longer.contains("length does not match its entries"), "{longer}");
}

#[test]
fn dense_values_take_memory_in_proportion() {
    let two = |n: u32| [(n >> 8) as u8, n as u8];
    let members = |kind: u8, after: &dyn Fn(&mut Encoder<Vec<u8>>)| {
        body(kind, |encoder| {
            encoder.length(65_536);
            for n in 0..65_536 {
                encoder.string(&two(n));
                after(encoder);
            }
        })
    };
    let expire_times = body(24, |encoder| {
        encoder.milliseconds(1);
        encoder.length(65_536);
        for n in 0..65_536 {
            encoder.length(1);
            encoder.string(&two(n));
            encoder.string(b"");
        }
    });
    let empty_list = [&hex("01 80 00100000")[..], &vec![0; 1 << 20]].concat();
    let plain_nodes = [&hex("12 80 00080000")[..], &[1, 1, b'x'].repeat(1 << 19)].concat();
    let node = [&[2, 9][..], &pack("7")].concat();
    let packed_nodes = [&hex("12 80 00010000")[..], &node.repeat(1 << 16)].concat();
    let groups = body(19, |encoder| {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 65_536].iter().for_each(|number| encoder.length(*number));
        for n in 0..65_536 {
            encoder.string(&two(n));
            [0, 0, 0, 0, 0].iter().for_each(|number| encoder.length(*number));
        }
    });
    let consumers = body(19, |encoder| {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 1].iter().for_each(|number| encoder.length(*number));
        encoder.string(b"g");
        [0, 0, 0, 0, 65_536].iter().for_each(|number| encoder.length(*number));
        for n in 0..65_536 {
            encoder.string(&two(n));
            encoder.milliseconds(0);
            encoder.length(0);
        }
    });
    for body in [
        members(2, &|_| {}),
        members(4, &|encoder| encoder.length(0)),
        members(3, &|encoder| encoder.kind(255)),
        members(5, &|encoder| encoder.double(1.5)),
        expire_times,
        empty_list,
        plain_nodes,
        packed_nodes,
        groups,
        consumers,
    ] {
        let (value, peak) = peak_bytes(|| dump::read_body(&body, 12));
        let times = peak as f64 / body.len() as f64;
        assert!(times <= 10.0, "type {}: {times:.1} times the payload", body[0]);
        assert!(value.is_ok(), "{:?}", value.err());
    }
}

#[test]
fn footers_are_checked() {
    let payload = hex("00 03 666f6f 0a00");
    let mut good = payload[..5].to_vec();
    dump::finish(&mut good, 10);
    let string = |bytes: &[u8]| Value::String(StringValue::Bytes(bytes.to_vec()));
    assert_eq!(dump::write(&string(b"foo")), good);
    assert_eq!(dump::open(&good).unwrap(), (&payload[..5], 10));
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 4;
        assert!(matches!(dump::read(&bad), Err(LoadError::Footer)), "byte {at}");
        assert!(matches!(dump::read(&good[..at]), Err(LoadError::Footer)), "{at} bytes");
    }
    for (version, readable) in [(0, false), (1, true), (12, true), (13, false), (80, true)] {
        let mut other = payload[..5].to_vec();
        dump::finish(&mut other, version);
        assert_eq!(dump::read(&other).is_ok(), readable, "version {version}");
    }
}

#[test]
fn headers_are_checked() {
    let open = |header: &str| RdbReader::new(header.as_bytes()).map(|reader| reader.version());
    assert_eq!(open("REDIS0012").unwrap(), 12);
    assert_eq!(open("VALKEY080").unwrap(), 80);
    for bad in ["REDIS0013", "REDIS0000", "VALKEY081", "REDIS001", "RADIS0010", "REDIS00x0", ""] {
        assert!(open(bad).is_err(), "{bad}");
    }
}

#[test]
fn every_opcode_is_read() {
    let file = [
        b"VALKEY080".as_slice(),
        b"\xf3\x03job\x02\x01\x05\x07\x09",
        b"\xfe\x02\xf4\x42\x00\x03\x01\xfb\x03\x01",
        b"\xfd\xff\xff\xff\x7f\xf8\x07\x00\x01a\x01b",
        b"\xf9\x05\x02\x01e\x00",
        b"\xff\x00\x00\x00\x00\x00\x00\x00\x00rest",
    ]
    .concat();
    let mut reader = RdbReader::new(file.as_slice()).unwrap();
    let mut next = || reader.next_event().unwrap();
    assert!(matches!(next(), Some(RdbEvent::SelectDb(2))));
    assert!(matches!(next(), Some(RdbEvent::SlotInfo { slot: 512, keys: 3, expires: 1 })));
    assert!(matches!(next(), Some(RdbEvent::ResizeDb { keys: 3, expires: 1 })));
    let Some(RdbEvent::Entry(entry)) = next() else { panic!("expected an entry") };
    assert_eq!(
        (entry.metadata.expire_at_ms, entry.metadata.idle_seconds),
        (Some(2_147_483_647_000), Some(7))
    );
    assert!(matches!(next(), Some(RdbEvent::EmptyValue { key }) if key == b"e"));
    assert!(matches!(next(), Some(RdbEvent::End(Checksum::None))));
    assert!(next().is_none());
    assert_eq!(reader.into_rest().0, b"rest");
}

#[test]
fn files_with_a_wrong_checksum_are_rejected_unless_it_is_ignored() {
    let mut writer = RdbWriter::new(Vec::new(), 10);
    writer.aux("redis-ver", b"7.0.15");
    let mut file = writer.finish().unwrap();
    *file.last_mut().unwrap() ^= 1;
    let end = |reader: RdbReader<&[u8]>| {
        let mut reader = reader;
        reader.next_event().unwrap();
        reader.next_event()
    };
    let error = end(RdbReader::new(file.as_slice()).unwrap());
    assert!(matches!(error, Err(LoadError::Checksum { .. })));
    let ignored = end(RdbReader::new(file.as_slice()).unwrap().ignore_checksum());
    assert!(matches!(ignored, Ok(Some(RdbEvent::End(Checksum::Ignored)))));
}

#[test]
fn modules_are_named_and_skipped_on_request() {
    for (name, module) in
        [("redis_40_with_module", "ReJSON-RL"), ("redis_60_with_module_aux", "test__rdb")]
    {
        let path = fixture_files().into_iter().find(|path| path.to_string_lossy().contains(name));
        let open = || RdbReader::new(File::open(path.as_ref().unwrap()).unwrap()).unwrap();
        let mut strict = open();
        let error = loop {
            if let Err(error) = strict.next_event() {
                break error.to_string();
            }
        };
        assert!(error.contains(module), "{error}");
        let mut lenient = open().skip_modules();
        let mut found = String::new();
        while let Some(event) = lenient.next_event().unwrap() {
            if let RdbEvent::ModuleValue { module, .. } | RdbEvent::ModuleAux { module } = event {
                found = module;
            }
        }
        assert_eq!(found, module);
    }
}

#[test]
fn compact_encodings_are_returned_unchanged() {
    let value = dump::read_body(&packed(17, "a 1 b 1 c 2.5"), 10).unwrap();
    let Value::SortedSet(SortedSetValue::Packed(found)) = value else { panic!("{value:?}") };
    assert_eq!(found.as_bytes(), pack("a 1 b 1 c 2.5"));
    let list = body(18, |encoder| {
        encoder.length(3);
        encoder.packed_node(&pack("a 5"));
        encoder.plain_node(&[b'x'; 100]);
        encoder.plain_node(b"short");
    });
    let Value::List(nodes) = dump::read_body(&list, 10).unwrap() else { panic!("no list") };
    assert!(matches!(
        nodes.as_slice(),
        [ListNode::Packed(_), ListNode::Plain(_), ListNode::Elements(_)]
    ));
}
