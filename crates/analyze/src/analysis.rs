//! Turns records into totals by pattern. Each record is examined once, and memory does not depend on the number of
//! records.

use crate::group::{Group, GroupKey, SIZES};
use crate::measure::{Compressor, Limits, Measure};
use crate::model::{Bytes, Classes, Models, Shape};
use crate::pattern::tree::Tree;
use crate::pattern::{Mark, Pattern, Token, tokens};
use crate::record::{Encoding, Kind, Record};
use std::collections::BTreeMap;

/// The maximum number of databases that are distinguished. Keys of all other databases are counted under
/// [`OTHER_DATABASES`].
const DATABASES_MAX: usize = 256;
/// The number under which the keys of further databases are counted.
pub const OTHER_DATABASES: u64 = u64::MAX;
/// Values are read from a server for the first `VALUES_FIRST` keys of each group, and then for one key in
/// `VALUES_EACH`.
const VALUES_FIRST: u64 = 200;
const VALUES_EACH: u64 = 16;

/// Facts about the source of the records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// A description of the source for the head of the report.
    pub source: String,
    /// Notes on how the numbers were obtained.
    pub notes: Vec<String>,
    /// The error that ended the analysis early.
    pub error: Option<String>,
    /// The size of the files, if the source is files.
    pub file_bytes: Option<u64>,
    /// The memory that the server reports: in total, and without keys.
    pub used_memory: Option<u64>,
    pub startup_memory: Option<u64>,
    /// Keys that could not be examined, because they were gone or are of an unknown type.
    pub skipped_keys: u64,
    /// The fraction of keys that was examined, if not all of them.
    pub scanned_fraction: Option<f64>,
}

/// The counts of keys in a database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Database {
    pub keys: u64,
    pub expiring: u64,
}

/// Collects the totals by pattern; see the module documentation.
#[derive(Debug)]
pub struct Analysis {
    models: Models,
    limits: Limits,
    /// The Unix time in ms from which TTLs are computed.
    now_ms: i64,
    tree: Tree,
    databases: BTreeMap<u64, Database>,
    compressor: Compressor,
    pub facts: Facts,
}

/// The result of all records.
#[derive(Debug)]
pub struct Findings {
    pub models: Models,
    pub limits: Limits,
    pub groups: Vec<(Pattern, GroupKey, Group)>,
    pub databases: BTreeMap<u64, Database>,
    pub facts: Facts,
}

impl Analysis {
    #[must_use]
    pub fn new(classes: Classes, limits: Limits, now_ms: i64) -> Analysis {
        Analysis {
            models: Models::new(classes),
            limits,
            now_ms,
            tree: Tree::default(),
            databases: BTreeMap::new(),
            compressor: Compressor::default(),
            facts: Facts::default(),
        }
    }

    /// Computes TTLs relative to this time, for example the time at which a file was written.
    pub fn set_now(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
    }

    /// Sets facts about the server that are known only after it has replied.
    pub fn set_server(&mut self, classes: Classes, limits: Limits) {
        (self.models, self.limits) = (Models::new(classes), limits);
    }

