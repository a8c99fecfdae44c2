//! ZADD, ZINCRBY: set scores of members.

use crate::base::double::parse_f64;
use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, ElementArgs, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::sorted_set::{AddRules, Added};
use crate::types::{Edit, SortedSet};
use smallvec::SmallVec;

fn zadd(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    add(ctx, args, AddRules::default())
}

/// The options of ZADD are parsed here too, but the arity leaves no room for them, so they cause
/// errors.
fn zincrby(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    add(ctx, args, AddRules { increment: true, ..AddRules::default() })
}

/// The changes of a call.
#[derive(Default)]
struct Tally {
    new: u64,
    changed: u64,
    /// The score of the last member; `None` if the change was not allowed.
    score: Option<f64>,
}

fn add(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, mut rules: AddRules) -> Result<Outcome> {
    let key = args.key()?;
    let count_changed = options(args, &mut rules)?;
    let first = args.position();
    let pairs = args.remaining() / 2;
    let mut scores = SmallVec::<[f64; 8]>::new();
    for pair in 0..pairs {
        let score = parse_f64(args.argument(first + 2 * pair)).ok_or(CommandError::NotAFloat)?;
        scores.push(score);
    }
    let event = if rules.increment { "zincr" } else { "zadd" };
    let tally = ctx.keys.upsert::<SortedSet, _>(&key, |set, limits| {
        let mut tally = Tally::default();
        for (pair, score) in scores.iter().enumerate() {
            let member = args.argument(first + 2 * pair + 1);
            let added = set.add(member, *score, &rules, limits)?;
            tally.score = match added {
                Added::Refused => None,
                Added::Same(score) | Added::New(score) | Added::Changed(score) => Some(score),
            };
            tally.new += u64::from(matches!(added, Added::New(_)));
            tally.changed += u64::from(matches!(added, Added::Changed(_)));
        }
        let changes = tally.new + tally.changed;
        Ok(Edit::new(tally, changes, event))
    })?;
    Ok(match tally {
        Tally { score: Some(score), .. } if rules.increment => ctx.reply.double(score),
        _ if rules.increment => ctx.reply.null(),
        Tally { new, changed, .. } if count_changed => ctx.reply.integer((new + changed) as i64),
        Tally { new, .. } => ctx.reply.integer(new as i64),
    })
}

/// Parses the options and checks them and the number of arguments after them. Returns whether
/// changed members count too.
fn options(args: &mut Args<'_>, rules: &mut AddRules) -> Result<bool> {
    let mut count_changed = false;
    while let Some(word) = args.peek() {
        // The usual argument here is a number, which is not an option.
        if !word.first().is_some_and(u8::is_ascii_alphabetic) {
            break;
        }
        if args.take("NX") {
            rules.only_new = true;
        } else if args.take("XX") {
            rules.only_existing = true;
        } else if args.take("GT") {
            rules.only_greater = true;
        } else if args.take("LT") {
            rules.only_less = true;
        } else if args.take("CH") {
            count_changed = true;
        } else if args.take("INCR") {
            rules.increment = true;
        } else {
            break;
        }
    }
    let words = args.remaining();
    if words == 0 || !words.is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let AddRules { only_new, only_existing, only_greater, only_less, increment } = *rules;
    if only_new && only_existing {
        return Err(CommandError::text(
            "ERR XX and NX options at the same time are not compatible",
        ));
    }
    if only_new && (only_greater || only_less) || only_greater && only_less {
        return Err(CommandError::text(
            "ERR GT, LT, and/or NX options at the same time are not compatible",
        ));
    }
    if increment && words > 2 {
        return Err(CommandError::text("ERR INCR option supports a single increment-element pair"));
    }
    Ok(count_changed)
}

const ZADD: Command = Command {
    spec: Spec {
        name: "zadd",
        group: Group::SortedSet,
        summary: "Adds members to a sorted set, or updates their scores.",
        since: "1.2.0",
        complexity: "O(log(N))",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        elements: ElementArgs { first: 3, step: 2, scored: true },
        args: &[
            Arg::key("key"),
            Arg::one_of("condition", &[Arg::token("nx", "NX"), Arg::token("xx", "XX")])
                .since("3.0.2")
                .optional(),
            Arg::one_of("comparison", &[Arg::token("gt", "GT"), Arg::token("lt", "LT")])
                .since("6.2.0")
                .optional(),
            Arg::token("change", "CH").since("3.0.2").optional(),
            Arg::token("increment", "INCR").since("3.0.2").optional(),
            Arg::block("score_member", &[Arg::double("score"), Arg::string("member")]).multiple(),
        ],
        history: &[
            ("2.4.0", "Accepts several members."),
            ("3.0.2", "Accepts the options `XX`, `NX`, `CH` and `INCR`."),
            ("6.2.0", "Accepts the options `GT` and `LT`."),
        ],
        ..Spec::EMPTY
    },
    run: zadd,
    subcommands: &[],
};

const ZINCRBY: Command = Command {
    spec: Spec {
        name: "zincrby",
        group: Group::SortedSet,
        summary: "Increments the score of a member.",
        since: "1.2.0",
        complexity: "O(log(N))",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        elements: ElementArgs { first: 3, step: 0, scored: false },
        args: &[Arg::key("key"), Arg::integer("increment"), Arg::string("member")],
        ..Spec::EMPTY
    },
    run: zincrby,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[ZADD, ZINCRBY];
