//! A Bloom filter stored in a string.

use super::bytes_of;
use crate::arg::ToArg;
use crate::client::Client;
use crate::command::Command;
use crate::commands;
use crate::error::{Error, Kind, Result};
use crate::request::{Request, Traits};

/// The maximum number of items in one batch.
const AT_ONCE: usize = 4096;
/// The maximum number of bits in a string.
const BITS_MAX: f64 = (1_u64 << 32) as f64;
const HASHES_MAX: f64 = 64.0;

/// A Bloom filter: a set that takes about ten bits per item (at an error rate of 1 %), regardless of the length of the
/// items. Several programs can share a filter. If it reports an item as absent, the item was not added. It reports an
/// absent item as present with a chosen probability. Items cannot be removed.
///
/// The filter is a string of bits. Each item sets some bits with BITFIELD. A call takes one round trip per 4,096 items.
/// Concurrent calls do not lose items.
///
/// The mapping of items to bits is stable: h = FNV-1a (64 bits) of the item's bytes, a = mix(h), b = mix(a) | 1, where
/// mix is the finalizer of SplitMix64. The bits are at (a + i·b) mod bits, for i from 0.
///
/// ```no_run
/// # async fn example(db: brisk::Client) -> brisk::Result<()> {
/// // A million items with an error rate of 1 % take 1.2 MB.
/// let seen = brisk::recipes::Bloom::new(&db, "seen", 1_000_000, 0.01)?;
/// seen.add("ana").await?;
/// assert!(seen.contains("ana").await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Bloom {
    db: Client,
    key: Vec<u8>,
    bits: u64,
    hashes: u32,
}

impl Bloom {
    /// Returns a filter for this number of items. Once the filter contains that many items, it reports an absent item
    /// as present with this probability. All programs that share the filter must use the same parameters.
    ///
    /// # Errors
    /// [`Kind::Invalid`] if the probability is not between 0 and 1, if the number of items is 0, or if the filter would
    /// need more than 2^32 bits.
    pub fn new(db: &Client, key: impl ToArg, items: u64, false_positives: f64) -> Result<Bloom> {
        if items == 0 || !(false_positives > 0.0 && false_positives < 1.0) {
            let text = "a Bloom filter needs at least one item, and a probability between 0 and 1";
            return Err(Error::new(Kind::Invalid, text));
        }
        let ln_2 = std::f64::consts::LN_2;
        let bits = (items as f64 * -false_positives.ln() / (ln_2 * ln_2)).ceil().max(8.0);
        if bits > BITS_MAX {
            return Err(Error::new(
                Kind::Invalid,
                "the Bloom filter would need more than 2^32 bits",
            ));
        }
        let hashes = (bits / items as f64 * ln_2).round().clamp(1.0, HASHES_MAX);
        Ok(Bloom { db: db.clone(), key: bytes_of(key), bits: bits as u64, hashes: hashes as u32 })
    }

    /// Returns the number of bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Returns the number of bits that each item sets.
    #[must_use]
    pub fn hashes(&self) -> u32 {
        self.hashes
    }

    /// The bits of an item.
    fn bits_of(&self, item: impl ToArg) -> impl Iterator<Item = u64> {
        let first = mix(fnv(&bytes_of(item)));
        let step = mix(first) | 1;
        let bits = self.bits;
        (0..u64::from(self.hashes)).map(move |at| first.wrapping_add(at.wrapping_mul(step)) % bits)
    }

    /// Builds a BITFIELD command for an item, with this operation for each of the item's bits.
    fn command(
        &self,
        name: &str,
        traits: Traits,
        op: &[&str],
        item: impl ToArg,
    ) -> BitfieldCommand {
        let mut request = Request::new(name, traits);
        request.key(&self.key);
        for bit in self.bits_of(item) {
            request.args([op[0], "u1"]);
            request.arg(bit);
            request.args(&op[1..]);
        }
        Command::new(request)
    }

    /// Adds an item. Returns true if the item is certainly new.
    ///
    /// # Errors
    /// The server's error.
    pub async fn add(&self, item: impl ToArg) -> Result<bool> {
        Ok(self.add_all([item]).await?.first().copied().unwrap_or(false))
    }

    /// Adds items, in one round trip per 4,096 items. Returns true for each item that is certainly new.
    ///
    /// # Errors
    /// The server's error. Some items may have been added.
    pub async fn add_all(&self, items: impl IntoIterator<Item = impl ToArg>) -> Result<Vec<bool>> {
        let set = |item| self.command("BITFIELD", Traits::default(), &["SET", "1"], item);
        let before = self.send_all(items.into_iter().map(set)).await?;
        Ok(before.into_iter().map(|bits| bits.contains(&0)).collect())
    }

    /// Returns whether the item may be in the filter. False means that it certainly is not.
    ///
    /// # Errors
    /// The server's error.
    pub async fn contains(&self, item: impl ToArg) -> Result<bool> {
        Ok(self.contains_all([item]).await?.first().copied().unwrap_or(false))
    }

    /// Returns, for each item, whether it may be in the filter, in one round trip per 4,096 items.
    ///
    /// # Errors
    /// The server's error.
    pub async fn contains_all(
        &self,
        items: impl IntoIterator<Item = impl ToArg>,
    ) -> Result<Vec<bool>> {
        let reads = Traits { reads_only: true, ..Traits::default() };
        let get = |item| self.command("BITFIELD_RO", reads, &["GET"], item);
        let found = self.send_all(items.into_iter().map(get)).await?;
        Ok(found.into_iter().map(|bits| !bits.contains(&0)).collect())
    }

    async fn send_all(
        &self,
        commands: impl Iterator<Item = BitfieldCommand>,
    ) -> Result<Vec<Vec<i64>>> {
        let mut commands = commands.peekable();
        let mut replies = Vec::new();
        while commands.peek().is_some() {
            let some: Vec<BitfieldCommand> = commands.by_ref().take(AT_ONCE).collect();
            replies.extend(self.db.batch(some).await?);
        }
        Ok(replies)
    }

    /// Estimates the number of items from the share of bits that are set. O(bits) on the server.
    ///
    /// # Errors
    /// The server's error.
    pub async fn estimated_len(&self) -> Result<u64> {
        let set = commands::bitcount(&self.key).on(&self.db).await? as f64;
        let bits = self.bits as f64;
        // If all bits are set, the count is unknown; assume that one is clear.
        let clear = ((bits - set) / bits).max(1.0 / bits);
        Ok((-bits / f64::from(self.hashes) * clear.ln()).round() as u64)
    }

    /// Removes all items.
    ///
    /// # Errors
    /// The server's error.
    pub async fn clear(&self) -> Result<()> {
        commands::del(&self.key).on(&self.db).await.map(|_| ())
    }
}

/// A command that returns the current or former values of an item's bits.
type BitfieldCommand = Command<(), Vec<i64>>;

fn fnv(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

/// Each bit of the result depends on all bits.
fn mix(hash: u64) -> u64 {
    let hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
