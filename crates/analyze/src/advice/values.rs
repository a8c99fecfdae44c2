//! Advice about values: limits of encodings, integers as members, compression, TTLs.

use super::{Advice, Case, Means};
use crate::group::SPANS;
use crate::measure::{COMPRESSED_MIN, Change, ENTRIES_STEPS, TEXT_STEPS};
use crate::model::Bytes;
use crate::record::Kind;

/// Limits are raised only as far as needed to reach this fraction of the savings of the highest limits.
const LIMIT_PART: f64 = 0.9;
/// A key without a TTL is considered forgotten if it has been idle for longer than this span.
const FORGOTTEN_SPAN: usize = 4;
/// If this fraction of a pattern's keys has a TTL, the other keys seem to lack one by mistake.
const MOSTLY: f64 = 0.5;

/// Advice to raise the limits up to which collections are packed.
pub(super) fn limit(case: &Case<'_>) -> Option<Advice> {
    let cells = &case.group.measures.limits;
    let up_to = |entries: usize, text: usize| {
        let mut sum = Change::default();
        for row in &cells[..=entries] {
            for change in &row[..=text] {
                sum.keys += change.keys;
                sum.saved.add(change.saved);
            }
        }
        sum
    };
    let all = up_to(ENTRIES_STEPS.len() - 1, TEXT_STEPS.len() - 1);
    if all.keys == 0 || all.saved.redis.max(all.saved.brisk) <= 0.0 {
        return None;
    }
    let mut steps: Vec<(usize, usize)> = (0..ENTRIES_STEPS.len())
        .flat_map(|entries| (0..TEXT_STEPS.len()).map(move |text| (entries, text)))
        .collect();
    steps.sort_by_key(|(entries, text)| ENTRIES_STEPS[*entries] * TEXT_STEPS[*text]);
    let is_enough = |(entries, text): &(usize, usize)| {
        up_to(*entries, *text).saved.redis >= LIMIT_PART * all.saved.redis
    };
    let (entries, text) = steps.into_iter().find(is_enough)?;
    let change = up_to(entries, text);
    let (entries, text) = (ENTRIES_STEPS[entries], TEXT_STEPS[text]);
    let limits = &case.findings.limits;
    let raised = |name: &str, value: u64, now: u64| {
        (value > now).then(|| format!("CONFIG SET {name} {value}"))
    };
    let settings = match case.key.kind {
        Kind::Set => [raised("set-max-intset-entries", entries, limits.intset_entries), None],
        Kind::SortedSet => [
            raised("zset-max-listpack-entries", entries, limits.sorted_set_entries),
            raised("zset-max-listpack-value", text, limits.sorted_set_text),
        ],
        _ => [
            raised("hash-max-listpack-entries", entries, limits.hash_entries),
            raised("hash-max-listpack-value", text, limits.hash_text),
        ],
    };
    let settings: Vec<String> = settings.into_iter().flatten().collect();
    let how = if settings.is_empty() {
        "rewrite the keys (DUMP and RESTORE): they fit the current limits".to_owned()
    } else {
        format!("{}, then rewrite the keys (restart, or DUMP and RESTORE)", settings.join(", "))
    };
    let scale = case.group.scale();
    let keys = change.keys as f64 * scale;
    let mut advice = case.advice(Means::RaiseLimit, keys, change.saved.times(scale), how);
    advice.note = Some("commands then scan larger packed values: measure the latency first".into());
    Some(advice)
}

/// Advice to use integers as members of sets.
pub(super) fn integer_members(case: &Case<'_>) -> Option<Advice> {
    let change = &case.group.measures.integers;
    if change.keys == 0 || change.saved.redis.max(change.saved.brisk) <= 0.0 {
        return None;
    }
    let scale = case.group.scale();
    let how = "assign a number to each member and store it: small sets become intsets".to_owned();
    let keys = change.keys as f64 * scale;
    let mut advice = case.advice(Means::IntegerMembers, keys, change.saved.times(scale), how);
    advice.note = Some("the table that maps members to numbers is not counted".into());
    Some(advice)
}

/// Advice to set `list-compress-depth`.
pub(super) fn compressed_lists(case: &Case<'_>) -> Option<Advice> {
    let lists = &case.group.measures.lists;
    let saved = lists.scaled(lists.saved_lzf).times(case.group.scale());
    if lists.raw == 0 || saved.redis.max(saved.brisk) <= 0.0 {
        return None;
    }
    let part = 100.0 * lists.lzf as f64 / lists.raw as f64;
    let how = format!(
        "CONFIG SET list-compress-depth 1, then rewrite the lists: nodes shrink to {part:.0} % \
         (measured on {} lists)",
        lists.sampled
    );
    let keys = lists.keys as f64 * case.group.scale();
    Some(case.advice(Means::CompressLists, keys, saved, how))
}

/// Advice to compress values in the application.
pub(super) fn compressed(case: &Case<'_>) -> Option<Advice> {
    let values = &case.group.measures.values;
    if values.raw == 0 {
        return None;
    }
    let scale = case.group.scale();
    let (zstd, lzf) = (values.scaled(values.saved_zstd), values.scaled(values.saved_lzf));
    let best = if zstd.redis >= lzf.redis { zstd } else { lzf }.times(scale);
    if best.redis.max(best.brisk) <= 0.0 {
        return None;
    }
    let part = |bytes: u64| 100.0 * bytes as f64 / values.raw as f64;
    let megabytes = |bytes: Bytes| bytes.times(scale).redis / (1 << 20) as f64;
    let how = format!(
        "compress values of {COMPRESSED_MIN} bytes or more in the application: zstd to {:.0} % ({:.1} MiB in \
         Redis), LZF to {:.0} % ({:.1} MiB), measured on {} values",
        part(values.zstd),
        megabytes(zstd),
        part(values.lzf),
        megabytes(lzf),
        values.sampled
    );
    let mut advice = case.advice(Means::CompressValues, values.keys as f64 * scale, best, how);
    advice.note =
        Some("GETRANGE, APPEND and similar commands do not work on compressed values".into());
    Some(advice)
}

/// Advice about keys that seem to lack a TTL.
pub(super) fn without_ttl(case: &Case<'_>) -> Option<Advice> {
    let group = case.group;
    let known: u64 = group.idle_forever.total();
    if known > 0 {
        let forgotten_from = FORGOTTEN_SPAN + 1;
        let keys: u64 = group.idle_forever.keys[forgotten_from..].iter().sum();
        let mut bytes = Bytes::default();
        group.idle_forever.bytes[forgotten_from..].iter().for_each(|more| bytes.add(*more));
        // The sizes that the server reported are those of Redis only; the savings in Brisk follow
        // from the models.
        if bytes.brisk == 0.0 && group.bytes.redis > 0.0 {
            bytes.brisk = bytes.redis * group.bytes.brisk / group.bytes.redis;
        }
        bytes.add(case.places_saved(keys as f64));
        let span = SPANS[FORGOTTEN_SPAN].1;
        let how = format!("EXPIRE them: they have no TTL and were not used for {span}");
        return (keys > 0).then(|| case.advice(Means::MissingTtl, keys as f64, bytes, how));
    }
    let without = group.keys.saturating_sub(group.expiring);
    let part = group.expiring as f64 / group.keys.max(1) as f64;
    if without == 0 || part < MOSTLY {
        return None;
    }
    let bytes = group.total().times(1.0 - part);
    let how = format!("EXPIRE them like the other {} % of the pattern", (part * 100.0).round());
    let mut advice = case.advice(Means::MissingTtl, without as f64, bytes, how);
    advice.note = Some("their last use is unknown".into());
    Some(advice)
}
