//! The file that is being written.
//!
//! The first write after opening is a batch without transactions, which is synced before anything else is written.
//! Because of this batch, a reader knows that any later bytes that it cannot parse are a torn batch of this server.

use super::home::Home;
use crate::persistence::disk::{Disk, System};
use brisk_engine::DbIndex;
use brisk_persist::aof::{Manifest, writer as encode};
use brisk_reactor::unix_ms;
use brisk_resp::request;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An error of a write or a sync.
#[derive(Debug)]
pub(in crate::persistence) enum Trouble {
    /// The data was not written and the state is unchanged: the caller can retry.
    Write(io::Error),
    /// Written data may be lost. The server can no longer promise that anything in the file is on the disk.
    Sync(io::Error),
}

impl Trouble {
    pub(in crate::persistence) fn into_error(self) -> io::Error {
        match self {
            Trouble::Write(error) | Trouble::Sync(error) => error,
        }
    }
}

/// A file that is appended to.
pub(in crate::persistence) struct File<D: Disk = System> {
    handle: Arc<Handle<D>>,
    path: PathBuf,
    /// The number of bytes up to the end of the last complete batch.
    size: u64,
    /// True if a part of a batch may follow after `size` bytes.
    is_torn: bool,
    /// True if the directory entry may not be on the disk.
    is_new: bool,
    /// True if the batch that this server wrote when it opened the file is on the disk.
    has_begun: bool,
    /// The last timestamp in the file, in Unix seconds.
    second: i64,
    /// The content of the first batch: a SELECT of the database for the following commands, in case they do not select
    /// one.
    preface: Vec<u8>,
    /// The manifest that adds the file to the files that are loaded. It is written before the first transaction is
    /// appended.
    install: Option<(Home, Manifest)>,
}

/// The part of a file that is needed to sync it during writes.
pub(super) struct Handle<D: Disk = System> {
    disk: D,
    file: D::File,
    /// The number of bytes that are on the disk.
    synced: AtomicU64,
    /// True if a sync failed, so that bytes may be lost. Even if a later call succeeds, these bytes may be missing.
    has_failed: AtomicBool,
}

impl<D: Disk> Handle<D> {
    /// Blocks until the first `size` bytes, which have already been written, would survive a power failure.
    pub(super) fn sync(&self, size: u64) -> io::Result<()> {
        if self.has_failed.load(Ordering::SeqCst) {
            return Err(io::Error::other("what was written before is lost"));
        }
        if let Err(error) = self.disk.sync_data(&self.file) {
            self.has_failed.store(true, Ordering::SeqCst);
            return Err(error);
        }
        // A sync on another thread may have failed during this one.
        if self.has_failed.load(Ordering::SeqCst) {
            return Err(io::Error::other("what was written before is lost"));
        }
        self.synced.fetch_max(size, Ordering::SeqCst);
        Ok(())
    }
}

impl<D: Disk> File<D> {
    /// Creates a new file. If a failed rewrite has left a file with this name, its contents are discarded.
    pub(super) fn create(disk: &D, path: &Path) -> io::Result<File<D>> {
        let (mut file, size) = File::open(disk, path)?;
        if size > 0 {
            // Sync the directory before the old contents are discarded. Otherwise a power failure may restore an older
            // manifest, which still names this file.
            disk.sync_dir(path.parent().unwrap_or(Path::new(".")))?;
            file.handle.disk.set_len(&file.handle.file, 0)?;
        }
        (file.size, file.is_new) = (0, true);
        Ok(file)
    }

    /// Opens a file that was loaded, and syncs it. Its bytes may be in memory only. Without the sync, clients could see
    /// data that is lost later, and a following file would require this file to be complete.
    pub(super) fn reopen(disk: &D, path: &Path) -> io::Result<File<D>> {
        let (file, size) = File::open(disk, path)?;
        file.handle.sync(size)?;
        Ok(file)
    }

