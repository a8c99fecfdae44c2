//! HGET, HMGET, HEXISTS, HSTRLEN, HLEN, HGETALL, HKEYS, HVALS: read fields.

use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, ElementArgs, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::{Outcome, Reply};
use crate::types::hash::{Hash, Text};

fn hget(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let field = args.bytes()?;
    let value = ctx.keys.open::<Hash>(&key)?.and_then(|hash| hash.get(field));
    Ok(match value {
        Some(value) => ctx.reply.item(value),
        None => ctx.reply.null(),
    })
}

fn hmget(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let hash = ctx.keys.open::<Hash>(&key)?;
    ctx.reply.array(args.remaining());
    while let Some(field) = args.optional() {
        match hash.and_then(|hash| hash.get(field)) {
            Some(value) => ctx.reply.item(value),
            None => ctx.reply.null(),
        };
    }
    Ok(Outcome::Replied)
}

fn hexists(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let field = args.bytes()?;
    let exists = ctx.keys.open::<Hash>(&key)?.is_some_and(|hash| hash.contains(field));
    Ok(ctx.reply.integer(i64::from(exists)))
}

fn hstrlen(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let field = args.bytes()?;
    let value = ctx.keys.open::<Hash>(&key)?.and_then(|hash| hash.get(field));
    Ok(ctx.reply.count(value.map_or(0, Text::len)))
}

fn hlen(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let len = ctx.keys.open::<Hash>(&key)?.map_or(0, Hash::len);
    Ok(ctx.reply.count(len))
}

/// The part of each field in a reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Field,
    Value,
    Both,
}

impl Part {
    fn announce(self, reply: &mut Reply<'_>, len: usize) -> Outcome {
        if self == Part::Both { reply.map(len) } else { reply.array(len) }
    }

    #[inline]
    fn show(self, reply: &mut Reply<'_>, field: Text<'_>, value: Text<'_>) {
        if self != Part::Value {
            reply.item(field);
        }
        if self != Part::Field {
            reply.item(value);
        }
    }
}

fn hgetall(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    show_all(ctx, args, Part::Both)
}

fn hkeys(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    show_all(ctx, args, Part::Field)
}

fn hvals(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    show_all(ctx, args, Part::Value)
}

fn show_all(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, part: Part) -> Result<Outcome> {
    let key = args.key()?;
    let Some(hash) = ctx.keys.open::<Hash>(&key)? else {
        return Ok(part.announce(&mut ctx.reply, 0));
    };
    let reply = &mut ctx.reply;
    part.announce(reply, hash.len());
    if hash.is_long() {
        return Ok(stream(reply, hash.clone(), part));
    }
    hash.each(|field, value| part.show(reply, field, value));
    Ok(Outcome::Replied)
}

/// Writes all fields as the client reads them, from a view that shares its parts with the hash.
fn stream(reply: &mut Reply<'_>, view: Hash, part: Part) -> Outcome {
    let mut cursor = 0;
    reply.stream(move |reply, budget| {
        let start = reply.written();
        loop {
            cursor = view.scan(cursor, 1, |field, value| part.show(reply, field, value));
            if cursor == 0 {
                return false;
            }
            if reply.written() - start >= budget {
                return true;
            }
        }
    })
}

/// The common part of the rows of commands that read one field.
const READ_FIELD: Spec = Spec {
    group: Group::Hash,
    since: "2.0.0",
    complexity: "O(1)",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: &[KeySpec::at(1).read_only(KeyFlags::empty())],
    elements: ElementArgs::ONE,
    args: &[Arg::key("key"), Arg::string("field")],
    ..Spec::EMPTY
};

const HGET: Command = Command {
    spec: Spec {
        name: "hget",
        summary: "Returns the value of a field.",
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        ..READ_FIELD
    },
    run: hget,
    subcommands: &[],
};

const HEXISTS: Command = Command {
    spec: Spec { name: "hexists", summary: "Checks if a field exists in a hash.", ..READ_FIELD },
    run: hexists,
    subcommands: &[],
};

const HSTRLEN: Command = Command {
    spec: Spec {
        name: "hstrlen",
        summary: "Returns the length of a field's value.",
        since: "3.2.0",
        ..READ_FIELD
    },
    run: hstrlen,
    subcommands: &[],
};

const HMGET: Command = Command {
    spec: Spec {
        name: "hmget",
        summary: "Returns the values of several fields.",
        complexity: "O(N) in the number of requested fields.",
        arity: -3,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        elements: ElementArgs::ALL,
        args: &[Arg::key("key"), Arg::string("field").multiple()],
        ..READ_FIELD
    },
    run: hmget,
    subcommands: &[],
};

const HLEN: Command = Command {
    spec: Spec {
        name: "hlen",
        summary: "Returns the number of fields in a hash.",
        arity: 2,
        args: &[Arg::key("key")],
        ..READ_FIELD
    },
    run: hlen,
    subcommands: &[],
};

/// The common part of the rows of commands that read a whole hash.
const READ_ALL: Spec = Spec {
    group: Group::Hash,
    since: "2.0.0",
    complexity: "O(N) in the size of the hash.",
    arity: 2,
    flags: Flags::READONLY,
    tips: &["nondeterministic_output_order"],
    keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
    args: &[Arg::key("key")],
    ..Spec::EMPTY
};

const HGETALL: Command = Command {
    spec: Spec { name: "hgetall", summary: "Returns all fields and values of a hash.", ..READ_ALL },
    run: hgetall,
    subcommands: &[],
};

const HKEYS: Command = Command {
    spec: Spec { name: "hkeys", summary: "Returns all fields of a hash.", ..READ_ALL },
    run: hkeys,
    subcommands: &[],
};

const HVALS: Command = Command {
    spec: Spec { name: "hvals", summary: "Returns all values of a hash.", ..READ_ALL },
    run: hvals,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] =
    &[HEXISTS, HGET, HGETALL, HKEYS, HLEN, HMGET, HSTRLEN, HVALS];
