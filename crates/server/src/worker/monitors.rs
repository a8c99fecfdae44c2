//! A worker's monitors: sessions that receive a line for each command.

use super::sending::append;
use super::sessions::Sessions;
use brisk_node::clients::flag;
use brisk_node::core::Core;
use brisk_reactor::{Close, Control, Token};
use std::collections::HashSet;
use std::sync::atomic::Ordering;

/// The sessions that run MONITOR.
#[derive(Default)]
pub(super) struct Monitors {
    tokens: HashSet<Token>,
}

impl Monitors {
    /// Adds a session to the monitors.
    pub(super) fn add(&mut self, token: Token) {
        self.tokens.insert(token);
    }

    pub(super) fn remove(&mut self, token: Token) {
        self.tokens.remove(&token);
    }

    /// Appends a line to the output of the monitors, and closes monitors with too much unread output.
    pub(super) fn deliver_line(
        &mut self,
        core: &Core,
        sessions: &mut Sessions,
        io: &mut Control,
        line: &[u8],
    ) {
        let limit = core.limits.of_monitor();
        // A session that was reset is no longer a monitor.
        self.tokens.retain(|&token| {
            let Some(session) = sessions.get_mut(token) else { return false };
            let is_one = session.record.has(flag::MONITOR);
            if is_one {
                append(core, io, session, line);
                session.output.count_pushed(line.len());
                let unread = session.output.unread(io.unsent(token));
                session.output.bound_pushed(unread);
                if unread as u64 > limit && !session.is_closing() {
                    let metrics = &core.shared.observe.metrics;
                    metrics.output_limit_disconnections.fetch_add(1, Ordering::Relaxed);
                    session.close_at_once();
                    io.close(token, Close::Now);
                }
            }
            is_one
        });
    }

    /// Closes all monitors, because lines for them were lost.
    pub(super) fn close_all(&mut self, io: &mut Control) {
        for token in self.tokens.drain() {
            io.close(token, Close::Now);
        }
    }
}
