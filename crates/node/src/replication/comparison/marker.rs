//! The markers of a comparison in the stream: PINGs with a message. The message has no effect on
//! other servers, or on tools that follow a stream or read an append-only file.
//!
//! ```text
//! brisk-compare/1 slots <round> <secret> <now> <db> <first slot> <digest>…      consecutive slots from the first
//! brisk-compare/1 large <round> <db> <slot> <key>:<digest>…                     then their large values
//! brisk-compare/1 end <round> <db>,<db>…                                        these databases are complete
//! brisk-compare/1 keep <secret> <db> <slot> <key>…                              the slot has no other keys
//! ```
//! Numbers are decimal; digests and key hashes are hexadecimal. A digest is `-` for a slot without keys and `?` for a
//! slot with too many keys.

use brisk_engine::compare::DigestContext;
use brisk_engine::keyspace::{DbNumber, SLOTS, SlotId, UnixMs};
use brisk_resp::request;
use brisk_structures::hash::HashKey;
use std::fmt::{Display, Write};
use std::str::{FromStr, SplitAsciiWhitespace};

/// The beginning of each marker. Another version number indicates a syntax that this server does not know.
const HEAD: &str = "brisk-compare/1";
/// The capability that a replica that understands markers announces with `REPLCONF capa`. A primary that sends markers
/// includes the capability in its reply.
pub const CAPABILITY: &str = "brisk-compare/1";

/// The contents of a marker.
#[derive(Debug, PartialEq)]
pub enum Marker {
    Slots {
        round: u64,
        lens: DigestContext,
        db: DbNumber,
        first: SlotId,
        digests: Vec<Option<u64>>,
    },
    Large {
        round: u64,
        db: DbNumber,
        slot: SlotId,
        digests: Vec<(u64, u64)>,
    },
    End {
        round: u64,
        databases: Vec<DbNumber>,
    },
    Keep {
        lens: DigestContext,
        db: DbNumber,
        slot: SlotId,
        ids: Vec<u64>,
    },
}

impl Marker {
    /// Formats the marker as a request for the stream.
    pub fn request(&self) -> Vec<u8> {
        let mut text = HEAD.to_owned();
        // Writing into a String cannot fail.
        let _ = self.write(&mut text);
        let mut bytes = Vec::new();
        request::encode(&mut bytes, &["PING", &text]);
        bytes
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        match self {
            Marker::Slots { round, lens, db, first, digests } => {
                let (secret, now) = (hex(lens.secret), lens.now.0);
                write!(text, " slots {round} {secret} {now} {} {}", db.0, first.index())?;
                digests.iter().try_for_each(|digest| match digest {
                    None => write!(text, " ?"),
                    Some(0) => write!(text, " -"),
                    Some(digest) => write!(text, " {digest:x}"),
                })
            }
            Marker::Large { round, db, slot, digests } => {
                write!(text, " large {round} {} {}", db.0, slot.index())?;
                digests.iter().try_for_each(|(id, digest)| write!(text, " {id:x}:{digest:x}"))
            }
            Marker::End { round, databases } => {
                write!(text, " end {round} {}", numbers(databases.iter().map(|db| db.0)))
            }
            Marker::Keep { lens, db, slot, ids } => {
                write!(text, " keep {} {} {}", hex(lens.secret), db.0, slot.index())?;
                ids.iter().try_for_each(|id| write!(text, " {id:x}"))
            }
        }
    }

