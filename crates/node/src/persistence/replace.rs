//! Replaces a file atomically: completely or not at all.
//!
//! ```text
//! create temporary ── write ── sync ── rename over the old one ── sync the directory
//! ```
//! The old file stays until the new file is complete and on the disk. After any failure or process exit, there is one
//! complete file with this name. The temporary file is removed after a failure.

use super::disk::Disk;
use brisk_config::os_reason;
use std::io::{self, Write};
use std::path::Path;
use thiserror::Error;

/// The number of bytes between two syncs, if the file is synced in steps.
const STEP_BYTES: usize = 4 << 20;

/// The file to replace, and how to replace it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'t> {
    /// The directory of both files.
    pub(crate) dir: &'t Path,
    pub(crate) name: &'t Path,
    pub(crate) temporary: &'t Path,
    /// Syncs the file in steps, so that the final sync does not have to write everything.
    pub(crate) by_steps: bool,
}

/// Why a file was not replaced. The texts are those that people search logs for.
#[derive(Debug, Error)]
pub enum Failure {
    #[error(
        "Failed opening the temp RDB file {name} (in server root dir {dir}) for saving: {reason}"
    )]
    Create { name: String, dir: String, reason: String },
    #[error("Write error saving DB on disk({action}): {reason}")]
    Write { action: &'static str, reason: String },
    #[error(
        "Error moving temp DB file {temporary} on the final destination {name} (in server root dir \
         {dir}): {reason}"
    )]
    Rename { temporary: String, name: String, dir: String, reason: String },
}

/// Replaces a file with the output of `write`. O(output).
pub(crate) fn replace<D: Disk>(
    disk: &D,
    target: Target<'_>,
    write: impl FnOnce(&mut Stepwise<'_, D>) -> io::Result<()>,
) -> Result<(), Failure> {
    let (temporary, dir) = (target.dir.join(target.temporary), target.dir.display().to_string());
    let file = disk.create(&temporary).map_err(|error| Failure::Create {
        name: target.temporary.display().to_string(),
        dir: dir.clone(),
        reason: os_reason(&error),
    })?;
    let failed = |action| move |error| Failure::Write { action, reason: os_reason(&error) };
    let step = if target.by_steps { STEP_BYTES } else { usize::MAX };
    let replaced = (|| {
        let mut file = Stepwise { disk, file, step, unsynced: 0 };
        write(&mut file).map_err(failed("rdbSaveRio"))?;
        file.flush().map_err(failed("fflush"))?;
        disk.sync(&file.file).map_err(failed("fsync"))?;
        drop(file);
        disk.rename(&temporary, &target.dir.join(target.name)).map_err(|error| {
            Failure::Rename {
                temporary: target.temporary.display().to_string(),
                name: target.name.display().to_string(),
                dir,
                reason: os_reason(&error),
            }
        })?;
        // The directory contains the new name, so it must be synced.
        disk.sync_dir(target.dir).map_err(failed("fsyncFileDir"))
    })();
    if replaced.is_err() {
        // After the rename, there is no temporary file. If the temporary file cannot be removed, nothing else can be
        // done.
        let _ = disk.remove(&temporary);
    }
    replaced
}

/// A file that is synced each time a certain number of bytes were written.
pub(crate) struct Stepwise<'d, D: Disk> {
    disk: &'d D,
    file: D::File,
    step: usize,
    unsynced: usize,
}

impl<D: Disk> Write for Stepwise<'_, D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced += written;
        if self.unsynced >= self.step {
            self.disk.sync(&self.file)?;
            self.unsynced = 0;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::simulated::Simulated;

    const OLD: &[u8] = b"old";
    const NEW: &[u8] = b"new and longer";

    /// A disk that contains the old file.
    fn disk(seed: u64) -> Simulated {
        let disk = Simulated::new(seed);
        disk.put_dir(Path::new("dir"));
        disk.put(Path::new("dir/file"), OLD);
        disk
    }

    fn attempt(disk: &Simulated, contents: &[u8]) -> Result<(), Failure> {
        let (dir, name, temporary) = (Path::new("dir"), Path::new("file"), Path::new("temp"));
        let target = Target { dir, name, temporary, by_steps: true };
        replace(disk, target, |file| file.write_all(contents))
    }

    /// The contents of the file, and true if there is a temporary file.
    fn left(disk: &Simulated) -> (Vec<u8>, bool) {
        let file = disk.contents(Path::new("dir/file")).unwrap();
        (file, disk.contents(Path::new("dir/temp")).is_some())
    }

    #[test]
    fn the_order_is_the_one_that_survives_a_loss_of_power() {
        let disk = disk(0);
        attempt(&disk, NEW).unwrap();
        assert_eq!(left(&disk), (NEW.to_vec(), false));
        assert_eq!(disk.calls(), ["create", "write", "sync", "rename", "sync_dir"]);
    }

    #[test]
    fn after_any_failure_only_a_complete_file_exists() {
        for (call, said) in [
            "Failed opening the temp RDB file temp (in server root dir ",
            "Write error saving DB on disk(rdbSaveRio): other error",
            "Write error saving DB on disk(fsync): other error",
            "Error moving temp DB file temp on the final destination file (in server root dir ",
            "Write error saving DB on disk(fsyncFileDir): other error",
        ]
        .into_iter()
        .enumerate()
        {
            let disk = disk(0);
            disk.fail_at(call);
            let text = attempt(&disk, NEW).unwrap_err().to_string();
            assert!(text.starts_with(said), "{call}: {text}");
            // After the rename, the new file exists, but it may not survive a power failure.
            let expected = if call < 4 { OLD } else { NEW };
            assert_eq!(left(&disk), (expected.to_vec(), false), "{call}");
            disk.repair();
            attempt(&disk, NEW).unwrap();
            disk.restart();
            assert_eq!(left(&disk), (NEW.to_vec(), false), "{call}");
        }
    }

    #[test]
    fn a_full_disk_leaves_the_old_file_and_nothing_else() {
        for room in 0..NEW.len() {
            let disk = disk(0);
            disk.leave_room(room);
            let text = attempt(&disk, NEW).unwrap_err().to_string();
            assert_eq!(text, "Write error saving DB on disk(rdbSaveRio): no storage space");
            assert_eq!(left(&disk), (OLD.to_vec(), false), "{room}");
            assert!(!disk.calls().contains(&"rename"), "{room}");
        }
    }

    #[test]
    fn a_large_file_reaches_the_disk_in_steps() {
        let disk = disk(0);
        attempt(&disk, &vec![1; STEP_BYTES * 2]).unwrap();
        assert!(disk.calls().iter().filter(|call| **call == "sync").count() >= 2);
    }

    #[test]
    fn a_loss_of_power_leaves_the_old_file_or_the_new_one() {
        let mut seen = [false; 2];
        for seed in 0..500 {
            for call in 0..6 {
                let disk = disk(seed);
                disk.cut_at(call);
                let done = attempt(&disk, NEW);
                disk.restart();
                let (file, _) = left(&disk);
                assert!(file == NEW || (file == OLD && done.is_err()), "seed {seed} call {call}");
                seen[usize::from(file == NEW)] |= done.is_err();
                // Leftovers do not prevent the next attempt.
                attempt(&disk, NEW).unwrap();
            }
        }
        assert_eq!(seen, [true; 2]);
    }
}
