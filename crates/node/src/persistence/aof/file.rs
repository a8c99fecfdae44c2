//! The file that is written.

use super::home::Home;
use crate::persistence::disk::Disk;
use brisk_persist::aof::{Manifest, writer as encode};
use brisk_reactor::unix_ms;
use std::fs;
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};

/// A file that is appended to.
pub(in crate::persistence) struct File {
    handle: fs::File,
    path: PathBuf,
    /// Bytes up to the end of the last whole batch.
    size: u64,
    /// Behind them may stand a part of a batch.
    is_torn: bool,
    /// The second that the last timestamp in it names.
    second: i64,
    /// What makes it one of the files that are loaded, to be done before anything is written to it.
    install: Option<(Home, Manifest)>,
}

impl File {
    /// Opens a file to append to; creates it if there is none.
    pub(super) fn open(path: &Path) -> io::Result<File> {
        let handle = fs::File::options().append(true).create(true).open(path)?;
        let size = handle.metadata()?.len();
        Ok(File {
            handle,
            path: path.to_path_buf(),
            size,
            is_torn: false,
            second: 0,
            install: None,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest that names it takes its place before it is written to.
    pub(super) fn installing(mut self, home: Home, manifest: Manifest) -> File {
        self.install = Some((home, manifest));
        self
    }

    /// Makes it one of the files that are loaded, if it is not yet.
    pub(super) fn install<D: Disk>(&mut self, disk: &D) -> io::Result<()> {
        if let Some((home, manifest)) = &self.install {
            home.write(disk, manifest)?;
            self.install = None;
        }
        Ok(())
    }

    /// Another handle of the same file.
    pub(super) fn handle(&self) -> io::Result<fs::File> {
        self.handle.try_clone()
    }

    /// Returns when what was written would survive the loss of power.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.handle.sync_data()
    }

    /// Appends a batch whose last transaction has this ticket, behind the second if `timestamps` says
    /// so; the bytes that it takes. What an error left of it is cut off, at the latest before the next
    /// batch.
    pub(super) fn append(
        &mut self,
        ticket: u64,
        bytes: &[u8],
        timestamps: bool,
    ) -> io::Result<u64> {
        self.cut_torn()?;
        let mut head = Vec::with_capacity(encode::BATCH_LINE_BYTES_MAX);
        let second = (unix_ms() / 1000).cast_signed();
        if timestamps && second != self.second {
            encode::timestamp(&mut head, second);
            self.second = second;
        }
        encode::batch_line(&mut head, ticket, bytes);
        let written = write_all(&self.handle, &head, bytes);
        if let Err(error) = written {
            self.is_torn = true;
            // It was not written, so the next batch needs its line again.
            self.second = 0;
            // If this fails too, the first error says more.
            let _ = self.cut_torn();
            return Err(error);
        }
        let bytes = (head.len() + bytes.len()) as u64;
        self.size += bytes;
        Ok(bytes)
    }
}

impl File {
    /// What stands behind the last whole batch would make the next unreadable.
    fn cut_torn(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.handle.set_len(self.size)?;
            self.is_torn = false;
        }
        Ok(())
    }
}

fn write_all(mut file: &fs::File, head: &[u8], body: &[u8]) -> io::Result<()> {
    let total = head.len() + body.len();
    let written = loop {
        match file.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if written < total {
        // The rest, or why not.
        file.write_all(head.get(written..).unwrap_or_default())?;
        file.write_all(&body[written.saturating_sub(head.len())..])?;
    }
    Ok(())
}
