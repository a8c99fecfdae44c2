//! Colors of a line while it is typed: known and unknown commands, quoted strings, and numbers.

use crate::docs::Docs;
use std::ops::Range;

const KNOWN: &str = "\x1b[32m";
const UNKNOWN: &str = "\x1b[31m";
const STRING: &str = "\x1b[33m";
const NUMBER: &str = "\x1b[36m";
const END: &str = "\x1b[0m";

/// The commands that the prompt handles itself.
const OWN_COMMANDS: [&str; 7] = ["?", "clear", "connect", "exit", "help", "quit", "restart"];

/// The line with colors. The text itself is unchanged.
pub(super) fn highlight(docs: &Docs, line: &str) -> String {
    let mut out = String::with_capacity(line.len() + 32);
    let mut at = 0;
    for (range, color) in spans(docs, line) {
        out.push_str(&line[at..range.start]);
        out.push_str(color);
        out.push_str(&line[range.clone()]);
        out.push_str(END);
        at = range.end;
    }
    out.push_str(&line[at..]);
    out
}

/// The colored parts of a line, in order.
fn spans(docs: &Docs, line: &str) -> Vec<(Range<usize>, &'static str)> {
    let words = words(line);
    let text = |range: &Range<usize>| &line[range.clone()];
    let is_number = |range: &Range<usize>| {
        text(range).starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
            && text(range).parse::<f64>().is_ok()
    };
    // A number before the command repeats it.
    let first = usize::from(words.len() > 1 && is_number(&words[0]));
    let mut spans = Vec::new();
    let mut rest = first;
    if let Some(name) = words.get(first) {
        let both = words.get(first + 1).map(|sub| name.start..sub.end);
        let full = both.filter(|_| words.len() > first + 1).and_then(|both| {
            let full = format!("{} {}", text(name), text(&words[first + 1]));
            is_entry(docs, &full).then_some(both)
        });
        rest = first + if full.is_some() { 2 } else { 1 };
        // The word at the end may still become a command.
        let may_grow = name.end == line.len();
        match full {
            Some(both) => spans.push((both, KNOWN)),
            None if is_known(docs, text(name)) => spans.push((name.clone(), KNOWN)),
            None if docs.entries.is_empty() || (may_grow && begins_command(docs, text(name))) => {}
            None => spans.push((name.clone(), UNKNOWN)),
        }
    }
    for range in words.iter().skip(rest) {
        if text(range).starts_with(['"', '\'']) {
            spans.push((range.clone(), STRING));
        } else if is_number(range) {
            spans.push((range.clone(), NUMBER));
        }
    }
    if first == 1 {
        spans.insert(0, (words[0].clone(), NUMBER));
    }
    spans
}

fn is_entry(docs: &Docs, name: &str) -> bool {
    docs.entries.iter().any(|entry| entry.name.eq_ignore_ascii_case(name))
}

fn is_known(docs: &Docs, name: &str) -> bool {
    let is_own = OWN_COMMANDS.iter().any(|own| own.eq_ignore_ascii_case(name));
    is_own || name.starts_with(':') || is_entry(docs, name)
}

/// Reports whether a command begins with these letters.
fn begins_command(docs: &Docs, letters: &str) -> bool {
    let begins = |name: &str| {
        name.get(..letters.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(letters))
    };
    docs.entries.iter().any(|entry| begins(&entry.name))
        || OWN_COMMANDS.iter().any(|own| begins(own))
}

/// The positions of the words of a line. A quote that is not closed extends to the end.
fn words(line: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut begin: Option<usize> = None;
    let mut quote: Option<char> = None;
    let mut is_escaped = false;
    for (at, letter) in line.char_indices() {
        match (begin, quote) {
            (Some(_), Some(open)) => {
                if is_escaped {
                    is_escaped = false;
                } else if letter == '\\' {
                    is_escaped = true;
                } else if letter == open {
                    quote = None;
                }
            }
            (Some(start), None) if letter.is_ascii_whitespace() => {
                words.push(start..at);
                begin = None;
            }
            (None, _) if !letter.is_ascii_whitespace() => {
                begin = Some(at);
                quote = Some(letter).filter(|letter| matches!(letter, '"' | '\''));
            }
            _ => {}
        }
    }
    words.extend(begin.map(|start| start..line.len()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::Entry;

    #[test]
    fn commands_strings_and_numbers_have_colors() {
        let entry = |name: &str| Entry { name: name.to_owned(), ..Entry::default() };
        let docs = Docs {
            entries: ["GET", "OBJECT", "OBJECT ENCODING", "SET"].map(entry).into(),
            groups: Vec::new(),
        };
        for (line, expected) in [
            ("", ""),
            ("ge", "ge"),
            ("gex", "<31gex>"),
            ("ge a", "<31ge> a"),
            ("get a", "<32get> a"),
            ("set a 'b c' 5", "<32set> a <33'b c'> <365>"),
            ("set \"a\\\" b", "<32set> <33\"a\\\" b>"),
            ("object encoding a", "<32object encoding> a"),
            ("object x", "<32object> x"),
            ("3 get a", "<363> <32get> a"),
            ("quit", "<32quit>"),
            (":set pager off", "<32:set> pager off"),
            ("get ä -1.5", "<32get> ä <36-1.5>"),
        ] {
            let shown = highlight(&docs, line).replace("\x1b[0m", ">").replace("\x1b[", "<");
            assert_eq!(
                shown.replace("1m", "1").replace("2m", "2").replace("3m", "3").replace("6m", "6"),
                expected,
                "{line}"
            );
        }
        assert_eq!(highlight(&Docs::default(), "foo a"), "foo a");
    }
}
