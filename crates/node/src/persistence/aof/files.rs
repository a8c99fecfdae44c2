//! Changes to the set of files: when a server starts, and when a rewrite begins and ends. The steps are ordered so that
//! a power failure or an error can interrupt them at any point.

use super::file::{File, Trouble};
use super::home::{Home, Unwritten};
use crate::persistence::disk::Disk;
use crate::persistence::replace::{Failure, Stepwise, Target, replace};
use brisk_config::os_reason;
use brisk_persist::aof::{BaseFormat, Manifest, ManifestFile, rebuild};
use brisk_persist::rdb::RdbReader;
use brisk_reactor::unix_ms;
use std::io;
use std::path::Path;

/// How a base is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct BaseStyle {
    pub(super) format: BaseFormat,
    /// Syncs the file in steps.
    pub(super) by_steps: bool,
    /// The value of `aof-timestamp-enabled`, for a base of commands and for the first batch of a file.
    pub(super) has_timestamps: bool,
}

/// Continues the files of a manifest, which were loaded. If there are none, creates new files; `write_empty` then
/// writes the base as a snapshot without keys. Returns the file to write to, and the manifest that names it.
///
/// # Errors
/// The error is a text for the log. All files are unchanged.
pub(super) fn open<D: Disk>(
    disk: &D,
    home: &Home,
    manifest: Option<Manifest>,
    style: BaseStyle,
    write_empty: impl FnOnce(&mut Stepwise<'_, D>) -> io::Result<()>,
) -> Result<(File<D>, Manifest), String> {
    let failed = |path: &Path, error: io::Error| {
        format!("Can't open the append-only file {}: {}", path.display(), os_reason(&error))
    };
    home.create(disk).map_err(|error| failed(&home.dir, error))?;
    let is_new = manifest.is_none();
    let mut manifest = manifest.unwrap_or_default();
    if is_new {
        manifest.replace_base(&home.name, style.format);
        write_base(disk, home, &manifest, style, write_empty)
            .map_err(|failure| failure.to_string())?;
    }
    let Some(last) = manifest.increments().last().map(|file| home.path(file)) else {
        if let Some(base) = manifest.base().filter(|_| !is_new) {
            // An increment will follow, so the base must be complete from now on.
            let path = home.path(base);
            let synced = disk.open(&path).and_then(|file| disk.sync(&file));
            synced.map_err(|error| failed(&path, error))?;
        }
        let path = home.path(manifest.new_increment(&home.name));
        let mut file = File::create(disk, &path).map_err(|error| failed(&path, error))?;
        file.begin(style.has_timestamps).map_err(|trouble| failed(&path, trouble.into_error()))?;
        home.write(disk, &manifest).map_err(|unwritten| failed(&home.dir, unwritten.error))?;
        return Ok((file, manifest));
    };
    // A process that renamed the manifest may have exited before it synced the directory.
    disk.sync_dir(&home.dir).map_err(|error| failed(&home.dir, error))?;
    let mut file = File::reopen(disk, &last).map_err(|error| failed(&last, error))?;
    match file.begin(style.has_timestamps) {
        // A full disk must not prevent reads. Write commands get an error.
        Ok(()) | Err(Trouble::Write(_)) => Ok((file, manifest)),
        Err(Trouble::Sync(error)) => Err(failed(&last, error)),
    }
}

/// Creates the directory, and the increment for a rewrite if it needs one. No manifest names the increment yet. Does
/// not wait for the disk.
pub(super) fn begin_rewrite<D: Disk>(
    disk: &D,
    home: &Home,
    increment: Option<&ManifestFile>,
) -> io::Result<Option<File<D>>> {
    disk.create_dir(&home.dir)?;
    increment.map(|increment| File::create(disk, &home.path(increment))).transpose()
}

/// Writes the base of a manifest: the snapshot that `write_snapshot` writes, or the same data as
/// commands.
pub(super) fn write_base<D: Disk>(
    disk: &D,
    home: &Home,
    manifest: &Manifest,
    style: BaseStyle,
    write_snapshot: impl FnOnce(&mut Stepwise<'_, D>) -> io::Result<()>,
) -> Result<(), Failure> {
    home.create(disk)
        .map_err(|error| Failure::Write { action: "fsyncFileDir", reason: os_reason(&error) })?;
    let path = manifest.base().map(|base| home.path(base)).unwrap_or_default();
    let (temporary, dir) = (home.temporary_base(), &*home.dir);
    let target = Target { dir, name: &path, temporary: &temporary, by_steps: style.by_steps };
    if style.format == BaseFormat::Rdb {
        return replace(disk, target, write_snapshot);
    }
    // Emitted entries are already encoded, so the snapshot is written first and then converted to commands.
    let snapshot = temporary.with_extension("rdb");
    replace(disk, Target { name: &snapshot, ..target }, write_snapshot)?;
    let unix_s = || (unix_ms() / 1000).cast_signed();
    let written = replace(disk, target, |file| {
        let mut reader = RdbReader::new(disk.open(&snapshot)?).map_err(io::Error::other)?;
        rebuild::write(&mut reader, style.has_timestamps.then(unix_s), file)
            .map_err(io::Error::other)
    });
    // No later cleanup would find the snapshot.
    let _ = disk.remove(&snapshot);
    written
}

/// Removes a base that was written for a manifest but is not needed.
pub(super) fn discard_base<D: Disk>(disk: &D, home: &Home, manifest: &Manifest) {
    if let Some(base) = manifest.base() {
        let _ = disk.remove(&home.path(base));
    }
}

/// Replaces the manifest after its base and increments were written. Removes the replaced files if `removes_history` is
/// set; otherwise the manifest lists them as history, until a later removal. Afterwards `manifest` is in force, even
/// after an error with `may_be_there`.
pub(super) fn name_base<D: Disk>(
    disk: &D,
    home: &Home,
    manifest: &mut Manifest,
    removes_history: bool,
) -> Result<(), Unwritten> {
    if let Err(unwritten) = home.write(disk, manifest) {
        if !unwritten.may_be_there {
            discard_base(disk, home, manifest);
        }
        return Err(unwritten);
    }
    if removes_history {
        remove_history(disk, home, manifest);
    }
    Ok(())
}

/// Removes replaced files. The disk already has the version of `manifest` that lists them as history.
pub(super) fn remove_history<D: Disk>(disk: &D, home: &Home, manifest: &mut Manifest) {
    if manifest.history().is_empty() {
        return;
    }
    home.remove(disk, &manifest.take_history());
    // The old manifest still names the removed files, but only as history. If this write fails, a later one corrects
    // it.
    let _ = home.write(disk, manifest);
}

/// Total size of these files in bytes. A file whose size cannot be read counts as 0.
pub(super) fn size<'f, D: Disk>(
    disk: &D,
    home: &Home,
    files: impl Iterator<Item = &'f ManifestFile>,
) -> u64 {
    let size = |file: &ManifestFile| disk.len_of(&home.path(file)).ok().flatten().unwrap_or(0);
    files.map(size).sum()
}
