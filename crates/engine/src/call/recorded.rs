//! A recorded call: the command and its request, to run it again or to show it.

use crate::base::place::{DbIndex, prepare};
use crate::call::ctx::{Blocking, Ctx, Handler};
use crate::command::args::{Args, PreparedKey};
use crate::command::keyspec;
use crate::command::{Flags, Spec};
use crate::keyspace::Keyspace;
use brisk_resp::{Limits, RequestDecoder, Spans, Step, request};

/// The command to run, and how.
#[derive(Clone, Copy)]
pub struct Invocation {
    pub spec: &'static Spec,
    pub parent: Option<&'static Spec>,
    pub run: Handler,
    pub db: DbIndex,
    /// The behavior if the command has to wait.
    pub blocking: Blocking,
}

/// A command with its request, to be run again.
pub(crate) struct RecordedCommand {
    spec: &'static Spec,
    parent: Option<&'static Spec>,
    run: Handler,
    db: DbIndex,
    request: Vec<u8>,
}

impl RecordedCommand {
    /// Records the command that runs in `ctx`, with the request `words`.
    pub(crate) fn new<W: AsRef<[u8]>>(ctx: &Ctx<'_, '_>, words: &[W]) -> RecordedCommand {
        let (spec, parent, run) = (ctx.spec, ctx.parent, ctx.run);
        RecordedCommand { spec, parent, run, db: ctx.keys.db(), request: request_of(words) }
    }

    /// Records a command of another crate. Its request is kept only to be shown.
    pub(crate) fn unrepeatable<W: AsRef<[u8]>>(
        spec: &'static Spec,
        parent: Option<&'static Spec>,
        db: DbIndex,
        words: &[W],
    ) -> RecordedCommand {
        let run: Handler = |ctx, _| Err(ctx.wrong_arity());
        RecordedCommand { spec, parent, run, db, request: request_of(words) }
    }

    /// Bytes of memory of the copied request.
    pub(crate) fn request_bytes(&self) -> u64 {
        self.request.capacity() as u64
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

    /// Reports whether the command may change the data.
    pub(crate) fn writes(&self) -> bool {
        self.spec.flags.contains(Flags::WRITE)
    }

    pub(crate) fn invocation(&self, blocking: Blocking) -> Invocation {
        let RecordedCommand { spec, parent, run, db, .. } = *self;
        Invocation { spec, parent, run, db, blocking }
    }

    /// Calls `show` with the arguments of the request and the keys among them.
    pub(crate) fn with_args<R>(
        &self,
        keyspace: &Keyspace,
        show: impl FnOnce(&mut Args<'_>, &[PreparedKey]) -> R,
    ) -> R {
        let mut spans = Spans::new();
        let limits = Limits { bulk_bytes_max: u64::MAX, ..Limits::default() };
        let step = RequestDecoder::new().decode(&self.request, &limits, &mut spans);
        debug_assert!(matches!(step, Ok(Step::Request { .. })), "written by request::encode");
        let list = spans.as_slice();
        let word = |at: usize| spans.bytes(&self.request, list[at]);
        let hasher = keyspace.hasher();
        let mut prepared: Vec<PreparedKey> = Vec::new();
        keyspec::each_key(self.spec, list.len(), &word, |index| {
            prepared.push(prepare(index, &hasher.key(word(index))));
        });
        let mut args = Args::new(&self.request, &spans, list, &prepared);
        if self.parent.is_some() {
            args.skip_subcommand();
        }
        show(&mut args, &prepared)
    }
}

fn request_of<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = Vec::new();
    request::encode(&mut bytes, words);
    bytes
}
