//! What a handler gets to work with.

use crate::base::error::{CommandError, Result};
use crate::call::recorded::RecordedCommand;
use crate::command::args::Args;
use crate::command::{CommandOf, Spec};
use crate::keyspace::{ClientRef, EmptyReply, Key, Keys, UnixMs, WaitRequest};
use crate::reply::{Outcome, Reply};
use crate::types::ValueKind;
use std::borrow::Cow;

/// The function of a data command: synchronous, and blind to sockets, threads and clocks.
pub type Handler = fn(&mut Ctx<'_, '_>, &mut Args<'_>) -> Result<Outcome>;

/// A command of this crate.
pub type Command = CommandOf<Handler>;

/// The world of one command while it runs.
pub struct Ctx<'a, 'k> {
    pub keys: &'a mut Keys<'k>,
    pub reply: Reply<'a>,
    /// The command's own facts.
    pub spec: &'static Spec,
    /// The container's facts if this is a subcommand.
    pub parent: Option<&'static Spec>,
    pub(crate) run: Handler,
    pub(crate) blocking: Blocking,
}

/// What becomes of a blocking command that cannot be answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// It is answered as if it had waited in vain: in transactions and scripts.
    Never,
    /// Its client waits.
    Client(ClientRef),
    /// Its client goes on waiting: the command is run again to see whether it can be served.
    Again,
}

impl Ctx<'_, '_> {
    /// Deletes a key, if it is there, whose new deadline is past already.
    pub fn expire_key(&mut self, key: &Key<'_>) {
        if self.keys.delete(key) {
            let lazy = self.keys.env().settings.lazy_expire;
            let word: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
            self.keys.propagate(|| vec![word.to_vec(), key.bytes.to_vec()]);
        }
    }

    /// Lets the client wait for a value of type `kind` under one of `keys`, all of which the
    /// command has looked at in vain. The command, as `words`, is run again when there is one.
    /// `timeout_ms` 0 is for ever.
    pub fn wait<W: AsRef<[u8]>>(
        &mut self,
        words: &[W],
        kind: ValueKind,
        keys: &[Key<'_>],
        timeout_ms: u64,
        unserved: EmptyReply,
    ) -> Outcome {
        self.wait_in_group(words, kind, keys, None, timeout_ms, unserved)
    }

    /// As [`Ctx::wait`] for a member of a group: what one of them is given the others are not, and
    /// they hear of the end of their key.
    pub fn wait_in_group<W: AsRef<[u8]>>(
        &mut self,
        words: &[W],
        kind: ValueKind,
        keys: &[Key<'_>],
        group: Option<&[u8]>,
        timeout_ms: u64,
        unserved: EmptyReply,
    ) -> Outcome {
        let client = match self.blocking {
            Blocking::Never => return unserved.reply(&mut self.reply),
            Blocking::Again => return Outcome::Waiting,
            Blocking::Client(client) => client,
        };
        if self.keys.used_undeclared() || !keys.iter().all(|key| self.keys.holds(key)) {
            // The command ends with an error.
            return unserved.reply(&mut self.reply);
        }
        let deadline_ms = (timeout_ms > 0).then(|| self.now().0.saturating_add(timeout_ms));
        let command = RecordedCommand::new(self, words);
        let request = WaitRequest { client, command, kind, keys, group, deadline_ms };
        let waiter = self.keys.wait(request);
        *self.keys.env().waiter.borrow_mut() = Some(waiter);
        Outcome::Waiting
    }

    /// The moment the batch began.
    #[inline]
    pub fn now(&self) -> UnixMs {
        self.keys.now()
    }

    /// Whether what expires at this moment has expired already.
    #[inline]
    pub fn has_passed(&self, deadline: UnixMs) -> bool {
        deadline <= self.keys.env().horizon()
    }

    /// `get`, or `client|list` for a subcommand.
    pub fn command_name(&self) -> Cow<'static, str> {
        full_name(self.parent, self.spec)
    }

    /// The error for a time to live that is not positive or overflows.
    pub fn invalid_expire(&self) -> CommandError {
        CommandError::InvalidExpire(self.command_name())
    }

    /// The error for a wrong number of arguments that arity alone does not catch.
    pub fn wrong_arity(&self) -> CommandError {
        CommandError::Arity(self.command_name())
    }
}

/// `get`, or `client|list` for a subcommand.
pub fn full_name(parent: Option<&'static Spec>, spec: &'static Spec) -> Cow<'static, str> {
    match parent {
        Some(parent) => Cow::Owned(format!("{}|{}", parent.name, spec.name)),
        None => Cow::Borrowed(spec.name),
    }
}
