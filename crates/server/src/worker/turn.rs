//! A session's turn: its input is cut into batches and executed as far as the session may proceed,
//! and the replies are handed to its connection.
//!
//! A session that may not proceed is stalled (see [`Stall`]), and its socket is not read meanwhile.
//! Fairness: a session that has taken longer than [`TURN_NS_MAX`] waits for the next round, and
//! turns become short in a long round.

use super::{LINGER, Worker, encrypted};
use brisk_engine::command::Flags;
use brisk_engine::effect::Hooks;
use brisk_engine::env::Garbage;
use brisk_engine::reply::ReplyBytes;
use brisk_engine::table::Row;
use brisk_node::clients::flag;
use brisk_node::core::Core;
use brisk_node::core::session::{Session, Stall};
use brisk_node::persistence::aof::wait;
use brisk_node::pubsub::publish;
use brisk_node::run::batch::{Batch, Look, REQUESTS_MAX, Stop};
use brisk_node::run::dispatch;
use brisk_node::run::dispatch::Flow;
use brisk_node::run::gate;
use brisk_node::tracking::session;
use brisk_reactor::{Close, Control, SharedBytes};
use brisk_resp::Limits;
use brisk_structures::reclaim::Participant;
use std::sync::atomic::Ordering;

/// How long one session may execute before the others have their turn.
const TURN_NS_MAX: u64 = 2_000_000;
/// The same limit in a long round. With thousands of busy pipelines, each would otherwise wait for
/// the long turns of all others.
const SHORT_TURN_NS_MAX: u64 = 50_000;
/// Replies are moved to the connection's output at this size, so that the reply buffer stays small
/// and in the cache.
const FLUSH_BYTES: usize = 64 * 1024;
/// Accumulated input of at least this size is checked against the limit before one of its requests
/// is executed.
const WEIGHED_INPUT_MIN: usize = 32 * 1024;
/// The most input that is held for a session that is read although it is stalled.
const LISTENING_INPUT_MAX: usize = 64 * 1024;

/// How long replies that wait for replicas are kept for a client that has shut down its sending
/// side, in ms. The client may still read them, or be gone.
const HELD_FOR_LEFT_MS: u64 = 1000;

/// A batch that was cut: the number of bytes it takes, and why it ends.
pub(super) struct Cut {
    pub(super) len: usize,
    pub(super) stop: Stop,
}

impl Worker {
    /// Executes requests that arrived, and keeps those that cannot be executed yet.
    #[inline]
    pub(super) fn take_input(&mut self, io: &mut Control, session: &mut Session, bytes: &[u8]) {
        session.accounting.count_received(bytes.len());
        if session.stall() != Stall::None {
            session.connection.input_mut().append(bytes);
        } else if session.connection.input().is_empty() {
            let used = self.execute(io, session, bytes);
            if used < bytes.len() {
                session.connection.input_mut().keep(&bytes[used..]);
            }
        } else {
            session.connection.input_mut().append(bytes);
            // Input above the limit is not executed, even if the request is complete by now.
            if !self.exceeds_query_limit(session) {
                let bytes = session.connection.input_mut().take();
                let cut = self.cut(session, &bytes);
                let is_weighed = self.core.client_limit != 0 && bytes.len() >= WEIGHED_INPUT_MIN;
                if is_weighed && !self.batch.is_empty() {
                    let output = io.output_memory(session.token);
                    self.core.weigh_before_execution(output, &bytes, session);
                }
                let used = self.execute_from(io, session, &bytes, cut);
                session.connection.input_mut().put_back(bytes, used);
            }
        }
    }

    /// True if a client has sent more unexecuted input than its limit allows.
    fn exceeds_query_limit(&self, session: &Session) -> bool {
        session.unexecuted_bytes() > self.core.config.clients.client_query_buffer_limit
    }

    /// Executes the input that the session holds.
    pub(super) fn execute_input(&mut self, io: &mut Control, session: &mut Session) {
        if session.connection.input().is_empty() {
            return;
        }
        let bytes = session.connection.input_mut().take();
        let used = self.execute(io, session, &bytes);
        session.connection.input_mut().put_back(bytes, used);
    }

