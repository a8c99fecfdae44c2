//! The snapshots that replicas begin with, on their way into the output: where they end in the stream,
//! then the file, or what is written of it by now, as the replica takes it, then what came meanwhile, of
//! which the backlog has the stream.
//!
//! Until then nothing else is put into a replica's output (see `Session::holds_messages`), and it executes
//! nothing.

use super::{Worker, append};
use brisk_engine::keyspace::Ticket;
use brisk_node::core::Core;
use brisk_node::core::session::{Session, Stall};
use brisk_node::persistence::aof::wait;
use brisk_node::replication::follow;
use brisk_node::replication::pipe::{Next, Pipe};
use brisk_node::replication::replica::{ReplicaProgress, ReplicaStage};
use brisk_node::replication::transfer::{Outcome, Payload, Transfer};
use brisk_reactor::{Close, Control, SHARED_BYTES_MIN, Token, unix_ms};
use rustix::net::sockopt::set_tcp_nodelay;
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
        let waits = followers.filter(|follower| follower.progress.stage() != ReplicaStage::Online);
        waits.map(|follower| follower.token).collect()
    }

    /// Shows replicas without a snapshot that the server lives, which is no part of the stream, and closes
    /// those that hold up the writer of theirs.
    pub(super) fn keep_waiting_replicas(&mut self, io: &mut Control) {
        for token in self.waiting_replicas() {
            let (core, session) = self.core_and_session(token.index());
            let Some(session) = session else { continue };
            if session.token == token && holds_up(core, io.unsent(token), session) {
                let addr = &session.record.addr;
                let log = &core.shared.log;
                log.warning(format_args!("Disconnecting timedout replica (full sync): {addr}"));
                io.close(token, Close::Now);
                continue;
            }
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
                let (log, addr) = (&core.shared.log, &session.record.addr);
                let replica = session.replica.as_ref();
                let progress = replica.and_then(|replica| replica.progress.as_ref());
                if progress.is_some_and(|progress| progress.awaits_ack()) {
                    log.notice(format_args!(
                        "Streamed replica resync with replica {addr} (socket) succeeded. Waiting for \
                         REPLCONF ACK from replica to enable streaming"
                    ));
                } else {
                    log.notice(format_args!("Synchronization with replica {addr} succeeded"));
                }
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
    let progress = session.replica.as_ref().and_then(|replica| replica.progress.clone());
    let Some(progress) = progress else { return Step::Wait };
    let Some(transfer) = progress.transfer() else { return Step::Wait };
    tell_place(core, io, session, &transfer);
    match (transfer.outcome(), transfer.pipe()) {
        (Some(Outcome::Failed), _) => {
            let log = &core.shared.log;
            log.warning(format_args!("SYNC failed. BGSAVE child returned an error"));
            Step::Close
        }
        (_, Some(pipe)) => send_written(core, io, session, (&progress, &transfer, pipe)),
        (Some(Outcome::File(payload)), None) => {
            send(core, io, session, (&progress, &transfer, payload))
        }
        _ => Step::Wait,
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

/// Whether a replica has taken nothing for `repl-timeout` of a snapshot that is sent while it is written,
/// though there was something to take.
fn holds_up(core: &Core, unsent: usize, session: &mut Session) -> bool {
    let Some(replica) = &mut session.replica else { return false };
    let transfer = replica.progress.as_ref().and_then(|progress| progress.transfer());
    let is_streamed = transfer.is_some_and(|transfer| transfer.pipe().is_some());
    let Some(sent) = replica.snapshot_sent.filter(|_| is_streamed) else { return false };
    let (taken, now_ms) = (sent - replica.snapshot_unsent.min(unsent as u64), unix_ms());
    if unsent == 0 || replica.taken.0 != taken {
        replica.taken = (taken, now_ms);
    }
    let timeout_ms = core.config.replication.repl_timeout_s.max(0).unsigned_abs() * 1000;
    now_ms.saturating_sub(replica.taken.1) > timeout_ms
}

/// Begins to send the snapshot, if that was not done; whether it is begun.
fn begin(core: &Core, io: &mut Control, session: &mut Session, from: u64, head: &str) -> bool {
    let sent = |session: &Session| session.replica.as_ref()?.snapshot_sent;
    if sent(session).is_some() {
        return true;
    }
    if wait::must_wait(core, session, Ticket(from)) {
        // As any other reply it shows only what is in the append-only file. The timers look again.
        return false;
    }
    if core.config.replication.repl_disable_tcp_nodelay
        && let Some(socket) = io.fd(session.token)
    {
        // A Unix socket has no such thing.
        let _ = set_tcp_nodelay(socket, false);
    }
    put(io, session, head.as_bytes());
    if let Some(replica) = &mut session.replica {
        replica.snapshot_sent = Some(0);
        replica.taken = (0, unix_ms());
    }
    true
}

/// How much of the snapshot was sent, if the replica takes more now.
fn room(io: &mut Control, session: &mut Session) -> Option<u64> {
    let unsent = io.unsent(session.token);
    let replica = session.replica.as_mut()?;
    replica.snapshot_unsent = replica.snapshot_unsent.min(unsent as u64);
    if unsent >= AHEAD_BYTES_MAX {
        io.when_drained(session.token, AHEAD_BYTES_MAX / 2);
        return None;
    }
    replica.snapshot_sent
}

fn note_sent(session: &mut Session, bytes: usize) {
    if let Some(replica) = &mut session.replica {
        replica.snapshot_sent = Some(replica.snapshot_sent.unwrap_or(0) + bytes as u64);
        replica.snapshot_unsent += bytes as u64;
    }
}

/// Sends as much of the snapshot as the replica takes.
fn send(
    core: &Core,
    io: &mut Control,
    session: &mut Session,
    (progress, transfer, payload): (&ReplicaProgress, &Transfer, &Payload),
) -> Step {
    let head = format!("${}\r\n", payload.bytes());
    if !begin(core, io, session, transfer.from, &head) {
        return Step::Wait;
    }
    progress.set_stage(ReplicaStage::GetsSnapshot);
    while let Some(sent) = room(io, session) {
        if sent == payload.bytes() {
            return Step::Synchronised;
        }
        let piece = match payload.read(sent, PIECE_BYTES) {
            Ok(piece) => piece,
            Err(error) => {
                let log = &core.shared.log;
                log.warning(format_args!("Read error sending DB to replica: {error}"));
                return Step::Close;
            }
        };
        note_sent(session, piece.len());
        put_owned(io, session, piece);
    }
    Step::Wait
}

/// Sends as much of what is written of the snapshot as the replica takes, and its mark at the end. To
/// others it waits until all is written, as in Redis.
fn send_written(
    core: &Core,
    io: &mut Control,
    session: &mut Session,
    (progress, transfer, pipe): (&ReplicaProgress, &Transfer, &Pipe),
) -> Step {
    let head = format!("$EOF:{}\r\n", pipe.mark());
    if !begin(core, io, session, transfer.from, &head) {
        return Step::Wait;
    }
    while room(io, session).is_some() {
        match progress.next_block() {
            Next::Block(block) => {
                note_sent(session, block.len());
                put_shared(io, session, block);
            }
            Next::NotYet => return Step::Wait,
            Next::End => {
                note_sent(session, pipe.mark().len());
                put(io, session, pipe.mark().as_bytes());
                return Step::Synchronised;
            }
        }
    }
    Step::Wait
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
    put_shared(io, session, Arc::new(bytes));
}

fn put_shared(io: &mut Control, session: &mut Session, bytes: Arc<Vec<u8>>) {
    let len = bytes.len();
    if session.tls.is_some() || len < SHARED_BYTES_MIN {
        return put(io, session, &bytes);
    }
    session.traffic.bytes_out += len as u64;
    io.output(session.token).push_shared(bytes, 0..len);
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
