//! Replies of commands for streams, Pub/Sub, transactions, scripts and functions.

use super::Shape::{Any, Array, Bulk, Integer, Map, Messages, Null, NullArray, Status, Streams};
use super::{Replies, Variant};

pub(super) const REPLIES: &[Replies] = &[
    ("xack", &[(Integer, "The number of messages that were acknowledged.")]),
    (
        "xadd",
        &[(Bulk, "The ID of the entry."), (Null, "With `NOMKSTREAM`: the key does not exist.")],
    ),
    (
        "xautoclaim",
        &[(
            Array,
            "Three elements: the ID from which to continue, or `0-0` when the iteration is \
             complete; the claimed entries (only their IDs with `JUSTID`); and the IDs of entries \
             that no longer exist.",
        )],
    ),
    ("xclaim", &[(Array, "The claimed entries; with `JUSTID`, only their IDs.")]),
    ("xdel", &[(Integer, "The number of entries that were deleted.")]),
    ("xgroup|create", OK),
    (
        "xgroup|createconsumer",
        &[(Integer, "1: the consumer was created; 0: the consumer already exists.")],
    ),
    ("xgroup|delconsumer", &[(Integer, "The number of pending messages that the consumer had.")]),
    ("xgroup|destroy", &[(Integer, "1: the group was deleted; 0: it did not exist.")]),
    ("xgroup|setid", OK),
    (
        "xinfo|consumers",
        &[(Array, "A map for each consumer: `name`, `pending`, `idle`, `inactive`.")],
    ),
    (
        "xinfo|groups",
        &[(
            Array,
            "A map for each group: `name`, `consumers`, `pending`, `last-delivered-id`, `entries-read`, `lag`.",
        )],
    ),
    (
        "xinfo|stream",
        &[(
            Map,
            "The properties of the stream, for example `length`, `last-generated-id` and `groups`. With `FULL`, also \
             the entries, groups and consumers.",
        )],
    ),
    ("xlen", &[(Integer, "The number of entries; 0: the stream is empty or does not exist.")]),
    (
        "xpending",
        &[(
            Array,
            "Four elements: the number of pending messages, the lowest and the highest ID, and the number for each \
             consumer. With a range: an array for each message: ID, consumer, milliseconds since its delivery, and \
             number of deliveries.",
        )],
    ),
    ("xrange", ENTRIES),
    ("xrevrange", ENTRIES),
    ("xread", READ),
    ("xreadgroup", READ_GROUP),
    ("xsetid", OK),
    ("xtrim", &[(Integer, "The number of entries that were deleted.")]),
    ("psubscribe", SUBSCRIBED),
    ("ssubscribe", SUBSCRIBED),
    ("subscribe", SUBSCRIBED),
    ("punsubscribe", UNSUBSCRIBED),
    ("sunsubscribe", UNSUBSCRIBED),
    ("unsubscribe", UNSUBSCRIBED),
    ("publish", RECEIVERS),
    ("spublish", RECEIVERS),
    ("pubsub|channels", &[(Array, "The names of the channels.")]),
    ("pubsub|shardchannels", &[(Array, "The names of the shard channels.")]),
    ("pubsub|numpat", &[(Integer, "The number of different patterns.")]),
    ("pubsub|numsub", SUBSCRIBERS),
    ("pubsub|shardnumsub", SUBSCRIBERS),
    ("discard", OK),
    (
        "exec",
        &[
            (Array, "The reply of each queued command."),
            (NullArray, "A watched key was changed; no command was executed."),
        ],
    ),
    ("multi", OK),
    ("unwatch", OK),
    ("watch", OK),
    ("eval", SCRIPT),
    ("eval_ro", SCRIPT),
    ("evalsha", SCRIPT),
    ("evalsha_ro", SCRIPT),
    ("fcall", FUNCTION),
    ("fcall_ro", FUNCTION),
    ("function|delete", OK),
    ("function|dump", &[(Bulk, "The serialized libraries.")]),
    ("function|flush", OK),
    ("function|kill", OK),
    (
        "function|list",
        &[(
            Array,
            "A map for each library: `library_name`, `engine`, `functions`; with `WITHCODE`, also `library_code`.",
        )],
    ),
    ("function|load", &[(Bulk, "The name of the library.")]),
    ("function|restore", OK),
    (
        "function|stats",
        &[(
            Map,
            "`running_script`, or null if none is running; and `engines`, with the numbers of libraries and functions.",
        )],
    ),
    ("script|debug", &[(Any, "Always an error: the script debugger is not supported.")]),
    (
        "script|exists",
        &[(Array, "An integer for each digest: 1: the script is cached; 0: it is not.")],
    ),
    ("script|flush", OK),
    ("script|kill", OK),
    ("script|load", &[(Bulk, "The SHA1 digest of the script.")]),
    ("script|show", &[(Bulk, "The source of the script.")]),
];

const OK: &[Variant] = &[(Status, "`OK`.")];
const ENTRIES: &[Variant] =
    &[(Array, "An array for each entry: its ID, and a flat array of fields and values.")];
const READ: &[Variant] = &[
    (
        Streams,
        "The keys of the streams that have entries, each with an array of entries as for XRANGE.",
    ),
    (NullArray, "No stream has entries, or the timeout of `BLOCK` has expired."),
];
const READ_GROUP: &[Variant] = &[
    (
        Streams,
        "The keys of the streams that have entries, each with an array of entries as for XRANGE. A stream with an ID \
         other than `>` is always included; the fields of an entry that was deleted are null.",
    ),
    (NullArray, "No stream has new entries, or the timeout of `BLOCK` has expired."),
];
const SUBSCRIBED: &[Variant] = &[(
    Messages,
    "One message for each argument: the type of the message, the name, and the number of subscriptions.",
)];
const UNSUBSCRIBED: &[Variant] = &[(
    Messages,
    "One message for each argument; without arguments, one for each subscription, or one with a null name if there is \
     none. A message has three elements: its type, the name, and the number of subscriptions that remain.",
)];
const RECEIVERS: &[Variant] = &[(
    Integer,
    "The number of clients that received the message; in a cluster, only those connected to this node.",
)];
const SUBSCRIBERS: &[Variant] =
    &[(Array, "A flat array of the channels and the numbers of their subscribers.")];
const SCRIPT: &[Variant] = &[(Any, "The value that the script returns, converted to a reply.")];
const FUNCTION: &[Variant] = &[(Any, "The value that the function returns, converted to a reply.")];
