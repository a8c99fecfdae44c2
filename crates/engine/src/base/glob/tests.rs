//! Compares the matches of patterns with those of KEYS in Redis 7.0.15 for the same names.

use super::*;
use crate::base::random::Random;

/// The names.
const TEXTS: &[&[u8]] = &[
    b"",
    b"a",
    b"b",
    b"z",
    b"A",
    b"ab",
    b"abc",
    b"abcabc",
    b"aab",
    b"]",
    b"[",
    b"^",
    b"-",
    b"\\",
    b"*",
    b"?",
    b"a*",
    b"a]",
    b"[a",
    b"\xff",
    b"\x80",
    b"\x00",
    b"foo:bar",
    b"foo:bar:baz",
];

/// Patterns, and the names that each one matches.
const FINDINGS: &[(&[u8], &[usize])] = &[
    (b"*", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]),
    (b"**", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]),
    (b"?", &[1, 2, 3, 4, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21]),
    (b"??", &[5, 16, 17, 18]),
    (b"a*", &[1, 5, 6, 7, 8, 16, 17]),
    (b"*a", &[1, 18]),
    (b"*b*", &[2, 5, 6, 7, 8, 22, 23]),
    (b"a*b*c", &[6, 7]),
    (b"*abc", &[6, 7]),
    (b"*?", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]),
    (b"?*", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]),
    (b"a**", &[1, 5, 6, 7, 8, 16, 17]),
    (b"*a*b*c*", &[6, 7]),
    (b"[ab]", &[1, 2]),
    (b"[^ab]", &[3, 4, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21]),
    (b"[a-c]", &[1, 2]),
    (b"[c-a]", &[1, 2]),
    (b"[a-]", &[1, 9, 11]),
    (b"[-a]", &[1, 12]),
    (b"[a", &[1]),
    (b"[^", &[1, 2, 3, 4, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21]),
    (b"[", &[]),
    (b"[]", &[]),
    (b"[]a]", &[]),
    (b"[^]", &[1, 2, 3, 4, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21]),
    (b"[^]a]", &[]),
    (b"[\\]]", &[9]),
    (b"[\\]a]", &[1, 9]),
    (b"[\\", &[13]),
    (b"[a\\", &[1, 13]),
    (b"[\\a-c]", &[1, 12]),
    (b"\\*", &[14]),
    (b"\\?", &[15]),
    (b"\\", &[13]),
    (b"a\\", &[]),
    (b"a\\*", &[16]),
    (b"\\[a", &[18]),
    (b"\\a", &[1]),
    (b"[a-z]*", &[1, 2, 3, 5, 6, 7, 8, 16, 17, 22, 23]),
    (b"[z-a]b", &[5]),
    (b"[a-\xff]", &[1, 4, 9, 10, 11, 12, 13, 14, 15, 19, 21]),
    (b"[\x80-\xff]", &[19, 20]),
    (b"[^a-z]", &[4, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21]),
    (b"[[]", &[10]),
    (b"[]]", &[]),
    (b"[*]", &[14]),
    (b"[?]", &[15]),
    (b"[a-b-c]", &[1, 2, 12]),
    (b"[--0]", &[12]),
    (b"[!a]", &[1]),
    (b"*[", &[]),
    (b"*[a", &[1, 18]),
    (b"*[^a", &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23]),
    (b"foo:*", &[22, 23]),
    (b"*:*:*", &[23]),
    (b"f*:ba?", &[22, 23]),
    (b"", &[0]),
    (b"a", &[1]),
    (b"*\\", &[13]),
    (b"*\\*", &[14, 16]),
    (b"[^^]", &[1, 2, 3, 4, 9, 10, 12, 13, 14, 15, 19, 20, 21]),
    (b"[a^]", &[1, 11]),
    (b"\\\\", &[13]),
    (b"[\x00]", &[21]),
    (b"*:b[a-z]*z", &[23]),
    (b"*c*c", &[7]),
    (b"[a-b]*[b-c]", &[5, 6, 7, 8]),
];

#[test]
fn patterns_find_what_redis_finds() {
    for (pattern, want) in FINDINGS {
        // KEYS handles this pattern without matching.
        let all = *pattern == b"*";
        let found: Vec<usize> = (0..TEXTS.len())
            .filter(|at| all || matches(pattern, TEXTS[*at], Case::Matters))
            .collect();
        assert_eq!(found, *want, "{}", pattern.escape_ascii());
    }
}

