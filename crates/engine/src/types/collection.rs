//! The features that lists, sets, sorted sets, hashes and streams share: they change their encoding
//! as they grow, and a key is deleted with its last element.

use super::Stored;
use super::{Encoding, Type, Value, ValueKind};
use crate::base::event::EventClass;
use brisk_structures::entry::ValueRef;
use brisk_structures::hash::HashKey;

/// The size limits of the compact encodings, and parameters of the large ones. Sizes are in bytes,
/// counts in elements. The names are those of the configuration directives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodingLimits {
    pub hash_max_listpack_entries: usize,
    pub hash_max_listpack_value: usize,
    /// Number of elements of a list node if positive; -1 to -5 mean 4 to 64 KiB.
    pub list_max_listpack_size: i64,
    /// List nodes at each end that stay uncompressed; 0 compresses none.
    pub list_compress_depth: usize,
    /// List elements of at least this size have their own nodes (DEBUG QUICKLIST-PACKED-THRESHOLD);
    /// 0 means that the size of nodes decides.
    pub list_plain_min: usize,
    pub set_max_intset_entries: usize,
    pub set_max_listpack_entries: usize,
    pub set_max_listpack_value: usize,
    pub zset_max_listpack_entries: usize,
    pub zset_max_listpack_value: usize,
    pub hll_sparse_max_bytes: usize,
    /// 0 for no limit.
    pub stream_node_max_bytes: usize,
    /// 0 for no limit.
    pub stream_node_max_entries: usize,
    /// Not a directive: the secret for hashing fields and members.
    pub hash_key: HashKey,
}

impl Default for EncodingLimits {
    /// Redis's defaults.
    fn default() -> EncodingLimits {
        EncodingLimits {
            hash_max_listpack_entries: 512,
            hash_max_listpack_value: 64,
            list_max_listpack_size: -2,
            list_compress_depth: 0,
            list_plain_min: 0,
            set_max_intset_entries: 512,
            set_max_listpack_entries: 128,
            set_max_listpack_value: 64,
            zset_max_listpack_entries: 128,
            zset_max_listpack_value: 64,
            hll_sparse_max_bytes: 3000,
            stream_node_max_bytes: 4096,
            stream_node_max_entries: 100,
            hash_key: HashKey::default(),
        }
    }
}

/// A type whose values consist of elements.
pub trait Collection: Clone + 'static {
    const KIND: ValueKind;
    /// The class of its keyspace events.
    const EVENTS: EventClass;
    /// True if a key may hold a value without elements. Only streams may.
    const MAY_BE_EMPTY: bool = false;

    /// A value without elements.
    fn new(limits: &EncodingLimits) -> Self;
    fn of_value(value: &Value) -> Option<&Self>;
    fn of_value_mut(value: &mut Value) -> Option<&mut Self>;
    fn into_value(self) -> Value;
    fn is_empty(&self) -> bool;
    fn encoding(&self) -> Encoding;

    /// A fingerprint for clients that wait for the value to change: they are served if a change has
    /// altered it. It is constant for types whose waiting clients are served when a value is
    /// created.
    #[inline]
    fn wait_fingerprint(&self) -> (u128, usize) {
        (0, 0)
    }

    /// The earliest expiry time inside the value, or a lower bound of it.
    #[inline]
    fn next_deadline(&self) -> Option<u64> {
        None
    }
}

impl<C: Collection> Type for C {
    const KIND: ValueKind = <C as Collection>::KIND;
    type Ref<'a> = &'a C;

    #[inline]
    fn view(entry: Stored<'_>) -> &C {
        match entry.value() {
            ValueRef::Object(value) => C::of_value(value),
            ValueRef::Bytes(_) | ValueRef::Int(_) => None,
        }
        .expect("an entry's kind is that of its value")
    }
}

/// The outcome of a change to a collection.
#[derive(Debug, Clone, Copy)]
pub struct Edit<R> {
    pub(crate) result: R,
    pub(crate) happened: bool,
    pub(crate) changes: u64,
    /// The keyspace event; empty for none.
    pub(crate) event: &'static str,
    /// True if only metadata was changed, not the value itself.
    pub(crate) metadata_only: bool,
}

impl<R> Edit<R> {
    /// `changes` elements were changed, and `event` is the keyspace event. If `changes` is 0,
    /// nothing has happened.
    pub fn new(result: R, changes: u64, event: &'static str) -> Edit<R> {
        Edit { result, happened: changes > 0, changes, event, metadata_only: false }
    }

    /// The keyspace event `event` is published even if `changes` is 0.
    pub fn with_event(result: R, changes: u64, event: &'static str) -> Edit<R> {
        Edit { result, happened: true, changes, event, metadata_only: false }
    }

    /// `changes` elements were changed without a keyspace event.
    pub fn silent(result: R, changes: u64) -> Edit<R> {
        Edit::new(result, changes, "")
    }

    /// Only metadata was changed, such as the consumer groups of a stream. WATCH does not notice
    /// it, unless the key is new.
    #[must_use]
    pub fn metadata_only(self) -> Edit<R> {
        Edit { metadata_only: true, ..self }
    }

    /// Nothing was changed.
    pub fn unchanged(result: R) -> Edit<R> {
        Edit::new(result, 0, "")
    }
}
