//! Serving clients that wait for keys: their commands are run again, in order of arrival.
//!
//! The thread that made a key ready does this right after its command or transaction, each waiter's
//! command being a unit of its own with its own locks and effects. A waiter is claimed while its
//! command runs, so that no timeout can end the same wait.

use crate::base::error::{CommandError, Result};
use crate::call::ctx::Blocking;
use crate::env::Env;
use crate::env::effect::Hooks;
use crate::keyspace::{Keys, Keyspace, Waiter, back_off, must_postpone_writes};
use crate::reply::{Outcome, Reply, ReplyBuffer};
use crate::run::exec::{self, Executed};
use smallvec::SmallVec;
use std::sync::Arc;

/// A wait that is over.
pub struct ServedWaiter {
    pub waiter: Arc<Waiter>,
    pub replies: ReplyBuffer,
    /// How many changes its command made.
    pub dirty: u64,
    /// What is answered, if it is an error.
    pub error: Option<CommandError>,
}

/// Serves who waits for the keys that became ready, and for those that this makes ready.
pub fn serve(keyspace: &Keyspace, env: &Env, mut deliver: impl FnMut(ServedWaiter)) {
    loop {
        let Some((db, name)) = env.ready.borrow_mut().pop_front() else { return };
        let key = keyspace.hasher().key(&name);
        // One that expired meanwhile serves nobody, and is removed when somebody asks for it.
        if Keys::unlocked(keyspace, env, db).has_expired(&key) {
            continue;
        }
        let mut after = None;
        // When one member of a group finds nothing, none does.
        let mut in_vain: SmallVec<[Box<[u8]>; 2]> = SmallVec::new();
        while let Some(waiter) = keyspace.next_waiter(db, &key, after, &in_vain) {
            after = Some(waiter.number);
            let mut replies = ReplyBuffer::new();
            let result = match run_again(keyspace, env, &waiter, &mut replies) {
                WaiterRun::Over => continue,
                WaiterRun::Later => {
                    env.ready.borrow_mut().push_front((db, name));
                    return;
                }
                WaiterRun::Done(result) => result,
            };
            let (dirty, error) = match result {
                Ok(Executed { outcome: Outcome::Waiting, .. }) => {
                    in_vain.extend(waiter.group.clone());
                    continue;
                }
                Ok(done) => (done.dirty, None),
                Err(error) => {
                    replies.clear();
                    Reply::new(&mut replies, waiter.client.protocol).error(&error);
                    (0, Some(error))
                }
            };
            keyspace.forget_waiter(&waiter);
            deliver(ServedWaiter { waiter, replies, dirty, error });
        }
    }
}

/// What came of running a waiter's command.
enum WaiterRun {
    /// The wait had ended before.
    Over,
    /// The data is to stay as it is for now.
    Later,
    Done(Result<Executed>),
}

/// Runs the waiter's command, with all its slots held from before it is claimed until it is
/// settled: a second thread that comes to serve it, or who is behind it, waits for the slots.
fn run_again(
    keyspace: &Keyspace,
    env: &Env,
    waiter: &Waiter,
    replies: &mut ReplyBuffer,
) -> WaiterRun {
    let command = &waiter.command;
    command.with_args(keyspace, |args, prepared| {
        let mut keys = Keys::unlocked(keyspace, env, command.db());
        while keys.hold(prepared).is_err() {
            back_off();
        }
        if must_postpone_writes() {
            return WaiterRun::Later;
        }
        if !waiter.claim() {
            return WaiterRun::Over;
        }
        keys.remove_expired(args.keys(), false);
        let reply = Reply::new(replies, waiter.client.protocol);
        // What it changes its own client did, and not whoever made the key ready.
        let server = env.client.replace(waiter.client.id);
        let remembers = env.hooks.get().contains(Hooks::REMEMBER);
        env.set_hooks(Hooks::REMEMBER, false);
        let invocation = command.invocation(Blocking::Again);
        let result = exec::run_held(&mut keys, &invocation, args, reply);
        env.set_hooks(Hooks::REMEMBER, remembers);
        env.client.set(server);
        waiter.settle(!matches!(&result, Ok(Executed { outcome: Outcome::Waiting, .. })));
        WaiterRun::Done(result)
    })
}
