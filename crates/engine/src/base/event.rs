//! Classes of keyspace events.

use bitflags::bitflags;

bitflags! {
    /// Classes of keyspace events: the letters of `notify-keyspace-events`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct EventClass: u32 {
        const KEYSPACE = 1;
        const KEYEVENT = 1 << 1;
        const GENERIC = 1 << 2;
        const STRING = 1 << 3;
        const LIST = 1 << 4;
        const SET = 1 << 5;
        const HASH = 1 << 6;
        const SORTED_SET = 1 << 7;
        const EXPIRED = 1 << 8;
        const EVICTED = 1 << 9;
        const STREAM = 1 << 10;
        const KEY_MISS = 1 << 11;
        const MODULE = 1 << 13;
        const NEW = 1 << 14;
    }
}
