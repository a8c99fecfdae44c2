//! The commands that the program itself handles, and their options.

use super::super::parse::Words;
use super::super::{ArgsError, Mode, Options, TopTable};
use super::{Completed, Row, Section};

/// A command of the program. No server has a command with its name.
pub(crate) struct OwnCommand {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static str,
    /// A sentence without its subject and its period.
    pub(crate) text: &'static str,
    pub(crate) mode: Mode,
}

/// The commands, in the order of the help.
pub(crate) const COMMANDS: &[OwnCommand] = &[
    OwnCommand {
        name: "analyze",
        arguments: "[file] [option ...]",
        text: "Reports memory use by key pattern and how to reduce it, for a server or a file; see \
               brisk-cli analyze --help",
        mode: Mode::Analyze,
    },
    OwnCommand {
        name: "top",
        arguments: "",
        text: "Shows the commands, clients, keys or workers that keep the server busy",
        mode: Mode::Top,
    },
    OwnCommand {
        name: "doctor",
        arguments: "",
        text: "Checks a running server for problems, and says what to do; the exit code is 1 if there is one",
        mode: Mode::Doctor,
    },
    OwnCommand {
        name: "peek",
        arguments: "key ...",
        text: "Shows values of any type, with their encoding, memory and TTL",
        mode: Mode::Peek,
    },
    OwnCommand {
        name: "migrate",
        arguments: "redis://old redis://new",
        text: "Makes the new server a replica of the old one, compares them, and switches over",
        mode: Mode::Migrate,
    },
];

/// The command with this name.
pub(crate) fn find(word: &[u8]) -> Option<&'static OwnCommand> {
    COMMANDS.iter().find(|command| word.eq_ignore_ascii_case(command.name.as_bytes()))
}

impl Mode {
    /// Reports whether a command of the program selects this mode.
    pub(crate) fn is_own(&self) -> bool {
        COMMANDS.iter().any(|command| command.mode == *self)
    }
}

const TABLES: [(&str, TopTable); 5] = [
    ("commands", TopTable::Commands),
    ("clients", TopTable::Clients),
    ("slowlog", TopTable::SlowLog),
    ("keys", TopTable::Keys),
    ("workers", TopTable::Workers),
];

pub(super) const OWN: Section = Section {
    title: "Options of the program's own commands",
    rows: &[
        Row::value(
            &["--table"],
            "<name>",
            "The first table of top: commands, clients, slowlog, keys or workers (commands).",
            table,
        )
        .completed(Completed::Word(&["commands", "clients", "slowlog", "keys", "workers"])),
        Row::flag(
            &["--all"],
            "peek shows the whole value; the default is the beginning.",
            |options| options.all = true,
        ),
        Row::flag(&["--switch"], "migrate switches over without a question.", |options| {
            options.migrate.switches = true
        }),
        Row::flag(
            &["--back"],
            "migrate makes the old server a replica of the new one, as the way back.",
            |options| options.migrate.goes_back = true,
        ),
    ],
};

fn table(options: &mut Options, words: &mut Words) -> Result<(), ArgsError> {
    let name = words.text();
    let found = TABLES.iter().find(|(known, _)| *known == name);
    let unknown = format!(
        "Unknown table '{name}' (valid: 'commands', 'clients', 'slowlog', 'keys', 'workers')\n"
    );
    options.top_table = found.ok_or(ArgsError::Because(unknown))?.1;
    Ok(())
}
