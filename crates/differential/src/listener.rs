//! A session that subscribes to channels while a stream runs. It must get the same messages from both servers.
//!
//! The session's calls are part of the stream. The number of replies depends on what is published, so the session sends
//! a marker after its calls and reads everything up to the reply to the marker.

use super::peer::Peer;
use anyhow::Result;
use brisk_testkit::random::Random;
use brisk_testkit::reply::Reply;

const CHANNELS: &[&str] = &["news", "news.one", "nws", "a", "b", "c", "{t}c", "weather", ""];
/// The patterns of subscriptions. None of them matches the channels of keyspace events, because the server chooses when
/// keys expire.
const PATTERNS: &[&str] = &["n*", "news.*", "n?ws", "[ab]", "[^a]", "?", "{t}*", "\\a", "weather"];
const MARK: &str = "no more to come";

/// The commands of a listener, each with its possible arguments.
const COMMANDS: &[(&str, &[&str])] = &[
    ("SUBSCRIBE", CHANNELS),
    ("SUBSCRIBE", CHANNELS),
    ("PSUBSCRIBE", PATTERNS),
    ("PSUBSCRIBE", PATTERNS),
    ("SSUBSCRIBE", CHANNELS),
    ("SSUBSCRIBE", CHANNELS),
    ("UNSUBSCRIBE", CHANNELS),
    ("PUNSUBSCRIBE", PATTERNS),
    ("SUNSUBSCRIBE", CHANNELS),
];

/// A channel to publish to.
pub fn channel(random: &mut Random) -> Vec<u8> {
    random.pick(CHANNELS).as_bytes().to_vec()
}

/// A command that subscribes or unsubscribes.
pub fn command(random: &mut Random) -> Vec<Vec<u8>> {
    let (name, pool) = random.pick(COMMANDS);
    let mut words = vec![name.as_bytes().to_vec()];
    for _ in 0..=random.below(3) {
        words.push(random.pick(pool).as_bytes().to_vec());
    }
    words
}

/// Sends `requests`, and returns everything received since the last call.
///
/// A server may serve the patterns of a session in any order, so the messages for patterns are returned after all
/// others, sorted by pattern.
///
/// # Errors
/// If the connection fails.
pub fn heard(peer: &mut Peer, requests: &[u8]) -> Result<Vec<Reply>> {
    peer.send(requests)?;
    peer.send(&brisk_testkit::words::encode(&["PING", MARK]))?;
    let mut heard = Vec::new();
    loop {
        let frame = peer.reply().map_err(anyhow::Error::msg)?;
        let is_mark = frame.ends_with(b"no more to come\r\n");
        let Ok(Some((reply, _))) = Reply::parse(frame) else { anyhow::bail!("half a reply") };
        if is_mark {
            break;
        }
        heard.push(reply);
    }
    heard.sort_by_key(pattern);
    Ok(heard)
}

/// The pattern for which a message was sent.
fn pattern(reply: &Reply) -> Option<String> {
    let parts = reply.elements();
    let by_pattern = parts.first().is_some_and(|kind| kind.text() == "pmessage");
    by_pattern.then(|| parts[1].text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pattern_catches_events() {
        let first = |pattern: &&&str| pattern.starts_with(['*', '_']);
        assert!(PATTERNS.iter().find(first).is_none());
    }
}
