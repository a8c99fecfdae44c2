//! One request: found, checked, run, counted.

use crate::clients::ClientRecord;
use crate::core::Core;
use crate::core::call::{Call, ECHO_BYTES_MAX};
use crate::core::session::{Session, Stall};
use crate::core::shared::armed;
use crate::run::batch::{Batch, Request};
use crate::run::gate::{self, Asked, Verdict};
use brisk_engine::args::PreparedKey;
use brisk_engine::command::{Flags, Scope};
use brisk_engine::ctx::Blocking;
use brisk_engine::effect::{Armed, propagate_beside};
use brisk_engine::exec::{self, Invocation};
use brisk_engine::keyspace::Client;
use brisk_engine::table::{Row, Run};
use brisk_engine::{Args, CommandError, DbIndex, Outcome, Reply, ReplyBuffer, Result};
use brisk_structures::entry::KEY_LEN_MAX;
use std::sync::atomic::Ordering;

/// What becomes of the connection's pipeline after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Next,
    /// It was run and waits inside its command.
    Waiting,
    /// It was run, and another thread computes the answer.
    Elsewhere,
    /// The request was not run; run it again when this is over.
    Later(Stall),
    /// It was not run: by making room for it, keys went that the session is to hear of before.
    Told,
}

impl Core {
    /// Runs one request of the batch; its reply goes to `replies`.
    #[inline]
    pub fn dispatch(
        &mut self,
        session: &mut Session,
        batch: &Batch,
        request: &Request,
        data: &[u8],
        replies: &mut ReplyBuffer,
    ) -> Flow {
        let shared = self.shared;
        let mut args = batch.args(data, request, shared.keyspace.hasher());
        let Some(row) = request.row else {
            if is_foreign_protocol(args.word(0)) {
                return self.refuse_foreign_protocol(session);
            }
            let error = unknown_command(&args);
            return self.reject(session, None, error, &args, replies);
        };
        let wrong = misused(row, &args).or_else(|| self.overlong(batch.keys(request), &args));
        if let Some(error) = wrong {
            return self.reject(session, Some(row), error, &args, replies);
        }
        let armed = shared.armed.load(Ordering::Relaxed);
        if gate::is_armed(armed, session, row) {
            let asked = self.asked(session, row, batch.keys(request), &args);
            match gate::ask(self, session, row, &asked) {
                Verdict::Pass => {}
                Verdict::Refuse(error) => {
                    return self.reject(session, Some(row), error, &args, replies);
                }
                Verdict::Wait(stall) => return Flow::Later(stall),
            }
            if session.tracker.is_some() && self.must_tell_before() {
                return Flow::Told;
            }
            if session.in_transaction() && row.spec.in_multi.is_queued() {
                return self.queue(session, row, &asked, replies);
            }
            self.limit_lookups(session, row, &args);
        }
        if row.parent.is_some() {
            args.skip_subcommand();
        }
        let mark = replies.mark();
        let result = self.run(session, row, batch.keys(request), &mut args, replies);
        let mut pushed = false;
        let (failed, waits) = match result {
            Ok(Outcome::Elsewhere) => {
                if armed & armed::MONITOR != 0 && row.is_monitored() {
                    self.tell_monitors(session, row, &args);
                }
                self.leave_long(session, row);
                return Flow::Elsewhere;
            }
            Ok(outcome) => {
                pushed = outcome == Outcome::Pushed;
                (false, outcome == Outcome::Waiting)
            }
            Err(error) => {
                self.forget_limits();
                replies.truncate(mark);
                if let Some(stall) = self.postponed(&error) {
                    return Flow::Later(stall);
                }
                self.write_error(session, &error, replies);
                (true, false)
            }
        };
        if waits {
            self.note_wait(session, row);
        } else {
            self.account(session, row, failed, &args);
        }
        if armed & armed::MONITOR != 0 && row.is_monitored() {
            self.tell_monitors(session, row, &args);
        }
        if self.env.has_ready() {
            self.serve_waiters();
        }
        if !session.wants_reply() && !pushed {
            replies.truncate(mark);
        }
        if waits {
            return Flow::Waiting;
        }
        session.after_command();
        Flow::Next
    }

    /// The command has begun to wait; it is counted when the wait is over.
    #[cold]
    fn note_wait(&mut self, session: &mut Session, row: &Row) {
        let ticks = self.clock.ticks();
        let ns = self.clock.ns(ticks.wrapping_sub(self.last_ticks));
        self.last_ticks = ticks;
        self.note_last(session, row);
        session.waiter = self.env.take_waiter();
        if let Some(waiter) = &session.waiter {
            waiter.spent_ns.store(ns, Ordering::Relaxed);
        }
    }

