//! Sends messages and keyspace events from a worker to all subscribers.

use super::inbox::InboxState;
use super::{PushMessage, Space};
use crate::core::Core;
use brisk_engine::effect::{EventClass, Hooks};
use std::io::Write;

/// Publishes the collected events in order.
#[cold]
pub fn publish_events(core: &mut Core) {
    let mut events = std::mem::take(&mut core.env.aftermath.borrow_mut().events);
    let classes = core.env.settings.events;
    let mut channel = Vec::new();
    for event in events.drain(..) {
        let mut publish = |kind: &str, last: &[u8], payload: &[u8]| {
            channel.clear();
            // Writing to a Vec does not fail.
            let _ = write!(channel, "__{kind}@{}__:", event.db.number());
            channel.extend_from_slice(last);
            publish(core, Space::Channel, &channel, payload);
        };
        if classes.contains(EventClass::KEYSPACE) {
            publish("keyspace", &event.key, event.name.as_bytes());
        }
        if classes.contains(EventClass::KEYEVENT) {
            publish("keyevent", event.name.as_bytes(), &event.key);
        }
    }
    let kept = &mut core.env.aftermath.borrow_mut().events;
    if kept.is_empty() && events.capacity() <= EVENTS_KEPT_MAX {
        *kept = events;
    }
}

/// Sends a message to all subscribers of a channel. Returns the number of subscriptions.
pub fn publish(core: &mut Core, space: Space, channel: &[u8], payload: &[u8]) -> usize {
    let published = core.shared.pubsub.publish(space, channel, payload);
    // This worker takes the messages of its own inbox right after its command.
    for worker in published.woken.into_iter().filter(|worker| *worker != core.id) {
        core.shared.mailboxes.wake(worker);
    }
    if published.filled > 0 {
        core.shared.note_full_inboxes(published.filled, 0);
    }
    published.receivers
}

/// Adds a message with this number of deliveries to a worker's inbox.
pub fn send_push(core: &Core, worker: usize, message: PushMessage, deliveries: usize) {
    let found = core.shared.pubsub.inbox(worker).push(message, deliveries);
    if found != InboxState::Some && worker != core.id {
        core.shared.mailboxes.wake(worker);
    }
    if found == InboxState::TooMuch {
        core.shared.note_full_inboxes(1, 0);
    }
}

/// Reports whether messages wait for this worker, or events and invalidations wait to be sent.
#[inline(always)]
pub fn has_messages(core: &Core) -> bool {
    has_events(core) || core.shared.pubsub.inbox(core.id).is_filled()
}

/// Reports whether events or invalidations wait to be sent.
#[inline]
pub fn has_events(core: &Core) -> bool {
    core.env.hooks.get().intersects(Hooks::NOTIFY | Hooks::INVALIDATE) && {
        let aftermath = core.env.aftermath.borrow();
        !aftermath.events.is_empty() || !aftermath.invalidations.is_empty()
    }
}

/// A buffer that has room for more events than this is freed.
const EVENTS_KEPT_MAX: usize = 1024;
