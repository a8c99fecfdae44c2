//! BITCOUNT and BITPOS: how many bits are set, and where the first one is.

use crate::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::ctx::{Command, Ctx};
use crate::error::{CommandError, Result};
use crate::number::Digits;
use crate::reply::Outcome;
use crate::types::string::Str;
use brisk_structures::bits;

/// What the numbers of a range count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte,
    Bit,
}

impl Unit {
    fn parse(args: &mut Args<'_>) -> Result<Unit> {
        if args.take("BIT") {
            Ok(Unit::Bit)
        } else if args.take("BYTE") {
            Ok(Unit::Byte)
        } else {
            Err(CommandError::Syntax)
        }
    }

    const fn bits(self) -> i64 {
        match self {
            Unit::Byte => 8,
            Unit::Bit => 1,
        }
    }
}

/// A range as the client gave it: negative numbers count from the end, -1 is the last.
#[derive(Debug, Clone, Copy)]
struct Range {
    start: i64,
    end: i64,
    unit: Unit,
}

impl Range {
    const ALL: Range = Range { start: 0, end: -1, unit: Unit::Byte };

    /// The first and the last bit of the range in a string of `len` bytes; `None` if it is empty.
    fn clamp(&self, len: usize) -> Option<(u64, u64)> {
        let count = len as i64 * 8 / self.unit.bits();
        let from_end = |at: i64| if at < 0 { at.saturating_add(count).max(0) } else { at };
        let (start, end) = (from_end(self.start), from_end(self.end).min(count - 1));
        let bits = self.unit.bits();
        (start <= end).then(|| ((start * bits) as u64, (end * bits + bits - 1) as u64))
    }
}

// Arguments are judged before the key is looked at, so that a mistake shows on a missing key too.
fn bitcount(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let range = match args.remaining() {
        0 => Range::ALL,
        2 | 3 => {
            let (start, end) = (args.integer()?, args.integer()?);
            let unit = if args.remaining() > 0 { Unit::parse(args)? } else { Unit::Byte };
            Range { start, end, unit }
        }
        _ => return Err(CommandError::Syntax),
    };
    let Some(value) = ctx.keys.open::<Str>(&key)? else { return Ok(ctx.reply.integer(0)) };
    let mut digits = Digits::new();
    let bytes = value.as_bytes(&mut digits);
    // Both before the start is an empty range if they are in the wrong order, and else the first.
    let crossed = range.start < 0 && range.end < 0 && range.start > range.end;
    let count = match range.clamp(bytes.len()) {
        Some((first, last)) if !crossed => bits::count_ones_in(bytes, first, last),
        _ => 0,
    };
    Ok(ctx.reply.integer(count as i64))
}

fn bitpos(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let set = match args.integer()? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::text("ERR The bit argument must be 1 or 0.")),
    };
    let (range, open_ended) = match args.remaining() {
        0 => (Range::ALL, true),
        1 => (Range { start: args.integer()?, ..Range::ALL }, true),
        2 => (Range { start: args.integer()?, end: args.integer()?, unit: Unit::Byte }, false),
        3 => {
            let start = args.integer()?;
            // The unit is judged before the end.
            let mut behind = args.clone();
            behind.bytes()?;
            let unit = Unit::parse(&mut behind)?;
            (Range { start, end: args.integer()?, unit }, false)
        }
        _ => return Err(CommandError::Syntax),
    };
    let Some(value) = ctx.keys.open::<Str>(&key)? else {
        return Ok(ctx.reply.integer(if set { -1 } else { 0 }));
    };
    let mut digits = Digits::new();
    let bytes = value.as_bytes(&mut digits);
    let place = range.clamp(bytes.len()).and_then(|(first, last)| {
        // Without an end the string counts as followed by clear bits.
        let behind = (open_ended && !set).then_some(last + 1);
        bits::find(bytes, set, first, last).or(behind)
    });
    Ok(ctx.reply.integer(place.map_or(-1, |place| place as i64)))
}

const BITCOUNT: Command = Command {
    spec: Spec {
        name: "bitcount",
        group: Group::Bitmap,
        summary: "Counts the bits that are set in a string or a part of it.",
        since: "2.6.0",
        complexity: "O(N)",
        arity: -2,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::block(
                "index",
                &[
                    Arg::integer("start"),
                    Arg::integer("end"),
                    Arg::one_of(
                        "index_unit",
                        &[Arg::token("byte", "BYTE"), Arg::token("bit", "BIT")],
                    )
                    .optional()
                    .since("7.0.0"),
                ],
            )
            .optional(),
        ],
        history: &[("7.0.0", "Added the `BYTE|BIT` option.")],
        ..Spec::EMPTY
    },
    run: bitcount,
    subcommands: &[],
};

const BITPOS: Command = Command {
    spec: Spec {
        name: "bitpos",
        group: Group::Bitmap,
        summary: "Finds the first bit that is set, or clear, in a string or a part of it.",
        since: "2.8.7",
        complexity: "O(N)",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::integer("bit"),
            Arg::block(
                "index",
                &[
                    Arg::integer("start"),
                    Arg::block(
                        "end_index",
                        &[
                            Arg::integer("end"),
                            Arg::one_of(
                                "index_unit",
                                &[Arg::token("byte", "BYTE"), Arg::token("bit", "BIT")],
                            )
                            .optional()
                            .since("7.0.0"),
                        ],
                    )
                    .optional(),
                ],
            )
            .optional(),
        ],
        history: &[("7.0.0", "Added the `BYTE|BIT` option.")],
        ..Spec::EMPTY
    },
    run: bitpos,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[BITCOUNT, BITPOS];
