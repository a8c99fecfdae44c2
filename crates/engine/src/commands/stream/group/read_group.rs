//! XREADGROUP: read on behalf of a group, either new entries or the consumer's own pending ones.

use crate::base::error::{CommandError, Result};
use crate::call::ctx::Ctx;
use crate::command::args::Args;
use crate::commands::stream::entries::reply_entry;
use crate::commands::stream::id;
use crate::commands::stream::quote;
use crate::commands::stream::read::{
    ReadFrom, ReadOptions, announce, open_stream, reply_deleted, wait,
};
use crate::env::effect::EventClass;
use crate::keyspace::{Key, Keys};
use crate::reply::{Outcome, Reply};
use crate::types::Edit;
use crate::types::stream::{Nack, Stream, StreamId};
use smallvec::SmallVec;

/// The consumer that reads.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands::stream) struct GroupRead<'a> {
    pub(in crate::commands::stream) group: &'a [u8],
    pub(in crate::commands::stream) consumer: &'a [u8],
    pub(in crate::commands::stream) no_ack: bool,
}

pub(in crate::commands::stream) fn read_as_consumer(
    ctx: &mut Ctx<'_, '_>,
    args: &Args<'_>,
    call: &ReadOptions<'_>,
) -> Result<Outcome> {
    let Some(member) = call.group else { return Err(CommandError::Syntax) };
    let mut plans: SmallVec<[(ReadFrom, bool); 4]> = SmallVec::new();
    for (key, word) in &call.streams {
        plans.push(plan(ctx.keys, key, word, &member)?);
    }
    for (key, _) in &call.streams {
        ensure_consumer(ctx.keys, key, &member)?;
    }
    let served = plans.iter().filter(|(_, served)| *served).count();
    ctx.keys.propagate_nothing();
    if served == 0 {
        return Ok(wait(ctx, args, call, |at| call.streams[at].1.to_vec()));
    }
    announce(&mut ctx.reply, served);
    for ((key, _), (from, _)) in call.streams.iter().zip(&plans).filter(|(_, plan)| plan.1) {
        open_stream(&mut ctx.reply, key.bytes);
        match *from {
            ReadFrom::New => read_new(ctx, key, &member, call.count)?,
            ReadFrom::After(id) => read_pending(ctx, key, &member, id, call.count)?,
        }
    }
    Ok(Outcome::Replied)
}

/// The position at which reading a stream starts, and whether there is something to return
/// immediately.
fn plan(
    keys: &Keys<'_>,
    key: &Key<'_>,
    word: &[u8],
    member: &GroupRead<'_>,
) -> Result<(ReadFrom, bool)> {
    let stream = keys.open::<Stream>(key)?;
    let group = stream.and_then(|stream| Some((stream, stream.group(member.group)?)));
    let (stream, group) = group.ok_or_else(|| {
        let tail = b"' in XREADGROUP with GROUP option";
        let middle = b"' or consumer group '";
        quote(&[b"NOGROUP No such key '", key.bytes, middle, member.group, tail])
    })?;
    let id = match word {
        b">" => StreamId::MAX,
        b"$" => {
            return Err(CommandError::text(
                "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the \
                 history of this consumer by specifying a proper ID, or use the > ID to get new \
                 messages. The $ ID would just return an empty result set.",
            ));
        }
        word => id::parse(word, 0)?,
    };
    if id == StreamId::MAX {
        // The highest ID, written out, also means `>`.
        let news = stream.last_id > group.last_id && has_entries_after(stream, group.last_id);
        return Ok((ReadFrom::New, news));
    }
    // The consumer's own history is returned even if it is empty.
    Ok((ReadFrom::After(id), true))
}

fn has_entries_after(stream: &Stream, id: StreamId) -> bool {
    stream.entries().last().is_some_and(|last| last.id > id)
}

/// Creates the consumer if it is new, and records its activity.
fn ensure_consumer(keys: &mut Keys<'_>, key: &Key<'_>, member: &GroupRead<'_>) -> Result<()> {
    let now_ms = keys.now().0 as i64;
    let created = keys.update::<Stream, _>(key, |stream, _| {
        let Some(group) = stream.group_mut(member.group) else { return Ok(Edit::unchanged(false)) };
        let created = group.create_consumer(member.consumer, now_ms);
        if let Some(consumer) = group.consumer_mut(member.consumer) {
            consumer.seen_ms = now_ms;
        }
        Ok(Edit::new(created, u64::from(created), "xgroup-createconsumer").metadata_only())
    })?;
    if created == Some(true) {
        keys.propagate(|| {
            let (group, consumer) = (member.group, member.consumer);
            [b"XGROUP", &b"CREATECONSUMER"[..], key.bytes, group, consumer]
                .map(<[u8]>::to_vec)
                .into()
        });
    }
    Ok(())
}

