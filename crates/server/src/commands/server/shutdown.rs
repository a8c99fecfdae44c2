//! SHUTDOWN: stops the server after its replicas have caught up.

use brisk_config::choice::ShutdownMode;
use brisk_engine::command::{Arg, Flags, Group, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::clients::flag;
use brisk_node::core::call::{Call, Command};
use brisk_node::persistence::ending::{self, Begun};

/// Parses the options of SHUTDOWN. Returns `None` for ABORT, which cancels a waiting shutdown.
fn parse(args: &mut Args<'_>) -> Result<Option<ShutdownMode>> {
    let (mut how, mut abort) = (ShutdownMode::default(), false);
    while args.remaining() > 0 {
        let field = if args.take("NOSAVE") {
            &mut how.nosave
        } else if args.take("SAVE") {
            &mut how.save
        } else if args.take("NOW") {
            &mut how.now
        } else if args.take("FORCE") {
            &mut how.force
        } else if args.take("ABORT") {
            &mut abort
        } else {
            return Err(CommandError::Syntax);
        };
        *field = true;
    }
    if (how.save && how.nosave) || (abort && how != ShutdownMode::default()) {
        return Err(CommandError::Syntax);
    }
    Ok((!abort).then_some(how))
}

fn shutdown(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let requested = parse(args)?;
    let shared = call.core.shared;
    let Some(how) = requested else {
        if !ending::call_off(call.core) {
            return Err(CommandError::text("ERR No shutdown in progress."));
        }
        shared.log.notice(format_args!("Shutdown manually aborted."));
        return Ok(call.reply.ok());
    };
    if !how.now && call.session.repeats() {
        let text = "ERR SHUTDOWN without NOW or ABORT isn't allowed for DENY BLOCKING client";
        return Err(CommandError::text(text));
    }
    if !how.nosave
        && let Some(busy) = shared.scripting.running.refusal(None)
    {
        // Unless the client requests it, the server neither saves nor discards the partial changes of a script.
        return Err(CommandError::text(busy));
    }
    if ending::begin(call.core, how)? == Begun::Waits {
        return Ok(wait(call, args));
    }
    // There is no reply, and nothing more is executed. The connection closes when the process exits.
    call.session.close_at_once();
    Ok(Outcome::Replied)
}

/// Makes the caller wait while the server waits for its replicas. The caller gets a reply only if the server does not
/// exit.
fn wait(call: &mut Call<'_>, args: &Args<'_>) -> Outcome {
    let words: Vec<&[u8]> = args.arguments().collect();
    let command = (call.row.spec, call.row.parent);
    let request = (call.session.db(), &*words);
    let keyspace = &call.core.shared.keyspace;
    let waiter = keyspace.waiter_without_keys(call.client(), command, request, None);
    call.core.env.begin_wait(waiter);
    call.session.record.set(flag::AWAITS_END, true);
    Outcome::Waiting
}

const SHUTDOWN: Command = Command {
    spec: Spec {
        name: "shutdown",
        group: Group::Server,
        summary: "Shuts down the server, with or without saving the dataset.",
        since: "1.0.0",
        complexity: "O(N) with N keys if they are saved, otherwise O(1)",
        arity: -1,
        flags: Flags::ADMIN
            .union(Flags::ALLOW_BUSY)
            .union(Flags::LOADING)
            .union(Flags::NO_MULTI)
            .union(Flags::NOSCRIPT)
            .union(Flags::STALE),
        args: &[
            Arg::one_of(
                "nosave_save",
                &[Arg::token("nosave", "NOSAVE"), Arg::token("save", "SAVE")],
            )
            .optional(),
            Arg::token("now", "NOW").since("7.0.0").optional(),
            Arg::token("force", "FORCE").since("7.0.0").optional(),
            Arg::token("abort", "ABORT").since("7.0.0").optional(),
        ],
        history: &[("7.0.0", "Accepts the options `NOW`, `FORCE` and `ABORT`.")],
        ..Spec::EMPTY
    },
    run: shutdown,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[SHUTDOWN];
