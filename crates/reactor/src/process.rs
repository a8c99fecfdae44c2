//! Changes that concern the whole process: ignored signals, and the fork into the background.
//!
//! Invariants (SAFETY notes cite them by number)
//!  1. A process that forks has only one thread. Therefore no lock in the child's memory is held by
//!     a thread that is missing there, and the child can do everything that the parent could.
//!  2. An ignored signal runs none of our code.

use std::io;
use std::time::Duration;

/// Signals of a closed terminal, a broken pipe, a file size limit, and an alarm that was set by
/// another program. None of them concerns this server, but each ends a process by default.
const IGNORED: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGPIPE, libc::SIGALRM, libc::SIGXFSZ];

/// This directory lists the threads of the process.
const THREADS: &str = "/proc/self/task";
/// A thread that has ended and been joined stays listed for a moment. This is the maximum number of
/// checks until it is gone, with a pause between checks.
const CHECKS_MAX: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// Which of the two processes continues after a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkResult {
    /// The original process, which should exit.
    Parent,
    /// The new process.
    Child,
}

/// Ignores the signals of a closed terminal, a broken pipe, an alarm and a file size limit.
pub fn ignore_idle_signals() {
    for signal in IGNORED {
        // SAFETY: invariant 2. These signals may be ignored; the call takes numbers only.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Forks this process.
///
/// # Errors
/// Fails if this process has other threads, or if the system cannot create another process.
pub fn fork_single_threaded() -> io::Result<ForkResult> {
    if !is_single_threaded()? {
        return Err(io::Error::other("other threads run already"));
    }
    // SAFETY: invariant 1, as just checked: only the single existing thread could start another.
    match unsafe { libc::fork() } {
        0 => Ok(ForkResult::Child),
        result if result < 0 => Err(io::Error::last_os_error()),
        _ => Ok(ForkResult::Parent),
    }
}

/// Returns true if the calling thread is the only one. Waits briefly for ended threads to
/// disappear.
fn is_single_threaded() -> io::Result<bool> {
    for _ in 0..CHECKS_MAX {
        if std::fs::read_dir(THREADS)?.count() == 1 {
            return Ok(true);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_does_not_fork() {
        // The test itself runs in a thread other than the main thread.
        assert!(fork_single_threaded().is_err());
    }
}
