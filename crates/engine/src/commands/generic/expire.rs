//! EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT, PERSIST: set or remove a key's TTL.

use crate::base::error::{CommandError, Result};
use crate::base::number::{Digits, parse_i64};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Categories, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::UnixMs;
use crate::reply::Outcome;

/// The unit and the reference point of a command's time argument.
#[derive(Clone, Copy)]
struct Counting {
    ms_per_unit: i64,
    from_now: bool,
}

fn expire(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    set_deadline(ctx, args, Counting { ms_per_unit: 1000, from_now: true })
}

fn pexpire(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    set_deadline(ctx, args, Counting { ms_per_unit: 1, from_now: true })
}

fn expireat(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    set_deadline(ctx, args, Counting { ms_per_unit: 1000, from_now: false })
}

fn pexpireat(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    set_deadline(ctx, args, Counting { ms_per_unit: 1, from_now: false })
}

fn set_deadline(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, counting: Counting) -> Result<Outcome> {
    let key = args.key()?;
    let time = args.bytes()?;
    // The options are checked before the number, and both before the key is looked up.
    let conditions = Conditions::take(args)?;
    let deadline = deadline_ms(ctx, time, counting)?;

    let horizon = ctx.keys.env().horizon();
    let Some(mut entry) = ctx.keys.open_any_mut(&key) else { return Ok(ctx.reply.integer(0)) };
    if !conditions.admit(entry.deadline(), deadline) {
        return Ok(ctx.reply.integer(0));
    }
    match u64::try_from(deadline).map(UnixMs) {
        Ok(at) if at > horizon => {
            entry.expire_at(at);
            ctx.keys.propagate(|| {
                let ms = Digits::new().format(deadline).to_vec();
                vec![b"PEXPIREAT".to_vec(), key.bytes.to_vec(), ms]
            });
        }
        // An expiry time in the past deletes the key, here and wherever the command is replayed.
        _ => ctx.expire_key(&key),
    }
    Ok(ctx.reply.integer(1))
}

/// The expiry time in Unix ms; it may be negative.
fn deadline_ms(ctx: &Ctx<'_, '_>, time: &[u8], counting: Counting) -> Result<i64> {
    let time = parse_i64(time).ok_or(CommandError::NotAnInteger)?;
    let from = if counting.from_now { ctx.now().0 as i64 } else { 0 };
    let deadline = time.checked_mul(counting.ms_per_unit).and_then(|ms| ms.checked_add(from));
    deadline.ok_or_else(|| ctx.invalid_expire())
}

/// The options NX, XX, GT and LT.
#[derive(Default)]
struct Conditions {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Conditions {
    fn take(args: &mut Args<'_>) -> Result<Conditions> {
        let mut this = Conditions::default();
        while args.remaining() > 0 {
            if args.take("NX") {
                this.nx = true;
            } else if args.take("XX") {
                this.xx = true;
            } else if args.take("GT") {
                this.gt = true;
            } else if args.take("LT") {
                this.lt = true;
            } else {
                return Err(CommandError::text_with("ERR Unsupported option ", args.bytes()?));
            }
        }
        if this.nx && (this.xx || this.gt || this.lt) {
            let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(CommandError::text(text));
        }
        if this.gt && this.lt {
            let text = "ERR GT and LT options at the same time are not compatible";
            return Err(CommandError::text(text));
        }
        Ok(this)
    }

    /// Reports whether an expiry time may replace the current one. No TTL counts as infinitely
    /// late.
    fn admit(&self, present: Option<UnixMs>, wanted: i64) -> bool {
        let Some(UnixMs(present)) = present else { return !self.xx && !self.gt };
        let present = present as i64;
        let refused = self.nx || (self.gt && wanted <= present) || (self.lt && wanted >= present);
        !refused
    }
}

fn persist(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let had = ctx.keys.open_any_mut(&key).is_some_and(|mut entry| entry.persist());
    Ok(ctx.reply.integer(i64::from(had)))
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
.since("7.0.0")
.optional();

/// The common part of the rows of the four commands with a time.
const SET_DEADLINE: Spec = Spec {
    group: Group::Generic,
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
    history: &[("7.0.0", "Accepts the options `NX`, `XX`, `GT` and `LT`.")],
    ..Spec::EMPTY
};

const EXPIRE: Command = Command {
    spec: Spec {
        name: "expire",
        summary: "Sets the TTL of a key in seconds.",
        since: "1.0.0",
        args: &[Arg::key("key"), Arg::integer("seconds"), CONDITION],
        ..SET_DEADLINE
    },
    run: expire,
    subcommands: &[],
};

const PEXPIRE: Command = Command {
    spec: Spec {
        name: "pexpire",
        summary: "Sets the TTL of a key in milliseconds.",
        since: "2.6.0",
        args: &[Arg::key("key"), Arg::integer("milliseconds"), CONDITION],
        ..SET_DEADLINE
    },
    run: pexpire,
    subcommands: &[],
};

const EXPIREAT: Command = Command {
    spec: Spec {
        name: "expireat",
        summary: "Sets the expiry time of a key to a Unix time in seconds.",
        since: "1.2.0",
        args: &[Arg::key("key"), Arg::unix_time("unix-time-seconds"), CONDITION],
        ..SET_DEADLINE
    },
    run: expireat,
    subcommands: &[],
};

const PEXPIREAT: Command = Command {
    spec: Spec {
        name: "pexpireat",
        summary: "Sets the expiry time of a key to a Unix time in milliseconds.",
        since: "2.6.0",
        args: &[Arg::key("key"), Arg::unix_time("unix-time-milliseconds"), CONDITION],
        ..SET_DEADLINE
    },
    run: pexpireat,
    subcommands: &[],
};

const PERSIST: Command = Command {
    spec: Spec {
        name: "persist",
        group: Group::Generic,
        summary: "Removes the TTL of a key.",
        since: "2.2.0",
        complexity: "O(1)",
        arity: 2,
        flags: Flags::WRITE.union(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: persist,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[EXPIRE, EXPIREAT, PERSIST, PEXPIRE, PEXPIREAT];
