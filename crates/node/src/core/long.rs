//! The threads that do the work of long commands (see `brisk_engine::long`).
//!
//! There are as many threads as workers, at lower priority. On a busy machine, a client that requests much work waits
//! longer, but other clients do not.

use crate::clients::ClientRecord;
use crate::core::mailbox::{Mailboxes, Message};
use brisk_engine::Keyspace;
use brisk_engine::long::{ComputedCommand, LongCommand};
use brisk_engine::table::Row;
use brisk_reactor::Clock;
use brisk_structures::poison::EvenPoisoned;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, mpsc};

/// Maximum number of commands that wait for a thread. If the queue is full, workers do the work themselves. This
/// prevents clients that connect and disconnect from queueing work faster than it is done.
const QUEUE_MAX: usize = 16_384;

/// Added to the niceness of background threads. If they compete with a worker for a CPU, they get a tenth of the
/// worker's share.
const NICENESS: i32 = 10;

/// Maximum number of threads for errands (work that waits for another server). Further errands wait for one of these
/// threads.
const ERRANDS_MAX: usize = 64;

/// The client whose command is being computed.
pub struct Caller {
    pub record: Arc<ClientRecord>,
    pub row: &'static Row,
    /// Time spent on the command so far.
    pub ns: u64,
}

/// Work to be done for a client.
pub struct Job {
    pub caller: Caller,
    pub long: LongCommand,
}

/// A job whose work was done.
pub struct ComputedJob {
    pub caller: Caller,
    pub computed: ComputedCommand,
}

impl std::fmt::Debug for ComputedJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ComputedJob").finish_non_exhaustive()
    }
}

impl Job {
    /// Does the work, on the calling thread.
    pub fn run(self, keyspace: &Keyspace, clock: &Clock) -> ComputedJob {
        let Job { mut caller, long } = self;
        let begin = clock.ticks();
        let computed = long.compute(keyspace);
        caller.ns += clock.ns(clock.ticks().wrapping_sub(begin));
        ComputedJob { caller, computed }
    }
}

/// The handle to the threads.
#[derive(Debug, Default)]
pub struct LongWork {
    threads: OnceLock<Threads>,
    errands: Mutex<TransferQueue>,
}

/// Work that involves waiting for another server (errands), and the number of threads that do it.
#[derive(Debug, Default)]
struct TransferQueue {
    threads: usize,
    /// Errands that wait for a thread, at most [`QUEUE_MAX`].
    waiting: VecDeque<Box<Job>>,
}

struct Threads {
    sender: mpsc::SyncSender<Box<Job>>,
    keyspace: &'static Keyspace,
    mailboxes: &'static Mailboxes,
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
    /// The system cannot start a thread.
    pub fn start(
        &self,
        threads: usize,
        keyspace: &'static Keyspace,
        mailboxes: &'static Mailboxes,
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
                    let next = receiver.lock().even_poisoned().recv();
                    // The sender lives as long as the process.
                    let Ok(job) = next else { return };
                    run_and_report(*job, keyspace, mailboxes, clock);
                }
            })?;
        }
        // Started once, by boot.
        let _ = self.threads.set(Threads { sender, keyspace, mailboxes });
        Ok(())
    }

    /// Passes an errand to one of the errand threads. Any other thread would be blocked until the other server replies.
    /// Returns the errand if too many errands are waiting or no thread is available.
    fn send_apart(&'static self, job: Box<Job>, threads: &'static Threads) -> Result<(), Box<Job>> {
        let mut errands = self.lock_errands();
        if errands.waiting.len() >= QUEUE_MAX {
            return Err(job);
        }
        errands.waiting.push_back(job);
        if errands.threads >= ERRANDS_MAX {
            return Ok(());
        }
        let thread = std::thread::Builder::new().name("brisk-errand".to_owned());
        let started = thread.spawn(move || {
            yield_to_workers();
            while let Some(job) = self.next_errand() {
                run_and_report(*job, threads.keyspace, threads.mailboxes, brisk_reactor::clock());
            }
        });
        match started {
            Ok(_) => errands.threads += 1,
            // The system cannot start a thread, but an existing thread will take the errand later.
            Err(_) if errands.threads > 0 => {}
            Err(_) => return errands.waiting.pop_back().map_or(Ok(()), Err),
        }
        Ok(())
    }

    /// The next errand for an errand thread. The thread ends if there is none.
    fn next_errand(&self) -> Option<Box<Job>> {
        let mut errands = self.lock_errands();
        let next = errands.waiting.pop_front();
        if next.is_none() {
            errands.threads -= 1;
        }
        next
    }

    fn lock_errands(&self) -> MutexGuard<'_, TransferQueue> {
        self.errands.lock().even_poisoned()
    }

    /// Passes the work to one of the threads. Returns the work if their queue is full.
    pub fn send(&'static self, job: Box<Job>) -> Result<(), Box<Job>> {
        let Some(threads) = self.threads.get() else { return Err(job) };
        if job.long.is_apart() {
            return self.send_apart(job, threads);
        }
        threads.sender.try_send(job).map_err(|error| match error {
            mpsc::TrySendError::Full(job) | mpsc::TrySendError::Disconnected(job) => job,
        })
    }
}

fn run_and_report(job: Job, keyspace: &Keyspace, mailboxes: &Mailboxes, clock: &Clock) {
    let computed = job.run(keyspace, clock);
    let worker = computed.caller.record.worker;
    mailboxes.send(worker, Message::Computed(Box::new(computed)));
}

/// Lowers the priority of this thread, so that workers are preferred if they compete for the same CPU.
pub fn yield_to_workers() {
    // If the system does not allow it, the thread keeps its priority.
    let _ = rustix::process::nice(NICENESS);
}
