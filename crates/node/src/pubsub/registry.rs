//! The number of subscriptions by name and worker, which is all that a publisher needs.
//!
//! **Order.** A message is added to the inboxes while its channel's shard is locked, and a subscription is counted
//! under the same lock. Therefore messages and subscriptions of a channel have a total order, and PUBLISH counts
//! exactly the subscribers that will receive the message, unless they unsubscribe first. Locks are taken in this order:
//! patterns, shard, inbox.

use super::inbox::InboxState;
use super::{Inbox, Publication, PushMessage, Space};
use brisk_engine::glob::{self, Case};
use brisk_structures::poison::EvenPoisoned;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// Number of locks over which channels are spread.
const SHARDS: usize = 64;

/// Subscriptions to one channel or pattern, by worker. Never all zero.
type Counts = Box<[u32]>;
type Names = HashMap<Arc<[u8]>, Counts>;

/// All subscriptions of the server.
#[derive(Debug)]
pub struct SubscriptionRegistry {
    channels: Box<[Mutex<Names>]>,
    shard_channels: Box<[Mutex<Names>]>,
    patterns: RwLock<Names>,
    hasher: RandomState,
    /// Number of different names by [`Space`].
    sizes: [AtomicUsize; 3],
    inboxes: Box<[Inbox]>,
    /// Number of inboxes that exceed a limit. Briefly negative if an inbox is emptied before it was counted.
    full: Mutex<isize>,
}

/// The result of publishing a message.
#[derive(Debug, Default)]
pub struct Published {
    /// The number of subscriptions that receive the message.
    pub receivers: usize,
    /// Workers that must be woken.
    pub woken: SmallVec<[usize; 8]>,
    /// The number of inboxes that exceed a limit because of the message.
    pub filled: usize,
}

impl SubscriptionRegistry {
    /// Creates a registry for `workers` workers.
    pub fn new(workers: usize) -> SubscriptionRegistry {
        let shards = || (0..SHARDS).map(|_| Mutex::default()).collect();
        SubscriptionRegistry {
            channels: shards(),
            shard_channels: shards(),
            patterns: RwLock::default(),
            hasher: RandomState::new(),
            sizes: [const { AtomicUsize::new(0) }; 3],
            inboxes: (0..workers).map(|_| Inbox::default()).collect(),
            full: Mutex::new(0),
        }
    }

    pub fn inbox(&self, worker: usize) -> &Inbox {
        &self.inboxes[worker]
    }

    /// Number of different channels or patterns that have subscribers. O(1).
    pub fn size(&self, space: Space) -> usize {
        self.sizes[space.index()].load(Ordering::SeqCst)
    }

    /// Counts a subscription of a session of `worker`. Returns the number of the first message for this subscription.
    pub fn add(&self, space: Space, name: &Arc<[u8]>, worker: usize) -> u64 {
        self.with_names(space, name, |names| {
            let counts = names.entry(Arc::clone(name)).or_insert_with(|| {
                self.sizes[space.index()].fetch_add(1, Ordering::SeqCst);
                vec![0; self.inboxes.len()].into()
            });
            counts[worker] += 1;
            self.inboxes[worker].next_number()
        })
    }

    /// Removes a subscription from the count.
    pub fn remove(&self, space: Space, name: &Arc<[u8]>, worker: usize) {
        self.with_names(space, name, |names| {
            let Some(counts) = names.get_mut(name) else { return };
            counts[worker] -= 1;
            if counts.iter().all(|count| *count == 0) {
                names.remove(name);
                self.sizes[space.index()].fetch_sub(1, Ordering::SeqCst);
            }
        });
    }

    /// Sends a message to all subscribers of the channel. O(patterns + workers + message length).
    pub fn publish(&self, space: Space, channel: &[u8], payload: &[u8]) -> Published {
        let mut published = Published::default();
        let patterned = space == Space::Channel && self.size(Space::Pattern) > 0;
        if !patterned && self.size(space) == 0 {
            return published;
        }
        let patterns = patterned.then(|| self.patterns.read().even_poisoned());
        let names = self.shard(space, channel);
        let direct = names.get(channel);
        let mut matched = SmallVec::<[Arc<[u8]>; 2]>::new();
        let mut targets: SmallVec<[u32; 16]> = SmallVec::from_elem(0, self.inboxes.len());
        let mut count = |counts: &Counts| {
            for (sum, count) in targets.iter_mut().zip(counts) {
                *sum += count;
            }
        };
        direct.into_iter().for_each(&mut count);
        for (pattern, counts) in patterns.iter().flat_map(|patterns| patterns.iter()) {
            if glob::matches(pattern, channel, Case::Matters) {
                matched.push(Arc::clone(pattern));
                count(counts);
            }
        }
        published.receivers = targets.iter().map(|count| *count as usize).sum();
        if published.receivers > 0 {
            let to_channel = direct.is_some();
            let message = Publication::new(space, channel, payload, to_channel, matched);
            self.send(Arc::new(message), &targets, &mut published);
        }
        published
    }

