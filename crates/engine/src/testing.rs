//! Running commands in process, for tests: text in, text out, with a clock set by hand.
//!
//! ```text
//! let mut db = Db::new();                                   // the clock is at 1000 ms
//! db.check("SET k v EX 10", "OK");                          // replies as redis-cli shows them
//! db.at(11_000).check("GET k", "(nil)");
//! db.effects("SET k v EX 10", &["SET k v PXAT 21000"]);     // the effects to propagate
//! db.events("DEL k", &["del k"]);                           // the keyspace events
//! ```
//!
//! Arguments are split as redis-cli splits them: quotes, and `\xHH` inside double quotes.

use crate::base::error::{CommandError, Result};
use crate::base::random::Random;
use crate::call::ctx::{Blocking, Command, full_name};
use crate::call::long::{ComputedCommand, LongCommand};
use crate::command::Spec;
use crate::command::args::{Args, PreparedKey};
use crate::command::keyspec;
use crate::commands;
use crate::env::effect::{EventClass, Hooks};
use crate::env::{Env, Settings};
use crate::keyspace::{
    ClientRef, DbIndex, EndedWatches, KeyHasher, Keys, Keyspace, UnixMs, Watches,
};
use crate::reply::{Reply, ReplyBuffer};
use crate::run::exec::{self, Invocation};
use crate::run::finish::{FinishResult, finish};
use crate::run::unit::Unit;
use brisk_resp::{
    Limits, Protocol, ReplyDecoder, ReplyLimits, ReplyStep, RequestDecoder, Spans, Step, Value,
};
use std::cell::Cell;

/// Number of databases of a test keyspace.
const DATABASES: u32 = 4;

/// A keyspace, one thread's environment, and a session's protocol and database.
pub struct Db {
    keyspace: Keyspace,
    env: Env,
    protocol: Protocol,
    selected: DbIndex,
    /// Number of changes of the last command.
    changes: Cell<u64>,
}

impl Default for Db {
    fn default() -> Db {
        Db::new()
    }
}

impl Db {
    /// An empty keyspace at 1000 ms, RESP2, default settings.
    pub fn new() -> Db {
        let keyspace = Keyspace::new(DATABASES, KeyHasher::seeded(1, 2));
        let env = Env::new(keyspace.tally(), Random::seeded(7));
        env.set_now(UnixMs(1000));
        Db {
            keyspace,
            env,
            protocol: Protocol::Resp2,
            selected: DbIndex::FIRST,
            changes: Cell::new(0),
        }
    }

    /// Sets the clock.
    pub fn at(&mut self, now_ms: u64) -> &mut Db {
        self.env.set_now(UnixMs(now_ms));
        self
    }

    /// Uses RESP3 from now on.
    pub fn resp3(&mut self) -> &mut Db {
        self.protocol = Protocol::Resp3;
        self
    }

    /// Selects database `db`.
    pub fn select(&mut self, db: u32) -> &mut Db {
        self.selected =
            self.keyspace.db(crate::keyspace::DbNumber(db)).expect("it has that database");
        self
    }

    /// The settings, mutable.
    pub fn settings(&mut self) -> &mut Settings {
        &mut self.env.settings
    }

    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Runs a line and compares the reply with `want`, in the form of redis-cli. Panics if they
    /// differ.
    #[track_caller]
    pub fn check(&mut self, line: &str, want: &str) -> &mut Db {
        let got = self.run(line);
        assert!(got == want, "{line}\n got: {got}\nwant: {want}");
        self
    }

    /// Runs the commands of a transcript (`> …`) and compares each reply with the lines that follow
    /// it. A reply that ends in `…` is compared up to there. `CONFIG SET` changes the setting with
    /// that name.
    #[track_caller]
    pub fn replay(&mut self, transcript: &str) -> &mut Db {
        for step in transcript.trim_start_matches("> ").split("\n> ") {
            let (line, want) = step.split_once('\n').unwrap_or((step, ""));
            let want = want.trim_end_matches('\n');
            if self.set_setting(line) {
                continue;
            }
            match want.strip_suffix('…') {
                Some(head) => {
                    let got = self.run(line);
                    assert!(got.starts_with(head), "{line}\n got: {got}\nwant: {want}");
                }
                None => _ = self.check(line, want),
            }
        }
        self
    }

