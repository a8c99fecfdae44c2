//! Reports a crash: which signal ends the process, why, and in which thread. The signal handler
//! writes the report to the log itself, since no other code runs any more. After that the process
//! ends as it would have without the report.
//!
//! Invariants (SAFETY notes cite them by number)
//!  1. The handler and what it calls allocate nothing and take no lock. They use only system functions
//!     that handlers may use: open, write, close, clock_gettime, getpid, prctl, sigaction, raise.
//!  2. `LOG` and `PREVIOUS_ACTIONS` are written once, before the first handler is installed, and never
//!     freed.
//!  3. The handler restores the previous action before it reports. So it runs at most once for each
//!     thread and signal, and a fault within it ends the process.

use std::ffi::CString;
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Signals that end the process by default: from crashes, resource limits, system call filters and
/// other processes.
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
/// The first entries of [`SIGNALS`] are faults: the faulting instruction runs again when the
/// handler returns.
const FAULTS: usize = 4;
/// Maximum length of one report line, in bytes.
const LINE_BYTES_MAX: usize = 160;
/// Maximum length of a thread's name in the kernel, in bytes.
const NAME_BYTES_MAX: usize = 16;

/// The file to which the report is appended. An inner `None` means standard output.
static LOG: OnceLock<Option<CString>> = OnceLock::new();
/// The action that was previously installed for each of [`SIGNALS`].
static PREVIOUS_ACTIONS: [OnceLock<libc::sigaction>; SIGNALS.len()] =
    [const { OnceLock::new() }; SIGNALS.len()];
static ENABLED: AtomicBool = AtomicBool::new(true);

/// Installs the handlers that report a crash to the file `log`, or to standard output if `log` is
/// `None`. Only the first call in a process has an effect. No other thread may call this at the
/// same time.
pub fn report_crashes(log: Option<&Path>) {
    // A path with a NUL byte cannot be opened; the report then goes to standard output.
    let path = log.and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    if LOG.set(path).is_err() {
        return;
    }
    for (signal, before) in SIGNALS.into_iter().zip(&PREVIOUS_ACTIONS) {
        // SAFETY: an all-zero sigaction is valid: no flags, an empty mask, the default action.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: as above.
        let mut old: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: this call only reads the current action; `old` may be written to.
        unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut old) };
        let _ = before.set(old);
        action.sa_sigaction = report as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        // SAFETY: invariants 1 to 3; the handler has the signature that SA_SIGINFO requires.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

/// Turns crash reports on or off.
pub fn set_crash_reports(on: bool) {
    ENABLED.store(on, Ordering::Relaxed);
}

extern "C" fn report(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system passes a valid siginfo_t.
    let (code, address, sender) =
        unsafe { ((*info).si_code, (*info).si_addr() as usize, (*info).si_pid()) };
    let index = SIGNALS.iter().position(|one| *one == signal).unwrap_or(0);
    // Other signals are not raised again when the handler returns.
    let is_fault = code > 0 && index < FAULTS;
    let is_sent = code <= 0;
    if let Some(before) = PREVIOUS_ACTIONS[index].get() {
        // SAFETY: restores the previous action. The one of the standard library reports stack
        // overflows.
        unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
    }
    if ENABLED.load(Ordering::Relaxed) {
        write_report(signal, code, is_fault.then_some(address), is_sent.then_some(sender));
    }
    if !is_fault {
        // SAFETY: the calls take numbers only; invariant 3.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}

fn write_report(signal: i32, code: i32, address: Option<usize>, sender: Option<i32>) {
    let mut name = [0u8; NAME_BYTES_MAX];
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
    let mut text = [0u8; LINE_BYTES_MAX * 3];
    let mut rest = &mut text[..];
    // Formatting numbers allocates nothing. Text that does not fit is dropped.
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
    append_to_log(&text[..written]);
}

fn append_to_log(text: &[u8]) {
    let path = LOG.get().and_then(Option::as_ref);
    // SAFETY: invariants 1 and 2: the path ends with a NUL byte, and `text.len()` is the length of
    // the text.
    unsafe {
        let flags = libc::O_APPEND | libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
        let file = path.map_or(libc::STDOUT_FILENO, |path| libc::open(path.as_ptr(), flags, 0o644));
        if file >= 0 {
            libc::write(file, text.as_ptr().cast(), text.len());
        }
    }
}
