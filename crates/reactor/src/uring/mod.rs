//! The io_uring back end: receives into provided buffers, polls of listeners, sends queued at the
//! end of the round, one `io_uring_enter` per round for everything.
//!
//! ```text
//!  user datum:  kind: 4 bits | generation: 32 bits | index: 28 bits
//!  a connection's operations: at most one receive, one send, one poll (for a hang-up while paused)
//! ```
//!
//! A receive is for one buffer and is started again when that was delivered. A multishot receive
//! would go on by itself and, during a pause, until its cancellation is carried out: more than a
//! megabyte was met. So what is held of a connection whose reading is paused, to be delivered on
//! resumption, is one buffer at most. A pause that has told of a hang-up, and a peer that has
//! finished, are not watched further: a later reset shows at the next send.
//!
//! Invariants (SAFETY notes cite them by number; `busy` and `release` check 2)
//!  1. The memory of a send stays where it is until its completion: it belongs to `sending`, which
//!     nobody touches while `send_busy`, and whose buffers are on the heap (a `Vec`, or behind an
//!     `Arc` that `sending` holds). The message header and pieces of a gathered send are boxed
//!     beside it.
//!  2. A slot is freed for reuse, and its descriptor closed, only when none of its operations is
//!     under way. So a completion never meets a later connection; the generation in the user datum
//!     is checked besides.
//!  3. Before memory the kernel may use is freed, all operations have completed, or the memory is
//!     leaked (`Drop`).

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

/// Submission entries; more operations than that in a round take a further `io_uring_enter`.
const SUBMISSIONS: u32 = 1024;
/// Completions the ring holds before the kernel has to queue them aside, and so the most handled in
/// a round.
const COMPLETIONS: u32 = 8192;
/// How often `Drop` looks for the last completions, 10 ms apart.
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
    /// First, so that it is closed before any memory goes.
    ring: IoUring,
    buffers: Buffers,
    operations: Vec<Operations>,
    queue: VecDeque<squeue::Entry>,
    completions: Vec<(u64, i32, u32)>,
    /// Per listener, changed whenever accepting stops, so that late completions are recognised.
    accepting: Vec<u32>,
    /// Whether the kernel can wait for several completions for a time and for one after it.
    gathers: bool,
    /// Operations queued whose last completion has not come.
    under_way: usize,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}

/// Completions that are enough to stop gathering.
const GATHERED: usize = 16;
/// A wait without end ends for a moment so often when requests gather.
const GATHER_TIMEOUT: Duration = Duration::from_secs(1);

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

/// Whether this kernel lets this process use io_uring as the back end needs it (Linux 6.1, and no
/// seccomp rule against it).
///
/// # Errors
/// The reason why not, for the log.
pub fn uring_available() -> Result<(), String> {
    make_ring(8, 16).map(drop).map_err(|error| format!("io_uring is not usable: {error}"))
}

impl Uring {
    pub(crate) fn new(io: &Control) -> io::Result<Self> {
        let (ring, buffers) = make_ring(SUBMISSIONS, COMPLETIONS)?;
        let gathers = ring.params().is_feature_min_timeout();
        let mut uring = Self {
            ring,
            buffers,
            operations: Vec::new(),
            queue: VecDeque::new(),
            completions: Vec::new(),
            accepting: Vec::new(),
            under_way: 0,
            gathers,
        };
        uring.watch_waker(io);
        Ok(uring)
    }

    fn watch_waker(&mut self, io: &Control) {
        let events = libc::POLLIN as u32;
        let poll = opcode::PollAdd::new(Fd(io.wake.fd().as_raw_fd()), events).multi(true);
        self.start(poll.build().user_data(datum(KIND_WAKER, 0, 0)));
    }

    /// Queues an operation whose completion will be waited for.
    fn start(&mut self, entry: squeue::Entry) {
        self.under_way += 1;
        self.queue.push_back(entry);
    }

    fn cancel(&mut self, what: CancelBuilder) {
        let entry = opcode::AsyncCancel2::new(what).build();
        let quiet = squeue::Flags::SKIP_SUCCESS;
        self.queue.push_back(entry.flags(quiet).user_data(datum(KIND_IGNORED, 0, 0)));
    }

    /// Gives the kernel what is queued, without waiting for anything.
    pub(crate) fn submit_queue(&mut self, io: &mut Control) {
        // What it does not take now it never will.
        let _ = self.push_queue(io);
        let _ = self.ring.submit();
    }

