//! The subscribed mode: the replies to subscription commands, and waiting for messages while the user may type the next
//! command at any moment.

use super::{Loudness, Session, Told};
use crate::format::Output;
use crate::link::{LinkError, Woken};
use crate::screen;
use brisk_resp::Value;
use rustix::stdio;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};

const INVITATION: &str = "Reading messages... (press Ctrl-C to quit or any key to type command)\r";
/// Takes the invitation away again.
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

/// The kind of a message to subscribers, such as `message` or `psubscribe`; `None` if it is none.
pub(super) fn kind_of(value: &Value, speaks_resp3: bool) -> Option<&[u8]> {
    let parts = match value {
        Value::Push(parts) if speaks_resp3 => parts,
        Value::Array(parts) if !speaks_resp3 => parts,
        _ => return None,
    };
    let [Value::Bulk(kind), _, _, ..] = parts.as_slice() else { return None };
    (kind.ends_with(b"message") || kind.ends_with(b"subscribe")).then_some(kind.as_slice())
}

/// A terminal on which every key counts at once and is not shown; as it was when this is dropped.
struct EveryKey(Option<Termios>);

impl EveryKey {
    fn counts() -> EveryKey {
        let Ok(before) = termios::tcgetattr(stdio::stdin()) else { return EveryKey(None) };
        let mut now = before.clone();
        now.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
        // If the terminal rejects this, typed characters are shown.
        let _ = termios::tcsetattr(stdio::stdin(), OptionalActions::Now, &now);
        EveryKey(Some(before))
    }
}

impl Drop for EveryKey {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // A terminal that is gone needs nothing. The key that was pressed belongs to the next line.
            let _ = termios::tcsetattr(stdio::stdin(), OptionalActions::Now, before);
        }
    }
}

impl Session {
    /// Reports whether messages may come at any time.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.is_subscribed
    }

    /// Prints messages until there is something to read on standard input.
    pub(crate) fn messages_until_input(&mut self) {
        let invites = self.options.output != Output::Raw && screen::is_for_people();
        let is_colourful = invites && screen::is_colourful();
        let _every_key = EveryKey::counts();
        self.awaits_reply = false;
        while self.is_subscribed {
            if invites {
                screen::print(match is_colourful {
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

    /// Prints messages until the connection ends, for who cannot type.
    ///
    /// # Errors
    /// It has ended, as it does sooner or later.
    pub(crate) fn messages(&mut self) -> Result<(), Told> {
        self.awaits_reply = false;
        while self.is_subscribed {
            if let Err(error) = self.read_reply(false) {
                return Err(self.dropped(&error));
            }
        }
        Ok(())
    }

    /// Goes on with a connection that is free of subscriptions.
    pub(crate) fn leave_subscription(&mut self) {
        self.is_subscribed = false;
        // A failure has been reported, and the prompt shows it.
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
