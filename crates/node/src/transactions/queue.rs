//! The commands that a session has queued since MULTI.
//!
//! Arguments are kept as they were sent, together with the hashes of the keys.

use brisk_engine::args::PreparedKey;
use brisk_engine::command::{Flags, InMulti, Scope};
use brisk_engine::keyspace::DbSlot;
use brisk_engine::table::Row;
use brisk_engine::{Args, DbIndex, Keyspace, ReplyBuffer};
use brisk_resp::Spans;

/// Maximum number of slots that a transaction locks. A transaction that needs more slots runs while all other workers
/// are quiesced, which takes less time than waiting until all of these slots are free.
const SLOTS_MAX: usize = 1024;

/// The largest capacities that are kept when a transaction ends, for the next transaction on its worker.
const COMMANDS_KEPT_MAX: usize = 128;
const WORDS_KEPT_MAX: usize = 1024;
const WORD_BYTES_KEPT_MAX: usize = 16 * 1024;

/// The commands that a session has queued since MULTI. Their size is limited by `client-query-buffer-limit`, like other
/// input that has not been executed yet.
pub struct Transaction {
    pub(super) commands: Vec<Queued>,
    /// The arguments of all commands, concatenated.
    pub(super) words: Vec<u8>,
    pub(super) spans: Spans,
    pub(super) keys: Vec<PreparedKey>,
    /// The union of the flags of the queued commands.
    pub(super) flags: Flags,
    /// True if some command must not run on a replica whose data is stale.
    pub(super) needs_primary: bool,
    /// True if some command may touch keys that it does not name.
    pub(super) roams: bool,
    /// True if some command runs a script.
    pub(super) runs_scripts: bool,
    /// True if a command was rejected, so that EXEC will be rejected as well.
    pub(super) refused: bool,
    /// True if some command selects a database.
    pub(super) selects: bool,
    pub(super) changes_user: bool,
    /// The database in which the next command will run.
    pub(super) db: DbIndex,
}

/// The progress of EXEC in a transaction that runs scripts, which may become slow.
pub struct Execution {
    pub(super) transaction: Box<Transaction>,
    /// The next command.
    pub(super) next: usize,
    /// The replies to the commands so far.
    pub replies: ReplyBuffer,
    /// The row of EXEC.
    pub row: &'static Row,
    /// How long EXEC ran before the current script, plus how long that script has run.
    pub ns: u64,
}

pub(super) struct Queued {
    pub(super) row: &'static Row,
    pub(super) db: DbIndex,
    pub(super) first_byte: usize,
    pub(super) first_span: usize,
    pub(super) spans: usize,
    pub(super) first_key: usize,
    pub(super) keys: usize,
}

impl Default for Transaction {
    fn default() -> Transaction {
        Transaction {
            commands: Vec::new(),
            words: Vec::new(),
            spans: Spans::new(),
            keys: Vec::new(),
            flags: Flags::empty(),
            needs_primary: false,
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
    /// Empties the transaction for reuse. Keeps its memory if it is small.
    pub(super) fn emptied(&mut self) -> Transaction {
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

    /// Number of queued commands.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The flags of EXEC combined with the flags of all queued commands. A flag that allows a command to run in a
    /// certain state is only set if all commands have it.
    pub fn flags(&self, exec: Flags) -> Flags {
        let flags = self.flags | exec;
        if self.needs_primary { flags.difference(Flags::STALE) } else { flags }
    }

    /// Bytes of all arguments.
    pub fn words_bytes(&self) -> usize {
        self.words.len()
    }

    /// Bytes of memory of the queued commands.
    pub fn memory(&self) -> usize {
        self.words.len()
            + self.commands.len() * size_of::<Queued>()
            + self.spans.len() * size_of::<brisk_resp::Span>()
            + self.keys.len() * size_of::<PreparedKey>()
    }

    pub(super) fn push(
        &mut self,
        row: &'static Row,
        (flags, keys, args): (Flags, &[PreparedKey], &Args<'_>),
        keyspace: &Keyspace,
    ) {
        let first_byte = self.words.len();
        let (first_span, first_key) = (self.spans.len(), self.keys.len());
        for word in args.arguments() {
            self.spans.push(self.words.len() - first_byte, word.len());
            self.words.extend_from_slice(word);
        }
        self.keys.extend_from_slice(keys);
        let (spans, keys) = (args.argc(), keys.len());
        let (db, spec) = (self.db, row.spec);
        self.commands.push(Queued { row, db, first_byte, first_span, spans, first_key, keys });
        // If the command is EVAL, these are the flags of the script.
        self.flags |= flags;
        self.needs_primary |= !flags.contains(Flags::STALE);
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

    /// The keys of all commands, in order.
    pub fn all_keys(&self) -> &[PreparedKey] {
        &self.keys
    }

    pub(super) fn keys(&self, command: &Queued) -> &[PreparedKey] {
        &self.keys[command.first_key..command.first_key + command.keys]
    }

    pub(super) fn args<'a>(&'a self, command: &Queued) -> Args<'a> {
        let list = &self.spans.as_slice()[command.first_span..command.first_span + command.spans];
        let input = &self.words[command.first_byte..];
        let mut args = Args::new(input, &self.spans, list, self.keys(command));
        if command.row.parent.is_some() {
            args.skip_subcommand();
        }
        args
    }

    /// The slots of all commands and watched keys. `None` if not all are known or there are too many.
    pub fn places(&self, watched: impl Iterator<Item = DbSlot>) -> Option<Vec<DbSlot>> {
        if self.roams {
            return None;
        }
        let own = self
            .commands
            .iter()
            .flat_map(|command| self.keys(command).iter().map(|key| (command.db, key.slot)));
        let mut places: Vec<DbSlot> = Vec::with_capacity(self.keys.len());
        places.extend(own.chain(watched));
        places.sort_unstable();
        places.dedup();
        (places.len() <= SLOTS_MAX).then_some(places)
    }
}
