//! ZRANGE and its older forms, ZRANGESTORE: members by rank, score or text.

use super::reply::Show;
use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Deprecated, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::View;
use crate::types::sorted_set::{LexRange, ScoreRange};
use crate::types::{Collection, EncodingLimits, SortedSet, Value};
use std::ops::Range;

/// The meaning of a range's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// The options that a command's name determines; `None` if the command leaves them open.
struct Form {
    by: Option<By>,
    backward: Option<bool>,
    stores: bool,
}

const ZRANGE_FORM: Form = Form { by: None, backward: None, stores: false };

fn zrange(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    range(ctx, args, &ZRANGE_FORM)
}

fn zrevrange(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    range(ctx, args, &Form { by: Some(By::Rank), backward: Some(true), stores: false })
}

fn zrangebyscore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    range(ctx, args, &Form { by: Some(By::Score), backward: Some(false), stores: false })
}

fn zrevrangebyscore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    range(ctx, args, &Form { by: Some(By::Score), backward: Some(true), stores: false })
}

fn zrangebylex(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    range(ctx, args, &Form { by: Some(By::Lex), backward: Some(false), stores: false })
}

fn zrevrangebylex(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    range(ctx, args, &Form { by: Some(By::Lex), backward: Some(true), stores: false })
}

fn range(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, form: &Form) -> Result<Outcome> {
    let key = args.key()?;
    let wanted = Options::parse(args, form)?;
    let Some(set) = ctx.keys.open::<SortedSet>(&key)? else {
        return Ok(ctx.reply.array(0));
    };
    let ranks = wanted.ranks(set);
    Ok(wanted.show.ranks(&mut ctx.reply, set, ranks, wanted.backward))
}

fn zrangestore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (target, source) = (args.key()?, args.key()?);
    let wanted = Options::parse(args, &Form { stores: true, ..ZRANGE_FORM })?;
    let limits = ctx.keys.env().settings.limits;
    let set = ctx.keys.open::<SortedSet>(&source)?;
    let ranks = set.map_or(0..0, |set| wanted.ranks(set));
    let result = if ctx.is_long(ranks.len()) {
        // The ranks belong to the same set as the view.
        let make = move |views: &[View]| match &views[0] {
            Some(Value::SortedSet(set)) => members(set, ranks, &limits),
            _ => unreachable!("it was a sorted set when its ranks were found"),
        };
        match ctx.result_elsewhere(args, &[source], make) {
            Some(result) => result,
            None => return Ok(Outcome::Elsewhere),
        }
    } else {
        set.map_or_else(|| Collection::new(&limits), |set| members(set, ranks, &limits))
    };
    let len = result.len();
    ctx.keys.put(&target, result, "zrangestore");
    Ok(ctx.reply.count(len))
}

/// A set of the members with these ranks.
fn members(set: &SortedSet, ranks: Range<usize>, limits: &EncodingLimits) -> SortedSet {
    let members: Vec<_> = set.iter(ranks).collect();
    SortedSet::of_sorted(&members, limits)
}

/// The bounds of a range.
enum Bounds<'a> {
    Rank(i64, i64),
    Score(ScoreRange),
    Lex(LexRange<'a>),
}

/// The options of a range command.
struct Options<'a> {
    bounds: Bounds<'a>,
    backward: bool,
    offset: i64,
    /// Maximum number of members; negative for all.
    limit: i64,
    show: Show,
}

