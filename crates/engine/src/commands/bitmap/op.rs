//! BITOP: bitwise operations on strings.

use crate::base::error::{CommandError, Result};
use crate::base::number::Digits;
use crate::base::steps::BYTES_PER_STEP;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::Key;
use crate::reply::Outcome;
use crate::types::Value;
use crate::types::View;
use crate::types::string::{RawString, SHARED_MIN, Str, StrRef};
use brisk_structures::chunked::ChunkedBytes;
use smallvec::SmallVec;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
}

impl Operation {
    fn parse(word: &[u8]) -> Option<Operation> {
        let known = [
            (&b"AND"[..], Operation::And),
            (b"OR", Operation::Or),
            (b"XOR", Operation::Xor),
            (b"NOT", Operation::Not),
        ];
        known.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, found)| *found)
    }

    /// The result for these strings; missing strings are empty. O(bytes of all)
    fn of_all(self, strings: &[StrRef<'_>]) -> RawString {
        let len = strings.iter().map(StrRef::len).max().unwrap_or(0);
        if len < SHARED_MIN {
            let mut result = Vec::with_capacity(len);
            self.write(strings, 0..len, &mut result);
            return RawString::Short(result);
        }
        // Each chunk is computed from all sources before the next one, while it is in the cache.
        RawString::Long(ChunkedBytes::written(len, |range, chunk| {
            self.write(strings, range, chunk)
        }))
    }

    /// Appends the bytes of `range` of the result. The range is in one piece of each string.
    /// Shorter strings count as if zero bytes followed them. The loops are simple, so that they
    /// compile to vector instructions.
    fn write(self, strings: &[StrRef<'_>], range: Range<usize>, result: &mut Vec<u8>) {
        for (number, string) in strings.iter().enumerate() {
            let mut digits = Digits::new();
            let (piece, start) = string.piece_of(range.start, &mut digits);
            let part = range.start.saturating_sub(start)..piece.len().min(range.end - start);
            let part = piece.get(part).unwrap_or_default();
            match (number, self) {
                (0, Operation::Not) => result.extend(part.iter().map(|byte| !byte)),
                (0, _) => result.extend_from_slice(part),
                _ => self.combine(result, part),
            }
            if number == 0 {
                result.resize(range.len(), 0);
            }
        }
    }

    /// Combines a piece of another string with the result so far.
    fn combine(self, result: &mut [u8], other: &[u8]) {
        let (common, rest) = result.split_at_mut(other.len());
        let pairs = common.iter_mut().zip(other);
        match self {
            Operation::And => {
                pairs.for_each(|(byte, other)| *byte &= other);
                rest.fill(0);
            }
            Operation::Or => pairs.for_each(|(byte, other)| *byte |= other),
            Operation::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
            Operation::Not => unreachable!("NOT has one source"),
        }
    }
}

/// The existing strings, and an empty one for each missing string.
fn strings<'a>(found: impl Iterator<Item = Option<StrRef<'a>>>) -> SmallVec<[StrRef<'a>; 8]> {
    found.map(|string| string.unwrap_or(StrRef::Bytes(b""))).collect()
}

fn bitop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let operation = Operation::parse(args.bytes()?).ok_or(CommandError::Syntax)?;
    let destination = args.key()?;
    if operation == Operation::Not && args.remaining() != 1 {
        let text = "ERR BITOP NOT must be called with a single source key.";
        return Err(CommandError::text(text));
    }
    let names: SmallVec<[Key<'_>; 8]> =
        (0..args.remaining()).map(|_| args.key()).collect::<Result<_>>()?;
    let mut bytes = 0;
    for key in &names {
        bytes += ctx.keys.open::<Str>(key)?.map_or(0, |value| value.len());
    }
    let result = if ctx.is_long(bytes / BYTES_PER_STEP) {
        let make = move |views: &[View]| {
            operation.of_all(&strings(views.iter().map(|view| match view {
                Some(Value::Str(data)) => Some(StrRef::Chunked(data)),
                _ => None,
            })))
        };
        match ctx.result_elsewhere(args, &names, make) {
            Some(result) => result,
            None => return Ok(Outcome::Elsewhere),
        }
    } else {
        let keys = &*ctx.keys;
        operation.of_all(&strings(names.iter().map(|key| keys.inspect(key)?.string())))
    };
    let len = result.len();
    ctx.keys.put_raw(&destination, result, "set");
    Ok(ctx.reply.count(len))
}

const BITOP: Command = Command {
    spec: Spec {
        name: "bitop",
        group: Group::Bitmap,
        summary: "Performs a bitwise operation on strings and stores the result.",
        since: "2.6.0",
        complexity: "O(N)",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[
            KeySpec::at(2).overwrite(KeyFlags::UPDATE),
            KeySpec::range(3, -1, 1).read_only(KeyFlags::ACCESS),
        ],
        args: &[Arg::string("operation"), Arg::key("destkey"), Arg::key("key").spec(1).multiple()],
        ..Spec::EMPTY
    },
    run: bitop,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[BITOP];
