//! The table of directives, by theme. A theme's file contains the struct of its settings and the
//! rows with their names, types and defaults. A new setting therefore takes one field and one row
//! in one file.

pub mod clients;
pub mod cluster;
pub mod encoding;
pub mod memory;
pub mod network;
pub mod observe;
pub mod persistence;
pub mod process;
pub mod replication;
pub mod security;
pub mod tls;

use super::directive::Directive;

/// A part of the table, with its heading in the configuration file.
#[derive(Clone, Copy)]
pub struct Theme {
    /// The common subject of its directives.
    pub title: &'static str,
    /// Its directives.
    pub rows: &'static [Directive],
}

/// All parts, in the order of the configuration file.
pub const THEMES: [Theme; 15] = [
    Theme { title: "Network", rows: network::DIRECTIVES },
    Theme { title: "TLS", rows: tls::DIRECTIVES },
    Theme { title: "Process and files", rows: process::SERVICE },
    Theme { title: "Workers and threads", rows: process::THREADS },
    Theme { title: "Log", rows: process::LOG },
    Theme { title: "Clients", rows: clients::DIRECTIVES },
    Theme { title: "Security", rows: security::DIRECTIVES },
    Theme { title: "Memory", rows: memory::DIRECTIVES },
    Theme { title: "Snapshots", rows: persistence::SNAPSHOTS },
    Theme { title: "Append-only file", rows: persistence::APPEND_ONLY },
    Theme { title: "Replication", rows: replication::DIRECTIVES },
    Theme { title: "Slow log, latency and notifications", rows: observe::DIRECTIVES },
    Theme { title: "Encodings of values", rows: encoding::DIRECTIVES },
    Theme { title: "Cluster", rows: cluster::DIRECTIVES },
    Theme { title: "Advanced", rows: process::ADVANCED },
];

/// Makes a row without a description a compile-time error.
const _: () = {
    let mut theme = 0;
    while theme < THEMES.len() {
        let mut row = 0;
        while row < THEMES[theme].rows.len() {
            assert!(!THEMES[theme].rows[row].about.is_empty(), "a directive lacks its `about`");
            row += 1;
        }
        theme += 1;
    }
};

/// All directives, theme by theme.
pub fn all() -> impl Iterator<Item = &'static Directive> {
    THEMES.into_iter().flat_map(|theme| theme.rows)
}

/// Maximum number of edits between a mistyped name and the intended one, and the number of letters
/// that a name needs per edit: short names are too similar to one another.
const EDITS_MAX: usize = 2;
const LETTERS_PER_EDIT: usize = 4;

/// Returns the known name that is closest to an unknown one, if one is close enough. Ignores case,
/// and treats `_` as `-`. O(directives) for names that are no longer than the directives' names.
pub(super) fn nearest(unknown: &[u8]) -> Option<&'static str> {
    let unknown: Vec<u8> = unknown
        .iter()
        .map(|byte| if *byte == b'_' { b'-' } else { byte.to_ascii_lowercase() })
        .collect();
    let allowed = EDITS_MAX.min(unknown.len() / LETTERS_PER_EDIT);
    let names = all().filter(|row| !row.hidden).flat_map(Directive::names);
    names
        .filter(|name| name.len().abs_diff(unknown.len()) <= allowed)
        .map(|name| (edits(name.as_bytes(), &unknown), name))
        .filter(|(edits, _)| *edits <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// Returns the edit distance: letters inserted, deleted, replaced, or swapped with the next one.
fn edits(one: &[u8], other: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, wanted) in other.iter().enumerate() {
            let replaced = row[j] + usize::from(letter != wanted);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == *wanted {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[other.len()]
}

/// Returns the directive with this name or alias, ignoring case. O(directives).
pub fn find(name: &[u8]) -> Option<&'static Directive> {
    all().find(|row| row.names().any(|known| known.as_bytes().eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_leads_to_the_directive_that_was_meant() {
        for (typed, meant) in [
            ("maxmemroy", "maxmemory"),
            ("maxmemry", "maxmemory"),
            ("MaxMemoryy", "maxmemory"),
            ("maxmemory_policy", "maxmemory-policy"),
            ("tcp_backlog", "tcp-backlog"),
            ("apendonly", "appendonly"),
            ("requirpass", "requirepass"),
            ("slaveoff", "slaveof"),
            ("prot", "port"),
            ("bnd", ""),
            ("x", ""),
            ("", ""),
            ("maxmem", ""),
            ("nonsense", ""),
        ] {
            let found = nearest(typed.as_bytes()).unwrap_or_default();
            assert_eq!(found, meant, "{typed}");
        }
        assert_eq!(nearest(&vec![b'x'; 1 << 20]), None);
        assert_eq!(nearest(b"maxmem\xffory"), Some("maxmemory"));
    }
}
