//! The transfer of a snapshot to the replicas that requested it. The snapshot is written either to a file that is then
//! sent, or to a [`SnapshotPipe`] from which replicas receive it at the same time. Some replicas request a snapshot
//! without keys, which needs no [`Snapshot`] of the keyspace.

use super::pipe::{PipeRead, SnapshotPipe};
use crate::persistence::state::Underway;
use brisk_engine::keyspace::Snapshot;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A snapshot that several replicas share.
pub struct SnapshotTransfer {
    /// The position in the stream at which the snapshot began. The snapshot contains earlier changes only.
    pub from: u64,
    /// `None` if no keys are sent.
    snapshot: Option<Arc<Snapshot>>,
    began: Instant,
    /// The number of replicas that have not received the whole snapshot.
    wanted: AtomicUsize,
    /// The pipe to which the snapshot is written. `None` if it is written to a file.
    pipe: Option<SnapshotPipe>,
    outcome: OnceLock<TransferOutcome>,
}

/// The result of writing a snapshot.
pub enum TransferOutcome {
    Failed,
    File(SnapshotFile),
    /// The whole snapshot has been written to the pipe.
    Streamed,
}

/// A complete, unnamed file. It is freed when its last reader drops it.
pub struct SnapshotFile {
    file: File,
    bytes: u64,
}

impl SnapshotFile {
    pub fn new(file: File) -> io::Result<SnapshotFile> {
        let bytes = file.metadata()?.len();
        Ok(SnapshotFile { file, bytes })
    }

    /// The length of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads `most` bytes from `at` on, or fewer at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read, or is shorter than before.
    pub fn read(&self, at: u64, most: usize) -> io::Result<Vec<u8>> {
        let left = self.bytes.saturating_sub(at);
        let len = usize::try_from(left).map_or(most, |left| left.min(most));
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

impl SnapshotTransfer {
    /// A transfer of a snapshot that has just begun.
    pub fn new(snapshot: Arc<Snapshot>, from: u64, pipe: Option<SnapshotPipe>) -> SnapshotTransfer {
        SnapshotTransfer::begun(Some(snapshot), from, pipe)
    }

    /// A transfer of the current dataset without its keys.
    pub fn without_keys(from: u64, pipe: SnapshotPipe) -> SnapshotTransfer {
        SnapshotTransfer::begun(None, from, Some(pipe))
    }

    fn begun(
        snapshot: Option<Arc<Snapshot>>,
        from: u64,
        pipe: Option<SnapshotPipe>,
    ) -> SnapshotTransfer {
        let (wanted, outcome) = (AtomicUsize::new(0), OnceLock::new());
        SnapshotTransfer { from, snapshot, began: Instant::now(), wanted, pipe, outcome }
    }

    /// The pipe from which the replicas receive the snapshot while it is being written.
    pub fn pipe(&self) -> Option<&SnapshotPipe> {
        self.pipe.as_ref()
    }

    /// The snapshot that provides the keys; `None` if none are sent.
    pub fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        self.snapshot.as_ref()
    }

    /// Adds a replica of this worker and returns its number.
    pub(super) fn join(&self, worker: usize) -> u64 {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        self.pipe.as_ref().map_or(0, |pipe| pipe.join(worker))
    }

    /// The next block in the pipe for a replica.
    pub(super) fn next(&self, number: u64) -> PipeRead {
        self.pipe.as_ref().map_or(PipeRead::NotYet, |pipe| pipe.take(number))
    }

    /// Removes a replica that has the snapshot or has disconnected. When the last replica leaves, writing ends.
    pub(super) fn leave(&self, number: u64) {
        if let Some(pipe) = &self.pipe {
            pipe.leave(number);
        }
        if self.wanted.fetch_sub(1, Ordering::SeqCst) == 1
            && self.outcome.get().is_none()
            && let Some(snapshot) = &self.snapshot
        {
            snapshot.give_up("no replica waits for it any more");
        }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > 0
    }

    /// Sets the result of writing.
    pub(super) fn end(&self, outcome: TransferOutcome) {
        // One thread writes the snapshot, so the result is set once.
        let _ = self.outcome.set(outcome);
    }

    /// The result of writing, after it has ended.
    pub fn outcome(&self) -> Option<&TransferOutcome> {
        self.outcome.get()
    }

    /// The progress of writing.
    pub fn underway(&self) -> Underway {
        let of_snapshot =
            |of: fn(&Snapshot) -> u64| self.snapshot.as_ref().map_or(0, |snapshot| of(snapshot));
        Underway {
            seconds: self.began.elapsed().as_secs(),
            keys: of_snapshot(Snapshot::keys),
            keys_written: of_snapshot(Snapshot::keys_written),
            bytes: of_snapshot(Snapshot::bytes) + self.pipe.as_ref().map_or(0, SnapshotPipe::bytes),
        }
    }
}
