//! What loading the dataset leaves to a worker: it goes on with it between two rounds, so that it
//! answers its clients meanwhile (mostly that the dataset is being loaded).

use super::replay::{Replay, Unknown};
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

/// Steps that wait for the worker, at most.
const STEPS_MAX: usize = 16;
/// Commands of so many bytes are waited for, so that not many of them wait.
const LARGE_BYTES: usize = 1 << 20;
/// How long the worker is loading before it turns to its clients.
const SLICE: Duration = Duration::from_millis(2);

/// How a step ended that the loader waits for: in words for the log.
type Done = SyncSender<Result<(), String>>;

enum Step {
    /// Put libraries of functions in force.
    Restore(Vec<Vec<u8>>, Done),
    /// Execute all commands of a part of a file.
    Execute(Vec<u8>, Range<u64>),
    /// Say that all before is done.
    Reach(Done),
    EndFile,
    /// All files are loaded, which this manifest names: go on writing.
    Open(Option<Manifest>, Done),
}

/// The loader's end.
pub struct Steps {
    steps: SyncSender<Step>,
    unknown: Receiver<Unknown>,
    shared: &'static Shared,
}

/// The worker's end.
pub struct Inbox {
    steps: Receiver<Step>,
    unknown: Sender<Unknown>,
}

/// The worker's part in loading.
pub struct Loading {
    inbox: Inbox,
    replay: Option<Replay>,
    /// There are commands that are not executed yet.
    is_executing: bool,
}

/// Whether there is more to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    More,
    /// Nothing at the moment; the worker is woken.
    Waits,
    /// Nothing any more.
    Over,
}

/// Both ends, for a loader and the first worker.
pub fn pair(shared: &'static Shared) -> (Steps, Inbox) {
    let (steps, inbox) = sync_channel(STEPS_MAX);
    let (tells_unknown, unknown) = mpsc::channel();
    (Steps { steps, unknown, shared }, Inbox { steps: inbox, unknown: tells_unknown })
}

impl Steps {
    fn send(&self, step: Step) {
        // The worker ends only with the server.
        let _ = self.steps.send(step);
        self.shared.mailboxes[0].wake();
    }

    /// Waits for a step.
    fn ask(&self, step: impl FnOnce(Done) -> Step) -> Result<(), String> {
        let (done, is_done) = sync_channel(1);
        self.send(step(done));
        is_done.recv().unwrap_or_else(|_| Err("the worker has ended".to_owned()))
    }

    /// Puts libraries of functions in force.
    ///
    /// # Errors
    /// One cannot be loaded.
    pub fn restore(&self, sources: Vec<Vec<u8>>) -> Result<(), String> {
        if sources.is_empty() { Ok(()) } else { self.ask(|done| Step::Restore(sources, done)) }
    }

    /// Has all commands of a part of a file executed: soon, a large one at once.
    ///
    /// # Errors
    /// One of these, or of those before, is not known.
    pub(super) fn execute(&self, commands: Vec<u8>, part: Range<u64>) -> Result<(), Unknown> {
        let is_large = commands.len() >= LARGE_BYTES;
        self.send(Step::Execute(commands, part));
        if is_large { self.finish() } else { self.unknown.try_recv().map_or(Ok(()), Err) }
    }

    /// Waits until all commands so far are executed.
    fn finish(&self) -> Result<(), Unknown> {
        // It does not fail; what does is told beside.
        let _ = self.ask(Step::Reach);
        self.unknown.try_recv().map_or(Ok(()), Err)
    }

    /// Ends a file: the next one begins in database 0, and outside of transactions.
    ///
    /// # Errors
    /// One of its commands is not known.
    pub(super) fn end_file(&self) -> Result<(), Unknown> {
        let finished = self.finish();
        self.send(Step::EndFile);
        finished
    }

    /// All files are loaded: has the last one written on, or an empty one if there is none.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn open(&self, manifest: Option<Manifest>) -> Result<(), String> {
        self.ask(|done| Step::Open(manifest, done))
    }
}

impl Loading {
    /// On the worker's thread.
    pub fn new(inbox: Inbox) -> Loading {
        Loading { inbox, replay: None, is_executing: false }
    }

    /// Does what there is to do, for a while.
    pub fn go_on(&mut self, core: &mut Core, participant: &Participant) -> Progress {
        let until = Instant::now() + SLICE;
        loop {
            if self.is_executing {
                self.execute(core, participant, until);
            } else {
                match self.inbox.steps.try_recv() {
                    Ok(step) => self.begin(core, step),
                    Err(TryRecvError::Empty) => return Progress::Waits,
                    Err(TryRecvError::Disconnected) => return Progress::Over,
                }
            }
            if Instant::now() >= until {
                return Progress::More;
            }
        }
    }

    fn begin(&mut self, core: &mut Core, step: Step) {
        // Who does not wait for an end any more ends with the process.
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
                // It may have been switched off meanwhile.
                let is_wanted = core.shared.config().persistence.appendonly;
                let opened = if is_wanted { rewrite::open(core, manifest) } else { Ok(()) };
                core.shared.aof.release_unused_locks();
                let _ = done.send(opened);
            }
        }
    }

    fn execute(&mut self, core: &mut Core, participant: &Participant, until: Instant) {
        let Some(replay) = &mut self.replay else { return };
        match replay.go_on(core, Some(participant), Some(until)) {
            Ok(is_done) => self.is_executing = !is_done,
            Err(unknown) => {
                self.is_executing = false;
                let _ = self.inbox.unknown.send(unknown);
            }
        }
    }
}
