//! The io_uring back end: receives into provided buffers, polls listeners, and queues sends at the
//! end of the round. One `io_uring_enter` per round submits everything.
//!
//! ```text
//!  user data:  kind: 4 bits | generation: 32 bits | index: 28 bits
//!  operations of a connection: at most one receive, one send, one poll (for a hang-up while paused)
//! ```
//!
//! A receive fills one buffer and is started again after that buffer was delivered. A multishot
//! receive would continue on its own, even during a pause, until its cancellation is complete. In
//! measurements, more than a megabyte was received that way. With single receives, at most one
//! buffer is held for a connection whose reading is paused; it is delivered when reading resumes.
//! Once a hang-up has been reported during a pause, or the peer has finished, the connection is no
//! longer watched. A later reset is noticed at the next send.
//!
//! Invariants (SAFETY notes cite them by number; `busy` and `release` check 2)
//!  1. The memory of a send does not move until its completion. It belongs to `sending`, which
//!     nothing touches while `send_busy` is set, and whose buffers are on the heap (a `Vec`, or
//!     data behind an `Arc` that `sending` holds). The message header and the pieces of a gathered
//!     send are boxed next to it.
//!  2. A slot is freed for reuse, and its descriptor closed, only when none of its operations is in
//!     progress. So a completion never refers to a later connection. The generation in the user
//!     data is checked as well.
//!  3. Before memory that the kernel may use is freed, all operations have completed. Otherwise the
//!     memory is leaked (`Drop`).

mod buffers;
mod transfer;

use crate::clock::ticks;
use crate::control::Control;
use crate::handler::{Close, Handler};
use crate::reactor::Backend;
use crate::token::Token;
use buffers::Buffers;
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use socket2::SockRef;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use transfer::Operations;

/// Number of submission entries. A round with more operations needs another `io_uring_enter`.
const SUBMISSIONS: u32 = 1024;
/// Number of completions that the ring holds before the kernel has to queue them separately. Also
/// the maximum number handled in one round.
const COMPLETIONS: u32 = 8192;
/// Maximum number of times that `Drop` waits for the last completions, 10 ms each time.
const DROP_WAITS_MAX: u32 = 100;

const KIND_IGNORED: u64 = 0;
const KIND_WAKER: u64 = 1;
const KIND_ACCEPT: u64 = 2;
const KIND_RECEIVE: u64 = 3;
const KIND_SEND: u64 = 4;
const KIND_POLL: u64 = 5;

fn datum(kind: u64, generation: u32, index: u32) -> u64 {
    kind << 60 | u64::from(generation) << 28 | u64::from(index)
}

pub(crate) struct Uring {
    /// First field, so that the ring is closed before any memory is freed.
    ring: IoUring,
    buffers: Buffers,
    operations: Vec<Operations>,
    queue: VecDeque<squeue::Entry>,
    completions: Vec<(u64, i32, u32)>,
    /// A number per listener that changes whenever accepting stops, so that late completions are
    /// recognized.
    accepting: Vec<u32>,
    /// True if the kernel can wait a bounded time for several completions, and after that for one.
    can_coalesce: bool,
    /// Number of queued operations whose last completion has not arrived.
    under_way: usize,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}

/// A coalescing wait ends early when this many completions have arrived.
const COALESCED_COMPLETIONS: usize = 16;
/// Maximum length of a coalescing wait that has no timeout of its own.
const COALESCING_TIMEOUT: Duration = Duration::from_secs(1);

fn make_ring(submissions: u32, completions: u32) -> io::Result<(IoUring, Buffers)> {
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .setup_clamp()
        .setup_cqsize(completions)
        .build(submissions)?;
    let buffers = Buffers::new(&ring)?;
    Ok((ring, buffers))
}

/// Checks whether this process can use io_uring in the way that the back end needs. This requires
/// Linux 6.1 and no seccomp rule that forbids it.
///
/// # Errors
/// Returns the reason, for the log, if io_uring is not available.
pub fn uring_available() -> Result<(), String> {
    make_ring(8, 16).map(drop).map_err(|error| format!("io_uring is not usable: {error}"))
}

impl Uring {
    pub(crate) fn new(io: &Control) -> io::Result<Self> {
        let (ring, buffers) = make_ring(SUBMISSIONS, COMPLETIONS)?;
        let can_coalesce = ring.params().is_feature_min_timeout();
        let mut uring = Self {
            ring,
            buffers,
            operations: Vec::new(),
            queue: VecDeque::new(),
            completions: Vec::new(),
            accepting: Vec::new(),
            under_way: 0,
            can_coalesce,
        };
        uring.watch_waker(io);
        Ok(uring)
    }

    fn watch_waker(&mut self, io: &Control) {
        let events = libc::POLLIN as u32;
        let poll = opcode::PollAdd::new(Fd(io.wake.fd().as_raw_fd()), events).multi(true);
        self.start(poll.build().user_data(datum(KIND_WAKER, 0, 0)));
    }

