//! DEBUG: commands for tests only.
//!
//! As in Redis, DEBUG is a single command and not a container, so COMMAND shows no subcommands.

use super::{debug_keyspace, debug_protocol};
use brisk_engine::command::{Flags, Group, Scope, Spec};
use brisk_engine::number::parse_i64;
use brisk_engine::{Args, CommandError, Outcome, Result, UnixMs};
use brisk_node::core::Core;
use brisk_node::core::call::{Call, Command};
use brisk_node::core::mailbox::{Message, Work};
use brisk_reactor::unix_ms;
use brisk_structures::reclaim;
use std::time::{Duration, Instant};

/// A subcommand: its name, the number of arguments that may follow, and its function.
type Sub = (&'static str, std::ops::RangeInclusive<usize>, brisk_node::core::call::ServerHandler);

const ANY: usize = usize::MAX;

const SUBCOMMANDS: &[Sub] = &[
    ("AOF-FLUSH-SLEEP", 1..=1, aof_flush_sleep),
    ("CONFIG-REWRITE-FORCE-ALL", 0..=0, rewrite_all_settings),
    ("DICT-RESIZING", 1..=1, switch_nothing),
    ("DIGEST", 0..=0, debug_keyspace::digest),
    ("DIGEST-VALUE", 0..=ANY, debug_keyspace::digest_value),
    ("ERROR", 1..=1, error),
    ("HELP", 0..=0, help),
    ("HTSTATS", 1..=1, debug_keyspace::htstats),
    ("HTSTATS-KEY", 1..=1, debug_keyspace::htstats_key),
    ("LOADAOF", 0..=0, debug_keyspace::load_aof),
    ("LOG", 1..=1, log),
    ("OBJECT", 1..=1, debug_keyspace::object),
    ("PAUSE-CRON", 1..=1, pause_cron),
    ("SET-DISABLE-DENY-SCRIPTS", 1..=1, allow_all_in_scripts),
    ("SET-SKIP-CHECKSUM-VALIDATION", 1..=1, skip_checksums),
    ("POPULATE", 1..=3, debug_keyspace::populate),
    ("PROTOCOL", 1..=1, debug_protocol::protocol),
    ("QUICKLIST-PACKED-THRESHOLD", 1..=1, quicklist_packed_threshold),
    ("RELOAD", 0..=ANY, debug_keyspace::reload),
    ("REPLICATE", 1..=ANY, replicate),
    ("REPLYBUFFER", 2..=2, reply_buffer),
    ("SEGFAULT", 0..=0, crash),
    ("SET-ACTIVE-EXPIRE", 1..=1, set_active_expire),
    ("SLEEP", 1..=1, sleep),
];

fn debug(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let word = args.bytes()?;
    let find = |(name, words, _): &&Sub| {
        word.eq_ignore_ascii_case(name.as_bytes()) && words.contains(&args.remaining())
    };
    match SUBCOMMANDS.iter().find(find) {
        Some((_, _, run)) => run(call, args),
        None => Err(call.subcommand_syntax(word)),
    }
}

fn aof_flush_sleep(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let microseconds = parse_i64(args.bytes()?).and_then(|number| u64::try_from(number).ok());
    let microseconds = microseconds.ok_or(CommandError::NotAnInteger)?;
    call.core.shared.persistence.aof.set_flush_sleep(microseconds);
    Ok(call.reply.ok())
}

/// Makes the server unresponsive to its clients, as failover tests expect. All workers sleep. The worker of the admin
/// lane sleeps only if the caller is its client.
fn sleep(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let seconds = std::str::from_utf8(args.bytes()?).ok().and_then(|text| text.parse().ok());
    let duration = Duration::try_from_secs_f64(seconds.unwrap_or(0.0)).unwrap_or_default();
    let (shared, id) = (call.core.shared, call.core.id);
    let until = Instant::now().checked_add(duration);
    for other in (0..shared.serving_workers()).filter(|other| *other != id) {
        let work = move |core: &mut Core| sleep_until(core, until);
        shared.mailboxes.send(other, Message::Run(Work(Box::new(work))));
    }
    // A transaction holds its keys during the sleep.
    match call.in_exec() {
        true => std::thread::sleep(duration),
        false => sleep_until(call.core, until),
    }
    Ok(call.reply.ok())
}

/// Sleeps forever if `until` is `None`.
fn sleep_until(core: &mut Core, until: Option<Instant>) {
    let quiesce = &core.shared.quiesce;
    // A sleeping worker holds no slot, so a quiescing thread does not wait for it.
    quiesce.leave(core.id);
    let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
    reclaim::offline_while(|| std::thread::sleep(left));
    quiesce.enter(core.id);
    core.env.advance(UnixMs(unix_ms()));
}

/// Crashes the process as a bug would.
fn crash(_: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let _ = signal_hook::low_level::raise(signal_hook::consts::SIGSEGV);
    Err(CommandError::text("ERR the signal is blocked"))
}

/// Parses 0 or 1 as Redis does. An argument that is not a number counts as 0.
fn switch(word: &[u8]) -> bool {
    std::str::from_utf8(word).ok().and_then(|text| text.trim().parse::<i64>().ok()) != Some(0)
        && word.first().is_some_and(u8::is_ascii_digit)
}

fn set_active_expire(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    call.core.shared.settings.debug.set_active_expire(switch(args.bytes()?));
    Ok(call.reply.ok())
}

fn pause_cron(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    call.core.shared.settings.debug.pause_cron(switch(args.bytes()?));
    Ok(call.reply.ok())
}

fn allow_all_in_scripts(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    call.core.shared.scripting.running.allow_all_commands(switch(args.bytes()?));
    Ok(call.reply.ok())
}

/// Sends a command to the replicas without executing it on this server.
fn replicate(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let core = &*call.core;
    let words: Vec<&[u8]> = args.arguments().skip(2).collect();
    core.shared.keyspace.propagate_without_keys(&core.env, call.session.db(), &words);
    core.shared.dispatch_changes(core.id);
    Ok(call.reply.ok())
}

fn skip_checksums(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let on = switch(args.bytes()?);
    call.core.shared.set_debug(|debug| debug.skip_checksums(on));
    call.core.refresh_config();
    Ok(call.reply.ok())
}

/// Used for switches of mechanisms that this server does not have.
fn switch_nothing(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.reply.ok())
}

