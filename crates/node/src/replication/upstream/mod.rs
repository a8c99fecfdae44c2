//! A replica's link to its primary: a thread connects, introduces this server, gets the dataset or what
//! follows of the stream, and hands the stream to the first worker, which executes it.
//!
//! ```text
//!  connect ─ PING, AUTH, REPLCONF ─ PSYNC ─┬─ +FULLRESYNC ─ file ─ stillness: nothing ─ load ─┐
//!     ▲                                    └─ +CONTINUE ──────────────────────────────────────┤
//!     │ at once, or a second after a failure                                                  ▼
//!     └────────────────── connection lost ── parts of the stream ─► worker: executes, relays them
//! ```
//!
//! | part | about |
//! |---|---|
//! | `state` | how far the way to the primary has come, for all threads |
//! | `received` | the stream, received and not executed yet |
//! | `wire` | the connection |
//! | `listed` | the connection as a client of this server |
//! | `handshake` | what both tell one another |
//! | `payload` | a dataset as it comes |
//! | `dataset` | a full copy, received and loaded |
//! | `applying` | the stream, executed by the first worker |
//! | `transaction` | where a transaction of the stream ends; forms of requests |

pub mod applying;
mod dataset;
mod handshake;
mod listed;
mod payload;
pub mod received;
pub mod state;
mod transaction;
mod wire;

use self::handshake::{Failure, Next, Reader};
use self::listed::{Listed, Name};
use self::wire::Wire;
use crate::clients::ClientRecord;
use crate::core::Core;
use crate::core::mailbox::{Message, Work};
use crate::core::shared::Shared;
use crate::replication::environment::{Environment, Moment, receive};
use crate::replication::failover::Phase as FailoverPhase;
use crate::replication::upstream::state::{Upstream, UpstreamPhase};
use crate::replication::{follow, handover};
use brisk_config::Config;
use brisk_config::value::PrimaryAddress;
use brisk_engine::effect::Hooks;
use brisk_net::tls::outgoing;
use brisk_reactor::unix_ms;
use brisk_resp::request;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// The delays before the next connection: the longest one, and the one after the first failure.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_FIRST: Duration = Duration::from_millis(20);
/// Each full copy whose link does not last doubles the delay before the next connection, up to this. A copy
/// costs the primary much more than a connection.
const COPY_RETRY_MAX: Duration = Duration::from_secs(5);
/// A link that was up for this time has lasted.
const LASTING: Duration = Duration::from_secs(10);
/// From the beginning of a connection by which the stream came to that of the next one, at least: what the
/// backlog keeps is not to be used up meanwhile, but a primary that ends each at once is not to keep a core busy.
const RECONNECT: Duration = Duration::from_millis(50);
/// How often the primary hears how far this server has come.
const ACK_PERIOD: Duration = Duration::from_secs(1);
/// How long it waits for what has come to be executed, so as to tell of it.
const ACK_PATIENCE: Duration = Duration::from_millis(2);
/// How often who waits for a worker looks whether that makes sense.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// If more parts of the stream than this come in [`PARTS_SPAN`], they are gathered: each wakes this thread
/// and the worker, which costs more than what most of them say. A client that has each of its writes
/// acknowledged by WAIT makes 36 (measured), and is not to wait longer.
const PARTS_MAX: u32 = 64;
const PARTS_SPAN: Duration = Duration::from_millis(1);
/// How long they are gathered, before it is seen anew how fast they come.
const GATHERED_FOR: Duration = Duration::from_millis(10);
/// What comes within this is one part then; the system's timers add some 50 µs.
const GATHER: Duration = Duration::from_micros(200);
/// A larger part need not be gathered.
const SMALL_PART_BYTES_MAX: usize = 16 << 10;

/// Starts the thread that follows the primary which the settings name, for as long as the way there has
/// this number.
pub fn start(shared: &'static Shared, upstream: Arc<Upstream>, generation: u64) {
    let (name, copies) = (Name::default(), Copies::default());
    let thread = UpstreamThread { shared, upstream, generation, name, copies };
    let run = move || thread.run();
    if let Err(error) = shared.replication.environment().spawn("brisk-link", Box::new(run)) {
        shared.log.warning(format_args!("Can't follow the primary, no thread: {error}"));
    }
}

