//! The subscribed mode: the replies to subscription commands, and waiting for messages while the user may type the next
//! command at any moment.

use super::{AlreadyReported, Loudness, Session};
use crate::format::Output;
use crate::link::{LinkError, Woken};
use crate::screen;
use brisk_resp::Value;
use rustix::stdio;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};

const INVITATION: &str = "Reading messages... (press Ctrl-C to quit or any key to type command)\r";
/// Erases the "Reading messages" line.
const ERASE: &str = "\x1b[K";

/// The kind of a command whose reply is one message for each of its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subscription {
    Begins,
    Ends,
}

impl Subscription {
    /// The effect of a command, whose name is in lower case.
    pub(super) fn of(command: &[u8]) -> Option<Subscription> {
        match command {
            b"subscribe" | b"psubscribe" | b"ssubscribe" => Some(Subscription::Begins),
            b"unsubscribe" | b"punsubscribe" | b"sunsubscribe" => Some(Subscription::Ends),
            _ => None,
        }
    }
}

/// The kind of a message to subscribers, such as `message` or `psubscribe`; `None` if the value is not such a message.
pub(super) fn kind_of(value: &Value, speaks_resp3: bool) -> Option<&[u8]> {
    let parts = match value {
        Value::Push(parts) if speaks_resp3 => parts,
        Value::Array(parts) if !speaks_resp3 => parts,
        _ => return None,
    };
    let [Value::Bulk(kind), _, _, ..] = parts.as_slice() else { return None };
    (kind.ends_with(b"message") || kind.ends_with(b"subscribe")).then_some(kind.as_slice())
}

/// Sets the terminal so that each key is available immediately and is not shown. Dropping the value restores the
/// terminal.
struct EveryKey(Option<Termios>);

impl EveryKey {
    fn counts() -> EveryKey {
        let Ok(before) = termios::tcgetattr(stdio::stdin()) else { return EveryKey(None) };
        let mut now = before.clone();
        now.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
        // If this fails, typed characters are shown.
        let _ = termios::tcsetattr(stdio::stdin(), OptionalActions::Now, &now);
        EveryKey(Some(before))
    }
}

impl Drop for EveryKey {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // If the terminal is gone, there is nothing to restore. The input is not flushed, because the pressed key
            // belongs to the next line.
            let _ = termios::tcsetattr(stdio::stdin(), OptionalActions::Now, before);
        }
    }
}

impl Session {
    /// Reports whether messages may arrive at any time.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.is_subscribed
    }

    /// Prints messages until standard input is readable.
    pub(crate) fn messages_until_input(&mut self) {
        let invites = self.options.output != Output::Raw && screen::is_for_people();
        let is_colorful = invites && screen::is_colorful();
        let _every_key = EveryKey::counts();
        self.awaits_reply = false;
        while self.is_subscribed {
            if invites {
                screen::print(match is_colorful {
                    true => format!("\x1b[1;90m{INVITATION}\x1b[0m"),
                    false => INVITATION.to_owned(),
                });
            }
            screen::flush();
            let woken =
                self.link.as_mut().ok_or(LinkError::Closed).and_then(|link| link.wait_or_input());
            if invites {
                screen::print(ERASE);
            }
            let failed = match woken {
                Ok(Woken::Input) => return screen::flush(),
                Ok(Woken::Link) => self.read_reply(false).err(),
                Err(error) => Some(error),
            };
            match failed {
                None => {}
                Some(LinkError::Interrupted) => return self.leave_subscription(),
                Some(error) => drop(self.dropped(&error)),
            }
        }
    }

    /// Prints messages until the connection ends, if there is no interactive input.
    ///
    /// # Errors
    /// Always, when the connection has ended.
    pub(crate) fn messages(&mut self) -> Result<(), AlreadyReported> {
        self.awaits_reply = false;
        while self.is_subscribed {
            if let Err(error) = self.read_reply(false) {
                return Err(self.dropped(&error));
            }
        }
        Ok(())
    }

    /// Reconnects, so that the session continues without subscriptions.
    pub(crate) fn leave_subscription(&mut self) {
        self.is_subscribed = false;
        // A failure has been printed, and the prompt shows it.
        let _ = self.connect(Loudness::Loud);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_recognized_by_shape_and_protocol() {
        let parts = |kind: &str| {
            vec![
                Value::Bulk(kind.as_bytes().to_vec()),
                Value::Bulk(b"c".to_vec()),
                Value::Integer(1),
            ]
        };
        assert_eq!(kind_of(&Value::Push(parts("smessage")), true), Some(&b"smessage"[..]));
        assert_eq!(kind_of(&Value::Array(parts("message")), true), None);
        assert_eq!(kind_of(&Value::Array(parts("unsubscribe")), false), Some(&b"unsubscribe"[..]));
        assert_eq!(kind_of(&Value::Push(parts("invalidate")), true), None);
        assert_eq!(kind_of(&Value::Push(parts("message")[..2].to_vec()), true), None);
    }
}
