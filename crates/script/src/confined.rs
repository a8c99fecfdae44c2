//! Detects scripts whose text shows that they use only the keys they declare.
//!
//! A script is confined if every command is called as `redis.call('name', …)` or `redis.pcall`. All
//! arguments that are keys of the command must be elements of KEYS, or locals that never have another
//! value. Anything that is not understood makes the result false.
//!
//! The result may be wrong for a text that was made to be misread. It decides only whether the
//! script needs the right to use undeclared keys before it acts. A wrong result can let more than
//! one script delay others, and has no other effect; see docs/design/scripts.md.

use std::collections::HashMap;

/// The arguments of a command that are keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyArgs {
    /// This number of arguments, starting with the first.
    Leading(usize),
    All,
    /// The keys are unknown, or the command accesses more than its keys.
    Unknown,
}

/// Names that would let a text do things that this analysis does not see.
const TOO_MUCH: &[&[u8]] =
    &[b"_G", b"load", b"loadstring", b"function", b"setmetatable", b"rawset", b"coroutine"];

/// A token of a script's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'s> {
    Name(&'s [u8]),
    Text(&'s [u8]),
    Number,
    /// An operator or other mark of one to three characters.
    Mark(&'s [u8]),
}

use Token::{Mark, Name, Number, Text};

/// True if the script uses only keys that it declares, as far as its text shows.
pub fn is_confined(source: &[u8], keys_of: impl Fn(&[u8]) -> KeyArgs) -> bool {
    let Some(tokens) = tokens(source) else { return false };
    let text = Script { aliases: aliases(&tokens), tokens: &tokens };
    tokens.iter().enumerate().all(|(at, token)| match token {
        Name(name) if TOO_MUCH.contains(name) => false,
        Name(b"KEYS") => text.reads_keys(at),
        Name(b"redis" | b"server") => text.is_harmless_use(at, &keys_of),
        _ => true,
    })
}

struct Script<'t, 's> {
    tokens: &'t [Token<'s>],
    /// Locals that are an element of KEYS and nothing else.
    aliases: Vec<&'s [u8]>,
}

impl<'s> Script<'_, 's> {
    fn at(&self, index: usize) -> Option<Token<'s>> {
        self.tokens.get(index).copied()
    }

    /// True for `KEYS[x]` that is not assigned to, and for `#KEYS`.
    fn reads_keys(&self, at: usize) -> bool {
        match element_of_keys(self.tokens, at) {
            Some(after) => self.at(after) != Some(Mark(b"=")),
            None => {
                at > 0 && self.at(at - 1) == Some(Mark(b"#")) && self.at(at + 1) != Some(Mark(b"["))
            }
        }
    }

    /// True for `redis.call('name', …)` with declared keys, and for `redis.` with another function.
    fn is_harmless_use(&self, at: usize, keys_of: &impl Fn(&[u8]) -> KeyArgs) -> bool {
        match (self.at(at + 1), self.at(at + 2)) {
            (Some(Mark(b".")), Some(Name(b"call" | b"pcall"))) => {}
            (Some(Mark(b".")), Some(Name(_))) => return true,
            _ => return false,
        }
        let (Some(Mark(b"(")), Some(Text(command))) = (self.at(at + 3), self.at(at + 4)) else {
            return false;
        };
        let (mut at, mut seen) = (at + 5, 0);
        let most = match keys_of(command) {
            KeyArgs::Unknown => return false,
            KeyArgs::Leading(count) => count,
            KeyArgs::All => usize::MAX,
        };
        while seen < most {
            match self.at(at) {
                Some(Mark(b",")) => {}
                // The command itself reports that it has too few arguments.
                Some(Mark(b")")) => return true,
                _ => return false,
            }
            let Some(after) = self.key(at + 1) else { return false };
            (at, seen) = (after, seen + 1);
        }
        matches!(self.at(at), Some(Mark(b"," | b")")))
    }

    /// Returns the position after an argument that is a declared key.
    fn key(&self, at: usize) -> Option<usize> {
        match self.at(at)? {
            Name(b"KEYS") => element_of_keys(self.tokens, at),
            Name(name) if self.aliases.contains(&name) => Some(at + 1),
            _ => None,
        }
    }
}

