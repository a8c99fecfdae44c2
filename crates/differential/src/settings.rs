//! Directives that streams may read and change, because the servers remain comparable after the change.
//!
//! Both servers get the initial values at the start of every episode; for even seeds, the limits of compact encodings
//! are [low](Thresholds::Low), so that even small values are converted.

use brisk_testkit::random::Random;

/// One directive.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    /// The value at the start of an episode; `None` if the directive cannot be set at run time.
    pub initial: Option<&'static str>,
    /// Values to try, including invalid ones.
    pub values: &'static [&'static str],
    /// Why only these values may be tried; empty if any value is harmless.
    pub only: &'static str,
}

const fn free(
    name: &'static str,
    initial: &'static str,
    values: &'static [&'static str],
) -> Setting {
    Setting { name, initial: Some(initial), values, only: "" }
}

const fn only(
    name: &'static str,
    initial: Option<&'static str>,
    values: &'static [&'static str],
    reason: &'static str,
) -> Setting {
    Setting { name, initial, values, only: reason }
}

const COUNTS: &[&str] = &["0", "1", "4", "128", "512", "-1", "abc", "", "1kb", "1.5"];
const SWITCHES: &[&str] = &["yes", "no", "YES", "No", "1", "maybe", ""];
const POLICIES: &[&str] =
    &["noeviction", "allkeys-lru", "volatile-ttl", "VOLATILE-lru", "allkeys", ""];
const EVENTS: &[&str] = &["", "KEA", "Kg$", "Ex", "AKE", "xyz", "$K", "n"];

/// All directives. Aliases have no separate initial value.
pub const SETTINGS: &[Setting] = &[
    free("hash-max-listpack-entries", "128", COUNTS),
    free("hash-max-listpack-value", "64", COUNTS),
    free("set-max-intset-entries", "512", COUNTS),
    free("zset-max-listpack-entries", "128", COUNTS),
    free("zset-max-listpack-value", "64", COUNTS),
    free("list-max-listpack-size", "-2", COUNTS),
    free("list-compress-depth", "0", COUNTS),
    free("stream-node-max-bytes", "4096", COUNTS),
    free("stream-node-max-entries", "100", COUNTS),
    only("hash-max-ziplist-entries", None, COUNTS, "is an alias"),
    only("zset-max-ziplist-value", None, COUNTS, "is an alias"),
    only("list-max-ziplist-size", None, COUNTS, "is an alias"),
    free("lazyfree-lazy-eviction", "no", SWITCHES),
    free("lazyfree-lazy-expire", "no", SWITCHES),
    free("lazyfree-lazy-server-del", "no", SWITCHES),
    free("lazyfree-lazy-user-del", "no", SWITCHES),
    free("lazyfree-lazy-user-flush", "no", SWITCHES),
    free("latency-tracking", "yes", SWITCHES),
    free("notify-keyspace-events", "", EVENTS),
    free("maxmemory-policy", "noeviction", POLICIES),
    free("maxmemory-samples", "5", COUNTS),
    free("lfu-decay-time", "1", COUNTS),
    free("lfu-log-factor", "10", COUNTS),
    free("slowlog-max-len", "128", COUNTS),
    free("appendfsync", "everysec", &["always", "everysec", "NO", "never", ""]),
    free("replica-priority", "100", COUNTS),
    only("slave-priority", None, COUNTS, "is an alias"),
    only(
        "maxmemory",
        Some("0"),
        &["0", "0mb", "abc", "-1", "1.5gb", "1tbb"],
        "under a limit small integers are shared or not by when they were written",
    ),
    only(
        "slowlog-log-slower-than",
        Some("-1"),
        &["-1", "abc", "", "-2"],
        "which calls are slow is a matter of time",
    ),
    only(
        "timeout",
        Some("0"),
        &["0", "100000", "-1", "abc"],
        "a short one ends the connection when the machine is busy",
    ),
    only(
        "proto-max-bulk-len",
        Some("512mb"),
        &["512mb", "1gb", "1", "abc", "1mb"],
        "a short one ends the connection at the next long word",
    ),
    only(
        "client-output-buffer-limit",
        Some("normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60"),
        &["normal 0 0 0", "pubsub 1mb 2mb 30", "normal 0", "nosuch 0 0 0", "", "normal a 0 0"],
        "a narrow one ends the connection at the next long reply",
    ),
    only(
        "maxclients",
        None,
        &["abc", "0", "-1"],
        "an accepted value depends on the limit of open files",
    ),
    only("databases", None, &["16", "abc"], "cannot be set at run time"),
];

/// Limits of compact encodings that are so low that values with a few elements exceed them. The limit of sparse
/// HyperLogLogs is not among them: streams corrupt HyperLogLogs, and if Redis detects this during a conversion, it
/// keeps what the command has already added, but Brisk does not.
const LOW: &[(&str, &str)] = &[
    ("hash-max-listpack-entries", "3"),
    ("hash-max-listpack-value", "8"),
    ("set-max-intset-entries", "3"),
    ("zset-max-listpack-entries", "3"),
    ("zset-max-listpack-value", "8"),
    ("list-max-listpack-size", "3"),
    ("list-compress-depth", "1"),
    ("stream-node-max-entries", "3"),
];

/// Low limits for directives that Redis 7.0 does not have. A server that lacks them rejects the command.
const LOW_NEWER: &[(&str, &str)] =
    &[("set-max-listpack-entries", "3"), ("set-max-listpack-value", "8")];

/// The limits of compact encodings in an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thresholds {
    /// Redis's defaults: most values stay compact.
    Default,
    /// Three elements: most values are converted.
    Low,
}

