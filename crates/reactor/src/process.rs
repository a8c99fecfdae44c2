//! What becomes of the whole process: signals it does not mind, a copy that goes on in its place.
//!
//! Invariants (SAFETY notes cite them by number)
//!  1. A process that forks has one thread, so that the copy's memory has no lock whose holder is
//!     missing there, and the copy may do all that the first could do.
//!  2. A signal that is ignored runs no code of ours.

use std::io;
use std::time::Duration;

/// What the end of a terminal, a closed pipe and an alarm that somebody else has set send: none of
/// them is about this server. Each ends a process that does not say otherwise.
const IGNORED: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGPIPE, libc::SIGALRM, libc::SIGXFSZ];

/// The threads of this process, each a name in a folder.
const THREADS: &str = "/proc/self/task";
/// A thread that has ended, and was waited for, stays listed for a moment: so often it is looked
/// again, with a pause between.
const LOOKS_MAX: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// Which of the two processes this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The first one, which is to end.
    Parent,
    /// The copy.
    Child,
}

/// Goes on when a terminal closes, a pipe breaks or an alarm rings.
pub fn ignore_idle_signals() {
    for signal in IGNORED {
        // SAFETY: invariant 2. These may be ignored; the call takes numbers only.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Makes a copy of this process.
///
/// # Errors
/// This process has other threads, or the system cannot have another process.
pub fn fork_alone() -> io::Result<Forked> {
    if !is_alone()? {
        return Err(io::Error::other("other threads run already"));
    }
    // SAFETY: invariant 1, as just seen: only the one thread there is could start another.
    match unsafe { libc::fork() } {
        0 => Ok(Forked::Child),
        result if result < 0 => Err(io::Error::last_os_error()),
        _ => Ok(Forked::Parent),
    }
}

/// Whether the calling thread is the only one, at the latest when those that have ended are gone.
fn is_alone() -> io::Result<bool> {
    for _ in 0..LOOKS_MAX {
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
        // The test itself runs in a thread beside the main one.
        assert!(fork_alone().is_err());
    }
}
