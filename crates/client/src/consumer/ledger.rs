//! Reports the state of entries to the server: acknowledged, dead, in progress, attempted again, or returned.
//!
//! All of these commands are idempotent, so they are sent again after a lost connection.

use super::event::Event;
use super::message::{Id, Message};
use super::source::is_permanent;
use super::{Plan, work::Backoff};
use crate::client::Client;
use crate::command::{Command, Replay};
use crate::commands::{self, options};
use crate::error::Result;
use crate::script::Script;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// The maximum number of IDs in one command.
pub(super) const IDS_MAX: usize = 1000;
/// The maximum number of arguments of a script, far below the server's limit. An entry with more fields is moved by a
/// transaction.
const SCRIPT_ARGS_MAX: usize = 4000;

/// Adds the entry to the dead-letter stream and acknowledges it, unless the entry is no longer pending, which means
/// that this has already been done.
static BURY: Script = Script::new(
    "if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1) == 0 then return 0 end
    redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
    redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
    return 1",
);

/// Removes a member without pending entries.
static LEAVE: Script = Script::new(
    "if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
    return 1",
);

/// Acknowledges entries.
pub(super) async fn acknowledge(db: &Client, plan: &Plan, ids: &[Id]) -> Result<()> {
    let acknowledged = db.xack(&plan.stream, &plan.group, ids).replay(Replay::AtLeastOnce);
    acknowledged.await.map(|_| ())
}

/// Resets the idle time of entries that are being handled. Does not change their delivery counts.
pub(super) async fn reset_idle(db: &Client, plan: &Plan, ids: &[Id]) -> Result<()> {
    for ids in ids.chunks(IDS_MAX) {
        let claim = db.xclaim::<Id>(&plan.stream, &plan.group, &plan.member, 0, ids);
        claim.idle(0).just_id().replay(Replay::AtLeastOnce).await?;
    }
    Ok(())
}

/// Counts another attempt of an entry; false if it is no longer pending.
pub(super) async fn count_attempt(db: &Client, plan: &Plan, message: &Message) -> Result<bool> {
    let claim = db.xclaim::<Id>(&plan.stream, &plan.group, &plan.member, 0, message.id);
    let claim = claim.retry_count(message.deliveries).just_id().replay(Replay::AtLeastOnce);
    Ok(!claim.await?.is_empty())
}

/// Moves an entry to the dead-letter stream. Tries again after temporary errors.
///
/// # Errors
/// A permanent error.
pub(super) async fn bury(
    db: &Client,
    plan: &Plan,
    stream: &Bytes,
    message: &Message,
    why: &str,
) -> Result<()> {
    let mut backoff = Backoff::default();
    loop {
        match try_to_bury(db, plan, stream, message, why).await {
            Err(error) if !is_permanent(&error) => {
                let again_in = backoff.next();
                plan.notify(&Event::Interrupted { error: &error, again_in });
                tokio::time::sleep(again_in).await;
            }
            done => return done,
        }
    }
}

async fn try_to_bury(
    db: &Client,
    plan: &Plan,
    stream: &Bytes,
    message: &Message,
    why: &str,
) -> Result<()> {
    let about = [
        ("dead:stream", plan.stream.clone()),
        ("dead:group", plan.group.clone()),
        ("dead:member", plan.member.clone()),
        ("dead:id", message.id.to_string().into()),
        ("dead:deliveries", message.deliveries.to_string().into()),
        ("dead:error", why.to_owned().into()),
    ];
    let about = about.into_iter().flat_map(|(name, value)| [Bytes::from(name), value]);
    let own = message.fields.iter().flat_map(|(name, value)| [name.clone(), value.clone()]);
    let fields: Vec<Bytes> = own.chain(about).collect();
    if fields.len() > SCRIPT_ARGS_MAX {
        let add = commands::xadd(stream, "*", &fields);
        let acknowledge = commands::xack(&plan.stream, &plan.group, message.id);
        return db.transaction((add, acknowledge)).await.map(|_| ());
    }
    let mut args = vec![plan.group.clone(), message.id.to_string().into()];
    args.extend(fields);
    BURY.run::<()>(db, [&plan.stream, stream], args).await
}

/// Lets other members claim this member's pending entries immediately. `begun` contains the entries whose handler
/// failed, with their delivery counts. For other entries, the current delivery is not counted.
pub(super) async fn give_back(db: &Client, plan: &Plan, begun: &HashMap<Id, u64>) -> Result<u64> {
    let mut returned = 0;
    let mut after = Id::default();
    loop {
        let listed = db
            .xpending_range::<(Id, Bytes, i64, u64)>(
                &plan.stream,
                &plan.group,
                format!("({after}"),
                "+",
                IDS_MAX,
            )
            .consumer(&plan.member)
            .await?;
        let Some(last) = listed.last() else { return Ok(returned) };
        after = last.0;
        let mut by_count: BTreeMap<u64, Vec<Id>> = BTreeMap::new();
        for (id, _, _, count) in listed {
            let count = match begun.get(&id) {
                Some(count) => *count,
                // The count does not change for an entry that is kept although it has no attempts left.
                None if count >= plan.attempts => count,
                None => count - 1,
            };
            by_count.entry(count).or_default().push(id);
        }
        returned += by_count.values().map(|ids| ids.len() as u64).sum::<u64>();
        let claims = by_count.into_iter().map(|(count, ids)| release(plan, count, &ids));
        db.batch(claims.collect::<Vec<_>>()).replay(Replay::AtLeastOnce).await?;
    }
}

fn release(plan: &Plan, count: u64, ids: &[Id]) -> Command<(), Vec<Id>, options::Xclaim> {
    // An idle time that is long enough for the next member that looks for abandoned entries to claim these.
    let idle = plan.claim_idle + Duration::from_millis(1);
    commands::xclaim(&plan.stream, &plan.group, &plan.member, 0, ids)
        .idle(idle.as_millis() as u64)
        .retry_count(count)
        .just_id()
}

/// Removes the member if it has no pending entries.
pub(super) async fn leave(db: &Client, plan: &Plan) -> Result<()> {
    LEAVE.run::<()>(db, &plan.stream, [&plan.group, &plan.member]).await
}
