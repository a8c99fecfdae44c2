//! How a request affects the connection that carries it, determined from its arguments when it is sent.
//!
//! The name that a caller wrote is not enough: `raw("CLIENT").arg("REPLY").arg("SKIP")` is the same command as
//! `raw("CLIENT REPLY").arg("SKIP")`, and `XREAD` blocks only with `BLOCK`. The server sees only arguments, so the
//! arguments decide here, too.

use crate::commands::{BINDING, BLOCKING};

/// How a request affects its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// True if the server may delay the reply until other clients act.
    pub(crate) blocks: bool,
    /// True if the request changes the state of the connection, or depends on it.
    pub(crate) binds: bool,
    /// True if the server does not send exactly one reply to this request, or to later ones, so that replies would go
    /// to the wrong callers.
    pub(crate) unpaired: bool,
}

/// Commands whose effects depend on further arguments.
const BY_ARGUMENTS: &[&str] = &["CLIENT", "REPLCONF", "SCRIPT", "XREAD", "XREADGROUP"];
/// `CLIENT` followed by one of these leaves the connection as it is. Any other subcommand is assumed to change the
/// connection, because later server versions add subcommands such as `CLIENT IMPORT-SOURCE`.
const CLIENT_PLAIN: &[&str] = &[
    "GETNAME",
    "GETREDIR",
    "HELP",
    "ID",
    "INFO",
    "KILL",
    "LIST",
    "PAUSE",
    "TRACKINGINFO",
    "UNBLOCK",
    "UNPAUSE",
];
/// The server replies to these with messages, with more than one reply, or in another protocol.
const UNPAIRED: &[&str] = &[
    "MONITOR",
    "PSUBSCRIBE",
    "PSYNC",
    "PUNSUBSCRIBE",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "SUNSUBSCRIBE",
    "SYNC",
    "UNSUBSCRIBE",
];

/// The server sends no reply to `REPLCONF` with one of these options.
const REPLCONF_WITHOUT_REPLY: &[&str] = &["ACK", "GETACK"];

/// The longest name in the tables; a longer one has no effects.
const NAME_MAX: usize = 15;
/// For each name length, the first letters of the names above with that length: one bit per letter.
const FIRST_LETTERS: [u32; NAME_MAX + 1] =
    with(with(with([0; NAME_MAX + 1], BINDING), BLOCKING), BY_ARGUMENTS);

const fn with(mut letters: [u32; NAME_MAX + 1], names: &[&str]) -> [u32; NAME_MAX + 1] {
    let mut at = 0;
    while at < names.len() {
        let name = names[at].as_bytes();
        let mut len = 0;
        while len < name.len() && name[len] != b' ' {
            len += 1;
        }
        letters[len] |= 1 << (name[0] & 31);
        at += 1;
    }
    letters
}

/// The effects of a request with these arguments, name first. O(1) for most commands, else O(arguments).
#[inline]
pub(crate) fn effects<'a>(mut arguments: impl Iterator<Item = &'a [u8]>) -> Effects {
    let name = arguments.next().unwrap_or_default();
    let letters = FIRST_LETTERS.get(name.len()).copied().unwrap_or_default();
    let first = name.first().copied().unwrap_or_default();
    if letters & (1 << (first & 31)) == 0 {
        return Effects::default();
    }
    of_named(name, arguments)
}

fn of_named<'a>(name: &[u8], mut arguments: impl Iterator<Item = &'a [u8]>) -> Effects {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if is("CLIENT") {
        let Some(subcommand) = arguments.next() else { return Effects::default() };
        let replies = is_in(&["REPLY"], subcommand)
            && !arguments.next().is_some_and(|mode| is_in(&["ON"], mode));
        let binds = !is_in(CLIENT_PLAIN, subcommand);
        return Effects { binds, unpaired: replies, ..Effects::default() };
    }
    if is("SCRIPT") {
        let binds = arguments.next().is_some_and(|subcommand| is_in(&["DEBUG"], subcommand));
        return Effects { binds, ..Effects::default() };
    }
    if is("REPLCONF") {
        // Options and values alternate.
        let unpaired = arguments.step_by(2).any(|option| is_in(REPLCONF_WITHOUT_REPLY, option));
        return Effects { binds: true, unpaired, ..Effects::default() };
    }
    if is("XREAD") || is("XREADGROUP") {
        return Effects { blocks: block_millis(arguments).is_some(), ..Effects::default() };
    }
    Effects {
        blocks: is_in(BLOCKING, name),
        binds: is_in(BINDING, name),
        unpaired: is_in(UNPAIRED, name),
    }
}

