//! Possible changes, and the memory that each would save with this data.
//!
//! | part | contents |
//! |---|---|
//! | [`keys`] | shorter keys, numbers instead of long IDs, few hashes instead of many small keys |
//! | [`values`] | limits of encodings, integers as members, compression, TTLs |
//!
//! Each number is the saving of one change alone, applied to the current data. The savings of changes to the same keys
//! cannot be added: for example, a key that became a field of a hash need not be shortened.

pub mod keys;
pub mod values;

use crate::analysis::Findings;
use crate::group::{Group, GroupKey};
use crate::model::Bytes;
use crate::pattern::Pattern;

/// The smallest saving that is reported, in bytes, in the server that saves more.
const SAVED_MIN: f64 = 4096.0;

/// A kind of advice. The names are those in the JSON report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Means {
    ShorterKeys,
    ShardKey,
    RaiseLimit,
    CompressLists,
    IntegerKeys,
    IntegerMembers,
    CompressValues,
    MissingTtl,
}

impl Means {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Means::ShorterKeys => "shorter-keys",
            Means::ShardKey => "shard-key",
            Means::RaiseLimit => "raise-limit",
            Means::CompressLists => "compress-lists",
            Means::IntegerKeys => "integer-keys",
            Means::IntegerMembers => "integer-members",
            Means::CompressValues => "compress-values",
            Means::MissingTtl => "missing-ttl",
        }
    }

    /// The title in tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Means::ShorterKeys => "shorter keys",
            Means::ShardKey => "pack by shard_key",
            Means::RaiseLimit => "raise a limit",
            Means::CompressLists => "compress lists",
            Means::IntegerKeys => "numbers as ids",
            Means::IntegerMembers => "integer members",
            Means::CompressValues => "compress values",
            Means::MissingTtl => "set a TTL",
        }
    }
}

/// A possible change.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    pub means: Means,
    pub pattern: String,
    pub group: GroupKey,
    /// The number of affected keys.
    pub keys: u64,
    pub saved: Bytes,
    /// The change in detail.
    pub how: String,
    /// A caveat.
    pub note: Option<String>,
}

/// A group with the facts that are needed to give advice about it.
pub(crate) struct Case<'a> {
    pub(crate) findings: &'a Findings,
    pub(crate) pattern: &'a Pattern,
    pub(crate) key: GroupKey,
    pub(crate) group: &'a Group,
}

impl Case<'_> {
    pub(crate) fn advice(&self, means: Means, keys: f64, saved: Bytes, how: String) -> Advice {
        let (pattern, group) = (self.pattern.to_string(), self.key);
        Advice { means, pattern, group, keys: keys.round() as u64, saved, how, note: None }
    }

    /// The memory by which tables shrink if this number of keys of the database is removed.
    pub(crate) fn places_saved(&self, keys: f64) -> Bytes {
        let Some(database) = self.findings.databases.get(&self.key.db) else {
            return Bytes::default();
        };
        let left = (database.keys as f64 - keys).max(0.0) as u64;
        let models = &self.findings.models;
        let places = |keys| Bytes::new(models.redis.places(keys), models.brisk.places(keys));
        places(database.keys).minus(places(left))
    }
}

/// All possible changes, sorted by their savings in Redis, the largest first.
#[must_use]
pub fn advise(findings: &Findings) -> Vec<Advice> {
    let names = keys::Names::of(findings);
    let mut all = Vec::new();
    for (pattern, key, group) in &findings.groups {
        let case = Case { findings, pattern, key: *key, group };
        all.extend(keys::shorter(&case, &names));
        all.extend(keys::integer(&case));
        all.extend(keys::packed(&case));
        all.extend(values::limit(&case));
        all.extend(values::integer_members(&case));
        all.extend(values::compressed_lists(&case));
        all.extend(values::compressed(&case));
        all.extend(values::without_ttl(&case));
    }
    all.retain(|advice| advice.saved.redis.max(advice.saved.brisk) >= SAVED_MIN);
    all.sort_by(|a, b| b.saved.redis.total_cmp(&a.saved.redis));
    all
}
