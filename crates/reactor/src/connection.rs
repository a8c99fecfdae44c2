//! What a reactor keeps per connection, and the slab of them.
//!
//! Invariants
//!  1. A slot is in exactly one state: free (no descriptor, on the free list), open (`open`), or
//!     retired: told closed, but held back because the kernel may still complete operations on it.
//!  2. The generation changes when a slot stops being open, so a token names at most one connection
//!     ever.

use crate::handler::{Close, CloseReason};
use crate::listen::PeerAddr;
use crate::output::Output;
use crate::token::{CONNECTIONS_MAX, Token};
use std::os::fd::OwnedFd;

#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// Present while the slot is open; the ring takes it to close it.
    pub(crate) fd: Option<OwnedFd>,
    pub(crate) generation: u32,
    pub(crate) open: bool,
    /// The back end knows the descriptor.
    pub(crate) registered: bool,
    /// On the list of connections to settle.
    pub(crate) touched: bool,
    /// `send` was called and the output has not been empty since.
    pub(crate) sending: bool,
    pub(crate) paused: bool,
    /// The peer has finished sending, and the handler was told.
    pub(crate) finished: bool,
    /// `hung_up` was called in this pause.
    pub(crate) hung_up: bool,
    pub(crate) closing: Option<Close>,
    /// On the linger heap.
    pub(crate) lingering: bool,
    /// The reason to close at the next settling.
    pub(crate) doomed: Option<CloseReason>,
    /// The kernel's buffer was full; epoll will tell when it is not.
    pub(crate) stuck: bool,
    /// What epoll was told to watch for; nothing if it is to be told again.
    pub(crate) interest: u32,
    /// Bytes the kernel was given and has not yet accepted (io_uring).
    pub(crate) in_flight: usize,
    /// `drained` is owed once no more than this is unsent.
    pub(crate) low_water: Option<usize>,
    pub(crate) peer: Option<PeerAddr>,
    /// The number of its last receive, for [`crate::pace`].
    pub(crate) last_receive: u64,
    pub(crate) output: Output,
}

impl Connection {
    #[inline]
    pub(crate) fn unsent(&self) -> usize {
        self.output.len() + self.in_flight
    }

    /// Whether bytes from the peer are wanted.
    #[inline]
    pub(crate) fn reads(&self) -> bool {
        !self.paused && !self.finished && self.closing.is_none() && self.doomed.is_none()
    }

    /// Whether a hang-up must be looked for because reading would not show it.
    #[inline]
    pub(crate) fn watches_hang_up(&self) -> bool {
        self.paused && !self.finished && !self.hung_up && self.closing.is_none()
    }

    /// Why the connection is to be torn down at this moment, if it is.
    #[inline]
    pub(crate) fn due(&self) -> Option<CloseReason> {
        if self.doomed.is_some() {
            return self.doomed;
        }
        match self.closing {
            None => None,
            Some(Close::Flush { .. }) if self.unsent() > 0 => None,
            Some(_) if self.finished => Some(CloseReason::PeerFinished),
            Some(_) => Some(CloseReason::Requested),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Slab {
    slots: Vec<Connection>,
    free: Vec<u32>,
    open: usize,
}

impl Slab {
    /// Opens a slot for `fd`; gives the descriptor back if there are as many as can be named.
    pub(crate) fn insert(&mut self, fd: OwnedFd, peer: Option<PeerAddr>) -> Result<Token, OwnedFd> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() < CONNECTIONS_MAX => {
                self.slots.push(Connection { generation: 1, ..Connection::default() });
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
            None => return Err(fd),
        };
        let slot = &mut self.slots[index as usize];
        debug_assert!(!slot.open && slot.fd.is_none(), "invariant 1");
        let generation = slot.generation;
        // A leftover entry on the settle list may still refer to this slot; it is harmless and
        // keeps it from being listed twice.
        let touched = slot.touched;
        *slot = Connection {
            fd: Some(fd),
            peer,
            open: true,
            generation,
            touched,
            ..Connection::default()
        };
        self.open += 1;
        Ok(Token::new(index, generation))
    }

    /// Ends the open state of a slot: its token is stale from here on. [`Slab::free`] must follow
    /// at some time.
    pub(crate) fn retire(&mut self, index: u32) -> Option<OwnedFd> {
        let slot = &mut self.slots[index as usize];
        debug_assert!(slot.open, "invariant 1");
        slot.open = false;
        slot.generation = slot.generation.wrapping_add(1).max(1);
        self.open -= 1;
        slot.fd.take()
    }

    /// Lets a retired slot be used again.
    pub(crate) fn free(&mut self, index: u32) {
        debug_assert!(!self.slots[index as usize].open, "invariant 1");
        self.free.push(index);
    }

    pub(crate) fn len(&self) -> usize {
        self.open
    }

    #[inline]
    pub(crate) fn get(&self, token: Token) -> Option<&Connection> {
        let slot = self.slots.get(token.index())?;
        (slot.open && slot.generation == token.generation()).then_some(slot)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, token: Token) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(token.index())?;
        (slot.open && slot.generation == token.generation()).then_some(slot)
    }

    /// The slot at an index that came from this slab, open or not.
    #[inline]
    pub(crate) fn slot(&mut self, index: u32) -> &mut Connection {
        &mut self.slots[index as usize]
    }

    pub(crate) fn token(&self, index: u32) -> Token {
        Token::new(index, self.slots[index as usize].generation)
    }

    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        (0u32..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.open)
            .map(|(index, slot)| Token::new(index, slot.generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor() -> OwnedFd {
        crate::sys::eventfd().unwrap()
    }

    #[test]
    fn an_index_is_used_again_under_another_generation() {
        let mut slab = Slab::default();
        let first = slab.insert(descriptor(), None).unwrap();
        let second = slab.insert(descriptor(), None).unwrap();
        assert_eq!((first.index(), second.index(), slab.len()), (0, 1, 2));
        assert!(slab.retire(0).is_some());
        assert!(slab.get(first).is_none());
        slab.free(0);
        let third = slab.insert(descriptor(), None).unwrap();
        assert_eq!(third.index(), 0);
        assert_ne!(third, first);
        assert!(slab.get(first).is_none() && slab.get(third).is_some());
        assert_eq!(slab.tokens().collect::<Vec<_>>(), [third, second]);
    }
}
