//! Requests that are not valid commands: unknown names, wrong numbers of arguments, keys that are too long, and HTTP.

use crate::core::Core;
use crate::core::call::ECHO_BYTES_MAX;
use crate::core::session::Session;
use brisk_engine::args::PreparedKey;
use brisk_engine::table::Row;
use brisk_engine::{Args, CommandError};
use brisk_structures::entry::KEY_LEN_MAX;

/// Finds what is wrong with the form of a request: its number of arguments, its subcommand, or the length of a key.
#[inline]
pub(crate) fn find_error(
    core: &Core,
    row: &'static Row,
    keys: &[PreparedKey],
    args: &Args<'_>,
) -> Option<CommandError> {
    misused(row, args).or_else(|| overlong(core, keys, args))
}

/// Checks the arity and whether the subcommand exists.
#[inline]
fn misused(row: &'static Row, args: &Args<'_>) -> Option<CommandError> {
    if names_no_subcommand(row, args) {
        let after = format!("'. Try {} HELP.", row.name.to_ascii_uppercase());
        let word = cut(args.argument(1), ECHO_BYTES_MAX);
        return Some(CommandError::text_around("ERR unknown subcommand '", word, &after));
    }
    if row.spec.arity_admits(args.argc()) {
        None
    } else {
        Some(CommandError::Arity(row.full_name().into()))
    }
}

/// Finds a key that is too long for any entry. With the default limit on the length of arguments, no key is too long.
#[inline]
fn overlong(core: &Core, keys: &[PreparedKey], args: &Args<'_>) -> Option<CommandError> {
    let most = core.config.clients.proto_max_bulk_len;
    let is_long = |key: &PreparedKey| args.argument(key.index as usize).len() > KEY_LEN_MAX;
    (most > KEY_LEN_MAX as u64 && keys.iter().any(is_long))
        .then(|| CommandError::text(format!("ERR keys are limited to {KEY_LEN_MAX} bytes")))
}

/// Reports whether an argument after the name of a container command is not one of its subcommands. Like an unknown
/// command, such a request is counted for no command.
#[inline]
pub(crate) fn names_no_subcommand(row: &Row, args: &Args<'_>) -> bool {
    row.is_container() && args.argc() > 1
}

#[cold]
pub(crate) fn unknown_command(args: &Args<'_>) -> CommandError {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(cut(args.argument(0), ECHO_BYTES_MAX));
    text.extend_from_slice(b"', with args beginning with: ");
    let begin = text.len();
    for word in args.arguments().skip(1) {
        let written = text.len() - begin;
        if written >= ECHO_BYTES_MAX {
            break;
        }
        text.push(b'\'');
        text.extend_from_slice(cut(word, ECHO_BYTES_MAX - written));
        text.extend_from_slice(b"' ");
    }
    CommandError::bytes(text)
}

/// The part of an argument that error messages repeat: at most `most` bytes, up to the first NUL.
fn cut(word: &[u8], most: usize) -> &[u8] {
    let word = &word[..word.len().min(most)];
    word.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Reports whether a command name looks like the beginning of a line in an HTTP request.
pub(crate) fn is_foreign_protocol(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:")
}

/// Closes the connection without a reply. If an attacker makes a browser send a request, the request must neither be
/// executed nor reveal anything.
#[cold]
pub(crate) fn refuse_foreign_protocol(core: &Core, session: &mut Session) {
    core.shared.log.warning(format_args!(
        "Possible SECURITY ATTACK detected: {} sent an HTTP request. It may come from a web \
         page that was made to reach this server. The connection is closed.",
        session.record.addr
    ));
    session.close_at_once();
}
