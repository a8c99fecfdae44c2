//! DBSIZE, FLUSHALL, FLUSHDB, SWAPDB: whole databases.

use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Categories, Flags, Group, Scope, Spec};
use crate::env::table_bytes;
use crate::keyspace::DbIndex;
use crate::reply::Outcome;
use brisk_structures::alloc::SetAside;

/// Expired keys that have not been removed yet count too, as in Redis.
fn dbsize(ctx: &mut Ctx<'_, '_>, _args: &mut Args<'_>) -> Result<Outcome> {
    let count = ctx.keys.keyspace().key_count(ctx.keys.db());
    Ok(ctx.reply.integer(count as i64))
}

fn flushdb(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let db = ctx.keys.db();
    flush(ctx, args, [db])
}

fn flushall(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let all = ctx.keys.keyspace().databases();
    let outcome = flush(ctx, args, all)?;
    ctx.keys.keyspace().note_flush_of_all();
    Ok(outcome)
}

/// With SYNC and with ASYNC, this only unlinks the tables, and another thread frees them. Without
/// ASYNC the reply waits until the memory is freed, without delaying other clients. Small tables
/// are freed immediately. Transactions and scripts do not wait: otherwise their remaining commands,
/// and all clients that need their slots, would have to wait too.
fn flush(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'_>,
    databases: impl IntoIterator<Item = DbIndex>,
) -> Result<Outcome> {
    let mut lazy = ctx.keys.env().settings.lazy_user_flush;
    if args.remaining() > 0 {
        lazy = args.take("ASYNC");
        if !lazy && !args.take("SYNC") {
            return Err(CommandError::Syntax);
        }
    }
    args.end()?;
    for db in databases {
        let removed = ctx.keys.flush(db);
        ctx.keys.changed_all(removed);
    }
    ctx.keys.invalidate_all();
    // This is propagated even if there was nothing to remove here, because a replica may have kept
    // keys.
    ctx.keys.propagate(|| args.arguments().map(<[u8]>::to_vec).collect());
    if !lazy {
        let env = ctx.keys.env();
        env.free_light_tables();
        if ctx.can_wait() {
            let heavy = env.take_tables();
            if !heavy.is_empty() {
                // This memory counts as free, so no keys are evicted because of it.
                let bytes =
                    if env.settings.limited { heavy.iter().map(table_bytes).sum() } else { 0usize };
                let set_aside = SetAside::of(bytes as u64);
                return Ok(ctx.reply_elsewhere(args, move |_, reply| {
                    drop((heavy, set_aside));
                    Ok(reply.ok())
                }));
            }
        }
    }
    Ok(ctx.reply.ok())
}

fn swapdb(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    if ctx.keys.env().settings.in_cluster {
        return Err(CommandError::text("ERR SWAPDB is not allowed in cluster mode"));
    }
    let count = ctx.keys.keyspace().database_count();
    let first = args.int().map_err(|_| CommandError::text("ERR invalid first DB index"))?;
    let second = args.int().map_err(|_| CommandError::text("ERR invalid second DB index"))?;
    let index = |number| DbIndex::checked(number, count).ok_or(CommandError::DbOutOfRange);
    ctx.keys.swap(index(first)?, index(second)?);
    Ok(ctx.reply.ok())
}

const FLUSH_MODE: Arg = Arg::one_of(
    "async",
    &[Arg::token("async", "ASYNC").since("4.0.0"), Arg::token("sync", "SYNC").since("6.2.0")],
)
.optional();

/// The common part of the two flushing commands' rows.
const FLUSH: Spec = Spec {
    group: Group::Server,
    since: "1.0.0",
    arity: -1,
    flags: Flags::WRITE,
    categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    args: &[FLUSH_MODE],
    history: &[("4.0.0", "Accepts the option `ASYNC`."), ("6.2.0", "Accepts the option `SYNC`.")],
    scope: Scope::Quiescent,
    ..Spec::EMPTY
};

const DBSIZE: Command = Command {
    spec: Spec {
        name: "dbsize",
        group: Group::Server,
        summary: "Returns the number of keys in the selected database.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: 1,
        flags: Flags::READONLY.union(Flags::FAST),
        categories: Categories::KEYSPACE,
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        scope: Scope::EachSlot,
        ..Spec::EMPTY
    },
    run: dbsize,
    subcommands: &[],
};

const FLUSHALL: Command = Command {
    spec: Spec {
        name: "flushall",
        summary: "Removes all keys of all databases.",
        complexity: "O(N) in the number of slots in use; another thread frees the keys.",
        ..FLUSH
    },
    run: flushall,
    subcommands: &[],
};

const FLUSHDB: Command = Command {
    spec: Spec {
        name: "flushdb",
        summary: "Removes all keys of the selected database.",
        complexity: "O(N) in the number of slots in use; another thread frees the keys.",
        ..FLUSH
    },
    run: flushdb,
    subcommands: &[],
};

const SWAPDB: Command = Command {
    spec: Spec {
        name: "swapdb",
        group: Group::Server,
        summary: "Exchanges two databases.",
        since: "4.0.0",
        complexity: "O(N) in the number of clients that watch or wait for keys in either database.",
        arity: 3,
        flags: Flags::WRITE.union(Flags::FAST),
        categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
        args: &[Arg::integer("index1"), Arg::integer("index2")],
        scope: Scope::Quiescent,
        ..Spec::EMPTY
    },
    run: swapdb,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[DBSIZE, FLUSHALL, FLUSHDB, SWAPDB];
