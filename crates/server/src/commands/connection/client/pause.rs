//! CLIENT PAUSE, UNPAUSE, UNBLOCK: pauses and resumes commands.

use super::{ADMIN, ROW};
use brisk_engine::command::{Arg, Scope, Spec};
use brisk_engine::number::parse_i64;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::clients::flag;
use brisk_node::core::call::{Call, Command};
use brisk_node::core::mailbox::{Message, Unblocked};
use brisk_node::core::pause::Paused;
use brisk_reactor::unix_ms;

pub(super) const PAUSE: Command = Command {
    spec: Spec {
        name: "pause",
        summary: "Pauses all commands, or only writes, for a given time.",
        since: "2.9.50",
        arity: -3,
        flags: ADMIN,
        args: &[
            Arg::integer("timeout"),
            Arg::one_of("mode", &[Arg::token("write", "WRITE"), Arg::token("all", "ALL")])
                .optional()
                .since("6.2.0"),
        ],
        history: &[("6.2.0", "Accepts the modes `WRITE` and `ALL`.")],
        ..ROW
    },
    run: pause,
    subcommands: &[],
};

fn pause(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (timeout, mode) = (args.bytes()?, args.optional());
    if args.remaining() > 0 {
        return Err(call.subcommand_syntax(args.argument(1)));
    }
    let what = match mode {
        None => Paused::All,
        Some(word) if word.eq_ignore_ascii_case(b"ALL") => Paused::All,
        Some(word) if word.eq_ignore_ascii_case(b"WRITE") => Paused::Writes,
        Some(_) => {
            return Err(CommandError::text("ERR CLIENT PAUSE mode must be WRITE or ALL"));
        }
    };
    let timeout = parse_i64(timeout)
        .ok_or_else(|| CommandError::text("ERR timeout is not an integer or out of range"))?;
    let timeout =
        u64::try_from(timeout).map_err(|_| CommandError::text("ERR timeout is negative"))?;
    let now = unix_ms();
    let until = now
        .checked_add(timeout)
        .filter(|until| i64::try_from(*until).is_ok())
        .ok_or_else(|| CommandError::text("ERR timeout is out of range"))?;
    call.core.shared.conditions.begin_pause(what, until, now);
    // The pause already applies to later commands of the same transaction.
    call.core.pause_in_force();
    Ok(call.reply.ok())
}

pub(super) const UNPAUSE: Command = Command {
    spec: Spec {
        name: "unpause",
        summary: "Ends a pause and resumes paused commands.",
        since: "6.2.0",
        complexity: "O(N) in the number of paused clients.",
        arity: 2,
        flags: ADMIN,
        ..ROW
    },
    run: unpause,
    subcommands: &[],
};

fn unpause(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    call.core.shared.end_pause();
    call.core.pause_in_force();
    Ok(call.reply.ok())
}

pub(super) const UNBLOCK: Command = Command {
    spec: Spec {
        name: "unblock",
        summary: "Unblocks a client that is blocked in a command.",
        since: "5.0.0",
        complexity: "O(log N) in the number of connections.",
        arity: -3,
        flags: ADMIN,
        args: &[
            Arg::integer("client-id"),
            Arg::one_of(
                "timeout_error",
                &[Arg::token("timeout", "TIMEOUT"), Arg::token("error", "ERROR")],
            )
            .optional(),
        ],
        // The command waits for a worker that may be serving the client, so it must not hold slots.
        scope: Scope::EachSlot,
        ..ROW
    },
    run: unblock,
    subcommands: &[],
};

/// CLIENT UNBLOCK. Clients that wait for the end of a pause or for the shutdown do not count as blocked here.
fn unblock(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (id, reason) = (args.bytes()?, args.optional());
    if args.remaining() > 0 {
        return Err(call.subcommand_syntax(args.argument(1)));
    }
    let known =
        |word: &[u8]| word.eq_ignore_ascii_case(b"TIMEOUT") || word.eq_ignore_ascii_case(b"ERROR");
    if !reason.is_none_or(known) {
        let text = "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR";
        return Err(CommandError::text(text));
    }
    let id = parse_i64(id).ok_or(CommandError::NotAnInteger)?;
    let how = match reason {
        Some(word) if word.eq_ignore_ascii_case(b"ERROR") => Unblocked::Error,
        _ => Unblocked::Timeout,
    };
    let shared = call.core.shared;
    let Some(record) = u64::try_from(id).ok().and_then(|id| shared.clients.find(id)) else {
        return Ok(call.reply.integer(0));
    };
    let may_end = !record.has(flag::AWAITS_END);
    let ended = may_end && record.waiter().as_ref().is_some_and(|waiter| waiter.end());
    if ended {
        let message = Message::Unblock { token: record.token, id: record.id, how };
        shared.mailboxes.send(record.worker, message);
    }
    Ok(call.reply.integer(i64::from(ended)))
}
