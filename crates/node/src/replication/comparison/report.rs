//! A replica's report to its primary on a comparison, sent as `REPLCONF brisk-compared <text>`. The replica sends it
//! only to primaries that have announced that they understand it.
//!
//! ```text
//! <round> <who> <followers> <offset> <compared> <skipped> <differing> <databases> <db>:<slot>@<offset>…
//! ```
//! `<compared>`, `<skipped>` and `<differing>` are numbers of slots. `<who>` is `-` if the report is on the sender
//! itself. Each server that passes the report on to its own primary prefixes the address by which it knows the sender.
//! The result is a path through replicas: `<nearer>/<farther>`.

use super::Difference;
use super::marker::{number, numbers, read_numbers};
use brisk_engine::keyspace::{DbNumber, SlotId};
use brisk_resp::request;
use std::fmt::Write;

/// The option of REPLCONF.
pub const OPTION: &str = "brisk-compared";
/// Maximum number of slots that are named, because the report is sent without waiting for room. Further slots are only
/// counted.
pub const NAMED_MAX: usize = 1024;
/// Maximum number of databases that are named.
const BEYOND_MAX: usize = 1024;
/// No server has this many slots. A report with a larger number is invalid.
const METRIC_MAX: u64 = 1 << 48;

/// The result of a pass on one replica.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ComparisonReport {
    pub round: u64,
    /// The replica; `None` for the sender.
    pub who: Option<String>,
    /// Number of the replica's own replicas that also report.
    pub followers: u64,
    /// The replica's offset in the stream at the end of the pass.
    pub offset: u64,
    pub compared: u64,
    /// Slots that were not compared because they have too many keys.
    pub skipped: u64,
    /// Number of slots that differ.
    pub differing: u64,
    /// Databases in which the replica has keys and that were not compared.
    pub beyond: Vec<DbNumber>,
    /// The first slots that differ.
    pub named: Vec<Difference>,
}

impl ComparisonReport {
    /// Notes a slot that differs.
    pub fn note(&mut self, difference: Difference) {
        self.differing += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(difference);
        }
    }

    /// Formats the report as a request.
    pub fn request(&self) -> Vec<u8> {
        let ComparisonReport {
            round, followers, offset, compared, skipped, differing, named, ..
        } = self;
        let who = self.who.as_deref().unwrap_or("-");
        let beyond = numbers(self.beyond.iter().take(BEYOND_MAX).map(|db| db.0));
        let mut text =
            format!("{round} {who} {followers} {offset} {compared} {skipped} {differing} {beyond}");
        for Difference { db, slot, offset } in named {
            // Writing into a String cannot fail.
            let _ = write!(text, " {}:{}@{offset}", db.0, slot.index());
        }
        let mut bytes = Vec::new();
        request::encode(&mut bytes, &["REPLCONF", OPTION, &text]);
        bytes
    }

    /// Parses a report. Returns `None` if the text is not a report.
    pub fn read(text: &[u8]) -> Option<ComparisonReport> {
        let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
        let round = number(&mut words)?;
        let who = Some(words.next()?).filter(|who| *who != "-").map(str::to_owned);
        let followers = number(&mut words)?;
        let offset = offset(words.next()?)?;
        let metrics = [number(&mut words)?, number(&mut words)?, number(&mut words)?];
        if metrics.iter().any(|metric| *metric > METRIC_MAX) {
            return None;
        }
        let [compared, skipped, differing] = metrics;
        let beyond = read_numbers(words.next()?)?.into_iter().take(BEYOND_MAX);
        let beyond = beyond.map(DbNumber).collect();
        let named: Option<Vec<_>> = words.map(difference).collect();
        let named = named.filter(|named| named.len() <= NAMED_MAX)?;
        Some(ComparisonReport {
            round,
            who,
            followers,
            offset,
            compared,
            skipped,
            differing,
            beyond,
            named,
        })
    }
}

/// Parses an offset, which must fit into a signed integer because clients are shown offsets as signed integers.
fn offset(word: &str) -> Option<u64> {
    word.parse::<i64>().ok().and_then(|offset| u64::try_from(offset).ok())
}

fn difference(word: &str) -> Option<Difference> {
    let (db, rest) = word.split_once(':')?;
    let (slot, offset) = rest.split_once('@')?;
    let slot = SlotId::checked(slot.parse::<u16>().ok()?)?;
    let (db, offset) = (DbNumber(db.parse().ok()?), self::offset(offset)?);
    Some(Difference { db, slot, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_reports_can_be_parsed() {
        let mut report = ComparisonReport {
            round: u64::MAX,
            followers: 2,
            offset: 12,
            compared: 16_384,
            skipped: 1,
            beyond: vec![DbNumber(4)],
            ..ComparisonReport::default()
        };
        for slot in 0..2000 {
            let slot = SlotId::new(slot);
            report.note(Difference { db: DbNumber(1), slot, offset: 7 });
        }
        assert_eq!((report.differing, report.named.len()), (2000, NAMED_MAX));
        for who in [None, Some("127.0.0.1:7000".to_owned())] {
            report.who = who;
            let request = String::from_utf8(report.request()).expect("it is text");
            let text = request.split("\r\n").nth(6).expect("the third argument");
            assert_eq!(ComparisonReport::read(text.as_bytes()), Some(report.clone()));
        }
        for wrong in [
            "",
            "1 - 0 2 3 4 5",
            "1 - 0 2 3 4 5 - 0:16384@1",
            "1 - 0 2 3 4 5 x",
            "1 - 0 9223372036854775808 3 4 5 -",
            "1 - 0 2 3 4 5 - 0:1@9223372036854775808",
            "\u{e9}",
        ] {
            assert_eq!(ComparisonReport::read(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
