//! ZUNION, ZINTER, ZDIFF, their STORE forms, ZINTERCARD: operations on several sets.

use super::reply::{AT_ONCE_MAX, Show};
use crate::base::double::parse_f64;
use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::{Key, Keys};
use crate::reply::{Outcome, Reply};
use crate::types::View;
use crate::types::set::Set;
use crate::types::{EncodingLimits, SortedSet, Value, ValueKind};
use brisk_structures::listpack::Item;
use brisk_structures::places::Places;
use std::ops::ControlFlow;

/// The operation on the sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

/// How the scores of a member in several sets are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn of(self, score: f64, other: f64) -> f64 {
        match self {
            Aggregate::Sum => number_or_zero(score + other),
            Aggregate::Min => {
                if other < score {
                    other
                } else {
                    score
                }
            }
            Aggregate::Max => {
                if other > score {
                    other
                } else {
                    score
                }
            }
        }
    }
}

/// Infinities that cancel each other result in 0.
fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// One of the sets, with its weight.
#[derive(Clone, Copy)]
struct Source<'k> {
    members: Members<'k>,
    weight: f64,
}

/// The members of a source. Members of plain sets count as if they had the score 1.
#[derive(Clone, Copy)]
enum Members<'k> {
    None,
    Plain(&'k Set),
    Scored(&'k SortedSet),
}

impl<'k> Source<'k> {
    fn open(keys: &'k Keys<'_>, key: &Key<'_>) -> Result<Source<'k>> {
        let plain = keys.inspect(key).is_some_and(|entry| entry.kind() == ValueKind::Set);
        let members = if plain {
            keys.open::<Set>(key)?.map(Members::Plain)
        } else {
            keys.open::<SortedSet>(key)?.map(Members::Scored)
        };
        Ok(Source { members: members.unwrap_or(Members::None), weight: 1.0 })
    }

    fn len(&self) -> usize {
        match self.members {
            Members::None => 0,
            Members::Plain(set) => set.len(),
            Members::Scored(set) => set.len(),
        }
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        match self.members {
            Members::None => None,
            Members::Plain(set) => set.contains(member).then_some(1.0),
            Members::Scored(set) => set.score(member),
        }
    }

    /// Visits members with their scores until `visit` breaks.
    fn each(&self, mut visit: impl FnMut(Item<'k>, f64) -> ControlFlow<()>) {
        let _ = match self.members {
            Members::None => ControlFlow::Continue(()),
            Members::Plain(set) => set.try_each(|member| visit(member, 1.0)),
            Members::Scored(set) => {
                set.iter(0..set.len()).try_for_each(|(member, score)| visit(member, score))
            }
        };
    }

    fn each_to_the_end(&self, mut visit: impl FnMut(Item<'k>, f64)) {
        self.each(|member, score| {
            visit(member, score);
            ControlFlow::Continue(())
        });
    }
}

/// The form of the command: the options after the keys, and the destination of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Shown,
    Stored,
    Counted,
}

/// The sets and the parameters of the operation.
struct Options<'k> {
    sources: Vec<Source<'k>>,
    limits: EncodingLimits,
    aggregate: Aggregate,
    show: Show,
    /// Maximum number of members to count.
    limit: usize,
}

fn zunion(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    shown(ctx, args, Operation::Union)
}

fn zinter(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    shown(ctx, args, Operation::Inter)
}

fn zdiff(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    shown(ctx, args, Operation::Diff)
}

fn zunionstore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    stored(ctx, args, Operation::Union, "zunionstore")
}

fn zinterstore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    stored(ctx, args, Operation::Inter, "zinterstore")
}

fn zdiffstore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    stored(ctx, args, Operation::Diff, "zdiffstore")
}

