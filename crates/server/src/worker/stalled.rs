//! The stalled sessions of a worker, which execute nothing until they are resumed.

use super::Worker;
use super::sessions::Sessions;
use brisk_node::core::long::ComputedJob;
use brisk_node::core::session::{Session, Stall};
use brisk_reactor::{Control, Token, unix_ms};
use std::collections::VecDeque;

/// Sessions that the worker resumes, and results that it must not store yet.
#[derive(Default)]
pub(super) struct StalledSessions {
    /// Sessions to continue in the next round.
    next_round: VecDeque<Token>,
    /// Sessions that wait for the end of CLIENT PAUSE.
    paused: Vec<Token>,
    /// Sessions that wait until slots are no longer frozen.
    frozen: Vec<Token>,
    /// Computed results that must not be stored during CLIENT PAUSE. There are at most as many results as there are
    /// commands waiting for one.
    held_back: Vec<ComputedJob>,
}

impl StalledSessions {
    /// Adds a session, if the worker has to resume it. Sessions that are stalled for other reasons are resumed by
    /// events.
    pub(super) fn add(&mut self, token: Token, stall: Stall, sessions: &Sessions) {
        match stall {
            Stall::NextRound => self.next_round.push_back(token),
            Stall::Paused => hold(&mut self.paused, token, sessions),
            Stall::Frozen => hold(&mut self.frozen, token, sessions),
            Stall::None | Stall::Output | Stall::Waiting | Stall::Elsewhere | Stall::FullSync => {}
        }
    }

    /// Number of sessions to continue in the next round.
    pub(super) fn in_next_round(&self) -> usize {
        self.next_round.len()
    }

    /// Takes the session that has waited for the next round for the longest time.
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

    /// Holds back a result that must not be stored yet.
    pub(super) fn hold_back(&mut self, job: ComputedJob) {
        self.held_back.push(job);
    }

    pub(super) fn take_held_back(&mut self) -> Vec<ComputedJob> {
        std::mem::take(&mut self.held_back)
    }
}

/// Adds a session to a list of waiting sessions. Sessions that have been closed leave their tokens in the list. There
/// is at most one such token per open session.
fn hold(list: &mut Vec<Token>, token: Token, sessions: &Sessions) {
    if list.len() > 2 * sessions.len() {
        list.retain(|token| sessions.get(*token).is_some());
    }
    list.push(token);
}

impl Worker {
    pub(super) fn stall(&mut self, session: &mut Session, stall: Stall) {
        session.set_stall(stall);
        if matches!(stall, Stall::Paused | Stall::Waiting) {
            self.core.shared.clients.set_blocked(&session.record, true);
        }
        self.stalled.add(session.token, stall, &self.sessions);
    }

    pub(super) fn unstall(&mut self, session: &mut Session) {
        if matches!(session.stall(), Stall::Paused | Stall::Waiting) {
            self.core.shared.clients.set_blocked(&session.record, false);
        }
        session.set_stall(Stall::None);
    }

    /// Resumes a session whose stall is over.
    pub(super) fn resume(&mut self, io: &mut Control, token: Token, stall: Stall) {
        let Some(mut session) = self.sessions.take(token) else { return };
        if session.stall() == stall {
            self.unstall(&mut session);
            if self.write_on(io, &mut session) {
                self.stall_if_unread(io, &mut session, io.unsent(token));
                if session.stall() == Stall::None {
                    self.execute_input(io, &mut session);
                }
            }
            if session.stall() == Stall::None {
                io.resume_reading(token);
                if session.connection.is_finished() {
                    // Close only after the replies of this turn, which are not encrypted yet.
                    session.close_after_reply();
                }
            }
            self.after_turn(io, &mut session);
        }
        self.sessions.put(session);
        self.close_connections(io);
    }

    /// Resumes sessions that CLIENT PAUSE holds back, if the pause is over.
    pub(super) fn resume_paused(&mut self, io: &mut Control) {
        self.core.read_clocks();
        self.take_held_back(io);
        for token in self.stalled.take_paused() {
            self.resume(io, token, Stall::Paused);
        }
    }

    /// Returns how long CLIENT PAUSE stays in force; 0 if it is not in force.
    pub(super) fn pause_left_ns(&self) -> u64 {
        let now = unix_ms();
        let until = self.core.shared.conditions.pause_end_ms(now).unwrap_or(now);
        (until - now).saturating_mul(1_000_000)
    }

    /// Finishes computations whose results could not be stored during CLIENT PAUSE.
    pub(super) fn take_held_back(&mut self, io: &mut Control) {
        for outcome in self.stalled.take_held_back() {
            self.take_computed(io, Box::new(outcome));
        }
    }

    /// Resumes sessions that were waiting for frozen slots, after slots have been released.
    pub(super) fn resume_frozen(&mut self, io: &mut Control) {
        self.core.read_clocks();
        for token in self.stalled.take_frozen() {
            self.resume(io, token, Stall::Frozen);
        }
    }
}
