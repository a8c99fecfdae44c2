//! Streams: blocks of entries, then consumer groups with what they have not acknowledged.

use crate::error::LoadError;
use crate::rdb::input::Input;
use crate::rdb::kind;
use crate::rdb::primitive::Decoder;
use crate::rdb::strings::Strings;
use crate::rdb::value::{Consumer, GroupEnds, NonMax, Pending, Stream, StreamBlock, StreamId};
use brisk_structures::listpack::{Iter, ListPack};

/// Flags of an entry in a block.
const DELETED: i64 = 1;
const SAME_FIELDS: i64 = 2;

/// A pending entry whose consumer has not been read yet.
const NO_CONSUMER: u32 = u32::MAX;

/// What a block's entries add up to.
struct Tally {
    live: u64,
    first_live: Option<StreamId>,
    last: StreamId,
}

impl<I: Input> Decoder<I> {
    pub(super) fn stream(&mut self, kind: u8) -> Result<Stream, LoadError> {
        let mut stream = Stream::default();
        let greatest = self.blocks(&mut stream)?;
        if self.length()? != stream.len {
            return Err(self.malformed("a stream's length is not that of its entries"));
        }
        stream.last_id = self.id()?;
        if greatest.is_some_and(|id| id > stream.last_id) {
            return Err(self.malformed("a stream's last id is below that of an entry"));
        }
        if kind == kind::STREAM_LISTPACKS {
            stream.entries_added = stream.len;
        } else {
            // The first id is that of the first entry, which is known.
            self.id()?;
            stream.max_deleted_id = self.id()?;
            stream.entries_added = self.length()?;
            if stream.entries_added < stream.len {
                return Err(self.malformed("a stream has more entries than were ever added"));
            }
        }
        for _ in 0..self.length()? {
            self.group(kind, &mut stream)?;
        }
        self.unique_groups(&stream)?;
        Ok(stream)
    }

    /// A stream id of two lengths.
    fn id(&mut self) -> Result<StreamId, LoadError> {
        Ok(StreamId { ms: self.length()?, seq: self.length()? })
    }

    /// A stream id of 16 bytes.
    fn raw_id(&mut self) -> Result<StreamId, LoadError> {
        Ok(StreamId::from_bytes(self.input.array()?))
    }

    /// Reads the blocks, and returns the greatest id in them.
    fn blocks(&mut self, stream: &mut Stream) -> Result<Option<StreamId>, LoadError> {
        let mut greatest = None;
        for _ in 0..self.length()? {
            let id = self.string()?;
            let Ok(id) = id.as_slice().try_into().map(StreamId::from_bytes) else {
                return Err(self.malformed("a stream block's id has not 16 bytes"));
            };
            let entries = self.listpack()?;
            let tally = tally(id, &entries).map_err(|what| self.malformed(what))?;
            if greatest.is_some_and(|before| before >= id) {
                return Err(self.malformed("a stream's blocks are not in order"));
            }
            greatest = Some(tally.last);
            // A block of deleted entries only is nothing that has to be kept.
            let Some(first_live) = tally.first_live else {
                continue;
            };
            if stream.len == 0 {
                stream.first_id = first_live;
            }
            stream.len += tally.live;
            stream.blocks.push(StreamBlock { id, entries });
        }
        Ok(greatest)
    }

