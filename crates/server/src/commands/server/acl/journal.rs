//! ACL LOG: shows commands and connections that access control has denied.

use super::{ADMIN, ROW};
use brisk_engine::command::{Arg, Spec};
use brisk_engine::{Args, Outcome, Result};
use brisk_node::core::call::{Call, Command};

pub(super) const LOG: Command = Command {
    spec: Spec {
        name: "log",
        summary: "Shows or deletes the log of denied commands and failed authentications.",
        complexity: "O(N) in the number of entries returned.",
        arity: -2,
        flags: ADMIN,
        args: &[Arg::one_of("operation", &[Arg::integer("count"), Arg::token("reset", "RESET")])
            .optional()],
        ..ROW
    },
    run: log,
    subcommands: &[],
};

/// Number of entries that are shown if no count is given.
const SHOWN: i64 = 10;

fn log(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if args.remaining() > 1 {
        return Err(call.subcommand_syntax(args.argument(1)));
    }
    let now_ms = call.now().0;
    let mut journal = call.core.shared.accounts.journal();
    if args.take("RESET") {
        journal.clear();
        return Ok(call.reply.ok());
    }
    let count = if args.remaining() == 0 { SHOWN } else { args.integer()? };
    let count = usize::try_from(count).unwrap_or(0).min(journal.entries().len());
    let reply = &mut call.reply;
    reply.array(count);
    for entry in journal.entries().take(count) {
        reply.map(10);
        reply.bulk(b"count");
        reply.integer(entry.count as i64);
        for (name, value) in [
            ("reason", entry.reason.name().as_bytes()),
            ("context", entry.context.name().as_bytes()),
            ("object", &entry.object),
            ("username", &entry.user),
        ] {
            reply.bulk(name.as_bytes());
            reply.bulk(value);
        }
        reply.bulk(b"age-seconds");
        reply.double(now_ms.saturating_sub(entry.updated_ms) as f64 / 1000.0);
        reply.bulk(b"client-info");
        reply.bulk(entry.client.as_bytes());
        for (name, value) in [
            ("entry-id", entry.id),
            ("timestamp-created", entry.created_ms),
            ("timestamp-last-updated", entry.updated_ms),
        ] {
            reply.bulk(name.as_bytes());
            reply.integer(value as i64);
        }
    }
    Ok(Outcome::Replied)
}
