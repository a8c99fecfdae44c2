//! SET and its predecessors SETNX, SETEX, PSETEX and GETSET: store one whole string. `multi.rs`
//! stores several keys at once, `range.rs` parts of strings.

use super::ttl::{Ttl, TtlForm, TtlUnit};
use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, ArgLookup, Deprecated, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::env::Dialect;
use crate::keyspace::{Key, Overwrite, UnixMs};
use crate::reply::Outcome;
use crate::types::string::Str;

fn set(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let value = args.bytes()?;
    if args.remaining() > 0 {
        return set_with_options(ctx, args, &key, value);
    }
    ctx.keys.set_string(&key, value, Overwrite::Persist, "set");
    Ok(ctx.reply.ok())
}

/// NX and XX.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Missing,
    Existing,
}

struct Options<'a> {
    condition: Option<Condition>,
    get: bool,
    ttl: Ttl<'a>,
}

impl<'a> Options<'a> {
    fn read(args: &mut Args<'a>) -> Result<Options<'a>> {
        let mut options = Options { condition: None, get: false, ttl: Ttl::Unsaid };
        while let Some(word) = args.optional() {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            if is("NX") && options.condition != Some(Condition::Existing) {
                options.condition = Some(Condition::Missing);
            } else if is("XX") && options.condition != Some(Condition::Missing) {
                options.condition = Some(Condition::Existing);
            } else if is("GET") {
                options.get = true;
            } else {
                options.ttl.read(TtlForm::Set, word, args)?;
            }
        }
        Ok(options)
    }
}

fn set_with_options<'a>(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'a>,
    key: &Key<'_>,
    value: &[u8],
) -> Result<Outcome> {
    let words = args.arguments();
    let Options { condition, get, ttl } = Options::read(args)?;
    let overwrite = match ttl {
        Ttl::Unsaid | Ttl::Persist => Overwrite::Persist,
        Ttl::Keep => Overwrite::KeepDeadline,
        Ttl::Given(unit, number) => Overwrite::ExpireAt(unit.deadline(ctx, number)?),
    };
    if get {
        // The reply is the old value, whether or not the condition holds.
        match ctx.keys.open::<Str>(key)? {
            Some(old) => ctx.reply.string(&old),
            None => ctx.reply.null(),
        };
    }
    let holds = match condition {
        None => true,
        Some(Condition::Missing) => !ctx.keys.contains(key),
        Some(Condition::Existing) => ctx.keys.contains(key),
    };
    if !holds {
        return Ok(if get { Outcome::Replied } else { ctx.reply.null() });
    }
    if let Overwrite::ExpireAt(deadline) = overwrite
        && ctx.has_passed(deadline)
        && ctx.keys.env().settings.dialect == Dialect::Valkey
    {
        // Redis stores the key, and the next access finds it expired.
        ctx.expire_key(key);
        return Ok(if get { Outcome::Replied } else { ctx.reply.ok() });
    }
    ctx.keys.set_string(key, value, overwrite, "set");
    // A command with an absolute expiry time and no other option is propagated unchanged.
    let is_canonical = matches!(ttl, Ttl::Given(TtlUnit::UnixMilliseconds, _)) && args.argc() == 5;
    if let Overwrite::ExpireAt(deadline) = overwrite
        && !is_canonical
    {
        propagate_with_deadline(ctx, key, value, deadline);
    } else if get {
        // GET is not needed in a replay.
        let is_get = |word: &[u8]| word.eq_ignore_ascii_case(b"GET");
        let kept = |&(index, word): &(usize, &[u8])| index < 3 || !is_get(word);
        let without_get = words.enumerate().filter(kept).map(|(_, word)| word.to_vec());
        ctx.keys.propagate(|| without_get.collect());
    }
    Ok(if get { Outcome::Replied } else { ctx.reply.ok() })
}

/// Propagates the effect, which is unconditional and has an absolute expiry time, regardless of the
/// client's options.
fn propagate_with_deadline(ctx: &mut Ctx<'_, '_>, key: &Key<'_>, value: &[u8], deadline: UnixMs) {
    ctx.keys.propagate(|| {
        let at = deadline.0.to_string();
        [&b"SET"[..], key.bytes, value, b"PXAT", at.as_bytes()].map(<[u8]>::to_vec).to_vec()
    });
}

/// With GET, the old value is read and returned. Otherwise it is not accessed.
fn set_key_flags(argc: usize, word: ArgLookup<'_, '_>) -> KeyFlags {
    let get = (3..argc).any(|index| word(index).eq_ignore_ascii_case(b"GET"));
    if get { KeyFlags::RW.union(KeyFlags::ACCESS) } else { KeyFlags::OW }.union(KeyFlags::UPDATE)
}

