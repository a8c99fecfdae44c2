//! The stream of the primary between the thread that receives it and the worker that executes it.

use brisk_structures::poison::EvenPoisoned;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Maximum number of bytes that wait for the worker, in addition to one part. Further bytes stay in the primary's
/// output and count toward its limits.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// Parts of the stream that have been received but not executed.
#[derive(Default)]
pub struct ReceivedStream {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// The number of the stream. It is incremented when another stream begins.
    number: AtomicU64,
    /// True if there is an event for the worker.
    is_ready: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    /// Parts with their arrival times, in Unix ms.
    parts: VecDeque<(Vec<u8>, u64)>,
    bytes: usize,
    /// The arrival time of the first part that the worker has taken but not executed, in Unix ms. `None` if the worker
    /// has executed all parts that it took.
    executing_since_ms: Option<u64>,
    /// True if the connection is closed and the worker has not been notified yet.
    is_over: bool,
    /// The number of threads that wait for a change. Without them, a change needs no system call.
    waiters: usize,
}

impl Waiting {
    fn oldest_ms(&self) -> Option<u64> {
        self.executing_since_ms.or_else(|| Some(self.parts.front()?.1))
    }
}

/// An event for the worker.
pub enum StreamEvent {
    /// The next bytes.
    Part(Vec<u8>),
    /// Another stream has begun. The worker drops the rest of the previous one.
    Begins(u64),
    /// The connection is closed, and all its parts were taken.
    Ends,
    Nothing,
}

impl ReceivedStream {
    /// Begins another stream and drops all parts.
    pub fn begin(&self) {
        let mut waiting = self.waiting.lock().even_poisoned();
        *waiting = Waiting { waiters: waiting.waiters, ..Waiting::default() };
        self.number.fetch_add(1, Ordering::SeqCst);
        self.is_ready.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// The number of the current stream. Commands of other streams must not be executed.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// True if there is an event for the worker.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// Adds a part, if `is_wanted` returns true. Returns true if the worker has to be woken.
    pub fn push(&self, part: Vec<u8>, now_ms: u64, is_wanted: impl FnOnce() -> bool) -> bool {
        let mut waiting = self.waiting.lock().even_poisoned();
        if !is_wanted() {
            return false;
        }
        waiting.bytes += part.len();
        waiting.parts.push_back((part, now_ms));
        // If the flag was already set, the worker does not sleep until it has found that there is no event.
        !self.is_ready.swap(true, Ordering::Release)
    }

    /// Reports that the connection of the current stream is closed, if `is_wanted` returns true. No more parts follow.
    /// Returns true if the worker has to be woken.
    pub fn end(&self, is_wanted: impl FnOnce() -> bool) -> bool {
        let mut waiting = self.waiting.lock().even_poisoned();
        if !is_wanted() {
            return false;
        }
        waiting.is_over = true;
        !self.is_ready.swap(true, Ordering::Release)
    }

    /// Waits for up to `most` until there is room for another part. Returns true if there is.
    pub fn wait_for_room(&self, most: Duration) -> bool {
        self.wait_while(most, |waiting| waiting.bytes > WAITING_BYTES_MAX)
    }

    /// Waits for up to `most` until all parts are executed. Returns true if they are.
    pub fn wait_for_end(&self, most: Duration) -> bool {
        self.wait_while(most, |waiting| waiting.oldest_ms().is_some())
    }

    /// Waits for up to `most` while `condition` is true. Returns true if it is false in the end.
    fn wait_while(&self, most: Duration, condition: impl Fn(&Waiting) -> bool) -> bool {
        let mut waiting = self.waiting.lock().even_poisoned();
        if !condition(&waiting) {
            return true;
        }
        waiting.waiters += 1;
        let waited = self.changed.wait_timeout_while(waiting, most, |waiting| condition(waiting));
        let mut waiting = waited.even_poisoned().0;
        waiting.waiters -= 1;
        !condition(&waiting)
    }

    /// The arrival time of the oldest part that has not been executed, in Unix ms. `None` if all parts have been
    /// executed.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.waiting.lock().even_poisoned().oldest_ms()
    }

    fn notify(&self, waiting: &Waiting) {
        if waiting.waiters > 0 {
            self.changed.notify_all();
        }
    }

    /// The next event for a worker that executes the stream `number` and has executed all complete commands of
    /// earlier parts.
    pub fn take(&self, number: u64) -> StreamEvent {
        let mut waiting = self.waiting.lock().even_poisoned();
        let present = self.number();
        if present != number {
            return StreamEvent::Begins(present);
        }
        match waiting.parts.pop_front() {
            Some((part, arrived_ms)) => {
                waiting.bytes -= part.len();
                // The rest of the previous part is a command that continues in this one.
                waiting.executing_since_ms = Some(arrived_ms);
                self.notify(&waiting);
                StreamEvent::Part(part)
            }
            None if std::mem::take(&mut waiting.is_over) => {
                waiting.executing_since_ms = None;
                self.notify(&waiting);
                StreamEvent::Ends
            }
            None => {
                waiting.executing_since_ms = None;
                self.is_ready.store(false, Ordering::Release);
                self.notify(&waiting);
                StreamEvent::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_arrive_in_order_and_those_of_an_ended_stream_do_not() {
        let stream = ReceivedStream::default();
        let number = stream.number();
        assert!(stream.push(b"one".to_vec(), 7, || true) && stream.is_ready());
        assert!(!stream.push(b"two".to_vec(), 9, || true));
        assert!(!stream.push(b"of nobody".to_vec(), 9, || false));
        assert_eq!(stream.oldest_ms(), Some(7));
        assert!(matches!(stream.take(number), StreamEvent::Part(part) if part == b"one"));
        assert_eq!(stream.oldest_ms(), Some(7));
        assert!(!stream.wait_for_end(Duration::ZERO));
        assert!(matches!(stream.take(number), StreamEvent::Part(part) if part == b"two"));
        assert!(!stream.wait_for_end(Duration::ZERO));
        assert_eq!(stream.oldest_ms(), Some(9));
        assert!(matches!(stream.take(number), StreamEvent::Nothing) && !stream.is_ready());
        assert_eq!(stream.oldest_ms(), None);
        assert!(stream.wait_for_end(Duration::ZERO));
        stream.push(b"last".to_vec(), 9, || true);
        assert!(!stream.end(|| false) && !stream.end(|| true));
        assert!(matches!(stream.take(number), StreamEvent::Part(part) if part == b"last"));
        assert!(matches!(stream.take(number), StreamEvent::Ends));
        assert!(matches!(stream.take(number), StreamEvent::Nothing));
        stream.push(b"lost".to_vec(), 9, || true);
        stream.end(|| true);
        stream.begin();
        let StreamEvent::Begins(next) = stream.take(number) else { panic!("no other stream") };
        assert!(next > number && matches!(stream.take(next), StreamEvent::Nothing));
        stream.push(vec![0; WAITING_BYTES_MAX + 1], 9, || true);
        assert!(!stream.wait_for_room(Duration::ZERO));
    }
}
