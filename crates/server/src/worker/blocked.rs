//! Blocked sessions: how a command begins to wait for keys, and the four ways in which the wait can end.
//!
//! A wait ends when the worker that made a key ready serves the command ([`serve_waiters`]), at the timeout, because of
//! CLIENT UNBLOCK, or when the connection closes. The engine ensures that only one of these happens; see `Waiter::end`.

use super::Worker;
use brisk_acl::{Context, Denied};
use brisk_engine::keyspace::Waiter;
use brisk_engine::{CommandError, Reply};
use brisk_node::clients::accounts::Account;
use brisk_node::clients::flag;
use brisk_node::core::mailbox::{DeliveredReply, Unblocked};
use brisk_node::core::session::{Session, Stall};
use brisk_node::persistence::aof::state::Level;
use brisk_node::persistence::aof::wait;
use brisk_node::persistence::ending;
use brisk_node::run::count;
use brisk_node::run::permission;
use brisk_node::run::waiting;
use brisk_reactor::{Close, Control, Token};
use std::sync::Arc;

const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
pub(super) const ROLE_CHANGED: &str =
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";

impl Worker {
    /// Handles a command that has begun to wait.
    pub(super) fn begin_wait(&mut self, session: &mut Session) {
        self.stall(session, Stall::Waiting);
        let Some(waiter) = session.blocked.waiter() else { return };
        if session.blocked.acks().is_some() {
            self.wait_timers.await_acks(session.token);
        }
        *session.record.waiter() = Some(waiter.clone());
        if let Some(deadline_ms) = waiter.deadline_ms {
            let timer = self.wait_timers.start_timer(deadline_ms, session.token);
            session.blocked.set_timer(timer);
        }
    }

    /// Ends waits whose timeout has passed.
    pub(super) fn end_late_waits(&mut self, io: &mut Control) {
        let now_ms = self.core.env.now().0;
        while let Some(token) = self.wait_timers.pop_expired(now_ms) {
            let Some(session) = self.sessions.get_mut(token) else {
                continue;
            };
            session.blocked.forget_timer();
            let id = session.id();
            if session.blocked.waiter().is_some_and(|waiter| waiter.end()) {
                self.reply_unserved(io, token, id, Unblocked::Timeout);
            }
        }
    }

    /// Replies to a command whose wait ended before the command was served.
    pub(super) fn reply_unserved(
        &mut self,
        io: &mut Control,
        token: Token,
        client: u64,
        how: Unblocked,
    ) {
        let is_it = |session: &&mut Session| session.id() == client;
        let Some(session) = self.sessions.get_mut(token).filter(is_it) else { return };
        let Some(waiter) = session.blocked.waiter().cloned() else { return };
        let (account, acks) = (Arc::clone(session.account()), session.blocked.acks());
        self.core.shared.keyspace.forget_waiter(&waiter);
        let mut delivery = DeliveredReply { token, client, replies: Default::default() };
        let mut reply = Reply::new(&mut delivery.replies, waiter.client.protocol);
        match how {
            Unblocked::Timeout => {
                waiting::book_wait(&mut self.core, &waiter, false, 0);
                match acks {
                    Some(wait) => {
                        let shared = self.core.shared;
                        wait.write_reply(&shared.replication, &shared.persistence.aof, &mut reply)
                    }
                    None => reply.null_array(),
                }
            }
            Unblocked::Error => {
                let error = CommandError::text(UNBLOCKED);
                count::count_error(&self.core, &error);
                waiting::book_wait(&mut self.core, &waiter, true, 0);
                reply.error(&error)
            }
            Unblocked::RoleChanged => {
                let error = CommandError::text(ROLE_CHANGED);
                count::count_error(&self.core, &error);
                waiting::book_wait(&mut self.core, &waiter, true, 0);
                if let Some(session) = self.sessions.get_mut(token) {
                    session.close_after_reply();
                }
                reply.error(&error)
            }
            Unblocked::EndGivenUp => {
                let error = ending::refusal();
                count::count_error(&self.core, &error);
                waiting::book_wait(&mut self.core, &waiter, true, 0);
                reply.error(&error)
            }
            Unblocked::Forbidden(denied) => {
                let error = self.refuse_waiter(token, &waiter, &account, denied);
                reply.error(&error)
            }
        };
        self.deliver(io, delivery);
    }

    /// Replies with an error to a command after the caller has ended its wait. As in Redis, the command does not count
    /// as failed.
    pub(super) fn refuse_waiting(
        &mut self,
        io: &mut Control,
        token: Token,
        waiter: &Waiter,
        error: &CommandError,
    ) {
        self.core.shared.keyspace.forget_waiter(waiter);
        let client = waiter.client;
        let mut delivery = DeliveredReply { token, client: client.id, replies: Default::default() };
        count::count_error(&self.core, error);
        waiting::book_wait(&mut self.core, waiter, false, 0);
        Reply::new(&mut delivery.replies, client.protocol).error(error);
        self.deliver(io, delivery);
    }

