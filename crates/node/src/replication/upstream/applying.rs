//! The first worker executes the stream of the primary as the commands of a client whose replies are not read.
//!
//! ```text
//!  parts ─► input ─ cut a batch ─ dispatch each ─┬─ a change: the bytes of its transaction go into the
//!             ▲                                  │  journal while its slots are held
//!             └─ incomplete requests stay        └─ no change: they go there afterwards
//! ```
//!
//! A transaction is MULTI to EXEC. Its bytes become part of this server's stream when EXEC has run, so this server's
//! offset is never inside a transaction. After a lost connection, the stream continues at MULTI. A transaction is
//! started only after all of it has arrived, so it is in memory only once. The append-only file gets only executed
//! commands, in the only form that its readers accept. The stream is relayed byte for byte.

use super::state::Upstream;
use super::transaction::{
    TransactionSearch, begins_transaction, encoded, fails_in_transaction, not_executed, selects,
    selects_missing,
};
use crate::clients::flag;
use crate::core::Core;
use crate::core::session::{Session, Stall};
use crate::core::shared::Shared;
use crate::replication::environment::Moment;
use crate::replication::upstream::received::StreamEvent;
use crate::run::batch::{Batch, BatchEnd, KeyLookup, REQUESTS_MAX, Request};
use crate::run::dispatch::{self, Flow};
use crate::run::trusted_session;
use crate::run::{release, repeated};
use brisk_engine::command::InMulti;
use brisk_engine::{Args, ReplyBuffer};
use brisk_reactor::PeerAddr;
use brisk_resp::request;
use brisk_structures::reclaim::Participant;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The worker executes the stream for this long, then serves its clients.
const SLICE: Duration = Duration::from_millis(1);
/// The delay before a command that has to wait is retried.
const WAIT: Duration = Duration::from_millis(1);
/// Maximum capacity that an empty input keeps, in bytes.
const INPUT_KEPT_MAX: usize = 1 << 20;

/// The primary as a client of this server.
pub struct Applier {
    upstream: Arc<Upstream>,
    session: Session,
    batch: Batch,
    replies: ReplyBuffer,
    /// The number of the stream.
    number: u64,
    /// Received bytes. The first `at` bytes have been executed or queued, and the first `sealed` bytes are part of this
    /// server's stream.
    input: Vec<u8>,
    at: usize,
    sealed: usize,
    /// True if all requests after the first `sealed` bytes were in the form of the append-only file.
    is_encoded: bool,
    search: TransactionSearch,
    /// True if the stream is invalid or its connection is closed. The rest of the stream is dropped.
    is_broken: bool,
}

/// The state of the stream after a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyProgress {
    More,
    /// A command has to wait and is retried later.
    Later,
    /// There is nothing to execute.
    Nothing,
}

impl ApplyProgress {
    fn until_over(stall: Stall) -> ApplyProgress {
        if stall == Stall::NextRound { ApplyProgress::More } else { ApplyProgress::Later }
    }

    /// The time for which the worker may sleep.
    pub fn wait(self) -> Duration {
        match self {
            ApplyProgress::More => Duration::ZERO,
            ApplyProgress::Later => WAIT,
            ApplyProgress::Nothing => Duration::MAX,
        }
    }
}

impl Applier {
    pub fn new(core: &Core, upstream: Arc<Upstream>) -> Applier {
        Applier {
            session: new_session(core, &upstream),
            upstream,
            batch: Batch::default(),
            replies: ReplyBuffer::new(),
            number: u64::MAX,
            input: Vec::new(),
            at: 0,
            sealed: 0,
            is_encoded: true,
            search: TransactionSearch::default(),
            is_broken: false,
        }
    }

    /// Executes received commands for a slice of time.
    pub fn execute(&mut self, core: &mut Core, participant: &Participant) -> ApplyProgress {
        let until = Moment::now() + SLICE;
        let mut progress = ApplyProgress::More;
        while progress == ApplyProgress::More && Moment::now() < until {
            progress = self.step(core, participant);
        }
        progress
    }

