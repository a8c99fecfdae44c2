//! The sessions that track prefixes of keys, counted by worker.

use brisk_structures::poison::EvenPoisoned;
use std::collections::{BTreeMap, HashMap};
use std::sync::RwLock;

/// Sessions that track one prefix, by worker. Never all zero.
type Counts = Box<[u32]>;
/// The prefixes by length, because a key has one prefix of each length.
type Table = BTreeMap<usize, HashMap<Box<[u8]>, Counts>>;

/// Keys with a value for each.
type Keys<'k, V> = Vec<(&'k [u8], V)>;

/// All prefixes that sessions track.
#[derive(Debug)]
pub struct Prefixes {
    table: RwLock<Table>,
    workers: usize,
}

/// Keys that begin with one prefix, and the sessions that track it.
type Matched<'k, V> = (Keys<'k, V>, &'k Counts);

impl Prefixes {
    /// Creates the table for `workers` workers.
    pub fn new(workers: usize) -> Prefixes {
        Prefixes { table: RwLock::default(), workers }
    }

    /// Number of different prefixes. O(different lengths).
    pub fn len(&self) -> usize {
        let table = self.table.read().even_poisoned();
        table.values().map(HashMap::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes that a session of `worker` tracks the prefix from now on. `change` is called with true.
    pub fn add(&self, prefix: &[u8], worker: usize, change: impl FnOnce(bool)) {
        let mut table = self.table.write().even_poisoned();
        let none = || vec![0; self.workers].into();
        let names = table.entry(prefix.len()).or_default();
        names.entry(prefix.into()).or_insert_with(none)[worker] += 1;
        change(true);
    }

    /// Notes that a session of `worker` no longer tracks the prefix. `change` is called with true if any session still
    /// tracks a prefix.
    pub fn remove(&self, prefix: &[u8], worker: usize, change: impl FnOnce(bool)) {
        let mut table = self.table.write().even_poisoned();
        if let Some(names) = table.get_mut(&prefix.len())
            && let Some(counts) = names.get_mut(prefix)
        {
            counts[worker] -= 1;
            if counts.iter().all(|count| *count == 0) {
                names.remove(prefix);
                if names.is_empty() {
                    table.remove(&prefix.len());
                }
            }
        }
        change(!table.is_empty());
    }

    /// Calls the function, in order, for each prefix that any of the keys has. The arguments are the prefix, the
    /// matching keys in order, and the number of sessions by worker. O(keys x different lengths).
    pub fn each_match<V: Copy>(
        &self,
        keys: &BTreeMap<impl AsRef<[u8]> + Ord, V>,
        mut show: impl FnMut(&[u8], &[(&[u8], V)], &[u32]),
    ) {
        let table = self.table.read().even_poisoned();
        let mut matched: BTreeMap<&[u8], Matched<'_, V>> = BTreeMap::new();
        for (key, value) in keys {
            let key = key.as_ref();
            for (len, names) in table.range(..=key.len()) {
                if let Some((prefix, counts)) = names.get_key_value(&key[..*len]) {
                    let entry = matched.entry(prefix).or_insert_with(|| (Vec::new(), counts));
                    entry.0.push((key, *value));
                }
            }
        }
        matched.iter().for_each(|(prefix, (keys, counts))| show(prefix, keys, counts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(prefixes: &Prefixes, keys: &[&str]) -> Vec<String> {
        let keys: BTreeMap<&str, ()> = keys.iter().map(|key| (*key, ())).collect();
        let mut seen = Vec::new();
        prefixes.each_match(&keys, |prefix, keys, counts| {
            let keys: Vec<_> = keys.iter().map(|(key, ())| String::from_utf8_lossy(key)).collect();
            let prefix = String::from_utf8_lossy(prefix);
            seen.push(format!("{prefix}: {} {counts:?}", keys.join(" ")));
        });
        seen
    }

    #[test]
    fn each_prefix_gets_its_keys_in_order() {
        let prefixes = Prefixes::new(2);
        for (prefix, worker) in [("b", 0), ("", 1), ("b", 0), ("bb", 1), ("long", 0)] {
            prefixes.add(prefix.as_bytes(), worker, |any| assert!(any));
        }
        assert_eq!(prefixes.len(), 4);
        let seen = matches(&prefixes, &["bbc", "ba", "a", ""]);
        assert_eq!(seen, [":  a ba bbc [0, 1]", "b: ba bbc [2, 0]", "bb: bbc [0, 1]"]);
        prefixes.remove(b"b", 0, |any| assert!(any));
        prefixes.remove(b"", 1, |any| assert!(any));
        prefixes.remove(b"bb", 1, |any| assert!(any));
        assert_eq!(matches(&prefixes, &["bbc"]), ["b: bbc [1, 0]"]);
        prefixes.remove(b"b", 0, |any| assert!(any));
        prefixes.remove(b"long", 0, |any| assert!(!any));
        assert!(prefixes.is_empty());
    }
}
