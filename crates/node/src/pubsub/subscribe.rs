//! Subscribes sessions to channels and patterns, and unsubscribes them.

use crate::core::Core;
use crate::core::session::Session;
use crate::pubsub::{Space, TopicSubscriber};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Subscribes a session. Returns false if it was already subscribed.
pub fn subscribe(core: &mut Core, session: &mut Session, space: Space, name: &[u8]) -> bool {
    let token = session.token;
    if core.topics.listens(token, space, name) {
        return false;
    }
    let name = core.topics.name(space, name);
    let since = core.shared.pubsub.add(space, &name, core.id);
    let member = TopicSubscriber { token, since };
    let is_new = core.topics.add(member, session.push.subscriptions_mut(), space, &name);
    debug_assert!(is_new, "it was not subscribed");
    session.record.note_topic(space, &name);
    note_subscriptions(core, session, space);
    true
}

/// Unsubscribes a session. Returns false if it was not subscribed.
pub fn unsubscribe(core: &mut Core, session: &mut Session, space: Space, name: &[u8]) -> bool {
    let own = session.push.subscriptions_mut();
    let removed = core.topics.remove(session.token, own, space, name);
    let Some((name, at)) = removed else { return false };
    session.record.forget_topic(space, at);
    core.shared.pubsub.remove(space, &name, core.id);
    note_subscriptions(core, session, space);
    true
}

/// Ends the session's last subscription of this kind, and returns its name.
pub fn unsubscribe_one(core: &mut Core, session: &mut Session, space: Space) -> Option<Arc<[u8]>> {
    let own = session.push.subscriptions_mut();
    let (name, at) = core.topics.pop(session.token, own, space)?;
    session.record.forget_topic(space, at);
    core.shared.pubsub.remove(space, &name, core.id);
    note_subscriptions(core, session, space);
    Some(name)
}

/// Ends all subscriptions of a session. O(number of its subscriptions).
pub fn unsubscribe_all(core: &mut Core, session: &mut Session) {
    if session.push.listens() {
        for space in Space::ALL {
            while unsubscribe_one(core, session, space).is_some() {}
        }
    }
}

fn note_subscriptions(core: &Core, session: &mut Session, space: Space) {
    let count = session.push.subscriptions().count(space) as u32;
    session.record.subscriptions[space.index()].store(count, Ordering::Relaxed);
    if let Some(any) = session.push.note_subscriptions() {
        core.shared.clients.set_subscribed(&session.record, any);
    }
}
