//! Redis's glob patterns: `*`, `?`, `[abc]`, `[^a-z]` and backslash as escape.
//!
//! Matching keeps one point to return to, the last `*` seen: a later star makes earlier ones irrelevant, since
//! whatever an earlier star could have swallowed the later one can too. So the cost is at most
//! O(pattern × text), for any pattern, with no recursion.

/// Whether `text` as a whole matches `pattern`; with `nocase` ASCII letters match either case.
///
/// O(pattern × text) at worst, O(pattern + text) without stars. Never fails: an unfinished class or a
/// backslash at the end is read as Redis reads it. As in Redis an empty text fits only the empty pattern, not
/// even `*`: callers for whom `*` means "all" must ask for that first.
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let mut rest = pattern;
    let mut at = 0;
    // Where to go on after a mismatch: the pattern behind the last star and the text it has not swallowed yet.
    let mut retry: Option<(&[u8], usize)> = None;
    loop {
        if let [b'*', after @ ..] = rest {
            rest = after;
            if rest.is_empty() {
                return true;
            }
            retry = Some((rest, at));
            continue;
        }
        let step = match text.get(at) {
            None if rest.is_empty() => return true,
            // More text cannot appear: what is left of the pattern wants at least one byte.
            None => return false,
            Some(&byte) => one(rest, byte, nocase),
        };
        if let Some(after) = step {
            rest = after;
            at += 1;
        } else if let Some((behind_star, from)) = retry {
            retry = Some((behind_star, from + 1));
            rest = behind_star;
            at = from + 1;
        } else {
            return false;
        }
    }
}

/// Whether `pattern` can match anything but itself, as CONFIG GET judges it.
pub fn is_pattern(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// Matches the first item of `pattern` against one byte; the rest of the pattern if it fits.
fn one(pattern: &[u8], byte: u8, nocase: bool) -> Option<&[u8]> {
    let same = |a: u8| a == byte || nocase && a.eq_ignore_ascii_case(&byte);
    match pattern {
        [] => None,
        [b'?', after @ ..] => Some(after),
        [b'[', after @ ..] => {
            let (hit, after) = class(after, byte, nocase);
            hit.then_some(after)
        }
        [b'\\', literal, after @ ..] | [literal, after @ ..] => same(*literal).then_some(after),
    }
}

/// Reads a class up to its `]` (or the end of the pattern, which closes it as well).
fn class(mut pattern: &[u8], byte: u8, nocase: bool) -> (bool, &[u8]) {
    let fold = |b: u8| if nocase { b.to_ascii_lowercase() } else { b };
    let wanted = fold(byte);
    let negated = matches!(pattern, [b'^', ..]);
    if negated {
        pattern = &pattern[1..];
    }
    let mut hit = false;
    loop {
        match pattern {
            [] => return (hit != negated, pattern),
            [b']', after @ ..] => return (hit != negated, after),
            [b'\\', literal, after @ ..] => {
                hit |= fold(*literal) == wanted;
                pattern = after;
            }
            [low, b'-', high, after @ ..] => {
                let (low, high) = (fold(*low.min(high)), fold(*low.max(high)));
                hit |= (low..=high).contains(&wanted);
                pattern = after;
            }
            [literal, after @ ..] => {
                hit |= fold(*literal) == wanted;
                pattern = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        matches(pattern.as_bytes(), text.as_bytes(), false)
    }

    #[test]
    fn stars_and_question_marks_match_any_text() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", false),
            ("a*c", "abbbc", true),
            ("a*c", "abbbcd", false),
            ("*ab*ab*", "xabxxabx", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("?", "", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn classes_know_ranges_negation_and_escapes() {
        for (pattern, text, expected) in [
            ("[abc]x", "bx", true),
            ("[^abc]x", "bx", false),
            ("[^abc]x", "dx", true),
            ("[a-c]", "b", true),
            ("[c-a]", "b", true),
            ("[\\]]", "]", true),
            ("[a", "a", true),
            ("[]", "a", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
        assert!(matches(b"MAX[A-Z]*", b"maxmemory", true));
        assert!(!matches(b"MAX*", b"maxmemory", false));
    }

    #[test]
    fn many_stars_cost_no_more_than_pattern_times_text() {
        let pattern = "a*".repeat(2_000) + "b";
        assert!(!fits(&pattern, &"a".repeat(20_000)));
    }
}
