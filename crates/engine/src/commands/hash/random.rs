//! HRANDFIELD: random fields.

use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::base::random::Random;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::{Outcome, Reply};
use crate::types::hash::{Hash, Text};
use brisk_resp::Protocol;

/// From this count on, draws with repeats are written as the client reads them. The client chooses
/// the count, and the size of the hash does not limit it.
const STREAMED_MIN: usize = 4096;

fn hrandfield(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let env = ctx.keys.env();
    let Some(count) = args.optional() else {
        let hash = ctx.keys.open::<Hash>(&key)?;
        let reply = &mut ctx.reply;
        match hash {
            Some(hash) => hash.random(
                |bound| env.random_below(bound),
                |field, _| {
                    reply.item(field);
                },
            ),
            None => {
                reply.null();
            }
        }
        return Ok(Outcome::Replied);
    };
    let (count, show) = parse(count, args)?;
    let Some(hash) = ctx.keys.open::<Hash>(&key)? else { return Ok(ctx.reply.array(0)) };
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let reply = &mut ctx.reply;
    if count >= 0 {
        show.announce(reply, wanted.min(hash.len()));
        hash.sample(
            wanted,
            |bound| env.random_below(bound),
            |field, value| {
                show.one(reply, field, value);
            },
        );
        return Ok(Outcome::Replied);
    }
    show.announce(reply, wanted);
    if wanted < STREAMED_MIN {
        for _ in 0..wanted {
            hash.random(
                |bound| env.random_below(bound),
                |field, value| show.one(reply, field, value),
            );
        }
        return Ok(Outcome::Replied);
    }
    let random = Random::seeded(env.random.borrow_mut().bits());
    Ok(stream(reply, hash.clone(), random, wanted, show))
}

/// Writes `left` draws as the client reads them.
fn stream(
    reply: &mut Reply<'_>,
    view: Hash,
    mut random: Random,
    mut left: usize,
    show: Show,
) -> Outcome {
    reply.stream(move |reply, budget| {
        let start = reply.written();
        while left > 0 && reply.written() - start < budget {
            view.random(|bound| random.below(bound), |field, value| show.one(reply, field, value));
            left -= 1;
        }
        left > 0
    })
}

/// Parses the count, and the part of each field to show.
fn parse(count: &[u8], args: &mut Args<'_>) -> Result<(i64, Show)> {
    const LIMIT: i64 = i64::MAX;
    let count = parse_i64(count).ok_or(CommandError::NotAnInteger)?;
    if count < -LIMIT {
        let text = format!("ERR value is out of range, value must between {} and {LIMIT}", -LIMIT);
        return Err(CommandError::text(text));
    }
    let with_values = args.take("WITHVALUES");
    args.end()?;
    // The reply has two elements per field.
    if with_values && count.abs() > LIMIT / 2 {
        return Err(CommandError::OutOfRange);
    }
    Ok((count, Show { with_values }))
}

#[derive(Clone, Copy)]
struct Show {
    with_values: bool,
}

impl Show {
    fn announce(self, reply: &mut Reply<'_>, count: usize) {
        let flat = self.with_values && reply.protocol() == Protocol::Resp2;
        reply.array(if flat { count * 2 } else { count });
    }

    fn one(self, reply: &mut Reply<'_>, field: Text<'_>, value: Text<'_>) {
        if self.with_values && reply.protocol() == Protocol::Resp3 {
            reply.array(2);
        }
        reply.item(field);
        if self.with_values {
            reply.item(value);
        }
    }
}

const HRANDFIELD: Command = Command {
    spec: Spec {
        name: "hrandfield",
        group: Group::Hash,
        summary: "Returns random fields of a hash.",
        since: "6.2.0",
        complexity: "O(N) in the number of fields that are returned.",
        arity: -2,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::block(
                "options",
                &[Arg::integer("count"), Arg::token("withvalues", "WITHVALUES").optional()],
            )
            .optional(),
        ],
        ..Spec::EMPTY
    },
    run: hrandfield,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[HRANDFIELD];