fn shown(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, operation: Operation) -> Result<Outcome> {
    let name = ctx.command_name();
    let names = args.clone();
    let wanted = Options::parse(ctx.keys, args, operation, Form::Shown, &name)?;
    if ctx.is_long(wanted.steps(operation)) {
        let (views, wanted) = (ctx.keys.views(&wanted.keys(names)?), wanted.without_sources());
        return Ok(ctx.reply_elsewhere(args, move |_, reply| {
            Ok(wanted.over(&views).show(operation, reply))
        }));
    }
    Ok(wanted.show(operation, &mut ctx.reply))
}

fn stored(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'_>,
    operation: Operation,
    event: &'static str,
) -> Result<Outcome> {
    let target = args.key()?;
    let name = ctx.command_name();
    let names = args.clone();
    let wanted = Options::parse(ctx.keys, args, operation, Form::Stored, &name)?;
    let result = if ctx.is_long(wanted.steps(operation)) {
        let (names, wanted) = (wanted.keys(names)?, wanted.without_sources());
        let make = move |views: &[View]| wanted.over(views).stored(operation);
        match ctx.result_elsewhere(args, &names, make) {
            Some(result) => result,
            None => return Ok(Outcome::Elsewhere),
        }
    } else {
        wanted.stored(operation)
    };
    let len = result.len();
    ctx.keys.put(&target, result, event);
    Ok(ctx.reply.count(len))
}

fn zintercard(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let name = ctx.command_name();
    let names = args.clone();
    let wanted = Options::parse(ctx.keys, args, Operation::Inter, Form::Counted, &name)?;
    let steps = wanted.steps(Operation::Inter);
    let at_once = ctx.counted_at_once(steps, wanted.limit, wanted.sources.len());
    if let Some(count) = wanted.count_common(at_once) {
        return Ok(ctx.reply.count(count));
    }
    let (views, wanted) = (ctx.keys.views(&wanted.keys(names)?), wanted.without_sources());
    Ok(ctx.reply_elsewhere(args, move |_, reply| {
        let count = wanted.over(&views).count_common(usize::MAX);
        Ok(reply.count(count.expect("a set has no more members than that")))
    }))
}

