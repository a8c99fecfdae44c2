//! A published message, which is encoded once for all subscribers and both protocols.

use super::Space;
use brisk_reactor::OutputBytes;
use brisk_resp::Protocol;
use brisk_resp::reply::encode;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// A message and its destinations.
///
/// ```text
/// *3 $7 message  $4 news  $5 hello          for channel subscribers with RESP2
/// >3 $7 message  $4 news  $5 hello          with RESP3: another first byte
/// *4 $8 pmessage $2 n*  | $4 news  $5 hello   for subscribers of a pattern: another header
/// ```
#[derive(Debug)]
pub struct Publication {
    pub space: Space,
    /// The message for RESP2 subscribers of the channel.
    wire: Arc<OutputBytes>,
    /// The start of the part that is the same for subscribers of patterns.
    tail: usize,
    channel: Range<usize>,
    /// True if the channel itself has subscribers.
    pub to_channel: bool,
    /// The matching patterns that have subscribers.
    pub patterns: SmallVec<[Arc<[u8]>; 2]>,
}

impl Publication {
    /// Encodes a message. O(message length).
    pub fn new(
        space: Space,
        channel: &[u8],
        payload: &[u8],
        to_channel: bool,
        patterns: SmallVec<[Arc<[u8]>; 2]>,
    ) -> Publication {
        const FRAMING_BYTES_MAX: usize = 64;
        let mut wire = Vec::with_capacity(channel.len() + payload.len() + FRAMING_BYTES_MAX);
        let word: &[u8] = if space == Space::ShardChannel { b"smessage" } else { b"message" };
        encode::array(&mut wire, 3);
        encode::bulk(&mut wire, word);
        let tail = wire.len();
        encode::bulk(&mut wire, channel);
        let end = wire.len() - b"\r\n".len();
        encode::bulk(&mut wire, payload);
        let channel = end - channel.len()..end;
        Publication { space, wire: Arc::new(wire.into()), tail, channel, to_channel, patterns }
    }

    pub fn channel(&self) -> &[u8] {
        &self.wire[self.channel.clone()]
    }

    /// The number of bytes of the message on the wire.
    pub fn wire_bytes(&self) -> usize {
        self.wire.len()
    }

    /// The message for subscribers of the channel, with the first byte for RESP2.
    pub fn wire(&self) -> &Arc<OutputBytes> {
        &self.wire
    }

    /// The offset in [`Publication::wire`] of the part that follows the header for a pattern.
    pub fn tail(&self) -> usize {
        self.tail
    }
}

/// The header before [`Publication::tail`] for subscribers of a pattern, for RESP2.
pub(super) fn pattern_head(pattern: &[u8]) -> Box<[u8]> {
    let mut head = Vec::new();
    encode::array(&mut head, 4);
    encode::bulk(&mut head, b"pmessage");
    encode::bulk(&mut head, pattern);
    head.into()
}

/// The first byte of a message.
pub const fn sigil(protocol: Protocol) -> &'static [u8; 1] {
    match protocol {
        Protocol::Resp2 => b"*",
        Protocol::Resp3 => b">",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_knows_its_channel_and_is_encoded_for_the_wire() {
        let message = Publication::new(Space::Channel, b"news", b"hello", true, SmallVec::new());
        assert_eq!(message.channel(), b"news");
        let wire = b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n";
        assert_eq!(message.wire()[..], wire[..]);
        let tail = &message.wire()[message.tail()..];
        assert_eq!(tail, b"$4\r\nnews\r\n$5\r\nhello\r\n");
        assert_eq!(&*pattern_head(b"n*"), b"*4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n");
    }
}
