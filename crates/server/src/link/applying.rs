//! The stream of the primary, executed by the first worker as the commands of a client that waits for no
//! reply.
//!
//! ```text
//!  parts ─► input ─ cut a batch ─ dispatch each ─┬─ a change: the bytes of its transaction go into the
//!             ▲                                  │  journal while its slots are held
//!             └─ what is not whole stays         └─ none: they go there behind it
//! ```
//!
//! A transaction is MULTI to EXEC: its bytes become part of this server's stream when EXEC has run, so the
//! place that this server has come to is never inside of one. A connection that breaks there goes on at MULTI.

use super::outside::Instant;
use crate::loading::stand_in;
use brisk_engine::ReplyBuffer;
use brisk_engine::command::InMulti;
use brisk_node::clients::flag;
use brisk_node::core::Core;
use brisk_node::core::session::{Session, Stall};
use brisk_node::replication::incoming::News;
use brisk_node::run::batch::{Batch, Look, REQUESTS_MAX, Stop};
use brisk_node::run::dispatch::{self, Flow};
use brisk_node::run::{release, repeated};
use brisk_reactor::PeerAddr;
use brisk_resp::Limits;
use brisk_structures::reclaim::Participant;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long the worker executes before it turns to its clients.
const SLICE: Duration = Duration::from_millis(1);
/// Until the next look at a command that has to wait for a while.
const WAIT: Duration = Duration::from_millis(1);
/// Memory for input that is kept when the input is empty.
const INPUT_KEPT_MAX: usize = 1 << 20;

/// The primary, as a client of this server.
pub struct Applier {
    session: Session,
    batch: Batch,
    replies: ReplyBuffer,
    /// Which stream it is.
    number: u64,
    /// What came, of which the first `at` bytes were executed or queued, and the first `sealed` are part
    /// of this server's stream.
    input: Vec<u8>,
    at: usize,
    sealed: usize,
    /// It is no stream of commands, or its connection has ended: the rest of it is dropped.
    is_broken: bool,
}

/// What is left to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    More,
    /// A command has to wait.
    Later,
    /// Nothing before something comes.
    Nothing,
}

impl Progress {
    /// How long the worker may sleep.
    pub fn wait(self) -> Duration {
        match self {
            Progress::More => Duration::ZERO,
            Progress::Later => WAIT,
            Progress::Nothing => Duration::MAX,
        }
    }
}

impl Applier {
    pub fn new(core: &Core) -> Applier {
        Applier {
            session: new_session(core),
            batch: Batch::default(),
            replies: ReplyBuffer::new(),
            number: u64::MAX,
            input: Vec::new(),
            at: 0,
            sealed: 0,
            is_broken: false,
        }
    }

    /// Executes what has come, for a while.
    pub fn go_on(&mut self, core: &mut Core, participant: &Participant) -> Progress {
        let until = Instant::now() + SLICE;
        let mut progress = Progress::More;
        while progress == Progress::More && Instant::now() < until {
            progress = self.step(core, participant);
        }
        progress
    }

    fn step(&mut self, core: &mut Core, participant: &Participant) -> Progress {
        let shared = core.shared;
        // Not before a look at the number: it may have ended.
        let is_present = self.number == shared.replication.primary.stream.number();
        if is_present
            && self.at < self.input.len()
            && let Some(progress) = self.execute_some(core, participant)
        {
            return progress;
        }
        match shared.replication.primary.stream.take(self.number) {
            News::Part(_) if self.is_broken => {}
            News::Part(part) if self.input.is_empty() => self.input = part,
            News::Part(part) => self.input.extend_from_slice(&part),
            News::Begins(number) => self.begin(core, number),
            News::Ends => {
                self.end_session(core);
                (self.at, self.sealed, self.is_broken) = (0, 0, true);
                self.input = Vec::new();
            }
            News::Nothing => return Progress::Nothing,
        }
        Progress::More
    }

    /// Another stream has begun: what is left of the last one is nothing any more.
    fn begin(&mut self, core: &mut Core, number: u64) {
        self.end_session(core);
        let number_of_db = core.shared.replication.primary.stream_db();
        match core.shared.keyspace.db(number_of_db) {
            Some(db) => self.session.select(db),
            None => {
                self.session.lacks_db = Some(number_of_db);
                core.shared.log.warning(format_args!(
                    "The primary's stream is about database {}, and this server has {} ('databases'): the \
                     commands that follow are skipped until another database is selected",
                    number_of_db.0,
                    core.shared.keyspace.database_count()
                ));
            }
        }
        (self.number, self.at, self.sealed, self.is_broken) = (number, 0, 0, false);
        self.input = Vec::new();
        // What was begun to be compared does not end any more.
        core.shared.replication.forget_observed();
    }

