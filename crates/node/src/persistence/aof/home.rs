//! The manifest and its directory.

use crate::persistence::disk::Disk;
use brisk_config::{Config, os_reason};
use brisk_persist::aof::manifest::{MANIFEST_BYTES_MAX, manifest_name, temporary_manifest_name};
use brisk_persist::aof::{Manifest, ManifestFile};
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Replacing the manifest failed.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) error: io::Error,
    /// True if the new manifest may be on the disk despite the error. The files that it names must then stay.
    pub(super) may_be_there: bool,
}

/// The location of the files, according to the settings.
#[derive(Debug, Clone)]
pub struct Home {
    /// `appenddirname` in `dir`.
    pub dir: PathBuf,
    /// `appendfilename`.
    pub name: Vec<u8>,
    /// The single append-only file of servers older than Redis 7: `appendfilename` in `dir`.
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
    /// The manifest cannot be read or is damaged. The error is a text for the log.
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

    /// Creates the directory if it does not exist, and makes sure that it survives a power failure.
    pub(super) fn create<D: Disk>(&self, disk: &D) -> io::Result<()> {
        disk.create_dir(&self.dir)?;
        // Sync even if the directory exists, because an earlier process may have exited between creating and syncing
        // it.
        disk.sync_dir(
            self.dir.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        )
    }

    /// The files to start with; `None` if there are none. The single file of a server older than Redis 7 is moved into
    /// the directory.
    ///
    /// # Errors
    /// A text for the log.
    pub fn find<D: Disk>(&self, disk: &D) -> Result<Option<Manifest>, String> {
        let failed = |error: io::Error| {
            format!("Can't upgrade the AOF file {}: {}", self.single.display(), os_reason(&error))
        };
        let found = self.read(disk)?;
        // The manifest is written first, so that an interrupted upgrade is completed later.
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

    /// Replaces the manifest atomically.
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

    /// Removes history files. A file that cannot be removed is left behind and only takes disk space.
    pub(super) fn remove<D: Disk>(&self, disk: &D, files: &[ManifestFile]) {
        for file in files {
            let _ = disk.remove(&self.path(file));
        }
    }
}
