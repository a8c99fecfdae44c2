//! The source of a session's commands: a client, or a file or primary whose commands were executed before.

use super::Session;
use brisk_engine::DbNumber;

/// The source of commands, and the state of a source whose commands are repeated here.
#[derive(Default)]
pub struct CommandSource {
    /// An append-only file is replayed: its commands wait for nothing.
    is_replay: bool,
    /// The stream of this server's primary is applied: its commands were executed there.
    is_primary: bool,
    /// The last command was rejected, failed, or ran nothing. It is kept out of the append-only file.
    ran_nothing: bool,
    /// The stream selected this database, which does not exist here. Commands that use the selected
    /// database are skipped until the next successful SELECT.
    missing_db: Option<DbNumber>,
    /// The first selected database that does not exist here.
    first_missing_db: Option<DbNumber>,
}

impl CommandSource {
    /// Reports whether its commands come from an append-only file.
    #[inline]
    pub fn is_replay(&self) -> bool {
        self.is_replay
    }

    /// Reports whether its commands come from this server's primary.
    #[inline]
    pub fn is_primary(&self) -> bool {
        self.is_primary
    }

    /// Its commands come from an append-only file from now on.
    pub fn begin_replay(&mut self) {
        self.is_replay = true;
    }

    /// Its commands come from this server's primary from now on.
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

    /// A database that exists was selected.
    #[inline]
    pub(super) fn found_db(&mut self) {
        self.missing_db = None;
    }

    /// Notes that a database was selected that does not exist here.
    pub fn select_missing(&mut self, db: DbNumber) {
        self.missing_db = Some(db);
        self.first_missing_db.get_or_insert(db);
    }
}

impl Session {
    /// Reports whether its commands were executed before, earlier or on another server, and are
    /// repeated here. They are not rejected, and do not wait for other sessions.
    #[inline]
    pub fn repeats(&self) -> bool {
        self.source.is_replay || self.source.is_primary
    }

    /// The number of the database that the stream selected last.
    pub fn selected(&self) -> DbNumber {
        self.source.missing_db.unwrap_or_else(|| self.db().into())
    }
}
