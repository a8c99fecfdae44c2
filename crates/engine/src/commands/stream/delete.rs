//! XDEL.

use super::id;
use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::stream::Stream;

fn xdel(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let deleted = ctx.keys.update::<Stream, _>(&key, |stream, _| {
        // All IDs must be well-formed, or nothing is deleted.
        let mut judged = args.clone();
        while let Some(word) = judged.optional() {
            id::parse(word, 0)?;
        }
        let mut deleted = 0;
        while let Some(word) = args.optional() {
            deleted += u64::from(stream.delete(id::parse(word, 0)?));
        }
        Ok(Edit::new(deleted, deleted, "xdel"))
    })?;
    Ok(ctx.reply.integer(deleted.unwrap_or(0) as i64))
}

const XDEL: Command = Command {
    spec: Spec {
        name: "xdel",
        group: Group::Stream,
        summary: "Deletes entries of a stream.",
        since: "5.0.0",
        complexity: "O(1) for each entry.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::DELETE)],
        args: &[Arg::key("key"), Arg::string("id").multiple()],
        ..Spec::EMPTY
    },
    run: xdel,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[XDEL];