    /// The number of keys so far.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.databases.values().map(|database| database.keys).sum()
    }

    /// The numbers of groups and of tree nodes, for tests of their bounds.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        let (nodes, groups) = self.tree.count();
        (groups, nodes)
    }

    /// Reports whether the value of this key should be read.
    #[must_use]
    pub fn wants_value(&self, db: u64, key: &[u8], kind: Kind, encoding: Encoding) -> bool {
        let mut found = Vec::new();
        tokens(key, &mut found);
        match self.tree.find(&found, GroupKey { db, kind, encoding }) {
            Some(group) => group.detailed < VALUES_FIRST || group.keys.is_multiple_of(VALUES_EACH),
            None => true,
        }
    }

    /// Adds a record. O(key and elements of its value).
    pub fn add(&mut self, record: &Record<'_>) {
        let is_known = self.databases.contains_key(&record.db);
        let room = self.databases.len() < DATABASES_MAX;
        let db = if is_known || room { record.db } else { OTHER_DATABASES };
        let database = self.databases.entry(db).or_default();
        database.keys += 1;
        database.expiring += u64::from(record.deadline_ms.is_some());

        let mut found = Vec::new();
        tokens(record.key, &mut found);
        let key = GroupKey { db, kind: record.kind, encoding: record.encoding };
        let (group, varies) = self.tree.group(&found, record.key.len(), key);
        let ids = found.iter().filter_map(|(token, place)| match token {
            Token::Mark(mark) if Mark::is_long_id(*mark) => Some(place.len() as u64),
            _ => None,
        });
        group.id_bytes += ids.sum::<u64>();
        group.keys += 1;
        group.key_bytes += record.key.len() as u64;
        group.key_lengths.add(record.key.len() as u64);
        group.reported_bytes += record.reported_bytes.unwrap_or(0);

        let now = record.value.map(|value| {
            let shape = Shape::of(value, &self.models.redis);
            let now = cost(&self.models, record, &shape);
            detail(group, &self.models, record, &shape, now);
            let field = varies.map(|place| &record.key[place]);
            let (models, limits) = (&self.models, &self.limits);
            let measure = Measure { record, shape: &shape, models, now, field, limits };
            group.measures.add(&measure, &mut self.compressor);
            now
        });
        if now.is_none() {
            group.elements_max = group.elements_max.max(record.elements.unwrap_or(0));
        }
        let size = record.reported_bytes.or(now.map(|now| now.redis as u64)).unwrap_or(0);
        group.biggest.add(size, record.key);
        group.sizes[(size.max(1).ilog2() as usize).min(SIZES - 1)] += 1;
        times(group, record, now.unwrap_or(Bytes { redis: size as f64, brisk: 0.0 }), self.now_ms);
    }

    /// Completes the analysis.
    #[must_use]
    pub fn finish(self) -> Findings {
        Findings {
            models: self.models,
            limits: self.limits,
            groups: self.tree.into_groups(),
            databases: self.databases,
            facts: self.facts,
        }
    }
}

/// The memory of a key in both servers, without its share of the tables.
fn cost(models: &Models, record: &Record<'_>, shape: &Shape) -> Bytes {
    let (len, expires) = (record.key.len() as u64, record.deadline_ms.is_some());
    let (kind, encoding) = (record.kind, record.encoding);
    let inline = models.brisk.inline(kind, encoding, shape);
    let outside = models.brisk.outside(kind, encoding, shape);
    Bytes::new(
        models.redis.key(len, expires) + models.redis.value(kind, encoding, shape),
        models.brisk.key(len, expires, inline, outside),
    )
}

/// Adds the properties of a value.
fn detail(group: &mut Group, models: &Models, record: &Record<'_>, shape: &Shape, now: Bytes) {
    group.detailed += 1;
    group.reported_detailed_bytes += record.reported_bytes.unwrap_or(0);
    group.bytes.add(now);
    group.elements += shape.elements;
    group.elements_max = group.elements_max.max(shape.elements);
    group.value_bytes += shape.texts;
    let inline = models.brisk.inline(record.kind, record.encoding, shape);
    let (len, expires) = (record.key.len() as u64, record.deadline_ms.is_some());
    group.entry_lengths.add(models.brisk.entry_bytes(len, expires, inline));
}

/// Adds the idle time and the TTL of a key.
fn times(group: &mut Group, record: &Record<'_>, bytes: Bytes, now_ms: i64) {
    if let Some(deadline) = record.deadline_ms {
        group.expiring += 1;
        let left = deadline.saturating_sub(now_ms);
        if left <= 0 {
            group.expired += 1;
        } else {
            group.ttl.add(left as u64 / 1000, bytes);
        }
    }
    if let Some(idle) = record.idle_seconds {
        group.idle.add(idle, bytes);
        if record.deadline_ms.is_none() {
            group.idle_forever.add(idle, bytes);
        }
    }
    if let Some(frequency) = record.frequency {
        group.frequency.0 += u64::from(frequency);
        group.frequency.1 += 1;
    }
}

impl Findings {
    /// The memory of the tables of all databases, in addition to their keys.
    #[must_use]
    pub fn tables(&self) -> Bytes {
        let mut all = Bytes::default();
        for database in self.databases.values() {
            let redis = &self.models.redis;
            let places = redis.places(database.keys) + redis.places(database.expiring);
            all.add(Bytes::new(places, self.models.brisk.places(database.keys)));
        }
        all
    }

    /// The memory of all keys by the models, including tables.
    #[must_use]
    pub fn total(&self) -> Bytes {
        let mut all = self.tables();
        self.groups.iter().for_each(|(_, _, group)| all.add(group.total()));
        all
    }

    /// The number of keys.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.databases.values().map(|database| database.keys).sum()
    }
}
