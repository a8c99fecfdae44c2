//! The dataset of one moment on its way to the replicas that asked for it: first a cut that is being
//! written to a file, then that file.

use crate::persistence::state::Underway;
use brisk_engine::keyspace::Cut;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// One of them. Its replicas share it.
pub struct Transfer {
    /// The place of the cut in the stream: what follows is not in the file.
    pub from: u64,
    cut: Arc<Cut>,
    began: Instant,
    /// How many replicas have not got it all.
    wanted: AtomicUsize,
    /// What came of writing it; `None` inside if that failed.
    outcome: OnceLock<Option<Payload>>,
}

/// A file that is written to its end, and has no name any more: it is gone with the last who reads it.
pub struct Payload {
    file: File,
    bytes: u64,
}

impl Payload {
    pub fn new(file: File) -> io::Result<Payload> {
        let bytes = file.metadata()?.len();
        Ok(Payload { file, bytes })
    }

    /// How long it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What stands from `at` on, `most` bytes of it unless it ends before.
    ///
    /// # Errors
    /// It cannot be read, or is shorter than it was.
    pub fn read(&self, at: u64, most: usize) -> io::Result<Vec<u8>> {
        let left = self.bytes.saturating_sub(at);
        let len = usize::try_from(left).map_or(most, |left| left.min(most));
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

impl Transfer {
    /// Of a cut that was made just now.
    pub fn new(cut: Arc<Cut>, from: u64) -> Transfer {
        let (wanted, outcome) = (AtomicUsize::new(0), OnceLock::new());
        Transfer { from, cut, began: Instant::now(), wanted, outcome }
    }

    pub fn cut(&self) -> &Arc<Cut> {
        &self.cut
    }

    /// A replica wants it.
    pub(super) fn join(&self) {
        self.wanted.fetch_add(1, Ordering::SeqCst);
    }

    /// A replica has it, or is gone. Nobody writes what nobody wants.
    pub(super) fn leave(&self) {
        if self.wanted.fetch_sub(1, Ordering::SeqCst) == 1 && self.outcome.get().is_none() {
            self.cut.give_up("no replica waits for it any more");
        }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > 0
    }

    /// It was written, or that failed.
    pub(super) fn end(&self, payload: Option<Payload>) {
        // There is one thread that writes it.
        let _ = self.outcome.set(payload);
    }

    /// What came of writing it, when that has ended; `None` inside if it failed.
    pub fn outcome(&self) -> Option<Option<&Payload>> {
        self.outcome.get().map(Option::as_ref)
    }

    /// What there is to say of it while it is being written.
    pub fn underway(&self) -> Underway {
        Underway {
            seconds: self.began.elapsed().as_secs(),
            keys: self.cut.keys(),
            keys_written: self.cut.keys_written(),
            bytes: self.cut.bytes(),
        }
    }
}
