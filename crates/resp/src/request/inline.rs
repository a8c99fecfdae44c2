//! Inline requests: one line that is split at blanks, with shell-like quotes.
//!
//! - `"…"` supports `\n \r \t \b \a \xHH`; any other escaped byte stands for itself.
//! - `'…'` supports only `\'`.
//! - Quotes may start inside an argument (`a"b c"` is `ab c`), but a closing quote ends it: a blank
//!   or the end of the line must follow.
//! - Blanks before an argument are space and `\t \n \v \f \r`. An argument without quotes ends only
//!   at space, `\t`, `\n` or `\r`. Redis has these two sets of blanks by accident, but clients can
//!   see the difference.

use super::{Span, Spans, UNESCAPED};
use crate::error::ProtocolError;

/// Splits a line (without its end), appends its arguments and returns their number. O(line).
///
/// # Errors
/// `UnbalancedQuotes`; `args` is then unchanged.
pub(super) fn split(line: &[u8], args: &mut Spans) -> Result<usize, ProtocolError> {
    let marks = (args.list.len(), args.unescaped.len());
    let mut at = 0;
    while let Some(skipped) = line[at..].iter().position(|&byte| !is_blank(byte)) {
        at += skipped;
        let rest = &line[at..];
        let plain = rest.iter().position(|&byte| ends_plain_run(byte)).unwrap_or(rest.len());
        if !matches!(rest.get(plain), Some(b'"' | b'\'')) {
            args.list.push(Span { start: at, len: plain });
            at += plain;
            continue;
        }
        let start = args.unescaped.len();
        args.unescaped.extend_from_slice(&rest[..plain]);
        let Some(quoted) = unquote(&rest[plain..], &mut args.unescaped) else {
            args.list.truncate(marks.0);
            args.unescaped.truncate(marks.1);
            return Err(ProtocolError::UnbalancedQuotes);
        };
        args.list.push(Span { start: start | UNESCAPED, len: args.unescaped.len() - start });
        at += plain + quoted;
    }
    Ok(args.list.len() - marks.0)
}

/// Appends the quoted text that starts at `text[0]`, and returns its length with both quotes.
/// Returns `None` if it is not closed or if something other than a blank follows the closing quote.
fn unquote(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let quote = *text.first()?;
    let mut at = 1;
    loop {
        let (byte, len) = match (quote, &text[at..]) {
            (_, []) => return None,
            (_, [close, after @ ..]) if *close == quote => {
                return after.first().is_none_or(|&byte| is_blank(byte)).then_some(at + 1);
            }
            (b'"', [b'\\', b'x', high, low, ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex(*high) << 4 | hex(*low), 4)
            }
            (b'"', [b'\\', escaped, ..]) => (escape(*escaped), 2),
            (b'\'', [b'\\', b'\'', ..]) => (b'\'', 2),
            (_, [byte, ..]) => (*byte, 1),
        };
        out.push(byte);
        at += len;
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn ends_plain_run(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'')
}

fn escape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// Returns the value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
