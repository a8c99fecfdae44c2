//! Figures of one reactor: plain numbers its thread adds to and its worker reads.

/// Counts since the reactor was made. A system call batched in a ring is counted as the operation
/// it asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls of `poll`.
    pub rounds: u64,
    /// Events taken from the kernel.
    pub events: u64,
    /// `epoll_wait` or `io_uring_enter` calls.
    pub waits: u64,
    /// Waits that were made longer so that requests gathered.
    pub sleeps: u64,
    /// `epoll_ctl` calls; 0 with io_uring.
    pub registrations: u64,
    /// Accept attempts, fruitless ones included.
    pub accepts: u64,
    /// Connections kept, refused, or failed at accept.
    pub accepted: u64,
    pub refused: u64,
    pub accept_errors: u64,
    /// Receive calls or receive completions.
    pub receives: u64,
    pub sends: u64,
    pub closes: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Rounds in which a waker was found used.
    pub wakes: u64,
    /// Times the ring's receive buffers ran out; 0 with epoll.
    pub buffers_exhausted: u64,
    /// The most bytes ever held of a connection whose reading was paused: a receive buffer; 0 with
    /// epoll.
    pub held_max: u64,
    /// Ticks (see [`crate::clock()`]) spent waiting, accepting, in receive calls, and in send
    /// calls. With io_uring the kernel does all but accepting inside `io_uring_enter`, so the
    /// others are in `ticks_wait`.
    pub ticks_wait: u64,
    pub ticks_accept: u64,
    pub ticks_receive: u64,
    pub ticks_send: u64,
}

impl Counters {
    /// What peers did: sent, finished, connected.
    #[inline]
    pub(crate) fn news(&self) -> u64 {
        self.receives + self.accepted
    }
}
