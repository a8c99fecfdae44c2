//! A worker's monitors: sessions that receive a line for each command.

use super::Worker;
use super::turn::append;
use brisk_node::clients::flag;
use brisk_reactor::{Close, Control, Token};
use std::sync::atomic::Ordering;

impl Worker {
    /// Adds a session to the monitors.
    pub fn add_monitor(&mut self, token: Token) {
        self.monitors.insert(token);
    }

    /// Appends a line to the output of the monitors, and closes monitors with too much unread output.
    pub(super) fn deliver_monitor_line(&mut self, io: &mut Control, line: &[u8]) {
        let limit = self.core.monitor_limit();
        let Worker { core, sessions, monitors, .. } = self;
        // A session that was reset is no longer a monitor.
        monitors.retain(|&token| {
            let slot = sessions.get_mut(token.index());
            let Some(Some(session)) = slot else { return false };
            let is_one = session.token == token && session.record.has(flag::MONITOR);
            if is_one {
                append(core, io, session, line);
                session.output.count_pushed(line.len());
                let unread = session.output.unread(io.unsent(token));
                session.output.bound_pushed(unread);
                if unread as u64 > limit && !session.is_closing() {
                    let figures = &core.shared.observe.figures;
                    figures.output_limit_disconnections.fetch_add(1, Ordering::Relaxed);
                    session.close_at_once();
                    io.close(token, Close::Now);
                }
            }
            is_one
        });
    }

    /// Closes all monitors, because lines for them were lost.
    pub(super) fn drop_monitors(&mut self, io: &mut Control) {
        for token in self.monitors.drain() {
            io.close(token, Close::Now);
        }
    }
}
