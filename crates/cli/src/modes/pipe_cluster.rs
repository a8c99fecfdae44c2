//! `--pipe` with `-c`: each request is sent to the cluster node that serves its key.
//!
//! Requests are sent in batches, and a batch completes before the next one begins. So requests for one key keep their
//! order, even while slots move: a node redirects them in order, and they are sent again in that order before any later
//! request. The server reports the position of a request's key: with COMMAND or, if the position depends on the
//! arguments, with COMMAND GETKEYS. A request without a key is sent to the node named on the command line.

use super::{lost, pipe};
use crate::link::{Link, LinkError};
use crate::progress::{Progress, Unit};
use crate::quote::leading_number;
use crate::screen;
use crate::session::{Loudness, Session};
use brisk_resp::Value;
use brisk_resp::reply::decode::{ReplyDecoder, ReplyLimits, ReplyStep};
use brisk_resp::request::{Limits, RequestDecoder, Spans, Step, encode};
use brisk_resp::slot::key_slot;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// The size of one read, and so of a batch, unless a single request is longer.
const BATCH_BYTES: usize = 256 * 1024;
const SLOTS: usize = 16_384;
/// A request that was redirected more often than this counts as an error.
const REDIRECTIONS_MAX: u32 = 16;
/// Interval between checks whether all nodes have stopped replying.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The position of a command's first key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyAt {
    Nowhere,
    Argument(usize),
    /// The position depends on the arguments, so the server is queried for each request.
    Depends,
}

/// A reply that a node still owes.
enum Awaited {
    /// The reply to the ASKING before a request.
    Asking,
    /// The reply to the request with this number in the batch.
    Request(usize),
}

/// A node to which requests were sent.
struct Node {
    host: String,
    port: i64,
    link: Link,
    unsent: Vec<u8>,
    sent: usize,
    decoder: ReplyDecoder,
    unread: Vec<u8>,
    awaited: VecDeque<Awaited>,
}

/// A request to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Errand {
    request: usize,
    node: usize,
    asking: bool,
}

struct Router<'s> {
    like: &'s Session,
    /// The connection for this program's own queries. The connections in `nodes` are non-blocking.
    query_link: Link,
    commands: HashMap<Vec<u8>, KeyAt>,
    nodes: Vec<Node>,
    /// The node of each slot. A slot with an unknown owner is mapped to the first node, which redirects requests.
    owners: Vec<usize>,
    errors: u64,
    replies: u64,
    silence: Duration,
}

/// The transfer stopped early. The error has been printed.
struct Ended;

/// Runs the transfer; returns the exit code. A server that is not in a cluster gets all requests.
pub(super) fn run(mut query_link: Link, session: &Session) -> i32 {
    let slots = match query_link.request(&["CLUSTER", "SLOTS"]) {
        Ok(reply) if reply.as_error().is_some() => {
            return pipe::run(&mut query_link, &session.options);
        }
        Ok(reply) => reply,
        Err(error) => return lost(&error),
    };
    let commands = match query_link.request(&["COMMAND"]) {
        Ok(reply) => keys_of_commands(&reply),
        Err(error) => return lost(&error),
    };
    let mut router = Router {
        like: session,
        query_link,
        commands,
        nodes: Vec::new(),
        owners: vec![0; SLOTS],
        errors: 0,
        replies: 0,
        silence: Duration::from_secs(session.options.pipe_timeout_s),
    };
    let ended = router.learn(&slots).and_then(|()| router.transfer());
    i32::from(ended.is_err() || router.errors > 0)
}

/// The command table from COMMAND, by lower-case name; subcommands as `name|sub`.
fn keys_of_commands(reply: &Value) -> HashMap<Vec<u8>, KeyAt> {
    let mut commands = HashMap::new();
    let mut rows: Vec<&Value> = reply.as_slice().unwrap_or_default().iter().collect();
    while let Some(row) = rows.pop() {
        let fields = row.as_slice().unwrap_or_default();
        let (Some(name), Some(flags)) = (fields.first().and_then(Value::as_bytes), fields.get(2))
        else {
            continue;
        };
        let has_flag = |flag: &[u8]| {
            let flags = flags.as_slice().unwrap_or_default();
            flags.iter().any(|it| it.as_bytes() == Some(flag))
        };
        let first = match fields.get(3) {
            Some(Value::Integer(first)) => usize::try_from(*first).unwrap_or(0),
            _ => 0,
        };
        let key_at = match first {
            0 if has_flag(b"movablekeys") => KeyAt::Depends,
            0 => KeyAt::Nowhere,
            first => KeyAt::Argument(first),
        };
        commands.insert(name.to_ascii_lowercase(), key_at);
        rows.extend(fields.get(9).and_then(Value::as_slice).unwrap_or_default());
    }
    commands
}

