//! HEXPIRE, HPEXPIRE, HEXPIREAT, HPEXPIREAT: set TTLs of fields, as in Redis 7.4.

use crate::base::error::{CommandError, Result};
use crate::base::number::{Digits, parse_i64};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::{Key, UnixMs};
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::hash::Hash;

/// The latest expiry time of a field, in Unix ms: the format has 46 bits for it.
const DEADLINE_MAX: i64 = (1 << 46) - 1;

/// The reply for a field that does not exist.
pub(super) const NO_FIELD: i64 = -2;

/// The unit and the reference point of a command's time argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExpireUnit {
    pub(super) ms_per_unit: i64,
    pub(super) from_now: bool,
}

impl ExpireUnit {
    /// The time that `number` means, in Unix ms. It may be in the past.
    pub(super) fn deadline(self, ctx: &Ctx<'_, '_>, number: &[u8]) -> Result<u64> {
        let number = parse_i64(number).ok_or(CommandError::NotAnInteger)?;
        if number < 0 {
            return Err(CommandError::text("ERR invalid expire time, must be >= 0"));
        }
        let since = if self.from_now { ctx.now().0 as i64 } else { 0 };
        let at = number.checked_mul(self.ms_per_unit).and_then(|ms| ms.checked_add(since));
        let at = at.filter(|at| *at <= DEADLINE_MAX).ok_or_else(|| ctx.invalid_expire())?;
        Ok(at as u64)
    }
}

/// The fields that a command names after FIELDS and their number.
#[derive(Clone)]
pub(super) struct FieldList<'a> {
    args: Args<'a>,
}

impl<'a> FieldList<'a> {
    pub(super) const ARG: Arg =
        Arg::block("fields", &[Arg::integer("numfields"), Arg::string("field").multiple()])
            .after("FIELDS");

    /// The error that commands that only read return for an invalid number.
    pub(super) const OF_READS: &'static str = "ERR Number of fields must be a positive integer";
    const OF_DEADLINES: &'static str = "ERR Parameter `numFields` should be greater than 0";

    /// Takes all remaining arguments: FIELDS, the number, the fields.
    pub(super) fn parse(args: &mut Args<'a>, bad_number: &'static str) -> Result<FieldList<'a>> {
        if !args.take("FIELDS") {
            let text = "ERR Mandatory argument FIELDS is missing or not at the right position";
            return Err(CommandError::text(text));
        }
        let number = args.optional().and_then(parse_i64).filter(|number| *number >= 1);
        let number = number.ok_or(CommandError::text(bad_number))?;
        if usize::try_from(number) != Ok(args.remaining()) {
            let text = "ERR The `numfields` parameter must match the number of arguments";
            return Err(CommandError::text(text));
        }
        Ok(FieldList { args: args.clone() })
    }

    /// The remaining arguments, regardless of what precedes them.
    pub(super) fn rest(args: &Args<'a>) -> FieldList<'a> {
        FieldList { args: args.clone() }
    }

    pub(super) fn len(&self) -> usize {
        self.args.remaining()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut args = self.args.clone();
        std::iter::from_fn(move || args.optional())
    }
}

/// Reports whether the key exists. Returns an error if it is not a hash. Has no side effects.
pub(super) fn exists(ctx: &Ctx<'_, '_>, key: &Key<'_>) -> Result<bool> {
    match ctx.keys.inspect(key) {
        Some(entry) => entry.get::<Hash>().map(|_| true).ok_or(CommandError::WrongType),
        None => Ok(false),
    }
}

fn hexpire(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    set_deadlines(ctx, args, ExpireUnit { ms_per_unit: 1000, from_now: true })
}

fn hpexpire(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    set_deadlines(ctx, args, ExpireUnit { ms_per_unit: 1, from_now: true })
}

fn hexpireat(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    set_deadlines(ctx, args, ExpireUnit { ms_per_unit: 1000, from_now: false })
}

fn hpexpireat(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    set_deadlines(ctx, args, ExpireUnit { ms_per_unit: 1, from_now: false })
}

fn set_deadlines(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'_>,
    counting: ExpireUnit,
) -> Result<Outcome> {
    let key = args.key()?;
    // These are checked in Redis's order: the type, the time, the condition, the fields.
    exists(ctx, &key)?;
    let deadline = counting.deadline(ctx, args.bytes()?)?;
    let condition = Condition::take(args);
    let fields = FieldList::parse(args, FieldList::OF_DEADLINES)?;

    let is_past = ctx.has_passed(UnixMs(deadline));
    let reply = &mut ctx.reply;
    reply.array(fields.len());
    let mut effect = FieldEffect::default();
    let found = ctx.keys.update::<Hash, _>(&key, |hash, _| {
        for field in fields.iter() {
            reply.integer(match hash.deadline(field) {
                None => NO_FIELD,
                Some(present) if !condition.admits(present, deadline) => 0,
                Some(_) if is_past => {
                    hash.remove(field);
                    effect.removed.push(field);
                    2
                }
                Some(_) => {
                    hash.set_deadline(field, Some(deadline));
                    effect.changed.push(field);
                    1
                }
            });
        }
        Ok(effect.edit("hexpire"))
    })?;
    if found.is_none() {
        fields.iter().for_each(|_| _ = ctx.reply.integer(NO_FIELD));
    }
    effect.propagate(ctx, &key, |words| expire_args(words, &key, deadline));
    Ok(Outcome::Replied)
}

