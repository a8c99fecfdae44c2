//! INFO, TIME, LOLWUT: information about the server.

use brisk_engine::command::{Arg, Categories, Flags, Group, Spec};
use brisk_engine::{Args, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_observe::version::REDIS_VERSION;

const INFO: Command = Command {
    spec: Spec {
        name: "info",
        group: Group::Server,
        summary: "Returns metrics of the server, by section.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: -1,
        flags: Flags::LOADING.union(Flags::STALE),
        categories: Categories::DANGEROUS,
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        args: &[Arg::string("section").optional().multiple()],
        history: &[("7.0.0", "Accepts several sections.")],
        ..Spec::EMPTY
    },
    run: info,
    subcommands: &[],
};

fn info(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let words: Vec<&[u8]> = args.arguments().skip(1).collect();
    let text = crate::info::text(call.core.shared, &call.core.config, words.into_iter());
    Ok(call.reply.verbatim(*b"txt", text.as_bytes()))
}

const TIME: Command = Command {
    spec: Spec {
        name: "time",
        group: Group::Server,
        summary: "Returns the server's time: Unix seconds and microseconds.",
        since: "2.6.0",
        complexity: "O(1)",
        arity: 1,
        flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
        tips: &["nondeterministic_output"],
        ..Spec::EMPTY
    },
    run: time,
    subcommands: &[],
};

fn time(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let mut us = brisk_reactor::unix_us();
    if call.core.unit.is_running() && !call.core.scripts.is_slow() {
        // All commands of a transaction or a script see the same time, until the script becomes slow.
        us = call.core.unit.moment_us(us);
    }
    call.reply.array(2);
    call.reply.bulk_integer((us / 1_000_000) as i64);
    Ok(call.reply.bulk_integer((us % 1_000_000) as i64))
}

const LOLWUT: Command = Command {
    spec: Spec {
        name: "lolwut",
        group: Group::Server,
        summary: "Shows a small picture and the version.",
        since: "5.0.0",
        complexity: "",
        arity: -1,
        flags: Flags::READONLY.union(Flags::FAST),
        args: &[Arg::integer("version").after("VERSION").optional()],
        ..Spec::EMPTY
    },
    run: lolwut,
    subcommands: &[],
};

/// Columns and lines of the picture.
const MAZE: (usize, usize) = (48, 8);

/// Draws a maze, which differs on each call.
fn lolwut(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if args.remaining() >= 2 && args.take("version") {
        // All versions have the same picture.
        args.integer()?;
    }
    let mut text = String::with_capacity(MAZE.1 * (3 * MAZE.0 + 1) + 32);
    for _ in 0..MAZE.1 {
        let mut bits = call.core.env.random.borrow_mut().bits();
        for _ in 0..MAZE.0 {
            text.push(if bits & 1 == 0 { '╱' } else { '╲' });
            bits >>= 1;
        }
        text.push('\n');
    }
    text.push_str("Redis ver. ");
    text.push_str(REDIS_VERSION);
    text.push('\n');
    Ok(call.reply.verbatim(*b"txt", text.as_bytes()))
}

pub(super) const COMMANDS: &[Command] = &[INFO, TIME, LOLWUT];
