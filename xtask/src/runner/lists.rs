//! The lists of the runner. They are files in the source tree, with tab-separated fields.
//!
//! | file | fields |
//! |---|---|
//! | `seconds.tsv` | group, its duration in seconds: the longest groups start first |
//! | `serial.tsv` | group, reason: the group runs alone, after all others |
//! | `retried.tsv` | test, date, reason: the test is retried once if it fails |

use crate::steps::workspace_root;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// Assumed seconds of a group that is not in the list.
const SECONDS_UNKNOWN: f64 = 10.0;

/// The lists.
#[derive(Debug, Default)]
pub(super) struct Lists {
    seconds: BTreeMap<String, f64>,
    serial: Vec<String>,
    retried: Vec<String>,
}

impl Lists {
    pub(super) fn read() -> Result<Lists> {
        let read = |name: &str| {
            let path = path(name);
            fs::read_to_string(&path).with_context(|| path.display().to_string())
        };
        Lists::parse(&read("seconds.tsv")?, &read("serial.tsv")?, &read("retried.tsv")?)
    }

    fn parse(seconds: &str, serial: &str, retried: &str) -> Result<Lists> {
        let mut lists = Lists::default();
        for [group, seconds] in rows("seconds.tsv", seconds)? {
            let seconds = seconds.parse().with_context(|| format!("seconds.tsv: {group}"))?;
            lists.seconds.insert(group.to_owned(), seconds);
        }
        for [group, _reason] in rows("serial.tsv", serial)? {
            lists.serial.push(group.to_owned());
        }
        for [test, _date, _reason] in rows("retried.tsv", retried)? {
            lists.retried.push(test.to_owned());
        }
        Ok(lists)
    }

    pub(super) fn seconds(&self, group: &str) -> f64 {
        self.seconds.get(group).copied().unwrap_or(SECONDS_UNKNOWN)
    }

    pub(super) fn is_serial(&self, group: &str) -> bool {
        self.serial.iter().any(|name| name == group)
    }

    pub(super) fn is_retried(&self, test: &str) -> bool {
        self.retried.iter().any(|name| name == test)
    }

    /// Names in `serial.tsv` and `retried.tsv` that do not exist any more.
    pub(super) fn stale(&self, exists: impl Fn(&str) -> bool) -> Vec<&str> {
        let names = self.serial.iter().chain(&self.retried).map(String::as_str);
        names.filter(|name| !exists(name)).collect()
    }
}

/// Writes `seconds.tsv`, the longest group first.
pub(super) fn record_seconds(mut groups: Vec<(String, f64)>) -> Result<()> {
    groups.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut text = String::from("# `cargo xtask test --record` writes this file.\n");
    for (group, seconds) in groups {
        writeln!(text, "{group}\t{seconds:.1}")?;
    }
    let path = path("seconds.tsv");
    fs::write(&path, text).with_context(|| path.display().to_string())
}

fn path(name: &str) -> PathBuf {
    workspace_root().join("xtask/src/runner").join(name)
}

/// The rows of a list. Lines that begin with `#` are comments.
fn rows<'t, const N: usize>(name: &str, text: &'t str) -> Result<Vec<[&'t str; N]>> {
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        match <[&str; N]>::try_from(fields) {
            Ok(row) if row.iter().all(|field| !field.is_empty()) => rows.push(row),
            _ => bail!("{name}: a line needs {N} fields separated by tabs: {line}"),
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_gives_seconds_and_names() {
        let lists =
            Lists::parse("# x\na/b\t2.5\n", "a/c\tclocks\n", "a/b::t\t2026-01-01\tslow disk\n");
        let lists = lists.unwrap();
        assert_eq!((lists.seconds("a/b"), lists.seconds("a/z")), (2.5, SECONDS_UNKNOWN));
        assert!(lists.is_serial("a/c") && !lists.is_serial("a/b"));
        assert!(lists.is_retried("a/b::t") && !lists.is_retried("a/b"));
        assert_eq!(lists.stale(|name| name == "a/c"), ["a/b::t"]);
    }

    #[test]
    fn a_test_is_retried_only_for_a_reason() {
        assert!(Lists::parse("", "", "a/b::t\t2026-01-01\n").is_err());
        assert!(Lists::parse("", "", "a/b::t\t2026-01-01\t\n").is_err());
        assert!(Lists::parse("", "a/c\n", "").is_err());
        assert!(Lists::parse("a/b\tmany\n", "", "").is_err());
    }

    #[test]
    fn the_lists_of_the_tree_can_be_read() {
        Lists::read().unwrap();
    }
}
