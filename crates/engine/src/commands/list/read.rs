//! LLEN, LINDEX, LRANGE, LPOS: read lists.

use crate::base::error::{CommandError, Result};
use crate::base::steps::LONG_STEPS_MIN;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::{Outcome, Reply};
use crate::types::list::{End, List};
use std::ops::ControlFlow;

/// Number of bytes of an LRANGE reply that are written immediately. The rest is written from a view
/// of the list, as the client reads.
const AT_ONCE_BYTES: usize = 64 * 1024;

fn llen(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let list = ctx.keys.open::<List>(&key)?;
    Ok(ctx.reply.count(list.map_or(0, List::len)))
}

fn lindex(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    // The key is looked up before the number is parsed.
    let Some(list) = ctx.keys.open::<List>(&key)? else { return Ok(ctx.reply.null()) };
    let index = list.index(args.integer()?);
    let found = index.and_then(|index| list.get(index, |item| ctx.reply.item(item)));
    Ok(found.unwrap_or_else(|| ctx.reply.null()))
}

fn lrange(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (start, stop) = (args.integer()?, args.integer()?);
    let Some(list) = ctx.keys.open::<List>(&key)? else { return Ok(ctx.reply.array(0)) };
    let (mut first, mut count) = list.span(start, stop);
    let outcome = ctx.reply.array(count);
    if write_some(&mut ctx.reply, list, &mut first, &mut count, AT_ONCE_BYTES) {
        let view = list.clone();
        ctx.reply
            .stream(move |reply, budget| write_some(reply, &view, &mut first, &mut count, budget));
    }
    Ok(outcome)
}