    fn group(&mut self, kind: u8, stream: &mut Stream) -> Result<(), LoadError> {
        self.string_onto(&mut stream.names)?;
        let last_id = self.id()?;
        let entries_read = if kind == kind::STREAM_LISTPACKS {
            entries_before(stream, last_id)
        } else {
            NonMax::new(self.length()?)
        };
        let pending_start = stream.pending.len();
        for _ in 0..self.length()? {
            stream.pending.push(Pending {
                id: self.raw_id()?,
                delivered_ms: self.milliseconds()?,
                deliveries: self.length()?,
                consumer: NO_CONSUMER,
            });
        }
        let pending = &mut stream.pending[pending_start..];
        if !pending.is_sorted_by_key(|entry| entry.id) {
            pending.sort_unstable_by_key(|entry| entry.id);
        }
        if pending.windows(2).any(|two| two[0].id == two[1].id) {
            return Err(self.malformed("a group has an entry pending twice"));
        }

        let mut names = Strings::new();
        let consumers = self.length()?;
        for index in 0..consumers {
            let index = u32::try_from(index).unwrap_or(NO_CONSUMER);
            if index == NO_CONSUMER {
                return Err(self.malformed("a group has too many consumers"));
            }
            self.consumer(kind, index, stream, pending_start, &mut names)?;
        }
        self.demand_unique(&names, 1, "a group has two consumers of one name")?;
        if stream.pending[pending_start..].iter().any(|entry| entry.consumer == NO_CONSUMER) {
            return Err(self.malformed("a pending entry belongs to no consumer"));
        }
        for name in &names {
            stream.names.push(name);
        }
        let (Ok(consumers_end), Ok(pending_end)) =
            (u32::try_from(stream.consumers.len()), u32::try_from(stream.pending.len()))
        else {
            return Err(self.malformed("a stream has too many consumers or pending entries"));
        };
        let ends = GroupEnds { last_id, entries_read, consumers_end, pending_end };
        push_sparingly(&mut stream.groups, ends);
        Ok(())
    }

    fn consumer(
        &mut self,
        kind: u8,
        index: u32,
        stream: &mut Stream,
        pending_start: usize,
        names: &mut Strings,
    ) -> Result<(), LoadError> {
        self.string_onto(names)?;
        let seen_ms = self.milliseconds()?;
        let active_ms =
            if kind == kind::STREAM_LISTPACKS_3 { self.milliseconds()? } else { seen_ms };
        push_sparingly(&mut stream.consumers, Consumer { seen_ms, active_ms });
        for _ in 0..self.length()? {
            let id = self.raw_id()?;
            let pending = &mut stream.pending[pending_start..];
            let Ok(place) = pending.binary_search_by_key(&id, |entry| entry.id) else {
                return Err(self.malformed("a consumer's pending entry is not the group's"));
            };
            if pending[place].consumer != NO_CONSUMER {
                return Err(self.malformed("a pending entry has two owners"));
            }
            pending[place].consumer = index;
        }
        Ok(())
    }

    fn unique_groups(&mut self, stream: &Stream) -> Result<(), LoadError> {
        if stream.groups_len() < 2 {
            return Ok(());
        }
        let names: Strings = stream.groups().map(|group| group.name).collect();
        self.demand_unique(&names, 1, "a stream has two groups of one name")
    }
}

/// Grows by half, not to the double: groups and consumers take several times the bytes they took in
/// the file.
fn push_sparingly<T>(all: &mut Vec<T>, new: T) {
    if all.len() == all.capacity() {
        all.reserve_exact(all.len() / 2 + 1);
    }
    all.push(new);
}

/// How many entries were ever added up to `id`, if it can be told: files of before 7.0 do not say.
fn entries_before(stream: &Stream, id: StreamId) -> Option<NonMax> {
    let added = stream.entries_added;
    let known = if added == 0 {
        0
    } else if id == stream.last_id {
        added
    } else if id > stream.last_id {
        return None;
    } else if id < stream.first_id {
        added - stream.len
    } else if id == stream.first_id {
        added - stream.len + 1
    } else {
        return None;
    };
    NonMax::new(known)
}

