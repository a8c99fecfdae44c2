//! The state of an upstream, a primary that this server follows: phase, connection and offsets.
//!
//! The setting `replicaof` names the primary of this server. [`crate::core::conditions::Condition::Replica`] is set
//! while this server has a primary.

use super::received::ReceivedStream;
use crate::clients::ClientRecord;
use brisk_engine::keyspace::DbNumber;
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The connection to the primary, for threads that send requests to it.
pub trait UpstreamConnection: Send + Sync {
    /// Sends a short request without waiting. If the primary has not read for a long time, the connection is closed.
    fn send(&self, request: &[u8]);
    /// Sends a request of any length without waiting. Bytes that the kernel does not take immediately are kept and sent
    /// later. If too many bytes are already waiting, sends nothing and returns false.
    fn offer(&self, request: &[u8]) -> bool;
    /// Closes the connection.
    fn close(&self);
}

/// The phase of an upstream, with the names that ROLE uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum UpstreamPhase {
    /// Not connected. Another attempt follows.
    Connect,
    /// A connection is being established.
    Connecting,
    /// The servers exchange their capabilities.
    Handshake,
    /// The dataset is being received.
    Sync,
    /// The stream is being received.
    Connected,
}

impl UpstreamPhase {
    pub fn word(self) -> &'static str {
        match self {
            UpstreamPhase::Connect => "connect",
            UpstreamPhase::Connecting => "connecting",
            UpstreamPhase::Handshake => "handshake",
            UpstreamPhase::Sync => "sync",
            UpstreamPhase::Connected => "connected",
        }
    }
}

/// Progress of receiving a dataset, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct IncomingDataset {
    /// `None` if the primary does not know the length before the end.
    pub total: Option<u64>,
    pub read: u64,
    /// The arrival time of the last bytes, in Unix ms.
    pub last_ms: u64,
}

/// The times at which this server sent its last acknowledgements to primaries, in milliseconds of
/// [`crate::cluster::boot_ms`]. `None` means that this process has sent none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckTimes {
    /// The last acknowledgement to the current primary.
    pub last_ms: Option<u64>,
    /// The last acknowledgement to an earlier primary.
    pub earlier_ms: Option<u64>,
    /// True if this server is about to become a primary.
    has_ended: bool,
}

/// The state of an upstream, shared by its thread, the applier and all workers.
pub struct Upstream {
    phase: AtomicU8,
    /// When the last byte arrived, in Unix ms.
    last_io_ms: AtomicU64,
    /// When the last stream ended, in Unix ms; 0 before the first stream.
    down_since_ms: AtomicU64,
    /// The offset up to which the stream was received.
    read_offset: AtomicU64,
    incoming: Mutex<IncomingDataset>,
    /// True if a full copy has begun and none has ended since.
    is_copying: AtomicBool,
    /// True if the dataset was discarded for a full copy that has not replaced it yet.
    is_partial: AtomicBool,
    /// Incremented with each change of the primary.
    generation: AtomicU64,
    connection: Mutex<Option<Arc<dyn UpstreamConnection>>>,
    /// The connection of the stream, as a client of this server.
    client: Mutex<Option<Arc<ClientRecord>>>,
    /// The database that the executed part of the stream selected last. It may not exist on this server.
    stream_db: AtomicU32,
    /// True if the primary supports comparisons.
    compares: AtomicBool,
    /// Parts of the stream that have not been executed yet.
    pub stream: ReceivedStream,
    /// The time of the last warning that commands of the stream cannot be written to the disk, in Unix ms.
    warned_ms: AtomicU64,
    ack_times: Mutex<AckTimes>,
}

/// The minimum time between two warnings about the disk.
const WARNED_PERIOD_MS: u64 = 10_000;

impl Default for Upstream {
    fn default() -> Upstream {
        Upstream {
            phase: AtomicU8::new(UpstreamPhase::Connect as u8),
            last_io_ms: AtomicU64::new(0),
            down_since_ms: AtomicU64::new(0),
            read_offset: AtomicU64::new(0),
            incoming: Mutex::default(),
            is_copying: AtomicBool::new(false),
            is_partial: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            connection: Mutex::default(),
            client: Mutex::default(),
            stream_db: AtomicU32::new(0),
            compares: AtomicBool::new(false),
            stream: ReceivedStream::default(),
            warned_ms: AtomicU64::new(0),
            ack_times: Mutex::default(),
        }
    }
}

