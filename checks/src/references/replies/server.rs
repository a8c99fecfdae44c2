//! Replies of commands for connections, the server and clusters.

use super::Shape::{Any, Array, Bulk, Integer, Map, Nothing, Null, Status, Verbatim};
use super::{Replies, Variant};

pub(super) const REPLIES: &[Replies] = &[
    ("auth", OK),
    ("client|caching", OK),
    ("client|capa", OK),
    ("client|durability", OK),
    ("client|getname", &[(Bulk, "The name."), (Null, "The connection has no name.")]),
    (
        "client|getredir",
        &[(Integer, "The client ID; 0: invalidations are not redirected; -1: tracking is off.")],
    ),
    ("client|id", &[(Integer, "The ID of the connection.")]),
    ("client|info", &[(Verbatim, "Names and values, separated by spaces.")]),
    (
        "client|kill",
        &[
            (Integer, "With filters: the number of closed connections."),
            (Status, "With an address only: `OK`."),
        ],
    ),
    ("client|list", &[(Verbatim, "One line for each connection, with names and values.")]),
    ("client|no-evict", OK),
    ("client|no-touch", OK),
    ("client|pause", OK),
    ("client|reply", &[(Status, "With `ON`: `OK`."), (Nothing, "With `OFF` or `SKIP`.")]),
    ("client|setinfo", OK),
    ("client|setname", OK),
    ("client|tracking", OK),
    ("client|trackinginfo", &[(Map, "`flags`, `redirect` and `prefixes`.")]),
    (
        "client|unblock",
        &[(Integer, "1: the client was unblocked; 0: it is not blocked or does not exist.")],
    ),
    ("client|unpause", OK),
    ("echo", &[(Bulk, "The message.")]),
    ("hello", &[(Map, "`server`, `version`, `proto`, `id`, `mode`, `role` and `modules`.")]),
    (
        "ping",
        &[
            (Status, "Without a message: `PONG`."),
            (Bulk, "The message."),
            (Array, "In RESP2, with subscriptions: `pong` and the message."),
        ],
    ),
    ("quit", OK),
    ("reset", &[(Status, "`RESET`.")]),
    ("select", OK),
    ("acl|cat", &[(Array, "The categories, or the commands of the given category.")]),
    ("acl|deluser", &[(Integer, "The number of users that were deleted.")]),
    (
        "acl|dryrun",
        &[
            (Status, "`OK`: the user may run the command."),
            (Bulk, "The reason why the user may not run the command."),
        ],
    ),
    ("acl|genpass", &[(Bulk, "The password, in hexadecimal digits.")]),
    (
        "acl|getuser",
        &[
            (Map, "`flags`, `passwords`, `commands`, `keys`, `channels` and `selectors`."),
            (Null, "The user does not exist."),
        ],
    ),
    ("acl|list", &[(Array, "One line for each user, in the form of an ACL file.")]),
    ("acl|load", OK),
    (
        "acl|log",
        &[(Array, "A map for each entry, the latest first."), (Status, "With `RESET`: `OK`.")],
    ),
    ("acl|save", OK),
    ("acl|setuser", OK),
    ("acl|users", &[(Array, "The names of the users.")]),
    ("acl|whoami", &[(Bulk, "The name of the user.")]),
    ("bgrewriteaof", &[(Status, "The rewrite has started or is scheduled.")]),
    ("bgsave", &[(Status, "The snapshot has started or is scheduled.")]),
    ("command", &[(Array, "An array for each command, as for COMMAND INFO.")]),
    ("command|count", &[(Integer, "The number of commands.")]),
    (
        "command|docs",
        &[(Map, "The name of each command, with a map that contains its documentation.")],
    ),
    ("command|getkeys", &[(Array, "The keys.")]),
    ("command|getkeysandflags", &[(Array, "An array for each key: its name and its flags.")]),
    (
        "command|info",
        &[(
            Array,
            "An array for each command: name, arity, flags, first key, last key, step, ACL categories, tips, key \
             specifications, subcommands; a null array if the command does not exist.",
        )],
    ),
    ("command|list", &[(Array, "The names.")]),
    ("config|get", &[(Map, "The directives and their values.")]),
    ("config|resetstat", OK),
    ("config|rewrite", OK),
    ("config|set", OK),
    ("dbsize", &[(Integer, "The number of keys.")]),
    ("debug", &[(Any, "The reply depends on the subcommand.")]),
    ("failover", OK),
    ("flushall", OK),
    ("flushdb", OK),
    ("info", &[(Verbatim, "Sections of lines, each with a name, a colon and a value.")]),
    ("lastsave", &[(Integer, "The time of the last snapshot as a Unix time in seconds.")]),
    ("latency|doctor", &[(Verbatim, "The report.")]),
    ("latency|graph", &[(Verbatim, "The graph.")]),
    (
        "latency|histogram",
        &[(
            Map,
            "A map for each command: `calls`, and `histogram_usec` with the cumulative number of calls by duration.",
        )],
    ),
    (
        "latency|history",
        &[(Array, "An array for each spike: its Unix time, and its duration in milliseconds.")],
    ),
    (
        "latency|latest",
        &[(
            Array,
            "An array for each event: its name, the time of the latest spike, and the durations of the latest and \
             the longest spike in milliseconds.",
        )],
    ),
    ("latency|reset", &[(Integer, "The number of events whose spikes were deleted.")]),
    ("lolwut", &[(Verbatim, "A drawing and the version.")]),
    ("memory|doctor", &[(Verbatim, "The report.")]),
    ("memory|malloc-stats", &[(Verbatim, "The statistics of the allocator.")]),
    ("memory|purge", OK),
    ("memory|stats", &[(Map, "The names and values of the statistics.")]),
    ("memory|usage", &[(Integer, "The size in bytes."), (Null, "The key does not exist.")]),
    ("module|list", &[(Array, "An empty array: modules are not supported.")]),
    ("module|load", NO_MODULES),
    ("module|loadex", NO_MODULES),
    ("module|unload", NO_MODULES),
    ("monitor", &[(Status, "`OK`, and then a line for each command that the server executes.")]),
    ("psync", STREAM),
    ("sync", STREAM),
    ("replconf", &[(Status, "`OK`."), (Nothing, "For an acknowledgement (`ACK`).")]),
    ("replicaof", OK),
    ("slaveof", OK),
    ("replication", &[(Array, "The subcommands with their syntax.")]),
    ("replication|compare", &[(Array, "A map for each replica.")]),
    ("restore-asking", OK),
    (
        "role",
        &[(
            Array,
            "On a primary: `master`, the replication offset, and an array for each replica. On a replica: `slave`, the \
             host and port of the primary, the state of the link, and the offset.",
        )],
    ),
    ("save", OK),
    (
        "shutdown",
        &[
            (Nothing, "The server closes the connection when it exits."),
            (Status, "With `ABORT`: `OK`."),
        ],
    ),
    (
        "slowlog|get",
        &[(
            Array,
            "An array for each entry: ID, Unix time, duration in microseconds, arguments, client \
             address and client name.",
        )],
    ),
    ("slowlog|len", &[(Integer, "The number of entries.")]),
    ("slowlog|reset", OK),
    ("swapdb", OK),
    ("time", &[(Array, "Two elements: the Unix time in seconds, and microseconds.")]),
    ("asking", OK),
    ("readonly", OK),
    ("readwrite", OK),
    ("cluster|addslots", OK),
    ("cluster|addslotsrange", OK),
    ("cluster|bumpepoch", &[(Status, "`STILL` and the epoch.")]),
    ("cluster|count-failure-reports", &[(Integer, "The number of reports.")]),
    ("cluster|countkeysinslot", &[(Integer, "The number of keys.")]),
    ("cluster|delslots", OK),
    ("cluster|delslotsrange", OK),
    ("cluster|failover", OK),
    ("cluster|flushslots", OK),
    ("cluster|forget", OK),
    ("cluster|getkeysinslot", &[(Array, "The names of the keys.")]),
    ("cluster|info", &[(Verbatim, "Lines, each with a name, a colon and a value.")]),
    ("cluster|keyslot", &[(Integer, "The slot.")]),
    ("cluster|links", &[(Array, "Always empty.")]),
    ("cluster|meet", OK),
    ("cluster|myid", &[(Bulk, "The ID of this node.")]),
    ("cluster|myshardid", &[(Bulk, "The ID of this node's shard.")]),
    ("cluster|nodes", &[(Verbatim, "One line for each node.")]),
    ("cluster|replicas", REPLICAS),
    ("cluster|slaves", REPLICAS),
    ("cluster|replicate", OK),
    ("cluster|reset", OK),
    ("cluster|saveconfig", OK),
    ("cluster|set-config-epoch", OK),
    ("cluster|setslot", OK),
    (
        "cluster|shards",
        &[(Array, "A map for each shard: `slots`, and `nodes` with a map for each node.")],
    ),
    (
        "cluster|slots",
        &[(
            Array,
            "An array for each range of slots: the first and the last slot, and an array for each node, the primary \
             first: host, port, ID and further names of the host.",
        )],
    ),
];

const OK: &[Variant] = &[(Status, "`OK`.")];
const NO_MODULES: &[Variant] = &[(Any, "Always an error: modules are not supported.")];
const STREAM: &[Variant] =
    &[(Any, "A snapshot of the dataset if it is needed, and then the replication stream.")];
const REPLICAS: &[Variant] = &[(Array, "One line for each replica, in the form of CLUSTER NODES.")];
