//! HELLO, AUTH, RESET: sets up and resets a connection.

use brisk_acl::{Context, DEFAULT_USER, Reason};
use brisk_engine::command::{Arg, Categories, Flags, Group, InMulti, Spec};
use brisk_engine::number::parse_i64;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::clients::flag;
use brisk_node::core::call::{Call, Command};
use brisk_node::persistence::aof::wait;
use brisk_node::pubsub::subscribe;
use brisk_node::replication::acks::Durability;
use brisk_node::run::gate;
use brisk_node::run::permission;
use brisk_node::tracking::session;
use brisk_node::transactions::execute;
use brisk_observe::version::REDIS_VERSION;
use brisk_resp::Protocol;

/// Flags of all commands of this file: they run at any time, even before authentication.
const AT_ANY_TIME: Flags = Flags::NOSCRIPT
    .union(Flags::LOADING)
    .union(Flags::STALE)
    .union(Flags::FAST)
    .union(Flags::NO_AUTH)
    .union(Flags::ALLOW_BUSY);

const HELLO: Command = Command {
    spec: Spec {
        name: "hello",
        group: Group::Connection,
        summary: "Performs a handshake: protocol version, authentication, connection name.",
        since: "6.0.0",
        complexity: "O(1)",
        arity: -1,
        flags: AT_ANY_TIME,
        categories: Categories::CONNECTION,
        args: &[Arg::block(
            "arguments",
            &[
                Arg::integer("protover"),
                Arg::block(
                    "username_password",
                    &[Arg::string("username"), Arg::string("password")],
                )
                .after("AUTH")
                .optional(),
                Arg::string("clientname").after("SETNAME").optional(),
            ],
        )
        .optional()],
        history: &[("6.2.0", "The protocol version is optional.")],
        ..Spec::EMPTY
    },
    run: hello,
    subcommands: &[],
};

/// HELLO. All options are parsed first, as in Redis 7.2, so an invalid option or a wrong password changes nothing.
fn hello(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let protocol = protocol_wanted(args)?;
    let (mut login, mut name) = (None, None);
    while let Some(option) = args.optional() {
        if option.eq_ignore_ascii_case(b"AUTH") && args.remaining() >= 2 {
            call.redact(args.position());
            call.redact(args.position() + 1);
            login = Some((args.bytes()?, args.bytes()?));
        } else if option.eq_ignore_ascii_case(b"SETNAME") && args.remaining() >= 1 {
            name = Some(super::client::plain_name(args.bytes()?)?);
        } else {
            let before = "ERR Syntax error in HELLO option '";
            return Err(CommandError::text_around(before, option, "'"));
        }
    }
    if let Some((user, password)) = login {
        authenticate(call, args, user, password)?;
    }
    if gate::must_authenticate(call.core, call.session) {
        return Err(CommandError::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO AUTH <user> <pass> option can be used to authenticate the client and select \
             the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        call.session.record.edit_texts(|texts| texts.name = name);
    }
    if let Some(protocol) = protocol {
        call.session.set_protocol(protocol);
        call.reply.set_protocol(protocol);
    }
    Ok(introduce(call))
}

fn protocol_wanted(args: &mut Args<'_>) -> Result<Option<Protocol>> {
    let Some(version) = args.optional() else { return Ok(None) };
    match parse_i64(version) {
        Some(2) => Ok(Some(Protocol::Resp2)),
        Some(3) => Ok(Some(Protocol::Resp3)),
        Some(_) => Err(CommandError::text("NOPROTO unsupported protocol version")),
        None => Err(CommandError::text("ERR Protocol version is not an integer or out of range")),
    }
}

fn introduce(call: &mut Call<'_>) -> Outcome {
    let version = if call.session.protocol() == Protocol::Resp3 { 3 } else { 2 };
    let shared = call.core.shared;
    let mode = if shared.cluster.state().is_some() { "cluster" } else { "standalone" };
    let role = if shared.conditions.is_replica() { "replica" } else { "master" };
    let reply = &mut call.reply;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(version);
    reply.bulk(b"id");
    reply.integer(call.session.id() as i64);
    reply.bulk(b"mode");
    reply.bulk(mode.as_bytes());
    reply.bulk(b"role");
    reply.bulk(role.as_bytes());
    reply.bulk(b"modules");
    reply.array(0)
}

const AUTH: Command = Command {
    spec: Spec {
        name: "auth",
        group: Group::Connection,
        summary: "Authenticates the connection.",
        since: "1.0.0",
        complexity: "O(N) in the number of the user's passwords.",
        arity: -2,
        flags: AT_ANY_TIME,
        categories: Categories::CONNECTION,
        args: &[Arg::string("username").optional().since("6.0.0"), Arg::string("password")],
        history: &[("6.0.0", "Accepts a user name before the password.")],
        ..Spec::EMPTY
    },
    run: auth,
    subcommands: &[],
};

fn auth(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    for at in args.position()..args.argc() {
        call.redact(at);
    }
    let first = args.bytes()?;
    let second = args.optional();
    args.end()?;
    let (user, password) = match second {
        Some(password) => (first, password),
        None if call.core.shared.accounts.default_account().user().needs_no_password() => {
            return Err(CommandError::text(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            ));
        }
        None => (DEFAULT_USER.as_bytes(), first),
    };
    authenticate(call, args, user, password)?;
    Ok(call.reply.ok())
}

/// Authenticates the session. On failure, the session stays as it was, and the attempt is recorded.
fn authenticate(call: &mut Call<'_>, args: &Args<'_>, user: &[u8], password: &[u8]) -> Result<()> {
    let account = call.core.shared.accounts.find(user);
    let account = account.filter(|account| account.user().admits_password(password));
    if let Some(account) = account {
        call.session.act_as(&account, true);
        return Ok(());
    }
    let context = if call.in_exec() { Context::Multi } else { Context::TopLevel };
    let (session, row, object) = (&*call.session, call.row, args.argument(0));
    permission::note_denial(call.core, session, row, args, Reason::Auth, context, object, user);
    Err(CommandError::text("WRONGPASS invalid username-password pair or user is disabled."))
}

const RESET: Command = Command {
    spec: Spec {
        name: "reset",
        group: Group::Connection,
        summary: "Resets the connection to the state of a new one.",
        since: "6.2.0",
        complexity: "O(1)",
        arity: 1,
        flags: AT_ANY_TIME.union(Flags::WHILE_SUBSCRIBED),
        categories: Categories::CONNECTION,
        in_multi: InMulti::Ends,
        ..Spec::EMPTY
    },
    run: reset,
    subcommands: &[],
};

fn reset(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    if call.session.repeats() {
        return Err(CommandError::text("ERR can only reset normal connections"));
    }
    if call.session.record.has(flag::MONITOR) {
        call.core.shared.conditions.remove_monitor(call.core.id);
    }
    subscribe::unsubscribe_all(call.core, call.session);
    session::end_tracking(call.core, call.session);
    execute::end_transaction(call.core, call.session);
    wait::request_durability(call.core, call.session, Durability::default());
    call.session.reset(call.core.shared.accounts.default_account());
    call.core.env.touch.set(true);
    call.reply.set_protocol(call.session.protocol());
    Ok(call.reply.simple("RESET"))
}

pub(super) const COMMANDS: &[Command] = &[HELLO, AUTH, RESET];
