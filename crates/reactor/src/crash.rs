//! The last words of a process that a signal ends: which signal, why, in which thread. Written into the
//! log by the handler itself, since nothing else runs any more; then the process ends as it would have.
//!
//! Invariants (SAFETY notes cite them by number)
//!  1. The handler and what it calls allocate nothing, take no lock, and use no function of the system
//!     but those that handlers may use: open, write, close, clock_gettime, getpid, prctl, sigaction, raise.
//!  2. `LOG` and `BEFORE` are written once, before the first handler is there, and never freed.
//!  3. The handler restores what was there before it reports, so that it runs at most once for each
//!     thread and signal, and a fault within it ends the process.

use std::ffi::CString;
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Signals that end the process by default: those of a crash, and those of resource limits, system call
/// filters and other processes.
const SIGNALS: [libc::c_int; 14] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGSYS,
    libc::SIGTRAP,
    libc::SIGQUIT,
    libc::SIGXCPU,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGIO,
];
/// The first of [`SIGNALS`] are faults: the faulting instruction is repeated when the handler returns.
const FAULTS: usize = 4;
/// Bytes of a report.
const LINE_MAX: usize = 160;
/// Bytes of a thread's name, as the system keeps it.
const NAME_MAX: usize = 16;

/// Where the report goes; `None` within for standard output.
static LOG: OnceLock<Option<CString>> = OnceLock::new();
/// What would have handled each of [`SIGNALS`].
static BEFORE: [OnceLock<libc::sigaction>; SIGNALS.len()] =
    [const { OnceLock::new() }; SIGNALS.len()];
static IS_ON: AtomicBool = AtomicBool::new(true);

/// Has a crash told in the file `log`, or on standard output. Once in a process; the thread that calls
/// is the only one that does.
pub fn report_crashes(log: Option<&Path>) {
    // A path with a NUL byte opens no file.
    let path = log.and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    if LOG.set(path).is_err() {
        return;
    }
    for (signal, before) in SIGNALS.into_iter().zip(&BEFORE) {
        // SAFETY: an all-zero sigaction is one: no flags, an empty mask, the default.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: as above.
        let mut old: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: asks only; `old` is one that may be written to.
        unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut old) };
        let _ = before.set(old);
        action.sa_sigaction = report as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        // SAFETY: invariants 1 to 3; the handler has the signature that SA_SIGINFO wants.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

/// Whether crashes are told from now on.
pub fn set_crash_reports(on: bool) {
    IS_ON.store(on, Ordering::Relaxed);
}

extern "C" fn report(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system hands over a siginfo_t of its own.
    let (code, address, sender) =
        unsafe { ((*info).si_code, (*info).si_addr() as usize, (*info).si_pid()) };
    let place = SIGNALS.iter().position(|one| *one == signal).unwrap_or(0);
    // Other signals are not raised again when the handler returns.
    let is_fault = code > 0 && place < FAULTS;
    let is_sent = code <= 0;
    if let Some(before) = BEFORE[place].get() {
        // SAFETY: what was there before. That of the standard library tells of a stack that is used up.
        unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
    }
    if IS_ON.load(Ordering::Relaxed) {
        tell(signal, code, is_fault.then_some(address), is_sent.then_some(sender));
    }
    if !is_fault {
        // SAFETY: numbers only; invariant 3.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}

fn tell(signal: i32, code: i32, address: Option<usize>, sender: Option<i32>) {
    let mut name = [0u8; NAME_MAX];
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: invariant 1; the system writes up to 16 bytes of a name, and one timespec.
    let pid = unsafe {
        libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr());
        libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now);
        libc::getpid()
    };
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = std::str::from_utf8(name).unwrap_or("?");
    let time = now.tv_sec;
    let mut text = [0u8; LINE_MAX * 3];
    let mut rest = &mut text[..];
    // Formatting numbers allocates nothing, and what does not fit is left out.
    let _ = writeln!(
        rest,
        "{pid}:signal-handler ({time}) # Brisk {} crashed by signal: {signal}, si_code: {code}, in \
         thread {name}",
        env!("CARGO_PKG_VERSION")
    );
    if let Some(address) = address {
        let _ = writeln!(rest, "{pid}:signal-handler ({time}) # Accessing address: {address:#x}");
    }
    if let Some(sender) = sender {
        let _ = writeln!(rest, "{pid}:signal-handler ({time}) # Killed by PID: {sender}");
    }
    let left = rest.len();
    let written = text.len() - left;
    write(&text[..written]);
}

fn write(text: &[u8]) {
    let path = LOG.get().and_then(Option::as_ref);
    // SAFETY: invariants 1 and 2: the path ends with a NUL byte, and the text is as long as it is said.
    unsafe {
        let flags = libc::O_APPEND | libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
        let file = path.map_or(libc::STDOUT_FILENO, |path| libc::open(path.as_ptr(), flags, 0o644));
        if file >= 0 {
            libc::write(file, text.as_ptr().cast(), text.len());
        }
    }
}
