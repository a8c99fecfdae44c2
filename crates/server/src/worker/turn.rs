//! A session's turn: its input is cut into batches and executed, as far as the session may go, and
//! the replies are handed to its connection.
//!
//! A session that may not go on is stalled (see [`Stall`]) and its socket is not read meanwhile.
//! Fairness: a session that took longer than [`TURN_NS_MAX`] waits for the next round, and turns
//! are short in a round that has become long.

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
use brisk_reactor::{Close, Control, SharedBytes, Token};
use brisk_resp::Limits;
use brisk_structures::reclaim::Participant;
use std::sync::atomic::Ordering;

/// How long one session may execute before the others have their turn.
const TURN_NS_MAX: u64 = 2_000_000;
/// The same once the round has taken longer than [`ROUND_NS_MAX`]: with thousands of busy pipelines
/// each would else wait for the long turns of all others.
const SHORT_TURN_NS_MAX: u64 = 50_000;
const ROUND_NS_MAX: u64 = 4_000_000;
/// Replies are moved to the connection's output at this size, so that the buffer they are made in
/// stays in the cache, and small.
const FLUSH_BYTES: usize = 64 * 1024;
/// Collected input from this size on is counted before a request in it is executed.
const WEIGHED_INPUT_MIN: usize = 32 * 1024;
/// Input that a session may hold that is read though it is stalled.
const LISTENING_INPUT_MAX: usize = 64 * 1024;

/// How long replies that wait for replicas are kept for a client that has ended its stream, in ms. The
/// client may still read them, or be gone.
const HELD_FOR_LEFT_MS: u64 = 1000;

/// A batch that was cut: how many bytes it takes, and why it ends.
pub(super) struct Cut {
    pub(super) len: usize,
    pub(super) stop: Stop,
}

impl Worker {
    /// Executes requests that arrived, and keeps what cannot be executed yet.
    #[inline]
    pub(super) fn take_input(&mut self, io: &mut Control, session: &mut Session, bytes: &[u8]) {
        session.traffic.bytes_in += bytes.len() as u64;
        if session.stall != Stall::None {
            session.input.append(bytes);
        } else if session.input.is_empty() {
            let used = self.execute(io, session, bytes);
            if used < bytes.len() {
                session.input.keep(&bytes[used..]);
            }
        } else {
            session.input.append(bytes);
            // Too much of it is not executed either, though it be whole by now.
            if !self.exceeds_query_limit(session) {
                let bytes = session.input.take();
                let cut = self.cut(session, &bytes);
                let is_weighed = self.core.client_limit != 0 && bytes.len() >= WEIGHED_INPUT_MIN;
                if is_weighed && !self.batch.is_empty() {
                    let output = io.output_memory(session.token);
                    self.core.weigh_before_execution(output, &bytes, session);
                }
                let used = self.execute_from(io, session, &bytes, cut);
                session.input.put_back(bytes, used);
            }
        }
    }

    /// Whether a client has sent more that waits to be executed than it may.
    fn exceeds_query_limit(&self, session: &Session) -> bool {
        session.unexecuted_bytes() > self.core.config.clients.client_query_buffer_limit
    }

    /// Executes what the session holds of its input.
    pub(super) fn execute_input(&mut self, io: &mut Control, session: &mut Session) {
        if session.input.is_empty() {
            return;
        }
        let bytes = session.input.take();
        let used = self.execute(io, session, &bytes);
        session.input.put_back(bytes, used);
    }

    /// Executes the whole requests at the beginning of `data`, as far as the session may go, and
    /// returns how many bytes they took.
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

    /// Notes the time since the last note as that of cutting batches.
    pub(super) fn note_parsing(&mut self) {
        let parsed = self.core.clock.ticks();
        let ticks = parsed.wrapping_sub(self.core.last_ticks);
        self.core.stats().parse_ns.add(self.core.clock.ns(ticks));
        self.core.last_ticks = parsed;
    }

