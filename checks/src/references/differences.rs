//! Intended differences from Redis 7, and from Redis 7 with `dialect valkey`.
//!
//! `docs/compatibility.md` and `docs/cluster.md` list all of them. The page of a command shows those that name it.

use super::text::wrapped;
use std::fmt::Write as _;

/// A difference from Redis 7 that users can observe.
pub(super) struct Difference {
    /// The full names of the commands on whose pages it is shown.
    pub(super) commands: &'static [&'static str],
    /// The text in Markdown, with links relative to `docs`.
    pub(super) text: &'static str,
}

/// Differences under one heading.
struct Section {
    /// The heading; empty if the section continues the previous one.
    title: &'static str,
    introduction: &'static str,
    differences: &'static [Difference],
}

const SECTIONS: &[Section] = &[
    Section {
        title: "Commands",
        introduction: "Where Redis 7.0 and 7.2 differ, Brisk follows 7.2 in these cases:",
        differences: OF_REDIS_7_2,
    },
    Section { title: "", introduction: "Other differences:", differences: COMMANDS },
    Section {
        title: "Scripts and functions",
        introduction: "Scripts run on Luau instead of Lua 5.1. [Moving from \
                       Redis](moving-from-redis.md) lists what differs in the language.",
        differences: SCRIPTS,
    },
    Section { title: "Clients and memory", introduction: "", differences: CLIENTS },
    Section {
        title: "Persistence",
        introduction: "See [snapshots](design/persistence.md) and [append-only \
                       file](design/append-only-file.md).",
        differences: PERSISTENCE,
    },
    Section { title: "Replication", introduction: "", differences: REPLICATION },
    Section { title: "Configuration and security", introduction: "", differences: CONFIGURATION },
];

const OF_REDIS_7_2: &[Difference] = &[
    Difference {
        commands: &["acl|getuser", "acl|list"],
        text: "ACL rules are shown as they were given, and errors name the user (“User alice has no \
               permissions …”). Redis 7.0 shows normalized rules and says “this user”.",
    },
    Difference {
        commands: &["object|encoding"],
        text: "Short lists, and short sets of strings, have the encoding `listpack`, as in Redis \
               7.2.",
    },
    Difference {
        commands: &["time"],
        text: "TIME does not advance within a transaction. Within a script, it advances only after \
               the script has become slow.",
    },
    Difference {
        commands: &["hello"],
        text: "HELLO reads all its options before it applies any of them.",
    },
    Difference {
        commands: &["publish", "spublish"],
        text: "A message that a client publishes to itself follows the reply to PUBLISH.",
    },
    Difference {
        commands: &[],
        text: "Blocking commands are recorded in `commandstats`, the slow log and the latency \
               histograms when they are unblocked.",
    },
    Difference {
        commands: &[],
        text: "Changes are propagated as in Redis 7.2. For example, SELECT comes after MULTI.",
    },
    Difference {
        commands: &["bitcount", "bitpos"],
        text: "BITCOUNT and BITPOS check their arguments even if the key does not exist.",
    },
    Difference {
        commands: &["xsetid"],
        text: "XSETID rejects an ID below that of a deleted entry.",
    },
    Difference { commands: &["lpos"], text: "LPOS rejects the RANK -9223372036854775808." },
    Difference {
        commands: &["xread", "xreadgroup"],
        text: "The error for an odd number of arguments after STREAMS names the command.",
    },
    Difference {
        commands: &["xinfo|consumers", "xinfo|stream"],
        text: "XINFO CONSUMERS has the additional field `inactive`, and XINFO STREAM FULL the \
               additional field `active-time`.",
    },
];

