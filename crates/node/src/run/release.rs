//! The end of a session, which releases everything that the session has registered elsewhere.

use crate::clients::flag;
use crate::core::Core;
use crate::core::session::Session;
use crate::pubsub::subscribe;
use crate::replication::follow;
use crate::tracking::session;
use crate::transactions::execute;

/// Releases all state of the session that outlives a command: transaction and watches, subscriptions, tracking, and its
/// membership among replicas, monitors and the sessions of its user. The session must not run any command afterwards.
/// This applies to all sessions: those of connections, of the primary and of files. The caller holds no slots.
pub fn release(core: &mut Core, session: &mut Session) {
    execute::end_transaction(core, session);
    subscribe::unsubscribe_all(core, session);
    follow::detach_replica(core, session);
    session.account().leave(&session.record);
    session::end_tracking(core, session);
    if session.record.has(flag::MONITOR) {
        core.shared.conditions.remove_monitor(core.id);
    }
}
