//! Executes the sends or the receives of several sockets in one system call.
//!
//! Entering and leaving the kernel takes up to a tenth of the time of a small request. With
//! io_uring, many operations need only one such entry. The ring is used for nothing else: epoll
//! reports which sockets are ready, and each operation could also be a system call.
//!
//! Invariants (SAFETY notes cite them by number; `run` checks 1)
//!  1. Every operation is non-blocking (`MSG_DONTWAIT`). The kernel executes such an operation while
//!     it is submitted, and never defers it. So when `run` returns, each operation has completed or
//!     will never be executed.
//!  2. All memory that an operation refers to is borrowed by the caller of `run`, or belongs to
//!     `messages`, which only `send` changes.

use crate::message::Message;
use crate::output::Output;
use crate::reactor::SETTLED_TOGETHER;
use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use smallvec::SmallVec;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Maximum number of operations in a batch.
pub(super) const OPERATIONS_MAX: usize = SETTLED_TOGETHER;
/// With fewer operations, a batch costs about as much as it saves.
pub(super) const OPERATIONS_MIN: usize = 4;

/// The results of a batch, in its order. `None` for an operation that was not executed, because
/// the ring no longer works.
pub(super) type Results = SmallVec<[Option<io::Result<usize>>; OPERATIONS_MAX]>;

pub(super) struct SocketBatch {
    ring: IoUring,
    /// Headers of gathered sends, by position in the batch.
    messages: Vec<Option<Box<Message>>>,
    is_broken: bool,
}

impl std::fmt::Debug for SocketBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SocketBatch").field("is_broken", &self.is_broken).finish_non_exhaustive()
    }
}

/// Checks whether this process can execute sends and receives in batches. This requires Linux 6.1
/// and no seccomp rule that forbids io_uring.
///
/// # Errors
/// Returns the reason, for the log, if it cannot.
pub fn batches_available() -> Result<(), String> {
    SocketBatch::new().map(drop).map_err(|error| format!("io_uring is not usable: {error}"))
}

impl SocketBatch {
    /// # Errors
    /// If the kernel does not provide io_uring to this process, or not in a recent version.
    pub(super) fn new() -> io::Result<Self> {
        let entries = OPERATIONS_MAX as u32;
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .build(entries)?;
        let mut messages = Vec::new();
        messages.resize_with(OPERATIONS_MAX, || None);
        let mut batch = Self { ring, messages, is_broken: false };
        // A sandbox may permit creating a ring, but not using it.
        let nothing = std::iter::once(opcode::Nop::new().build()).collect();
        // SAFETY: this operation refers to no memory and waits for nothing.
        match unsafe { batch.run(nothing) }.pop().flatten() {
            Some(Ok(_)) => Ok(batch),
            Some(Err(error)) => Err(error),
            None => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Returns true once an operation was not executed. The batch is then of no further use.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Sends the first pieces of each output, without waiting and without raising a signal. The
    /// results are the numbers of bytes sent. At most [`OPERATIONS_MAX`] sends.
    pub(super) fn send(&mut self, sends: &[(BorrowedFd<'_>, &Output)]) -> Results {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        let mut entries = Entries::new();
        for ((fd, output), message) in sends.iter().zip(&mut self.messages) {
            let fd = Fd(fd.as_raw_fd());
            entries.push(if let Some(bytes) = output.as_one() {
                let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                opcode::Send::new(fd, bytes.as_ptr(), len).flags(flags).build()
            } else {
                let message = Message::gather(output, message);
                opcode::SendMsg::new(fd, message).flags(flags.cast_unsigned()).build()
            });
        }
        // SAFETY: invariants 1 and 2: the outputs are borrowed until this function returns.
        unsafe { self.run(entries) }
    }

    /// Receives from each socket into its own buffer, without waiting. The results are the numbers
    /// of bytes received, 0 at the end of the stream. At most [`OPERATIONS_MAX`] receives.
    pub(super) fn receive<'b>(
        &mut self,
        receives: impl Iterator<Item = (BorrowedFd<'b>, &'b mut [u8])>,
    ) -> Results {
        let entries = receives.map(|(fd, buffer)| {
            let len = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
            opcode::Recv::new(Fd(fd.as_raw_fd()), buffer.as_mut_ptr(), len)
                .flags(libc::MSG_DONTWAIT)
                .build()
        });
        let entries = entries.collect();
        // SAFETY: invariants 1 and 2: the buffers are borrowed for `'b`, which does not end before this
        // function returns.
        unsafe { self.run(entries) }
    }

    /// Executes the operations.
    ///
    /// # Safety
    /// The memory that the entries refer to must not move, change or be freed before this function
    /// returns, and all entries must be non-blocking (invariant 1).
    unsafe fn run(&mut self, entries: Entries) -> Results {
        let count = entries.len();
        let mut results: Results = std::iter::repeat_with(|| None).take(count).collect();
        let mut submission = self.ring.submission();
        for (position, entry) in (0u64..).zip(entries) {
            // SAFETY: the caller's promise.
            let pushed = unsafe { submission.push(&entry.user_data(position)) };
            assert!(pushed.is_ok(), "at most {OPERATIONS_MAX} operations");
        }
        drop(submission); // makes the entries visible to the kernel
        let mut completed = 0;
        while completed < count && !self.is_broken {
            match self.ring.submit_and_wait(count - completed) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.is_broken = true,
            }
            for completion in self.ring.completion() {
                let position = usize::try_from(completion.user_data()).unwrap_or(usize::MAX);
                let result = completion.result();
                results[position] = Some(
                    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result)),
                );
                completed += 1;
            }
        }
        let never_submitted = self.ring.submission().len();
        if completed + never_submitted != count {
            // The kernel may still use memory that unwinding would free.
            let _ = io::Write::write_all(
                &mut io::stderr(),
                b"io_uring deferred a non-blocking operation\n",
            );
            std::process::abort();
        }
        results
    }
}