fn read_new(
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    member: &GroupRead<'_>,
    count: Option<usize>,
) -> Result<()> {
    let now_ms = ctx.now().0 as i64;
    let reply = &mut ctx.reply;
    let mut given: SmallVec<[StreamId; 16]> = SmallVec::new();
    let last = ctx.keys.update::<Stream, _>(key, |stream, _| {
        let entries = stream.entries().clone();
        let Some(group) = stream.group(member.group) else { return Ok(Edit::unchanged(None)) };
        let (mut last_id, mut entries_read) = (group.last_id, group.entries_read);
        let start = last_id.next().unwrap_or(StreamId::MAX);
        let total = entries.count(start, StreamId::MAX).min(count.unwrap_or(usize::MAX));
        reply.array(total);
        for entry in entries.range(start, StreamId::MAX).take(total) {
            entries_read = stream.entries_read_after(last_id, entries_read, entry.id);
            last_id = entry.id;
            given.push(entry.id);
            reply_entry(reply, &entry);
        }
        let Some(group) = stream.group_mut(member.group) else { return Ok(Edit::unchanged(None)) };
        (group.last_id, group.entries_read) = (last_id, entries_read);
        if let Some(consumer) = group.consumer_mut(member.consumer) {
            consumer.active_ms = Some(now_ms);
        }
        if !member.no_ack {
            given.iter().for_each(|id| group.assign(*id, member.consumer, now_ms, 1));
        }
        Ok(Edit::silent(Some((last_id, entries_read)), 1).metadata_only())
    })?;
    let Some((last_id, entries_read)) = last.flatten() else { return Ok(()) };
    if !member.no_ack {
        // Each entry is propagated with its state at delivery, so that a replay results in the same
        // group.
        for id in given {
            let claim = Claim { key, group: member.group, consumer: member.consumer, last_id: id };
            claim.propagate(ctx.keys, id, now_ms, 1);
        }
    }
    // XCLAIM does not contain the number of entries read.
    ctx.keys.propagate(|| {
        let (id, read) = (id::word(last_id), entries_read.to_string());
        let words = [b"XGROUP", &b"SETID"[..], key.bytes, member.group, &id, b"ENTRIESREAD"];
        let mut words: Vec<Vec<u8>> = words.map(<[u8]>::to_vec).into();
        words.push(read.into_bytes());
        words
    });
    Ok(())
}

/// The effect of delivering an entry to a consumer: an XCLAIM that does not depend on the clock.
pub(super) struct Claim<'a> {
    pub(super) key: &'a Key<'a>,
    pub(super) group: &'a [u8],
    pub(super) consumer: &'a [u8],
    pub(super) last_id: StreamId,
}

impl Claim<'_> {
    pub(super) fn propagate(&self, keys: &mut Keys<'_>, id: StreamId, ms: i64, count: u64) {
        keys.propagate(|| {
            let (ms, count) = (ms.to_string(), count.to_string());
            let words = [
                b"XCLAIM",
                self.key.bytes,
                self.group,
                self.consumer,
                b"0",
                &id::word(id),
                b"TIME",
                ms.as_bytes(),
                b"RETRYCOUNT",
                count.as_bytes(),
                b"FORCE",
                b"JUSTID",
                b"LASTID",
                &id::word(self.last_id),
            ];
            words.map(<[u8]>::to_vec).into()
        });
    }
}

fn read_pending(
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    member: &GroupRead<'_>,
    after: StreamId,
    count: Option<usize>,
) -> Result<()> {
    let now_ms = ctx.now().0 as i64;
    let reply: &mut Reply<'_> = &mut ctx.reply;
    ctx.keys.update::<Stream, _>(key, |stream, _| {
        let entries = stream.entries().clone();
        let Some(group) = stream.group_mut(member.group) else { return Ok(Edit::unchanged(())) };
        let pending = group.consumer(member.consumer).map(|consumer| consumer.pending());
        let ids: Vec<StreamId> = match (pending, after.next()) {
            (Some(pending), Some(start)) => {
                let ids = pending.iter_from(start).map(|(id, ())| id);
                ids.take(count.unwrap_or(usize::MAX)).collect()
            }
            _ => Vec::new(),
        };
        reply.array(ids.len());
        for id in &ids {
            match entries.get(*id) {
                Some(entry) => {
                    reply_entry(reply, &entry);
                    group.redeliver(*id, now_ms);
                }
                None => reply_deleted(reply, *id),
            }
        }
        Ok(Edit::silent((), 1).metadata_only())
    })?;
    Ok(())
}

/// Publishes the event of a consumer that was created implicitly.
pub(super) fn announce_consumer(keys: &mut Keys<'_>, key: &Key<'_>) {
    keys.notify_event(key, EventClass::STREAM, "xgroup-createconsumer");
}

/// The time since the delivery.
pub(super) fn idle_ms(nack: &Nack, now_ms: i64) -> i64 {
    now_ms.saturating_sub(nack.delivered_ms).max(0)
}
