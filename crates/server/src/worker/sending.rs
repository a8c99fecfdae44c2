//! Moves the output of a session to its connection: replies are flushed, limited, and written as the client reads them.
//! The session's metrics are published after its turn.

use super::{LINGER, Worker, encrypted};
use brisk_engine::effect::Hooks;
use brisk_engine::env::Garbage;
use brisk_engine::reply::ReplyBytes;
use brisk_node::clients::flag;
use brisk_node::core::Core;
use brisk_node::core::session::{Session, Stall};
use brisk_node::persistence::aof::wait;
use brisk_reactor::{Close, Control, SharedBytes};
use std::sync::atomic::Ordering;

/// Replies are moved to the connection's output at this size, so that the reply buffer stays small
/// and in the cache.
pub(super) const FLUSH_BYTES: usize = 64 * 1024;

/// A stalled session that is still being read (see `listens_for_the_end`) is no longer read once its input has this
/// many bytes.
const LISTENING_INPUT_MAX: usize = 64 * 1024;

/// How long replies that wait for replicas are kept for a client that has shut down its sending side, in ms. The client
/// may still read them, or may have disconnected.
const HELD_FOR_LEFT_MS: u64 = 1000;

impl Worker {
    /// Moves replies to the connection's output.
    pub(super) fn flush(&mut self, io: &mut Control, session: &mut Session) {
        if !self.replies.is_empty() && self.core.cluster.lost_lease() {
            return self.discard_replies(session);
        }
        let is_logged = self.core.env.hooks.get().contains(Hooks::PROPAGATE);
        if is_logged && session.record.has(flag::REPLICA) {
            self.reject_reply(session);
        }
        let is_kept = !session.output.held_replies().is_empty()
            || session.replication.durability().replicas().is_some();
        if (is_logged || is_kept) && self.keep_replies(session) {
            return;
        }
        if self.replies.is_empty() {
            return;
        }
        session.accounting.count_sent(self.replies.len());
        let output = io.output(session.token);
        if let Some(stream) = session.connection.tls_mut() {
            encrypted::flush(&mut self.replies, stream, output);
        } else if self.replies.has_shared() {
            let output = std::cell::RefCell::new(output);
            self.replies.drain(
                |bytes| output.borrow_mut().extend_from_slice(bytes),
                |data, range| match data {
                    ReplyBytes::Chunk(bytes) => {
                        output.borrow_mut().push_shared(SharedBytes::Counted(bytes), range);
                    }
                    ReplyBytes::Own(bytes) => output.borrow_mut().push_shared(bytes, range),
                },
            );
        } else {
            output.extend_from_slice(self.replies.bytes());
            self.replies.clear();
        }
        io.send(session.token);
    }

    /// Closes a connection instead of sending its replies, after the lease has ended during the turn.
    #[cold]
    fn discard_replies(&mut self, session: &mut Session) {
        let mut garbage = self.core.env.garbage.borrow_mut();
        garbage.push(Garbage::Other(Box::new(std::mem::take(&mut self.replies))));
        session.close_at_once();
    }

    /// Runs after a session's turn: sends replies, publishes metrics, and may close the session.
    pub(super) fn after_turn(&mut self, io: &mut Control, session: &mut Session) {
        let token = session.token;
        // This excludes the replies of this turn, which have not been passed to the kernel yet.
        let mut unsent = io.unsent(token);
        self.flush(io, session);
        let mut queued = io.unsent(token);
        self.stall_if_unread(io, session, queued);
        if session.is_closing() {
            if !session.record.has(flag::CLOSE_ASAP) {
                close_flushed(io, session);
                queued = io.unsent(token);
            } else if !self.core.shared.process.shutdown.is_requested() {
                // After SHUTDOWN, the process exit closes the connection, when no listener is open any more.
                io.close(token, Close::Now);
            }
        } else if session.stall() != Stall::None {
            if listens_for_the_end(session) {
                io.resume_reading(token);
            } else {
                io.pause_reading(token);
            }
            unsent = queued;
            let is_disconnected = session.connection.is_finished() || io.has_hung_up(token);
            if is_disconnected && session.stall().ends_with_the_client() {
                // The client disconnected while its requests waited for another reason, or shut down its sending side
                // after sending them.
                io.close(token, Close::Now);
            }
        } else if self.exceeds_query_limit(session) {
            let metrics = &self.core.shared.observe.metrics;
            metrics.query_limit_disconnections.fetch_add(1, Ordering::Relaxed);
            io.close(token, Close::Now);
        }
        let waiting = queued + session.output.held_replies().len();
        if self.core.exceeds_output_limit(session, waiting as u64) {
            // As in Redis, excess output is not sent, and no other client is evicted because of it.
            session.output.held_replies_mut().clear();
            io.output(token).clear();
            io.close(token, Close::Now);
            unsent = 0;
        } else if waiting >= self.core.limits.output_watch_bytes() {
            // Output of this size counts even before it is passed to the kernel.
            unsent = queued;
        }
        let memory = if unsent > 0 { io.output_memory(token) } else { 0 };
        self.publish((unsent, memory), session);
    }

