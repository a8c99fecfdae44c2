//! The end of a session: what it has registered with others is given back.

use crate::clients::flag;
use crate::core::Core;
use crate::core::session::Session;
use crate::pubsub::subscribe;
use crate::replication::follow;
use crate::tracking::session;
use crate::transactions::execute;

/// Ends everything that outlives a command of the session: its transaction and watches, subscriptions,
/// tracking, its place among replicas and monitors, and among those that act as its user. Nothing else may
/// run for it after that. Connections and sessions without one end by this. The caller holds no slots.
pub fn release(core: &mut Core, session: &mut Session) {
    execute::end_transaction(core, session);
    subscribe::unsubscribe_all(core, session);
    follow::detach_replica(core, session);
    session.account.leave(&session.record);
    session::end_tracking(core, session);
    if session.record.has(flag::MONITOR) {
        core.shared.remove_monitor(core.id);
    }
}
