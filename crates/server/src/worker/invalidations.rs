//! Appends messages of client-side caching to the output of sessions.
//!
//! Like published messages, they are placed after the reply of the current command and never inside a reply. If another
//! thread computes a command or has served it, they also follow its reply, because that command may have read a value
//! that is no longer current.

use super::Worker;
use super::delivery::check_output;
use super::sessions::Sessions;
use brisk_engine::ReplyBuffer;
use brisk_engine::effect::Hooks;
use brisk_engine::keyspace::TrackingClient;
use brisk_node::core::Core;
use brisk_node::core::session::{Session, Stall};
use brisk_node::persistence::aof::wait;
use brisk_node::tracking::invalidate;
use brisk_node::tracking::{
    Broadcast, HEAD_RESP2, HEAD_RESP3, Notice, TrackingMode, redirection_broken,
};
use brisk_reactor::{Control, Token};
use brisk_resp::Protocol;
use std::sync::Arc;

/// A null on the wire, which means all keys.
const NULL_RESP3: &[u8] = b"_\r\n";
const NULL_RESP2: &[u8] = b"$-1\r\n";

/// Provides access to sessions while messages are delivered.
struct NoticeDelivery<'w> {
    core: &'w mut Core,
    sessions: &'w mut Sessions,
    replies: &'w mut ReplyBuffer,
    /// The session whose turn it is, which is not in the list of sessions.
    current: Option<&'w mut Session>,
}

impl Worker {
    pub(super) fn deliver_notice(
        &mut self,
        io: &mut Control,
        notice: &Notice,
        current: Option<&mut Session>,
    ) {
        let Worker { core, sessions, replies, .. } = self;
        let mut delivery = NoticeDelivery { core, sessions, replies, current };
        match notice {
            Notice::Keys { clients, keys, by } => {
                for client in clients {
                    delivery.send_to_reader(io, *client, keys, *by);
                }
            }
            Notice::All { .. } => delivery.send_to_all(io),
            Notice::Broadcast(broadcast) => delivery.broadcast(io, broadcast),
            Notice::Redirected { to, of, keys } => delivery.pass_on(io, *to, *of, keys),
            Notice::Unreachable { of } => delivery.break_redirection(io, *of),
        }
    }

    /// Called after events have been handled. Sends changes to the clients that track prefixes.
    #[inline]
    pub(super) fn end_of_turns(&mut self, io: &mut Control) {
        if self.core.env.hooks.get().intersects(Hooks::BROADCAST | Hooks::INVALIDATE) {
            invalidate::send_broadcasts(&mut self.core);
            self.deliver_messages(io, None);
        }
    }

    /// Sends an invalidation of all keys to a session that missed invalidations, if it has read enough of its output.
    pub(super) fn make_up_invalidations(&mut self, io: &mut Control, token: Token) {
        if let Some(session) = self.sessions.get_mut(token)
            && session.push.lacks_invalidations()
        {
            make_up(&self.core, io, session);
        }
    }
}

impl NoticeDelivery<'_> {
    /// Calls `act` with a session. If it is the session's turn, also passes the reply buffer.
    fn with<R>(
        &mut self,
        token: Token,
        act: impl FnOnce(&Core, &mut Session, Option<&mut ReplyBuffer>) -> R,
    ) -> Option<R> {
        match &mut self.current {
            Some(session) if session.token == token => {
                Some(act(self.core, session, Some(self.replies)))
            }
            _ => {
                let session = self.sessions.get_mut(token)?;
                Some(act(self.core, session, None))
            }
        }
    }

    fn send_to_reader(&mut self, io: &mut Control, client: u64, keys: &Arc<Vec<u8>>, by: u64) {
        let Some(token) = self.core.tracking.find(client) else { return };
        let concerned = self.with(token, |_, session, _| {
            let tracker = session.push.tracker();
            tracker.is_some_and(|t| {
                t.mode() != TrackingMode::Broadcast && !(t.noloop() && by == client)
            })
        });
        if concerned == Some(true) {
            self.invalidate(io, token, keys);
        }
    }

    fn send_to_all(&mut self, io: &mut Control) {
        let tokens = self.core.tracking.all();
        let (resp3, resp2) = (Arc::new(NULL_RESP3.to_vec()), Arc::new(NULL_RESP2.to_vec()));
        for token in tokens {
            let protocol = self.with(token, |_, session, _| session.protocol());
            let null = if protocol == Some(Protocol::Resp3) { &resp3 } else { &resp2 };
            self.invalidate(io, token, null);
        }
    }

    fn broadcast(&mut self, io: &mut Control, broadcast: &Broadcast) {
        for token in self.core.tracking.with_prefix(&broadcast.prefix) {
            let keys = self.with(token, |_, session, _| {
                let noloop = session.push.tracker().is_some_and(|tracker| tracker.noloop());
                if noloop {
                    broadcast.without(session.id())
                } else {
                    Some(Arc::clone(&broadcast.all))
                }
            });
            if let Some(keys) = keys.flatten() {
                self.invalidate(io, token, &keys);
            }
        }
    }

    /// Sends an invalidation to a tracking session or to the session to which it redirects.
    fn invalidate(&mut self, io: &mut Control, token: Token, keys: &Arc<Vec<u8>>) {
        let redirected = self.with(token, |core, session, replies| {
            let redirect = session.push.tracker().map_or(0, |tracker| tracker.redirect());
            if redirect == 0 {
                send_keys(core, io, session, replies, keys, false);
            }
            (redirect, TrackingClient::new(core.id, session.id()))
        });
        if let Some((to, of)) = redirected.filter(|(to, _)| *to != 0) {
            match self.core.shared.clients.find(to) {
                None => self.break_redirection(io, of.client()),
                Some(record) if record.worker == self.core.id => self.pass_on(io, to, of, keys),
                Some(record) => {
                    let notice = Notice::Redirected { to, of, keys: Arc::clone(keys) };
                    invalidate::send_notice(self.core, record.worker, notice, 1);
                }
            }
        }
    }

    /// Sends keys to client `to` of this worker, to which client `of` redirects.
    fn pass_on(&mut self, io: &mut Control, to: u64, of: TrackingClient, keys: &Arc<Vec<u8>>) {
        let record = self.core.shared.clients.find(to);
        let sent = record.and_then(|record| {
            self.with(record.token, |core, session, replies| {
                send_keys(core, io, session, replies, keys, true);
            })
        });
        if sent.is_none() {
            if of.worker() == self.core.id {
                self.break_redirection(io, of.client());
            } else {
                let notice = Notice::Unreachable { of: of.client() };
                invalidate::send_notice(self.core, of.worker(), notice, 1);
            }
        }
    }

    /// Handles the loss of the client to which client `of` of this worker redirects.
    fn break_redirection(&mut self, io: &mut Control, of: u64) {
        let Some(token) = self.core.tracking.find(of) else { return };
        self.with(token, |core, session, replies| {
            let Some(tracker) = session.push.tracker_mut() else { return };
            tracker.note_broken();
            let wire = redirection_broken(tracker.redirect());
            session.publish_tracking();
            if session.protocol() == Protocol::Resp3 {
                send(core, io, session, replies, &[&wire]);
            }
        });
    }
}

