//! Splits a command line into arguments by the quoting rules of `redis-cli`, and encodes arguments as requests.
//!
//! This parser is deliberately independent of the server's parsers, because it is used to test them.

/// Splits `line` at blanks. `"…"` supports the escapes `\n \r \t \b \a \xHH` and `\c` for any other `c`; `'…'` supports
/// only `\'`. A quote opens only at the start of an argument. Returns `None` if a quote is not closed.
pub fn split(line: &str) -> Option<Vec<Vec<u8>>> {
    let bytes = line.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        match bytes.get(at) {
            None => return Some(words),
            Some(b'"') => words.push(double_quoted(bytes, &mut at)?),
            Some(b'\'') => words.push(single_quoted(bytes, &mut at)?),
            Some(_) => {
                let start = at;
                while bytes.get(at).is_some_and(|b| !b.is_ascii_whitespace()) {
                    at += 1;
                }
                words.push(bytes[start..at].to_vec());
            }
        }
    }
}

fn double_quoted(bytes: &[u8], at: &mut usize) -> Option<Vec<u8>> {
    let mut word = Vec::new();
    *at += 1;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if byte == b'"' {
            return Some(word);
        }
        if byte != b'\\' {
            word.push(byte);
            continue;
        }
        let escaped = *bytes.get(*at)?;
        *at += 1;
        word.push(match escaped {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'a' => 7,
            b'x' => match hex(bytes.get(*at..*at + 2)) {
                Some(value) => {
                    *at += 2;
                    value
                }
                None => b'x',
            },
            other => other,
        });
    }
}

fn single_quoted(bytes: &[u8], at: &mut usize) -> Option<Vec<u8>> {
    let mut word = Vec::new();
    *at += 1;
    loop {
        match bytes.get(*at)? {
            b'\'' => {
                *at += 1;
                return Some(word);
            }
            b'\\' if bytes.get(*at + 1) == Some(&b'\'') => {
                word.push(b'\'');
                *at += 2;
            }
            &byte => {
                word.push(byte);
                *at += 1;
            }
        }
    }
}

fn hex(digits: Option<&[u8]>) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits?).ok()?, 16).ok()
}

/// Appends the request made of `words`, as an array of bulk strings.
pub fn encode_into<W: AsRef<[u8]>>(out: &mut Vec<u8>, words: &[W]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        let word = word.as_ref();
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// The request made of `words`.
pub fn encode<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_into(&mut out, words);
    out
}

/// `word` as `redis-cli` prints a string: in double quotes, with escapes. [`split`] reads it back.
pub fn quoted(word: &[u8]) -> String {
    let mut out = String::with_capacity(word.len() + 2);
    out.push('"');
    for &byte in word {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            7 => out.push_str("\\a"),
            8 => out.push_str("\\b"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

/// A whole command as a line that [`split`] reads back; plain words stay unquoted.
pub fn line<W: AsRef<[u8]>>(words: &[W]) -> String {
    let plain =
        |w: &[u8]| !w.is_empty() && w.iter().all(|b| b.is_ascii_graphic() && !b"\"'\\".contains(b));
    let one = |w: &[u8]| {
        if plain(w) { String::from_utf8_lossy(w).into_owned() } else { quoted(w) }
    };
    words.iter().map(|w| one(w.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_blanks_and_kept_together_by_quotes() {
        let words = split(r#"SET  'some key' "a\x00\r\n\"b" plain'quote"#).unwrap();
        assert_eq!(words, [&b"SET"[..], b"some key", b"a\x00\r\n\"b", b"plain'quote"]);
    }

    #[test]
    fn an_open_quote_is_rejected() {
        assert_eq!(split("GET 'k"), None);
        assert_eq!(split("GET \"k\\"), None);
    }

    #[test]
    fn printed_words_can_be_read_back() {
        let words = [&b"SET"[..], b"", b"\x00\xff\r\n\t\"'\\", b"it's", b"x y"];
        assert_eq!(split(&line(&words)).unwrap(), words);
    }
}
