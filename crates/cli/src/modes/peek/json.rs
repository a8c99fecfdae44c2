//! Recognizes JSON, and formats it for people: one member or element per line.

/// Maximum nesting. Deeper text is not treated as JSON.
const DEPTH_MAX: usize = 64;
const INDENT: usize = 2;

/// The formatted text without a line end; `None` if the bytes are not a JSON object or array. O(bytes).
pub(super) fn pretty(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let first = text.trim_start().chars().next()?;
    if !matches!(first, '{' | '[') {
        return None;
    }
    let mut reader = JsonReader { text: text.as_bytes(), at: 0, out: String::new() };
    reader.value(0)?;
    reader.skip_spaces();
    (reader.at == text.len()).then_some(reader.out)
}

struct JsonReader<'a> {
    text: &'a [u8],
    at: usize,
    out: String,
}

impl JsonReader<'_> {
    fn skip_spaces(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        self.skip_spaces();
        self.text.get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn new_line(&mut self, depth: usize) {
        self.out.push('\n');
        self.out.push_str(&" ".repeat(depth * INDENT));
    }

    /// Appends the text from a position up to the current one.
    fn copy_from(&mut self, begin: usize) {
        self.out.push_str(&String::from_utf8_lossy(&self.text[begin..self.at]));
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        match self.peek()? {
            b'{' => self.elements(b'}', depth, |reader| {
                reader.string()?;
                if !reader.takes(b':') {
                    return None;
                }
                reader.out.push_str(": ");
                reader.value(depth + 1)
            }),
            b'[' => self.elements(b']', depth, |reader| reader.value(depth + 1)),
            b'"' => self.string(),
            _ => self.word(),
        }
    }

    /// Reads an object or an array, whose elements `element` reads.
    fn elements(
        &mut self,
        end: u8,
        depth: usize,
        element: impl Fn(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.out.push(char::from(self.text[self.at]));
        self.at += 1;
        if self.takes(end) {
            self.out.push(char::from(end));
            return Some(());
        }
        loop {
            self.new_line(depth + 1);
            element(self)?;
            if self.takes(b',') {
                self.out.push(',');
                continue;
            }
            if !self.takes(end) {
                return None;
            }
            self.new_line(depth);
            self.out.push(char::from(end));
            return Some(());
        }
    }

    fn string(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        let begin = self.at;
        self.at += 1;
        loop {
            match *self.text.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                0..=0x1f => return None,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.copy_from(begin);
        Some(())
    }

    /// Reads a number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<()> {
        let begin = self.at;
        let is_part =
            |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.');
        while self.text.get(self.at).is_some_and(is_part) {
            self.at += 1;
        }
        let word = std::str::from_utf8(&self.text[begin..self.at]).ok()?;
        let begins_number = word.starts_with(|first: char| first.is_ascii_digit() || first == '-');
        let is_number = begins_number && word.parse::<f64>().is_ok_and(f64::is_finite);
        if !is_number && !matches!(word, "true" | "false" | "null") {
            return None;
        }
        self.copy_from(begin);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_arrays_are_indented() {
        let text = r#" {"a":[1,-2.5e3,"x\"}"],"b":{},"c":[],"d":null} "#;
        let expected = "{\n  \"a\": [\n    1,\n    -2.5e3,\n    \"x\\\"}\"\n  ],\n  \"b\": {},\n  \"c\": [],\n  \"d\": null\n}";
        assert_eq!(pretty(text.as_bytes()).as_deref(), Some(expected));
    }

    #[test]
    fn other_texts_are_not_json() {
        for text in [
            "", "1", "\"a\"", "{", "{\"a\"}", "[1,]", "[1] x", "{a:1}", "[nul]", "[\"a", "[\"\\",
            "[inf]", "[1e]",
        ] {
            assert_eq!(pretty(text.as_bytes()), None, "{text}");
        }
        assert_eq!(pretty(&b"[".repeat(100_000)), None);
        assert_eq!(pretty(b"[\"\xff\"]"), None);
    }
}