    /// Like [`Worker::execute`], with the first batch cut already.
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
        session.input.set_missing(0);
        let mut at = 0;
        loop {
            let before = self.core.last_ticks;
            let stopped = self.run_batch(io, session, &data[at..]);
            self.note_batch(session, before);
            if let Some(rest) = stopped {
                session.decoder.reset();
                return at + rest;
            }
            at += cut.len;
            match cut.stop {
                Stop::Full => {}
                Stop::NeedMore(missing) => {
                    session.input.set_missing(missing);
                    return at;
                }
                Stop::Broken(error) => {
                    // As in Redis, CLIENT REPLY OFF and SKIP are about this answer too.
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

    /// Before sessions execute: settings, time, and what was prefetched before is forgotten.
    pub(super) fn begin_turn(&mut self) {
        self.core.refresh_config();
        self.core.read_clocks();
        self.participant.quiescent();
    }

    /// How long a session's turn may be in this round.
    pub(super) fn turn_ns_max(&self) -> u64 {
        if self.round_is_long() { SHORT_TURN_NS_MAX } else { TURN_NS_MAX }
    }

    /// Whether the others have waited long enough in this round.
    pub(super) fn round_is_long(&self) -> bool {
        let round = self.core.last_ticks.wrapping_sub(self.round_began);
        self.core.clock.ns(round) > ROUND_NS_MAX
    }

    /// Runs the requests of the batch. `Some(n)` if the session must stop behind `n` bytes.
    #[inline]
    pub(super) fn run_batch(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        data: &[u8],
    ) -> Option<usize> {
        // At most the size at which replies are flushed, which depends on the output of all clients.
        let mut flush_at = self.core.output_watch_bytes.min(FLUSH_BYTES);
        if self.core.shared.keyspace.tracking().key_count() > 0 {
            self.prefetch_tracked(session);
        }
        // The request up to which the elements that it names were asked for.
        let mut asked = 0;
        for at in 0..self.batch.len() {
            let request = *self.batch.request(at);
            if at >= asked {
                let keyspace = &self.core.shared.keyspace;
                asked = self.batch.prefetch_elements(at, data, keyspace, session.db);
            }
            self.core.shared.quiesce.checkpoint(self.core.id);
            if session.needs_attention()
                && let Some(stop) = self.attend(io, session, request.start, data.len())
            {
                return Some(stop);
            }
            if session.gets_messages && publish::has_messages(&self.core) {
                // What came before a command stands before its reply, and before UNSUBSCRIBE.
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
            if session.tracker.as_ref().is_some_and(|tracker| tracker.caching) {
                self.end_caching(session, request.row, flow);
            }
            match flow {
                Flow::InvalidationsFirst => debug_assert!(false, "told twice before one command"),
                Flow::Next => {
                    if let Some(stream) = self.replies.take_stream() {
                        session.stream = Some(stream);
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

    /// Flushes replies in the middle of a batch. False if the session is stalled, because as much again
    /// would exceed `soft_limit`.
    #[cold]
    fn flush_large(&mut self, io: &mut Control, session: &mut Session, soft_limit: usize) -> bool {
        self.flush(io, session);
        self.core.reply_meter = None;
        let unread = session.unread_replies(io.unsent(session.token));
        let fits = unread + soft_limit.min(FLUSH_BYTES) <= soft_limit;
        if !fits {
            self.stall_for_output(io, session);
        }
        fits
    }

    /// Looks at what is special about a session before a request that begins at `start`; behind how many of
    /// `len` bytes it must stop, if it must.
    #[cold]
    fn attend(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        start: usize,
        len: usize,
    ) -> Option<usize> {
        // QUIT before it, or a CLIENT KILL from anywhere: nothing more is executed.
        if session.is_closing() {
            return Some(len);
        }
        if session.synchronises() {
            self.stall(session, Stall::Synchronises);
            return Some(start);
        }
        if session.record.has(flag::REPLICA) {
            // It is answered nothing, but what the stream follows may stand there.
            self.flush(io, session);
            if session.is_closing() {
                return Some(len);
            }
        }
        session.renew_user();
        None
    }

    /// Asks for what remembering the keys of the batch will read, or telling of their changes.
    #[cold]
    fn prefetch_tracked(&self, session: &Session) {
        let (keys, tracking) = (self.batch.all_keys(), self.core.shared.keyspace.tracking());
        if keys.len() > 1 {
            if session.tracker.as_ref().is_some_and(|tracker| tracker.remembers()) {
                tracking.prefetch_tracked(keys);
            } else {
                tracking.prefetch_counters(keys);
            }
        }
    }

    /// CLIENT CACHING is about the next command or transaction that is not CLIENT itself.
    #[cold]
    fn end_caching(&self, session: &mut Session, row: Option<&Row>, flow: Flow) {
        let keeps = row.is_some_and(|row| row.has(Flags::KEEPS_CACHING));
        if let Some(tracker) = &mut session.tracker
            && !(keeps || session.transaction.is_some() || matches!(flow, Flow::Later(_)))
        {
            tracker.caching = false;
            session::remember_for(&self.core, session);
        }
    }

    /// What comes of a command stands behind its reply.
    #[cold]
    fn hear_after(&mut self, io: &mut Control, session: &mut Session, flow: Flow) {
        if flow == Flow::Elsewhere {
            // The reply is still to come.
            session.stall = Stall::Elsewhere;
        }
        self.deliver_messages(io, Some(session));
    }

    /// Writes on at a large reply until it is done (true) or its client has enough to read: then
    /// the session is stalled.
    #[cold]
    pub(super) fn write_on(&mut self, io: &mut Control, session: &mut Session) -> bool {
        let Some(mut stream) = session.stream.take() else { return true };
        if wait::has_ended(&self.core, session) {
            // Its head may have left: no error can follow that.
            self.core.env.garbage.borrow_mut().push(Garbage::View(stream));
            session.unlogged.clear();
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
                self.replies.bytes_mut().append(&mut session.held);
                return true;
            }
            if queued(io, session) >= soft_limit {
                session.stream = Some(stream);
                self.stall_for_output(io, session);
                return false;
            }
        }
    }

    /// The session goes on when its client has taken enough.
    fn stall_for_output(&mut self, io: &mut Control, session: &mut Session) {
        self.core.stats().output_stalls.add(1);
        self.stall(session, Stall::Output);
        self.go_on_when_drained(io, session);
    }

    /// Continues a session that is stalled for its output once its client has read enough of the
    /// replies to its own requests.
    pub(super) fn go_on_when_drained(&self, io: &mut Control, session: &mut Session) {
        // Replies that are held back go to the output later: this is called again then.
        if session.unlogged.is_empty() {
            let token = session.token;
            session.unread_replies(io.unsent(token));
            io.when_drained(token, self.core.soft_limit() / 2 + session.pushed);
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
        let unread = session.unread(unsent);
        if session.pushed > unread {
            session.pushed = unread;
        }
        if unread >= self.core.output_watch_bytes {
            self.look_at_unread(io, session);
        }
    }

    #[cold]
    fn look_at_unread(&mut self, io: &mut Control, session: &mut Session) {
        io.count_orphans(session.token);
        let executes = matches!(session.stall, Stall::None | Stall::NextRound);
        // A replica is sent no replies, and its acknowledgements must be read.
        if !executes || session.is_closing() || session.record.has(flag::REPLICA) {
            return;
        }
        let soft_limit = self.core.soft_limit();
        let flush_at = soft_limit.min(FLUSH_BYTES);
        // At least half of the limit, below which a stalled session continues.
        let most = (soft_limit - flush_at).max(flush_at);
        if session.unread_replies(io.unsent(session.token)) > most {
            self.stall_for_output(io, session);
        }
    }

    pub(super) fn stall(&mut self, session: &mut Session, stall: Stall) {
        session.stall = stall;
        match stall {
            Stall::None | Stall::Output | Stall::Elsewhere | Stall::Synchronises => {}
            Stall::Frozen => hold(&mut self.frozen, session.token, &self.sessions),
            Stall::Waiting => self.core.shared.clients.set_blocked(&session.record, true),
            Stall::NextRound => self.again.push_back(session.token),
            Stall::Paused => {
                self.core.shared.clients.set_blocked(&session.record, true);
                hold(&mut self.paused, session.token, &self.sessions);
            }
        }
    }

    pub(super) fn unstall(&mut self, session: &mut Session) {
        if matches!(session.stall, Stall::Paused | Stall::Waiting) {
            self.core.shared.clients.set_blocked(&session.record, false);
        }
        session.stall = Stall::None;
    }

    #[inline]
    pub(super) fn note_batch(&mut self, session: &mut Session, began: u64) {
        let ran = std::mem::take(&mut self.core.ran);
        if ran > 0 {
            session.traffic.commands += ran;
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
        let is_kept = !session.unlogged.is_empty() || session.asked.replicas().is_some();
        if (is_logged || is_kept) && self.keep_replies(session) {
            return;
        }
        if self.replies.is_empty() {
            return;
        }
        session.traffic.bytes_out += self.replies.len() as u64;
        let output = io.output(session.token);
        if let Some(stream) = &mut session.tls {
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

    /// After a session has had its turn: replies go out, figures are published, it may be closed.
    pub(super) fn after_turn(&mut self, io: &mut Control, session: &mut Session) {
        let token = session.token;
        // What the kernel has not taken by now; the replies of this turn it has not been offered.
        let mut unsent = io.unsent(token);
        self.flush(io, session);
        let mut queued = io.unsent(token);
        self.stall_if_unread(io, session, queued);
        if session.is_closing() {
            if !session.record.has(flag::CLOSE_ASAP) {
                close_flushed(io, session);
                queued = io.unsent(token);
            } else if !self.core.shared.shutdown.is_asked() {
                // Behind SHUTDOWN it ends with the process, when nobody listens any more.
                io.close(token, Close::Now);
            }
        } else if session.stall != Stall::None {
            if listens_for_the_end(session) {
                io.resume_reading(token);
            } else {
                io.pause_reading(token);
            }
            unsent = queued;
            let gone = session.finished || io.has_hung_up(token);
            if gone && session.stall.ends_with_the_client() {
                // The client left while its requests waited for another reason, or ended its stream
                // behind them.
                io.close(token, Close::Now);
            }
        } else if self.exceeds_query_limit(session) {
            let figures = &self.core.shared.observe.figures;
            figures.query_limit_disconnections.fetch_add(1, Ordering::Relaxed);
            io.close(token, Close::Now);
        }
        let waiting = queued + session.unlogged.len();
        if self.core.exceeds_output_limit(session, waiting as u64) {
            // As in Redis, what was too much is not sent, nor is anybody else evicted for it.
            session.unlogged.clear();
            io.output(token).clear();
            io.close(token, Close::Now);
            unsent = 0;
        } else if waiting >= self.core.output_watch_bytes {
            // Output of this size is counted even before it is offered to the kernel.
            unsent = queued;
        }
        let memory = if unsent > 0 { io.output_memory(token) } else { 0 };
        self.publish((unsent, memory), session);
    }

    /// The timers look at a session: its input buffer is trimmed, and published again is how much
    /// of its output the kernel has not taken.
    pub fn look_at(&mut self, io: &mut Control, index: usize, now_ms: u64) {
        let Some(session) = self.sessions.get_mut(index).and_then(Option::as_deref_mut) else {
            return;
        };
        let token = session.token;
        session.input.trim(now_ms);
        let unsent = io.unsent(token);
        if unsent >= self.core.output_watch_bytes {
            io.count_orphans(token);
        }
        self.core.publish_output(unsent, session);
        self.core.weigh(io.output_memory(token), session);
        session.publish_traffic();
        let queued = unsent + session.unlogged.len();
        if self.core.exceeds_output_limit(session, queued as u64)
            || has_left_for_long(io, session, now_ms)
        {
            io.close(token, Close::Now);
        }
        if session.stall == Stall::Output && session.pushed > 0 && session.unlogged.is_empty() {
            // Messages that arrived in the meantime come after its replies.
            session.unread_replies(unsent);
            io.when_drained(token, self.core.soft_limit() / 2 + session.pushed);
        }
    }

    /// Publishes what CLIENT LIST and INFO show of a session.
    fn publish(&self, (unsent, memory): (usize, usize), session: &mut Session) {
        self.core.publish_output(unsent, session);
        self.core.weigh(memory, session);
        session.publish_traffic();
        let input = session.input.len();
        if input != session.published_input {
            session.published_input = input;
            let understood = session.decoder.understood().min(input) as u64;
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

/// Bytes of output that have not left: those that wait for the append-only file, and those that the
/// kernel has not taken.
fn queued(io: &Control, session: &Session) -> usize {
    io.unsent(session.token) + session.unlogged.len()
}

/// Whether a client has ended its stream and its replies have waited for replicas for
/// [`HELD_FOR_LEFT_MS`] since. Replies that wait for the disk need no such limit.
fn has_left_for_long(io: &Control, session: &mut Session, now_ms: u64) -> bool {
    let waits = !session.unlogged.is_empty() && session.asked.replicas().is_some();
    if !waits || !(session.finished || io.has_hung_up(session.token)) {
        session.left_ms = None;
        return false;
    }
    now_ms.saturating_sub(*session.left_ms.get_or_insert(now_ms)) >= HELD_FOR_LEFT_MS
}

/// Cuts a batch out of `data`. The time it takes is for [`Worker::note_parsing`],
/// after this or several.
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
    // Before authentication the next request's limits depend on this one.
    let max = if authenticated { REQUESTS_MAX } else { 1 };
    let look = Look {
        table: shared.table,
        hasher: shared.keyspace.hasher(),
        database: shared.keyspace.database(session.db),
        participant: Some(participant),
    };
    let (len, stop) = batch.fill(data, max, &mut session.decoder, &limits, &look);
    Cut { len, stop }
}

/// Whether a stalled session is read on all the same: the end of an encrypted stream is a message
/// like any other, which the kernel does not tell of.
fn listens_for_the_end(session: &Session) -> bool {
    session.tls.is_some()
        && session.stall.ends_with_the_client()
        && session.input.len() < LISTENING_INPUT_MAX
}

/// Adds a session to a list of those that wait. Sessions closed meanwhile left their tokens: at
/// most one for each that is open.
fn hold(list: &mut Vec<Token>, token: Token, sessions: &[Option<Box<Session>>]) {
    if list.len() > 2 * sessions.len() {
        list.retain(|token| {
            let session = sessions.get(token.index());
            session.and_then(Option::as_ref).is_some_and(|s| s.token == *token)
        });
    }
    list.push(token);
}

/// Sends bytes to a client outside of its turn, which tell of something that has happened by now.
pub fn append(core: &Core, io: &mut Control, session: &mut Session, bytes: &[u8]) {
    session.traffic.bytes_out += bytes.len() as u64;
    let shown = wait::shown_to_all(core);
    if wait::must_wait(core, session, shown) {
        return wait::keep(core, session, shown, |out| out.extend_from_slice(bytes));
    }
    let output = io.output(session.token);
    match &mut session.tls {
        Some(stream) => stream.send(bytes, output),
        None => output.extend_from_slice(bytes),
    }
    io.send(session.token);
}

/// Closes a connection when its client has taken what is queued for it.
pub(super) fn close_flushed(io: &mut Control, session: &mut Session) {
    if Worker::closes_later(io, session) {
        return;
    }
    if let Some(stream) = &mut session.tls {
        stream.close(io.output(session.token));
        io.send(session.token);
    }
    io.close(session.token, Close::Flush { linger: LINGER });
}
