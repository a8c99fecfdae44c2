//! Streams in dumps: the blocks unchanged, then the groups with their pending entries.

use super::{Group, Stream, StreamId};
use brisk_persist::rdb::value::{StreamGroup as DumpedGroup, StreamValue as Dumped};
use brisk_persist::rdb::{Encoder, Sink};

pub(in crate::types) fn dump<S: Sink>(stream: &Stream, encoder: &mut Encoder<S>) {
    let blocks = stream.packed_blocks();
    encoder.length(blocks.len() as u64);
    for (first, entries) in blocks {
        encoder.string(&first.to_bytes());
        encoder.string(entries.as_bytes());
    }
    encoder.length(stream.len() as u64);
    encoder.stream_id(stream.last_id);
    encoder.stream_id(stream.first_id());
    encoder.stream_id(stream.max_deleted_id);
    encoder.length(stream.entries_added);
    let groups = stream.groups();
    encoder.length(groups.len() as u64);
    for (name, group) in groups {
        encoder.string(name);
        dump_group(group, encoder);
    }
}

fn dump_group<S: Sink>(group: &Group, encoder: &mut Encoder<S>) {
    encoder.stream_id(group.last_id);
    encoder.length(group.entries_read.cast_unsigned());
    encoder.length(group.pending().len() as u64);
    for (id, nack) in group.pending().iter_from(StreamId::MIN) {
        encoder.packed_stream_id(id);
        encoder.milliseconds(nack.delivered_ms);
        encoder.length(nack.count);
    }
    let consumers = group.consumers();
    encoder.length(consumers.len() as u64);
    for consumer in consumers {
        encoder.string(&consumer.name);
        encoder.milliseconds(consumer.seen_ms);
        encoder.length(consumer.pending().len() as u64);
        for (id, ()) in consumer.pending().iter_from(StreamId::MIN) {
            encoder.packed_stream_id(id);
        }
    }
}

/// `None` if the blocks are malformed.
pub(in crate::types) fn of_dumped(mut dumped: Dumped) -> Option<Stream> {
    let blocks = std::mem::take(&mut dumped.blocks);
    let mut stream =
        Stream::from_blocks(blocks.into_iter().map(|block| (block.id, block.entries))).ok()?;
    if stream.last_id > dumped.last_id {
        return None;
    }
    stream.last_id = dumped.last_id;
    stream.max_deleted_id = dumped.max_deleted_id;
    stream.entries_added = dumped.entries_added;
    for group in dumped.groups() {
        add_group(&mut stream, &group)?;
    }
    Some(stream)
}

fn add_group(stream: &mut Stream, dumped: &DumpedGroup<'_>) -> Option<()> {
    // As in Redis, the greatest number means that the number is unknown. In memory this is -1.
    let entries_read = dumped.entries_read.unwrap_or(u64::MAX).cast_signed();
    stream.create_group(dumped.name, dumped.last_id, entries_read);
    let group = stream.group_mut(dumped.name)?;
    let names: Vec<&[u8]> = dumped.consumer_names().collect();
    for (name, consumer) in names.iter().zip(dumped.consumers) {
        group.create_consumer(name, consumer.seen_ms);
        group.consumer_mut(name)?.active_ms =
            (consumer.active_ms >= 0).then_some(consumer.active_ms);
    }
    for entry in dumped.pending {
        let owner = names.get(entry.consumer as usize)?;
        group.assign(entry.id, owner, entry.delivered_ms, entry.deliveries);
    }
    Some(())
}
