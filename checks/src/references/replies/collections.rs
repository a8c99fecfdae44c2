//! Replies of commands for lists, hashes, sets, sorted sets and geospatial indexes.

use super::Shape::{Array, Bulk, Double, Integer, Map, Null, NullArray, Pairs, Set, Status};
use super::{Replies, Variant};

pub(super) const REPLIES: &[Replies] = &[
    ("blmove", BLOCKING_MOVE),
    ("brpoplpush", BLOCKING_MOVE),
    ("lmove", MOVE),
    ("rpoplpush", MOVE),
    ("blmpop", MULTIPLE_POP),
    ("lmpop", MULTIPLE_POP),
    ("blpop", BLOCKING_POP),
    ("brpop", BLOCKING_POP),
    (
        "lindex",
        &[(Bulk, "The element."), (Null, "The key does not exist, or the index is out of range.")],
    ),
    (
        "linsert",
        &[(
            Integer,
            "The length of the list; 0: the key does not exist; -1: the pivot was not found.",
        )],
    ),
    ("llen", &[(Integer, "The length of the list; 0: the key does not exist.")]),
    ("lpop", LIST_POP),
    ("rpop", LIST_POP),
    (
        "lpos",
        &[
            (Integer, "The index of the element."),
            (Null, "The element was not found."),
            (Array, "With `COUNT`: the indexes of the elements; empty if none was found."),
        ],
    ),
    ("lpush", LENGTH),
    ("rpush", LENGTH),
    ("lpushx", LENGTH_IF_EXISTS),
    ("rpushx", LENGTH_IF_EXISTS),
    ("lrange", &[(Array, "The elements in the range.")]),
    ("lrem", &[(Integer, "The number of elements that were removed.")]),
    ("lset", OK),
    ("ltrim", OK),
    ("hdel", &[(Integer, "The number of fields that were removed.")]),
    ("hexists", &[(Integer, "1: the field exists; 0: it does not.")]),
    ("hexpire", FIELD_EXPIRY),
    ("hexpireat", FIELD_EXPIRY),
    ("hpexpire", FIELD_EXPIRY),
    ("hpexpireat", FIELD_EXPIRY),
    ("hexpiretime", FIELD_TIME),
    ("hpexpiretime", FIELD_TIME),
    ("httl", FIELD_TTL),
    ("hpttl", FIELD_TTL),
    (
        "hpersist",
        &[(
            Array,
            "An integer for each field: 1: the TTL was removed; -1: the field has no TTL; -2: the field does not exist.",
        )],
    ),
    ("hget", &[(Bulk, "The value of the field."), (Null, "The field does not exist.")]),
    ("hgetall", &[(Map, "The fields and their values; empty if the key does not exist.")]),
    ("hgetdel", FIELD_VALUES),
    ("hgetex", FIELD_VALUES),
    ("hmget", FIELD_VALUES),
    ("hincrby", &[(Integer, "The new value of the field.")]),
    ("hincrbyfloat", &[(Bulk, "The new value of the field.")]),
    ("hkeys", &[(Array, "The names of the fields.")]),
    ("hvals", &[(Array, "The values of the fields.")]),
    ("hlen", &[(Integer, "The number of fields; 0: the key does not exist.")]),
    ("hmset", OK),
    (
        "hrandfield",
        &[
            (Bulk, "The name of a field."),
            (Null, "The key does not exist."),
            (Array, "With a count: the names of fields."),
            (Pairs, "With `WITHVALUES`: the names and values of fields."),
        ],
    ),
    (
        "hscan",
        &[(
            Array,
            "Two elements: the cursor for the next call, or `0` when the iteration is complete; \
             and a flat array of fields and values, or of fields only with `NOVALUES`.",
        )],
    ),
    ("hset", &[(Integer, "The number of fields that were added.")]),
    ("hsetex", &[(Integer, "1: all fields were set; 0: the condition is not met.")]),
    ("hsetnx", &[(Integer, "1: the field was set; 0: the field already exists.")]),
    ("hstrlen", &[(Integer, "The length of the value in bytes; 0: it is empty or missing.")]),
    ("sadd", &[(Integer, "The number of members that were added.")]),
    ("scard", &[(Integer, "The number of members; 0: the key does not exist.")]),
    ("sdiff", MEMBERS),
    ("sinter", MEMBERS),
    ("sunion", MEMBERS),
    ("smembers", MEMBERS),
    ("sdiffstore", STORED),
    ("sinterstore", STORED),
    ("sunionstore", STORED),
    ("sintercard", CARDINALITY),
    ("sismember", &[(Integer, "1: the set has this member; 0: it does not.")]),
    (
        "smismember",
        &[(Array, "An integer for each member: 1: the set has this member; 0: it does not.")],
    ),
    ("smove", &[(Integer, "1: the member was moved; 0: the source does not have it.")]),
    (
        "spop",
        &[
            (Bulk, "The removed member."),
            (Null, "The key does not exist."),
            (Set, "With a count: the removed members."),
        ],
    ),
    (
        "srandmember",
        &[
            (Bulk, "A member."),
            (Null, "The key does not exist."),
            (Array, "With a count: members; with a negative count, members can repeat."),
        ],
    ),
    ("srem", &[(Integer, "The number of members that were removed.")]),
    (
        "sscan",
        &[(
            Array,
            "Two elements: the cursor for the next call, or `0` when the iteration is complete; \
             and an array of members.",
        )],
    ),
    ("bzmpop", SORTED_MULTIPLE_POP),
    ("zmpop", SORTED_MULTIPLE_POP),
    ("bzpopmax", SORTED_BLOCKING_POP),
    ("bzpopmin", SORTED_BLOCKING_POP),
    (
        "zadd",
        &[
            (Integer, "The number of members that were added; with `CH`, added or changed."),
            (Double, "With `INCR`: the new score."),
            (Null, "With `INCR`: a condition is not met."),
        ],
    ),
    ("zcard", &[(Integer, "The number of members; 0: the key does not exist.")]),
    ("zcount", &[(Integer, "The number of members in the range.")]),
    ("zlexcount", &[(Integer, "The number of members in the range.")]),
    ("zdiff", WITH_SCORES),
    ("zinter", WITH_SCORES),
    ("zunion", WITH_SCORES),
    ("zrange", WITH_SCORES),
    ("zrevrange", WITH_SCORES),
    ("zrangebyscore", WITH_SCORES),
    ("zrevrangebyscore", WITH_SCORES),
    ("zrangebylex", &[(Array, "The members.")]),
    ("zrevrangebylex", &[(Array, "The members.")]),
    ("zdiffstore", STORED),
    ("zinterstore", STORED),
    ("zunionstore", STORED),
    ("zrangestore", STORED),
    ("zintercard", CARDINALITY),
    ("zincrby", &[(Double, "The new score.")]),
    (
        "zmscore",
        &[(Array, "The score of each member, as for ZSCORE; null if the member does not exist.")],
    ),
    ("zpopmax", SORTED_POP),
    ("zpopmin", SORTED_POP),
    (
        "zrandmember",
        &[
            (Bulk, "A member."),
            (Null, "The key does not exist."),
            (Array, "With a count: members."),
            (Pairs, "With `WITHSCORES`: members and their scores."),
        ],
    ),
    ("zrank", RANK),
    ("zrevrank", RANK),
    ("zrem", &[(Integer, "The number of members that were removed.")]),
    ("zremrangebylex", &[(Integer, "The number of members that were removed.")]),
    ("zremrangebyrank", &[(Integer, "The number of members that were removed.")]),
    ("zremrangebyscore", &[(Integer, "The number of members that were removed.")]),
    (
        "zscan",
        &[(
            Array,
            "Two elements: the cursor for the next call, or `0` when the iteration is complete; \
             and a flat array of members and scores, or of members only with `NOSCORES`.",
        )],
    ),
    ("zscore", &[(Double, "The score."), (Null, "The member does not exist.")]),
    ("geoadd", &[(Integer, "The number of members that were added; with `CH`, added or changed.")]),
    (
        "geodist",
        &[(Bulk, "The distance in the given unit."), (Null, "One of the members does not exist.")],
    ),
    ("geohash", &[(Array, "The geohash of each member; null if the member does not exist.")]),
    (
        "geopos",
        &[(
            Array,
            "An array of longitude and latitude for each member; null if the member does not exist.",
        )],
    ),
    ("georadius", RADIUS),
    ("georadiusbymember", RADIUS),
    ("georadius_ro", SEARCH),
    ("georadiusbymember_ro", SEARCH),
    ("geosearch", SEARCH),
    ("geosearchstore", STORED),
];

