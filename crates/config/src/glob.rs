//! Glob patterns in the configuration: CONFIG GET, `include`, COMMAND LIST. The engine does the
//! matching.

use brisk_engine::glob::{self, Case};

/// Returns true if the whole `text` matches `pattern`; with `nocase`, ASCII letters match either
/// case.
///
/// As in Redis, an empty text matches only the empty pattern, not even `*`. Callers for which `*`
/// means "all" must check for that first.
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    glob::matches(pattern, text, if nocase { Case::Ignored } else { Case::Matters })
}

/// Returns true if `pattern` can match anything other than itself, by the rules of CONFIG GET.
pub fn is_pattern(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
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
