//! Accepts new connections. Both back ends share this code.
//!
//! A back end only reports that a listener has connections waiting. The round accepts after it has
//! served all open connections, and accepts at most a bounded number per listener. A storm of new
//! connections therefore lengthens a round by those few accepts and no more. The remaining
//! connections stay in the kernel's queue, whose length bounds them.

use crate::clock::ticks;
use crate::control::Control;
use crate::handler::{Accept, Handler};
use crate::reactor::{Backend, settle_one};
use crate::sys;
use crate::token::Token;
use std::io;
use std::os::fd::AsFd;

/// Maximum number of connections accepted per listener and round, unless [`Control::limit_accepts`]
/// sets another.
pub(crate) const ACCEPTS_DEFAULT: usize = 10;

/// Accepts on the listeners that were found ready in this round.
pub(crate) fn accept_ready<B: Backend, H: Handler>(
    backend: &mut B,
    io: &mut Control,
    handler: &mut H,
) {
    let mut ready = std::mem::take(&mut io.ready_listeners);
    let since = ticks();
    for &listener in &ready {
        let again = accept(backend, io, handler, listener)
            .and_then(|()| backend.continue_accepting(io, listener));
        if let Err(error) = again {
            backend.stop_accepting(io, listener);
            if !sys::is_error_of_stopped_listener(&error) {
                io.suspend_listener(handler, listener, &error);
            }
        }
    }
    if !ready.is_empty() {
        io.counters.ticks_accept += ticks().wrapping_sub(since);
    }
    ready.clear();
    io.ready_listeners = ready;
}

/// Accepts until the queue is empty or the listener's quota is used up.
///
/// The quota adapts to the number of connections found. A listener with a short queue therefore
/// needs no extra call to learn that its queue is empty: the back end reports any remaining
/// connections. An error means that the listener was stopped or must be suspended.
fn accept<B: Backend, H: Handler>(
    backend: &mut B,
    io: &mut Control,
    handler: &mut H,
    listener: u32,
) -> io::Result<()> {
    let mut found = 0;
    // Look the listener up each time: the handler may remove it between two accepts.
    while let Some(Some(state)) = io.listeners.get_mut(listener as usize) {
        if found == state.quota.min(state.accepts_max) {
            state.quota = (found * 2).min(state.accepts_max);
            break;
        }
        io.counters.accepts += 1;
        match sys::accept(state.listener.as_fd(), B::NONBLOCKING) {
            Ok((fd, peer)) => {
                found += 1;
                let Ok(token) = io.slab.insert(fd, Some(peer)) else { continue };
                announce(backend, io, handler, token, listener);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                state.quota = found.max(1);
                break;
            }
            Err(error) if sys::is_transient_accept_error(&error) => {
                io.counters.accept_errors += 1;
                found += 1; // counts towards the quota, so that the loop is bounded
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn announce<B: Backend, H: Handler>(
    backend: &mut B,
    io: &mut Control,
    handler: &mut H,
    token: Token,
    listener: u32,
) {
    let index = io.slab_index(token);
    backend.opened(io, token);
    match handler.accepted(io, token, listener as usize) {
        Accept::Keep => {
            io.counters.accepted += 1;
            io.touch(token);
            settle_one(backend, io, handler, index);
        }
        Accept::Refuse(bytes) => io.refuse(token, &bytes),
    }
}