impl<'a> Options<'a> {
    fn parse(args: &mut Args<'a>, form: &Form) -> Result<Options<'a>> {
        let (first, second) = (args.bytes()?, args.bytes()?);
        let (mut by, mut backward) = (form.by, form.backward);
        let mut show = Show::Members;
        let (mut offset, mut limit) = (0, -1);
        while args.remaining() > 0 {
            if !form.stores && args.take("WITHSCORES") {
                show = Show::WithScores;
            } else if args.remaining() > 2 && args.take("LIMIT") {
                (offset, limit) = (args.integer()?, args.integer()?);
            } else if backward.is_none() && args.take("REV") {
                backward = Some(true);
            } else if by.is_none() && args.take("BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && args.take("BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        let by = by.unwrap_or(By::Rank);
        let backward = backward.unwrap_or(false);
        if limit != -1 && by == By::Rank {
            return Err(CommandError::text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if show == Show::WithScores && by == By::Lex {
            return Err(CommandError::text(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let (min, max) = if backward { (second, first) } else { (first, second) };
        let bounds = match by {
            By::Rank => {
                let rank =
                    |word| crate::base::number::parse_i64(word).ok_or(CommandError::NotAnInteger);
                Bounds::Rank(rank(first)?, rank(second)?)
            }
            By::Score => Bounds::Score(ScoreRange::parse(min, max)?),
            By::Lex => Bounds::Lex(LexRange::parse(min, max)?),
        };
        Ok(Options { bounds, backward, offset, limit, show })
    }

    /// The ranks, counted from the front.
    fn ranks(&self, set: &SortedSet) -> Range<usize> {
        let found = match &self.bounds {
            Bounds::Rank(start, end) => {
                let ranks = set.ranks(*start, *end);
                return if self.backward {
                    set.len() - ranks.end..set.len() - ranks.start
                } else {
                    ranks
                };
            }
            Bounds::Score(range) => set.score_ranks(range),
            Bounds::Lex(range) => set.lex_ranks(range, self.backward),
        };
        // A negative offset skips everything.
        let skipped = usize::try_from(self.offset).unwrap_or(usize::MAX).min(found.len());
        let left = found.len() - skipped;
        let taken = usize::try_from(self.limit).unwrap_or(left).min(left);
        if self.backward {
            let end = found.end - skipped;
            end - taken..end
        } else {
            let start = found.start + skipped;
            start..start + taken
        }
    }
}

const ZRANGE: Command = Command {
    spec: Spec {
        name: "zrange",
        group: Group::SortedSet,
        summary: "Returns a range of members by rank, score or lexicographic order, in either direction.",
        since: "1.2.0",
        complexity: "O(log(N)+M) with N members, M of which are returned",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::string("start"),
            Arg::string("stop"),
            Arg::one_of(
                "sortby",
                &[Arg::token("byscore", "BYSCORE"), Arg::token("bylex", "BYLEX")],
            )
            .since("6.2.0")
            .optional(),
            Arg::token("rev", "REV").since("6.2.0").optional(),
            Arg::block("offset_count", &[Arg::integer("offset"), Arg::integer("count")])
                .after("LIMIT")
                .since("6.2.0")
                .optional(),
            Arg::token("withscores", "WITHSCORES").optional(),
        ],
        history: &[("6.2.0", "Accepts the options `REV`, `BYSCORE`, `BYLEX` and `LIMIT`.")],
        ..Spec::EMPTY
    },
    run: zrange,
    subcommands: &[],
};

const ZRANGESTORE: Command = Command {
    spec: Spec {
        name: "zrangestore",
        group: Group::SortedSet,
        summary: "Stores a range of a sorted set under another key.",
        since: "6.2.0",
        complexity: "O(log(N)+M) with N members, M of which are stored",
        arity: -5,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[
            KeySpec::at(1).overwrite(KeyFlags::UPDATE),
            KeySpec::at(2).read_only(KeyFlags::ACCESS),
        ],
        args: &[
            Arg::key("dst"),
            Arg::key("src").spec(1),
            Arg::string("min"),
            Arg::string("max"),
            Arg::one_of(
                "sortby",
                &[Arg::token("byscore", "BYSCORE"), Arg::token("bylex", "BYLEX")],
            )
            .optional(),
            Arg::token("rev", "REV").optional(),
            Arg::block("offset_count", &[Arg::integer("offset"), Arg::integer("count")])
                .after("LIMIT")
                .optional(),
        ],
        ..Spec::EMPTY
    },
    run: zrangestore,
    subcommands: &[],
};

const ZREVRANGE: Command = Command {
    spec: Spec {
        name: "zrevrange",
        group: Group::SortedSet,
        summary: "Returns a range of members by rank, from the highest score to the lowest.",
        since: "1.2.0",
        complexity: "O(log(N)+M) with N members, M of which are returned",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::integer("start"),
            Arg::integer("stop"),
            Arg::token("withscores", "WITHSCORES").optional(),
        ],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`ZRANGE` with the `REV` argument",
        }),
        ..Spec::EMPTY
    },
    run: zrevrange,
    subcommands: &[],
};

const ZRANGEBYSCORE: Command = Command {
    spec: Spec {
        name: "zrangebyscore",
        group: Group::SortedSet,
        summary: "Returns the members with scores in a range.",
        since: "1.0.5",
        complexity: "O(log(N)+M) with N members, M of which are returned",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::double("min"),
            Arg::double("max"),
            Arg::token("withscores", "WITHSCORES").since("2.0.0").optional(),
            Arg::block("offset_count", &[Arg::integer("offset"), Arg::integer("count")])
                .after("LIMIT")
                .optional(),
        ],
        history: &[("2.0.0", "Accepts the option `WITHSCORES`.")],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`ZRANGE` with the `BYSCORE` argument",
        }),
        ..Spec::EMPTY
    },
    run: zrangebyscore,
    subcommands: &[],
};

const ZREVRANGEBYSCORE: Command = Command {
    spec: Spec {
        name: "zrevrangebyscore",
        group: Group::SortedSet,
        summary: "Returns the members with scores in a range, from the highest to the lowest.",
        since: "2.2.0",
        complexity: "O(log(N)+M) with N members, M of which are returned",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::double("max"),
            Arg::double("min"),
            Arg::token("withscores", "WITHSCORES").optional(),
            Arg::block("offset_count", &[Arg::integer("offset"), Arg::integer("count")])
                .after("LIMIT")
                .optional(),
        ],
        history: &[("2.1.6", "Bounds can be exclusive.")],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`ZRANGE` with the `REV` and `BYSCORE` arguments",
        }),
        ..Spec::EMPTY
    },
    run: zrevrangebyscore,
    subcommands: &[],
};

