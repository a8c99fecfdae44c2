//! The dataset that was saved, loaded before anybody is served.

use crate::commands::scripting::libraries;
use brisk_engine::UnixMs;
use brisk_engine::snapshot::{Duplicate, LoadFailure};
use brisk_node::core::Core;
use brisk_node::persistence::snapshot::{self, Unreadable};
use brisk_node::script::libraries::Policy;
use brisk_persist::LoadError;
use brisk_reactor::unix_ms;
use std::time::Instant;

/// Loads the snapshot, if there is one. Only before other workers begin. O(file).
///
/// # Errors
/// It cannot be loaded: what is wrong, where, and what to do. The file is left alone.
pub(super) fn load(core: &mut Core) -> Result<(), String> {
    let began = Instant::now();
    // What has expired by now is not loaded.
    core.env.set_now(UnixMs(unix_ms()));
    let functions = match snapshot::load(core, Duplicate::Refuse) {
        Ok((_, functions)) => functions,
        Err(unreadable) if unreadable.is_missing() => return Ok(()),
        Err(unreadable) => return Err(fatal(&unreadable.to_string(), advice(&unreadable))),
    };
    let sources = functions.iter().map(Vec::as_slice);
    libraries::restore_sources(core, sources, Policy::Append)
        .map_err(|error| fatal(&format!("a library of functions: {error}"), DAMAGED))?;
    core.shared
        .log
        .notice(format_args!("DB loaded from disk: {:.3} seconds", began.elapsed().as_secs_f64()));
    Ok(())
}

const DAMAGED: &str = "redis-check-rdb shows more. Put a backup in its place, or move it away to \
                       start with an empty dataset";

fn advice(unreadable: &Unreadable) -> &'static str {
    match &unreadable.failure {
        LoadFailure::File(LoadError::UnsupportedVersion(_)) => {
            "Start a server that knows this version, or move the file away to start with an empty \
             dataset"
        }
        LoadFailure::File(LoadError::Io(_)) => {
            "See that this user may read it, and that the disk is sound"
        }
        LoadFailure::File(LoadError::UnsupportedModule { .. }) => {
            "Delete the keys of modules where it was written, and save again"
        }
        LoadFailure::Database(_) => "It was written by a server with more databases",
        _ => DAMAGED,
    }
}

fn fatal(what: &str, advice: &str) -> String {
    format!("Fatal error loading the DB: {what}. {advice}. The file is left as it is. Exiting.")
}
