//! The options that a client has set for its connection: database, protocol, CLIENT REPLY and CLIENT NO-TOUCH.

use super::Session;
use crate::clients::flag;
use brisk_engine::DbIndex;
use brisk_resp::Protocol;
use std::sync::atomic::Ordering;

/// The options of one connection.
pub(super) struct ClientOptions {
    db: DbIndex,
    protocol: Protocol,
    reply_mode: ReplyMode,
    /// True if commands do not update access clocks (CLIENT NO-TOUCH).
    no_touch: bool,
}

/// The mode that CLIENT REPLY selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyMode {
    On,
    Off,
    /// The replies to CLIENT REPLY SKIP itself and to the next command are omitted.
    SkipNext,
    Skipping,
    /// The running transaction gets a reply. The reply after it is omitted.
    SkipAfterExec,
    /// The running transaction gets a reply. All replies after it are omitted.
    OffAfterExec,
}

impl ReplyMode {
    /// Reports whether the current command gets a reply.
    #[inline]
    fn sends_reply(self) -> bool {
        matches!(self, ReplyMode::On | ReplyMode::SkipAfterExec | ReplyMode::OffAfterExec)
    }

    /// The mode after CLIENT REPLY OFF. The reply to EXEC is sent completely or not at all, because clients expect the
    /// number of elements that its header announces.
    fn turned_off(self, in_exec: bool) -> ReplyMode {
        if in_exec && self.sends_reply() { ReplyMode::OffAfterExec } else { ReplyMode::Off }
    }

    /// The mode after CLIENT REPLY SKIP.
    fn skipping(self, in_exec: bool) -> ReplyMode {
        match self {
            ReplyMode::Off | ReplyMode::OffAfterExec => self,
            _ if in_exec && self.sends_reply() => ReplyMode::SkipAfterExec,
            _ => ReplyMode::SkipNext,
        }
    }
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            db: DbIndex::FIRST,
            protocol: Protocol::Resp2,
            reply_mode: ReplyMode::On,
            no_touch: false,
        }
    }
}

impl ClientOptions {
    /// The options of a second session that runs commands for the same client.
    pub(super) fn standing_for(other: &ClientOptions) -> ClientOptions {
        ClientOptions { db: other.db, no_touch: other.no_touch, ..ClientOptions::default() }
    }

    /// Called after each command. Ends options that apply to a single command.
    #[inline]
    pub(super) fn after_command(&mut self) {
        match self.reply_mode {
            ReplyMode::On | ReplyMode::Off => {}
            ReplyMode::SkipNext | ReplyMode::SkipAfterExec => {
                self.reply_mode = ReplyMode::Skipping;
            }
            ReplyMode::Skipping => self.reply_mode = ReplyMode::On,
            ReplyMode::OffAfterExec => self.reply_mode = ReplyMode::Off,
        }
    }

    /// Resets the options that RESET resets and that no other method of the session resets.
    pub(super) fn reset(&mut self) {
        // CLIENT REPLY SKIP may apply to the reply to RESET itself.
        if self.reply_mode != ReplyMode::Skipping {
            self.reply_mode = ReplyMode::On;
        }
        self.no_touch = false;
    }
}

impl Session {
    /// The selected database.
    #[inline]
    pub fn db(&self) -> DbIndex {
        self.options.db
    }

    /// Changes the selected database.
    pub fn select(&mut self, db: DbIndex) {
        self.options.db = db;
        self.source.found_db();
        self.record.db.store(db.number(), Ordering::Relaxed);
    }

    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.options.protocol
    }

    /// Changes the protocol for a client that requested it.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.options.protocol = protocol;
        let version = if protocol == Protocol::Resp3 { 3 } else { 2 };
        self.record.resp.store(version, Ordering::Relaxed);
    }

    /// Changes the protocol of the replies to a script's commands. CLIENT LIST still shows the client's protocol.
    pub fn reply_to_script_in(&mut self, protocol: Protocol) {
        self.options.protocol = protocol;
    }

    /// Reports whether replies to the current command are sent.
    #[inline]
    pub fn wants_reply(&self) -> bool {
        self.options.reply_mode.sends_reply()
    }

    /// CLIENT REPLY ON.
    pub fn turn_replies_on(&mut self) {
        self.options.reply_mode = ReplyMode::On;
    }

    /// CLIENT REPLY OFF. `in_exec` is true for a command of a transaction.
    pub fn turn_replies_off(&mut self, in_exec: bool) {
        self.options.reply_mode = self.options.reply_mode.turned_off(in_exec);
    }

    /// CLIENT REPLY SKIP. `in_exec` is true for a command of a transaction.
    pub fn skip_next_reply(&mut self, in_exec: bool) {
        self.options.reply_mode = self.options.reply_mode.skipping(in_exec);
    }

    /// Reports whether commands of the session update access clocks.
    #[inline]
    pub fn touches_keys(&self) -> bool {
        !self.options.no_touch
    }

    /// CLIENT NO-TOUCH.
    pub fn set_no_touch(&mut self, on: bool) {
        self.options.no_touch = on;
        self.record.set(flag::NO_TOUCH, on);
    }
}
