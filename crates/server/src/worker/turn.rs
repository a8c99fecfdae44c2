//! A session's turn. Its input is parsed in batches and executed as far as the session may proceed, and `sending`
//! passes the replies to its connection.
//!
//! A session that must not proceed is stalled (see [`Stall`]), and its socket is not read until it may proceed. For
//! fairness, a session that has taken longer than [`TURN_NS_MAX`] waits for the next round, and turns are shortened in
//! a long round.

use super::Worker;
use super::sending::FLUSH_BYTES;
use brisk_engine::command::Flags;
use brisk_engine::table::Row;
use brisk_node::clients::flag;
use brisk_node::core::Core;
use brisk_node::core::session::{Session, Stall};
use brisk_node::pubsub::publish;
use brisk_node::run::batch::{Batch, BatchEnd, KeyLookup, REQUESTS_MAX};
use brisk_node::run::dispatch;
use brisk_node::run::dispatch::Flow;
use brisk_node::run::gate;
use brisk_node::tracking::session;
use brisk_reactor::Control;
use brisk_structures::reclaim::Participant;
use std::sync::atomic::Ordering;

/// How long one session may execute before other sessions get their turn.
const TURN_NS_MAX: u64 = 2_000_000;
/// The limit in a long round. Otherwise, each of thousands of busy pipelines would wait for the long turns of all
/// others.
const SHORT_TURN_NS_MAX: u64 = 50_000;
/// Accumulated input of at least this size is checked against the memory limit before any of its requests is executed.
const WEIGHED_INPUT_MIN: usize = 32 * 1024;
/// A batch that was filled: its number of bytes, and why it ends.
pub(super) struct FilledBatch {
    pub(super) len: usize,
    pub(super) end: BatchEnd,
}

