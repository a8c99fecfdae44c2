//! The command table: the specifications of all commands, found by name.
//!
//! The rows of this crate's commands contain their functions. The functions of commands that need a
//! session or the server stay with the code that builds the table. The row of such a command
//! contains the index of its function.

use crate::call::ctx::{self, Handler};
use crate::command::{Begin, CommandOf, Find, Flags, KeyFlags, KeySpec, Spec};

/// A command with everything that the dispatcher needs.
#[derive(Debug)]
pub struct Row {
    /// Dense number, the index into statistics.
    pub id: usize,
    /// `get`, or `client|list`.
    pub name: String,
    /// The folded name, if it identifies the name.
    letters: Option<u64>,
    pub spec: &'static Spec,
    pub parent: Option<&'static Spec>,
    pub run: Run,
    pub keys: KeyPlan,
    /// True if the command may look up keys whose names are made from values.
    pub looks_up_keys: bool,
    pub subcommands: Vec<Row>,
}

/// The code that executes a command.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    /// A data command: it locks its slots and uses only the keyspace.
    Data(Handler),
    /// A command that needs the session or the server: the index of its function in the list
    /// returned by [`CommandTable::build`].
    Server(u16),
}

/// The method for finding the keys of a request, determined once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlan {
    None,
    /// Argument 1, and nothing else: most commands.
    First,
    /// By the key specifications.
    Specs,
}

/// Size of the name index: a power of two, several times the number of commands.
const INDEX_LEN: usize = 2048;
/// Maximum number of commands and subcommands.
pub const ROWS_MAX: usize = 1024;
const NO_ROW: u16 = u16::MAX;

/// All commands.
#[derive(Debug)]
pub struct CommandTable {
    rows: Vec<Row>,
    /// Commands that `rename-command` has removed. Access rules may still name them.
    removed: Vec<Row>,
    index: Box<[u16]>,
    ids: usize,
}

impl CommandTable {
    /// Builds the table of this crate's commands and of `server`, which need the session or the
    /// server. `renamed` has the names set by `rename-command`: a new name, or an empty one that
    /// removes the command. Also returns the functions of `server`, at the indexes that
    /// [`Run::Server`] contains.
    ///
    /// # Errors
    /// The fault in a name, with Redis's wording.
    pub fn build<R: Copy + 'static>(
        server: impl Iterator<Item = &'static CommandOf<R>>,
        renamed: &[(String, String)],
    ) -> Result<(CommandTable, Vec<R>), String> {
        let mut handlers = Vec::new();
        let mut table = CommandTable {
            rows: Vec::new(),
            removed: Vec::new(),
            index: vec![NO_ROW; INDEX_LEN].into(),
            ids: 0,
        };
        for command in crate::commands::all() {
            let row = table.row(command, None, &mut Run::Data);
            table.rows.push(row);
        }
        for command in server {
            let row = table.row(command, None, &mut |handler| {
                handlers.push(handler);
                Run::Server((handlers.len() - 1) as u16)
            });
            table.rows.push(row);
        }
        table.rows.sort_by(|a, b| a.name.cmp(&b.name));
        assert!(table.ids <= ROWS_MAX, "sets of commands have a bit for each");
        table.rename(renamed)?;
        for (at, row) in table.rows.iter_mut().enumerate() {
            let name = row.name.as_bytes();
            row.letters = folds_uniquely(name).then(|| fold(name));
            let mut place = place_of(fold(row.name.as_bytes()), row.name.len());
            while table.index[place] != NO_ROW {
                place = (place + 1) % INDEX_LEN;
            }
            table.index[place] = at as u16;
        }
        Ok((table, handlers))
    }

    fn row<R: Copy>(
        &mut self,
        command: &'static CommandOf<R>,
        parent: Option<&'static Spec>,
        run: &mut dyn FnMut(R) -> Run,
    ) -> Row {
        let spec = &command.spec;
        let id = self.ids;
        self.ids += 1;
        Row {
            id,
            name: ctx::full_name(parent, spec).into_owned(),
            letters: None,
            spec,
            parent,
            run: run(command.run),
            keys: key_plan(spec),
            looks_up_keys: spec.keys.iter().any(is_of_values),
            subcommands: command
                .subcommands
                .iter()
                .map(|subcommand| self.row(subcommand, Some(spec), run))
                .collect(),
        }
    }

    fn rename(&mut self, renamed: &[(String, String)]) -> Result<(), String> {
        for (from, to) in renamed {
            let named = |row: &Row, name: &str| row.name.eq_ignore_ascii_case(name);
            let Some(at) = self.rows.iter().position(|row| named(row, from)) else {
                return Err("No such command in rename-command".to_owned());
            };
            if to.is_empty() {
                let row = self.rows.remove(at);
                self.removed.push(row);
            } else if self.rows.iter().any(|row| named(row, to)) {
                return Err("Target command name already exists".to_owned());
            } else {
                self.rows[at].name = to.to_ascii_lowercase();
            }
        }
        Ok(())
    }

    /// The command with this name, ignoring case. O(1).
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&Row> {
        let letters = fold(name);
        let mut place = place_of(letters, name.len());
        loop {
            let at = self.index[place];
            if at == NO_ROW {
                return None;
            }
            let row = &self.rows[at as usize];
            let is_it = match row.letters {
                Some(own) => own == letters && row.name.len() == name.len(),
                None => row.name.as_bytes().eq_ignore_ascii_case(name),
            };
            if is_it {
                return Some(row);
            }
            place = (place + 1) % INDEX_LEN;
        }
    }

    /// The command or subcommand with a full name such as `client|list`.
    pub fn find_full(&self, name: &[u8]) -> Option<&Row> {
        let mut words = name.splitn(2, |&byte| byte == b'|');
        let row = self.find(words.next()?)?;
        match words.next() {
            None => Some(row),
            Some(subcommand) => row.subcommand(subcommand),
        }
    }

    /// All commands with the names that they had before `rename-command`, including removed ones,
    /// in no particular order.
    pub fn original(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().chain(&self.removed)
    }

    /// The command or subcommand whose full name before `rename-command` was this one, such as
    /// `client|list`. O(commands).
    pub fn find_original(&self, name: &[u8]) -> Option<&Row> {
        let mut words = name.split(|&byte| byte == b'|');
        let first = words.next()?;
        let row =
            self.original().find(|row| row.spec.name.as_bytes().eq_ignore_ascii_case(first))?;
        match (words.next(), words.next()) {
            (None, _) => Some(row),
            (Some(subcommand), None) => row.subcommand(subcommand),
            (Some(_), Some(_)) => None,
        }
    }

    /// The command with this specification, and its container. O(commands).
    pub fn find_spec(
        &self,
        (spec, parent): (&'static Spec, Option<&'static Spec>),
    ) -> Option<&Row> {
        let name = ctx::full_name(parent, spec);
        self.find_original(name.as_bytes())
    }

    /// All commands sorted by name, with subcommands inside their containers.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// All commands and subcommands.
    pub fn all(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flat_map(|row| std::iter::once(row).chain(&row.subcommands))
    }

    /// The greatest row id plus one.
    pub fn id_count(&self) -> usize {
        self.ids
    }
}

