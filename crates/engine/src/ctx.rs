//! What a handler gets to work with.

use crate::args::Args;
use crate::command::{CommandOf, Spec};
use crate::error::{CommandError, Result};
use crate::keyspace::{Keys, UnixMs};
use crate::reply::{Outcome, Reply};
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
    /// False inside transactions and scripts: a blocking command answers as if it timed out.
    pub may_block: bool,
}

impl Ctx<'_, '_> {
    /// The moment the batch began.
    #[inline]
    pub fn now(&self) -> UnixMs {
        self.keys.now()
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
