//! A large set of integers, stored in many small sets.

use super::bytes_of;
use super::shard::Rule;
use super::sharded_map::AT_ONCE;
use crate::arg::ToArg;
use crate::client::Client;
use crate::commands;
use crate::error::Result;

/// A large set of integers, stored in many small sets (shards) to save memory. Servers store a small set compactly as
/// long as all its members are integers.
///
/// Choose a `shard_size` of at most the server's `set-max-intset-entries` (512). Members are distributed like strings,
/// by the CRC32 of an `X` followed by their digits. Otherwise, neighbors would share a shard, and one shard could be
/// full while another is empty. The other notes on [`ShardedMap`](super::ShardedMap) apply as well.
///
/// ```no_run
/// # async fn example(db: brisk::Client) -> brisk::Result<()> {
/// let seen = brisk::recipes::ShardedSet::new(&db, "seen", 1_000_000, 512)?;
/// let is_new = seen.insert(125_000).await?;
/// assert!(seen.contains(125_000).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ShardedSet {
    db: Client,
    base: String,
    rule: Rule,
}

impl ShardedSet {
    /// Returns a set for about `total_elements` members, with about `shard_size` members per shard. The keys of the
    /// shards are `base:0`, `base:1` …
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::Kind::Invalid) if `shard_size` is 0, or if there would be more than 2^32 shards.
    pub fn new(
        db: &Client,
        base: impl Into<String>,
        total_elements: u64,
        shard_size: u64,
    ) -> Result<ShardedSet> {
        let rule = Rule::new(total_elements, shard_size)?;
        Ok(ShardedSet { db: db.clone(), base: base.into(), rule })
    }

    /// Returns the key of the shard that contains, or would contain, this member.
    #[must_use]
    pub fn shard_key(&self, member: impl ToArg) -> String {
        let mut key = vec![b'X'];
        key.extend(bytes_of(member));
        // The element begins with `X`, so it is not a number and always has a shard.
        let shard = self.rule.shard_within(&key).unwrap_or(0);
        format!("{}:{shard}", self.base)
    }

    /// Adds a member. Returns whether it is new.
    ///
    /// # Errors
    /// The server's error.
    pub async fn insert(&self, member: impl ToArg) -> Result<bool> {
        let key = self.shard_key(&member);
        Ok(self.db.sadd(key, bytes_of(&member)).await? == 1)
    }

    /// Removes a member. Returns whether it existed.
    ///
    /// # Errors
    /// The server's error.
    pub async fn remove(&self, member: impl ToArg) -> Result<bool> {
        let key = self.shard_key(&member);
        Ok(self.db.srem(key, bytes_of(&member)).await? == 1)
    }

    /// Returns whether the set has a member.
    ///
    /// # Errors
    /// The server's error.
    pub async fn contains(&self, member: impl ToArg) -> Result<bool> {
        self.db.sismember(self.shard_key(&member), &member).await
    }

    /// Returns the number of members. Queries every shard, 1,000 per round trip. O(shards).
    ///
    /// # Errors
    /// The server's error.
    pub async fn len(&self) -> Result<u64> {
        let mut len = 0;
        for from in (0..self.rule.shards()).step_by(AT_ONCE) {
            let to = self.rule.shards().min(from + AT_ONCE as u64);
            let key = |shard| format!("{}:{shard}", self.base);
            let counts = (from..to).map(|shard| commands::scard(key(shard)));
            len += self.db.batch(counts.collect::<Vec<_>>()).await?.iter().sum::<i64>() as u64;
        }
        Ok(len)
    }

    /// Returns whether the set is empty. Costs as much as [`len`](Self::len).
    ///
    /// # Errors
    /// The server's error.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }
}
