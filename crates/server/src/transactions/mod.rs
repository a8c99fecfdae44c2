//! Transactions: what a session has queued since MULTI, and how EXEC runs it.
//!
//! Words are kept as they were sent, with the hashes of their keys. EXEC takes the slots of all
//! commands and of all watched keys at once, or stands everybody else still if it cannot know them
//! beforehand; see [`brisk_engine::unit`].

use crate::clients::flag;
use crate::core::Core;
use crate::core::call::Call;
use crate::core::session::Session;
use crate::core::shared::armed;
use crate::run::dispatch::Flow;
use crate::run::gate::Asked;
use brisk_engine::args::PreparedKey;
use brisk_engine::command::{Flags, InMulti, Scope};
use brisk_engine::ctx::Blocking;
use brisk_engine::exec::Invocation;
use brisk_engine::keyspace::{KeyHasher, Place};
use brisk_engine::table::{Row, Run};
use brisk_engine::unit::Unit;
use brisk_engine::{Args, CommandError, DbIndex, Keyspace, Outcome, Reply, ReplyBuffer, Result};
use brisk_resp::Spans;
use std::sync::atomic::Ordering;

/// Slots that a transaction locks, at most: one that needs more runs while all others stand still,
/// which takes less time than to find so many slots free at once.
const SLOTS_MAX: usize = 1024;

/// What a transaction that has ended keeps for the next one of its worker.
const COMMANDS_KEPT_MAX: usize = 128;
const WORDS_KEPT_MAX: usize = 1024;
const WORD_BYTES_KEPT_MAX: usize = 16 * 1024;

/// What a session has queued since MULTI. How much that may be is bounded by
/// `client-query-buffer-limit`, as for other input that is not executed yet.
pub struct Transaction {
    commands: Vec<Queued>,
    /// The words of all commands, one behind the other.
    words: Vec<u8>,
    spans: Spans,
    keys: Vec<PreparedKey>,
    /// What is true of some command in the queue.
    flags: Flags,
    /// Some command may touch more than the keys it names.
    roams: bool,
    /// Some command runs a script.
    runs_scripts: bool,
    /// A command was refused: EXEC will be, too.
    refused: bool,
    /// Some command selects a database, some command may change the user.
    selects: bool,
    changes_user: bool,
    /// The database that the next command will work in.
    db: DbIndex,
}

/// A transaction that runs scripts, which may take long: what EXEC has come to.
pub struct Execution {
    transaction: Box<Transaction>,
    /// The command that comes next.
    next: usize,
    /// What the commands have answered so far.
    pub replies: ReplyBuffer,
    /// The row of EXEC.
    pub row: &'static Row,
    /// How long it has run before the script that is under way, and how long that.
    pub ns: u64,
}

struct Queued {
    row: &'static Row,
    db: DbIndex,
    first_byte: usize,
    first_span: usize,
    spans: usize,
    first_key: usize,
    keys: usize,
}

impl Default for Transaction {
    fn default() -> Transaction {
        Transaction {
            commands: Vec::new(),
            words: Vec::new(),
            spans: Spans::new(),
            keys: Vec::new(),
            flags: Flags::empty(),
            roams: false,
            runs_scripts: false,
            refused: false,
            selects: false,
            changes_user: false,
            db: DbIndex::default(),
        }
    }
}

impl Transaction {
    /// Makes it an empty one again that keeps what it has taken of memory, if that is not much.
    fn emptied(&mut self) -> Transaction {
        let Transaction { mut commands, mut words, mut spans, mut keys, .. } = std::mem::take(self);
        commands.clear();
        commands.shrink_to(COMMANDS_KEPT_MAX);
        words.clear();
        words.shrink_to(WORD_BYTES_KEPT_MAX);
        spans.clear();
        spans.shrink(WORDS_KEPT_MAX);
        keys.clear();
        keys.shrink_to(WORDS_KEPT_MAX);
        Transaction { commands, words, spans, keys, ..Transaction::default() }
    }

    /// How many commands are queued.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// What is true of some queued command.
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// Bytes of all words.
    pub fn words_bytes(&self) -> usize {
        self.words.len()
    }

