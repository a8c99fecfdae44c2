//! The context of a command handler.

use crate::base::error::{CommandError, Result};
use crate::call::recorded::RecordedCommand;
use crate::command::args::Args;
use crate::command::{CommandOf, Spec};
use crate::keyspace::{ClientRef, EmptyReply, Key, Keys, UnixMs, WaitRequest};
use crate::reply::{Outcome, Reply};
use crate::types::ValueKind;
use std::borrow::Cow;

/// The function of a data command. It is synchronous, and uses no sockets, threads or clocks.
pub type Handler = fn(&mut Ctx<'_, '_>, &mut Args<'_>) -> Result<Outcome>;

/// A command of this crate.
pub type Command = CommandOf<Handler>;

/// The environment of one command while it runs.
pub struct Ctx<'a, 'k> {
    pub keys: &'a mut Keys<'k>,
    pub reply: Reply<'a>,
    /// The command's specification.
    pub spec: &'static Spec,
    /// The specification of the container if this is a subcommand.
    pub parent: Option<&'static Spec>,
    pub(crate) run: Handler,
    pub(crate) blocking: Blocking,
}

/// The behavior of a blocking command that has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// The command returns immediately without a result. This is the case in transactions and
    /// scripts.
    Never,
    /// The client waits.
    Client(ClientRef),
    /// The client continues to wait: the command is run again to see if it can be served now.
    Again,
}

impl Ctx<'_, '_> {
    /// Deletes a key whose new expiry time has already passed, if the key exists.
    pub fn expire_key(&mut self, key: &Key<'_>) {
        if self.keys.delete(key) {
            let lazy = self.keys.env().settings.lazy_expire;
            let word: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
            self.keys.propagate(|| vec![word.to_vec(), key.bytes.to_vec()]);
        }
    }

    /// Makes the client wait for a value of type `kind` under one of `keys`. The command has found
    /// none of them usable. The command, with the arguments `words`, is run again when a key
    /// becomes usable. `timeout_ms` 0 means no timeout.
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

    /// Like [`Ctx::wait`], for a client in a consumer group. Each entry is delivered to one client
    /// of the group. When the key is deleted, all clients of the group are notified.
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

    /// The time at which the batch began.
    #[inline]
    pub fn now(&self) -> UnixMs {
        self.keys.now()
    }

    /// Reports whether a key with this expiry time has expired.
    #[inline]
    pub fn has_passed(&self, deadline: UnixMs) -> bool {
        deadline <= self.keys.env().horizon()
    }

    /// `get`, or `client|list` for a subcommand.
    pub fn command_name(&self) -> Cow<'static, str> {
        full_name(self.parent, self.spec)
    }

    /// The error for a TTL that is not positive or overflows.
    pub fn invalid_expire(&self) -> CommandError {
        CommandError::InvalidExpire(self.command_name())
    }

    /// The error for a wrong number of arguments that the arity does not detect.
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
