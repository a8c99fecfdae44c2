//! The primary of this server, if it is a replica: how far the way there has come.
//!
//! Who the primary is the settings say (`replicaof`); that there is one shows in
//! [`crate::core::shared::armed::REPLICA`].

use super::received::ReceivedStream;
use crate::clients::ClientRecord;
use brisk_engine::keyspace::DbNumber;
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The connection to the primary, for those who have something to say there.
pub trait UpstreamConnection: Send + Sync {
    /// Sends a short request without waiting: if the primary does not read for long, the connection is
    /// closed.
    fn send(&self, request: &[u8]);
    /// Sends a request of any length without waiting, and what the primary does not take of it at once by
    /// and by. False, and nothing, if too much waits for that already.
    fn offer(&self, request: &[u8]) -> bool;
    /// Nothing more comes by it.
    fn close(&self);
}

/// How far the way to the primary has come, in the words of ROLE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum UpstreamPhase {
    /// There is no connection; one is to be made.
    Connect,
    /// One is being made.
    Connecting,
    /// Both tell of themselves.
    Handshake,
    /// The dataset comes.
    Sync,
    /// The stream comes.
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

/// A dataset on its way from the primary, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct IncomingDataset {
    /// `None` if the primary does not know before its end.
    pub total: Option<u64>,
    pub read: u64,
    /// When the last of it came, in Unix ms.
    pub last_ms: u64,
}

/// What all workers can see of it.
pub struct Upstream {
    phase: AtomicU8,
    /// When the last byte came from it, in Unix ms.
    last_io_ms: AtomicU64,
    /// Since when there is no stream, in Unix ms; 0 if there never was.
    down_since_ms: AtomicU64,
    /// Bytes of the stream that were received, as an offset.
    read_offset: AtomicU64,
    incoming: Mutex<IncomingDataset>,
    /// Grows with each other primary, and when there is none any more.
    generation: AtomicU64,
    connection: Mutex<Option<Arc<dyn UpstreamConnection>>>,
    /// The connection that the stream comes by, as a client of this server.
    client: Mutex<Option<Arc<ClientRecord>>>,
    /// The database that the executed part of the stream selected last. This server may not have it.
    stream_db: AtomicU32,
    /// It understands what this server finds when both are compared.
    compares: AtomicBool,
    /// What was received and not executed yet.
    pub stream: ReceivedStream,
    /// When the log was told last that its commands cannot be written to the disk, in Unix ms.
    warned_ms: AtomicU64,
}

/// Time between two lines in the log about that.
const WARNED_PERIOD_MS: u64 = 10_000;

