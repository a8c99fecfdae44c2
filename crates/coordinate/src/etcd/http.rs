//! Reads HTTP/1.1 responses that arrive in pieces. No input makes the parser panic or makes it hold
//! more bytes than its limits allow. The grammar is RFC 9112; etcd's gateway uses chunks with
//! trailers.

/// Longest line of a head, of a chunk size or of a trailer in bytes.
const LINE_BYTES_MAX: usize = 8 << 10;
/// Maximum bytes of a head with its trailers. Those of etcd are below 1 KiB.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Maximum bytes of a body that have not been taken yet. This is enough for a list of 1,000 nodes
/// or statuses, and for one fragment of a watch, in base64.
pub(super) const BODY_BYTES_MAX: usize = 16 << 20;

/// A response that violates the grammar or a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum HttpError {
    #[error("the status line is not HTTP/1.1")]
    StatusLine,
    #[error("a header line is malformed")]
    Header,
    #[error("a line has more than {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    #[error("the head has more than {HEAD_BYTES_MAX} bytes")]
    HeadTooLong,
    #[error("Content-Length is malformed, repeated or contradicts Transfer-Encoding")]
    ContentLength,
    #[error("a transfer encoding other than chunked")]
    TransferEncoding,
    #[error("a chunk is malformed")]
    Chunk,
    #[error("the body has more than {BODY_BYTES_MAX} bytes")]
    BodyTooLong,
    #[error("the connection ended within a response")]
    Truncated,
}

/// The next part of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    StatusLine,
    Header,
    /// Bytes of a body with a known length.
    Body(u64),
    BodyUntilClose,
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer,
    Nothing,
}

/// One response.
#[derive(Debug)]
pub(super) struct ResponseParser {
    expected: Expected,
    line: Vec<u8>,
    head_bytes: usize,
    status: u16,
    content_length: Option<u64>,
    is_chunked: bool,
    keeps_alive: bool,
    body: Vec<u8>,
}

impl ResponseParser {
    pub(super) const fn new() -> ResponseParser {
        ResponseParser {
            expected: Expected::StatusLine,
            line: Vec::new(),
            head_bytes: 0,
            status: 0,
            content_length: None,
            is_chunked: false,
            keeps_alive: true,
            body: Vec::new(),
        }
    }

    /// The status, once the head is complete.
    pub(super) fn status(&self) -> Option<u16> {
        let is_head = matches!(self.expected, Expected::StatusLine | Expected::Header);
        (!is_head).then_some(self.status)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.expected == Expected::Nothing
    }

    /// True if the connection can carry another request.
    pub(super) fn keeps_alive(&self) -> bool {
        self.is_complete() && self.keeps_alive
    }

    /// The bytes of the body that have arrived; the caller may remove some from the front.
    pub(super) const fn body(&mut self) -> &mut Vec<u8> {
        &mut self.body
    }

    /// Takes bytes of the response; returns how many belong to it. O(bytes).
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<usize, HttpError> {
        let mut at = 0;
        while at < bytes.len() && self.expected != Expected::Nothing {
            let rest = &bytes[at..];
            at += match self.expected {
                Expected::Body(left) => {
                    let taken = self.take_body(rest, left)?;
                    let left = left - taken as u64;
                    self.expected =
                        if left == 0 { Expected::Nothing } else { Expected::Body(left) };
                    taken
                }
                Expected::ChunkData(left) => {
                    let taken = self.take_body(rest, left)?;
                    let left = left - taken as u64;
                    self.expected =
                        if left == 0 { Expected::ChunkEnd } else { Expected::ChunkData(left) };
                    taken
                }
                Expected::BodyUntilClose => self.take_body(rest, u64::MAX)?,
                _ => self.take_line(rest)?,
            };
        }
        Ok(at)
    }

    /// Must be called when the connection has ended.
    pub(super) fn end(&mut self) -> Result<(), HttpError> {
        self.keeps_alive = false;
        match self.expected {
            Expected::BodyUntilClose | Expected::Nothing => {
                self.expected = Expected::Nothing;
                Ok(())
            }
            _ => Err(HttpError::Truncated),
        }
    }

