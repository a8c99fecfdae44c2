//! A selector: one set of permissions. A command may run if one selector of its user allows the
//! command with all its keys and channels.

use super::rule::{RuleError, Vocabulary, has_spaces};
use brisk_config::choice::PubsubDefault;
use brisk_engine::command::{Categories, KeyFlags};
use brisk_engine::glob::{self, Case};
use brisk_engine::table::{ROWS_MAX, Row};

/// A set of commands, by row id. A test is a shift and a mask.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CommandSet([u64; ROWS_MAX / 64]);

impl CommandSet {
    const NONE: CommandSet = CommandSet([0; ROWS_MAX / 64]);
    const ALL: CommandSet = CommandSet([u64::MAX; ROWS_MAX / 64]);

    #[inline]
    fn has(&self, id: usize) -> bool {
        self.0[id / 64] >> (id % 64) & 1 != 0
    }

    fn put(&mut self, id: usize, allowed: bool) {
        let bit = 1 << (id % 64);
        if allowed {
            self.0[id / 64] |= bit;
        } else {
            self.0[id / 64] &= !bit;
        }
    }
}

/// The access to keys that match a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access(u8);

impl Access {
    const NONE: Access = Access(0);
    const READ: Access = Access(1);
    const WRITE: Access = Access(2);
    const ALL: Access = Access(3);

    fn contains(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the access that a command with these key flags needs.
    pub(super) fn needed(flags: KeyFlags) -> Access {
        let changes = KeyFlags::INSERT.union(KeyFlags::DELETE).union(KeyFlags::UPDATE);
        let read = if flags.contains(KeyFlags::ACCESS) { Access::READ.0 } else { 0 };
        let write = if flags.intersects(changes) { Access::WRITE.0 } else { 0 };
        Access(read | write)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyPattern {
    pattern: Box<[u8]>,
    access: Access,
}

/// The latest rule about a command, kept for display.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CommandRule {
    allows: bool,
    /// In lower case: `get`, `config|get`, `@hash`.
    what: Box<[u8]>,
}

/// One set of permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    pub(super) all_keys: bool,
    pub(super) all_channels: bool,
    /// True if every command is allowed and none was removed since `+@all`.
    pub(super) all_commands: bool,
    /// True if the last rule about all commands was `+@all`.
    starts_with_all: bool,
    commands: CommandSet,
    /// Commands that are allowed only with one of these first arguments, by row id.
    first_args: Vec<(usize, Vec<Box<[u8]>>)>,
    keys: Vec<KeyPattern>,
    pub(super) channels: Vec<Box<[u8]>>,
    rules: Vec<CommandRule>,
}

impl Selector {
    /// Creates a selector that allows nothing except what `acl-pubsub-default` permits.
    pub fn new(channels: PubsubDefault) -> Selector {
        Selector {
            all_keys: false,
            all_channels: channels == PubsubDefault::AllChannels,
            all_commands: false,
            starts_with_all: false,
            commands: CommandSet::NONE,
            first_args: Vec::new(),
            keys: Vec::new(),
            channels: Vec::new(),
            rules: Vec::new(),
        }
    }

    /// Creates the selector of a rule `(…)` from the text between the parentheses.
    pub(super) fn of_words(
        words: &[u8],
        vocabulary: Vocabulary<'_>,
    ) -> Result<Selector, RuleError> {
        let mut selector = Selector::new(vocabulary.channels);
        let words = brisk_config::split_words(words).ok_or(RuleError::Syntax)?;
        for word in &words {
            selector.apply(word, vocabulary)?;
        }
        Ok(selector)
    }

    /// Applies one rule. If it returns an error, nothing has changed.
    pub fn apply(&mut self, rule: &[u8], vocabulary: Vocabulary<'_>) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        if is("allkeys") || is("~*") {
            self.all_keys = true;
            self.keys.clear();
        } else if is("resetkeys") {
            self.all_keys = false;
            self.keys.clear();
        } else if is("allchannels") || is("&*") {
            self.all_channels = true;
            self.channels.clear();
        } else if is("resetchannels") {
            self.all_channels = false;
            self.channels.clear();
        } else if is("allcommands") || is("+@all") {
            self.set_all_commands(true);
        } else if is("nocommands") || is("-@all") {
            self.set_all_commands(false);
        } else {
            match rule {
                [b'~' | b'%', ..] => self.add_keys(rule)?,
                [b'&', pattern @ ..] => self.add_channels(pattern)?,
                [sign @ (b'+' | b'-'), b'@', category @ ..] => {
                    self.set_category(category, *sign == b'+', vocabulary)?
                }
                [b'+', command @ ..] => self.allow_command(command, vocabulary)?,
                [b'-', command @ ..] => {
                    let row = vocabulary.table.find_original(command).ok_or(RuleError::Unknown)?;
                    self.set_command(row, false);
                    self.note(row.full_name().as_bytes(), false);
                }
                _ => return Err(RuleError::Syntax),
            }
        }
        Ok(())
    }