fn is_in(names: &[&str], name: &[u8]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The argument of `BLOCK` among the options of XREAD and XREADGROUP. A group's name may be the same as an option's.
pub(crate) fn block_millis<'a>(mut arguments: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    let mut found = None;
    while let Some(option) = arguments.next() {
        match option {
            _ if is_in(&["STREAMS"], option) => break,
            // The last one counts, as on the server.
            _ if is_in(&["BLOCK"], option) => found = Some(arguments.next().unwrap_or_default()),
            _ if is_in(&["COUNT"], option) => _ = arguments.next(),
            _ if is_in(&["GROUP"], option) => _ = (arguments.next(), arguments.next()),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Effects {
        effects(text.split(' ').map(str::as_bytes))
    }

    #[test]
    fn every_name_that_binds_or_blocks_is_found_in_any_letter_case() {
        for name in BINDING {
            for name in [(*name).to_owned(), name.to_lowercase()] {
                assert!(of(&name).binds && of(&format!("{name} x")).binds, "{name}");
            }
        }
        for name in BLOCKING {
            assert!(of(name).blocks && of(&name.to_lowercase()).blocks, "{name}");
        }
        for name in UNPAIRED {
            assert!(of(name).binds && of(name).unpaired && of(&name.to_lowercase()).unpaired);
        }
    }

    #[test]
    fn a_subcommand_of_client_that_is_not_known_binds() {
        for plain in CLIENT_PLAIN {
            assert!(!BINDING.contains(&&*format!("CLIENT {plain}")), "{plain}");
            assert_eq!(of(&format!("client {}", plain.to_lowercase())), Effects::default());
        }
        assert!(of("CLIENT IMPORT-SOURCE ON").binds);
        assert_eq!(of("CLIENT"), Effects::default());
    }

    #[test]
    fn client_reply_is_unpaired_unless_its_argument_is_on() {
        for text in ["CLIENT REPLY OFF", "client reply skip", "Client Reply", "CLIENT REPLY x"] {
            assert!(of(text).unpaired && of(text).binds, "{text}");
        }
        assert!(!of("CLIENT REPLY on").unpaired && of("CLIENT REPLY on").binds);
    }

    #[test]
    fn replconf_with_an_acknowledgement_gets_no_reply() {
        for text in [
            "REPLCONF ACK 5",
            "replconf getack *",
            "REPLCONF ACK 5 FACK 5",
            "REPLCONF listening-port 7 ack 5",
        ] {
            assert_eq!(of(text), Effects { binds: true, unpaired: true, ..Effects::default() });
        }
        for text in ["REPLCONF", "REPLCONF listening-port 7", "REPLCONF capa ack"] {
            assert_eq!(of(text), Effects { binds: true, ..Effects::default() }, "{text}");
        }
    }

    #[test]
    fn xread_blocks_only_with_the_option_block() {
        for text in [
            "XREAD BLOCK 0 STREAMS k $",
            "xread count 3 block 5 streams k 0",
            "XREADGROUP GROUP g c BLOCK 0 STREAMS k >",
            "XREADGROUP GROUP STREAMS BLOCK BLOCK 7 STREAMS k >",
            "XREAD COUNT BLOCK BLOCK 1 STREAMS k 0",
            "XREAD BLOCK",
        ] {
            assert_eq!(of(text), Effects { blocks: true, ..Effects::default() }, "{text}");
        }
        for text in [
            "XREAD STREAMS BLOCK 0",
            "XREAD COUNT BLOCK STREAMS k 0",
            "XREADGROUP GROUP BLOCK BLOCK STREAMS k >",
            "XREADGROUP GROUP BLOCK 5 COUNT 1 NOACK STREAMS k >",
        ] {
            assert_eq!(of(text), Effects::default(), "{text}");
        }
    }

    #[test]
    fn other_commands_have_no_effects_on_their_connection() {
        let long = "X".repeat(40);
        for text in ["", "GET k", "SET SELECT MULTI", "SCRIPT LOAD DEBUG", "SCRIPT", "PING", &long]
        {
            assert_eq!(of(text), Effects::default(), "{text}");
        }
        assert!(of("SCRIPT DEBUG YES").binds);
    }
}
