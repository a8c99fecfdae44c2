//! The server that a replica follows. A thread connects to the primary and receives the dataset or the rest of the
//! stream. It hands the stream to the first worker, which executes it.
//!
//! ```text
//!  connect ─ PING, AUTH, REPLCONF ─ PSYNC ─┬─ +FULLRESYNC ─ file ─ quiesce, discard ─ load ─┐
//!     ▲                                    └─ +CONTINUE ────────────────────────────────────┤
//!     │ after 50 ms, or a second after a failure                                            ▼
//!     └────────────── connection lost ── parts of the stream ─► worker: executes and relays them
//! ```
//!
//! [`state::Upstream`] is the state that all threads see. The thread and the [`applying::Applier`] hold a reference to
//! it, so a server can have several upstreams.
//!
//! | part | purpose |
//! |---|---|
//! | `state` | phase, connection and offsets, for all threads |
//! | `received` | parts of the stream that are not executed yet |
//! | `wire` | the connection |
//! | `listed` | the connection as a client of this server |
//! | `handshake` | the requests before the dataset or the stream, and their replies |
//! | `payload` | a dataset that is being received |
//! | `dataset` | receives and loads a full copy |
//! | `applying` | executes the stream on the first worker |
//! | `transaction` | finds the end of a transaction in the stream; encodes requests for the append-only file |

pub mod applying;
mod dataset;
mod handshake;
mod listed;
mod payload;
pub mod received;
pub mod state;
mod transaction;
pub(crate) mod wire;

use self::handshake::{Failure, PsyncReply, Reader};
use self::listed::{ClientIdentity, ListedClient};
use self::wire::Wire;
use crate::clients::ClientRecord;
use crate::cluster::boot_ms;
use crate::core::Core;
use crate::core::mailbox::{Message, Work};
use crate::core::shared::Shared;
use crate::replication::acks::GETACK_REQUEST;
use crate::replication::environment::{Environment, Moment, receive};
use crate::replication::failover::FailoverPhase;
use crate::replication::upstream::state::{Upstream, UpstreamPhase};
use crate::replication::{follow, handover};
use brisk_config::Config;
use brisk_config::value::PrimaryAddress;
use brisk_engine::effect::Hooks;
use brisk_reactor::unix_ms;
use brisk_resp::request;
use memchr::memmem;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// The delays before the next connection: the longest, and the delay after the first failure.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_FIRST: Duration = Duration::from_millis(20);
/// If several full copies in succession are followed by connections that do not last, each delay is twice as long as
/// the previous one, up to this value. A full copy costs the primary much more than a connection does.
const COPY_RETRY_MAX: Duration = Duration::from_secs(5);
/// A connection that was up for at least this long has lasted.
const LASTING: Duration = Duration::from_secs(10);
/// The delay after a connection that received the stream. It is short, so that the primary's backlog still has the next
/// byte. Without this delay, a primary that closes each connection would keep a core busy.
const RECONNECT: Duration = Duration::from_millis(50);
/// How often this server sends its offset to the primary.
const ACK_PERIOD: Duration = Duration::from_secs(1);
/// How long the thread waits for the worker to execute the latest part before it sends the offset.
const ACK_WAIT_MAX: Duration = Duration::from_millis(2);
/// How often a thread that waits for a worker checks that the upstream and the server still exist.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// If more parts of the stream than this arrive within [`PARTS_SPAN`], parts are gathered. Each part wakes this thread
/// and the worker, which usually costs more than executing the part.
const PARTS_MAX: u32 = 8;
const PARTS_SPAN: Duration = Duration::from_millis(1);
/// Parts are gathered for this long. Then their rate is measured again.
const GATHERED_FOR: Duration = Duration::from_millis(10);
/// While parts are gathered, bytes that arrive within this time become one part. The system's timers add about 50 µs.
const GATHER: Duration = Duration::from_micros(200);
/// A larger part is not gathered.
const SMALL_PART_BYTES_MAX: usize = 16 << 10;
/// If the primary requests an acknowledgement, a client waits for it, so no parts are gathered for this long.
const HURRIED_FOR: Duration = Duration::from_millis(100);