    /// Bytes of memory that its commands take.
    pub fn memory(&self) -> usize {
        self.words.len()
            + self.commands.len() * size_of::<Queued>()
            + self.spans.len() * size_of::<brisk_resp::Span>()
            + self.keys.len() * size_of::<PreparedKey>()
    }

    fn push(&mut self, row: &'static Row, asked: &Asked<'_>, keyspace: &Keyspace) {
        let Asked { flags, keys, words: args } = *asked;
        let first_byte = self.words.len();
        let (first_span, first_key) = (self.spans.len(), self.keys.len());
        for word in args.words() {
            self.spans.push(self.words.len() - first_byte, word.len());
            self.words.extend_from_slice(word);
        }
        self.keys.extend_from_slice(keys);
        let (spans, keys) = (args.argc(), keys.len());
        let (db, spec) = (self.db, row.spec);
        self.commands.push(Queued { row, db, first_byte, first_span, spans, first_key, keys });
        // Those of a script, not of EVAL.
        self.flags |= flags;
        let runs_script = spec.flags.contains(Flags::RUNS_SCRIPT);
        self.runs_scripts |= runs_script;
        self.roams |= spec.scope != Scope::Keys || runs_script;
        self.selects |= spec.in_multi == InMulti::Selects;
        self.changes_user |= spec.flags.contains(Flags::NO_AUTH);
        if spec.in_multi == InMulti::Selects
            && let Ok(db) = args.clone().db(keyspace.database_count())
        {
            self.db = db;
        }
    }

    fn keys(&self, command: &Queued) -> &[PreparedKey] {
        &self.keys[command.first_key..command.first_key + command.keys]
    }

    fn args<'a>(&'a self, command: &Queued, hasher: &'a KeyHasher) -> Args<'a> {
        let list = &self.spans.as_slice()[command.first_span..command.first_span + command.spans];
        let input = &self.words[command.first_byte..];
        let mut args = Args::new(input, &self.spans, list, self.keys(command), hasher);
        if command.row.parent.is_some() {
            args.skip_subcommand();
        }
        args
    }

    /// The slots of all commands and of what is watched; `None` if not all are known, or too many.
    pub fn places(&self, watched: impl Iterator<Item = Place>) -> Option<Vec<Place>> {
        if self.roams {
            return None;
        }
        let own = self
            .commands
            .iter()
            .flat_map(|command| self.keys(command).iter().map(|key| (command.db, key.slot)));
        let mut places: Vec<Place> = own.chain(watched).collect();
        places.sort_unstable();
        places.dedup();
        (places.len() <= SLOTS_MAX).then_some(places)
    }
}

impl Core {
    /// MULTI: what follows is queued.
    pub(crate) fn begin_transaction(&mut self, session: &mut Session) {
        let mut transaction = std::mem::take(&mut self.spare_transaction).unwrap_or_default();
        transaction.db = session.db;
        session.transaction = Some(transaction);
    }

    /// Forgets what a session has queued and watched. O(1). The caller holds no slots.
    pub(crate) fn end_transaction(&mut self, session: &mut Session) {
        session.transaction = None;
        self.unwatch(session);
        session.publish_transaction();
    }

    /// Forgets what a session watches, and that it was changed. O(1). The caller holds no slots.
    pub(crate) fn unwatch(&mut self, session: &mut Session) {
        if let Some(watches) = &mut session.watches {
            self.shared.keyspace.unwatch(watches, &mut self.leftovers);
            session.record.watched.store(0, Ordering::Relaxed);
        }
    }

    /// Takes up to `most` watches that have ended out of the queues of their keys. The caller holds no
    /// slots.
    #[inline]
    pub(crate) fn take_leftovers_out(&mut self, most: usize) {
        if !self.leftovers.is_empty() {
            self.shared.keyspace.take_leftovers_out(&mut self.leftovers, most);
        }
    }

    /// Puts a command into the session's transaction.
    #[cold]
    pub(crate) fn queue(
        &mut self,
        session: &mut Session,
        row: &'static Row,
        asked: &Asked<'_>,
        replies: &mut ReplyBuffer,
    ) -> Flow {
        if let Some(transaction) = &mut session.transaction {
            transaction.push(row, asked, &self.shared.keyspace);
        }
        session.publish_transaction();
        session.record.last_command.store(row.id as u32, Ordering::Relaxed);
        self.last_row = row.id as u32;
        if session.wants_reply() {
            Reply::new(replies, session.protocol).word("QUEUED");
        }
        session.after_command();
        // The next command does not pay for this.
        self.last_ticks = self.clock.ticks();
        Flow::Next
    }