impl Default for Upstream {
    fn default() -> Upstream {
        Upstream {
            phase: AtomicU8::new(UpstreamPhase::Connect as u8),
            last_io_ms: AtomicU64::new(0),
            down_since_ms: AtomicU64::new(0),
            read_offset: AtomicU64::new(0),
            incoming: Mutex::default(),
            generation: AtomicU64::new(0),
            connection: Mutex::default(),
            client: Mutex::default(),
            stream_db: AtomicU32::new(0),
            compares: AtomicBool::new(false),
            stream: ReceivedStream::default(),
            warned_ms: AtomicU64::new(0),
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

    /// Whether the stream comes.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.phase() == UpstreamPhase::Connected
    }

    /// Whether there is a stream, or was one.
    pub fn has_been_up(&self) -> bool {
        self.is_up() || self.down_since_ms().is_some()
    }

    /// The way with this number has come to another phase, if it is still the one that is gone; whether
    /// it is.
    pub fn set_phase(&self, generation: u64, phase: UpstreamPhase, now_ms: u64) -> bool {
        // Whoever names another primary meanwhile waits, and has the last word.
        let _place = self.connection.lock().even_poisoned();
        if generation != self.generation() {
            return false;
        }
        let before = self.phase.swap(phase as u8, Ordering::SeqCst);
        if before == UpstreamPhase::Connected as u8 && phase != UpstreamPhase::Connected {
            self.down_since_ms.store(now_ms, Ordering::Relaxed);
        }
        if phase == UpstreamPhase::Sync {
            *self.incoming.lock().even_poisoned() = IncomingDataset::default();
        }
        true
    }

    /// There is another primary, or none: what came of this one and was not executed is dropped, and the
    /// way there closed. Only while all other workers stand still. The number of the way to the next.
    pub fn leave(&self) -> u64 {
        // In this order: nobody adds to the stream who has not seen it.
        let generation = self.generation.fetch_add(1, Ordering::SeqCst) + 1;
        self.stream.begin();
        let mut place = self.connection.lock().even_poisoned();
        if let Some(connection) = place.take() {
            connection.close();
        }
        self.phase.store(UpstreamPhase::Connect as u8, Ordering::SeqCst);
        drop(place);
        if let Some(client) = self.client.lock().even_poisoned().take() {
            client.killed.store(true, Ordering::Relaxed);
        }
        self.down_since_ms.store(0, Ordering::Relaxed);
        self.last_io_ms.store(0, Ordering::Relaxed);
        generation
    }

    /// The number of the way to the present primary.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// This is the connection from now on, if the way with this number is still the one that is gone;
    /// whether it is.
    pub fn connect(&self, generation: u64, connection: Arc<dyn UpstreamConnection>) -> bool {
        let mut place = self.connection.lock().even_poisoned();
        let is_wanted = generation == self.generation();
        if is_wanted {
            *place = Some(connection);
        }
        is_wanted
    }

    /// The connection of the way with this number is closed; another one may be made.
    pub fn disconnect(&self, generation: u64) {
        let mut place = self.connection.lock().even_poisoned();
        if let Some(connection) = place.take_if(|_| generation == self.generation()) {
            connection.close();
        }
    }

    /// The connection that the stream comes by, or came by last, as a client of this server.
    pub fn client(&self) -> Option<Arc<ClientRecord>> {
        self.client.lock().even_poisoned().clone()
    }

    /// The next stream comes by this connection, if the way with this number is still the one that is gone.
    pub fn set_client(&self, generation: u64, client: Arc<ClientRecord>) {
        let mut place = self.client.lock().even_poisoned();
        if generation == self.generation() {
            *place = Some(client);
        }
    }

    /// Whether it understands what this server finds when both are compared. It said so when the present
    /// connection began.
    pub fn compares(&self) -> bool {
        self.compares.load(Ordering::Relaxed)
    }

    pub fn set_compares(&self, generation: u64, compares: bool) {
        let _connection = self.connection.lock().even_poisoned();
        if generation == self.generation() {
            self.compares.store(compares, Ordering::Relaxed);
        }
    }

    /// Says something to the primary, if there is a connection.
    pub fn send(&self, request: &[u8]) {
        let connection = self.connection.lock().even_poisoned().clone();
        if let Some(connection) = connection {
            connection.send(request);
        }
    }

    /// Says something longer to the primary, if there is a connection. False if that does not read: then
    /// it is not told.
    pub fn offer(&self, request: &[u8]) -> bool {
        let connection = self.connection.lock().even_poisoned().clone();
        connection.is_none_or(|connection| connection.offer(request))
    }

    /// The number of the database that the executed part of the stream selected last.
    pub fn stream_db(&self) -> DbNumber {
        DbNumber(self.stream_db.load(Ordering::Relaxed))
    }

    pub fn set_stream_db(&self, db: DbNumber) {
        self.stream_db.store(db.0, Ordering::Relaxed);
    }

    /// Whether it is time to tell the log that its commands cannot be written to the disk.
    pub fn warns_of_disk(&self, now_ms: u64) -> bool {
        let warned = self.warned_ms.load(Ordering::Relaxed);
        let is_due = now_ms.saturating_sub(warned) >= WARNED_PERIOD_MS;
        if is_due {
            self.warned_ms.store(now_ms, Ordering::Relaxed);
        }
        is_due
    }

    /// When the last byte came, in Unix ms.
    pub fn last_io_ms(&self) -> u64 {
        self.last_io_ms.load(Ordering::Relaxed)
    }

    pub fn note_io(&self, now_ms: u64) {
        self.last_io_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Since when there is no stream, in Unix ms; `None` if there never was.
    pub fn down_since_ms(&self) -> Option<u64> {
        Some(self.down_since_ms.load(Ordering::Relaxed)).filter(|since| *since > 0)
    }

    /// Up to which offset the stream was received, executed or not.
    pub fn read_offset(&self) -> u64 {
        self.read_offset.load(Ordering::Relaxed)
    }

    pub fn note_read(&self, offset: u64) {
        self.read_offset.store(offset, Ordering::Relaxed);
    }

    /// The dataset that is on its way.
    pub fn incoming(&self) -> IncomingDataset {
        *self.incoming.lock().even_poisoned()
    }

    pub fn note_incoming(&self, change: impl FnOnce(&mut IncomingDataset)) {
        change(&mut self.incoming.lock().even_poisoned());
    }
}
