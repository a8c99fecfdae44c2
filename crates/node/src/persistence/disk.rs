//! What saving and loading need of a file system, and a file system that fails, for tests.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// A file system.
pub(crate) trait Disk {
    type File: Read + Write;

    /// An empty file of this name, whatever there was before.
    fn create(&self, path: &Path) -> io::Result<Self::File>;
    fn open(&self, path: &Path) -> io::Result<Self::File>;
    /// Returns when what was written would survive the loss of power. After an error nobody knows
    /// what is there: to try again would lie, since the kernel forgets what it could not write.
    fn sync(&self, file: &Self::File) -> io::Result<()>;
    /// At every moment there is a whole file at `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// The same as [`Disk::sync`] for the names in a directory.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// A directory, if there is none of this name.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
}

/// That of the system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct System;

impl Disk for System {
    type File = File;

    fn create(&self, path: &Path) -> io::Result<File> {
        File::create(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        File::open(path)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
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
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
pub(crate) mod faulty {
    //! A disk that fails one of its calls, and may have little room.

    use super::{Disk, System};
    use std::cell::{Cell, RefCell};
    use std::fs::File;
    use std::io::{self, ErrorKind, Read, Write};
    use std::path::Path;
    use std::rc::Rc;

    /// The system's, with faults.
    #[derive(Debug, Clone)]
    pub(crate) struct Faulty(Rc<State>);

    #[derive(Debug)]
    struct State {
        /// The call that fails, counted from 0.
        fails_at: usize,
        /// Bytes that can still be written.
        room: Cell<usize>,
        calls: RefCell<Vec<&'static str>>,
    }

    #[derive(Debug)]
    pub(crate) struct FaultyFile {
        file: File,
        disk: Faulty,
    }

    impl Faulty {
        /// Fails the call of this number.
        pub(crate) fn failing(call: usize) -> Faulty {
            Faulty::new(call, usize::MAX)
        }

        /// Takes so many bytes.
        pub(crate) fn with_room(bytes: usize) -> Faulty {
            Faulty::new(usize::MAX, bytes)
        }

        fn new(fails_at: usize, room: usize) -> Faulty {
            let room = Cell::new(room);
            Faulty(Rc::new(State { fails_at, room, calls: RefCell::default() }))
        }

        /// What was called so far.
        pub(crate) fn calls(&self) -> Vec<&'static str> {
            self.0.calls.borrow().clone()
        }

        fn call(&self, name: &'static str) -> io::Result<()> {
            let mut calls = self.0.calls.borrow_mut();
            calls.push(name);
            if calls.len() - 1 == self.0.fails_at {
                return Err(ErrorKind::Other.into());
            }
            Ok(())
        }
    }

    impl Disk for Faulty {
        type File = FaultyFile;

        fn create(&self, path: &Path) -> io::Result<FaultyFile> {
            self.call("create")?;
            Ok(FaultyFile { file: System.create(path)?, disk: self.clone() })
        }

        fn open(&self, path: &Path) -> io::Result<FaultyFile> {
            self.call("open")?;
            Ok(FaultyFile { file: System.open(path)?, disk: self.clone() })
        }

        fn sync(&self, file: &FaultyFile) -> io::Result<()> {
            self.call("sync")?;
            System.sync(&file.file)
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.call("rename")?;
            System.rename(from, to)
        }

        fn sync_dir(&self, dir: &Path) -> io::Result<()> {
            self.call("sync_dir")?;
            System.sync_dir(dir)
        }

        fn remove(&self, path: &Path) -> io::Result<()> {
            self.call("remove")?;
            System.remove(path)
        }

        fn create_dir(&self, path: &Path) -> io::Result<()> {
            self.call("create_dir")?;
            System.create_dir(path)
        }
    }

    impl Write for FaultyFile {
        /// What there is room for, as a disk that runs full does.
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.disk.call("write")?;
            let room = &self.disk.0.room;
            let some = bytes.len().min(room.get());
            if some == 0 && !bytes.is_empty() {
                return Err(ErrorKind::StorageFull.into());
            }
            room.set(room.get() - some);
            self.file.write(&bytes[..some])
        }

        fn flush(&mut self) -> io::Result<()> {
            self.file.flush()
        }
    }

    impl Read for FaultyFile {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.disk.call("read")?;
            self.file.read(into)
        }
    }
}