impl Upstream {
    pub fn phase(&self) -> UpstreamPhase {
        match self.phase.load(Ordering::Relaxed) {
            0 => UpstreamPhase::Connect,
            1 => UpstreamPhase::Connecting,
            2 => UpstreamPhase::Handshake,
            3 => UpstreamPhase::Sync,
            _ => UpstreamPhase::Connected,
        }
    }

    /// True while the stream is being received.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.phase() == UpstreamPhase::Connected
    }

    /// True if a full copy has begun and none has ended since. The dataset is a part of the copy, or it is too old to
    /// be continued.
    pub fn is_copying(&self) -> bool {
        self.is_copying.load(Ordering::SeqCst)
    }

    /// True if the dataset was discarded for a full copy that has not replaced it yet: the dataset is empty or a part
    /// of the copy.
    pub fn is_partial(&self) -> bool {
        self.is_partial.load(Ordering::SeqCst)
    }

    /// Notes that a full copy is now the dataset. All other workers are quiesced.
    pub fn note_whole(&self) {
        self.is_copying.store(false, Ordering::SeqCst);
        self.is_partial.store(false, Ordering::SeqCst);
    }

    /// Notes that the dataset is discarded for a full copy. All other workers are quiesced.
    pub fn note_discarded(&self) {
        self.is_partial.store(true, Ordering::SeqCst);
    }

    /// True if there is or was a stream.
    pub fn has_been_up(&self) -> bool {
        self.is_up() || self.down_since_ms().is_some()
    }

    /// Sets the phase and returns true if the current generation is `generation`.
    pub fn set_phase(&self, generation: u64, phase: UpstreamPhase, now_ms: u64) -> bool {
        // A thread that changes the primary at the same time waits for this lock and wins.
        let _connection = self.connection.lock().even_poisoned();
        if generation != self.generation() {
            return false;
        }
        let before = self.phase.swap(phase as u8, Ordering::SeqCst);
        if before == UpstreamPhase::Connected as u8 && phase != UpstreamPhase::Connected {
            self.down_since_ms.store(now_ms, Ordering::Relaxed);
        }
        match phase {
            UpstreamPhase::Sync => self.is_copying.store(true, Ordering::SeqCst),
            UpstreamPhase::Connected => self.note_whole(),
            UpstreamPhase::Connect | UpstreamPhase::Connecting | UpstreamPhase::Handshake => {}
        }
        if phase == UpstreamPhase::Sync {
            *self.incoming.lock().even_poisoned() = IncomingDataset::default();
        }
        true
    }

    /// Ends the current generation because the primary changes. Parts that are not executed are dropped, and the
    /// connection is closed. Returns the next generation. All other workers are quiesced.
    pub fn leave(&self) -> u64 {
        // The generation changes first, so no thread adds a part of the previous generation.
        let generation = self.generation.fetch_add(1, Ordering::SeqCst) + 1;
        self.stream.begin();
        let mut present = self.connection.lock().even_poisoned();
        if let Some(connection) = present.take() {
            connection.close();
        }
        self.phase.store(UpstreamPhase::Connect as u8, Ordering::SeqCst);
        drop(present);
        if let Some(client) = self.client.lock().even_poisoned().take() {
            client.killed.store(true, Ordering::Relaxed);
        }
        self.down_since_ms.store(0, Ordering::Relaxed);
        self.last_io_ms.store(0, Ordering::Relaxed);
        let mut acks = self.ack_times.lock().even_poisoned();
        let earlier_ms = acks.earlier_ms.max(acks.last_ms);
        *acks = AckTimes { earlier_ms, ..AckTimes::default() };
        generation
    }

    /// Notes an acknowledgement of an offset that was read before `now_ms`. Returns false if the acknowledgement must
    /// not be sent.
    pub fn note_ack(&self, now_ms: u64) -> bool {
        let mut acks = self.ack_times.lock().even_poisoned();
        if !acks.has_ended {
            acks.last_ms = acks.last_ms.max(Some(now_ms));
        }
        !acks.has_ended
    }

    /// Stops acknowledgements until [`Upstream::leave`] or [`Upstream::resume_acks`], because this server is about to
    /// become a primary. Returns the times at which the last acknowledgements were sent.
    pub fn end_acks(&self) -> AckTimes {
        let mut acks = self.ack_times.lock().even_poisoned();
        acks.has_ended = true;
        *acks
    }

    /// Resumes acknowledgements after [`Upstream::end_acks`], because this server stays a replica for now.
    pub fn resume_acks(&self) {
        self.ack_times.lock().even_poisoned().has_ended = false;
    }

    /// The current generation.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Sets the connection and returns true if the current generation is `generation`.
    pub fn connect(&self, generation: u64, connection: Arc<dyn UpstreamConnection>) -> bool {
        let mut present = self.connection.lock().even_poisoned();
        let is_wanted = generation == self.generation();
        if is_wanted {
            *present = Some(connection);
        }
        is_wanted
    }

    /// Closes the connection, if the current generation is `generation`.
    pub fn disconnect(&self, generation: u64) {
        let mut present = self.connection.lock().even_poisoned();
        if let Some(connection) = present.take_if(|_| generation == self.generation()) {
            connection.close();
        }
    }

    /// The connection of the current or last stream, as a client of this server.
    pub fn client(&self) -> Option<Arc<ClientRecord>> {
        self.client.lock().even_poisoned().clone()
    }

    /// Sets the client of the next stream, if the current generation is `generation`.
    pub fn set_client(&self, generation: u64, client: Arc<ClientRecord>) {
        let mut present = self.client.lock().even_poisoned();
        if generation == self.generation() {
            *present = Some(client);
        }
    }

    /// True if the primary has announced during the handshake that it supports comparisons.
    pub fn compares(&self) -> bool {
        self.compares.load(Ordering::Relaxed)
    }

    pub fn set_compares(&self, generation: u64, compares: bool) {
        let _connection = self.connection.lock().even_poisoned();
        if generation == self.generation() {
            self.compares.store(compares, Ordering::Relaxed);
        }
    }

    /// Sends a short request to the primary, if there is a connection.
    pub fn send(&self, request: &[u8]) {
        let connection = self.connection.lock().even_poisoned().clone();
        if let Some(connection) = connection {
            connection.send(request);
        }
    }

    /// Sends a request of any length to the primary, if there is a connection. Returns false and sends nothing
    /// if the primary does not read.
    pub fn offer(&self, request: &[u8]) -> bool {
        let connection = self.connection.lock().even_poisoned().clone();
        connection.is_none_or(|connection| connection.offer(request))
    }

    /// The database that the executed part of the stream selected last.
    pub fn stream_db(&self) -> DbNumber {
        DbNumber(self.stream_db.load(Ordering::Relaxed))
    }

    pub fn set_stream_db(&self, db: DbNumber) {
        self.stream_db.store(db.0, Ordering::Relaxed);
    }

    /// Returns true if the warning that commands of the stream cannot be written to the disk is due again.
    pub fn warns_of_disk(&self, now_ms: u64) -> bool {
        let warned = self.warned_ms.load(Ordering::Relaxed);
        let is_due = now_ms.saturating_sub(warned) >= WARNED_PERIOD_MS;
        if is_due {
            self.warned_ms.store(now_ms, Ordering::Relaxed);
        }
        is_due
    }

    /// When the last byte arrived, in Unix ms.
    pub fn last_io_ms(&self) -> u64 {
        self.last_io_ms.load(Ordering::Relaxed)
    }

    pub fn note_io(&self, now_ms: u64) {
        self.last_io_ms.store(now_ms, Ordering::Relaxed);
    }

    /// When the last stream ended, in Unix ms. `None` before the first stream.
    pub fn down_since_ms(&self) -> Option<u64> {
        Some(self.down_since_ms.load(Ordering::Relaxed)).filter(|since| *since > 0)
    }

    /// The offset up to which the stream was received, executed or not.
    pub fn read_offset(&self) -> u64 {
        self.read_offset.load(Ordering::Relaxed)
    }

    pub fn note_read(&self, offset: u64) {
        self.read_offset.store(offset, Ordering::Relaxed);
    }

    /// The progress of the dataset that is being received.
    pub fn incoming(&self) -> IncomingDataset {
        *self.incoming.lock().even_poisoned()
    }

    pub fn note_incoming(&self, change: impl FnOnce(&mut IncomingDataset)) {
        change(&mut self.incoming.lock().even_poisoned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_promoted_acknowledges_nothing_more() {
        let upstream = Upstream::default();
        assert_eq!(upstream.end_acks(), AckTimes { has_ended: true, ..AckTimes::default() });
        upstream.leave();
        assert!(upstream.note_ack(5) && upstream.note_ack(4));
        upstream.leave();
        assert!(upstream.note_ack(7));
        let acks = upstream.end_acks();
        assert_eq!((acks.last_ms, acks.earlier_ms), (Some(7), Some(5)));
        assert!(!upstream.note_ack(8));
        assert_eq!(upstream.end_acks(), acks);
        upstream.leave();
        assert!(upstream.note_ack(9));
    }
}