    /// Moves what is queued into the ring; false if the kernel will not take all before completions
    /// are taken.
    fn push_queue(&mut self, io: &mut Control) -> io::Result<bool> {
        let (submitter, mut submissions, _) = self.ring.split();
        while let Some(entry) = self.queue.front() {
            // SAFETY: invariants 1 and 3: whatever the entry points to stays until its completion.
            if unsafe { submissions.push(entry) }.is_ok() {
                self.queue.pop_front();
                continue;
            }
            submissions.sync(); // shows the entries to the kernel
            io.counters.waits += 1;
            match submitter.submit() {
                Ok(0) => return Ok(false),
                Ok(_) => submissions.sync(), // shows the room they left
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

    /// Waits for several completions as long as `gather`, and for one as long as `timeout`.
    fn wait_for_several(&self, gather: Duration, timeout: Duration) -> io::Result<usize> {
        let limit = Timespec::from(timeout);
        let gather_us = u32::try_from(gather.as_micros()).unwrap_or(u32::MAX);
        let args = SubmitArgs::new().timespec(&limit).min_wait_usec(gather_us);
        self.ring.submitter().submit_with_args(GATHERED, &args)
    }

    /// The token of a completion's connection, if that is still open.
    fn live(&mut self, io: &Control, index: u32, generation: u32) -> Option<Token> {
        assert_eq!(self.operations(index).generation, generation, "invariant 2");
        let token = Token::new(index, generation);
        io.is_open(token).then_some(token)
    }

    fn begin(&mut self, token: Token, index: u32) {
        let operations = self.operations(index);
        assert!(!operations.busy(), "invariant 2");
        let generation = token.generation();
        *operations = Operations { generation, more_waits: true, ..Operations::default() };
    }

    /// A listener was found ready; the accept calls follow at the end of the round.
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
    // The ring waits by itself; on a non-blocking socket it would report instead of waiting.
    const NONBLOCKING: bool = false;

    fn start_accepting(&mut self, io: &mut Control, listener: u32) -> io::Result<()> {
        let Some(Some(listening)) = io.listeners.get(listener as usize) else { return Ok(()) };
        if self.accepting.len() <= listener as usize {
            self.accepting.resize(listener as usize + 1, 0);
        }
        let fd = Fd(listening.listener.as_fd().as_raw_fd());
        // Workers that share a Unix listener are woken one at a time.
        let events = libc::POLLIN as u32 | libc::EPOLLEXCLUSIVE as u32;
        let entry = opcode::PollAdd::new(fd, events).build();
        let round = self.accepting[listener as usize];
        self.start(entry.user_data(datum(KIND_ACCEPT, round, listener)));
        Ok(())
    }

    fn go_on_accepting(&mut self, io: &mut Control, listener: u32) -> io::Result<()> {
        // The poll told once; a new one tells at once if connections are left.
        self.start_accepting(io, listener)
    }

    fn opened(&mut self, io: &mut Control, token: Token) {
        let index = io.slab_index(token);
        self.begin(token, index);
        io.slab.slot(index).registered = true;
    }

    fn stop_accepting(&mut self, io: &mut Control, listener: u32) {
        if let Some(round) = self.accepting.get_mut(listener as usize) {
            let accept = datum(KIND_ACCEPT, *round, listener);
            *round = round.wrapping_add(1);
            self.cancel(CancelBuilder::user_data(accept));
            // At once: the caller is about to take the descriptor away, and queued entries name it.
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
        let gather = if self.gathers { io.gathering(since, timeout) } else { None };
        let done = match (gather, timeout) {
            (Some(time), _) => self.wait_for_several(time, timeout.unwrap_or(GATHER_TIMEOUT)),
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
        for (word, result, flags) in completions.drain(..) {
            let kind = word >> 60;
            #[expect(clippy::cast_possible_truncation, reason = "the fields are taken apart")]
            let (index, generation) = ((word & 0xfff_ffff) as u32, (word >> 28) as u32);
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
                // As for listeners: the ring waits by itself.
                let _ = SockRef::from(&fd).set_nonblocking(false);
            }
        }
        self.catch_up(io, handler, index);
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
    /// Ends all operations; memory the kernel might still use is leaked (invariant 3).
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