/// Sets the size above which a list element gets its own node, so that tests do not need multi-megabyte elements.
fn quicklist_packed_threshold(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    const MAX: u64 = (1 << 32) - (1 << 20);
    let bytes = brisk_config::value::memory(args.bytes()?).filter(|bytes| *bytes <= MAX);
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| {
        CommandError::text("ERR argument must be a memory value bigger than 1 and smaller than 4gb")
    })?;
    call.core.shared.set_debug(|debug| debug.set_list_plain_min(bytes));
    call.core.refresh_config();
    Ok(call.reply.ok())
}

/// Does nothing, because output is a queue of pieces, so there is no buffer whose size could be observed.
fn reply_buffer(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if args.take("PEAK-RESET-TIME") {
        if !args.take("NEVER") && !args.take("RESET") {
            args.integer()?;
        }
    } else if !args.take("RESIZING") {
        return Err(call.subcommand_syntax(args.argument(1)));
    }
    Ok(call.reply.ok())
}

/// Replies with the given error, which is not included in the error statistics.
fn error(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let text = String::from_utf8_lossy(args.bytes()?).replace(['\r', '\n'], " ");
    Ok(call.reply.error_text(&text))
}

fn rewrite_all_settings(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    super::config::rewrite_file(call, brisk_config::Added::All)
}

fn log(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let message = String::from_utf8_lossy(args.bytes()?);
    call.core.shared.log.warning(format_args!("DEBUG LOG: {message}"));
    Ok(call.reply.ok())
}

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "CONFIG-REWRITE-FORCE-ALL",
        "    Write all settings to the configuration file, including defaults.",
        "DICT-RESIZING <0|1>",
        "    Accepted and ignored: tables always adapt to the number of their keys.",
        "DIGEST",
        "    Digest of the whole dataset: equal data, equal digest.",
        "DIGEST-VALUE <key> [<key> ...]",
        "    Digest of each value.",
        "ERROR <text>",
        "    Reply with this error.",
        "HTSTATS <db>",
        "    Metrics of the tables of a database.",
        "HTSTATS-KEY <key>",
        "    Metrics of the hash table that a value is stored in.",
        "LOG <message>",
        "    Write the message to the log.",
        "OBJECT <key>",
        "    How a value is stored.",
        "SET-DISABLE-DENY-SCRIPTS <0|1>",
        "    Allow scripts to call commands that are not allowed in scripts.",
        "PAUSE-CRON <0|1>",
        "    Stop the timers of all workers, including expiry.",
        "POPULATE <count> [<prefix>] [<size>]",
        "    Create keys <prefix>:<number> (key:<number>) that do not exist yet, with values",
        "    of <size> bytes.",
        "PROTOCOL <type>",
        "    Reply with a value of this type: string, integer, double, bignum, null, array,",
        "    set, map, attrib, push, verbatim, true, false.",
        "QUICKLIST-PACKED-THRESHOLD <size>",
        "    Minimum size of list elements that get separate nodes; 0 for the default.",
        "AOF-FLUSH-SLEEP <microseconds>",
        "    Delay each write to the append-only file by this time.",
        "LOADAOF",
        "    Flush the append-only file, delete the dataset and load it again.",
        "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
        "    Save the dataset to the snapshot file, delete it from memory and load the file again.",
        "    NOSAVE does not save first. NOFLUSH keeps the current keys; MERGE replaces their values.",
        "REPLICATE <command> [<argument> ...]",
        "    Send a command to the replicas without executing it here.",
        "REPLYBUFFER PEAK-RESET-TIME <NEVER|RESET|milliseconds>",
        "REPLYBUFFER RESIZING <0|1>",
        "    Accepted and ignored: there are no reply buffers of a fixed size.",
        "SEGFAULT",
        "    Crash the process.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    Remove expired keys only when they are used (0), or also in the background (1).",
        "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
        "    Ignore the checksums of RESTORE payloads and snapshots.",
        "SLEEP <seconds>",
        "    Block all clients for this time, except those of the admin port.",
    ]))
}

const DEBUG: Command = Command {
    spec: Spec {
        name: "debug",
        group: Group::Server,
        summary: "Commands for tests of the server.",
        since: "1.0.0",
        details: "\
DEBUG HELP lists the subcommands. The command is rejected unless
[`enable-debug-command`](../configuration.md#enable-debug-command) allows it.",
        complexity: "Depends on subcommand.",
        arity: -2,
        flags: Flags::ADMIN
            .union(Flags::LOADING)
            .union(Flags::NOSCRIPT)
            .union(Flags::STALE)
            .union(Flags::DEBUG),
        syscmd: true,
        scope: Scope::EachSlot,
        ..Spec::EMPTY
    },
    run: debug,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[DEBUG];