    /// Counts and logs a command that became forbidden while it was waiting. Its reply is the error.
    fn refuse_waiter(
        &mut self,
        token: Token,
        waiter: &Waiter,
        account: &Account,
        denied: Denied,
    ) -> CommandError {
        let shared = self.core.shared;
        let error = match shared.table.find_spec(waiter.command()) {
            None => CommandError::text("NOPERM"),
            Some(row) => {
                self.core.stats().commands[row.id].rejected.add(1);
                let text = denied.text(&account.name, row, None);
                if let Some(session) = self.sessions.take(token) {
                    waiter.with_args(&shared.keyspace, |words| {
                        let context = Context::TopLevel;
                        permission::note_denied(
                            &mut self.core,
                            &session,
                            row,
                            words,
                            denied,
                            context,
                        );
                    });
                    self.sessions.put(session);
                }
                CommandError::text_with("NOPERM ", &text)
            }
        };
        count::count_error(&self.core, &error);
        error
    }

    /// Delivers the reply to a command that ran outside of its session's turn. If the lease has ended, the command may
    /// have run after the lease deadline, so the connection is closed instead.
    pub(super) fn deliver_executed(&mut self, io: &mut Control, delivery: DeliveredReply) {
        if self.core.cluster.is_fenced() {
            let is_it = |session: &&mut Session| session.id() == delivery.client;
            if let Some(session) = self.sessions.get_mut(delivery.token).filter(is_it) {
                session.close_at_once();
                io.close(delivery.token, Close::Now);
            }
            return self.discard_reply(delivery);
        }
        self.deliver(io, delivery);
    }

    /// Delivers a command's reply to the session that is waiting for it, and resumes the session.
    pub(super) fn deliver(&mut self, io: &mut Control, delivery: DeliveredReply) {
        let token = delivery.token;
        let Some(mut session) = self.sessions.take(token) else {
            return self.discard_reply(delivery);
        };
        let stall = session.stall();
        let waits = matches!(stall, Stall::Waiting | Stall::Elsewhere);
        if !waits || session.id() != delivery.client {
            self.sessions.put(session);
            return self.discard_reply(delivery);
        }
        self.forget_wait(&mut session);
        if session.wants_reply() {
            self.replies = delivery.replies;
            session.output.set_stream(self.replies.take_stream());
        } else {
            self.discard_reply(delivery);
        }
        if !session.output.has_stream() {
            session.output.release_deferred(self.replies.bytes_mut());
        }
        session.after_command();
        // The change that the reply shows was made by another client's command or by another thread.
        self.core.env.note_shown(wait::shown_to_all(&self.core));
        self.sessions.put(session);
        self.resume(io, token, stall);
    }

    /// Delivers the replies to sessions of this worker, including replies that this delivery
    /// causes.
    pub(super) fn deliver_all(&mut self, io: &mut Control) {
        while let Some(delivery) = self.core.pending.next_delivery() {
            self.deliver_executed(io, delivery);
        }
    }

    /// Replies to WAIT and WAITAOF commands whose condition is met.
    pub(super) fn reply_acknowledged(&mut self, io: &mut Control) {
        let shared = self.core.shared;
        for token in self.wait_timers.take_for_acks() {
            let Some(session) = self.sessions.get_mut(token) else {
                continue;
            };
            let (Some(wait), Some(waiter)) =
                (session.blocked.acks(), session.blocked.waiter().cloned())
            else {
                continue;
            };
            let over = wait.is_over(&shared.replication, &shared.persistence.aof);
            if matches!(over, Ok(false)) {
                if wait.wants_disk() {
                    shared.persistence.aof.hasten(Level::Disk);
                }
                self.wait_timers.await_acks(token);
                continue;
            }
            if !waiter.end() {
                continue;
            }
            let client = waiter.client;
            let mut delivery =
                DeliveredReply { token, client: client.id, replies: Default::default() };
            let mut reply = Reply::new(&mut delivery.replies, client.protocol);
            waiting::book_wait(&mut self.core, &waiter, over.is_err(), 0);
            match over {
                Ok(_) => wait.write_reply(&shared.replication, &shared.persistence.aof, &mut reply),
                Err(error) => {
                    count::count_error(&self.core, &error);
                    reply.error(&error)
                }
            };
            self.deliver(io, delivery);
        }
    }

    fn forget_wait(&mut self, session: &mut Session) {
        let timer = session.blocked.end();
        *session.record.waiter() = None;
        if session.record.has(flag::AWAITS_END) {
            session.record.set(flag::AWAITS_END, false);
        }
        if let Some(timer) = timer {
            self.wait_timers.cancel_timer(timer);
        }
    }

    /// Cleans up after a connection that closes during a wait.
    pub(super) fn abandon_wait(&mut self, session: &mut Session) {
        if let Some(waiter) = session.blocked.waiter().cloned() {
            if waiter.end() {
                self.core.shared.keyspace.forget_waiter(&waiter);
            }
            self.forget_wait(session);
        }
    }
}
