//! The file, and the threads that write it and put it on the disk.
//!
//! Usually a worker writes at the end of its round what all have appended: one system call for all
//! commands of the round, and no other thread has to be woken. While a write may take long (the file
//! is being put on the disk, the last write failed, the file changes), the thread `brisk-aof` does it.
//! With `always` it does it too, and calls fdatasync behind each write: while that runs, the next
//! batch collects. With `everysec` another thread calls fdatasync, so that writing goes on beside it.

use super::file::File;
use super::state::{Aof, Level, Pending, Work};
use crate::core::shared::Shared;
use crate::persistence::disk::System;
use brisk_config::choice::AppendFsync;
use brisk_config::os_reason;
use brisk_structures::poison::EvenPoisoned;
use std::fs;
use std::io;
use std::sync::atomic::{Ordering, fence};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// With `everysec` the file is put on the disk this often.
const SYNC_PERIOD: Duration = Duration::from_secs(1);
/// After a write that failed the next is tried this much later.
const RETRY_AFTER: Duration = Duration::from_millis(500);

impl Aof {
    /// Writes what is pending, if that takes no longer than a system call. False if the thread has to.
    pub fn write_now(&self, shared: &Shared, worker: usize) -> bool {
        if self.level() == Level::Disk || self.is_slow() {
            return false;
        }
        let Ok(mut file) = self.file.try_lock() else { return false };
        let written = self.write_pending(shared, &mut file);
        drop(file);
        self.wake_waiting(shared, Some(worker));
        written
    }

    /// Writes all that is pending; false if that failed, and everything is as before.
    fn write_pending(&self, shared: &Shared, file: &mut Option<Box<File>>) -> bool {
        loop {
            let next = self.queue.lock().even_poisoned().items.pop_front();
            let Some(mut next) = next else { return true };
            let done = match &mut next {
                Pending::Bytes(bytes) => self.write_batch(file, bytes),
                Pending::Switch(new) => {
                    if !self.finish_file(shared, file) {
                        self.queue.lock().even_poisoned().items.push_front(next);
                        return false;
                    }
                    new.install(&System)
                }
            };
            if let Err(error) = done {
                self.queue.lock().even_poisoned().items.push_front(next);
                self.note_failure(shared, &error);
                return false;
            }
            match next {
                Pending::Bytes(bytes) => {
                    let mut queue = self.queue.lock().even_poisoned();
                    queue.bytes -= bytes.len();
                    self.note_pending(queue.bytes);
                    queue.give_back(bytes);
                    // What was pushed meanwhile is behind.
                    let written = queue.end - queue.bytes as u64;
                    drop(queue);
                    self.places.written.store(written, Ordering::Release);
                }
                Pending::Switch(new) => {
                    *file = Some(new);
                    self.switches.fetch_sub(1, Ordering::SeqCst);
                }
            }
            self.note_success(shared);
        }
    }

    fn write_batch(&self, file: &mut Option<Box<File>>, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = file else { return Ok(()) };
        let ticket = self.places.written.load(Ordering::Relaxed) + bytes.len() as u64;
        let timestamps = self.has_timestamps.load(Ordering::Relaxed);
        let sleep_us = self.sleeps_us.load(Ordering::Relaxed);
        if sleep_us > 0 {
            std::thread::park_timeout(Duration::from_micros(sleep_us));
        }
        let size = file.append(ticket, bytes, timestamps)?;
        self.figures.size.fetch_add(size, Ordering::Relaxed);
        Ok(())
    }

    /// Nothing more is written to the file: what is in it is put on the disk, so that what is told
    /// of the next holds for all before, and no file but the last can be torn. False if that failed.
    fn finish_file(&self, shared: &Shared, file: &Option<Box<File>>) -> bool {
        let Some(file) = file else { return true };
        let synced = file.sync();
        let is_synced = synced.is_ok();
        note_synced(shared, synced, self.places.written.load(Ordering::Relaxed));
        is_synced
    }

    fn note_failure(&self, shared: &Shared, error: &io::Error) {
        let reason = os_reason(error);
        if !self.figures.has_failed.swap(true, Ordering::SeqCst) {
            shared.log.warning(format_args!("Error writing to the AOF file: {reason}"));
        }
        *self.figures.failure.lock().even_poisoned() = reason;
        shared.arm_disk_error();
        self.ask(|work| work.write = true);
    }

    pub(super) fn note_success(&self, shared: &Shared) {
        if self.figures.has_failed.swap(false, Ordering::SeqCst) {
            shared
                .log
                .warning(format_args!("AOF write error looks solved. The server can write again."));
            shared.arm_disk_error();
        }
    }

