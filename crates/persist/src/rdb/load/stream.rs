//! Decodes streams: blocks of entries, then consumer groups with their pending entries.

use crate::error::LoadError;
use crate::rdb::input::Input;
use crate::rdb::kind;
use crate::rdb::primitive::Decoder;
use crate::rdb::strings::Strings;
use crate::rdb::value::{
    GroupEnds, NonMax, PendingEntry, StreamBlock, StreamConsumer, StreamId, StreamValue,
};
use brisk_structures::stream::Tally;

/// Marks a pending entry whose consumer has not been read yet.
const NO_CONSUMER: u32 = u32::MAX;

impl<I: Input> Decoder<I> {
    pub(super) fn stream(&mut self, kind: u8) -> Result<StreamValue, LoadError> {
        let mut stream = StreamValue::default();
        let greatest = self.blocks(&mut stream)?;
        if self.length()? != stream.len {
            return Err(self.malformed("a stream's length does not match its entries"));
        }
        stream.last_id = self.id()?;
        if greatest.is_some_and(|id| id > stream.last_id) {
            return Err(self.malformed("a stream's last id is below that of an entry"));
        }
        if kind == kind::STREAM_LISTPACKS {
            stream.entries_added = stream.len;
        } else {
            // The first id is known from the entries.
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

    /// Reads a stream id that is encoded as two lengths.
    fn id(&mut self) -> Result<StreamId, LoadError> {
        Ok(StreamId { ms: self.length()?, seq: self.length()? })
    }

    /// Reads a stream id that is encoded as 16 bytes.
    fn raw_id(&mut self) -> Result<StreamId, LoadError> {
        Ok(StreamId::from_bytes(self.input.array()?))
    }

    /// Reads the blocks, and returns the highest id in them.
    fn blocks(&mut self, stream: &mut StreamValue) -> Result<Option<StreamId>, LoadError> {
        let mut greatest = None;
        for _ in 0..self.length()? {
            let id = self.string()?;
            let Ok(id) = id.as_slice().try_into().map(StreamId::from_bytes) else {
                return Err(self.malformed("the ID of a stream block is not 16 bytes long"));
            };
            let entries = self.listpack(None)?;
            let tally = Tally::of(id, &entries).map_err(|error| self.malformed(error.what))?;
            if greatest.is_some_and(|before| before >= id) {
                return Err(self.malformed("a stream's blocks are not in order"));
            }
            greatest = Some(tally.last);
            // A block that has only deleted entries need not be kept.
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

    fn group(&mut self, kind: u8, stream: &mut StreamValue) -> Result<(), LoadError> {
        self.string_onto(&mut stream.names)?;
        let last_id = self.id()?;
        let entries_read = if kind == kind::STREAM_LISTPACKS {
            entries_before(stream, last_id)
        } else {
            NonMax::new(self.length()?)
        };
        let pending_start = stream.pending.len();
        for _ in 0..self.length()? {
            stream.pending.push(PendingEntry {
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
        self.require_unique(&names, 1, "Duplicate stream consumer detected")?;
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
        stream: &mut StreamValue,
        pending_start: usize,
        names: &mut Strings,
    ) -> Result<(), LoadError> {
        self.string_onto(names)?;
        let seen_ms = self.milliseconds()?;
        let active_ms =
            if kind == kind::STREAM_LISTPACKS_3 { self.milliseconds()? } else { seen_ms };
        push_sparingly(&mut stream.consumers, StreamConsumer { seen_ms, active_ms });
        for _ in 0..self.length()? {
            let id = self.raw_id()?;
            let pending = &mut stream.pending[pending_start..];
            let Ok(position) = pending.binary_search_by_key(&id, |entry| entry.id) else {
                return Err(
                    self.malformed("a consumer has a pending entry that its group does not have")
                );
            };
            if pending[position].consumer != NO_CONSUMER {
                return Err(self.malformed("a pending entry has two owners"));
            }
            pending[position].consumer = index;
        }
        Ok(())
    }

    fn unique_groups(&mut self, stream: &StreamValue) -> Result<(), LoadError> {
        if stream.groups_len() < 2 {
            return Ok(());
        }
        let names: Strings = stream.groups().map(|group| group.name).collect();
        self.require_unique(&names, 1, "a stream has two groups with the same name")
    }
}

/// Pushes to a vector that grows by half instead of doubling: groups and consumers take several
/// times their size in the file.
fn push_sparingly<T>(all: &mut Vec<T>, new: T) {
    if all.len() == all.capacity() {
        all.reserve_exact(all.len() / 2 + 1);
    }
    all.push(new);
}

/// Returns how many entries were ever added up to `id`, if it can be determined. Files from before
/// Redis 7.0 do not store this number.
fn entries_before(stream: &StreamValue, id: StreamId) -> Option<NonMax> {
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
