//! Output formats of replies.
//!
//! | file | for |
//! |---|---|
//! | `tty.rs` | people: numbered, indented, with types |
//! | `flat.rs` | pipes (`--raw`), spreadsheets (`--csv`) |
//! | `json.rs` | programs (`--json`, `--quoted-json`) |

mod flat;
mod json;
mod tty;

use brisk_resp::Value;

/// The form in which replies are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// For people.
    Standard,
    /// The raw bytes of strings, with delimiters.
    Raw,
    /// Comma-separated values.
    Csv,
    /// JSON, with the bytes of strings unchanged.
    Json,
    /// JSON in ASCII.
    QuotedJson,
}

/// The separators of [`Output::Raw`].
#[derive(Clone, Debug)]
pub(crate) struct Delimiters {
    /// Separates the elements of a reply.
    pub(crate) element: Vec<u8>,
    /// Separates replies.
    pub(crate) reply: Vec<u8>,
}

impl Default for Delimiters {
    fn default() -> Self {
        Self { element: b"\n".to_vec(), reply: b"\n".to_vec() }
    }
}

/// Formats a complete reply with its line end. O(bytes).
pub(crate) fn reply(value: &Value, output: Output, delimiters: &Delimiters) -> Vec<u8> {
    let mut out = Vec::new();
    match output {
        Output::Standard => tty::reply(&mut out, value),
        Output::Raw => {
            flat::raw(&mut out, value, &delimiters.element);
            out.extend_from_slice(&delimiters.reply);
        }
        Output::Csv => {
            flat::csv(&mut out, value);
            out.push(b'\n');
        }
        Output::Json => {
            json::reply(&mut out, value, json::Strings::Bytes);
            out.push(b'\n');
        }
        Output::QuotedJson => {
            json::reply(&mut out, value, json::Strings::Quoted);
            out.push(b'\n');
        }
    }
    out
}

/// Formats a reply that already is text for people. Nothing is added to it.
pub(crate) fn verbatim(value: &Value, delimiters: &Delimiters) -> Vec<u8> {
    let mut out = Vec::new();
    flat::raw(&mut out, value, &delimiters.element);
    out
}

/// The line about changed keys, if the push message is an invalidation.
pub(crate) fn invalidation(push: &Value) -> Option<Vec<u8>> {
    let [Value::Bulk(kind), keys] = push.as_slice()? else { return None };
    if !kind.starts_with(b"invalidate") {
        return None;
    }
    let mut out = b"-> invalidate: ".to_vec();
    // A server that invalidates all keys does not list any.
    let keys = keys.as_slice()?;
    for (at, key) in keys.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        out.push(b'\'');
        out.extend_from_slice(key.as_bytes().unwrap_or_default());
        out.push(b'\'');
    }
    out.push(b'\n');
    Some(out)
}
