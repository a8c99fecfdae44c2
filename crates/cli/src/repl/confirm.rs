//! Commands at the prompt that need a confirmation, because they delete everything or block the server.

use crate::amount::counted;
use crate::session::Session;

/// The number of keys from which KEYS is dangerous.
const KEYS_MIN: u64 = 100_000;

/// The question about a command; `None` if it needs no confirmation.
pub(super) fn question(session: &mut Session, words: &[Vec<u8>]) -> Option<String> {
    let name = words.first()?.to_ascii_lowercase();
    if session.options.yes || !session.is_connected() {
        return None;
    }
    // In a transaction, DBSIZE would be queued.
    let keys = match session.is_in_transaction() || session.is_subscribed() {
        true => None,
        false => session
            .request(&["DBSIZE"])
            .ok()
            .and_then(|reply| u64::try_from(reply.as_integer()?).ok()),
    };
    let which = keys.map_or_else(|| "all keys".to_owned(), |keys| counted(keys, "key"));
    Some(match name.as_slice() {
        b"flushall" => "FLUSHALL deletes the keys of all databases. Continue? [y/N] ".to_owned(),
        b"flushdb" => format!("FLUSHDB deletes {which} of this database. Continue? [y/N] "),
        b"keys" if keys.is_some_and(|keys| keys > KEYS_MIN) => {
            format!("KEYS reads {which} and blocks the server for this time. Continue? [y/N] ")
        }
        _ => return None,
    })
}

/// Reports whether a command may need a confirmation.
pub(super) fn may_apply(words: &[Vec<u8>]) -> bool {
    let names: [&[u8]; 3] = [b"flushall", b"flushdb", b"keys"];
    words.first().is_some_and(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
}

/// Reports whether an answer means yes.
pub(super) fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
