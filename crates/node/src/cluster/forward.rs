//! Messages of PUBLISH and SPUBLISH that are to be sent to the other nodes of the cluster.
//!
//! Workers append messages to one bounded queue. The thread of [`peers`](super::peers) distributes them. A message
//! reaches another node at most once. If a queue is full or a connection ends, messages are dropped and counted.
//! Pub/Sub does not guarantee delivery.

use brisk_resp::request;
use brisk_structures::poison::EvenPoisoned as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Maximum number of bytes of messages that wait for one node or wait to be distributed. If a node is slow for so long
/// that more bytes wait, it loses messages.
pub(super) const WAITING_BYTES_MAX: usize = 32 << 20;

/// The nodes that receive a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// All other nodes, for PUBLISH.
    Cluster,
    /// The other nodes of this node's shard, for SPUBLISH.
    Shard,
}

/// A message as the request that other nodes receive.
#[derive(Debug, Clone)]
pub(super) struct Forwarded {
    pub(super) audience: Audience,
    pub(super) request: Arc<[u8]>,
}

/// The messages that wait to be distributed.
#[derive(Debug, Default)]
pub struct ForwardQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    sent: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: Vec<Forwarded>,
    bytes: usize,
}

impl ForwardQueue {
    /// Appends a message, or drops it if too many bytes wait.
    pub fn push(&self, audience: Audience, channel: &[u8], message: &[u8]) {
        let name: &[u8] = match audience {
            Audience::Cluster => b"PUBLISH",
            Audience::Shard => b"SPUBLISH",
        };
        let mut bytes = Vec::new();
        request::encode(&mut bytes, &[name, channel, message]);
        let mut waiting = self.waiting.lock().even_poisoned();
        if waiting.bytes + bytes.len() > WAITING_BYTES_MAX {
            drop(waiting);
            return self.note_dropped(1);
        }
        waiting.bytes += bytes.len();
        waiting.messages.push(Forwarded { audience, request: bytes.into() });
        if waiting.messages.len() == 1 {
            self.changed.notify_one();
        }
    }

    /// Takes all messages. Waits up to `timeout` for the first.
    pub(super) fn take(&self, timeout: Duration) -> Vec<Forwarded> {
        let mut waiting = self.waiting.lock().even_poisoned();
        if waiting.messages.is_empty() {
            waiting = self.changed.wait_timeout(waiting, timeout).even_poisoned().0;
        }
        waiting.bytes = 0;
        std::mem::take(&mut waiting.messages)
    }

    pub(super) fn note_sent(&self, messages: usize) {
        self.sent.fetch_add(messages as u64, Ordering::Relaxed);
    }

    pub(super) fn note_dropped(&self, messages: usize) {
        self.dropped.fetch_add(messages as u64, Ordering::Relaxed);
    }

    /// The number of messages that were sent to other nodes since startup. A message counts once for each node.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The number of messages that were dropped since startup. A message counts once for each node that did not receive
    /// it.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn messages_are_taken_in_order_as_requests() {
        let queue = ForwardQueue::default();
        queue.push(Audience::Cluster, b"news", b"one");
        queue.push(Audience::Shard, b"news", b"two");
        let taken = queue.take(NOW);
        assert_eq!(&*taken[0].request, b"*3\r\n$7\r\nPUBLISH\r\n$4\r\nnews\r\n$3\r\none\r\n");
        assert_eq!(&*taken[1].request, b"*3\r\n$8\r\nSPUBLISH\r\n$4\r\nnews\r\n$3\r\ntwo\r\n");
        assert_eq!((taken[0].audience, taken[1].audience), (Audience::Cluster, Audience::Shard));
        assert!(queue.take(NOW).is_empty());
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let queue = ForwardQueue::default();
        let large = vec![b'x'; WAITING_BYTES_MAX / 2];
        for _ in 0..3 {
            queue.push(Audience::Cluster, b"c", &large);
        }
        assert_eq!((queue.take(NOW).len(), queue.dropped()), (1, 2));
        queue.push(Audience::Cluster, b"c", &large);
        assert_eq!(queue.take(NOW).len(), 1);
    }
}
