//! Messages and keyspace events on their way from a worker to all who listen.

use super::inbox::Found;
use super::{Mail, Space};
use crate::core::Core;
use brisk_engine::effect::{Armed, EventClass};
use std::io::Write;

impl Core {
    /// Publishes the events that have collected, in order.
    #[cold]
    pub fn publish_events(&mut self) {
        let mut events = std::mem::take(&mut self.env.aftermath.borrow_mut().events);
        let classes = self.env.settings.events;
        let mut channel = Vec::new();
        for event in events.drain(..) {
            let mut publish = |kind: &str, last: &[u8], payload: &[u8]| {
                channel.clear();
                // Writing to a Vec does not fail.
                let _ = write!(channel, "__{kind}@{}__:", event.db.0);
                channel.extend_from_slice(last);
                self.publish(Space::Channel, &channel, payload);
            };
            if classes.contains(EventClass::KEYSPACE) {
                publish("keyspace", &event.key, event.name.as_bytes());
            }
            if classes.contains(EventClass::KEYEVENT) {
                publish("keyevent", event.name.as_bytes(), &event.key);
            }
        }
        let kept = &mut self.env.aftermath.borrow_mut().events;
        if kept.is_empty() && events.capacity() <= EVENTS_KEPT_MAX {
            *kept = events;
        }
    }

    /// Sends a message to all who listen to a channel; how many subscriptions that are.
    pub fn publish(&mut self, space: Space, channel: &[u8], payload: &[u8]) -> usize {
        let published = self.shared.pubsub.publish(space, channel, payload);
        // Its own inbox the worker takes right after its command.
        for worker in published.woken.into_iter().filter(|worker| *worker != self.id) {
            self.shared.mailboxes[worker].wake();
        }
        if published.filled > 0 {
            self.shared.note_full_inboxes(published.filled, 0);
        }
        published.receivers
    }

    /// Puts a message that so many sessions of a worker get into its inbox.
    pub fn send_mail(&self, worker: usize, mail: Mail, deliveries: usize) {
        let found = self.shared.pubsub.inbox(worker).push(mail, deliveries);
        if found != Found::Some && worker != self.id {
            self.shared.mailboxes[worker].wake();
        }
        if found == Found::TooMuch {
            self.shared.note_full_inboxes(1, 0);
        }
    }

    /// Whether messages or a part of the stream wait for this worker, or events, invalidations and
    /// effects for being sent.
    #[inline(always)]
    pub fn has_messages(&self) -> bool {
        self.has_news()
            || self.shared.pubsub.inbox(self.id).is_filled()
            || self.shared.replication.feed.is_waiting(self.id)
            || self.has_sealed()
    }

    /// Whether transactions left something for the stream.
    #[inline]
    fn has_sealed(&self) -> bool {
        self.env.armed.get().contains(Armed::PROPAGATE) && !self.env.sealed.borrow().is_empty()
    }

    /// Whether events or invalidations wait for being sent.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.env.armed.get().intersects(Armed::NOTIFY | Armed::TOLD) && {
            let aftermath = self.env.aftermath.borrow();
            !aftermath.events.is_empty() || !aftermath.invalidations.is_empty()
        }
    }
}

/// A buffer for more events is given back.
const EVENTS_KEPT_MAX: usize = 1024;