const ZRANGEBYLEX: Command = Command {
    spec: Spec {
        name: "zrangebylex",
        group: Group::SortedSet,
        summary: "Returns the members in a lexicographic range.",
        since: "2.8.9",
        complexity: "O(log(N)+M) with N members, M of which are returned",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::string("min"),
            Arg::string("max"),
            Arg::block("offset_count", &[Arg::integer("offset"), Arg::integer("count")])
                .after("LIMIT")
                .optional(),
        ],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`ZRANGE` with the `BYLEX` argument",
        }),
        ..Spec::EMPTY
    },
    run: zrangebylex,
    subcommands: &[],
};

const ZREVRANGEBYLEX: Command = Command {
    spec: Spec {
        name: "zrevrangebylex",
        group: Group::SortedSet,
        summary: "Returns the members in a lexicographic range, in reverse order.",
        since: "2.8.9",
        complexity: "O(log(N)+M) with N members, M of which are returned",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::string("max"),
            Arg::string("min"),
            Arg::block("offset_count", &[Arg::integer("offset"), Arg::integer("count")])
                .after("LIMIT")
                .optional(),
        ],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`ZRANGE` with the `REV` and `BYLEX` arguments",
        }),
        ..Spec::EMPTY
    },
    run: zrevrangebylex,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] =
    &[ZRANGE, ZRANGESTORE, ZREVRANGE, ZRANGEBYSCORE, ZREVRANGEBYSCORE, ZRANGEBYLEX, ZREVRANGEBYLEX];
