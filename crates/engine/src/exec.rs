//! Running one data command: lock its slots, drop its expired keys, call the handler, close.

use crate::args::{Args, PreparedKey};
use crate::command::Spec;
use crate::ctx::{Blocking, Ctx, Handler};
use crate::env::Env;
use crate::error::Result;
use crate::keyspace::{DbIndex, Key, Keys, Keyspace, Ticket};
use crate::reply::{Outcome, Reply};

/// What a command that ran left behind.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    pub outcome: Outcome,
    /// How many changes it made.
    pub dirty: u64,
    /// Set if its effects are to be propagated.
    pub ticket: Option<Ticket>,
}

/// The command to run, and how.
#[derive(Clone, Copy)]
pub struct Invocation {
    pub spec: &'static Spec,
    pub parent: Option<&'static Spec>,
    pub run: Handler,
    pub db: DbIndex,
    /// Who waits if the command cannot be answered yet.
    pub blocking: Blocking,
}

/// Runs one command with its slots locked. On an error nothing was changed by the handler's own
/// doing, and the caller removes what it wrote into `reply`; [`crate::CommandError::SlotBusy`]
/// means: run it again later.
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
    keys.remove_expired(args.keys());
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
    let ticket = keys.close(args.words());
    let dirty = keys.dirty();
    result.map(|outcome| Done { outcome, dirty, ticket })
}

/// The prepared form of a key.
pub fn prepare(index: usize, key: &Key<'_>) -> PreparedKey {
    PreparedKey { index: index as u32, slot: key.slot, hash: key.hash }
}