impl Thresholds {
    /// The thresholds for the stream of a seed: low for even seeds, the defaults for odd ones.
    pub fn of_seed(seed: u64) -> Thresholds {
        if seed.is_multiple_of(2) { Thresholds::Low } else { Thresholds::Default }
    }
}

/// Patterns for CONFIG GET that match only directives of Redis 7.0.
const PATTERNS: &[&str] = &[
    "hash-max*",
    "[hz]*-max-listpack-*",
    "*ziplist*",
    "lazyfree*",
    "LAZYFREE-lazy-USER-*",
    "slowlog-*",
    "stream-node-max-[be]*",
    "?atency-tracking",
    "list-*",
    "appendfsyn[a-c]",
    "replica-pri*",
    "nosuch",
    "no*such",
    "[",
    "",
];

/// A name, occasionally in capitals.
fn name(random: &mut Random) -> Vec<u8> {
    let name = random.pick(SETTINGS).name;
    if random.percent(10) { name.to_ascii_uppercase().into() } else { name.into() }
}

/// A pattern for CONFIG GET.
pub fn pattern(random: &mut Random) -> Vec<u8> {
    if random.percent(50) { name(random) } else { random.pick(PATTERNS).as_bytes().to_vec() }
}

/// A name and a value for CONFIG SET.
pub fn pair(random: &mut Random) -> [Vec<u8>; 2] {
    let name = name(random);
    let value = find(&name).map_or("", |row| *random.pick(row.values));
    [name, value.into()]
}

/// Reports whether the replies to CONFIG GET with this argument can be compared: it must be a plain name or a known
/// pattern.
pub fn is_comparable(word: &[u8]) -> bool {
    let plain = !word.iter().any(|byte| b"*?[".contains(byte));
    plain || PATTERNS.iter().any(|pattern| pattern.as_bytes() == word)
}

/// The row of a directive. The case of letters does not matter.
pub fn find(name: &[u8]) -> Option<&'static Setting> {
    SETTINGS.iter().find(|row| row.name.as_bytes().eq_ignore_ascii_case(name))
}

/// Replaces values that a row does not admit. `words` begins with CONFIG SET.
pub fn confine(words: &mut [Vec<u8>]) {
    for pair in words.get_mut(2..).unwrap_or_default().chunks_exact_mut(2) {
        let Some(row) = find(&pair[0]) else { continue };
        if !row.only.is_empty() && !row.values.iter().any(|value| value.as_bytes() == pair[1]) {
            pair[1] = row.values[0].into();
        }
    }
}

/// The CONFIG SET command that sets all initial values.
pub fn reset(thresholds: Thresholds) -> Vec<&'static [u8]> {
    let initial = SETTINGS.iter().filter_map(|row| Some((row.name, row.initial?)));
    match thresholds {
        Thresholds::Default => set(initial),
        // Redis 7.0 rejects a name that occurs twice.
        Thresholds::Low => {
            let is_low = |name| LOW.iter().any(|low| low.0 == name);
            set(initial.filter(|row| !is_low(row.0)).chain(LOW.iter().copied()))
        }
    }
}

/// Like [`reset`], for newer directives. A server that does not have them may reject the command.
pub fn reset_newer(thresholds: Thresholds) -> Vec<&'static [u8]> {
    match thresholds {
        Thresholds::Default => {
            set([("set-max-listpack-entries", "128"), ("set-max-listpack-value", "64")])
        }
        Thresholds::Low => set(LOW_NEWER.iter().copied()),
    }
}

fn set(pairs: impl IntoIterator<Item = (&'static str, &'static str)>) -> Vec<&'static [u8]> {
    let pairs = pairs.into_iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    [&b"CONFIG"[..], b"SET"].into_iter().chain(pairs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_testkit::words::{line, split};

    #[test]
    fn no_pattern_catches_directives_of_the_process() {
        assert!(is_comparable(b"hash-max*") && is_comparable(b"slowlog-max-len"));
        assert!(!is_comparable(b"*") && !is_comparable(b"p*") && !is_comparable(b"[^a]*"));
    }

    #[test]
    fn low_thresholds_replace_the_initial_ones() {
        let value = |thresholds, name: &[u8]| {
            let words = [reset(thresholds), reset_newer(thresholds)].concat();
            let at: Vec<usize> = (0..words.len()).filter(|&i| words[i] == name).collect();
            assert_eq!(at.len(), 1, "{}", String::from_utf8_lossy(name));
            words[at[0] + 1]
        };
        for (name, low) in LOW.iter().chain(LOW_NEWER) {
            assert_eq!(value(Thresholds::Low, name.as_bytes()), low.as_bytes());
            assert_ne!(value(Thresholds::Default, name.as_bytes()), low.as_bytes());
        }
        assert_eq!(value(Thresholds::Low, b"timeout"), b"0");
    }

    #[test]
    fn values_that_would_end_the_comparison_are_replaced() {
        let confined = |text: &str| {
            let mut words = split(text).unwrap();
            confine(&mut words);
            line(&words)
        };
        assert_eq!(confined("CONFIG SET MAXMEMORY 100"), "CONFIG SET MAXMEMORY 0");
        assert_eq!(confined("CONFIG SET a b timeout 3 c"), "CONFIG SET a b timeout 0 c");
        let harmless = "CONFIG SET list-compress-depth 77";
        assert_eq!(confined(harmless), harmless);
        assert_eq!(confined("CONFIG SET"), "CONFIG SET");
    }
}
