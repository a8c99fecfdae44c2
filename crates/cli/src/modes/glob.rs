//! Patterns of SCAN and KEYS, for names that the program filters itself.

/// Reports whether a pattern matches all of a text. O(pattern · text).
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut in_text) = (0, 0);
    // The last star, and the text that it does not match yet.
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at + 1, in_text));
            at += 1;
            continue;
        }
        match one(&pattern[at..], text[in_text]) {
            Some(len) => (at, in_text) = (at + len, in_text + 1),
            None => {
                let Some((after, begun)) = star else { return false };
                star = Some((after, begun + 1));
                (at, in_text) = (after, begun + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// The length of the beginning of a pattern that matches one byte; `None` if it does not match.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', rest @ ..] => class(rest, byte).map(|len| len + 1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [other, ..] => (*other == byte).then_some(1),
    }
}

/// The length of a class, after its opening bracket, that contains the byte.
fn class(class: &[u8], byte: u8) -> Option<usize> {
    let is_negated = class.first() == Some(&b'^');
    let mut at = usize::from(is_negated);
    let mut is_found = false;
    loop {
        match class[at.min(class.len())..] {
            // A class that is not closed ends with the pattern.
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                is_found |= escaped == byte;
                at += 2;
            }
            [first, b'-', last, ..] => {
                is_found |= (first.min(last)..=first.max(last)).contains(&byte);
                at += 3;
            }
            [one, ..] => {
                is_found |= one == byte;
                at += 1;
            }
        }
    }
    (is_found != is_negated).then_some(at.min(class.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_scan() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("user:*", "user:1", true),
            ("user:*:x", "user:1:2:x", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("h?llo", "hello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("a[b", "ab", true),
            ("[\\]]", "]", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
