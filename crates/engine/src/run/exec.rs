//! Running one data command: lock its slots, remove its expired keys, call the handler, close.

use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Blocking, Ctx};
use crate::command::Flags;
use crate::command::args::{Args, PreparedKey};
use crate::env::Env;
use crate::keyspace::{Keys, Keyspace, Ticket};
use crate::reply::{Outcome, Reply};

pub use crate::base::place::prepare;
pub use crate::call::recorded::Invocation;

/// The result of a command that ran.
#[derive(Debug, Clone, Copy)]
pub struct Executed {
    pub outcome: Outcome,
    /// Number of changes.
    pub dirty: u64,
    /// `Some` if the command's effects have to be propagated.
    pub ticket: Option<Ticket>,
}

/// Runs one command with its slots locked. If it returns an error, the handler has changed nothing,
/// and the caller removes the output from `reply`. [`CommandError::SlotBusy`] and
/// [`CommandError::SlotFrozen`] mean that the command has to be run again later.
#[inline]
pub fn run(
    keyspace: &Keyspace,
    env: &Env,
    call: &Invocation,
    prepared: &[PreparedKey],
    args: &mut Args<'_>,
    reply: Reply<'_>,
) -> Result<Executed> {
    let mut keys = Keys::unlocked(keyspace, env, call.db);
    keys.hold(prepared)?;
    if keys.is_frozen() && call.spec.flags.contains(Flags::WRITE) {
        return Err(CommandError::SlotFrozen);
    }
    keys.choose_expiry_mode(call.spec.flags);
    if !keys.remove_expired(args.keys(), call.blocking != Blocking::Never) {
        // These removals are propagated now. The next attempts remove the other expired keys, and
        // other commands run in between.
        keys.close(|out| args.encode(out));
        return Err(CommandError::SlotBusy);
    }
    run_held(&mut keys, call, args, reply)
}

/// The part of [`run`] after the locks are taken.
#[inline]
pub(crate) fn run_held(
    keys: &mut Keys<'_>,
    call: &Invocation,
    args: &mut Args<'_>,
    reply: Reply<'_>,
) -> Result<Executed> {
    let Invocation { spec, parent, run, blocking, .. } = *call;
    let mut result = run(&mut Ctx { keys, reply, spec, parent, run, blocking }, args);
    if result.is_err() || keys.used_undeclared() {
        result = refuse_undeclared(keys, call, result);
    }
    keys.reveal_expired();
    let ticket = if keys.env().hooks.get().is_empty() {
        None
    } else {
        if spec.flags.contains(Flags::READONLY) {
            keys.remember_all(args);
        }
        let ticket = keys.close(|out| args.encode(out));
        keys.note_shown();
        ticket
    };
    let dirty = keys.dirty();
    result.map(|outcome| Executed { outcome, dirty, ticket })
}

