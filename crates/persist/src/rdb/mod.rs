//! The RDB format: snapshots of whole keyspaces, and individual values in DUMP payloads.
//!
//! ```text
//!  file:  "REDIS" 4 digits (or "VALKEY" 3 digits)   opcodes and entries   255  checksum: u64 LE
//!  entry: type: u8   key: string   value, as the type says
//!  dump:  type: u8   value         version: u16 LE   checksum: u64 LE of all before it
//! ```
//! Files have a checksum since version 5; zero means that the writer computed none. An opcode is a
//! byte of 243 or more ([`opcode`]) that has its own arguments. Expiry time, idle time and access
//! frequency precede the entry that they belong to.
//!
//! Lengths and strings
//! ```text
//!  00llllll                     length below 64
//!  01llllll llllllll            below 16384, big-endian
//!  10000000 4 bytes             32 bits, big-endian
//!  10000001 8 bytes             64 bits, big-endian
//!  110000ww 1, 2 or 4 bytes     the string that is the decimal form of a little-endian integer
//!  11000011 length length ...   the string compressed by LZF: bytes here, bytes of the content
//! ```
//! All other strings consist of a length and that many bytes. Millisecond times and binary doubles
//! are little-endian.
//!
//! The decoder checks structure and meaning: no duplicates, no incomplete pairs, scores that are
//! numbers and in order, ascending stream ids, exact counts, exactly one owner for each pending
//! entry. Memory stays below about ten times the bytes read plus ten times the real content of LZF
//! blocks.
//!
//! - [`RdbReader`]: reads a whole file as [`RdbEvent`]s.
//! - [`RdbSplitter`]: splits a whole file into [`RdbBlock`]s of entries, which other threads
//!   decode.
//! - [`dump`]: reads and writes DUMP payloads.
//! - [`RdbWriter`]: writes a whole file; [`Encoder`]: writes values of files and payloads.
//! - [`value`]: the decoded values.

mod block;
mod compact;
pub mod dump;
mod encode;
mod entries;
mod input;
mod load;
mod primitive;
mod reader;
mod skip;
mod split;
pub mod strings;
mod unique;
pub mod value;
mod writer;
mod ziplist;
mod zipmap;

pub use block::{BlockEntries, BlockEntry, EntryContent, RdbBlock};
pub use encode::{Encoder, Sink, kind_of, version_of, version_of_kind};
pub use entries::EncodedEntries;
pub use reader::{Checksum, FilePart, KeyMetadata, RdbEntry, RdbEvent, RdbReader, ReadContext};
pub use split::{RdbPiece, RdbSplitter};
pub use strings::Strings;
pub use value::Value;
pub use writer::{FileSink, RdbWriter};

/// The version that is written. All servers since Redis 7.0 read it.
pub const VERSION: u32 = 10;
/// The version for hashes whose fields have a TTL. Servers since Redis 7.4 read it.
pub const VERSION_FIELD_TTL: u32 = 12;
/// The newest Redis version of the format that can be read.
pub const VERSION_MAX: u32 = 12;
/// The Valkey version of the format that can be read. It has one value type that Redis does not
/// have.
pub const VERSION_VALKEY: u32 = 80;

/// Returns true if a file or payload of `version` can be read.
#[must_use]
pub fn is_readable(version: u32) -> bool {
    matches!(version, 1..=VERSION_MAX | VERSION_VALKEY)
}

/// Value types: the first byte of an entry or payload.
pub mod kind {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    /// Scores are text.
    pub const ZSET: u8 = 3;
    pub const HASH: u8 = 4;
    /// Scores are binary doubles.
    pub const ZSET_2: u8 = 5;
    pub const MODULE_PRE_GA: u8 = 6;
    pub const MODULE_2: u8 = 7;
    pub const HASH_ZIPMAP: u8 = 9;
    pub const LIST_ZIPLIST: u8 = 10;
    pub const SET_INTSET: u8 = 11;
    pub const ZSET_ZIPLIST: u8 = 12;
    pub const HASH_ZIPLIST: u8 = 13;
    pub const LIST_QUICKLIST: u8 = 14;
    pub const STREAM_LISTPACKS: u8 = 15;
    pub const HASH_LISTPACK: u8 = 16;
    pub const ZSET_LISTPACK: u8 = 17;
    pub const LIST_QUICKLIST_2: u8 = 18;
    pub const STREAM_LISTPACKS_2: u8 = 19;
    pub const SET_LISTPACK: u8 = 20;
    pub const STREAM_LISTPACKS_3: u8 = 21;
    /// In version 80: each field has an expiry time. In lower versions: the unreleased form of
    /// [`HASH_METADATA`].
    pub const HASH_2: u8 = 22;
    pub const HASH_LISTPACK_EX_PRE_GA: u8 = 23;
    pub const HASH_METADATA: u8 = 24;
    pub const HASH_LISTPACK_EX: u8 = 25;
}

/// Opcodes between the entries of a file.
pub mod opcode {
    pub const SLOT_IMPORT: u8 = 243;
    pub const SLOT_INFO: u8 = 244;
    pub const FUNCTION_2: u8 = 245;
    pub const FUNCTION_PRE_GA: u8 = 246;
    pub const MODULE_AUX: u8 = 247;
    pub const IDLE: u8 = 248;
    pub const FREQ: u8 = 249;
    pub const AUX: u8 = 250;
    pub const RESIZE_DB: u8 = 251;
    pub const EXPIRE_TIME_MS: u8 = 252;
    pub const EXPIRE_TIME: u8 = 253;
    pub const SELECT_DB: u8 = 254;
    pub const EOF: u8 = 255;
}
