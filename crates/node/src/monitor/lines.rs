//! The lines that are sent to monitors for each command.

use crate::clients::flag;
use crate::core::Core;
use crate::core::mailbox::Message;
use crate::core::session::Session;
use brisk_engine::Args;
use brisk_engine::table::Row;
use brisk_reactor::{OutputBytes, unix_us};
use std::sync::Arc;

/// Sends a line for the command that just ran to all monitors.
#[cold]
pub fn show_to_monitors(core: &mut Core, session: &Session, row: &Row, words: &Args<'_>) {
    if session.source.is_replay() {
        return;
    }
    let record = &session.record;
    let client = if record.has(flag::UNIX_SOCKET) {
        format!("unix:{}", core.config.network.unixsocket.to_string_lossy())
    } else {
        record.addr.to_string()
    };
    show_to_monitors_as(core, &client, session, row, words);
}

/// Sends a line for a command that a script ran to all monitors.
#[cold]
pub fn show_script_to_monitors(core: &mut Core, session: &Session, row: &Row, words: &Args<'_>) {
    show_to_monitors_as(core, "lua", session, row, words);
}

fn show_to_monitors_as(
    core: &mut Core,
    client: &str,
    session: &Session,
    row: &Row,
    words: &Args<'_>,
) {
    let shown = core.accounting.shown_words(row, words).into_iter();
    let line = crate::monitor::line(unix_us(), session.db().number(), client, shown);
    let line = Arc::new(OutputBytes::from(line));
    for worker in 0..core.shared.workers() {
        if core.shared.conditions.has_monitors(worker) {
            core.shared.mailboxes.send(worker, Message::MonitorLine(Arc::clone(&line)));
        }
    }
    // The next command is not charged for this time.
    core.accounting.charge_from_now(core.clock);
}
