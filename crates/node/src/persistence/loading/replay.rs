//! The commands of an append-only file, executed as those of a client that waits for no reply.

use crate::core::Core;
use crate::core::session::Session;
use crate::persistence::loading::rdb;
use crate::run::batch::{Batch, Look, REQUESTS_MAX};
use crate::run::dispatch::{self, Flow};
use crate::run::release;
use crate::run::trusted_session;
use brisk_engine::UnixMs;
use brisk_engine::{DbNumber, ReplyBuffer};
use brisk_reactor::{PeerAddr, unix_ms};
use brisk_resp::Limits;
use brisk_structures::reclaim::Participant;
use std::ops::Range;
use std::time::Instant;

/// A command of a file that cannot be executed again.
#[derive(Debug)]
pub(super) struct Unknown {
    pub what: What,
    /// Where in the file it stands before.
    pub position: u64,
}

/// Why it cannot be executed again.
#[derive(Debug)]
pub(super) enum What {
    /// This server does not know a command of this name.
    Command(String),
    /// This server has no such database. Skipped commands would be lost with the next rewrite.
    Database { number: u32, count: u32 },
}

impl Unknown {
    /// For the log.
    pub(super) fn text(&self, file: &str) -> String {
        let before = self.position;
        match &self.what {
            What::Command(name) => format!(
                "Unknown command '{name}' reading the append only file {file}, before byte {before}"
            ),
            What::Database { number: u32::MAX, .. } => format!(
                "The append only file {file} selects what is no database before byte {before}"
            ),
            What::Database { number, count } => format!(
                "The append only file {file} selects database {number} before byte {before}, and this server \
                 has {count}: raise `databases`"
            ),
        }
    }
}

/// A client that the file stands for.
pub(super) struct Replay {
    session: Session,
    batch: Batch,
    replies: ReplyBuffer,
    /// Whole commands, from `at` on not executed yet.
    commands: Vec<u8>,
    at: usize,
    /// The part of the file that they are.
    part: Range<u64>,
}

/// The file is the server's own, so no access rules apply.
fn new_session(core: &Core) -> Session {
    let mut session = trusted_session::new(core, PeerAddr::Unix);
    session.is_replay = true;
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

    /// Takes all commands of a part of the file. All before were executed.
    pub(super) fn take(&mut self, commands: Vec<u8>, part: Range<u64>) {
        (self.commands, self.at, self.part) = (commands, 0, part);
    }

    /// Executes what was taken, or at `until` what has been reached of it; whether that is all. O(that).
    ///
    /// # Errors
    /// A command is not known; those before were executed.
    pub(super) fn go_on(
        &mut self,
        core: &mut Core,
        participant: Option<&Participant>,
        until: Option<Instant>,
    ) -> Result<bool, Unknown> {
        // What a file tells of was not past its deadline then.
        core.env.begin_replay();
        core.is_loading = true;
        // One command after the other waits.
        let delays = rdb::delays(core.shared);
        let most = if delays { 1 } else { REQUESTS_MAX };
        let mut done = Ok(());
        while self.at < self.commands.len() && done.is_ok() {
            done = self.execute_some(core, participant, most);
            core.free_garbage();
            if let Some(participant) = participant {
                participant.quiescent();
            }
            if delays {
                rdb::delay(core.shared);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
        }
        core.is_loading = false;
        core.env.set_now(UnixMs(unix_ms()));
        done.map(|()| self.at >= self.commands.len())
    }

    /// The file has ended: a transaction that was not finished has not happened. The next one begins in
    /// database 0.
    pub(super) fn end_file(&mut self, core: &mut Core) {
        // The file may contain SUBSCRIBE; such a subscription has no receiver.
        release::release(core, &mut self.session);
        self.session = new_session(core);
    }

    /// Executes a batch of so many commands at most.
    fn execute_some(
        &mut self,
        core: &mut Core,
        participant: Option<&Participant>,
        most: usize,
    ) -> Result<(), Unknown> {
        let Replay { session, batch, replies, commands, at, part } = self;
        let shared = core.shared;
        let data = &commands[*at..];
        let look = Look {
            table: shared.table,
            hasher: shared.keyspace.hasher(),
            database: shared.keyspace.database(session.db),
            participant,
        };
        // The reader has found it whole, whatever the limits are today.
        let limits = Limits { bulk_bytes_max: u64::MAX, authenticated: true, ..core.limits };
        let (len, _) = batch.fill(data, most, &mut session.decoder, &limits, &look);
        let unknown = |what: What| Unknown { what, position: part.end };
        for at in 0..batch.len() {
            let request = *batch.request(at);
            shared.quiesce.checkpoint(core.id);
            loop {
                match dispatch::dispatch(core, session, batch, &request, data, replies) {
                    // Nobody else uses keys: what is busy is so for a moment.
                    Flow::Later(_) => std::thread::yield_now(),
                    Flow::Elsewhere => break trusted_session::finish_script(core, session),
                    _ => break,
                }
            }
            if request.row.is_none() {
                let name = batch.args(data, &request);
                let name = String::from_utf8_lossy(name.word(0)).into_owned();
                return Err(unknown(What::Command(name)));
            }
            // A transaction may have selected an existing database after the missing one.
            if let Some(DbNumber(number)) = session.first_lacked {
                let count = shared.keyspace.database_count();
                return Err(unknown(What::Database { number, count }));
            }
            replies.clear();
        }
        core.ran = 0;
        *at += len;
        // At the end also what is no command.
        let rest = if *at < commands.len() { 0 } else { part.end - part.start - *at as u64 };
        shared.snapshots.loading.note_bytes(len as u64 + rest);
        if len == 0 {
            // Not a request after all: the reader and the decoder disagree.
            return Err(unknown(What::Command("?".to_owned())));
        }
        Ok(())
    }
}