    /// A command was refused: if the session is in a transaction, EXEC will be refused too. EXEC
    /// itself ends it at once, with an error that says why.
    #[cold]
    pub(crate) fn refuse_in_transaction(
        &mut self,
        session: &mut Session,
        row: Option<&Row>,
        error: &CommandError,
        args: &Args<'_>,
    ) -> Option<CommandError> {
        if let Some(transaction) = &mut session.transaction {
            transaction.refused = true;
        }
        let row = row.filter(|row| row.spec.in_multi == InMulti::Executes)?;
        self.end_transaction(session);
        if self.shared.armed.load(Ordering::Relaxed) & armed::MONITOR != 0 {
            // They are words of the last command that ran.
            self.redacted.clear();
            self.tell_monitors(session, row, args);
        }
        let why = error.wire();
        let why = why.strip_prefix(b"ERR ").unwrap_or(&why);
        let before = "EXECABORT Transaction discarded because of: ";
        Some(CommandError::text_around(before, why, ""))
    }

    /// Runs the session's transaction, which ends it. [`CommandError::SlotBusy`]: nothing was run,
    /// and the transaction goes on.
    pub(crate) fn execute_transaction(
        &mut self,
        session: &mut Session,
        row: &'static Row,
        reply: &mut Reply<'_>,
    ) -> Result<Outcome> {
        let shared = self.shared;
        let Some(mut transaction) = session.transaction.take() else {
            return Err(CommandError::text("ERR EXEC without MULTI"));
        };
        if transaction.refused {
            self.end_transaction(session);
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return Err(CommandError::text(text));
        }
        if session.has_old_user() {
            session.renew_user();
        }
        // A SELECT that is refused would leave the commands behind it with slots of another database.
        let may_be_refused = session.is_restricted() || transaction.changes_user;
        let is_certain = !(transaction.selects && may_be_refused);
        let watched = session.watches.iter().flat_map(|watches| watches.places());
        let places = is_certain.then(|| transaction.places(watched)).flatten();
        let unit = match places {
            None => self.stop_others().map(|still| {
                self.still = still;
                Unit::alone(&shared.keyspace, &self.env)
            }),
            Some(places) => Unit::holding(&shared.keyspace, &self.env, places),
        };
        let mut unit = match unit {
            Ok(unit) => unit,
            Err(error) => {
                session.transaction = Some(transaction);
                return Err(error);
            }
        };
        let watches = session.watches.as_ref();
        if watches.is_none_or(|watches| unit.settle(&self.env, watches)) {
            session.record.last_command.store(row.id as u32, Ordering::Relaxed);
            let began = self.last_ticks;
            self.unit = Some(unit);
            if transaction.runs_scripts {
                return self.execute_scripts(session, transaction, row, reply);
            }
            reply.array(transaction.len());
            for command in &transaction.commands {
                self.run_queued(session, &transaction, command, reply.buffer());
            }
            // EXEC has taken all this time.
            self.last_ticks = began;
        } else {
            self.unit = Some(unit);
            reply.null_array();
        }
        self.end_unit();
        self.end_transaction(session);
        *transaction = transaction.emptied();
        self.spare_transaction = Some(transaction);
        Ok(Outcome::Replied)
    }

    /// Runs a transaction with scripts. If one of them takes long, the rest is run when it has ended:
    /// see [`Core::go_on_executing`].
    fn execute_scripts(
        &mut self,
        session: &mut Session,
        transaction: Box<Transaction>,
        row: &'static Row,
        reply: &mut Reply<'_>,
    ) -> Result<Outcome> {
        let began = self.last_ticks;
        let mut replies = ReplyBuffer::new();
        Reply::new(&mut replies, session.protocol).array(transaction.len());
        let execution = Execution { transaction, next: 0, replies, row, ns: 0 };
        let Some(mut execution) = self.go_on_executing(session, Box::new(execution)) else {
            self.end_transaction(session);
            return Ok(Outcome::Elsewhere);
        };
        // EXEC has taken all this time.
        self.last_ticks = began;
        self.end_unit();
        self.end_transaction(session);
        execution.replies.finish();
        Ok(reply.append(execution.replies))
    }

