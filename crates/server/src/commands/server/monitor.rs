//! MONITOR: the connection receives a line for each command that the server runs.

use brisk_engine::command::{Flags, Group, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::clients::flag;
use brisk_node::core::call::{Call, Command};
use brisk_node::core::mailbox::Message;

const MONITOR: Command = Command {
    spec: Spec {
        name: "monitor",
        group: Group::Server,
        summary: "Shows every command while the server executes it.",
        since: "1.0.0",
        complexity: "",
        arity: 1,
        flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
        ..Spec::EMPTY
    },
    run: monitor,
    subcommands: &[],
};

/// Makes the session a monitor. A second MONITOR gets no reply, as in Redis.
fn monitor(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    if call.in_exec() {
        let text = "ERR MONITOR isn't allowed for DENY BLOCKING client";
        return Err(CommandError::text(text));
    }
    if call.session.record.has(flag::MONITOR) {
        return Ok(Outcome::Replied);
    }
    if call.session.repeats() {
        return Err(CommandError::text("ERR MONITOR needs a connection that gets replies"));
    }
    let (shared, worker) = (&call.core.shared, call.core.id);
    call.session.record.set(flag::MONITOR, true);
    shared.mailboxes.send(worker, Message::Monitor(call.session.token));
    shared.conditions.add_monitor(worker);
    Ok(call.reply.ok())
}

pub(super) const COMMANDS: &[Command] = &[MONITOR];
