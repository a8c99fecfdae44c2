//! HDEL, HGETDEL: remove fields.

use super::deadline::FieldList;
use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, ElementArgs, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::hash::Hash;
use crate::types::{Collection, Edit};

fn hdel(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let removed = ctx.keys.update::<Hash, _>(&key, |hash, _| {
        let mut removed = 0;
        while let Some(field) = args.optional() {
            removed += u64::from(hash.remove(field));
            if hash.is_empty() {
                break;
            }
        }
        Ok(Edit::new(removed, removed, "hdel"))
    })?;
    Ok(ctx.reply.integer(removed.unwrap_or(0) as i64))
}

fn hgetdel(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    // Redis checks the key before the other arguments.
    if let Some(entry) = ctx.keys.inspect(&key) {
        entry.get::<Hash>().ok_or(crate::base::error::CommandError::WrongType)?;
    }
    let fields = FieldList::parse(args, FieldList::OF_READS)?;
    let reply = &mut ctx.reply;
    reply.array(fields.len());
    let mut removal = vec![b"HDEL".to_vec(), key.bytes.to_vec()];
    let found = ctx.keys.update::<Hash, _>(&key, |hash, _| {
        let mut removed = 0;
        for field in fields.iter() {
            match hash.get(field) {
                Some(value) => {
                    reply.item(value);
                    hash.remove(field);
                    removal.push(field.to_vec());
                    removed += 1;
                }
                None => {
                    reply.null();
                }
            }
        }
        Ok(Edit::new(removed, removed, "hdel"))
    })?;
    match found {
        None => fields.iter().for_each(|_| _ = ctx.reply.null()),
        Some(0) => {}
        Some(_) => ctx.keys.propagate(|| removal),
    }
    Ok(Outcome::Replied)
}

const HDEL: Command = Command {
    spec: Spec {
        name: "hdel",
        group: Group::Hash,
        summary: "Removes fields of a hash. Deletes the hash if no fields are left.",
        since: "2.0.0",
        complexity: "O(N) in the number of removed fields.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::DELETE)],
        elements: ElementArgs::ALL,
        args: &[Arg::key("key"), Arg::string("field").multiple()],
        history: &[("2.4.0", "Accepts several fields.")],
        ..Spec::EMPTY
    },
    run: hdel,
    subcommands: &[],
};

const HGETDEL: Command = Command {
    spec: Spec {
        name: "hgetdel",
        group: Group::Hash,
        summary: "Returns the values of fields and removes the fields.",
        since: "8.0.0",
        complexity: "O(N) in the number of fields that are named.",
        arity: -5,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE))],
        args: &[Arg::key("key"), FieldList::ARG],
        ..Spec::EMPTY
    },
    run: hgetdel,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[HDEL, HGETDEL];
