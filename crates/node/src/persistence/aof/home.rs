//! The manifest and its directory.

use crate::persistence::disk::Disk;
use brisk_config::{Config, os_reason};
use brisk_persist::aof::manifest::{MANIFEST_BYTES_MAX, manifest_name, temporary_manifest_name};
use brisk_persist::aof::{Manifest, ManifestFile};
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A manifest did not take its place.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) error: io::Error,
    /// It may have, though: what it names must stay.
    pub(super) may_be_there: bool,
}

/// Where the files lie, by the settings.
#[derive(Debug, Clone)]
pub struct Home {
    /// `appenddirname` in `dir`.
    pub dir: PathBuf,
    /// `appendfilename`.
    pub name: Vec<u8>,
    /// The single file of servers before version 7: `appendfilename` in `dir`.
    pub single: PathBuf,
}

impl Home {
    pub fn of(config: &Config) -> Home {
        let persistence = &config.persistence;
        Home {
            dir: config.path_in_dir(&persistence.appenddirname),
            name: persistence.appendfilename.as_path().as_os_str().as_bytes().to_vec(),
            single: config.path_in_dir(&persistence.appendfilename),
        }
    }

    pub fn path(&self, file: &ManifestFile) -> PathBuf {
        file.path_in(&self.dir)
    }

    fn manifest(&self) -> PathBuf {
        self.dir.join(OsStr::from_bytes(&manifest_name(&self.name)))
    }

    /// The name of a base that is being written.
    pub fn temporary_base(&self) -> PathBuf {
        self.dir.join(format!("temp-rewriteaof-bg-{}.aof", std::process::id()))
    }

    /// The manifest; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or is damaged: in the words for the log.
    pub(super) fn read<D: Disk>(&self, disk: &D) -> Result<Option<Manifest>, String> {
        let path = self.manifest();
        let failed = |reason: String| format!("The AOF manifest {}: {reason}", path.display());
        let mut text = Vec::new();
        let most = MANIFEST_BYTES_MAX as u64 + 1;
        let read = disk.open(&path).and_then(|file| file.take(most).read_to_end(&mut text));
        match read {
            Ok(_) => Manifest::parse(&text).map(Some).map_err(|error| failed(error.with_line())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(os_reason(&error))),
        }
    }

    /// Makes the directory, if there is none, so that it would survive the loss of power.
    pub(super) fn create<D: Disk>(&self, disk: &D) -> io::Result<()> {
        disk.create_dir(&self.dir)?;
        // It may have been made by a process that did not come to this.
        disk.sync_dir(
            self.dir.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        )
    }

    /// The files to begin with; `None` if there are none. A single file of a server before version 7
    /// is moved to where it belongs.
    ///
    /// # Errors
    /// In the words for the log.
    pub fn find<D: Disk>(&self, disk: &D) -> Result<Option<Manifest>, String> {
        let failed = |error: io::Error| {
            format!("Can't upgrade the AOF file {}: {}", self.single.display(), os_reason(&error))
        };
        let found = self.read(disk)?;
        // The manifest is first, so that an upgrade that did not come to its end is finished.
        let upgraded = Manifest::upgraded(&self.name);
        let place = self.dir.join(OsStr::from_bytes(&self.name));
        let may_be_unfinished = found.as_ref().is_none_or(|found| *found == upgraded);
        if !may_be_unfinished || disk.len_of(&self.single).map_err(failed)?.is_none() {
            return Ok(found);
        }
        if found.is_some() && disk.len_of(&place).map_err(failed)?.is_some() {
            return Ok(found);
        }
        self.create(disk).map_err(failed)?;
        self.write(disk, &upgraded).map_err(|unwritten| failed(unwritten.error))?;
        disk.rename(&self.single, &place).map_err(failed)?;
        disk.sync_dir(&self.dir).map_err(failed)?;
        Ok(Some(upgraded))
    }

    /// Replaces the manifest: at every moment there is a whole one.
    pub(super) fn write<D: Disk>(&self, disk: &D, manifest: &Manifest) -> Result<(), Unwritten> {
        let temporary = self.dir.join(OsStr::from_bytes(&temporary_manifest_name(&self.name)));
        let failed = |error| Unwritten { error, may_be_there: false };
        let mut file = disk.create(&temporary).map_err(failed)?;
        let written = file
            .write_all(&manifest.format())
            .and_then(|()| file.flush())
            .and_then(|()| disk.sync(&file))
            .and_then(|()| disk.rename(&temporary, &self.manifest()));
        if let Err(error) = written {
            let _ = disk.remove(&temporary);
            return Err(failed(error));
        }
        disk.sync_dir(&self.dir).map_err(|error| Unwritten { error, may_be_there: true })
    }

    /// Removes files that are history. One that cannot be removed stays, and costs room only.
    pub(super) fn remove<D: Disk>(&self, disk: &D, files: &[ManifestFile]) {
        for file in files {
            let _ = disk.remove(&self.path(file));
        }
    }
}