fn setnx(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let value = args.bytes()?;
    let missing = !ctx.keys.contains(&key);
    if missing {
        ctx.keys.set_string(&key, value, Overwrite::Persist, "set");
    }
    Ok(ctx.reply.integer(i64::from(missing)))
}

fn setex(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    set_for(ctx, args, TtlUnit::Seconds)
}

fn psetex(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    set_for(ctx, args, TtlUnit::Milliseconds)
}

fn set_for(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, unit: TtlUnit) -> Result<Outcome> {
    let key = args.key()?;
    let deadline = unit.deadline(ctx, args.bytes()?)?;
    let value = args.bytes()?;
    ctx.keys.set_string(&key, value, Overwrite::ExpireAt(deadline), "set");
    propagate_with_deadline(ctx, &key, value, deadline);
    Ok(ctx.reply.ok())
}

fn getset(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let value = args.bytes()?;
    let outcome = match ctx.keys.open::<Str>(&key)? {
        Some(old) => ctx.reply.string(&old),
        None => ctx.reply.null(),
    };
    ctx.keys.set_string(&key, value, Overwrite::Persist, "set");
    ctx.keys.propagate(|| vec![b"SET".to_vec(), key.bytes.to_vec(), value.to_vec()]);
    Ok(outcome)
}

const SET: Command = Command {
    spec: Spec {
        name: "set",
        group: Group::String,
        summary: "Sets the string value of a key and replaces a previous value of any type.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::at(1)
            .read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))
            .varying(set_key_flags)
            .noted("with GET also read access, since the old value is returned")],
        args: &[
            Arg::key("key"),
            Arg::string("value"),
            Arg::one_of("condition", &[Arg::token("nx", "NX"), Arg::token("xx", "XX")])
                .since("2.6.12")
                .optional(),
            Arg::token("get", "GET").since("6.2.0").optional(),
            Arg::one_of(
                "expiration",
                &[
                    Arg::integer("seconds").after("EX").since("2.6.12"),
                    Arg::integer("milliseconds").after("PX").since("2.6.12"),
                    Arg::unix_time("unix-time-seconds").after("EXAT").since("6.2.0"),
                    Arg::unix_time("unix-time-milliseconds").after("PXAT").since("6.2.0"),
                    Arg::token("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ],
        history: &[
            ("2.6.12", "Accepts the options `EX`, `PX`, `NX` and `XX`."),
            ("6.0.0", "Accepts the option `KEEPTTL`."),
            ("6.2.0", "Accepts the options `GET`, `EXAT` and `PXAT`."),
            ("7.0.0", "Accepts `NX` together with `GET`."),
        ],
        ..Spec::EMPTY
    },
    run: set,
    subcommands: &[],
};

const SETNX: Command = Command {
    spec: Spec {
        name: "setnx",
        group: Group::String,
        summary: "Sets the string value of a key only if the key does not exist.",
        arity: 3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).overwrite(KeyFlags::INSERT)],
        args: &[Arg::key("key"), Arg::string("value")],
        ..Spec::EMPTY
    },
    run: setnx,
    subcommands: &[],
};

const SETEX: Command = Command {
    spec: Spec {
        name: "setex",
        group: Group::String,
        summary: "Sets the string value and the TTL in seconds of a key.",
        since: "2.0.0",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::at(1).overwrite(KeyFlags::UPDATE)],
        args: &[Arg::key("key"), Arg::integer("seconds"), Arg::string("value")],
        ..Spec::EMPTY
    },
    run: setex,
    subcommands: &[],
};

const PSETEX: Command = Command {
    spec: Spec {
        name: "psetex",
        group: Group::String,
        summary: "Sets the string value and the TTL in milliseconds of a key.",
        since: "2.6.0",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::at(1).overwrite(KeyFlags::UPDATE)],
        args: &[Arg::key("key"), Arg::integer("milliseconds"), Arg::string("value")],
        ..Spec::EMPTY
    },
    run: psetex,
    subcommands: &[],
};

const GETSET: Command = Command {
    spec: Spec {
        name: "getset",
        group: Group::String,
        summary: "Sets the string value of a key and returns the old value.",
        arity: 3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        args: &[Arg::key("key"), Arg::string("value")],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`SET` with the `!GET` argument",
        }),
        ..Spec::EMPTY
    },
    run: getset,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[SET, SETNX, SETEX, PSETEX, GETSET];