/// Returns the position after `KEYS[x]`, where x is a name or a number.
fn element_of_keys(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    match tokens.get(at..at + 4)? {
        [Name(b"KEYS"), Mark(b"["), Name(_) | Number, Mark(b"]")] => Some(at + 4),
        _ => None,
    }
}

/// Returns the locals that are declared once, as an element of KEYS, and never assigned to.
fn aliases<'s>(tokens: &[Token<'s>]) -> Vec<&'s [u8]> {
    let mut declared: HashMap<&[u8], (usize, bool)> = HashMap::new();
    let mut assigned: Vec<&[u8]> = Vec::new();
    let mut depth = 0usize;
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            Mark(b"(" | b"[" | b"{") => depth += 1,
            Mark(b")" | b"]" | b"}") => depth = depth.saturating_sub(1),
            Name(b"local" | b"for") => {
                let is_alias = is_alias(tokens, at);
                // This visits all names of the list.
                while let Some(Name(name)) = tokens.get(at + 1) {
                    let entry = declared.entry(name).or_default();
                    *entry = (entry.0 + 1, is_alias);
                    at += 2;
                    if tokens.get(at) != Some(&Mark(b",")) {
                        break;
                    }
                }
            }
            Name(name) => match tokens.get(at + 1) {
                Some(Mark(mark)) if mark.ends_with(b"=") && !is_comparison(mark) => {
                    assigned.push(name);
                }
                // This may be one of several targets of an assignment.
                Some(Mark(b",")) if depth == 0 => assigned.push(name),
                _ => {}
            },
            _ => {}
        }
        at += 1;
    }
    let once = declared.into_iter().filter(|(_, entry)| *entry == (1, true));
    once.map(|(name, _)| name).filter(|name| !assigned.contains(name)).collect()
}

