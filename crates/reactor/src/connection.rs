//! The state of one connection, and the slab that holds all connections of a reactor.
//!
//! Invariants
//!  1. A slot is in exactly one state: free (no descriptor, on the free list), open (`open`), or
//!     retired. A retired slot was reported as closed, but is not free yet because the kernel may
//!     still complete operations on it.
//!  2. The generation changes when a slot stops being open. A token therefore never names more than
//!     one connection.

use crate::handler::{Close, CloseReason};
use crate::listen::PeerAddr;
use crate::output::Output;
use crate::token::{CONNECTIONS_MAX, Token};
use std::os::fd::OwnedFd;

#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// Present while the slot is open. The io_uring back end takes the descriptor to close it.
    pub(crate) fd: Option<OwnedFd>,
    pub(crate) generation: u32,
    pub(crate) open: bool,
    /// True if the back end knows the descriptor.
    pub(crate) registered: bool,
    /// True if the connection is to be settled.
    pub(crate) touched: bool,
    /// True if the slot is on the list of connections to settle. It stays there if the connection
    /// is settled before its turn, and then must not be listed again.
    pub(crate) listed: bool,
    /// True if `send` was called and the output has not been empty since.
    pub(crate) sending: bool,
    pub(crate) paused: bool,
    /// True if the peer has finished sending and the handler was notified.
    pub(crate) finished: bool,
    /// True if `hung_up` was called during this pause.
    pub(crate) hung_up: bool,
    pub(crate) closing: Option<Close>,
    /// True if the connection is on the linger heap.
    pub(crate) lingering: bool,
    /// The reason to close the connection when it is settled next.
    pub(crate) doomed: Option<CloseReason>,
    /// True if the kernel's buffer was full. Epoll reports when there is room again.
    pub(crate) send_blocked: bool,
    /// The events that epoll watches for this descriptor. `UNKNOWN` if they must be
    /// registered again.
    pub(crate) interest: u32,
    /// True if the last receive filled its buffer (epoll).
    pub(crate) fills_buffers: bool,
    /// Bytes that were passed to the kernel and have not been sent yet (io_uring).
    pub(crate) in_flight: usize,
    /// `drained` is called when at most this many bytes are unsent.
    pub(crate) low_water: Option<usize>,
    pub(crate) peer: Option<PeerAddr>,
    /// The number of the last receive, used by [`crate::coalesce`].
    pub(crate) last_receive: u64,
    pub(crate) output: Output,
}

impl Connection {
    #[inline]
    pub(crate) fn unsent(&self) -> usize {
        self.output.len() + self.in_flight
    }

    /// Returns true if the connection wants bytes from the peer.
    #[inline]
    pub(crate) fn reads(&self) -> bool {
        !self.paused && !self.finished && self.closing.is_none() && self.doomed.is_none()
    }

    /// Returns true if the connection does not read now, but will read again.
    #[inline]
    pub(crate) fn reads_later(&self) -> bool {
        self.paused && !self.finished && self.closing.is_none()
    }

    /// Returns true if a hang-up must be watched for because the connection does not read.
    #[inline]
    pub(crate) fn watches_hang_up(&self) -> bool {
        self.reads_later() && !self.hung_up
    }

    /// Returns the reason to close the connection now, or `None` if it stays open.
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
    /// Opens a slot for `fd`. Returns the descriptor if no slot index is left.
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
        // A leftover entry on the settle list may still refer to this slot. The entry is harmless,
        // and `listed` keeps the slot from being listed twice.
        let listed = slot.listed;
        *slot = Connection {
            fd: Some(fd),
            peer,
            open: true,
            generation,
            listed,
            ..Connection::default()
        };
        self.open += 1;
        Ok(Token::new(index, generation))
    }

    /// Ends the open state of a slot, which makes its token stale. The caller must call
    /// [`Slab::free`] later.
    pub(crate) fn retire(&mut self, index: u32) -> Option<OwnedFd> {
        let slot = &mut self.slots[index as usize];
        debug_assert!(slot.open, "invariant 1");
        slot.open = false;
        slot.generation = slot.generation.wrapping_add(1).max(1);
        self.open -= 1;
        slot.fd.take()
    }

    /// Makes a retired slot available again.
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

    /// Returns the slot at an index that came from this slab, open or not.
    #[inline]
    pub(crate) fn slot(&mut self, index: u32) -> &mut Connection {
        &mut self.slots[index as usize]
    }

    /// Like [`Slab::slot`], for reading.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> &Connection {
        &self.slots[index as usize]
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
