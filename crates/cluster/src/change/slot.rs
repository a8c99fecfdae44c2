//! Owners of slots: ADDSLOTS, DELSLOTS, FLUSHSLOTS.

use super::{ChangeError, Edit, admit, begin, finish, shard_mut};
use crate::document::{Registration, Topology};
use crate::id::{ChangeId, NodeId, ShardId};
use crate::slots::{SlotId, SlotRange, SlotRanges};
use brisk_resp::slot::SLOTS;

/// Parses the slot numbers that are the arguments of ADDSLOTS and DELSLOTS. O(arguments).
pub fn parse_slots(args: &[&[u8]]) -> Result<Vec<SlotRange>, ChangeError> {
    let range = |arg: &&[u8]| parse_slot(arg).map(|slot| (slot, slot));
    args.iter().map(|arg| range(arg).and_then(checked_range)).collect()
}

/// Reads the arguments of ADDSLOTSRANGE and DELSLOTSRANGE: pairs of a first and a last slot. O(arguments).
///
/// # Errors
/// An argument without a partner is an invalid slot; the caller has checked the arity.
pub fn parse_slot_ranges(args: &[&[u8]]) -> Result<Vec<SlotRange>, ChangeError> {
    args.chunks(2)
        .map(|pair| match pair {
            [first, last] => checked_range((parse_slot(first)?, parse_slot(last)?)),
            _ => Err(ChangeError::InvalidSlot),
        })
        .collect()
}

fn checked_range((first, last): (SlotId, SlotId)) -> Result<SlotRange, ChangeError> {
    let (low, high) = (first.number(), last.number());
    SlotRange::new(first, last).ok_or(ChangeError::ReversedRange { first: low, last: high })
}

/// Accepts only digits, like the integers that Redis accepts.
fn parse_slot(arg: &[u8]) -> Result<SlotId, ChangeError> {
    let text = std::str::from_utf8(arg).map_err(|_| ChangeError::InvalidSlot)?;
    let is_canonical = text == "0" || !text.starts_with(['0', '+']);
    let number = text.parse::<u16>().ok().filter(|_| is_canonical);
    number.and_then(SlotId::checked).ok_or(ChangeError::InvalidSlot)
}

/// ADDSLOTS and ADDSLOTSRANGE on the node `own`, which becomes a member if it is not one yet. O(slots + ranges).
pub fn add_slots(
    topology: &Topology,
    change: ChangeId,
    own: &Registration,
    slots: &[SlotRange],
) -> Edit {
    let added = collect(slots, |slot| match owner(topology, slot) {
        Some(_) => Err(ChangeError::BusySlot(slot.number())),
        None => Ok(()),
    })?;
    let mut next = begin(topology, change);
    admit(&mut next, own);
    let shard = own_shard(&next, own.id)?;
    let shard = shard_mut(&mut next, shard)?;
    shard.slots = shard.slots.union(&added);
    finish(next)
}

/// DELSLOTS and DELSLOTSRANGE on the node `own`. `holds_keys` is the node's own dataset. O(slots + ranges).
///
/// # Errors
/// Redis also removes slots that hold keys or belong to another node, but only from the node's own view. The document
/// is shared by all nodes, so both are errors.
pub fn delete_slots(
    topology: &Topology,
    change: ChangeId,
    own: NodeId,
    slots: &[SlotRange],
    holds_keys: impl Fn(SlotId) -> bool,
) -> Edit {
    let deleted = collect(slots, |slot| match owner(topology, slot) {
        None => Err(ChangeError::UnassignedSlot(slot.number())),
        Some(owner) if owner != own => Err(ChangeError::ForeignSlot { slot: slot.number(), owner }),
        Some(_) if holds_keys(slot) => Err(ChangeError::SlotHoldsKeys(slot.number())),
        Some(_) => Ok(()),
    })?;
    let mut next = begin(topology, change);
    let shard = own_shard(&next, own)?;
    let shard = shard_mut(&mut next, shard)?;
    shard.slots = shard.slots.without(&deleted);
    finish(next)
}

/// FLUSHSLOTS on the node `own`: its shard gives up all slots. O(document).
pub fn flush_slots(topology: &Topology, change: ChangeId, own: NodeId, has_keys: bool) -> Edit {
    if has_keys {
        return Err(ChangeError::FlushWithKeys);
    }
    let shard = topology.shards.iter().find(|shard| shard.primary == own);
    let Some(shard) = shard.filter(|shard| !shard.slots.is_empty()) else { return Ok(None) };
    let mut next = begin(topology, change);
    shard_mut(&mut next, shard.id)?.slots = SlotRanges::default();
    finish(next)
}

/// The slots of the ranges, each checked in the order of the arguments, as Redis does.
fn collect(
    ranges: &[SlotRange],
    check: impl Fn(SlotId) -> Result<(), ChangeError>,
) -> Result<SlotRanges, ChangeError> {
    let mut seen = vec![false; SLOTS.into()];
    for slot in ranges.iter().flat_map(|range| range.iter()) {
        check(slot)?;
        if std::mem::replace(&mut seen[slot.index()], true) {
            return Err(ChangeError::RepeatedSlot(slot.number()));
        }
    }
    Ok(SlotRanges::merged(ranges.to_vec()))
}

fn owner(topology: &Topology, slot: SlotId) -> Option<NodeId> {
    let shard = topology.shards.iter().find(|shard| shard.slots.contains(slot));
    shard.map(|shard| shard.primary)
}

/// The shard of which the node is the primary.
fn own_shard(topology: &Topology, own: NodeId) -> Result<ShardId, ChangeError> {
    let shard = topology.shards.iter().find(|shard| shard.primary == own);
    shard.map(|shard| shard.id).ok_or(ChangeError::SlotsOfReplica)
}