    fn take_body(&mut self, bytes: &[u8], left: u64) -> Result<usize, HttpError> {
        let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if self.body.len() + taken > BODY_BYTES_MAX {
            return Err(HttpError::BodyTooLong);
        }
        self.body.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn take_line(&mut self, bytes: &[u8]) -> Result<usize, HttpError> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |end| end + 1);
        if self.line.len() + taken > LINE_BYTES_MAX {
            return Err(HttpError::LineTooLong);
        }
        self.line.extend_from_slice(&bytes[..taken]);
        if end.is_some() {
            let mut line = std::mem::take(&mut self.line);
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            self.on_line(&line)?;
            line.clear();
            self.line = line;
        }
        Ok(taken)
    }

    fn on_line(&mut self, line: &[u8]) -> Result<(), HttpError> {
        if matches!(self.expected, Expected::StatusLine | Expected::Header | Expected::Trailer) {
            self.head_bytes += line.len() + 2;
            if self.head_bytes > HEAD_BYTES_MAX {
                return Err(HttpError::HeadTooLong);
            }
        }
        match self.expected {
            Expected::StatusLine => {
                self.status = status_of(line).ok_or(HttpError::StatusLine)?;
                self.keeps_alive = line.starts_with(b"HTTP/1.1");
                self.expected = Expected::Header;
            }
            Expected::Header if line.is_empty() => self.end_head()?,
            Expected::Header => self.on_header(line)?,
            Expected::ChunkSize => {
                let size = chunk_size_of(line).ok_or(HttpError::Chunk)?;
                self.expected =
                    if size == 0 { Expected::Trailer } else { Expected::ChunkData(size) };
            }
            Expected::ChunkEnd if line.is_empty() => self.expected = Expected::ChunkSize,
            Expected::ChunkEnd => return Err(HttpError::Chunk),
            // Trailers of the gateway say nothing that the body does not.
            Expected::Trailer if line.is_empty() => self.expected = Expected::Nothing,
            _ => {}
        }
        Ok(())
    }

    fn on_header(&mut self, line: &[u8]) -> Result<(), HttpError> {
        let colon = line.iter().position(|byte| *byte == b':').ok_or(HttpError::Header)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.is_empty() || name.iter().any(u8::is_ascii_whitespace) {
            return Err(HttpError::Header);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = number_of(value, 10).ok_or(HttpError::ContentLength)?;
            if self.content_length.is_some_and(|earlier| earlier != length) {
                return Err(HttpError::ContentLength);
            }
            self.content_length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(HttpError::TransferEncoding);
            }
            self.is_chunked = true;
        } else if name.eq_ignore_ascii_case(b"connection") && value.eq_ignore_ascii_case(b"close") {
            self.keeps_alive = false;
        }
        Ok(())
    }

    fn end_head(&mut self) -> Result<(), HttpError> {
        if self.is_chunked && self.content_length.is_some() {
            return Err(HttpError::ContentLength);
        }
        self.expected = match (self.status, self.content_length) {
            // Another response follows an interim one.
            (100..=199, _) => {
                self.content_length = None;
                self.is_chunked = false;
                Expected::StatusLine
            }
            (204 | 304, _) | (_, Some(0)) => Expected::Nothing,
            (_, Some(length)) if length > BODY_BYTES_MAX as u64 => {
                return Err(HttpError::BodyTooLong);
            }
            (_, Some(length)) => Expected::Body(length),
            _ if self.is_chunked => Expected::ChunkSize,
            _ => Expected::BodyUntilClose,
        };
        Ok(())
    }
}

/// The status of `HTTP/1.x NNN reason`.
fn status_of(line: &[u8]) -> Option<u16> {
    let rest = line.strip_prefix(b"HTTP/1.1 ").or_else(|| line.strip_prefix(b"HTTP/1.0 "))?;
    let (digits, rest) = rest.split_at_checked(3)?;
    let is_end = rest.first().is_none_or(|byte| *byte == b' ');
    let status = u16::try_from(number_of(digits, 10)?).ok()?;
    (is_end && (100..=599).contains(&status)).then_some(status)
}

/// The size in the line before a chunk; extensions after a semicolon are ignored.
fn chunk_size_of(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii_end();
    number_of(digits, 16).filter(|size| *size <= BODY_BYTES_MAX as u64)
}

