//! Begins and ends tracking for sessions. Sets the session for which commands run, and whether the engine remembers the
//! keys that they read.

use super::state::Tracker;
use crate::core::Core;
use crate::core::session::Session;
use brisk_engine::effect::Hooks;
use brisk_engine::keyspace::TrackingClient;

/// Begins tracking or changes its mode. `prefixes` are added to the existing prefixes.
pub fn begin_tracking<'p>(
    core: &mut Core,
    session: &mut Session,
    tracker: Tracker,
    prefixes: impl Iterator<Item = &'p [u8]>,
) {
    let id = session.id();
    if !session.push.is_tracking() {
        core.tracking.add(id, session.token);
        core.shared.keyspace.begin_tracking(id);
    }
    let (mode, noloop, redirect) = (tracker.mode(), tracker.noloop(), tracker.redirect());
    let own = session.push.begin_tracking(tracker);
    own.change(mode, noloop, redirect);
    for prefix in prefixes {
        if own.add_prefix(prefix) {
            core.tracking.add_prefix(prefix, session.token);
            let tracking = core.shared.keyspace.tracking();
            core.shared.tracking.add(prefix, core.id, |any| tracking.set_broadcasts(any));
        }
    }
    session.publish_tracking();
    remember_for(core, session);
}

/// Ends tracking. O(prefixes of the session). Entries for the session in the table of keys are removed when they are
/// next found.
pub fn end_tracking(core: &mut Core, session: &mut Session) {
    let Some(tracker) = session.push.end_tracking() else { return };
    core.tracking.remove(session.id());
    for prefix in tracker.prefixes() {
        core.tracking.remove_prefix(prefix, session.token);
        let tracking = core.shared.keyspace.tracking();
        core.shared.tracking.remove(prefix, core.id, |any| tracking.set_broadcasts(any));
    }
    core.shared.keyspace.tracking().leave(session.id());
    session.publish_tracking();
    remember_for(core, session);
}

/// Notes that commands run for this session from now on.
#[inline]
pub fn act_for(core: &Core, session: &Session) {
    core.env.touch.set(session.touches_keys());
    core.env.client.set(session.id());
    if session.push.is_tracking() {
        remember_for(core, session);
    }
}

/// Resumes commands of a session. `remembers` is the earlier result of [`remembers`].
pub fn act_again_for(core: &Core, session: &Session, remembers: bool) {
    act_for(core, session);
    core.env.reader.set(Some(TrackingClient::new(core.id, session.id())));
    core.env.set_hooks(Hooks::REMEMBER, remembers);
}

/// Reports whether the keys that the current session's commands read are remembered.
pub fn remembers(core: &Core) -> bool {
    core.env.hooks.get().contains(Hooks::REMEMBER)
}

/// Notes that commands run for no session from now on.
#[inline]
pub fn clear_acting_session(core: &Core) {
    core.env.client.set(0);
    core.env.set_hooks(Hooks::REMEMBER, false);
}

/// Sets whether the keys that the session's next command reads are remembered.
pub fn remember_for(core: &Core, session: &Session) {
    let remembers = session.push.tracker().is_some_and(|tracker| tracker.remembers());
    core.env.reader.set(Some(TrackingClient::new(core.id, session.id())));
    core.env.set_hooks(Hooks::REMEMBER, remembers);
}
