//! Replies of commands for keys of any type, strings, bitmaps and HyperLogLog.

use super::Replies;
use super::Shape::{Any, Array, Bulk, Integer, Map, Null, Status};

pub(super) const REPLIES: &[Replies] = &[
    ("copy", &[(Integer, "1: the key was copied; 0: it was not.")]),
    ("del", &[(Integer, "The number of keys that were deleted.")]),
    ("dump", &[(Bulk, "The serialized value."), (Null, "The key does not exist.")]),
    ("exists", &[(Integer, "The number of arguments that name an existing key.")]),
    ("expire", EXPIRY),
    ("expireat", EXPIRY),
    ("pexpire", EXPIRY),
    ("pexpireat", EXPIRY),
    (
        "expiretime",
        &[(
            Integer,
            "The expiry time as a Unix time in seconds; -1: the key has no TTL; -2: the key does not exist.",
        )],
    ),
    (
        "pexpiretime",
        &[(
            Integer,
            "The expiry time as a Unix time in milliseconds; -1: the key has no TTL; -2: the key does not exist.",
        )],
    ),
    ("keys", &[(Array, "The names of the keys.")]),
    ("migrate", &[(Status, "`OK`: the keys were transferred; `NOKEY`: none of them exists.")]),
    ("move", &[(Integer, "1: the key was moved; 0: it was not.")]),
    ("object|encoding", &[(Bulk, "The name of the encoding."), (Null, "The key does not exist.")]),
    (
        "object|freq",
        &[
            (Integer, "The access counter, which is logarithmic."),
            (Null, "The key does not exist."),
        ],
    ),
    (
        "object|idletime",
        &[(Integer, "Seconds since the last access."), (Null, "The key does not exist.")],
    ),
    (
        "object|refcount",
        &[(Integer, "The number of references to the value."), (Null, "The key does not exist.")],
    ),
    ("persist", &[(Integer, "1: the TTL was removed; 0: the key does not exist or has no TTL.")]),
    (
        "ttl",
        &[(Integer, "The TTL in seconds; -1: the key has no TTL; -2: the key does not exist.")],
    ),
    (
        "pttl",
        &[(
            Integer,
            "The TTL in milliseconds; -1: the key has no TTL; -2: the key does not exist.",
        )],
    ),
    ("randomkey", &[(Bulk, "The name of a key."), (Null, "The database is empty.")]),
    ("rename", OK),
    ("renamenx", &[(Integer, "1: the key was renamed; 0: the new name already exists.")]),
    ("restore", OK),
    (
        "scan",
        &[(
            Array,
            "Two elements: the cursor for the next call, or `0` when the iteration is complete; \
             and an array of the names of keys.",
        )],
    ),
    (
        "sort",
        &[
            (Array, "The sorted elements, or the values that the `GET` patterns select."),
            (Integer, "With `STORE`: the number of elements that were stored."),
        ],
    ),
    ("sort_ro", &[(Array, "The sorted elements, or the values that the `GET` patterns select.")]),
    ("touch", &[(Integer, "The number of keys that exist.")]),
    (
        "type",
        &[(
            Status,
            "`string`, `list`, `set`, `zset`, `hash` or `stream`; `none`: the key does not exist.",
        )],
    ),
    ("unlink", &[(Integer, "The number of keys that were deleted.")]),
    ("wait", &[(Integer, "The number of replicas that have acknowledged the writes.")]),
    (
        "waitaof",
        &[(
            Array,
            "Two integers: 1 if this server has synced the writes to disk, otherwise 0; and the \
             number of replicas that have synced them.",
        )],
    ),
    ("append", &[(Integer, "The length of the string in bytes.")]),
    ("decr", NUMBER),
    ("decrby", NUMBER),
    ("incr", NUMBER),
    ("incrby", NUMBER),
    ("incrbyfloat", &[(Bulk, "The new value.")]),
    ("get", VALUE),
    ("getdel", &[(Bulk, "The value of the deleted key."), (Null, "The key does not exist.")]),
    ("getex", VALUE),
    ("getrange", SUBSTRING),
    ("substr", SUBSTRING),
    ("getset", &[(Bulk, "The old value."), (Null, "The key did not exist.")]),
    (
        "lcs",
        &[
            (Bulk, "The longest common subsequence."),
            (Integer, "With `LEN`: the length of this subsequence."),
            (
                Map,
                "With `IDX`: `matches`, the ranges that match in both strings; and `len`, the length.",
            ),
        ],
    ),
    (
        "mget",
        &[(
            Array,
            "The value of each key; null for a key that does not exist or has another type.",
        )],
    ),
    ("mset", OK),
    ("msetnx", &[(Integer, "1: all keys were set; 0: none was set, because one of them exists.")]),
    ("psetex", OK),
    ("setex", OK),
    (
        "set",
        &[
            (Status, "`OK`: the value was set."),
            (
                Null,
                "Without `GET`: the condition `NX` or `XX` is not met. With `GET`: the key did not exist.",
            ),
            (Bulk, "With `GET`: the old value, whether or not the new one was set."),
        ],
    ),
    ("setnx", &[(Integer, "1: the value was set; 0: the key already exists.")]),
    ("setrange", &[(Integer, "The length of the string in bytes.")]),
    ("strlen", &[(Integer, "The length of the string in bytes; 0: it is empty or missing.")]),
    ("bitcount", &[(Integer, "The number of set bits.")]),
    ("bitfield", FIELDS),
    ("bitfield_ro", &[(Array, "The value of each `GET`.")]),
    ("bitop", &[(Integer, "The length of the stored string in bytes.")]),
    ("bitpos", &[(Integer, "The position of the first bit with this value; -1: there is none.")]),
    ("getbit", &[(Integer, "The bit: 0 or 1.")]),
    ("setbit", &[(Integer, "The old bit: 0 or 1.")]),
    ("pfadd", &[(Integer, "1: the HyperLogLog was created or changed; 0: it was not changed.")]),
    ("pfcount", &[(Integer, "The approximate number of distinct elements.")]),
    ("pfdebug", &[(Any, "The reply depends on the subcommand.")]),
    ("pfmerge", OK),
    ("pfselftest", OK),
];

const OK: &[super::Variant] = &[(Status, "`OK`.")];
const VALUE: &[super::Variant] = &[(Bulk, "The value."), (Null, "The key does not exist.")];
const NUMBER: &[super::Variant] = &[(Integer, "The new value.")];
const SUBSTRING: &[super::Variant] = &[(
    Bulk,
    "The part of the string; empty if the range contains no bytes or the key does not exist.",
)];
const EXPIRY: &[super::Variant] = &[(
    Integer,
    "1: the expiry time was set, or the key was deleted because the time has passed; 0: the key does not exist, or \
     the condition is not met.",
)];
const FIELDS: &[super::Variant] = &[(
    Array,
    "A reply for each `GET`, `SET` and `INCRBY`: the value, the old value, or the new value; null if `OVERFLOW FAIL` \
     prevents the change.",
)];
