//! Writes pending data to the file and syncs it. The threads that call these functions, and the error handling, are in
//! `writer`.

use super::file::{File, Trouble};
use super::files;
use super::home::Home;
use super::state::{Aof, Pending};
use crate::persistence::disk::Disk;
use brisk_persist::aof::Manifest;
use brisk_structures::poison::EvenPoisoned;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl<D: Disk> Aof<D> {
    /// Writes the items that are pending when the call begins. If an item fails, that item and all later ones stay
    /// pending. Items that are pushed during the call also stay pending. Otherwise this function might never return
    /// while other threads push faster than the disk writes. After `until`, no further item is begun.
    ///
    /// Returns true if nothing is pending.
    pub(super) fn write_items(
        &self,
        file: &mut Option<Box<File<D>>>,
        until: Option<Instant>,
    ) -> Result<bool, Trouble> {
        let mut left = self.queue.lock().even_poisoned().items.len();
        loop {
            let next = match left {
                0 => None,
                _ => self.queue.lock().even_poisoned().items.pop_front(),
            };
            let Some(mut next) = next else { return Ok(true) };
            let done = match &mut next {
                Pending::Bytes(bytes, span) => self.write_batch(file, bytes, *span),
                Pending::Switch(new) => self.go_over(file.as_deref_mut(), new),
            };
            if let Err(trouble) = done {
                self.queue.lock().even_poisoned().items.push_front(next);
                return Err(trouble);
            }
            let is_empty = match next {
                Pending::Bytes(bytes, span) => {
                    let mut queue = self.queue.lock().even_poisoned();
                    queue.bytes -= span;
                    self.note_pending(queue.bytes);
                    queue.give_back(bytes);
                    // Data that was pushed during the write comes after this item.
                    let written = queue.end - queue.bytes as u64;
                    let is_empty = queue.items.is_empty();
                    drop(queue);
                    self.places.written.store(written, Ordering::Release);
                    is_empty
                }
                Pending::Switch(new) => {
                    *file = Some(new);
                    self.switches.fetch_sub(1, Ordering::SeqCst);
                    !self.has_pending()
                }
            };
            left -= 1;
            if left == 0 || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(is_empty);
            }
        }
    }

    /// Writes a batch that covers `span` bytes of the stream.
    fn write_batch(
        &self,
        file: &mut Option<Box<File<D>>>,
        bytes: &[u8],
        span: usize,
    ) -> Result<(), Trouble> {
        let Some(file) = file.as_mut().filter(|_| !bytes.is_empty()) else { return Ok(()) };
        let ticket = self.places.written.load(Ordering::Relaxed) + span as u64;
        let timestamps = self.has_timestamps.load(Ordering::Relaxed);
        let sleep_us = self.sleeps_us.load(Ordering::Relaxed);
        if sleep_us > 0 {
            std::thread::park_timeout(Duration::from_micros(sleep_us));
        }
        let size = file.append(ticket, bytes, timestamps)?;
        self.metrics.size.fetch_add(size, Ordering::Relaxed);
        Ok(())
    }

    fn go_over(&self, before: Option<&mut File<D>>, new: &mut File<D>) -> Result<(), Trouble> {
        new.follow(before, self.has_timestamps.load(Ordering::Relaxed))?;
        let written = self.places.written.load(Ordering::Relaxed);
        self.places.durable.fetch_max(written, Ordering::Release);
        Ok(())
    }

    /// Syncs the written data. The caller has locked the file, so no write happens during the sync.
    pub(super) fn sync(&self, file: &File<D>) -> io::Result<()> {
        let written = self.places.written.load(Ordering::Relaxed);
        self.note_durable(file.sync(), written)
    }

    /// Notes the result of a sync of everything that was written up to this position.
    pub(super) fn note_durable(&self, synced: io::Result<()>, written: u64) -> io::Result<()> {
        synced?;
        self.places.durable.fetch_max(written, Ordering::Release);
        Ok(())
    }

    /// Replaces the manifest at the end of a rewrite, when the base is complete and the increment is in use.
    pub(super) fn name_base(
        &self,
        disk: &D,
        home: &Home,
        mut manifest: Manifest,
        removes_history: bool,
    ) -> io::Result<()> {
        let named = files::name_base(disk, home, &mut manifest, removes_history);
        // The next rewrite starts from the manifest that may be on the disk, so that no file number
        // is used twice.
        if named.as_ref().err().is_none_or(|unwritten| unwritten.may_be_there) {
            self.note_sizes(disk, home, &manifest);
            *self.manifest.lock().even_poisoned() = manifest;
        }
        named.map_err(|unwritten| unwritten.error)?;
        self.end_wait_for_base();
        Ok(())
    }

    /// Notes the current size, from which growth is measured.
    pub(super) fn note_sizes(&self, disk: &D, home: &Home, manifest: &Manifest) {
        let total = files::size(disk, home, manifest.files_to_load());
        self.metrics.size.store(total, Ordering::Relaxed);
        self.metrics.base_size.store(total, Ordering::Relaxed);
    }

    /// The same as `note_sizes` for files that were found at startup, which have grown since their base was
    /// written.
    pub(super) fn note_found(&self, disk: &D, home: &Home, manifest: &Manifest) {
        self.note_sizes(disk, home, manifest);
        let base = files::size(disk, home, manifest.base().into_iter());
        self.metrics.base_size.store(base, Ordering::Relaxed);
    }

    /// Writes and syncs everything that was pushed.
    pub(super) fn bring_to_disk(&self) -> Result<(), Trouble> {
        let mut file = self.file.lock().even_poisoned();
        self.write_items(&mut file, None)?;
        match &*file {
            Some(file) => self.sync(file).map_err(Trouble::Sync),
            None => Ok(()),
        }
    }
}
