//! The types of values over their encodings. Only this module knows how a value is stored.

mod collection;
pub(crate) mod dump;
pub mod hash;
pub mod list;
pub mod set;
pub mod sorted_set;
pub mod stream;
pub mod string;

pub use collection::{Collection, Edit, EncodingLimits};
pub use sorted_set::SortedSet;

use crate::base::error::{CommandError, Result};
use crate::base::steps::BYTES_PER_STEP;
use brisk_structures::chunked::ChunkedBytes;
use brisk_structures::entry::ValueRef;
use hash::Hash;
use set::Set;

/// A value that is not stored in its entry as bytes or as an integer: its data is outside the
/// entry. Cloning is cheap for every size: small compact values are copied, and large values share
/// their parts until one side changes them.
#[derive(Debug, Clone)]
pub enum Value {
    /// A string of at least [`string::SHARED_MIN`] bytes (a view may hold a shorter one). Its
    /// chunks are shared with replies that are being sent.
    Str(ChunkedBytes),
    List(list::List),
    Hash(Hash),
    SortedSet(SortedSet),
    Set(Set),
    Stream(Box<stream::Stream>),
}

// A value fits into an entry, next to the key.
const _: () = assert!(size_of::<Value>() <= 24);

impl Value {
    /// Reports whether freeing the value is as quick as handing it to another thread.
    pub(crate) fn is_light(&self) -> bool {
        match self {
            Value::Str(_) => false,
            Value::List(list) => list.is_light(),
            Value::Hash(hash) => hash.is_light(),
            Value::SortedSet(set) => set.is_light(),
            Value::Set(set) => set.is_light(),
            Value::Stream(stream) => stream::is_light(stream),
        }
    }

    /// Approximate number of steps to go through the value; see
    /// [`crate::base::steps::LONG_STEPS_MIN`].
    pub(crate) fn steps(&self) -> usize {
        match self {
            Value::Str(data) => data.len() / BYTES_PER_STEP,
            Value::List(list) => list.len(),
            Value::Hash(hash) => hash.len(),
            Value::SortedSet(set) => set.len(),
            Value::Set(set) => set.len(),
            Value::Stream(stream) => stream.len(),
        }
    }

    /// A lower bound of the expiry times inside the value. The element that determined the bound
    /// may be gone.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        match self {
            Value::Hash(hash) => hash.next_deadline(),
            Value::Str(_)
            | Value::List(_)
            | Value::SortedSet(_)
            | Value::Set(_)
            | Value::Stream(_) => None,
        }
    }

    /// Reports whether two values are clones of the same value and have not changed since. Large
    /// values are compared by the parts that they share, so equal values may count as different.
    /// O(1), except for compact values and for values with thousands of parts. Always returns false
    /// for hashes and streams.
    pub(crate) fn is_same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Str(a), Value::Str(b)) => {
                a.is_same(b) || (a.len() < string::SHARED_MIN && a == b)
            }
            (Value::List(a), Value::List(b)) => a.is_same(b),
            (Value::SortedSet(a), Value::SortedSet(b)) => a.is_same(b),
            (Value::Set(a), Value::Set(b)) => a.is_same(b),
            _ => false,
        }
    }

    /// Bytes of memory that the value uses, including shared parts.
    pub fn allocated_bytes(&self) -> usize {
        match self {
            Value::Str(data) => data.allocated_bytes(),
            Value::List(list) => list.allocated_bytes(),
            Value::Hash(hash) => hash.allocated_bytes(),
            Value::SortedSet(set) => set.allocated_bytes(),
            Value::Set(set) => set.allocated_bytes(),
            Value::Stream(stream) => size_of::<stream::Stream>() + stream.allocated_bytes(),
        }
    }
}

pub type Table = brisk_structures::table::Table<Value>;
/// An entry outside any table.
pub type Entry = brisk_structures::entry::Entry<Value>;
/// An entry in its table, read-only.
pub type Stored<'a> = brisk_structures::table::EntryRef<'a, Value>;
/// An entry in its table, mutable.
pub type StoredMut<'a> = brisk_structures::table::EntryMut<'a, Value>;