    /// Checks a session for the timers: trims its input buffer, and publishes how much of its
    /// output the kernel has not taken.
    pub fn look_at(&mut self, io: &mut Control, index: usize, now_ms: u64) {
        let Some(session) = self.sessions.at(index) else { return };
        let token = session.token;
        session.connection.input_mut().trim(now_ms);
        let unsent = io.unsent(token);
        if unsent >= self.core.limits.output_watch_bytes() {
            io.count_orphans(token);
        }
        self.core.publish_output(unsent, session);
        self.core.weigh(io.output_memory(token), session);
        session.publish_traffic();
        let queued = unsent + session.output.held_replies().len();
        if self.core.exceeds_output_limit(session, queued as u64)
            || has_left_for_long(io, session, now_ms)
        {
            io.close(token, Close::Now);
        }
        if session.stall() == Stall::Output
            && session.output.pushed() > 0
            && session.output.held_replies().is_empty()
        {
            // Messages that have arrived in the meantime come after the replies.
            session.output.unread_replies(unsent);
            io.when_drained(token, self.core.soft_limit() / 2 + session.output.pushed());
        }
    }

    /// Publishes the metrics of a session for CLIENT LIST and INFO.
    fn publish(&self, (unsent, memory): (usize, usize), session: &mut Session) {
        self.core.publish_output(unsent, session);
        self.core.weigh(memory, session);
        session.publish_traffic();
        let input = session.connection.input().len();
        if session.accounting.replace_published_input(input) {
            let understood = session.connection.decoder().understood().min(input) as u64;
            session.record.argument_bytes.store(understood, Ordering::Relaxed);
            session.record.query_bytes.store(input as u64 - understood, Ordering::Relaxed);
            self.core.note_buffers(input as u64, 0, self.core.env.now().0 / 1000);
        }
        session.record.last_active_ms.store(self.core.env.now().0, Ordering::Relaxed);
    }

    /// Continues to write a large reply. Returns true if it is complete, and false if its client has enough to read and
    /// the session is now stalled.
    #[cold]
    pub(super) fn write_on(&mut self, io: &mut Control, session: &mut Session) -> bool {
        let Some(mut stream) = session.output.take_stream() else { return true };
        if wait::has_ended(&self.core, session) {
            // The header may have been sent, so an error can no longer be sent instead.
            self.core.env.garbage.borrow_mut().push(Garbage::View(stream));
            session.output.held_replies_mut().clear();
            session.close_at_once();
            return true;
        }
        let soft_limit = self.core.soft_limit();
        loop {
            let more = stream.write(&mut self.replies, soft_limit.min(FLUSH_BYTES));
            self.flush(io, session);
            if !more || session.record.has(flag::CLOSE_ASAP) {
                // The stream may hold the last reference to a huge value.
                self.core.env.garbage.borrow_mut().push(Garbage::View(stream));
                session.output.release_deferred(self.replies.bytes_mut());
                return true;
            }
            if queued(io, session) >= soft_limit {
                session.output.set_stream(Some(stream));
                self.stall_for_output(io, session);
                return false;
            }
        }
    }

    /// Flushes replies in the middle of a batch. Returns false if it stalled the session because another flush of this
    /// size would exceed `soft_limit`.
    #[cold]
    pub(super) fn flush_large(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        soft_limit: usize,
    ) -> bool {
        self.flush(io, session);
        self.core.memory.end_reply();
        let unread = session.output.unread_replies(io.unsent(session.token));
        let fits = unread + soft_limit.min(FLUSH_BYTES) <= soft_limit;
        if !fits {
            self.stall_for_output(io, session);
        }
        fits
    }