#[test]
fn literals_find_what_their_pattern_finds() {
    for (pattern, _) in FINDINGS {
        let Some(name) = literal(pattern) else { continue };
        for text in TEXTS {
            let matched = matches(pattern, text, Case::Matters);
            assert_eq!(matched, name == *text, "{}", pattern.escape_ascii());
        }
    }
    assert!(literal(b"a\\*b").is_some());
    for wild in [&b"a*"[..], b"\\a?", b"x[y"] {
        assert_eq!(literal(wild), None);
    }
}

#[test]
fn case_can_be_ignored_except_for_escaped_bytes_of_a_class() {
    for (pattern, text, want) in [
        (&b"MaxMem*"[..], &b"maxmemory"[..], true),
        (b"[A-C]", b"b", true),
        (b"[a-c]", b"B", true),
        (b"[abc]", b"B", true),
        (b"\\A", b"a", true),
        (b"[\\A]", b"a", false),
        (b"[^a]", b"A", false),
    ] {
        let found = matches(pattern, text, Case::Ignored);
        assert_eq!(found, want, "{}", pattern.escape_ascii());
    }
}

#[test]
fn many_stars_do_not_take_exponential_time() {
    let pattern = b"a*".repeat(1000);
    let mut text = b"a".repeat(5000);
    assert!(matches(&pattern, &text, Case::Matters));
    let pattern = [&pattern[..], b"b"].concat();
    assert!(!matches(&pattern, &text, Case::Matters));
    text.push(b'b');
    assert!(matches(&pattern, &text, Case::Matters));
}

/// The definition, by recursion: a star matches every possible number of bytes.
fn matches_by_trying_all(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        ([b'*', rest @ ..], _) => {
            (0..=text.len()).any(|taken| matches_by_trying_all(rest, &text[taken..]))
        }
        (_, []) => false,
        (_, [byte, after @ ..]) => one_element(pattern, *byte)
            .is_some_and(|len| matches_by_trying_all(&pattern[len..], after)),
    }
}

/// The length of the pattern's first element if it matches `byte`.
fn one_element(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', inside @ ..] => {
            let negated = inside.first() == Some(&b'^');
            let mut members = Vec::new();
            let mut at = usize::from(negated);
            while at < inside.len() && inside[at] != b']' {
                if inside[at] == b'\\' && at + 1 < inside.len() {
                    members.push(inside[at + 1]);
                    at += 2;
                } else if at + 2 < inside.len() && inside[at + 1] == b'-' {
                    let (a, b) = (inside[at] as i8, inside[at + 2] as i8);
                    members.extend((a.min(b)..=a.max(b)).map(|member| member as u8));
                    at += 3;
                } else {
                    members.push(inside[at]);
                    at += 1;
                }
            }
            let len = 1 + (at + 1).min(inside.len());
            (members.contains(&byte) != negated).then_some(len)
        }
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [plain, ..] => (*plain == byte).then_some(1),
        [] => None,
    }
}

#[test]
fn random_patterns_match_as_in_an_exhaustive_search() {
    const PATTERN_BYTES: &[u8] = b"ab-*?[]^\\";
    const TEXT_BYTES: &[u8] = b"ab-^";
    let mut random = Random::seeded(1);
    let mut draw = |from: &[u8], max: u64| -> Vec<u8> {
        let len = 1 + random.below(max);
        (0..len).map(|_| from[random.below(from.len() as u64) as usize]).collect()
    };
    let mut found = 0;
    for _ in 0..50_000 {
        let (pattern, text) = (draw(PATTERN_BYTES, 9), draw(TEXT_BYTES, 7));
        let want = matches_by_trying_all(&pattern, &text);
        let got = matches(&pattern, &text, Case::Matters);
        assert_eq!(got, want, "{} on {}", pattern.escape_ascii(), text.escape_ascii());
        found += usize::from(got);
    }
    assert!(found > 1000, "only {found} of the pairs match");
}

/// Measured with Redis 7.0.15: 1000 stars match, 1001 do not, regardless of what follows them.
#[test]
fn very_many_stars_match_nothing() {
    let stars = |count: usize| b"*?".repeat(count);
    let text = vec![b'a'; 1001];
    assert!(matches(&stars(1000), &text, Case::Matters));
    assert!(!matches(&stars(1001), &text, Case::Matters));
    assert!(matches(&[stars(1000), b"*".to_vec()].concat(), &text, Case::Matters));
    assert!(matches(&[b'*'; 5000], &text, Case::Matters));
}
