//! The end of a round if there is an append-only file or replicas: changes are written and sent, and then the output
//! that waited for them is sent.

use super::Worker;
use super::blocked::ROLE_CHANGED;
use super::sending::close_flushed;
use brisk_engine::CommandError;
use brisk_engine::effect::Hooks;
use brisk_engine::env::Garbage;
use brisk_engine::keyspace::Ticket;
use brisk_node::core::Core;
use brisk_node::core::session::{Session, Stall};
use brisk_node::persistence::aof::state::Level;
use brisk_node::persistence::aof::wait;
use brisk_node::persistence::aof::writer::Written;
use brisk_node::replication::acks::GETACK_REQUEST;
use brisk_node::run::count;
use brisk_reactor::Control;
use std::time::Duration;

/// Output waits no longer than this for a write that the disk blocks. When the output is then sent, its changes are
/// only in memory, and a counter is incremented. The limit does not apply with `always`, or to clients that requested
/// durability on disk. It also does not apply while a rewrite begins another file, because that wait always ends.
const WRITE_WAIT_NS_MAX: u64 = 100_000_000;
/// The error for a client whose replies have waited for replicas until its timeout.
const NOT_ACKNOWLEDGED: &str =
    "UNBLOCKED too few replicas acknowledged the write within the timeout; it may be lost";
