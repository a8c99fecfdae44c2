//! The commands that are cached, and the positions of their keys.
//!
//! A command is cached if its reply depends only on the values of the keys that it names. The server then sends an
//! invalidation whenever the reply changes. These commands are not cached: TTL and similar (the reply changes over
//! time), SRANDMEMBER and scans (the reply changes with each call), XPENDING and OBJECT (the reply depends on what
//! other clients do), SORT_RO and scripts (they may read other keys), and TOUCH (it must be executed).

use crate::request::Request;

/// The positions of a command's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyPositions {
    /// The argument after the name.
    One,
    /// The two arguments after the name.
    Two,
    /// All arguments after the name.
    All,
    /// The argument after the name is the number of keys, which follow it.
    Counted,
}

/// The commands that are cached, sorted by name.
const CACHED: &[(&str, KeyPositions)] = &[
    ("BITCOUNT", KeyPositions::One),
    ("BITFIELD_RO", KeyPositions::One),
    ("BITPOS", KeyPositions::One),
    ("EXISTS", KeyPositions::All),
    ("EXPIRETIME", KeyPositions::One),
    ("GEODIST", KeyPositions::One),
    ("GEOHASH", KeyPositions::One),
    ("GEOPOS", KeyPositions::One),
    ("GEORADIUSBYMEMBER_RO", KeyPositions::One),
    ("GEORADIUS_RO", KeyPositions::One),
    ("GEOSEARCH", KeyPositions::One),
    ("GET", KeyPositions::One),
    ("GETBIT", KeyPositions::One),
    ("GETRANGE", KeyPositions::One),
    ("HEXISTS", KeyPositions::One),
    ("HGET", KeyPositions::One),
    ("HGETALL", KeyPositions::One),
    ("HKEYS", KeyPositions::One),
    ("HLEN", KeyPositions::One),
    ("HMGET", KeyPositions::One),
    ("HSTRLEN", KeyPositions::One),
    ("HVALS", KeyPositions::One),
    ("LCS", KeyPositions::Two),
    ("LINDEX", KeyPositions::One),
    ("LLEN", KeyPositions::One),
    ("LPOS", KeyPositions::One),
    ("LRANGE", KeyPositions::One),
    ("MGET", KeyPositions::All),
    ("PEXPIRETIME", KeyPositions::One),
    ("PFCOUNT", KeyPositions::All),
    ("SCARD", KeyPositions::One),
    ("SDIFF", KeyPositions::All),
    ("SINTER", KeyPositions::All),
    ("SINTERCARD", KeyPositions::Counted),
    ("SISMEMBER", KeyPositions::One),
    ("SMEMBERS", KeyPositions::One),
    ("SMISMEMBER", KeyPositions::One),
    ("STRLEN", KeyPositions::One),
    ("SUBSTR", KeyPositions::One),
    ("SUNION", KeyPositions::All),
    ("TYPE", KeyPositions::One),
    ("XLEN", KeyPositions::One),
    ("XRANGE", KeyPositions::One),
    ("XREVRANGE", KeyPositions::One),
    ("ZCARD", KeyPositions::One),
    ("ZCOUNT", KeyPositions::One),
    ("ZDIFF", KeyPositions::Counted),
    ("ZINTER", KeyPositions::Counted),
    ("ZINTERCARD", KeyPositions::Counted),
    ("ZLEXCOUNT", KeyPositions::One),
    ("ZMSCORE", KeyPositions::One),
    ("ZRANGE", KeyPositions::One),
    ("ZRANGEBYLEX", KeyPositions::One),
    ("ZRANGEBYSCORE", KeyPositions::One),
    ("ZRANK", KeyPositions::One),
    ("ZREVRANGE", KeyPositions::One),
    ("ZREVRANGEBYLEX", KeyPositions::One),
    ("ZREVRANGEBYSCORE", KeyPositions::One),
    ("ZREVRANK", KeyPositions::One),
    ("ZSCORE", KeyPositions::One),
    ("ZUNION", KeyPositions::Counted),
];

fn key_positions(name: &[u8]) -> Option<KeyPositions> {
    let upper = || name.iter().map(u8::to_ascii_uppercase);
    let found = CACHED.binary_search_by(|(known, _)| known.bytes().cmp(upper()));
    found.ok().and_then(|at| CACHED.get(at)).map(|(_, keys)| *keys)
}

/// The keys of a command that is cached; `None` if it is not cached or has no keys. O(arguments).
pub(super) fn keys(request: &Request) -> Option<Vec<&[u8]>> {
    let mut args = request.arguments();
    let keys: Vec<_> = match key_positions(args.next()?)? {
        KeyPositions::One => args.take(1).collect(),
        KeyPositions::Two => args.take(2).collect(),
        KeyPositions::All => args.collect(),
        KeyPositions::Counted => {
            let count = std::str::from_utf8(args.next()?).ok()?.parse().ok()?;
            args.take(count).collect()
        }
    };
    (!keys.is_empty()).then_some(keys)
}

/// The commands that are cached, each with a name for the positions of its keys.
pub(super) fn cached() -> impl Iterator<Item = (&'static str, &'static str)> {
    CACHED.iter().map(|(name, keys)| {
        let shape = match keys {
            KeyPositions::One => "one",
            KeyPositions::Two => "two",
            KeyPositions::All => "all",
            KeyPositions::Counted => "counted",
        };
        (*name, shape)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands;

    fn args<'a>(keys: &'a [&'a str]) -> Option<Vec<&'a [u8]>> {
        Some(keys.iter().map(|key| key.as_bytes()).collect())
    }

    #[test]
    fn names_are_sorted_and_found_in_any_case() {
        assert!(CACHED.is_sorted_by_key(|(name, _)| *name));
        assert!(
            CACHED.iter().all(|(name, _)| key_positions(name.to_lowercase().as_bytes()).is_some())
        );
        for other in ["TTL", "SET", "SRANDMEMBER", "SORT_RO", "EVAL_RO", "OBJECT", ""] {
            assert_eq!(key_positions(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn keys_are_found_at_every_kind_of_position() {
        let get = commands::get::<String>("a");
        assert_eq!(keys(get.request()), args(&["a"]));
        let mget = commands::mget::<Vec<String>>(["a", "b", "a"]);
        assert_eq!(keys(mget.request()), args(&["a", "b", "a"]));
        let union = commands::zunion::<Vec<String>>(["a", "b"]);
        assert_eq!(keys(union.request()), args(&["a", "b"]));
        let range = commands::zrange::<Vec<String>>("a", 0, 9);
        assert_eq!(keys(range.request()), args(&["a"]));
        let common = commands::lcs::<String>("a", "b");
        assert_eq!(keys(common.request()), args(&["a", "b"]));
        assert_eq!(keys(commands::ttl("a").request()), None);
        assert_eq!(keys(commands::mget::<Vec<String>>([""; 0]).request()), None);
        let huge = crate::Command::<(), ()>::new(Request::named("ZDIFF")).args(["9999999", "a"]);
        assert_eq!(keys(huge.request()), args(&["a"]));
    }
}