    /// What came by a connection ends with it: a transaction that was not finished, and all that its
    /// commands have registered.
    fn end_session(&mut self, core: &mut Core) {
        release::release(core, &mut self.session);
        self.session = new_session(core);
    }

    /// Executes a batch; `None` if there is no whole command.
    fn execute_some(&mut self, core: &mut Core, participant: &Participant) -> Option<Progress> {
        let begin = self.at;
        core.begin_applying();
        let stopped = self.execute_batch(core, participant);
        let ran = std::mem::take(&mut core.ran);
        core.stats().commands_processed.add(ran);
        if ran > 0 {
            let record = &self.session.record;
            record.commands.fetch_add(ran, Ordering::Relaxed);
            record.last_command.store(core.last_row, Ordering::Relaxed);
        }
        core.end_applying();
        core.free_garbage();
        participant.quiescent();
        if self.sealed == self.input.len() {
            self.input.clear();
            self.input.shrink_to(INPUT_KEPT_MAX);
            (self.at, self.sealed) = (0, 0);
        } else if self.sealed > INPUT_KEPT_MAX {
            self.input.drain(..self.sealed);
            (self.at, self.sealed) = (self.at - self.sealed, 0);
        }
        stopped.or((self.at != begin || self.input.is_empty()).then_some(Progress::More))
    }

    /// Executes what a batch holds of the input; what to do next if that was not all of it.
    fn execute_batch(&mut self, core: &mut Core, participant: &Participant) -> Option<Progress> {
        let Applier { session, batch, replies, number, input, at, sealed, is_broken } = self;
        let shared = core.shared;
        let (primary, journal) = (&shared.replication.primary, shared.keyspace.journal());
        let begin = *at;
        let data = &input[begin..];
        let look = Look {
            table: shared.table,
            hasher: shared.keyspace.hasher(),
            database: shared.keyspace.database(session.db),
            participant: Some(participant),
        };
        // What the primary has taken is no matter of this server's limits.
        let limits = Limits { bulk_bytes_max: u64::MAX, authenticated: true, ..core.limits };
        let (len, stop) = batch.fill(data, REQUESTS_MAX, &mut session.decoder, &limits, &look);
        for in_batch in 0..batch.len() {
            let request = *batch.request(in_batch);
            shared.quiesce.checkpoint(core.id);
            if primary.stream.number() != *number {
                // There is another primary, or none.
                return Some(Progress::More);
            }
            let executes = request.row.is_some_and(|row| row.spec.in_multi == InMulti::Executes);
            let end = begin + request.end;
            if !session.in_transaction() || executes {
                core.env.aftermath.borrow_mut().begin_relay(&input[*sealed..end]);
            }
            let is_skipped = !session.in_transaction()
                && request.row.is_some_and(|row| repeated::lacks_its_database(session, row));
            let flow = if is_skipped {
                repeated::note_skipped(core);
                Flow::Next
            } else {
                dispatch::dispatch(core, session, batch, &request, data, replies)
            };
            replies.clear();
            match flow {
                Flow::Later(stall) => {
                    core.env.aftermath.borrow_mut().end_relay(journal, false);
                    // It may stand within a request that follows.
                    session.decoder.reset();
                    return Some(match stall {
                        Stall::NextRound => Progress::More,
                        _ => Progress::Later,
                    });
                }
                Flow::Elsewhere => stand_in::end_script(core, session),
                _ => {}
            }
            *at = end;
            let is_done = !session.in_transaction();
            core.env.aftermath.borrow_mut().end_relay(journal, is_done);
            if is_done {
                *sealed = end;
                primary.set_stream_db(session.selected());
            }
        }
        // Lines without a word are nothing to execute, but bytes of the stream.
        *at = begin + len;
        if let Stop::Broken(error) = stop {
            shared.log.warning(format_args!("Protocol error from the primary: {error}"));
            primary.disconnect(primary.generation());
            // Nobody knows where the next command begins: the stream goes on by another connection.
            input.clear();
            (*at, *sealed, *is_broken) = (0, 0, true);
        }
        None
    }
}

fn new_session(core: &Core) -> Session {
    let settings = core.shared.config();
    let peer = settings.replication.replicaof.as_ref().and_then(|primary| {
        let ip = primary.host.to_string_lossy().parse::<IpAddr>().ok()?;
        Some(PeerAddr::Tcp(SocketAddr::new(ip, primary.port)))
    });
    let mut session = match core.shared.replication.primary.client() {
        Some(client) => stand_in::session_of(core, client),
        None => stand_in::session(core, peer.unwrap_or(PeerAddr::Unknown)),
    };
    session.record.set(flag::PRIMARY, true);
    session.is_primary = true;
    session
}