impl Router<'_> {
    /// Sets the slot owners from the reply to CLUSTER SLOTS.
    fn learn(&mut self, slots: &Value) -> Result<(), Ended> {
        let (host, port) = (self.like.options.host.clone(), self.like.options.port);
        self.node(&host, port)?;
        for range in slots.as_slice().unwrap_or_default() {
            let [Value::Integer(first), Value::Integer(last), primary, ..] =
                range.as_slice().unwrap_or_default()
            else {
                continue;
            };
            let [place, Value::Integer(port), ..] = primary.as_slice().unwrap_or_default() else {
                continue;
            };
            // A node may not know its own host. In this case it is the host to which we connected.
            let place = String::from_utf8_lossy(place.as_bytes().unwrap_or_default()).into_owned();
            let place = if place.is_empty() { host.clone() } else { place };
            let node = self.node(&place, *port)?;
            let bound = |slot: i64| usize::try_from(slot).unwrap_or(0).min(SLOTS);
            let (first, last) = (bound(*first), bound(last.saturating_add(1)));
            self.owners.get_mut(first..last).unwrap_or_default().fill(node);
        }
        Ok(())
    }

    /// The node at this address. Connects to it if necessary.
    fn node(&mut self, host: &str, port: i64) -> Result<usize, Ended> {
        if let Some(at) = self.nodes.iter().position(|node| node.host == host && node.port == port)
        {
            return Ok(at);
        }
        let mut options = self.like.options.clone();
        (options.host, options.port) = (host.to_owned(), port);
        if !self.nodes.is_empty() {
            options.socket = None;
        }
        let mut session = Session::new(options).map_err(|text| {
            screen::warn(format!("{text}\n"));
            Ended
        })?;
        session.connect(Loudness::Loud).map_err(|_| Ended)?;
        let mut link = session.take_link().ok_or(Ended)?;
        if let Err(error) = link.stream().set_nonblocking(true) {
            return Err(report_lost(&LinkError::Io(error)));
        }
        self.nodes.push(Node {
            host: host.to_owned(),
            port,
            link,
            unsent: Vec::new(),
            sent: 0,
            decoder: ReplyDecoder::new(ReplyLimits::default()),
            unread: Vec::new(),
            awaited: VecDeque::new(),
        });
        Ok(self.nodes.len() - 1)
    }

    /// Sends all of standard input.
    fn transfer(&mut self) -> Result<(), Ended> {
        let mut progress = Progress::new("Sending", Unit::Bytes, None);
        let (mut input, mut buffer) = (Vec::new(), vec![0; BATCH_BYTES]);
        let (mut decoder, mut sent) = (RequestDecoder::new(), 0);
        loop {
            let count = match io::stdin().lock().read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let text = crate::link::plain(&error);
                    screen::warn(format!("Error reading from stdin: {text}\n"));
                    return Err(Ended);
                }
                Ok(count) => count,
            };
            input.extend_from_slice(&buffer[..count]);
            if count == 0 {
                // Completes a last line that has no newline.
                input.extend_from_slice(b"\r\n");
                progress.clear();
                screen::print("All data transferred. Waiting for the last reply...\n");
                screen::flush();
            }
            let batch = cut(&mut decoder, &mut input)?;
            self.run_batch(&batch)?;
            sent += count as u64;
            if count == 0 {
                break;
            }
            progress.at(sent);
        }
        if !input.is_empty() && input != b"\r\n" {
            screen::warn("The input ends in the middle of a request.\n");
            self.errors += 1;
        }
        screen::print("Last reply received from server.\n");
        self.sum_up();
        Ok(())
    }

    fn sum_up(&self) {
        screen::print(format!("errors: {}, replies: {}\n", self.errors, self.replies));
    }

    /// Sends the requests of a batch, and sends redirected ones again, until all have replies.
    fn run_batch(&mut self, batch: &[Vec<Vec<u8>>]) -> Result<(), Ended> {
        let mut errands = Vec::with_capacity(batch.len());
        for (request, words) in batch.iter().enumerate() {
            let slot = self.slot_of(words)?;
            let node = slot.map_or(0, |slot| self.owners[usize::from(slot)]);
            errands.push(Errand { request, node, asking: false });
        }
        for redirections in 0.. {
            if errands.is_empty() {
                break;
            }
            for errand in &errands {
                let node = &mut self.nodes[errand.node];
                if errand.asking {
                    encode(&mut node.unsent, &["ASKING"]);
                    node.awaited.push_back(Awaited::Asking);
                }
                encode(&mut node.unsent, &batch[errand.request]);
                node.awaited.push_back(Awaited::Request(errand.request));
            }
            errands = self.exchange(redirections < REDIRECTIONS_MAX)?;
            errands.sort_by_key(|errand| errand.request);
        }
        Ok(())
    }

    /// The slot of a request's first key.
    fn slot_of(&mut self, words: &[Vec<u8>]) -> Result<Option<u16>, Ended> {
        let name = words[0].to_ascii_lowercase();
        if name == b"multi" {
            screen::warn(
                "MULTI cannot be routed: send a transaction to the node of its keys, without -c.\n",
            );
            self.sum_up();
            return Err(Ended);
        }
        let sub = words.get(1).map(|sub| [&name[..], b"|", &sub.to_ascii_lowercase()].concat());
        let row = sub.and_then(|sub| self.commands.get(&sub)).or_else(|| self.commands.get(&name));
        match row {
            Some(KeyAt::Argument(at)) => Ok(words.get(*at).map(|key| key_slot(key))),
            Some(KeyAt::Depends) => {
                let question: Vec<&[u8]> = [&b"COMMAND"[..], b"GETKEYS"]
                    .into_iter()
                    .chain(words.iter().map(Vec::as_slice))
                    .collect();
                let keys =
                    self.query_link.request(&question).map_err(|error| report_lost(&error))?;
                let first = keys.as_slice().and_then(|keys| keys.first()).and_then(Value::as_bytes);
                Ok(first.map(key_slot))
            }
            // The node reports the error for a command that it does not know.
            Some(KeyAt::Nowhere) | None => Ok(None),
        }
    }

    /// Exchanges bytes with all nodes until every request has a reply. Returns the requests to send to
    /// other nodes.
    fn exchange(&mut self, may_redirect: bool) -> Result<Vec<Errand>, Ended> {
        let (mut redirected, mut heard) = (Vec::new(), Instant::now());
        while self.nodes.iter().any(|node| !node.awaited.is_empty()) {
            let ready = self.ready().map_err(|error| report_lost(&error))?;
            for (at, (readable, writable)) in ready.into_iter().enumerate() {
                if writable {
                    self.nodes[at].send().map_err(|error| report_lost(&error))?;
                }
                if !readable {
                    continue;
                }
                heard = Instant::now();
                for (request, reply) in
                    self.nodes[at].receive().map_err(|error| report_lost(&error))?
                {
                    let errand = may_redirect.then(|| self.redirection(at, request, &reply));
                    match errand.transpose()?.flatten() {
                        Some(errand) => redirected.push(errand),
                        None => self.count(&reply),
                    }
                }
            }
            if !self.silence.is_zero() && heard.elapsed() > self.silence {
                screen::flush();
                let seconds = self.silence.as_secs();
                screen::warn(format!("No replies for {seconds} seconds: exiting.\n"));
                self.errors += 1;
                self.sum_up();
                return Err(Ended);
            }
        }
        Ok(redirected)
    }

    fn count(&mut self, reply: &Value) {
        self.replies += 1;
        if let Some(text) = reply.as_error() {
            screen::warn([text, b"\n"].concat());
            self.errors += 1;
        }
    }

    /// The redirection in a reply from node `from`, if it is one.
    fn redirection(
        &mut self,
        from: usize,
        request: usize,
        reply: &Value,
    ) -> Result<Option<Errand>, Ended> {
        let text = reply.as_error().map(String::from_utf8_lossy).unwrap_or_default();
        let words: Vec<&str> = text.split(' ').collect();
        let [kind @ ("MOVED" | "ASK"), slot, place] = words[..] else { return Ok(None) };
        let (Ok(slot), Some((host, port))) = (slot.parse::<usize>(), place.rsplit_once(':')) else {
            return Ok(None);
        };
        let host = if host.is_empty() { self.nodes[from].host.clone() } else { host.to_owned() };
        let node = self.node(&host, leading_number(port.as_bytes()))?;
        let asking = kind == "ASK";
        if let Some(owner) = self.owners.get_mut(slot).filter(|_| !asking) {
            *owner = node;
        }
        Ok(Some(Errand { request, node, asking }))
    }

    /// Waits until a node is readable or writable. Returns for each node whether it is readable, and whether it is
    /// writable.
    fn ready(&mut self) -> Result<Vec<(bool, bool)>, LinkError> {
        let decrypted: Vec<bool> =
            self.nodes.iter_mut().map(|node| node.link.stream().has_decrypted()).collect();
        if decrypted.contains(&true) {
            return Ok(decrypted.into_iter().map(|readable| (readable, false)).collect());
        }
        let mut fds = Vec::with_capacity(self.nodes.len());
        for node in &mut self.nodes {
            let writes = node.sent < node.unsent.len();
            let wanted = if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::new(node.link.stream(), wanted));
        }
        match poll(&mut fds, Some(&LOOK)) {
            Err(rustix::io::Errno::INTR) => return Ok(vec![(false, false); fds.len()]),
            Err(error) => return Err(LinkError::Io(error.into())),
            Ok(_) => {}
        }
        let ends = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        let is = |fd: &PollFd<'_>| {
            (fd.revents().intersects(ends), fd.revents().contains(PollFlags::OUT))
        };
        Ok(fds.iter().map(is).collect())
    }
}

