//! MEMORY: reports on memory usage.

use brisk_config::choice::EvictionPolicy;
use brisk_engine::command::{Arg, Flags, Group, KeyFlags, KeySpec, Scope, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::core::memory::{self, Usage};
use brisk_node::core::memory_limit;
use brisk_observe::memory::{resident, used};
use std::fmt::Write;

/// The overhead of an entry in the table, which is a pointer.
const TABLE_BYTES_PER_KEY: usize = size_of::<u64>();

fn usage(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let options = take_samples(args);
    let db = call.session.db();
    let bytes = call.with_keys(db, |keys| {
        // As in Redis, invalid options are reported only after the key was accessed.
        keys.remember(&key);
        options?;
        Ok(keys.inspect(&key).map(|entry| entry.allocated_bytes() + TABLE_BYTES_PER_KEY))
    })?;
    Ok(match bytes {
        Some(bytes) => call.reply.count(bytes),
        None => call.reply.null(),
    })
}

/// Parses SAMPLES and ignores it, because sizes are known exactly.
fn take_samples(args: &mut Args<'_>) -> Result<()> {
    while args.remaining() > 0 {
        if !args.take("SAMPLES") || args.remaining() == 0 || args.integer()? < 0 {
            return Err(CommandError::Syntax);
        }
    }
    Ok(())
}

fn stats(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let usage = Usage::measure(call.core)?;
    let reply = &mut call.reply;
    reply.map(27 + usage.databases.len());
    let mut put = |name: &str, number: u64| {
        reply.bulk(name.as_bytes());
        reply.integer(number as i64);
    };
    put("peak.allocated", usage.peak);
    put("total.allocated", usage.allocated);
    put("startup.allocated", usage.startup);
    put("replication.backlog", usage.stream.0);
    put("clients.slaves", usage.stream.1);
    put("clients.normal", usage.clients);
    put("cluster.links", 0);
    put("aof.buffer", 0);
    let shared = call.core.shared;
    put("lua.caches", shared.scripting.eval_bytes());
    put("functions.caches", shared.scripting.function_bytes());
    for (db, table_bytes) in &usage.databases {
        reply.bulk(format!("db.{}", db.number()).as_bytes());
        reply.map(3);
        // Expiry times are stored in the entries, and there is a table for each slot.
        for (name, bytes) in [
            ("overhead.hashtable.main", *table_bytes),
            ("overhead.hashtable.expires", 0),
            ("overhead.hashtable.slot-to-keys", 0),
        ] {
            reply.bulk(name.as_bytes());
            reply.integer(bytes as i64);
        }
    }
    let overhead = usage.overhead();
    let dataset = usage.allocated.saturating_sub(overhead);
    let grown = usage.allocated.saturating_sub(usage.startup);
    let mut put = |name: &str, number: u64| {
        reply.bulk(name.as_bytes());
        reply.integer(number as i64);
    };
    put("overhead.total", overhead);
    put("keys.count", usage.keys);
    put("keys.bytes-per-key", grown.checked_div(usage.keys).unwrap_or(0));
    put("dataset.bytes", dataset);
    reply.bulk(b"dataset.percentage");
    reply.double(share(dataset, grown) * 100.0);
    reply.bulk(b"peak.percentage");
    reply.double(share(usage.allocated, usage.peak) * 100.0);
    let mut put = |name: &str, number: u64| {
        reply.bulk(name.as_bytes());
        reply.integer(number as i64);
    };
    let holding = &usage.holding;
    put("allocator.allocated", holding.allocated);
    put("allocator.active", holding.active);
    put("allocator.resident", holding.held);
    let names = ["allocator-fragmentation", "allocator-rss", "rss-overhead"];
    for (name, (ratio, bytes)) in names.into_iter().zip(holding.gaps()) {
        reply.bulk(format!("{name}.ratio").as_bytes());
        reply.double(ratio);
        reply.bulk(format!("{name}.bytes").as_bytes());
        reply.integer(bytes);
    }
    let (ratio, bytes) = holding.gap();
    reply.bulk(b"fragmentation");
    reply.double(ratio);
    reply.bulk(b"fragmentation.bytes");
    reply.integer(bytes);
    Ok(Outcome::Replied)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// If the server uses no more than this amount of memory beyond what it used at startup, there is nothing to diagnose.
const DOCTOR_BYTES_MIN: u64 = 5 * 1024 * 1024;
/// Memory counts as fragmented if resident memory exceeds used memory by this factor and by
/// [`FRAGMENTATION_BYTES_MAX`].
const FRAGMENTATION_MAX: f64 = 1.4;
const FRAGMENTATION_BYTES_MAX: u64 = 10 * 1024 * 1024;
/// If the peak was more than this multiple of the used memory, memory may be fragmented.
const PEAK_MAX: f64 = 1.5;
/// More memory per client than this is unusual.
const CLIENT_BYTES_MAX: u64 = 200 * 1024;

fn doctor(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let usage = Usage::measure(call.core)?;
    let clients = call.core.shared.clients.count().max(1);
    let mut text = String::new();
    let mut report = |line: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {line}");
    };
    let limit = memory_limit::in_force(call.core);
    // Eviction ran before this command, so memory is above the limit only if nothing more can be
    // evicted.
    if limit != 0 && !memory_limit::fits(call.core, limit) {
        let remedy = match call.core.config.memory.maxmemory_policy {
            EvictionPolicy::NoEviction => {
                "maxmemory-policy is noeviction. Raise maxmemory, delete keys, or set a policy \
                 that evicts keys."
            }
            _ => {
                "maxmemory-policy allows no further keys to be evicted, or evicting them takes \
                 long. Raise maxmemory, or delete keys."
            }
        };
        report(format_args!(
            "maxmemory is reached ({} of {limit} bytes), and commands that need memory are \
             rejected with OOM: {remedy}",
            usage.allocated
        ));
    } else if usage.allocated.saturating_sub(usage.startup) < DOCTOR_BYTES_MIN {
        let text = "The server uses so little memory that there is nothing to diagnose yet.\n";
        return Ok(call.reply.verbatim(*b"txt", text.as_bytes()));
    }
    let peak = share(usage.peak, usage.allocated);
    if peak > PEAK_MAX {
        report(format_args!(
            "At its peak the server used {peak:.1} times what it uses now. The allocator may \
             still hold the difference, and uses it for new data. MEMORY PURGE returns part of it."
        ));
    }
    let fragmentation = share(usage.resident, usage.allocated);
    let gap = usage.resident.saturating_sub(usage.allocated);
    if fragmentation > FRAGMENTATION_MAX && gap > FRAGMENTATION_BYTES_MAX {
        report(format_args!(
            "The process holds {fragmentation:.2} times the memory that is in use: values of \
             changing sizes leave gaps, and the allocator keeps freed memory for a while."
        ));
    }
    if usage.clients / clients > CLIENT_BYTES_MAX {
        report(format_args!(
            "Clients use {} KiB on average: check CLIENT LIST for clients with much unsent \
             output (omem) or unread input (qbuf).",
            usage.clients / clients / 1024
        ));
    }
    if text.is_empty() {
        text.push_str("No problem found.\n");
    }
    Ok(call.reply.verbatim(*b"txt", text.as_bytes()))
}

fn malloc_stats(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let (allocated, resident) = (used(), resident());
    let peak = memory::peak(call.core.shared, allocated);
    let text = format!(
        "allocator: {}\nallocated bytes: {allocated}\npeak of allocated bytes: {peak}\n\
         resident bytes: {resident}\n",
        memory::ALLOCATOR,
    );
    Ok(call.reply.verbatim(*b"txt", text.as_bytes()))
}

/// Frees the values that this worker has unlinked, and makes the allocator return its unused pages
/// now instead of within seconds. As in Redis, an allocator that does not support this is not an
/// error.
fn purge(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    call.core.free_garbage();
    brisk_structures::alloc::purge();
    Ok(call.reply.ok())
}

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "DOCTOR",
        "    Report problems with memory use.",
        "MALLOC-STATS",
        "    Show the metrics of the allocator.",
        "PURGE",
        "    Return unused memory to the operating system.",
        "STATS",
        "    Show statistics of memory use.",
        "USAGE <key> [SAMPLES <count>]",
        "    Count the bytes that a key and its value take. SAMPLES is accepted and changes",
        "    nothing: the count is exact.",
    ]))
}