    fn set_setting(&mut self, line: &str) -> bool {
        let Some(pair) = line.strip_prefix("CONFIG SET ") else { return false };
        let parsed = pair.split_once(' ').and_then(|(name, n)| Some((name, n.parse().ok()?)));
        let settings = &mut self.env.settings;
        match parsed {
            Some(("proto-max-bulk-len", n)) => settings.string_bytes_max = n,
            Some(("hash-max-listpack-entries", n)) => {
                settings.limits.hash_max_listpack_entries = n as usize;
            }
            Some(("hash-max-listpack-value", n)) => {
                settings.limits.hash_max_listpack_value = n as usize;
            }
            Some(("hll-sparse-max-bytes", n)) => settings.limits.hll_sparse_max_bytes = n as usize,
            Some(("stream-node-max-entries", n)) => {
                settings.limits.stream_node_max_entries = n as usize;
            }
            Some(("stream-node-max-bytes", n)) => {
                settings.limits.stream_node_max_bytes = n as usize;
            }
            _ => panic!("a setting without a place: {line}"),
        }
        true
    }

    /// Runs a line and returns the reply in the form of redis-cli.
    pub fn run(&mut self, line: &str) -> String {
        self.run_args(&split(line))
    }

    /// Runs a line for a client that can wait. Returns the reply, or the work that is left.
    ///
    /// # Errors
    /// Returns the work, to be passed to [`Db::finish`].
    pub fn begin(&mut self, line: &str) -> std::result::Result<String, Box<LongCommand>> {
        let words = split(line);
        let client = ClientRef { worker: 0, token: 0, id: 1, protocol: self.protocol };
        let wire = self.wire_in(&words, Blocking::Client(client), None);
        self.env.take_long().map_or_else(|| Ok(text_of(&wire)), |long| Err(Box::new(long)))
    }

    /// Does the work of a command and finishes it. Returns the reply, or the work that has to be
    /// done again.
    ///
    /// # Errors
    /// Returns the work that has to be done again.
    #[expect(clippy::boxed_local, reason = "handed on as it came")]
    pub fn finish(
        &mut self,
        long: Box<LongCommand>,
    ) -> std::result::Result<String, Box<LongCommand>> {
        let computed = long.compute(&self.keyspace);
        self.end(computed)
    }

    /// Finishes a command whose work is done. Returns the reply, or the work that has to be done
    /// again.
    ///
    /// # Errors
    /// Returns the work that has to be done again.
    pub fn end(
        &mut self,
        computed: ComputedCommand,
    ) -> std::result::Result<String, Box<LongCommand>> {
        let finished = finish(&self.keyspace, &self.env, computed);
        match finished {
            FinishResult::Again(long) => Err(Box::new(long)),
            FinishResult::Later(_) => unreachable!("writes are not postponed"),
            FinishResult::Over(over) => {
                self.changes.set(over.dirty);
                Ok(text_of(&self.sent(over.replies)))
            }
        }
    }

    /// Runs a line and returns the reply and the number of changes.
    pub fn run_counting(&mut self, line: &str) -> (String, u64) {
        self.changes.set(0);
        (self.run(line), self.changes.get())
    }

    /// Runs a command given as arguments and returns the reply in the form of redis-cli.
    pub fn run_args<W: AsRef<[u8]>>(&mut self, words: &[W]) -> String {
        text_of(&self.wire(words))
    }

    /// Runs a line and compares the effects to propagate, each as a line. Effects in a database
    /// other than the selected one start with `[db]`.
    #[track_caller]
    pub fn effects(&mut self, line: &str, want: &[&str]) -> &mut Db {
        self.env.set_hooks(Hooks::PROPAGATE, true);
        let reply = self.run(line);
        self.check_effects(line, &reply, want);
        self
    }

    /// Runs lines as one unit, with their slots held throughout, and compares replies and effects.
    #[track_caller]
    pub fn unit(&mut self, lines: &[&str], replies: &[&str], effects: &[&str]) -> &mut Db {
        let words: Vec<_> = lines.iter().map(|line| split(line)).collect();
        let slot = |key: &PreparedKey| (self.selected, key.slot);
        let prepared = words.iter().flat_map(|words| self.prepare(words).unwrap_or_default());
        let places = prepared.map(|key| slot(&key));
        self.env.set_hooks(Hooks::PROPAGATE, true);
        let mut unit =
            Unit::holding(&self.keyspace, &self.env, places).expect("no other thread runs");
        let got: Vec<String> = words
            .iter()
            .map(|words| text_of(&self.wire_in(words, Blocking::Never, Some(&mut unit))))
            .collect();
        let ticket = unit.finish(&self.env);
        assert_eq!(ticket.is_some(), !effects.is_empty(), "a ticket if anything is propagated");
        assert_eq!(got, replies, "{lines:?}");
        assert_eq!(self.keyspace.journal().has_untaken(), ticket.is_some(), "{lines:?}");
        self.check_effects(&lines.join("; "), &got.join("; "), effects);
        self
    }

