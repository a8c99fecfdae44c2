//! CLIENT ID, GETNAME, SETNAME, SETINFO: the identity of a connection.

use super::ROW;
use brisk_engine::command::{Arg, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};

pub(super) const ID: Command = Command {
    spec: Spec {
        name: "id",
        summary: "Returns the ID of the connection.",
        since: "5.0.0",
        arity: 2,
        ..ROW
    },
    run: |call, _| Ok(call.reply.integer(call.session.id() as i64)),
    subcommands: &[],
};

pub(super) const GETNAME: Command = Command {
    spec: Spec {
        name: "getname",
        summary: "Returns the connection's name.",
        since: "2.6.9",
        arity: 2,
        ..ROW
    },
    run: get_name,
    subcommands: &[],
};

fn get_name(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let name = call.session.record.texts().name;
    Ok(if name.is_empty() { call.reply.null() } else { call.reply.bulk(name.as_bytes()) })
}

pub(super) const SETNAME: Command = Command {
    spec: Spec {
        name: "setname",
        summary: "Sets the name of the connection.",
        since: "2.6.9",
        arity: 3,
        args: &[Arg::string("connection-name")],
        ..ROW
    },
    run: |call, args| {
        let name = plain_name(args.bytes()?)?;
        call.session.record.edit_texts(|texts| texts.name = name);
        Ok(call.reply.ok())
    },
    subcommands: &[],
};

/// Returns the argument as the name of a session, if it is valid. An empty name removes the current one.
pub(in crate::commands::connection) fn plain_name(name: &[u8]) -> Result<String> {
    plain(name).ok_or_else(|| {
        CommandError::text(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        )
    })
}

/// Returns the argument as text if it consists of visible ASCII characters, so that a line of CLIENT LIST can contain
/// it.
fn plain(word: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(word).ok()?;
    text.bytes().all(|byte| byte.is_ascii_graphic()).then(|| text.to_owned())
}

pub(super) const SETINFO: Command = Command {
    spec: Spec {
        name: "setinfo",
        summary: "Sets the name or version of the client library of the connection.",
        since: "7.2.0",
        arity: 4,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        args: &[Arg::one_of(
            "attr",
            &[Arg::string("libname").after("LIB-NAME"), Arg::string("libver").after("LIB-VER")],
        )],
        ..ROW
    },
    run: set_info,
    subcommands: &[],
};

fn set_info(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (attribute, value) = (args.bytes()?, args.bytes()?);
    let is_name = attribute.eq_ignore_ascii_case(b"LIB-NAME");
    if !is_name && !attribute.eq_ignore_ascii_case(b"LIB-VER") {
        return Err(CommandError::text_around("ERR Unrecognized option '", attribute, "'"));
    }
    let value = plain(value).ok_or_else(|| {
        let after = " cannot contain spaces, newlines or special characters.";
        CommandError::text_around("ERR ", attribute, after)
    })?;
    call.session.record.edit_texts(|texts| {
        if is_name {
            texts.lib_name = value;
        } else {
            texts.lib_version = value;
        }
    });
    Ok(call.reply.ok())
}