/// Parses digits without a sign.
fn number_of(digits: &[u8], radix: u32) -> Option<u64> {
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    if digits.is_empty() || !digits.iter().all(is_digit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Responses of etcd 3.4.23, with shortened headers.
    const FIXED: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    const CHUNKED: &str = "HTTP/1.1 404 Not Found\r\nTrailer: Grpc-Trailer-Content-Type\r\n\
        Transfer-Encoding: chunked\r\n\r\n6\r\n{\"e\":1\r\n1\r\n}\r\n0\r\n\
        Grpc-Trailer-Content-Type: application/grpc\r\n\r\n";

    fn parse(input: &[u8], piece: usize) -> Result<ResponseParser, HttpError> {
        let mut parser = ResponseParser::new();
        for piece in input.chunks(piece) {
            parser.push(piece)?;
        }
        Ok(parser)
    }

    #[test]
    fn a_response_is_read_however_it_is_cut() {
        for piece in 1..CHUNKED.len() {
            let mut parser = parse(FIXED.as_bytes(), piece).unwrap();
            assert_eq!((parser.status(), &parser.body()[..]), (Some(200), &b"{}"[..]));
            assert!(parser.keeps_alive());
            let mut parser = parse(CHUNKED.as_bytes(), piece).unwrap();
            assert_eq!((parser.status(), &parser.body()[..]), (Some(404), &b"{\"e\":1}"[..]));
            assert!(parser.keeps_alive());
        }
    }

    #[test]
    fn bytes_after_a_response_are_left() {
        let mut parser = ResponseParser::new();
        let both = [FIXED, FIXED].concat();
        assert_eq!(parser.push(both.as_bytes()), Ok(FIXED.len()));
    }

    #[test]
    fn an_interim_response_is_skipped() {
        let input = ["HTTP/1.1 100 Continue\r\n\r\n", FIXED].concat();
        let parser = parse(input.as_bytes(), 7).unwrap();
        assert_eq!(parser.status(), Some(200));
        assert!(parser.is_complete());
    }

    #[test]
    fn without_a_length_the_body_ends_with_the_connection() {
        let mut parser = parse(b"HTTP/1.0 200 OK\r\n\r\nabc", 4).unwrap();
        assert!(!parser.is_complete());
        parser.end().unwrap();
        assert!(parser.is_complete() && !parser.keeps_alive());
        assert_eq!(parser.body(), b"abc");
        let mut cut = parse(&CHUNKED.as_bytes()[..60], 60).unwrap();
        assert_eq!(cut.end(), Err(HttpError::Truncated));
    }

    #[test]
    fn each_malformed_response_has_its_error() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n", "y".repeat(LINE_BYTES_MAX));
        let many = format!("HTTP/1.1 200 OK\r\n{}", "x: y\r\n".repeat(HEAD_BYTES_MAX / 6 + 1));
        let head = |headers: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n");
        let chunks = |body: &str| format!("{}{body}", head("Transfer-Encoding: chunked"));
        let cases = [
            ("SSH-2.0-x\r\n".to_owned(), HttpError::StatusLine),
            ("HTTP/1.1 20\r\n".to_owned(), HttpError::StatusLine),
            ("HTTP/1.1 999 x\r\n".to_owned(), HttpError::StatusLine),
            (head("no colon"), HttpError::Header),
            (head("a b: c"), HttpError::Header),
            (long, HttpError::LineTooLong),
            (many, HttpError::HeadTooLong),
            (head("Content-Length: +1"), HttpError::ContentLength),
            (head("Content-Length: 1\r\nContent-Length: 2"), HttpError::ContentLength),
            (head("Content-Length: 1\r\nTransfer-Encoding: chunked"), HttpError::ContentLength),
            (head("Content-Length: 99999999999"), HttpError::BodyTooLong),
            (head("Transfer-Encoding: gzip"), HttpError::TransferEncoding),
            (chunks("x\r\n"), HttpError::Chunk),
            (chunks("\r\n"), HttpError::Chunk),
            (chunks("ffffffffffffffffff\r\n"), HttpError::Chunk),
            (chunks("fffffff\r\n"), HttpError::Chunk),
            (chunks("1\r\nab\r\n"), HttpError::Chunk),
        ];
        for (input, error) in cases {
            let found = parse(input.as_bytes(), 5).map(|_| ());
            assert_eq!(found, Err(error), "{:.80}", input);
        }
    }

    #[test]
    fn mutated_responses_neither_panic_nor_grow() {
        let mut random = brisk_testkit::random::Random::new(7);
        for round in 0..20_000 {
            let mut input = [FIXED, CHUNKED][round % 2].as_bytes().to_vec();
            for _ in 0..=random.below(4) {
                let at = random.below(input.len());
                match random.below(3) {
                    0 => input[at] = random.bits() as u8,
                    1 => drop(input.remove(at)),
                    _ => input.insert(at, *random.pick(b"\r\n:;0f \0")),
                }
            }
            if let Ok(mut parser) = parse(&input, 1 + random.below(9)) {
                assert!(parser.body().len() <= input.len());
            }
        }
    }
}