/// Walks a block's entries and checks everything about them.
fn tally(block: StreamId, entries: &ListPack) -> Result<Tally, &'static str> {
    const CUT_OFF: &str = "a stream block is cut off";
    let mut items = entries.iter();
    let number = |items: &mut Iter<'_>| match items.next() {
        Some(item) => item.int().ok_or("a stream block has text where a number should be"),
        None => Err(CUT_OFF),
    };
    let live = number(&mut items)?;
    let deleted = number(&mut items)?;
    let fields = number(&mut items)?;
    skip(&mut items, fields).ok_or(CUT_OFF)?;
    if number(&mut items)? != 0 {
        return Err("a stream block's first entry does not end with zero");
    }
    let (Ok(live), Ok(deleted)) = (u64::try_from(live), u64::try_from(deleted)) else {
        return Err("a stream block counts fewer than no entries");
    };

    let mut seen = Tally { live: 0, first_live: None, last: block };
    let mut dead = 0;
    while items.clone().next().is_some() {
        let flags = number(&mut items)?;
        let (ms, seq) = (number(&mut items)?, number(&mut items)?);
        let id = StreamId {
            ms: block.ms.wrapping_add_signed(ms),
            seq: block.seq.wrapping_add_signed(seq),
        };
        let first = seen.live + dead == 0;
        if id < seen.last || (id == seen.last && !first) {
            return Err("a stream block's entries are not in order");
        }
        seen.last = id;
        let (parts, head) = if flags & SAME_FIELDS != 0 {
            skip(&mut items, fields).ok_or(CUT_OFF)?;
            (fields, 3)
        } else {
            let own = number(&mut items)?;
            let both = own.checked_mul(2).ok_or(CUT_OFF)?;
            skip(&mut items, both).ok_or(CUT_OFF)?;
            (both, 4)
        };
        if number(&mut items)? != parts + head {
            return Err("a stream entry's count of elements is wrong");
        }
        if flags & DELETED != 0 {
            dead += 1;
        } else {
            seen.live += 1;
            seen.first_live.get_or_insert(id);
        }
    }
    if (seen.live, dead) != (live, deleted) {
        return Err("a stream block's count of entries is wrong");
    }
    Ok(seen)
}

/// Passes over `count` elements; `None` if there are not so many, or the count is none of elements.
fn skip(items: &mut Iter<'_>, count: i64) -> Option<()> {
    for _ in 0..u64::try_from(count).ok()? {
        items.next()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_structures::listpack::Item;

    fn block(words: &str) -> ListPack {
        let mut pack = ListPack::new();
        for word in words.split_whitespace() {
            pack.push_back(Item::of(word.as_bytes()));
        }
        pack
    }

    fn check(words: &str) -> Result<(u64, Option<StreamId>, StreamId), &'static str> {
        let id = StreamId { ms: 10, seq: 5 };
        tally(id, &block(words)).map(|tally| (tally.live, tally.first_live, tally.last))
    }

    #[test]
    fn a_block_is_counted_and_its_ids_are_those_of_its_entries() {
        // Two fields; an entry with the same, a deleted one, one with a field of its own whose
        // sequence number is below the block's.
        let words = "2 1 2 a b 0  2 0 0 x y 5  3 0 1 x y 5  0 7 -5 1 c z 6";
        let (first, last) = (StreamId { ms: 10, seq: 5 }, StreamId { ms: 17, seq: 0 });
        assert_eq!(check(words), Ok((2, Some(first), last)));
    }

    #[test]
    fn broken_blocks_are_refused() {
        for bad in [
            "",
            "1 0 1 a",
            "x 0 1 a 0 2 0 0 x 4",
            "1 0 1 a 1 2 0 0 x 4",
            "1 0 1 a 0 2 0 0 x 5",
            "2 0 1 a 0 2 0 0 x 4",
            "1 1 1 a 0 2 0 0 x 4",
            "-1 2 1 a 0 2 0 0 x 4",
            "1 0 -1 a 0 2 0 0 x 4",
            "1 0 1 a 0 2 0 0 x",
            "1 0 1 a 0 2 0 0 x 4 9",
            "1 0 1 a 0 2 0 -1 x 4",
            "2 0 1 a 0 2 0 0 x 4 2 0 0 y 4",
            "2 0 1 a 0 2 0 3 x 4 2 0 2 y 4",
            "1 0 1 a 0 0 0 0 9223372036854775807 b x 6",
            "1 0 9223372036854775807 a 0 2 0 0 x 4",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
