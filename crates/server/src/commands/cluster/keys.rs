//! CLUSTER KEYSLOT, COUNTKEYSINSLOT, GETKEYSINSLOT: the keys of slots on this node.

use super::{BOOTSTRAP, SUBCOMMAND, require_cluster_mode};
use brisk_engine::command::{Arg, Scope, Spec};
use brisk_engine::keyspace::SlotId;
use brisk_engine::{Args, CommandError, DbIndex, Outcome, Result};
use brisk_node::core::call::{Call, Command};

pub(super) const KEYSLOT: Command = Command {
    spec: Spec {
        name: "keyslot",
        summary: "Computes the slot of a key.",
        complexity: "O(N) in the length of the key.",
        arity: 3,
        args: &[Arg::string("key")],
        ..BOOTSTRAP
    },
    run: key_slot,
    subcommands: &[],
};

fn key_slot(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    let slot = call.core.shared.keyspace.hasher().key(args.bytes()?).slot;
    Ok(call.reply.integer(slot.number().into()))
}

pub(super) const COUNTKEYSINSLOT: Command = Command {
    spec: Spec {
        name: "countkeysinslot",
        summary: "Returns the number of keys in a slot.",
        arity: 3,
        args: &[Arg::integer("slot")],
        ..SUBCOMMAND
    },
    run: count_keys,
    subcommands: &[],
};

fn count_keys(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    let slot = SlotId::checked(args.integer()?);
    let slot = slot.ok_or(CommandError::text("ERR Invalid slot"))?;
    let database = call.core.shared.keyspace.database_if_used(DbIndex::FIRST);
    Ok(call.reply.count(database.map_or(0, |database| database.slot(slot).len())))
}

pub(super) const GETKEYSINSLOT: Command = Command {
    spec: Spec {
        name: "getkeysinslot",
        summary: "Returns keys in a slot.",
        complexity: "O(log(N)) in the number of requested keys.",
        arity: 4,
        tips: &["nondeterministic_output"],
        args: &[Arg::integer("slot"), Arg::integer("count")],
        scope: Scope::EachSlot,
        ..SUBCOMMAND
    },
    run: keys_in_slot,
    subcommands: &[],
};

fn keys_in_slot(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    let (slot, count) = (args.integer()?, args.integer()?);
    let slot_and_count = SlotId::checked(slot).zip(usize::try_from(count).ok());
    let invalid = CommandError::text("ERR Invalid slot or number of keys");
    let (slot, count) = slot_and_count.ok_or(invalid)?;
    let keys = call.core.keys_to_walk(DbIndex::FIRST)?.keys_of_slot(DbIndex::FIRST, slot, count);
    call.reply.array(keys.len());
    keys.iter().for_each(|key| {
        call.reply.bulk(key);
    });
    Ok(Outcome::Replied)
}