    /// Called before and after a session executes. Stalls the session if its unread replies reach the limit. `unsent`
    /// bytes are in the connection's output. Replies that are too small to be flushed during a turn are checked only
    /// here.
    #[inline]
    pub(super) fn stall_if_unread(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        unsent: usize,
    ) {
        let unread = session.output.unread(unsent);
        session.output.bound_pushed(unread);
        if unread >= self.core.limits.output_watch_bytes() {
            self.look_at_unread(io, session);
        }
    }

    #[cold]
    fn look_at_unread(&mut self, io: &mut Control, session: &mut Session) {
        io.count_orphans(session.token);
        let executes = matches!(session.stall(), Stall::None | Stall::NextRound);
        // A replica is sent no replies, and its acknowledgements must be read.
        if !executes || session.is_closing() || session.record.has(flag::REPLICA) {
            return;
        }
        let soft_limit = self.core.soft_limit();
        let flush_at = soft_limit.min(FLUSH_BYTES);
        // The result is at least half of the limit; below half of the limit, a stalled session continues.
        let most = (soft_limit - flush_at).max(flush_at);
        if session.output.unread_replies(io.unsent(session.token)) > most {
            self.stall_for_output(io, session);
        }
    }

    /// Stalls the session until its client has read enough.
    fn stall_for_output(&mut self, io: &mut Control, session: &mut Session) {
        self.core.stats().output_stalls.add(1);
        self.stall(session, Stall::Output);
        self.resume_when_drained(io, session);
    }

    /// Continues a session that is stalled because of its output, after its client has read enough of the replies to
    /// its own requests.
    pub(super) fn resume_when_drained(&self, io: &mut Control, session: &mut Session) {
        // Held replies are moved to the output later. This function is then called again.
        if session.output.held_replies().is_empty() {
            let token = session.token;
            session.output.unread_replies(io.unsent(token));
            io.when_drained(token, self.core.soft_limit() / 2 + session.output.pushed());
        }
    }

    pub(super) fn close_connections(&mut self, io: &mut Control) {
        while let Some(token) = self.core.pending.next_to_close() {
            io.close(token, Close::Now);
        }
    }
}

/// Sends bytes outside of a client's turn. They are about an event that has already happened.
pub(super) fn append(core: &Core, io: &mut Control, session: &mut Session, bytes: &[u8]) {
    session.accounting.count_sent(bytes.len());
    let shown = wait::shown_to_all(core);
    if wait::must_wait(core, session, shown) {
        return wait::keep(core, session, shown, |out| out.extend_from_slice(bytes));
    }
    let output = io.output(session.token);
    session.connection.write(bytes, output);
    io.send(session.token);
}

/// Closes a connection after its client has read its queued output.
pub(super) fn close_flushed(io: &mut Control, session: &mut Session) {
    if Worker::closes_later(io, session) {
        return;
    }
    if let Some(stream) = session.connection.tls_mut() {
        stream.close(io.output(session.token));
        io.send(session.token);
    }
    io.close(session.token, Close::Flush { linger: LINGER });
}

/// Returns the number of bytes of output that have not been sent: bytes that wait for the append-only file, and bytes
/// that the kernel has not taken.
fn queued(io: &Control, session: &Session) -> usize {
    io.unsent(session.token) + session.output.held_replies().len()
}

/// True if a client has shut down its sending side and its replies have since waited for replicas for
/// [`HELD_FOR_LEFT_MS`]. Replies that wait for the disk need no such limit.
fn has_left_for_long(io: &Control, session: &mut Session, now_ms: u64) -> bool {
    let waits = !session.output.held_replies().is_empty()
        && session.replication.durability().replicas().is_some();
    if !waits || !(session.connection.is_finished() || io.has_hung_up(session.token)) {
        session.output.note_not_left();
        return false;
    }
    now_ms.saturating_sub(session.output.note_left(now_ms)) >= HELD_FOR_LEFT_MS
}

/// True if the worker reads from a session although it is stalled. The end of an encrypted stream is a record within
/// the stream, so the kernel does not report it.
fn listens_for_the_end(session: &Session) -> bool {
    session.connection.is_encrypted()
        && session.stall().ends_with_the_client()
        && session.connection.input().len() < LISTENING_INPUT_MAX
}
