//! The steps of loading that a worker executes. They run between the worker's rounds, so that it continues to reply to
//! its clients (mostly with the error LOADING).

use super::replay::{Replay, ReplayError};
use crate::core::Core;
use crate::core::shared::Shared;
use crate::persistence::aof::rewrite;
use crate::script::libraries::Policy;
use crate::script::source;
use brisk_persist::aof::Manifest;
use brisk_structures::reclaim::Participant;
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// Largest number of steps that wait for the worker.
const STEPS_MAX: usize = 16;
/// The loader waits until the worker has executed a part of at least this size, so that few large parts are queued.
const LARGE_BYTES: usize = 1 << 20;
/// The worker loads for this long, then serves its clients.
const SLICE: Duration = Duration::from_millis(2);

/// Reports the end of a step that the loader waits for. An error is a text for the log.
type Done = SyncSender<Result<(), String>>;

enum Step {
    /// Load function libraries.
    Restore(Vec<Vec<u8>>, Done),
    /// Execute all commands of a part of a file.
    Execute(Vec<u8>, Range<u64>),
    /// Report that all earlier steps are done.
    Reach(Done),
    EndFile,
    /// Begin to append to the files of this manifest, which have all been loaded.
    Open(Option<Manifest>, Done),
}

/// The loader's end of the channels.
pub struct LoadingSteps {
    steps: SyncSender<Step>,
    unknown: Receiver<ReplayError>,
    shared: &'static Shared,
}

/// The worker's end of the channels.
pub struct StepsInbox {
    steps: Receiver<Step>,
    unknown: Sender<ReplayError>,
}

/// The worker's part in loading.
pub struct WorkerLoading {
    inbox: StepsInbox,
    replay: Option<Replay>,
    /// True if commands of the last part have not been executed yet.
    is_executing: bool,
}

/// The state of loading after a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadingProgress {
    More,
    /// No step is waiting. The loader wakes the worker when it sends one.
    Waits,
    /// The loader has finished.
    Over,
}

/// Creates both ends, for a loader and the first worker.
pub fn pair(shared: &'static Shared) -> (LoadingSteps, StepsInbox) {
    let (steps, inbox) = sync_channel(STEPS_MAX);
    let (unknown_sender, unknown) = mpsc::channel();
    (LoadingSteps { steps, unknown, shared }, StepsInbox { steps: inbox, unknown: unknown_sender })
}

impl LoadingSteps {
    fn send(&self, step: Step) {
        // The worker exists as long as the server.
        let _ = self.steps.send(step);
        self.shared.mailboxes.wake(0);
    }

    /// Sends a step and waits until it is done.
    fn wait_for(&self, step: impl FnOnce(Done) -> Step) -> Result<(), String> {
        let (done, is_done) = sync_channel(1);
        self.send(step(done));
        is_done.recv().unwrap_or_else(|_| Err("the worker has ended".to_owned()))
    }

    /// Loads function libraries.
    ///
    /// # Errors
    /// One of the libraries cannot be loaded.
    pub fn restore(&self, sources: Vec<Vec<u8>>) -> Result<(), String> {
        if sources.is_empty() { Ok(()) } else { self.wait_for(|done| Step::Restore(sources, done)) }
    }

    /// Sends the commands of a part of a file to the worker, and waits for their execution if the part is
    /// large.
    ///
    /// # Errors
    /// One of these commands, or an earlier one, is unknown.
    pub(super) fn execute(&self, commands: Vec<u8>, part: Range<u64>) -> Result<(), ReplayError> {
        let is_large = commands.len() >= LARGE_BYTES;
        self.send(Step::Execute(commands, part));
        if is_large { self.finish() } else { self.unknown.try_recv().map_or(Ok(()), Err) }
    }

    /// Waits until all commands so far are executed.
    fn finish(&self) -> Result<(), ReplayError> {
        // This step cannot fail. Errors of commands come through the other channel.
        let _ = self.wait_for(Step::Reach);
        self.unknown.try_recv().map_or(Ok(()), Err)
    }

    /// Ends a file. The next file begins in database 0 and outside of transactions.
    ///
    /// # Errors
    /// One of its commands is unknown.
    pub(super) fn end_file(&self) -> Result<(), ReplayError> {
        let finished = self.finish();
        self.send(Step::EndFile);
        finished
    }

    /// Begins to append to the last file, or to a new file if there is none. All files have been loaded.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn open(&self, manifest: Option<Manifest>) -> Result<(), String> {
        self.wait_for(|done| Step::Open(manifest, done))
    }
}

impl WorkerLoading {
    /// Must be called on the worker's thread.
    pub fn new(inbox: StepsInbox) -> WorkerLoading {
        WorkerLoading { inbox, replay: None, is_executing: false }
    }

    /// Executes steps until none is left or the slice is used up.
    pub fn advance(&mut self, core: &mut Core, participant: &Participant) -> LoadingProgress {
        let until = Instant::now() + SLICE;
        loop {
            if self.is_executing {
                self.execute(core, participant, until);
            } else {
                match self.inbox.steps.try_recv() {
                    Ok(step) => self.begin(core, step),
                    Err(TryRecvError::Empty) => return LoadingProgress::Waits,
                    Err(TryRecvError::Disconnected) => return LoadingProgress::Over,
                }
            }
            if Instant::now() >= until {
                return LoadingProgress::More;
            }
        }
    }

    fn begin(&mut self, core: &mut Core, step: Step) {
        // If the loader no longer waits, the process is ending, so failed sends are ignored.
        match step {
            Step::Restore(sources, done) => {
                let sources = sources.iter().map(Vec::as_slice);
                let restored = source::restore(core, sources, Policy::Append);
                let _ = done.send(restored.map_err(|error| error.to_string()));
            }
            Step::Execute(commands, part) => {
                let replay = self.replay.get_or_insert_with(|| Replay::new(core));
                replay.take(commands, part);
                self.is_executing = true;
            }
            Step::Reach(done) => {
                let _ = done.send(Ok(()));
            }
            Step::EndFile => {
                if let Some(replay) = &mut self.replay {
                    replay.end_file(core);
                }
            }
            Step::Open(manifest, done) => {
                // CONFIG SET may have disabled the append-only file during the load.
                let is_wanted = core.shared.config().persistence.appendonly;
                let opened = if is_wanted { rewrite::open(core, manifest) } else { Ok(()) };
                core.shared.persistence.aof.release_unused_locks();
                let _ = done.send(opened);
            }
        }
    }

    fn execute(&mut self, core: &mut Core, participant: &Participant, until: Instant) {
        let Some(replay) = &mut self.replay else { return };
        match replay.advance(core, Some(participant), Some(until)) {
            Ok(is_done) => self.is_executing = !is_done,
            Err(unknown) => {
                self.is_executing = false;
                let _ = self.inbox.unknown.send(unknown);
            }
        }
    }
}