impl Worker {
    /// Executes requests that have arrived, and keeps requests that cannot be executed yet.
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
                let filled = self.fill_batch(session, &bytes);
                let is_weighed =
                    self.core.limits.bounds_clients() && bytes.len() >= WEIGHED_INPUT_MIN;
                if is_weighed && !self.batch.is_empty() {
                    let output = io.output_memory(session.token);
                    self.core.weigh_before_execution(output, &bytes, session);
                }
                let used = self.execute_from(io, session, &bytes, filled);
                session.connection.input_mut().put_back(bytes, used);
            }
        }
    }

    /// True if a client has sent more unexecuted input than its limit allows.
    pub(super) fn exceeds_query_limit(&self, session: &Session) -> bool {
        session.unexecuted_bytes() > self.core.config.clients.client_query_buffer_limit
    }

    /// Executes the pending input of the session.
    pub(super) fn execute_input(&mut self, io: &mut Control, session: &mut Session) {
        if session.connection.input().is_empty() {
            return;
        }
        let bytes = session.connection.input_mut().take();
        let used = self.execute(io, session, &bytes);
        session.connection.input_mut().put_back(bytes, used);
    }

    /// Executes the complete requests at the beginning of `data`, as far as the session may proceed. Returns the number
    /// of bytes of the executed requests.
    pub(super) fn execute(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        data: &[u8],
    ) -> usize {
        let filled = self.fill_batch(session, data);
        self.execute_from(io, session, data, filled)
    }

    /// Fills a batch with requests from `data`.
    fn fill_batch(&mut self, session: &mut Session, data: &[u8]) -> FilledBatch {
        let filled = fill_batch(&self.core, &self.participant, &mut self.batch, session, data);
        self.note_parsing();
        filled
    }

    /// Records the time since the last measurement as time spent filling batches.
    pub(super) fn note_parsing(&mut self) {
        let ns = self.core.accounting.charge(self.core.clock);
        self.core.stats().parse_ns.add(ns);
    }

    /// Like [`Worker::execute`], with the first batch already filled.
    pub(super) fn execute_from(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        data: &[u8],
        filled: FilledBatch,
    ) -> usize {
        session::act_for(&self.core, session);
        let used = self.execute_batches(io, session, data, filled);
        session::clear_acting_session(&self.core);
        // The remaining replies are small.
        self.core.memory.end_reply();
        used
    }

    fn execute_batches(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        data: &[u8],
        mut filled: FilledBatch,
    ) -> usize {
        let begin = self.core.accounting.last_ticks();
        session.connection.input_mut().set_missing(0);
        let mut at = 0;
        loop {
            let before = self.core.accounting.last_ticks();
            let stopped = self.run_batch(io, session, &data[at..]);
            self.note_batch(session, before);
            if let Some(rest) = stopped {
                session.connection.decoder_mut().reset();
                return at + rest;
            }
            at += filled.len;
            match filled.end {
                BatchEnd::Full => {}
                BatchEnd::NeedMore(missing) => {
                    session.connection.input_mut().set_missing(missing);
                    return at;
                }
                BatchEnd::Broken(error) => {
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
            let turn = self.core.accounting.last_ticks().wrapping_sub(begin);
            if self.core.clock.ns(turn) > self.turn_ns_max() {
                self.stall(session, Stall::NextRound);
                return at;
            }
            filled = self.fill_batch(session, &data[at..]);
        }
    }

    /// Prepares for executing sessions: updates settings and the clock, and forgets earlier prefetches.
    pub(super) fn begin_turn(&mut self) {
        self.core.refresh_config();
        self.core.read_clocks();
        self.participant.announce_boundary();
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
        // A lower bound of the size at which replies are flushed. The exact size depends on the output of all clients.
        let mut flush_at = self.core.limits.output_watch_bytes().min(FLUSH_BYTES);
        if self.core.shared.keyspace.tracking().key_count() > 0 {
            self.prefetch_tracked(session);
        }
        // The first request whose elements have not been prefetched.
        let mut prefetched = 0;
        for at in 0..self.batch.len() {
            let request = *self.batch.request(at);
            if at >= prefetched {
                let keyspace = &self.core.shared.keyspace;
                prefetched = self.batch.prefetch_elements(at, data, keyspace, session.db());
            }
            self.core.shared.quiesce.checkpoint(self.core.id);
            if session.has_pending_state()
                && let Some(stop) =
                    self.handle_pending_state(io, session, request.start, data.len())
            {
                return Some(stop);
            }
            if session.push.gets_messages() && publish::has_messages(&self.core) {
                // Messages that arrived before a command are sent before its reply, and also before the effect of
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
                self.deliver_after_reply(io, session, flow);
            }
            if session.push.tracker().is_some_and(|tracker| tracker.is_caching()) {
                self.end_caching(session, request.row, flow);
            }
            match flow {
                Flow::InvalidationsFirst => {
                    debug_assert!(false, "a second time before the same command")
                }
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

    /// Handles special states of a session before a request that begins at `start`. If the session must stop, returns
    /// the offset, up to `len`, at which it stops.
    #[cold]
    fn handle_pending_state(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        start: usize,
        len: usize,
    ) -> Option<usize> {
        // After QUIT or a CLIENT KILL by any client, nothing more is executed.
        if session.is_closing() {
            return Some(len);
        }
        if session.is_in_full_sync() {
            self.stall(session, Stall::FullSync);
            return Some(start);
        }
        if session.record.has(flag::REPLICA) {
            // This command has no reply, but the reply after which the stream follows may be in the buffer.
            self.flush(io, session);
            if session.is_closing() {
                return Some(len);
            }
        }
        session.renew_user();
        None
    }

    /// Prefetches the tracking table's entries for the keys of the batch, which are needed to remember the keys or send
    /// invalidations.
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

    /// Ends CLIENT CACHING, which applies only to the next command or transaction after the CLIENT command itself.
    #[cold]
    fn end_caching(&self, session: &mut Session, row: Option<&Row>, flow: Flow) {
        let keeps = row.is_some_and(|row| row.has(Flags::KEEPS_CACHING));
        if let Some(tracker) = session.push.tracker_mut()
            && !(keeps || session.transaction.is_open() || matches!(flow, Flow::Later(_)))
        {
            tracker.set_caching(false);
            session::remember_for(&self.core, session);
        }
    }

    /// Delivers the messages that a command caused. They follow its reply.
    #[cold]
    fn deliver_after_reply(&mut self, io: &mut Control, session: &mut Session, flow: Flow) {
        if flow == Flow::Elsewhere {
            // The reply has not been created yet.
            session.set_stall(Stall::Elsewhere);
        }
        self.deliver_messages(io, Some(session));
    }

    #[inline]
    pub(super) fn note_batch(&mut self, session: &mut Session, began: u64) {
        let ran = self.core.accounting.take_ran();
        if ran > 0 {
            session.accounting.count_commands(ran);
            session.record.last_command.store(self.core.accounting.last_row(), Ordering::Relaxed);
        }
        let clock = self.core.clock;
        let stats = self.core.stats();
        stats.execute_ns.add(clock.ns(self.core.accounting.last_ticks().wrapping_sub(began)));
        stats.batches.add(1);
        stats.batched_requests.add(self.batch.len() as u64);
        stats.commands_processed.add(ran);
        stats.batch_max.raise(self.batch.len() as u64);
        self.core.free_garbage();
        self.batch.shrink();
    }
}

/// Fills a batch with requests from `data`. After one or several calls, [`Worker::note_parsing`] records the time.
#[inline]
pub(super) fn fill_batch(
    core: &Core,
    participant: &Participant,
    batch: &mut Batch,
    session: &mut Session,
    data: &[u8],
) -> FilledBatch {
    let shared = core.shared;
    let authenticated = !gate::must_authenticate(core, session);
    let limits = core.limits.requests(authenticated);
    // Before authentication, the next request's limits depend on this one.
    let max = if authenticated { REQUESTS_MAX } else { 1 };
    let look = KeyLookup {
        table: shared.table,
        hasher: shared.keyspace.hasher(),
        database: shared.keyspace.database(session.db()),
        participant: Some(participant),
    };
    let (len, end) = batch.fill(data, max, session.connection.decoder_mut(), &limits, &look);
    FilledBatch { len, end }
}
