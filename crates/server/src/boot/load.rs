//! The dataset that was saved, loaded while workers answer that it is being loaded.

use brisk_engine::snapshot::LoadFailure;
use brisk_node::core::mailbox::Message;
use brisk_node::core::shared::{Shared, armed};
use brisk_node::persistence::loading;
use brisk_node::persistence::snapshot::Unreadable;
use brisk_persist::LoadError;
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

/// Loads the dataset, if there is one; then all commands may run. On a thread of its own, which
/// the workers do not wait for. O(file).
///
/// # Errors
/// It cannot be loaded: what is wrong, where, and what to do. The file is left alone.
pub(super) fn load(shared: &Shared, replayed: &Receiver<Replayed>) -> Result<(), String> {
    if shared.config().persistence.appendonly {
        replayed.recv().unwrap_or_else(|_| Err("the worker has ended".to_owned()))?;
    } else {
        load_snapshot(shared)?;
    }
    // A client may ask before the timers have their first turn.
    shared.observe.figures.sample_memory();
    shared.arm(armed::LOADING, false);
    Ok(())
}

/// What came of loading the append-only file.
pub(super) type Replayed = Result<(), String>;

fn load_snapshot(shared: &Shared) -> Result<(), String> {
    let began = Instant::now();
    match loading::load_at_start(shared) {
        Ok(functions) => {
            restore(shared, functions)?;
            let seconds = began.elapsed().as_secs_f64();
            shared.log.notice(format_args!("DB loaded from disk: {seconds:.3} seconds"));
        }
        Err(unreadable) if unreadable.is_missing() => {}
        Err(unreadable) => return Err(fatal(&unreadable.to_string(), advice(&unreadable))),
    }
    Ok(())
}

/// Has the first worker put the libraries in force.
fn restore(shared: &Shared, sources: Vec<Vec<u8>>) -> Result<(), String> {
    if sources.is_empty() {
        return Ok(());
    }
    let (done, is_done) = mpsc::sync_channel(1);
    shared.mailboxes[0].send(Message::Restore { sources, done });
    // The worker ends only with the server, and then nobody hears this.
    let restored = is_done.recv().unwrap_or_else(|_| Err("the worker has ended".to_owned()));
    restored.map_err(|error| fatal(&format!("a library of functions: {error}"), DAMAGED))
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
