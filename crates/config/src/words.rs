//! The arguments of a configuration line: splitting, quoting and formatting.
//!
//! Inline requests are split in `resp`, which has other requirements: it resumes in the middle of a
//! line, checks limits, and returns slices of the input if an argument has no escapes.

/// Splits a line at whitespace. `"…"` supports `\n \r \t \b \a \xHH` and `\` before any other byte;
/// `'…'` supports only `\'`. A closing quote must be followed by whitespace or the end of the line.
///
/// Returns `None` if a quote is not closed or text follows a closing quote. O(line).
pub fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        while let [first, after @ ..] = rest
            && is_blank(*first)
        {
            rest = after;
        }
        if rest.is_empty() {
            return Some(words);
        }
        let (word, after) = one(rest)?;
        words.push(word);
        rest = after;
    }
}

/// Returns true for the whitespace characters of C's `isspace`.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Parses one argument; a quote may also begin in its middle.
fn one(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] => return Some((word, rest)),
            [blank, ..] if is_blank(*blank) || *blank == 0 => {
                return Some((word, &rest[1..]));
            }
            [b'"', after @ ..] => return quoted(after, b'"', word),
            [b'\'', after @ ..] => return quoted(after, b'\'', word),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

/// Parses up to the closing `quote`, which ends the argument.
fn quoted(mut rest: &[u8], quote: u8, mut word: Vec<u8>) -> Option<(Vec<u8>, &[u8])> {
    loop {
        match rest {
            [] => return None,
            [b'\\', b'\'', after @ ..] if quote == b'\'' => {
                word.push(b'\'');
                rest = after;
            }
            [b'\\', b'x', high, low, after @ ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex(*high) << 4 | hex(*low));
                rest = after;
            }
            [b'\\', escaped, after @ ..] if quote == b'"' => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                rest = after;
            }
            [byte, after @ ..] if *byte == quote => {
                return match after {
                    [next, ..] if !is_blank(*next) => None,
                    _ => Some((word, after)),
                };
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

/// Returns `bytes` in double quotes, printable ASCII only; `split` reads back exactly `bytes`.
pub fn quote(bytes: &[u8]) -> String {
    use std::fmt::Write;

    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend(['\\', char::from(byte)]),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x07 => out.push_str("\\a"),
            0x08 => out.push_str("\\b"),
            b' '..=b'~' => out.push(char::from(byte)),
            other => _ = write!(out, "\\x{other:02x}"), // writing to a String cannot fail
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quotes_follow_the_rules_of_the_configuration_file() {
        let words = |line: &str| {
            split(line.as_bytes())
                .map(|words| words.iter().map(|w| String::from_utf8_lossy(w).into()).collect())
        };
        let some = |expected: &[&str]| -> Option<Vec<String>> {
            Some(expected.iter().map(|w| (*w).to_owned()).collect())
        };
        assert_eq!(words("  a\t b  "), some(&["a", "b"]));
        assert_eq!(words(r#"a "b c" 'd e'"#), some(&["a", "b c", "d e"]));
        assert_eq!(words(r#""\x41\n\q""#), some(&["A\nq"]));
        assert_eq!(words(r"'a\x41\'b'"), some(&["a\\x41'b"]));
        assert_eq!(words(r#"save """#), some(&["save", ""]));
        assert_eq!(words(r#"a"b c""#), some(&["ab c"]));
        for unbalanced in [r#"a "b"#, "a 'b", r#""a"b"#, r#"a "\""#] {
            assert_eq!(words(unbalanced), None, "{unbalanced}");
        }
    }

    proptest! {
        #[test]
        fn split_reads_back_quoted_text(bytes: Vec<u8>) {
            prop_assert_eq!(split(quote(&bytes).as_bytes()), Some(vec![bytes]));
        }

        #[test]
        fn split_takes_any_bytes(bytes: Vec<u8>) {
            let _ = split(&bytes);
        }
    }
}
