//! RENAME, RENAMENX, MOVE: move a key to another name or another database.

use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Categories, Flags, Group, KeyFlags, KeySpec, Scope, Spec};
use crate::reply::Outcome;

fn rename(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (from, to) = (args.key()?, args.key()?);
    if ctx.keys.open_any_mut(&from).is_none() {
        return Err(CommandError::NoSuchKey);
    }
    if from.bytes != to.bytes {
        ctx.keys.rename(&from, &to);
    }
    Ok(ctx.reply.ok())
}

fn renamenx(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (from, to) = (args.key()?, args.key()?);
    if ctx.keys.open_any_mut(&from).is_none() {
        return Err(CommandError::NoSuchKey);
    }
    // A key that is renamed to its own name counts as existing.
    let free = !ctx.keys.contains(&to);
    if free {
        ctx.keys.rename(&from, &to);
    }
    Ok(ctx.reply.integer(i64::from(free)))
}

fn move_key(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    if ctx.keys.env().settings.in_cluster {
        return Err(CommandError::text("ERR MOVE is not allowed in cluster mode"));
    }
    let key = args.key()?;
    let target = args.db(ctx.keys.keyspace().database_count())?;
    if target == ctx.keys.db() {
        return Err(CommandError::SameObject);
    }
    ctx.keys.lock_also(target, &key)?;
    let movable = ctx.keys.open_any_mut(&key).is_some()
        && !ctx.keys.in_db(target, |keys| keys.contains(&key));
    if movable {
        ctx.keys.move_to(&key, target);
    }
    Ok(ctx.reply.integer(i64::from(movable)))
}

const RENAME: Command = Command {
    spec: Spec {
        name: "rename",
        group: Group::Generic,
        summary: "Renames a key and replaces the destination key.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: 3,
        flags: Flags::WRITE,
        categories: Categories::KEYSPACE,
        keys: &[
            KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE)),
            KeySpec::at(2).overwrite(KeyFlags::UPDATE),
        ],
        args: &[Arg::key("key"), Arg::key("newkey").spec(1)],
        ..Spec::EMPTY
    },
    run: rename,
    subcommands: &[],
};

const RENAMENX: Command = Command {
    spec: Spec {
        name: "renamenx",
        group: Group::Generic,
        summary: "Renames a key only if the destination key does not exist.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: 3,
        flags: Flags::WRITE.union(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[
            KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE)),
            KeySpec::at(2).overwrite(KeyFlags::INSERT),
        ],
        args: &[Arg::key("key"), Arg::key("newkey").spec(1)],
        history: &[("3.2.0", "The new name can be equal to the old one.")],
        ..Spec::EMPTY
    },
    run: renamenx,
    subcommands: &[],
};

const MOVE: Command = Command {
    spec: Spec {
        name: "move",
        group: Group::Generic,
        summary: "Moves a key to another database unless it exists there.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: 3,
        flags: Flags::WRITE.union(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        args: &[Arg::key("key"), Arg::integer("db")],
        scope: Scope::MoreKeys,
        ..Spec::EMPTY
    },
    run: move_key,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[MOVE, RENAME, RENAMENX];
