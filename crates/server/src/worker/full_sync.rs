//! Sends snapshots to replicas. First the position in the stream is sent, then the file, or the part of it that has
//! been written so far, as fast as the replica takes it. The stream since the start of the snapshot follows from the
//! backlog.
//!
//! Until then, nothing else is added to a replica's output (see `Session::defers_messages`), and its commands wait.

use super::Worker;
use super::sending::append;
use brisk_engine::keyspace::Ticket;
use brisk_node::core::Core;
use brisk_node::core::session::{Session, Stall};
use brisk_node::persistence::aof::wait;
use brisk_node::replication::follow;
use brisk_node::replication::pipe::{PipeRead, SnapshotPipe};
use brisk_node::replication::replica::{ReplicaProgress, ReplicaStage};
use brisk_node::replication::transfer::{SnapshotFile, SnapshotTransfer, TransferOutcome};
use brisk_reactor::{Close, Control, SHARED_BYTES_MIN, Token, unix_ms};
use rustix::net::sockopt::set_tcp_nodelay;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The number of bytes of a snapshot that are read from its file at a time.
const PIECE_BYTES: usize = 256 << 10;
/// A replica's output contains at most this many bytes of the snapshot, plus one piece.
const AHEAD_BYTES_MAX: usize = 256 << 10;

/// The next step for a replica.
enum Step {
    Wait,
    /// The connection can no longer be used.
    Close,
    /// The whole snapshot is in the output.
    Done,
}

impl Worker {
    /// Continues to send snapshots to all replicas that do not have theirs yet.
    pub(super) fn continue_full_syncs(&mut self, io: &mut Control) {
        for token in self.core.replicas.waiting() {
            self.continue_full_sync(io, token);
        }
    }

    /// Sends a newline to replicas without a snapshot, which shows that the server is alive. The newline is not part of
    /// the stream. Also disconnects replicas that block the writer of their snapshot.
    pub(super) fn ping_waiting_replicas(&mut self, io: &mut Control) {
        for token in self.core.replicas.waiting() {
            let core = &self.core;
            let Some(session) = self.sessions.get_mut(token) else { continue };
            if blocks_writer(core, io.unsent(token), session) {
                let addr = &session.record.addr;
                let log = &core.shared.log;
                log.warning(format_args!("Disconnecting timedout replica (full sync): {addr}"));
                io.close(token, Close::Now);
                continue;
            }
            let replica = session.replication.replica();
            let is_sent = replica.is_some_and(|replica| replica.snapshot.sent().is_some());
            if !is_sent && !has_replies_left(session) {
                put(io, session, b"\n");
            }
        }
    }

    /// Continues to send the snapshot if a session is a replica that does not have its snapshot yet.
    pub(super) fn continue_full_sync(&mut self, io: &mut Control, token: Token) {
        let core = &self.core;
        let Some(session) = self.sessions.get_mut(token) else { return };
        if !session.is_in_full_sync() || session.is_closing() {
            return;
        }
        let sent_before = session.accounting.traffic().bytes_out;
        let step = step(core, io, session);
        let sent = session.accounting.traffic().bytes_out - sent_before;
        core.shared.observe.metrics.repl_output_bytes.fetch_add(sent, Ordering::Relaxed);
        match step {
            Step::Wait => {}
            Step::Close => io.close(token, Close::Now),
            Step::Done => {
                follow::note_full_sync_done(core, session);
                let (log, addr) = (&core.shared.log, &session.record.addr);
                let replica = session.replication.replica();
                let progress = replica.and_then(|replica| replica.progress());
                if progress.is_some_and(|progress| progress.awaits_ack()) {
                    log.notice(format_args!(
                        "Streamed replica resync with replica {addr} (socket) succeeded. Waiting for \
                         REPLCONF ACK from replica to enable streaming"
                    ));
                } else {
                    log.notice(format_args!("Synchronization with replica {addr} succeeded"));
                }
                let messages = session.output.take_deferred();
                put_deferred(core, io, session, messages);
                self.continue_stream(io, token);
                self.core.read_clocks();
                self.resume(io, token, Stall::FullSync);
            }
        }
    }
}

/// True if replies to earlier commands have not reached the output.
pub(super) fn has_replies_left(session: &Session) -> bool {
    session.output.has_stream() || !session.output.held_replies().is_empty()
}

fn step(core: &Core, io: &mut Control, session: &mut Session) -> Step {
    if has_replies_left(session) {
        return Step::Wait;
    }
    let progress = session.replication.replica().and_then(|replica| replica.progress().cloned());
    let Some(progress) = progress else { return Step::Wait };
    let Some(transfer) = progress.transfer() else { return Step::Wait };
    send_position(core, io, session, &transfer);
    match (transfer.outcome(), transfer.pipe()) {
        (Some(TransferOutcome::Failed), _) => {
            let log = &core.shared.log;
            log.warning(format_args!("SYNC failed. BGSAVE child returned an error"));
            Step::Close
        }
        (_, Some(pipe)) => send_written(core, io, session, (&progress, &transfer, pipe)),
        (Some(TransferOutcome::File(payload)), None) => {
            send(core, io, session, (&progress, &transfer, payload))
        }
        _ => Step::Wait,
    }
}

