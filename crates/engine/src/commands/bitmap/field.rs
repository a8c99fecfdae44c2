//! BITFIELD and BITFIELD_RO: integers of any width at any bit offset.

use super::{OFFSET_OUT_OF_RANGE, in_reach, parse_offset};
use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, ArgLookup, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::{Outcome, Reply};
use crate::types::Edit;
use crate::types::string::{Str, StrMut, StrRef};
use smallvec::SmallVec;

/// An integer type: `i1` to `i64`, `u1` to `u63`.
#[derive(Debug, Clone, Copy)]
struct FieldType {
    signed: bool,
    width: u32,
}

impl FieldType {
    fn parse(word: &[u8]) -> Result<FieldType> {
        let parsed = match word {
            [b'i', width @ ..] => Some((true, width, 64)),
            [b'u', width @ ..] => Some((false, width, 63)),
            _ => None,
        };
        parsed
            .and_then(|(signed, width, width_max)| {
                let width = parse_i64(width).filter(|width| (1..=width_max).contains(width))?;
                Some(FieldType { signed, width: width as u32 })
            })
            .ok_or_else(|| {
                let text = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 \
                            is not supported but i64 is.";
                CommandError::text(text)
            })
    }

    /// Returns the number that the low `width` bits of `raw` represent. The other bits of `raw` are 0.
    fn decode(self, raw: u64) -> i64 {
        let unused = 64 - self.width;
        if self.signed { (raw << unused) as i64 >> unused } else { raw as i64 }
    }

    fn bounds(self) -> (i128, i128) {
        let (half, whole) = (1i128 << (self.width - 1), 1i128 << self.width);
        if self.signed { (-half, half - 1) } else { (0, whole - 1) }
    }

    /// `wanted`, made to fit the type as `overflow` requires. `None` if it does not fit and the
    /// step fails.
    fn fit(self, wanted: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = self.bounds();
        if (min..=max).contains(&wanted) {
            return Some(wanted as i64);
        }
        match overflow {
            Overflow::Wrap => {
                let mask = u64::MAX >> (64 - self.width);
                Some(self.decode(wanted as u64 & mask))
            }
            Overflow::Saturate => Some(wanted.clamp(min, max) as i64),
            Overflow::Fail => None,
        }
    }
}

/// How a number outside the range of its type is handled.
#[derive(Debug, Clone, Copy)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Get,
    Set(i64, Overflow),
    IncrBy(i64, Overflow),
}

/// One step of a command.
#[derive(Debug, Clone, Copy)]
struct Step {
    field: FieldType,
    offset: u64,
    action: Action,
}

type Steps = SmallVec<[Step; 4]>;

impl Step {
    /// Number of bytes that the string must have before this step may write.
    fn len_needed(&self) -> usize {
        match self.action {
            Action::Get => 0,
            _ => ((self.offset + u64::from(self.field.width)).div_ceil(8)) as usize,
        }
    }

    /// Runs the step. Returns the reply, and whether the field has changed or, if `grown`, was
    /// written at all.
    fn run(&self, string: &mut StrMut<'_>, grown: bool) -> (Option<i64>, bool) {
        let old = self.field.decode(string.read_bits(self.offset, self.field.width));
        let (new, returns_old) = match self.action {
            Action::Get => return (Some(old), false),
            Action::Set(value, overflow) if self.field.signed => {
                (self.field.fit(i128::from(value), overflow), true)
            }
            // For an unsigned field, a negative number is a very large number.
            Action::Set(value, overflow) => {
                (self.field.fit(i128::from(value as u64), overflow), true)
            }
            Action::IncrBy(increment, overflow) => {
                (self.field.fit(i128::from(old) + i128::from(increment), overflow), false)
            }
        };
        let Some(new) = new else { return (None, false) };
        string.write_bits(self.offset, self.field.width, new as u64);
        (Some(if returns_old { old } else { new }), grown || new != old)
    }
}

