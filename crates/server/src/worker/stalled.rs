//! Sessions of a worker that execute nothing for now, by what they wait for.

use super::sessions::Sessions;
use brisk_node::core::long::Outcome;
use brisk_node::core::session::Stall;
use brisk_reactor::Token;
use std::collections::VecDeque;

/// Sessions that the worker resumes, and results that it may not store yet.
#[derive(Default)]
pub(super) struct StalledSessions {
    /// Sessions to continue in the next round.
    next_round: VecDeque<Token>,
    /// Sessions that wait for the end of CLIENT PAUSE.
    paused: Vec<Token>,
    /// Sessions that wait until slots are no longer frozen.
    frozen: Vec<Token>,
    /// Computed results that may not be stored during CLIENT PAUSE. There are at most as many as
    /// commands that wait for one.
    held_back: Vec<Outcome>,
}

impl StalledSessions {
    /// Adds a session. Sessions that are stalled for other reasons are resumed by an event of their own.
    pub(super) fn add(&mut self, token: Token, stall: Stall, sessions: &Sessions) {
        match stall {
            Stall::NextRound => self.next_round.push_back(token),
            Stall::Paused => hold(&mut self.paused, token, sessions),
            Stall::Frozen => hold(&mut self.frozen, token, sessions),
            Stall::None
            | Stall::Output
            | Stall::Waiting
            | Stall::Elsewhere
            | Stall::Synchronises => {}
        }
    }

    /// Number of sessions to continue in the next round.
    pub(super) fn in_next_round(&self) -> usize {
        self.next_round.len()
    }

    /// Takes the session that has waited longest for the next round.
    pub(super) fn pop_next_round(&mut self) -> Option<Token> {
        self.next_round.pop_front()
    }

    /// Reports whether sessions or results wait for the end of CLIENT PAUSE.
    pub(super) fn has_paused(&self) -> bool {
        !self.paused.is_empty() || !self.held_back.is_empty()
    }

    pub(super) fn take_paused(&mut self) -> Vec<Token> {
        std::mem::take(&mut self.paused)
    }

    pub(super) fn take_frozen(&mut self) -> Vec<Token> {
        std::mem::take(&mut self.frozen)
    }

    /// Holds a result back that may not be stored yet.
    pub(super) fn hold_back(&mut self, outcome: Outcome) {
        self.held_back.push(outcome);
    }

    pub(super) fn take_held_back(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.held_back)
    }
}

/// Adds a session to a list of waiting sessions. Sessions that were closed meanwhile leave their
/// tokens in the list: at most one for each open session.
fn hold(list: &mut Vec<Token>, token: Token, sessions: &Sessions) {
    if list.len() > 2 * sessions.len() {
        list.retain(|token| sessions.get(*token).is_some());
    }
    list.push(token);
}
