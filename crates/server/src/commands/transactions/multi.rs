//! MULTI, EXEC, DISCARD: begins, executes, or discards a transaction.

use super::ROW;
use brisk_engine::command::{Flags, InMulti, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::transactions::execute;

const MULTI: Command = Command {
    spec: Spec {
        name: "multi",
        summary: "Starts a transaction: the following commands are queued until EXEC.",
        since: "1.2.0",
        in_multi: InMulti::Rejects,
        ..ROW
    },
    run: multi,
    subcommands: &[],
};

fn multi(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    if call.session.in_transaction() {
        return Err(CommandError::text("ERR MULTI calls can not be nested"));
    }
    execute::begin_transaction(call.core, call.session);
    call.session.publish_transaction();
    Ok(call.reply.ok())
}

const EXEC: Command = Command {
    spec: Spec {
        name: "exec",
        summary: "Executes the queued commands, unless a watched key was changed.",
        since: "1.2.0",
        complexity: "Depends on the queued commands.",
        flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::SKIP_SLOWLOG),
        in_multi: InMulti::Executes,
        ..ROW
    },
    run: exec,
    subcommands: &[],
};

fn exec(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    execute::execute_transaction(call.core, call.session, call.row, &mut call.reply)
}

const DISCARD: Command = Command {
    spec: Spec {
        name: "discard",
        summary: "Discards the queued commands and ends the transaction.",
        since: "2.0.0",
        complexity: "O(N) in the number of queued commands.",
        in_multi: InMulti::Ends,
        ..ROW
    },
    run: discard,
    subcommands: &[],
};

fn discard(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    if !call.session.in_transaction() {
        return Err(CommandError::text("ERR DISCARD without MULTI"));
    }
    execute::end_transaction(call.core, call.session);
    Ok(call.reply.ok())
}

pub(super) const COMMANDS: &[Command] = &[DISCARD, EXEC, MULTI];
