//! Checks whether a user may run a command: the command itself, each key with its access, and each
//! channel.

use super::selector::{Access, Selector};
use super::user::User;
use brisk_engine::command::{Begin, Channels, Find, Flags, KeyFlags, KeySpec, Spec};
use brisk_engine::keyspec::{self, FoundKey, FoundKeys};
use brisk_engine::table::{KeyPlan, Row};

/// The missing permission, in the order of precedence for error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Command,
    Key,
    Auth,
    Channel,
}

impl Reason {
    /// Returns the name for ACL LOG.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Auth => "auth",
            Reason::Channel => "channel",
        }
    }
}

/// A command that the user may not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denied {
    pub reason: Reason,
    /// Index of the key or channel among the arguments; 0 for the command itself.
    pub arg_index: usize,
}

impl Denied {
    /// Returns the error text after its code, as in Redis 7.2. `object` is the argument to name in
    /// the text, if any.
    pub fn text(&self, user: &[u8], row: &Row, object: Option<&[u8]>) -> Vec<u8> {
        let name = row.full_name().as_bytes();
        let (what, object): (&[u8], _) = match (self.reason, object) {
            (Reason::Key, None) => return b"No permissions to access a key".to_vec(),
            (Reason::Channel, None) => return b"No permissions to access a channel".to_vec(),
            (Reason::Key, Some(key)) => (b"' key", key),
            (Reason::Channel, Some(channel)) => (b"' channel", channel),
            (Reason::Command | Reason::Auth, _) => (b"' command", name),
        };
        let verb: &[u8] = if what == b"' command" { b"run" } else { b"access" };
        [b"User ", user, b" has no permissions to ", verb, b" the '", object, what].concat()
    }

    /// Returns the text for EXEC if a queued command may no longer run.
    pub const fn text_in_exec(&self) -> &'static str {
        match self.reason {
            Reason::Command | Reason::Auth => "no permission to execute the command or subcommand",
            Reason::Key => "no permission to touch the specified keys",
            Reason::Channel => "no permission to access one of the channels used as arguments",
        }
    }
}

/// Checks whether `user` may run this command. `word(i)` returns argument `i` of `argc`, the name
/// first.
///
/// A single selector must allow the command with all its keys and channels. If none does, the error
/// names the last key or channel that no selector allows, or the command if no selector allows
/// that. O(selectors x (keys x patterns)).
pub fn check<'w>(
    user: &User,
    row: &Row,
    argc: usize,
    word: &impl Fn(usize) -> &'w [u8],
) -> Result<(), Denied> {
    if user.is_unrestricted() {
        return Ok(());
    }
    let mut keys = None;
    let mut blamed = Denied { reason: Reason::Command, arg_index: 0 };
    // A selector that rejects the command itself leaves the position of the previous selector.
    let mut at = 0;
    for selector in user.selectors() {
        let Err(denied) = check_selector(selector, row, argc, word, &mut keys) else {
            return Ok(());
        };
        if denied.reason != Reason::Command {
            at = denied.arg_index;
        }
        if denied.reason > blamed.reason
            || (denied.reason == blamed.reason && at > blamed.arg_index)
        {
            blamed = Denied { reason: denied.reason, arg_index: at };
        }
    }
    Err(blamed)
}

/// Checks whether `user` may run this command and also read every key, which SORT BY and GET
/// require for keys that are built from values.
pub fn reads_every_key<'w>(
    user: &User,
    row: &Row,
    argc: usize,
    word: &impl Fn(usize) -> &'w [u8],
) -> bool {
    let mut keys = None;
    user.selectors().iter().any(|selector| {
        selector.reads_every_key() && check_selector(selector, row, argc, word, &mut keys).is_ok()
    })
}

fn check_selector<'w>(
    selector: &Selector,
    row: &Row,
    argc: usize,
    word: &impl Fn(usize) -> &'w [u8],
    found: &mut Option<FoundKeys>,
) -> Result<(), Denied> {
    let first = if row.parent.is_some() { 2 } else { 1 };
    let first = (first < argc).then(|| word(first));
    if !selector.admits(row, first) && !row.has(Flags::NO_AUTH) {
        return Err(Denied { reason: Reason::Command, arg_index: 0 });
    }
    if !selector.all_keys && row.keys != KeyPlan::None {
        for key in found.get_or_insert_with(|| keys_of(row.spec, argc, word)) {
            if !selector.admits_key(word(key.index), Access::needed(key.flags)) {
                return Err(Denied { reason: Reason::Key, arg_index: key.index });
            }
        }
    }
    if !selector.all_channels {
        let (names, is_pattern) = match row.spec.channels {
            Channels::None => (0..0, false),
            Channels::First => (1..2.min(argc), false),
            Channels::Names => (1..argc, false),
            Channels::Patterns => (1..argc, true),
        };
        for at in names {
            if !selector.admits_channel(word(at), is_pattern) {
                return Err(Denied { reason: Reason::Channel, arg_index: at });
            }
        }
    }
    Ok(())
}

/// Returns the keys of a request and their access, as COMMAND GETKEYSANDFLAGS reports them; none if
/// the command will reject its arguments.
pub fn keys_of<'w>(spec: &Spec, argc: usize, word: &impl Fn(usize) -> &'w [u8]) -> FoundKeys {
    let found = keyspec::find_keys(spec, argc, word);
    let mut found = found.unwrap_or_else(|_| counted_loosely(spec.keys, argc, word));
    found.retain(|key| !key.flags.contains(KeyFlags::NOT_KEY));
    found
}

/// Returns the keys after a count that is not an integer but begins with one. If the key
/// specifications fail, Redis uses an older method, which knows no flags and parses numbers as C
/// does.
fn counted_loosely<'w>(
    specs: &[KeySpec],
    argc: usize,
    word: &impl Fn(usize) -> &'w [u8],
) -> FoundKeys {
    let mut found = FoundKeys::new();
    let mut add = |index| found.push(FoundKey { index, flags: KeyFlags::empty() });
    for spec in specs {
        let (Begin::Index(at), Find::KeyNum { count_at, first, step }) = (spec.begin, spec.find)
        else {
            continue;
        };
        let (count_at, first, step) =
            (usize::from(at + count_at), usize::from(at + first), usize::from(step.max(1)));
        let room = argc.saturating_sub(first) / step;
        let count = if count_at < argc { leading_integer(word(count_at)) } else { 0 };
        if (1..=room).contains(&count) {
            (0..count).for_each(|i| add(first + i * step));
        }
    }
    // The key for the result comes last.
    let single = |spec: &&KeySpec| matches!(spec.find, Find::Range { last: 0, .. });
    if let Some(Begin::Index(at)) = specs.iter().find(single).map(|spec| spec.begin)
        && !found.is_empty()
    {
        found.push(FoundKey { index: usize::from(at), flags: KeyFlags::empty() });
    }
    found
}

/// Parses the integer at the start of a text as C's `atoi` does: truncated to 32 bits; 0 if
/// negative or not an integer.
fn leading_integer(text: &[u8]) -> usize {
    let text = text.trim_ascii_start();
    let (sign, text) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0i64, |number, digit| {
        number.saturating_mul(10).saturating_add(sign * i64::from(digit - b'0'))
    });
    usize::try_from(number as i32).unwrap_or(0)
}