impl Row {
    /// The subcommand with this name, ignoring case.
    pub fn subcommand(&self, word: &[u8]) -> Option<&Row> {
        self.subcommands.iter().find(|row| row.spec.name.as_bytes().eq_ignore_ascii_case(word))
    }

    /// The name before `rename-command`.
    pub fn full_name(&self) -> &str {
        if self.parent.is_some() { &self.name } else { self.spec.name }
    }

    #[inline]
    pub fn is_container(&self) -> bool {
        !self.subcommands.is_empty()
    }

    #[inline]
    pub fn has(&self, flags: Flags) -> bool {
        self.spec.flags.contains(flags)
    }

    /// False for administration commands, which monitors do not see.
    pub fn is_monitored(&self) -> bool {
        !self.has(Flags::SKIP_MONITOR) && !self.has(Flags::ADMIN)
    }
}

/// Reports whether the names of these keys depend on values, so that the keys are not among the
/// arguments.
fn is_of_values(keys: &KeySpec) -> bool {
    matches!(keys.begin, Begin::Unknown) && keys.finder.is_none()
}

fn key_plan(spec: &Spec) -> KeyPlan {
    match spec.keys {
        [] => KeyPlan::None,
        [only]
            if matches!(only.begin, Begin::Index(1))
                && matches!(only.find, Find::Range { last: 0, .. })
                && !only.flags.contains(KeyFlags::NOT_KEY) =>
        {
            KeyPlan::First
        }
        _ => KeyPlan::Specs,
    }
}

/// The letters of a name in lower case: the whole name if it has at most eight letters, otherwise
/// its first eight. It uses overlapping loads of a fixed size, because a copy of variable length
/// would be a function call.
#[inline]
fn fold(name: &[u8]) -> u64 {
    let letters = if let Some(first) = name.first_chunk() {
        u64::from_le_bytes(*first)
    } else if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
    } else {
        let at = |at: usize| u64::from(name.get(at).copied().unwrap_or_default());
        at(0) << 16 | at(1) << 8 | at(2)
    };
    letters | 0x2020_2020_2020_2020
}

/// The start of the search for a name with these letters and this length.
#[inline]
fn place_of(letters: u64, len: usize) -> usize {
    let mixed = (letters ^ (len as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (64 - INDEX_LEN.trailing_zeros())) as usize
}

/// Reports whether [`fold`] distinguishes this name from all others of its length. It drops a bit
/// that matters for all characters except letters.
fn folds_uniquely(name: &[u8]) -> bool {
    name.len() <= 8 && name.iter().all(u8::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_commands_are_found_in_any_case() {
        let (table, _) = CommandTable::build::<Handler>(std::iter::empty(), &[]).unwrap();
        for row in table.rows() {
            let name = row.name.as_bytes();
            assert_eq!(table.find(name).map(|found| found.id), Some(row.id));
            assert_eq!(table.find(&name.to_ascii_uppercase()).map(|found| found.id), Some(row.id));
            for at in 0..name.len() {
                for bit in 0..8 {
                    let mut other = name.to_vec();
                    other[at] ^= 1 << bit;
                    let folded = String::from_utf8_lossy(&other).to_ascii_lowercase();
                    let wanted = table.rows().iter().find(|row| row.name == folded);
                    assert_eq!(
                        table.find(&other).map(|found| found.id),
                        wanted.map(|row| row.id),
                        "{folded:?}"
                    );
                }
                assert_ne!(table.find(&name[..at]).map(|found| found.id), Some(row.id));
            }
            assert!(table.find(&[name, b" "].concat()).is_none());
        }
        assert!(table.find(b"").is_none());
    }
}