    fn send(&self, message: Arc<Publication>, targets: &[u32], published: &mut Published) {
        for (worker, count) in targets.iter().enumerate() {
            if *count == 0 {
                continue;
            }
            let push = PushMessage::Published(Arc::clone(&message));
            match self.inboxes[worker].push(push, *count as usize) {
                InboxState::Nothing => published.woken.push(worker),
                InboxState::Some => {}
                InboxState::TooMuch => {
                    published.woken.push(worker);
                    published.filled += 1;
                }
            }
        }
    }

    /// Counts full inboxes. Calls `change` when the first inbox becomes full and when no inbox is full any more.
    pub fn note_full(&self, filled: usize, emptied: usize, change: impl FnOnce(bool)) {
        let mut full = self.full.lock().even_poisoned();
        let before = *full > 0;
        *full += filled as isize - emptied as isize;
        let now = *full > 0;
        if before != now {
            change(now);
        }
    }

    /// The names that have subscribers and match `pattern`, in no particular order. O(names).
    pub fn names(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let fits = |name: &&Arc<[u8]>| {
            pattern.is_none_or(|pattern| glob::matches(pattern, name, Case::Matters))
        };
        let mut all = Vec::new();
        for shard in self.shards(space) {
            all.extend(lock(shard).keys().filter(fits).cloned());
        }
        all
    }

    /// Number of subscriptions to a channel. O(workers).
    pub fn subscribers(&self, space: Space, channel: &[u8]) -> usize {
        let names = self.shard(space, channel);
        names.get(channel).map_or(0, |counts| counts.iter().map(|count| *count as usize).sum())
    }

    fn shards(&self, space: Space) -> &[Mutex<Names>] {
        debug_assert!(space != Space::Pattern, "patterns have no shards");
        if space == Space::ShardChannel { &self.shard_channels } else { &self.channels }
    }

    fn shard(&self, space: Space, channel: &[u8]) -> MutexGuard<'_, Names> {
        let at = self.hasher.hash_one(channel) as usize % SHARDS;
        lock(&self.shards(space)[at])
    }

    fn with_names<R>(&self, space: Space, name: &[u8], act: impl FnOnce(&mut Names) -> R) -> R {
        if space == Space::Pattern {
            act(&mut self.patterns.write().even_poisoned())
        } else {
            act(&mut self.shard(space, name))
        }
    }
}

fn lock(names: &Mutex<Names>) -> MutexGuard<'_, Names> {
    names.lock().even_poisoned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Arc<[u8]> {
        text.as_bytes().into()
    }

    #[test]
    fn a_message_goes_once_to_each_worker_with_subscribers() {
        let registry = SubscriptionRegistry::new(3);
        registry.add(Space::Channel, &name("news"), 0);
        registry.add(Space::Channel, &name("news"), 0);
        registry.add(Space::Pattern, &name("n*"), 0);
        registry.add(Space::Pattern, &name("?ews"), 2);
        registry.add(Space::Pattern, &name("x*"), 1);
        let published = registry.publish(Space::Channel, b"news", b"hello");
        assert_eq!(published.receivers, 4);
        assert_eq!(published.woken.as_slice(), [0, 2]);
        assert_eq!(registry.inbox(0).next_number(), 1);
        assert_eq!(registry.inbox(1).next_number(), 0);
        assert_eq!(registry.publish(Space::ShardChannel, b"news", b"").receivers, 0);
    }

    #[test]
    fn names_without_subscribers_are_removed() {
        let registry = SubscriptionRegistry::new(2);
        for space in Space::ALL {
            registry.add(space, &name("a"), 0);
            registry.add(space, &name("a"), 1);
            assert_eq!(registry.size(space), 1);
            registry.remove(space, &name("a"), 0);
            assert_eq!(registry.size(space), 1);
            registry.remove(space, &name("a"), 1);
            assert_eq!(registry.size(space), 0);
        }
        assert!(registry.names(Space::Channel, None).is_empty());
    }

    #[test]
    fn a_subscription_knows_the_number_of_its_first_message() {
        let registry = SubscriptionRegistry::new(1);
        assert_eq!(registry.add(Space::Channel, &name("a"), 0), 0);
        registry.publish(Space::Channel, b"a", b"before");
        assert_eq!(registry.add(Space::Channel, &name("a"), 0), 1);
        assert_eq!(registry.add(Space::Pattern, &name("*"), 0), 1);
    }
}
