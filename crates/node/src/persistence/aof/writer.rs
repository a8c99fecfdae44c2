//! The threads that write the file and sync it.
//!
//! Usually a worker writes the data of all workers at the end of its round. This takes one system call for all commands
//! of the round, and no other thread must be woken. If a write may take long (a sync is in progress, the last write
//! failed, or the file is being switched), the thread `brisk-aof` writes instead. With `always`, fdatasync follows each
//! write while the next batch is collected. If the disk is fast, the worker calls fdatasync, because its clients wait
//! for it anyway. Otherwise the thread calls it, so that the worker can serve clients that do not wait. With
//! `everysec`, another thread calls it, so that writing continues during the sync.

use super::file::{File, Handle, Trouble};
use super::state::{Aof, Level, Work};
use crate::core::shared::Shared;
use brisk_config::choice::AppendFsync;
use brisk_config::os_reason;
use brisk_structures::poison::EvenPoisoned;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// With `everysec` the file is synced at this interval.
const SYNC_PERIOD: Duration = Duration::from_secs(1);
/// A worker syncs the file itself if the last sync took at most this long.
const QUICK_SYNC_MAX: Duration = Duration::from_millis(1);
/// A worker that has written for this long leaves the rest to the thread, so that its clients do
/// not wait for the disk.
const WORKER_WRITES_MAX: Duration = Duration::from_millis(2);
/// A failed write is retried after this time.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The result of a worker's attempt to write pending data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    All,
    /// The data is left to the thread, and the caller must request the write.
    LeftToThread,
    /// Another thread is using the file. Waiting workers are woken when it is free.
    OthersWrite,
}

/// The result of writing pending data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    All,
    /// Some of the data is still pending.
    Part,
    Failed,
}

/// A request to sync a file while writing continues: the number of bytes to sync, and the position in the stream that
/// they reach.
struct SyncRequest {
    handle: Arc<Handle>,
    size: u64,
    written: u64,
}

impl Aof {
    /// Writes pending data if the write is not expected to block. With `always`, also syncs it if the disk is fast.
    pub fn write_now(&self, shared: &Shared, worker: usize) -> Written {
        let syncs = self.level() == Level::Disk;
        if self.is_slow() || (syncs && !self.is_disk_quick()) {
            return Written::LeftToThread;
        }
        let Ok(mut file) = self.file.try_lock() else { return Written::OthersWrite };
        let began = Instant::now();
        let outcome = self.write_pending(shared, &mut file, Some(began + WORKER_WRITES_MAX));
        let mut done = outcome == Outcome::All;
        if let Some(file) = file.as_ref().filter(|_| syncs && outcome != Outcome::Failed) {
            done &= self.sync_timed(shared, file, began);
        }
        drop(file);
        self.wake_waiting(shared, Some(worker));
        if done { Written::All } else { Written::LeftToThread }
    }

    fn is_disk_quick(&self) -> bool {
        self.metrics.sync_us.load(Ordering::Relaxed) <= QUICK_SYNC_MAX.as_micros() as u64
    }

    /// Syncs the written data, and notes the duration of writing and syncing. Returns false if the sync failed.
    fn sync_timed(&self, shared: &Shared, file: &File, began: Instant) -> bool {
        let synced = self.sync(file);
        let us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.metrics.sync_us.store(us, Ordering::Relaxed);
        if let Err(error) = &synced {
            note_lost(shared, error);
        }
        synced.is_ok()
    }

    /// Writes pending data. After `until`, no further item is begun.
    fn write_pending(
        &self,
        shared: &Shared,
        file: &mut Option<Box<File>>,
        until: Option<Instant>,
    ) -> Outcome {
        match self.write_items(file, until) {
            Ok(all) => {
                self.note_success(shared);
                if all { Outcome::All } else { Outcome::Part }
            }
            Err(trouble) => {
                self.note_trouble(shared, &trouble);
                Outcome::Failed
            }
        }
    }

    fn note_trouble(&self, shared: &Shared, trouble: &Trouble) {
        match trouble {
            Trouble::Write(error) => self.note_failure(shared, error),
            Trouble::Sync(error) => note_lost(shared, error),
        }
    }

    fn note_failure(&self, shared: &Shared, error: &io::Error) {
        let reason = os_reason(error);
        if !self.metrics.has_failed.swap(true, Ordering::SeqCst) {
            shared.log.warning(format_args!("Error writing to the AOF file: {reason}"));
        }
        *self.metrics.failure.lock().even_poisoned() = reason;
        shared.update_disk_error();
        self.request_work(|work| work.write = true);
    }

    pub(super) fn note_success(&self, shared: &Shared) {
        if self.metrics.has_failed.swap(false, Ordering::SeqCst) {
            shared
                .log
                .warning(format_args!("AOF write error looks solved. The server can write again."));
            shared.update_disk_error();
        }
    }

