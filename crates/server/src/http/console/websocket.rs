//! The WebSocket protocol (RFC 6455), from the server's side: the handshake, and frames in both directions.

use brisk_structures::base64;
use brisk_structures::sha1::sha1;

/// The maximum size of a message from a browser in bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// The maximum size of the payload of a control frame in bytes (RFC 6455, section 5.5).
const CONTROL_BYTES_MAX: usize = 125;
/// Every server appends this constant to the key of a handshake (RFC 6455, section 1.3).
const HANDSHAKE_ID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Returns the value of `Sec-WebSocket-Accept` for a key.
pub(super) fn accept_value(key: &str) -> String {
    base64::encode(&sha1(&[key.as_bytes(), HANDSHAKE_ID].concat()))
}

/// Reports whether a key has the form that RFC 6455 requires: 16 bytes in base64.
pub(super) fn is_key(key: &str) -> bool {
    base64::decode(key).is_some_and(|bytes| bytes.len() == 16)
}

/// A complete message or control frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong,
    Close,
}

/// The reason why a connection must be closed, with its status code (RFC 6455, section 7.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Violation {
    Protocol,
    TooBig,
}

impl Violation {
    pub(super) fn status(self) -> u16 {
        match self {
            Violation::Protocol => 1002,
            Violation::TooBig => 1009,
        }
    }
}

/// Joins the frames of a connection to messages.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The kind and the payload so far of a message whose last frame has not arrived.
    fragments: Option<(u8, Vec<u8>)>,
}

impl Decoder {
    /// Takes the next message from the front of `input`. Returns it with the number of bytes that its last frame took;
    /// `None` for a message while its last frame is incomplete. O(bytes of the frame).
    ///
    /// # Errors
    /// The client violates the protocol, or the message is longer than [`MESSAGE_BYTES_MAX`].
    pub(super) fn cut(
        &mut self,
        input: &[u8],
    ) -> Result<Option<(Option<Message>, usize)>, Violation> {
        let Some(frame) = Frame::parse(input)? else { return Ok(None) };
        let held = self.fragments.as_ref().map_or(0, |(_, bytes)| bytes.len());
        if !frame.is_control() && frame.length > MESSAGE_BYTES_MAX - held {
            return Err(Violation::TooBig);
        }
        let Some(masked) = input.get(frame.head..frame.head + frame.length) else {
            return Ok(None);
        };
        let payload: Vec<u8> =
            masked.iter().zip(frame.mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        let message = self.join(&frame, payload)?;
        Ok(Some((message, frame.head + frame.length)))
    }

    fn join(&mut self, frame: &Frame, payload: Vec<u8>) -> Result<Option<Message>, Violation> {
        let (kind, payload) = match (frame.opcode, self.fragments.take()) {
            (CLOSE | PING | PONG, fragments) => {
                self.fragments = fragments;
                return Ok(Some(match frame.opcode {
                    CLOSE => Message::Close,
                    PING => Message::Ping(payload),
                    _ => Message::Pong,
                }));
            }
            (TEXT | BINARY, None) => (frame.opcode, payload),
            (CONTINUATION, Some((kind, mut bytes))) => {
                bytes.extend_from_slice(&payload);
                (kind, bytes)
            }
            _ => return Err(Violation::Protocol),
        };
        if !frame.is_last {
            self.fragments = Some((kind, payload));
            return Ok(None);
        }
        Ok(Some(if kind == TEXT { Message::Text(payload) } else { Message::Binary(payload) }))
    }
}

/// The head of a frame.
struct Frame {
    is_last: bool,
    opcode: u8,
    mask: [u8; 4],
    /// Size of the head in bytes.
    head: usize,
    /// Size of the payload in bytes.
    length: usize,
}

impl Frame {
    fn is_control(&self) -> bool {
        self.opcode >= CLOSE
    }

