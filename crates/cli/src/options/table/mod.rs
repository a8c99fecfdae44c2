//! All options: their names, values, descriptions, and effects. The parser uses this table, and `--help`, the manual
//! page and the shell completions are generated from it.
//!
//! | file | options |
//! |---|---|
//! | `server.rs` | the server, the user, and TLS |
//! | `commands.rs` | sending commands, and the format of replies |
//! | `modes.rs` | keys and data, scripts, measuring |
//! | `own.rs` | the program's own commands, such as `top`, and their options |
//! | `clusters.rs` | `--cluster` and related options; options about the program |

mod clusters;
mod commands;
mod modes;
pub(crate) mod own;
mod server;

use super::parse::Words;
use super::{ArgsError, Options};

/// The effect of an option.
#[derive(Clone, Copy)]
pub(crate) enum OptionAction {
    /// Takes no value.
    Flag(fn(&mut Options)),
    /// Takes the following arguments that it needs.
    Value(fn(&mut Options, &mut Words) -> Result<(), ArgsError>),
    /// The program prints a text about itself, and exits.
    Prints(InfoRequest),
}

/// The texts about the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InfoRequest {
    Help,
    Version,
    Manual,
    /// Completions for the shell in the next argument.
    Completions,
}

/// The values that a shell can complete after an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completed {
    /// None.
    Nothing,
    File,
    Directory,
    /// One of these.
    Word(&'static [&'static str]),
    /// A command of `--cluster`.
    ClusterCommand,
}

/// An option.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) names: &'static [&'static str],
    /// Names that are accepted but not shown.
    pub(crate) old_names: &'static [&'static str],
    /// Its value, such as `<host>`; empty for a flag.
    pub(crate) value: &'static str,
    pub(crate) completed: Completed,
    pub(crate) text: &'static str,
    pub(crate) does: OptionAction,
}

impl Row {
    const fn flag(
        names: &'static [&'static str],
        text: &'static str,
        set: fn(&mut Options),
    ) -> Row {
        let completed = Completed::Nothing;
        Row { names, old_names: &[], value: "", completed, text, does: OptionAction::Flag(set) }
    }

    const fn value(
        names: &'static [&'static str],
        value: &'static str,
        text: &'static str,
        set: fn(&mut Options, &mut Words) -> Result<(), ArgsError>,
    ) -> Row {
        let completed = Completed::Nothing;
        Row { names, old_names: &[], value, completed, text, does: OptionAction::Value(set) }
    }

    const fn completed(self, completed: Completed) -> Row {
        Row { completed, ..self }
    }

    const fn also(self, old_names: &'static [&'static str]) -> Row {
        Row { old_names, ..self }
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(&name) || self.old_names.contains(&name)
    }
}

/// A group of related options.
#[derive(Clone, Copy)]
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) rows: &'static [Row],
}

/// All options, in the order of the help.
pub(crate) const SECTIONS: &[Section] = &[
    server::SERVER,
    server::TLS,
    commands::SENT,
    commands::SHOWN,
    modes::KEYS,
    modes::SCRIPTS,
    modes::MEASURING,
    own::OWN,
    clusters::CLUSTERS,
    clusters::PROGRAM,
];

/// The option with this name.
pub(super) fn find(name: &str) -> Option<&'static Row> {
    SECTIONS.iter().flat_map(|section| section.rows).find(|row| row.has(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_names_are_unique_and_every_option_is_explained() {
        let mut seen = std::collections::BTreeSet::new();
        for row in SECTIONS.iter().flat_map(|section| section.rows) {
            for name in row.names.iter().chain(row.old_names) {
                assert!(name.starts_with('-') && seen.insert(*name), "{name}");
            }
            assert!(row.text.ends_with('.') && row.text.is_ascii(), "{}", row.text);
            let takes = !matches!(row.does, OptionAction::Flag(_) | OptionAction::Prints(_));
            assert!(!takes || !row.value.is_empty(), "{:?}", row.names);
        }
    }
}