/// How often waiting output is checked if no other event occurs.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Worker {
    /// Passes changes to replicas, writes them to the append-only file, and sends output that waited for either. Called
    /// between turns.
    #[inline]
    pub(super) fn commit(&mut self, io: &mut Control) {
        // Nothing is appended to the journal while it has no reader.
        let is_read = self.core.env.hooks.get().contains(Hooks::PROPAGATE);
        if is_read || self.has_waiting_replies() {
            self.commit_appended(io);
        }
    }

    #[cold]
    fn commit_appended(&mut self, io: &mut Control) {
        let (shared, id) = (self.core.shared, self.core.id);
        if self.core.pending.take_request_for_acks() && shared.replication.replicas.following() > 0
        {
            // The request comes after all changes that this round's output shows.
            shared.keyspace.journal().append_request(GETACK_REQUEST);
        }
        shared.dispatch_changes(id);
        if shared.persistence.aof.is_on() && shared.persistence.aof.has_pending() {
            self.write_pending();
        }
        // Often, no output needs to wait after the write.
        if shared.replication.replicas.is_ready(id) {
            self.deliver_stream(io);
        }
        if !self.has_waiting_replies() {
            return;
        }
        // The flag is set first, so that progress after the check wakes this worker.
        shared.persistence.aof.set_waiting(id, true);
        self.send_held_replies(io);
        if self.wait_timers.stream_waits() {
            self.deliver_stream(io);
        }
        self.reply_acknowledged(io);
        shared.persistence.aof.set_waiting(id, self.has_waiting_replies());
    }

    /// Makes this worker, the worker that is using the file, or the writer thread write the pending changes.
    fn write_pending(&self) {
        let (shared, id) = (self.core.shared, self.core.id);
        let mut written = shared.persistence.aof.write_now(shared, id);
        if written == Written::OthersWrite && self.has_waiting_replies() {
            // The worker that is using the file may finish before it sees that this worker waits.
            shared.persistence.aof.set_waiting(id, true);
            written = shared.persistence.aof.write_now(shared, id);
            if written == Written::OthersWrite {
                return;
            }
        }
        if written != Written::All {
            shared.persistence.aof.hasten(shared.persistence.aof.level());
        }
    }

    /// True if replies or parts of the stream wait for the file or for replicas.
    fn has_waiting_replies(&self) -> bool {
        self.core.pending.has_held() || self.wait_timers.has_acks_or_stream()
    }

    /// The time for which this worker may sleep while output waits.
    pub(super) fn durability_wait(&self) -> Duration {
        if self.has_waiting_replies() { LOOK_AGAIN } else { Duration::MAX }
    }

    fn send_held_replies(&mut self, io: &mut Control) {
        let tokens = self.core.pending.take_held();
        for token in tokens {
            let Some(mut session) = self.sessions.take(token) else { continue };
            self.send_held_replies_of(io, &mut session);
            session.output.set_unread_aside();
            if !session.output.held_replies().is_empty() {
                self.core.pending.hold(token);
            } else if session.stall() == Stall::Output {
                self.resume_when_drained(io, &mut session);
            } else if session.output.held_replies_mut().take_close() {
                close_flushed(io, &mut session);
            }
            self.sessions.put(session);
        }
    }

    fn send_held_replies_of(&mut self, io: &mut Control, session: &mut Session) {
        let core = &self.core;
        if wait::has_ended(core, session) {
            return self.give_up_waiting(io, session, ROLE_CHANGED);
        }
        let aof = &core.shared.persistence.aof;
        let level = wait::level(core, session);
        let now = core.clock.ns(core.clock.ticks());
        let waited = now.saturating_sub(session.output.held_replies().since_ns());
        // The output may be waiting only for replicas.
        let lacks_file = session.output.held_replies().first() > Some(aof.reached(level));
        let file = if lacks_file { reached_by(core, session, waited) } else { aof.reached(level) };
        let reached = file.min(wait::acknowledged(core, session));
        let mut sends = false;
        while let Some(bytes) = session.output.held_replies_mut().pop(reached, now) {
            let output = io.output(session.token);
            session.connection.write(&bytes, output);
            sends = true;
        }
        if sends {
            io.send(session.token);
        } else if level == Level::Disk && lacks_file {
            aof.hasten(level);
        }
        let timeout_ms =
            session.replication.durability().replicas().and_then(|requested| requested.timeout_ms);
        if session.output.held_replies().is_empty() {
            session.replication.durability_mut().forget_before();
        } else if !sends && timeout_ms.is_some_and(|most| waited / 1_000_000 >= most) {
            self.give_up_waiting(io, session, NOT_ACKNOWLEDGED);
        }
    }

    /// Drops waiting output, because it is unknown whether its changes will survive. The client gets an error and is
    /// disconnected, because its other replies will not be sent either.
    fn give_up_waiting(&self, io: &mut Control, session: &mut Session, text: &'static str) {
        let error = CommandError::text(text);
        count::count_error(&self.core, &error);
        session.output.held_replies_mut().clear();
        if let Some(stream) = session.output.take_stream() {
            self.core.env.garbage.borrow_mut().push(Garbage::View(stream));
        }
        let line = format!("-{error}\r\n");
        let output = io.output(session.token);
        session.connection.write(line.as_bytes(), output);
        io.send(session.token);
        session.close_after_reply();
        close_flushed(io, session);
    }

    /// Notes the position that the replies of this turn show. If the stream has not reached this position, holds the
    /// replies back and returns true.
    #[cold]
    pub(super) fn keep_replies(&mut self, session: &mut Session) -> bool {
        let shown = self.core.env.take_shown();
        session.replication.note_shown(shown);
        if !wait::must_wait(&self.core, session, shown) {
            session.replication.durability_mut().forget_before();
            return false;
        }
        if self.replies.is_empty() {
            return false;
        }
        if self.replies.has_shared() && session.output.held_replies().is_empty() {
            // For large replies, writing the file now costs less than copying the replies.
            let shared = self.core.shared;
            shared.dispatch_changes(self.core.id);
            shared.persistence.aof.write_now(shared, self.core.id);
            if !wait::must_wait(&self.core, session, shown) {
                return false;
            }
        }
        let replies = &mut self.replies;
        session.accounting.count_sent(replies.len());
        wait::keep(&self.core, session, shown, |out| {
            let out = std::cell::RefCell::new(out);
            replies.drain(
                |bytes| out.borrow_mut().extend_from_slice(bytes),
                |data, range| out.borrow_mut().extend_from_slice(&data[range]),
            );
        });
        true
    }

    /// Returns true if output is held back. The connection then closes after the output has been sent.
    pub(super) fn closes_later(io: &mut Control, session: &mut Session) -> bool {
        if session.output.held_replies().is_empty() {
            return false;
        }
        session.output.held_replies_mut().close_after_output();
        io.pause_reading(session.token);
        true
    }
}

/// The position up to which a session may be sent the stream or output after it has waited for this long.
pub(super) fn reached_by(core: &Core, session: &Session, waited_ns: u64) -> Ticket {
    let aof = &core.shared.persistence.aof;
    if !aof.is_on() {
        return Ticket(u64::MAX);
    }
    let level = wait::level(core, session);
    let is_stuck = level == Level::Log && waited_ns > WRITE_WAIT_NS_MAX;
    if is_stuck && aof.failure().is_none() && !aof.is_switching() {
        aof.note_delayed();
        return wait::shown_to_all(core);
    }
    aof.reached(level)
}
