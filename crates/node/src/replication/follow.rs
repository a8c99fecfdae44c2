//! Sessions that follow the stream: how they begin and cease to. Their snapshot is begun in
//! `synchronise`.

use super::feed::Member;
use super::replica::{Attachment, Follower, Stage};
use crate::clients::flag;
use crate::core::Core;
use crate::core::session::Session;
use brisk_engine::effect::Hooks;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Makes a session a replica that waits for a snapshot. Nothing but the snapshot leaves for it until
/// it has that.
pub fn attach_replica(core: &mut Core, session: &mut Session, acknowledges: bool) {
    let token = session.token;
    let attachment = Arc::new(Attachment::default());
    let peer = session.record.addr.tcp().map(|address| address.ip());
    let replica = session.replica.get_or_insert_default();
    replica.attachment = Some(Arc::clone(&attachment));
    replica.acknowledges = acknowledges;
    session.record.set(flag::REPLICA | flag::SYNCHRONISES, true);
    core.shared.replication.feed.attach(Member {
        client: Arc::clone(&session.record),
        attachment: Arc::clone(&attachment),
        ip: replica.ip.or(peer),
        port: replica.port,
        acked: 0,
        acked_ms: 0,
        acked_durable: None,
    });
    core.followers.push(Follower { token, attachment });
}

/// All of its snapshot is in a replica's output: the stream follows.
pub fn note_synchronised(core: &Core, session: &mut Session) {
    let Some(replica) = &mut session.replica else { return };
    let Some(attachment) = &replica.attachment else { return };
    attachment.leave();
    attachment.set_stage(Stage::Online);
    session.record.set(flag::SYNCHRONISES, false);
    // What it has to say begins here.
    let now_ms = brisk_reactor::unix_ms();
    session.record.last_active_ms.store(now_ms, Ordering::Relaxed);
    core.shared.replication.feed.note_online(&session.record, now_ms);
}

/// A session that is gone follows no more.
pub fn detach_replica(core: &mut Core, session: &mut Session) {
    let Some(replica) = &mut session.replica else { return };
    let Some(attachment) = replica.attachment.take() else { return };
    let replication = &core.shared.replication;
    replication.note_held(replica, 0);
    core.followers.retain(|follower| follower.token != session.token);
    replication.feed.detach(&session.record);
    attachment.leave();
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