    /// Parses the message of a PING, if it is a marker. O(message length).
    pub fn read(message: &[u8]) -> Option<Marker> {
        let text = message.strip_prefix(HEAD.as_bytes())?.strip_prefix(b" ")?;
        let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
        Some(match words.next()? {
            "slots" => {
                let round = number(&mut words)?;
                let secret = secret(words.next()?)?;
                let lens = DigestContext { secret, now: UnixMs(number(&mut words)?) };
                let (db, first) = (DbNumber(number(&mut words)?), slot(&mut words)?);
                let digests: Option<Vec<_>> = words.map(digest).collect();
                let digests = digests.filter(|all| first.index() + all.len() <= SLOTS)?;
                Marker::Slots { round, lens, db, first, digests }
            }
            "large" => {
                let round = number(&mut words)?;
                let (db, slot) = (DbNumber(number(&mut words)?), slot(&mut words)?);
                let pair = |word: &str| {
                    let (id, digest) = word.split_once(':')?;
                    Some((from_hex(id)?, from_hex(digest)?))
                };
                Marker::Large { round, db, slot, digests: words.map(pair).collect::<Option<_>>()? }
            }
            "end" => {
                let round = number(&mut words)?;
                let databases = read_numbers(words.next()?)?.into_iter().map(DbNumber).collect();
                Marker::End { round, databases }
            }
            "keep" => {
                let lens = DigestContext { secret: secret(words.next()?)?, now: UnixMs(0) };
                let (db, slot) = (DbNumber(number(&mut words)?), slot(&mut words)?);
                Marker::Keep { lens, db, slot, ids: words.map(from_hex).collect::<Option<_>>()? }
            }
            _ => return None,
        })
    }
}

fn hex(secret: HashKey) -> String {
    format!("{:016x}{:016x}", secret.k0, secret.k1)
}

fn secret(word: &str) -> Option<HashKey> {
    let (k0, k1) = word.split_at_checked(16)?;
    Some(HashKey { k0: from_hex(k0)?, k1: from_hex(k1)? })
}

fn from_hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

fn digest(word: &str) -> Option<Option<u64>> {
    match word {
        "?" => Some(None),
        "-" => Some(Some(0)),
        digits => from_hex(digits).map(Some),
    }
}

pub(super) fn number<N: FromStr>(words: &mut SplitAsciiWhitespace<'_>) -> Option<N> {
    words.next()?.parse().ok()
}

fn slot(words: &mut SplitAsciiWhitespace<'_>) -> Option<SlotId> {
    let number = number::<u16>(words)?;
    SlotId::checked(number)
}

/// Formats numbers separated by commas, or `-` if there are none.
pub(super) fn numbers<N: Display>(all: impl Iterator<Item = N>) -> String {
    let words: Vec<String> = all.map(|number| number.to_string()).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(",") }
}

pub(super) fn read_numbers<N: FromStr>(word: &str) -> Option<Vec<N>> {
    if word == "-" {
        return Some(Vec::new());
    }
    word.split(',').map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(request: &[u8]) -> Vec<u8> {
        let text = String::from_utf8(request.to_vec()).expect("it is text");
        text.split("\r\n").nth(4).expect("the second argument").as_bytes().to_vec()
    }

    #[test]
    fn written_markers_can_be_parsed() {
        let lens = DigestContext { secret: HashKey { k0: 1, k1: u64::MAX }, now: UnixMs(77) };
        let (db, slot) = (DbNumber(3), SlotId::new(16_380));
        let digests = vec![Some(0), None, Some(u64::MAX), Some(5)];
        let ids = vec![0, 9];
        let markers = [
            Marker::Slots { round: 8, lens, db, first: slot, digests },
            Marker::Large { round: 8, db, slot, digests: vec![(1, 2), (0, u64::MAX)] },
            Marker::End { round: u64::MAX, databases: vec![DbNumber(0), db] },
            Marker::End { round: 0, databases: Vec::new() },
            Marker::Keep { lens: DigestContext { now: UnixMs(0), ..lens }, db, slot, ids },
        ];
        for marker in markers {
            assert_eq!(Marker::read(&message(&marker.request())), Some(marker));
        }
    }

    #[test]
    fn other_texts_are_not_parsed_as_markers() {
        for other in [
            "",
            "hello",
            "brisk-compare/1",
            "brisk-compare/1 ",
            "brisk-compare/2 end 1 -",
            "brisk-compare/1 other 1",
            "brisk-compare/1 slots 1 00 1 0 0 -",
            "brisk-compare/1 slots 1 00000000000000000000000000000000 1 0 16383 - -",
            "brisk-compare/1 slots 1 00000000000000000000000000000000 1 0 16384",
            "brisk-compare/1 keep 00000000000000000000000000000000 0 1 x",
            "brisk-compare/1 large 1 0 1 12",
            "brisk-compare/1 end 1 1,,2",
        ] {
            assert_eq!(Marker::read(other.as_bytes()), None, "{other}");
        }
        assert_eq!(Marker::read(b"brisk-compare/1 end \xff"), None);
    }
}
