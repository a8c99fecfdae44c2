//! HTTL, HPTTL, HEXPIRETIME, HPEXPIRETIME, HPERSIST: read the TTLs of fields, and remove them, as
//! in Redis 7.4.

use super::deadline::{ExpireUnit, FieldList, NO_FIELD, exists};
use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::hash::Hash;

/// The reply for a field without a TTL.
const NO_DEADLINE: i64 = -1;

fn httl(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    show(ctx, args, ExpireUnit { ms_per_unit: 1000, from_now: true })
}

fn hpttl(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    show(ctx, args, ExpireUnit { ms_per_unit: 1, from_now: true })
}

fn hexpiretime(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    show(ctx, args, ExpireUnit { ms_per_unit: 1000, from_now: false })
}

fn hpexpiretime(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    show(ctx, args, ExpireUnit { ms_per_unit: 1, from_now: false })
}

fn show(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, counting: ExpireUnit) -> Result<Outcome> {
    let key = args.key()?;
    let now = ctx.now().0;
    let hash = ctx.keys.open::<Hash>(&key)?;
    let fields = FieldList::parse(args, FieldList::OF_READS)?;
    ctx.reply.array(fields.len());
    let since = if counting.from_now { now } else { 0 };
    let unit = counting.ms_per_unit as u64;
    for field in fields.iter() {
        ctx.reply.integer(match hash.and_then(|hash| hash.deadline(field)) {
            None => NO_FIELD,
            Some(None) => NO_DEADLINE,
            Some(Some(deadline)) => deadline.saturating_sub(since).div_ceil(unit) as i64,
        });
    }
    Ok(Outcome::Replied)
}

fn hpersist(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    exists(ctx, &key)?;
    let fields = FieldList::parse(args, FieldList::OF_READS)?;
    let reply = &mut ctx.reply;
    reply.array(fields.len());
    let found = ctx.keys.update::<Hash, _>(&key, |hash, _| {
        let mut any = false;
        for field in fields.iter() {
            reply.integer(match hash.deadline(field) {
                None => NO_FIELD,
                Some(None) => NO_DEADLINE,
                Some(Some(_)) => {
                    hash.set_deadline(field, None);
                    any = true;
                    1
                }
            });
        }
        Ok(Edit::new((), u64::from(any), "hpersist"))
    })?;
    if found.is_none() {
        fields.iter().for_each(|_| _ = ctx.reply.integer(NO_FIELD));
    }
    Ok(Outcome::Replied)
}

/// The common part of the reading commands' rows.
const SHOW: Spec = Spec {
    group: Group::Hash,
    since: "7.4.0",
    complexity: "O(N) in the number of fields that are named.",
    arity: -5,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
    args: &[Arg::key("key"), FieldList::ARG],
    ..Spec::EMPTY
};

const HTTL: Command = Command {
    spec: Spec {
        name: "httl",
        summary: "Returns the TTL of fields in seconds.",
        tips: &["nondeterministic_output"],
        ..SHOW
    },
    run: httl,
    subcommands: &[],
};

const HPTTL: Command = Command {
    spec: Spec {
        name: "hpttl",
        summary: "Returns the TTL of fields in milliseconds.",
        tips: &["nondeterministic_output"],
        ..SHOW
    },
    run: hpttl,
    subcommands: &[],
};

const HEXPIRETIME: Command = Command {
    spec: Spec {
        name: "hexpiretime",
        summary: "Returns the expiry time of fields as a Unix time in seconds.",
        ..SHOW
    },
    run: hexpiretime,
    subcommands: &[],
};

const HPEXPIRETIME: Command = Command {
    spec: Spec {
        name: "hpexpiretime",
        summary: "Returns the expiry time of fields as a Unix time in milliseconds.",
        ..SHOW
    },
    run: hpexpiretime,
    subcommands: &[],
};

const HPERSIST: Command = Command {
    spec: Spec {
        name: "hpersist",
        summary: "Removes the TTL of fields.",
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        ..SHOW
    },
    run: hpersist,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[HEXPIRETIME, HPERSIST, HPEXPIRETIME, HPTTL, HTTL];
