//! Parses requests: the request line and the headers that matter here, from bytes that may arrive in arbitrary pieces.
//! Supports HTTP/1.0 and 1.1 (RFC 9112).
//!
//! Ambiguous requests are errors. Examples are requests with two lengths, a header that is folded or has a blank before
//! its colon, or a body without a known end. If a server and a proxy interpret a request differently, the server may
//! process a request that no client sent.

/// The maximum size of a request's head in bytes, including the empty line.
pub(super) const HEAD_BYTES_MAX: usize = 8 * 1024;
/// The maximum size of a body in bytes. A body is only read to find the next request.
pub(super) const BODY_BYTES_MAX: u64 = 64 * 1024;

/// The parts of a request that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    /// The path without the query.
    pub(super) path: String,
    /// True if the connection stays open for another request.
    pub(super) keeps_alive: bool,
    /// Length of the body that follows, in bytes.
    pub(super) body: u64,
    /// The value of `Accept`. Several values are joined.
    pub(super) accept: String,
    /// The value of `Authorization`.
    pub(super) authorization: Option<String>,
    /// The value of `Host`.
    pub(super) host: String,
    /// The value of `Origin`, which browsers send with a WebSocket handshake.
    pub(super) origin: Option<String>,
    pub(super) websocket: Handshake,
}

/// The headers of a WebSocket handshake (RFC 6455, section 4.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Handshake {
    /// True if `Connection` contains `upgrade`.
    pub(super) upgrades: bool,
    /// The value of `Upgrade`.
    pub(super) protocol: String,
    /// The value of `Sec-WebSocket-Key`.
    pub(super) key: String,
    /// The value of `Sec-WebSocket-Version`.
    pub(super) version: String,
    /// The value of `Sec-WebSocket-Protocol`. Several values are joined.
    pub(super) subprotocols: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Method {
    #[default]
    Get,
    Head,
    Other,
}

/// The reason why a request cannot be processed. The connection is then closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The request is not HTTP, or is ambiguous.
    Malformed(&'static str),
    HeadTooLong,
    BodyTooLong,
    /// `Transfer-Encoding` is not supported, because no request here needs a body.
    Encoded,
    Version,
}

/// Parses the head of the next request at the front of `input`. Returns the request and the length of its head, or
/// `None` if the head is incomplete. `seen` is the number of bytes that earlier calls have searched. This call updates
/// it.
pub(super) fn parse(input: &[u8], seen: &mut usize) -> Result<Option<(Request, usize)>, Fault> {
    // Empty lines before a request are skipped.
    let begin = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let mut at = (*seen).max(begin);
    while let Some(found) = input[at.min(input.len())..].iter().position(|byte| *byte == b'\n') {
        let end = at + found;
        let line = &input[begin..end];
        if line.ends_with(b"\n") || line.ends_with(b"\n\r") {
            if end >= HEAD_BYTES_MAX {
                return Err(Fault::HeadTooLong);
            }
            *seen = 0;
            return parse_head(line).map(|request| Some((request, end + 1)));
        }
        at = end + 1;
    }
    if input.len() >= HEAD_BYTES_MAX {
        return Err(Fault::HeadTooLong);
    }
    *seen = at;
    Ok(None)
}

