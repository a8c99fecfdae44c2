//! Counters of one reactor: plain numbers that its thread increments and its worker reads.

/// Counts since the reactor was created. A system call that is batched in a ring counts as the
/// operation that it requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReactorCounters {
    /// Calls of `poll`.
    pub rounds: u64,
    /// Events taken from the kernel.
    pub events: u64,
    /// `epoll_wait` or `io_uring_enter` calls.
    pub waits: u64,
    /// Waits that were made longer to let requests arrive together.
    pub sleeps: u64,
    /// `epoll_ctl` calls; 0 with io_uring.
    pub registrations: u64,
    /// Accept attempts, including those that found no connection.
    pub accepts: u64,
    /// Connections kept, refused, or failed at accept.
    pub accepted: u64,
    pub refused: u64,
    pub accept_errors: u64,
    /// System calls that executed several receives or several sends, each of which is also counted
    /// by itself.
    pub batches: u64,
    /// Receive calls or receive completions.
    pub receives: u64,
    pub sends: u64,
    pub closes: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Rounds in which a [`Waker`](crate::Waker) had been used.
    pub wakes: u64,
    /// How often the ring's receive buffers ran out; 0 with epoll.
    pub buffers_exhausted: u64,
    /// The most bytes ever held for a connection whose reading was paused, at most one receive
    /// buffer; 0 with [`Epoll`](crate::BackendChoice::Epoll).
    pub held_max: u64,
    /// Ticks (see [`crate::clock()`]) spent waiting, accepting, in receive calls, and in send
    /// calls. With io_uring the kernel does everything except accepting inside `io_uring_enter`, so
    /// the other times are part of `ticks_wait`.
    pub ticks_wait: u64,
    pub ticks_accept: u64,
    pub ticks_receive: u64,
    pub ticks_send: u64,
}

impl ReactorCounters {
    /// Returns the number of peer actions: data sent, sending finished, connections opened.
    #[inline]
    pub(crate) fn peer_events(&self) -> u64 {
        self.receives + self.accepted
    }
}