const COMMANDS: &[Difference] = &[
    Difference {
        commands: &["zadd", "hset", "object|encoding"],
        text: "The contents of a sorted set or hash decide its encoding, as in Redis 7.0. In Redis \
               7.2, a ZADD or HSET with more pairs than the limit converts the value even if the \
               command repeats members or fields.",
    },
    Difference {
        commands: &["client|list", "client|info"],
        text: "CLIENT LIST and CLIENT INFO have the fields of Valkey 8. They include the fields of \
               Redis 7.0, in the same order.",
    },
    Difference {
        commands: &["xinfo|groups", "xinfo|stream"],
        text: "XINFO: `lag` and `entries-read` of a consumer group remain correct after XTRIM, XADD \
               with trimming, and XDEL of unread entries, as in Redis 8. Redis 7.0 shows a lag even \
               if no entry is left to read.",
    },
    Difference {
        commands: &["client|reply", "exec"],
        text: "CLIENT REPLY in a transaction takes effect after EXEC, and the reply to EXEC is \
               complete: it has an element for every command, including CLIENT REPLY SKIP and OFF \
               (`+OK`). Redis announces more elements than it sends. After EXEC, the same replies \
               are omitted as in Redis: one for SKIP, and all until ON for OFF.",
    },
    Difference {
        commands: &["client|reply", "exec"],
        text: "After CLIENT REPLY OFF, EXEC has a reply only if CLIENT REPLY ON is part of the \
               transaction. That reply is complete. Redis sends only the replies to ON and to the \
               commands after it, without the header of the array.",
    },
    Difference {
        commands: &["client|reply"],
        text: "CLIENT REPLY ON after SKIP in the same transaction cancels the SKIP, as it does \
               outside of transactions. In Redis the SKIP remains in effect.",
    },
    Difference {
        commands: &["wait"],
        text: "WAIT in a script is an error, as in Redis 7.0. Redis 7.2 replies immediately, and \
               so does Brisk with `dialect valkey`.",
    },
    Difference {
        commands: &["flushall", "flushdb"],
        text: "FLUSHALL and FLUSHDB without ASYNC reply after the memory has been freed. Other \
               clients are served while it is being freed. In transactions and scripts, these \
               commands reply immediately.",
    },
    Difference {
        commands: &["migrate"],
        text: "MIGRATE opens a new connection for each request and does not cache connections.",
    },
    Difference {
        commands: &["debug"],
        text: "DEBUG SLEEP stops all workers except the worker of the admin port.",
    },
];

const SCRIPTS: &[Difference] = &[
    Difference {
        commands: &["eval", "evalsha", "fcall"],
        text: "Some messages of syntax and type errors differ. For example, Luau does not name the \
               field that is called.",
    },
    Difference {
        commands: &["eval", "evalsha", "fcall"],
        text: "`cjson` and `cmsgpack` write the keys of objects and maps in a different order.",
    },
    Difference {
        commands: &["eval", "evalsha", "fcall"],
        text: "`redis.set_repl` checks its argument but has no effect. All changes are replicated \
               and written to the append-only file.",
    },
    Difference { commands: &[], text: "A script interpreter takes more than 100 KiB of memory." },
    Difference {
        commands: &["eval", "evalsha", "fcall"],
        text: "A script may use keys that it does not declare, but then all other commands wait while it runs.",
    },
    Difference {
        commands: &["eval", "evalsha", "fcall"],
        text: "While a slow script runs, commands on keys that it does not use are executed. Redis \
               rejects them with BUSY.",
    },
];

const CLIENTS: &[Difference] = &[
    Difference {
        commands: &[],
        text: "If a client has 1 MiB of unread replies (`output-soft-limit`), its commands pause \
               until it has read them. It is not disconnected.",
    },
    Difference {
        commands: &["client|tracking"],
        text: "If a tracking client leaves `output-soft-limit` bytes of invalidations unread, \
               further invalidations are replaced with a single invalidation of all keys.",
    },
    Difference {
        commands: &["monitor"],
        text: "If `client-output-buffer-limit normal` sets no hard limit, the hard limit of `pubsub` \
               applies to MONITOR clients.",
    },
    Difference {
        commands: &[],
        text: "`client-output-buffer-limit` does not count the first 16 KiB. If the output exceeds \
               a hard limit, the connection is closed and the excess output is discarded.",
    },
    Difference {
        commands: &[],
        text: "For an incomplete request, `maxmemory-clients` counts the bytes that have arrived. \
               Redis counts the announced length of the arguments.",
    },
    Difference { commands: &[], text: "Reply buffers of clients are not resized." },
    Difference {
        commands: &[],
        text: "An empty server takes 4 MB. Buffers that have grown for a large reply are kept, up \
               to 400 KB per worker. If `maxmemory` is only a few KB above the memory in use, \
               these buffers can cause evictions.",
    },
    Difference {
        commands: &[],
        text: "Commands never wait until an expired value has been freed. With \
               `lazyfree-lazy-expire no`, the time that freeing takes is nevertheless recorded as \
               the latency events `expire-del` and `expire-cycle`.",
    },
];

