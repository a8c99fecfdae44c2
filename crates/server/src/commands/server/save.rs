//! SAVE, BGSAVE, BGREWRITEAOF and LASTSAVE: persistence of the dataset.

use brisk_engine::command::{Arg, Categories, Flags, Group, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::persistence::aof::rewrite;
use brisk_node::persistence::bgsave::{self, JobStart};
use brisk_node::persistence::snapshot;
use std::sync::atomic::Ordering;

const SAVE: Command = Command {
    spec: Spec {
        name: "save",
        group: Group::Server,
        summary: "Saves the dataset to the RDB file while all other clients are blocked.",
        since: "1.0.0",
        complexity: "O(N) in the number of keys in all databases",
        arity: 1,
        flags: Flags::ADMIN
            .union(Flags::NOSCRIPT)
            .union(Flags::NO_ASYNC_LOADING)
            .union(Flags::NO_MULTI),
        ..Spec::EMPTY
    },
    run: save,
    subcommands: &[],
};

fn save(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    call.core.shared.persistence.snapshots.make_way();
    if bgsave::is_saving(call.core.shared) {
        return Err(bgsave::in_progress());
    }
    let quiesced = call.core.quiesce_others()?;
    if call.core.shared.conditions.is_loading() {
        // Loading has started since the last check. Saving now would replace the file with a partial dataset.
        return Err(bgsave::refused_while_loading(call.core));
    }
    call.core.shared.observe.metrics.saves.fetch_add(1, Ordering::Relaxed);
    let saved = snapshot::save(call.core);
    drop(quiesced);
    // The log has the reason.
    saved.map_err(|_| CommandError::text("ERR"))?;
    Ok(call.reply.ok())
}

const BGSAVE: Command = Command {
    spec: Spec {
        name: "bgsave",
        group: Group::Server,
        summary: "Saves a snapshot of the dataset to its file in the background.",
        since: "1.0.0",
        complexity: "O(1), and O(N) in the background for N keys in all databases",
        arity: -1,
        flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING),
        args: &[Arg::token("schedule", "SCHEDULE").since("3.2.2").optional()],
        history: &[("3.2.2", "Accepts the option `SCHEDULE`.")],
        ..Spec::EMPTY
    },
    run: bgsave,
    subcommands: &[],
};

fn bgsave(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let later = args.remaining() == 1 && args.take("SCHEDULE");
    if args.remaining() > 0 {
        return Err(CommandError::Syntax);
    }
    Ok(call.reply.simple(match bgsave::request(call.core, later)? {
        JobStart::Started => "Background saving started",
        JobStart::Scheduled => "Background saving scheduled",
    }))
}

const BGREWRITEAOF: Command = Command {
    spec: Spec {
        name: "bgrewriteaof",
        group: Group::Server,
        summary: "Rewrites the append-only file in the background.",
        since: "1.0.0",
        complexity: "O(1), and O(N) in the background for N keys in all databases",
        arity: 1,
        flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING),
        ..Spec::EMPTY
    },
    run: bgrewriteaof,
    subcommands: &[],
};

fn bgrewriteaof(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.reply.simple(match rewrite::request(call.core)? {
        JobStart::Started => "Background append only file rewriting started",
        JobStart::Scheduled => "Background append only file rewriting scheduled",
    }))
}

const LASTSAVE: Command = Command {
    spec: Spec {
        name: "lastsave",
        group: Group::Server,
        summary: "Returns the time of the last successful save as a Unix time.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: 1,
        flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
        categories: Categories::ADMIN.union(Categories::DANGEROUS),
        tips: &["nondeterministic_output"],
        ..Spec::EMPTY
    },
    run: lastsave,
    subcommands: &[],
};

fn lastsave(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let seconds = call.core.shared.persistence.snapshots.last_save_s();
    Ok(call.reply.integer(seconds.cast_signed()))
}

pub(super) const COMMANDS: &[Command] = &[SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE];
