//! Formats replies as raw bytes with delimiters, or as comma-separated values. Nesting is not shown.

use crate::quote::quote;
use brisk_resp::Value;

/// Appends a reply without quotes and types.
pub(super) fn raw(out: &mut Vec<u8>, value: &Value, delimiter: &[u8]) {
    match value {
        Value::Null | Value::NullArray => {}
        Value::Error(text) => {
            out.extend_from_slice(text);
            out.push(b'\n');
        }
        Value::Simple(bytes) | Value::Bulk(bytes) | Value::BigNumber(bytes) => {
            out.extend_from_slice(bytes);
        }
        Value::Verbatim { text, .. } => out.extend_from_slice(text),
        Value::Boolean(true) => out.extend_from_slice(b"(true)"),
        Value::Boolean(false) => out.extend_from_slice(b"(false)"),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(double) => out.extend_from_slice(&double.text),
        Value::Array(list) | Value::Set(list) | Value::Push(list) => {
            for (at, element) in list.iter().enumerate() {
                if at > 0 {
                    out.extend_from_slice(delimiter);
                }
                raw(out, element, delimiter);
            }
        }
        Value::Map(pairs) => {
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.extend_from_slice(delimiter);
                }
                raw(out, key, delimiter);
                out.push(b' ');
                raw(out, value, delimiter);
            }
        }
        Value::Attributed { value, .. } => raw(out, value, delimiter),
    }
}

/// Appends a reply as one line of values.
pub(super) fn csv(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null | Value::NullArray => out.extend_from_slice(b"NULL"),
        Value::Error(text) => {
            out.extend_from_slice(b"ERROR,");
            out.extend_from_slice(quote(text).as_bytes());
        }
        Value::Simple(bytes) | Value::Bulk(bytes) => {
            out.extend_from_slice(quote(bytes).as_bytes());
        }
        Value::Verbatim { text, .. } => out.extend_from_slice(quote(text).as_bytes()),
        Value::BigNumber(digits) => out.extend_from_slice(digits),
        Value::Boolean(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(double) => out.extend_from_slice(&double.text),
        Value::Array(list) | Value::Set(list) | Value::Push(list) => {
            for (at, element) in list.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                csv(out, element);
            }
        }
        Value::Map(pairs) => {
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                csv(out, key);
                out.push(b',');
                csv(out, value);
            }
        }
        Value::Attributed { value, .. } => csv(out, value),
    }
}