    #[track_caller]
    fn check_effects(&self, line: &str, reply: &str, want: &[&str]) {
        self.env.set_hooks(Hooks::all(), false);
        let transactions = take_transactions(&self.keyspace);
        assert!(transactions.len() <= 1, "{line}: one transaction");
        assert!(self.env.aftermath.borrow().effects.is_empty(), "{line}: effects without a ticket");
        self.env.aftermath.borrow_mut().clear();
        let shown = |(db, words): &(DbIndex, Vec<Vec<u8>>)| {
            let words: Vec<String> = words.iter().map(|word| bare(word)).collect();
            format!("{}{}", self.place(*db), words.join(" "))
        };
        let got: Vec<String> = transactions.iter().flatten().map(shown).collect();
        assert!(got == want, "{line}\n got: {got:?}\nwant: {want:?}\nreply: {reply}");
    }

    /// Runs a line and compares the keyspace events, each as `event key`. Events in a database
    /// other than the selected one start with `[db]`. All classes except `keymiss` and `new` are
    /// enabled, as in `notify-keyspace-events KEA`.
    #[track_caller]
    pub fn events(&mut self, line: &str, want: &[&str]) -> &mut Db {
        self.events_of(EventClass::all() - EventClass::KEY_MISS - EventClass::NEW, line, want)
    }

    /// Like [`Db::events`], for the given classes.
    #[track_caller]
    pub fn events_of(&mut self, classes: EventClass, line: &str, want: &[&str]) -> &mut Db {
        self.env.set_hooks(Hooks::NOTIFY, true);
        self.env.settings.events = classes;
        let reply = self.run(line);
        self.env.settings.events = EventClass::empty();
        self.env.set_hooks(Hooks::all(), false);
        let events = std::mem::take(&mut self.env.aftermath.borrow_mut().events);
        self.env.aftermath.borrow_mut().clear();
        let shown = |event: &crate::env::effect::Event| {
            format!("{}{} {}", self.place(event.db), event.name, bare(&event.key))
        };
        let got: Vec<String> = events.iter().map(shown).collect();
        assert!(got == want, "{line}\n got: {got:?}\nwant: {want:?}\nreply: {reply}");
        self
    }

    fn place(&self, db: DbIndex) -> String {
        if db == self.selected { String::new() } else { format!("[{}] ", db.number()) }
    }

    /// Verifies the keyspace's invariants.
    pub fn invariants(&self) {
        self.keyspace.check();
    }

    /// Runs a command and returns the bytes of the reply as they would be sent.
    pub fn wire<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Vec<u8> {
        self.wire_in(words, Blocking::Never, None)
    }

    fn wire_in<W: AsRef<[u8]>>(
        &self,
        words: &[W],
        blocking: Blocking,
        unit: Option<&mut Unit<'_>>,
    ) -> Vec<u8> {
        let mut request = Vec::new();
        brisk_resp::request::encode(&mut request, words);
        let mut spans = Spans::new();
        let step = RequestDecoder::new().decode(&request, &Limits::default(), &mut spans);
        assert!(matches!(step, Ok(Step::Request { .. })), "{step:?}");
        let mut buffer = ReplyBuffer::new();
        let mark = buffer.mark();
        if let Err(error) = self.execute(&request, &spans, words, &mut buffer, blocking, unit) {
            buffer.truncate(mark);
            Reply::new(&mut buffer, self.protocol).error(&error);
        }
        self.sent(buffer)
    }

    /// The bytes of replies as they would be sent.
    fn sent(&self, mut buffer: ReplyBuffer) -> Vec<u8> {
        buffer.finish();
        self.env.garbage.borrow_mut().clear();
        let out = std::cell::RefCell::new(Vec::new());
        buffer.drain(
            |bytes| out.borrow_mut().extend_from_slice(bytes),
            |data, range| out.borrow_mut().extend_from_slice(&data[range]),
        );
        out.into_inner()
    }

    fn execute<W: AsRef<[u8]>>(
        &self,
        request: &[u8],
        spans: &Spans,
        words: &[W],
        buffer: &mut ReplyBuffer,
        blocking: Blocking,
        unit: Option<&mut Unit<'_>>,
    ) -> Result<()> {
        let (command, parent) = find(words)?;
        let spec = &command.spec;
        let prepared = self.prepare(words)?;
        let mut args = Args::new(request, spans, spans.as_slice(), &prepared);
        if parent.is_some() {
            args.skip_subcommand();
        }
        let reply = Reply::new(buffer, self.protocol);
        let call = Invocation { spec, parent, run: command.run, db: self.selected, blocking };
        let done = match unit {
            Some(unit) => unit.run(&self.env, &call, &prepared, &mut args, reply),
            None => exec::run(&self.keyspace, &self.env, &call, &prepared, &mut args, reply),
        };
        done.map(|done| self.changes.set(done.dirty))
    }

