//! Running one data command: lock its slots, drop its expired keys, call the handler, close.

use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Blocking, Ctx, Handler};
use crate::command::args::{Args, PreparedKey};
use crate::command::keyspec;
use crate::command::{Flags, Spec};
use crate::env::Env;
use crate::keyspace::{DbIndex, Key, Keys, Keyspace, Ticket};
use crate::reply::{Outcome, Reply};
use brisk_resp::{Limits, RequestDecoder, Spans, Step};

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
        // What is gone is told now; the rest comes with the next attempts, between which others
        // have their turn.
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
    let ticket = if keys.env().armed.get().is_empty() {
        None
    } else {
        if spec.flags.contains(Flags::READONLY) {
            keys.remember_all(args);
        }
        keys.close(args.words())
    };
    let dirty = keys.dirty();
    result.map(|outcome| Done { outcome, dirty, ticket })
}

/// A command with its request, to be run again.
pub(crate) struct Recorded {
    spec: &'static Spec,
    parent: Option<&'static Spec>,
    run: Handler,
    db: DbIndex,
    request: Vec<u8>,
}

impl Recorded {
    /// The command that runs in `ctx`, asked for by `request`.
    pub(crate) fn new(ctx: &Ctx<'_, '_>, request: Vec<u8>) -> Recorded {
        let (spec, parent, run) = (ctx.spec, ctx.parent, ctx.run);
        Recorded { spec, parent, run, db: ctx.keys.db(), request }
    }

    /// A command of another crate, whose request is kept for being shown.
    pub(crate) fn unrepeatable(
        spec: &'static Spec,
        parent: Option<&'static Spec>,
        db: DbIndex,
        request: Vec<u8>,
    ) -> Recorded {
        let run: Handler = |ctx, _| Err(ctx.wrong_arity());
        Recorded { spec, parent, run, db, request }
    }

    pub(crate) fn spec(&self) -> &'static Spec {
        self.spec
    }

    pub(crate) fn parent(&self) -> Option<&'static Spec> {
        self.parent
    }

    pub(crate) fn db(&self) -> DbIndex {
        self.db
    }

    /// Whether it may change the data.
    pub(crate) fn writes(&self) -> bool {
        self.spec.flags.contains(Flags::WRITE)
    }

    pub(crate) fn invocation(&self, blocking: Blocking) -> Invocation {
        let Recorded { spec, parent, run, db, .. } = *self;
        Invocation { spec, parent, run, db, blocking }
    }

    /// Shows the words of the request and the keys among them.
    pub(crate) fn with_args<R>(
        &self,
        keyspace: &Keyspace,
        show: impl FnOnce(&mut Args<'_>, &[PreparedKey]) -> R,
    ) -> R {
        let mut spans = Spans::new();
        let limits = Limits { bulk_bytes_max: u64::MAX, ..Limits::default() };
        let step = RequestDecoder::new().decode(&self.request, &limits, &mut spans);
        debug_assert!(matches!(step, Ok(Step::Request { .. })), "made by encode_request");
        let list = spans.as_slice();
        let word = |at: usize| spans.bytes(&self.request, list[at]);
        let hasher = keyspace.hasher();
        let found = keyspec::find_keys(self.spec, list.len(), &word).unwrap_or_default();
        let prepared: Vec<PreparedKey> =
            found.iter().map(|key| prepare(key.index, &hasher.key(word(key.index)))).collect();
        let mut args = Args::new(&self.request, &spans, list, &prepared, hasher);
        if self.parent.is_some() {
            args.skip_subcommand();
        }
        show(&mut args, &prepared)
    }
}

/// The prepared form of a key.
pub fn prepare(index: usize, key: &Key<'_>) -> PreparedKey {
    PreparedKey { index: index as u32, slot: key.slot, hash: key.hash }
}
