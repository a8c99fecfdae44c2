//! Detects scripts whose text shows that they end within a few steps.
//!
//! A script of this kind ends long before it would have to suspend or stop, so it needs no
//! interrupts. The result must not be true for any other script, so everything that is not listed
//! here makes it false. The number of steps is proportional to the number of calls if a text has no
//! loops, no functions of its own, and no way to pass functions to code that calls them often.

use crate::confined::{Token, tokens};
use Token::{Mark, Name, Number, Text};

/// Maximum number of calls in a text. Each call takes a few steps; a `pcall` of a command that
/// fails takes about twenty.
const CALLS_MAX: usize = 12;

const WORDS: &[&[u8]] = &[
    b"and", b"else", b"elseif", b"end", b"false", b"if", b"local", b"nil", b"not", b"or",
    b"return", b"then", b"true",
];
/// Keywords that no text may contain, regardless of what it seems to declare.
const LOOPS: &[&[u8]] =
    &[b"break", b"do", b"for", b"function", b"goto", b"in", b"repeat", b"until", b"while"];
/// Functions that return soon, and call at most one other function, once.
const FUNCTIONS: &[&[u8]] =
    &[b"call", b"error_reply", b"pcall", b"status_reply", b"tonumber", b"tostring", b"type"];
const TABLES: &[&[u8]] = &[b"ARGV", b"KEYS"];
const LIBRARIES: &[&[u8]] = &[b"redis", b"server"];

/// True if a run of this text takes less than about three hundred steps. `is_global` reports
/// whether a name that the text does not declare is a global.
pub(crate) fn is_brief(source: &[u8], is_global: impl Fn(&[u8]) -> bool) -> bool {
    // A comment could end at a different place than it seems to.
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n');
    if !source.iter().all(is_plain) || source.windows(2).any(|two| two == b"--") {
        return false;
    }
    let Some(tokens) = tokens(source) else { return false };
    let locals = locals(&tokens);
    // Before its declaration, within it, and after its block, a local's name means the global.
    // Also, the names below have their meaning only while no local has the same name.
    let known = [FUNCTIONS, TABLES, LIBRARIES];
    if locals.iter().any(|name| known.iter().any(|list| list.contains(name)) || is_global(name)) {
        return false;
    }
    let mut calls = 0;
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| tokens[before]);
        let after_value = match before {
            Some(Name(name)) => !WORDS.contains(&name),
            Some(Text(_) | Number | Mark(b")" | b"]" | b"}")) => true,
            _ => false,
        };
        let allowed = match token {
            Name(name) if LOOPS.contains(name) => false,
            Name(name) if before == Some(Mark(b".")) => FUNCTIONS.contains(name),
            Name(name) => [WORDS, FUNCTIONS, TABLES, LIBRARIES, &locals]
                .iter()
                .any(|list| list.contains(name)),
            Number => true,
            // After a value, this would be a call.
            Text(_) | Mark(b"{") => !after_value,
            Mark(b"(") => {
                calls += usize::from(after_value);
                match before {
                    Some(Name(name)) => WORDS.contains(&name) || FUNCTIONS.contains(&name),
                    _ => !after_value,
                }
            }
            Mark(b"[") => matches!(before, Some(Name(name)) if TABLES.contains(&name)),
            Mark(mark) => matches!(
                *mark,
                b")" | b"]"
                    | b"}"
                    | b","
                    | b";"
                    | b"."
                    | b".."
                    | b"="
                    | b"=="
                    | b"~="
                    | b"<"
                    | b">"
                    | b"<="
                    | b">="
                    | b"+"
                    | b"-"
                    | b"*"
                    | b"/"
                    | b"%"
                    | b"#"
            ),
        };
        if !allowed {
            return false;
        }
    }
    calls <= CALLS_MAX
}

/// Returns the names that the text declares.
fn locals<'s>(tokens: &[Token<'s>]) -> Vec<&'s [u8]> {
    let mut names = Vec::new();
    for at in 0..tokens.len() {
        if tokens[at] == Name(b"local") {
            let mut next = at + 1;
            while let Some(Name(name)) = tokens.get(next) {
                names.push(*name);
                if tokens.get(next + 1) != Some(&Mark(b",")) {
                    break;
                }
                next += 2;
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    /// Calls `is_brief` with the globals that could be used for long runs.
    fn is_brief(source: &[u8]) -> bool {
        let globals: [&[u8]; 5] = [b"loadstring", b"string", b"table", b"coroutine", b"load"];
        super::is_brief(source, |name| globals.contains(&name))
    }

    #[test]
    fn texts_of_some_calls_are_brief() {
        for source in [
            "return 1",
            "redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], ARGV[1])",
            "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else \
             return 0 end",
            "local n = redis.call('incr', KEYS[1]) if n == 1 then \
             redis.call('pexpire', KEYS[1], ARGV[1]) end return {n, tonumber(ARGV[2]) - n}",
            "local v = tonumber(redis.call('GET', KEYS[1]) or '0') return redis.pcall('SET', KEYS[1], \
             v + (1 - 2) * #ARGV)",
            "return pcall(redis.call, 'GET', KEYS[1])",
        ] {
            assert!(is_brief(source.as_bytes()), "{source}");
        }
    }

    #[test]
    fn scripts_that_could_run_long_are_not_brief() {
        let many = "redis.call('PING') ".repeat(13);
        for source in [
            "while true do end",
            "for i = 1, 10 do redis.call('PING') end",
            "repeat until false",
            "local function f() return f() end f()",
            "local f = function() end f()",
            "string.gsub(ARGV[1], '.', redis.call)",
            "local string, gsub = string return string.gsub(ARGV[1], '.', redis.call)",
            "local string = string return string['gsub'](ARGV[1], '.', redis.call)",
            "local loadstring = loadstring local call = loadstring \
             local type = call('while true do end') return type()",
            "local loadstring = loadstring return 1",
            "if true then local load = 1 end return load",
            "local string = string local KEYS = string local call = KEYS['rep'] \
             local tostring = KEYS['gsub'] return tostring(call('x', 20000000), 'x', type)",
            "local type = redis.call return type('PING')",
            "local s = ARGV[1] return s:gsub('.', redis.call)",
            "return ('x'):rep(10)",
            "table.sort(KEYS, redis.call)",
            "loadstring('while true do end')()",
            "load 'while true do end'",
            "local f = redis.call f('PING')",
            "return redis.call 'PING'",
            "return tostring {}",
            "return redis.call('PING')('x')",
            "return KEYS[1]('x')",
            "setmetatable(KEYS, ARGV)",
            "local t = coroutine.wrap(redis.call) t('PING')",
            "-- while\nreturn 1",
            "return 'a\\'b'",
            "return [[x]]",
            "return `{redis.call('PING')}`",
            "goto x",
            "local x <const> = 1 continue",
            "return 'x\0' while true do end",
            "local while",
            many.as_str(),
        ] {
            assert!(!is_brief(source.as_bytes()), "{source}");
        }
    }
}
