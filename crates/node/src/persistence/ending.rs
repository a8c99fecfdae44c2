//! The end of the server, and what is brought to the disk before it.
//!
//! After the snapshot nobody is served any more: what a client would write then, and be answered,
//! would be lost.

use super::aof::rewrite;
use super::{bgsave, snapshot};
use crate::core::Core;
use crate::core::shared::Shared;
use brisk_config::Config;
use brisk_config::choice::ShutdownMode;
use brisk_engine::{CommandError, Result};

/// Whether the dataset is saved before the server ends.
pub fn saves(config: &Config, how: ShutdownMode) -> bool {
    how.save || (!how.nosave && !config.persistence.save.is_empty())
}

/// Whether a worker has something to do before the server ends.
pub fn concerns_workers(shared: &Shared, how: ShutdownMode) -> bool {
    shared.aof.is_on() || rewrite::is_first(shared) || saves(&shared.config(), how)
}

/// Ends the server, after a snapshot if there is to be one. O(all data) then.
///
/// # Errors
/// The server goes on: the snapshot failed, or, with [`CommandError::SlotBusy`], everybody would
/// have to stand still and a script takes long.
pub fn end(core: &Core, how: ShutdownMode) -> Result<()> {
    let shared = core.shared;
    if bgsave::is_saving(shared) {
        shared.log.warning(format_args!("There is a child saving an .rdb. Killing it!"));
        shared.snapshots.give_up();
        shared.replication.give_up("the server is about to end");
    }
    // While the dataset is being loaded, the file has all of it.
    if !shared.is_loading() && concerns_workers(shared, how) {
        if rewrite::is_first(shared) {
            let log = &shared.log;
            if !how.force {
                // What is in no snapshot either would be lost.
                log.warning(format_args!("Writing initial AOF, can't exit."));
                return Err(cannot_end(shared));
            }
            log.warning(format_args!("Writing initial AOF. Exit anyway."));
        }
        rewrite::stop(shared, "the server ends");
        let saves = saves(&core.config, how);
        let quiesced = match core.stop_others() {
            // A script takes long, and what it has half done is in no file: the end is what it was asked
            // for. What others write meanwhile is written before they are answered.
            Err(CommandError::SlotBusy) if !saves => None,
            other => other?,
        };
        if shared.aof.is_on() {
            shared.log.notice(format_args!("Calling fsync() on the AOF file."));
            shared.pump(core.id);
            if let Err(error) = shared.aof.flush(shared) {
                let log = &shared.log;
                log.warning(format_args!("The AOF file could not be written: {error}"));
            }
        }
        if saves {
            shared.log.notice(format_args!("Saving the final RDB snapshot before exiting."));
        }
        if saves && snapshot::save(core).is_err() {
            if !how.force {
                shared.log.warning(format_args!("Error trying to save the DB, can't exit."));
                return Err(cannot_end(shared));
            }
            shared.log.warning(format_args!("Error trying to save the DB. Exit anyway."));
        }
        if let Some(quiesced) = quiesced {
            quiesced.keep_for_good();
        }
    }
    shared.shutdown.ask(0);
    Ok(())
}

fn cannot_end(shared: &Shared) -> CommandError {
    shared.log.warning(format_args!(
        "Errors trying to shut down the server. Check the logs for more information."
    ));
    CommandError::text("ERR Errors trying to SHUTDOWN. Check logs.")
}
