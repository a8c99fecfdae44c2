//! Sends the stream to this worker's replicas.
//!
//! Between turns, each replica is sent as much as its connection has room for. The rest is not copied but stays in the
//! backlog.

use super::durability::reached_by;
use super::full_sync::has_replies_left;
use crate::worker::Worker;
use brisk_engine::table::Row;
use brisk_node::core::client_lines;
use brisk_node::core::session::Session;
use brisk_node::persistence::aof::state::Level;
use brisk_node::persistence::aof::wait;
use brisk_node::replication::backlog::StreamPiece;
use brisk_node::replication::replica::ReplicaStage;
use brisk_reactor::{Close, Control, Token};
use std::sync::atomic::Ordering;

/// A replica's output contains at most this many bytes of the stream, plus one transaction. Small changes are copied
/// into the output, so a replica that does not read takes this much memory in addition to the backlog.
const AHEAD_BYTES_MAX: usize = 256 << 10;

/// The result of sending the stream to a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamSent {
    /// The replica has everything, or as much as it can take for now.
    Enough,
    /// The replica waits until more of the stream is in the append-only file.
    WaitsForFile,
}

impl Worker {
    /// Passes new parts of the stream to this worker's replicas, and disconnects replicas that lag too far behind.
    #[cold]
    pub(super) fn deliver_stream(&mut self, io: &mut Control) {
        self.core.shared.replication.replicas.clear_ready(self.core.id);
        let mut waits = false;
        let mut number = 0;
        while let Some((token, stage)) = self.core.replicas.at(number) {
            if stage == ReplicaStage::Online {
                waits |= self.send_stream(io, token) == StreamSent::WaitsForFile;
            } else {
                self.check_replica(io, token);
            }
            number += 1;
        }
        if !waits {
            self.wait_timers.note_stream_sent();
        }
    }

    /// Sends more of the stream to a session if it is a replica that receives it.
    pub(super) fn continue_stream(&mut self, io: &mut Control, token: Token) {
        let Some(session) = self.sessions.get_mut(token) else {
            return;
        };
        let replica = session.replication.replica().and_then(|replica| replica.progress());
        if replica.is_some_and(|progress| progress.stage() == ReplicaStage::Online) {
            self.send_stream(io, token);
        }
    }

    /// Disconnects a replica that would get a reply, because the reply would appear to be part of the stream.
    #[cold]
    pub(super) fn reject_reply(&mut self, session: &mut Session) {
        let Some(replica) = session.replication.replica_mut().filter(|replica| replica.follows())
        else {
            return;
        };
        if self.replies.is_empty() || replica.take_has_reply() {
            return;
        }
        self.replies.clear();
        let shared = self.core.shared;
        let last = self.core.accounting.last_row() as usize;
        let row = shared.table.all().find(|row| row.id == last);
        let name = row.map_or("<unknown>", Row::full_name);
        let client = client_lines::describe_at_rest(&self.core, &session.record, name);
        shared.log.warning(format_args!(
            "Replica generated a reply to command '{name}', disconnecting it: {client}"
        ));
        session.close_at_once();
    }

    fn send_stream(&mut self, io: &mut Control, token: Token) -> StreamSent {
        let now = self.core.clock.ns(self.core.clock.ticks());
        let waited = self.wait_timers.stream_waited_ns(now);
        let core = &self.core;
        let Some(session) = self.sessions.get_mut(token) else { return StreamSent::Enough };
        let progress =
            session.replication.replica().and_then(|replica| replica.progress().cloned());
        let Some(progress) = progress.filter(|_| !session.is_closing()) else {
            return StreamSent::Enough;
        };
        let stream = &core.shared.replication.stream;
        let mut has_sent = false;
        let mut pieces = Vec::new();
        let mut sent = StreamSent::Enough;
        while stream.has_more(&progress) {
            if has_replies_left(session) {
                // Replies come first. One of them may be the reply after which the stream follows.
                if !session.output.held_replies().is_empty() {
                    sent = StreamSent::WaitsForFile;
                }
                break;
            }
            let room = AHEAD_BYTES_MAX.saturating_sub(io.unsent(token));
            if room == 0 {
                io.when_drained(token, AHEAD_BYTES_MAX / 2);
                break;
            }
            let until = reached_by(core, session, waited);
            match stream.take(&progress, until, room, &mut pieces) {
                Some(0) => {
                    sent = StreamSent::WaitsForFile;
                    break;
                }
                Some(bytes) => {
                    // Count first: once the bytes are sent, the replica may have them before this thread continues.
                    let metrics = &core.shared.observe.metrics;
                    metrics.repl_output_bytes.fetch_add(bytes, Ordering::Relaxed);
                    push(io, session, bytes, &mut pieces);
                }
                None => {
                    core.shared.log.warning(format_args!(
                        "Closing replica {}: the part of the stream that it needs next is no longer kept",
                        session.record.addr
                    ));
                    io.close(token, Close::Now);
                    return StreamSent::Enough;
                }
            }
            has_sent = true;
        }
        if sent == StreamSent::WaitsForFile {
            let level = wait::level(core, session);
            if level == Level::Disk {
                core.shared.persistence.aof.hasten(level);
            }
            // If a part of the stream was sent, the disk is not stuck.
            self.wait_timers.note_stream_waits(now, has_sent);
        }
        self.check_replica(io, token);
        sent
    }

    /// Disconnects a replica that does not read.
    pub(super) fn check_replica(&mut self, io: &mut Control, token: Token) {
        let core = &self.core;
        let Some(session) = self.sessions.get_mut(token) else { return };
        let unsent = io.unsent(token);
        let queued = unsent + session.output.held_replies().len();
        if core.exceeds_output_limit(session, queued as u64) {
            let log = &core.shared.log;
            log.warning(format_args!(
                "Closing replica {}: its unsent output exceeds client-output-buffer-limit",
                session.record.addr
            ));
            session.close_at_once();
            io.close(token, Close::Now);
        }
        core.publish_output(unsent, session);
        // The stream is sent between the session's turns, so its traffic is published here.
        session.publish_traffic();
        core.weigh(io.output_memory(token), session);
    }
}

/// Adds a part of the stream to the output.
fn push(io: &mut Control, session: &mut Session, bytes: u64, pieces: &mut Vec<StreamPiece>) {
    session.accounting.count_sent(bytes as usize);
    let output = io.output(session.token);
    for piece in pieces.drain(..) {
        match session.connection.tls_mut() {
            Some(stream) => stream.send(piece.as_slice(), output),
            None => output.push_shared(piece.bytes, piece.range),
        }
    }
    if let Some(replica) = session.replication.replica_mut() {
        replica.count_stream(bytes);
    }
    io.send(session.token);
}