    /// The keys of a command.
    fn prepare<W: AsRef<[u8]>>(&self, words: &[W]) -> Result<Vec<PreparedKey>> {
        let (Command { spec, .. }, parent) = find(words)?;
        if !spec.arity_admits(words.len()) {
            return Err(CommandError::Arity(full_name(parent, spec)));
        }
        let word = |index: usize| words[index].as_ref();
        let key = |index: usize| exec::prepare(index, &self.keyspace.hasher().key(word(index)));
        let mut prepared = Vec::new();
        keyspec::each_key(spec, words.len(), &word, |index| prepared.push(key(index)));
        Ok(prepared)
    }

    /// Makes a session watch a key.
    pub fn watch(&self, key: &str, watches: &mut Watches) {
        let key = self.keyspace.hasher().key(key.as_bytes());
        let prepared = [exec::prepare(0, &key)];
        let keys = Keys::lock(&self.keyspace, &self.env, self.selected, &prepared);
        keys.expect("no other thread runs").watch(&key, watches);
    }

    /// Reports whether an EXEC of the session would run now. Ends the watches.
    pub fn settles(&self, watches: &mut Watches) -> bool {
        let places = watches.places();
        let mut unit =
            Unit::holding(&self.keyspace, &self.env, places).expect("no other thread runs");
        let intact = unit.settle(&self.env, watches);
        unit.finish(&self.env);
        self.keyspace.unwatch(watches, &mut EndedWatches::default());
        intact
    }
}

/// The commands of a transaction in the stream, each with its database.
pub type Transaction = Vec<(DbIndex, Vec<Vec<u8>>)>;

/// Takes the transactions from the stream.
pub fn take_transactions(keyspace: &Keyspace) -> Vec<Transaction> {
    let mut bytes = Vec::new();
    keyspace.journal().take(&mut bytes, &mut Vec::new());
    keyspace.journal().name_database();
    let (mut transactions, mut framed, mut db) = (Vec::new(), None, DbIndex::default());
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let mut spans = Spans::new();
        let step = RequestDecoder::new().decode(rest, &Limits::default(), &mut spans);
        let Ok(Step::Request { consumed, .. }) = step else { panic!("not a stream: {step:?}") };
        let words: Vec<Vec<u8>> =
            spans.as_slice().iter().map(|span| spans.bytes(rest, *span).to_vec()).collect();
        rest = &rest[consumed..];
        match &words[0][..] {
            b"SELECT" => {
                let number = crate::keyspace::DbNumber(text_number(&words[1]));
                db = keyspace.db(number).expect("the stream is its own");
            }
            b"MULTI" => framed = Some(Transaction::new()),
            b"EXEC" => transactions.extend(framed.take()),
            _ => match &mut framed {
                Some(commands) => commands.push((db, words)),
                None => transactions.push(vec![(db, words)]),
            },
        }
    }
    transactions
}

fn text_number(text: &[u8]) -> u32 {
    String::from_utf8_lossy(text).parse().expect("SELECT names a number")
}

/// The command that a request names, and its container.
fn find<W: AsRef<[u8]>>(words: &[W]) -> Result<(&'static Command, Option<&'static Spec>)> {
    let is =
        |command: &&Command, word: &[u8]| command.spec.name.as_bytes().eq_ignore_ascii_case(word);
    let name = words[0].as_ref();
    let unknown = || CommandError::text(format!("ERR unknown command {}", bare(name)));
    let command = commands::all().find(|command| is(command, name)).ok_or_else(unknown)?;
    match words.get(1) {
        Some(word) if !command.subcommands.is_empty() => {
            let sub = command.subcommands.iter().find(|sub| is(sub, word.as_ref()));
            sub.map(|sub| (sub, Some(&command.spec))).ok_or_else(unknown)
        }
        _ => Ok((command, None)),
    }
}

/// Splits a line into arguments, like an inline request.
fn split(line: &str) -> Vec<Vec<u8>> {
    let input = format!("{line}\r\n").into_bytes();
    let limits = Limits { inline_bytes_max: usize::MAX, ..Limits::default() };
    let mut spans = Spans::new();
    let step = RequestDecoder::new().decode(&input, &limits, &mut spans);
    assert!(matches!(step, Ok(Step::Request { .. })), "{line}: {step:?}");
    spans.as_slice().iter().map(|span| spans.bytes(&input, *span).to_vec()).collect()
}

/// An argument as it would be typed: quoted only if necessary.
fn bare(word: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !word.is_empty() && word.iter().all(plain) {
        String::from_utf8_lossy(word).into_owned()
    } else {
        quoted(word)
    }
}

fn quoted(bytes: &[u8]) -> String {
    Value::Bulk(bytes.to_vec()).to_string()
}

/// A reply as redis-cli shows it on a terminal, without the last line end.
fn text_of(wire: &[u8]) -> String {
    let step = ReplyDecoder::new(ReplyLimits::default()).decode(wire);
    match step {
        Ok(ReplyStep::Value { consumed, value }) if consumed == wire.len() => value.to_string(),
        _ => panic!("not one whole reply: {}: {step:?}", quoted(wire)),
    }
}
