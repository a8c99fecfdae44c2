//! Running one data command: lock its slots, drop its expired keys, call the handler, close.

use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Blocking, Ctx};
use crate::command::Flags;
use crate::command::args::{Args, PreparedKey};
use crate::env::Env;
use crate::keyspace::{Keys, Keyspace, Ticket};
use crate::reply::{Outcome, Reply};

pub use crate::base::place::prepare;
pub use crate::call::recorded::Invocation;

/// What a command that ran left behind.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    pub outcome: Outcome,
    /// How many changes it made.
    pub dirty: u64,
    /// Set if its effects are to be propagated.
    pub ticket: Option<Ticket>,
}

/// Runs one command with its slots locked. On an error nothing was changed by the handler's own
/// doing, and the caller removes what it wrote into `reply`; [`CommandError::SlotBusy`] and
/// [`CommandError::SlotFrozen`] mean: run it again later.
#[inline]
pub fn run(
    keyspace: &Keyspace,
    env: &Env,
    call: &Invocation,
    prepared: &[PreparedKey],
    args: &mut Args<'_>,
    reply: Reply<'_>,
) -> Result<Done> {
    let mut keys = Keys::unlocked(keyspace, env, call.db);
    keys.hold(prepared)?;
    if keys.is_frozen() && call.spec.flags.contains(Flags::WRITE) {
        return Err(CommandError::SlotFrozen);
    }
    keys.choose_fate_of_expired(call.spec.flags);
    if !keys.remove_expired(args.keys(), call.blocking != Blocking::Never) {
        // What is gone is reported now; the rest comes with the next attempts, between which
        // others have their turn.
        keys.close(args.words());
        return Err(CommandError::SlotBusy);
    }
    run_held(&mut keys, call, args, reply)
}

/// The part of [`run`] behind the locks.
#[inline]
pub(crate) fn run_held(
    keys: &mut Keys<'_>,
    call: &Invocation,
    args: &mut Args<'_>,
    reply: Reply<'_>,
) -> Result<Done> {
    let Invocation { spec, parent, run, blocking, .. } = *call;
    let result = run(&mut Ctx { keys, reply, spec, parent, run, blocking }, args);
    keys.reveal_expired();
    let ticket = if keys.env().hooks.get().is_empty() {
        None
    } else {
        if spec.flags.contains(Flags::READONLY) {
            keys.remember_all(args);
        }
        let ticket = keys.close(args.words());
        keys.note_shown();
        ticket
    };
    let dirty = keys.dirty();
    result.map(|outcome| Done { outcome, dirty, ticket })
}