fn parse_head(head: &[u8]) -> Result<Request, Fault> {
    let text = std::str::from_utf8(head).map_err(|_| Fault::Malformed("not text"))?;
    let mut lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let (mut request, is_newer) = request_line(lines.next().unwrap_or_default())?;
    request.keeps_alive = is_newer;
    let (mut length, mut hosts) = (None, 0);
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(Fault::Malformed("header without colon"))?;
        if name.is_empty() || !name.bytes().all(is_of_token) {
            return Err(Fault::Malformed("header name"));
        }
        let value = value.trim_matches([' ', '\t']);
        if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
            return Err(Fault::Malformed("header value"));
        }
        match name.to_ascii_lowercase().as_str() {
            "host" => {
                hosts += 1;
                value.clone_into(&mut request.host);
            }
            "content-length" => {
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let bytes: u64 = value.parse().unwrap_or(u64::MAX);
                if !digits || length.is_some_and(|length| length != bytes) {
                    return Err(Fault::Malformed("content-length"));
                }
                length = Some(bytes);
            }
            "transfer-encoding" => return Err(Fault::Encoded),
            "connection" => connection(value, &mut request),
            "accept" => join(&mut request.accept, value),
            "origin" if request.origin.is_some() => return Err(Fault::Malformed("origin")),
            "origin" => request.origin = Some(value.to_owned()),
            // A joined value of two of these headers is not valid.
            "upgrade" => join(&mut request.websocket.protocol, value),
            "sec-websocket-key" => join(&mut request.websocket.key, value),
            "sec-websocket-version" => join(&mut request.websocket.version, value),
            "sec-websocket-protocol" => join(&mut request.websocket.subprotocols, value),
            "authorization" if request.authorization.is_some() => {
                return Err(Fault::Malformed("authorization"));
            }
            "authorization" => request.authorization = Some(value.to_owned()),
            _ => {}
        }
    }
    if hosts > 1 || (is_newer && hosts == 0) {
        return Err(Fault::Malformed("host"));
    }
    request.body = length.unwrap_or(0);
    if request.body > BODY_BYTES_MAX { Err(Fault::BodyTooLong) } else { Ok(request) }
}

/// Parses a request line. Returns the request, and true if its version is 1.1.
fn request_line(line: &str) -> Result<(Request, bool), Fault> {
    const MALFORMED: Fault = Fault::Malformed("request line");
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(MALFORMED);
    };
    if method.is_empty() || !method.bytes().all(is_of_token) {
        return Err(MALFORMED);
    }
    if target.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(MALFORMED);
    }
    let is_newer = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        version if version.starts_with("HTTP/") => return Err(Fault::Version),
        _ => return Err(MALFORMED),
    };
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => Method::Other,
    };
    // The path after the host of an absolute URL, which is the form of requests to proxies.
    let path = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            rest.find('/').map_or("/", |at| &rest[at..])
        }
        _ => target,
    };
    let path = path.split('?').next().unwrap_or_default().to_owned();
    Ok((Request { method, path, ..Request::default() }, is_newer))
}

/// Adds the value of a header that may occur several times.
fn join(values: &mut String, value: &str) {
    if !values.is_empty() {
        values.push(',');
    }
    values.push_str(value);
}

fn connection(value: &str, request: &mut Request) {
    for word in value.split(',').map(str::trim) {
        if word.eq_ignore_ascii_case("close") {
            request.keeps_alive = false;
        } else if word.eq_ignore_ascii_case("keep-alive") {
            request.keeps_alive = true;
        } else if word.eq_ignore_ascii_case("upgrade") {
            request.websocket.upgrades = true;
        }
    }
}

