//! The context in which the function of a server command runs.

use crate::core::Core;
use crate::core::session::Session;
use brisk_engine::args::{Args, PreparedKey};
use brisk_engine::keyspace::{ClientRef, DbIndex, Keys};
use brisk_engine::table::Row;
use brisk_engine::{CommandError, Outcome, Reply, Result, UnixMs};

/// Maximum number of bytes of an unknown argument that an error repeats.
pub(crate) const ECHO_BYTES_MAX: usize = 128;

/// The function of a command that needs the session or the server.
pub type ServerHandler = fn(&mut Call<'_>, &mut Args<'_>) -> Result<Outcome>;

/// A command that needs the session or the server.
pub type Command = brisk_engine::command::CommandOf<ServerHandler>;

/// The context of one server command while it runs.
pub struct Call<'c> {
    /// The state of this worker; `core.shared` is the state that all workers share.
    pub core: &'c mut Core,
    pub session: &'c mut Session,
    pub reply: Reply<'c>,
    pub row: &'static Row,
    /// The keys that the key specifications found.
    pub prepared: &'c [PreparedKey],
}

impl Call<'_> {
    /// The time at which the batch began.
    pub fn now(&self) -> UnixMs {
        self.core.env.now()
    }

    /// Runs `action` with the command's keys locked in database `db`.
    pub fn with_keys<R>(
        &mut self,
        db: DbIndex,
        action: impl FnOnce(&mut Keys<'_>) -> Result<R>,
    ) -> Result<R> {
        let (spec, parent) = (self.row.spec, self.row.parent);
        let action = |keys: &mut Keys<'_>| {
            let result = action(keys);
            keys.refuse_undeclared(result, spec, parent)
        };
        if let Some(unit) = self.core.unit.current() {
            return unit.with_keys(&self.core.env, db, self.prepared, action);
        }
        let keyspace = &self.core.shared.keyspace;
        let mut keys = Keys::lock(keyspace, &self.core.env, db, self.prepared)?;
        action(&mut keys)
    }

    /// The caller, for commands whose reply is sent later.
    pub fn client(&self) -> ClientRef {
        ClientRef {
            worker: self.core.id,
            token: self.session.token.to_u64(),
            id: self.session.id(),
            protocol: self.session.protocol(),
        }
    }

    /// Reports whether the command runs within EXEC, which needs a reply from each command.
    pub fn in_exec(&self) -> bool {
        self.core.unit.is_running()
    }

    /// Hides argument `index` of the request from the slow log and from monitors.
    pub fn redact(&mut self, index: usize) {
        self.core.accounting.redact(index);
    }

    /// Replies with the lines of a HELP text.
    pub fn help(&mut self, lines: &[&str]) -> Outcome {
        let name = self.row.parent.unwrap_or(self.row.spec).name.to_ascii_uppercase();
        self.reply.help(&name, lines)
    }

    /// The error for a subcommand's wrong number or combination of arguments.
    pub fn subcommand_syntax(&self, word: &[u8]) -> CommandError {
        let name = self.row.parent.unwrap_or(self.row.spec).name.to_ascii_uppercase();
        let word = &word[..word.len().min(ECHO_BYTES_MAX)];
        let before = "ERR unknown subcommand or wrong number of arguments for '";
        CommandError::text_around(before, word, &format!("'. Try {name} HELP."))
    }

    /// The error for a wrong number of arguments that arity alone does not catch.
    pub fn wrong_arity(&self) -> CommandError {
        CommandError::Arity(self.row.full_name().into())
    }
}
