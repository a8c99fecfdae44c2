//! A blocking connection for single requests that are not measured.

use crate::engine::plan::Target;
use crate::error::RunError;
use brisk_dial::address::Address;

use brisk_dial::Stream;
use brisk_resp::request::encode;
use brisk_resp::{ReplyDecoder, ReplyLimits, ReplyStep, Value};
use std::io::{self, Read, Write};
use std::time::Duration;

/// How long a reply may take.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RECEIVE_BYTES: usize = 64 * 1024;

/// A connection that sends a request and waits for its reply.
#[derive(Debug)]
pub struct Requester {
    stream: Stream,
    decoder: ReplyDecoder,
    unread: Vec<u8>,
}

impl Requester {
    /// Connects, and sends the commands with which the target's sessions begin.
    ///
    /// # Errors
    /// If the connection fails, or the server rejects these commands.
    pub fn connect(target: &Target) -> Result<Requester, RunError> {
        let stream = open(target)
            .map_err(|source| RunError::Connect { address: target.address.clone(), source })?;
        let decoder = ReplyDecoder::new(ReplyLimits::default());
        let mut requester = Requester { stream, decoder, unread: Vec::new() };
        let (prelude, count) = target.session.prelude();
        requester.stream.write_all(&prelude).map_err(failed)?;
        for _ in 0..count {
            if let Value::Error(text) = requester.reply()? {
                return Err(RunError::Reply(String::from_utf8_lossy(&text).into_owned()));
            }
        }
        Ok(requester)
    }

    /// Sends one request and waits for its reply, which may be an error reply.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn request<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, RunError> {
        let mut bytes = Vec::new();
        encode(&mut bytes, words);
        self.send(&bytes)?;
        self.reply()
    }

    /// Sends encoded requests unchanged.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn send(&mut self, requests: &[u8]) -> Result<(), RunError> {
        self.stream.write_all(requests).map_err(failed)
    }

    /// Waits for the next reply. Push messages are skipped.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn reply(&mut self) -> Result<Value, RunError> {
        loop {
            let step = self.decoder.decode(&self.unread);
            match step.map_err(|error| RunError::Socket(io::Error::other(error)))? {
                ReplyStep::Value { consumed, value } => {
                    self.unread.drain(..consumed);
                    if !matches!(value, Value::Push(_)) {
                        return Ok(value);
                    }
                }
                ReplyStep::Incomplete { consumed, .. } => {
                    self.unread.drain(..consumed);
                    let mut buffer = [0; RECEIVE_BYTES];
                    let count = self.stream.read(&mut buffer).map_err(failed)?;
                    if count == 0 {
                        return Err(RunError::Closed);
                    }
                    self.unread.extend_from_slice(&buffer[..count]);
                }
            }
        }
    }

    /// The value of a directive, if the server reports it.
    pub fn setting(&mut self, name: &str) -> Result<Option<String>, RunError> {
        Ok(match self.request(&["CONFIG", "GET", name])? {
            Value::Array(pair) => pair.get(1).and_then(text_of),
            Value::Map(pairs) => pairs.first().and_then(|(_, value)| text_of(value)),
            Value::Error(text) if text.starts_with(b"NOAUTH") => {
                return Err(RunError::Reply(String::from_utf8_lossy(&text).into_owned()));
            }
            _ => None,
        })
    }
}

/// The text of a string reply.
#[must_use]
pub fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Bulk(text) | Value::Simple(text) | Value::Verbatim { text, .. } => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
        _ => None,
    }
}

/// The error of a failed request. A timeout has its own variant.
fn failed(error: io::Error) -> RunError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            RunError::Silent { seconds: REPLY_TIMEOUT.as_secs() }
        }
        _ => RunError::Socket(error),
    }
}

fn open(target: &Target) -> io::Result<Stream> {
    let stream = match &target.address {
        Address::Tcp { resolved, .. } => {
            let stream = Stream::tcp(resolved, Some(CONNECT_TIMEOUT))?;
            stream.set_timeout(Some(REPLY_TIMEOUT))?;
            match &target.tls {
                Some(tls) => stream.with_tls(tls, &target.address)?,
                None => stream,
            }
        }
        Address::Unix(path) => Stream::unix(path)?,
    };
    stream.set_timeout(Some(REPLY_TIMEOUT))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::local_target;
    use std::net::TcpListener;

    #[test]
    fn a_server_that_does_not_reply_is_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut requester =
            Requester::connect(&local_target(listener.local_addr().unwrap().port())).unwrap();
        let Stream::Tcp(stream) = &requester.stream else { panic!("{requester:?}") };
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let error = requester.request(&["PING"]).unwrap_err().to_string();
        assert_eq!(error, "Error: no reply from the server for 30 s");
    }
}
