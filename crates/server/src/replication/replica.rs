//! Sessions that follow the stream: how they begin, and how they get it.

use super::feed::{Member, Part};
use crate::clients::flag;
use crate::core::Core;
use crate::core::session::Session;
use crate::core::shared::Shared;
use crate::persistence::snapshot;
use crate::worker::{Worker, append};
use brisk_engine::effect::{Armed, Sealed};
use brisk_engine::{CommandError, ReplyBuffer, Result};
use brisk_reactor::{Close, Control, Token};
use std::cell::RefCell;
use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::Arc;

/// A snapshot that a replica begins with, in bytes, at most: it is made in memory.
const SNAPSHOT_BYTES_MAX: usize = 4 * 1024 * 1024 * 1024;

/// What a session said of itself by REPLCONF, and whether it follows.
#[derive(Debug, Default)]
pub struct Replica {
    pub port: u16,
    pub ip: Option<IpAddr>,
    pub follows: bool,
    /// It tells how far it has come, about once a second: it asked by PSYNC.
    pub acknowledges: bool,
    /// Bytes of the snapshot that are not sent yet: no limit of output counts them.
    pub snapshot_left: u64,
    /// Bytes of memory that the snapshot takes until all of it is sent.
    snapshot_held: u64,
}

impl Replica {
    /// Whether to hear nothing of it for long means that it is gone.
    pub fn is_to_be_heard(&self) -> bool {
        self.follows && self.acknowledges && self.snapshot_left == 0
    }
}

/// A session of a worker that follows the stream from an offset on.
#[derive(Debug, Clone, Copy)]
pub struct Follower {
    token: Token,
    from: u64,
}

/// A Vec that does not grow beyond what a snapshot may take.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > SNAPSHOT_BYTES_MAX {
            return Err(io::Error::other("the dataset is too large for a snapshot in memory"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Hands what transactions of a worker left to the stream. A worker that has to wait amid its work
/// does it before: others may follow with later tickets, or make a snapshot, while it stands still.
pub fn hand_in(shared: &Shared, id: usize, sealed: &RefCell<Vec<Sealed>>) {
    let mut sealed = sealed.borrow_mut();
    if sealed.is_empty() {
        return;
    }
    // Its own outbox the worker looks at right after its command.
    let wake = |worker: usize| {
        if worker != id {
            shared.mailboxes[worker].wake();
        }
    };
    shared.replication.feed.submit(sealed.drain(..), wake);
}

impl Core {
    /// Makes a session a replica: the dataset as it is now, and the offset of the stream from which
    /// it gets what follows. Only while all other workers stand still. O(all data).
    pub fn attach_replica(&mut self, session: &mut Session) -> Result<(Arc<Vec<u8>>, u64)> {
        self.hand_in_sealed();
        let Bounded(bytes) = snapshot::write_to(self, Bounded(Vec::new())).map_err(|error| {
            self.shared.log.warning(format_args!("No snapshot for a replica: {error}"));
            CommandError::text("ERR Unable to perform background save")
        })?;
        let token = session.token;
        let replica = session.replica.get_or_insert_default();
        replica.follows = true;
        replica.snapshot_left = bytes.len() as u64;
        replica.snapshot_held = bytes.len() as u64;
        self.shared.replication.feed.note_snapshots(replica.snapshot_held.cast_signed());
        session.record.set(flag::REPLICA, true);
        let peer = session.record.addr.tcp().map(|address| address.ip());
        let member = Member {
            worker: self.id,
            token,
            ip: replica.ip.or(peer),
            port: replica.port,
            acked: 0,
            acked_ms: 0,
        };
        let from = self.shared.replication.feed.attach(member, self.shared.keyspace.last_ticket());
        self.env.armed.arm(Armed::PROPAGATE, true);
        self.followers.push(Follower { token, from });
        Ok((Arc::new(bytes), from))
    }

    /// A session that is gone follows no more.
    pub fn detach_replica(&mut self, session: &mut Session) {
        if let Some(replica) = session.replica.as_mut().filter(|replica| replica.follows) {
            self.note_snapshot_left(replica, 0);
            self.followers.retain(|follower| follower.token != session.token);
            self.shared.replication.feed.detach(session.token, self.id);
        }
    }

    /// So much of a snapshot may still be unsent at most.
    pub fn note_snapshot_left(&self, replica: &mut Replica, most: u64) {
        replica.snapshot_left = replica.snapshot_left.min(most);
        if replica.snapshot_left == 0 {
            let held = std::mem::take(&mut replica.snapshot_held);
            self.shared.replication.feed.note_snapshots(-held.cast_signed());
        }
    }

    /// Hands what transactions left to the stream.
    #[cold]
    pub fn hand_in_sealed(&self) {
        hand_in(self.shared, self.id, &self.env.sealed);
    }

    /// Stops collecting effects if nobody wants them any more.
    pub fn disarm_feed(&mut self) {
        let armed = &self.env.armed;
        let is_idle = || self.shared.replication.feed.replica_count() == 0;
        if armed.get().contains(Armed::PROPAGATE) && is_idle() {
            // While a script takes long it is put off.
            let Ok(still) = self.stop_others() else { return };
            if is_idle() {
                armed.arm(Armed::PROPAGATE, false);
            }
            drop(still);
        }
    }
}

impl Worker {
    /// Hands the part of the stream that has come for this worker's replicas to them. `current` is
    /// the session whose turn it is.
    #[cold]
    pub fn deliver_stream(&mut self, io: &mut Control, mut current: Option<&mut Session>) {
        let Part { from, bytes, overflow } = self.core.shared.replication.feed.fetch(self.core.id);
        let followers = std::mem::take(&mut self.core.followers);
        for follower in &followers {
            let token = follower.token;
            if overflow {
                io.close(token, Close::Now);
                continue;
            }
            // What stands before its snapshot is in it.
            let known = usize::try_from(follower.from.saturating_sub(from)).unwrap_or(usize::MAX);
            let Some(news) = bytes.get(known..) else { continue };
            match &mut current {
                Some(session) if session.token == token => {
                    push_to_current(session, self.replies_mut(), news);
                }
                _ => {
                    let Some(session) = self.session_at(token.index()) else { continue };
                    if session.stream.is_some() {
                        session.held.extend_from_slice(news);
                    } else {
                        append(io, session, news);
                    }
                    self.check_replica(io, token);
                }
            }
        }
        self.core.followers = followers;
    }

    /// Closes a replica that does not read.
    fn check_replica(&mut self, io: &mut Control, token: Token) {
        let unsent = io.unsent(token);
        let (core, session) = self.core_and_session(token.index());
        let Some(session) = session else { return };
        if core.exceeds_output_limit(session, unsent as u64) {
            io.close(token, Close::Now);
        }
        core.publish_output(unsent, session);
    }
}

/// Behind the replies that are made at the moment.
fn push_to_current(session: &mut Session, replies: &mut ReplyBuffer, bytes: &[u8]) {
    if session.stream.is_some() || replies.has_stream() {
        session.held.extend_from_slice(bytes);
    } else {
        replies.bytes_mut().extend_from_slice(bytes);
    }
}
