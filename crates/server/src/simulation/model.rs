//! The expected datasets: an independent implementation of the commands, and the dataset at each offset of each
//! history.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The number of string keys and of list keys in each database, and the number of databases.
pub(super) const STRINGS: usize = 5;
pub(super) const LISTS: usize = 2;
pub(super) const DATABASES: u32 = 2;

/// Returns the name of a string key.
pub(super) fn string(n: usize) -> String {
    format!("s{n}")
}

/// Returns the name of an additional string key in database 0. The name is longer than the smallest backlog.
pub(super) fn long_string() -> String {
    "s".repeat((16 << 10) + 1)
}

/// Returns the names of all string keys of a database.
pub(super) fn strings(db: u32) -> impl Iterator<Item = String> {
    (0..STRINGS).map(string).chain((db == 0).then(long_string))
}

/// Returns all keys, each with its database.
pub(super) fn keys() -> impl Iterator<Item = (u32, String)> {
    let lists = || (0..LISTS).map(|n| format!("l{n}"));
    (0..DATABASES).flat_map(move |db| strings(db).chain(lists()).map(move |name| (db, name)))
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(Rc<str>),
    List(Vec<Rc<str>>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    value: Value,
    deadline_ms: Option<u64>,
}

/// A dataset, including keys that have expired but were not removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dataset(BTreeMap<(u32, String), Entry>);

/// A change.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Set(String, String, Option<u64>),
    Append(String, String),
    Increment(String),
    Push(String, String),
    Pop(String),
    Expire(String, u64),
    Delete(String),
}

impl Change {
    pub(super) fn words(&self) -> Vec<String> {
        let word = str::to_owned;
        match self {
            Change::Set(key, value, None) => vec![word("SET"), key.clone(), value.clone()],
            Change::Set(key, value, Some(ms)) => {
                vec![word("SET"), key.clone(), value.clone(), word("PX"), ms.to_string()]
            }
            Change::Append(key, value) => vec![word("APPEND"), key.clone(), value.clone()],
            Change::Increment(key) => vec![word("INCR"), key.clone()],
            Change::Push(key, value) => vec![word("RPUSH"), key.clone(), value.clone()],
            Change::Pop(key) => vec![word("LPOP"), key.clone()],
            Change::Expire(key, ms) => vec![word("PEXPIRE"), key.clone(), ms.to_string()],
            Change::Delete(key) => vec![word("DEL"), key.clone()],
        }
    }
}

impl Dataset {
    /// Applies a change in the same way as a primary.
    pub(super) fn change(&mut self, db: u32, change: &Change, now_ms: u64) {
        let key = |name: &String| (db, name.clone());
        let (Change::Set(name, ..)
        | Change::Append(name, _)
        | Change::Increment(name)
        | Change::Push(name, _)
        | Change::Pop(name)
        | Change::Expire(name, _)
        | Change::Delete(name)) = change;
        let has_expired = |entry: &Entry| entry.deadline_ms.is_some_and(|at| at <= now_ms);
        if self.0.get(&key(name)).is_some_and(has_expired) {
            self.0.remove(&key(name));
        }
        let text = |entry: Option<&Entry>| match entry {
            Some(Entry { value: Value::Text(text), .. }) => text.to_string(),
            _ => String::new(),
        };
        let present = self.0.get(&key(name));
        let deadline_ms = present.and_then(|entry| entry.deadline_ms);
        match change {
            Change::Set(_, value, ttl) => {
                let deadline_ms = ttl.map(|ttl| now_ms + ttl);
                self.put(key(name), Value::Text(value.as_str().into()), deadline_ms);
            }
            Change::Append(_, value) => {
                let all = text(present) + value;
                self.put(key(name), Value::Text(all.into()), deadline_ms);
            }
            Change::Increment(_) => {
                // A value that is not a number stays unchanged.
                let was = if present.is_some() { number(&text(present)) } else { Some(0) };
                if let Some(was) = was {
                    let value = Value::Text((was + 1).to_string().into());
                    self.put(key(name), value, deadline_ms);
                }
            }
            Change::Push(_, value) => {
                let entry = self
                    .0
                    .entry(key(name))
                    .or_insert(Entry { value: Value::List(Vec::new()), deadline_ms: None });
                if let Value::List(list) = &mut entry.value {
                    list.push(value.as_str().into());
                }
            }
            Change::Pop(_) => {
                if let Some(Entry { value: Value::List(list), .. }) = self.0.get_mut(&key(name)) {
                    list.remove(0);
                    if list.is_empty() {
                        self.0.remove(&key(name));
                    }
                }
            }
            Change::Expire(_, ttl) => {
                if let Some(entry) = self.0.get_mut(&key(name)) {
                    entry.deadline_ms = Some(now_ms + ttl);
                }
            }
            Change::Delete(_) => {
                self.0.remove(&key(name));
            }
        }
    }

