//! Streams have only one encoding. Its structure is in `brisk_structures::stream`.

mod dump;

pub(super) use dump::{dump, of_dumped};

use super::{Collection, Encoding, EncodingLimits, Value, ValueKind};
use crate::base::event::EventClass;
pub use brisk_structures::stream::{
    BlockLimits, ENTRIES_READ_UNKNOWN, Entries, Entry, Group, Nack, Stream, StreamId, Trim,
};

impl Collection for Stream {
    const KIND: ValueKind = ValueKind::Stream;
    const EVENTS: EventClass = EventClass::STREAM;
    const MAY_BE_EMPTY: bool = true;

    fn new(_limits: &EncodingLimits) -> Stream {
        Stream::new()
    }

    #[inline]
    fn of_value(value: &Value) -> Option<&Stream> {
        match value {
            Value::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    #[inline]
    fn of_value_mut(value: &mut Value) -> Option<&mut Stream> {
        match value {
            Value::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    fn into_value(self) -> Value {
        Value::Stream(Box::new(self))
    }

    fn is_empty(&self) -> bool {
        Stream::is_empty(self)
    }

    fn encoding(&self) -> Encoding {
        Encoding::Stream
    }

    /// The fingerprint changes when an entry is added, because its ID is higher, and when a group
    /// is deleted.
    fn wait_fingerprint(&self) -> (u128, usize) {
        let StreamId { ms, seq } = self.last_id;
        (u128::from(ms) << 64 | u128::from(seq), self.groups().len())
    }
}

/// Reports whether a stream has few allocations.
pub(super) fn is_light(stream: &Stream) -> bool {
    const PARTS_MAX: usize = 64;
    let of_group = |group: &Group| 2 + group.consumers().len() * 3 + group.pending().len() / 64;
    stream.blocks() <= PARTS_MAX
        && stream.groups().map(|(_, group)| of_group(group)).sum::<usize>() <= PARTS_MAX
}

/// The size limits of a block, from the settings.
pub fn block_limits(limits: &EncodingLimits) -> BlockLimits {
    BlockLimits { bytes: limits.stream_node_max_bytes, entries: limits.stream_node_max_entries }
}
