//! Messages that a session gets without a request: its subscriptions, and invalidations of client-side caching.

use super::Session;
use crate::clients::flag;
use crate::pubsub::{Space, Subscriptions};
use crate::tracking::{Tracker, TrackingMode};
use brisk_resp::Protocol;
use std::sync::atomic::Ordering;

/// The subscriptions and the tracking of a session.
#[derive(Default)]
pub struct PushState {
    subscriptions: Subscriptions,
    /// True if the session has a subscription.
    listens: bool,
    /// True if the session subscribes or tracks, so that other sessions may send it a message at any time.
    gets_messages: bool,
    /// True if invalidations were dropped. After the client has read its output, it is sent a single invalidation of
    /// all keys.
    lacks_invalidations: bool,
    /// How the session tracks keys; `None` if it does not.
    tracker: Option<Box<Tracker>>,
}

impl PushState {
    /// Reports whether the session has a subscription.
    #[inline]
    pub fn listens(&self) -> bool {
        self.listens
    }

    /// Reports whether the session subscribes or tracks, so that other sessions may send it a message at any time.
    #[inline]
    pub fn gets_messages(&self) -> bool {
        self.gets_messages
    }

    pub fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Mutable access to the subscriptions. [`PushState::note_subscriptions`] must be called after a change.
    pub(crate) fn subscriptions_mut(&mut self) -> &mut Subscriptions {
        &mut self.subscriptions
    }

    /// Called after the subscriptions have changed. If the session got its first subscription or lost its last, returns
    /// whether it has any.
    pub(crate) fn note_subscriptions(&mut self) -> Option<bool> {
        let any = !self.subscriptions.is_empty();
        if self.listens == any {
            return None;
        }
        self.listens = any;
        self.update_gets_messages();
        Some(any)
    }

    /// Reports whether the session tracks keys.
    #[inline]
    pub fn is_tracking(&self) -> bool {
        self.tracker.is_some()
    }

    /// How the session tracks keys; `None` if it does not.
    #[inline]
    pub fn tracker(&self) -> Option<&Tracker> {
        self.tracker.as_deref()
    }

    #[inline]
    pub fn tracker_mut(&mut self) -> Option<&mut Tracker> {
        self.tracker.as_deref_mut()
    }

    /// Begins tracking with `tracker`, unless the session already tracks. Returns the tracker in force.
    pub(crate) fn begin_tracking(&mut self, tracker: Tracker) -> &mut Tracker {
        self.gets_messages = true;
        self.tracker.get_or_insert_with(|| Box::new(tracker))
    }

    /// Ends tracking.
    pub(crate) fn end_tracking(&mut self) -> Option<Box<Tracker>> {
        let tracker = self.tracker.take();
        self.update_gets_messages();
        tracker
    }

    fn update_gets_messages(&mut self) {
        self.gets_messages = self.listens || self.tracker.is_some();
    }

    /// Reports whether invalidations were dropped.
    pub fn lacks_invalidations(&self) -> bool {
        self.lacks_invalidations
    }

    /// Notes that invalidations are dropped until the client has read its output.
    pub fn drop_invalidations(&mut self) {
        self.lacks_invalidations = true;
    }

    /// Notes that the client is sent an invalidation of all keys.
    pub fn make_up_invalidations(&mut self) {
        self.lacks_invalidations = false;
    }

    /// Bytes of memory, as an estimate. O(1).
    pub(super) fn memory(&self) -> usize {
        /// An entry in the list of a topic, an entry in the list of the session, and an edge.
        const SUBSCRIPTION_BYTES: usize = 64;
        /// The prefix and its share of a tree node, in the session and in the table of its worker.
        const PREFIX_BYTES: usize = 96;
        let subscriptions =
            Space::ALL.map(|space| self.subscriptions.count(space)).iter().sum::<usize>();
        let prefixes = self.tracker.as_ref().map_or(0, |tracker| tracker.prefixes().len());
        subscriptions * SUBSCRIPTION_BYTES + prefixes * PREFIX_BYTES
    }
}

impl Session {
    /// Reports whether the client gets output that it did not request.
    pub fn is_pushed_to(&self) -> bool {
        self.push.gets_messages || self.record.has(flag::MONITOR)
    }

    /// Reports whether the session may only receive messages, because it has subscriptions and RESP2 cannot distinguish
    /// messages from replies.
    #[inline]
    pub fn only_listens(&self) -> bool {
        self.push.listens && self.protocol() == Protocol::Resp2
    }

    /// Publishes the data that CLIENT LIST shows about tracking.
    pub fn publish_tracking(&self) {
        let tracker = self.push.tracker();
        self.record.set(flag::TRACKING, tracker.is_some());
        self.record.set(flag::TRACKING_BROKEN, tracker.is_some_and(|t| t.is_broken()));
        let broadcast = tracker.is_some_and(|t| t.mode() == TrackingMode::Broadcast);
        self.record.set(flag::TRACKING_BROADCAST, broadcast);
        let redirect = tracker.map_or(-1, |t| t.redirect() as i64);
        self.record.redirect.store(redirect, Ordering::Relaxed);
    }
}