/// Parses the steps. With `read_only` only GET is allowed.
fn parse_steps(args: &mut Args<'_>, bytes_max: u64, read_only: bool) -> Result<Steps> {
    let mut steps = Steps::new();
    let mut overflow = Overflow::Wrap;
    let mut writes = false;
    while let Some(word) = args.optional() {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        if is("OVERFLOW") && args.remaining() >= 1 {
            overflow = parse_overflow(args.bytes()?)?;
            continue;
        }
        let (writing, operands) = match () {
            () if is("GET") => (false, 2),
            () if is("SET") || is("INCRBY") => (true, 3),
            () => return Err(CommandError::Syntax),
        };
        if args.remaining() < operands {
            return Err(CommandError::Syntax);
        }
        let field = FieldType::parse(args.bytes()?)?;
        let offset = parse_field_offset(args.bytes()?, field, bytes_max)?;
        let action = match () {
            () if !writing => Action::Get,
            () if is("SET") => Action::Set(args.integer()?, overflow),
            () => Action::IncrBy(args.integer()?, overflow),
        };
        writes |= writing;
        steps.push(Step { field, offset, action });
    }
    if read_only && writes {
        return Err(CommandError::text("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    Ok(steps)
}

fn parse_overflow(word: &[u8]) -> Result<Overflow> {
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    match () {
        () if is("WRAP") => Ok(Overflow::Wrap),
        () if is("SAT") => Ok(Overflow::Saturate),
        () if is("FAIL") => Ok(Overflow::Fail),
        () => Err(CommandError::text("ERR Invalid OVERFLOW type specified")),
    }
}

/// An offset in bits or, with `#`, in fields.
fn parse_field_offset(word: &[u8], field: FieldType, bytes_max: u64) -> Result<u64> {
    let Some(index) = word.strip_prefix(b"#") else { return parse_offset(word, bytes_max) };
    parse_i64(index)
        .and_then(|index| u64::try_from(index).ok())
        .and_then(|index| index.checked_mul(u64::from(field.width)))
        .and_then(|offset| in_reach(offset, bytes_max))
        .ok_or_else(|| CommandError::text(OFFSET_OUT_OF_RANGE))
}

fn bitfield(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let bytes_max = ctx.keys.env().string_bytes_max();
    let steps = parse_steps(args, bytes_max, false)?;
    let len_needed = steps.iter().map(Step::len_needed).max().unwrap_or(0);
    if len_needed == 0 {
        return read_all(ctx, &key, &steps);
    }
    let mut entry = ctx.keys.open_or_insert_string(&key)?;
    let old_len = entry.value().len();
    let grown = len_needed > old_len;
    let reply = &mut ctx.reply;
    reply.array(steps.len());
    entry.edit(old_len.max(len_needed), |mut string| {
        let mut changes = 0;
        for step in &steps {
            let (result, changed) = step.run(&mut string, grown);
            changes += u64::from(changed);
            reply_number(reply, result);
        }
        if changes > 0 {
            Edit::new((), changes, "setbit")
        } else {
            // A string that only grew, because every step failed, has changed too, but Redis
            // publishes no event.
            Edit::silent((), u64::from(grown))
        }
    });
    Ok(Outcome::Replied)
}

fn bitfield_ro(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let bytes_max = ctx.keys.env().string_bytes_max();
    let steps = parse_steps(args, bytes_max, true)?;
    read_all(ctx, &key, &steps)
}

fn read_all(
    ctx: &mut Ctx<'_, '_>,
    key: &crate::keyspace::Key<'_>,
    steps: &Steps,
) -> Result<Outcome> {
    let value = ctx.keys.open::<Str>(key)?.unwrap_or(StrRef::Bytes(b""));
    ctx.reply.array(steps.len());
    for step in steps {
        let raw = value.read_bits(step.offset, step.field.width);
        ctx.reply.integer(step.field.decode(raw));
    }
    Ok(Outcome::Replied)
}

fn reply_number(reply: &mut Reply<'_>, result: Option<i64>) {
    match result {
        Some(number) => reply.integer(number),
        None => reply.null(),
    };
}

/// The key's flags. Without SET and INCRBY, the command changes nothing.
fn bitfield_key_flags(argc: usize, word: ArgLookup<'_, '_>) -> KeyFlags {
    let reads = KeyFlags::RO.union(KeyFlags::ACCESS);
    let writes = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE);
    let mut at = 2;
    while at < argc {
        let left = argc - at - 1;
        if word(at).eq_ignore_ascii_case(b"GET") && left >= 2 {
            at += 3;
        } else if word(at).eq_ignore_ascii_case(b"OVERFLOW") && left >= 1 {
            at += 2;
        } else {
            return writes;
        }
    }
    reads
}

const BITFIELD: Command = Command {
    spec: Spec {
        name: "bitfield",
        group: Group::Bitmap,
        summary: "Reads and changes integers of any width in a string.",
        since: "3.2.0",
        complexity: "O(1) for each operation.",
        arity: -2,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::at(1)
            .read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))
            .varying(bitfield_key_flags)],
        args: &[
            Arg::key("key"),
            Arg::one_of(
                "operation",
                &[
                    Arg::block(
                        "encoding_offset",
                        &[Arg::string("encoding"), Arg::integer("offset")],
                    )
                    .after("GET"),
                    Arg::block(
                        "write",
                        &[
                            Arg::one_of(
                                "wrap_sat_fail",
                                &[
                                    Arg::token("wrap", "WRAP"),
                                    Arg::token("sat", "SAT"),
                                    Arg::token("fail", "FAIL"),
                                ],
                            )
                            .after("OVERFLOW")
                            .optional(),
                            Arg::one_of(
                                "write_operation",
                                &[
                                    Arg::block(
                                        "encoding_offset_value",
                                        &[
                                            Arg::string("encoding"),
                                            Arg::integer("offset"),
                                            Arg::integer("value"),
                                        ],
                                    )
                                    .after("SET"),
                                    Arg::block(
                                        "encoding_offset_increment",
                                        &[
                                            Arg::string("encoding"),
                                            Arg::integer("offset"),
                                            Arg::integer("increment"),
                                        ],
                                    )
                                    .after("INCRBY"),
                                ],
                            ),
                        ],
                    ),
                ],
            )
            .optional()
            .multiple(),
        ],
        ..Spec::EMPTY
    },
    run: bitfield,
    subcommands: &[],
};

const BITFIELD_RO: Command = Command {
    spec: Spec {
        name: "bitfield_ro",
        group: Group::Bitmap,
        summary: "Reads integers of any width in a string.",
        since: "6.0.0",
        complexity: "O(1) for each operation.",
        arity: -2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::block("encoding_offset", &[Arg::string("encoding"), Arg::integer("offset")])
                .after("GET")
                .optional()
                .multiple()
                .multiple_token(),
        ],
        ..Spec::EMPTY
    },
    run: bitfield_ro,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[BITFIELD, BITFIELD_RO];
