//! Amounts for people: bytes, counts and durations. Also tables with aligned columns.

use crate::quote::quote;
pub(crate) use brisk_analyze::report::{count as grouped, size as bytes};
use std::time::Duration;

/// A rate or an average: with decimals only if it is small.
pub(crate) fn rate(number: f64) -> String {
    if number == 0.0 {
        "0".to_owned()
    } else if number < 9.995 {
        format!("{number:.2}")
    } else if number < 99.95 {
        format!("{number:.1}")
    } else {
        grouped(number.round() as u64)
    }
}

/// A duration of seconds or more, in its two largest units.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if days > 0 {
        format!("{days} d {} h", hours % 24)
    } else if hours > 0 {
        format!("{hours} h {} min", minutes % 60)
    } else if minutes > 0 {
        format!("{minutes} min {} s", seconds % 60)
    } else {
        format!("{seconds} s")
    }
}

/// A noun in singular or plural with its count.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count))
}

/// Bytes as text, if they are printable UTF-8; otherwise quoted.
pub(crate) fn readable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => quote(bytes),
    }
}

/// The beginning of a text that fits this number of columns; a shortened text ends with an ellipsis.
pub(crate) fn shortened(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    if columns == 0 { kept } else { format!("{kept}…") }
}

/// Lines with aligned columns, each with a line end. Numbers are aligned to the right: `is_number` has a flag for
/// each column.
pub(crate) fn aligned(rows: &[Vec<String>], is_number: &[bool]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..is_number.len()).map(|at| width(at).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let (width, is_number) =
                (widths.get(at).copied().unwrap_or(0), is_number.get(at) == Some(&true));
            let cell =
                if is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
            line.push_str(if at == 0 { "" } else { "  " });
            line.push_str(&cell);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_have_units() {
        assert_eq!([bytes(0.0), bytes(1536.0), bytes(3e9)], ["0 B", "1.5 KiB", "2.8 GiB"]);
        assert_eq!([grouped(7), grouped(1000), grouped(1_234_567)], ["7", "1,000", "1,234,567"]);
        assert_eq!(
            [rate(0.0), rate(1.234), rate(99.94), rate(12345.6)],
            ["0", "1.23", "99.9", "12,346"]
        );
        let of = |seconds| duration(Duration::from_secs(seconds));
        assert_eq!(
            [of(5), of(65), of(3660), of(90_000)],
            ["5 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]
        );
        assert_eq!([counted(1, "key"), counted(2000, "key")], ["1 key", "2,000 keys"]);
    }

    #[test]
    fn texts_are_quoted_shortened_and_aligned() {
        assert_eq!([readable("häh".as_bytes()), readable(b"a\n")], ["häh", "\"a\\n\""]);
        assert_eq!([shortened("abc", 3), shortened("abcd", 3)], ["abc", "ab…"]);
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["bcd".to_owned(), "22".to_owned()]];
        assert_eq!(aligned(&rows, &[false, true]), "a     1\nbcd  22\n");
    }
}
