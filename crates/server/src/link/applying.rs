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
//! A transaction is begun when all of it has arrived, so that it is in memory once. The append-only file gets
//! only executed commands, in the one form that its readers accept; the stream is relayed byte for byte.

use super::outside::Instant;
use super::transaction::{
    Search, begins_transaction, encoded, fails_in_transaction, not_executed, selects,
    selects_missing,
};
use crate::loading::stand_in;
use brisk_engine::command::InMulti;
use brisk_engine::{Args, ReplyBuffer};
use brisk_node::clients::flag;
use brisk_node::core::Core;
use brisk_node::core::session::{Session, Stall};
use brisk_node::core::shared::Shared;
use brisk_node::replication::incoming::News;
use brisk_node::run::batch::{Batch, Look, REQUESTS_MAX, Request, Stop};
use brisk_node::run::dispatch::{self, Flow};
use brisk_node::run::{release, repeated};
use brisk_reactor::PeerAddr;
use brisk_resp::{Limits, request};
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
    /// All requests after the first `sealed` bytes were in the form of the append-only file.
    is_encoded: bool,
    search: Search,
    /// The stream is faulty, or its connection is closed: the rest of it is dropped.
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
    fn until_over(stall: Stall) -> Progress {
        if stall == Stall::NextRound { Progress::More } else { Progress::Later }
    }

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
            is_encoded: true,
            search: Search::default(),
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
                self.session.select_missing(number_of_db);
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

    /// Ends the session of a connection: drops its unfinished transaction, and releases all that its commands
    /// have registered.
    fn end_session(&mut self, core: &mut Core) {
        release::release(core, &mut self.session);
        self.session = new_session(core);
        (self.is_encoded, self.search) = (true, Search::default());
    }

    /// Executes a batch; `None` if there is no whole command.
    fn execute_some(&mut self, core: &mut Core, participant: &Participant) -> Option<Progress> {
        if self.search.is_on() && !self.find_end(core) {
            return None;
        }
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
        let goes_on = self.at != begin || self.input.is_empty() || self.search.is_on();
        stopped.or(goes_on.then_some(Progress::More))
    }

    /// Whether all of the next transaction has arrived.
    fn find_end(&mut self, core: &Core) -> bool {
        // The transaction is now at the start of the input.
        self.input.drain(..self.sealed);
        (self.at, self.sealed) = (0, 0);
        self.search.go_on(&mut self.input, &limits_of_stream(core), core.shared)
    }

    /// Executes what a batch holds of the input; what to do next if that was not all of it.
    fn execute_batch(&mut self, core: &mut Core, participant: &Participant) -> Option<Progress> {
        let Applier { session, batch, replies, number, input, at, sealed, .. } = self;
        let (is_encoded, search, is_broken) =
            (&mut self.is_encoded, &mut self.search, &mut self.is_broken);
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
        let limits = limits_of_stream(core);
        let (len, stop) = batch.fill(data, REQUESTS_MAX, &mut session.decoder, &limits, &look);
        for in_batch in 0..batch.len() {
            let request = *batch.request(in_batch);
            shared.quiesce.checkpoint(core.id);
            if primary.stream.number() != *number {
                // There is another primary, or none.
                return Some(Progress::More);
            }
            let was_in_transaction = session.in_transaction();
            if !was_in_transaction && request.row.is_some_and(begins_transaction) {
                let ends = (in_batch + 1..batch.len()).any(|at| executes(batch.request(at)));
                if !(search.take_found() || ends) {
                    // The transaction is begun when all of it has arrived.
                    search.begin();
                    session.decoder.reset();
                    return None;
                }
            }
            let end = begin + request.end;
            let part = &input[*sealed..end];
            let has_file = shared.aof.is_on();
            // Requests of a transaction that were not checked must be rewritten.
            *is_encoded &= has_file
                && session.lacks_db.is_none()
                && !(was_in_transaction && request.row.is_some_and(fails_in_transaction))
                && is_for_file(shared, &request, &batch.args(data, &request), &input[*at..end]);
            let may_be_whole = !was_in_transaction || executes(&request);
            let rewritten = (has_file && may_be_whole && !*is_encoded).then(|| {
                let is_left_out = not_executed(shared, session.lacks_db.is_some());
                encoded(part, &limits, is_left_out)
            });
            if may_be_whole {
                core.env.aftermath.borrow_mut().begin_relay(part, rewritten.clone());
            }
            let flow = run(core, session, (batch, &request, data), replies);
            match flow {
                Flow::Later(stall) => {
                    core.env.aftermath.borrow_mut().end_relay(journal, None);
                    // It may stand within a request that follows.
                    session.decoder.reset();
                    return Some(Progress::until_over(stall));
                }
                Flow::Elsewhere => stand_in::end_script(core, session),
                _ => {}
            }
            *at = end;
            // Commands that were not executed are part of the stream, but not of the file.
            let has_run = !session.ran_nothing && was_in_transaction == executes(&request);
            let instead = if has_run { rewritten.as_deref() } else { Some(&[][..]) };
            let is_done = !session.in_transaction();
            let done = is_done.then_some((part, instead));
            core.env.aftermath.borrow_mut().end_relay(journal, done);
            if is_done {
                (*sealed, *is_encoded) = (end, true);
                primary.set_stream_db(session.selected());
            }
        }
        // Lines without a word are nothing to execute, but bytes of the stream. The file must not have them.
        *is_encoded &= *at == begin + len;
        *at = begin + len;
        if let Stop::Broken(error) = stop {
            shared.log.warning(format_args!("Protocol error from the primary: {error}"));
            primary.disconnect(primary.generation());
            // Nobody knows where the next command begins: the stream goes on by another connection.
            input.clear();
            *search = Search::default();
            (*at, *sealed, *is_broken) = (0, 0, true);
        }
        None
    }
}

/// The primary has accepted these requests, so this server's limits for clients do not apply.
fn limits_of_stream(core: &Core) -> Limits {
    Limits { bulk_bytes_max: u64::MAX, authenticated: true, ..core.limits }
}

fn executes(request: &Request) -> bool {
    request.row.is_some_and(|row| row.spec.in_multi == InMulti::Executes)
}

/// Whether the append-only file may have a request as it was sent.
fn is_for_file(shared: &Shared, request: &Request, args: &Args<'_>, sent: &[u8]) -> bool {
    request::is_encoded(sent, args.words())
        && !(request.row.is_some_and(selects)
            && selects_missing(shared, args.words().nth(1).unwrap_or_default()))
}

/// Executes a request, unless it is for a database that this server does not have.
fn run(
    core: &mut Core,
    session: &mut Session,
    (batch, request, data): (&Batch, &Request, &[u8]),
    replies: &mut ReplyBuffer,
) -> Flow {
    session.ran_nothing = false;
    let is_skipped = !session.in_transaction()
        && request.row.is_some_and(|row| repeated::lacks_its_database(session, row));
    if is_skipped {
        session.ran_nothing = true;
        repeated::note_skipped(core);
        return Flow::Next;
    }
    let flow = dispatch::dispatch(core, session, batch, request, data, replies);
    replies.clear();
    flow
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