/// Starts the thread that follows the primary at `address`. The thread ends when the upstream's generation is no
/// longer `generation`.
pub fn start(
    shared: &'static Shared,
    upstream: Arc<Upstream>,
    address: PrimaryAddress,
    generation: u64,
) {
    let (identity, copies) = (ClientIdentity::default(), Copies::default());
    let thread = UpstreamThread { shared, upstream, address, generation, identity, copies };
    let run = move || thread.run();
    if let Err(error) = shared.replication.environment().spawn("brisk-link", Box::new(run)) {
        shared.log.warning(format_args!(
            "Can't replicate from the primary: cannot start a thread: {error}"
        ));
    }
}

/// The thread that follows one primary, over any number of connections.
pub(super) struct UpstreamThread {
    shared: &'static Shared,
    upstream: Arc<Upstream>,
    address: PrimaryAddress,
    generation: u64,
    identity: ClientIdentity,
    copies: Copies,
}

/// Counts full copies whose connections did not last.
#[derive(Debug, Default)]
struct Copies {
    /// The number of consecutive full copies.
    count: Cell<u32>,
    /// True if the last connection started a full copy.
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

    /// The delay before the next connection: `usual`, or longer after full copies whose connections did not last.
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
        self.upstream.generation() == self.generation
            && !self.shared.process.shutdown.is_requested()
    }

    fn run(&self) {
        let mut failures = 0;
        while self.is_wanted() {
            let config = self.shared.config();
            let began = Moment::now();
            self.copies.begin_connection();
            let ended = self.connect(&config);
            let phase = self.upstream.phase();
            let log = &self.shared.log;
            if !self.is_wanted() {
                return;
            }
            self.upstream.disconnect(self.generation);
            // Subscriptions and other state of the primary's session end with the connection.
            if phase == UpstreamPhase::Connected && self.upstream.stream.end(|| self.is_wanted()) {
                self.shared.mailboxes.wake(0);
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
                // The primary has begun a snapshot for this connection. This must not happen often.
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

    /// Runs one connection until it ends.
    fn connect(&self, config: &Config) -> Result<(), Failure> {
        let (log, upstream, address) = (&self.shared.log, &*self.upstream, &self.address);
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
        let wire = if config.tls.replication {
            {
                let refused = |error: std::io::Error| Failure::Refused(error.to_string());
                wire::encrypt(config, wire).map_err(refused)?
            }
        } else {
            wire
        };
        wire.set_timeout(ACK_PERIOD)?;
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
        let next = handshake::request_stream(&mut reader, (&id, offset), takes_over);
        if takes_over {
            match &next {
                Ok(PsyncReply::Full { .. } | PsyncReply::Partial { .. }) => {
                    handover::end(self.shared)
                }
                Ok(PsyncReply::Later(_)) | Err(Failure::Refused(_)) => {
                    let why = "Failover target rejected psync request";
                    return self.when_quiesced(move |core| handover::abort(core, why));
                }
                Err(_) => {}
            }
        }
        match next? {
            PsyncReply::Full { id, offset } => {
                let (primary, number) = (words.lower, offset.get());
                log.notice(format_args!("Full resync from {primary}: {id}:{number}"));
                self.copies.note_copy();
                self.set_phase(UpstreamPhase::Sync)?;
                self.identity.forget();
                self.become_client(&wire)?;
                dataset::receive(self, config, &wire, &mut reader, (id, offset))?;
            }
            PsyncReply::Partial { id } => {
                let lower = words.lower;
                log.notice(format_args!("Successful partial resynchronization with {lower}."));
                self.become_client(&wire)?;
                self.continue_from(id, offset)?;
            }
            PsyncReply::Later(why) => {
                let text = format!(
                    "{} is currently unable to PSYNC but should be in the future: {why}",
                    words.title
                );
                return Err(Failure::Refused(text));
            }
        }
        let client = upstream.client().ok_or(Failure::Unwanted)?;
        let _listed = ListedClient::new(self.shared, Arc::clone(&client));
        self.set_phase(UpstreamPhase::Connected)?;
        self.follow(&mut reader, &client)
    }

    /// Makes this connection the client that the next stream's commands belong to.
    fn become_client(&self, wire: &Wire) -> Result<(), Failure> {
        self.upstream.set_client(self.generation, self.identity.record(self.shared, wire)?);
        Ok(())
    }

    /// Waits until all parts from the previous connection are executed.
    fn finish_stream(&self) -> Result<(), Failure> {
        let stream = &self.upstream.stream;
        while !self.environment().wait(LOOK_AGAIN, &mut |most| stream.wait_for_end(most)) {
            if !self.is_wanted() {
                return Err(Failure::Unwanted);
            }
        }
        Ok(())
    }

    /// Continues the stream at its end. If the primary sent an id, the history has that id from this offset on.
    fn continue_from(&self, id: Option<String>, offset: u64) -> Result<(), Failure> {
        let (upstream, generation) = (Arc::clone(&self.upstream), self.generation);
        self.when_quiesced(move |core| {
            let replication = &core.shared.replication;
            let present = replication.history.ids().id;
            if let Some(id) = id.as_ref().filter(|id| **id != present) {
                let title = core.shared.primary_words().title;
                core.shared.log.notice(format_args!("{title} replication ID changed to {id}"));
                replication.history.rename(id.clone(), offset);
                follow::disconnect_all(core.shared);
            }
            if !replication.stream.has_backlog() {
                core.shared.dispatch_changes(core.id);
                replication.begin_backlog(core.shared.keyspace.journal().end(), unix_ms());
            }
            core.env.hooks.set(Hooks::PROPAGATE, true);
            upstream.stream.begin();
            let end = core.shared.keyspace.journal().end();
            upstream.note_read(replication.history.offset(end));
            // Enter the phase here, because the upstream's thread enters it only later and the upstream is up now.
            core.shared.enter_phase(&upstream, generation, UpstreamPhase::Connected, unix_ms());
        })
    }

    /// Hands the stream to the worker until the connection ends.
    fn follow(&self, reader: &mut Reader<'_>, client: &ClientRecord) -> Result<(), Failure> {
        let (shared, upstream, environment) = (self.shared, &*self.upstream, self.environment());
        let stream = &upstream.stream;
        upstream.note_read(shared.replication.history.offset(shared.keyspace.journal().end()));
        acknowledge(shared, upstream);
        let mut acknowledged = Moment::now();
        let (began, mut pace) = (acknowledged, Pace::default());
        loop {
            let part = reader.next()?;
            reader.send_waiting()?;
            if let Some(part) = part {
                client.bytes_in.fetch_add(part.len() as u64, Ordering::Relaxed);
                client.last_active_ms.store(unix_ms(), Ordering::Relaxed);
                let gathers = pace.gathers(&part, began.elapsed());
                upstream.note_read(upstream.read_offset().saturating_add(part.len() as u64));
                while !environment.wait(ACK_PERIOD, &mut |most| stream.wait_for_room(most)) {
                    if !self.is_wanted() {
                        return Err(Failure::Unwanted);
                    }
                    acknowledge(shared, upstream);
                }
                if stream.push(part, unix_ms(), || self.is_wanted()) {
                    shared.mailboxes.wake(0);
                }
                if gathers {
                    self.environment().sleep(GATHER);
                }
            }
            if acknowledged.elapsed() >= ACK_PERIOD {
                if began.elapsed() >= LASTING {
                    self.copies.note_lasted();
                }
                // Wait so that the offset includes the latest part. The primary's PINGs may arrive at the same rate,
                // each right before an acknowledgement. Without the wait, no acknowledgement would cover the latest
                // PING.
                environment.wait(ACK_WAIT_MAX, &mut |most| stream.wait_for_end(most));
                acknowledge(shared, upstream);
                acknowledged = Moment::now();
            }
        }
    }

    fn on_worker<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        on_worker(self.shared, work).ok_or(Failure::Unwanted)
    }

    /// Runs `work` on the first worker while all others are quiesced. Fails if the generation has changed.
    /// Waits while a slow script prevents quiescence.
    fn when_quiesced<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Core) -> T + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        self.when(move |core| Some(work(core)))
    }

    /// The same as `when_quiesced`, repeated until `work` returns a value.
    fn when<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Core) -> Option<T> + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        let (work, generation) = (Arc::new(work), self.generation);
        loop {
            let (work, upstream) = (Arc::clone(&work), Arc::clone(&self.upstream));
            let done = self.on_worker(move |core| {
                let Ok(_quiesced) = core.quiesce_others() else { return Ok(None) };
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

/// The delay after this many consecutive failures. It is short at first, so that servers that are started together
/// connect quickly. Sentinels query a primary for its replicas when they start, and again only after ten seconds.
fn retry_after(failures: u32) -> Duration {
    let doubled = RETRY_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(RETRY)
}

/// Measures the rate of small parts of the stream. Times are measured from the beginning of the connection.
#[derive(Default)]
struct Pace {
    begun: Duration,
    /// Parts since `begun`.
    parts: u32,
    gathers: bool,
    /// No parts are gathered before this time.
    hurried_until: Duration,
}

impl Pace {
    /// Notes a part. Returns true if the thread should wait a little before it reads more.
    fn gathers(&mut self, part: &[u8], now: Duration) -> bool {
        if part.len() > SMALL_PART_BYTES_MAX {
            return false;
        }
        // Changes of other clients may follow the request in the same part.
        if memmem::find(part, GETACK_REQUEST).is_some() {
            self.hurried_until = now + HURRIED_FOR;
        }
        self.parts += 1;
        let since = now.saturating_sub(self.begun);
        if self.gathers {
            if since >= GATHERED_FOR {
                self.begin(now, false);
            }
        } else if self.parts > PARTS_MAX {
            self.begin(now, since < PARTS_SPAN);
        }
        self.gathers && now >= self.hurried_until
    }

    fn begin(&mut self, now: Duration, gathers: bool) {
        (self.begun, self.parts, self.gathers) = (now, 1, gathers);
    }
}

/// Runs `work` on the first worker and waits for its result. Returns `None` if the server shuts down.
pub(super) fn on_worker<T: Send + 'static>(
    shared: &Shared,
    work: impl FnOnce(&mut Core) -> T + Send + 'static,
) -> Option<T> {
    let (done, is_done) = sync_channel(1);
    let work = move |core: &mut Core| {
        // The receiver has been dropped only if the server shuts down.
        let _ = done.send(work(core));
    };
    shared.mailboxes.send(0, Message::Run(Work(Box::new(work))));
    loop {
        match receive(shared.replication.environment(), &is_done, LOOK_AGAIN) {
            Ok(done) => return Some(done),
            Err(RecvTimeoutError::Timeout) if !shared.process.shutdown.is_requested() => {}
            Err(_) => return None,
        }
    }
}

/// Sends the primary this server's offset and the offset up to which its append-only file is durable.
pub fn acknowledge(shared: &Shared, upstream: &Upstream) {
    let (history, end) = (&shared.replication.history, shared.keyspace.journal().end());
    let offset = history.offset(end).to_string();
    let mut bytes = Vec::new();
    match shared.persistence.aof.durable() {
        Some(place) => {
            let durable = history.offset(place.min(end)).to_string();
            request::encode(&mut bytes, &["REPLCONF", "ACK", &offset, "FACK", &durable]);
        }
        None => request::encode(&mut bytes, &["REPLCONF", "ACK", &offset]),
    }
    // Note the time only after the offset was read. The primary dates the acknowledgement from when it sent the stream
    // up to this offset.
    if upstream.note_ack(boot_ms()) {
        upstream.send(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_over_unstable_links_are_requested_at_growing_intervals() {
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
        // A connection without a full copy is not delayed.
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
    fn parts_are_gathered_while_many_small_parts_arrive() {
        let mut pace = Pace::default();
        let mut now = Duration::ZERO;
        let mut come = |count: u32, part: &[u8], apart: Duration| {
            let gathered = (0..count).filter(|_| {
                now += apart;
                pace.gathers(part, now)
            });
            gathered.count() as u32
        };
        let fast = PARTS_SPAN / PARTS_MAX / 2;
        let (small, large) = ([b'.'; 100], vec![b'.'; SMALL_PART_BYTES_MAX + 1]);
        assert_eq!(come(10 * PARTS_MAX, &small, 3 * fast), 0);
        assert_eq!(come(10 * PARTS_MAX, &large, fast), 0);
        // After the slow phase, parts up to the limit pass, and all later parts are gathered for a while.
        let looks = come(2 * PARTS_MAX, &small, fast);
        assert!((1..=PARTS_MAX).contains(&looks), "{looks}");
        assert!(come(100, &small, GATHERED_FOR / 100) >= 90);
        // A client waits for an acknowledgement.
        let request_and_change = [GETACK_REQUEST, &small].concat();
        assert_eq!(come(1, &request_and_change, fast), 0);
        let hurried = HURRIED_FOR.div_duration_f64(fast) as u32;
        assert_eq!(come(hurried - 1, &small, fast), 0);
        assert!(come(2 * PARTS_MAX, &small, fast) >= PARTS_MAX);
        // Gathering ends when parts arrive slowly again.
        come(2 * PARTS_MAX, &small, GATHERED_FOR);
        assert_eq!(come(10 * PARTS_MAX, &small, 3 * fast), 0);
    }
}