const OK: &[Variant] = &[(Status, "`OK`.")];
const LENGTH: &[Variant] = &[(Integer, "The length of the list.")];
const LENGTH_IF_EXISTS: &[Variant] =
    &[(Integer, "The length of the list; 0: the key does not exist.")];
const MOVE: &[Variant] = &[(Bulk, "The moved element."), (Null, "The source does not exist.")];
const BLOCKING_MOVE: &[Variant] =
    &[(Bulk, "The moved element."), (NullArray, "No element arrived before the timeout.")];
const BLOCKING_POP: &[Variant] = &[
    (Array, "Two elements: the key and the removed element."),
    (NullArray, "No element arrived before the timeout."),
];
const MULTIPLE_POP: &[Variant] = &[
    (Array, "Two elements: the key, and an array of the removed elements."),
    (NullArray, "No list has an element, or the timeout has expired."),
];
const LIST_POP: &[Variant] = &[
    (Bulk, "The removed element."),
    (Null, "Without a count: the key does not exist."),
    (Array, "With a count: the removed elements."),
    (NullArray, "With a count: the key does not exist."),
];
const FIELD_EXPIRY: &[Variant] = &[(
    Array,
    "An integer for each field: 1: the expiry time was set; 2: the field was deleted because the time has passed; 0: \
     the condition is not met; -2: the field does not exist.",
)];
const FIELD_TIME: &[Variant] = &[(
    Array,
    "The expiry time of each field as a Unix time; -1: the field has no TTL; -2: the field does not exist.",
)];
const FIELD_TTL: &[Variant] =
    &[(Array, "The TTL of each field; -1: the field has no TTL; -2: the field does not exist.")];