    /// Parses the head of a frame; `None` if it is incomplete.
    fn parse(input: &[u8]) -> Result<Option<Frame>, Violation> {
        let [first, second, rest @ ..] = input else { return Ok(None) };
        let (is_last, opcode) = (first & 0x80 != 0, first & 0x0F);
        // Reserved bits belong to extensions, and none was agreed on. Frames of a client are masked.
        if first & 0x70 != 0 || second & 0x80 == 0 {
            return Err(Violation::Protocol);
        }
        if !matches!(opcode, CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG) {
            return Err(Violation::Protocol);
        }
        let (length, extended) = match second & 0x7F {
            126 => match rest {
                [a, b, ..] => (usize::from(u16::from_be_bytes([*a, *b])), 2),
                _ => return Ok(None),
            },
            127 => match rest {
                [a, b, c, d, e, f, g, h, ..] => {
                    let length = u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
                    (usize::try_from(length).map_err(|_| Violation::TooBig)?, 8)
                }
                _ => return Ok(None),
            },
            short => (usize::from(short), 0),
        };
        if opcode >= CLOSE && (length > CONTROL_BYTES_MAX || !is_last) {
            return Err(Violation::Protocol);
        }
        if length > MESSAGE_BYTES_MAX {
            return Err(Violation::TooBig);
        }
        let Some([a, b, c, d]) = rest.get(extended..extended + 4) else { return Ok(None) };
        let head = 2 + extended + 4;
        Ok(Some(Frame { is_last, opcode, mask: [*a, *b, *c, *d], head, length }))
    }
}

/// A binary message as bytes to send.
pub(super) fn binary(payload: &[u8]) -> Vec<u8> {
    frame(BINARY, payload)
}

/// A text message as bytes to send.
pub(super) fn text(payload: &str) -> Vec<u8> {
    frame(TEXT, payload.as_bytes())
}

/// A ping without payload.
pub(super) fn ping() -> Vec<u8> {
    frame(PING, b"")
}

/// The reply to a ping.
pub(super) fn pong(payload: &[u8]) -> Vec<u8> {
    frame(PONG, payload)
}

/// The frame that ends a connection.
pub(super) fn close(status: u16) -> Vec<u8> {
    frame(CLOSE, &status.to_be_bytes())
}

/// A frame with a whole message.
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 10);
    out.push(0x80 | opcode);
    match payload.len() {
        short @ ..=125 => out.push(short as u8),
        length => match u16::try_from(length) {
            Ok(length) => {
                out.push(126);
                out.extend_from_slice(&length.to_be_bytes());
            }
            Err(_) => {
                out.push(127);
                out.extend_from_slice(&(length as u64).to_be_bytes());
            }
        },
    }
    out.extend_from_slice(payload);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of a client, with a mask.
    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = frame(first & 0x0F, payload);
        bytes[0] = first;
        bytes[1] |= 0x80;
        let head = bytes.len() - payload.len();
        let mask = [7, 1, 250, 99];
        for (byte, mask) in bytes[head..].iter_mut().zip(mask.iter().cycle()) {
            *byte ^= mask;
        }
        bytes.splice(head..head, mask);
        bytes
    }

    #[test]
    fn a_handshake_is_accepted_as_in_the_example_of_the_rfc() {
        assert_eq!(accept_value("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(is_key("dGhlIHNhbXBsZSBub25jZQ=="));
        for key in ["", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ===", "a b"] {
            assert!(!is_key(key), "{key}");
        }
    }

    #[test]
    fn frames_are_decoded_as_in_the_examples_of_the_rfc() {
        let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        let mut decoder = Decoder::default();
        for end in 0..hello.len() {
            assert_eq!(decoder.cut(&hello[..end]), Ok(None));
        }
        let message = Message::Text(b"Hello".to_vec());
        assert_eq!(decoder.cut(&hello), Ok(Some((Some(message), hello.len()))));
        // Sections 5.5.2 and 5.7.
        assert_eq!(pong(b"Hello"), [0x8a, 5, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
        assert_eq!(text("Hello"), [0x81, 5, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
        assert_eq!(binary(&[0; 256])[..4], [0x82, 0x7e, 1, 0]);
        assert_eq!(binary(&[0; 65_536])[..10], [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn fragments_are_joined_and_control_frames_may_come_between() {
        let mut decoder = Decoder::default();
        let mut cut = |bytes: Vec<u8>| decoder.cut(&bytes).unwrap().unwrap().0;
        assert_eq!(cut(masked(BINARY, b"ab")), None);
        assert_eq!(cut(masked(0x80 | PING, b"x")), Some(Message::Ping(b"x".to_vec())));
        assert_eq!(cut(masked(CONTINUATION, b"cd")), None);
        assert_eq!(cut(masked(0x80 | CONTINUATION, b"")), Some(Message::Binary(b"abcd".to_vec())));
        assert_eq!(cut(masked(0x80 | CLOSE, b"\x03\xe8")), Some(Message::Close));
    }

    #[test]
    fn violations_of_the_protocol_are_errors() {
        let error = |bytes: &[u8]| Decoder::default().cut(bytes).unwrap_err();
        assert_eq!(error(&[0x81, 5, b'H']), Violation::Protocol, "not masked");
        assert_eq!(error(&masked(0xC1, b"a")), Violation::Protocol, "a reserved bit");
        assert_eq!(error(&masked(0x83, b"a")), Violation::Protocol, "a reserved opcode");
        assert_eq!(error(&masked(0x80, b"a")), Violation::Protocol, "continues nothing");
        assert_eq!(error(&masked(PING, b"a")), Violation::Protocol, "a fragment of a ping");
        assert_eq!(error(&masked(0x89, &[0; 126])), Violation::Protocol, "a long ping");
        // The size is rejected before the payload arrives.
        assert_eq!(error(&masked(0x82, &vec![0; MESSAGE_BYTES_MAX + 1])[..14]), Violation::TooBig);
        assert_eq!(error(&[0x82, 0xFF, 255, 255, 255, 255, 255, 255, 255, 255]), Violation::TooBig);
        let mut decoder = Decoder::default();
        let most = masked(BINARY, &vec![0; MESSAGE_BYTES_MAX]);
        assert_eq!(decoder.cut(&most), Ok(Some((None, most.len()))));
        assert_eq!(decoder.cut(&masked(0x80, b"a")), Err(Violation::TooBig));
        let mut decoder = Decoder::default();
        decoder.cut(&masked(TEXT, b"a")).unwrap();
        assert_eq!(
            decoder.cut(&masked(0x81, b"a")),
            Err(Violation::Protocol),
            "not a continuation"
        );
    }

    #[test]
    fn any_bytes_are_decoded_without_harm() {
        let mut state = 3u64;
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..24)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33) as u8
                })
                .collect();
            let (mut decoder, mut at) = (Decoder::default(), 0);
            while let Ok(Some((_, length))) = decoder.cut(&bytes[at..]) {
                assert!(length > 0);
                at += length;
            }
        }
    }
}
