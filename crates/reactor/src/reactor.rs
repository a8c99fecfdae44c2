//! The round of the loop, common to both back ends, and the choice between them.

use crate::accept::{ACCEPTS_DEFAULT, accept_ready};
use crate::control::{Control, Listening};
use crate::epoll::Epoll;
use crate::handler::Handler;
use crate::listen::Listener;
use crate::token::Token;
use crate::uring::Uring;
use crate::waker::Waker;
use std::io;
use std::time::Duration;

/// What a back end does for the round. All I/O on connections is behind this.
pub(crate) trait Backend: Sized {
    /// Begins (or begins again) to accept on the listener of this index.
    fn start_accepting(&mut self, io: &mut Control, listener: u32) -> io::Result<()>;

    /// Whether accepted sockets are non-blocking.
    const NONBLOCKING: bool;

    /// After connections were accepted: has the listener's next ones told of.
    fn go_on_accepting(&mut self, io: &mut Control, listener: u32) -> io::Result<()>;

    /// A slot was filled with an accepted connection that the handler has not seen.
    fn opened(&mut self, io: &mut Control, token: Token);

    /// Ends accepting; called before the listener is taken away.
    fn stop_accepting(&mut self, io: &mut Control, listener: u32);

    /// Waits for events, at most `timeout`, and takes them from the kernel.
    fn wait(&mut self, io: &mut Control, timeout: Option<Duration>) -> io::Result<()>;

    /// Delivers the events taken.
    fn dispatch<H: Handler>(&mut self, io: &mut Control, handler: &mut H);

    /// Carries out what was asked for on one connection: registers, writes, pauses, closes.
    fn settle<H: Handler>(&mut self, io: &mut Control, handler: &mut H, index: u32);
}

/// Which back end to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    #[default]
    Epoll,
    Uring,
}

/// How to make a reactor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    pub backend: BackendChoice,
}

#[derive(Debug)]
enum Driver {
    Epoll(Epoll),
    Uring(Box<Uring>),
}

/// One thread's event loop. Make it on the thread that polls it: a ring serves only the thread that
/// set it up.
#[derive(Debug)]
pub struct Reactor {
    /// First, so that operations end before the descriptors they use are closed.
    driver: Driver,
    io: Control,
}

impl Reactor {
    /// # Errors
    /// What the kernel refuses: descriptors, or the ring.
    pub fn new(config: &Config) -> io::Result<Self> {
        let io = Control::new()?;
        let driver = match config.backend {
            BackendChoice::Epoll => Driver::Epoll(Epoll::new(&io)?),
            BackendChoice::Uring => Driver::Uring(Box::new(Uring::new(&io)?)),
        };
        Ok(Self { io, driver })
    }

    /// `epoll` or `io_uring`.
    #[must_use]
    pub fn backend_name(&self) -> &'static str {
        match self.driver {
            Driver::Epoll(_) => "epoll",
            Driver::Uring(_) => "io_uring",
        }
    }

    /// Begins to accept; returns the listener's index, which `accepted` will name.
    ///
    /// # Errors
    /// What the kernel says; the listener is closed then.
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
            Some(Listening { listener, address, accepts_max, quota: 1, rests_until: None });
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

    /// Stops accepting and gives the listener back; `None` if there is none of this index. Its
    /// connections stay.
    pub fn unlisten(&mut self, index: usize) -> Option<Listener> {
        self.io.listeners.get(index)?.as_ref()?;
        let number = u32::try_from(index).ok()?;
        match &mut self.driver {
            Driver::Epoll(epoll) => epoll.stop_accepting(&mut self.io, number),
            Driver::Uring(uring) => uring.stop_accepting(&mut self.io, number),
        }
        self.io.listeners[index].take().map(|listening| listening.listener)
    }

    /// Ends the loop and leaves its connections open: they end with the process. What is to be sent is
    /// given to the kernel, as far as it takes it, and nobody new is connected by TCP. A Unix socket may
    /// be that of other reactors too.
    pub fn leave(mut self) {
        for listening in self.io.listeners.iter().flatten() {
            if listening.listener.local_addr().is_some() {
                listening.listener.stopper().stop();
            }
        }
        if let Driver::Uring(uring) = &mut self.driver {
            uring.submit_queue(&mut self.io);
        }
        std::mem::forget(self);
    }

    /// Sets keep-alive (see [`crate::TcpOptions`]) for connections accepted from now on.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set_keepalive(&self, seconds: u32) -> io::Result<()> {
        for listening in self.io.listeners.iter().flatten() {
            listening.listener.set_keepalive(seconds)?;
        }
        Ok(())
    }

    #[must_use]
    pub fn waker(&self) -> Waker {
        self.io.waker()
    }

    /// The connections, for use between two rounds.
    pub fn io(&mut self) -> &mut Control {
        &mut self.io
    }

    /// One round: settles what was asked for since the last, waits for events at most `timeout`
    /// (`None`: for ever), and calls the handler.
    ///
    /// # Errors
    /// The wait itself failed, which means a broken descriptor or ring: the loop cannot go on.
    pub fn poll<H: Handler>(
        &mut self,
        handler: &mut H,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        match &mut self.driver {
            Driver::Epoll(epoll) => round(epoll, &mut self.io, handler, timeout),
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
    // Handlers may touch connections while others are settled; those wait for the next settling,
    // not for events.
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
            io.rest_listener(handler, listener, &error);
        }
    }
    handler.round_end(io);
    settle_touched(backend, io, handler);
    accept_ready(backend, io, handler);
    Ok(())
}

/// One pass over the touched connections; what is touched meanwhile is left for the next pass, so
/// that this ends.
pub(crate) fn settle_touched<B: Backend, H: Handler>(
    backend: &mut B,
    io: &mut Control,
    handler: &mut H,
) {
    if io.touched.is_empty() {
        return;
    }
    let mut touched = std::mem::take(&mut io.touched);
    for index in touched.drain(..) {
        // Those settled right after their own event are still listed.
        if io.slab.slot(index).touched {
            settle_one(backend, io, handler, index);
        }
    }
    if io.touched.is_empty() {
        io.touched = touched;
    }
}

/// Settles one connection if it was touched and is still there.
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