/// One way to one primary, over as many connections as it takes.
pub(super) struct UpstreamThread {
    shared: &'static Shared,
    upstream: Arc<Upstream>,
    generation: u64,
    name: Name,
    copies: Copies,
}

/// Counts full copies whose links did not last.
#[derive(Debug, Default)]
struct Copies {
    /// Consecutive full copies.
    count: Cell<u32>,
    /// The last connection started a full copy.
    is_last: Cell<bool>,
}

impl Copies {
    fn begin_connection(&self) {
        self.is_last.set(false);
    }

    fn note_copy(&self) {
        self.is_last.set(true);
        self.count.set(self.count.get().saturating_add(1));
    }

    fn note_lasted(&self) {
        self.count.set(0);
    }

    /// The delay before the next connection; `usual` if no such copies came before.
    fn delay(&self, usual: Duration) -> Duration {
        match self.count.get() {
            count @ 2.. if self.is_last.get() => {
                usual.saturating_mul(1 << (count - 1).min(16)).min(COPY_RETRY_MAX.max(usual))
            }
            _ => usual,
        }
    }
}

impl UpstreamThread {
    fn environment(&self) -> &'static dyn Environment {
        self.shared.replication.environment()
    }

    fn is_wanted(&self) -> bool {
        self.upstream.generation() == self.generation && !self.shared.shutdown.is_asked()
    }

    fn run(&self) {
        let mut failures = 0;
        while self.is_wanted() {
            let config = self.shared.config();
            let Some(address) = config.replication.replicaof.clone() else { return };
            let began = Moment::now();
            self.copies.begin_connection();
            let ended = self.connect(&config, &address);
            let phase = self.upstream.phase();
            let log = &self.shared.log;
            if !self.is_wanted() {
                return;
            }
            self.upstream.disconnect(self.generation);
            // Subscriptions and other state of the primary's session end with the connection.
            if phase == UpstreamPhase::Connected && self.upstream.stream.end(|| self.is_wanted()) {
                self.shared.mailboxes[0].wake();
            }
            if self.set_phase(UpstreamPhase::Connect).is_err() {
                return;
            }
            match ended {
                Err(Failure::Unwanted) => return,
                Err(Failure::Io(error)) => {
                    let reason = brisk_config::os_reason(&error);
                    let lower = self.shared.primary_words().lower;
                    log.warning(format_args!("Connection with {lower} lost: {reason}"));
                }
                Err(Failure::Refused(why)) => log.warning(format_args!("{why}")),
                Ok(()) => {}
            }
            failures = if phase == UpstreamPhase::Connected { 0 } else { failures + 1 };
            let usual = match phase {
                UpstreamPhase::Connected => RECONNECT,
                // The primary has begun a snapshot for this connection: that must not happen often.
                UpstreamPhase::Sync => RETRY,
                _ => retry_after(failures),
            };
            let until = match self.copies.delay(usual) {
                RECONNECT if phase == UpstreamPhase::Connected => began + RECONNECT,
                delay => Moment::now() + delay,
            };
            while self.is_wanted() && Moment::now() < until {
                self.environment().sleep(LOOK_AGAIN);
            }
        }
    }

    fn set_phase(&self, phase: UpstreamPhase) -> Result<(), Failure> {
        let is_wanted = self.shared.enter_phase(&self.upstream, self.generation, phase, unix_ms());
        is_wanted.then_some(()).ok_or(Failure::Unwanted)
    }

    /// One connection, from its beginning to its end.
    fn connect(&self, config: &Config, address: &PrimaryAddress) -> Result<(), Failure> {
        let (log, upstream) = (&self.shared.log, &*self.upstream);
        let host = address.host.to_string_lossy();
        let words = self.shared.primary_words();
        log.notice(format_args!("Connecting to {} {host}:{}", words.upper, address.port));
        self.set_phase(UpstreamPhase::Connecting)?;
        let source = config.network.bind_source_addr.to_string_lossy().parse().ok();
        let wire = Wire::open(
            self.environment(),
            (&host, address.port),
            source,
            handshake::silence_max(config),
        )?;
        let wire = if config.tls.replication { encrypt(config, wire)? } else { wire };
        wire.set_patience(ACK_PERIOD)?;
        log.notice(format_args!("{} <-> REPLICA sync started", words.upper));
        let wire = Arc::new(wire);
        if !upstream.connect(self.generation, Arc::clone(&wire) as _) {
            return Err(Failure::Unwanted);
        }
        self.set_phase(UpstreamPhase::Handshake)?;
        let mut reader = Reader::new(&wire, self);
        handshake::introduce(&mut reader, config)?;
        self.finish_stream()?;
        let (id, offset) = self.shared.replication.position(&self.shared.keyspace);
        log.notice(format_args!(
            "Trying a partial resynchronization (request {id}:{}).",
            offset + 1
        ));
        let takes_over = self.shared.replication.failover.phase() == FailoverPhase::InProgress;
        let next = handshake::ask_for_stream(&mut reader, (&id, offset), takes_over);
        if takes_over {
            match &next {
                Ok(Next::Full { .. } | Next::Partial { .. }) => handover::end(self.shared),
                Ok(Next::Later(_)) | Err(Failure::Refused(_)) => {
                    let why = "Failover target rejected psync request";
                    return self.when_still(move |core| handover::abort(core, why));
                }
                Err(_) => {}
            }
        }
        match next? {
            Next::Full { id, offset } => {
                let (primary, number) = (words.lower, offset.get());
                log.notice(format_args!("Full resync from {primary}: {id}:{number}"));
                self.copies.note_copy();
                self.set_phase(UpstreamPhase::Sync)?;
                self.name.forget();
                self.become_client(&wire)?;
                dataset::take(self, config, &wire, &mut reader, (id, offset))?;
            }
            Next::Partial { id } => {
                let lower = words.lower;
                log.notice(format_args!("Successful partial resynchronization with {lower}."));
                self.become_client(&wire)?;
                self.go_on_from(id, offset)?;
            }
            Next::Later(why) => {
                let text = format!(
                    "{} is currently unable to PSYNC but should be in the future: {why}",
                    words.title
                );
                return Err(Failure::Refused(text));
            }
        }
        let client = upstream.client().ok_or(Failure::Unwanted)?;
        let _listed = Listed::new(self.shared, Arc::clone(&client));
        self.set_phase(UpstreamPhase::Connected)?;
        self.follow(&mut reader, &client)
    }

    /// What is executed from the next stream on comes from this connection.
    fn become_client(&self, wire: &Wire) -> Result<(), Failure> {
        self.upstream.set_client(self.generation, self.name.record(self.shared, wire)?);
        Ok(())
    }

    /// Waits until what came by the connection before was executed.
    fn finish_stream(&self) -> Result<(), Failure> {
        let stream = &self.upstream.stream;
        while !self.environment().wait(LOOK_AGAIN, &mut |most| stream.wait_for_end(most)) {
            if !self.is_wanted() {
                return Err(Failure::Unwanted);
            }
        }
        Ok(())
    }

    /// The stream goes on where it ended; the history may be called `id` from there.
    fn go_on_from(&self, id: Option<String>, offset: u64) -> Result<(), Failure> {
        let (upstream, generation) = (Arc::clone(&self.upstream), self.generation);
        self.when_still(move |core| {
            let replication = &core.shared.replication;
            let present = replication.history.ids().id;
            if let Some(id) = id.as_ref().filter(|id| **id != present) {
                let title = core.shared.primary_words().title;
                core.shared.log.notice(format_args!("{title} replication ID changed to {id}"));
                replication.history.rename(id.clone(), offset);
                follow::disconnect_all(core.shared);
            }
            if !replication.feed.has_backlog() {
                core.shared.pump(core.id);
                replication.feed.begin_backlog(core.shared.keyspace.journal().end(), unix_ms());
            }
            core.env.hooks.set(Hooks::PROPAGATE, true);
            upstream.stream.begin();
            let end = core.shared.keyspace.journal().end();
            upstream.note_read(replication.history.offset(end));
            // Here and not by the link's thread, which gets to it later: the link is up.
            core.shared.enter_phase(&upstream, generation, UpstreamPhase::Connected, unix_ms());
        })
    }

    /// Hands the stream to the worker until the connection ends.
    fn follow(&self, reader: &mut Reader<'_>, client: &ClientRecord) -> Result<(), Failure> {
        let (shared, upstream, environment) = (self.shared, &*self.upstream, self.environment());
        let stream = &upstream.stream;
        upstream.note_read(shared.replication.history.offset(shared.keyspace.journal().end()));
        acknowledge(shared, upstream);
        let mut told = Moment::now();
        let (began, mut pace) = (told, Pace::default());
        loop {
            let part = reader.next()?;
            reader.send_waiting()?;
            if let Some(part) = part {
                client.bytes_in.fetch_add(part.len() as u64, Ordering::Relaxed);
                client.last_active_ms.store(unix_ms(), Ordering::Relaxed);
                let gathers = pace.gathers(part.len(), began.elapsed());
                upstream.note_read(upstream.read_offset().saturating_add(part.len() as u64));
                while !environment.wait(ACK_PERIOD, &mut |most| stream.wait_for_room(most)) {
                    if !self.is_wanted() {
                        return Err(Failure::Unwanted);
                    }
                    acknowledge(shared, upstream);
                }
                if stream.push(part, unix_ms(), || self.is_wanted()) {
                    shared.mailboxes[0].wake();
                }
                if gathers {
                    self.environment().sleep(GATHER);
                }
            }
            if told.elapsed() >= ACK_PERIOD {
                if began.elapsed() >= LASTING {
                    self.copies.note_lasted();
                }
                // What has just come is worth telling too: the PINGs of a primary may come as often as
                // this, each of them right before, and it would never hear that they were executed.
                environment.wait(ACK_PATIENCE, &mut |most| stream.wait_for_end(most));
                acknowledge(shared, upstream);
                told = Moment::now();
            }
        }
    }

    fn on_worker<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        on_worker(self.shared, work).ok_or(Failure::Unwanted)
    }

    /// Has the first worker do something while all others stand still, if the primary is still the one:
    /// while a script takes long, later.
    fn when_still<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Core) -> T + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        self.when(move |core| Some(work(core)))
    }

    /// The same, until it gives something.
    fn when<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Core) -> Option<T> + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        let (work, generation) = (Arc::new(work), self.generation);
        loop {
            let (work, upstream) = (Arc::clone(&work), Arc::clone(&self.upstream));
            let done = self.on_worker(move |core| {
                let Ok(_still) = core.stop_others() else { return Ok(None) };
                if upstream.generation() != generation {
                    return Err(Failure::Unwanted);
                }
                Ok(work(core))
            })??;
            match done {
                Some(done) => return Ok(done),
                None => self.environment().sleep(LOOK_AGAIN),
            }
        }
    }
}

