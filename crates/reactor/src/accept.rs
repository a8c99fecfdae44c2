//! Accepting, common to both back ends: a bounded number per listener and round, after everything
//! else in it.
//!
//! Back ends only tell that a listener has connections waiting. Those already served come first:
//! their requests are read, executed and answered before the round accepts, so a storm of new
//! connections lengthens their rounds by the few accepts allowed and no more. What is left stays in
//! the kernel's queue, whose length bounds it.

use crate::clock::ticks;
use crate::control::Control;
use crate::handler::{Accept, Handler};
use crate::reactor::{Backend, settle_one};
use crate::sys;
use crate::token::Token;
use std::io;
use std::os::fd::AsFd;

/// Connections accepted per listener and round unless [`Control::limit_accepts`] says otherwise.
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
            .and_then(|()| backend.go_on_accepting(io, listener));
        if let Err(error) = again {
            backend.stop_accepting(io, listener);
            io.rest_listener(handler, listener, &error);
        }
    }
    if !ready.is_empty() {
        io.counters.ticks_accept += ticks().wrapping_sub(since);
    }
    ready.clear();
    io.ready_listeners = ready;
}

/// Accepts until the queue is empty or the listener's quota is used up. The quota follows the
/// number found: a listener whose queue holds a few pays no fruitless call to learn that it is
/// empty, since the back end tells of the rest. An error means that the listener must rest.
fn accept<B: Backend, H: Handler>(
    backend: &mut B,
    io: &mut Control,
    handler: &mut H,
    listener: u32,
) -> io::Result<()> {
    let mut found = 0;
    // Looked up each time: the handler may do anything meanwhile.
    while let Some(Some(listening)) = io.listeners.get_mut(listener as usize) {
        if found == listening.quota.min(listening.accepts_max) {
            listening.quota = (found * 2).min(listening.accepts_max);
            break;
        }
        io.counters.accepts += 1;
        match sys::accept(listening.listener.as_fd(), B::NONBLOCKING) {
            Ok((fd, peer)) => {
                found += 1;
                let Ok(token) = io.slab.insert(fd, Some(peer)) else { continue };
                greet(backend, io, handler, token, listener);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                listening.quota = found.max(1);
                break;
            }
            Err(error) if sys::is_transient_accept_error(&error) => {
                io.counters.accept_errors += 1;
                found += 1; // counts, so that the loop is bounded
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn greet<B: Backend, H: Handler>(
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
