//! SCRIPT: manages the script cache that EVALSHA uses.

use super::ROW;
use super::eval::no_script;
use brisk_engine::command::{Arg, Flags, Origin, Spec};
use brisk_engine::env::Garbage;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::script::cache;
use brisk_node::script::run;

fn load(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let source = args.bytes()?;
    if call.core.scripts.is_parked() {
        return Err(run::parked_error(call.core));
    }
    let entry = call.core.scripts.interpreters.eval()?.script_from(source, true)?;
    Ok(call.reply.bulk(&entry.script.digest))
}

fn exists(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    call.reply.array(args.remaining());
    let scripts = &call.core.shared.scripting.scripts;
    for word in args.rest() {
        let known = cache::digest_from(word).is_some_and(|digest| scripts.find(&digest).is_some());
        call.reply.integer(known.into());
    }
    Ok(Outcome::Replied)
}

/// SCRIPT SHOW, as in Valkey 8.
fn show(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let digest = cache::digest_from(args.bytes()?);
    match digest.and_then(|digest| call.core.shared.scripting.scripts.find(&digest)) {
        Some(script) => Ok(call.reply.bulk(&script.source)),
        None => Err(no_script(call.core)),
    }
}

fn flush(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let given = args.remaining();
    let sync = given == 1 && args.take("SYNC");
    let known = sync || given == 0 || (given == 1 && args.take("ASYNC"));
    if !known {
        return Err(CommandError::text("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    let flushed = call.core.shared.scripting.scripts.flush();
    run::forget_flushed(call.core);
    if !sync {
        call.core.env.garbage.borrow_mut().push(Garbage::Other(Box::new(flushed)));
    }
    Ok(call.reply.ok())
}

fn debug(_: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let known = ["YES", "SYNC", "NO"].into_iter().any(|mode| args.take(mode));
    if !known {
        return Err(CommandError::text("ERR Use SCRIPT DEBUG YES/SYNC/NO"));
    }
    Err(CommandError::text("ERR this server has no debugger for scripts"))
}

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "DEBUG (YES|SYNC|NO)",
        "    Always fails: the script debugger is not supported.",
        "EXISTS <sha1> [<sha1> ...]",
        "    Check for each digest whether the script is cached.",
        "FLUSH [ASYNC|SYNC]",
        "    Remove all cached scripts: while the client waits (SYNC) or in the background (ASYNC).",
        "KILL",
        "    Stop a slow script that has not written data.",
        "LOAD <script>",
        "    Cache a script without running it, and return its digest.",
        "SHOW <sha1>",
        "    Return the script of this digest.",
    ]))
}

const LOAD: Command = Command {
    spec: Spec {
        name: "load",
        summary: "Caches a script for EVALSHA.",
        complexity: "O(N) in the length of the script.",
        since: "2.6.0",
        arity: 3,
        flags: Flags::NOSCRIPT.union(Flags::STALE),
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        args: &[Arg::string("script")],
        ..ROW
    },
    run: load,
    subcommands: &[],
};

const EXISTS: Command = Command {
    spec: Spec {
        name: "exists",
        summary: "Checks which scripts are cached.",
        complexity: "O(N) in the number of digests.",
        since: "2.6.0",
        arity: -3,
        tips: &["request_policy:all_shards", "response_policy:agg_logical_and"],
        args: &[Arg::string("sha1").multiple()],
        ..ROW
    },
    run: exists,
    subcommands: &[],
};

const FLUSH: Command = Command {
    spec: Spec {
        name: "flush",
        summary: "Removes all cached scripts.",
        complexity: "O(N) in the number of cached scripts.",
        since: "2.6.0",
        arity: -2,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        args: &[Arg::one_of("async", &[Arg::token("async", "ASYNC"), Arg::token("sync", "SYNC")])
            .since("6.2.0")
            .optional()],
        history: &[("6.2.0", "Accepts the options `ASYNC` and `SYNC`.")],
        ..ROW
    },
    run: flush,
    subcommands: &[],
};

const KILL: Command = Command {
    spec: Spec {
        name: "kill",
        summary: "Stops a slow script that has not written data.",
        since: "2.6.0",
        arity: 2,
        flags: Flags::NOSCRIPT.union(Flags::ALLOW_BUSY),
        tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
        ..ROW
    },
    run: |call, _| super::kill(call, true),
    subcommands: &[],
};

const SHOW: Command = Command {
    spec: Spec {
        name: "show",
        summary: "Returns the source of a cached script.",
        complexity: "O(1)",
        since: "8.0.0",
        origin: Origin::Valkey,
        details: "The script is identified by its SHA1 digest, as for EVALSHA.",
        arity: 3,
        args: &[Arg::string("sha1")],
        ..ROW
    },
    run: show,
    subcommands: &[],
};

const DEBUG: Command = Command {
    spec: Spec {
        name: "debug",
        summary: "Always fails: the script debugger is not supported.",
        since: "3.2.0",
        arity: 3,
        args: &[Arg::one_of(
            "mode",
            &[Arg::token("yes", "YES"), Arg::token("sync", "SYNC"), Arg::token("no", "NO")],
        )],
        ..ROW
    },
    run: debug,
    subcommands: &[],
};

const HELP: Command = Command {
    spec: Spec { categories: ROW.categories, ..Spec::help(ROW.group, "5.0.0") },
    run: help,
    subcommands: &[],
};

const SCRIPT: Command = Command {
    spec: Spec {
        name: "script",
        summary: "Manages the cached scripts.",
        since: "2.6.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        flags: Flags::empty(),
        categories: brisk_engine::command::Categories::empty(),
        ..ROW
    },
    run: help,
    subcommands: &[DEBUG, EXISTS, FLUSH, HELP, KILL, LOAD, SHOW],
};

pub(super) const COMMANDS: &[Command] = &[SCRIPT];
