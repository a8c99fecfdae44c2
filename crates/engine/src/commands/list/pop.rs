//! LPOP, RPOP, LMPOP: remove elements at an end and return them.

use super::{ENDS, end, pop_command, pop_event};
use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::Key;
use crate::reply::{Outcome, Reply};
use crate::types::list::{End, List};
use crate::types::{Edit, EncodingLimits};
use smallvec::SmallVec;
use std::ops::ControlFlow;

fn pop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, end: End) -> Result<Outcome> {
    let key = args.key()?;
    let count = match args.optional() {
        Some(_) if args.remaining() > 0 => return Err(ctx.wrong_arity()),
        Some(word) => {
            let count = parse_i64(word).and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or(CommandError::MustBePositive)?)
        }
        None => None,
    };
    let Some(count) = count else { return pop_one(ctx, &key, end) };
    let popped = ctx.keys.update::<List, _>(&key, |list, limits| {
        let popped = pop_many(&mut ctx.reply, list, end, count, limits);
        Ok(Edit::new((), popped as u64, pop_event(end)))
    })?;
    Ok(if popped.is_none() { ctx.reply.null_array() } else { Outcome::Replied })
}

fn pop_one(ctx: &mut Ctx<'_, '_>, key: &Key<'_>, end: End) -> Result<Outcome> {
    let popped = ctx.keys.update::<List, _>(key, |list, limits| {
        list.pop(end, limits, |item| _ = ctx.reply.item(item));
        Ok(Edit::new((), 1, pop_event(end)))
    })?;
    Ok(if popped.is_none() { ctx.reply.null() } else { Outcome::Replied })
}

/// Writes up to `count` elements, starting at `end`, as an array and removes them. Returns their
/// number.
fn pop_many(
    reply: &mut Reply<'_>,
    list: &mut List,
    end: End,
    count: usize,
    limits: &EncodingLimits,
) -> usize {
    let len = list.len();
    let count = count.min(len);
    reply.array(count);
    if count == 0 {
        return 0;
    }
    let (first, from) = match end {
        End::Front => (0, 0),
        End::Back => (len - 1, len - count),
    };
    let mut left = count;
    list.walk(first, end, |_, item| {
        reply.item(item);
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    list.remove_range(from, count, limits);
    count
}

fn lpop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    pop(ctx, args, End::Front)
}

fn rpop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    pop(ctx, args, End::Back)
}

/// Takes a number that is at least one. For anything else, returns the error `otherwise`.
fn positive(args: &mut Args<'_>, otherwise: &'static str) -> Result<usize> {
    let number = args.integer().ok().and_then(|number| usize::try_from(number).ok());
    number.filter(|number| *number > 0).ok_or_else(|| CommandError::text(otherwise))
}

/// The arguments of LMPOP and BLMPOP.
pub(super) struct LmpopOptions<'a> {
    pub(super) keys: SmallVec<[Key<'a>; 4]>,
    end: End,
    count: usize,
}

impl<'a> LmpopOptions<'a> {
    /// Takes the arguments, starting with the number of keys.
    pub(super) fn parse(args: &mut Args<'a>) -> Result<LmpopOptions<'a>> {
        let key_count = positive(args, "ERR numkeys should be greater than 0")?;
        // The keys and the end must follow.
        if key_count >= args.remaining() {
            return Err(CommandError::Syntax);
        }
        let keys = (0..key_count).map(|_| args.key()).collect::<Result<_>>()?;
        let end = end(args)?;
        let mut count = None;
        while args.remaining() > 0 {
            if count.is_some() || args.remaining() < 2 || !args.take("COUNT") {
                return Err(CommandError::Syntax);
            }
            count = Some(positive(args, "ERR count should be greater than 0")?);
        }
        Ok(LmpopOptions { keys, end, count: count.unwrap_or(1) })
    }

    /// Pops from the first list that exists and replies. Returns false if there is none.
    pub(super) fn pop(&self, ctx: &mut Ctx<'_, '_>) -> Result<bool> {
        for key in &self.keys {
            let popped = ctx.keys.update::<List, _>(key, |list, limits| {
                ctx.reply.array(2);
                ctx.reply.bulk(key.bytes);
                let popped = pop_many(&mut ctx.reply, list, self.end, self.count, limits);
                Ok(Edit::new(popped, popped as u64, pop_event(self.end)))
            })?;
            if let Some(popped) = popped {
                let popped = popped.to_string().into_bytes();
                let word = pop_command(self.end);
                ctx.keys.propagate(|| vec![word.to_vec(), key.bytes.to_vec(), popped]);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn lmpop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let wanted = LmpopOptions::parse(args)?;
    Ok(if wanted.pop(ctx)? { Outcome::Replied } else { ctx.reply.null_array() })
}

/// The common part of LPOP and RPOP.
const POP: Spec = Spec {
    group: Group::List,
    complexity: "O(N) in the number of elements returned.",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE))],
    args: &[Arg::key("key"), Arg::integer("count").optional().since("6.2.0")],
    history: &[("6.2.0", "Accepts a count.")],
    ..Spec::EMPTY
};

const LPOP: Command = Command {
    spec: Spec {
        name: "lpop",
        summary: "Removes and returns elements at the front of a list.",
        ..POP
    },
    run: lpop,
    subcommands: &[],
};

const RPOP: Command = Command {
    spec: Spec {
        name: "rpop",
        summary: "Removes and returns elements at the back of a list.",
        ..POP
    },
    run: rpop,
    subcommands: &[],
};

const LMPOP: Command = Command {
    spec: Spec {
        name: "lmpop",
        group: Group::List,
        summary: "Removes and returns elements at an end of the first list that is not empty.",
        since: "7.0.0",
        complexity: "O(N+M) in the numbers of keys and of elements returned.",
        arity: -4,
        flags: Flags::WRITE.union(Flags::MOVABLEKEYS),
        keys: &[KeySpec::counted(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE))],
        args: &[
            Arg::integer("numkeys"),
            Arg::key("key").multiple(),
            Arg::one_of("where", ENDS),
            Arg::integer("count").after("COUNT").optional(),
        ],
        ..Spec::EMPTY
    },
    run: lmpop,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[LPOP, RPOP, LMPOP];