    fn put(&mut self, key: (u32, String), value: Value, deadline_ms: Option<u64>) {
        self.0.insert(key, Entry { value, deadline_ms });
    }

    /// Returns the replies to PEXPIRETIME for all keys, in each database.
    pub(super) fn deadlines(&self, now_ms: u64) -> Vec<String> {
        let at = |key: (u32, String)| {
            let entry = self.0.get(&key);
            match entry.map(|entry| entry.deadline_ms) {
                None => ":-2\r\n".to_owned(),
                Some(None) => ":-1\r\n".to_owned(),
                Some(Some(at)) if at <= now_ms => ":-2\r\n".to_owned(),
                Some(Some(at)) => format!(":{at}\r\n"),
            }
        };
        keys().map(at).collect()
    }

    /// Returns the total length of the names of keys whose expiry time is after `after_ms` and has
    /// passed.
    pub(super) fn expired_bytes(&self, after_ms: u64, now_ms: u64) -> u64 {
        let deadlines = self.0.iter().filter_map(|(key, entry)| Some((&key.1, entry.deadline_ms?)));
        let names = deadlines.filter(|(_, at)| *at > after_ms && *at <= now_ms);
        names.map(|(name, _)| name.len() as u64).sum()
    }

    /// Returns the visible values: the replies to MGET and LRANGE, in each database.
    pub(super) fn shown(&self, now_ms: u64) -> Vec<String> {
        let mut shown = Vec::new();
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let at = |db: u32, name: String| {
            let entry = self.0.get(&(db, name))?;
            entry.deadline_ms.is_none_or(|at| at > now_ms).then_some(&entry.value)
        };
        for db in 0..DATABASES {
            let strings = strings(db).map(|name| match at(db, name) {
                Some(Value::Text(text)) => bulk(text),
                _ => "$-1\r\n".to_owned(),
            });
            let values: Vec<String> = strings.collect();
            shown.push(format!("*{}\r\n{}", values.len(), values.concat()));
            for n in 0..LISTS {
                let list = match at(db, format!("l{n}")) {
                    Some(Value::List(list)) => list.as_slice(),
                    _ => &[],
                };
                let elements: String = list.iter().map(|element| bulk(element)).collect();
                shown.push(format!("*{}\r\n{elements}", list.len()));
            }
        }
        shown
    }
}

/// Parses a number. Values have no sign and no leading 0, except for 0 itself.
fn number(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A change to this dataset between two offsets.
struct Step {
    before: u64,
    after: u64,
    dataset: Rc<Dataset>,
}

/// A history, beginning at the offset at which it got its id.
struct Line {
    /// The previous id, which is valid up to the offset at which this one begins.
    parent: Option<String>,
    start: u64,
    steps: Vec<Step>,
}

/// All histories by id.
#[derive(Default)]
pub(super) struct Model(HashMap<String, Line>);

impl Model {
    pub(super) fn knows(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// Begins a history, or gives a history a new id, at an offset where it has this dataset.
    pub(super) fn begin(
        &mut self,
        id: &str,
        parent: Option<String>,
        start: u64,
        dataset: Rc<Dataset>,
    ) {
        let steps = vec![Step { before: start, after: start, dataset }];
        assert!(self.0.insert(id.to_owned(), Line { parent, start, steps }).is_none());
    }

    /// Records that the dataset changed atomically to this one, somewhere between these offsets.
    pub(super) fn change(&mut self, id: &str, before: u64, after: u64, dataset: Rc<Dataset>) {
        let line = self.0.get_mut(id).expect("a history that is known");
        assert!(before <= after && line.steps.last().is_none_or(|last| last.after <= before));
        line.steps.push(Step { before, after, dataset });
    }

    /// Returns the id that a history had when its stream reached an offset. Two histories that are the same at an
    /// offset have the same origin there.
    pub(super) fn origin<'m>(&'m self, mut id: &'m str, offset: u64) -> Option<&'m str> {
        loop {
            let line = self.0.get(id)?;
            match &line.parent {
                Some(parent) if offset <= line.start => id = parent,
                _ => return (offset >= line.start).then_some(id),
            }
        }
    }

    /// True if two histories are the same up to an offset.
    pub(super) fn is_shared(&self, one: &str, other: &str, offset: u64) -> bool {
        let origin = self.origin(one, offset);
        origin.is_some() && origin == self.origin(other, offset)
    }

    /// Returns the possible datasets at an offset. There is one, or two during a change.
    pub(super) fn at(&self, id: &str, offset: u64) -> Vec<Rc<Dataset>> {
        // The offset at which one id ends and the next begins belongs to both.
        let mut found = Vec::new();
        let mut id = Some(id.to_owned());
        while let Some(line) = id.as_ref().and_then(|id| self.0.get(id)) {
            for step in line.steps.iter().rev() {
                if step.before < offset || step.after <= offset {
                    found.push(Rc::clone(&step.dataset));
                }
                if step.after <= offset {
                    return found;
                }
            }
            id = line.parent.clone();
        }
        found
    }
}
