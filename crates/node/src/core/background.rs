//! The thread that frees large values, so that workers do not have to.

use brisk_engine::env::Garbage;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

/// Maximum number of batches waiting to be freed. If there are more, the worker frees the values itself, so that
/// garbage is not produced faster than it is freed.
const QUEUE_MAX: usize = 65_536;

/// The handle to the background thread.
#[derive(Debug, Default)]
pub struct Background {
    sender: OnceLock<mpsc::SyncSender<Batch>>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    pending: AtomicU64,
    freed: AtomicU64,
    /// Sum of the bytes of batches whose bytes were counted.
    pending_bytes: AtomicU64,
}

/// The garbage that a worker passed to the thread in one call.
struct Batch {
    garbage: Vec<Garbage>,
    /// Bytes that freeing the garbage will release; 0 if they were not counted.
    bytes: u64,
    /// Called with the time that freeing took.
    timed: Option<Timed>,
}

/// Receives the time that freeing took: the longest time for one value, and the total.
pub type Timed = Box<dyn FnOnce(Duration, Duration) + Send>;

impl Background {
    /// Starts the thread.
    pub fn start(&self) -> std::io::Result<()> {
        let (sender, receiver) = mpsc::sync_channel::<Batch>(QUEUE_MAX);
        let counts = Arc::clone(&self.counts);
        std::thread::Builder::new().name("brisk-free".to_owned()).spawn(move || {
            crate::core::long::yield_to_workers();
            for Batch { garbage, bytes, timed } in receiver {
                let things = weight(&garbage);
                // Assume that all values have the same size, because measuring each one again would cost more.
                let count = garbage.len() as u64;
                let share = bytes.checked_div(count).unwrap_or(0);
                let (begin, mut longest) = (timed.as_ref().map(|_| Instant::now()), Duration::ZERO);
                for thing in garbage {
                    let begin = begin.map(|_| Instant::now());
                    drop(thing);
                    longest = longest.max(begin.map_or(Duration::ZERO, |begin| begin.elapsed()));
                    counts.pending_bytes.fetch_sub(share, Ordering::Relaxed);
                }
                if let (Some(timed), Some(begin)) = (timed, begin) {
                    timed(longest, begin.elapsed());
                }
                counts.pending_bytes.fetch_sub(bytes - count * share, Ordering::Relaxed);
                counts.pending.fetch_sub(things, Ordering::Relaxed);
                counts.freed.fetch_add(things, Ordering::Relaxed);
            }
        })?;
        // Started once, by boot.
        let _ = self.sender.set(sender);
        Ok(())
    }

    /// Frees `garbage` on the background thread if possible. With `bytes_counted`, its bytes are added to
    /// [`Background::pending_bytes`]. Counting takes a while if there are many values.
    pub fn free(&self, garbage: Vec<Garbage>, bytes_counted: bool) {
        self.free_timed(garbage, bytes_counted, None);
    }

    /// Like [`Background::free`]. If another thread frees the garbage, `timed` is called with the time that this took.
    pub fn free_timed(&self, garbage: Vec<Garbage>, bytes_counted: bool, timed: Option<Timed>) {
        let things = weight(&garbage);
        let sizes = garbage.iter().filter(|_| bytes_counted).map(Garbage::allocated_bytes);
        let bytes = sizes.sum::<usize>() as u64;
        self.counts.pending.fetch_add(things, Ordering::Relaxed);
        self.counts.pending_bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(sender) = self.sender.get()
            && sender.try_send(Batch { garbage, bytes, timed }).is_ok()
        {
            return;
        }
        self.counts.pending_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.counts.pending.fetch_sub(things, Ordering::Relaxed);
        self.counts.freed.fetch_add(things, Ordering::Relaxed);
    }

    /// Counted bytes that are about to be freed.
    pub fn pending_bytes(&self) -> u64 {
        self.counts.pending_bytes.load(Ordering::Relaxed)
    }

    /// Keys not yet freed.
    pub fn pending(&self) -> u64 {
        self.counts.pending.load(Ordering::Relaxed)
    }

    /// Keys freed so far.
    pub fn freed(&self) -> u64 {
        self.counts.freed.load(Ordering::Relaxed)
    }

    /// Resets the number of freed keys, for CONFIG RESETSTAT.
    pub fn reset_freed(&self) {
        self.counts.freed.store(0, Ordering::Relaxed);
    }
}

fn weight(garbage: &[Garbage]) -> u64 {
    let weigh = |thing: &Garbage| match thing {
        Garbage::Entry(_) | Garbage::Value(_) => 1,
        // These are parts of a key, which is counted when it is freed itself.
        Garbage::View(_) | Garbage::Other(_) => 0,
        Garbage::Table(table) => table.view().len() as u64,
    };
    garbage.iter().map(weigh).sum()
}
