//! SPOP and SRANDMEMBER: random members.

use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::base::random::Random;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::env::effect::Hooks;
use crate::keyspace::Key;
use crate::reply::Outcome;
use crate::types::set::{Member, Set};
use crate::types::{Collection, Edit};

/// Maximum number of members in one propagated SREM of SPOP with a count.
const PROPAGATED_MEMBERS_MAX: usize = 1024;

/// From this count on, draws with repeats are written as the client reads them. The client chooses
/// the count, and the size of the set does not limit it.
const STREAMED_MIN: usize = 4096;

fn spop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let Some(count) = args.optional() else { return pop_one(ctx, &key) };
    args.end()?;
    let count = parse_i64(count).filter(|count| *count >= 0);
    let count = count.ok_or(CommandError::MustBePositive)?;
    let Some(entry) = ctx.keys.inspect(&key) else { return Ok(ctx.reply.set(0)) };
    let set = entry.get::<Set>().ok_or(CommandError::WrongType)?;
    match usize::try_from(count).unwrap_or(usize::MAX) {
        0 => Ok(ctx.reply.set(0)),
        count if count >= set.len() => pop_all(ctx, &key),
        count => pop_some(ctx, &key, count),
    }
}

fn pop_one(ctx: &mut Ctx<'_, '_>, key: &Key<'_>) -> Result<Outcome> {
    let env = ctx.keys.env();
    let mut below = |bound| env.random_below(bound);
    let propagates = env.hooks.get().contains(Hooks::PROPAGATE);
    let reply = &mut ctx.reply;
    let popped = ctx.keys.update::<Set, _>(key, |set, _| {
        let mut popped = None;
        set.pop(&mut below, |member| {
            reply.item(member);
            popped = propagates.then(|| member.to_vec());
        });
        Ok(Edit::new(popped, 1, "spop"))
    })?;
    match popped {
        None => Ok(ctx.reply.null()),
        Some(member) => {
            let member = member.unwrap_or_default();
            ctx.keys.propagate(|| vec![b"SREM".to_vec(), key.bytes.to_vec(), member]);
            Ok(Outcome::Replied)
        }
    }
}

/// Removes the whole set.
fn pop_all(ctx: &mut Ctx<'_, '_>, key: &Key<'_>) -> Result<Outcome> {
    let reply = &mut ctx.reply;
    let members = ctx.keys.update::<Set, _>(key, |set, limits| {
        let members = std::mem::replace(set, Set::new(limits));
        reply.set(members.len());
        members.each(|member| {
            reply.item(member);
        });
        let len = members.len() as u64;
        Ok(Edit::new(members, len, "spop"))
    })?;
    members.into_iter().for_each(|members| ctx.keys.free(members));
    let lazy = ctx.keys.env().settings.lazy_server_del;
    let name: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
    ctx.keys.propagate(|| vec![name.to_vec(), key.bytes.to_vec()]);
    Ok(Outcome::Replied)
}

fn pop_some(ctx: &mut Ctx<'_, '_>, key: &Key<'_>, count: usize) -> Result<Outcome> {
    let env = ctx.keys.env();
    let mut below = |bound| env.random_below(bound);
    let propagates = env.hooks.get().contains(Hooks::PROPAGATE);
    let mut popped: Vec<Vec<u8>> = Vec::new();
    let reply = &mut ctx.reply;
    reply.set(count);
    ctx.keys.update::<Set, _>(key, |set, limits| {
        set.pop_many(count, limits, &mut below, |member| {
            reply.item(member);
            popped.extend(propagates.then(|| member.to_vec()));
        });
        Ok(Edit::new((), count as u64, "spop"))
    })?;
    for members in popped.chunks(PROPAGATED_MEMBERS_MAX) {
        let words = [b"SREM".to_vec(), key.bytes.to_vec()].into_iter();
        ctx.keys.propagate(|| words.chain(members.iter().cloned()).collect());
    }
    Ok(Outcome::Replied)
}

fn srandmember(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let env = ctx.keys.env();
    let mut below = |bound| env.random_below(bound);
    let Some(count) = args.optional() else {
        let set = ctx.keys.open::<Set>(&key)?;
        return Ok(match set.and_then(|set| set.random(below)) {
            Some(member) => ctx.reply.item(member),
            None => ctx.reply.null(),
        });
    };
    args.end()?;
    let count = parse_count(count)?;
    let Some(set) = ctx.keys.open::<Set>(&key)? else { return Ok(ctx.reply.array(0)) };
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let reply = &mut ctx.reply;
    if count >= 0 {
        let wanted = wanted.min(set.len());
        reply.array(wanted);
        let show = |member: Member<'_>| {
            reply.item(member);
        };
        match wanted {
            1 => set.random(below).into_iter().for_each(show),
            wanted => set.sample(wanted, below, show),
        }
        return Ok(Outcome::Replied);
    }
    reply.array(wanted);
    if wanted < STREAMED_MIN {
        let drawer = set.drawer();
        (0..wanted).for_each(|_| {
            reply.item(drawer.draw(&mut below));
        });
        return Ok(Outcome::Replied);
    }
    let (view, mut left) = (set.clone(), wanted);
    let mut random = Random::seeded(env.random.borrow_mut().bits());
    Ok(reply.stream(move |reply, bytes| {
        let drawer = view.drawer();
        let end = reply.written().saturating_add(bytes);
        while left > 0 && reply.written() < end {
            reply.item(drawer.draw(&mut |bound| random.below(bound)));
            left -= 1;
        }
        left > 0
    }))
}

/// Parses the number of members for SRANDMEMBER; negative means with repeats.
fn parse_count(word: &[u8]) -> Result<i64> {
    match parse_i64(word) {
        // Its absolute value cannot be represented.
        Some(i64::MIN) => Err(CommandError::text(format!(
            "ERR value is out of range, value must between {} and {}",
            -i64::MAX,
            i64::MAX
        ))),
        Some(count) => Ok(count),
        None => Err(CommandError::NotAnInteger),
    }
}

const SPOP: Command = Command {
    spec: Spec {
        name: "spop",
        group: Group::Set,
        summary: "Removes and returns random members of a set.",
        complexity: "O(1); with a count, O(N) in the number of members removed",
        arity: -2,
        flags: Flags::WRITE.union(Flags::FAST),
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE))],
        args: &[Arg::key("key"), Arg::integer("count").optional().since("3.2.0")],
        history: &[("3.2.0", "Accepts a count.")],
        ..Spec::EMPTY
    },
    run: spop,
    subcommands: &[],
};

const SRANDMEMBER: Command = Command {
    spec: Spec {
        name: "srandmember",
        group: Group::Set,
        summary: "Returns random members of a set.",
        complexity: "O(1); with a count, O(N) in the number of members returned",
        arity: -2,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key"), Arg::integer("count").optional().since("2.6.0")],
        history: &[("2.6.0", "Accepts a count.")],
        ..Spec::EMPTY
    },
    run: srandmember,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[SPOP, SRANDMEMBER];
