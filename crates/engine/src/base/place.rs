//! Basic types: databases, slots, keys with their hashes, times, and tickets (positions in the order of transactions).

pub use brisk_resp::slot::SlotId;

use brisk_structures::hash::HashKey;

/// Slots per database; fixed by the cluster protocol.
pub const SLOTS: usize = 16_384;

/// Milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixMs(pub u64);

impl UnixMs {
    pub const MAX: UnixMs = UnixMs(u64::MAX);
}

/// A database that exists. Outside this file, every constructor compares the number with the number of
/// databases, so indexing with it cannot fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DbIndex(u32);

impl DbIndex {
    /// The database that every keyspace has.
    pub const FIRST: DbIndex = DbIndex(0);

    /// The database `number`, if it exists. `count` is the keyspace's own number of databases,
    /// `Keyspace::database_count`.
    pub fn checked(number: impl TryInto<u32>, count: u32) -> Option<DbIndex> {
        number.try_into().ok().filter(|number| *number < count).map(DbIndex)
    }

    /// All databases of a keyspace with `count` databases, in order.
    pub fn all(count: u32) -> impl DoubleEndedIterator<Item = DbIndex> + Clone {
        (0..count).map(DbIndex)
    }

    pub const fn number(self) -> u32 {
        self.0
    }

    /// The index into arrays with one element per database.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// For tests, which know their number of databases.
    #[cfg(test)]
    pub(crate) const fn of(number: u32) -> DbIndex {
        DbIndex(number)
    }
}

/// A database number received from another server or read from a file. This server may not have that
/// database; `Keyspace::db` looks it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DbNumber(pub u32);

impl From<DbIndex> for DbNumber {
    fn from(db: DbIndex) -> DbNumber {
        DbNumber(db.0)
    }
}

/// A slot of one of the databases.
pub type DbSlot = (DbIndex, SlotId);

/// The position of a write transaction in the order of all transactions: the byte offset in the
/// stream of changes at which the transaction ends. 0 is before all transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ticket(pub u64);

/// A key with its hash and its slot.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    pub bytes: &'a [u8],
    pub slot: SlotId,
    pub(crate) hash: u64,
}

impl<'a> Key<'a> {
    #[inline]
    pub(crate) fn prepared(bytes: &'a [u8], prepared: &PreparedKey) -> Key<'a> {
        Key { bytes, slot: prepared.slot, hash: prepared.hash }
    }
}

/// A key with its hash and slot, which the batch has computed for prefetching.
#[derive(Debug, Clone, Copy)]
pub struct PreparedKey {
    /// The index of the argument.
    pub index: u32,
    pub slot: SlotId,
    pub hash: u64,
}

/// The prepared form of a key.
pub fn prepare(index: usize, key: &Key<'_>) -> PreparedKey {
    PreparedKey { index: index as u32, slot: key.slot, hash: key.hash }
}

/// Computes [`Key`]s from bytes. The seed is random, so that clients cannot choose keys that
/// collide.
#[derive(Debug, Clone)]
pub struct KeyHasher(HashKey);

impl KeyHasher {
    pub fn seeded(k0: u64, k1: u64) -> KeyHasher {
        KeyHasher(HashKey { k0, k1 })
    }
    /// The secret, which is also used to hash elements of values.
    pub fn secret(&self) -> HashKey {
        self.0
    }
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.0.hash(key)
    }
    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, slot: SlotId::of_key(bytes), hash: self.hash(bytes) }
    }
}