/// Sends the position at which the snapshot ends to a replica that used PSYNC, but only once.
fn send_position(
    core: &Core,
    io: &mut Control,
    session: &mut Session,
    transfer: &SnapshotTransfer,
) {
    let Some(replica) = session.replication.replica_mut() else { return };
    if replica.snapshot.begin_position() && replica.acknowledges() {
        let history = &core.shared.replication.history;
        let (id, offset) = (history.ids().id, history.offset(Ticket(transfer.from)));
        put(io, session, format!("+FULLRESYNC {id} {offset}\r\n").as_bytes());
    }
}

/// True if the snapshot is sent while it is being written, and the replica has taken nothing of it for `repl-timeout`
/// although bytes were available.
fn blocks_writer(core: &Core, unsent: usize, session: &mut Session) -> bool {
    let Some(replica) = session.replication.replica_mut() else { return false };
    let transfer = replica.progress().and_then(|progress| progress.transfer());
    let is_streamed = transfer.is_some_and(|transfer| transfer.pipe().is_some());
    let timeout_ms = core.config.replication.repl_timeout_s.max(0).unsigned_abs() * 1000;
    is_streamed
        && replica.snapshot.stuck_ms(unsent as u64, unix_ms()).is_some_and(|ms| ms > timeout_ms)
}

/// Begins to send the snapshot, unless that has already been done. Returns true if sending has begun.
fn begin(core: &Core, io: &mut Control, session: &mut Session, from: u64, head: &str) -> bool {
    let sent = |session: &Session| session.replication.replica()?.snapshot.sent();
    if sent(session).is_some() {
        return true;
    }
    if wait::must_wait(core, session, Ticket(from)) {
        // Like any reply, the snapshot may show only changes that are in the append-only file. The timers try again.
        return false;
    }
    if core.config.replication.repl_disable_tcp_nodelay
        && let Some(socket) = io.fd(session.token)
    {
        // A Unix socket does not have this option.
        let _ = set_tcp_nodelay(socket, false);
    }
    put(io, session, head.as_bytes());
    if let Some(replica) = session.replication.replica_mut() {
        replica.snapshot.begin(unix_ms());
    }
    true
}

/// The number of bytes of the snapshot that were sent, if the replica can take more now.
fn room(io: &mut Control, session: &mut Session) -> Option<u64> {
    let unsent = io.unsent(session.token);
    let replica = session.replication.replica_mut()?;
    replica.snapshot.bound_unsent(unsent as u64);
    if unsent >= AHEAD_BYTES_MAX {
        io.when_drained(session.token, AHEAD_BYTES_MAX / 2);
        return None;
    }
    replica.snapshot.sent()
}

fn note_sent(session: &mut Session, bytes: usize) {
    if let Some(replica) = session.replication.replica_mut() {
        replica.snapshot.count_sent(bytes);
    }
}

/// Sends as much of the snapshot as the replica takes.
fn send(
    core: &Core,
    io: &mut Control,
    session: &mut Session,
    (progress, transfer, payload): (&ReplicaProgress, &SnapshotTransfer, &SnapshotFile),
) -> Step {
    let head = format!("${}\r\n", payload.bytes());
    if !begin(core, io, session, transfer.from, &head) {
        return Step::Wait;
    }
    progress.set_stage(ReplicaStage::GetsSnapshot);
    while let Some(sent) = room(io, session) {
        if sent == payload.bytes() {
            return Step::Done;
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

/// Sends as much of the written part of the snapshot as the replica takes, and finally the end mark.
fn send_written(
    core: &Core,
    io: &mut Control,
    session: &mut Session,
    (progress, transfer, pipe): (&ReplicaProgress, &SnapshotTransfer, &SnapshotPipe),
) -> Step {
    let head = format!("$EOF:{}\r\n", pipe.mark());
    if !begin(core, io, session, transfer.from, &head) {
        return Step::Wait;
    }
    while room(io, session).is_some() {
        match progress.next_block() {
            PipeRead::Block(block) => {
                note_sent(session, block.len());
                put_shared(io, session, block);
            }
            PipeRead::NotYet => return Step::Wait,
            PipeRead::End => {
                note_sent(session, pipe.mark().len());
                put(io, session, pipe.mark().as_bytes());
                return Step::Done;
            }
        }
    }
    Step::Wait
}

/// Adds bytes to the output.
fn put(io: &mut Control, session: &mut Session, bytes: &[u8]) {
    session.accounting.count_sent(bytes.len());
    let output = io.output(session.token);
    session.connection.write(bytes, output);
    io.send(session.token);
}

/// As [`put`], but does not copy the bytes if there are many.
fn put_owned(io: &mut Control, session: &mut Session, bytes: Vec<u8>) {
    put_shared(io, session, Arc::new(bytes));
}

fn put_shared(io: &mut Control, session: &mut Session, bytes: Arc<Vec<u8>>) {
    let len = bytes.len();
    if session.connection.is_encrypted() || len < SHARED_BYTES_MIN {
        return put(io, session, &bytes);
    }
    session.accounting.count_sent(len);
    io.output(session.token).push_shared(bytes, 0..len);
    io.send(session.token);
}

/// Adds messages that arrived before the snapshot was sent.
fn put_deferred(core: &Core, io: &mut Control, session: &mut Session, messages: Vec<u8>) {
    if messages.is_empty() {
        return;
    }
    if wait::must_wait(core, session, wait::shown_to_all(core)) {
        append(core, io, session, &messages);
    } else {
        put_owned(io, session, messages);
    }
}
