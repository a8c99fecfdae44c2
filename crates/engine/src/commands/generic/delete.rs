//! DEL and UNLINK. Large values are freed by another thread in both cases.

use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Categories, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;

fn delete(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let mut deleted = 0;
    while args.remaining() > 0 {
        let key = args.key()?;
        deleted += usize::from(ctx.keys.delete(&key));
    }
    Ok(ctx.reply.count(deleted))
}

const DEL: Command = Command {
    spec: Spec {
        name: "del",
        group: Group::Generic,
        summary: "Deletes keys.",
        since: "1.0.0",
        complexity: "O(N) in the number of keys; large values are freed in the background.",
        arity: -2,
        flags: Flags::WRITE,
        categories: Categories::KEYSPACE,
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        keys: &[KeySpec::range(1, -1, 1).remove(KeyFlags::DELETE)],
        args: &[Arg::key("key").multiple()],
        ..Spec::EMPTY
    },
    run: delete,
    subcommands: &[],
};

const UNLINK: Command = Command {
    spec: Spec {
        name: "unlink",
        group: Group::Generic,
        summary: "Deletes keys. Another thread frees their values.",
        since: "4.0.0",
        complexity: "O(1) for each key; another thread frees the value, in proportion to its size.",
        arity: -2,
        flags: Flags::WRITE.union(Flags::FAST),
        categories: Categories::KEYSPACE,
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        keys: &[KeySpec::range(1, -1, 1).remove(KeyFlags::DELETE)],
        args: &[Arg::key("key").multiple()],
        ..Spec::EMPTY
    },
    run: delete,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[DEL, UNLINK];