/// Writes `count` elements starting at `first`, or about `budget` bytes of them, and advances past
/// them. Returns false if none is left.
fn write_some(
    reply: &mut Reply<'_>,
    list: &List,
    first: &mut usize,
    count: &mut usize,
    budget: usize,
) -> bool {
    if *count == 0 {
        return false;
    }
    let end = reply.written().saturating_add(budget);
    let last = *first + *count;
    list.walk(*first, End::Front, |index, item| {
        reply.item(item);
        *first = index + 1;
        if *first < last && reply.written() < end {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    *count = last - *first;
    *count > 0
}

/// The options of LPOS.
struct Search {
    /// The rank of the first match to return, counted from the back if `end` is the back.
    rank: u64,
    end: End,
    /// Number of matches to return, 0 for all; `None`: one, and not in an array.
    count: Option<usize>,
    /// Maximum number of elements to compare.
    len_max: usize,
}

impl Search {
    fn read(args: &mut Args<'_>) -> Result<Search> {
        let mut search = Search { rank: 1, end: End::Front, count: None, len_max: usize::MAX };
        while args.remaining() >= 2 {
            if args.take("RANK") {
                let rank = args.integer()?;
                if rank == 0 {
                    return Err(CommandError::text(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the \
                         second ... or use negative to start from the end of the list",
                    ));
                }
                // Its absolute value, the rank from the back, cannot be represented.
                if rank == i64::MIN {
                    return Err(CommandError::text(format!(
                        "ERR value is out of range, value must between {} and {}",
                        -i64::MAX,
                        i64::MAX
                    )));
                }
                search.end = if rank < 0 { End::Back } else { End::Front };
                search.rank = rank.unsigned_abs();
            } else if args.take("COUNT") {
                search.count = Some(natural(args, "ERR COUNT can't be negative")?);
            } else if args.take("MAXLEN") {
                let len = natural(args, "ERR MAXLEN can't be negative")?;
                search.len_max = if len == 0 { usize::MAX } else { len };
            } else {
                return Err(CommandError::Syntax);
            }
        }
        args.end()?;
        Ok(search)
    }

    /// Replies with the matches in a list. If this requires comparing more than `most` elements,
    /// returns `None` and writes nothing.
    fn reply_within(
        &self,
        reply: &mut Reply<'_>,
        list: Option<&List>,
        text: &[u8],
        most: usize,
    ) -> Option<Outcome> {
        let mark = reply.buffer().mark();
        let (found, is_over) = list.map_or((0, true), |list| self.run(reply, list, text, most));
        if !is_over {
            reply.buffer().truncate(mark);
            return None;
        }
        Some(match self.count {
            Some(_) => reply.before(mark, |reply| _ = reply.array(found)),
            None if found == 0 => reply.null(),
            None => Outcome::Replied,
        })
    }

    /// Writes the indexes of the matches among `most` elements. Returns their number, and whether
    /// these are all matches.
    fn run(&self, reply: &mut Reply<'_>, list: &List, text: &[u8], most: usize) -> (usize, bool) {
        let wanted = match self.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => count,
        };
        let all = self.steps(list);
        let most = most.min(all);
        let first = if self.end == End::Front { 0 } else { list.len() - 1 };
        let (mut passed, mut matches, mut found) = (0, 0, 0);
        list.walk(first, self.end, |index, item| {
            if item.is(text) {
                matches += 1;
                if matches >= self.rank {
                    reply.count(index);
                    found += 1;
                }
            }
            passed += 1;
            if found < wanted && passed < most {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        (found, found == wanted || passed == all)
    }

    /// Maximum number of elements that the search compares.
    fn steps(&self, list: &List) -> usize {
        list.len().min(self.len_max)
    }
}

/// Takes a number that is not negative. For anything else, returns the error `otherwise`.
fn natural(args: &mut Args<'_>, otherwise: &'static str) -> Result<usize> {
    let number = args.integer().ok().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| CommandError::text(otherwise))
}

fn lpos(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (key, text) = (args.key()?, args.bytes()?);
    let search = Search::read(args)?;
    let list = ctx.keys.open::<List>(&key)?;
    let steps = list.map_or(0, |list| search.steps(list));
    // Even in a long list, the first elements are searched immediately, because they are often
    // enough.
    let at_once = if ctx.is_long(steps) { LONG_STEPS_MIN } else { usize::MAX };
    if let Some(outcome) = search.reply_within(&mut ctx.reply, list, text, at_once) {
        return Ok(outcome);
    }
    let (view, text) = (list.cloned(), text.to_vec());
    Ok(ctx.reply_elsewhere(args, move |_, reply| {
        let outcome = search.reply_within(reply, view.as_ref(), &text, usize::MAX);
        Ok(outcome.expect("a list has no more elements than that"))
    }))
}

const LLEN: Command = Command {
    spec: Spec {
        name: "llen",
        group: Group::List,
        summary: "Returns the length of a list.",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::empty())],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: llen,
    subcommands: &[],
};

const LINDEX: Command = Command {
    spec: Spec {
        name: "lindex",
        group: Group::List,
        summary: "Returns an element by its index.",
        complexity: "O(N) in the elements of a small list; O(log N) in the nodes of a large one.",
        arity: 3,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key"), Arg::integer("index")],
        ..Spec::EMPTY
    },
    run: lindex,
    subcommands: &[],
};

const LRANGE: Command = Command {
    spec: Spec {
        name: "lrange",
        group: Group::List,
        summary: "Returns the elements between two indexes.",
        complexity: "O(S+N) in the nodes before the start and in the elements returned.",
        arity: 4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key"), Arg::integer("start"), Arg::integer("stop")],
        ..Spec::EMPTY
    },
    run: lrange,
    subcommands: &[],
};

const LPOS: Command = Command {
    spec: Spec {
        name: "lpos",
        group: Group::List,
        summary: "Returns the indexes of elements that equal a value.",
        since: "6.0.6",
        complexity: "O(N) in the number of examined elements.",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::string("element"),
            Arg::integer("rank").after("RANK").optional(),
            Arg::integer("num-matches").after("COUNT").optional(),
            Arg::integer("len").after("MAXLEN").optional(),
        ],
        ..Spec::EMPTY
    },
    run: lpos,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[LLEN, LINDEX, LRANGE, LPOS];
