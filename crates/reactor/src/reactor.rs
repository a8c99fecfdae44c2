//! The round of the loop, which both back ends share, and the choice between the back ends.

use crate::accept::{ACCEPTS_DEFAULT, accept_ready};
use crate::control::{Control, ListenerState};
use crate::epoll::Epoll;
use crate::handler::Handler;
use crate::listen::Listener;
use crate::token::Token;
use crate::uring::Uring;
use crate::waker::Waker;
use std::io;
use std::time::Duration;

/// The operations that a back end implements for the round. All I/O on connections goes through
/// this trait.
pub(crate) trait Backend: Sized {
    /// Starts accepting on the listener with this index, possibly after a suspension.
    fn start_accepting(&mut self, io: &mut Control, listener: u32) -> io::Result<()>;

    /// True if accepted sockets are non-blocking.
    const NONBLOCKING: bool;

    /// Called after connections were accepted: makes the kernel report the listener's next
    /// connections.
    fn continue_accepting(&mut self, io: &mut Control, listener: u32) -> io::Result<()>;

    /// Called after a slot was filled with an accepted connection that the handler has not seen
    /// yet.
    fn opened(&mut self, io: &mut Control, token: Token);

    /// Stops accepting. Called before the listener is removed.
    fn stop_accepting(&mut self, io: &mut Control, listener: u32);

    /// Waits for events for at most `timeout`, and takes them from the kernel.
    fn wait(&mut self, io: &mut Control, timeout: Option<Duration>) -> io::Result<()>;

    /// Delivers the events to the handler.
    fn dispatch<H: Handler>(&mut self, io: &mut Control, handler: &mut H);

    /// Sends the output of those connections that are ready to send, if the back end can do this
    /// with fewer system calls than [`Backend::settle`]. Connections with these indices are settled
    /// right after this. At most [`SETTLED_TOGETHER`] indices.
    fn send_together(&mut self, io: &mut Control, indices: &[u32]) {
        let _ = (io, indices);
    }

    /// Applies the changes of one connection: registers, writes, pauses, closes.
    fn settle<H: Handler>(&mut self, io: &mut Control, handler: &mut H, index: u32);
}

/// The back end to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// Epoll, with a system call for each send and receive.
    Epoll,
    /// Epoll, with an io_uring that executes the sends and receives of several connections in one
    /// system call. Without io_uring, this is the same as `Epoll`.
    #[default]
    BatchedEpoll,
    /// io_uring for everything.
    Uring,
}

/// The configuration of a reactor.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReactorConfig {
    pub backend: BackendChoice,
}

#[derive(Debug)]
enum Driver {
    Epoll(Box<Epoll>),
    Uring(Box<Uring>),
}

/// The event loop of one thread. It must be created on the thread that polls it: a ring serves only
/// the thread that set it up.
#[derive(Debug)]
pub struct Reactor {
    /// First field, so that operations end before the descriptors that they use are closed.
    driver: Driver,
    io: Control,
}

impl Reactor {
    /// Creates a reactor without connections or listeners.
    ///
    /// # Errors
    /// Fails if the kernel refuses to create descriptors or the ring.
    pub fn new(config: &ReactorConfig) -> io::Result<Self> {
        let io = Control::new()?;
        let driver = match config.backend {
            BackendChoice::Epoll => Driver::Epoll(Box::new(Epoll::new(&io, false)?)),
            BackendChoice::BatchedEpoll => Driver::Epoll(Box::new(Epoll::new(&io, true)?)),
            BackendChoice::Uring => Driver::Uring(Box::new(Uring::new(&io)?)),
        };
        Ok(Self { io, driver })
    }

