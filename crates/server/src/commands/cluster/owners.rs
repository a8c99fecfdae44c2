//! CLUSTER ADDSLOTS, ADDSLOTSRANGE, DELSLOTS, DELSLOTSRANGE, FLUSHSLOTS: the slots of this node.

use super::change::commit;
use super::{CHANGES, require_cluster_mode};
use brisk_cluster::change::{
    ChangeError, add_slots, delete_slots, flush_slots, parse_slot_ranges, parse_slots,
};
use brisk_cluster::slots::SlotRange;
use brisk_engine::command::{Arg, Spec};
use brisk_engine::{Args, CommandError, DbIndex, Outcome, Result};
use brisk_node::core::call::{Call, Command};

/// The fields shared by the rows of subcommands that have slots as arguments.
const CHANGES_SLOTS: Spec = Spec {
    complexity: "O(N) in the number of slots.",
    arity: -3,
    args: &[Arg::integer("slot").multiple()],
    ..CHANGES
};

/// The fields shared by the rows of subcommands that have slot ranges as arguments.
const CHANGES_RANGES: Spec = Spec {
    since: "7.0.0",
    complexity: "O(N) in the number of slots in the ranges.",
    arity: -4,
    args: &[Arg::block(
        "start-slot_end-slot",
        &[Arg::integer("start-slot"), Arg::integer("end-slot")],
    )
    .multiple()],
    ..CHANGES
};

pub(super) const ADDSLOTS: Command = Command {
    spec: Spec { name: "addslots", summary: "Assigns slots to this node.", ..CHANGES_SLOTS },
    run: |call, args| add(call, args, single_slots),
    subcommands: &[],
};

pub(super) const ADDSLOTSRANGE: Command = Command {
    spec: Spec {
        name: "addslotsrange",
        summary: "Assigns ranges of slots to this node.",
        ..CHANGES_RANGES
    },
    run: |call, args| add(call, args, ranges_of_slots),
    subcommands: &[],
};

pub(super) const DELSLOTS: Command = Command {
    spec: Spec { name: "delslots", summary: "Unassigns slots from this node.", ..CHANGES_SLOTS },
    run: |call, args| delete(call, args, single_slots),
    subcommands: &[],
};

pub(super) const DELSLOTSRANGE: Command = Command {
    spec: Spec {
        name: "delslotsrange",
        summary: "Unassigns ranges of slots from this node.",
        ..CHANGES_RANGES
    },
    run: |call, args| delete(call, args, ranges_of_slots),
    subcommands: &[],
};

/// A function that parses the slots in the arguments of a command.
type SlotParser = fn(&Call<'_>, &Args<'_>) -> Result<Vec<SlotRange>>;

fn single_slots(_: &Call<'_>, args: &Args<'_>) -> Result<Vec<SlotRange>> {
    let words: Vec<&[u8]> = args.rest().collect();
    parse_slots(&words).map_err(|error| refusal(&error))
}

fn ranges_of_slots(call: &Call<'_>, args: &Args<'_>) -> Result<Vec<SlotRange>> {
    if args.remaining() % 2 == 1 {
        return Err(call.wrong_arity());
    }
    let words: Vec<&[u8]> = args.rest().collect();
    parse_slot_ranges(&words).map_err(|error| refusal(&error))
}

fn refusal(error: &ChangeError) -> CommandError {
    CommandError::text(error.to_string())
}

fn add(call: &mut Call<'_>, args: &Args<'_>, parse: SlotParser) -> Result<Outcome> {
    require_cluster_mode(call)?;
    let slots = parse(call, args)?;
    commit(call, args, move |basis| add_slots(basis.topology, basis.change, basis.own, &slots))
}

/// Removes slots from this node. Fails if a slot contains keys. A write that is executed between the check and the
/// commit leaves its keys in a slot without an owner, where commands cannot reach them. ADDSLOTS makes them visible
/// again.
fn delete(call: &mut Call<'_>, args: &Args<'_>, parse: SlotParser) -> Result<Outcome> {
    require_cluster_mode(call)?;
    let slots = parse(call, args)?;
    let shared = call.core.shared;
    commit(call, args, move |basis| {
        let database = shared.keyspace.database_if_used(DbIndex::FIRST);
        delete_slots(basis.topology, basis.change, basis.own.id, &slots, |slot| {
            database.is_some_and(|database| !database.slot(slot).is_empty())
        })
    })
}

pub(super) const FLUSHSLOTS: Command = Command {
    spec: Spec { name: "flushslots", summary: "Unassigns all slots from this node.", ..CHANGES },
    run: flush,
    subcommands: &[],
};

fn flush(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    let shared = call.core.shared;
    commit(call, args, move |basis| {
        let has_keys = shared.keyspace.has_keys();
        flush_slots(basis.topology, basis.change, basis.own.id, has_keys)
    })
}
