//! Executes commands of an append-only file in memory, on the keys that they may change.
//!
//! Only the engine knows what commands do, so it executes them. No key expires during the replay, because servers
//! record expirations as commands. Scripts are not executed, because servers record their effects, except for very old
//! servers.

use super::aof::Placed;
use super::rdb;
use crate::analysis::Analysis;
use brisk_engine::args::Args;
use brisk_engine::ctx::{Blocking, Command as Row};
use brisk_engine::exec::{self, Invocation};
use brisk_engine::keyspace::{KeyHasher, Keyspace};
use brisk_engine::random::Random;
use brisk_engine::{
    DbIndex, DbNumber, Env, Reply, ReplyBuffer, UnixMs, commands, keyspec, snapshot,
};
use brisk_persist::aof::AofCommand;
use brisk_persist::rdb::{RdbEntry, RdbWriter, VERSION_FIELD_TTL, dump};
use brisk_resp::request::encode;
use brisk_resp::{Limits, Protocol, RequestDecoder, Spans, Step};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

/// Maximum number of different keys that commands may change. With more, loading the file into a server is faster.
const TOUCHED_MAX: usize = 64 << 20;
/// Maximum number of databases.
const DATABASES_MAX: u32 = 1024;
/// The default number of databases of servers.
const DATABASES_DEFAULT: u32 = 16;
/// Commands that change all keys of at least one database.
const CHANGE_ALL: [&str; 3] = ["flushall", "flushdb", "swapdb"];
/// Commands whose arguments name other databases.
const NAME_DATABASES: [&str; 4] = ["select", "swapdb", "move", "copy"];
/// A time at which nothing has expired.
const BEFORE_ALL: UnixMs = UnixMs(1);

/// The commands of the engine by name.
struct Rows(HashMap<&'static str, &'static Row>);

impl Rows {
    fn new() -> Rows {
        Rows(commands::all().map(|row| (row.spec.name, row)).collect())
    }

    /// A command, and its container if it is a subcommand.
    fn find(&self, words: &[&[u8]]) -> Option<(&'static Row, Option<&'static Row>)> {
        let name = String::from_utf8_lossy(words.first()?).to_ascii_lowercase();
        let row = *self.0.get(&name[..])?;
        if row.subcommands.is_empty() {
            return Some((row, None));
        }
        let word = words.get(1)?;
        let is = |part: &&Row| part.spec.name.as_bytes().eq_ignore_ascii_case(word);
        row.subcommands.iter().find(is).map(|part| (part, Some(row)))
    }
}

fn is_one_of(name: &[u8], names: &[&str]) -> bool {
    names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// The positions of a command's keys among its arguments.
fn places(row: &Row, words: &[&[u8]]) -> Vec<usize> {
    let word = |index: usize| words.get(index).copied().unwrap_or_default();
    let found = keyspec::find_keys(&row.spec, words.len(), &word).unwrap_or_default();
    found.iter().map(|key| key.index).collect()
}

/// Keys that commands may change, in any database.
pub(super) struct Touched {
    rows: Rows,
    keys: HashSet<u64>,
    hash: RandomState,
    all: bool,
    databases: u32,
    too_many: bool,
}

impl Default for Touched {
    fn default() -> Touched {
        Touched {
            rows: Rows::new(),
            keys: HashSet::new(),
            hash: RandomState::new(),
            all: false,
            databases: DATABASES_DEFAULT,
            too_many: false,
        }
    }
}

impl Touched {
    /// Records the keys of a command.
    pub(super) fn add(&mut self, placed: &Placed<'_>) {
        let words: Vec<&[u8]> = placed.command.args().collect();
        let name = placed.command.name();
        if is_one_of(name, &NAME_DATABASES) {
            let numbers =
                words[1..].iter().filter_map(|word| str::from_utf8(word).ok()?.parse().ok());
            let most = numbers.filter(|db: &u32| *db < DATABASES_MAX).max().unwrap_or(0);
            self.databases = self.databases.max(most + 1);
        }
        self.all |= is_one_of(name, &CHANGE_ALL);
        let Some((row, _)) = self.rows.find(&words) else { return };
        for place in places(row, &words) {
            if self.keys.len() >= TOUCHED_MAX {
                self.too_many = true;
                return;
            }
            if let Some(key) = words.get(place) {
                self.keys.insert(self.hash.hash_one(key));
            }
        }
    }

    /// Reports whether a command may change a key. False positives are possible.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.all || self.keys.contains(&self.hash.hash_one(key))
    }
}

/// Executes the commands of an append-only file in memory, on the keys that they may change.
pub(super) struct Replay {
    rows: Rows,
    keyspace: Keyspace,
    env: Env,
    db: DbIndex,
    executed: u64,
    /// Number of commands that are unknown, or failed.
    left_out: u64,
    first_left_out: Option<String>,
}