/// The result of a command that failed or used a key that it does not declare.
#[cold]
fn refuse_undeclared(
    keys: &mut Keys<'_>,
    call: &Invocation,
    result: Result<Outcome>,
) -> Result<Outcome> {
    let result = keys.refuse_undeclared(result, call.spec, call.parent);
    if matches!(result, Err(CommandError::UndeclaredKey(_))) && keys.env().take_long().is_some() {
        // The client gets the error, so no part of the command is computed on another thread.
        keys.thaw();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::ctx::Handler;
    use crate::command::{KeySpec, Spec};
    use crate::env::effect::Hooks;
    use crate::keyspace::{ClientRef, DbIndex, EmptyReply, Key, Overwrite, UnixMs};
    use crate::reply::ReplyBuffer;
    use crate::testing::{Db, take_transactions};
    use crate::types::list::{End, List};
    use crate::types::string::{RawString, Str};
    use crate::types::{Collection, Edit, ValueKind};
    use brisk_resp::{Limits, Protocol, RequestDecoder, Spans, request};

    static SPEC: Spec =
        Spec { name: "test", flags: Flags::WRITE, keys: &[KeySpec::at(1)], ..Spec::EMPTY };

    /// A use of an undeclared key (the second key); the first key is declared.
    type Fault = fn(&mut Ctx<'_, '_>, &Key<'_>, &Key<'_>) -> Result<Outcome>;

    const FAULTS: &[(&str, Fault)] = &[
        ("open", |ctx, _, other| {
            // Handlers may ignore an error, as MGET does.
            let _ = ctx.keys.open::<Str>(other);
            Ok(ctx.reply.ok())
        }),
        ("open_mut", |ctx, _, other| {
            ctx.keys.open_mut::<Str>(other)?;
            Ok(ctx.reply.ok())
        }),
        ("inspect", |ctx, _, other| {
            assert!(ctx.keys.inspect(other).is_none() && ctx.keys.peek(other).is_none());
            Ok(ctx.reply.ok())
        }),
        ("append", |ctx, _, other| {
            ctx.keys.open_or_insert_string(other)?.append(b"x", "append");
            Ok(ctx.reply.ok())
        }),
        ("set", |ctx, _, other| {
            ctx.keys.set_string(other, b"x", Overwrite::ExpireAt(UnixMs(9000)), "set");
            Ok(ctx.reply.ok())
        }),
        ("delete", |ctx, _, other| {
            ctx.keys.delete(other);
            Ok(ctx.reply.ok())
        }),
        ("rename", |ctx, own, other| {
            ctx.keys.rename(own, other);
            Ok(ctx.reply.ok())
        }),
        ("rename back", |ctx, own, other| {
            ctx.keys.rename(other, own);
            Ok(ctx.reply.ok())
        }),
        ("copy", |ctx, own, other| {
            ctx.keys.copy_to(own, DbIndex::of(0), other);
            Ok(ctx.reply.ok())
        }),
        ("move", |ctx, own, _| {
            ctx.keys.move_to(own, DbIndex::of(1));
            Ok(ctx.reply.ok())
        }),
        ("push", |ctx, _, other| {
            ctx.keys.upsert::<List, _>(other, |list, limits| {
                list.push(End::Back, [&b"x"[..]].into_iter(), limits);
                Ok(Edit::new((), 1, "rpush"))
            })?;
            Ok(ctx.reply.ok())
        }),
        ("put", |ctx, _, other| {
            let limits = ctx.keys.env().settings.limits;
            let mut list = List::new(&limits);
            list.push(End::Back, [&b"x"[..]].into_iter(), &limits);
            ctx.keys.put(other, list, "sortstore");
            Ok(ctx.reply.ok())
        }),
        ("put_raw", |ctx, _, other| {
            ctx.keys.put_raw(other, RawString::from(b"x".to_vec()), "set");
            Ok(ctx.reply.ok())
        }),
        ("wait", |ctx, _, other| {
            let words = [&b"test"[..], b"own"];
            Ok(ctx.wait(&words, ValueKind::List, &[*other], 0, EmptyReply::Null))
        }),
        ("elsewhere", |ctx, _, other| {
            let _ = ctx.keys.view(other);
            let long = crate::call::long::LongCommand::reply_with(
                (&SPEC, None),
                DbIndex::of(0),
                &[b"test"],
                CLIENT,
                |reply| reply.ok(),
            );
            ctx.keys.env().leave_long(long);
            Ok(Outcome::Elsewhere)
        }),
    ];

    const CLIENT: ClientRef = ClientRef { worker: 0, token: 0, id: 1, protocol: Protocol::Resp2 };

    /// Runs `handler` as the command `test own other`, which declares only `own`.
    fn run_test(db: &Db, handler: Handler) -> Result<Outcome> {
        let words = [&b"test"[..], b"own", b"other"];
        let (mut bytes, mut spans) = (Vec::new(), Spans::new());
        request::encode(&mut bytes, &words);
        RequestDecoder::new().decode(&bytes, &Limits::default(), &mut spans).expect("a request");
        let prepared = [prepare(1, &db.keyspace().hasher().key(words[1]))];
        let mut args = Args::new(&bytes, &spans, spans.as_slice(), &prepared);
        let mut replies = ReplyBuffer::new();
        let reply = Reply::new(&mut replies, Protocol::Resp2);
        let blocking = Blocking::Client(CLIENT);
        let call =
            Invocation { spec: &SPEC, parent: None, run: handler, db: DbIndex::of(0), blocking };
        run(db.keyspace(), db.env(), &call, &prepared, &mut args, reply).map(|done| done.outcome)
    }

    thread_local! {
        static FAULT: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
    }

    /// Changes the declared key, then uses the undeclared one.
    fn faulty(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
        let own = args.key()?;
        ctx.keys.set_string(&own, b"changed", Overwrite::Persist, "set");
        let other = ctx.keys.keyspace().hasher().key(args.argument(2));
        let fault = FAULT.get().expect("the test has set it");
        fault(ctx, &own, &other)
    }

    #[test]
    fn a_key_that_is_not_declared_ends_the_command_with_an_error() {
        for (name, fault) in FAULTS {
            let mut db = Db::new();
            db.run("SET own before");
            db.run("SET other untouched");
            FAULT.set(Some(*fault));
            db.env().set_hooks(Hooks::PROPAGATE, true);
            let result = run_test(&db, faulty);
            db.env().set_hooks(Hooks::PROPAGATE, false);
            assert_eq!(result, Err(CommandError::UndeclaredKey("test".into())), "{name}");
            // Changes made before the error stay, and are propagated.
            let words = ["test", "own", "other"].map(|word| word.as_bytes().to_vec());
            let effects = take_transactions(db.keyspace());
            assert_eq!(effects, [vec![(DbIndex::of(0), words.to_vec())]], "{name}");
            db.check("GET own", "\"changed\"").check("GET other", "\"untouched\"");
            db.select(1).check("DBSIZE", "(integer) 0").select(0).check("DBSIZE", "(integer) 2");
            assert!(db.env().take_long().is_none() && db.env().take_waiter().is_none(), "{name}");
            assert_eq!(db.keyspace().blocking_keys(), 0, "{name}");
            db.invariants();
        }
    }

    #[test]
    fn an_argument_that_is_not_declared_as_a_key_cannot_be_taken_as_one() {
        let db = Db::new();
        let result = run_test(&db, |ctx, args| {
            args.key()?;
            args.key()?;
            Ok(ctx.reply.ok())
        });
        assert_eq!(result, Err(CommandError::UndeclaredKey("test".into())));
        let result = run_test(&db, |ctx, args| {
            assert!(args.key_at(1).is_ok());
            args.key_at(2)?;
            Ok(ctx.reply.ok())
        });
        assert_eq!(result, Err(CommandError::UndeclaredKey("test".into())));
        let text = CommandError::UndeclaredKey("test".into()).to_string();
        assert!(text.starts_with("ERR internal error: 'test' used a key"), "{text}");
    }
}
