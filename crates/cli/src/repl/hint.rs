//! Hints for the rest of a line: the arguments of the command that the user has not typed yet. If typed words do not
//! match any argument, there is no hint.
//!
//! Adjacent optional arguments can be typed in any order. A started argument is shown first. If the user has started
//! the next argument instead of completing an earlier one, the rest of the earlier one is no longer shown.

use crate::docs::{Argument, Docs, Kind};
use crate::quote::split;

/// The result of matching words with an argument.
struct Fit {
    /// The number of words that belong to it.
    used: usize,
    /// The part of it that the user has not typed yet.
    left: String,
}

impl Fit {
    fn whole(used: usize) -> Fit {
        Fit { used, left: String::new() }
    }
}

/// The hint for a line. It begins with a space if the line does not end with one.
pub(super) fn hint(docs: &Docs, line: &str) -> Option<String> {
    let words = split(line.as_bytes())?;
    // The arguments of ACL DRYRUN after the user are another command.
    let words = match words.as_slice() {
        [acl, dry, _, rest @ ..]
            if !rest.is_empty()
                && acl.eq_ignore_ascii_case(b"acl")
                && dry.eq_ignore_ascii_case(b"dryrun") =>
        {
            rest
        }
        all => all,
    };
    let is_open = !line.ends_with(' ');
    let (entry, named) = docs.longest(words)?;
    let fit = |arguments: &[Vec<u8>]| {
        sequence(&entry.parts, arguments).filter(|fit| fit.used == arguments.len())
    };
    let arguments = &words[named..];
    let begun = || arguments.split_last().filter(|_| is_open);
    // The last word is first treated as complete. If it matches nothing, it may be the beginning of a longer word.
    let Fit { left, .. } = fit(arguments).or_else(|| fit(begun()?.1))?;
    let space = if is_open && !left.is_empty() { " " } else { "" };
    Some(format!("{space}{left}"))
}

/// Matches words with arguments in order. Returns `None` if a required argument does not match.
fn sequence(arguments: &[Argument], words: &[Vec<u8>]) -> Option<Fit> {
    let (mut used, mut left) = (0, Vec::new());
    let mut rest = arguments;
    while let Some(first) = rest.first() {
        if used == words.len() {
            left.extend(rest.iter().map(Argument::syntax));
            break;
        }
        if first.is_optional {
            let count = rest.iter().take_while(|argument| argument.is_optional).count();
            let fit = any_order(&rest[..count], &words[used..]);
            used += fit.used;
            // The rest of this argument is irrelevant if further words follow.
            if used == words.len() && !fit.left.is_empty() {
                left.push(fit.left);
            }
            rest = &rest[count..];
        } else {
            let fit = one(first, &words[used..])?;
            used += fit.used;
            if !fit.left.is_empty() {
                left.push(fit.left);
            }
            rest = &rest[1..];
        }
    }
    Some(Fit { used, left: left.join(" ") })
}

/// Matches words with optional arguments in any order.
fn any_order(group: &[Argument], words: &[Vec<u8>]) -> Fit {
    let mut open: Vec<&Argument> = group.iter().collect();
    let (mut used, mut begun) = (0, String::new());
    while used < words.len() {
        let fits = |argument: &&Argument| one(argument, &words[used..]).filter(|fit| fit.used > 0);
        let Some((at, fit)) = (0..open.len()).find_map(|at| Some((at, fits(&open[at])?))) else {
            break;
        };
        open.remove(at);
        used += fit.used;
        begun = fit.left;
    }
    let begun = Some(begun).filter(|begun| !begun.is_empty());
    let all: Vec<String> =
        begun.into_iter().chain(open.into_iter().map(Argument::syntax)).collect();
    Fit { used, left: all.join(" ") }
}

/// Matches words, of which there is at least one, with an argument and its repetitions.
fn one(argument: &Argument, words: &[Vec<u8>]) -> Option<Fit> {
    let mut fit = with_token(argument, words)?;
    let Some(repeated) = argument.repeated() else { return Some(fit) };
    while fit.left.is_empty() && fit.used < words.len() {
        let rest = &words[fit.used..];
        let next = match argument.repeats_token {
            true => with_token(argument, rest),
            false => body(argument, rest),
        };
        let Some(next) = next else { break };
        fit = Fit { used: fit.used + next.used, left: next.left };
    }
    fit.left = if fit.left.is_empty() { repeated } else { format!("{} {repeated}", fit.left) };
    Some(fit)
}

fn with_token(argument: &Argument, words: &[Vec<u8>]) -> Option<Fit> {
    let Some(token) = &argument.token else { return body(argument, words) };
    let (first, rest) = words.split_first()?;
    if !first.eq_ignore_ascii_case(token.as_bytes()) {
        return None;
    }
    if argument.kind == Kind::Token {
        return Some(Fit::whole(1));
    }
    if rest.is_empty() {
        return Some(Fit { used: 1, left: argument.body() });
    }
    let Fit { used, left } = body(argument, rest)?;
    Some(Fit { used: used + 1, left })
}

fn body(argument: &Argument, words: &[Vec<u8>]) -> Option<Fit> {
    let word = words.first()?;
    match argument.kind {
        Kind::Block => sequence(&argument.parts, words).filter(|fit| fit.used > 0),
        Kind::Choice => argument.parts.iter().find_map(|part| one(part, words)),
        Kind::Integer => begins_number(word, false).then(|| Fit::whole(1)),
        Kind::Decimal => begins_number(word, true).then(|| Fit::whole(1)),
        Kind::Word => Some(Fit::whole(1)),
        Kind::Token => None,
    }
}

