//! The source of a session's commands: a client, or an append-only file or primary, whose commands were executed
//! before.

use super::Session;
use brisk_engine::DbNumber;

/// The source of commands. For a source whose commands are repeated here, also the state of the repetition.
#[derive(Default)]
pub struct CommandSource {
    /// True if an append-only file is being replayed. Its commands never wait.
    is_replay: bool,
    /// True if the stream of this server's primary is being applied. The primary has already executed these commands.
    is_primary: bool,
    /// True if the last command was rejected, failed, or ran nothing. The append-only file does not get this command.
    ran_nothing: bool,
    /// The database that the stream selected last, if it does not exist here. Commands that use the selected database
    /// are skipped until the next successful SELECT.
    missing_db: Option<DbNumber>,
    /// The first selected database that does not exist here.
    first_missing_db: Option<DbNumber>,
}

impl CommandSource {
    /// Reports whether the commands come from an append-only file.
    #[inline]
    pub fn is_replay(&self) -> bool {
        self.is_replay
    }

    /// Reports whether the commands come from this server's primary.
    #[inline]
    pub fn is_primary(&self) -> bool {
        self.is_primary
    }

    /// Notes that the commands come from an append-only file from now on.
    pub fn begin_replay(&mut self) {
        self.is_replay = true;
    }

    /// Notes that the commands come from this server's primary from now on.
    pub fn follow_primary(&mut self) {
        self.is_primary = true;
    }

    /// Reports whether the last command was rejected, failed, or ran nothing.
    pub(crate) fn ran_nothing(&self) -> bool {
        self.ran_nothing
    }

    /// Notes that the current command was rejected, failed, or ran nothing.
    pub(crate) fn note_ran_nothing(&mut self) {
        self.ran_nothing = true;
    }

    /// Called before a command.
    pub(crate) fn begin_command(&mut self) {
        self.ran_nothing = false;
    }

    /// Reports whether the selected database does not exist here.
    #[inline]
    pub(crate) fn lacks_db(&self) -> bool {
        self.missing_db.is_some()
    }

    /// The first selected database that does not exist here.
    pub(crate) fn first_missing_db(&self) -> Option<DbNumber> {
        self.first_missing_db
    }

    /// Notes that an existing database was selected.
    #[inline]
    pub(super) fn found_db(&mut self) {
        self.missing_db = None;
    }

    /// Notes that a database that does not exist here was selected.
    pub fn select_missing(&mut self, db: DbNumber) {
        self.missing_db = Some(db);
        self.first_missing_db.get_or_insert(db);
    }
}

impl Session {
    /// Reports whether the session's commands have already been executed, earlier or on another server, and are
    /// repeated here. They are not rejected and do not wait for other sessions.
    #[inline]
    pub fn repeats(&self) -> bool {
        self.source.is_replay || self.source.is_primary
    }

    /// The number of the database that the stream selected last.
    pub fn selected(&self) -> DbNumber {
        self.source.missing_db.unwrap_or_else(|| self.db().into())
    }
}