    fn step(&mut self, core: &mut Core, participant: &Participant) -> ApplyProgress {
        // The stream may have been replaced, so compare its number first.
        let is_present = self.number == self.upstream.stream.number();
        if is_present
            && self.at < self.input.len()
            && let Some(progress) = self.execute_some(core, participant)
        {
            return progress;
        }
        match self.upstream.stream.take(self.number) {
            StreamEvent::Part(_) if self.is_broken => {}
            StreamEvent::Part(part) if self.input.is_empty() => self.input = part,
            StreamEvent::Part(part) => self.input.extend_from_slice(&part),
            StreamEvent::Begins(number) => self.begin(core, number),
            StreamEvent::Ends => {
                self.end_session(core);
                (self.at, self.sealed, self.is_broken) = (0, 0, true);
                self.input = Vec::new();
            }
            StreamEvent::Nothing => return ApplyProgress::Nothing,
        }
        ApplyProgress::More
    }

    /// Begins another stream and drops the rest of the last one.
    fn begin(&mut self, core: &mut Core, number: u64) {
        self.end_session(core);
        let number_of_db = self.upstream.stream_db();
        match core.shared.keyspace.db(number_of_db) {
            Some(db) => self.session.select(db),
            None => {
                self.session.source.select_missing(number_of_db);
                core.shared.log.warning(format_args!(
                    "The primary's stream selects database {}, but this server has {} ('databases'): the \
                     following commands are skipped until another database is selected",
                    number_of_db.0,
                    core.shared.keyspace.database_count()
                ));
            }
        }
        (self.number, self.at, self.sealed, self.is_broken) = (number, 0, 0, false);
        self.input = Vec::new();
        // The comparison in progress, if any, will not be completed.
        core.shared.replication.forget_observed();
    }

    /// Ends the session of a connection. Its unfinished transaction and everything that its commands have
    /// registered are dropped.
    fn end_session(&mut self, core: &mut Core) {
        release::release(core, &mut self.session);
        self.session = new_session(core, &self.upstream);
        (self.is_encoded, self.search) = (true, TransactionSearch::default());
    }

    /// Executes a batch. Returns `None` if there is no complete command.
    fn execute_some(
        &mut self,
        core: &mut Core,
        participant: &Participant,
    ) -> Option<ApplyProgress> {
        if self.search.is_on() && !self.find_end(core) {
            return None;
        }
        let begin = self.at;
        core.begin_applying();
        let stopped = self.execute_batch(core, participant);
        let ran = core.accounting.take_ran();
        core.stats().commands_processed.add(ran);
        if ran > 0 {
            let record = &self.session.record;
            record.commands.fetch_add(ran, Ordering::Relaxed);
            record.last_command.store(core.accounting.last_row(), Ordering::Relaxed);
        }
        core.end_applying();
        core.free_garbage();
        participant.announce_boundary();
        if self.sealed == self.input.len() {
            self.input.clear();
            self.input.shrink_to(INPUT_KEPT_MAX);
            (self.at, self.sealed) = (0, 0);
        } else if self.sealed > INPUT_KEPT_MAX {
            self.input.drain(..self.sealed);
            (self.at, self.sealed) = (self.at - self.sealed, 0);
        }
        let goes_on = self.at != begin || self.input.is_empty() || self.search.is_on();
        stopped.or(goes_on.then_some(ApplyProgress::More))
    }

    /// Returns true if all of the next transaction has arrived.
    fn find_end(&mut self, core: &Core) -> bool {
        // The transaction is now at the start of the input.
        self.input.drain(..self.sealed);
        (self.at, self.sealed) = (0, 0);
        self.search.advance(&mut self.input, &core.limits.accepted_requests(), core.shared)
    }

