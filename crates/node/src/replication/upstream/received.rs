//! The stream of the primary between the thread that receives it and the worker that executes it.

use brisk_structures::poison::EvenPoisoned;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Bytes that are received before the worker takes them, at most, beside one part: what is not received
/// waits in the output of the primary, which counts it.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// What was received and not executed.
#[derive(Default)]
pub struct ReceivedStream {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// Which stream it is: grows when another begins.
    number: AtomicU64,
    /// There is something for the worker.
    is_ready: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    /// With the moments in which they came, in Unix ms.
    parts: VecDeque<(Vec<u8>, u64)>,
    bytes: usize,
    /// When the first part came that the worker has taken and not executed; `None` if it has executed all.
    executes_since_ms: Option<u64>,
    /// The connection is closed, and the worker has not been notified yet.
    is_over: bool,
}

impl Waiting {
    fn oldest_ms(&self) -> Option<u64> {
        self.executes_since_ms.or_else(|| Some(self.parts.front()?.1))
    }
}

/// Something for the worker.
pub enum StreamEvent {
    /// Behind what it got before.
    Part(Vec<u8>),
    /// Another stream has begun: what it has of the one before is nothing any more.
    Begins(u64),
    /// The connection is closed, and all parts that it sent were taken.
    Ends,
    Nothing,
}

impl ReceivedStream {
    /// Another stream begins: what was received is dropped.
    pub fn begin(&self) {
        let mut waiting = self.waiting.lock().even_poisoned();
        *waiting = Waiting::default();
        self.number.fetch_add(1, Ordering::SeqCst);
        self.is_ready.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// Which stream it is: what is executed must be of this one.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Whether there is something for the worker.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// Adds what was received, if `is_wanted`; whether the worker has to be woken.
    pub fn push(&self, part: Vec<u8>, now_ms: u64, is_wanted: impl FnOnce() -> bool) -> bool {
        let mut waiting = self.waiting.lock().even_poisoned();
        if !is_wanted() {
            return false;
        }
        waiting.bytes += part.len();
        waiting.parts.push_back((part, now_ms));
        // Until it has found nothing the worker does not sleep.
        !self.is_ready.swap(true, Ordering::Release)
    }

    /// Reports that the connection of the present stream is closed, if `is_wanted`: no more parts follow.
    /// Returns whether the worker has to be woken.
    pub fn end(&self, is_wanted: impl FnOnce() -> bool) -> bool {
        let mut waiting = self.waiting.lock().even_poisoned();
        if !is_wanted() {
            return false;
        }
        waiting.is_over = true;
        !self.is_ready.swap(true, Ordering::Release)
    }

    /// Waits until there is room for more, at most so long; whether there is.
    pub fn wait_for_room(&self, most: Duration) -> bool {
        let waiting = self.waiting.lock().even_poisoned();
        let is_full = |waiting: &mut Waiting| waiting.bytes > WAITING_BYTES_MAX;
        let waited = self.changed.wait_timeout_while(waiting, most, is_full);
        !is_full(&mut waited.even_poisoned().0)
    }

    /// Waits until everything was executed, at most so long; whether it was.
    pub fn wait_for_end(&self, most: Duration) -> bool {
        let waiting = self.waiting.lock().even_poisoned();
        let goes_on = |waiting: &mut Waiting| waiting.oldest_ms().is_some();
        let waited = self.changed.wait_timeout_while(waiting, most, goes_on);
        !goes_on(&mut waited.even_poisoned().0)
    }

    /// When the oldest came of what was not executed, in Unix ms; `None` if all was.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.waiting.lock().even_poisoned().oldest_ms()
    }

    /// The next part for a worker that has executed what it can of those before, of the stream `number`.
    pub fn take(&self, number: u64) -> StreamEvent {
        let mut waiting = self.waiting.lock().even_poisoned();
        let present = self.number();
        if present != number {
            return StreamEvent::Begins(present);
        }
        match waiting.parts.pop_front() {
            Some((part, came_ms)) => {
                waiting.bytes -= part.len();
                // What is left of the part before is a command that goes on in this one.
                waiting.executes_since_ms = Some(came_ms);
                self.changed.notify_all();
                StreamEvent::Part(part)
            }
            None if std::mem::take(&mut waiting.is_over) => {
                waiting.executes_since_ms = None;
                self.changed.notify_all();
                StreamEvent::Ends
            }
            None => {
                waiting.executes_since_ms = None;
                self.is_ready.store(false, Ordering::Release);
                self.changed.notify_all();
                StreamEvent::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_order_and_not_those_of_a_stream_that_ended() {
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
        let StreamEvent::Begins(next) = stream.take(number) else { panic!("it goes on") };
        assert!(next > number && matches!(stream.take(next), StreamEvent::Nothing));
        stream.push(vec![0; WAITING_BYTES_MAX + 1], 9, || true);
        assert!(!stream.wait_for_room(Duration::ZERO));
    }
}
