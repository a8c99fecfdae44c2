//! Staging: executes small requests of many connections together.
//!
//! A connection that does not pipeline sends one request per round, so there are no other requests during which data
//! could be prefetched. But a busy round has requests from many connections. They are set aside as they are received.
//! When requests from [`CONNECTIONS_MAX`] connections have been set aside or the round ends, they pass through the
//! steps of a batch together: all requests are parsed, all buckets are prefetched, all entries are prefetched, and all
//! requests are executed. The replies are sent at the end of the round.
//!
//! Only requests that would otherwise be executed immediately are staged. Their session is not stalled, has no other
//! pending input, and is authenticated. Order within a connection is preserved, because every other event of a
//! connection executes its staged requests first.

use super::Worker;
use super::turn::{FilledBatch, fill_batch};
use brisk_node::core::session::Stall;
use brisk_node::run::batch::Batch;
use brisk_node::run::gate;
use brisk_reactor::{Control, Token};
use std::ops::Range;

/// Maximum number of connections whose requests are executed together. With more connections, prefetched data would be
/// evicted from the cache before it is used.
const CONNECTIONS_MAX: usize = 16;
/// Maximum number of bytes that are worth copying. A larger read is a pipeline, which is prefetched on its own.
const BYTES_MAX: usize = 256;

/// Requests that were set aside.
#[derive(Default)]
pub(super) struct Staged {
    connections: Vec<(Token, Range<usize>)>,
    bytes: Vec<u8>,
    /// Boxed, because each batch is swapped with the worker's batch twice per request.
    #[expect(clippy::vec_box, reason = "they are swapped on the hot path")]
    batches: Vec<Box<Batch>>,
    /// One filled batch for each connection, during execution.
    filled: Vec<Option<FilledBatch>>,
    /// True from the end of a wait for events to the end of the round, which executes the requests that were set aside.
    /// At other times, they would not be executed before the next wait is over.
    pub(super) open: bool,
}

impl Staged {
    pub(super) fn is_full(&self) -> bool {
        self.connections.len() >= CONNECTIONS_MAX
    }

    fn holds(&self, token: Token) -> bool {
        self.connections.iter().any(|(held, _)| *held == token)
    }
}

impl Worker {
    /// Sets received bytes aside. Returns false if they must be executed now.
    pub(super) fn stage(&mut self, token: Token, bytes: &[u8]) -> bool {
        if !self.staged.open || bytes.len() > BYTES_MAX || self.staged.holds(token) {
            return false;
        }
        let core = &self.core;
        let Some(session) = self.sessions.get(token) else { return false };
        let ready = session.stall() == Stall::None
            && session.connection.input().is_empty()
            && !session.is_closing()
            && !session.connection.is_encrypted()
            && !gate::must_authenticate(core, session);
        if ready {
            let begin = self.staged.bytes.len();
            self.staged.bytes.extend_from_slice(bytes);
            self.staged.connections.push((token, begin..self.staged.bytes.len()));
        }
        ready
    }

    /// Executes the requests that were set aside.
    pub(super) fn run_staged(&mut self, io: &mut Control) {
        if self.staged.connections.is_empty() {
            return;
        }
        self.begin_turn();
        let mut connections = std::mem::take(&mut self.staged.connections);
        let mut bytes = std::mem::take(&mut self.staged.bytes);
        if let [(token, _)] = connections[..] {
            if let Some(mut session) = self.sessions.take(token) {
                self.take_input(io, &mut session, &bytes);
                self.after_turn(io, &mut session);
                self.sessions.put(session);
            }
            connections.clear();
        } else {
            self.run_together(io, &mut connections, &bytes);
        }
        bytes.clear();
        (self.staged.connections, self.staged.bytes) = (connections, bytes);
        self.close_connections(io);
        self.end_of_turns(io);
    }

    /// Runs each step of a batch for all requests before the next step.
    fn run_together(
        &mut self,
        io: &mut Control,
        connections: &mut Vec<(Token, Range<usize>)>,
        bytes: &[u8],
    ) {
        let mut all_filled = std::mem::take(&mut self.staged.filled);
        let mut batches = std::mem::take(&mut self.staged.batches);
        batches.resize_with(connections.len().max(batches.len()), Box::default);
        for ((token, range), batch) in connections.iter().zip(&mut batches) {
            let filled = self.sessions.get_mut(*token).map(|session| {
                session.accounting.count_received(range.len());
                fill_batch(&self.core, &self.participant, batch, session, &bytes[range.clone()])
            });
            all_filled.push(filled);
        }
        self.look_ahead(connections, &batches);
        self.note_parsing();
        let staged = connections.drain(..).zip(&mut batches).zip(all_filled.drain(..));
        for (((token, range), batch), filled) in staged {
            let (Some(filled), Some(mut session)) = (filled, self.sessions.take(token)) else {
                continue;
            };
            let data = &bytes[range];
            std::mem::swap(&mut self.batch, batch);
            let used = self.execute_from(io, &mut session, data, filled);
            std::mem::swap(&mut self.batch, batch);
            if used < data.len() {
                session.connection.input_mut().keep(&data[used..]);
            }
            self.after_turn(io, &mut session);
            self.sessions.put(session);
        }
        (self.staged.batches, self.staged.filled) = (batches, all_filled);
    }

    fn look_ahead(&self, connections: &[(Token, Range<usize>)], batches: &[Box<Batch>]) {
        let keyspace = &self.core.shared.keyspace;
        let databases = || {
            connections.iter().zip(batches).filter_map(|((token, _), batch)| {
                let session = self.sessions.get(*token)?;
                Some((keyspace.database(session.db()), batch))
            })
        };
        for (database, batch) in databases() {
            batch.prefetch_buckets(database);
        }
        for (database, batch) in databases() {
            batch.prefetch_entries(database, &self.participant);
        }
    }
}
