//! BITOP: strings combined bit by bit.

use crate::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::ctx::{Command, Ctx};
use crate::error::{CommandError, Result};
use crate::keyspace::{Key, Keys};
use crate::number::Digits;
use crate::reply::Outcome;
use crate::types::string::Str;

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
}

fn bitop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let operation = Operation::parse(args.bytes()?).ok_or(CommandError::Syntax)?;
    let destination = args.key()?;
    if operation == Operation::Not && args.remaining() != 1 {
        let text = "ERR BITOP NOT must be called with a single source key.";
        return Err(CommandError::text(text));
    }
    let mut result = source(ctx.keys, &args.key()?)?;
    while args.remaining() > 0 {
        let key = args.key()?;
        let value = ctx.keys.open::<Str>(&key)?;
        let mut digits = Digits::new();
        let other = value.as_ref().map_or(&b""[..], |value| value.as_bytes(&mut digits));
        operation.combine(&mut result, other);
    }
    if operation == Operation::Not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let len = result.len();
    ctx.keys.put_bytes(&destination, result, "set");
    Ok(ctx.reply.count(len))
}

fn source(keys: &Keys<'_>, key: &Key<'_>) -> Result<Vec<u8>> {
    Ok(keys.open::<Str>(key)?.map_or_else(Vec::new, |value| value.to_vec()))
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
