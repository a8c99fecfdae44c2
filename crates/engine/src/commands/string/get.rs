//! GET, STRLEN, GETDEL, GETEX: read a whole string. GETDEL also removes it, and GETEX may change
//! its TTL. Parts of strings are read in `range.rs`, several keys in `multi.rs`.

use super::ttl::{Ttl, TtlForm};
use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::string::Str;

fn get(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    Ok(match ctx.keys.open::<Str>(&key)? {
        Some(value) => ctx.reply.string(&value),
        None => ctx.reply.null(),
    })
}

fn strlen(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let value = ctx.keys.open::<Str>(&key)?;
    Ok(ctx.reply.count(value.map_or(0, |value| value.len())))
}

fn getdel(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let Some(value) = ctx.keys.open::<Str>(&key)? else { return Ok(ctx.reply.null()) };
    let outcome = ctx.reply.string(&value);
    ctx.keys.delete(&key);
    ctx.keys.propagate(|| vec![b"DEL".to_vec(), key.bytes.to_vec()]);
    Ok(outcome)
}

fn getex(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let mut ttl = Ttl::Unsaid;
    while let Some(word) = args.optional() {
        ttl.read(TtlForm::Getex, word, args)?;
    }

    let Some(value) = ctx.keys.open::<Str>(&key)? else {
        // This is the reply even to `EX nonsense`, because the key is looked up before the number
        // is parsed.
        return Ok(ctx.reply.null());
    };
    let outcome = ctx.reply.string(&value);
    match ttl {
        Ttl::Unsaid | Ttl::Keep => {}
        Ttl::Persist => {
            let had_deadline = ctx.keys.open_any_mut(&key).is_some_and(|mut entry| entry.persist());
            if had_deadline {
                ctx.keys.propagate(|| vec![b"PERSIST".to_vec(), key.bytes.to_vec()]);
            }
        }
        Ttl::Given(unit, number) => {
            let deadline = unit.deadline(ctx, number)?;
            if ctx.has_passed(deadline) {
                ctx.expire_key(&key);
            } else if let Some(mut entry) = ctx.keys.open_any_mut(&key) {
                entry.expire_at(deadline);
                // The propagated time is absolute, so that a replay sets the same time.
                let at = deadline.0.to_string().into_bytes();
                ctx.keys.propagate(|| vec![b"PEXPIREAT".to_vec(), key.bytes.to_vec(), at]);
            }
        }
    }
    Ok(outcome)
}

const GET: Command = Command {
    spec: Spec {
        name: "get",
        group: Group::String,
        summary: "Returns the string value of a key.",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: get,
    subcommands: &[],
};

const STRLEN: Command = Command {
    spec: Spec {
        name: "strlen",
        group: Group::String,
        summary: "Returns the length of a string.",
        since: "2.2.0",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::empty())],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: strlen,
    subcommands: &[],
};

const GETDEL: Command = Command {
    spec: Spec {
        name: "getdel",
        group: Group::String,
        summary: "Returns the string value of a key and deletes the key.",
        since: "6.2.0",
        arity: 2,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE))],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: getdel,
    subcommands: &[],
};

const GETEX: Command = Command {
    spec: Spec {
        name: "getex",
        group: Group::String,
        summary: "Returns the string value of a key and sets or removes its TTL.",
        since: "6.2.0",
        arity: -2,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1)
            .read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))
            .noted("counts as an update because it can change the TTL")],
        args: &[
            Arg::key("key"),
            Arg::one_of(
                "expiration",
                &[
                    Arg::integer("seconds").after("EX"),
                    Arg::integer("milliseconds").after("PX"),
                    Arg::unix_time("unix-time-seconds").after("EXAT"),
                    Arg::unix_time("unix-time-milliseconds").after("PXAT"),
                    Arg::token("persist", "PERSIST"),
                ],
            )
            .optional(),
        ],
        ..Spec::EMPTY
    },
    run: getex,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[GET, STRLEN, GETDEL, GETEX];