/// The delay after this many consecutive failures. It is short at first, so that servers that are started
/// together find each other soon: sentinels query a primary for its replicas when they start, and then not
/// for ten seconds.
fn retry_after(failures: u32) -> Duration {
    let doubled = RETRY_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(RETRY)
}

/// How fast small parts of the stream come, in the time since its connection was made.
#[derive(Default)]
struct Pace {
    begun: Duration,
    /// Since then.
    parts: u32,
    gathers: bool,
}

impl Pace {
    /// Whether it is better to wait a little before more is read than the part of `bytes` that has come now.
    fn gathers(&mut self, bytes: usize, now: Duration) -> bool {
        if bytes > SMALL_PART_BYTES_MAX {
            return false;
        }
        self.parts += 1;
        let since = now.saturating_sub(self.begun);
        if self.gathers {
            if since >= GATHERED_FOR {
                *self = Pace { begun: now, parts: 1, gathers: false };
            }
        } else if self.parts > PARTS_MAX {
            *self = Pace { begun: now, parts: 1, gathers: since < PARTS_SPAN };
        }
        self.gathers
    }
}

fn encrypt(config: &Config, wire: Wire) -> Result<Wire, Failure> {
    let tls = outgoing::connection(config, wire.peer_ip()?);
    Ok(wire.encrypted(tls.map_err(|error| Failure::Refused(error.to_string()))?))
}

