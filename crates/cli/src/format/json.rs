//! Formats replies as JSON. Strings are bytes, so bytes that are not UTF-8 stay unchanged. [`Strings::Quoted`] produces
//! ASCII output.

use crate::quote::quote;
use brisk_resp::Value;
use std::io::Write;

/// How strings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strings {
    /// As bytes, escaped as JSON requires.
    Bytes,
    /// In the format of [`quote`], as a JSON string.
    Quoted,
}

/// Appends a reply.
pub(super) fn reply(out: &mut Vec<u8>, value: &Value, strings: Strings) {
    match value {
        Value::Null | Value::NullArray => out.extend_from_slice(b"null"),
        Value::Error(text) => {
            out.extend_from_slice(b"error:");
            string(out, text, strings);
        }
        Value::Simple(bytes) | Value::Bulk(bytes) => string(out, bytes, strings),
        Value::Verbatim { text, .. } => string(out, text, strings),
        Value::BigNumber(digits) => out.extend_from_slice(digits),
        Value::Boolean(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(double) => out.extend_from_slice(&double.text),
        Value::Array(list) | Value::Set(list) | Value::Push(list) => {
            out.push(b'[');
            for (at, element) in list.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                reply(out, element, strings);
            }
            out.push(b']');
        }
        Value::Map(pairs) => {
            out.push(b'{');
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                name(out, key, strings);
                out.push(b':');
                reply(out, value, strings);
            }
            out.push(b'}');
        }
        Value::Attributed { value, .. } => reply(out, value, strings),
    }
}

/// Appends the name of a member. Values that are not strings are put between quotes.
fn name(out: &mut Vec<u8>, key: &Value, strings: Strings) {
    if matches!(key, Value::Simple(_) | Value::Bulk(_) | Value::Verbatim { .. }) {
        reply(out, key, strings);
    } else {
        out.push(b'"');
        reply(out, key, strings);
        out.push(b'"');
    }
}

fn string(out: &mut Vec<u8>, bytes: &[u8], strings: Strings) {
    out.push(b'"');
    match strings {
        Strings::Bytes => escape(out, bytes),
        Strings::Quoted => {
            // The surrounding quotes are not part of the text. Each backslash is escaped once more, but quotes are
            // already escaped.
            let quoted = quote(bytes);
            for byte in quoted[1..quoted.len() - 1].bytes() {
                if byte == b'\\' {
                    out.push(b'\\');
                }
                out.push(byte);
            }
        }
    }
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            8 => b"\\b",
            12 => b"\\f",
            0..=0x1f => {
                // Writing to memory cannot fail.
                let _ = write!(out, "\\u{byte:04x}");
                continue;
            }
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(escaped);
    }
}