    /// The session's last command is one that is counted later.
    pub(crate) fn note_last(&mut self, session: &Session, row: &Row) {
        self.last_row = row.id as u32;
        session.record.last_command.store(self.last_row, Ordering::Relaxed);
    }

    /// Why a command is to be run again later, if that is what its error says.
    #[cold]
    fn postponed(&self, error: &CommandError) -> Option<Stall> {
        match error {
            CommandError::SlotFrozen => Some(Stall::Frozen),
            CommandError::SlotBusy => {
                self.stats().slot_conflicts.add(1);
                Some(Stall::NextRound)
            }
            _ => None,
        }
    }

    /// Whether invalidations wait for being sent before the present command, and were not before.
    #[cold]
    fn must_tell_before(&mut self) -> bool {
        let told = std::mem::take(&mut self.told);
        self.told = !told && self.env.armed.get().contains(Armed::TOLD);
        self.told
    }

    /// What the gate is told of a request.
    #[cold]
    fn asked<'a>(
        &mut self,
        session: &Session,
        row: &Row,
        keys: &'a [PreparedKey],
        args: &'a Args<'_>,
    ) -> Asked<'a> {
        let flags = session.flags_of(row);
        let flags = if row.has(Flags::RUNS_SCRIPT) {
            self.flags_of_script(flags, row, args)
        } else {
            flags
        };
        Asked { flags, keys, words: args }
    }

    /// A key that no entry can hold. With the usual limit of words there is none.
    #[inline]
    fn overlong(&self, keys: &[PreparedKey], args: &Args<'_>) -> Option<CommandError> {
        let most = self.config.clients.proto_max_bulk_len;
        let is_long = |key: &PreparedKey| args.word(key.index as usize).len() > KEY_LEN_MAX;
        (most > KEY_LEN_MAX as u64 && keys.iter().any(is_long))
            .then(|| CommandError::text(format!("ERR keys are limited to {KEY_LEN_MAX} bytes")))
    }

    /// Runs a command that may run.
    #[inline]
    fn run(
        &mut self,
        session: &mut Session,
        row: &'static Row,
        prepared: &[PreparedKey],
        args: &mut Args<'_>,
        replies: &mut ReplyBuffer,
    ) -> Result<Outcome> {
        let shared = self.shared;
        let reply = Reply::new(replies, session.protocol);
        let still = match row.spec.scope {
            Scope::Quiescent if gate::is_oversight(session, row) => {
                Some(self.stop_others_despite_scripts())
            }
            Scope::Quiescent => self.stop_others()?,
            _ => None,
        };
        let outcome = match row.run {
            Run::Data(run) => {
                let client = Client {
                    worker: self.id,
                    token: session.token.to_u64(),
                    id: session.id(),
                    protocol: session.protocol,
                };
                let call = Invocation {
                    spec: row.spec,
                    parent: row.parent,
                    run,
                    db: session.db,
                    blocking: Blocking::Client(client),
                };
                let done = exec::run(&shared.keyspace, &self.env, &call, prepared, args, reply)?;
                self.stats().changes.add(done.dirty);
                done.outcome
            }
            Run::Server(at) => {
                let run = self.shared.handlers[usize::from(at)];
                self.redacted.clear();
                if row.has(Flags::RUNS_SCRIPT) {
                    // What its commands tell of the client names it.
                    self.note_last(session, row);
                }
                let outcome = run(&mut Call { core: self, session, reply, row, prepared }, args)?;
                self.propagate_server(row, session.db, args);
                outcome
            }
        };
        drop(still);
        Ok(outcome)
    }

    /// Has a command repeated elsewhere that changes something beside the keys, such as FUNCTION LOAD.
    /// Everybody else stands still for those, so the order of their tickets is that of the changes.
    #[inline]
    pub(crate) fn propagate_server(&self, row: &Row, db: DbIndex, args: &Args<'_>) {
        if row.has(Flags::WRITE) {
            debug_assert_eq!(row.spec.scope, Scope::Quiescent);
            let words: Vec<&[u8]> = args.words().collect();
            propagate_beside(&self.shared.keyspace, &self.env, db, &words);
        }
    }

    /// Closes without an answer: what a browser was made to send must not be executed, nor tell it
    /// anything.
    #[cold]
    fn refuse_foreign_protocol(&self, session: &mut Session) -> Flow {
        self.shared.log.warning(format_args!(
            "Possible SECURITY ATTACK detected: {} sent an HTTP request. It may come from a web \
             page that was made to reach this server. The connection is closed.",
            session.record.addr
        ));
        session.record.set(crate::clients::flag::CLOSE_ASAP, true);
        Flow::Next
    }

    /// Answers with an error a request that is not run.
    #[cold]
    fn reject(
        &mut self,
        session: &mut Session,
        row: Option<&Row>,
        error: CommandError,
        args: &Args<'_>,
        replies: &mut ReplyBuffer,
    ) -> Flow {
        if let Some(row) = row
            && !names_no_subcommand(row, args)
        {
            self.stats().commands[row.id].rejected.add(1);
        }
        // It may have been refused when it was to be run again.
        session.script_shown = false;
        let error = self.refuse_in_transaction(session, row, &error, args).unwrap_or(error);
        let mark = replies.mark();
        self.write_error(session, &error, replies);
        if !session.wants_reply() {
            replies.truncate(mark);
        }
        session.after_command();
        Flow::Next
    }

    pub(crate) fn write_error(
        &self,
        session: &Session,
        error: &CommandError,
        replies: &mut ReplyBuffer,
    ) {
        if !matches!(error, CommandError::Reported(_)) {
            self.count_error(error);
        }
        Reply::new(replies, session.protocol).error(error);
    }

    pub(crate) fn count_error(&self, error: &CommandError) {
        self.stats().error_replies.add(1);
        self.shared.observe.errors.count(&error.to_string());
    }

    /// Statistics, slow log, latency monitor.
    #[inline]
    pub(crate) fn account(
        &mut self,
        session: &Session,
        row: &'static Row,
        failed: bool,
        words: &Args<'_>,
    ) {
        let ticks = self.clock.ticks();
        let ns = self.clock.ns(ticks.wrapping_sub(self.last_ticks));
        self.last_ticks = ticks;
        self.ran += 1;
        self.last_row = row.id as u32;
        self.count_call(&session.record, row, failed, ns, words);
    }

    /// The same for a command that took `ns` and ends outside of its session's batch.
    pub(crate) fn book(
        &mut self,
        client: &ClientRecord,
        row: &'static Row,
        failed: bool,
        ns: u64,
        words: &Args<'_>,
    ) {
        self.stats().commands_processed.add(1);
        client.commands_elsewhere.fetch_add(1, Ordering::Relaxed);
        self.count_call(client, row, failed, ns, words);
    }

    #[inline]
    fn count_call(
        &mut self,
        client: &ClientRecord,
        row: &'static Row,
        failed: bool,
        ns: u64,
        words: &Args<'_>,
    ) {
        let own = &self.stats().commands[row.id];
        own.calls.add(1);
        own.time_ns.add(ns);
        if failed {
            own.failed.add(1);
        }
        if self.latency_tracking {
            own.latency.record(ns);
        }
        if ns >= self.slow_ns {
            self.account_slow(client, row, ns, words);
        }
    }
}

