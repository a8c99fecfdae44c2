//! SADD, SREM, SMOVE, SISMEMBER, SMISMEMBER, SCARD, SMEMBERS: the members of one set.

use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, ElementArgs, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::Key;
use crate::reply::Outcome;
use crate::types::set::Set;
use crate::types::{Edit, ValueKind};

/// From this length on, a set's members are written as the client reads them.
const STREAMED_MIN: usize = 4096;

fn sadd(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let first = args.peek().ok_or(CommandError::Syntax)?;
    let added = ctx.keys.upsert::<Set, _>(&key, |set, limits| {
        set.expect(first, args.remaining(), limits);
        let mut added = 0;
        while let Some(member) = args.optional() {
            added += u64::from(set.add(member, limits));
        }
        Ok(Edit::new(added, added, "sadd"))
    })?;
    Ok(ctx.reply.integer(added as i64))
}

fn srem(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let removed = ctx.keys.update::<Set, _>(&key, |set, _| {
        let mut removed = 0;
        while let Some(member) = args.optional() {
            removed += u64::from(set.remove(member));
        }
        Ok(Edit::new(removed, removed, "srem"))
    })?;
    Ok(ctx.reply.integer(removed.unwrap_or(0) as i64))
}

fn smove(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (source, destination) = (args.key()?, args.key()?);
    let member = args.bytes()?;
    if !ctx.keys.contains(&source) {
        return Ok(ctx.reply.integer(0));
    }
    let is_other =
        |key: &Key<'_>| ctx.keys.inspect(key).is_some_and(|entry| entry.kind() != ValueKind::Set);
    if is_other(&source) || is_other(&destination) {
        return Err(CommandError::WrongType);
    }
    let is_same_set = source.bytes == destination.bytes;
    let found = ctx.keys.update::<Set, _>(&source, |set, _| {
        if is_same_set {
            return Ok(Edit::unchanged(set.contains(member)));
        }
        let removed = set.remove(member);
        Ok(Edit::new(removed, u64::from(removed), "srem"))
    })?;
    let found = found.unwrap_or(false);
    if found && !is_same_set {
        ctx.keys.upsert::<Set, _>(&destination, |set, limits| {
            let added = set.add(member, limits);
            Ok(Edit::new((), u64::from(added), "sadd"))
        })?;
    }
    Ok(ctx.reply.integer(i64::from(found)))
}

fn sismember(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let member = args.bytes()?;
    let found = ctx.keys.open::<Set>(&key)?.is_some_and(|set| set.contains(member));
    Ok(ctx.reply.integer(i64::from(found)))
}

fn smismember(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let set = ctx.keys.open::<Set>(&key)?;
    ctx.reply.array(args.remaining());
    while let Some(member) = args.optional() {
        let found = set.is_some_and(|set| set.contains(member));
        ctx.reply.integer(i64::from(found));
    }
    Ok(Outcome::Replied)
}

fn scard(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let len = ctx.keys.open::<Set>(&key)?.map_or(0, Set::len);
    Ok(ctx.reply.count(len))
}

fn smembers(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let Some(set) = ctx.keys.open::<Set>(&key)? else { return Ok(ctx.reply.set(0)) };
    ctx.reply.set(set.len());
    if set.len() < STREAMED_MIN {
        set.each(|member| {
            ctx.reply.item(member);
        });
        return Ok(Outcome::Replied);
    }
    let (view, mut cursor) = (set.clone(), 0);
    Ok(ctx.reply.stream(move |reply, bytes| {
        let end = reply.written().saturating_add(bytes);
        while reply.written() < end {
            cursor = view.scan(cursor, 1, |member| {
                reply.item(member);
            });
            if cursor == 0 {
                return false;
            }
        }
        true
    }))
}

const SADD: Command = Command {
    spec: Spec {
        name: "sadd",
        group: Group::Set,
        summary: "Adds members to a set. Creates the key if it does not exist.",
        complexity: "O(1) for each added member.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::INSERT)],
        elements: ElementArgs::ALL,
        args: &[Arg::key("key"), Arg::string("member").multiple()],
        history: &[("2.4.0", "Accepts several members.")],
        ..Spec::EMPTY
    },
    run: sadd,
    subcommands: &[],
};

const SREM: Command = Command {
    spec: Spec {
        name: "srem",
        group: Group::Set,
        summary: "Removes members from a set. Deletes the set if no members are left.",
        complexity: "O(N) in the number of members named",
        arity: -3,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::DELETE)],
        elements: ElementArgs::ALL,
        args: &[Arg::key("key"), Arg::string("member").multiple()],
        history: &[("2.4.0", "Accepts several members.")],
        ..Spec::EMPTY
    },
    run: srem,
    subcommands: &[],
};

const SMOVE: Command = Command {
    spec: Spec {
        name: "smove",
        group: Group::Set,
        summary: "Moves a member from one set to another.",
        complexity: "O(1)",
        arity: 4,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[
            KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE)),
            KeySpec::at(2).read_write(KeyFlags::INSERT),
        ],
        args: &[Arg::key("source"), Arg::key("destination").spec(1), Arg::string("member")],
        ..Spec::EMPTY
    },
    run: smove,
    subcommands: &[],
};

const SISMEMBER: Command = Command {
    spec: Spec {
        name: "sismember",
        group: Group::Set,
        summary: "Checks if a member exists in a set.",
        complexity: "O(1)",
        arity: 3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::empty())],
        elements: ElementArgs::ONE,
        args: &[Arg::key("key"), Arg::string("member")],
        ..Spec::EMPTY
    },
    run: sismember,
    subcommands: &[],
};

const SMISMEMBER: Command = Command {
    spec: Spec {
        name: "smismember",
        group: Group::Set,
        summary: "Checks if several members exist in a set.",
        since: "6.2.0",
        complexity: "O(N) in the number of members named",
        arity: -3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        elements: ElementArgs::ALL,
        args: &[Arg::key("key"), Arg::string("member").multiple()],
        ..Spec::EMPTY
    },
    run: smismember,
    subcommands: &[],
};

const SCARD: Command = Command {
    spec: Spec {
        name: "scard",
        group: Group::Set,
        summary: "Returns the number of members in a set.",
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::empty())],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: scard,
    subcommands: &[],
};

const SMEMBERS: Command = Command {
    spec: Spec {
        name: "smembers",
        group: Group::Set,
        summary: "Returns all members of a set.",
        complexity: "O(N) in the number of members",
        arity: 2,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output_order"],
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: smembers,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] =
    &[SADD, SREM, SMOVE, SISMEMBER, SMISMEMBER, SCARD, SMEMBERS];
