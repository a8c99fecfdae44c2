//! ROLE: this server's part in replication.

use crate::call::{Call, Command};
use brisk_engine::command::{Categories, Flags, Group, Spec};
use brisk_engine::{Args, Outcome, Result};

/// A primary without replicas: the offset of the stream is 0 as long as nothing is streamed.
fn role(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    Ok(call.reply.array(0))
}

const ROLE: Command = Command {
    spec: Spec {
        name: "role",
        group: Group::Server,
        summary: "Tells whether this is a primary or a replica, and of whom.",
        since: "2.8.12",
        complexity: "O(1)",
        arity: 1,
        flags: Flags::FAST.union(Flags::LOADING).union(Flags::NOSCRIPT).union(Flags::STALE),
        categories: Categories::ADMIN.union(Categories::DANGEROUS),
        ..Spec::EMPTY
    },
    run: role,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[ROLE];
