//! The thread that moves the oldest part of the stream to a file: see `spill`.

use super::spill::Move;
use crate::core::shared::Shared;
use crate::persistence::disk;
use brisk_config::os_reason;
use rustix::fs::fstatvfs;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::{Builder, park_timeout};
use std::time::Duration;

/// How long the thread waits before it looks whether anybody needs it: it is woken when there is work.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Bytes of the stream in the file, at most.
const FILE_BYTES_MAX: u64 = 64 << 30;
/// The file leaves at least this share of the disk free: the append-only file needs it more.
const FREE_SHARE: u64 = 20;

/// While replicas are being synchronised, has a thread move what memory is not to hold.
pub fn begin_if_due(shared: &'static Shared) {
    let feed = &shared.replication.feed;
    if !feed.begin_spilling() {
        return;
    }
    let run = move || {
        while let Some(next) = feed.next_move() {
            let Some(job) = next else {
                park_timeout(LOOK_AGAIN);
                continue;
            };
            match carry_out(shared, &job) {
                Ok(file) => feed.end_move(&job, file),
                Err(error) => {
                    let reason = os_reason(&error);
                    shared.log.warning(format_args!(
                        "Can't hold the stream for replicas in a file: {reason}. \
                         client-output-buffer-limit counts all that they were not sent"
                    ));
                    feed.give_up_spilling();
                }
            }
        }
        feed.end_spilling();
    };
    if let Err(error) = Builder::new().name("brisk-spill".to_owned()).spawn(run) {
        shared.log.warning(format_args!("Can't hold the stream in a file, no thread: {error}"));
        feed.end_spilling();
    }
}

fn carry_out(shared: &Shared, job: &Move) -> io::Result<Arc<File>> {
    let (file, mut at) = match job.file() {
        Some(there) => there,
        None => {
            let name = format!("temp-stream-{}.bin", std::process::id());
            let file = disk::nameless(shared.config().process.dir.as_path(), &name)?;
            shared.log.notice(format_args!(
                "What changes while replicas get their snapshots goes into a file: it is more than \
                 memory is to hold"
            ));
            (Arc::new(file), 0)
        }
    };
    let disk = fstatvfs(&*file)?;
    if at > FILE_BYTES_MAX || disk.f_bavail < disk.f_blocks / FREE_SHARE {
        return Err(ErrorKind::StorageFull.into());
    }
    for bytes in job.blocks() {
        file.write_all_at(bytes, at)?;
        at += bytes.len() as u64;
    }
    Ok(file)
}
