//! Safe functions for the system calls of the loop.
//!
//! Invariants (SAFETY notes cite them by number)
//!  1. Every pointer passed comes from a reference or slice that outlives the call, with that
//!     object's own length.
//!  2. A descriptor returned by a successful call is new and has no other owner.
//!  3. `IoSlice` has the layout of `iovec` (the standard library guarantees it).
//!  4. An all-zero `msghdr` is valid.
//!  5. An all-zero `rusage` is valid.

use crate::listen::PeerAddr;
use rustix::net::{RecvFlags, SendFlags};
use socket2::SockAddr;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_len(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// The scope of the CPU time that [`cpu_times`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuScope {
    /// All threads of this process.
    Process,
    /// Children that have ended and were waited for.
    Children,
    /// The calling thread.
    Thread,
}

/// CPU time used so far, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    pub user_us: u64,
    pub system_us: u64,
}

/// Returns the CPU time used so far, or zeros if the kernel reports an error. One system call,
/// `getrusage`.
pub fn cpu_times(of: CpuScope) -> CpuTimes {
    let who = match of {
        CpuScope::Process => libc::RUSAGE_SELF,
        CpuScope::Children => libc::RUSAGE_CHILDREN,
        CpuScope::Thread => libc::RUSAGE_THREAD,
    };
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: invariant 1.
    if check(unsafe { libc::getrusage(who, usage.as_mut_ptr()) }).is_err() {
        return CpuTimes::default();
    }
    // SAFETY: invariant 5, and the call filled it.
    let usage = unsafe { usage.assume_init() };
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    CpuTimes { user_us: us(usage.ru_utime), system_us: us(usage.ru_stime) }
}

/// Creates a non-blocking eventfd with count 0.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: invariant 2.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn epoll_create() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: invariant 2.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Changes the interest in `fd`. `operation` is one of `EPOLL_CTL_*`, `interest` is a set of
/// `EPOLL*` bits, and `datum` is returned with each event.
pub(crate) fn epoll_ctl(
    epoll: BorrowedFd<'_>,
    operation: libc::c_int,
    fd: BorrowedFd<'_>,
    interest: u32,
    datum: u64,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events: interest, u64: datum };
    // SAFETY: invariant 1.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event) })
        .map(drop)
}

/// Waits for events, fills `events` and returns their number. A timeout of -1 waits forever. An
/// interrupted wait returns no events.
pub(crate) fn epoll_wait(
    epoll: BorrowedFd<'_>,
    events: &mut [libc::epoll_event],
    timeout_ms: i32,
) -> io::Result<usize> {
    let max = i32::try_from(events.len()).unwrap_or(i32::MAX);
    // SAFETY: invariant 1.
    let count =
        unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), max, timeout_ms) };
    match check(count) {
        Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

/// Like [`epoll_wait`], with a timeout of less than a second that is not rounded to milliseconds. Fails
/// on kernels before Linux 5.11, and in sandboxes that do not know the call.
pub(crate) fn epoll_wait_ns(
    epoll: BorrowedFd<'_>,
    events: &mut [libc::epoll_event],
    timeout_ns: u32,
) -> io::Result<usize> {
    let max = i32::try_from(events.len()).unwrap_or(i32::MAX);
    let timeout = libc::timespec { tv_sec: 0, tv_nsec: i64::from(timeout_ns) };
    let no_mask = std::ptr::null::<libc::sigset_t>();
    // SAFETY: invariant 1. The kernel does not read a null mask.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            max,
            &raw const timeout,
            no_mask,
            0usize,
        )
    };
    match check(count as libc::c_int) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        count => count.map(|count| usize::try_from(count).unwrap_or(0)),
    }
}

/// Returns the size of a memory page in bytes.
pub fn page_bytes() -> u64 {
    // SAFETY: this call takes a number and no memory.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // Every known system reports a size; the fallback is the most common one.
    u64::try_from(bytes).unwrap_or(4096)
}

/// Sets how late the kernel may wake this thread from a sleep. If the call fails, sleeps only take
/// longer.
pub(crate) fn set_timer_slack(ns: u32) {
    // SAFETY: this request takes a number and no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(ns)) };
}

/// Accepts one connection; its descriptor is closed on exec.
pub(crate) fn accept(
    listener: BorrowedFd<'_>,
    nonblocking: bool,
) -> io::Result<(OwnedFd, PeerAddr)> {
    let flags = libc::SOCK_CLOEXEC | if nonblocking { libc::SOCK_NONBLOCK } else { 0 };
    // SAFETY: invariant 1: `try_init` passes a storage and its length; the call stores a valid
    // address there.
    let accepted = unsafe {
        SockAddr::try_init(|storage, len| {
            check(libc::accept4(listener.as_raw_fd(), storage.cast(), len, flags))
        })
    };
    let (fd, address) = accepted?;
    // SAFETY: invariant 2.
    Ok((unsafe { OwnedFd::from_raw_fd(fd) }, PeerAddr::from_sock_addr(&address)))
}

/// Returns true if an accept failed only for this one connection, so that the next accept may
/// succeed immediately.
pub(crate) fn is_transient_accept_error(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNABORTED
                | libc::EINTR
                | libc::EPROTO
                | libc::EPERM
                | libc::ENETDOWN
                | libc::ENOPROTOOPT
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
        )
    )
}

/// Reports whether accepting failed because the listener was stopped ([`crate::ListenerStopper`]). A
/// stopped listener never accepts again, so a retry is useless.
pub(crate) fn is_error_of_stopped_listener(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINVAL)
}

/// Receives without waiting. Calls the kernel directly: in libc, receiving and sending are
/// cancellation points, which cost about forty instructions each.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(socket, buffer, RecvFlags::DONTWAIT)?.0)
}

/// Sends without waiting and without raising a signal, regardless of the socket's mode. Calls the
/// kernel directly, as [`receive`] does.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?)
}

/// Like [`send`], for several slices.
pub(crate) fn send_gathered(
    socket: BorrowedFd<'_>,
    slices: &mut [IoSlice<'_>],
) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: invariant 4.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = slices.as_mut_ptr().cast(); // invariant 3
    message.msg_iovlen = slices.len();
    // SAFETY: invariants 1 and 3.
    check_len(unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) })
}