/// True for `local name = KEYS[x]` that no later token continues as a longer expression.
fn is_alias(tokens: &[Token<'_>], at: usize) -> bool {
    let [Name(b"local"), Name(_), Mark(b"=")] = tokens.get(at..at + 3).unwrap_or_default() else {
        return false;
    };
    let Some(after) = element_of_keys(tokens, at + 3) else { return false };
    match tokens.get(after) {
        None | Some(Mark(b";")) => true,
        Some(Name(name)) => !matches!(*name, b"and" | b"or"),
        _ => false,
    }
}

fn is_comparison(mark: &[u8]) -> bool {
    matches!(mark, b"==" | b"~=" | b"<=" | b">=")
}

/// Splits the text into tokens; `None` if it contains syntax that is not supported here.
pub(crate) fn tokens(source: &[u8]) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some((&first, after)) = rest.split_first() {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        match first {
            b' ' | b'\t' | b'\r' | b'\n' => rest = after,
            b'-' if after.starts_with(b"-") => {
                if after[1..].starts_with(b"[") {
                    return None;
                }
                let end = after.iter().position(|byte| *byte == b'\n').unwrap_or(after.len());
                rest = &after[end..];
            }
            b'\'' | b'"' => {
                let end = after
                    .iter()
                    .position(|byte| matches!(*byte, b'\\' | b'\n') || *byte == first)?;
                if after[end] != first {
                    return None;
                }
                tokens.push(Text(&after[..end]));
                rest = &after[end + 1..];
            }
            b'[' if after.starts_with(b"[") || after.starts_with(b"=") => return None,
            _ if is_word(&first) => {
                let len = rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len());
                let digits = first.is_ascii_digit();
                tokens.push(if digits { Number } else { Name(&rest[..len]) });
                rest = &rest[len..];
            }
            _ if first.is_ascii_punctuation() && first != b'`' && first != b'\\' => {
                let two = rest.get(1).is_some_and(|second| match first {
                    b'.' => *second == b'.',
                    b'+' | b'-' | b'*' | b'/' | b'%' | b'^' | b'=' | b'~' | b'<' | b'>' => {
                        *second == b'='
                    }
                    _ => false,
                });
                let mut len = if two { 2 } else { 1 };
                if rest.starts_with(b"..=") {
                    len = 3;
                }
                tokens.push(Mark(&rest[..len]));
                rest = &rest[len..];
            }
            _ => return None,
        }
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confined(source: &str) -> bool {
        is_confined(source.as_bytes(), |command| match command {
            b"get" | b"set" | b"SET" | b"incr" => KeyArgs::Leading(1),
            b"rename" => KeyArgs::Leading(2),
            b"del" => KeyArgs::All,
            b"time" => KeyArgs::Leading(0),
            _ => KeyArgs::Unknown,
        })
    }

    #[test]
    fn declared_keys_are_recognized() {
        for source in [
            "return 1",
            "redis.call('get', KEYS[1]) return redis.call('SET', KEYS[1], ARGV[1])",
            "local key = KEYS[1] local n = redis.call('incr', key) if n == 1 then \
             redis.call('set', key, n) end return n",
            "for i = 1, #KEYS do redis.call('del', KEYS[i]) end",
            "return redis.call('rename', KEYS[1], KEYS[2])",
            "redis.call('time') return redis.status_reply('x')",
            "-- a note\nif redis.call(\"get\",KEYS[1]) == ARGV[1] then return \
             redis.call(\"del\",KEYS[1]) else return 0 end",
            "return redis.pcall('del', KEYS[1], KEYS[2])",
            "return redis.call('get')",
        ] {
            assert!(confined(source), "{source}");
        }
    }

    #[test]
    fn undeclared_keys_are_recognized() {
        for source in [
            "return redis.call('get', 'x')",
            "return redis.call('get', KEYS[1] .. 'x')",
            "return redis.call('get', ARGV[1])",
            "return redis.call(ARGV[1], KEYS[1])",
            "return redis.call('keys', '*')",
            "local call = redis.call return call('get', 'x')",
            "return pcall(redis.call, 'get', 'x')",
            "return redis['call']('get', 'x')",
            "local r = redis return r.call('get', 'x')",
            "return redis.call 'get'",
            "KEYS[1] = 'x' return redis.call('get', KEYS[1])",
            "local k = KEYS k[1] = 'x' return redis.call('get', KEYS[1])",
            "local key = KEYS[1] key = 'x' return redis.call('get', key)",
            "local key = KEYS[1] key ..= 'x' return redis.call('get', key)",
            "local key, other = KEYS[1], 1 key, other = 'x', 'y' return redis.call('get', key)",
            "local key = KEYS[1] other, key = 1, 'x' return redis.call('get', key)",
            "local key = KEYS[1] key, other = 'x', 1 return redis.call('get', key)",
            "local key = KEYS[1] for _, key in pairs(ARGV) do redis.call('get', key) end",
            "local key = KEYS[1] .. 'x' return redis.call('get', key)",
            "local key = KEYS[1] or 'x' return redis.call('get', key)",
            "local key = KEYS[1] local key = 'x' return redis.call('get', key)",
            "local f = function(key) redis.call('get', key) end",
            "return redis.call('rename', KEYS[1], 'x')",
            "return redis.call('del', KEYS[1], 'x')",
            "return redis.call('del', unpack(KEYS))",
            "return redis.call('get', (KEYS[1]))",
            "return loadstring('x')()",
            "return _G['redis'].call('get', 'x')",
            "--[[ ]] return 1",
            "return [[x]]",
            "return 'a\\'b'",
            "return `x`",
            "return server.call('get', 'x')",
        ] {
            assert!(!confined(source), "{source}");
        }
    }
}
