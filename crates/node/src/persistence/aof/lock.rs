//! Prevents two servers from writing to the same append-only file.
//!
//! ```text
//! appendonlydir/appendonly.aof.lock     locked (flock) while a server uses appendonly.aof in this directory
//! ```
//! The kernel releases the lock when the process ends, even if it crashes. The lock file stays, and the next server
//! locks it again. It contains the process id of the last server that locked it, for the error messages of other
//! servers. Servers with a different `appendfilename` may use the same directory.
//!
//! A server takes the lock before it reads the files, because loading may truncate a file. A server holds more than one
//! lock only from CONFIG SET dir until a rewrite has moved the files.

use super::home::Home;
use crate::persistence::disk::{Disk, System};
use brisk_config::os_reason;
use brisk_observe::log::Log;
use brisk_structures::poison::EvenPoisoned;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a starting server waits for a running server, which may be about to exit.
pub const WAIT_RUNNING: Duration = Duration::from_secs(2);
/// How long a starting server waits for a process that is exiting. The kernel releases the memory of the process before
/// the lock.
const WAIT_ENDING: Duration = Duration::from_secs(60);
/// Interval between attempts.
const RETRY: Duration = Duration::from_millis(5);
/// The largest number of locks that are held at the same time.
const LOCKS_MAX: usize = 16;
/// Length of a process id in the lock file, with its newline.
const PID_BYTES_MAX: u64 = 21;

/// The lock of one append-only file. Dropping it releases the lock.
#[derive(Debug)]
pub struct HomeLock {
    path: PathBuf,
    /// `None` on a file system that does not support locks.
    file: Option<File>,
}

impl HomeLock {
    fn is_at(&self, path: &Path) -> bool {
        if self.path != path {
            return false;
        }
        // The directory may have been removed and created again.
        let Some(file) = &self.file else { return true };
        match (file.metadata(), fs::metadata(path)) {
            (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
            _ => false,
        }
    }
}

/// Why an append-only file cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "The append-only file {home} is in use by another server{}: {lock} is locked. Give this \
         server another dir, appenddirname or appendfilename",
        .pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
    )]
    InUse { home: String, lock: String, pid: Option<u32> },
    #[error("Can't lock the append-only file: {path}: {reason}")]
    Failed { path: String, reason: String },
    #[error("Can't lock the append-only file: {LOCKS_MAX} directories are locked already")]
    TooMany,
}

/// The lock is held by another server.
#[derive(Debug)]
struct Taken {
    /// The process id of the other server, if the lock file contains it.
    pid: Option<u32>,
}

impl Taken {
    fn into_error(self, home: &Home) -> LockError {
        LockError::InUse {
            home: home.dir.join(OsStr::from_bytes(&home.name)).display().to_string(),
            lock: lock_path(home).display().to_string(),
            pid: self.pid,
        }
    }
}

/// The locks that a server holds.
#[derive(Debug, Default)]
pub(super) struct Locks(Vec<HomeLock>);

impl Locks {
    /// Locks an append-only file, unless this server already holds its lock. Does not wait.
    fn try_acquire(&mut self, home: &Home, log: &Log) -> Result<Result<(), Taken>, LockError> {
        if self.holds(home) {
            return Ok(Ok(()));
        }
        if self.0.len() >= LOCKS_MAX {
            return Err(LockError::TooMany);
        }
        Ok(try_lock(home, log)?.map(|lock| self.0.push(lock)))
    }

    /// Checks that no other server holds the lock of an append-only file.
    ///
    /// # Errors
    /// Another server holds it, or the lock file cannot be created.
    pub(super) fn check(&self, home: &Home, log: &Log) -> Result<(), LockError> {
        if self.holds(home) {
            return Ok(());
        }
        try_lock(home, log)?.map(drop).map_err(|taken| taken.into_error(home))
    }

