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

const THEMES: [&[Directive]; 11] = [
    network::DIRECTIVES,
    clients::DIRECTIVES,
    process::DIRECTIVES,
    memory::DIRECTIVES,
    encoding::DIRECTIVES,
    observe::DIRECTIVES,
    security::DIRECTIVES,
    persistence::DIRECTIVES,
    replication::DIRECTIVES,
    cluster::DIRECTIVES,
    tls::DIRECTIVES,
];

/// All directives, theme by theme.
pub fn all() -> impl Iterator<Item = &'static Directive> {
    THEMES.into_iter().flatten()
}

/// The directive of this name or alias, in any case of letters. O(directives).
pub fn find(name: &[u8]) -> Option<&'static Directive> {
    all().find(|row| row.names().any(|known| known.as_bytes().eq_ignore_ascii_case(name)))
}