/// The fields shared by the rows of the subcommands.
const SUBCOMMAND: Spec = Spec {
    group: Group::Server,
    since: "4.0.0",
    complexity: "O(1)",
    arity: 2,
    tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    ..Spec::EMPTY
};

const DOCTOR: Command = Command {
    spec: Spec {
        name: "doctor",
        summary: "Reports problems with memory use.",
        scope: Scope::EachSlot,
        ..SUBCOMMAND
    },
    run: doctor,
    subcommands: &[],
};

const HELP: Command =
    Command { spec: Spec::help(Group::Server, "4.0.0"), run: help, subcommands: &[] };

const MALLOC_STATS: Command = Command {
    spec: Spec {
        name: "malloc-stats",
        summary: "Shows the metrics of the allocator.",
        complexity: "O(1)",
        ..SUBCOMMAND
    },
    run: malloc_stats,
    subcommands: &[],
};

const PURGE: Command = Command {
    spec: Spec {
        name: "purge",
        summary: "Returns unused memory to the operating system.",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        ..SUBCOMMAND
    },
    run: purge,
    subcommands: &[],
};

const STATS: Command = Command {
    spec: Spec {
        name: "stats",
        summary: "Shows statistics of memory use.",
        scope: Scope::EachSlot,
        ..SUBCOMMAND
    },
    run: stats,
    subcommands: &[],
};

const USAGE: Command = Command {
    spec: Spec {
        name: "usage",
        summary: "Returns the memory use of a key and its value in bytes.",
        complexity: "O(1)",
        arity: -3,
        flags: Flags::READONLY,
        tips: &[],
        keys: &[KeySpec::at(2).read_only(KeyFlags::empty())],
        args: &[Arg::key("key"), Arg::integer("count").after("SAMPLES").optional()],
        ..SUBCOMMAND
    },
    run: usage,
    subcommands: &[],
};

const MEMORY: Command = Command {
    spec: Spec {
        name: "memory",
        group: Group::Server,
        summary: "Manages and reports memory use.",
        since: "4.0.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::EMPTY
    },
    run: help,
    subcommands: &[DOCTOR, HELP, MALLOC_STATS, PURGE, STATS, USAGE],
};

pub(super) const COMMANDS: &[Command] = &[MEMORY];
