//! The stream on its way into the output of this worker's replicas.

use crate::worker::{Worker, append};
use brisk_engine::ReplyBuffer;
use brisk_node::core::session::Session;
use brisk_node::persistence::aof::wait;
use brisk_node::replication::feed::Part;
use brisk_reactor::{Close, Control, Token};

impl Worker {
    /// Hands the part of the stream that has come for this worker's replicas to them. `current` is
    /// the session whose turn it is.
    #[cold]
    pub fn deliver_stream(&mut self, io: &mut Control, mut current: Option<&mut Session>) {
        let Part { from, bytes, overflow } = self.core.shared.replication.feed.fetch(self.core.id);
        let followers = std::mem::take(&mut self.core.followers);
        for follower in &followers {
            let token = follower.token;
            // Without a snapshot it gets nothing.
            let Some(begin) = follower.attachment.from() else { continue };
            if overflow {
                io.close(token, Close::Now);
                continue;
            }
            // What stands before its snapshot is in it.
            let known = usize::try_from(begin.saturating_sub(from)).unwrap_or(usize::MAX);
            let Some(news) = bytes.get(known..) else { continue };
            match &mut current {
                Some(session) if session.token == token => {
                    push_to_current(session, self.replies_mut(), news);
                    // It leaves when it is where this server's own replies wait for it to be.
                    self.core.env.note_shown(wait::shown_to_all(&self.core));
                }
                _ => {
                    let (core, session) = self.core_and_session(token.index());
                    let Some(session) = session.filter(|session| session.token == token) else {
                        continue;
                    };
                    if session.holds_messages() {
                        session.held.extend_from_slice(news);
                    } else {
                        append(core, io, session, news);
                    }
                    self.check_replica(io, token);
                }
            }
        }
        self.core.followers = followers;
    }

    /// Closes a replica that does not read.
    pub(super) fn check_replica(&mut self, io: &mut Control, token: Token) {
        let (core, session) = self.core_and_session(token.index());
        let Some(session) = session.filter(|session| session.token == token) else { return };
        let unsent = io.unsent(token) + session.unlogged.len();
        if core.exceeds_output_limit(session, unsent as u64) {
            io.close(token, Close::Now);
        }
        core.publish_output(unsent, session);
        core.weigh(unsent, session);
    }
}

/// Behind the replies that are made at the moment.
fn push_to_current(session: &mut Session, replies: &mut ReplyBuffer, bytes: &[u8]) {
    if session.holds_messages() || replies.has_stream() {
        session.held.extend_from_slice(bytes);
    } else {
        replies.bytes_mut().extend_from_slice(bytes);
    }
}
