//! The properties of one key: its database, its value and its size. Sources create records; all other parts read them.

use brisk_persist::rdb::Value;
use brisk_persist::rdb::value::{HashValue, ListNode, SetValue, SortedSetValue, StringValue};

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    String,
    List,
    Set,
    Hash,
    SortedSet,
    Stream,
    /// A module's value, whose structure is unknown.
    Module,
}

impl Kind {
    /// The name that TYPE returns.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::List => "list",
            Kind::Set => "set",
            Kind::Hash => "hash",
            Kind::SortedSet => "zset",
            Kind::Stream => "stream",
            Kind::Module => "module",
        }
    }

    /// The type for a name that TYPE returns.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Kind {
        match name {
            b"string" => Kind::String,
            b"list" => Kind::List,
            b"set" => Kind::Set,
            b"hash" => Kind::Hash,
            b"zset" => Kind::SortedSet,
            b"stream" => Kind::Stream,
            _ => Kind::Module,
        }
    }
}

/// How a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Encoding {
    Int,
    EmbStr,
    Raw,
    ListPack,
    /// A listpack whose fields may have TTLs.
    ListPackEx,
    QuickList,
    IntSet,
    HashTable,
    SkipList,
    Stream,
    Unknown,
}

impl Encoding {
    const NAMED: [(Encoding, &'static str); 11] = [
        (Encoding::Int, "int"),
        (Encoding::EmbStr, "embstr"),
        (Encoding::Raw, "raw"),
        (Encoding::ListPack, "listpack"),
        (Encoding::ListPackEx, "listpackex"),
        (Encoding::QuickList, "quicklist"),
        (Encoding::IntSet, "intset"),
        (Encoding::HashTable, "hashtable"),
        (Encoding::SkipList, "skiplist"),
        (Encoding::Stream, "stream"),
        (Encoding::Unknown, "unknown"),
    ];

    /// The name that OBJECT ENCODING returns.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Self::NAMED.iter().find(|(encoding, _)| *encoding == self);
        named.map_or("unknown", |(_, name)| name)
    }

    /// The encoding for a name that OBJECT ENCODING returns. The old name of listpacks is supported too.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Encoding {
        if name == b"ziplist" {
            return Encoding::ListPack;
        }
        let named = Self::NAMED.iter().find(|(_, known)| known.as_bytes() == name);
        named.map_or(Encoding::Unknown, |(encoding, _)| *encoding)
    }

    /// Reports whether the value is packed into a single byte string.
    #[must_use]
    pub fn is_packed(self) -> bool {
        matches!(self, Encoding::ListPack | Encoding::ListPackEx)
    }
}

/// The longest string that Redis stores in one allocation with its object.
pub const EMBEDDED_MAX: usize = 44;

/// The type of a value that was read from a file, and its encoding.
///
/// Files specify the encoding of all types except strings, whose encoding follows from the text.
#[must_use]
pub fn kind_of(value: &Value) -> (Kind, Encoding) {
    match value {
        Value::String(StringValue::Int(_)) => (Kind::String, Encoding::Int),
        Value::String(StringValue::Bytes(text)) => (Kind::String, encoding_of_text(text)),
        // Since Redis 7.2, a list with a single node is a listpack. In earlier versions it is a quicklist; it is
        // reported as a listpack in both cases.
        Value::List(nodes) => match &nodes[..] {
            [ListNode::Packed(_)] => (Kind::List, Encoding::ListPack),
            _ => (Kind::List, Encoding::QuickList),
        },
        Value::Set(SetValue::Ints(_)) => (Kind::Set, Encoding::IntSet),
        Value::Set(SetValue::Packed(_)) => (Kind::Set, Encoding::ListPack),
        Value::Set(SetValue::Members(_)) => (Kind::Set, Encoding::HashTable),
        Value::Hash(HashValue::Packed(_)) => (Kind::Hash, Encoding::ListPack),
        Value::Hash(HashValue::PackedExpiry(_)) => (Kind::Hash, Encoding::ListPackEx),
        Value::Hash(HashValue::Fields(_) | HashValue::FieldsExpiry(..)) => {
            (Kind::Hash, Encoding::HashTable)
        }
        Value::SortedSet(SortedSetValue::Packed(_)) => (Kind::SortedSet, Encoding::ListPack),
        Value::SortedSet(SortedSetValue::Members(..)) => (Kind::SortedSet, Encoding::SkipList),
        Value::Stream(_) => (Kind::Stream, Encoding::Stream),
    }
}

/// The encoding of a string that was set as a whole.
#[must_use]
pub fn encoding_of_text(text: &[u8]) -> Encoding {
    if matches!(
        brisk_structures::listpack::Item::of(text),
        brisk_structures::listpack::Item::Int(_)
    ) {
        Encoding::Int
    } else if text.len() <= EMBEDDED_MAX {
        Encoding::EmbStr
    } else {
        Encoding::Raw
    }
}

/// The properties of a key.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    pub db: u64,
    pub key: &'a [u8],
    pub kind: Kind,
    pub encoding: Encoding,
    /// The value, if it was read.
    pub value: Option<&'a Value>,
    /// The number of elements, or of bytes of a string, if it is known without the value.
    pub elements: Option<u64>,
    /// The expiry time as Unix time in ms.
    pub deadline_ms: Option<i64>,
    pub idle_seconds: Option<u64>,
    /// The LFU access counter.
    pub frequency: Option<u8>,
    /// The size of the key as reported by the server.
    pub reported_bytes: Option<u64>,
}