    fn open(disk: &D, path: &Path) -> io::Result<(File<D>, u64)> {
        let file = disk.open_to_append(path)?;
        let size = disk.len(&file)?;
        let (synced, has_failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let handle = Arc::new(Handle { disk: disk.clone(), file, synced, has_failed });
        let path = path.to_path_buf();
        let file = File {
            handle,
            path,
            size,
            is_torn: false,
            is_new: false,
            has_begun: false,
            second: 0,
            preface: Vec::new(),
            install: None,
        };
        Ok((file, size))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the manifest that names the file. The manifest is written before the first transaction is appended.
    pub(super) fn installing(mut self, home: Home, manifest: Manifest) -> File<D> {
        self.install = Some((home, manifest));
        self
    }

    /// Sets the database in which the first commands of the file run, until one of them selects another.
    pub(super) fn begin_in(&mut self, db: DbIndex) {
        request::encode(&mut self.preface, &["SELECT", &db.number().to_string()]);
    }

    /// Syncs `before` after its last write. So if data in this file is durable, all earlier files are durable, and only
    /// the last file can be torn. Then adds this file to the files that are loaded, unless it is already one of them.
    pub(super) fn follow(
        &mut self,
        before: Option<&mut File<D>>,
        timestamps: bool,
    ) -> Result<(), Trouble> {
        if let Some(before) = before {
            before.cut_torn()?;
            before.sync().map_err(Trouble::Sync)?;
        }
        self.begin(timestamps)?;
        if let Some((home, manifest)) = &self.install {
            home.write(&self.handle.disk, manifest)
                .map_err(|failed| Trouble::Write(failed.error))?;
            self.install = None;
        }
        Ok(())
    }

    /// The handle with which the file is synced during writes, and the number of bytes written so far.
    pub(super) fn handle(&self) -> (Arc<Handle<D>>, u64) {
        (Arc::clone(&self.handle), self.size)
    }

    /// Blocks until the written data would survive a power failure.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.handle.sync(self.size)
    }

    /// Writes the first batch of the file, unless it has been written. After that, the manifest may list the file. With
    /// `timestamps`, the time in seconds comes first, as in Redis, because tools expect it in the first line.
    pub(super) fn begin(&mut self, timestamps: bool) -> Result<(), Trouble> {
        if !self.has_begun {
            let preface = std::mem::take(&mut self.preface);
            if let Err(trouble) = self.write_batch(0, &preface, timestamps) {
                self.preface = preface;
                return Err(trouble);
            }
            self.sync().map_err(Trouble::Sync)?;
            if self.is_new {
                let dir = self.path.parent().unwrap_or(Path::new("."));
                self.handle.disk.sync_dir(dir).map_err(Trouble::Write)?;
            }
            self.has_begun = true;
        }
        Ok(())
    }

    /// Appends a batch whose last transaction has this ticket. If `timestamps` is set, a timestamp precedes it. Returns
    /// the number of bytes written. A partial write is truncated, at the latest before the next batch.
    pub(super) fn append(
        &mut self,
        ticket: u64,
        bytes: &[u8],
        timestamps: bool,
    ) -> Result<u64, Trouble> {
        self.begin(timestamps)?;
        self.write_batch(ticket, bytes, timestamps)
    }

    fn write_batch(&mut self, ticket: u64, bytes: &[u8], timestamps: bool) -> Result<u64, Trouble> {
        self.cut_torn()?;
        let mut head = Vec::with_capacity(encode::BATCH_LINE_BYTES_MAX);
        let second = (unix_ms() / 1000).cast_signed();
        if timestamps && second != self.second {
            encode::timestamp(&mut head, second);
            self.second = second;
        }
        let unsynced = self.size + head.len() as u64 - self.handle.synced.load(Ordering::SeqCst);
        encode::batch_line_with_unsynced(&mut head, unsynced, ticket, bytes);
        if let Err(error) = self.handle.write_all(&head, bytes) {
            self.is_torn = true;
            // The timestamp was not written, so the next batch needs it again.
            self.second = 0;
            return Err(match self.cut_torn() {
                Err(Trouble::Sync(lost)) => Trouble::Sync(lost),
                // If truncating fails too, the first error is more informative.
                Ok(()) | Err(Trouble::Write(_)) => Trouble::Write(error),
            });
        }
        let bytes = (head.len() + bytes.len()) as u64;
        self.size += bytes;
        Ok(bytes)
    }

    /// Truncates the file to its last complete batch. Bytes after this batch would make the next batch unreadable. The
    /// truncation is synced, because otherwise a power failure could leave a mix of removed pages and pages of the next
    /// batch, which would also be unreadable.
    fn cut_torn(&mut self) -> Result<(), Trouble> {
        if self.is_torn {
            let cut = self.handle.disk.set_len(&self.handle.file, self.size);
            cut.map_err(Trouble::Write)?;
            self.sync().map_err(Trouble::Sync)?;
            self.is_torn = false;
        }
        Ok(())
    }
}

impl<D: Disk> Handle<D> {
    fn write_all(&self, mut head: &[u8], mut body: &[u8]) -> io::Result<()> {
        while head.len() + body.len() > 0 {
            match self.disk.append(&self.file, head, body) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    // A short write: the next call writes the rest or returns the error.
                    let of_head = written.min(head.len());
                    head = &head[of_head..];
                    body = body.get(written - of_head..).unwrap_or_default();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