    /// Releases all locks except the one for `home`, because the files are there now.
    pub(super) fn keep_only(&mut self, home: &Home) {
        let path = lock_path(home);
        self.0.retain(|held| held.is_at(&path));
    }

    pub(super) fn release(&mut self) {
        self.0.clear();
    }

    fn holds(&self, home: &Home) -> bool {
        let path = lock_path(home);
        self.0.iter().any(|held| held.is_at(&path))
    }
}

/// Creates the directory, if necessary, and locks the append-only file in it, unless this server already holds its
/// lock. If another server holds the lock, waits for that server: up to `wait` if it is running, longer if its process
/// is exiting. `locks` is not held during the wait, so other threads of this server need not wait.
///
/// # Errors
/// Another server holds the lock, or the lock file cannot be created.
pub(super) fn acquire(
    locks: &Mutex<Locks>,
    home: &Home,
    wait: Duration,
    log: &Log,
) -> Result<(), LockError> {
    let began = Instant::now();
    let mut is_waiting = false;
    loop {
        let Err(taken) = locks.lock().even_poisoned().try_acquire(home, log)? else {
            return Ok(());
        };
        let most = if taken.pid.is_some_and(is_ending) { WAIT_ENDING } else { wait };
        if began.elapsed() >= most {
            return Err(taken.into_error(home));
        }
        if !std::mem::replace(&mut is_waiting, true) {
            let path = lock_path(home);
            let path = path.display();
            log.notice(format_args!("Waiting for another server, which has locked {path}"));
        }
        std::thread::park_timeout(RETRY);
    }
}

fn lock_path(home: &Home) -> PathBuf {
    home.dir.join(OsStr::from_bytes(&[&*home.name, b".lock"].concat()))
}

/// Tries once to take the lock. Creates the directory if necessary.
fn try_lock(home: &Home, log: &Log) -> Result<Result<HomeLock, Taken>, LockError> {
    let path = lock_path(home);
    let failed = |path: &Path, error: &io::Error| LockError::Failed {
        path: path.display().to_string(),
        reason: os_reason(error),
    };
    System.create_dir(&home.dir).map_err(|error| failed(&home.dir, &error))?;
    let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = file.map_err(|error| failed(&path, &error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Err(Taken { pid: pid_in(&mut file) })),
        Err(TryLockError::Error(error)) if has_no_locks(&error) => {
            let (shown, reason) = (path.display(), os_reason(&error));
            log.warning(format_args!(
                "WARNING: the file system cannot lock {shown}: {reason}. No other server may use \
                 this append-only file."
            ));
            return Ok(Ok(HomeLock { path, file: None }));
        }
        Err(TryLockError::Error(error)) => return Err(failed(&path, &error)),
    }
    // An error is ignored, because only the error messages of other servers show the id.
    let _ = note_pid(&mut file);
    Ok(Ok(HomeLock { path, file: Some(file) }))
}

fn has_no_locks(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let numbers = [Errno::NOTSUP, Errno::NOSYS, Errno::NOLCK, Errno::INVAL];
    error.kind() == ErrorKind::Unsupported
        || numbers.iter().any(|number| error.raw_os_error() == Some(number.raw_os_error()))
}

fn note_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

/// The id of the process that locked the file last, if the file contains it.
fn pid_in(file: &mut File) -> Option<u32> {
    file.rewind().ok()?;
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim_end().parse().ok()
}

