//! What persistence needs of a file system. Tests have one of their own, which fails and loses power
//! (`simulated`).

use std::fs::{self, File};
use std::io::{self, ErrorKind, IoSlice, Read, Seek, Write};
use std::path::Path;

/// A file system; a clone is the same one.
pub trait Disk: Clone {
    type File: Read + Write + Seek;

    /// An empty file of this name, whatever there was before.
    fn create(&self, path: &Path) -> io::Result<Self::File>;
    fn open(&self, path: &Path) -> io::Result<Self::File>;
    /// A file whose writes go to its end; an empty one if there is none of this name.
    fn open_to_append(&self, path: &Path) -> io::Result<Self::File>;
    /// Writes both to the end, or as much of them as it says: one system call.
    fn append(&self, file: &Self::File, head: &[u8], body: &[u8]) -> io::Result<usize>;
    fn len(&self, file: &Self::File) -> io::Result<u64>;
    fn set_len(&self, file: &Self::File, bytes: u64) -> io::Result<()>;
    /// Returns when what was written would survive the loss of power. After an error nobody knows
    /// what is there: to try again would lie, since the kernel forgets what it could not write.
    fn sync(&self, file: &Self::File) -> io::Result<()>;
    /// The same without what only the directory shows of a file: its times.
    fn sync_data(&self, file: &Self::File) -> io::Result<()>;
    /// The length of a file; `None` if there is no file of this name.
    fn len_of(&self, path: &Path) -> io::Result<Option<u64>>;
    /// At every moment there is a whole file at `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// The same as [`Disk::sync`] for the names in a directory.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// A directory, if there is none of this name.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
}

/// An empty file in a directory whose name is removed at once: whenever the process ends, it is gone.
pub fn nameless(dir: &Path, name: &str) -> io::Result<File> {
    let path = dir.join(name);
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// That of the system.
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
