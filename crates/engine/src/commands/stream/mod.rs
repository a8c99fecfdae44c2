//! The stream group: entries in the order of their IDs, and consumer groups that read them.

mod add;
mod delete;
mod entries;
mod group;
mod id;
mod info;
mod range;
mod read;
mod trim;

#[cfg(test)]
mod tests;

use crate::base::error::{CommandError, Result};
use crate::call::ctx::Command;
use crate::keyspace::{Key, Keys};
use crate::types::stream::{Group, Stream};

pub(super) const GROUP_COMMANDS: &[&[Command]] = &[
    add::COMMANDS,
    delete::COMMANDS,
    trim::COMMANDS,
    range::COMMANDS,
    read::COMMANDS,
    group::COMMANDS,
    group::pending::COMMANDS,
    group::claim::COMMANDS,
    info::COMMANDS,
];

/// The error if a group, or its key, does not exist.
fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    quote(&[b"NOGROUP No such key '", key, b"' or consumer group '", group, b"'"])
}

/// An error made of pieces, some of which are arguments.
fn quote(pieces: &[&[u8]]) -> CommandError {
    let mut text: Vec<u8> = Vec::new();
    for piece in pieces {
        text.extend(piece.split(|byte| *byte == 0).next().unwrap_or_default());
        if piece.contains(&0) {
            // As in Redis, the bytes after a NUL are lost, but only those of the same argument.
            continue;
        }
    }
    text.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b' ');
    CommandError::bytes(text)
}

/// Opens a stream and a group, both of which must exist.
fn stream_with_group<'k>(
    keys: &'k Keys<'_>,
    key: &Key<'_>,
    group: &[u8],
) -> Result<(&'k Stream, &'k Group)> {
    keys.open::<Stream>(key)?
        .and_then(|stream| Some((stream, stream.group(group)?)))
        .ok_or_else(|| no_group(key.bytes, group))
}
