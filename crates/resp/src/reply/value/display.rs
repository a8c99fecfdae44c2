//! Displays replies as `redis-cli` does on a terminal, without the last line end.
//!
//! The entries of a list are numbered, and the numbers are aligned to the widest one. A nested list
//! is indented by the width of its own number. The number is followed by `)` for arrays and pushes,
//! `~` for sets, `#` for maps. A map's value is shown on a separate line if it has several entries.
//! `redis-cli` 7.0 cannot show big numbers or attributes. Here, big numbers look like doubles, and
//! attributes are left out.

use std::fmt::{Display, Formatter, Result, Write};

use super::Value;

impl Display for Value {
    /// O(size × depth). Bytes that are not UTF-8 in text lines become U+FFFD.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        show(self, f, 0)
    }
}

/// Displays one value; its later lines are indented by `indent`.
fn show(value: &Value, f: &mut Formatter<'_>, indent: usize) -> Result {
    match value {
        Value::Simple(text) | Value::Verbatim { text, .. } => text_of(text, f),
        Value::Error(text) => {
            f.write_str("(error) ")?;
            text_of(text, f)
        }
        Value::Integer(number) => write!(f, "(integer) {number}"),
        Value::Bulk(bytes) => quoted(bytes, f),
        Value::Null | Value::NullArray => f.write_str("(nil)"),
        Value::Double(double) => {
            f.write_str("(double) ")?;
            text_of(&double.text, f)
        }
        Value::Boolean(value) => f.write_str(if *value { "(true)" } else { "(false)" }),
        Value::BigNumber(digits) => {
            f.write_str("(big number) ")?;
            text_of(digits, f)
        }
        Value::Array(list) if list.is_empty() => f.write_str("(empty array)"),
        Value::Map(pairs) if pairs.is_empty() => f.write_str("(empty hash)"),
        Value::Set(list) if list.is_empty() => f.write_str("(empty set)"),
        Value::Push(list) if list.is_empty() => f.write_str("(empty push)"),
        Value::Array(list) | Value::Push(list) => show_list(list, ')', f, indent),
        Value::Set(list) => show_list(list, '~', f, indent),
        Value::Map(pairs) => show_map(pairs, f, indent),
        Value::Attributed { value, .. } => show(value, f, indent),
    }
}

fn show_list(list: &[Value], mark: char, f: &mut Formatter<'_>, indent: usize) -> Result {
    let width = digits_of(list.len());
    for (at, element) in list.iter().enumerate() {
        number(at, width, mark, f, indent)?;
        show(element, f, indent + width + 2)?;
    }
    Ok(())
}

fn show_map(pairs: &[(Value, Value)], f: &mut Formatter<'_>, indent: usize) -> Result {
    let width = digits_of(pairs.len());
    let inner = indent + width + 2;
    for (at, (key, value)) in pairs.iter().enumerate() {
        number(at, width, '#', f, indent)?;
        show(key, f, inner)?;
        f.write_str(" => ")?;
        if entries(value) > 1 {
            write!(f, "\n{:inner$}", "")?;
        }
        show(value, f, inner)?;
    }
    Ok(())
}

/// Begins the entry at index `at`; all but the first begin a new line.
fn number(at: usize, width: usize, mark: char, f: &mut Formatter<'_>, indent: usize) -> Result {
    if at > 0 {
        write!(f, "\n{:indent$}", "")?;
    }
    write!(f, "{:width$}{mark} ", at + 1)
}

fn entries(value: &Value) -> usize {
    match value.without_attributes() {
        Value::Array(list) | Value::Set(list) | Value::Push(list) => list.len(),
        Value::Map(pairs) => pairs.len(),
        _ => 0,
    }
}

fn digits_of(count: usize) -> usize {
    count.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn text_of(text: &[u8], f: &mut Formatter<'_>) -> Result {
    f.write_str(&String::from_utf8_lossy(text))
}

fn quoted(bytes: &[u8], f: &mut Formatter<'_>) -> Result {
    f.write_char('"')?;
    for &byte in bytes {
        match byte {
            b'"' => f.write_str("\\\""),
            b'\\' => f.write_str("\\\\"),
            b'\n' => f.write_str("\\n"),
            b'\r' => f.write_str("\\r"),
            b'\t' => f.write_str("\\t"),
            0x07 => f.write_str("\\a"),
            0x08 => f.write_str("\\b"),
            b' '..=b'~' => f.write_char(char::from(byte)),
            other => write!(f, "\\x{other:02x}"),
        }?;
    }
    f.write_char('"')
}
