//! Output waits until what it shows is in the file, on the disk, or acknowledged by replicas.

use super::state::Level;
use crate::core::Core;
use crate::core::session::Session;
use crate::replication::acks::Durability;
use brisk_engine::keyspace::Ticket;

/// Whether output of a session that shows the dataset up to `shown` may not leave yet.
#[inline]
pub fn must_wait(core: &Core, session: &Session, shown: Ticket) -> bool {
    let aof = &core.shared.aof;
    // What is kept back leaves first, also when the file was switched off meanwhile.
    !session.unlogged.is_empty()
        || (aof.is_on() && shown > aof.reached(level(core, session)))
        || (session.asked.replicas().is_some() && lacks_replicas(core, session, shown))
}

#[cold]
fn lacks_replicas(core: &Core, session: &Session, shown: Ticket) -> bool {
    has_ended(core, session) || shown > acknowledged(core, session)
}

/// Whether what a session asked for cannot come any more: the stream is not the one that its replies
/// show, since this server was a replica meanwhile, or had none for long.
pub fn has_ended(core: &Core, session: &Session) -> bool {
    let ack_epoch = core.shared.replication.replicas.ack_epoch();
    session.asked.replicas().is_some_and(|asked| asked.ack_epoch != ack_epoch)
}

/// Up to where as many replicas as the session asked for have acknowledged the stream; everything if it
/// asked for none.
pub fn acknowledged(core: &Core, session: &Session) -> Ticket {
    let replicas = &core.shared.replication.replicas;
    let by = session.asked.replicas().map(|asked| replicas.acknowledged_by(asked.count));
    by.unwrap_or(Ticket(u64::MAX))
}

/// The session asks for something else from now on.
pub fn ask(core: &Core, session: &mut Session, wanted: Durability) {
    session.asked.change(wanted, core.shared.aof.level());
}

/// How far a change must have come before the session is shown it.
#[inline]
pub fn level(core: &Core, session: &Session) -> Level {
    session.asked.level(core.shared.aof.level())
}

/// Keeps output back, for which [`must_wait`] said so.
pub fn keep(core: &Core, session: &mut Session, shown: Ticket, write: impl FnOnce(&mut Vec<u8>)) {
    if session.unlogged.is_empty() {
        core.unlogged.borrow_mut().push(session.token);
    }
    if session.asked.replicas().is_some() {
        core.requests_acks.set(true);
    }
    session.unlogged.push(shown, core.clock.ns(core.clock.ticks()), write);
}

/// What everybody may have been shown by now: for messages, which tell of a change that was made a
/// moment ago.
pub fn shown_to_all(core: &Core) -> Ticket {
    core.shared.keyspace.journal().end()
}
