//! The file that is written.
//!
//! Whoever opens it begins with an empty batch and has that on the disk before anything else is written.
//! Behind a batch, a reader knows that what it cannot understand was written here and lost, whatever is
//! left of it.

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

/// Why something did not come as far as it should.
#[derive(Debug)]
pub(in crate::persistence) enum Trouble {
    /// It was not written, and everything is as before: it can be tried again.
    Write(io::Error),
    /// What was written may be lost: nothing that is in the file can be promised any more.
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
    /// Bytes up to the end of the last whole batch.
    size: u64,
    /// Behind them may stand a part of a batch.
    is_torn: bool,
    /// Its name may not be on the disk.
    is_new: bool,
    /// The batch that it begins with here is on the disk.
    has_begun: bool,
    /// The second that the last timestamp in it names.
    second: i64,
    /// What stands in its first batch: which database what follows is about, if that does not say so.
    preface: Vec<u8>,
    /// What makes it one of the files that are loaded, to be done before anything is written to it.
    install: Option<(Home, Manifest)>,
}

/// What is needed to put a file on the disk while it is written to.
pub(super) struct Handle<D: Disk = System> {
    disk: D,
    file: D::File,
    /// Bytes that are on the disk.
    synced: AtomicU64,
    /// Bytes were lost: that the next call succeeds would say nothing of them.
    has_failed: AtomicBool,
}

impl<D: Disk> Handle<D> {
    /// Returns when the first `size` bytes, which were written before, would survive the loss of power.
    pub(super) fn sync(&self, size: u64) -> io::Result<()> {
        if self.has_failed.load(Ordering::SeqCst) {
            return Err(io::Error::other("what was written before is lost"));
        }
        if let Err(error) = self.disk.sync_data(&self.file) {
            self.has_failed.store(true, Ordering::SeqCst);
            return Err(error);
        }
        // One that was begun before may have failed meanwhile.
        if self.has_failed.load(Ordering::SeqCst) {
            return Err(io::Error::other("what was written before is lost"));
        }
        self.synced.fetch_max(size, Ordering::SeqCst);
        Ok(())
    }
}

impl<D: Disk> File<D> {
    /// A new file. What a rewrite that failed has left under its name is not part of it.
    pub(super) fn create(disk: &D, path: &Path) -> io::Result<File<D>> {
        let (mut file, size) = File::open(disk, path)?;
        if size > 0 {
            // The manifest that named it may come back if the one that does not is not on the disk.
            disk.sync_dir(path.parent().unwrap_or(Path::new(".")))?;
            file.handle.disk.set_len(&file.handle.file, 0)?;
        }
        (file.size, file.is_new) = (0, true);
        Ok(file)
    }

    /// A file that was loaded. Its bytes may be in memory only: whoever was shown them would not be told
    /// so, and a file behind it would make it one that must be whole.
    pub(super) fn go_on(disk: &D, path: &Path) -> io::Result<File<D>> {
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

    /// The manifest that names it takes its place before it is written to.
    pub(super) fn installing(mut self, home: Home, manifest: Manifest) -> File<D> {
        self.install = Some((home, manifest));
        self
    }

    /// What follows in it is about this database until it names another.
    pub(super) fn begin_in(&mut self, db: DbIndex) {
        request::encode(&mut self.preface, &["SELECT", &db.number().to_string()]);
    }

    /// Nothing more is written to `before`: what is in it is put on the disk, so that what is told of
    /// this file holds for all before, and no file but the last can be torn. Then this is made one of
    /// the files that are loaded, if it is not yet.
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

    /// What puts it on the disk beside writes, and the bytes that are written so far.
    pub(super) fn handle(&self) -> (Arc<Handle<D>>, u64) {
        (Arc::clone(&self.handle), self.size)
    }

    /// Returns when what was written would survive the loss of power.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.handle.sync(self.size)
    }

    /// Writes the first batch of the file, if that was not done. After that the manifest may list the
    /// file. With `timestamps` the time in seconds comes first, as in Redis: tools look for it in the
    /// first line.
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

    /// Appends a batch whose last transaction has this ticket, behind the second if `timestamps` says
    /// so; the bytes that it takes. What an error left of it is cut off, at the latest before the next
    /// batch.
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
            // It was not written, so the next batch needs its line again.
            self.second = 0;
            return Err(match self.cut_torn() {
                Err(Trouble::Sync(lost)) => Trouble::Sync(lost),
                // If this fails too, the first error says more.
                Ok(()) | Err(Trouble::Write(_)) => Trouble::Write(error),
            });
        }
        let bytes = (head.len() + bytes.len()) as u64;
        self.size += bytes;
        Ok(bytes)
    }

    /// What stands behind the last whole batch would make the next unreadable; and so it would if pages of
    /// both were there after a loss of power.
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
                    // What is left of it goes on with the rest, or tells why not.
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
