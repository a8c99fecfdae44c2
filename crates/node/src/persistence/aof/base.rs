//! The snapshot that a base, or an old single file, begins with.

use crate::core::Core;
use brisk_engine::snapshot::{self, Duplicate, LoadFailure};
use brisk_persist::rdb::{Event, RdbReader};
use std::fs::File;
use std::path::Path;

/// Loads it, keys that have expired meanwhile included: what follows may be about them. Gives where it ends
/// in the file, and the sources of the libraries in it. O(snapshot).
///
/// # Errors
/// What is wrong with it.
pub fn load(core: &Core, path: &Path) -> Result<(u64, Vec<Vec<u8>>), LoadFailure> {
    let open = || File::open(path).map_err(brisk_persist::LoadError::from);
    let mut reader = RdbReader::new(open()?)?;
    if !core.config.persistence.rdbchecksum {
        reader = reader.ignore_checksum();
    }
    let mut functions = Vec::new();
    let keyspace = &core.shared.keyspace;
    snapshot::load(keyspace, &core.env, &mut reader, Duplicate::Refuse, |event| {
        if let Event::Function(source) = event {
            functions.push(source);
        }
    })?;
    Ok((reader.position(), functions))
}
