//! The event loop of one worker: sockets in, requests' bytes to a [`Handler`], replies' bytes out.
//!
//! A [`Reactor`] belongs to one thread and runs over epoll or io_uring, chosen when it is made;
//! both behave alike, as the shared tests show. The worker calls [`Reactor::poll`] in a loop. In
//! every round the handler is told what happened and answers through [`Control`]: it appends to a
//! connection's [`Output`], and says what shall happen to the connection. Nothing a handler calls
//! waits or does I/O: changes are noted, and carried out after the call (for the connection it was
//! about) or at the end of the round.
//!
//! ```text
//!  poll ─ settle changes ─ wait ─ received, finished … ─ woken ─ round_end ─ settle ─ accepted
//!                                  └ epoll: sends, some dozens together      └ io_uring: all
//! ```
//!
//! | file | about |
//! |---|---|
//! | `handler` | what a worker implements |
//! | `control`, `connection` | the connections and everything a handler may do to them |
//! | `output`, `token` | bytes to send; names of connections |
//! | `unread` | memory of output that peers have not read |
//! | `reactor`, `accept` | the round, the choice of back end; new connections |
//! | `epoll`, `uring` | the back ends |
//! | `pace` | when requests gather before they are waited for |
//! | `listen`, `waker`, `clock`, `counters` | listeners, wakes from other threads, ticks, figures |
//! | `sys` | system calls behind safe functions |
//! | `process` | signals the process does not mind, its copy in the background |
//! | `crash` | what is told of a process that a signal ends |
//!
//! Only Linux has back ends so far; another (kqueue) would implement the same internal trait.

mod accept;
mod clock;
mod connection;
mod control;
mod counters;
mod crash;
mod epoll;
mod handler;
mod listen;
mod output;
mod pace;
mod process;
mod reactor;
mod sys;
mod token;
mod unread;
mod uring;
mod waker;

#[cfg(any(debug_assertions, feature = "simulated-time"))]
pub use clock::set_simulated_ms;
pub use clock::{Clock, clock, monotonic_ns, ticks, unix_ms, unix_us};
pub use control::Control;
pub use counters::Counters;
pub use crash::{report_crashes, set_crash_reports};
pub use handler::{Accept, Close, CloseReason, Handler};
pub use listen::{ListenError, Listener, PeerAddr, Stopper, TcpOptions, probe_tcp};
pub use output::{CountedBytes, Output, SHARED_BYTES_MIN, Segments, Shared};
pub use process::{Forked, fork_alone, ignore_idle_signals};
pub use reactor::{BackendChoice, Config, Reactor};
pub use sys::{CpuOf, CpuTimes, cpu_times, page_bytes};
pub use token::Token;
pub use unread::{OutputBytes, unread_bytes};
pub use uring::uring_available;
pub use waker::Waker;
