//! Output waits until what it shows is in the file, or on the disk.

use super::state::Level;
use crate::core::Core;
use crate::core::session::Session;
use brisk_engine::keyspace::Ticket;

/// Whether output of a session that shows the dataset up to `shown` may not leave yet.
#[inline]
pub fn must_wait(core: &Core, session: &Session, shown: Ticket) -> bool {
    let aof = &core.shared.aof;
    // What is kept back leaves first, also when the file was switched off meanwhile.
    !session.unlogged.is_empty() || (aof.is_on() && shown > aof.reached(level(core, session)))
}

/// How far a change must have come before the session is shown it.
#[inline]
pub fn level(core: &Core, session: &Session) -> Level {
    session.durability.unwrap_or_else(|| core.shared.aof.level())
}

/// Keeps output back, for which [`must_wait`] said so.
pub fn keep(core: &Core, session: &mut Session, shown: Ticket, write: impl FnOnce(&mut Vec<u8>)) {
    if session.unlogged.is_empty() {
        core.unlogged.borrow_mut().push(session.token);
    }
    session.unlogged.push(shown, core.clock.ns(core.clock.ticks()), write);
}

/// What everybody may have been shown by now: for messages, which tell of a change that was made a
/// moment ago.
pub fn shown_to_all(core: &Core) -> Ticket {
    core.shared.keyspace.journal().end()
}
