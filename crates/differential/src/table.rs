//! The commands that a stream draws from: those of the command table, with each container replaced by its subcommands.

use brisk_engine::command::{CommandOf, Spec};

/// One callable command.
#[derive(Debug, Clone)]
pub struct Row {
    /// The name in COMMAND, for example `get` or `client|setname`.
    pub name: String,
    /// The arguments that a call begins with: the name, and the subcommand if there is one.
    pub words: Vec<&'static str>,
    pub spec: &'static Spec,
}

/// All callable commands.
#[derive(Debug, Clone, Default)]
pub struct Table {
    pub rows: Vec<Row>,
}

impl Table {
    /// Adds the commands of a table, regardless of the type of their functions.
    pub fn add<R: 'static>(&mut self, commands: impl IntoIterator<Item = &'static CommandOf<R>>) {
        for command in commands {
            self.add_spec(&command.spec);
            for sub in command.subcommands {
                self.rows.push(Row {
                    name: format!("{}|{}", command.spec.name, sub.spec.name),
                    words: vec![command.spec.name, sub.spec.name],
                    spec: &sub.spec,
                });
            }
        }
    }

    /// Adds one command without its subcommands. A container itself only returns errors, which should be compared too.
    pub fn add_spec(&mut self, spec: &'static Spec) {
        self.rows.push(Row { name: spec.name.to_owned(), words: vec![spec.name], spec });
    }

    /// Keeps only the commands that `keep` accepts, by name.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.rows.retain(|row| keep(&row.name));
    }
}
