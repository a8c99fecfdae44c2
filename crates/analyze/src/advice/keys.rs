//! Advice about keys: shorter names, numbers instead of long IDs, and few hashes instead of many small keys.

use super::{Advice, Case, Means};
use crate::analysis::Findings;
use crate::model::brisk::{Brisk, Inline};
use crate::model::{Bytes, Models};
use crate::pattern::{Mark, Part, Pattern};
use crate::record::{EMBEDDED_MAX, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// If numeric keys use at least this fraction of the numbers in their range, each hash gets consecutive numbers.
/// Otherwise most of these hashes would be nearly empty, so keys are distributed by their CRC32.
const DENSE: f64 = 0.25;
/// The minimum number of keys for which a new layout is worthwhile.
const PACKED_KEYS_MIN: u64 = 100;

/// For each prefix of the patterns, the words that occur after it.
#[derive(Debug)]
pub struct Names(BTreeMap<Vec<Part>, BTreeSet<Vec<u8>>>);

impl Names {
    /// The words of all patterns.
    #[must_use]
    pub fn of(findings: &Findings) -> Names {
        let mut all: BTreeMap<Vec<Part>, BTreeSet<Vec<u8>>> = BTreeMap::new();
        for (Pattern(parts), _, _) in &findings.groups {
            for (at, part) in parts.iter().enumerate() {
                if let Part::Word(word) = part {
                    all.entry(parts[..at].to_vec()).or_default().insert(word.clone());
                }
            }
        }
        Names(all)
    }

    /// The shortest prefix of a word that is not also a prefix of another word at its position.
    fn shortened<'w>(&self, before: &[Part], word: &'w [u8]) -> &'w [u8] {
        let others = self.0.get(before);
        let is_taken = |short: &[u8]| {
            let words = others.into_iter().flatten();
            words.filter(|other| &other[..] != word).any(|other| other.starts_with(short))
        };
        let is_boundary =
            |len: usize| str::from_utf8(word).is_err() || str::from_utf8(&word[..len]).is_ok();
        let fits = |len: &usize| is_boundary(*len) && !is_taken(&word[..*len]);
        let len = (1..word.len()).find(fits).unwrap_or(word.len());
        &word[..len]
    }
}

/// Advice to shorten words in key names.
pub(super) fn shorter(case: &Case<'_>, names: &Names) -> Option<Advice> {
    let parts = &case.pattern.0;
    let mut saved = 0;
    let shorten = |(at, part): (usize, &Part)| match part {
        Part::Word(word) => {
            let short = names.shortened(&parts[..at], word);
            saved += word.len() - short.len();
            Part::Word(short.to_vec())
        }
        other => other.clone(),
    };
    let short = Pattern(parts.iter().enumerate().map(shorten).collect());
    // For a single key, a cryptic name is not worthwhile.
    if saved == 0 || !parts.iter().any(Part::varies) {
        return None;
    }
    let bytes = by_key_length(case, saved as f64);
    let how = format!("rename {} to {short}", case.pattern);
    Some(case.advice(Means::ShorterKeys, case.group.keys as f64, bytes, how))
}

/// The savings if all keys are `by` bytes shorter.
fn by_key_length(case: &Case<'_>, by: f64) -> Bytes {
    let Models { redis, .. } = &case.findings.models;
    let group = case.group;
    let detailed = group.keys as f64 / group.detailed.max(1) as f64;
    Bytes {
        redis: group.key_lengths.saved_by(by, |len| redis.key(len, false)),
        brisk: group.entry_lengths.saved_by(by, Brisk::class) * detailed,
    }
}

/// Advice to use numbers instead of long IDs such as UUIDs.
pub(super) fn integer(case: &Case<'_>) -> Option<Advice> {
    let group = case.group;
    let ids = case.pattern.0.iter().filter(|part| is_long_id(part)).count() as f64;
    if ids == 0.0 || group.keys == 0 {
        return None;
    }
    let digits = f64::from(group.keys.ilog10() + 1);
    let by = group.id_bytes as f64 / group.keys as f64 - ids * digits;
    if by < 1.0 {
        return None;
    }
    let number = |part: &Part| match part {
        part if is_long_id(part) => Part::Mark(Mark::Number),
        other => other.clone(),
    };
    let numbered = Pattern(case.pattern.0.iter().map(number).collect());
    let how =
        format!("assign a number to each id (INCR): {} instead of {}", numbered, case.pattern);
    let mut advice =
        case.advice(Means::IntegerKeys, group.keys as f64, by_key_length(case, by), how);
    advice.note = Some("a table that maps ids to numbers, if needed, is not counted".into());
    Some(advice)
}

fn is_long_id(part: &Part) -> bool {
    matches!(part, Part::Mark(mark) if mark.is_long_id())
}

