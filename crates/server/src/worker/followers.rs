//! The stream on its way into the output of this worker's replicas.
//!
//! Between turns, each gets what its connection has room for. Of what it has not got it has no copy: that is
//! in the backlog, which knows its place.

use super::logging::reached_by;
use super::synchronising::has_replies_left;
use crate::worker::Worker;
use brisk_engine::table::Row;
use brisk_node::core::client_lines;
use brisk_node::core::session::Session;
use brisk_node::persistence::aof::state::Level;
use brisk_node::persistence::aof::wait;
use brisk_node::replication::backlog::Piece;
use brisk_node::replication::replica::ReplicaStage;
use brisk_reactor::{Close, Control, Token};

/// Bytes of the stream in the output of a replica that it has not taken, at most: a transaction more.
/// Small changes are copied into it, so this is what a replica that does not read costs besides its
/// share of the backlog.
const AHEAD_BYTES_MAX: usize = 256 << 10;

/// What became of a replica's part of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fed {
    /// It has all, or as much as it takes for now.
    Enough,
    /// It waits until more of it is in the append-only file.
    WaitsForFile,
}

impl Worker {
    /// Hands what has come of the stream to this worker's replicas, and closes those that are too far
    /// behind.
    #[cold]
    pub(super) fn deliver_stream(&mut self, io: &mut Control) {
        self.core.shared.replication.replicas.clear_ready(self.core.id);
        let followers = std::mem::take(&mut self.core.followers);
        let mut waits = false;
        for follower in &followers {
            if follower.progress.stage() == ReplicaStage::Online {
                waits |= self.feed_replica(io, follower.token) == Fed::WaitsForFile;
            } else {
                self.check_replica(io, follower.token);
            }
        }
        self.core.followers = followers;
        if !waits {
            self.stream_waits_since = None;
        }
    }

    /// Whether replicas wait until more of the stream is in the append-only file.
    #[inline]
    pub(super) fn stream_waits(&self) -> bool {
        self.stream_waits_since.is_some()
    }

    /// Goes on with a session if it is a replica that the stream goes to.
    pub(super) fn go_on_feeding(&mut self, io: &mut Control, token: Token) {
        let Some(session) = self.session_at(token.index()).filter(|one| one.token == token) else {
            return;
        };
        let replica = session.replica.as_ref().and_then(|replica| replica.progress.as_ref());
        if replica.is_some_and(|progress| progress.stage() == ReplicaStage::Online) {
            self.feed_replica(io, token);
        }
    }

    /// Within the stream a reply would be taken for a part of it: whoever follows and has something answered
    /// to it is closed.
    #[cold]
    pub(super) fn refuse_to_answer(&mut self, session: &mut Session) {
        let Some(replica) = session.replica.as_mut().filter(|replica| replica.follows()) else {
            return;
        };
        if self.replies.is_empty() || std::mem::take(&mut replica.is_answered) {
            return;
        }
        self.replies.clear();
        let shared = self.core.shared;
        let last = self.core.last_row as usize;
        let row = shared.table.all().find(|row| row.id == last);
        let name = row.map_or("<unknown>", Row::full_name);
        let client = client_lines::describe_at_rest(&self.core, &session.record, name);
        shared.log.warning(format_args!(
            "Replica generated a reply to command '{name}', disconnecting it: {client}"
        ));
        session.close_at_once();
    }

    fn feed_replica(&mut self, io: &mut Control, token: Token) -> Fed {
        let now = self.core.clock.ns(self.core.clock.ticks());
        let waited = now.saturating_sub(self.stream_waits_since.unwrap_or(now));
        let (core, session) = self.core_and_session(token.index());
        let Some(session) = session.filter(|session| session.token == token) else {
            return Fed::Enough;
        };
        let progress = session.replica.as_ref().and_then(|replica| replica.progress.clone());
        let Some(progress) = progress.filter(|_| !session.is_closing()) else {
            return Fed::Enough;
        };
        let stream = &core.shared.replication.stream;
        let mut is_fed = false;
        let mut pieces = Vec::new();
        let mut fed = Fed::Enough;
        while stream.has_more(&progress) {
            if has_replies_left(session) {
                // They come first: among them may be the answer that the stream follows.
                if !session.unlogged.is_empty() {
                    fed = Fed::WaitsForFile;
                }
                break;
            }
            if io.unsent(token) >= AHEAD_BYTES_MAX {
                io.when_drained(token, AHEAD_BYTES_MAX / 2);
                break;
            }
            let until = reached_by(core, session, waited);
            match stream.take(&progress, until, AHEAD_BYTES_MAX, &mut pieces) {
                Some(0) => {
                    fed = Fed::WaitsForFile;
                    break;
                }
                Some(bytes) => push(io, session, bytes, &mut pieces),
                None => {
                    core.shared.log.warning(format_args!(
                        "Closing replica {}: what it was not sent of the stream is not kept any more",
                        session.record.addr
                    ));
                    io.close(token, Close::Now);
                    return Fed::Enough;
                }
            }
            is_fed = true;
        }
        if fed == Fed::WaitsForFile {
            let level = wait::level(core, session);
            if level == Level::Disk {
                core.shared.aof.hasten(level);
            }
            // Some of it has come: the disk is not stuck.
            self.stream_waits_since = match self.stream_waits_since {
                Some(since) if !is_fed => Some(since),
                _ => Some(now),
            };
        }
        self.check_replica(io, token);
        fed
    }

    /// Closes a replica that does not read.
    pub(super) fn check_replica(&mut self, io: &mut Control, token: Token) {
        let (core, session) = self.core_and_session(token.index());
        let Some(session) = session.filter(|session| session.token == token) else { return };
        let unsent = io.unsent(token);
        let queued = unsent + session.unlogged.len();
        if core.exceeds_output_limit(session, queued as u64) {
            let log = &core.shared.log;
            log.warning(format_args!(
                "Closing replica {}: it has not taken what client-output-buffer-limit lets a replica leave",
                session.record.addr
            ));
            session.close_at_once();
            io.close(token, Close::Now);
        }
        core.publish_output(unsent, session);
        // What it was sent of the stream it gets between its turns.
        session.publish_traffic();
        core.weigh(io.output_memory(token), session);
    }
}

/// Puts so many bytes of the stream behind what is in the output.
fn push(io: &mut Control, session: &mut Session, bytes: u64, pieces: &mut Vec<Piece>) {
    session.traffic.bytes_out += bytes;
    let output = io.output(session.token);
    for piece in pieces.drain(..) {
        match &mut session.tls {
            Some(stream) => stream.send(piece.as_slice(), output),
            None => output.push_shared(piece.bytes, piece.range),
        }
    }
    if let Some(replica) = &mut session.replica {
        replica.stream_unsent += bytes;
    }
    io.send(session.token);
}
