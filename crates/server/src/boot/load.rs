//! Loads the saved dataset while workers reply with LOADING errors.

use brisk_engine::snapshot::LoadFailure;
use brisk_node::core::conditions::Condition;
use brisk_node::core::shared::Shared;
use brisk_node::persistence::loading::steps::LoadingSteps;
use brisk_node::persistence::loading::{aof, rdb};
use brisk_node::persistence::snapshot::Unreadable;
use brisk_node::replication::role;
use brisk_persist::LoadError;
use std::time::Instant;

/// Loads the dataset, if one exists. Afterwards, all commands may run. Called on a separate thread, so that the workers
/// do not wait. O(file).
///
/// # Errors
/// The dataset cannot be loaded. The error names the problem, the position, and the remedy. The
/// file is not changed.
pub(crate) fn load(shared: &'static Shared, steps: &LoadingSteps) -> Result<(), String> {
    if shared.config().persistence.appendonly {
        aof::load(shared, steps)?;
    } else {
        load_snapshot(shared, steps)?;
    }
    // A client may request the memory metrics before the timers run for the first time.
    shared.observe.metrics.sample_memory();
    shared.conditions.set(Condition::Loading, false);
    role::begin(shared);
    Ok(())
}

fn load_snapshot(shared: &'static Shared, steps: &LoadingSteps) -> Result<(), String> {
    let began = Instant::now();
    match rdb::load_at_start(shared) {
        Ok(loaded) => {
            steps.restore(loaded.functions).map_err(|error| {
                fatal(&format!("a function library cannot be loaded: {error}"), DAMAGED)
            })?;
            role::inherit(shared, &loaded.lineage, loaded.expired_keys);
            let seconds = began.elapsed().as_secs_f64();
            shared.log.notice(format_args!("DB loaded from disk: {seconds:.3} seconds"));
        }
        Err(unreadable) if unreadable.is_missing() => {}
        Err(unreadable) => {
            log_damage(shared, &unreadable);
            return Err(fatal(&unreadable.to_string(), advice(&unreadable)));
        }
    }
    Ok(())
}

/// Logs that the server exits because of a damaged file, with the phrases that people search logs
/// for.
fn log_damage(shared: &Shared, unreadable: &Unreadable) {
    let Unreadable { failure, position, .. } = unreadable;
    if matches!(failure, LoadFailure::File(LoadError::Io(_)) | LoadFailure::Thread(_)) {
        return;
    }
    let log = &shared.log;
    log.warning(format_args!("Internal error in RDB reading offset {position} -> {failure}"));
    log.warning(format_args!("Terminating server after rdb file reading failure."));
}

const DAMAGED: &str = "brisk-check-rdb shows details. Replace the file with a backup, or move it away to \
                       start with an empty dataset";

fn advice(unreadable: &Unreadable) -> &'static str {
    match &unreadable.failure {
        LoadFailure::File(LoadError::UnsupportedVersion(_)) => {
            "Start a server that supports this version, or move the file away to start with an empty \
             dataset"
        }
        LoadFailure::File(LoadError::Io(_)) => {
            "Check that the user may read the file, and that the disk works"
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
