//! The names on the disk and the files that they refer to.

use super::content::Content;
use brisk_testkit::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

#[derive(Default)]
pub(super) struct Volume {
    files: Vec<Content>,
    /// The names, as processes see them.
    names: Names,
    /// The names, as stored on the disk.
    synced: Names,
    /// Changes since the last sync, in order.
    unsynced: Vec<Change>,
}

#[derive(Default, Clone)]
struct Names {
    files: BTreeMap<PathBuf, usize>,
    dirs: BTreeSet<PathBuf>,
}

pub(super) enum Change {
    Create(PathBuf, usize),
    /// Atomic, even between two directories.
    Rename(PathBuf, PathBuf, usize),
    Remove(PathBuf, usize),
    CreateDir(PathBuf),
}

impl Change {
    fn is_in(&self, dir: &Path) -> bool {
        let is_in = |path: &Path| path.parent() == Some(dir);
        match self {
            Change::Create(path, _) | Change::Remove(path, _) | Change::CreateDir(path) => {
                is_in(path)
            }
            Change::Rename(from, to, _) => is_in(from) || is_in(to),
        }
    }
}

impl Names {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Create(path, file) => {
                self.files.insert(path.clone(), *file);
            }
            Change::Rename(from, to, file) => {
                self.take(from, *file);
                self.files.insert(to.clone(), *file);
            }
            Change::Remove(path, file) => self.take(path, *file),
            Change::CreateDir(path) => {
                self.dirs.insert(path.clone());
            }
        }
    }

    /// Removes a name, unless it refers to another file by now.
    fn take(&mut self, path: &Path, file: usize) {
        if self.files.get(path) == Some(&file) {
            self.files.remove(path);
        }
    }
}

impl Volume {
    pub(super) fn put(&mut self, path: &Path, bytes: &[u8]) {
        let file = self.files.len();
        self.files.push(Content::of(bytes));
        for names in [&mut self.names, &mut self.synced] {
            names.files.insert(path.to_path_buf(), file);
        }
    }

    pub(super) fn put_dir(&mut self, path: &Path) {
        for names in [&mut self.names, &mut self.synced] {
            names.dirs.insert(path.to_path_buf());
        }
    }

    pub(super) fn file(&self, path: &Path) -> Option<usize> {
        self.names.files.get(path).copied()
    }

    pub(super) fn content(&mut self, file: usize) -> &mut Content {
        &mut self.files[file]
    }

    pub(super) fn write(&mut self, file: usize, at: Option<usize>, bytes: &[u8]) {
        self.files[file].write(at, bytes);
    }

    pub(super) fn open_or_create(&mut self, path: &Path) -> io::Result<usize> {
        if let Some(file) = self.file(path) {
            return Ok(file);
        }
        if !path.parent().is_some_and(|dir| self.names.dirs.contains(dir)) {
            return Err(ErrorKind::NotFound.into());
        }
        self.files.push(Content::default());
        let file = self.files.len() - 1;
        self.change(Change::Create(path.to_path_buf(), file));
        Ok(file)
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        if !self.names.dirs.contains(path) {
            self.change(Change::CreateDir(path.to_path_buf()));
        }
        Ok(())
    }

    pub(super) fn change(&mut self, change: Change) {
        self.names.apply(&change);
        self.unsynced.push(change);
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) {
        let synced = &mut self.synced;
        self.unsynced.retain(|change| {
            let is_in = change.is_in(dir);
            if is_in {
                synced.apply(change);
            }
            !is_in
        });
    }

    /// After a power failure, processes see the contents of the disk: all, none, the earliest, or any subset of the
    /// unsynced changes.
    pub(super) fn lose_power(&mut self, random: &mut Random) {
        let percent = *random.pick(&[0, 100, 50, 50]);
        let is_in_order = random.percent(30);
        for change in std::mem::take(&mut self.unsynced) {
            if random.percent(percent) {
                self.synced.apply(&change);
            } else if is_in_order {
                break;
            }
        }
        // When a directory is lost, everything in it is lost.
        let Names { files, dirs } = &mut self.synced;
        files.retain(|path, _| path.parent().is_some_and(|dir| dirs.contains(dir)));
        self.names = self.synced.clone();
        for file in &mut self.files {
            file.lose_power(random);
        }
    }
}
