//! Migrations of slots, as records of the document. The record decides which shard owns the slots; the data moves
//! before the migration is committed.

use super::{ChangeError, Edit, begin, finish};
use crate::document::{Migration, MigrationState, Shard, Topology};
use crate::id::{ChangeId, MigrationId, NodeId};
use crate::slots::SlotRanges;
use serde_json::Map;

/// Begins the migration of slots from the shard of the primary `own` to that of the primary `target`.
/// O(document + slots).
///
/// # Errors
/// As for SETSLOT MIGRATING in Redis.
pub fn begin_migration(
    topology: &Topology,
    change: ChangeId,
    id: MigrationId,
    slots: &SlotRanges,
    own: NodeId,
    target: &str,
) -> Edit {
    let src = topology.shard_of(own).filter(|shard| shard.primary == own);
    let src = src.ok_or(ChangeError::SetslotAtReplica)?;
    if let Some(slot) = slots.iter().find(|slot| !src.slots.contains(*slot)) {
        return Err(ChangeError::NotOwnSlot(slot.number()));
    }
    let unknown = || ChangeError::UnknownTarget(target.to_owned());
    let node: NodeId = target.parse().map_err(|_| unknown())?;
    let dst = topology.shard_of(node).ok_or_else(unknown)?;
    if dst.primary != node {
        return Err(ChangeError::TargetIsReplica);
    }
    let is_open = |migration: &&Migration| migration.state.is_open();
    for migration in topology.migrations.iter().filter(is_open) {
        if let Some(slot) = migration.slots.first_common(slots) {
            return Err(ChangeError::SlotIsMigrating(slot.number()));
        }
    }
    let mut next = begin(topology, change);
    next.migrations.push(record(id, slots, src, dst));
    finish(next)
}

fn record(id: MigrationId, slots: &SlotRanges, src: &Shard, dst: &Shard) -> Migration {
    Migration {
        id,
        slots: slots.clone(),
        src: src.id,
        dst: dst.id,
        src_term: src.term,
        dst_term: dst.term,
        state: MigrationState::Prepare,
        why: String::new(),
        other: Map::new(),
    }
}

/// Records that the slots' data is being sent. O(document).
pub fn stream_migration(topology: &Topology, change: ChangeId, id: MigrationId) -> Edit {
    set_state(topology, change, id, MigrationState::Streaming, "")
}

/// Commits a migration: the target owns the slots from now on. If one of the shards has a new primary by now, the
/// change that promoted it has already aborted the migration. O(document + slots).
///
/// # Errors
/// The migration has ended.
pub fn commit_migration(topology: &Topology, change: ChangeId, id: MigrationId) -> Edit {
    let migration = open_migration(topology, id)?;
    let mut next = begin(topology, change);
    for shard in &mut next.shards {
        if shard.id == migration.src {
            shard.slots = shard.slots.without(&migration.slots);
        } else if shard.id == migration.dst {
            shard.slots = shard.slots.union(&migration.slots);
        }
    }
    let records = next.migrations.iter_mut().filter(|record| record.id == id);
    records.for_each(|record| record.state = MigrationState::Committed);
    finish(next)
}

/// Aborts a migration that is not committed. O(document).
///
/// # Errors
/// The migration has ended.
pub fn abort_migration(topology: &Topology, change: ChangeId, id: MigrationId, why: &str) -> Edit {
    set_state(topology, change, id, MigrationState::Aborted, why)
}

/// Records that the target has published the slots of a committed migration and the source has dropped them.
/// O(document).
pub fn end_migration(topology: &Topology, change: ChangeId, id: MigrationId) -> Edit {
    let is_ended =
        |record: &Migration| record.id == id && record.state == MigrationState::Committed;
    if !topology.migrations.iter().any(is_ended) {
        return Err(ChangeError::NoMigration(id));
    }
    let mut next = begin(topology, change);
    let records = next.migrations.iter_mut().filter(|record| record.id == id);
    records.for_each(|record| record.state = MigrationState::Done);
    finish(next)
}

