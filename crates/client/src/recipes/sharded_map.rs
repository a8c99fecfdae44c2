//! A large map, stored in many small hashes.

use super::bytes_of;
use super::shard::Rule;
use crate::arg::ToArg;
use crate::client::Client;
use crate::commands;
use crate::error::Result;
use crate::reply::FromReply;
use std::collections::BTreeMap;

/// The maximum number of commands in one batch.
pub(super) const AT_ONCE: usize = 1000;

/// A large map, stored in many small hashes (shards) to save memory.
///
/// A server stores a small hash as a listpack, which takes a fraction of the memory of the same number of keys. In
/// Redis, a million users with values of a few bytes take 72 MB as keys `user:N`, and 10 MB in hashes of 1,000 users
/// each.
///
/// - Choose a `shard_size` of at most the server's `hash-max-listpack-entries` (512 in Redis 7, often raised to 1,024
///   for this purpose), and values of at most `hash-max-listpack-value`. A larger shard is stored as a hash table, and
///   saves nothing. If the keys are not integers, each shard is half full on average.
/// - `total_elements` and `shard_size` determine the shard of each element. Do not change them while the map contains
///   data.
/// - Elements have no TTL of their own.
/// - In a cluster, the elements of one shard are in one slot. The shards are spread over many slots.
///
/// ```no_run
/// # async fn example(db: brisk::Client) -> brisk::Result<()> {
/// let cities = brisk::recipes::ShardedMap::new(&db, "city-of-user", 1_000_000, 1000)?;
/// cities.set(125_000, "Lima").await?;
/// let city: Option<String> = cities.get(125_000).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ShardedMap {
    db: Client,
    base: String,
    rule: Rule,
}