/// Reports whether a process was killed or has exited, and has already released its memory.
fn is_ending(pid: u32) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline"));
    arguments.is_ok_and(|arguments| arguments.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_config::choice::LogLevel;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The location of an append-only file with this name in `dir`.
    fn home(dir: &Path, name: &str) -> Home {
        let dir = dir.to_owned();
        Home { single: dir.join(name), dir: dir.join("files"), name: name.into() }
    }

    struct Dir(PathBuf);

    impl Dir {
        fn new() -> Dir {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let dir = std::env::temp_dir();
            let dir = dir.join(format!("brisk-lock-{}-{number}", std::process::id()));
            fs::create_dir(&dir).unwrap();
            Dir(dir)
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Takes the lock without waiting.
    fn lock(home: &Home, log: &Log) -> Result<HomeLock, LockError> {
        try_lock(home, log)?.map_err(|taken| taken.into_error(home))
    }

    #[test]
    fn one_lock_at_a_time_and_another_name_is_free() {
        let (dir, log) = (Dir::new(), Log::to_stdout(LogLevel::Warning));
        let (one, other) = (home(&dir.0, "a"), home(&dir.0, "b"));
        let held = lock(&one, &log).unwrap();
        let error = lock(&one, &log).unwrap_err().to_string();
        let path = dir.0.join("files/a.lock").display().to_string();
        assert!(error.contains(&path), "{error}");
        assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
        drop(lock(&other, &log).unwrap());
        drop(held);
        drop(lock(&one, &log).unwrap());
        assert_eq!(fs::read_to_string(path).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn a_lock_is_held_once_and_moves_with_the_files() {
        let (first, second) = (Dir::new(), Dir::new());
        let log = Log::to_stdout(LogLevel::Warning);
        let (old, new) = (home(&first.0, "a"), home(&second.0, "a"));
        let mut locks = Locks::default();
        for home in [&old, &old, &new] {
            locks.try_acquire(home, &log).unwrap().unwrap();
        }
        assert_eq!(locks.0.len(), 2);
        locks.keep_only(&new);
        assert!(locks.holds(&new) && !locks.holds(&old));
        assert!(lock(&old, &log).is_ok());
        // If a directory is removed and created again, it is a different directory.
        fs::remove_dir_all(&new.dir).unwrap();
        assert!(!locks.holds(&new));
        locks.try_acquire(&new, &log).unwrap().unwrap();
        assert!(matches!(lock(&new, &log), Err(LockError::InUse { .. })));
        locks.release();
        assert!(lock(&new, &log).is_ok());
    }

    #[test]
    fn locks_are_bounded() {
        let (dir, log) = (Dir::new(), Log::to_stdout(LogLevel::Warning));
        let mut locks = Locks::default();
        for number in 0..LOCKS_MAX {
            locks.try_acquire(&home(&dir.0, &number.to_string()), &log).unwrap().unwrap();
        }
        let more = locks.try_acquire(&home(&dir.0, "more"), &log);
        assert!(matches!(more, Err(LockError::TooMany)));
    }

    /// CONFIG SET appendonly uses the locks on a worker, so the lock list must be available.
    #[test]
    fn a_start_that_waits_for_another_server_does_not_block_the_lock_list() {
        const ENDLESS: Duration = Duration::from_secs(3600);
        let (dir, log) = (Dir::new(), Log::to_stdout(LogLevel::Warning));
        let (taken, free) = (home(&dir.0, "a"), home(&dir.0, "b"));
        // The lock file contains the id of a running process, so the start waits for as long as the caller requests.
        let another_server = lock(&taken, &log).unwrap();
        let locks = Mutex::new(Locks::default());
        std::thread::scope(|scope| {
            let start = scope.spawn(|| acquire(&locks, &taken, ENDLESS, &log));
            let worker = scope.spawn(|| {
                let (mut waits, until) = (0, Instant::now() + Duration::from_secs(60));
                while waits < 100 && Instant::now() < until {
                    if let Ok(locks) = locks.try_lock() {
                        assert!(matches!(locks.check(&taken, &log), Err(LockError::InUse { .. })));
                        assert!(locks.check(&free, &log).is_ok());
                        waits += 1;
                    }
                    std::thread::yield_now();
                }
                waits
            });
            let waits = worker.join();
            // Otherwise the start would never finish.
            drop(another_server);
            assert_eq!(waits.unwrap(), 100);
            start.join().unwrap().unwrap();
        });
        assert!(locks.lock().unwrap().holds(&taken));
    }
}
