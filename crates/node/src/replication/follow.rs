//! Sessions that follow the stream: how they begin, and how it comes to be.

use super::feed::Member;
use super::replica::Follower;
use crate::clients::flag;
use crate::core::Core;
use crate::core::session::Session;
use crate::persistence::snapshot;
use brisk_engine::effect::Hooks;
use brisk_engine::{CommandError, Result};
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

/// Makes a session a replica: the dataset as it is now, and the offset of the stream from which
/// it gets what follows. Only while all other workers stand still. O(all data).
pub fn attach_replica(core: &mut Core, session: &mut Session) -> Result<(Arc<Vec<u8>>, u64)> {
    core.shared.pump(core.id);
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
        acked_durable: None,
    };
    let from = core.shared.replication.feed.attach(member, core.shared.keyspace.journal());
    core.env.hooks.set(Hooks::PROPAGATE, true);
    core.followers.push(Follower { token, from });
    Ok((Arc::new(bytes), from))
}

/// A session that is gone follows no more.
pub fn detach_replica(core: &mut Core, session: &mut Session) {
    if let Some(replica) = session.replica.as_mut().filter(|replica| replica.follows) {
        core.shared.replication.note_snapshot_left(replica, 0);
        core.followers.retain(|follower| follower.token != session.token);
        core.shared.replication.feed.detach(session.token, core.id);
    }
}

/// Stops collecting effects if nobody wants them any more.
pub fn disarm_feed(core: &mut Core) {
    let hooks = &core.env.hooks;
    let is_idle = || core.shared.replication.feed.replica_count() == 0 && !core.shared.aof.is_on();
    if hooks.get().contains(Hooks::PROPAGATE) && is_idle() {
        // While a script takes long it is put off.
        let Ok(quiesced) = core.stop_others() else { return };
        if is_idle() {
            hooks.set(Hooks::PROPAGATE, false);
        }
        drop(quiesced);
    }
}
