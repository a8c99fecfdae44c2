//! PING, ECHO, SELECT, QUIT: the basic connection commands.

use brisk_engine::command::{Arg, Categories, Flags, Group, InMulti, Spec};
use brisk_engine::{Args, CommandError, DbIndex, DbNumber, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::replication::compare::replica;

const PING: Command = Command {
    spec: Spec {
        name: "ping",
        group: Group::Connection,
        summary: "Replies with PONG, or with the given message.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: -1,
        flags: Flags::FAST.union(Flags::WHILE_SUBSCRIBED).union(Flags::HEALTH_CHECK),
        categories: Categories::CONNECTION,
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        args: &[Arg::string("message").optional()],
        ..Spec::EMPTY
    },
    run: ping,
    subcommands: &[],
};

fn ping(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let message = args.optional();
    if args.remaining() > 0 {
        return Err(call.wrong_arity());
    }
    if call.session.only_listens() {
        call.reply.array(2);
        call.reply.bulk(b"pong");
        return Ok(call.reply.bulk(message.unwrap_or_default()));
    }
    Ok(match message {
        Some(message) => {
            let is_repeated = call.session.source.is_primary() || call.session.source.is_replay();
            if is_repeated && !call.core.env.in_script.get() {
                // Comparison markers are sent in the stream as messages of PING. The argument of a script's PING is
                // client data, because primaries older than Redis 7 replicate scripts verbatim.
                replica::execute(call.core, call.session, message)?;
            }
            call.reply.bulk(message)
        }
        None => call.reply.word("PONG"),
    })
}

const ECHO: Command = Command {
    spec: Spec {
        name: "echo",
        group: Group::Connection,
        summary: "Replies with the given message.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: 2,
        flags: Flags::FAST.union(Flags::LOADING).union(Flags::STALE),
        categories: Categories::CONNECTION,
        args: &[Arg::string("message")],
        ..Spec::EMPTY
    },
    run: |call, args| Ok(call.reply.bulk(args.bytes()?)),
    subcommands: &[],
};

const SELECT: Command = Command {
    spec: Spec {
        name: "select",
        group: Group::Connection,
        summary: "Changes the database of the connection.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: 2,
        flags: Flags::FAST.union(Flags::LOADING).union(Flags::STALE),
        categories: Categories::CONNECTION,
        args: &[Arg::integer("index")],
        in_multi: InMulti::Selects,
        ..Spec::EMPTY
    },
    run: select,
    subcommands: &[],
};

fn select(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let count = call.core.shared.keyspace.database_count();
    let selected = args.db(count);
    let is_other = match &selected {
        Ok(db) => *db != DbIndex::default(),
        Err(error) => *error == CommandError::DbOutOfRange,
    };
    if is_other && call.core.cluster.is_on() {
        return Err(CommandError::text("ERR SELECT is not allowed in cluster mode"));
    }
    match selected {
        Ok(db) => call.session.select(db),
        // The following commands in the stream are meant only for this database.
        Err(_) if call.session.repeats() => {
            let number =
                args.arguments().nth(1).and_then(|word| str::from_utf8(word).ok()?.parse().ok());
            let number = DbNumber(number.unwrap_or(u32::MAX));
            call.session.source.select_missing(number);
            return Err(lacks_database(number, count));
        }
        Err(error) => return Err(error),
    }
    Ok(call.reply.ok())
}

/// The error for a stream that selects a database that does not exist.
#[cold]
fn lacks_database(number: DbNumber, count: u32) -> CommandError {
    let which = match number.0 {
        u32::MAX => "what is none".to_owned(),
        number => format!("database {number}"),
    };
    CommandError::text(format!(
        "ERR DB index is out of range: the stream selects {which}, and this server has {count} \
         ('databases'). The commands that follow are skipped until another database is selected"
    ))
}

const QUIT: Command = Command {
    spec: Spec {
        name: "quit",
        group: Group::Connection,
        summary: "Closes the connection after all pending replies.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: -1,
        flags: Flags::FAST
            .union(Flags::LOADING)
            .union(Flags::STALE)
            .union(Flags::NOSCRIPT)
            .union(Flags::NO_AUTH)
            .union(Flags::ALLOW_BUSY)
            .union(Flags::WHILE_SUBSCRIBED),
        categories: Categories::CONNECTION,
        in_multi: InMulti::Ends,
        ..Spec::EMPTY
    },
    run: quit,
    subcommands: &[],
};

fn quit(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    call.session.close_after_reply();
    Ok(call.reply.ok())
}

pub(super) const COMMANDS: &[Command] = &[PING, ECHO, SELECT, QUIT];
