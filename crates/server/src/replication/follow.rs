//! Sessions that follow the stream: how they begin, and how it comes to be.

use super::feed::Member;
use super::replica::{Follower, Replica};
use crate::clients::flag;
use crate::core::Core;
use crate::core::session::Session;
use crate::core::shared::Shared;
use crate::persistence::snapshot;
use brisk_engine::effect::{Armed, Sealed};
use brisk_engine::{CommandError, Result};
use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Arc;

/// A snapshot that a replica begins with, in bytes, at most: it is made in memory.
const SNAPSHOT_BYTES_MAX: usize = 4 * 1024 * 1024 * 1024;

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

/// Makes a session a replica: the dataset as it is now, and the offset of the stream from which
/// it gets what follows. Only while all other workers stand still. O(all data).
pub fn attach_replica(core: &mut Core, session: &mut Session) -> Result<(Arc<Vec<u8>>, u64)> {
    hand_in_sealed(core);
    let Bounded(bytes) = snapshot::write_to(core, Bounded(Vec::new())).map_err(|error| {
        core.shared.log.warning(format_args!("No snapshot for a replica: {error}"));
        CommandError::text("ERR Unable to perform background save")
    })?;
    let token = session.token;
    let replica = session.replica.get_or_insert_default();
    replica.follows = true;
    replica.snapshot_left = bytes.len() as u64;
    replica.snapshot_held = bytes.len() as u64;
    core.shared.replication.feed.note_snapshots(replica.snapshot_held.cast_signed());
    session.record.set(flag::REPLICA, true);
    let peer = session.record.addr.tcp().map(|address| address.ip());
    let member = Member {
        worker: core.id,
        token,
        ip: replica.ip.or(peer),
        port: replica.port,
        acked: 0,
        acked_ms: 0,
    };
    let from = core.shared.replication.feed.attach(member, core.shared.keyspace.last_ticket());
    core.env.armed.arm(Armed::PROPAGATE, true);
    core.followers.push(Follower { token, from });
    Ok((Arc::new(bytes), from))
}

/// A session that is gone follows no more.
pub fn detach_replica(core: &mut Core, session: &mut Session) {
    if let Some(replica) = session.replica.as_mut().filter(|replica| replica.follows) {
        note_snapshot_left(core, replica, 0);
        core.followers.retain(|follower| follower.token != session.token);
        core.shared.replication.feed.detach(session.token, core.id);
    }
}

/// So much of a snapshot may still be unsent at most.
pub fn note_snapshot_left(core: &Core, replica: &mut Replica, most: u64) {
    replica.snapshot_left = replica.snapshot_left.min(most);
    if replica.snapshot_left == 0 {
        let held = std::mem::take(&mut replica.snapshot_held);
        core.shared.replication.feed.note_snapshots(-held.cast_signed());
    }
}

/// Hands what transactions left to the stream.
#[cold]
pub fn hand_in_sealed(core: &Core) {
    hand_in(core.shared, core.id, &core.env.sealed);
}

/// Stops collecting effects if nobody wants them any more.
pub fn disarm_feed(core: &mut Core) {
    let armed = &core.env.armed;
    let is_idle = || core.shared.replication.feed.replica_count() == 0;
    if armed.get().contains(Armed::PROPAGATE) && is_idle() {
        // While a script takes long it is put off.
        let Ok(still) = core.stop_others() else { return };
        if is_idle() {
            armed.arm(Armed::PROPAGATE, false);
        }
        drop(still);
    }
}