/// Has the first worker do something, and waits for it; `None` if the server ends.
pub(super) fn on_worker<T: Send + 'static>(
    shared: &Shared,
    work: impl FnOnce(&mut Core) -> T + Send + 'static,
) -> Option<T> {
    let (done, is_done) = sync_channel(1);
    let work = move |core: &mut Core| {
        // Who does not wait for it any more ends with the server.
        let _ = done.send(work(core));
    };
    shared.mailboxes[0].send(Message::Run(Work(Box::new(work))));
    loop {
        match receive(shared.replication.environment(), &is_done, LOOK_AGAIN) {
            Ok(done) => return Some(done),
            Err(RecvTimeoutError::Timeout) if !shared.shutdown.is_asked() => {}
            Err(_) => return None,
        }
    }
}

/// Tells the primary how far this server has come, and how far its append-only file.
pub fn acknowledge(shared: &Shared, upstream: &Upstream) {
    let (history, end) = (&shared.replication.history, shared.keyspace.journal().end());
    let offset = history.offset(end).to_string();
    let mut bytes = Vec::new();
    match shared.aof.durable() {
        Some(place) => {
            let durable = history.offset(place.min(end)).to_string();
            request::encode(&mut bytes, &["REPLCONF", "ACK", &offset, "FACK", &durable]);
        }
        None => request::encode(&mut bytes, &["REPLCONF", "ACK", &offset]),
    }
    upstream.send(&bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_whose_links_do_not_last_come_ever_more_rarely() {
        let copies = Copies::default();
        let delays = |usual: Duration| {
            let delay = |_| {
                copies.begin_connection();
                copies.note_copy();
                copies.delay(usual).as_millis()
            };
            (0..9).map(delay).collect::<Vec<u128>>()
        };
        assert_eq!(delays(RECONNECT), [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        // A connection without a copy is not delayed.
        copies.begin_connection();
        assert_eq!(copies.delay(RECONNECT), RECONNECT);
        copies.note_lasted();
        assert_eq!(delays(RETRY), [1000, 2000, 4000, 5000, 5000, 5000, 5000, 5000, 5000]);
    }

    #[test]
    fn a_primary_that_is_not_ready_is_tried_soon_and_then_once_a_second() {
        let waits: Vec<u128> = (1..=8).map(|failures| retry_after(failures).as_millis()).collect();
        assert_eq!(waits, [20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(retry_after(u32::MAX), RETRY);
    }

    #[test]
    fn parts_are_gathered_while_many_small_ones_come() {
        let mut pace = Pace::default();
        let mut now = Duration::ZERO;
        let mut come = |count: u32, bytes: usize, apart: Duration| {
            let gathered = (0..count).filter(|_| {
                now += apart;
                pace.gathers(bytes, now)
            });
            gathered.count() as u32
        };
        let fast = PARTS_SPAN / PARTS_MAX / 2;
        assert_eq!(come(10 * PARTS_MAX, 100, 3 * fast), 0);
        assert_eq!(come(10 * PARTS_MAX, SMALL_PART_BYTES_MAX + 1, fast), 0);
        // What came slowly is over; then as many as may come, and all that follow for a while.
        let looks = come(2 * PARTS_MAX, 100, fast);
        assert!((1..=PARTS_MAX).contains(&looks), "{looks}");
        assert!(come(100, 100, GATHERED_FOR / 100) >= 90);
        // It ends by itself.
        come(2 * PARTS_MAX, 100, GATHERED_FOR);
        assert_eq!(come(10 * PARTS_MAX, 100, 3 * fast), 0);
    }
}