/// True for the bytes that methods and header names consist of.
fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Result<Option<(Request, usize)>, Fault> {
        parse(text.as_bytes(), &mut 0)
    }

    fn get(path: &str) -> Request {
        Request {
            path: path.to_owned(),
            keeps_alive: true,
            host: "a".to_owned(),
            ..Request::default()
        }
    }

    #[test]
    fn a_request_is_the_same_however_its_bytes_arrive() {
        let text = "\r\nGET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\
                    Authorization: Basic eA==\r\naccept: */*;q=0.1\r\nContent-Length: 3\r\n\r\nabcGET";
        let bytes = text.as_bytes();
        let head = text.find("abc").unwrap();
        let request = Request {
            accept: "text/plain,*/*;q=0.1".to_owned(),
            authorization: Some("Basic eA==".to_owned()),
            body: 3,
            ..get("/metrics")
        };
        for first in 0..bytes.len() {
            let mut seen = 0;
            let early = parse(&bytes[..first], &mut seen).unwrap();
            assert_eq!(early.is_some(), first >= head, "{first}");
            if early.is_none() {
                assert_eq!(parse(bytes, &mut seen), Ok(Some((request.clone(), head))), "{first}");
            }
        }
        let mut seen = 0;
        for end in 0..head {
            assert_eq!(parse(&bytes[..end], &mut seen), Ok(None));
        }
        assert_eq!(parse(&bytes[..head], &mut seen), Ok(Some((request, head))));
    }

    #[test]
    fn lines_may_end_without_carriage_return_and_targets_may_name_the_host() {
        assert_eq!(whole("GET / HTTP/1.1\nHost: a\n\n"), Ok(Some((get("/"), 24))));
        for target in ["http://a/ready", "http://a/ready?b://c", "/ready"] {
            let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(whole(&text).unwrap().unwrap().0, get("/ready"), "{target}");
        }
    }

    #[test]
    fn connections_stay_open_according_to_version_and_header() {
        for (version, header, keeps) in [
            ("1.1", "Host: a", true),
            ("1.1", "Host: a\r\nConnection: foo, Close", false),
            ("1.0", "X: y", false),
            ("1.0", "Connection: Keep-Alive", true),
        ] {
            let text = format!("HEAD /x HTTP/{version}\r\n{header}\r\n\r\n");
            let (request, _) = whole(&text).unwrap().unwrap();
            assert_eq!((request.keeps_alive, request.method), (keeps, Method::Head), "{header}");
        }
    }

    #[test]
    fn a_websocket_handshake_is_parsed() {
        let (request, _) = whole(
            "GET /s HTTP/1.1\r\nHost: h:80\r\nOrigin: http://h:80\r\nUpgrade: websocket\r\n\
             Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: k\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: a\r\n\
             Sec-WebSocket-Protocol: b\r\n\r\n",
        )
        .unwrap()
        .unwrap();
        let websocket = Handshake {
            upgrades: true,
            protocol: "websocket".into(),
            key: "k".into(),
            version: "13".into(),
            subprotocols: "a,b".into(),
        };
        let expected = Request {
            host: "h:80".into(),
            origin: Some("http://h:80".into()),
            websocket,
            ..get("/s")
        };
        assert_eq!(request, expected);
    }

    #[test]
    fn ambiguous_requests_are_rejected() {
        for (text, fault) in [
            ("\u{1}\u{2}\u{3}\n\n", Fault::Malformed("request line")),
            ("GET /\r\n\r\n", Fault::Malformed("request line")),
            ("GET  / HTTP/1.1\r\n\r\n", Fault::Malformed("request line")),
            ("G(T / HTTP/1.1\r\n\r\n", Fault::Malformed("request line")),
            ("*1\r\n$4\r\nPING\r\n\r\n", Fault::Malformed("request line")),
            ("GET / HTTP/2.0\r\n\r\n", Fault::Version),
            ("GET / HTTP/1.1\r\n\r\n", Fault::Malformed("host")),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Fault::Malformed("host")),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nOrigin: a\r\nOrigin: b\r\n\r\n",
                Fault::Malformed("origin"),
            ),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", Fault::Malformed("header name")),
            (
                "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
                Fault::Malformed("header without colon"),
            ),
            ("GET / HTTP/1.1\r\nHost: a\r\n fold: ed\r\n\r\n", Fault::Malformed("header name")),
            ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", Fault::Malformed("header value")),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
                Fault::Malformed("content-length"),
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                Fault::Malformed("content-length"),
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
                Fault::BodyTooLong,
            ),
            ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", Fault::Encoded),
        ] {
            assert_eq!(whole(text), Err(fault), "{text:?}");
        }
        assert_eq!(
            parse(b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n", &mut 0),
            Err(Fault::Malformed("not text"))
        );
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(HEAD_BYTES_MAX));
        assert_eq!(whole(&long), Err(Fault::HeadTooLong));
        assert_eq!(whole(&"\r\n".repeat(HEAD_BYTES_MAX)), Err(Fault::HeadTooLong));
    }

    #[test]
    fn any_bytes_are_parsed_without_harm() {
        let mut state = 7u64;
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..40)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    b"GET /HTP1.:\r\n\n\r ab\xff"[(state >> 33) as usize % 19]
                })
                .collect();
            let mut seen = 0;
            for end in 0..=bytes.len() {
                if parse(&bytes[..end], &mut seen) != Ok(None) {
                    break;
                }
            }
        }
    }
}