type Entries = SmallVec<[squeue::Entry; OPERATIONS_MAX]>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn operations_of_a_batch_have_the_results_of_separate_calls() {
        if let Err(reason) = batches_available() {
            // As the tests in `tests` report it.
            let thread = std::thread::current();
            let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or_default());
            let _ = io::stderr().write_all(line.as_bytes());
            return;
        }
        let mut batch = SocketBatch::new().expect("a batch");
        let pairs: Vec<_> = (0..4).map(|_| UnixStream::pair().expect("a pair")).collect();
        let mut outputs: Vec<Output> = pairs.iter().map(|_| Output::new()).collect();
        outputs[0].extend_from_slice(b"small");
        // A gathered send.
        outputs[1].extend_from_slice(b"before");
        outputs[1].push_shared(std::sync::Arc::new(vec![b'x'; 5000]), 0..5000);
        outputs[1].extend_from_slice(b"after");
        // More than the socket takes, and a socket whose peer is gone.
        outputs[2].extend_from_slice(&vec![0; 100 << 20]);
        outputs[3].extend_from_slice(b"nobody reads this");
        let (near, mut far): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        far.pop();

        let sends: Vec<_> = near.iter().map(AsFd::as_fd).zip(&outputs).collect();
        let results = batch.send(&sends);
        let sent: Vec<_> = results.into_iter().map(|result| result.expect("executed")).collect();
        assert_eq!(sent[0].as_ref().unwrap(), &5);
        assert_eq!(sent[1].as_ref().unwrap(), &5011);
        assert!((1..100 << 20).contains(sent[2].as_ref().unwrap()), "{:?}", sent[2]);
        assert_eq!(sent[3].as_ref().unwrap_err().kind(), io::ErrorKind::BrokenPipe);

        let mut gathered = vec![0; 5011];
        far[1].read_exact(&mut gathered).expect("the gathered bytes");
        assert!(gathered.starts_with(b"beforexx") && gathered.ends_with(b"xxafter"));

        // To receive: bytes, nothing yet, and the end of the stream.
        far[0].write_all(b"request").expect("a write");
        near[0].set_nonblocking(false).expect("blocking, and still the batch does not wait");
        let mut buffers = vec![[0; 100]; 3];
        let sockets = [&near[0], &near[1], &near[3]];
        let receives = sockets.map(AsFd::as_fd).into_iter().zip(&mut buffers);
        let results = batch.receive(receives.map(|(fd, buffer)| (fd, &mut buffer[..])));
        let received: Vec<_> =
            results.into_iter().map(|result| result.expect("executed")).collect();
        assert_eq!(received[0].as_ref().unwrap(), &7);
        assert_eq!(received[1].as_ref().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(received[2].as_ref().unwrap(), &0);
        assert_eq!(&buffers[0][..7], b"request");
        assert!(!batch.is_broken());

        // Nothing is executed if the ring does not work.
        batch.is_broken = true;
        let results = batch.send(&[(near[0].as_fd(), &outputs[0])]);
        assert!(matches!(results.as_slice(), [None]), "{results:?}");
    }
}