impl Replay {
    /// # Errors
    /// If the commands change too many keys.
    pub(super) fn new(touched: &Touched) -> Result<Replay, String> {
        if touched.too_many {
            let text = "the commands change too many keys: have the server rewrite the file first \
                        (BGREWRITEAOF)";
            return Err(text.to_owned());
        }
        // A random seed, so that the keys in a file cannot be chosen to collide.
        let (state, other) = (RandomState::new(), RandomState::new());
        let hasher = KeyHasher::seeded(state.hash_one(0), other.hash_one(1));
        let keyspace = Keyspace::new(touched.databases, hasher);
        let env = Env::new(keyspace.tally(), Random::seeded(state.hash_one(2)));
        env.set_now(BEFORE_ALL);
        Ok(Replay {
            rows: Rows::new(),
            keyspace,
            env,
            db: DbIndex::FIRST,
            executed: 0,
            left_out: 0,
            first_left_out: None,
        })
    }

    /// Loads a key of the base. Returns false if no command uses its database.
    pub(super) fn restore(&mut self, db: u64, entry: &RdbEntry) -> bool {
        let Some(db) = DbIndex::checked(db, self.keyspace.database_count()) else { return false };
        let payload = dump::write(&entry.value);
        let deadline = entry.metadata.expire_at_ms.unwrap_or(0).max(0).to_string();
        let before = std::mem::replace(&mut self.db, db);
        let words: [&[u8]; 6] =
            [b"RESTORE", &entry.key, deadline.as_bytes(), &payload, b"REPLACE", b"ABSTTL"];
        let done = self.run(&words);
        self.db = before;
        done
    }

    /// Executes a command.
    pub(super) fn execute(&mut self, placed: &Placed<'_>) {
        let command: &AofCommand<'_> = &placed.command;
        let words: Vec<&[u8]> = command.args().collect();
        match command.name() {
            name if name.eq_ignore_ascii_case(b"select") => {
                let number = words.get(1).and_then(|word| str::from_utf8(word).ok()?.parse().ok());
                match number.and_then(|number| self.keyspace.db(DbNumber(number))) {
                    Some(db) => self.db = db,
                    None => self.leave_out(command),
                }
            }
            // All commands are executed sequentially anyway.
            name if is_one_of(name, &["multi", "exec", "ping"]) => {}
            _ if self.run(&words) => self.executed += 1,
            _ => self.leave_out(command),
        }
    }

    fn leave_out(&mut self, command: &AofCommand<'_>) {
        self.left_out += 1;
        let name = || crate::pattern::shown(command.name());
        self.first_left_out.get_or_insert_with(name);
    }

    /// Runs a command of the engine. Returns whether it exists and succeeded.
    fn run(&self, words: &[&[u8]]) -> bool {
        let Some((row, parent)) = self.rows.find(words) else { return false };
        if !row.spec.arity_admits(words.len()) {
            return false;
        }
        let mut request = Vec::new();
        encode(&mut request, words);
        let mut spans = Spans::new();
        let step = RequestDecoder::new().decode(&request, &Limits::default(), &mut spans);
        if !matches!(step, Ok(Step::Request { .. })) {
            return false;
        }
        let hasher = self.keyspace.hasher();
        let key = |place: usize| Some(exec::prepare(place, &hasher.key(words.get(place)?)));
        let prepared: Vec<_> = places(row, words).into_iter().filter_map(key).collect();
        let mut args = Args::new(&request, &spans, spans.as_slice(), &prepared);
        if parent.is_some() {
            args.skip_subcommand();
        }
        let mut buffer = ReplyBuffer::new();
        let reply = Reply::new(&mut buffer, Protocol::Resp2);
        let call = Invocation {
            spec: &row.spec,
            parent: parent.map(|parent| &parent.spec),
            run: row.run,
            db: self.db,
            blocking: Blocking::Never,
        };
        let done = exec::run(&self.keyspace, &self.env, &call, &prepared, &mut args, reply);
        self.env.garbage.borrow_mut().clear();
        self.env.aftermath.borrow_mut().clear();
        done.is_ok()
    }

    /// A summary for the report.
    pub(super) fn summary(&self) -> String {
        let executed = format!("{} commands after the base were executed", self.executed);
        match &self.first_left_out {
            Some(name) => {
                format!("{executed}, {} were not (the first one was {name})", self.left_out)
            }
            None => executed,
        }
    }

    /// Adds all keys of the final keyspace as records.
    pub(super) fn records(&self, analysis: &mut Analysis) {
        let file = RdbWriter::new(Vec::new(), VERSION_FIELD_TTL);
        let mut file = file.without_checksum().without_compression();
        // Writing to memory cannot fail.
        let _ = snapshot::save(&self.keyspace, &self.env, &mut file, || ());
        if let Ok(bytes) = file.finish() {
            rdb::entries(&bytes[..], analysis);
        }
    }
}
