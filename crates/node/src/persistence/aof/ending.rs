//! Handling of a file that is incomplete or damaged when it is loaded.

use crate::persistence::disk::Disk;
use brisk_config::os_reason;
use brisk_persist::aof::AofError;
use std::io;
use std::path::Path;

/// The advice if a file is damaged.
pub const FIX: &str = "make a backup of your AOF file, then use ./brisk-check-aof --fix \
                       <filename.manifest>";

/// The length to which a file is truncated if reading it failed with `error`. Only an incomplete last command can be
/// cut off, only in the last file, and only if the settings allow it (`may_cut`).
///
/// # Errors
/// The file is damaged in another way; the error is the text for the log.
pub fn cut_at(name: &str, error: &AofError, is_last: bool, may_cut: bool) -> Result<u64, String> {
    let Some(at) = error.truncate_at() else {
        return Err(match error {
            AofError::Io(error) => {
                let reason = os_reason(error);
                format!("Unrecoverable error reading the append only file {name}: {reason}")
            }
            _ => format!("Bad file format reading the append only file {name}: {error}; {FIX}"),
        });
    };
    if !is_last {
        return Err(format!(
            "Fatal error: the AOF file {name} is incomplete ({error}), and it is not the last one: {FIX}"
        ));
    }
    if !may_cut {
        return Err(format!(
            "Unexpected end of file reading the append only file {name} ({error}). You can: 1) {FIX}. \
             2) Alternatively you can set the 'aof-load-truncated' configuration option to yes and \
             restart the server."
        ));
    }
    Ok(at)
}

/// Truncates and syncs the file, so that new batches are appended after its last complete command.
///
/// # Errors
/// A text for the log.
pub fn cut<D: Disk>(disk: &D, path: &Path, name: &str, at: u64) -> Result<(), String> {
    let cut = || -> io::Result<()> {
        let file = disk.open_to_append(path)?;
        disk.set_len(&file, at)?;
        disk.sync(&file)
    };
    cut().map_err(|error| format!("Error truncating the AOF file {name}: {}", os_reason(&error)))
}
