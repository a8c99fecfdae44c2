//! Work that the topology threads do on worker 0 while all other workers are quiesced.

use super::watcher::TopologyWatcher;
use brisk_node::core::Core;
use brisk_node::core::mailbox::{Message, Work};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// How often a thread that waits for worker 0 checks whether the server is shutting down. Also how often it tries again
/// while a slow script prevents quiescence.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The state of an attempt: it waits for worker 0, worker 0 has begun it, or it was given up before worker 0 began it.
#[derive(Debug, Default)]
struct QuiesceAttempt(AtomicU8);

impl QuiesceAttempt {
    const BEGUN: u8 = 1;
    const GIVEN_UP: u8 = 2;

    /// Returns false if the attempt was given up.
    fn begin(&self) -> bool {
        self.leave_waiting(QuiesceAttempt::BEGUN)
    }

    /// Returns false if the work has already begun.
    fn give_up(&self) -> bool {
        self.leave_waiting(QuiesceAttempt::GIVEN_UP)
    }

    fn leave_waiting(&self, next: u8) -> bool {
        self.0.compare_exchange(0, next, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

impl TopologyWatcher {
    /// Runs `work` on worker 0 while all other workers are quiesced, and waits for it to complete. Waits while a slow
    /// script prevents quiescence, unless `despite_scripts` is set, for work that touches no keys. Returns false if the
    /// server shuts down.
    pub(super) fn when_quiesced(
        &self,
        despite_scripts: bool,
        work: impl Fn(&mut Core) + Send + Sync + 'static,
    ) -> bool {
        self.when_quiesced_within(None, despite_scripts, work)
    }

    /// Like `when_quiesced`, but returns false if the work has not begun by `until`, because a slow script prevents
    /// quiescence or a worker is executing a long command. In this case, the work is never done.
    pub(super) fn when_quiesced_within(
        &self,
        until: Option<Instant>,
        despite_scripts: bool,
        work: impl Fn(&mut Core) + Send + Sync + 'static,
    ) -> bool {
        let (shared, work) = (self.shared, Arc::new(work));
        let is_late = || until.is_some_and(|until| Instant::now() >= until);
        loop {
            let (done, is_done) = sync_channel(1);
            let attempt = Arc::new(QuiesceAttempt::default());
            let (work, begun) = (Arc::clone(&work), Arc::clone(&attempt));
            let run = move |core: &mut Core| {
                let quiesced = match despite_scripts {
                    true => Ok(Some(core.quiesce_others_despite_scripts())),
                    false => core.quiesce_others(),
                };
                let begins = quiesced.is_ok() && begun.begin();
                if begins {
                    work(core);
                }
                // The receiver is dropped only if the attempt was given up.
                let _ = done.send(begins);
            };
            shared.mailboxes.send(0, Message::Run(Work(Box::new(run))));
            let is_done = loop {
                match is_done.recv_timeout(LOOK_AGAIN) {
                    Ok(is_done) => break is_done,
                    Err(RecvTimeoutError::Timeout) => {
                        let gives_up = is_late() || shared.process.shutdown.is_requested();
                        if gives_up && attempt.give_up() {
                            return false;
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return false,
                }
            };
            if is_done {
                return true;
            }
            if is_late() {
                return false;
            }
            self.signal.pause(LOOK_AGAIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_either_started_or_abandoned() {
        let attempt = QuiesceAttempt::default();
        assert!(attempt.begin() && !attempt.give_up());
        let attempt = QuiesceAttempt::default();
        assert!(attempt.give_up() && !attempt.begin());
    }
}