    /// Runs the commands that are left. `None` if one of them is put aside, and the rest with it.
    pub(crate) fn go_on_executing(
        &mut self,
        session: &mut Session,
        mut execution: Box<Execution>,
    ) -> Option<Box<Execution>> {
        while execution.next < execution.transaction.len() {
            let Execution { transaction, next, replies, .. } = &mut *execution;
            let command = &transaction.commands[*next];
            *next += 1;
            if session.db != command.db {
                // It stands for a client that has gone.
                session.select(command.db);
            }
            self.run_queued(session, transaction, command, replies);
            if let Some(parked) = self.parked.as_mut().filter(|parked| parked.in_exec) {
                parked.execution = Some(execution);
                return None;
            }
        }
        Some(execution)
    }

    /// Runs one command of a transaction, within [`Core::unit`].
    fn run_queued(
        &mut self,
        session: &mut Session,
        transaction: &Transaction,
        command: &Queued,
        replies: &mut ReplyBuffer,
    ) {
        let shared = self.shared;
        let (row, prepared) = (command.row, transaction.keys(command));
        let mut args = transaction.args(command, shared.keyspace.hasher());
        let mark = replies.mark();
        // As in Redis: who has killed itself gets no reply of what it runs behind that.
        let is_heard = !session.record.has(flag::CLOSE_AFTER_REPLY);
        if session.has_old_user() {
            session.renew_user();
        }
        if session.is_restricted() {
            if let Err(error) = self.permit_queued(session, row, &args) {
                self.write_error(session, &error, replies);
                if !is_heard {
                    replies.truncate(mark);
                }
                return;
            }
            self.limit_lookups(session, row, &args);
        }
        let reply = Reply::new(replies, session.protocol);
        let result = match row.run {
            Run::Data(run) => {
                let (spec, parent, db) = (row.spec, row.parent, session.db);
                let call = Invocation { spec, parent, run, db, blocking: Blocking::Never };
                let unit = self.unit.as_mut().expect("EXEC has begun it");
                let done = unit.run(&self.env, &call, prepared, &mut args, reply);
                done.map(|done| self.stats().changes.add(done.dirty))
            }
            Run::Server(at) => {
                let run = self.shared.handlers[usize::from(at)];
                self.redacted.clear();
                let mut call = Call { core: self, session, reply, row, prepared };
                let done = run(&mut call, &mut args);
                done.map(|_| self.propagate_server(row, session.db, &args))
            }
        };
        self.forget_limits();
        if self.unit.is_none() {
            // A script that takes long was put aside with it.
            return;
        }
        if let Err(error) = &result {
            replies.truncate(mark);
            self.write_error(session, error, replies);
        }
        replies.finish();
        self.account(session, row, result.is_err(), &args);
        if shared.armed.load(Ordering::Relaxed) & armed::MONITOR != 0 && row.is_monitored() {
            self.tell_monitors(session, row, &args);
        }
        // They are words of this command, not of EXEC.
        self.redacted.clear();
        if !is_heard {
            replies.truncate(mark);
        }
    }
}

impl Session {
    /// Whether it is between MULTI and EXEC.
    #[inline]
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// The flags of a command as this session would run it: those of what it queued are EXEC's.
    pub fn flags_of(&self, row: &Row) -> Flags {
        match &self.transaction {
            Some(transaction) if row.spec.in_multi == InMulti::Executes => {
                row.spec.flags | transaction.flags()
            }
            _ => row.spec.flags,
        }
    }

    /// Publishes what CLIENT LIST shows of the transaction.
    pub fn publish_transaction(&self) {
        let queued = self.transaction.as_ref();
        let count = queued.map_or(-1, |transaction| transaction.len() as i64);
        let memory = queued.map_or(0, |transaction| transaction.memory() as u64);
        self.record.queued.store(count, Ordering::Relaxed);
        self.record.queued_memory.store(memory, Ordering::Relaxed);
    }
}