const PERSISTENCE: &[Difference] = &[
    Difference {
        commands: &["bgsave", "bgrewriteaof"],
        text: "There is no fork and no child process. Therefore, there is no child process ID, no \
               `redis-rdb-bgsave` process, and no CPU time of children in INFO for snapshots.",
    },
    Difference {
        commands: &[],
        text: "With `appendfsync everysec` or `no`, a reply waits until the changes that it shows \
               have been written to the file. If the disk stalls, the reply waits for at most 100 \
               ms. In Redis with `everysec`, if a sync is in progress, the reply is sent at once, \
               and the write is postponed by up to two seconds; a write that blocks stalls all \
               clients.",
    },
    Difference {
        commands: &[],
        text: "With `appendfsync always`, a full disk causes MISCONF errors until there is space \
               again. Redis exits. A failed `fdatasync` stops Brisk regardless of `appendfsync`; \
               with `everysec`, Redis rejects writes instead.",
    },
    Difference {
        commands: &[],
        text: "CLIENT DURABILITY sets, per connection, the durability level that changes must reach \
               before a reply that shows them is sent: MEMORY, LOG, DISK or DEFAULT, and REPLICAS \
               with a number.",
    },
    Difference {
        commands: &["waitaof"],
        text: "WAITAOF syncs the append-only file regardless of `appendfsync`.",
    },
    Difference {
        commands: &[],
        text: "A server locks its append-only file (`appendonly.aof.lock`). A second server with the \
               same file does not start. With Redis, two servers in one directory corrupt the file.",
    },
    Difference {
        commands: &[],
        text: "Append-only files have annotations (`#B:`, see [format](design/aof-format.md)) that \
               Redis and Valkey skip.",
    },
    Difference {
        commands: &["shutdown"],
        text: "Until the append-only file has its first base, SHUTDOWN is rejected, except \
               SHUTDOWN FORCE.",
    },
    Difference {
        commands: &[],
        text: "If an append-only file selects a database that does not exist, the server does not \
               start. Redis executes the commands that follow in the previously selected database.",
    },
    Difference {
        commands: &["flushall"],
        text: "FLUSHALL cancels a running snapshot, as in Redis. With save points, Redis then \
               saves the empty dataset before it replies. Brisk replies immediately and starts \
               another snapshot within 100 ms.",
    },
    Difference {
        commands: &["restore"],
        text: "RESTORE and file loading always check values in depth and reject damaged values, \
               regardless of `sanitize-dump-payload`.",
    },
];

const REPLICATION: &[Difference] = &[
    Difference {
        commands: &[],
        text: "A full copy for a replica does not count as a save: `dump.rdb`, \
               `rdb_last_save_time` and `rdb_last_bgsave_status` do not change. Redis replaces the \
               file if `repl-diskless-sync` is off.",
    },
    Difference {
        commands: &["flushall"],
        text: "FLUSHALL does not cancel the snapshot for a replica. Redis cancels it and closes the \
               connections of its replicas.",
    },
    Difference {
        commands: &[],
        text: "A replica does not join a snapshot that is already being sent. Replicas that \
               connect during a snapshot share the next one.",
    },
    Difference {
        commands: &[],
        text: "A replica does not store the received dataset as `dump.rdb`.",
    },
    Difference {
        commands: &[],
        text: "The full copy and the replication stream use the same connection. Valkey's \
               dual-channel replication is not supported.",
    },
    Difference {
        commands: &[],
        text: "REPLICATION COMPARE compares a primary with its Brisk replicas. To do so, it adds \
               PINGs with a message to the replication stream. Replicas that are not Brisk ignore \
               this message.",
    },
];

const CONFIGURATION: &[Difference] = &[
    Difference {
        commands: &[],
        text: "Without a `bind` directive, the server listens on the loopback addresses only.",
    },
    Difference {
        commands: &["config|rewrite"],
        text: "CONFIG REWRITE omits settings that an included file sets, and a `user` line in the \
               main file replaces the one in an included file. Redis writes all users and save \
               points into the main file, and does not start if a user is defined twice.",
    },
    Difference {
        commands: &[],
        text: "TLS certificates of the server and of clients must be X.509 version 3 (rustls). \
               Version 1 is accepted only for CA certificates. OpenSSL accepts it everywhere. \
               `openssl x509 -req` creates version 1 unless you give it `-extfile`.",
    },
    Difference {
        commands: &[],
        text: "`threads` (alias `io-threads`) sets the number of workers, and each worker serves \
               every key. The default, 0, starts one worker for each CPU that the process may use.",
    },
];