    /// Executes the complete requests at the beginning of `data`, as far as the session may
    /// proceed. Returns the number of bytes they took.
    pub(super) fn execute(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        data: &[u8],
    ) -> usize {
        let cut = self.cut(session, data);
        self.execute_from(io, session, data, cut)
    }

    /// Cuts a batch out of `data`.
    fn cut(&mut self, session: &mut Session, data: &[u8]) -> Cut {
        let cut = cut(&self.core, &self.participant, &mut self.batch, session, data);
        self.note_parsing();
        cut
    }

    /// Records the time since the last measurement as time for cutting batches.
    pub(super) fn note_parsing(&mut self) {
        let parsed = self.core.clock.ticks();
        let ticks = parsed.wrapping_sub(self.core.last_ticks);
        self.core.stats().parse_ns.add(self.core.clock.ns(ticks));
        self.core.last_ticks = parsed;
    }

    /// Like [`Worker::execute`], with the first batch already cut.
    pub(super) fn execute_from(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        data: &[u8],
        cut: Cut,
    ) -> usize {
        session::act_for(&self.core, session);
        let used = self.execute_on(io, session, data, cut);
        session::clear_acting_session(&self.core);
        if self.core.reply_meter.is_some() {
            // The remaining replies are small.
            self.core.reply_meter = None;
        }
        used
    }

    fn execute_on(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        data: &[u8],
        mut cut: Cut,
    ) -> usize {
        let begin = self.core.last_ticks;
        session.connection.input_mut().set_missing(0);
        let mut at = 0;
        loop {
            let before = self.core.last_ticks;
            let stopped = self.run_batch(io, session, &data[at..]);
            self.note_batch(session, before);
            if let Some(rest) = stopped {
                session.connection.decoder_mut().reset();
                return at + rest;
            }
            at += cut.len;
            match cut.stop {
                Stop::Full => {}
                Stop::NeedMore(missing) => {
                    session.connection.input_mut().set_missing(missing);
                    return at;
                }
                Stop::Broken(error) => {
                    // As in Redis, CLIENT REPLY OFF and SKIP also apply to this reply.
                    if session.wants_reply() {
                        error.encode(self.replies.bytes_mut());
                    }
                    self.core.stats().error_replies.add(1);
                    self.core.shared.observe.errors.count("ERR");
                    session.close_after_reply();
                    return data.len();
                }
            }
            let turn = self.core.last_ticks.wrapping_sub(begin);
            if self.core.clock.ns(turn) > self.turn_ns_max() {
                self.stall(session, Stall::NextRound);
                return at;
            }
            cut = self.cut(session, &data[at..]);
        }
    }

    /// Prepares for the execution of sessions: updates settings and the clock, and forgets earlier
    /// prefetches.
    pub(super) fn begin_turn(&mut self) {
        self.core.refresh_config();
        self.core.read_clocks();
        self.participant.quiescent();
    }

    /// Returns the time limit of a session's turn in this round.
    pub(super) fn turn_ns_max(&self) -> u64 {
        if self.rounds.is_long(&self.core) { SHORT_TURN_NS_MAX } else { TURN_NS_MAX }
    }

