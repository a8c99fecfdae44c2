//! A worker's monitors: sessions that get a line for each command.

use super::Worker;
use super::turn::append;
use crate::clients::flag;
use crate::core::Core;
use crate::core::mailbox::Message;
use crate::core::session::Session;
use brisk_engine::Args;
use brisk_engine::table::Row;
use brisk_reactor::unix_us;
use brisk_reactor::{Close, Control, Token};
use std::sync::Arc;

impl Core {
    /// Sends the line for the command that just ran to all monitors.
    #[cold]
    pub fn tell_monitors(&mut self, session: &Session, row: &Row, words: &Args<'_>) {
        let record = &session.record;
        let client = if record.has(flag::UNIX_SOCKET) {
            format!("unix:{}", self.config.network.unixsocket.to_string_lossy())
        } else {
            record.addr.to_string()
        };
        self.tell_monitors_as(&client, session, row, words);
    }

    /// The same for a command that a script called.
    #[cold]
    pub fn tell_monitors_of_script(&mut self, session: &Session, row: &Row, words: &Args<'_>) {
        self.tell_monitors_as("lua", session, row, words);
    }

    fn tell_monitors_as(&mut self, client: &str, session: &Session, row: &Row, words: &Args<'_>) {
        let shown = self.shown_words(row, words).into_iter();
        let line: Arc<[u8]> = crate::monitor::line(unix_us(), session.db.0, client, shown).into();
        for (worker, mailbox) in self.shared.mailboxes.iter().enumerate() {
            if self.shared.monitors.at(worker) {
                mailbox.send(Message::MonitorLine(Arc::clone(&line)));
            }
        }
        // The next command does not pay for this.
        self.last_ticks = self.clock.ticks();
    }
}

impl Worker {
    /// Adds a session to those that get a line for each command.
    pub fn add_monitor(&mut self, token: Token) {
        self.monitors.insert(token);
    }

    pub(super) fn deliver_monitor_line(&mut self, io: &mut Control, line: &[u8]) {
        let limit = match self.core.config.clients.output_limits[0].hard_bytes {
            0 => self.core.total_limit,
            limit => limit,
        };
        let sessions = &mut self.sessions;
        // A session that was reset does not monitor any more.
        self.monitors.retain(|&token| {
            let slot = sessions.get_mut(token.index());
            let Some(Some(session)) = slot else { return false };
            let monitors = session.token == token && session.record.has(flag::MONITOR);
            if monitors {
                append(io, session, line);
                if io.unsent(token) as u64 > limit {
                    io.close(token, Close::Now);
                }
            }
            monitors
        });
    }

    /// Closes all monitors: lines for them were lost.
    pub(super) fn drop_monitors(&mut self, io: &mut Control) {
        for token in self.monitors.drain() {
            io.close(token, Close::Now);
        }
    }
}
