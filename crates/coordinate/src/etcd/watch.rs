//! The watch of etcd: one stream of JSON lines. If the stream is lost, another one begins at the
//! same position.

use super::client::{CallError, EtcdClient, UnreachableEndpoints};
use super::connection::{EtcdConnection, ExchangeError, WaitLimit};
use super::http::ResponseParser;
use super::messages::{self, MessageError};
use super::{EtcdKeys, controller_of, node_of, topology_of};
use crate::coordinator::Watch;
use crate::error::CoordinatorError;
use crate::values::{NodeId, Revision, Topology, WatchEvent};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time for a stream to begin.
const BEGIN_MAX: Duration = Duration::from_millis(1_500);
/// A member whose stream is silent for this long is probed, because a stopped member keeps its
/// connections open.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// Maximum time to wait for the response to a probe.
const PROBE_MAX: Duration = Duration::from_secs(1);
/// Pause before an error is returned, so that a caller that simply retries does not spin.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// See [`Watch`].
#[derive(Debug)]
pub(super) struct EtcdWatch {
    client: Arc<EtcdClient>,
    keys: EtcdKeys,
    position: Revision,
    compacted: Option<Revision>,
    stream: Option<Stream>,
}

#[derive(Debug)]
struct Stream {
    at: usize,
    connection: EtcdConnection,
    parser: ResponseParser,
    /// Bytes of the body that were searched for a line end.
    searched: usize,
    last_bytes: Instant,
}

/// Why a stream ends.
enum Ended {
    Failed(CallError),
    NoLeader,
}

impl EtcdWatch {
    pub(super) fn new(client: Arc<EtcdClient>, keys: EtcdKeys, position: Revision) -> EtcdWatch {
        EtcdWatch { client, keys, position, compacted: None, stream: None }
    }

    fn begin(&self, limit: &WaitLimit) -> Result<Stream, CallError> {
        let client = &*self.client;
        let at = client.current();
        let token = client.token_at(at, limit)?;
        // A stream keeps its connection for itself and never returns it to the unused ones.
        let mut connection = client.connect(at, limit)?;
        let body = messages::watch(&self.keys.root, self.position.0 + 1).to_string();
        let headers = "Grpc-Metadata-hasleader: true\r\n";
        let request = client.request(at, "/v3/watch", &body, token.as_deref(), headers);
        let sent = connection.send(&request, limit);
        sent.map_err(|error| client.lost(at, "/v3/watch", &error, limit))?;
        let parser = ResponseParser::new();
        Ok(Stream { at, connection, parser, searched: 0, last_bytes: Instant::now() })
    }

    /// Waits for bytes of the stream, and takes the events of complete lines.
    fn advance(&mut self, stream: &mut Stream, end: Instant) -> Result<Vec<WatchEvent>, Ended> {
        let client = Arc::clone(&self.client);
        let silence_end = stream.last_bytes + SILENCE_MAX;
        let budget = end.min(silence_end).saturating_duration_since(Instant::now());
        let limit = WaitLimit::new(budget, &client.stop);
        match stream.connection.receive(&mut stream.parser, &limit) {
            Ok(()) => stream.last_bytes = Instant::now(),
            Err(ExchangeError::TimedOut) if Instant::now() < silence_end => return Ok(Vec::new()),
            Err(ExchangeError::TimedOut) => {
                self.probe(stream.at)?;
                stream.last_bytes = Instant::now();
                return Ok(Vec::new());
            }
            Err(error) => {
                return Err(Ended::Failed(client.lost(stream.at, "/v3/watch", &error, &limit)));
            }
        }
        match stream.parser.status() {
            Some(200) => {}
            // An error has a body of its own, which must be complete to be understood.
            Some(_) if stream.parser.is_complete() => {
                let failed = client.read_response(stream.at, &mut stream.parser);
                let failed = failed.err().map(Ended::from_call);
                return Err(failed.unwrap_or(Ended::NoLeader));
            }
            _ => return Ok(Vec::new()),
        }
        let mut events = Vec::new();
        while let Some(line) = next_line(stream.parser.body(), &mut stream.searched) {
            self.take_message(stream.at, &line, &mut events)?;
        }
        if stream.parser.is_complete() && events.is_empty() {
            let error = ExchangeError::Lost("the stream ended".to_owned());
            return Err(Ended::Failed(client.lost(stream.at, "/v3/watch", &error, &limit)));
        }
        Ok(events)
    }

    /// Checks that a silent member still responds.
    fn probe(&self, at: usize) -> Result<(), Ended> {
        let limit = WaitLimit::new(PROBE_MAX, &self.client.stop);
        self.client.probe(at, &limit).map_err(Ended::Failed)
    }

