//! The file system calls that persistence needs. Tests use an implementation that simulates errors and power failures
//! (`simulated`).

use std::fs::{self, File};
use std::io::{self, ErrorKind, IoSlice, Read, Seek, Write};
use std::path::Path;

/// A file system. A clone refers to the same file system.
pub trait Disk: Clone {
    type File: Read + Write + Seek;

    /// Creates an empty file with this name, which replaces an existing file.
    fn create(&self, path: &Path) -> io::Result<Self::File>;
    fn open(&self, path: &Path) -> io::Result<Self::File>;
    /// Opens a file for appending; creates it if it does not exist.
    fn open_to_append(&self, path: &Path) -> io::Result<Self::File>;
    /// Appends both buffers with one system call. Returns the number of bytes appended, which may be less than the
    /// length of both.
    fn append(&self, file: &Self::File, head: &[u8], body: &[u8]) -> io::Result<usize>;
    fn len(&self, file: &Self::File) -> io::Result<u64>;
    fn set_len(&self, file: &Self::File, bytes: u64) -> io::Result<()>;
    /// Blocks until the written data would survive a power failure. After an error, the contents of the disk are
    /// unknown. A retry may report success although data is lost, because the kernel drops data that it could not
    /// write.
    fn sync(&self, file: &Self::File) -> io::Result<()>;
    /// The same as `sync`, except that the file's timestamps, which only directory listings show, need not be on the
    /// disk.
    fn sync_data(&self, file: &Self::File) -> io::Result<()>;
    /// The length of a file; `None` if there is no file with this name.
    fn len_of(&self, path: &Path) -> io::Result<Option<u64>>;
    /// Renames a file atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// The same as [`Disk::sync`] for the names in a directory.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory if it does not exist.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
}

/// Creates an empty file in a directory and removes its name immediately, so that the file disappears when the process
/// ends, even if it crashes.
pub fn nameless(dir: &Path, name: &str) -> io::Result<File> {
    let path = dir.join(name);
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// The file system of the operating system.
#[derive(Debug, Clone, Copy)]
pub struct System;

impl Disk for System {
    type File = File;

    fn create(&self, path: &Path) -> io::Result<File> {
        File::create(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        File::open(path)
    }

    fn open_to_append(&self, path: &Path) -> io::Result<File> {
        File::options().append(true).create(true).open(path)
    }

    fn append(&self, mut file: &File, head: &[u8], body: &[u8]) -> io::Result<usize> {
        file.write_vectored(&[IoSlice::new(head), IoSlice::new(body)])
    }

    fn len(&self, file: &File) -> io::Result<u64> {
        Ok(file.metadata()?.len())
    }

    fn set_len(&self, file: &File, bytes: u64) -> io::Result<()> {
        file.set_len(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn sync_data(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn len_of(&self, path: &Path) -> io::Result<Option<u64>> {
        match fs::metadata(path) {
            Ok(data) => Ok(data.is_file().then_some(data.len())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            other => other,
        }
    }
}
