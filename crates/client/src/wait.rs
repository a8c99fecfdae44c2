//! Futures of this library without a runtime.

use crate::command::block_on;
use std::future::Future;
use std::pin::pin;

/// Waits on this thread until a future of this library is done: sessions, `watch`, scripts, subscribers, and what a
/// program makes of them with `async`. A program without a runtime has no other use for it: a single command
/// [waits by itself](crate::Command::wait).
///
/// The future needs no runtime here, since all connections are run elsewhere: by the client's own thread
/// ([`connect_blocking`](crate::Builder::connect_blocking)), or by the runtime in which the client was made.
/// Futures of other libraries may need their own runtime and are not for this function. Not to be called from
/// within a runtime: it holds up its thread.
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