/// Whether a word stands behind the name of a container that is none of its subcommands: like an
/// unknown command, that counts for no row.
#[inline]
fn names_no_subcommand(row: &Row, args: &Args<'_>) -> bool {
    row.is_container() && args.argc() > 1
}

/// Arity, and a subcommand that does not exist.
#[inline]
fn misused(row: &'static Row, args: &Args<'_>) -> Option<CommandError> {
    if names_no_subcommand(row, args) {
        let after = format!("'. Try {} HELP.", row.name.to_ascii_uppercase());
        let word = cut(args.word(1), ECHO_BYTES_MAX);
        return Some(CommandError::text_around("ERR unknown subcommand '", word, &after));
    }
    if row.spec.arity_admits(args.argc()) {
        None
    } else {
        Some(CommandError::Arity(row.full_name().into()))
    }
}

/// What errors repeat of a word: at most `most` bytes, and nothing from a NUL on.
fn cut(word: &[u8], most: usize) -> &[u8] {
    let word = &word[..word.len().min(most)];
    word.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cold]
fn unknown_command(args: &Args<'_>) -> CommandError {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(cut(args.word(0), ECHO_BYTES_MAX));
    text.extend_from_slice(b"', with args beginning with: ");
    let begin = text.len();
    for word in args.words().skip(1) {
        let written = text.len() - begin;
        if written >= ECHO_BYTES_MAX {
            break;
        }
        text.push(b'\'');
        text.extend_from_slice(cut(word, ECHO_BYTES_MAX - written));
        text.extend_from_slice(b"' ");
    }
    CommandError::bytes(text)
}

/// The words HTTP requests begin their lines with that never begin a command.
fn is_foreign_protocol(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:")
}