    /// Returns `epoll`, `epoll+io_uring` if sends and receives are batched, or `io_uring`.
    #[must_use]
    pub fn backend_name(&self) -> &'static str {
        match &self.driver {
            Driver::Epoll(epoll) if epoll.batches() => "epoll+io_uring",
            Driver::Epoll(_) => "epoll",
            Driver::Uring(_) => "io_uring",
        }
    }

    /// Starts accepting, and returns the listener's index, which is passed to `accepted`.
    ///
    /// # Errors
    /// Returns the error of the kernel; the listener is then closed.
    pub fn listen(&mut self, listener: Listener) -> io::Result<usize> {
        listener.set_nonblocking(true)?;
        let free = self.io.listeners.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.io.listeners.push(None);
            self.io.listeners.len() - 1
        });
        let address = listener.local_addr().filter(|address| !address.ip().is_unspecified());
        let accepts_max = ACCEPTS_DEFAULT;
        self.io.listeners[index] =
            Some(ListenerState { listener, address, accepts_max, quota: 1, resume_at: None });
        let number = u32::try_from(index).map_err(io::Error::other)?;
        let started = match &mut self.driver {
            Driver::Epoll(epoll) => epoll.start_accepting(&mut self.io, number),
            Driver::Uring(uring) => uring.start_accepting(&mut self.io, number),
        };
        if let Err(error) = started {
            self.io.listeners[index] = None;
            return Err(error);
        }
        Ok(index)
    }

    /// Stops accepting and returns the listener; `None` if no listener has this index. Its
    /// connections stay open.
    pub fn unlisten(&mut self, index: usize) -> Option<Listener> {
        self.io.listeners.get(index)?.as_ref()?;
        let number = u32::try_from(index).ok()?;
        match &mut self.driver {
            Driver::Epoll(epoll) => epoll.stop_accepting(&mut self.io, number),
            Driver::Uring(uring) => uring.stop_accepting(&mut self.io, number),
        }
        self.io.listeners[index].take().map(|state| state.listener)
    }

    /// Ends the loop and leaves its connections open until the process exits. Queued output is
    /// passed to the kernel as far as the kernel takes it. New TCP connections are refused. A Unix
    /// socket is not stopped, since other reactors may share it.
    pub fn abandon(mut self) {
        for state in self.io.listeners.iter().flatten() {
            if state.listener.local_addr().is_some() {
                state.listener.stopper().stop();
            }
        }
        if let Driver::Uring(uring) = &mut self.driver {
            uring.submit_queue(&mut self.io);
        }
        std::mem::forget(self);
    }

    /// Sets keep-alive (see [`crate::TcpOptions`]) for connections that are accepted from now on.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn set_keepalive(&self, seconds: u32) -> io::Result<()> {
        for state in self.io.listeners.iter().flatten() {
            state.listener.set_keepalive(seconds)?;
        }
        Ok(())
    }

    #[must_use]
    pub fn waker(&self) -> Waker {
        self.io.waker()
    }

    /// Returns the connections, for use between two rounds.
    pub fn io(&mut self) -> &mut Control {
        &mut self.io
    }

    /// Runs one round: applies the changes since the last round, waits for events for at most
    /// `timeout` (`None`: forever), and calls the handler.
    ///
    /// # Errors
    /// Fails if the wait itself failed, which means a broken descriptor or ring. The loop cannot
    /// continue.
    pub fn poll<H: Handler>(
        &mut self,
        handler: &mut H,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        match &mut self.driver {
            Driver::Epoll(epoll) => round(&mut **epoll, &mut self.io, handler, timeout),
            Driver::Uring(uring) => round(&mut **uring, &mut self.io, handler, timeout),
        }
    }
}

fn round<B: Backend, H: Handler>(
    backend: &mut B,
    io: &mut Control,
    handler: &mut H,
    timeout: Option<Duration>,
) -> io::Result<()> {
    io.counters.rounds += 1;
    settle_touched(backend, io, handler);
    let mut timeout = timeout.into_iter().chain(io.next_due()).min();
    // Handlers may touch connections while others are settled. Those connections must be settled in
    // this round, so the loop must not block for events first.
    if !io.touched.is_empty() || !io.wake.may_sleep() {
        timeout = Some(Duration::ZERO);
    }
    handler.waiting();
    let waited = backend.wait(io, timeout);
    handler.resumed();
    waited?;
    let woken = io.wake.was_woken();
    backend.dispatch(io, handler);
    if woken {
        io.counters.wakes += 1;
        handler.woken(io);
    }
    for listener in io.expire() {
        if let Err(error) = backend.start_accepting(io, listener) {
            io.suspend_listener(handler, listener, &error);
        }
    }
    handler.round_end(io);
    settle_touched(backend, io, handler);
    accept_ready(backend, io, handler);
    Ok(())
}

/// Number of connections whose output is sent before they are settled. Their state and output are
/// still in the cache then.
pub(crate) const SETTLED_TOGETHER: usize = 64;

/// Settles the touched connections once. Connections that are touched during this pass are left for
/// the next one, so that the pass ends.
pub(crate) fn settle_touched<B: Backend, H: Handler>(
    backend: &mut B,
    io: &mut Control,
    handler: &mut H,
) {
    if io.touched.is_empty() {
        return;
    }
    let mut touched = std::mem::take(&mut io.touched);
    for indices in touched.chunks(SETTLED_TOGETHER) {
        backend.send_together(io, indices);
        for &index in indices {
            io.slab.slot(index).listed = false;
            // Connections that were settled right after their own event are still listed.
            settle_one(backend, io, handler, index);
        }
    }
    touched.clear();
    if io.touched.is_empty() {
        io.touched = touched;
    }
}

/// Settles one connection if it was touched and is still open.
pub(crate) fn settle_one<B: Backend, H: Handler>(
    backend: &mut B,
    io: &mut Control,
    handler: &mut H,
    index: u32,
) {
    let slot = io.slab.slot(index);
    if slot.touched {
        slot.touched = false;
        if slot.open {
            backend.settle(io, handler, index);
        }
    }
}
