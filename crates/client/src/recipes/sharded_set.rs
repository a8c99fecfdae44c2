//! One huge set in many small ones.

use super::bytes_of;
use super::shard::Rule;
use super::sharded_map::AT_ONCE;
use crate::arg::ToArg;
use crate::client::Client;
use crate::commands;
use crate::error::Result;

/// One huge set of whole numbers in many small sets, which servers store compactly while they hold nothing but numbers.
/// M4.
///
/// Choose `shard_size` no larger than the server's `set-max-intset-entries` (512). Numbers of one shard would be
/// neighbours, and one shard full while another is empty; so members are spread as text is, by the CRC32 of an `X` and
/// their digits. What else is said of [`ShardedMap`](super::ShardedMap) holds here, too.
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
    /// A set of about `total_elements`, with about `shard_size` in a small one, whose keys are `base:0`, `base:1` …
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::Kind::Invalid) if a shard has no room, or there would be more than 2^32.
    pub fn new(
        db: &Client,
        base: impl Into<String>,
        total_elements: u64,
        shard_size: u64,
    ) -> Result<ShardedSet> {
        let rule = Rule::new(total_elements, shard_size)?;
        Ok(ShardedSet { db: db.clone(), base: base.into(), rule })
    }

    /// The small set in which a member is, or would be.
    #[must_use]
    pub fn shard_key(&self, member: impl ToArg) -> String {
        let mut key = vec![b'X'];
        key.extend(bytes_of(member));
        // It is no number, so there is always a shard.
        let shard = self.rule.shard_within(&key).unwrap_or(0);
        format!("{}:{shard}", self.base)
    }

    /// Adds a member; whether it is new.
    ///
    /// # Errors
    /// The server's.
    pub async fn insert(&self, member: impl ToArg) -> Result<bool> {
        let key = self.shard_key(&member);
        Ok(self.db.sadd(key, bytes_of(&member)).await? == 1)
    }

    /// Removes a member; whether it was there.
    ///
    /// # Errors
    /// The server's.
    pub async fn remove(&self, member: impl ToArg) -> Result<bool> {
        let key = self.shard_key(&member);
        Ok(self.db.srem(key, bytes_of(&member)).await? == 1)
    }

    /// Whether it has a member.
    ///
    /// # Errors
    /// The server's.
    pub async fn contains(&self, member: impl ToArg) -> Result<bool> {
        self.db.sismember(self.shard_key(&member), &member).await
    }

    /// How many members there are: asks every shard, a thousand in a round trip. O(shards).
    ///
    /// # Errors
    /// The server's.
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

    /// Whether there is no member. As [`len`](Self::len).
    ///
    /// # Errors
    /// The server's.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }
}
