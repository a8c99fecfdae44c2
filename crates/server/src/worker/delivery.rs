//! Appends published messages to the output of this worker's subscribers.
//!
//! A message is appended after everything that the session has been sent so far. It never ends up inside a reply,
//! because a reply that is still being written delays messages. The messages of a round are sent with one system call
//! per connection.

use super::Worker;
use brisk_engine::ReplyBuffer;
use brisk_node::core::Core;
use brisk_node::core::session::Session;
use brisk_node::persistence::aof::wait;
use brisk_node::pubsub::publish;
use brisk_node::pubsub::{Publication, PushMessage, Space, TopicSubscriber, sigil};
use brisk_node::tracking::invalidate;
use brisk_reactor::{Close, Control, Output, OutputBytes, SHARED_BYTES_MIN, Token};
use brisk_resp::Protocol;
use std::sync::Arc;

/// A message in the form for the subscribers of one topic, which consists of a header and a part of the message.
#[derive(Clone, Copy)]
struct Framed<'p> {
    head: &'p [u8],
    message: &'p Arc<OutputBytes>,
    from: usize,
}

impl<'p> Framed<'p> {
    fn direct(message: &'p Publication) -> Framed<'p> {
        Framed { head: &[], message: message.wire(), from: 0 }
    }

    fn by_pattern(message: &'p Publication, head: &'p [u8]) -> Framed<'p> {
        Framed { head, message: message.wire(), from: message.tail() }
    }

    /// The length of the message in bytes. The first byte depends on the protocol, but the length does not.
    #[inline]
    fn len(&self) -> usize {
        self.head.len() + self.message.len() - self.from
    }

    /// Calls `put` with the pieces in order.
    #[inline]
    fn pieces(&self, protocol: Protocol, mut put: impl FnMut(&[u8])) {
        let tail = &self.message[self.from..];
        match (protocol, self.head) {
            (Protocol::Resp2, []) => put(tail),
            (Protocol::Resp2, head) => {
                put(head);
                put(tail);
            }
            (Protocol::Resp3, []) => {
                put(sigil(protocol));
                put(&tail[1..]);
            }
            (Protocol::Resp3, head) => {
                put(sigil(protocol));
                put(&head[1..]);
                put(tail);
            }
        }
    }

    /// Appends the message. A large payload is not copied.
    fn append(&self, protocol: Protocol, output: &mut Output) {
        let len = self.message.len();
        if len - self.from < SHARED_BYTES_MIN {
            self.pieces(protocol, |piece| output.extend_from_slice(piece));
            return;
        }
        let mut from = self.from;
        output.extend_from_slice(sigil(protocol));
        if let [_, head @ ..] = self.head {
            output.extend_from_slice(head);
        } else {
            from += 1;
        }
        output.push_shared(Arc::clone(self.message), from..len);
    }
}

impl Worker {
    /// Publishes the events that have accumulated, and delivers all messages of the inbox to their subscribers.
    /// `current` is the session whose turn it is. Its messages follow its replies.
    #[cold]
    pub(super) fn deliver_messages(&mut self, io: &mut Control, mut current: Option<&mut Session>) {
        if publish::has_events(&self.core) {
            publish::publish_events(&mut self.core);
            invalidate::send_invalidations(&mut self.core);
        }
        let shared = self.core.shared;
        if current.is_some() {
            self.core.env.note_shown(wait::shown_to_all(&self.core));
        }
        let inbox = shared.pubsub.inbox(self.core.id);
        if !inbox.is_filled() {
            return;
        }
        let mut messages = self.spare.take_messages();
        let (first, was_full) = inbox.take(&mut messages);
        if was_full {
            shared.note_full_inboxes(0, 1);
        }
        for (number, push) in (first..).zip(messages.drain(..)) {
            let current = current.as_deref_mut();
            match push {
                PushMessage::Published(message) => {
                    self.deliver_message(io, number, &message, current)
                }
                PushMessage::Notice(notice) => self.deliver_notice(io, &notice, current),
            }
        }
        self.spare.put_messages(messages);
    }

