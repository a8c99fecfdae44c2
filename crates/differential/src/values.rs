//! Values for arguments: small sets of values, so that calls operate on each other's data, and the limits of every
//! numeric range.

use super::payloads::PAYLOADS;
use brisk_engine::command::{ArgKind, Group};
use brisk_testkit::random::Random;

/// Values of one kind.
type Pool = &'static [&'static [u8]];

const ANY_KEYS: &[&[u8]] = &[
    b"a",
    b"b",
    b"{t}1",
    b"{t}2",
    b"{u}x",
    b"",
    b"{}",
    b"\x00\xff\r\n",
    b"key with blanks",
    b"user:1000",
];

const SMALL: &[&[u8]] =
    &[b"0", b"1", b"2", b"3", b"4", b"5", b"7", b"10", b"20", b"-1", b"-2", b"-3", b"100"];

const EDGES: &[&[u8]] = &[
    b"127",
    b"128",
    b"-128",
    b"255",
    b"256",
    b"32767",
    b"-32768",
    b"65535",
    b"65536",
    b"2147483647",
    b"2147483648",
    b"-2147483648",
    b"4294967295",
    b"4294967296",
    b"9223372036854775806",
    b"9223372036854775807",
    b"-9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551615",
    b"18446744073709551616",
    b"100000000000000000000000",
    b"1.5",
    b"1e3",
    b"abc",
    b"",
    b"01",
    b" 1",
    b"1 ",
    b"+1",
    b"-0",
    b"--1",
    b"0x10",
    b"77\x00",
    b"#1",
];

const DOUBLES: &[&[u8]] = &[
    b"0",
    b"1",
    b"2",
    b"3",
    b"1.5",
    b"-2.25",
    b"0.1",
    b"3.14159265358979",
    b"1e17",
    b"-1e-7",
    b"100",
    b"1e308",
    b"-1e308",
    b"1e-320",
    b"inf",
    b"-inf",
    b"+inf",
    b"Infinity",
    b"nan",
    b"-0",
    b"0x1p3",
    b"1e400",
    b"abc",
    b"",
    b" 1",
    b"1 ",
    b"1,5",
    b"9007199254740993",
    b"123456789012345678",
];

// SORT ALPHA compares texts up to the first NUL and leaves ties in the order of a hash table, so no text in this list
// is another one followed by a NUL.
const TEXTS: &[&[u8]] = &[
    b"a",
    b"b",
    b"c",
    b"d",
    b"e",
    b"f",
    b"g",
    b"h",
    b"i",
    b"j",
    b"1",
    b"2",
    b"3",
    b"10",
    b"-5",
    b"007",
    b"1.5",
    b"hello",
    b"hello world",
    b"",
    b"\x01\x00\xff",
    b"caf\xc3\xa9",
    b"\r\n",
    b"9223372036854775807",
];

const PATTERNS: &[&[u8]] = &[
    b"*",
    b"a*",
    b"*a*",
    b"?",
    b"[a-c]*",
    b"[^a]*",
    b"{t}*",
    b"\\*",
    b"[",
    b"**a",
    b"",
    b"str*",
    b"nosort",
    b"#",
    b"user:*",
    b"hash1->*",
    b"*->a",
];

const STREAM_IDS: &[&[u8]] = &[
    b"0",
    b"0-0",
    b"0-1",
    b"1-1",
    b"1-2",
    b"2-0",
    b"3",
    b"5-3",
    b"10-1",
    b"10-*",
    b"11-*",
    b"12-0",
    b"100-5",
    b"-",
    b"+",
    b"$",
    b">",
    b"(1-1",
    b"(",
    b"*",
    b"abc",
    b"1-",
    b"-1",
    b"1-1-1",
    b"18446744073709551615-18446744073709551615",
    b"18446744073709551616",
];

const SCORE_BOUNDS: &[&[u8]] = &[
    b"-inf", b"+inf", b"inf", b"0", b"1", b"(1", b"2", b"(2.5", b"3", b"100", b"(", b"nan", b"abc",
    b"-1", b"(inf",
];