impl ShardedMap {
    /// Returns a map for about `total_elements` elements, with about `shard_size` elements per hash. The keys of the
    /// hashes are `base:0`, `base:1` …
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::Kind::Invalid) if `shard_size` is 0, or if there would be more than 2^32 shards.
    pub fn new(
        db: &Client,
        base: impl Into<String>,
        total_elements: u64,
        shard_size: u64,
    ) -> Result<ShardedMap> {
        let rule = Rule::new(total_elements, shard_size)?;
        Ok(ShardedMap { db: db.clone(), base: base.into(), rule })
    }

    /// Returns the key of the hash that contains, or would contain, this element.
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::Kind::Invalid) for an integer key of 2 · `total_elements` or more: its shard would be
    /// outside the range that [`len`](Self::len) and [`scan`](Self::scan) read. This applies to all methods that take a
    /// key.
    pub fn shard_key(&self, key: impl ToArg) -> Result<String> {
        Ok(self.key_of(self.rule.shard_within(&bytes_of(key))?))
    }

    fn key_of(&self, shard: u64) -> String {
        format!("{}:{shard}", self.base)
    }

    /// Returns the maximum number of hashes.
    #[must_use]
    pub fn shards(&self) -> u64 {
        self.rule.shards()
    }

    /// Returns the value of an element.
    ///
    /// # Errors
    /// Those of [`shard_key`](Self::shard_key), and the server's error.
    pub async fn get<T: FromReply>(&self, key: impl ToArg) -> Result<Option<T>> {
        self.db.hget(self.shard_key(&key)?, &key).await
    }

    /// Sets a value. Returns whether the element is new.
    ///
    /// # Errors
    /// Those of [`shard_key`](Self::shard_key), and the server's error.
    pub async fn set(&self, key: impl ToArg, value: impl ToArg) -> Result<bool> {
        Ok(self.db.hset(self.shard_key(&key)?, (&key, &value)).await? == 1)
    }

    /// Removes an element. Returns whether it existed.
    ///
    /// # Errors
    /// Those of [`shard_key`](Self::shard_key), and the server's error.
    pub async fn remove(&self, key: impl ToArg) -> Result<bool> {
        let field = bytes_of(&key);
        Ok(self.db.hdel(self.shard_key(&key)?, field).await? == 1)
    }

    /// Adds `by` to a value and returns the result. A missing value counts as 0.
    ///
    /// # Errors
    /// Those of [`shard_key`](Self::shard_key), and the server's error, for example if the value is not an integer.
    pub async fn incr(&self, key: impl ToArg, by: i64) -> Result<i64> {
        self.db.hincrby(self.shard_key(&key)?, &key, by).await
    }

    /// Returns the values of several elements, in the order of the keys. Sends one HMGET for each affected hash, in one
    /// round trip per 1,000 hashes.
    ///
    /// # Errors
    /// Those of [`shard_key`](Self::shard_key), and the server's error.
    pub async fn mget<T: FromReply>(
        &self,
        keys: impl IntoIterator<Item = impl ToArg>,
    ) -> Result<Vec<Option<T>>> {
        let keys: Vec<Vec<u8>> = keys.into_iter().map(bytes_of).collect();
        let mut values: Vec<Option<T>> = Vec::with_capacity(keys.len());
        values.resize_with(keys.len(), || None);
        let shards = self.by_shard(&keys)?;
        for shards in shards.chunks(AT_ONCE) {
            let read = shards.iter().map(|(shard, places)| {
                let fields: Vec<&[u8]> = places.iter().map(|place| &keys[*place][..]).collect();
                commands::hmget::<T>(self.key_of(*shard), fields)
            });
            let found = self.db.batch(read.collect::<Vec<_>>()).await?;
            for ((_, places), found) in shards.iter().zip(found) {
                for (place, value) in places.iter().zip(found) {
                    values[*place] = value;
                }
            }
        }
        Ok(values)
    }

    /// Sets several values. Sends one HSET for each affected hash, in one round trip per 1,000 hashes. The operation is
    /// not atomic: other clients may see only some of the changes.
    ///
    /// # Errors
    /// Those of [`shard_key`](Self::shard_key), in which case nothing is set, and the server's error.
    pub async fn mset(
        &self,
        pairs: impl IntoIterator<Item = (impl ToArg, impl ToArg)>,
    ) -> Result<()> {
        let pairs = pairs.into_iter().map(|(key, value)| (bytes_of(key), bytes_of(value)));
        let (keys, values): (Vec<_>, Vec<_>) = pairs.unzip();
        for shards in self.by_shard(&keys)?.chunks(AT_ONCE) {
            let set = shards.iter().map(|(shard, places)| {
                let pairs = places.iter().map(|place| (&keys[*place][..], &values[*place][..]));
                commands::hset(self.key_of(*shard), pairs.collect::<Vec<_>>())
            });
            self.db.batch(set.collect::<Vec<_>>()).await?;
        }
        Ok(())
    }

    /// The positions of the elements, grouped by shard.
    fn by_shard(&self, keys: &[Vec<u8>]) -> Result<Vec<(u64, Vec<usize>)>> {
        let mut shards: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (place, key) in keys.iter().enumerate() {
            shards.entry(self.rule.shard_within(key)?).or_default().push(place);
        }
        Ok(shards.into_iter().collect())
    }

    /// Returns the number of elements. Queries every shard, 1,000 per round trip. O(shards).
    ///
    /// # Errors
    /// The server's error.
    pub async fn len(&self) -> Result<u64> {
        let mut len = 0;
        for from in (0..self.shards()).step_by(AT_ONCE) {
            let to = self.shards().min(from + AT_ONCE as u64);
            let lengths = (from..to).map(|shard| commands::hlen(self.key_of(shard)));
            len += self.db.batch(lengths.collect::<Vec<_>>()).await?.iter().sum::<i64>() as u64;
        }
        Ok(len)
    }

    /// Returns whether the map is empty. Costs as much as [`len`](Self::len).
    ///
    /// # Errors
    /// The server's error.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }

    /// Iterates over all elements, shard by shard.
    ///
    /// ```no_run
    /// # async fn example(map: brisk::recipes::ShardedMap) -> brisk::Result<()> {
    /// let mut pages = map.scan::<u64, String>();
    /// while let Some(page) = pages.next().await? {
    ///     for (user, city) in page {
    ///         println!("{user} {city}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn scan<K, V>(&self) -> Pages<'_, K, V> {
        Pages { map: self, next: 0, types: std::marker::PhantomData }
    }
}

/// An iteration over the elements of a map; [`ShardedMap::scan`] returns it.
#[derive(Debug)]
pub struct Pages<'a, K, V> {
    map: &'a ShardedMap,
    next: u64,
    types: std::marker::PhantomData<fn() -> (K, V)>,
}

/// The number of shards that are read in one round trip.
const SHARDS_OF_A_PAGE: u64 = 16;

impl<K: FromReply, V: FromReply> Pages<'_, K, V> {
    /// Returns the current elements of the next shards. A page is never empty. `None` after the last page.
    ///
    /// An element that exists during the whole iteration is returned once. After an error, the next call returns the
    /// same page.
    ///
    /// # Errors
    /// The server's error; [`Kind::UnexpectedReply`](crate::Kind::UnexpectedReply) if an element is of another type.
    pub async fn next(&mut self) -> Result<Option<Vec<(K, V)>>> {
        while self.next < self.map.shards() {
            let to = self.map.shards().min(self.next + SHARDS_OF_A_PAGE);
            let read = (self.next..to)
                .map(|shard| commands::hgetall::<Vec<(K, V)>>(self.map.key_of(shard)));
            let page = self.map.db.batch(read.collect::<Vec<_>>()).await?;
            self.next = to;
            if page.iter().any(|shard| !shard.is_empty()) {
                return Ok(Some(page.into_iter().flatten().collect()));
            }
        }
        Ok(None)
    }
}
