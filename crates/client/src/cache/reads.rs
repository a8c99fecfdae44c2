//! The commands that are cached, and the positions of their keys.
//!
//! A command is cached if its reply depends only on the values of the keys that it names: then the server invalidates
//! the reply when it changes. Not cached are: TTL and the like (change with time), SRANDMEMBER and scans (change with
//! each call), XPENDING and OBJECT (change with the actions of other clients), SORT_RO and scripts (may read other
//! keys), and TOUCH (must be executed).

use crate::request::Request;

/// The positions of a command's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// The argument after the name.
    One,
    /// The two arguments after the name.
    Two,
    /// All arguments after the name.
    All,
    /// The argument after the name is the number of keys, which follow it.
    Counted,
}

/// Sorted by name.
const KEPT: &[(&str, Keys)] = &[
    ("BITCOUNT", Keys::One),
    ("BITFIELD_RO", Keys::One),
    ("BITPOS", Keys::One),
    ("EXISTS", Keys::All),
    ("EXPIRETIME", Keys::One),
    ("GEODIST", Keys::One),
    ("GEOHASH", Keys::One),
    ("GEOPOS", Keys::One),
    ("GEORADIUSBYMEMBER_RO", Keys::One),
    ("GEORADIUS_RO", Keys::One),
    ("GEOSEARCH", Keys::One),
    ("GET", Keys::One),
    ("GETBIT", Keys::One),
    ("GETRANGE", Keys::One),
    ("HEXISTS", Keys::One),
    ("HGET", Keys::One),
    ("HGETALL", Keys::One),
    ("HKEYS", Keys::One),
    ("HLEN", Keys::One),
    ("HMGET", Keys::One),
    ("HSTRLEN", Keys::One),
    ("HVALS", Keys::One),
    ("LCS", Keys::Two),
    ("LINDEX", Keys::One),
    ("LLEN", Keys::One),
    ("LPOS", Keys::One),
    ("LRANGE", Keys::One),
    ("MGET", Keys::All),
    ("PEXPIRETIME", Keys::One),
    ("PFCOUNT", Keys::All),
    ("SCARD", Keys::One),
    ("SDIFF", Keys::All),
    ("SINTER", Keys::All),
    ("SINTERCARD", Keys::Counted),
    ("SISMEMBER", Keys::One),
    ("SMEMBERS", Keys::One),
    ("SMISMEMBER", Keys::One),
    ("STRLEN", Keys::One),
    ("SUBSTR", Keys::One),
    ("SUNION", Keys::All),
    ("TYPE", Keys::One),
    ("XLEN", Keys::One),
    ("XRANGE", Keys::One),
    ("XREVRANGE", Keys::One),
    ("ZCARD", Keys::One),
    ("ZCOUNT", Keys::One),
    ("ZDIFF", Keys::Counted),
    ("ZINTER", Keys::Counted),
    ("ZINTERCARD", Keys::Counted),
    ("ZLEXCOUNT", Keys::One),
    ("ZMSCORE", Keys::One),
    ("ZRANGE", Keys::One),
    ("ZRANGEBYLEX", Keys::One),
    ("ZRANGEBYSCORE", Keys::One),
    ("ZRANK", Keys::One),
    ("ZREVRANGE", Keys::One),
    ("ZREVRANGEBYLEX", Keys::One),
    ("ZREVRANGEBYSCORE", Keys::One),
    ("ZREVRANK", Keys::One),
    ("ZSCORE", Keys::One),
    ("ZUNION", Keys::Counted),
];

fn place(name: &[u8]) -> Option<Keys> {
    let upper = || name.iter().map(u8::to_ascii_uppercase);
    let found = KEPT.binary_search_by(|(known, _)| known.bytes().cmp(upper()));
    found.ok().and_then(|at| KEPT.get(at)).map(|(_, keys)| *keys)
}

/// The keys of a command that is cached; `None` if it is not cached or has no keys. O(arguments).
pub(super) fn keys(request: &Request) -> Option<Vec<&[u8]>> {
    let mut words = request.words();
    let keys: Vec<_> = match place(words.next()?)? {
        Keys::One => words.take(1).collect(),
        Keys::Two => words.take(2).collect(),
        Keys::All => words.collect(),
        Keys::Counted => {
            let count = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
            words.take(count).collect()
        }
    };
    (!keys.is_empty()).then_some(keys)
}

/// The commands that are cached, each with a name for the positions of its keys.
pub(super) fn kept() -> impl Iterator<Item = (&'static str, &'static str)> {
    KEPT.iter().map(|(name, keys)| {
        let shape = match keys {
            Keys::One => "one",
            Keys::Two => "two",
            Keys::All => "all",
            Keys::Counted => "counted",
        };
        (*name, shape)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands;

    fn words<'a>(keys: &'a [&'a str]) -> Option<Vec<&'a [u8]>> {
        Some(keys.iter().map(|key| key.as_bytes()).collect())
    }

    #[test]
    fn names_are_sorted_and_found_in_any_case() {
        assert!(KEPT.is_sorted_by_key(|(name, _)| *name));
        assert!(KEPT.iter().all(|(name, _)| place(name.to_lowercase().as_bytes()).is_some()));
        for other in ["TTL", "SET", "SRANDMEMBER", "SORT_RO", "EVAL_RO", "OBJECT", ""] {
            assert_eq!(place(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn keys_are_found_wherever_they_stand() {
        let get = commands::get::<String>("a");
        assert_eq!(keys(get.request()), words(&["a"]));
        let mget = commands::mget::<Vec<String>>(["a", "b", "a"]);
        assert_eq!(keys(mget.request()), words(&["a", "b", "a"]));
        let union = commands::zunion::<Vec<String>>(["a", "b"]);
        assert_eq!(keys(union.request()), words(&["a", "b"]));
        let range = commands::zrange::<Vec<String>>("a", 0, 9);
        assert_eq!(keys(range.request()), words(&["a"]));
        let common = commands::lcs::<String>("a", "b");
        assert_eq!(keys(common.request()), words(&["a", "b"]));
        assert_eq!(keys(commands::ttl("a").request()), None);
        assert_eq!(keys(commands::mget::<Vec<String>>([""; 0]).request()), None);
        let huge = crate::Command::<(), ()>::new(Request::named("ZDIFF")).args(["9999999", "a"]);
        assert_eq!(keys(huge.request()), words(&["a"]));
    }
}
