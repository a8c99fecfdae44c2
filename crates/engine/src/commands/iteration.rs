//! The common part of SCAN, SSCAN, HSCAN and ZSCAN: cursors and filter options.

use crate::base::error::{CommandError, Result};
use crate::base::glob::{self, Case};
use crate::command::args::Args;
use crate::reply::{Outcome, Reply};
use brisk_structures::listpack::Item;

/// Takes the next argument as a cursor.
pub(super) fn cursor(args: &mut Args<'_>) -> Result<u64> {
    parse_cursor(args.bytes()?).ok_or(CommandError::InvalidCursor)
}

/// Parses a cursor as C's `strtoul` does, because Redis uses it. A sign is allowed (minus wraps
/// around), an empty text is 0, and a NUL ends the number. Blanks are not allowed.
fn parse_cursor(word: &[u8]) -> Option<u64> {
    let word = before_nul(word);
    let (negative, digits) = match word {
        [] => return Some(0),
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, word),
    };
    if digits.is_empty() {
        return None;
    }
    let mut number = 0u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(if negative { number.wrapping_neg() } else { number })
}

/// The bytes before the first NUL.
pub(super) fn before_nul(word: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, word).unwrap_or(word.len());
    &word[..end]
}

/// The pattern to test with; `None` for a single star, which matches everything, including the
/// empty key.
pub(super) fn to_test(pattern: &[u8]) -> Option<&[u8]> {
    (pattern != b"*").then_some(pattern)
}

/// The options of a scan step: which elements of a collection it shows, and about how many.
pub(super) struct ScanOptions<'a> {
    pub(super) count: u64,
    /// `None`: all.
    pattern: Option<&'a [u8]>,
    /// True if values or scores are shown along with the elements.
    pub(super) with_values: bool,
}

impl<'a> ScanOptions<'a> {
    /// Takes the remaining arguments: MATCH and COUNT. The last of each counts.
    pub(super) fn parse(args: &mut Args<'a>) -> Result<ScanOptions<'a>> {
        ScanOptions::parse_words(args, None)
    }

    /// Like [`ScanOptions::parse`], with the option `alone`, which shows only the first halves of
    /// pairs.
    pub(super) fn parse_of_pairs(args: &mut Args<'a>, alone: &str) -> Result<ScanOptions<'a>> {
        ScanOptions::parse_words(args, Some(alone))
    }

    fn parse_words(args: &mut Args<'a>, alone: Option<&str>) -> Result<ScanOptions<'a>> {
        let mut step = ScanOptions { count: 10, pattern: None, with_values: true };
        while args.remaining() > 0 {
            if args.take("COUNT") {
                let count = args.integer()?;
                if count < 1 {
                    return Err(CommandError::Syntax);
                }
                step.count = count.unsigned_abs();
            } else if args.take("MATCH") {
                step.pattern = to_test(args.bytes()?);
            } else if alone.is_some_and(|word| args.take(word)) {
                step.with_values = false;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(step)
    }

    /// Reports whether the pattern matches the element, or its field.
    pub(super) fn admits(&self, element: Item<'_>) -> bool {
        self.pattern.is_none() || self.admits_text(element.text(&mut itoa::Buffer::new()))
    }

    /// Like [`ScanOptions::admits`], for an element that is available as text.
    pub(super) fn admits_text(&self, element: &[u8]) -> bool {
        let fits = |pattern| glob::matches(pattern, element, Case::Matters);
        self.pattern.is_none_or(fits)
    }
}

/// Replies to one step. `walk` writes elements to the reply, and returns the next cursor and the
/// number of elements. Both are inserted before the elements.
pub(super) fn reply_step(
    reply: &mut Reply<'_>,
    walk: impl FnOnce(&mut Reply<'_>) -> (u64, usize),
) -> Outcome {
    reply.array(2);
    let mark = reply.buffer().mark();
    let (next, shown) = walk(reply);
    reply.before(mark, |reply| {
        // Cursors have fewer than 63 bits.
        reply.bulk_integer(next as i64);
        reply.array(shown);
    })
}

/// Replies to a step of a scan of a key that does not exist.
pub(super) fn reply_empty_step(reply: &mut Reply<'_>) -> Outcome {
    reply_step(reply, |_| (0, 0))
}
