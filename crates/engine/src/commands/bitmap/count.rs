//! BITCOUNT and BITPOS: count the set bits, and find the first one.

use crate::base::error::{CommandError, Result};
use crate::base::steps::BYTES_PER_STEP;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::env::Dialect;
use crate::reply::Outcome;
use crate::types::string::{Str, StrRef};
use brisk_structures::bits;
use brisk_structures::chunked::ChunkedBytes;

/// The unit in which a range is given.
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

/// A range as the client gave it. Negative numbers count from the end; -1 is the last.
#[derive(Debug, Clone, Copy)]
struct Range {
    start: i64,
    end: i64,
    unit: Unit,
}

impl Range {
    const ALL: Range = Range { start: 0, end: -1, unit: Unit::Byte };

    /// The first and the last bit of the range in a string of `len` bytes; `None` if the range is
    /// empty.
    fn clamp(&self, len: usize) -> Option<(u64, u64)> {
        let count = len as i64 * 8 / self.unit.bits();
        let from_end = |at: i64| if at < 0 { at.saturating_add(count).max(0) } else { at };
        let (start, end) = (from_end(self.start), from_end(self.end).min(count - 1));
        let bits = self.unit.bits();
        (start <= end).then(|| ((start * bits) as u64, (end * bits + bits - 1) as u64))
    }

    fn count_ones(&self, string: &StrRef<'_>) -> i64 {
        // If both numbers are before the start of the string, the range is empty if they are in the
        // wrong order, and otherwise the first unit.
        let crossed = self.start < 0 && self.end < 0 && self.start > self.end;
        let Some((first, last)) = self.clamp(string.len()).filter(|_| !crossed) else { return 0 };
        let mut ones = 0;
        string.find_in_bits(first, last, |piece, (first, last), _| {
            ones += bits::count_ones_in(piece, first, last);
            None::<()>
        });
        ones as i64
    }

    /// The position of the first bit with the value `set`; -1 if there is none.
    fn find(&self, string: &StrRef<'_>, set: bool, open_ended: bool) -> i64 {
        let place = self.clamp(string.len()).and_then(|(first, last)| {
            // If the request gives no end, the string counts as if clear bits followed it.
            let following = (open_ended && !set).then_some(last + 1);
            let found = string.find_in_bits(first, last, |piece, (first, last), base| {
                Some(base + bits::find(piece, set, first, last)?)
            });
            found.or(following)
        });
        place.map_or(-1, |place| place as i64)
    }
}

// Arguments are checked before the key is read, so that errors also appear for a missing key.
fn bitcount(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let range = match args.remaining() {
        0 => Range::ALL,
        1 if ctx.keys.env().settings.dialect == Dialect::Valkey => {
            Range { start: args.integer()?, ..Range::ALL }
        }
        2 | 3 => {
            let (start, end) = (args.integer()?, args.integer()?);
            let unit = if args.remaining() > 0 { Unit::parse(args)? } else { Unit::Byte };
            Range { start, end, unit }
        }
        _ => return Err(CommandError::Syntax),
    };
    let Some(value) = ctx.keys.open::<Str>(&key)? else { return Ok(ctx.reply.integer(0)) };
    let find = move |string: &StrRef<'_>| range.count_ones(string);
    if let Some(data) = huge(ctx, &value) {
        return Ok(ctx.reply_elsewhere(args, move |_, reply| {
            Ok(reply.integer(find(&StrRef::Chunked(&data))))
        }));
    }
    Ok(ctx.reply.integer(find(&value)))
}

/// The string, if it is so long that another thread should read it.
fn huge(ctx: &Ctx<'_, '_>, value: &StrRef<'_>) -> Option<ChunkedBytes> {
    match value {
        StrRef::Chunked(data) => ctx.is_long(data.len() / BYTES_PER_STEP).then(|| (*data).clone()),
        StrRef::Bytes(_) | StrRef::Int(_) => None,
    }
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
            // The unit is checked before the end.
            let mut following = args.clone();
            following.bytes()?;
            let unit = Unit::parse(&mut following)?;
            (Range { start, end: args.integer()?, unit }, false)
        }
        _ => return Err(CommandError::Syntax),
    };
    let Some(value) = ctx.keys.open::<Str>(&key)? else {
        return Ok(ctx.reply.integer(if set { -1 } else { 0 }));
    };
    let find = move |string: &StrRef<'_>| range.find(string, set, open_ended);
    if let Some(data) = huge(ctx, &value) {
        return Ok(ctx.reply_elsewhere(args, move |_, reply| {
            Ok(reply.integer(find(&StrRef::Chunked(&data))))
        }));
    }
    Ok(ctx.reply.integer(find(&value)))
}

const BITCOUNT: Command = Command {
    spec: Spec {
        name: "bitcount",
        group: Group::Bitmap,
        summary: "Counts the set bits in a string or in a part of it.",
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
        history: &[("7.0.0", "Accepts the options `BYTE` and `BIT`.")],
        ..Spec::EMPTY
    },
    run: bitcount,
    subcommands: &[],
};

const BITPOS: Command = Command {
    spec: Spec {
        name: "bitpos",
        group: Group::Bitmap,
        summary: "Finds the first set or clear bit in a string or in a part of it.",
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
        history: &[("7.0.0", "Accepts the options `BYTE` and `BIT`.")],
        ..Spec::EMPTY
    },
    run: bitpos,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[BITCOUNT, BITPOS];
