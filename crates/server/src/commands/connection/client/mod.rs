//! CLIENT: commands that list, change and close connections.
//!
//! `identity` names connections, `list` lists them, `kill` closes them, `pause` pauses them, `mode` changes how the
//! caller's own commands work, and `tracking` implements client-side caching.

mod identity;
mod kill;
mod list;
mod mode;
mod pause;
mod tracking;

use brisk_engine::command::{Categories, Flags, Group, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::clients::{ClientRecord, flag};
use brisk_node::core::Core;
use brisk_node::core::call::{Call, Command};

pub(super) use identity::plain_name;

/// The row on which the rows of subcommands are based.
const ROW: Spec = Spec {
    group: Group::Connection,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    ..Spec::EMPTY
};

/// The flags of subcommands that affect other connections.
const ADMIN: Flags = ROW.flags.union(Flags::ADMIN);

/// The type of a connection, for CLIENT LIST and CLIENT KILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Primary,
    Replica,
    PubSub,
}

impl Kind {
    fn of_word(word: &[u8], core: &Core) -> Result<Kind> {
        const WORDS: &[(&str, Kind)] = &[
            ("normal", Kind::Normal),
            ("master", Kind::Primary),
            ("slave", Kind::Replica),
            ("replica", Kind::Replica),
            ("pubsub", Kind::PubSub),
        ];
        let valkeys = [("primary", Kind::Primary)];
        let more: &[_] = if core.is_valkey() { &valkeys } else { &[] };
        let mut known = WORDS.iter().chain(more);
        let found = known.find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word));
        found
            .map(|(_, kind)| *kind)
            .ok_or_else(|| CommandError::text_around("ERR Unknown client type '", word, "'"))
    }

    /// The type of a connection. Monitors count as normal, as in Redis.
    fn of(record: &ClientRecord) -> Kind {
        if record.has(flag::PRIMARY) {
            Kind::Primary
        } else if record.has(flag::REPLICA) {
            Kind::Replica
        } else if record.has(flag::PUBSUB) {
            Kind::PubSub
        } else {
            Kind::Normal
        }
    }
}

/// Parses an argument that must be ON or OFF.
fn on_or_off(word: &[u8]) -> Result<bool> {
    if word.eq_ignore_ascii_case(b"ON") {
        Ok(true)
    } else if word.eq_ignore_ascii_case(b"OFF") {
        Ok(false)
    } else {
        Err(CommandError::Syntax)
    }
}

const CLIENT: Command = Command {
    spec: Spec {
        name: "client",
        group: Group::Connection,
        summary: "A container for commands about connections.",
        since: "2.4.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::EMPTY
    },
    run: |call, _| Err(call.wrong_arity()),
    subcommands: &[
        tracking::CACHING,
        mode::CAPA,
        mode::DURABILITY,
        identity::GETNAME,
        tracking::GETREDIR,
        HELP,
        identity::ID,
        list::INFO,
        kill::KILL,
        list::LIST,
        mode::NO_EVICT,
        mode::NO_TOUCH,
        pause::PAUSE,
        mode::REPLY,
        identity::SETINFO,
        identity::SETNAME,
        tracking::TRACKING,
        tracking::TRACKINGINFO,
        pause::UNBLOCK,
        pause::UNPAUSE,
    ],
};

const HELP: Command = Command {
    spec: Spec {
        flags: Spec::HELP_FLAGS.union(Flags::KEEPS_CACHING),
        categories: ROW.categories,
        ..Spec::help(Group::Connection, "5.0.0")
    },
    run: help,
    subcommands: &[],
};

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "CAPA <capability> [<capability> ...]",
        "    Announce capabilities of this client:",
        "    * REDIRECT",
        "      Follows REDIRECT replies of a replica to another server.",
        "CACHING (YES|NO)",
        "    Set whether the keys of the next command are tracked, in modes OPTIN and OPTOUT.",
        "GETREDIR",
        "    Return the ID of the client that receives the invalidations.",
        "GETNAME",
        "    Return the name of this connection.",
        "ID",
        "    Return the ID of this connection.",
        "INFO",
        "    Describe this connection in one line.",
        "KILL <ip:port>",
        "    Close the connection from <ip:port>.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Close all connections that match all options:",
        "    * ID <client-id>",
        "      The one with this id.",
        "    * ADDR (<ip:port>|<unixsocket>:0)",
        "      The one from this address.",
        "    * LADDR (<ip:port>|<unixsocket>:0)",
        "      Those to this address of the server.",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "      Those of a type.",
        "    * USER <username>",
        "      Those of a user.",
        "    * MAXAGE <seconds>",
        "      Those at least this old.",
        "    * SKIPME (YES|NO)",
        "      Whether this connection is spared (default: yes).",
        "LIST [options ...]",
        "    Describe connections, one per line. Options:",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "      Only those of a type.",
        "    * ID <client-id> [<client-id> ...]",
        "      Only those with these ids.",
        "UNPAUSE",
        "    End the pause and resume paused commands.",
        "PAUSE <timeout> [WRITE|ALL]",
        "    Pause all commands, or only writes, for <timeout> milliseconds.",
        "REPLY (ON|OFF|SKIP)",
        "    Set whether this connection receives replies.",
        "SETINFO (LIB-NAME|LIB-VER) <value>",
        "    Set the name or version of the client library.",
        "SETNAME <name>",
        "    Set the name of this connection.",
        "UNBLOCK <clientid> [TIMEOUT|ERROR]",
        "    Unblock a blocked client.",
        "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
        "         [OPTIN] [OPTOUT] [NOLOOP]",
        "    Enable or disable invalidation messages for keys that this connection has read.",
        "TRACKINGINFO",
        "    Return the client-side caching settings of this connection.",
        "NO-EVICT (ON|OFF)",
        "    Set whether this connection is exempt from client eviction.",
        "NO-TOUCH (ON|OFF)",
        "    With ON, commands of this connection do not update the access times of keys.",
    ]))
}

pub(super) const COMMANDS: &[Command] = &[CLIENT];
