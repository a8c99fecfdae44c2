//! BITOP: strings combined bit by bit.

use crate::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::ctx::{Command, Ctx};
use crate::error::{CommandError, Result};
use crate::keyspace::Key;
use crate::long::{BYTES_PER_STEP, View};
use crate::number::Digits;
use crate::reply::Outcome;
use crate::types::Value;
use crate::types::string::{Str, StrRef};
use smallvec::SmallVec;

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

    /// Combines another string with the result so far. The shorter one counts as followed by zero
    /// bytes. The loops are simple so that they compile to whole vectors.
    fn combine(self, result: &mut Vec<u8>, other: &[u8]) {
        if result.len() < other.len() {
            result.resize(other.len(), 0);
        }
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

    /// The result for these strings; what is missing is empty.
    fn of_all<'a>(self, mut strings: impl Iterator<Item = Option<StrRef<'a>>>) -> Vec<u8> {
        let first = strings.next().flatten();
        let mut result = first.map_or_else(Vec::new, |value| value.to_vec());
        for other in strings {
            let mut digits = Digits::new();
            let other = other.as_ref().map_or(&b""[..], |value| value.as_bytes(&mut digits));
            self.combine(&mut result, other);
        }
        if self == Operation::Not {
            result.iter_mut().for_each(|byte| *byte = !*byte);
        }
        result
    }
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
            operation.of_all(views.iter().map(|view| match view {
                Some(Value::Str(data)) => Some(StrRef::Shared(data)),
                _ => None,
            }))
        };
        match ctx.result_elsewhere(args, &names, make) {
            Some(result) => result,
            None => return Ok(Outcome::Elsewhere),
        }
    } else {
        let keys = &*ctx.keys;
        operation.of_all(names.iter().map(|key| keys.inspect(key)?.string()))
    };
    let len = result.len();
    ctx.keys.put_bytes(&destination, result, "set");
    Ok(ctx.reply.count(len))
}

const BITOP: Command = Command {
    spec: Spec {
        name: "bitop",
        group: Group::Bitmap,
        summary: "Combines strings bit by bit and stores the result.",
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
