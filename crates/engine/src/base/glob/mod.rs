//! Glob patterns on bytes, as KEYS, SCAN, PSUBSCRIBE and CONFIG GET understand them.
//!
//! ```text
//!  *        any bytes, or none          [abc]  one of these        \x   x itself
//!  ?        any one byte                [^abc] none of these       [a-z] a range, in either order
//! ```
//!
//! Every element except the star matches exactly one byte. If a match fails, only the last star has
//! to be tried with more bytes: O(pattern x text) in the worst case, without recursion.
//!
//! Deliberate peculiarities, all of which Redis has too: a class without `]` ends with the pattern;
//! a range compares signed bytes; inside a class an escaped byte is compared exactly, even if case
//! is ignored; the empty text matches only the empty pattern; a pattern with very many stars
//! matches nothing.

use std::borrow::Cow;

/// How uppercase and lowercase letters compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Matters,
    /// ASCII letters only.
    Ignored,
}

/// A pattern with more stars than this matches nothing. Adjacent stars count as one, and a star at
/// the end does not count.
const STARS_MAX: usize = 1000;

/// Reports whether the whole of `text` matches `pattern`. O(pattern x text) in the worst case.
pub fn matches(pattern: &[u8], text: &[u8], case: Case) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut at, mut taken) = (0, 0);
    // After the last star: the position in the pattern, and how much text was consumed.
    let mut last_star: Option<(usize, usize)> = None;
    let mut stars = 0;
    while taken < text.len() {
        if pattern.get(at) == Some(&b'*') {
            at += pattern[at..].iter().take_while(|byte| **byte == b'*').count();
            if at == pattern.len() {
                return true;
            }
            stars += 1;
            if stars > STARS_MAX {
                return false;
            }
            last_star = Some((at, taken));
        } else if let Some(next) = element(pattern, at, text[taken], case) {
            (at, taken) = (next, taken + 1);
        } else if let Some((after_star, from)) = last_star {
            last_star = Some((after_star, from + 1));
            (at, taken) = (after_star, from + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// The only text that a pattern matches, if it has no star, question mark or class.
pub fn literal(pattern: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\')) {
        return Some(Cow::Borrowed(pattern));
    }
    let mut text = Vec::with_capacity(pattern.len());
    let mut rest = pattern.iter();
    while let Some(&byte) = rest.next() {
        match byte {
            b'*' | b'?' | b'[' => return None,
            // A backslash at the very end stands for itself.
            b'\\' => text.push(rest.next().copied().unwrap_or(byte)),
            plain => text.push(plain),
        }
    }
    Some(Cow::Owned(text))
}

/// The position of the next element, if the element at `at`, which is not a star, matches `byte`.
fn element(pattern: &[u8], at: usize, byte: u8, case: Case) -> Option<usize> {
    match (pattern.get(at)?, pattern.get(at + 1)) {
        (b'?', _) => Some(at + 1),
        (b'[', _) => class(pattern, at + 1, byte, case),
        (b'\\', Some(escaped)) => same(*escaped, byte, case).then_some(at + 2),
        (plain, _) => same(*plain, byte, case).then_some(at + 1),
    }
}

/// Like `element`, for the class whose `[` precedes `at`.
fn class(pattern: &[u8], mut at: usize, byte: u8, case: Case) -> Option<usize> {
    let negated = pattern.get(at) == Some(&b'^');
    at += usize::from(negated);
    let mut found = false;
    loop {
        match &pattern[at..] {
            [] => break,
            [b'\\', escaped, ..] => {
                found |= *escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                found |= in_range(*first, *last, byte, case);
                at += 3;
            }
            [plain, ..] => {
                found |= same(*plain, byte, case);
                at += 1;
            }
        }
    }
    (found != negated).then_some(at)
}

fn same(a: u8, b: u8, case: Case) -> bool {
    match case {
        Case::Matters => a == b,
        Case::Ignored => a.eq_ignore_ascii_case(&b),
    }
}

fn in_range(first: u8, last: u8, byte: u8, case: Case) -> bool {
    let (mut low, mut high, mut byte) = (first as i8, last as i8, byte as i8);
    if low > high {
        (low, high) = (high, low);
    }
    if case == Case::Ignored {
        let lower = |byte: i8| (byte as u8).to_ascii_lowercase() as i8;
        (low, high, byte) = (lower(low), lower(high), lower(byte));
    }
    (low..=high).contains(&byte)
}

#[cfg(test)]
mod tests;
