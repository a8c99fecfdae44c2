//! The patterns of `include` lines: the files that a path with `*`, `?` or `[…]` matches.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::glob;

/// Returns the files that `pattern` matches, sorted by name; at most `max`.
///
/// A path without pattern characters stands for itself, even if it does not exist. A pattern may
/// match nothing. Names that begin with a dot match only patterns that begin with one.
pub(super) fn expand(base: &Path, pattern: &[u8], max: usize) -> Vec<PathBuf> {
    let joined = base.join(OsStr::from_bytes(pattern));
    if !glob::is_pattern(pattern) {
        return vec![joined];
    }
    let mut found = vec![PathBuf::new()];
    for part in joined.components() {
        let part = part.as_os_str();
        found = if glob::is_pattern(part.as_bytes()) {
            found
                .iter()
                .flat_map(|directory| fitting(directory, part.as_bytes()))
                .take(max)
                .collect()
        } else {
            found.into_iter().map(|directory| directory.join(part)).collect()
        };
    }
    found.retain(|path| path.exists());
    found
}

/// Returns the entries of the directory `directory` that match `pattern`, sorted; none if it cannot
/// be read.
fn fitting(directory: &Path, pattern: &[u8]) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let fits = |name: &[u8]| {
        (name.first() != Some(&b'.') || pattern.first() == Some(&b'.'))
            && glob::matches(pattern, name, false)
    };
    let mut found: Vec<_> =
        names.filter(|name| fits(name.as_bytes())).map(|name| directory.join(name)).collect();
    found.sort();
    found
}
