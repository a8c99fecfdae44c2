//! WATCH, UNWATCH: the next EXEC runs only if the watched keys do not change.

use super::ROW;
use brisk_engine::command::{Arg, InMulti, KeyFlags, KeySpec, Spec};
use brisk_engine::keyspace::Watches;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::transactions::execute;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const WATCH: Command = Command {
    spec: Spec {
        name: "watch",
        summary: "Watches keys: the next EXEC returns null if one of them has changed.",
        since: "2.2.0",
        complexity: "O(1) for every key.",
        arity: -2,
        keys: &[KeySpec::range(1, -1, 1).read_only(KeyFlags::empty())],
        args: &[Arg::key("key").multiple()],
        in_multi: InMulti::Rejects,
        ..ROW
    },
    run: watch,
    subcommands: &[],
};

fn watch(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if call.session.in_transaction() {
        return Err(CommandError::text("ERR WATCH inside MULTI is not allowed"));
    }
    let watcher = call.session.record.watcher.get_or_init(Arc::default);
    let new = || Box::new(Watches::new(Arc::clone(watcher)));
    let mut watches = call.session.transaction.take_watches().unwrap_or_else(new);
    // Once a watched key has changed, EXEC replies null regardless of further watches.
    let before = watches.len();
    let watched = if watches.watcher().is_broken() {
        Ok(())
    } else {
        call.with_keys(call.session.db(), |keys| {
            args.keys().for_each(|key| keys.watch(&key, &mut watches));
            Ok(())
        })
    };
    // Limits the number of ended watches. A client that repeatedly watches and unwatches keys leaves at most as many
    // ended watches as it had at one time.
    let core = &mut *call.core;
    core.transactions.remove_ended_watches(&core.shared.keyspace, watches.len() - before);
    call.session.record.watched.store(watches.len() as u64, Ordering::Relaxed);
    call.session.transaction.put_watches(watches);
    watched?;
    Ok(call.reply.ok())
}

const UNWATCH: Command = Command {
    spec: Spec { name: "unwatch", summary: "Stops watching all keys.", since: "2.2.0", ..ROW },
    run: unwatch,
    subcommands: &[],
};

/// UNWATCH. Within EXEC, there is nothing left to unwatch.
fn unwatch(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    if !call.in_exec() {
        execute::unwatch(call.core, call.session);
    }
    Ok(call.reply.ok())
}

pub(super) const COMMANDS: &[Command] = &[UNWATCH, WATCH];
