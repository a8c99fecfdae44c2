//! Keyspace notifications: a message on `__keyspace@0__:key` names the event, a message on `__keyevent@0__:event` names
//! the key.

use super::subscriptions::Confirmation;
use super::{Message, Subscriber};
use bytes::Bytes;

const KEYSPACE: &[u8] = b"__keyspace@";
const KEYEVENT: &[u8] = b"__keyevent@";

/// A keyspace notification; [`Message::keyspace_event`] returns it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct KeyspaceEvent {
    /// The database.
    pub db: u32,
    /// The key.
    pub key: Bytes,
    /// The event, as the server names it: `set`, `del`, `expired`, `hset` …
    pub event: String,
}

impl Message {
    /// Returns the keyspace notification in this message, if it is one. Any client with the permission to publish can
    /// publish a message that looks the same.
    #[must_use]
    pub fn keyspace_event(&self) -> Option<KeyspaceEvent> {
        let is_of_key = self.channel.starts_with(KEYSPACE);
        if !is_of_key && !self.channel.starts_with(KEYEVENT) {
            return None;
        }
        // Both prefixes have the same length. A key may contain any bytes, but the database number contains no `_`.
        let end = self.channel.iter().skip(KEYSPACE.len()).position(|byte| *byte == b'_')?;
        let (begin, end) = (KEYSPACE.len(), KEYSPACE.len() + end);
        let db = std::str::from_utf8(self.channel.get(begin..end)?).ok()?.parse().ok()?;
        if self.channel.get(end..end + 3)? != b"__:" {
            return None;
        }
        let name = self.channel.slice(end + 3..);
        let (key, event) = match is_of_key {
            true => (name, &self.payload),
            false => (self.payload.clone(), &name.clone()),
        };
        Some(KeyspaceEvent { db, key, event: String::from_utf8_lossy(event).into_owned() })
    }
}

impl Subscriber {
    /// Subscribes to the events of keys in a database that match a pattern. Each message is a [`KeyspaceEvent`].
    ///
    /// The server publishes these messages only if its directive `notify-keyspace-events` contains `K` and letters for
    /// the kinds of events (`KA` covers nearly all of them). It publishes `expired` when it removes the key, which may
    /// be after the expiry time. Events that occur while the connection is lost are missed. In a cluster, each node
    /// publishes only the events of its own keys.
    ///
    /// ```no_run
    /// # async fn example(db: brisk::Client) -> brisk::Result<()> {
    /// let mut events = db.subscriber().await?;
    /// events.keyspace_events(0, "session:*").await?;
    /// while let Some(event) = events.next().await {
    ///     // The other events report that messages may be missing.
    ///     if let brisk::Event::Message(message) = event
    ///         && let Some(event) = message.keyspace_event()
    ///     {
    ///         println!("{:?}: {}", event.key, event.event);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn keyspace_events(&self, db: u32, pattern: impl AsRef<[u8]>) -> Confirmation<'_> {
        self.psubscribe([channel(KEYSPACE, db, pattern.as_ref())])
    }

    /// Subscribes to one kind of event, for example `expired`, or to the kinds of events that match a pattern, for all
    /// keys. Like [`Subscriber::keyspace_events`], except that the letter in the directive is `E`.
    pub fn key_events(&self, db: u32, event: impl AsRef<[u8]>) -> Confirmation<'_> {
        self.psubscribe([channel(KEYEVENT, db, event.as_ref())])
    }
}

fn channel(begin: &[u8], db: u32, end: &[u8]) -> Bytes {
    [begin, db.to_string().as_bytes(), b"__:", end].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(channel: &str, payload: &str) -> Option<(u32, String, String)> {
        let (channel, payload) = (channel.to_owned().into(), payload.to_owned().into());
        let event = Message { channel, pattern: None, payload }.keyspace_event()?;
        Some((event.db, String::from_utf8(event.key.to_vec()).unwrap(), event.event))
    }

    #[test]
    fn both_kinds_of_channels_give_the_same_event_and_other_channels_none() {
        let expected = Some((12, "a__:b".to_owned(), "set".to_owned()));
        assert_eq!(event("__keyspace@12__:a__:b", "set"), expected);
        assert_eq!(event("__keyevent@12__:set", "a__:b"), expected);
        assert_eq!(event("__keyspace@0__:", "del"), Some((0, String::new(), "del".to_owned())));
        for channel in [
            "news",
            "__keyspace@",
            "__keyspace@0",
            "__keyspace@0_",
            "__keyspace@x__:k",
            "__keyspace@0__k",
        ] {
            assert_eq!(event(channel, "set"), None, "{channel}");
        }
    }
}
