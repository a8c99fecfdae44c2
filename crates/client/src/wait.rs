//! Runs this library's futures without a runtime, and checks whether a thread may block on one.

use crate::error::{Error, Kind, Result};
use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Blocks this thread until a future of this library is done. Use it in programs without a runtime, for sessions,
/// `watch`, scripts, subscribers, and your own `async` blocks built from them. For a single command, use
/// [`Command::wait`](crate::Command::wait) instead.
///
/// The future needs no runtime on this thread, since the connections run elsewhere: on the client's own thread
/// ([`connect_blocking`](crate::Builder::connect_blocking)), or on the runtime in which the client was connected.
/// Futures of other libraries may need their own runtime; do not pass them to this function.
///
/// Do not call this function from a task of a runtime, because it blocks the thread of that task. If this thread runs
/// the client's connections (a current-thread runtime), the future could never complete. In this case, commands fail
/// immediately with [`Kind::Invalid`].
///
/// ```no_run
/// # fn example() -> brisk::Result<()> {
/// let db = brisk::Client::builder("redis://127.0.0.1").connect_blocking()?;
/// let session = brisk::wait(db.session())?;
/// let popped: Option<(String, String)> = session.blpop("queue", 5).wait()?;
/// # Ok(())
/// # }
/// ```
pub fn wait<F: Future>(future: F) -> F::Output {
    block_on(pin!(future))
}

thread_local! {
    static PARKER: Waker = Waker::from(Arc::new(Parker(thread::current())));
    /// True while this thread polls a future and parks between the polls.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

struct Parker(Thread);

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future on this thread until it is done.
pub(crate) fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    loop {
        if let Some(done) = poll(&mut future) {
            return done;
        }
        thread::park();
    }
}

/// Like [`block_on`], but for at most this long.
pub(crate) fn block_on_within<F: Future + Unpin>(
    mut future: F,
    limit: Option<Duration>,
) -> Option<F::Output> {
    let Some(until) = limit.and_then(|limit| Instant::now().checked_add(limit)) else {
        return Some(block_on(future));
    };
    loop {
        if let Some(done) = poll(&mut future) {
            return Some(done);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

fn poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    /// Restores the flag to this value when dropped, even if the future panics.
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            WAITS.set(self.0);
        }
    }

    let _before = Before(WAITS.replace(true));
    PARKER.with(|waker| match Pin::new(future).poll(&mut Context::from_waker(waker)) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    })
}

/// The thread that runs all connections of a client, if there is a single one: the thread of a current-thread runtime.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Home(Option<ThreadId>);

impl Home {
    /// The thread of this runtime.
    ///
    /// # Errors
    /// This thread blocks on a future, and may be the thread that runs it.
    pub(crate) async fn of(handle: &Handle) -> Result<Home> {
        if handle.runtime_flavor() != RuntimeFlavor::CurrentThread {
            return Ok(Home::default());
        }
        if WAITS.get() {
            return Err(stopped());
        }
        // The caller may be on another thread.
        Ok(Home(handle.spawn(async { thread::current().id() }).await.ok()))
    }

    /// Reports whether this thread waits for a result that only this thread could produce.
    #[inline]
    pub(crate) fn is_stopped(self) -> bool {
        self.0.is_some_and(|home| {
            WAITS.get() && home == thread::current().id() && Handle::try_current().is_ok()
        })
    }

    /// # Errors
    /// This thread waits for a result that only this thread could produce.
    #[inline]
    pub(crate) fn check(self) -> Result<()> {
        if self.is_stopped() { Err(stopped()) } else { Ok(()) }
    }
}

#[cold]
fn stopped() -> Error {
    let text = "this thread runs the client's connections, so it cannot block on them: use `.await`, or \
                `connect_blocking`, which runs them on a separate thread";
    Error::new(Kind::Invalid, text)
}