impl Options<'_> {
    /// Approximate number of members that are looked up or added.
    fn steps(&self, operation: Operation) -> usize {
        let lens = self.sources.iter().map(Source::len);
        match operation {
            Operation::Inter => lens.min().unwrap_or(0) * self.sources.len(),
            Operation::Union | Operation::Diff => lens.sum(),
        }
    }

    /// Parses the keys of the sources, which follow `numkeys` in `args`.
    fn keys<'a>(&self, mut args: Args<'a>) -> Result<Vec<Key<'a>>> {
        args.bytes()?;
        self.sources.iter().map(|_| args.key()).collect()
    }

    /// The same options without sets, for when the sets are not known yet.
    fn without_sources(&self) -> Options<'static> {
        let empty = |source: &Source<'_>| Source { members: Members::None, weight: source.weight };
        let Options { limits, aggregate, show, limit, .. } = *self;
        let sources = self.sources.iter().map(empty).collect();
        Options { sources, limits, aggregate, show, limit }
    }

    /// The same options for the sets of these views.
    fn over<'v>(&self, views: &'v [View]) -> Options<'v> {
        let members = |view: &'v View| match view {
            Some(Value::Set(set)) => Members::Plain(set),
            Some(Value::SortedSet(set)) => Members::Scored(set),
            _ => Members::None,
        };
        let weights = self.sources.iter().map(|source| source.weight);
        let source = |(view, weight)| Source { members: members(view), weight };
        let Options { limits, aggregate, show, limit, .. } = *self;
        let sources = views.iter().zip(weights).map(source).collect();
        Options { sources, limits, aggregate, show, limit }
    }

    fn show(&self, operation: Operation, reply: &mut Reply<'_>) -> Outcome {
        let members = self.result(operation);
        if members.len() <= AT_ONCE_MAX {
            self.show.announce(reply, members.len());
            for (member, score) in members {
                self.show.member(reply, member, score);
            }
            return Outcome::Replied;
        }
        let result = SortedSet::SkipList(Box::new(SortedSet::tree_of(&members, &self.limits)));
        self.show.ranks(reply, &result, 0..members.len(), false)
    }

    fn stored(&self, operation: Operation) -> SortedSet {
        SortedSet::of_sorted(&self.result(operation), &self.limits)
    }

    /// Number of members that all sources contain, up to the limit. `None` if `members_max` members
    /// of the smallest set are not enough to determine it.
    fn count_common(&self, members_max: usize) -> Option<usize> {
        let sources = self.by_size();
        let (first, others) = sources.split_first().expect("there is a key at least");
        let (mut count, mut left, mut over) = (0, members_max, false);
        let mut digits = itoa::Buffer::new();
        first.each(|member, _| {
            let member = member.text(&mut digits);
            count += usize::from(others.iter().all(|other| other.score(member).is_some()));
            over = left == 0;
            left = left.saturating_sub(1);
            let is_over = over || count >= self.limit;
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        (!over).then_some(count)
    }
}

impl<'k> Options<'k> {
    /// Parses the arguments after the destination, in Redis's order: number of keys, types,
    /// options.
    fn parse(
        keys: &'k Keys<'_>,
        args: &mut Args<'_>,
        operation: Operation,
        form: Form,
        name: &str,
    ) -> Result<Options<'k>> {
        let numkeys = args.integer()?;
        if numkeys < 1 {
            return Err(CommandError::text(format!(
                "ERR at least 1 input key is needed for '{name}' command"
            )));
        }
        let numkeys = usize::try_from(numkeys).unwrap_or(usize::MAX);
        if numkeys > args.remaining() {
            return Err(CommandError::Syntax);
        }
        let mut sources = Vec::with_capacity(numkeys);
        for _ in 0..numkeys {
            sources.push(Source::open(keys, &args.key()?)?);
        }
        let mut wanted = Options {
            sources,
            limits: keys.env().settings.limits,
            aggregate: Aggregate::Sum,
            show: Show::Members,
            limit: usize::MAX,
        };
        wanted.options(args, operation, form)?;
        Ok(wanted)
    }

    fn options(&mut self, args: &mut Args<'_>, operation: Operation, form: Form) -> Result<()> {
        let scored = operation != Operation::Diff && form != Form::Counted;
        while args.remaining() > 0 {
            if scored && args.remaining() > self.sources.len() && args.take("WEIGHTS") {
                for source in &mut self.sources {
                    let weight = parse_f64(args.bytes()?);
                    source.weight = weight
                        .ok_or_else(|| CommandError::text("ERR weight value is not a float"))?;
                }
            } else if scored && args.remaining() > 1 && args.take("AGGREGATE") {
                self.aggregate = if args.take("SUM") {
                    Aggregate::Sum
                } else if args.take("MIN") {
                    Aggregate::Min
                } else if args.take("MAX") {
                    Aggregate::Max
                } else {
                    return Err(CommandError::Syntax);
                };
            } else if form == Form::Shown && args.take("WITHSCORES") {
                self.show = Show::WithScores;
            } else if form == Form::Counted && args.remaining() > 1 && args.take("LIMIT") {
                let limit = args.integer().ok().and_then(|limit| usize::try_from(limit).ok());
                let limit =
                    limit.ok_or_else(|| CommandError::text("ERR LIMIT can't be negative"))?;
                self.limit = if limit == 0 { usize::MAX } else { limit };
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(())
    }

    /// The members of the result in order.
    fn result(&self, operation: Operation) -> Vec<(Item<'k>, f64)> {
        let mut members = match operation {
            Operation::Union => self.union(),
            Operation::Inter => self.intersection(),
            Operation::Diff => self.difference(),
        };
        SortedSet::sort(&mut members);
        members
    }

    /// The sets in ascending order of size. The order in which scores are added affects their last
    /// digits.
    fn by_size(&self) -> Vec<Source<'k>> {
        let mut sources = self.sources.clone();
        sources.sort_by_key(Source::len);
        sources
    }

    fn union(&self) -> Vec<(Item<'k>, f64)> {
        let sources = self.by_size();
        let largest = sources.last().map_or(0, Source::len);
        let all = sources.iter().map(Source::len).sum();
        let mut members: Vec<(Item<'k>, f64)> = Vec::with_capacity(largest);
        let mut places = Places::new(self.limits.hash_key, largest, all);
        for source in sources {
            source.each_to_the_end(|member, score| {
                let member = member.canonical();
                let score = number_or_zero(score * source.weight);
                let hash = places.hash(member);
                match places.find(hash, |place| members[place].0 == member) {
                    Some(place) => {
                        let sum = &mut members[place].1;
                        *sum = self.aggregate.of(*sum, score);
                    }
                    None => {
                        places.insert(hash, members.len());
                        members.push((member, score));
                    }
                }
            });
        }
        members
    }

    fn intersection(&self) -> Vec<(Item<'k>, f64)> {
        let sources = self.by_size();
        let (first, others) = sources.split_first().expect("there is a key at least");
        let (mut members, mut digits) = (Vec::new(), itoa::Buffer::new());
        first.each_to_the_end(|member, score| {
            let start = number_or_zero(score * first.weight);
            let text = member.text(&mut digits);
            let score = others.iter().try_fold(start, |sum, other| {
                let score = other.score(text)?;
                Some(self.aggregate.of(sum, score * other.weight))
            });
            members.extend(score.map(|score| (member, score)));
        });
        members
    }

    fn difference(&self) -> Vec<(Item<'k>, f64)> {
        let (first, others) = self.sources.split_first().expect("there is a key at least");
        let (mut members, mut digits) = (Vec::new(), itoa::Buffer::new());
        first.each_to_the_end(|member, score| {
            let text = member.text(&mut digits);
            if others.iter().all(|other| other.score(text).is_none()) {
                members.push((member, score));
            }
        });
        members
    }
}

const ZUNION: Command = Command {
    spec: Spec {
        name: "zunion",
        group: Group::SortedSet,
        summary: "Returns the union of sorted sets.",
        since: "6.2.0",
        complexity: "O(N)",
        arity: -3,
        flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
        keys: &[KeySpec::counted(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::integer("numkeys"),
            Arg::key("key").multiple(),
            Arg::integer("weight").after("WEIGHTS").optional().multiple(),
            Arg::one_of(
                "aggregate",
                &[Arg::token("sum", "SUM"), Arg::token("min", "MIN"), Arg::token("max", "MAX")],
            )
            .after("AGGREGATE")
            .optional(),
            Arg::token("withscores", "WITHSCORES").optional(),
        ],
        ..Spec::EMPTY
    },
    run: zunion,
    subcommands: &[],
};

const ZINTER: Command = Command {
    spec: Spec {
        name: "zinter",
        group: Group::SortedSet,
        summary: "Returns the intersection of sorted sets.",
        since: "6.2.0",
        complexity: "O(N*K) with N members in the smallest of K sets",
        arity: -3,
        flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
        keys: &[KeySpec::counted(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::integer("numkeys"),
            Arg::key("key").multiple(),
            Arg::integer("weight").after("WEIGHTS").optional().multiple(),
            Arg::one_of(
                "aggregate",
                &[Arg::token("sum", "SUM"), Arg::token("min", "MIN"), Arg::token("max", "MAX")],
            )
            .after("AGGREGATE")
            .optional(),
            Arg::token("withscores", "WITHSCORES").optional(),
        ],
        ..Spec::EMPTY
    },
    run: zinter,
    subcommands: &[],
};

const ZDIFF: Command = Command {
    spec: Spec {
        name: "zdiff",
        group: Group::SortedSet,
        summary: "Returns the difference of sorted sets.",
        since: "6.2.0",
        complexity: "O(L + (N-K)log(N)) with L members in all sets, N in the first set and K in the result",
        arity: -3,
        flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
        keys: &[KeySpec::counted(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::integer("numkeys"),
            Arg::key("key").multiple(),
            Arg::token("withscores", "WITHSCORES").optional(),
        ],
        ..Spec::EMPTY
    },
    run: zdiff,
    subcommands: &[],
};

const ZUNIONSTORE: Command = Command {
    spec: Spec {
        name: "zunionstore",
        group: Group::SortedSet,
        summary: "Stores the union of sorted sets.",
        since: "2.0.0",
        complexity: "O(N)",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
        keys: &[
            KeySpec::at(1).overwrite(KeyFlags::UPDATE),
            KeySpec::counted(2).read_only(KeyFlags::ACCESS),
        ],
        args: &[
            Arg::key("destination"),
            Arg::integer("numkeys"),
            Arg::key("key").spec(1).multiple(),
            Arg::integer("weight").after("WEIGHTS").optional().multiple(),
            Arg::one_of(
                "aggregate",
                &[Arg::token("sum", "SUM"), Arg::token("min", "MIN"), Arg::token("max", "MAX")],
            )
            .after("AGGREGATE")
            .optional(),
        ],
        ..Spec::EMPTY
    },
    run: zunionstore,
    subcommands: &[],
};

const ZINTERSTORE: Command = Command {
    spec: Spec {
        name: "zinterstore",
        group: Group::SortedSet,
        summary: "Stores the intersection of sorted sets.",
        since: "2.0.0",
        complexity: "O(N*K) with N members in the smallest of K sets",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
        keys: &[
            KeySpec::at(1).overwrite(KeyFlags::UPDATE),
            KeySpec::counted(2).read_only(KeyFlags::ACCESS),
        ],
        args: &[
            Arg::key("destination"),
            Arg::integer("numkeys"),
            Arg::key("key").spec(1).multiple(),
            Arg::integer("weight").after("WEIGHTS").optional().multiple(),
            Arg::one_of(
                "aggregate",
                &[Arg::token("sum", "SUM"), Arg::token("min", "MIN"), Arg::token("max", "MAX")],
            )
            .after("AGGREGATE")
            .optional(),
        ],
        ..Spec::EMPTY
    },
    run: zinterstore,
    subcommands: &[],
};

const ZDIFFSTORE: Command = Command {
    spec: Spec {
        name: "zdiffstore",
        group: Group::SortedSet,
        summary: "Stores the difference of sorted sets.",
        since: "6.2.0",
        complexity: "O(L + (N-K)log(N)) with L members in all sets, N in the first set and K in the result",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
        keys: &[
            KeySpec::at(1).overwrite(KeyFlags::UPDATE),
            KeySpec::counted(2).read_only(KeyFlags::ACCESS),
        ],
        args: &[
            Arg::key("destination"),
            Arg::integer("numkeys"),
            Arg::key("key").spec(1).multiple(),
        ],
        ..Spec::EMPTY
    },
    run: zdiffstore,
    subcommands: &[],
};

const ZINTERCARD: Command = Command {
    spec: Spec {
        name: "zintercard",
        group: Group::SortedSet,
        summary: "Returns the number of members in the intersection of sorted sets.",
        since: "7.0.0",
        complexity: "O(N*K) with N members in the smallest of K sets",
        arity: -3,
        flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
        keys: &[KeySpec::counted(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::integer("numkeys"),
            Arg::key("key").multiple(),
            Arg::integer("limit").after("LIMIT").optional(),
        ],
        ..Spec::EMPTY
    },
    run: zintercard,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] =
    &[ZUNION, ZINTER, ZDIFF, ZUNIONSTORE, ZINTERSTORE, ZDIFFSTORE, ZINTERCARD];