const LEX_BOUNDS: &[&[u8]] =
    &[b"-", b"+", b"[a", b"(a", b"[c", b"(f", b"[", b"(", b"a", b"[\xff", b"[hello"];

const DEADLINES: &[&[u8]] = &[
    b"4102444800",
    b"4102444800000",
    b"4000000000",
    b"1",
    b"1000",
    b"0",
    b"-1",
    b"9223372036854775807",
    b"9223372036854775",
    b"-9223372036854775808",
    b"abc",
    b"1.5",
];

const LONGITUDES: &[&[u8]] = &[
    b"13.361389",
    b"15.087269",
    b"0",
    b"-122.4",
    b"180",
    b"-180",
    b"180.1",
    b"2.35",
    b"abc",
    b"1e3",
];
const LATITUDES: &[&[u8]] = &[
    b"38.115556",
    b"37.502669",
    b"0",
    b"37.7",
    b"85.05112878",
    b"-85.05112878",
    b"85.06",
    b"48.85",
    b"x",
];
const FIELD_TYPES: &[&[u8]] = &[
    b"u8", b"i8", b"u1", b"i5", b"u16", b"i16", b"u32", b"i64", b"u63", b"u64", b"i0", b"i65",
    b"x8", b"u",
];
const BIT_OFFSETS: &[&[u8]] = &[
    b"0",
    b"1",
    b"7",
    b"8",
    b"#0",
    b"#1",
    b"#3",
    b"100",
    b"1000",
    b"-1",
    b"4294967296",
    b"#",
    b"abc",
];
const BITS: &[&[u8]] = &[b"0", b"1", b"0", b"1", b"2", b"-1", b"abc"];
const DATABASES: &[&[u8]] = &[b"0", b"0", b"0", b"1", b"2", b"15", b"16", b"-1", b"abc"];
const CURSORS: &[&[u8]] = &[b"0", b"0", b"0", b"1", b"17", b"-1", b"abc", b"18446744073709551616"];
const RADII: &[&[u8]] = &[b"0", b"1", b"100", b"200", b"5000", b"0.5", b"-1", b"abc", b"1e9"];
const GROUPS: &[&[u8]] = &[b"g1", b"g2", b"nosuch"];
const CONSUMERS: &[&[u8]] = &[b"alice", b"bob", b"carol"];

/// Values for arguments with certain names, for which the argument's kind is not specific enough. No group means any
/// group. The first matching row applies.
const HINTS: &[(&str, Option<Group>, Pool)] = &[
    ("serialized-value", None, PAYLOADS),
    ("id", Some(Group::Stream), STREAM_IDS),
    ("ID", Some(Group::Stream), STREAM_IDS),
    ("start", Some(Group::Stream), STREAM_IDS),
    ("end", Some(Group::Stream), STREAM_IDS),
    ("last-id", Some(Group::Stream), STREAM_IDS),
    ("lastid", Some(Group::Stream), STREAM_IDS),
    ("max-deleted-entry-id", Some(Group::Stream), STREAM_IDS),
    ("threshold", Some(Group::Stream), STREAM_IDS),
    ("group", Some(Group::Stream), GROUPS),
    ("groupname", Some(Group::Stream), GROUPS),
    ("consumer", Some(Group::Stream), CONSUMERS),
    ("consumername", Some(Group::Stream), CONSUMERS),
    ("longitude", None, LONGITUDES),
    ("latitude", None, LATITUDES),
    ("radius", None, RADII),
    ("width", None, RADII),
    ("height", None, RADII),
    ("encoding", Some(Group::Bitmap), FIELD_TYPES),
    ("offset", Some(Group::Bitmap), BIT_OFFSETS),
    ("bit", Some(Group::Bitmap), BITS),
    ("value", Some(Group::Bitmap), BITS),
    ("index", Some(Group::Connection), DATABASES),
    ("index", Some(Group::Server), DATABASES),
    ("db", None, DATABASES),
    ("index1", None, DATABASES),
    ("index2", None, DATABASES),
    ("destination-db", None, DATABASES),
    ("cursor", None, CURSORS),
];

