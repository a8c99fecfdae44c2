//! LINSERT, LSET, LREM, LTRIM: change elements within a list.

use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::list::{End, List};

fn linsert(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let side = if args.take("BEFORE") {
        End::Front
    } else if args.take("AFTER") {
        End::Back
    } else {
        return Err(CommandError::Syntax);
    };
    let (pivot, element) = (args.bytes()?, args.bytes()?);
    let len = ctx.keys.update::<List, _>(&key, |list, limits| {
        Ok(if list.insert_next_to(pivot, side, element, limits) {
            Edit::new(list.len() as i64, 1, "linsert")
        } else {
            Edit::unchanged(-1)
        })
    })?;
    Ok(ctx.reply.integer(len.unwrap_or(0)))
}

fn lset(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let mut words = args.clone();
    let set = ctx.keys.update::<List, _>(&key, |list, limits| {
        // The key is looked up before the number is parsed.
        let (index, element) = (words.integer()?, words.bytes()?);
        Ok(if list.set(index, element, limits) {
            Edit::new(true, 1, "lset")
        } else {
            Edit::unchanged(false)
        })
    })?;
    match set {
        Some(true) => Ok(ctx.reply.ok()),
        Some(false) => Err(CommandError::IndexOutOfRange),
        None => Err(CommandError::NoSuchKey),
    }
}

fn lrem(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (count, text) = (args.integer()?, args.bytes()?);
    let end = if count < 0 { End::Back } else { End::Front };
    let limit = match usize::try_from(count.unsigned_abs()) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(limit) => limit,
    };
    let removed = ctx.keys.update::<List, _>(&key, |list, limits| {
        let removed = list.remove(text, limit, end, limits);
        Ok(Edit::new(removed, removed as u64, "lrem"))
    })?;
    Ok(ctx.reply.count(removed.unwrap_or(0)))
}

fn ltrim(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (start, stop) = (args.integer()?, args.integer()?);
    ctx.keys.update::<List, _>(&key, |list, limits| {
        let (first, count) = list.span(start, stop);
        let removed = list.len() - count;
        list.keep_range(first, count, limits);
        // There is an event even if nothing was trimmed.
        Ok(Edit::with_event((), removed as u64, "ltrim"))
    })?;
    Ok(ctx.reply.ok())
}

const LINSERT: Command = Command {
    spec: Spec {
        name: "linsert",
        group: Group::List,
        summary: "Inserts an element before or after the first one that equals a value.",
        since: "2.2.0",
        complexity: "O(N) in the number of elements before the pivot.",
        arity: 5,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::at(1).read_write(KeyFlags::INSERT)],
        args: &[
            Arg::key("key"),
            Arg::one_of("where", &[Arg::token("before", "BEFORE"), Arg::token("after", "AFTER")]),
            Arg::string("pivot"),
            Arg::string("element"),
        ],
        ..Spec::EMPTY
    },
    run: linsert,
    subcommands: &[],
};

const LSET: Command = Command {
    spec: Spec {
        name: "lset",
        group: Group::List,
        summary: "Replaces an element by its index.",
        complexity: "O(N) in the elements of a small list; O(log N) in the nodes of a large one.",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        args: &[Arg::key("key"), Arg::integer("index"), Arg::string("element")],
        ..Spec::EMPTY
    },
    run: lset,
    subcommands: &[],
};

const LREM: Command = Command {
    spec: Spec {
        name: "lrem",
        group: Group::List,
        summary: "Removes elements that equal a value.",
        complexity: "O(N+M) in the length of the list and the number of elements removed.",
        arity: 4,
        flags: Flags::WRITE,
        keys: &[KeySpec::at(1).read_write(KeyFlags::DELETE)],
        args: &[Arg::key("key"), Arg::integer("count"), Arg::string("element")],
        ..Spec::EMPTY
    },
    run: lrem,
    subcommands: &[],
};

const LTRIM: Command = Command {
    spec: Spec {
        name: "ltrim",
        group: Group::List,
        summary: "Keeps the elements between two indexes and removes all others.",
        complexity: "O(N) in the number of nodes removed.",
        arity: 4,
        flags: Flags::WRITE,
        keys: &[KeySpec::at(1).read_write(KeyFlags::DELETE)],
        args: &[Arg::key("key"), Arg::integer("start"), Arg::integer("stop")],
        ..Spec::EMPTY
    },
    run: ltrim,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[LINSERT, LSET, LREM, LTRIM];
