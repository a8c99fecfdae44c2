//! Staging: small requests of many connections executed together.
//!
//! A connection that does not pipeline gives one request a round, too little to look ahead. But a
//! busy round brings requests of many connections. They are put aside as they are received, and
//! when [`CONNECTIONS_MAX`] are there, or the round ends, they go through the steps of a batch
//! together: all are cut out, all buckets are asked for, all entries, then all are executed. The
//! replies leave at the end of the round.
//!
//! Only requests that are executed at once anyway are staged: the session is not stalled, holds no
//! other input, needs no password. Order within a connection is kept, since whatever else happens
//! to a connection executes what is staged first.

use super::Worker;
use super::turn::{Cut, cut};
use brisk_node::core::session::Stall;
use brisk_node::run::batch::Batch;
use brisk_node::run::gate;
use brisk_reactor::{Control, Token};
use std::ops::Range;

/// Connections whose requests are executed together; more would push each other out of the cache.
const CONNECTIONS_MAX: usize = 16;
/// Received bytes that are worth copying aside; more is a pipeline, which looks ahead by itself.
const BYTES_MAX: usize = 256;

/// Requests put aside.
#[derive(Default)]
pub(super) struct Staged {
    connections: Vec<(Token, Range<usize>)>,
    bytes: Vec<u8>,
    /// Boxed, since each changes places with the worker's twice for each request.
    #[expect(clippy::vec_box, reason = "they are swapped on the hot path")]
    batches: Vec<Box<Batch>>,
    /// One for each connection while they are executed.
    cuts: Vec<Option<Cut>>,
    /// Between a wait and the end of its round: then the end of the round executes what is put
    /// aside. At other times nobody would before the next wait is over.
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
    /// Puts received bytes aside. False if they must be executed now.
    pub(super) fn stage(&mut self, token: Token, bytes: &[u8]) -> bool {
        if !self.staged.open || bytes.len() > BYTES_MAX || self.staged.holds(token) {
            return false;
        }
        let core = &self.core;
        let Some(session) = self.sessions.get(token.index()).and_then(Option::as_ref) else {
            return false;
        };
        let ready = session.token == token
            && session.stall == Stall::None
            && session.input.is_empty()
            && !session.is_closing()
            && session.tls.is_none()
            && !gate::must_authenticate(core, session);
        if ready {
            let begin = self.staged.bytes.len();
            self.staged.bytes.extend_from_slice(bytes);
            self.staged.connections.push((token, begin..self.staged.bytes.len()));
        }
        ready
    }

    /// Executes what was put aside.
    pub(super) fn run_staged(&mut self, io: &mut Control) {
        if self.staged.connections.is_empty() {
            return;
        }
        self.begin_turn();
        let mut connections = std::mem::take(&mut self.staged.connections);
        let mut bytes = std::mem::take(&mut self.staged.bytes);
        if let [(token, _)] = connections[..] {
            if let Some(mut session) = self.take(token) {
                self.take_input(io, &mut session, &bytes);
                self.after_turn(io, &mut session);
                self.put(session);
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

    /// The steps of a batch for all of them, one step after the other.
    fn run_together(
        &mut self,
        io: &mut Control,
        connections: &mut Vec<(Token, Range<usize>)>,
        bytes: &[u8],
    ) {
        let mut cuts = std::mem::take(&mut self.staged.cuts);
        let mut batches = std::mem::take(&mut self.staged.batches);
        batches.resize_with(connections.len().max(batches.len()), Box::default);
        for ((token, range), batch) in connections.iter().zip(&mut batches) {
            let session = self.sessions.get_mut(token.index()).and_then(Option::as_deref_mut);
            let cut = session.filter(|session| session.token == *token).map(|session| {
                session.traffic.bytes_in += range.len() as u64;
                cut(&self.core, &self.participant, batch, session, &bytes[range.clone()])
            });
            cuts.push(cut);
        }
        self.look_ahead(connections, &batches);
        self.note_parsing();
        let staged = connections.drain(..).zip(&mut batches).zip(cuts.drain(..));
        for (((token, range), batch), cut) in staged {
            let (Some(cut), Some(mut session)) = (cut, self.take(token)) else { continue };
            let data = &bytes[range];
            std::mem::swap(&mut self.batch, batch);
            let used = self.execute_from(io, &mut session, data, cut);
            std::mem::swap(&mut self.batch, batch);
            if used < data.len() {
                session.input.keep(&data[used..]);
            }
            self.after_turn(io, &mut session);
            self.put(session);
        }
        (self.staged.batches, self.staged.cuts) = (batches, cuts);
    }

    fn look_ahead(&self, connections: &[(Token, Range<usize>)], batches: &[Box<Batch>]) {
        let keyspace = &self.core.shared.keyspace;
        let databases = || {
            connections.iter().zip(batches).filter_map(|((token, _), batch)| {
                let session = self.sessions.get(token.index())?.as_ref()?;
                Some((keyspace.database(session.db), batch))
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
