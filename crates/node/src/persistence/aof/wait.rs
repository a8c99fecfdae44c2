//! Holds output back until the changes that it shows are in the file, on the disk, or acknowledged by replicas.

use super::state::Level;
use crate::core::Core;
use crate::core::session::Session;
use crate::replication::acks::Durability;
use brisk_engine::keyspace::Ticket;

/// Reports whether output of a session that shows the dataset up to `shown` must wait.
#[inline]
pub fn must_wait(core: &Core, session: &Session, shown: Ticket) -> bool {
    let aof = &core.shared.persistence.aof;
    // Output that is already held is sent first, even if the file has been switched off.
    !session.output.held_replies().is_empty()
        || (aof.is_on() && shown > aof.reached(level(core, session)))
        || (session.replication.durability().replicas().is_some()
            && lacks_replicas(core, session, shown))
}

#[cold]
fn lacks_replicas(core: &Core, session: &Session, shown: Ticket) -> bool {
    has_ended(core, session) || shown > acknowledged(core, session)
}

/// Reports whether the requested durability can no longer be reached, because the stream is no longer the one that the
/// session's replies show. This means that this server was a replica in the meantime, or had no replica for a long
/// time.
pub fn has_ended(core: &Core, session: &Session) -> bool {
    let ack_epoch = core.shared.replication.replicas.ack_epoch();
    session
        .replication
        .durability()
        .replicas()
        .is_some_and(|requested| requested.ack_epoch != ack_epoch)
}

/// The position up to which as many replicas as the session requires have acknowledged the stream. The largest position
/// if the session does not wait for replicas.
pub fn acknowledged(core: &Core, session: &Session) -> Ticket {
    let replicas = &core.shared.replication.replicas;
    let by = session
        .replication
        .durability()
        .replicas()
        .map(|requested| replicas.acknowledged_by(requested.count));
    by.unwrap_or(Ticket(u64::MAX))
}

/// Sets the durability that applies to the session from now on.
pub fn request_durability(core: &Core, session: &mut Session, wanted: Durability) {
    session.replication.durability_mut().change(wanted, core.shared.persistence.aof.level());
}

/// The level that a change must reach before the session is shown the change.
#[inline]
pub fn level(core: &Core, session: &Session) -> Level {
    session.replication.durability().level(core.shared.persistence.aof.level())
}

/// Holds output back, after [`must_wait`] has returned true.
pub fn keep(core: &Core, session: &mut Session, shown: Ticket, write: impl FnOnce(&mut Vec<u8>)) {
    if session.output.held_replies().is_empty() {
        core.pending.hold(session.token);
    }
    if session.replication.durability().replicas().is_some() {
        core.pending.request_acks();
    }
    session.output.held_replies_mut().push(shown, core.clock.ns(core.clock.ticks()), write);
}

/// The latest position that any client may have been shown. Used for messages, which report a change that was just
/// made.
pub fn shown_to_all(core: &Core) -> Ticket {
    core.shared.keyspace.journal().end()
}