    fn deliver_message(
        &mut self,
        io: &mut Control,
        number: u64,
        message: &Publication,
        mut current: Option<&mut Session>,
    ) {
        let Worker { core, sessions, replies, .. } = self;
        let mut to_members = |members: &[TopicSubscriber], framed: Framed<'_>| {
            for member in members.iter().filter(|member| member.since <= number) {
                match &mut current {
                    Some(session) if session.token == member.token => {
                        push_to_current(framed, session, replies);
                    }
                    _ => {
                        if let Some(session) = sessions.get_mut(member.token) {
                            push(core, io, session, framed);
                        }
                    }
                }
            }
        };
        if message.to_channel
            && let Some(topic) = core.topics.find(message.space, message.channel())
        {
            to_members(&topic.members, Framed::direct(message));
        }
        for pattern in &message.patterns {
            if let Some(topic) = core.topics.find(Space::Pattern, pattern) {
                to_members(&topic.members, Framed::by_pattern(message, &topic.head));
            }
        }
    }
}

/// Appends a message to the session whose turn it is, after the replies that it has so far.
fn push_to_current(framed: Framed<'_>, session: &mut Session, replies: &mut ReplyBuffer) {
    let protocol = session.protocol();
    session.output.count_pushed(framed.len());
    if session.defers_messages() || replies.has_stream() {
        framed.pieces(protocol, |piece| session.output.defer(piece));
    } else {
        framed.pieces(protocol, |piece| replies.bytes_mut().extend_from_slice(piece));
    }
}

/// Appends a push message to a session outside of its turn. `wire` is the RESP2 form.
pub(super) fn push_to_idle(core: &Core, io: &mut Control, session: &mut Session, wire: Vec<u8>) {
    let message = Arc::new(wire.into());
    push(core, io, session, Framed { head: &[], message: &message, from: 0 });
}

/// Appends a message to any other session.
#[inline]
fn push(core: &Core, io: &mut Control, session: &mut Session, framed: Framed<'_>) {
    let token = session.token;
    let protocol = session.protocol();
    session.output.count_pushed(framed.len());
    if session.defers_messages() {
        framed.pieces(protocol, |piece| session.output.defer(piece));
    } else {
        session.accounting.count_sent(framed.len());
        let shown = wait::shown_to_all(core);
        if wait::must_wait(core, session, shown) {
            wait::keep(core, session, shown, |out| {
                framed.pieces(protocol, |piece| out.extend_from_slice(piece));
            });
            return check_output(core, io, session, token);
        }
        if let Some(stream) = session.connection.tls_mut() {
            // Each call creates a TLS record, so combine the pieces.
            let mut whole = Vec::with_capacity(framed.len());
            framed.pieces(protocol, |piece| whole.extend_from_slice(piece));
            stream.send(&whole, io.output(token));
        } else {
            framed.append(protocol, io.output(token));
        }
        io.send(token);
    }
    check_output(core, io, session, token);
}

/// Closes a session that does not read its unrequested output. The limit of the session's class applies, or, if the
/// class has none, the limit for all clients together.
#[inline]
pub(super) fn check_output(core: &Core, io: &mut Control, session: &mut Session, token: Token) {
    let unsent = io.unsent(token);
    let all = session.output.unread(unsent);
    session.output.bound_pushed(all);
    if !core.limits.watches_subscriber(all) || session.is_closing() {
        return;
    }
    let queued = unsent + session.output.held_replies().len();
    if core.limits.exceeds_total(all as u64) || core.exceeds_output_limit(session, queued as u64) {
        session.close_at_once();
        io.close(token, Close::Now);
    }
    core.publish_output(unsent, session);
    core.weigh(io.output_memory(token), session);
}