    /// Runs the requests of the batch. Returns `Some(n)` if the session must stop after `n` bytes.
    #[inline]
    pub(super) fn run_batch(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        data: &[u8],
    ) -> Option<usize> {
        // At most the size at which replies are flushed, which depends on the output of all
        // clients.
        let mut flush_at = self.core.output_watch_bytes.min(FLUSH_BYTES);
        if self.core.shared.keyspace.tracking().key_count() > 0 {
            self.prefetch_tracked(session);
        }
        // The first request whose elements have not been prefetched.
        let mut asked = 0;
        for at in 0..self.batch.len() {
            let request = *self.batch.request(at);
            if at >= asked {
                let keyspace = &self.core.shared.keyspace;
                asked = self.batch.prefetch_elements(at, data, keyspace, session.db());
            }
            self.core.shared.quiesce.checkpoint(self.core.id);
            if session.needs_attention()
                && let Some(stop) = self.attend(io, session, request.start, data.len())
            {
                return Some(stop);
            }
            if session.push.gets_messages() && publish::has_messages(&self.core) {
                // Messages that arrived before a command precede its reply, and precede
                // UNSUBSCRIBE.
                self.deliver_messages(io, Some(session));
            }
            let flow = loop {
                let flow = dispatch::dispatch(
                    &mut self.core,
                    session,
                    &self.batch,
                    &request,
                    data,
                    &mut self.replies,
                );
                if flow != Flow::InvalidationsFirst {
                    break flow;
                }
                self.deliver_messages(io, Some(session));
            };
            if publish::has_messages(&self.core) {
                self.hear_after(io, session, flow);
            }
            if session.push.tracker().is_some_and(|tracker| tracker.caching) {
                self.end_caching(session, request.row, flow);
            }
            match flow {
                Flow::InvalidationsFirst => debug_assert!(false, "told twice before one command"),
                Flow::Next => {
                    if let Some(stream) = self.replies.take_stream() {
                        session.output.set_stream(Some(stream));
                        if !self.write_on(io, session) {
                            return Some(request.end);
                        }
                    }
                }
                Flow::Waiting => {
                    self.begin_wait(session);
                    return Some(request.end);
                }
                Flow::Elsewhere => {
                    self.stall(session, Stall::Elsewhere);
                    return Some(request.end);
                }
                Flow::Later(stall) => {
                    self.stall(session, stall);
                    return Some(request.start);
                }
            }
            if self.replies.len() >= flush_at {
                let soft_limit = self.core.soft_limit();
                flush_at = soft_limit.min(FLUSH_BYTES);
                if self.replies.len() >= flush_at && !self.flush_large(io, session, soft_limit) {
                    return Some(request.end);
                }
            }
        }
        None
    }

    /// Flushes replies in the middle of a batch. Returns false if the session is stalled, because
    /// another flush of this size would exceed `soft_limit`.
    #[cold]
    fn flush_large(&mut self, io: &mut Control, session: &mut Session, soft_limit: usize) -> bool {
        self.flush(io, session);
        self.core.reply_meter = None;
        let unread = session.output.unread_replies(io.unsent(session.token));
        let fits = unread + soft_limit.min(FLUSH_BYTES) <= soft_limit;
        if !fits {
            self.stall_for_output(io, session);
        }
        fits
    }

    /// Handles special states of a session before a request that begins at `start`. Returns the
    /// offset at which the session must stop, of `len` bytes, if it must.
    #[cold]
    fn attend(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        start: usize,
        len: usize,
    ) -> Option<usize> {
        // After QUIT, or a CLIENT KILL from any client, nothing more is executed.
        if session.is_closing() {
            return Some(len);
        }
        if session.synchronises() {
            self.stall(session, Stall::Synchronises);
            return Some(start);
        }
        if session.record.has(flag::REPLICA) {
            // This command has no reply, but the reply that the stream follows may be in the
            // buffer.
            self.flush(io, session);
            if session.is_closing() {
                return Some(len);
            }
        }
        session.renew_user();
        None
    }

    /// Prefetches the tracking table's entries for the keys of the batch: for remembering the keys,
    /// or for sending invalidations.
    #[cold]
    fn prefetch_tracked(&self, session: &Session) {
        let (keys, tracking) = (self.batch.all_keys(), self.core.shared.keyspace.tracking());
        if keys.len() > 1 {
            if session.push.tracker().is_some_and(|tracker| tracker.remembers()) {
                tracking.prefetch_tracked(keys);
            } else {
                tracking.prefetch_counters(keys);
            }
        }
    }

    /// Ends CLIENT CACHING, which applies to the next command or transaction other than CLIENT
    /// itself.
    #[cold]
    fn end_caching(&self, session: &mut Session, row: Option<&Row>, flow: Flow) {
        let keeps = row.is_some_and(|row| row.has(Flags::KEEPS_CACHING));
        if let Some(tracker) = session.push.tracker_mut()
            && !(keeps || session.transaction.is_open() || matches!(flow, Flow::Later(_)))
        {
            tracker.caching = false;
            session::remember_for(&self.core, session);
        }
    }

    /// Delivers the messages that a command caused after its reply.
    #[cold]
    fn hear_after(&mut self, io: &mut Control, session: &mut Session, flow: Flow) {
        if flow == Flow::Elsewhere {
            // The reply is still to come.
            session.set_stall(Stall::Elsewhere);
        }
        self.deliver_messages(io, Some(session));
    }

