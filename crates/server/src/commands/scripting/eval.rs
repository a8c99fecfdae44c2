//! EVAL, EVALSHA, FCALL and their read-only variants.

use super::ROW;
use brisk_engine::command::{Arg, Flags, KeyFlags, KeySpec, Spec};
use brisk_engine::{Args, CommandError, Dialect, Outcome, Result};
use brisk_node::core::Core;
use brisk_node::core::call::{Call, Command};
use brisk_node::script::CompiledScript;
use brisk_node::script::cache::{self};
use brisk_node::script::invoked::{By, WHAT_AT};
use brisk_node::script::libraries::{Function, Set};
use brisk_node::script::machine::Machine;
use brisk_node::script::run::{self, Target, evaluate, key_count};
use std::rc::Rc;

/// The error if there is no script with the given digest.
pub(super) fn no_script(core: &Core) -> CommandError {
    CommandError::text(match core.config.process.dialect {
        Dialect::Redis => "NOSCRIPT No matching script. Please use EVAL.",
        Dialect::Valkey => "NOSCRIPT No matching script.",
    })
}

fn run(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let outcome = run_once(call, args);
    let again = matches!(outcome, Err(CommandError::SlotBusy | CommandError::SlotFrozen));
    call.session.end_script_try(again);
    outcome
}

fn run_once(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if call.core.scripts.is_parked() {
        // The interpreter is in use.
        return Err(run::parked_error(call.core));
    }
    if By::of(call.row.spec) == By::Name {
        return call_function(call, args);
    }
    let found = find_script(call, args);
    let (machine, entry, keys) = call.shown_if_refused(args, found)?;
    let script = &entry.script;
    script.note_use();
    let target = Target {
        code: &entry.code,
        flags: script.flags,
        uses_undeclared_keys: &script.uses_undeclared_keys,
        acts: &script.acts,
        confined: script.confined,
        name: &script.digest,
        is_eval: true,
    };
    evaluate(call, &machine, &target, args, keys)
}

/// Returns the compiled script that EVAL or EVALSHA names, and the number of its keys.
fn find_script(
    call: &mut Call<'_>,
    args: &Args<'_>,
) -> Result<(Rc<Machine>, Rc<CompiledScript>, usize)> {
    let by_digest = By::of(call.row.spec) == By::Digest;
    let digest = by_digest.then(|| cache::digest_from(args.argument(WHAT_AT)));
    if digest == Some(None) {
        return Err(no_script(call.core));
    }
    let keys = key_count(args, "ERR value is not an integer or out of range")?;
    let eval = call.core.scripts.interpreters.eval()?;
    let machine = Rc::clone(&eval.machine);
    let entry = match digest.flatten() {
        Some(digest) => eval.script(&digest)?,
        None => Some(eval.script_from(args.argument(WHAT_AT), false)?),
    };
    let entry = entry.ok_or_else(|| no_script(call.core))?;
    Ok((machine, entry, keys))
}

fn call_function(call: &mut Call<'_>, args: &Args<'_>) -> Result<Outcome> {
    let set = call.core.shared.scripting.libraries.now();
    let found = find_function(call, args, &set);
    let (machine, function, code, keys) = call.shown_if_refused(args, found)?;
    let target = Target {
        code: &code,
        flags: function.flags,
        uses_undeclared_keys: &function.uses_undeclared_keys,
        acts: &function.acts,
        confined: false,
        name: &function.name,
        is_eval: false,
    };
    evaluate(call, &machine, &target, args, keys)
}

type FoundFunction<'s> = (Rc<Machine>, &'s Function, Rc<brisk_script::Script>, usize);

/// Returns the function that FCALL names, and the number of its keys.
fn find_function<'s>(
    call: &mut Call<'_>,
    args: &Args<'_>,
    set: &'s Set,
) -> Result<FoundFunction<'s>> {
    let Some((library, function)) = set.function(args.argument(WHAT_AT)) else {
        return Err(CommandError::text("ERR Function not found"));
    };
    let keys = key_count(args, "ERR Bad number of keys provided")?;
    let functions = call.core.scripts.interpreters.functions()?;
    let code = functions.function(library, &function.name)?;
    Ok((Rc::clone(&functions.machine), function, code, keys))
}

/// The row on which the rows of all commands are based.
const RUNS: Spec = Spec {
    arity: -3,
    flags: Flags::NOSCRIPT
        .union(Flags::SKIP_MONITOR)
        .union(Flags::STALE)
        .union(Flags::NO_MANDATORY_KEYS)
        .union(Flags::MOVABLEKEYS)
        .union(Flags::MAY_REPLICATE)
        .union(Flags::RUNS_SCRIPT),
    complexity: "Depends on the script.",
    keys: &[KeySpec::counted(2)
        .read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))
        .noted("what becomes of the keys is up to the script, so the most is assumed")],
    ..ROW
};

/// The row on which the rows of the read-only commands are based.
const READS: Spec = Spec {
    flags: Flags::NOSCRIPT
        .union(Flags::SKIP_MONITOR)
        .union(Flags::STALE)
        .union(Flags::NO_MANDATORY_KEYS)
        .union(Flags::MOVABLEKEYS)
        .union(Flags::READONLY)
        .union(Flags::RUNS_SCRIPT),
    since: "7.0.0",
    keys: &[KeySpec::counted(2)
        .read_only(KeyFlags::ACCESS)
        .noted("what becomes of the keys is up to the script, so the most is assumed")],
    ..RUNS
};

const fn followed_by_keys(first: Arg) -> [Arg; 4] {
    [
        first,
        Arg::integer("numkeys"),
        Arg::key("key").optional().multiple(),
        Arg::string("arg").optional().multiple(),
    ]
}

const SOURCE: &[Arg] = &followed_by_keys(Arg::string("script"));
const DIGEST: &[Arg] = &followed_by_keys(Arg::string("sha1"));
const NAME: &[Arg] = &followed_by_keys(Arg::string("function"));

const EVAL: Command = Command {
    spec: Spec { name: "eval", summary: "Runs a script.", since: "2.6.0", args: SOURCE, ..RUNS },
    run,
    subcommands: &[],
};

const EVAL_RO: Command = Command {
    spec: Spec { name: "eval_ro", summary: "Runs a read-only script.", args: SOURCE, ..READS },
    run,
    subcommands: &[],
};

const EVALSHA: Command = Command {
    spec: Spec {
        name: "evalsha",
        summary: "Runs a cached script by its SHA1 digest.",
        since: "2.6.0",
        keys: &[KeySpec::counted(2).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        args: DIGEST,
        ..RUNS
    },
    run,
    subcommands: &[],
};

const EVALSHA_RO: Command = Command {
    spec: Spec {
        name: "evalsha_ro",
        summary: "Runs a cached read-only script by its SHA1 digest.",
        keys: &[KeySpec::counted(2).read_only(KeyFlags::ACCESS)],
        args: DIGEST,
        ..READS
    },
    run,
    subcommands: &[],
};

const FCALL: Command = Command {
    spec: Spec {
        name: "fcall",
        summary: "Runs a function of a library.",
        since: "7.0.0",
        complexity: "Depends on the function.",
        args: NAME,
        ..RUNS
    },
    run,
    subcommands: &[],
};

const FCALL_RO: Command = Command {
    spec: Spec {
        name: "fcall_ro",
        summary: "Runs a read-only function of a library.",
        complexity: "Depends on the function.",
        args: NAME,
        ..READS
    },
    run,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[EVAL, EVAL_RO, EVALSHA, EVALSHA_RO, FCALL, FCALL_RO];