impl Node {
    /// Sends the unsent bytes, as far as the socket accepts them.
    fn send(&mut self) -> Result<(), LinkError> {
        while self.sent < self.unsent.len() {
            match self.link.stream().write(&self.unsent[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if is_for_later(&error) => break,
                Err(error) => return Err(LinkError::Io(error)),
            }
        }
        if self.sent == self.unsent.len() {
            self.unsent.clear();
            self.sent = 0;
        }
        match self.link.stream().flush() {
            Err(error) if !is_for_later(&error) => Err(LinkError::Io(error)),
            _ => Ok(()),
        }
    }

    /// Reads the replies that have arrived, each with the number of its request.
    fn receive(&mut self) -> Result<Vec<(usize, Value)>, LinkError> {
        let mut buffer = [0; 64 * 1024];
        match self.link.stream().read(&mut buffer) {
            Ok(0) => return Err(LinkError::Closed),
            Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
            Err(error) if is_for_later(&error) => return Ok(Vec::new()),
            Err(error) => return Err(LinkError::Io(error)),
        }
        let (mut at, mut replies) = (0, Vec::new());
        loop {
            match self.decoder.decode(&self.unread[at..])? {
                ReplyStep::Value { consumed, value } => {
                    at += consumed;
                    if matches!(value, Value::Push(_)) {
                        continue;
                    }
                    if let Some(Awaited::Request(request)) = self.awaited.pop_front() {
                        replies.push((request, value));
                    }
                }
                ReplyStep::Incomplete { consumed, .. } => {
                    at += consumed;
                    break;
                }
            }
        }
        self.unread.drain(..at);
        Ok(replies)
    }
}

/// Removes all complete requests from the beginning of the input and returns them.
fn cut(decoder: &mut RequestDecoder, input: &mut Vec<u8>) -> Result<Vec<Vec<Vec<u8>>>, Ended> {
    let (mut batch, mut at, mut spans) = (Vec::new(), 0, Spans::new());
    loop {
        spans.clear();
        match decoder.decode(&input[at..], &Limits::default(), &mut spans) {
            Ok(Step::Request { consumed, .. }) => {
                let rest = &input[at..];
                let words = spans.as_slice().iter().map(|span| spans.bytes(rest, *span).to_vec());
                batch.push(words.collect());
                at += consumed;
            }
            Ok(Step::Empty { consumed }) => at += consumed,
            Ok(Step::Incomplete { .. }) => break,
            Err(error) => {
                screen::warn(format!("The input is not a valid request: {error}\n"));
                return Err(Ended);
            }
        }
    }
    input.drain(..at);
    Ok(batch)
}

fn report_lost(error: &LinkError) -> Ended {
    let _ = lost(error);
    Ended
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