    /// Continues to write a large reply. Returns true when it is complete; false if its client has
    /// enough to read, and the session is now stalled.
    #[cold]
    pub(super) fn write_on(&mut self, io: &mut Control, session: &mut Session) -> bool {
        let Some(mut stream) = session.output.take_stream() else { return true };
        if wait::has_ended(&self.core, session) {
            // The header may have been sent: an error can no longer follow it.
            self.core.env.garbage.borrow_mut().push(Garbage::View(stream));
            session.output.unlogged_mut().clear();
            session.close_at_once();
            return true;
        }
        let soft_limit = self.core.soft_limit();
        loop {
            let more = stream.write(&mut self.replies, soft_limit.min(FLUSH_BYTES));
            self.flush(io, session);
            if !more {
                // It may hold the last reference to a huge value.
                self.core.env.garbage.borrow_mut().push(Garbage::View(stream));
                session.output.release_held(self.replies.bytes_mut());
                return true;
            }
            if queued(io, session) >= soft_limit {
                session.output.set_stream(Some(stream));
                self.stall_for_output(io, session);
                return false;
            }
        }
    }

    /// Stalls the session until its client has read enough.
    fn stall_for_output(&mut self, io: &mut Control, session: &mut Session) {
        self.core.stats().output_stalls.add(1);
        self.stall(session, Stall::Output);
        self.go_on_when_drained(io, session);
    }

    /// Continues a session that is stalled for its output after its client has read enough of the
    /// replies to its own requests.
    pub(super) fn go_on_when_drained(&self, io: &mut Control, session: &mut Session) {
        // Held replies go to the output later; this function is called again then.
        if session.output.unlogged().is_empty() {
            let token = session.token;
            session.output.unread_replies(io.unsent(token));
            io.when_drained(token, self.core.soft_limit() / 2 + session.output.pushed());
        }
    }