    /// Executes the commands of a batch. Returns the next step unless the whole batch was executed.
    fn execute_batch(
        &mut self,
        core: &mut Core,
        participant: &Participant,
    ) -> Option<ApplyProgress> {
        let Applier { upstream, session, batch, replies, number, input, at, sealed, .. } = self;
        let (is_encoded, search, is_broken) =
            (&mut self.is_encoded, &mut self.search, &mut self.is_broken);
        let shared = core.shared;
        let journal = shared.keyspace.journal();
        let begin = *at;
        let data = &input[begin..];
        let look = KeyLookup {
            table: shared.table,
            hasher: shared.keyspace.hasher(),
            database: shared.keyspace.database(session.db()),
            participant: Some(participant),
        };
        let limits = core.limits.accepted_requests();
        let (len, stop) =
            batch.fill(data, REQUESTS_MAX, session.connection.decoder_mut(), &limits, &look);
        for in_batch in 0..batch.len() {
            let request = *batch.request(in_batch);
            shared.quiesce.checkpoint(core.id);
            if upstream.stream.number() != *number {
                // This server has another primary by now, or none.
                return Some(ApplyProgress::More);
            }
            let was_in_transaction = session.in_transaction();
            if !was_in_transaction && request.row.is_some_and(begins_transaction) {
                let ends = (in_batch + 1..batch.len()).any(|at| executes(batch.request(at)));
                if !(search.take_found() || ends) {
                    // Start the transaction only after all of it has arrived.
                    search.begin();
                    session.connection.decoder_mut().reset();
                    return None;
                }
            }
            let end = begin + request.end;
            let part = &input[*sealed..end];
            let has_file = shared.persistence.aof.is_on();
            // If requests of the transaction were not checked, its bytes must be rewritten for the file.
            *is_encoded &= has_file
                && !session.source.lacks_db()
                && !(was_in_transaction && request.row.is_some_and(fails_in_transaction))
                && is_for_file(shared, &request, &batch.args(data, &request), &input[*at..end]);
            let may_be_whole = !was_in_transaction || executes(&request);
            let rewritten = (has_file && may_be_whole && !*is_encoded).then(|| {
                let is_left_out = not_executed(shared, session.source.lacks_db());
                encoded(part, &limits, is_left_out)
            });
            if may_be_whole {
                core.env.aftermath.borrow_mut().begin_relay(part, rewritten.clone());
            }
            let flow = run(core, session, (batch, &request, data), replies);
            match flow {
                Flow::Later(stall) => {
                    core.env.aftermath.borrow_mut().end_relay(journal, None);
                    // The decoder may have read a part of a later request.
                    session.connection.decoder_mut().reset();
                    return Some(ApplyProgress::until_over(stall));
                }
                Flow::Elsewhere => trusted_session::finish_script(core, session),
                _ => {}
            }
            *at = end;
            // Commands that were not executed are part of the stream but not of the file.
            let has_run = !session.source.ran_nothing() && was_in_transaction == executes(&request);
            let instead = if has_run { rewritten.as_deref() } else { Some(&[][..]) };
            let is_done = !session.in_transaction();
            let done = is_done.then_some((part, instead));
            core.env.aftermath.borrow_mut().end_relay(journal, done);
            if is_done {
                (*sealed, *is_encoded) = (end, true);
                upstream.set_stream_db(session.selected());
            }
        }
        // Empty lines are part of the stream but contain no command. They must not be written to the file.
        *is_encoded &= *at == begin + len;
        *at = begin + len;
        if let BatchEnd::Broken(error) = stop {
            shared.log.warning(format_args!("Protocol error from the primary: {error}"));
            upstream.disconnect(upstream.generation());
            // The beginning of the next command is unknown, so the stream continues over another connection.
            input.clear();
            *search = TransactionSearch::default();
            (*at, *sealed, *is_broken) = (0, 0, true);
        }
        None
    }
}

fn executes(request: &Request) -> bool {
    request.row.is_some_and(|row| row.spec.in_multi == InMulti::Executes)
}

/// True if the append-only file may contain a request as it was sent.
fn is_for_file(shared: &Shared, request: &Request, args: &Args<'_>, sent: &[u8]) -> bool {
    request::is_encoded(sent, args.arguments())
        && !(request.row.is_some_and(selects)
            && selects_missing(shared, args.arguments().nth(1).unwrap_or_default()))
}

/// Executes a request, unless it uses a database that this server does not have.
fn run(
    core: &mut Core,
    session: &mut Session,
    (batch, request, data): (&Batch, &Request, &[u8]),
    replies: &mut ReplyBuffer,
) -> Flow {
    session.source.begin_command();
    let is_skipped = !session.in_transaction()
        && request.row.is_some_and(|row| repeated::lacks_its_database(session, row));
    if is_skipped {
        session.source.note_ran_nothing();
        repeated::note_skipped(core);
        return Flow::Next;
    }
    let flow = dispatch::dispatch(core, session, batch, request, data, replies);
    replies.clear();
    flow
}

fn new_session(core: &Core, upstream: &Upstream) -> Session {
    let settings = core.shared.config();
    let peer = settings.replication.replicaof.as_ref().and_then(|primary| {
        let ip = primary.host.to_string_lossy().parse::<IpAddr>().ok()?;
        Some(PeerAddr::Tcp(SocketAddr::new(ip, primary.port)))
    });
    let mut session = match upstream.client() {
        Some(client) => trusted_session::with_record(core, client),
        None => trusted_session::new(core, peer.unwrap_or(PeerAddr::Unknown)),
    };
    session.record.set(flag::PRIMARY, true);
    session.source.follow_primary();
    session
}
