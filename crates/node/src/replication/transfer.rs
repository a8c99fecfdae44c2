//! The dataset of one moment on its way to the replicas that requested it. A cut is written to a file,
//! and then the file is sent; or the cut is written to a [`Pipe`], from which replicas receive it at the
//! same time. Some replicas request a snapshot without keys, which needs no cut.

use super::pipe::{Next, Pipe};
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
    /// `None` if no keys are sent.
    cut: Option<Arc<Cut>>,
    began: Instant,
    /// How many replicas have not got it all.
    wanted: AtomicUsize,
    /// Where it is written to, if not to a file.
    pipe: Option<Pipe>,
    outcome: OnceLock<Outcome>,
}

/// What came of writing it.
pub enum Outcome {
    Failed,
    File(Payload),
    /// All of it is in the pipe.
    Streamed,
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
    pub fn new(cut: Arc<Cut>, from: u64, pipe: Option<Pipe>) -> Transfer {
        Transfer::begun(Some(cut), from, pipe)
    }

    /// A transfer of the present dataset without its keys.
    pub fn without_keys(from: u64, pipe: Pipe) -> Transfer {
        Transfer::begun(None, from, Some(pipe))
    }

    fn begun(cut: Option<Arc<Cut>>, from: u64, pipe: Option<Pipe>) -> Transfer {
        let (wanted, outcome) = (AtomicUsize::new(0), OnceLock::new());
        Transfer { from, cut, began: Instant::now(), wanted, pipe, outcome }
    }

    /// From where its replicas get it while it is written.
    pub fn pipe(&self) -> Option<&Pipe> {
        self.pipe.as_ref()
    }

    /// The cut that provides the keys; `None` if none are sent.
    pub fn cut(&self) -> Option<&Arc<Cut>> {
        self.cut.as_ref()
    }

    /// A replica of this worker wants it; its number.
    pub(super) fn join(&self, worker: usize) -> u64 {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        self.pipe.as_ref().map_or(0, |pipe| pipe.join(worker))
    }

    /// What there is in the pipe for a replica.
    pub(super) fn next(&self, number: u64) -> Next {
        self.pipe.as_ref().map_or(Next::NotYet, |pipe| pipe.take(number))
    }

    /// A replica has it, or is gone. Nobody writes what nobody wants.
    pub(super) fn leave(&self, number: u64) {
        if let Some(pipe) = &self.pipe {
            pipe.leave(number);
        }
        if self.wanted.fetch_sub(1, Ordering::SeqCst) == 1
            && self.outcome.get().is_none()
            && let Some(cut) = &self.cut
        {
            cut.give_up("no replica waits for it any more");
        }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > 0
    }

    /// It was written, or that failed.
    pub(super) fn end(&self, outcome: Outcome) {
        // There is one thread that writes it.
        let _ = self.outcome.set(outcome);
    }

    /// What came of writing it, when that has ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.get()
    }

    /// What there is to say of it while it is being written.
    pub fn underway(&self) -> Underway {
        let of_cut = |of: fn(&Cut) -> u64| self.cut.as_ref().map_or(0, |cut| of(cut));
        Underway {
            seconds: self.began.elapsed().as_secs(),
            keys: of_cut(Cut::keys),
            keys_written: of_cut(Cut::keys_written),
            bytes: of_cut(Cut::bytes) + self.pipe.as_ref().map_or(0, Pipe::bytes),
        }
    }
}
