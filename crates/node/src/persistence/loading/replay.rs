//! Executes the commands of an append-only file like the commands of a client whose replies are not read.

use crate::core::Core;
use crate::core::session::Session;
use crate::persistence::loading::rdb;
use crate::run::batch::{Batch, KeyLookup, REQUESTS_MAX};
use crate::run::dispatch::{self, Flow};
use crate::run::release;
use crate::run::trusted_session;
use brisk_engine::UnixMs;
use brisk_engine::{DbNumber, ReplyBuffer};
use brisk_reactor::{PeerAddr, unix_ms};
use brisk_structures::reclaim::Participant;
use std::ops::Range;
use std::time::Instant;

/// A command in a file, and the reason why it cannot be replayed.
#[derive(Debug)]
pub(super) struct ReplayError {
    pub what: Unreplayable,
    /// The end of the part of the file that contains the command.
    pub position: u64,
}

/// Reasons why a command cannot be replayed.
#[derive(Debug)]
pub(super) enum Unreplayable {
    /// This server does not know a command of this name.
    Command(String),
    /// This server has no such database. The command is not skipped, because the next rewrite would lose it.
    Database { number: u32, count: u32 },
}

impl ReplayError {
    /// The text for the log.
    pub(super) fn text(&self, file: &str) -> String {
        let before = self.position;
        match &self.what {
            Unreplayable::Command(name) => format!(
                "Unknown command '{name}' reading the append only file {file}, before byte {before}"
            ),
            Unreplayable::Database { number: u32::MAX, .. } => format!(
                "The append only file {file} selects an invalid database before byte {before}"
            ),
            Unreplayable::Database { number, count } => format!(
                "The append only file {file} selects database {number} before byte {before}, and this server \
                 has {count}: raise `databases`"
            ),
        }
    }
}

/// The state of replaying a file: the session, and commands that have not been executed yet.
pub(super) struct Replay {
    session: Session,
    batch: Batch,
    replies: ReplyBuffer,
    /// Complete commands. The commands from `at` on have not been executed yet.
    commands: Vec<u8>,
    at: usize,
    /// The part of the file that contains the commands.
    part: Range<u64>,
}

/// A session without access rules, because the server wrote the file itself.
fn new_session(core: &Core) -> Session {
    let mut session = trusted_session::new(core, PeerAddr::Unix);
    session.source.begin_replay();
    session
}

impl Replay {
    pub(super) fn new(core: &Core) -> Replay {
        Replay {
            session: new_session(core),
            batch: Batch::default(),
            replies: ReplyBuffer::new(),
            commands: Vec::new(),
            at: 0,
            part: 0..0,
        }
    }

    /// Takes all commands of a part of the file. All earlier commands were executed.
    pub(super) fn take(&mut self, commands: Vec<u8>, part: Range<u64>) {
        (self.commands, self.at, self.part) = (commands, 0, part);
    }

    /// Executes the commands that were taken, until all are executed or `until` has passed. Returns true if
    /// all are executed. O(commands).
    ///
    /// # Errors
    /// A command is unknown. Earlier commands were executed.
    pub(super) fn advance(
        &mut self,
        core: &mut Core,
        participant: Option<&Participant>,
        until: Option<Instant>,
    ) -> Result<bool, ReplayError> {
        // No key counts as expired: the keys that the commands use had not expired when the commands were written.
        core.env.begin_replay();
        core.unit.begin_loading();
        // With a configured delay, each command is followed by a pause.
        let delays = rdb::delays(core.shared);
        let most = if delays { 1 } else { REQUESTS_MAX };
        let mut done = Ok(());
        while self.at < self.commands.len() && done.is_ok() {
            done = self.execute_some(core, participant, most);
            core.free_garbage();
            if let Some(participant) = participant {
                participant.announce_boundary();
            }
            if delays {
                rdb::delay(core.shared);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
        }
        core.unit.end_loading();
        core.env.set_now(UnixMs(unix_ms()));
        done.map(|()| self.at >= self.commands.len())
    }

    /// Ends a file and drops its unfinished transaction. The next file begins in database 0.
    pub(super) fn end_file(&mut self, core: &mut Core) {
        // The file may contain SUBSCRIBE. Drop the subscription, which has no receiver.
        release::release(core, &mut self.session);
        self.session = new_session(core);
    }

    /// Executes a batch of at most `most` commands.
    fn execute_some(
        &mut self,
        core: &mut Core,
        participant: Option<&Participant>,
        most: usize,
    ) -> Result<(), ReplayError> {
        let Replay { session, batch, replies, commands, at, part } = self;
        let shared = core.shared;
        let data = &commands[*at..];
        let look = KeyLookup {
            table: shared.table,
            hasher: shared.keyspace.hasher(),
            database: shared.keyspace.database(session.db()),
            participant,
        };
        // The current limits do not apply, because the reader has already accepted the commands.
        let limits = core.limits.accepted_requests();
        let (len, _) = batch.fill(data, most, session.connection.decoder_mut(), &limits, &look);
        let unknown = |what: Unreplayable| ReplayError { what, position: part.end };
        for at in 0..batch.len() {
            let request = *batch.request(at);
            shared.quiesce.checkpoint(core.id);
            loop {
                match dispatch::dispatch(core, session, batch, &request, data, replies) {
                    // No other command uses keys at this time, so a busy slot becomes free very soon.
                    Flow::Later(_) => std::thread::yield_now(),
                    Flow::Elsewhere => break trusted_session::finish_script(core, session),
                    _ => break,
                }
            }
            if request.row.is_none() {
                let name = batch.args(data, &request);
                let name = String::from_utf8_lossy(name.argument(0)).into_owned();
                return Err(unknown(Unreplayable::Command(name)));
            }
            // A transaction may have selected an existing database after the missing one.
            if let Some(DbNumber(number)) = session.source.first_missing_db() {
                let count = shared.keyspace.database_count();
                return Err(unknown(Unreplayable::Database { number, count }));
            }
            replies.clear();
        }
        core.accounting.take_ran();
        *at += len;
        // The last batch also counts the bytes between commands.
        let rest = if *at < commands.len() { 0 } else { part.end - part.start - *at as u64 };
        shared.persistence.snapshots.loading.note_bytes(len as u64 + rest);
        if len == 0 {
            // The decoder found no request, although the reader did.
            return Err(unknown(Unreplayable::Command("?".to_owned())));
        }
        Ok(())
    }
}
