//! Ending the server: asked for by a signal or by SHUTDOWN, carried out by boot.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Whether and how the server is to end.
#[derive(Debug, Default)]
pub struct Shutdown {
    /// For those who look in every round.
    is_asked: AtomicBool,
    exit_code: Mutex<Option<u8>>,
    asked: Condvar,
}

impl Shutdown {
    /// Asks for the end. The first request counts.
    pub fn ask(&self, exit_code: u8) {
        self.exit_code.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(exit_code);
        self.is_asked.store(true, Ordering::SeqCst);
        self.asked.notify_all();
    }

    /// Whether the end was asked for.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::SeqCst)
    }

    /// Waits until the end is asked for; the exit code.
    pub fn wait(&self) -> u8 {
        let mut code = self.exit_code.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(code) = *code {
                return code;
            }
            code = self.asked.wait(code).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