    fn set_all_commands(&mut self, allowed: bool) {
        self.all_commands = allowed;
        self.starts_with_all = allowed;
        self.commands = if allowed { CommandSet::ALL } else { CommandSet::NONE };
        self.first_args.clear();
        self.rules.clear();
    }

    /// `~pattern`, `%R~pattern`, `%W~pattern`, `%RW~pattern`.
    fn add_keys(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::KeyAfterAll);
        }
        let (access, pattern) = key_rule(rule)?;
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        match self.keys.iter_mut().find(|known| *known.pattern == *pattern) {
            Some(known) => known.access = Access(known.access.0 | access.0),
            None => self.keys.push(KeyPattern { pattern: pattern.into(), access }),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.all_channels {
            return Err(RuleError::ChannelAfterAll);
        }
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        if !self.channels.iter().any(|known| **known == *pattern) {
            self.channels.push(pattern.into());
        }
        Ok(())
    }

    fn set_category(
        &mut self,
        name: &[u8],
        allowed: bool,
        vocabulary: Vocabulary<'_>,
    ) -> Result<(), RuleError> {
        let is_it = |&&(_, known): &&(_, &str)| known.as_bytes().eq_ignore_ascii_case(name);
        let found = Categories::NAMES.iter().find(is_it);
        let (category, name) = *found.ok_or(RuleError::Unknown)?;
        self.note(format!("@{name}").as_bytes(), allowed);
        for row in vocabulary.table.original() {
            if row.spec.all_categories().contains(category) {
                self.set_command(row, allowed);
            }
            for row in &row.subcommands {
                if row.spec.all_categories().contains(category) {
                    self.set_command(row, allowed);
                }
            }
        }
        Ok(())
    }

    /// `+command`, `+command|subcommand`, `+command|first-argument`.
    fn allow_command(&mut self, name: &[u8], vocabulary: Vocabulary<'_>) -> Result<(), RuleError> {
        let table = vocabulary.table;
        let Some(bar) = name.iter().rposition(|byte| *byte == b'|') else {
            let row = table.find_original(name).ok_or(RuleError::Unknown)?;
            self.set_command(row, true);
            self.note(row.full_name().as_bytes(), true);
            return Ok(());
        };
        let row = table.find_original(&name[..bar]).ok_or(RuleError::Unknown)?;
        let word = &name[bar + 1..];
        if row.parent.is_some() {
            return Err(RuleError::FirstArgOfSubcommand);
        }
        if word.is_empty() {
            return Err(RuleError::Syntax);
        }
        if row.is_container() {
            let row = table.find_original(name).ok_or(RuleError::Unknown)?;
            self.set_command(row, true);
        } else {
            self.allow_first_arg(row.id, word);
        }
        self.note(name, true);
        Ok(())
    }

    fn allow_first_arg(&mut self, id: usize, word: &[u8]) {
        let at = self.first_args.iter().position(|(known, _)| *known == id);
        let at = at.unwrap_or_else(|| {
            self.first_args.push((id, Vec::new()));
            self.first_args.len() - 1
        });
        let words = &mut self.first_args[at].1;
        if !words.iter().any(|known| known.eq_ignore_ascii_case(word)) {
            words.push(word.into());
        }
    }

    /// Changes a command, including its subcommands if it is a container.
    fn set_command(&mut self, row: &Row, allowed: bool) {
        self.all_commands &= allowed;
        self.commands.put(row.id, allowed);
        self.first_args.retain(|(id, _)| *id != row.id);
        for row in &row.subcommands {
            self.commands.put(row.id, allowed);
        }
    }

    /// Keeps a rule for display: the last one about each command. A rule about a container replaces
    /// those about its subcommands.
    fn note(&mut self, what: &[u8], allows: bool) {
        let what = what.to_ascii_lowercase();
        self.rules.retain(|rule| {
            let rest = rule.what.strip_prefix(what.as_slice());
            !rest.is_some_and(|rest| matches!(rest, [] | [b'|', ..]))
        });
        self.rules.push(CommandRule { allows, what: what.into() });
    }

    /// Returns true if everything is allowed.
    pub fn is_unrestricted(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    /// Returns true if the command may run, regardless of its keys. `first` is its first argument.
    #[inline]
    pub(super) fn admits(&self, row: &Row, first: Option<&[u8]>) -> bool {
        self.all_commands || self.commands.has(row.id) || self.admits_first_arg(row.id, first)
    }

    #[cold]
    fn admits_first_arg(&self, id: usize, first: Option<&[u8]>) -> bool {
        let Some(first) = first else { return false };
        let first = first.split(|byte| *byte == 0).next().unwrap_or_default();
        let words = self.first_args.iter().find(|(known, _)| *known == id);
        words.is_some_and(|(_, words)| words.iter().any(|word| word.eq_ignore_ascii_case(first)))
    }

    /// Returns true if this access to a key is allowed.
    pub(super) fn admits_key(&self, key: &[u8], needed: Access) -> bool {
        self.all_keys
            || self.keys.iter().any(|known| {
                known.access.contains(needed) && glob::matches(&known.pattern, key, Case::Matters)
            })
    }

    /// Returns true if every key may be read.
    pub(super) fn reads_every_key(&self) -> bool {
        let all =
            |known: &KeyPattern| known.access.contains(Access::READ) && *known.pattern == *b"*";
        self.all_keys || self.keys.iter().any(all)
    }

    /// Returns true if a channel may be used, or a pattern of channels, which must match literally.
    pub(super) fn admits_channel(&self, name: &[u8], is_pattern: bool) -> bool {
        self.all_channels || fits_channel(&self.channels, name, is_pattern)
    }

    /// Formats the rules about commands.
    pub fn describe_commands(&self) -> Vec<u8> {
        let mut text = if self.starts_with_all { b"+@all".to_vec() } else { b"-@all".to_vec() };
        for rule in &self.rules {
            text.extend_from_slice(if rule.allows { b" +" } else { b" -" });
            text.extend_from_slice(&rule.what);
        }
        text
    }

    /// Formats the rules about keys, one after another.
    pub fn describe_keys(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let rule = |known: &KeyPattern| {
            let prefix: &[u8] = match known.access {
                Access::READ => b"%R~",
                Access::WRITE => b"%W~",
                _ => b"~",
            };
            [prefix, &known.pattern].concat()
        };
        self.keys.iter().map(rule).collect::<Vec<_>>().join(&b' ')
    }

    /// Formats the rules about channels, one after another.
    pub fn describe_channels(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        let rule = |pattern: &[u8]| [b"&", pattern].concat();
        self.channels.iter().map(|pattern| rule(pattern)).collect::<Vec<_>>().join(&b' ')
    }

    /// Formats all rules, in the order that recreates the selector.
    pub fn describe(&self) -> Vec<u8> {
        let keys = self.describe_keys();
        let channels = self.describe_channels();
        let reset: &[u8] = if self.all_channels { b"" } else { b"resetchannels" };
        let parts = [&keys, reset, &channels, &self.describe_commands()];
        let parts: Vec<&[u8]> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(&b' ')
    }
}

/// Returns true if one of these patterns matches a channel, or equals a pattern of channels.
pub(super) fn fits_channel(known: &[Box<[u8]>], name: &[u8], is_pattern: bool) -> bool {
    known.iter().any(|pattern| {
        if is_pattern { **pattern == *name } else { glob::matches(pattern, name, Case::Matters) }
    })
}

fn key_rule(rule: &[u8]) -> Result<(Access, &[u8]), RuleError> {
    if let [b'~', pattern @ ..] = rule {
        return Ok((Access::ALL, pattern));
    }
    let mut access = Access::NONE;
    for (at, byte) in rule.iter().enumerate().skip(1) {
        let more = match byte.to_ascii_uppercase() {
            b'R' => Access::READ,
            b'W' => Access::WRITE,
            b'~' if access != Access::NONE => return Ok((access, &rule[at + 1..])),
            _ => return Err(RuleError::Syntax),
        };
        if access.contains(more) {
            return Err(RuleError::Syntax);
        }
        access = Access(access.0 | more.0);
    }
    // As in Redis, `%R` without a pattern applies to the key with an empty name.
    if access == Access::NONE { Err(RuleError::Syntax) } else { Ok((access, b"")) }
}