/// Differences from Redis Cluster.
const CLUSTER: &[Difference] = &[
    Difference {
        commands: &["cluster|nodes"],
        text: "There is no cluster bus. CLUSTER NODES shows a bus port, but the server does not \
               listen on it.",
    },
    Difference { commands: &["cluster|links"], text: "CLUSTER LINKS returns an empty array." },
    Difference {
        commands: &["cluster|set-config-epoch", "cluster|bumpepoch", "cluster|saveconfig"],
        text: "A single document, the topology, determines which node serves each slot. Nodes \
               cannot disagree about slots, and there are no epochs to repair. SET-CONFIG-EPOCH, \
               BUMPEPOCH and SAVECONFIG change nothing. BUMPEPOCH replies STILL, and the others \
               reply OK.",
    },
    Difference {
        commands: &[],
        text: "A failover needs the coordinator, not a majority of primaries. Therefore, a cluster \
               with a single shard can also fail over.",
    },
    Difference {
        commands: &["cluster|meet"],
        text: "A node that starts registers itself, but it becomes a member only by CLUSTER MEET, \
               by CLUSTER ADDSLOTS, or when the cluster is formed. CLUSTER MEET works between \
               nodes of the same coordinator.",
    },
    Difference {
        commands: &[],
        text: "`nodes.conf` contains only the ID of the node. `topology.json` in the same \
               directory is a copy of the last topology.",
    },
    Difference {
        commands: &[],
        text: "Changing `cluster-node-timeout` requires a restart. `redis-cli --cluster \
               set-timeout` is not supported.",
    },
    Difference {
        commands: &[
            "cluster|addslots",
            "cluster|addslotsrange",
            "cluster|delslots",
            "cluster|delslotsrange",
            "cluster|flushslots",
            "cluster|failover",
            "cluster|forget",
            "cluster|meet",
            "cluster|replicate",
            "cluster|reset",
            "cluster|setslot",
        ],
        text: "Except for CLUSTER FAILOVER without arguments, commands that change the topology return \
               once the change has been committed. If the coordinator has not replied within 10 s, \
               they return the error `ERR outcome unknown, see CLUSTER NODES`.",
    },
    Difference {
        commands: &["cluster|setslot"],
        text: "Moving slots with their keys is not supported: `redis-cli --cluster reshard`, \
               `rebalance` and CLUSTER SETSLOT MIGRATING. Choose the number of shards when you create \
               the cluster.",
    },
    Difference {
        commands: &["cluster|failover"],
        text: "CLUSTER FAILOVER FORCE and TAKEOVER do the same: the replica becomes the primary \
               without the help of the old primary. The replica starts to serve when \
               the longest `cluster-node-timeout` in the shard, a tenth of it and 200 ms have passed, \
               because the old primary can no longer serve then. Writes that the replica does not have are lost. If the \
               replica does not have a full copy of the dataset, the command is rejected. Redis \
               promotes such a replica, and the old primary then copies the empty dataset.",
    },
    Difference {
        commands: &[],
        text: "Other shards continue to serve during a failover that takes less than half of \
               `cluster-node-timeout`.",
    },
];

