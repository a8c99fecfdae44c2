//! The sessions of a worker, by the index of their connection.

use brisk_node::core::session::Session;
use brisk_reactor::Token;

/// The sessions of a worker, except the session whose turn it is, which has been taken out.
#[derive(Default)]
pub(super) struct Sessions {
    slots: Vec<Option<Box<Session>>>,
}

impl Sessions {
    /// Number of slots, some of which are empty.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Adds the session of a new connection.
    pub(super) fn add(&mut self, session: Box<Session>) {
        let index = session.token.index();
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        self.slots[index] = Some(session);
    }

    /// Takes a session out for its turn.
    #[inline]
    pub(super) fn take(&mut self, token: Token) -> Option<Box<Session>> {
        let slot = self.slots.get_mut(token.index())?;
        if slot.as_ref()?.token == token { slot.take() } else { None }
    }

    /// Puts a session back after its turn.
    #[inline]
    pub(super) fn put(&mut self, session: Box<Session>) {
        let index = session.token.index();
        self.slots[index] = Some(session);
    }

    /// The session with this token.
    #[inline]
    pub(super) fn get(&self, token: Token) -> Option<&Session> {
        self.slots.get(token.index())?.as_deref().filter(|session| session.token == token)
    }

    /// The session with this token.
    #[inline]
    pub(super) fn get_mut(&mut self, token: Token) -> Option<&mut Session> {
        self.at(token.index()).filter(|session| session.token == token)
    }

    /// The session in this slot.
    #[inline]
    pub(super) fn at(&mut self, index: usize) -> Option<&mut Session> {
        self.slots.get_mut(index)?.as_deref_mut()
    }
}
