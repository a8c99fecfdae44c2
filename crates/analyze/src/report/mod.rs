//! Reports of the findings, for readers and programs.
//!
//! | part | contents |
//! |---|---|
//! | this file | number formats of all reports |
//! | [`table`] | text for a terminal |
//! | [`json`] | everything, for programs |
//! | [`html`] | a self-contained page with plots |

pub mod html;
pub mod json;
pub mod table;

use crate::advice::{Advice, advise};
use crate::analysis::{Findings, OTHER_DATABASES};
use crate::group::{Group, GroupKey};
use crate::model::Bytes;
use crate::pattern::Pattern;

/// The findings, in the order of the report.
#[derive(Debug)]
pub struct Report {
    pub findings: Findings,
    pub total: Bytes,
    pub tables: Bytes,
    pub advice: Vec<Advice>,
}

/// A group of a report.
pub type Line = (Pattern, GroupKey, Group);

impl Report {
    #[must_use]
    pub fn new(mut findings: Findings) -> Report {
        let by_size = |a: &Line, b: &Line| {
            let bytes = b.2.known_bytes().total_cmp(&a.2.known_bytes());
            bytes.then_with(|| a.0.cmp(&b.0)).then_with(|| a.1.cmp(&b.1))
        };
        findings.groups.sort_by(by_size);
        let advice = advise(&findings);
        Report { total: findings.total(), tables: findings.tables(), advice, findings }
    }
}

/// A size with a unit, for people.
#[must_use]
pub fn size(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    while value.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{:.0} B", signless(value.round()))
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A number with thousands separators.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A duration in the largest suitable unit.
#[must_use]
pub fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A fraction in percent, rounded to a tenth.
#[must_use]
pub fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { signless((1000.0 * part / whole).round() / 10.0) } else { 0.0 }
}

/// A percentage of the memory as text, or "-" if the memory was not measured.
#[must_use]
pub fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", percent(part, whole)) } else { "-".to_owned() }
}

/// Replaces negative zero, which rounding may produce, with zero.
fn signless(rounded: f64) -> f64 {
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// A count of databases as text.
#[must_use]
pub fn databases(number: usize) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} database{plural}")
}

/// The number of a database as text.
#[must_use]
pub fn database(db: u64) -> String {
    if db == OTHER_DATABASES { "others".to_owned() } else { db.to_string() }
}

/// The median span of keys with known spans, as its upper bound.
#[must_use]
pub fn median(spans: &crate::group::Spans) -> Option<&'static str> {
    let total = spans.total();
    let mut seen = 0;
    for (at, keys) in spans.keys.iter().enumerate() {
        seen += keys;
        if total > 0 && seen * 2 >= total {
            return Some(crate::group::SPANS.get(at).map_or("more", |(_, name)| name));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(size(0.0), "0 B");
        assert_eq!(size(1023.0), "1023 B");
        assert_eq!(size(-0.3), "0 B");
        assert_eq!(format!("{:.1}", percent(-0.3, 1000.0)), "0.0");
        assert_eq!(format!("{:.1}", percent(1.0, 3.0)), "33.3");
        assert_eq!(size(1536.0), "1.5 KiB");
        assert_eq!(size(-2.0 * 1024.0 * 1024.0), "-2.0 MiB");
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(span(7200), "2 h");
        assert_eq!(database(u64::MAX), "others");
    }
}
