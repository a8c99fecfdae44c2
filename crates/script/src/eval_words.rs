//! KEYS and ARGV of EVAL.
//!
//! Scripts cannot store references to these tables, so all runs reuse the same two tables, which
//! are filled again for each run. Changes that a script made to them are undone. After some runs
//! the tables are replaced, which frees the memory that a script made them allocate.

use mlua::{BString, Either, Function, Lua, Result, Table};

/// Number of runs that share two tables. If one run makes the tables grow, the following runs pay
/// for that.
const RUNS_MAX: u32 = 32;
/// Maximum number of elements of a table that is reused.
const WORDS_KEPT_MAX: usize = 1024;

/// An argument that is passed to a script. A UTF-8 argument needs no handle.
pub(crate) fn handed(word: &[u8]) -> Either<&str, BString> {
    match std::str::from_utf8(word) {
        Ok(text) => Either::Left(text),
        Err(_) => Either::Right(BString::from(word)),
    }
}

/// Creates a table of arguments.
pub(crate) fn table_of<'a>(lua: &Lua, words: impl Iterator<Item = &'a [u8]>) -> Result<Table> {
    lua.create_sequence_from(words.map(handed))
}

/// True if a script's text may assign to KEYS or ARGV by these names. That is an error in Redis,
/// where they are globals. The result may be wrong for a text that hides the assignment with a
/// comment: this script then gets two tables that it may assign to. O(source)
pub(crate) fn may_assign(source: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut at = 0;
    while at < source.len() {
        let len = source[at..].iter().take_while(|byte| is_word(byte)).count();
        let (word, after) = source[at..].split_at(len);
        if matches!(word, b"KEYS" | b"ARGV") {
            // The blanks before a name follow the previous name, so each byte is checked at most
            // twice.
            let before = trim_end(&source[..at]);
            let after = trim_start(after);
            let assigns = match after {
                [b'=', b'=', ..] => false,
                [b',', ..] if matches!(before, [.., b'#' | b'(' | b'{']) => false,
                // A comma may separate several targets, a comment may hide more of the assignment,
                // and Luau has compound assignments.
                [b'=' | b',', ..] | [b'-', b'-', ..] | [b'.', b'.', b'=', ..] => true,
                [b'+' | b'-' | b'*' | b'/' | b'%' | b'^', b'=' | b'/', ..] => true,
                _ => before.ends_with(b"function"),
            };
            if assigns {
                return true;
            }
        }
        at += len.max(1);
    }
    false
}

/// True for bytes that Lua skips between tokens.
fn is_space(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || *byte == b'\x0b'
}

fn trim_start(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(byte)).count();
    &text[spaces..]
}

fn trim_end(text: &[u8]) -> &[u8] {
    let spaces = text.iter().rev().take_while(|byte| is_space(byte)).count();
    &text[..text.len() - spaces]
}

/// The two tables.
pub(crate) struct EvalWords {
    /// Makes the prelude use two new tables, and returns them.
    renew: Function,
    keys: Table,
    argv: Table,
    runs: u32,
}

impl EvalWords {
    pub(crate) fn new(renew: Function) -> Result<EvalWords> {
        let (keys, argv) = renew.call(())?;
        Ok(EvalWords { renew, keys, argv, runs: 0 })
    }

    /// Fills the tables with these arguments and nothing else. O(arguments + the size to which runs
    /// have made the tables grow since they were last replaced).
    pub(crate) fn fill<'a>(
        &mut self,
        keys: impl Iterator<Item = &'a [u8]>,
        argv: impl Iterator<Item = &'a [u8]>,
    ) -> Result<()> {
        self.runs += 1;
        let large = self.keys.raw_len().max(self.argv.raw_len()) > WORDS_KEPT_MAX;
        if large || self.runs > RUNS_MAX {
            (self.keys, self.argv) = self.renew.call(())?;
            self.runs = 0;
        }
        fill(&self.keys, keys)?;
        fill(&self.argv, argv)
    }

    /// Makes the next run use two new tables.
    pub(crate) fn forget(&mut self) {
        self.runs = RUNS_MAX;
    }
}

fn fill<'a>(table: &Table, words: impl Iterator<Item = &'a [u8]>) -> Result<()> {
    if table.metatable().is_some() {
        table.set_metatable(None)?;
    }
    table.clear()?;
    for (at, word) in words.enumerate() {
        table.raw_set(at + 1, handed(word))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::may_assign;

    #[test]
    fn assignments_to_keys_and_argv_are_seen() {
        for source in [
            "KEYS = {}",
            "KEYS\x0b= {}",
            "ARGV={'x'}",
            "local x KEYS, x = {}, 1",
            "x, ARGV\n=\n1, {}",
            "KEYS --[[ ]] = {}",
            "function KEYS() end",
            "KEYS ..= 'x'",
            "ARGV -= 1",
        ] {
            assert!(may_assign(source.as_bytes()), "{source}");
        }
        for source in [
            "return KEYS",
            "KEYS[1] = ARGV[1]",
            "if KEYS == nil then end",
            "return {#KEYS, ARGV[1]}",
            "KEYS[#KEYS + 1] = 'x'",
            "MY_KEYS = 1",
            "KEYS2 = 1",
            "return ARGV[1] .. KEYS[1], ARGV[1] - 1",
            "return redis.call('GET', KEYS[1])",
            "for _, key in ipairs(KEYS) do end",
        ] {
            assert!(!may_assign(source.as_bytes()), "{source}");
        }
    }
}
