//! The event loop of one worker: it accepts sockets, passes received bytes to a [`Handler`] and
//! sends the replies.
//!
//! A [`Reactor`] belongs to one thread and runs on epoll or io_uring, chosen when it is created.
//! Both behave alike, as the shared tests show. The worker calls [`Reactor::poll`] in a loop. In
//! every round the reactor notifies the handler of events. The handler reacts through [`Control`]:
//! it appends to a connection's [`Output`], and pauses or closes connections. The functions that
//! handlers call never wait and never do I/O on a connection. The reactor records changes and
//! applies them after the callback (for the connection of that callback) or at the end of the
//! round.
//!
//! ```text
//!  poll ─ settle changes ─ wait ─ received, finished … ─ woken ─ round_end ─ settle ─ accepted
//!                                  └ epoll: sends, some dozens together      └ io_uring: all
//! ```
//!
//! | file | about |
//! |---|---|
//! | `handler` | the trait that a worker implements |
//! | `control`, `connection` | the connections, and all calls that a handler can make |
//! | `output`, `token` | bytes to send; names of connections |
//! | `message` | a gathered send of a ring |
//! | `unread` | memory of output that peers have not read |
//! | `reactor`, `accept` | the round and the choice of back end; new connections |
//! | `epoll`, `uring` | the back ends |
//! | `coalesce` | when the loop lets requests arrive together before it waits |
//! | `listen`, `waker`, `clock`, `counters` | listeners, wake-ups from other threads, ticks, counters |
//! | `sys` | safe functions for system calls |
//! | `process` | ignored signals, and the fork into the background |
//! | `crash` | the report that is written when a signal ends the process |
//!
//! Only Linux has back ends so far. A back end for another system, such as kqueue, would implement
//! the same internal trait.

mod accept;
mod clock;
mod coalesce;
mod connection;
mod control;
mod counters;
mod crash;
mod epoll;
mod handler;
mod listen;
mod message;
mod output;
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
pub use counters::ReactorCounters;
pub use crash::{report_crashes, set_crash_reports};
pub use epoll::batches_available;
pub use handler::{Accept, Close, CloseReason, Handler};
pub use listen::{ListenError, Listener, ListenerStopper, PeerAddr, TcpOptions, probe_tcp};
pub use output::{CountedBytes, Output, SHARED_BYTES_MIN, Segments, SharedBytes};
pub use process::{ForkResult, fork_single_threaded, ignore_idle_signals};
pub use reactor::{BackendChoice, Reactor, ReactorConfig};
pub use sys::{CpuScope, CpuTimes, cpu_times, page_bytes};
pub use token::Token;
pub use unread::{OutputBytes, unread_bytes};
pub use uring::uring_available;
pub use waker::Waker;