const FIELD_VALUES: &[Variant] =
    &[(Array, "The value of each field; null if the field does not exist.")];
const MEMBERS: &[Variant] = &[(Set, "The members.")];
const STORED: &[Variant] = &[(Integer, "The number of members that were stored.")];
const CARDINALITY: &[Variant] =
    &[(Integer, "The number of members in the intersection, at most `LIMIT`.")];
const SORTED_POP: &[Variant] = &[
    (Array, "Without a count: the member and its score; empty if the key does not exist."),
    (Pairs, "With a count: the members and their scores; empty if the key does not exist."),
];
const SORTED_BLOCKING_POP: &[Variant] = &[
    (Array, "Three elements: the key, the member and its score."),
    (NullArray, "No member arrived before the timeout."),
];
const SORTED_MULTIPLE_POP: &[Variant] = &[
    (Array, "Two elements: the key, and an array of arrays of a member and its score."),
    (NullArray, "No sorted set has a member, or the timeout has expired."),
];
const WITH_SCORES: &[Variant] =
    &[(Array, "The members."), (Pairs, "With `WITHSCORES`: the members and their scores.")];
const RANK: &[Variant] = &[
    (Integer, "The rank, from 0."),
    (Null, "The member does not exist."),
    (Array, "With `WITHSCORE`: the rank and the score."),
    (NullArray, "With `WITHSCORE`: the member does not exist."),
];
const SEARCH: &[Variant] = &[(
    Array,
    "The members. With a `WITH...` option, each element is an array of the member and the requested values: the \
     distance, the geohash as an integer, and an array of longitude and latitude.",
)];
const RADIUS: &[Variant] = &[
    (SEARCH[0].0, SEARCH[0].1),
    (Integer, "With `STORE` or `STOREDIST`: the number of members that were stored."),
];