fn open_migration(topology: &Topology, id: MigrationId) -> Result<Migration, ChangeError> {
    let found = topology.migrations.iter().find(|record| record.id == id && record.state.is_open());
    found.cloned().ok_or(ChangeError::NoMigration(id))
}

fn set_state(
    topology: &Topology,
    change: ChangeId,
    id: MigrationId,
    state: MigrationState,
    why: &str,
) -> Edit {
    if open_migration(topology, id)?.state == state {
        return Ok(None);
    }
    let mut next = begin(topology, change);
    for record in next.migrations.iter_mut().filter(|record| record.id == id) {
        record.state = state;
        why.clone_into(&mut record.why);
    }
    finish(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Promotion, delete_slots, promote};
    use crate::document::TermCause;
    use crate::document::tests::{node, range, run, shard_id, stamp, three_shards};
    use crate::id::Term;

    const ID: MigrationId = MigrationId::from_bytes([0x33; 20]);

    fn done(edit: Edit) -> Topology {
        edit.unwrap().unwrap()
    }

    fn begun() -> Topology {
        let target = node(2).to_string();
        done(begin_migration(&three_shards(), stamp(2), ID, &range(100, 120), node(1), &target))
    }

    #[test]
    fn a_committed_migration_moves_the_slots_at_once() {
        let streaming = done(stream_migration(&begun(), stamp(3), ID));
        assert_eq!(streaming.shards, three_shards().shards);
        let committed = done(commit_migration(&streaming, stamp(4), ID));
        assert_eq!(committed.shards[0].slots.to_string(), "0-99 121-5460");
        assert_eq!(committed.shards[1].slots.to_string(), "100-120 5461-10922");
        assert_eq!(committed.slots_assigned(), 16_384);
        let late = commit_migration(&committed, stamp(5), ID);
        assert_eq!(late, Err(ChangeError::NoMigration(ID)));
        assert!(abort_migration(&committed, stamp(5), ID, "cancelled").is_err());
        let ended = done(end_migration(&committed, stamp(5), ID));
        assert_eq!(ended.migrations[0].state, MigrationState::Done);
    }

    #[test]
    fn a_new_primary_of_either_side_aborts_the_migration() {
        let promotion = Promotion {
            shard: shard_id(1),
            expected_term: Term(7),
            to: run(4),
            cause: TermCause::Failover,
            why: String::new(),
        };
        let promoted = done(promote(&begun(), stamp(3), &promotion));
        let record = &promoted.migrations[0];
        assert_eq!(record.state, MigrationState::Aborted);
        assert_eq!(record.why, "the source has another primary");
        assert!(commit_migration(&promoted, stamp(4), ID).is_err());
    }

    #[test]
    fn slots_that_leave_the_source_abort_the_migration() {
        let slots = [range(120, 130).ranges()[0]];
        let deleted = done(delete_slots(&begun(), stamp(3), node(1), &slots, |_| false));
        assert_eq!(deleted.migrations[0].why, "the source no longer owns the slots");
    }

    #[test]
    fn impossible_migrations_get_the_texts_of_redis() {
        let begin = |topology: &Topology, first, own, target: &str| {
            let slots = range(first, first);
            begin_migration(topology, stamp(3), ID, &slots, node(own), target).unwrap_err()
        };
        let topology = three_shards();
        let id = |n: u8| node(n).to_string();
        let text = |error: ChangeError| error.to_string();
        assert_eq!(
            text(begin(&topology, 6000, 1, &id(2))),
            "ERR I'm not the owner of hash slot 6000"
        );
        assert_eq!(text(begin(&topology, 1, 1, "abc")), "ERR I don't know about node abc");
        assert_eq!(text(begin(&topology, 1, 1, &id(4))), "ERR Target node is not a master");
        assert_eq!(
            text(begin(&topology, 1, 4, &id(2))),
            "ERR Please use SETSLOT only with masters."
        );
        assert_eq!(text(begin(&begun(), 110, 1, &id(3))), "ERR Slot 110 is being migrated");
    }
}
