//! Stream entries in replies.

use crate::reply::{Outcome, Reply};
use crate::types::stream::{Entries, Entry, StreamId};

/// From this number of entries on, a reply is written as the client reads it.
const STREAMED_MIN: usize = 1024;

/// Replies with an ID.
pub(super) fn reply_id(reply: &mut Reply<'_>, id: StreamId) -> Outcome {
    let mut text = [0u8; 41];
    let len = format_id(id, &mut text);
    reply.bulk(&text[..len])
}

/// Writes an ID into a buffer in which every ID fits. Returns its length.
fn format_id(id: StreamId, out: &mut [u8; 41]) -> usize {
    let mut digits = itoa::Buffer::new();
    let ms = digits.format(id.ms).as_bytes();
    out[..ms.len()].copy_from_slice(ms);
    let dash = ms.len();
    out[dash] = b'-';
    let seq = digits.format(id.seq).as_bytes();
    out[dash + 1..dash + 1 + seq.len()].copy_from_slice(seq);
    dash + 1 + seq.len()
}

/// Replies with an entry: its ID, and its alternating fields and values.
pub(super) fn reply_entry(reply: &mut Reply<'_>, entry: &Entry<'_>) -> Outcome {
    reply.array(2);
    reply_id(reply, entry.id);
    reply.array(2 * entry.len());
    let mut digits = itoa::Buffer::new();
    for (field, value) in entry.pairs() {
        reply.bulk(field.text(&mut digits));
        reply.bulk(value.text(&mut digits));
    }
    Outcome::Replied
}

/// The entries of a range to reply with.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryRange {
    pub(super) start: StreamId,
    pub(super) end: StreamId,
    /// `None`: all.
    pub(super) count: Option<usize>,
    pub(super) reversed: bool,
}

/// Replies with the entries of a range. Large replies are written as the client reads them.
pub(super) fn reply_range(
    reply: &mut Reply<'_>,
    entries: &Entries,
    wanted: &EntryRange,
) -> Outcome {
    reply_ranges(reply, vec![(Vec::new(), entries.clone(), *wanted)], |_, _| ())
}

/// Replies with ranges of several streams, one after the other. `open` writes the stream's key
/// before each range.
pub(super) fn reply_ranges(
    reply: &mut Reply<'_>,
    ranges: Vec<(Vec<u8>, Entries, EntryRange)>,
    open: impl Fn(&mut Reply<'_>, &[u8]) + Send + 'static,
) -> Outcome {
    let total = |(_, entries, wanted): &(Vec<u8>, Entries, EntryRange)| {
        let most = wanted.count.unwrap_or(usize::MAX);
        entries.count(wanted.start, wanted.end).min(most)
    };
    let streamed = ranges.iter().map(total).fold(0, usize::saturating_add) >= STREAMED_MIN;
    let mut ranges = ranges.into_iter();
    // The stream that is being written, and the rest of its range.
    let mut current: Option<(Entries, EntryRange, usize)> = None;
    let mut write = move |reply: &mut Reply<'_>, budget: usize| {
        let end = reply.written().saturating_add(budget);
        while reply.written() < end {
            if let Some((view, wanted, left)) = current.take() {
                let room = end - reply.written();
                let rest = write_some(reply, &view, &wanted, left, room);
                current = rest.map(|(wanted, left)| (view, wanted, left));
                continue;
            }
            let Some(range) = ranges.next() else { return false };
            let left = total(&range);
            let (key, view, wanted) = range;
            open(reply, &key);
            reply.array(left);
            current = (left > 0).then_some((view, wanted, left));
        }
        true
    };
    if streamed {
        return reply.stream(write);
    }
    while write(reply, usize::MAX) {}
    Outcome::Replied
}

/// Writes up to `left` entries, but stops after about `budget` bytes. Returns the number of
/// remaining entries.
fn write_some(
    reply: &mut Reply<'_>,
    entries: &Entries,
    wanted: &EntryRange,
    mut left: usize,
    budget: usize,
) -> Option<(EntryRange, usize)> {
    let EntryRange { start, end, reversed, .. } = *wanted;
    let before = reply.written();
    let mut write = |entry: Entry<'_>| {
        reply_entry(reply, &entry);
        left -= 1;
        if left == 0 {
            return Some(None);
        }
        (reply.written() - before >= budget).then(|| {
            if reversed {
                entry.id.prev().map(|end| (EntryRange { end, ..*wanted }, left))
            } else {
                entry.id.next().map(|start| (EntryRange { start, ..*wanted }, left))
            }
        })
    };
    if left_is_none(entries, start, end) {
        return None;
    }
    let rest = if reversed {
        entries.range_reversed(start, end).find_map(&mut write)
    } else {
        entries.range(start, end).find_map(&mut write)
    };
    rest.flatten()
}

fn left_is_none(entries: &Entries, start: StreamId, end: StreamId) -> bool {
    entries.is_empty() || start > end
}
