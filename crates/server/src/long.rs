//! The threads that do the work of long commands (see `brisk_engine::long`).
//!
//! As many as there are workers, of lower priority than these: where there is no processor to
//! spare, a client that asks for much waits longer, and not the others.

use crate::clients::ClientRecord;
use crate::mailbox::{Mailbox, Message};
use crate::table::Row;
use brisk_engine::Keyspace;
use brisk_engine::long::{Computed, Long};
use brisk_reactor::Clock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};

/// Commands that wait for a thread, at most; beyond it workers do the work themselves, so that
/// clients that come and go cannot leave more behind than is done.
const QUEUE_MAX: usize = 16_384;

/// What is added to the niceness of threads that work behind the workers' backs: they have a tenth
/// of a worker's share of a processor that both want.
const NICENESS: i32 = 10;

/// Errands at a time that have threads of their own, at most; more wait in the queue with the others.
const ERRANDS_MAX: usize = 64;

/// Who asked.
pub struct Asker {
    pub record: Arc<ClientRecord>,
    pub row: &'static Row,
    /// Time spent on the command so far.
    pub ns: u64,
}

/// Work to be done for somebody.
pub struct Job {
    pub asker: Asker,
    pub long: Long,
}

/// Work that was done for somebody.
pub struct Outcome {
    pub asker: Asker,
    pub computed: Computed,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outcome").finish_non_exhaustive()
    }
}

impl Job {
    /// Does the work, by whatever thread.
    pub fn run(self, keyspace: &Keyspace, clock: &Clock) -> Outcome {
        let Job { mut asker, long } = self;
        let begin = clock.ticks();
        let computed = long.compute(keyspace);
        asker.ns += clock.ns(clock.ticks().wrapping_sub(begin));
        Outcome { asker, computed }
    }
}

/// The way to the threads.
#[derive(Debug, Default)]
pub struct LongWork {
    threads: OnceLock<Threads>,
    /// Errands that are being run by threads of their own.
    errands: AtomicUsize,
}

struct Threads {
    sender: mpsc::SyncSender<Box<Job>>,
    keyspace: &'static Keyspace,
    mailboxes: &'static [Mailbox],
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Threads").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").finish_non_exhaustive()
    }
}

impl LongWork {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system gives none.
    pub fn start(
        &self,
        threads: usize,
        keyspace: &'static Keyspace,
        mailboxes: &'static [Mailbox],
    ) -> std::io::Result<()> {
        let (sender, receiver) = mpsc::sync_channel::<Box<Job>>(QUEUE_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        for id in 0..threads {
            let receiver = Arc::clone(&receiver);
            let thread = std::thread::Builder::new().name(format!("brisk-long-{id}"));
            thread.spawn(move || {
                yield_to_workers();
                let clock = brisk_reactor::clock();
                loop {
                    let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    // The sender lives as long as the process.
                    let Ok(job) = next else { return };
                    run_and_tell(*job, keyspace, mailboxes, clock);
                }
            })?;
        }
        // Started once, by boot.
        let _ = self.threads.set(Threads { sender, keyspace, mailboxes });
        Ok(())
    }

    /// Gives an errand a thread of its own, since it would keep one of the others for as long as some
    /// other server takes. Gives it back if there are too many.
    fn send_apart(&'static self, job: Box<Job>, threads: &'static Threads) -> Option<Box<Job>> {
        if self.errands.fetch_add(1, Ordering::Relaxed) >= ERRANDS_MAX {
            self.errands.fetch_sub(1, Ordering::Relaxed);
            return Some(job);
        }
        let job = Arc::new(Mutex::new(Some(job)));
        let own = Arc::clone(&job);
        let taken = |job: &Mutex<Option<Box<Job>>>| {
            job.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        let thread = std::thread::Builder::new().name("brisk-errand".to_owned());
        let started = thread.spawn(move || {
            if let Some(job) = taken(&own) {
                yield_to_workers();
                run_and_tell(*job, threads.keyspace, threads.mailboxes, brisk_reactor::clock());
            }
            self.errands.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_ok() {
            return None;
        }
        // The system gives no thread.
        self.errands.fetch_sub(1, Ordering::Relaxed);
        taken(&job)
    }

    /// Has the work done by one of the threads; gives it back if they have too much to do.
    pub fn send(&'static self, job: Box<Job>) -> Result<(), Box<Job>> {
        let Some(threads) = self.threads.get() else { return Err(job) };
        let job = if job.long.is_apart() {
            match self.send_apart(job, threads) {
                None => return Ok(()),
                Some(job) => job,
            }
        } else {
            job
        };
        threads.sender.try_send(job).map_err(|error| match error {
            mpsc::TrySendError::Full(job) | mpsc::TrySendError::Disconnected(job) => job,
        })
    }
}

fn run_and_tell(job: Job, keyspace: &Keyspace, mailboxes: &[Mailbox], clock: &Clock) {
    let outcome = job.run(keyspace, clock);
    let worker = outcome.asker.record.worker;
    mailboxes[worker].send(Message::Computed(Box::new(outcome)));
}

/// Lets workers go first wherever they and this thread want the same processor.
pub fn yield_to_workers() {
    // Whose system does not allow it, works as before.
    let _ = rustix::process::nice(NICENESS);
}
