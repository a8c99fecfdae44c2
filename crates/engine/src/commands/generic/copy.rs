//! COPY: copy a value and its TTL to another key.

use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Categories, Flags, Group, KeyFlags, KeySpec, Scope, Spec};
use crate::reply::Outcome;

fn copy(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (from, to) = (args.key()?, args.key()?);
    let home = ctx.keys.db();
    let (mut target, mut replace) = (home, false);
    while args.remaining() > 0 {
        if args.take("REPLACE") {
            replace = true;
        } else if args.take("DB") {
            target = args.db(ctx.keys.keyspace().database_count())?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if target != home && ctx.keys.env().settings.in_cluster {
        let text = "ERR Copying to another database is not allowed in cluster mode";
        return Err(CommandError::text(text));
    }
    if target == home && from.bytes == to.bytes {
        return Err(CommandError::SameObject);
    }
    if target != home {
        ctx.keys.lock_also(target, &to)?;
    }
    let wanted =
        ctx.keys.touch(&from) && (replace || !ctx.keys.in_db(target, |keys| keys.contains(&to)));
    if wanted {
        ctx.keys.copy_to(&from, target, &to);
    }
    Ok(ctx.reply.integer(i64::from(wanted)))
}

const COPY: Command = Command {
    spec: Spec {
        name: "copy",
        group: Group::Generic,
        summary: "Copies the value and the TTL of a key to another key or database.",
        since: "6.2.0",
        complexity: "O(N) in the number of elements; O(1) for strings.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        categories: Categories::KEYSPACE,
        keys: &[
            KeySpec::at(1).read_only(KeyFlags::ACCESS),
            KeySpec::at(2).overwrite(KeyFlags::UPDATE),
        ],
        args: &[
            Arg::key("source"),
            Arg::key("destination").spec(1),
            Arg::integer("destination-db").after("DB").optional(),
            Arg::token("replace", "REPLACE").optional(),
        ],
        scope: Scope::MoreKeys,
        ..Spec::EMPTY
    },
    run: copy,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[COPY];