    /// Queues an operation whose completion is counted.
    fn start(&mut self, entry: squeue::Entry) {
        self.under_way += 1;
        self.queue.push_back(entry);
    }

    fn cancel(&mut self, what: CancelBuilder) {
        let entry = opcode::AsyncCancel2::new(what).build();
        let quiet = squeue::Flags::SKIP_SUCCESS;
        self.queue.push_back(entry.flags(quiet).user_data(datum(KIND_IGNORED, 0, 0)));
    }

    /// Submits the queued operations, without waiting for anything.
    pub(crate) fn submit_queue(&mut self, io: &mut Control) {
        // The ring is about to be dropped: an entry that the kernel does not take now is lost.
        let _ = self.push_queue(io);
        let _ = self.ring.submit();
    }

    /// Moves the queued entries into the ring. Returns false if the kernel takes the rest only
    /// after completions have been read.
    fn push_queue(&mut self, io: &mut Control) -> io::Result<bool> {
        let (submitter, mut submissions, _) = self.ring.split();
        while let Some(entry) = self.queue.front() {
            // SAFETY: invariants 1 and 3: everything that the entry points to stays valid until its
            // completion.
            if unsafe { submissions.push(entry) }.is_ok() {
                self.queue.pop_front();
                continue;
            }
            submissions.sync(); // makes the entries visible to the kernel
            io.counters.waits += 1;
            match submitter.submit() {
                Ok(0) => return Ok(false),
                Ok(_) => submissions.sync(), // sees the room that the kernel has freed
                Err(error) if may_try_again(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn operations(&mut self, index: u32) -> &mut Operations {
        let needed = index as usize + 1;
        if self.operations.len() < needed {
            self.operations.resize_with(needed, Operations::default);
        }
        &mut self.operations[index as usize]
    }

    /// Waits for several completions for at most `gather`, and then for one completion for at most
    /// `timeout`.
    fn wait_for_several(&self, gather: Duration, timeout: Duration) -> io::Result<usize> {
        let limit = Timespec::from(timeout);
        let gather_us = u32::try_from(gather.as_micros()).unwrap_or(u32::MAX);
        let args = SubmitArgs::new().timespec(&limit).min_wait_usec(gather_us);
        self.ring.submitter().submit_with_args(COALESCED_COMPLETIONS, &args)
    }

    /// Returns the token of a completion's connection if the connection is still open.
    fn open_token(&mut self, io: &Control, index: u32, generation: u32) -> Option<Token> {
        assert_eq!(self.operations(index).generation, generation, "invariant 2");
        let token = Token::new(index, generation);
        io.is_open(token).then_some(token)
    }

    fn reset_operations(&mut self, token: Token, index: u32) {
        let operations = self.operations(index);
        assert!(!operations.busy(), "invariant 2");
        let generation = token.generation();
        *operations = Operations { generation, more_waits: true, ..Operations::default() };
    }

    /// Records that a listener is ready. The accept calls follow at the end of the round.
    fn listener_ready(&self, io: &mut Control, (listener, round): (u32, u32)) {
        if self.accepting.get(listener as usize) == Some(&round) {
            io.ready_listeners.push(listener);
        }
    }
}

fn may_try_again(error: &io::Error) -> bool {
    let again = [libc::EINTR, libc::EBUSY, libc::EAGAIN, libc::ETIME];
    error.raw_os_error().is_some_and(|code| again.contains(&code))
}

impl Backend for Uring {
    // The ring itself does the waiting. On a non-blocking socket it would return an error instead
    // of waiting.
    const NONBLOCKING: bool = false;

    fn start_accepting(&mut self, io: &mut Control, listener: u32) -> io::Result<()> {
        let Some(Some(state)) = io.listeners.get(listener as usize) else { return Ok(()) };
        if self.accepting.len() <= listener as usize {
            self.accepting.resize(listener as usize + 1, 0);
        }
        let fd = Fd(state.listener.as_fd().as_raw_fd());
        // The kernel wakes one of the workers that share a Unix listener.
        let events = libc::POLLIN as u32 | libc::EPOLLEXCLUSIVE as u32;
        let entry = opcode::PollAdd::new(fd, events).build();
        let round = self.accepting[listener as usize];
        self.start(entry.user_data(datum(KIND_ACCEPT, round, listener)));
        Ok(())
    }

    fn continue_accepting(&mut self, io: &mut Control, listener: u32) -> io::Result<()> {
        // A poll reports only once. A new poll reports immediately if connections are left.
        self.start_accepting(io, listener)
    }

    fn opened(&mut self, io: &mut Control, token: Token) {
        let index = io.slab_index(token);
        self.reset_operations(token, index);
        io.slab.slot(index).registered = true;
    }

    fn stop_accepting(&mut self, io: &mut Control, listener: u32) {
        if let Some(round) = self.accepting.get_mut(listener as usize) {
            let accept = datum(KIND_ACCEPT, *round, listener);
            *round = round.wrapping_add(1);
            self.cancel(CancelBuilder::user_data(accept));
            // Submit immediately: the caller is about to remove the descriptor, and queued entries
            // refer to it.
            if self.push_queue(io).is_ok() {
                let _ = self.ring.submit();
            }
        }
    }

    fn wait(&mut self, io: &mut Control, timeout: Option<Duration>) -> io::Result<()> {
        let since = ticks();
        self.buffers.publish();
        let all_pushed = self.push_queue(io)?;
        let timeout = if all_pushed { timeout } else { Some(Duration::ZERO) };
        io.counters.waits += 1;
        let gather = if self.can_coalesce { io.coalescing_sleep(since, timeout) } else { None };
        let done = match (gather, timeout) {
            (Some(time), _) => self.wait_for_several(time, timeout.unwrap_or(COALESCING_TIMEOUT)),
            (None, None) => self.ring.submit_and_wait(1),
            (None, Some(timeout)) => {
                let limit = Timespec::from(timeout);
                let args = SubmitArgs::new().timespec(&limit);
                self.ring.submitter().submit_with_args(usize::from(!timeout.is_zero()), &args)
            }
        };
        if let Err(error) = done
            && !may_try_again(&error)
        {
            return Err(error);
        }
        let completions = self.ring.completion();
        self.completions.extend(completions.map(|c| (c.user_data(), c.result(), c.flags())));
        io.counters.events += self.completions.len() as u64;
        io.counters.ticks_wait += ticks().wrapping_sub(since);
        Ok(())
    }

    fn dispatch<H: Handler>(&mut self, io: &mut Control, handler: &mut H) {
        let mut completions = std::mem::take(&mut self.completions);
        for (data, result, flags) in completions.drain(..) {
            let kind = data >> 60;
            #[expect(clippy::cast_possible_truncation, reason = "the fields are taken apart")]
            let (index, generation) = ((data & 0xfff_ffff) as u32, (data >> 28) as u32);
            let more = cqueue::more(flags);
            if kind != KIND_IGNORED && !more {
                self.under_way -= 1;
            }
            match kind {
                KIND_RECEIVE => self.received(io, handler, (index, generation), (result, flags)),
                KIND_SEND => self.sent(io, (index, generation), result),
                KIND_ACCEPT => self.listener_ready(io, (index, generation)),
                KIND_POLL => self.polled(io, handler, (index, generation), result),
                KIND_WAKER if !more => self.watch_waker(io),
                _ => {}
            }
        }
        self.completions = completions;
    }

    fn settle<H: Handler>(&mut self, io: &mut Control, handler: &mut H, index: u32) {
        let token = io.slab.token(index);
        if !io.slab.slot(index).registered {
            self.opened(io, token);
            if let Some(fd) = io.fd(token) {
                // As for listeners: the ring itself does the waiting.
                let _ = SockRef::from(&fd).set_nonblocking(false);
            }
        }
        self.deliver_held(io, handler, index);
        if io.slab.slot(index).doomed.is_none() {
            self.send(io, index);
        }
        io.after_sending(handler, index);
        let slot = io.slab.slot(index);
        if let Some(reason) = slot.due() {
            let fd = io.retire(handler, index, reason);
            let operations = &mut self.operations[index as usize];
            operations.held = Vec::new();
            operations.retired = fd;
            if operations.busy()
                && let Some(fd) = &operations.retired
            {
                let everything = CancelBuilder::fd(Fd(fd.as_raw_fd())).all();
                self.cancel(everything);
            }
            self.release_if_done(io, index);
            return;
        }
        if matches!(slot.closing, Some(Close::Flush { .. })) {
            io.linger(index);
        }
        self.watch(io, index);
    }
}

impl Drop for Uring {
    /// Ends all operations. Memory that the kernel might still use is leaked (invariant 3).
    fn drop(&mut self) {
        for _ in 0..DROP_WAITS_MAX {
            while let Some(entry) = self.queue.front() {
                // SAFETY: invariants 1 and 3.
                if unsafe { self.ring.submission().push(entry) }.is_err() {
                    break;
                }
                self.queue.pop_front();
            }
            if self.under_way == 0 {
                return;
            }
            let limit = Timespec::from(Duration::from_millis(10));
            let _ = self.ring.submit();
            let _ = self.ring.submitter().register_sync_cancel(Some(limit), CancelBuilder::any());
            let args = SubmitArgs::new().timespec(&limit);
            let _ = self.ring.submitter().submit_with_args(1, &args);
            for completion in self.ring.completion() {
                let counted = completion.user_data() >> 60 != KIND_IGNORED;
                if counted && !cqueue::more(completion.flags()) {
                    self.under_way -= 1;
                }
            }
        }
        if self.under_way > 0 {
            self.buffers.leak();
            std::mem::forget(std::mem::take(&mut self.operations));
        }
    }
}