    /// Called before and after a session executes: stalls it if its unread replies reach the limit.
    /// `unsent` bytes are in the connection's output. Replies too small to be flushed during a turn are
    /// checked only here.
    #[inline]
    pub(super) fn stall_if_unread(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        unsent: usize,
    ) {
        let unread = session.output.unread(unsent);
        session.output.bound_pushed(unread);
        if unread >= self.core.output_watch_bytes {
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
        // At least half of the limit, below which a stalled session continues.
        let most = (soft_limit - flush_at).max(flush_at);
        if session.output.unread_replies(io.unsent(session.token)) > most {
            self.stall_for_output(io, session);
        }
    }

    #[inline]
    pub(super) fn note_batch(&mut self, session: &mut Session, began: u64) {
        let ran = std::mem::take(&mut self.core.ran);
        if ran > 0 {
            session.accounting.count_commands(ran);
            session.record.last_command.store(self.core.last_row, Ordering::Relaxed);
        }
        let clock = self.core.clock;
        let stats = self.core.stats();
        stats.execute_ns.add(clock.ns(self.core.last_ticks.wrapping_sub(began)));
        stats.batches.add(1);
        stats.batched_requests.add(self.batch.len() as u64);
        stats.commands_processed.add(ran);
        stats.batch_max.raise(self.batch.len() as u64);
        self.core.free_garbage();
        self.batch.shrink();
    }

    /// Moves replies to the connection's output.
    pub(super) fn flush(&mut self, io: &mut Control, session: &mut Session) {
        let is_logged = self.core.env.hooks.get().contains(Hooks::PROPAGATE);
        if is_logged && session.record.has(flag::REPLICA) {
            self.reject_reply(session);
        }
        let is_kept = !session.output.unlogged().is_empty()
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

    /// Runs after a session's turn: sends replies, publishes metrics, and may close the session.
    pub(super) fn after_turn(&mut self, io: &mut Control, session: &mut Session) {
        let token = session.token;
        // Excludes the replies of this turn, which the kernel has not been offered yet.
        let mut unsent = io.unsent(token);
        self.flush(io, session);
        let mut queued = io.unsent(token);
        self.stall_if_unread(io, session, queued);
        if session.is_closing() {
            if !session.record.has(flag::CLOSE_ASAP) {
                close_flushed(io, session);
                queued = io.unsent(token);
            } else if !self.core.shared.shutdown.is_asked() {
                // After SHUTDOWN, the process exit closes it, when no listener is open any more.
                io.close(token, Close::Now);
            }
        } else if session.stall() != Stall::None {
            if listens_for_the_end(session) {
                io.resume_reading(token);
            } else {
                io.pause_reading(token);
            }
            unsent = queued;
            let gone = session.connection.is_finished() || io.has_hung_up(token);
            if gone && session.stall().ends_with_the_client() {
                // The client left while its requests waited for another reason, or shut down its
                // sending side after them.
                io.close(token, Close::Now);
            }
        } else if self.exceeds_query_limit(session) {
            let figures = &self.core.shared.observe.figures;
            figures.query_limit_disconnections.fetch_add(1, Ordering::Relaxed);
            io.close(token, Close::Now);
        }
        let waiting = queued + session.output.unlogged().len();
        if self.core.exceeds_output_limit(session, waiting as u64) {
            // As in Redis, excess output is not sent, and no other client is evicted because of it.
            session.output.unlogged_mut().clear();
            io.output(token).clear();
            io.close(token, Close::Now);
            unsent = 0;
        } else if waiting >= self.core.output_watch_bytes {
            // Output of this size counts even before it is offered to the kernel.
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
        if unsent >= self.core.output_watch_bytes {
            io.count_orphans(token);
        }
        self.core.publish_output(unsent, session);
        self.core.weigh(io.output_memory(token), session);
        session.publish_traffic();
        let queued = unsent + session.output.unlogged().len();
        if self.core.exceeds_output_limit(session, queued as u64)
            || has_left_for_long(io, session, now_ms)
        {
            io.close(token, Close::Now);
        }
        if session.stall() == Stall::Output
            && session.output.pushed() > 0
            && session.output.unlogged().is_empty()
        {
            // Messages that arrived in the meantime follow its replies.
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

    pub(super) fn close_connections(&mut self, io: &mut Control) {
        while let Some(token) = self.core.connections_to_close.pop() {
            io.close(token, Close::Now);
        }
    }
}

/// Returns the bytes of output that have not left: those that wait for the append-only file, and
/// those that the kernel has not taken.
fn queued(io: &Control, session: &Session) -> usize {
    io.unsent(session.token) + session.output.unlogged().len()
}

/// True if a client has shut down its sending side, and its replies have waited for replicas for
/// [`HELD_FOR_LEFT_MS`] since. Replies that wait for the disk need no such limit.
fn has_left_for_long(io: &Control, session: &mut Session, now_ms: u64) -> bool {
    let waits = !session.output.unlogged().is_empty()
        && session.replication.durability().replicas().is_some();
    if !waits || !(session.connection.is_finished() || io.has_hung_up(session.token)) {
        session.output.note_not_left();
        return false;
    }
    now_ms.saturating_sub(session.output.note_left(now_ms)) >= HELD_FOR_LEFT_MS
}

/// Cuts a batch out of `data`. [`Worker::note_parsing`] records the time, after one or several
/// cuts.
#[inline]
pub(super) fn cut(
    core: &Core,
    participant: &Participant,
    batch: &mut Batch,
    session: &mut Session,
    data: &[u8],
) -> Cut {
    let shared = core.shared;
    let authenticated = !gate::must_authenticate(core, session);
    let limits = Limits { authenticated, ..core.limits };
    // Before authentication, the next request's limits depend on this one.
    let max = if authenticated { REQUESTS_MAX } else { 1 };
    let look = Look {
        table: shared.table,
        hasher: shared.keyspace.hasher(),
        database: shared.keyspace.database(session.db()),
        participant: Some(participant),
    };
    let (len, stop) = batch.fill(data, max, session.connection.decoder_mut(), &limits, &look);
    Cut { len, stop }
}

/// True if a stalled session is read nevertheless. The end of an encrypted stream is a record
/// within the stream, so the kernel does not report it.
fn listens_for_the_end(session: &Session) -> bool {
    session.connection.is_encrypted()
        && session.stall().ends_with_the_client()
        && session.connection.input().len() < LISTENING_INPUT_MAX
}

/// Sends bytes outside of a client's turn, about an event that has already happened.
pub fn append(core: &Core, io: &mut Control, session: &mut Session, bytes: &[u8]) {
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