/// Sends keys in a form that the session can distinguish from replies. If its protocol has no such form, sends nothing.
/// A session with more than [`Core::soft_limit`] bytes of unread messages gets no more messages. It gets a single
/// invalidation of all keys after it has read half of them.
fn send_keys(
    core: &Core,
    io: &mut Control,
    session: &mut Session,
    replies: Option<&mut ReplyBuffer>,
    keys: &[u8],
    redirected: bool,
) {
    if session.push.lacks_invalidations() {
        return;
    }
    let hears = session.protocol() == Protocol::Resp3 || (redirected && session.push.listens());
    if hears && session.output.pushed() >= core.limits.output_watch_bytes() {
        session.output.unread_replies(io.unsent(session.token));
        if session.output.pushed() >= core.soft_limit() {
            session.push.drop_invalidations();
            return make_up(core, io, session);
        }
    }
    put_keys(core, io, session, replies, keys, redirected);
}

/// Sends an invalidation of all keys to a session that missed some invalidations, if it has read enough. Otherwise this
/// is done after the session has read more.
pub(super) fn make_up(core: &Core, io: &mut Control, session: &mut Session) {
    let (token, low_water) = (session.token, core.soft_limit() / 2);
    session.output.unread_replies(io.unsent(token));
    if session.output.pushed() > low_water {
        return io.when_drained(token, low_water);
    }
    session.push.make_up_invalidations();
    let null = if session.protocol() == Protocol::Resp3 { NULL_RESP3 } else { NULL_RESP2 };
    put_keys(core, io, session, None, null, true);
}

fn put_keys(
    core: &Core,
    io: &mut Control,
    session: &mut Session,
    replies: Option<&mut ReplyBuffer>,
    keys: &[u8],
    redirected: bool,
) {
    if session.protocol() == Protocol::Resp3 {
        send(core, io, session, replies, &[HEAD_RESP3, keys]);
    } else if redirected && session.push.listens() {
        send(core, io, session, replies, &[HEAD_RESP2, keys]);
    }
}

fn send(
    core: &Core,
    io: &mut Control,
    session: &mut Session,
    replies: Option<&mut ReplyBuffer>,
    pieces: &[&[u8]],
) {
    let token = session.token;
    let len = pieces.iter().map(|piece| piece.len()).sum::<usize>();
    session.output.count_pushed(len);
    let replies_later = session.defers_messages()
        || session.stall() == Stall::Elsewhere
        || session.blocked.waiter().is_some_and(|waiter| waiter.is_over())
        || replies.as_ref().is_some_and(|replies| replies.has_stream());
    if replies_later {
        pieces.iter().for_each(|piece| session.output.defer(piece));
    } else if let Some(replies) = replies {
        pieces.iter().for_each(|piece| replies.bytes_mut().extend_from_slice(piece));
    } else {
        session.accounting.count_sent(len);
        let shown = wait::shown_to_all(core);
        if wait::must_wait(core, session, shown) {
            wait::keep(core, session, shown, |out| {
                pieces.iter().for_each(|piece| out.extend_from_slice(piece));
            });
            return check_output(core, io, session, token);
        }
        let output = io.output(token);
        if let Some(stream) = session.connection.tls_mut() {
            stream.send(&pieces.concat(), output);
        } else {
            pieces.iter().for_each(|piece| output.extend_from_slice(piece));
        }
        io.send(token);
    }
    check_output(core, io, session, token);
}
