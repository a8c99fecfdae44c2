//! CONFIG: reads, changes and saves the settings, and resets the statistics.

use crate::commands::server::reconfigure::{self, Prepared};
use brisk_config::{Added, Caller, Config, ConfigError, Rejection, Replacement, directives};
use brisk_engine::command::{Arg, Flags, Group, Scope, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::core::memory_limit;
use brisk_node::core::shared::Shared;
use brisk_node::run::gate;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

/// How long CONFIG SET maxmemory evicts keys while all workers are quiesced. Further keys are evicted gradually.
const EVICTION_NS_MAX: u64 = 50_000_000;

/// The flags of all subcommands except HELP.
const FLAGS: Flags = Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE);

const CONFIG: Command = Command {
    spec: Spec {
        name: "config",
        group: Group::Server,
        summary: "Manages the settings of the server.",
        since: "2.0.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::EMPTY
    },
    run: |call, _| Err(call.wrong_arity()),
    subcommands: &[GET, HELP, RESETSTAT, REWRITE, SET],
};

const GET: Command = Command {
    spec: Spec {
        name: "get",
        group: Group::Server,
        summary: "Returns the settings that match names or patterns, with their values.",
        since: "2.0.0",
        complexity: "O(N) with N names and patterns",
        arity: -3,
        flags: FLAGS,
        args: &[Arg::block("parameter", &[Arg::string("parameter")]).multiple()],
        history: &[("7.0.0", "Accepts several patterns.")],
        ..Spec::EMPTY
    },
    run: get,
    subcommands: &[],
};

fn get(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let patterns: Vec<&[u8]> = args.arguments().skip(2).collect();
    let found = store(call.core.shared).get(&patterns);
    call.reply.map(found.len());
    for (name, value) in &found {
        call.reply.bulk(name);
        call.reply.bulk(value);
    }
    Ok(Outcome::Replied)
}

const SET: Command = Command {
    spec: Spec {
        name: "set",
        group: Group::Server,
        summary: "Changes settings atomically.",
        since: "2.0.0",
        complexity: "O(N) with N settings",
        arity: -4,
        flags: FLAGS,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        args: &[Arg::block("parameter_value", &[Arg::string("parameter"), Arg::string("value")])
            .multiple()],
        history: &[("7.0.0", "Accepts several settings.")],
        scope: Scope::Quiescent,
        ..Spec::EMPTY
    },
    run: set,
    subcommands: &[],
};

fn set(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let words: Vec<&[u8]> = args.arguments().skip(2).collect();
    if !words.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let pairs: Vec<(&[u8], &[u8])> = words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    for (at, (name, _)) in pairs.iter().enumerate() {
        if directives::find(name).is_some_and(|directive| directive.sensitive) {
            call.redact(3 + 2 * at);
        }
    }
    let shared = call.core.shared;
    let while_loading = shared.conditions.is_loading() || shared.conditions.is_loading_async();
    let caller = Caller { local: call.session.is_local(), while_loading };
    // While the settings change, several copies of them exist. No key may be evicted because of these copies.
    let used = brisk_observe::memory::used();
    let mut store = store(shared);
    let old = store.current();
    let rows = pairs.iter().filter_map(|(name, _)| directives::find(name));
    let tls_named = rows.map(|row| row.name).find(|name| name.starts_with("tls-"));
    let mut prepared = Prepared::default();
    let mut apply = |old: &Config, new: &Config| -> std::result::Result<(), Rejection> {
        prepared = reconfigure::prepare(shared, old, new, tls_named)?;
        Ok(())
    };
    store.set(&pairs, caller, &mut apply).map_err(|error| match error {
        ConfigError::Loading => gate::refuse_while_loading(call.core),
        error => error.into(),
    })?;
    let new = store.current();
    drop(store);
    reconfigure::commit(shared, &old, &new, prepared);
    call.core.refresh_config();
    // Later commands of a transaction must find the data unchanged. The timers evict keys afterwards.
    if new.memory.maxmemory != old.memory.maxmemory && !call.in_exec() {
        make_room(call, new.memory.maxmemory, used);
    }
    Ok(call.reply.ok())
}

/// Evicts keys until the data is within the new limit. `used` bytes were in use before the change.
fn make_room(call: &mut Call<'_>, maxmemory: u64, used: u64) {
    if maxmemory == 0 || used <= maxmemory {
        return;
    }
    call.core.shared.log.warning(format_args!(
        "WARNING: the new maxmemory value set via CONFIG SET ({maxmemory}) is smaller than the \
         current memory usage ({used}). This will result in key eviction and/or the inability to \
         accept new write commands depending on the maxmemory-policy."
    ));
    memory_limit::make_room_within(call.core, EVICTION_NS_MAX);
}

const REWRITE: Command = Command {
    spec: Spec {
        name: "rewrite",
        group: Group::Server,
        summary: "Writes the current settings to the configuration file.",
        since: "2.8.0",
        arity: 2,
        flags: FLAGS,
        ..Spec::EMPTY
    },
    run: rewrite,
    subcommands: &[],
};

fn rewrite(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    rewrite_file(call, Added::Changed)
}

/// Updates the configuration file.
pub(super) fn rewrite_file(call: &mut Call<'_>, added: Added) -> Result<Outcome> {
    let shared = call.core.shared;
    let store = store(shared);
    // Users are stored in only one file, which is the aclfile if one is configured.
    let has_file = !store.current().security.aclfile.is_empty();
    let lines = if has_file {
        Vec::new()
    } else {
        shared.accounts.config_lines(store.included_users(), shared.vocabulary())
    };
    let done = store.rewrite(&[Replacement { directive: "user", lines }], added);
    drop(store);
    match done {
        Ok(()) => {
            shared.log.notice(format_args!("CONFIG REWRITE executed with success."));
            Ok(call.reply.ok())
        }
        Err(error) => {
            shared.log.warning(format_args!("CONFIG REWRITE failed: {error}"));
            Err(CommandError::text(error.to_string()))
        }
    }
}

const RESETSTAT: Command = Command {
    spec: Spec {
        name: "resetstat",
        group: Group::Server,
        summary: "Resets the statistics of INFO.",
        since: "2.0.0",
        arity: 2,
        flags: FLAGS,
        // Each counter has a single writer. Another thread may write to it only while all workers are quiesced.
        scope: Scope::Quiescent,
        ..Spec::EMPTY
    },
    run: resetstat,
    subcommands: &[],
};

fn resetstat(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let shared = call.core.shared;
    for stats in &shared.observe.stats {
        stats.reset();
    }
    shared.keyspace.reset_statistics();
    shared.threads.freeing.reset_freed();
    shared.observe.errors.lock().clear();
    for counter in shared.observe.metrics.resettable() {
        counter.store(0, Ordering::Relaxed);
    }
    Ok(call.reply.ok())
}

const HELP: Command =
    Command { spec: Spec::help(Group::Server, "5.0.0"), run: help, subcommands: &[] };

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "GET <pattern>",
        "    List the settings whose names match the pattern, with their values.",
        "SET <directive> <value>",
        "    Change a setting.",
        "RESETSTAT",
        "    Reset the statistics of INFO.",
        "REWRITE",
        "    Write the current settings to the configuration file.",
    ]))
}

fn store(shared: &Shared) -> MutexGuard<'_, brisk_config::Store> {
    shared.settings.store()
}

pub(super) const COMMANDS: &[Command] = &[CONFIG];