/// Advice to store plain keys as fields of small hashes (requirement M4).
pub(super) fn packed(case: &Case<'_>) -> Option<Advice> {
    let (group, packing) = (case.group, &case.group.measures.packing);
    if case.key.kind != Kind::String
        || packing.keys == 0
        || !case.pattern.0.iter().any(Part::varies)
    {
        return None;
    }
    let scale = group.keys as f64 / group.detailed.max(1) as f64;
    let keys = packing.keys as f64 * scale;
    if keys < PACKED_KEYS_MIN as f64 {
        return None;
    }
    let size = case.findings.limits.hash_entries.max(1);
    let base = base_of(case.pattern);
    let range = packing.most.saturating_sub(packing.least) as f64 + 1.0;
    let is_dense = packing.is_numeric && keys / range >= DENSE;
    let shards = if is_dense {
        // Values are sampled, so the highest number may be missing.
        let by_numbers = (packing.most / size - packing.least / size + 1) as f64;
        by_numbers.max((keys / size as f64).ceil())
    } else {
        (2.0 * keys / size as f64).floor().max(1.0)
    };
    let then = shards_cost(case, shards, keys, packing.entries as f64 * scale, base.len());
    let mut saved = packing.now.times(scale).minus(then);
    saved.add(case.places_saved(keys - shards));
    if saved.redis.max(saved.brisk) <= 0.0 {
        return None;
    }
    let total = keys.round() as u64;
    let rule = match is_dense {
        true => format!("{base}:(number / {size})"),
        false if packing.is_numeric => {
            format!("shard_key(\"{base}\", \"X\" + number, {total}, {size})")
        }
        false => format!("shard_key(\"{base}\", key, {total}, {size})"),
    };
    let how = format!("HSET {rule} FIELD VALUE instead of SET: {shards:.0} hashes");
    let mut advice = case.advice(Means::ShardKey, keys, saved, how);
    advice.note = Some("fields do not have their own TTL".into());
    Some(advice)
}

/// The words of a pattern before the first and after the last part that varies.
fn base_of(pattern: &Pattern) -> String {
    let parts = &pattern.0;
    let first = parts.iter().position(Part::varies).unwrap_or(parts.len());
    let last = parts.iter().rposition(Part::varies).map_or(parts.len(), |at| at + 1);
    let side = |parts: &[Part]| match parts.is_empty() {
        true => String::new(),
        false => Pattern(parts.to_vec()).to_string(),
    };
    let punctuation = |c: char| c.is_ascii_punctuation();
    let (before, after) = (side(&parts[..first]), side(&parts[last..]));
    let before = before.trim_end_matches(punctuation);
    let after = after.trim_matches(punctuation);
    match (before, after) {
        ("", "") => "h".to_owned(),
        (one, "") | ("", one) => one.to_owned(),
        (before, after) => format!("{before}:{after}"),
    }
}

/// The memory of hashes over which this number of keys is distributed evenly.
fn shards_cost(case: &Case<'_>, shards: f64, keys: f64, entries: f64, base: usize) -> Bytes {
    let Models { redis, brisk } = &case.findings.models;
    let each = (entries / shards).round() as u64;
    let len = base as u64 + 1 + u64::from((shards.max(1.0) as u64).ilog10() + 1);
    let fits = keys / shards <= case.findings.limits.hash_entries as f64;
    debug_assert!(fits, "no more keys in a shard than it may have");
    Bytes {
        redis: shards * (redis.key(len, false) + redis.packed(each)) as f64,
        brisk: shards * brisk.key(len, false, Inline::Object, brisk.packed(each)) as f64,
    }
}

const _: () =
    assert!(EMBEDDED_MAX < 64, "what is embedded fits into a listpack of the default limits");

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(words: &[&str]) -> Pattern {
        let part = |word: &&str| match *word {
            "<n>" => Part::Mark(Mark::Number),
            ":" => Part::Separator(b':'),
            word => Part::Word(word.into()),
        };
        Pattern(words.iter().map(part).collect())
    }

    #[test]
    fn hashes_are_named_after_what_keys_have_in_common() {
        for (words, base) in [
            (&["user", ":", "<n>"][..], "user"),
            (&["user", ":", "<n>", ":", "name"], "user:name"),
            (&["<n>", ":", "name"], "name"),
            (&["<n>"], "h"),
            (&["a", ":", "<n>", ":", "b", ":", "<n>"], "a"),
        ] {
            assert_eq!(base_of(&pattern(words)), base);
        }
    }

    #[test]
    fn words_are_shortened_while_they_stay_different() {
        let words = ["user", "users", "unit", "größe"].map(|word| word.as_bytes().to_vec());
        let names = Names([(Vec::new(), words.into())].into());
        assert_eq!(names.shortened(&[], b"unit"), b"un");
        assert_eq!(names.shortened(&[], b"users"), b"users");
        // A word that is a prefix of another word cannot be shortened.
        assert_eq!(names.shortened(&[], b"user"), b"user");
        assert_eq!(names.shortened(&[], "größe".as_bytes()), b"g");
    }
}
