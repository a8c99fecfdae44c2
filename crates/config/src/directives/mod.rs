//! The table of directives, by theme. A theme's file holds the struct of its settings and the rows
//! that name, type and default them: a new setting is one field and one row, in one file.

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

/// A part of the table, under the heading that it has in the configuration file.
#[derive(Clone, Copy)]
pub struct Theme {
    /// What its directives have in common.
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

/// A row without a sentence about it does not compile.
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

/// The directive of this name or alias, in any case of letters. O(directives).
pub fn find(name: &[u8]) -> Option<&'static Directive> {
    all().find(|row| row.names().any(|known| known.as_bytes().eq_ignore_ascii_case(name)))
}
