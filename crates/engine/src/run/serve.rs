//! Serving blocked clients: their commands are run again, in order of arrival.
//!
//! The thread that made a key ready does this right after its command or transaction. Each waiter's
//! command is a separate unit, with its own locks and effects. A waiter is claimed while its
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

/// A wait that has ended.
pub struct ServedWaiter {
    pub waiter: Arc<Waiter>,
    pub replies: ReplyBuffer,
    /// Number of changes of its command.
    pub dirty: u64,
    /// The error that the command returned.
    pub error: Option<CommandError>,
}

/// Serves the clients that wait for keys that became ready, including keys that serving makes
/// ready.
pub fn serve(keyspace: &Keyspace, env: &Env, mut deliver: impl FnMut(ServedWaiter)) {
    loop {
        let Some((db, name)) = env.ready.borrow_mut().pop_front() else { return };
        let key = keyspace.hasher().key(&name);
        // A key that has expired in the meantime serves no client. The next access removes it.
        if Keys::unlocked(keyspace, env, db).has_expired(&key) {
            continue;
        }
        let mut after = None;
        // If one client of a group finds nothing, the others do not either.
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

/// The outcome of running a waiter's command.
enum WaiterRun {
    /// The wait had already ended.
    Over,
    /// Writes are postponed.
    Later,
    Done(Result<Executed>),
}

/// Runs the waiter's command. All its slots are held from before the claim until after it is
/// settled. A second thread that wants to serve this waiter, or a later one, waits for the slots.
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
        // The waiter's client made these changes, not the client that made the key ready.
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
