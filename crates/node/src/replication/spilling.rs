//! The thread that moves the oldest part of the stream to a file. See `spill`.

use super::spill::Move;
use crate::core::shared::Shared;
use crate::persistence::disk;
use brisk_config::os_reason;
use rustix::fs::{StatVfs, fstatvfs};
use std::fs::File;
use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::{Builder, park_timeout};
use std::time::Duration;

/// How often the thread checks whether a replica still needs the file. The thread is also woken when there is work.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The largest size of the file.
const FILE_BYTES_MAX: u64 = 64 << 30;
/// The file must leave a twentieth of the disk free, or this many bytes if that is less, because the append-only file
/// needs the space more. A twentieth of a large disk would be tens of gigabytes, and disks often have less free space.
const FREE_BYTES: u64 = 1 << 30;
const FREE_SHARE: u64 = 20;

/// Starts the thread if replicas are being synchronized and the thread is not running.
pub fn begin_if_due(shared: &'static Shared) {
    let replication = &shared.replication;
    let stream = &replication.stream;
    if !replication.begin_spilling() {
        return;
    }
    let run = move || {
        while let Some(next) = replication.next_move() {
            let Some(job) = next else {
                park_timeout(LOOK_AGAIN);
                continue;
            };
            match carry_out(shared, &job) {
                Ok(file) => replication.end_move(&job, file),
                Err(error) => {
                    let reason = os_reason(&error);
                    shared.log.warning(format_args!(
                        "Can't write the replication stream to a file: {reason}. \
                         client-output-buffer-limit counts all unsent data of the replicas"
                    ));
                    stream.give_up_spilling();
                }
            }
        }
        stream.end_spilling();
    };
    if let Err(error) = Builder::new().name("brisk-spill".to_owned()).spawn(run) {
        shared.log.warning(format_args!(
            "Can't write the replication stream to a file: cannot start a thread: {error}"
        ));
        stream.end_spilling();
    }
}

fn carry_out(shared: &Shared, job: &Move) -> io::Result<Arc<File>> {
    let (file, mut at) = match job.file() {
        Some(there) => there,
        None => {
            let name = format!("temp-stream-{}.bin", std::process::id());
            let file = disk::nameless(shared.config().process.dir.as_path(), &name)?;
            shared.log.notice(format_args!(
                "Changes during the synchronization of replicas are written to a file, because they \
                 exceed the memory limit"
            ));
            (Arc::new(file), 0)
        }
    };
    if at > FILE_BYTES_MAX {
        return Err(Error::new(ErrorKind::StorageFull, "it has its greatest size"));
    }
    if !leaves_room(&fstatvfs(&*file)?) {
        return Err(Error::new(ErrorKind::StorageFull, "the rest of the disk is left to others"));
    }
    for bytes in job.blocks() {
        file.write_all_at(bytes, at)?;
        at += bytes.len() as u64;
    }
    Ok(file)
}

/// True if the disk has more free space than the file must leave.
fn leaves_room(disk: &StatVfs) -> bool {
    let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    bytes(disk.f_bavail) >= FREE_BYTES.min(bytes(disk.f_blocks) / FREE_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(blocks: u64, free: u64) -> StatVfs {
        StatVfs {
            f_bsize: 4096,
            f_frsize: 4096,
            f_blocks: blocks,
            f_bfree: free,
            f_bavail: free,
            f_files: 0,
            f_ffree: 0,
            f_favail: 0,
            f_fsid: 0,
            f_flag: rustix::fs::StatVfsMountFlags::empty(),
            f_namemax: 255,
        }
    }

    #[test]
    fn a_large_disk_keeps_a_gigabyte_and_a_small_one_a_twentieth() {
        let gib = (1 << 30) / 4096;
        assert!(leaves_room(&disk(252 * gib, 6 * gib)));
        assert!(leaves_room(&disk(252 * gib, gib)));
        assert!(!leaves_room(&disk(252 * gib, gib - 1)));
        assert!(leaves_room(&disk(gib, gib / 20 + 1)));
        assert!(!leaves_room(&disk(gib, gib / 20 - 1)));
    }
}
