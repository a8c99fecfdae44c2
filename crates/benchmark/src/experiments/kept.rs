//! The memory that data takes in the server's process, for the layouts for which Brisk promises limits.

use super::finding::{Measurement, Row};
use super::stage::{Filler, Stage};

/// Number of elements that are sent with one command.
const AT_ONCE: u64 = 100;

/// Many keys with this number of elements each.
struct Kept {
    what: &'static str,
    keys: u64,
    /// Number of keys in a short run. With less than a few MiB of data, the allocator's pages would dominate the
    /// result.
    keys_short: u64,
    elements: u64,
    /// The command and the prefix of the key.
    command: (&'static str, &'static str),
    /// The arguments for an element.
    words: fn(u64) -> Vec<String>,
    /// The promised limit.
    at_most: &'static str,
}

const KEPT: &[Kept] = &[
    Kept {
        what: "16-byte keys with 8-byte values",
        keys: 10_000_000,
        keys_short: 4_000_000,
        elements: 1,
        command: ("SET", "key:"),
        words: |_| vec!["xxxxxxxx".to_owned()],
        at_most: "at most 50 bytes",
    },
    Kept {
        what: "hashes of 100 fields",
        keys: 10_000,
        keys_short: 10_000,
        elements: 100,
        command: ("HSET", "h:"),
        words: |i| vec![format!("field:{i}"), format!("v{i}")],
        at_most: "1.00",
    },
    Kept {
        what: "hashes of 1,000 fields",
        keys: 1000,
        keys_short: 1000,
        elements: 1000,
        command: ("HSET", "h:"),
        words: |i| vec![format!("field:{i}"), format!("v{i}")],
        at_most: "0.60",
    },
    Kept {
        what: "sorted sets of 1,000 members",
        keys: 1000,
        keys_short: 1000,
        elements: 1000,
        command: ("ZADD", "z:"),
        words: |i| vec![(i * 7919 % 1009).to_string(), format!("member:{i:03}")],
        at_most: "at most 45 bytes",
    },
    Kept {
        what: "sets of 1,000 strings",
        keys: 1000,
        keys_short: 1000,
        elements: 1000,
        command: ("SADD", "s:"),
        words: |i| vec![format!("member:{i:03}")],
        at_most: "0.60",
    },
    Kept {
        what: "lists of 1,000 small numbers",
        keys: 1000,
        keys_short: 1000,
        elements: 1000,
        command: ("RPUSH", "l:"),
        words: |i| vec![i.to_string()],
        at_most: "1.00",
    },
];

/// Growth of the process per element. Each layout is measured on a separate server.
pub(super) fn rows(stage: &mut Stage<'_>) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for kept in KEPT {
        rows.extend(stage.alone(&[], |subject, size, _| {
            let keys = size.pick(kept.keys_short, kept.keys);
            let rss = || subject.usage().map(|usage| usage.rss_bytes);
            let before = rss();
            kept.fill(&mut Filler::new(subject)?, keys)?;
            let bytes = rss().zip(before).map(|(after, before)| {
                after.saturating_sub(before) as f64 / (keys * kept.elements) as f64
            });
            Ok(vec![Measurement::less(
                format!("memory: {} ({})", kept.what, kept.at_most),
                "bytes",
                bytes,
            )])
        })?);
    }
    Ok(rows)
}

impl Kept {
    fn fill(&self, filler: &mut Filler, keys: u64) -> Result<(), String> {
        for key in 0..keys {
            for first in (0..self.elements).step_by(AT_ONCE as usize) {
                let mut words = vec![self.command.0.to_owned(), self.key(key)];
                let these = first..(first + AT_ONCE).min(self.elements);
                words.extend(these.flat_map(|i| (self.words)(i)));
                filler.add(&words)?;
            }
        }
        filler.flush()
    }

    /// The key with this number. It has 16 bytes if keys are measured.
    fn key(&self, key: u64) -> String {
        let (_, start) = self.command;
        if self.elements == 1 { format!("{start}{key:012}") } else { format!("{start}{key}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_the_sizes_that_are_promised() {
        let strings = &KEPT[0];
        assert_eq!((strings.key(9_999_999).len(), (strings.words)(0)[0].len()), (16, 8));
        for kept in KEPT {
            let all: std::collections::BTreeSet<String> =
                (0..kept.elements).filter_map(|i| (kept.words)(i).into_iter().next()).collect();
            // The first arguments of all elements differ, so no element is written twice.
            assert_eq!(all.len() as u64, kept.elements, "{}", kept.what);
        }
    }
}