/// A key, usually one of the command's own type.
pub fn key(random: &mut Random, group: Group) -> Vec<u8> {
    if random.percent(22) {
        return random.pick(ANY_KEYS).to_vec();
    }
    let own = match group {
        Group::String => "str",
        Group::List => "list",
        Group::Set => "set",
        Group::SortedSet => "zset",
        Group::Hash => "hash",
        Group::HyperLogLog => "hll",
        Group::Geo => "geo",
        Group::Stream => "stream",
        Group::Bitmap => "bits",
        _ => *random.pick(&["str", "list", "set", "zset", "hash", "hll", "geo", "stream", "bits"]),
    };
    format!("{own}{}", random.below(3)).into_bytes()
}

/// A value for an argument called `name`.
pub fn value(random: &mut Random, kind: ArgKind, name: &str, group: Group) -> Vec<u8> {
    if random.percent(3) {
        return stray(random);
    }
    let hint = HINTS.iter().find(|row| row.0 == name && row.1.is_none_or(|g| g == group));
    if let Some(hint) = hint {
        return random.pick(hint.2).to_vec();
    }
    if matches!(group, Group::SortedSet) && matches!(name, "min" | "max" | "start" | "stop") {
        return bound(random);
    }
    match kind {
        ArgKind::Key => key(random, group),
        ArgKind::Integer => {
            if random.percent(80) {
                random.pick(SMALL).to_vec()
            } else {
                random.pick(EDGES).to_vec()
            }
        }
        ArgKind::Double => random.pick(DOUBLES).to_vec(),
        ArgKind::Pattern => random.pick(PATTERNS).to_vec(),
        ArgKind::UnixTime => random.pick(DEADLINES).to_vec(),
        _ => text(random),
    }
}

/// Reports whether `n`, in seconds or milliseconds, is one of the absolute expiry times that streams use. Relative
/// expiry times never have these values.
pub fn is_deadline(n: i64) -> bool {
    let numbers = DEADLINES
        .iter()
        .chain(EDGES)
        .filter_map(|word| std::str::from_utf8(word).ok()?.parse::<i64>().ok());
    let mut deadlines = numbers.flat_map(|given| {
        [Some(given), given.checked_mul(1000), given.checked_add(500).map(|ms| ms / 1000)]
    });
    deadlines.any(|deadline| deadline == Some(n))
}

/// One bound of a sorted-set range: by rank, by score, or by member.
fn bound(random: &mut Random) -> Vec<u8> {
    let sorts: [&[&[u8]]; 3] = [SMALL, SCORE_BOUNDS, LEX_BOUNDS];
    let sort = *random.pick(&sorts);
    random.pick(sort).to_vec()
}

/// A string; sometimes one that is too long for the compact encodings.
pub fn text(random: &mut Random) -> Vec<u8> {
    match random.below(100) {
        0..80 => random.pick(TEXTS).to_vec(),
        80..92 => format!("m{}", random.below(300)).into_bytes(),
        92..95 => vec![b'x'; 44 + random.below(2)], // around the limit of embedded strings
        95..98 => vec![b'y'; 64 + random.below(2)], // around the limit of listpack entries
        98 => [b'r']
            .into_iter()
            .chain((0..random.below(40)).map(|_| random.below(256) as u8))
            .collect(),
        _ => vec![b'z'; 1000 + random.below(9000)],
    }
}

/// An argument from any set, as a faulty client may send it.
pub fn stray(random: &mut Random) -> Vec<u8> {
    match random.below(6) {
        0 => random.pick(EDGES).to_vec(),
        1 => random.pick(DOUBLES).to_vec(),
        2 => key(random, Group::Generic),
        3 => random.pick(STREAM_IDS).to_vec(),
        4 => random
            .pick(&[
                &b"COUNT"[..],
                b"NX",
                b"xx",
                b"LIMIT",
                b"WITHSCORES",
                b"GET",
                b"BY",
                b"EX",
                b"STORE",
            ])
            .to_vec(),
        _ => text(random),
    }
}