    /// Has workers with replies that wait look again, all but one.
    pub fn wake_waiting(&self, shared: &Shared, but: Option<usize>) {
        fence(Ordering::SeqCst);
        for worker in self.waiting().filter(|worker| Some(*worker) != but) {
            shared.mailboxes[worker].wake();
        }
    }

    /// Starts the threads, if they do not run yet.
    pub(super) fn start_threads(&self, shared: &'static Shared) -> io::Result<()> {
        if self.has_threads.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let (asks_sync, sync_asked) = mpsc::channel::<(fs::File, u64)>();
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        thread("brisk-aof-sync").spawn(move || {
            for (file, written) in sync_asked {
                sync_beside(shared, &file, written);
            }
        })?;
        thread("brisk-aof").spawn(move || write_for_ever(shared, &asks_sync))?;
        Ok(())
    }

    /// Brings all that was pushed onto the disk, whatever the policy. For the end of the server, and of the
    /// file.
    pub fn flush(&self, shared: &Shared) -> io::Result<()> {
        let mut file = self.file.lock().even_poisoned();
        if !self.write_pending(shared, &mut file) {
            return Err(io::Error::other(self.failure().unwrap_or_default()));
        }
        if let Some(file) = &*file {
            file.sync()?;
        }
        let written = self.places.written.load(Ordering::Relaxed);
        self.places.durable.fetch_max(written, Ordering::Release);
        Ok(())
    }
}

/// The thread that writes what workers leave to it.
fn write_for_ever(shared: &'static Shared, asks_sync: &mpsc::Sender<(fs::File, u64)>) {
    let aof = &shared.aof;
    let mut last_sync = Instant::now();
    loop {
        let sync = wait_for_work(aof);
        let (policy, level) = (aof.policy(), aof.level());
        let mut file = aof.file.lock().even_poisoned();
        if !aof.write_pending(shared, &mut file) {
            drop(file);
            std::thread::park_timeout(RETRY_AFTER);
            continue;
        }
        let written = aof.places.written.load(Ordering::Relaxed);
        let is_behind = aof.places.durable.load(Ordering::Relaxed) < written;
        let Some(file_now) = file.as_ref().filter(|_| is_behind) else {
            drop(file);
            aof.wake_waiting(shared, None);
            continue;
        };
        if level == Level::Disk {
            let synced = file_now.sync();
            drop(file);
            note_synced(shared, synced, written);
        } else {
            let is_due = policy == AppendFsync::EverySecond
                && !aof.is_sparing_disk()
                && last_sync.elapsed() >= SYNC_PERIOD;
            let is_free = !aof.figures.fsync_in_progress.load(Ordering::SeqCst);
            if (is_due || sync)
                && is_free
                && let Ok(handle) = file_now.handle()
            {
                last_sync = Instant::now();
                aof.figures.fsync_in_progress.store(true, Ordering::SeqCst);
                // The thread lives as long as this one.
                let _ = asks_sync.send((handle, written));
            } else if sync && !is_free {
                aof.work.lock().even_poisoned().sync_again = true;
            }
            drop(file);
        }
        aof.wake_waiting(shared, None);
    }
}

/// Returns when there may be something to write, which is cheap to look for; whether what is written
/// is to be put on the disk though the policy does not want it.
fn wait_for_work(aof: &Aof) -> bool {
    let work = aof.work.lock().even_poisoned();
    let idle = |work: &mut Work| !(work.write || work.sync);
    let (mut work, _) =
        aof.has_work.wait_timeout_while(work, SYNC_PERIOD / 4, idle).even_poisoned();
    work.write = false;
    std::mem::take(&mut work.sync)
}

/// On the thread that only waits for the disk.
fn sync_beside(shared: &Shared, file: &fs::File, written: u64) {
    let aof = &shared.aof;
    note_synced(shared, file.sync_data(), written);
    aof.figures.fsync_in_progress.store(false, Ordering::SeqCst);
    let again = std::mem::take(&mut aof.work.lock().even_poisoned().sync_again);
    if again {
        aof.ask(|work| work.sync = true);
    }
    aof.wake_waiting(shared, None);
}

fn note_synced(shared: &Shared, synced: io::Result<()>, written: u64) {
    let aof = &shared.aof;
    match synced {
        Ok(()) => {
            aof.places.durable.fetch_max(written, Ordering::Release);
        }
        Err(error) => {
            // The kernel has forgotten what it could not write: nobody can say what is on the disk.
            // No reply that waits for it will leave.
            let reason = os_reason(&error);
            shared.log.warning(format_args!(
                "Can't persist AOF for fsync error: {reason}. Exiting, as what was promised cannot \
                 be kept..."
            ));
            shared.shutdown.ask(1);
        }
    }
}