/// `HPEXPIREAT key deadline`, which repeats a change exactly.
pub(super) fn expire_args(words: &mut Vec<Vec<u8>>, key: &Key<'_>, deadline: u64) {
    words.push(b"HPEXPIREAT".to_vec());
    words.push(key.bytes.to_vec());
    words.push(Digits::new().format(deadline as i64).to_vec());
}

/// The fields that a command has changed, and those that it has removed.
#[derive(Default)]
pub(super) struct FieldEffect<'a> {
    pub(super) changed: Vec<&'a [u8]>,
    pub(super) removed: Vec<&'a [u8]>,
}

impl FieldEffect<'_> {
    /// The change to count, with its event. A removal takes precedence over other changes.
    pub(super) fn edit(&self, event: &'static str) -> Edit<()> {
        let count = (self.changed.len() + self.removed.len()) as u64;
        Edit::new((), count, if self.removed.is_empty() { event } else { "hdel" })
    }

    /// Sets what to propagate. `begin` writes the arguments before FIELDS for the changed fields.
    pub(super) fn propagate(
        &self,
        ctx: &mut Ctx<'_, '_>,
        key: &Key<'_>,
        begin: impl FnOnce(&mut Vec<Vec<u8>>),
    ) {
        if !self.changed.is_empty() {
            ctx.keys.propagate(|| {
                let mut words = Vec::with_capacity(5 + self.changed.len());
                begin(&mut words);
                words.push(b"FIELDS".to_vec());
                words.push(Digits::new().format(self.changed.len() as i64).to_vec());
                words.extend(self.changed.iter().map(|field| field.to_vec()));
                words
            });
        }
        if !self.removed.is_empty() {
            ctx.keys.propagate(|| {
                let begin = [&b"HDEL"[..], key.bytes];
                begin.iter().chain(&self.removed).map(|word| word.to_vec()).collect()
            });
        }
    }
}

/// The condition for setting an expiry time.
#[derive(Debug, Clone, Copy)]
enum Condition {
    Always,
    HasNone,
    HasOne,
    IsLater,
    IsSooner,
}

impl Condition {
    fn take(args: &mut Args<'_>) -> Condition {
        let words = [
            ("NX", Condition::HasNone),
            ("XX", Condition::HasOne),
            ("GT", Condition::IsLater),
            ("LT", Condition::IsSooner),
        ];
        let said = words.into_iter().find(|(word, _)| args.take(word));
        said.map_or(Condition::Always, |(_, condition)| condition)
    }

    /// Reports whether `wanted` may replace the current expiry time. No TTL counts as infinitely
    /// late.
    fn admits(self, present: Option<u64>, wanted: u64) -> bool {
        match (self, present) {
            (Condition::Always, _) => true,
            (Condition::HasNone, present) => present.is_none(),
            (Condition::HasOne, present) => present.is_some(),
            (Condition::IsLater, None) => false,
            (Condition::IsLater, Some(present)) => wanted > present,
            (Condition::IsSooner, None) => true,
            (Condition::IsSooner, Some(present)) => wanted < present,
        }
    }
}

const CONDITION: Arg = Arg::one_of(
    "condition",
    &[
        Arg::token("nx", "NX"),
        Arg::token("xx", "XX"),
        Arg::token("gt", "GT"),
        Arg::token("lt", "LT"),
    ],
)
.optional();

/// The common part of the four commands' rows.
const SET_DEADLINE: Spec = Spec {
    group: Group::Hash,
    since: "7.4.0",
    complexity: "O(N) in the number of fields that are named.",
    arity: -6,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
    ..Spec::EMPTY
};

const HEXPIRE: Command = Command {
    spec: Spec {
        name: "hexpire",
        summary: "Sets the TTL of fields in seconds.",
        args: &[Arg::key("key"), Arg::integer("seconds"), CONDITION, FieldList::ARG],
        ..SET_DEADLINE
    },
    run: hexpire,
    subcommands: &[],
};

const HPEXPIRE: Command = Command {
    spec: Spec {
        name: "hpexpire",
        summary: "Sets the TTL of fields in milliseconds.",
        args: &[Arg::key("key"), Arg::integer("milliseconds"), CONDITION, FieldList::ARG],
        ..SET_DEADLINE
    },
    run: hpexpire,
    subcommands: &[],
};

const HEXPIREAT: Command = Command {
    spec: Spec {
        name: "hexpireat",
        summary: "Sets the expiry time of fields to a Unix time in seconds.",
        args: &[Arg::key("key"), Arg::unix_time("unix-time-seconds"), CONDITION, FieldList::ARG],
        ..SET_DEADLINE
    },
    run: hexpireat,
    subcommands: &[],
};

const HPEXPIREAT: Command = Command {
    spec: Spec {
        name: "hpexpireat",
        summary: "Sets the expiry time of fields to a Unix time in milliseconds.",
        args: &[
            Arg::key("key"),
            Arg::unix_time("unix-time-milliseconds"),
            CONDITION,
            FieldList::ARG,
        ],
        ..SET_DEADLINE
    },
    run: hpexpireat,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[HEXPIRE, HEXPIREAT, HPEXPIRE, HPEXPIREAT];
