//! The reply of each command in RESP2 and RESP3. A test compares the types with those of a server.
//!
//! | file | commands |
//! |---|---|
//! | `keys` | keys of any type, strings, bitmaps, HyperLogLog |
//! | `collections` | lists, hashes, sets, sorted sets, geospatial indexes |
//! | `streams` | streams, Pub/Sub, transactions, scripts and functions |
//! | `server` | connections, server, cluster |

mod collections;
mod keys;
mod server;
mod streams;
#[cfg(test)]
mod tests;

use super::text::{cell, escaped, wrapped};
use brisk_engine::table::Row;
use std::fmt::Write as _;

/// The type of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Status,
    Integer,
    Bulk,
    Null,
    NullArray,
    Array,
    /// Names and values.
    Map,
    Set,
    /// A floating point number.
    Double,
    /// Text for people.
    Verbatim,
    /// Elements with a value each, for example members with scores.
    Pairs,
    /// Keys of streams with their entries.
    Streams,
    /// Messages of a subscription.
    Messages,
    /// Any type, for example the reply of a script.
    Any,
    /// Nothing is sent.
    Nothing,
}

impl Shape {
    fn resp2(self) -> &'static str {
        match self {
            Shape::Status => "simple string",
            Shape::Integer => "integer",
            Shape::Bulk | Shape::Double | Shape::Verbatim => "bulk string",
            Shape::Null => "null bulk string",
            Shape::NullArray => "null array",
            Shape::Array | Shape::Set | Shape::Messages => "array",
            Shape::Map | Shape::Pairs => "flat array",
            Shape::Streams => "array of pairs",
            Shape::Any => "any",
            Shape::Nothing => "no reply",
        }
    }

    fn resp3(self) -> &'static str {
        match self {
            Shape::Double => "double",
            Shape::Verbatim => "verbatim string",
            Shape::Null | Shape::NullArray => "null",
            Shape::Set => "set",
            Shape::Map | Shape::Streams => "map",
            Shape::Pairs => "array of pairs",
            Shape::Messages => "push",
            same => same.resp2(),
        }
    }
}

/// A possible reply and its meaning.
type Variant = (Shape, &'static str);

/// The possible replies of a command, by its full name.
type Replies = (&'static str, &'static [Variant]);

const HELP: &[Variant] = &[(Shape::Array, "The subcommands with their syntax.")];

/// Returns the possible replies of a command; nothing for a container.
pub(super) fn of(row: &Row) -> Option<&'static [Variant]> {
    if row.parent.is_some() && row.spec.name == "help" {
        return Some(HELP);
    }
    all().find(|(name, _)| *name == row.full_name()).map(|(_, variants)| *variants)
}

fn all() -> impl Iterator<Item = &'static Replies> {
    [keys::REPLIES, collections::REPLIES, streams::REPLIES, server::REPLIES].into_iter().flatten()
}

/// Writes the section about the reply.
pub(super) fn describe(out: &mut String, variants: &[Variant], heading: &str) {
    _ = write!(out, "\n{heading} Reply\n\n");
    if let [(Shape::Any | Shape::Nothing, text)] = variants {
        _ = writeln!(out, "{}", wrapped(&escaped(text), ""));
        return;
    }
    if variants.iter().all(|(shape, _)| shape.resp2() == shape.resp3()) {
        for (shape, text) in variants {
            let kind = capitalized(shape.resp2());
            _ = writeln!(out, "{}", wrapped(&format!("- {kind}: {}", escaped(text)), "  "));
        }
        return;
    }
    out.push_str("| RESP2 | RESP3 | meaning |\n|---|---|---|\n");
    for (shape, text) in variants {
        let text = cell(&escaped(text));
        _ = writeln!(out, "| {} | {} | {text} |", shape.resp2(), shape.resp3());
    }
}

/// Returns a text with a capital letter at its start.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
