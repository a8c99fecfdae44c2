//! LMOVE, RPOPLPUSH: move an element from one list to another, or from one end to the other.

use super::{ENDS, end, pop_event, push_event};
use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Deprecated, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::Key;
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::list::{End, List};
use brisk_structures::listpack::Item;
use smallvec::SmallVec;

/// An element that is being moved. Short ones need no allocation.
type Element = SmallVec<[u8; 64]>;

/// Moves an element. The event of the push precedes that of the pop, as in Redis, and both count as
/// one change.
pub(super) fn transfer(
    ctx: &mut Ctx<'_, '_>,
    source: &Key<'_>,
    destination: &Key<'_>,
    from: End,
    to: End,
) -> Result<Outcome> {
    let element = if source.bytes == destination.bytes {
        let rotated = ctx.keys.update::<List, _>(source, |list, limits| {
            let element = list.rotate(from, to, limits, text);
            Ok(Edit::with_event(element, 0, push_event(to)))
        })?;
        let Some(element) = rotated.flatten() else { return Ok(ctx.reply.null()) };
        ctx.keys.update::<List, _>(source, |_, _| Ok(Edit::new((), 1, pop_event(from))))?;
        element
    } else {
        let Some(entry) = ctx.keys.inspect(source) else { return Ok(ctx.reply.null()) };
        let list = entry.get::<List>().ok_or(CommandError::WrongType)?;
        let index = if from == End::Front { 0 } else { list.len() - 1 };
        let Some(element) = list.get(index, text) else { return Ok(ctx.reply.null()) };
        ctx.keys.upsert::<List, _>(destination, |list, limits| {
            list.push(to, [&element[..]].into_iter(), limits);
            Ok(Edit::with_event((), 0, push_event(to)))
        })?;
        ctx.keys.update::<List, _>(source, |list, limits| {
            list.pop(from, limits, |_| ());
            Ok(Edit::new((), 1, pop_event(from)))
        })?;
        element
    };
    Ok(ctx.reply.bulk(&element))
}

fn text(item: Item<'_>) -> Element {
    Element::from_slice(item.text(&mut itoa::Buffer::new()))
}

fn lmove(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (source, destination) = (args.key()?, args.key()?);
    let (from, to) = (end(args)?, end(args)?);
    transfer(ctx, &source, &destination, from, to)
}

fn rpoplpush(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (source, destination) = (args.key()?, args.key()?);
    transfer(ctx, &source, &destination, End::Back, End::Front)
}

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE)),
    KeySpec::at(2).read_write(KeyFlags::INSERT),
];

const LMOVE: Command = Command {
    spec: Spec {
        name: "lmove",
        group: Group::List,
        summary: "Moves an element from an end of one list to an end of another.",
        since: "6.2.0",
        arity: 5,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: KEYS,
        args: &[
            Arg::key("source"),
            Arg::key("destination").spec(1),
            Arg::one_of("wherefrom", ENDS),
            Arg::one_of("whereto", ENDS),
        ],
        ..Spec::EMPTY
    },
    run: lmove,
    subcommands: &[],
};

const RPOPLPUSH: Command = Command {
    spec: Spec {
        name: "rpoplpush",
        group: Group::List,
        summary: "Moves the last element of one list to the front of another.",
        since: "1.2.0",
        arity: 3,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: KEYS,
        args: &[Arg::key("source"), Arg::key("destination").spec(1)],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`LMOVE` with the `RIGHT` and `LEFT` arguments",
        }),
        ..Spec::EMPTY
    },
    run: rpoplpush,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[LMOVE, RPOPLPUSH];