/// Reports whether a word begins like a number; `inf` counts as a decimal number.
fn begins_number(word: &[u8], with_decimals: bool) -> bool {
    let unsigned = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
    let digits = match unsigned {
        [b'.', rest @ ..] if with_decimals => rest,
        all => all,
    };
    let is_infinite =
        with_decimals && unsigned.len() >= 3 && unsigned[..3].eq_ignore_ascii_case(b"inf");
    digits.first().is_some_and(u8::is_ascii_digit) || is_infinite
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::{Entry, joined};

    fn word(name: &str, kind: Kind) -> Argument {
        Argument { name: name.to_owned(), kind, ..Argument::default() }
    }

    fn token(token: &str) -> Argument {
        Argument { token: Some(token.to_owned()), ..word("", Kind::Token) }
    }

    fn after(name: &str, argument: Argument) -> Argument {
        Argument { token: Some(name.to_owned()), ..argument }
    }

    fn group(kind: Kind, parts: &[Argument]) -> Argument {
        Argument { parts: parts.to_vec(), ..word("", kind) }
    }

    fn optional(argument: Argument) -> Argument {
        Argument { is_optional: true, ..argument }
    }

    fn docs() -> Docs {
        let entry = |name: &str, parts: &[Argument]| Entry {
            name: name.to_owned(),
            arguments: joined(parts, " "),
            parts: parts.to_vec(),
            ..Entry::default()
        };
        let key = || word("key", Kind::Word);
        let flag = |names: &[&str]| {
            optional(group(Kind::Choice, &names.iter().map(|name| token(name)).collect::<Vec<_>>()))
        };
        let many = |argument: Argument| Argument { is_multiple: true, ..argument };
        let pair = [word("score", Kind::Decimal), word("member", Kind::Word)];
        let get = after("GET", group(Kind::Block, &[key(), word("at", Kind::Integer)]));
        let count = [after("COUNT", word("n", Kind::Integer)), optional(token("ANY"))];
        let expiry = [after("EX", word("seconds", Kind::Integer)), token("KEEPTTL")];
        Docs {
            entries: vec![
                entry("ACL", &[]),
                entry("ACL SETUSER", &[word("username", Kind::Word)]),
                entry("BITS", &[key(), optional(Argument { repeats_token: true, ..many(get) })]),
                entry("MGET", &[many(key())]),
                entry(
                    "NEAR",
                    &[key(), optional(group(Kind::Block, &count)), flag(&["ASC", "DESC"])],
                ),
                entry(
                    "SET",
                    &[
                        key(),
                        word("value", Kind::Word),
                        flag(&["NX", "XX"]),
                        optional(group(Kind::Choice, &expiry)),
                    ],
                ),
                entry("ZADD", &[key(), flag(&["NX", "XX"]), many(group(Kind::Block, &pair))]),
            ],
            groups: Vec::new(),
        }
    }

    #[test]
    fn a_hint_shows_what_is_left_to_type() {
        // These are the hints of `redis-cli` 7.0 for commands with such arguments, if the optional arguments are in
        // order.
        for (line, expected) in [
            ("set", " key value [NX|XX] [EX seconds|KEEPTTL]"),
            ("SET a ", "value [NX|XX] [EX seconds|KEEPTTL]"),
            ("set foo", " value [NX|XX] [EX seconds|KEEPTTL]"),
            ("SET a b", " [NX|XX] [EX seconds|KEEPTTL]"),
            ("set a b n", " [NX|XX] [EX seconds|KEEPTTL]"),
            ("set a b nx", " [EX seconds|KEEPTTL]"),
            ("set a b ex", " seconds [NX|XX]"),
            ("set a b ex 5", " [NX|XX]"),
            ("mget a", " [key ...]"),
            ("zadd k 1", " member [score member ...]"),
            ("zadd k n", " [NX|XX] score member [score member ...]"),
            ("set a b xx ", "[EX seconds|KEEPTTL]"),
            ("set a b ex ", "seconds [NX|XX]"),
            ("set a b ex 5 ", "[NX|XX]"),
            ("set a b keepttl nx ", ""),
            ("near k count ", "n [ANY] [ASC|DESC]"),
            ("near k count 3 ", "[ANY] [ASC|DESC]"),
            ("near k count 3 asc ", ""),
            ("zadd k nx ", "score member [score member ...]"),
            ("zadd k -1.5 ", "member [score member ...]"),
            ("zadd k 1 a 2 ", "member [score member ...]"),
            ("bits k ", "[GET key at [GET key at ...]]"),
            ("bits k get a 1 get ", "key at [GET key at ...]"),
            ("mget a b ", "[key ...]"),
            ("acl setuser ", "username"),
            ("acl dryrun joe set a ", "value [NX|XX] [EX seconds|KEEPTTL]"),
        ] {
            assert_eq!(hint(&docs(), line).as_deref(), Some(expected), "{line}");
        }
        for line in ["foo", "set 'a", "set a b ex soon ", "set a b nonsense ", "zadd k x "] {
            assert_eq!(hint(&docs(), line), None, "{line}");
        }
    }
}
