//! The snapshots that replicas begin with, on their way into the output: where they end in the stream,
//! then the file as the replica takes it, then what came meanwhile, of which the backlog has the stream.
//!
//! Until then nothing else is put into a replica's output (see `Session::holds_messages`), and it executes
//! nothing.

use super::{Worker, append};
use brisk_engine::keyspace::Ticket;
use brisk_node::core::Core;
use brisk_node::core::session::{Session, Stall};
use brisk_node::persistence::aof::wait;
use brisk_node::replication::follow;
use brisk_node::replication::replica::{Attachment, Stage};
use brisk_node::replication::transfer::{Payload, Transfer};
use brisk_reactor::{Close, Control, SHARED_BYTES_MIN, Token};
use std::sync::Arc;

/// Bytes of a snapshot that are read from its file at once.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes of a snapshot in the output of a replica that it has not taken, at most: a piece more.
const AHEAD_BYTES_MAX: usize = 1 << 20;

/// What there is to do for a replica.
enum Step {
    Wait,
    /// The connection is of no use any more.
    Close,
    Synchronised,
}

impl Worker {
    /// Goes on with all replicas that have not got their snapshot.
    pub(super) fn synchronise(&mut self, io: &mut Control) {
        for token in self.waiting_replicas() {
            self.synchronise_one(io, token);
        }
    }

    fn waiting_replicas(&self) -> Vec<Token> {
        let followers = self.core.followers.iter();
        let waits = followers.filter(|follower| follower.attachment.stage() != Stage::Online);
        waits.map(|follower| follower.token).collect()
    }

    /// Shows replicas without a snapshot that the server lives. It is no part of the stream.
    pub(super) fn keep_waiting_replicas(&mut self, io: &mut Control) {
        for token in self.waiting_replicas() {
            let Some(session) = self.session_at(token.index()) else { continue };
            let replica = session.replica.as_ref();
            let is_sent = replica.is_some_and(|replica| replica.snapshot_sent.is_some());
            if session.token == token && !is_sent && !has_replies_left(session) {
                put(io, session, b"\n");
            }
        }
    }

    /// Goes on with a session if it is a replica that has not got its snapshot.
    pub(super) fn synchronise_one(&mut self, io: &mut Control, token: Token) {
        let (core, session) = self.core_and_session(token.index());
        let Some(session) = session else { return };
        if session.token != token || !session.synchronises() || session.is_closing() {
            return;
        }
        match step(core, io, session) {
            Step::Wait => {}
            Step::Close => io.close(token, Close::Now),
            Step::Synchronised => {
                follow::note_synchronised(core, session);
                let addr = &session.record.addr;
                let log = &core.shared.log;
                log.notice(format_args!("Synchronization with replica {addr} succeeded"));
                let held = std::mem::take(&mut session.held);
                put_held(core, io, session, held);
                self.go_on_feeding(io, token);
                self.core.read_clocks();
                self.go_on(io, token, Stall::Synchronises);
            }
        }
    }
}

/// Whether replies to what a session executed before have not reached its output.
pub(super) fn has_replies_left(session: &Session) -> bool {
    session.stream.is_some() || !session.unlogged.is_empty()
}

fn step(core: &Core, io: &mut Control, session: &mut Session) -> Step {
    if has_replies_left(session) {
        return Step::Wait;
    }
    let attachment = session.replica.as_ref().and_then(|replica| replica.attachment.clone());
    let Some(attachment) = attachment else { return Step::Wait };
    let Some(transfer) = attachment.transfer() else { return Step::Wait };
    tell_place(core, io, session, &transfer);
    match transfer.outcome() {
        None => Step::Wait,
        Some(None) => {
            let log = &core.shared.log;
            log.warning(format_args!("SYNC failed. BGSAVE child returned an error"));
            Step::Close
        }
        Some(Some(payload)) => send(core, io, session, (&attachment, &transfer, payload)),
    }
}

/// Who asked by PSYNC is told the place in the stream that its snapshot ends at, once it is known.
fn tell_place(core: &Core, io: &mut Control, session: &mut Session, transfer: &Transfer) {
    let Some(replica) = &mut session.replica else { return };
    if !std::mem::replace(&mut replica.told_place, true) && replica.acknowledges {
        let history = &core.shared.replication.history;
        let (id, offset) = (history.ids().id, history.offset(Ticket(transfer.from)));
        put(io, session, format!("+FULLRESYNC {id} {offset}\r\n").as_bytes());
    }
}

/// Sends as much of the snapshot as the replica takes.
fn send(
    core: &Core,
    io: &mut Control,
    session: &mut Session,
    (attachment, transfer, payload): (&Attachment, &Transfer, &Payload),
) -> Step {
    let token = session.token;
    let is_begun = |session: &Session| {
        session.replica.as_ref().is_some_and(|replica| replica.snapshot_sent.is_some())
    };
    if !is_begun(session) {
        if wait::must_wait(core, session, Ticket(transfer.from)) {
            // As any other reply it shows only what is in the append-only file. The timers look again.
            return Step::Wait;
        }
        attachment.set_stage(Stage::GetsSnapshot);
        put(io, session, format!("${}\r\n", payload.bytes()).as_bytes());
    }
    loop {
        let unsent = io.unsent(token);
        let Some(replica) = &mut session.replica else { return Step::Wait };
        let sent = replica.snapshot_sent.unwrap_or(0);
        replica.snapshot_unsent = replica.snapshot_unsent.min(unsent as u64);
        replica.snapshot_sent = Some(sent);
        if sent == payload.bytes() {
            return Step::Synchronised;
        }
        if unsent >= AHEAD_BYTES_MAX {
            io.when_drained(token, AHEAD_BYTES_MAX / 2);
            return Step::Wait;
        }
        let piece = match payload.read(sent, PIECE_BYTES) {
            Ok(piece) => piece,
            Err(error) => {
                let log = &core.shared.log;
                log.warning(format_args!("Read error sending DB to replica: {error}"));
                return Step::Close;
            }
        };
        replica.snapshot_sent = Some(sent + piece.len() as u64);
        replica.snapshot_unsent += piece.len() as u64;
        put_owned(io, session, piece);
    }
}

/// Puts bytes behind what is in the output.
fn put(io: &mut Control, session: &mut Session, bytes: &[u8]) {
    session.traffic.bytes_out += bytes.len() as u64;
    let output = io.output(session.token);
    match &mut session.tls {
        Some(stream) => stream.send(bytes, output),
        None => output.extend_from_slice(bytes),
    }
    io.send(session.token);
}

/// The same; many are not copied.
fn put_owned(io: &mut Control, session: &mut Session, bytes: Vec<u8>) {
    let len = bytes.len();
    if session.tls.is_some() || len < SHARED_BYTES_MIN {
        return put(io, session, &bytes);
    }
    session.traffic.bytes_out += len as u64;
    io.output(session.token).push_shared(Arc::new(bytes), 0..len);
    io.send(session.token);
}

/// Messages that came before the snapshot was sent.
fn put_held(core: &Core, io: &mut Control, session: &mut Session, held: Vec<u8>) {
    if held.is_empty() {
        return;
    }
    if wait::must_wait(core, session, wait::shown_to_all(core)) {
        append(core, io, session, &held);
    } else {
        put_owned(io, session, held);
    }
}