/// The changes by `dialect valkey`, by area.
const WITH_VALKEY: &[(&str, Difference)] = &[
    (
        "scripts",
        Difference {
            commands: &["eval", "evalsha", "fcall"],
            text: "Errors call the API `server`, and use Valkey's text for unknown commands, wrong \
                   numbers of arguments and missing arguments. NOSCRIPT has Valkey's shorter text. \
                   BUSY names Valkey. WAIT in a script replies immediately.",
        },
    ),
    (
        "publish and subscribe",
        Difference {
            commands: &["unsubscribe", "punsubscribe", "sunsubscribe"],
            text: "UNSUBSCRIBE, PUNSUBSCRIBE and SUNSUBSCRIBE are rejected with NOSUB if the client \
                   has no subscription.",
        },
    ),
    (
        "transactions",
        Difference {
            commands: &["multi", "watch"],
            text: "MULTI and WATCH in a transaction abort the transaction. When `maxmemory` is \
                   exceeded, only commands that need memory are rejected.",
        },
    ),
    (
        "SCAN",
        Difference {
            commands: &["scan"],
            text: "Unknown types are rejected, and TYPE does not remove expired keys of other types.",
        },
    ),
    ("SET", Difference { commands: &["set"], text: "An expiry time in the past stores no key." }),
    (
        "BITCOUNT",
        Difference { commands: &["bitcount"], text: "A start without an end is accepted." },
    ),
    (
        "CLIENT",
        Difference {
            commands: &["client|kill", "client|list"],
            text: "CLIENT KILL and CLIENT LIST accept `TYPE primary`.",
        },
    ),
    (
        "replication",
        Difference {
            commands: &["readonly", "readwrite"],
            text: "Outside of cluster mode, READONLY and READWRITE are accepted from every client. \
                   With `dialect redis`, they are accepted only after CLIENT CAPA redirect. INFO \
                   shows `replicas_waiting_psync`.",
        },
    ),
    (
        "log",
        Difference {
            commands: &[],
            text: "Messages about replication say PRIMARY, Primary or primary.",
        },
    ),
    (
        "slow log",
        Difference {
            commands: &[],
            text: "`slowlog-max-len 0` turns the slow log off, and no IDs are assigned.",
        },
    ),
];

/// Returns the sections of the page about compatibility.
pub(super) fn sections() -> String {
    let mut out = String::new();
    for section in SECTIONS {
        if !section.title.is_empty() {
            _ = write!(out, "\n### {}\n", section.title);
        }
        if !section.introduction.is_empty() {
            _ = write!(out, "\n{}\n", wrapped(section.introduction, ""));
        }
        out.push('\n');
        for difference in section.differences {
            _ = writeln!(out, "{}", wrapped(&format!("- {}", difference.text), "  "));
        }
    }
    out.push('\n');
    out
}

/// Returns the list of differences on the page about cluster mode.
pub(super) fn from_redis_cluster() -> String {
    let mut out = "\n".to_owned();
    for difference in CLUSTER {
        _ = writeln!(out, "{}", wrapped(&format!("- {}", difference.text), "  "));
    }
    out.push('\n');
    out
}

/// Returns the table of the Valkey dialect on the page about compatibility.
pub(super) fn with_valkey() -> String {
    let mut out = "\n| area | with `dialect valkey` |\n|---|---|\n".to_owned();
    for (area, difference) in WITH_VALKEY {
        _ = writeln!(out, "| {area} | {} |", difference.text);
    }
    out.push('\n');
    out
}

/// Returns the differences of a command under their headings, with links relative to the pages of
/// commands.
pub(super) fn of(command: &str) -> Vec<(&'static str, Vec<String>)> {
    let texts = |differences: &mut dyn Iterator<Item = &'static Difference>| -> Vec<String> {
        differences
            .filter(|difference| difference.commands.contains(&command))
            .map(|difference| from_commands(difference.text))
            .collect()
    };
    let in_both = texts(&mut SECTIONS.iter().flat_map(|section| section.differences));
    let from_cluster = texts(&mut CLUSTER.iter());
    let with_valkey = texts(&mut WITH_VALKEY.iter().map(|(_, difference)| difference));
    let all = [
        ("Differences from Redis 7", in_both),
        ("Differences from Redis Cluster", from_cluster),
        ("With `dialect valkey`", with_valkey),
    ];
    all.into_iter().filter(|(_, texts)| !texts.is_empty()).collect()
}

/// Changes links relative to `docs` into links relative to `docs/commands`.
fn from_commands(text: &str) -> String {
    text.replace("](http", "\u{1}")
        .replace("](#", "](compatibility.md#")
        .replace("](", "](../")
        .replace('\u{1}', "](http")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_command_exists() {
        let table = brisk_server::commands::table(&[]).unwrap().0;
        let all = SECTIONS.iter().flat_map(|section| section.differences);
        let all = all.chain(CLUSTER);
        let all = all.chain(WITH_VALKEY.iter().map(|(_, difference)| difference));
        for name in all.flat_map(|difference| difference.commands) {
            assert!(table.find_full(name.as_bytes()).is_some(), "{name}");
        }
    }

    #[test]
    fn links_are_relative_to_the_page() {
        assert_eq!(
            from_commands("[a](b.md#c) [d](#e) [f](https://g)"),
            "[a](../b.md#c) [d](../compatibility.md#e) [f](https://g)"
        );
    }
}