    fn take_message(
        &mut self,
        at: usize,
        line: &[u8],
        events: &mut Vec<WatchEvent>,
    ) -> Result<(), Ended> {
        let client = &*self.client;
        let misread = |error| Ended::Failed(client.misread(at, error));
        let message: Value =
            serde_json::from_slice(line).map_err(|_| misread(MessageError::Json))?;
        let Some(result) = message.get("result") else {
            let error = message.get("error").unwrap_or(&message);
            return Err(Ended::from_call(client.meaning(at, 500, error, &error.to_string())));
        };
        if messages::truth(result, "canceled").map_err(misread)? {
            let compacted = messages::number(result, "compact_revision").map_err(misread)?;
            if compacted > 0 {
                let revision = Revision(compacted);
                self.compacted = Some(revision);
                events.push(WatchEvent::Compacted { revision });
                return Ok(());
            }
            let reason = messages::text(result, "cancel_reason").map_err(misread)?;
            return Err(Ended::from_call(client.meaning(at, 500, &Value::Null, reason)));
        }
        // etcd has lost its data since the position was read, and counts its revisions from the beginning again.
        if messages::truth(result, "created").map_err(misread)? {
            let revision = messages::header(result).map_err(misread)?.0;
            if revision > 0 && revision < self.position.0 {
                let revision = Revision(revision);
                self.compacted = Some(revision);
                events.push(WatchEvent::Compacted { revision });
                return Ok(());
            }
        }
        let mut last = self.position;
        for event in messages::list(result, "events").map_err(misread)? {
            let entry = messages::key_value(event.get("kv").unwrap_or(&Value::Null));
            let entry = entry.map_err(misread)?;
            let is_delete = messages::text(event, "type").map_err(misread)? == "DELETE";
            last = last.max(Revision(entry.mod_revision));
            events.extend(event_of(&self.keys, &entry, is_delete));
        }
        // The last revision of a fragment continues in the next fragment.
        let is_fragment = messages::truth(result, "fragment").map_err(misread)?;
        let whole = if is_fragment { Revision(last.0.saturating_sub(1)) } else { last };
        self.position = self.position.max(whole);
        Ok(())
    }
}

impl Ended {
    fn from_call(failed: CallError) -> Ended {
        match failed.error {
            CoordinatorError::NoLeader(_) => Ended::NoLeader,
            _ => Ended::Failed(failed),
        }
    }
}

impl Watch for EtcdWatch {
    fn next(&mut self, limit: Duration) -> Result<Vec<WatchEvent>, CoordinatorError> {
        let end = Instant::now() + limit;
        let mut unreachable = UnreachableEndpoints::default();
        loop {
            if self.client.stop.is_stopped() {
                return Err(CoordinatorError::Stopped);
            }
            if let Some(revision) = self.compacted {
                return Ok(vec![WatchEvent::Compacted { revision }]);
            }
            let stream = match self.stream.take() {
                Some(stream) => Ok(stream),
                None => self.begin(&WaitLimit::new(BEGIN_MAX, &self.client.stop)),
            };
            let at = self.client.current();
            let ended = match stream {
                Err(failed) => (at, Ended::Failed(failed)),
                Ok(mut stream) => match self.advance(&mut stream, end) {
                    Ok(events) => {
                        self.stream = Some(stream);
                        if !events.is_empty() || Instant::now() >= end {
                            return Ok(events);
                        }
                        continue;
                    }
                    Err(ended) => (stream.at, ended),
                },
            };
            let (at, ended) = ended;
            self.client.leave(at);
            match ended {
                Ended::NoLeader => {
                    self.client.stop.pause(ERROR_PAUSE);
                    return Ok(vec![WatchEvent::NoLeader]);
                }
                Ended::Failed(failed) => {
                    unreachable.note(&failed.error);
                    // No stream was lost, so another endpoint is tried first.
                    let is_unreachable = matches!(failed.error, CoordinatorError::Unreachable(_));
                    if is_unreachable
                        && unreachable.count() < self.client.endpoints.len()
                        && Instant::now() < end
                    {
                        continue;
                    }
                    if let CoordinatorError::Unauthorized(_) = failed.error {
                        self.client.forget_any_token();
                    }
                    self.client.stop.pause(ERROR_PAUSE);
                    return Err(unreachable.named_by(failed.error));
                }
            }
        }
    }

    fn position(&self) -> Revision {
        self.position
    }
}

/// Removes the first complete line. Each byte is searched once.
fn next_line(body: &mut Vec<u8>, searched: &mut usize) -> Option<Vec<u8>> {
    let found = body[*searched..].iter().position(|byte| *byte == b'\n');
    let Some(found) = found else {
        *searched = body.len();
        return None;
    };
    let rest = body.split_off(*searched + found + 1);
    *searched = 0;
    let mut line = std::mem::replace(body, rest);
    line.pop();
    Some(line)
}

/// The event of a key; `None` for a status or a key of other software.
fn event_of(keys: &EtcdKeys, entry: &messages::KeyValue, is_delete: bool) -> Option<WatchEvent> {
    let revision = Revision(entry.mod_revision);
    if entry.key == keys.topology() {
        let topology = if is_delete {
            Topology { revision, document: None }
        } else {
            topology_of(Some(entry))
        };
        return Some(WatchEvent::Topology(topology));
    }
    if entry.key == keys.controller() {
        return match is_delete {
            true => Some(WatchEvent::ControllerRemoved { revision }),
            false => controller_of(entry).map(WatchEvent::ControllerElected),
        };
    }
    let prefix = keys.nodes();
    if is_delete {
        let node = NodeId::parse(entry.key.strip_prefix(&prefix)?).ok()?;
        return Some(WatchEvent::NodeRemoved { node, revision });
    }
    node_of(entry, &prefix).map(WatchEvent::NodeRegistered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_when_they_are_complete() {
        let (mut body, mut searched) = (b"ab".to_vec(), 0);
        assert_eq!(next_line(&mut body, &mut searched), None);
        assert_eq!(searched, 2);
        body.extend_from_slice(b"c\n\nd");
        assert_eq!(next_line(&mut body, &mut searched).as_deref(), Some(&b"abc"[..]));
        assert_eq!(next_line(&mut body, &mut searched).as_deref(), Some(&b""[..]));
        assert_eq!(next_line(&mut body, &mut searched), None);
        assert_eq!((&body[..], searched), (&b"d"[..], 1));
    }
}
