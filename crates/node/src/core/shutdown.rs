//! Ending the server: asked for by a signal or by SHUTDOWN, carried out by boot.
//!
//! A signal after which the dataset is to be saved waits for a worker, which alone can do that.

use brisk_config::choice::ShutdownMode;
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

/// Whether and how the server is to end.
#[derive(Debug, Default)]
pub struct Shutdown {
    /// For those who look in every round.
    is_asked: AtomicBool,
    exit_code: Mutex<Option<u8>>,
    asked: Condvar,
    /// What a signal asked for and a worker is to do first.
    scheduled: Mutex<Option<ShutdownMode>>,
}

impl Shutdown {
    /// Asks for the end. The first request counts.
    pub fn ask(&self, exit_code: u8) {
        self.exit_code.lock().even_poisoned().get_or_insert(exit_code);
        self.is_asked.store(true, Ordering::SeqCst);
        self.asked.notify_all();
    }

    /// Leaves the end to the worker that calls [`Shutdown::scheduled`].
    pub fn schedule(&self, how: ShutdownMode) {
        *self.scheduled.lock().even_poisoned() = Some(how);
    }

    /// How the server is to end as soon as a worker sees to it.
    pub fn scheduled(&self) -> Option<ShutdownMode> {
        *self.scheduled.lock().even_poisoned()
    }

    /// The server goes on; whether it was to end.
    pub fn unschedule(&self) -> bool {
        self.scheduled.lock().even_poisoned().take().is_some()
    }

    /// Whether the end was asked for.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::SeqCst)
    }

    /// Waits until the end is asked for; the exit code.
    pub fn wait(&self) -> u8 {
        let mut code = self.exit_code.lock().even_poisoned();
        loop {
            if let Some(code) = *code {
                return code;
            }
            code = self.asked.wait(code).even_poisoned();
        }
    }
}
