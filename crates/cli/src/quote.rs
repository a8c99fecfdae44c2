//! Quoting: splits a line into arguments, and quotes bytes so that they can be read back.

use std::fmt::Write;

/// Splits a line into arguments. Double quotes support `\n`, `\r`, `\t`, `\a`, `\b` and `\x` with two digits; single
/// quotes support only `\'`. Returns `None` if a quote is not closed, or if a closing quote is not followed by a space.
pub(crate) fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|&byte| is_space(byte)) {
            at += 1;
        }
        if at >= line.len() || line[at] == 0 {
            return Some(words);
        }
        let (word, end) = word(line, at)?;
        words.push(word);
        at = end;
    }
}

/// The parts of a line before and after its first word `|`, if that is not quoted and both parts have words.
pub(crate) fn split_at_pipe(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|&byte| is_space(byte)) {
            at += 1;
        }
        let (found, end) = word(line, at)?;
        if line.get(at..end) == Some(b"|") {
            let (before, after) = (&line[..at], line[end..].trim_ascii());
            return (!before.trim_ascii().is_empty() && !after.is_empty())
                .then_some((before, after));
        }
        if found.is_empty() && end == at {
            return None;
        }
        at = end;
    }
}

/// The single argument of a quoted text.
pub(crate) fn unquote(text: &[u8]) -> Option<Vec<u8>> {
    let mut words = split(text)?;
    if words.len() == 1 { words.pop() } else { None }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Reads the argument that begins at this position. Returns it and the position after it.
fn word(line: &[u8], mut at: usize) -> Option<(Vec<u8>, usize)> {
    let mut word = Vec::new();
    loop {
        match line.get(at) {
            None | Some(0) => return Some((word, at)),
            Some(&byte) if is_space(byte) => return Some((word, at)),
            Some(&quote @ (b'"' | b'\'')) => {
                at = quoted(line, at + 1, quote, &mut word)?;
                // A closing quote must end the argument.
                return match line.get(at) {
                    None | Some(0) => Some((word, at)),
                    Some(&byte) if is_space(byte) => Some((word, at)),
                    Some(_) => None,
                };
            }
            Some(&byte) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

/// Reads up to the closing quote. Returns the position after it.
fn quoted(line: &[u8], mut at: usize, quote: u8, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        let rest = line.get(at..)?;
        let (byte, len) = match *rest {
            [end, ..] if end == quote => return Some(at + 1),
            [b'\\', b'\'', ..] if quote == b'\'' => (b'\'', 2),
            [b'\\', b'x', high, low, ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (digit(high) * 16 + digit(low), 4)
            }
            [b'\\', escaped, ..] if quote == b'"' => (unescaped(escaped), 2),
            [0, ..] | [] => return None,
            [byte, ..] => (byte, 1),
        };
        word.push(byte);
        at += len;
    }
}

fn digit(hex: u8) -> u8 {
    match hex {
        b'0'..=b'9' => hex - b'0',
        _ => (hex | 0x20) - b'a' + 10,
    }
}

fn unescaped(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

/// The bytes in double quotes, as ASCII that [`split`] reads back.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            7 => text.push_str("\\a"),
            8 => text.push_str("\\b"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('"');
    text
}

/// The number at the beginning of a text, as C's `atoi` parses it. 0 if there is none.
pub(crate) fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let size =
        digits.fold(0i64, |n, &byte| n.saturating_mul(10).saturating_add(i64::from(byte - b'0')));
    if negative { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
        split(line.as_bytes()).map(|words| words.iter().map(text).collect())
    }

    #[test]
    fn a_line_is_cut_at_spaces_outside_of_quotes() {
        assert_eq!(words("  set  a 'b c' ").unwrap(), ["set", "a", "b c"]);
        assert_eq!(
            words(r#"echo "a\x41\n\"" 'it\'s' x"y""#).unwrap(),
            ["echo", "aA\n\"", "it's", "xy"]
        );
        assert_eq!(words(r#"a "" ''"#).unwrap(), ["a", "", ""]);
        assert_eq!(words("").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_pipe_is_a_word_outside_of_quotes_between_two_commands() {
        let text = |line: &'static str| {
            split_at_pipe(line.as_bytes()).map(|(before, after)| {
                (
                    String::from_utf8_lossy(before).into_owned(),
                    String::from_utf8_lossy(after).into_owned(),
                )
            })
        };
        assert_eq!(
            text("get k | jq '.a | .b'"),
            Some(("get k ".to_owned(), "jq '.a | .b'".to_owned()))
        );
        for line in ["get k", "set k '|' x", "set k a|b", "| jq", "get k |", "get 'k | x", ""] {
            assert_eq!(text(line), None, "{line}");
        }
    }

    #[test]
    fn unclosed_quotes_and_quotes_closed_inside_a_word_are_rejected() {
        for line in ["\"a", "'a", "\"a\"b", "'a'b", "\"a\\", "'a\\'"] {
            assert_eq!(words(line), None, "{line}");
        }
    }

    #[test]
    fn quoted_text_can_be_read_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unquote(quote(&all).as_bytes()).unwrap(), all);
    }

    #[test]
    fn numbers_are_parsed_up_to_the_first_invalid_character() {
        assert_eq!(leading_number(b" -12ab"), -12);
        assert_eq!(leading_number(b"x"), 0);
        assert_eq!(leading_number(b"99999999999999999999"), i64::MAX);
    }
}