    /// Wakes all workers with waiting replies except `but`, so that they check again.
    pub fn wake_waiting(&self, shared: &Shared, but: Option<usize>) {
        fence(Ordering::SeqCst);
        for worker in self.waiting().filter(|worker| Some(*worker) != but) {
            shared.mailboxes.wake(worker);
        }
    }

    /// Starts the threads, if they are not running yet.
    pub(super) fn start_threads(&self, shared: &'static Shared) -> io::Result<()> {
        if self.has_threads.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let (sync_sender, sync_requests) = mpsc::channel::<SyncRequest>();
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        thread("brisk-aof-sync").spawn(move || {
            for request in sync_requests {
                sync_requested(shared, &request);
            }
        })?;
        thread("brisk-aof").spawn(move || write_for_ever(shared, &sync_sender))?;
        Ok(())
    }

    /// Writes and syncs everything that was pushed, regardless of the policy. Called when the server shuts down, and
    /// when the file is closed.
    pub fn flush(&self, shared: &Shared) -> io::Result<()> {
        let brought = self.bring_to_disk();
        match &brought {
            Ok(()) => self.note_success(shared),
            Err(trouble) => self.note_trouble(shared, trouble),
        }
        brought.map_err(Trouble::into_error)
    }
}

/// The thread that writes the data that workers leave to it.
fn write_for_ever(shared: &'static Shared, sync_sender: &mpsc::Sender<SyncRequest>) {
    let aof = &shared.persistence.aof;
    let mut last_sync = Instant::now();
    loop {
        let sync = wait_for_work(aof);
        let (policy, level) = (aof.policy(), aof.level());
        let mut file = aof.file.lock().even_poisoned();
        let began = Instant::now();
        match aof.write_pending(shared, &mut file, None) {
            Outcome::All => {}
            // Items that were pushed during the write are written after the sync.
            Outcome::Part => aof.work.lock().even_poisoned().write = true,
            Outcome::Failed => {
                drop(file);
                std::thread::park_timeout(RETRY_AFTER);
                continue;
            }
        }
        let written = aof.places.written.load(Ordering::Relaxed);
        let is_behind = aof.places.durable.load(Ordering::Relaxed) < written;
        let Some(file_now) = file.as_ref().filter(|_| is_behind) else {
            drop(file);
            aof.wake_waiting(shared, None);
            continue;
        };
        if level == Level::Disk {
            aof.sync_timed(shared, file_now, began);
            drop(file);
        } else {
            let is_due = policy == AppendFsync::EverySecond
                && !aof.is_sparing_disk()
                && last_sync.elapsed() >= SYNC_PERIOD;
            let is_free = !aof.metrics.fsync_in_progress.load(Ordering::SeqCst);
            if (is_due || sync) && is_free {
                let (handle, size) = file_now.handle();
                last_sync = Instant::now();
                aof.metrics.fsync_in_progress.store(true, Ordering::SeqCst);
                // The receiving thread lives as long as this one.
                let _ = sync_sender.send(SyncRequest { handle, size, written });
            } else if sync && !is_free {
                aof.work.lock().even_poisoned().sync_again = true;
            }
            drop(file);
        }
        aof.wake_waiting(shared, None);
    }
}

/// Waits until there may be data to write; the caller checks this cheaply. Returns true if written data must be synced
/// although the policy does not require it.
fn wait_for_work(aof: &Aof) -> bool {
    let work = aof.work.lock().even_poisoned();
    let idle = |work: &mut Work| !(work.write || work.sync);
    let (mut work, _) =
        aof.has_work.wait_timeout_while(work, SYNC_PERIOD / 4, idle).even_poisoned();
    work.write = false;
    std::mem::take(&mut work.sync)
}

/// Called on the thread that only waits for the disk.
fn sync_requested(shared: &Shared, request: &SyncRequest) {
    let aof = &shared.persistence.aof;
    if let Err(error) = aof.note_durable(request.handle.sync(request.size), request.written) {
        note_lost(shared, &error);
    }
    aof.metrics.fsync_in_progress.store(false, Ordering::SeqCst);
    let again = std::mem::take(&mut aof.work.lock().even_poisoned().sync_again);
    if again {
        aof.request_work(|work| work.sync = true);
    }
    aof.wake_waiting(shared, None);
}

/// Called after a failed sync. The kernel has dropped data that it could not write, so the contents of the disk are
/// unknown. Replies that wait for this data are not sent.
fn note_lost(shared: &Shared, error: &io::Error) {
    let reason = os_reason(error);
    shared.log.warning(format_args!(
        "Can't persist AOF for fsync error: {reason}. Exiting, because acknowledged writes may be lost..."
    ));
    shared.process.shutdown.request(1);
}