/// Bytes of memory that a key and its value use, without their share of the table.
pub(crate) fn allocated_bytes(entry: &Entry) -> usize {
    let outside = match entry.value() {
        ValueRef::Object(value) => value.allocated_bytes(),
        ValueRef::Bytes(_) | ValueRef::Int(_) => 0,
    };
    entry.allocated_bytes() + outside
}

/// The value of a key at one point in time; `None` if the key did not exist. It shares all parts
/// with the original.
pub type View = Option<Value>;

/// The type of a value, as TYPE names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ValueKind {
    String = 0,
    List = 1,
    Set = 2,
    SortedSet = 3,
    Hash = 4,
    Stream = 5,
}

impl ValueKind {
    /// All types, in the order of their numbers.
    pub const ALL: &'static [ValueKind] = &[
        ValueKind::String,
        ValueKind::List,
        ValueKind::Set,
        ValueKind::SortedSet,
        ValueKind::Hash,
        ValueKind::Stream,
    ];

    /// The name in TYPE and SCAN … TYPE.
    pub const fn name(self) -> &'static str {
        match self {
            ValueKind::String => "string",
            ValueKind::List => "list",
            ValueKind::Set => "set",
            ValueKind::SortedSet => "zset",
            ValueKind::Hash => "hash",
            ValueKind::Stream => "stream",
        }
    }
}

/// The encoding of a value, as OBJECT ENCODING names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    Int = 0,
    EmbStr = 1,
    Raw = 2,
    ListPack = 3,
    QuickList = 4,
    HashTable = 5,
    IntSet = 6,
    SkipList = 7,
    Stream = 8,
    /// A listpack whose fields may have TTLs.
    ListPackEx = 9,
}

impl Encoding {
    /// All encodings, in the order of their numbers.
    pub const ALL: &'static [Encoding] = &[
        Encoding::Int,
        Encoding::EmbStr,
        Encoding::Raw,
        Encoding::ListPack,
        Encoding::QuickList,
        Encoding::HashTable,
        Encoding::IntSet,
        Encoding::SkipList,
        Encoding::Stream,
        Encoding::ListPackEx,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Int => "int",
            Encoding::EmbStr => "embstr",
            Encoding::Raw => "raw",
            Encoding::ListPack => "listpack",
            Encoding::QuickList => "quicklist",
            Encoding::HashTable => "hashtable",
            Encoding::IntSet => "intset",
            Encoding::SkipList => "skiplist",
            Encoding::Stream => "stream",
            Encoding::ListPackEx => "listpackex",
        }
    }
}

/// The byte that an entry stores: type in the low half, encoding in the high half.
#[inline]
pub(crate) const fn kind_byte(kind: ValueKind, encoding: Encoding) -> u8 {
    kind as u8 | (encoding as u8) << 4
}

/// The type of an entry's value.
#[inline]
pub(crate) fn kind_of(entry: &Entry) -> ValueKind {
    ValueKind::ALL[(entry.kind() & 0x0f) as usize]
}

/// The encoding of an entry's value.
#[inline]
pub(crate) fn encoding_of(entry: &Entry) -> Encoding {
    Encoding::ALL[(entry.kind() >> 4) as usize]
}

/// A type that commands expect when they open an entry.
pub trait Type {
    const KIND: ValueKind;
    /// The value, read-only.
    type Ref<'a>;
    fn view(entry: Stored<'_>) -> Self::Ref<'_>;

    /// The value if the entry holds this type.
    #[inline]
    fn of(entry: Stored<'_>) -> Result<Self::Ref<'_>> {
        if entry.kind() & 0x0f == Self::KIND as u8 {
            Ok(Self::view(entry))
        } else {
            Err(CommandError::WrongType)
        }
    }
}
