//! Formats replies for people.

use crate::quote::quote;
use brisk_resp::Value;
use std::io::Write;

/// Appends a complete reply.
pub(super) fn reply(out: &mut Vec<u8>, value: &Value) {
    show(out, value, "");
}

fn show(out: &mut Vec<u8>, value: &Value, prefix: &str) {
    match value {
        Value::Simple(text) => line(out, &[text]),
        Value::Error(text) => line(out, &[b"(error) ", text]),
        Value::Integer(number) => line(out, &[b"(integer) ", number.to_string().as_bytes()]),
        Value::Bulk(bytes) => line(out, &[quote(bytes).as_bytes()]),
        Value::Null | Value::NullArray => line(out, &[b"(nil)"]),
        Value::Double(double) => line(out, &[b"(double) ", &double.text]),
        Value::Boolean(true) => line(out, &[b"(true)"]),
        Value::Boolean(false) => line(out, &[b"(false)"]),
        Value::BigNumber(digits) => line(out, &[b"(big number) ", digits]),
        Value::Verbatim { text, .. } => line(out, &[text]),
        Value::Array(list) => elements(out, list, ')', "(empty array)", prefix),
        Value::Set(list) => elements(out, list, '~', "(empty set)", prefix),
        Value::Push(list) => elements(out, list, ')', "(empty push)", prefix),
        Value::Map(pairs) => map(out, pairs, prefix),
        Value::Attributed { value, .. } => show(out, value, prefix),
    }
}

fn line(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
    out.push(b'\n');
}

/// Appends the number of an element, padded to the width of the largest number. The prefix precedes every number except
/// the first.
fn number(out: &mut Vec<u8>, at: usize, width: usize, mark: char, prefix: &str) {
    let prefix = if at == 0 { "" } else { prefix };
    // Writing to memory cannot fail.
    let _ = write!(out, "{prefix}{:>width$}{mark} ", at + 1);
}

fn digits(count: usize) -> usize {
    count.checked_ilog10().unwrap_or(0) as usize + 1
}

fn elements(out: &mut Vec<u8>, list: &[Value], mark: char, empty: &str, prefix: &str) {
    if list.is_empty() {
        return line(out, &[empty.as_bytes()]);
    }
    let width = digits(list.len());
    let within = format!("{prefix}{:1$}", "", width + 2);
    for (at, element) in list.iter().enumerate() {
        number(out, at, width, mark, prefix);
        show(out, element, &within);
    }
}

fn map(out: &mut Vec<u8>, pairs: &[(Value, Value)], prefix: &str) {
    if pairs.is_empty() {
        return line(out, &[b"(empty hash)"]);
    }
    let width = digits(pairs.len());
    let within = format!("{prefix}{:1$}", "", width + 2);
    for (at, (key, value)) in pairs.iter().enumerate() {
        number(out, at, width, '#', prefix);
        show(out, key, &within);
        // A value follows its key on the same line; a value with several lines follows on the next line.
        out.pop();
        out.extend_from_slice(b" => ");
        if !fits_a_line(value) {
            out.push(b'\n');
            out.extend_from_slice(within.as_bytes());
        }
        show(out, value, &within);
    }
}

/// Reports whether a value is a single value, possibly in nested lists.
fn fits_a_line(value: &Value) -> bool {
    match value.without_attributes() {
        Value::Map(pairs) => {
            pairs.len() <= 1
                && pairs.iter().all(|(key, value)| fits_a_line(key) && fits_a_line(value))
        }
        other => {
            let list = other.as_slice().unwrap_or_default();
            list.len() <= 1 && list.iter().all(fits_a_line)
        }
    }
}
