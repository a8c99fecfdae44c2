//! XINFO STREAM … FULL: entries, groups, consumers, and their pending entries.

use super::{progress, reply_counts};
use crate::base::error::{CommandError, Result};
use crate::command::args::Args;
use crate::commands::stream::entries::{reply_entry, reply_id};
use crate::reply::{Outcome, Reply};
use crate::types::stream::{Group, Stream, StreamId};

/// Number of entries and pending entries to show, unless COUNT is given.
const COUNT: i64 = 10;

pub(super) fn full(reply: &mut Reply<'_>, stream: &Stream, args: &mut Args<'_>) -> Result<Outcome> {
    if !args.take("FULL") {
        return Err(syntax(args));
    }
    let mut count = COUNT;
    match args.remaining() {
        0 => {}
        2 if args.take("COUNT") => {
            count = args.integer()?;
            if count < 0 {
                count = COUNT;
            }
        }
        _ => return Err(syntax(args)),
    }
    let shown = if count == 0 { usize::MAX } else { count as usize };
    reply.map(9);
    reply_counts(reply, stream);
    reply.bulk(b"entries");
    let entries = stream.entries();
    reply.array(entries.len().min(shown));
    for entry in entries.range(StreamId::MIN, StreamId::MAX).take(shown) {
        reply_entry(reply, &entry);
    }
    reply.bulk(b"groups");
    reply.array(stream.groups().len());
    for (name, group) in stream.groups() {
        reply.map(7);
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"last-delivered-id");
        reply_id(reply, group.last_id);
        progress(reply, stream, group);
        pending(reply, group, shown);
        consumers(reply, group, shown);
    }
    Ok(Outcome::Replied)
}

fn syntax(args: &Args<'_>) -> CommandError {
    let text = "ERR unknown subcommand or wrong number of arguments for '";
    CommandError::text_around(text, args.argument(1), "'. Try XINFO HELP.")
}

fn pending(reply: &mut Reply<'_>, group: &Group, shown: usize) {
    reply.bulk(b"pel-count");
    reply.count(group.pending().len());
    reply.bulk(b"pending");
    reply.array(group.pending().len().min(shown));
    for (id, nack) in group.pending().iter_from(StreamId::MIN).take(shown) {
        reply.array(4);
        reply_id(reply, id);
        reply.bulk(&group.owner(nack).name);
        reply.integer(nack.delivered_ms);
        reply.integer(nack.count as i64);
    }
}

fn consumers(reply: &mut Reply<'_>, group: &Group, shown: usize) {
    reply.bulk(b"consumers");
    reply.array(group.consumers().len());
    for consumer in group.consumers() {
        reply.map(5);
        reply.bulk(b"name");
        reply.bulk(&consumer.name);
        reply.bulk(b"seen-time");
        reply.integer(consumer.seen_ms);
        reply.bulk(b"active-time");
        reply.integer(consumer.active_ms.unwrap_or(-1));
        reply.bulk(b"pel-count");
        reply.count(consumer.pending().len());
        reply.bulk(b"pending");
        reply.array(consumer.pending().len().min(shown));
        for (id, ()) in consumer.pending().iter_from(StreamId::MIN).take(shown) {
            let Some(nack) = group.pending().get(id) else { continue };
            reply.array(3);
            reply_id(reply, id);
            reply.integer(nack.delivered_ms);
            reply.integer(nack.count as i64);
        }
    }
}
