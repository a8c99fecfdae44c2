//! Containers without Redis semantics: the crate does not decide when keys expire or are evicted, encodes no replies,
//! reads no clock and uses no sockets.
//!
//! | module | content |
//! |---|---|
//! | [`hash`] | the keyed hash of the tables |
//! | [`entry`] | one key with its value, expiry time and access clock in one allocation |
//! | [`table`] | the hash table of a slot: 64-byte buckets, incremental growth, stateless scan |
//! | [`segments`] | a map of byte strings in shared segments, for large hashes and sets |
//! | [`slot`] | a table behind a one-byte lock, with lock-free prefetching |
//! | [`prefetch`] | prefetches cache lines that will be read soon |
//! | [`reclaim`] | frees replaced bucket arrays once no prefetch can still read them |
//! | [`intset`] | a sorted array of integers: small sets of numbers |
//! | [`chunked`], [`chunk`] | long byte strings in shared chunks; one chunk and its references |
//! | [`growing`] | bytes that arrive in pieces, never copied as they grow |
//! | [`bits`], [`hyperloglog`] | the operations of bitmaps and cardinality estimators on byte strings |
//! | [`alloc`] | counts the memory of the global allocator |
//! | [`listpack`] | many small elements in one allocation, in Redis's byte format |
//! | [`lzf`] | compression of small blocks, as in dumps and inner list nodes |
//! | [`base64`], [`sha1`] | an encoding of bytes as text; digests for names |
//! | [`sequence`], [`quicklist`] | long lists: a shared tree of parts; listpacks as its parts |
//! | [`ordered`] | members ordered by score: a B+tree with ranks and a hash index |
//! | [`stream`] | blocks of entries by ID, and the consumer groups that read them |
//! | [`places`] | an index that lives as long as one command |
//! | [`poison`] | locks whose holder has panicked |
//! | [`fiber`], [`lent`] | work on a separate stack; a cell that lends a value for a limited time |
//! | [`wheel`], [`slab`], [`list`] | timers, generational ids, index lists; all in safe code |
//!
//! Only this crate and the reactor may contain `unsafe`. Each block cites the numbered invariant,
//! listed at the top of its file, that makes it sound.

pub mod alloc;
pub mod base64;
pub mod bits;
pub mod chunk;
pub mod chunked;
pub mod decimal;
pub mod entry;
pub mod fiber;
#[doc(hidden)]
pub mod fuzzing;
pub mod geohash;
pub mod growing;
pub mod hash;
pub mod hyperloglog;
pub mod intset;
pub mod lent;
pub mod list;
pub mod listpack;
pub mod lzf;
mod malformed;
pub mod ordered;
pub mod places;
pub mod poison;
pub mod prefetch;
pub mod quicklist;
pub mod reclaim;
pub mod segments;
pub mod sequence;
pub mod sha1;
mod shared;
pub mod slab;
pub mod slot;
pub mod stream;
pub mod table;
pub mod wheel;

pub use malformed::Malformed;
pub use shared::Shared;
