//! The stream on its way out: from the journal to who reads it.
//!
//! ```text
//!  transactions of all workers ── journal ── pump ─┬─ append-only file
//!                                                  └─ backlog ─┬─ worker 0 ─ its replicas
//!                                                              └─ worker 1 ─ its replicas
//! ```
//!
//! The journal is in order and has no gaps, so whoever pumps takes what all have appended. A worker does
//! it after its commands. Nothing is appended while nobody reads:
//! [`brisk_engine::effect::Hooks::PROPAGATE`] is armed with the first reader, while all workers stand
//! still, and disarmed some time after the last is gone.
//!
//! The stream is held once, in the `backlog`, which is there from the first replica on. Each replica is
//! a place in it; its worker takes from there what its connection has room for.
//!
//! For a server that becomes a replica, or another one's: what was kept stands for another history, so
//! while all stand still it is [`Feed::begin_backlog`] with the place from which the stream is the new
//! primary's, and those who followed are disconnected before (`follow::disconnect_all`). A replica keeps
//! a backlog for as long as it is one, also without followers, so that it can be promoted.

use super::acks::REPLICAS_MAX;
use super::backlog::{BLOCK_BYTES_MAX, Backlog, Piece};
use super::marks::Marks;
use super::replica::{Attachment, Filter, Stage};
use super::spill::{MOVED_BYTES, Move, Spilled};
use super::transfer::Transfer;
use crate::clients::ClientRecord;
use crate::persistence::aof::state::Aof;
use brisk_engine::keyspace::{AofEdit, Journal, Ticket};
use brisk_reactor::unix_ms;
use brisk_structures::poison::EvenPoisoned;
use std::fs::File;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::Thread;

/// A session that follows the stream, or waits for a snapshot to begin with.
#[derive(Clone)]
pub struct Member {
    pub client: Arc<ClientRecord>,
    pub attachment: Arc<Attachment>,
    pub ip: Option<IpAddr>,
    /// What it says it listens on; 0 if it said nothing.
    pub port: u16,
    /// When it asked, in Unix ms.
    pub since_ms: u64,
    /// It takes a snapshot whose length is not known before: by the settings it then waits for others to
    /// share its snapshot, which is sent while it is written.
    pub takes_unknown_length: bool,
    /// It understands comparisons.
    pub compares: bool,
    /// The replica wants only these parts of the dataset, and no keys.
    pub filter: Option<Filter>,
    /// The offset it acknowledged last, and when, in Unix ms; 0 before. It begins to count as heard of
    /// when its snapshot was sent.
    pub acked: u64,
    pub acked_ms: u64,
    /// That offset as a place in the stream, or the place that it went on from; `None` before, and if it is
    /// one of before this server's start.
    pub acked_place: Option<Ticket>,
    /// It has acknowledged something: before, `acked` says nothing, not even of the offset 0.
    pub has_acked: bool,
    /// The offset up to which it said that its own append-only file is on its disk.
    pub acked_durable: Option<u64>,
}

impl Member {
    /// Of this connection nothing is known yet but since when it is there.
    pub fn new(client: Arc<ClientRecord>, attachment: Arc<Attachment>, now_ms: u64) -> Member {
        Member {
            client,
            attachment,
            ip: None,
            port: 0,
            since_ms: now_ms,
            takes_unknown_length: false,
            compares: false,
            filter: None,
            acked: 0,
            acked_ms: now_ms,
            acked_place: None,
            has_acked: false,
            acked_durable: None,
        }
    }

    /// What it is called to people: where it listens.
    pub fn name(&self) -> String {
        name_of(self.ip, self.port, &self.client)
    }

    /// Whether both are connections of one server, by where it says that it listens.
    fn is_same_as(&self, other: &Member) -> bool {
        self.port > 0 && (self.ip, self.port) == (other.ip, other.port)
    }

    /// How many seconds ago it was heard of.
    pub fn lag_s(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.acked_ms) / 1000
    }

    /// Whether the replica waits for a snapshot with the parts that it wants.
    pub fn waits_for(&self, filter: Option<Filter>) -> bool {
        !self.attachment.has_place() && self.filter == filter
    }

    /// Whether the stream goes on to it.
    pub fn is_online(&self) -> bool {
        self.attachment.stage() == Stage::Online
    }
}

/// What a replica is called: where it says it listens, or where its connection comes from.
pub fn name_of(ip: Option<IpAddr>, port: u16, client: &ClientRecord) -> String {
    match ip.filter(|_| port > 0) {
        Some(ip) => format!("{ip}:{port}"),
        None => client.addr.to_string(),
    }
}

/// The stream of the server.
pub struct Feed {
    state: Mutex<State>,
    /// Of each worker: its replicas have something to take, or to be looked at for what they have not.
    news: Box<[AtomicBool]>,
    /// Sessions that the stream is for by now, and those that wait for a snapshot to be begun.
    replicas: AtomicUsize,
    waiting: AtomicUsize,
    /// The stream is kept; it was at some time.
    has_backlog: AtomicBool,
    had_backlog: AtomicBool,
    /// `repl-backlog-size`.
    wanted_bytes: AtomicU64,
    /// Of the backlog: the place behind it, and its bytes.
    end: AtomicU64,
    kept_bytes: AtomicU64,
    /// What the slowest replica lacks beyond `repl-backlog-size`.
    lacking_bytes: AtomicU64,
    /// Bytes in memory beyond `repl-backlog-size` at which it goes to a file for replicas that are being
    /// synchronised; bytes in that file.
    memory_bytes_max: AtomicU64,
    spilled_bytes: AtomicU64,
    /// A thread moves blocks there.
    is_spilling: AtomicBool,
    /// That failed, and is not tried again for the replicas there are.
    cannot_spill: AtomicBool,
    /// When the last replica left, or the backlog began without one, in Unix ms.
    alone_since_ms: AtomicU64,
    /// Bytes besides the stream that the workers hold for replicas.
    held: AtomicI64,
    /// The places that at least one, two … replicas have acknowledged; 0 if there are not so many.
    acknowledged: [AtomicU64; REPLICAS_MAX],
    /// Grows when what replicas acknowledge tells nothing any more of what was shown before.
    era: AtomicU64,
}

#[derive(Default)]
struct State {
    members: Vec<Member>,
    backlog: Backlog,
    /// Of the backlog, and of what replicas have not acknowledged.
    marks: Marks,
    /// What was before the backlog, for replicas that are being synchronised, and for those that come back meanwhile.
    spilled: Option<Spilled>,
    /// Who moves it there.
    spiller: Option<Thread>,
    /// Buffers of [`Feed::pump`], empty between two calls: the next part of the stream and its edits.
    bytes: Vec<u8>,
    edits: Vec<AofEdit>,
}

impl State {
    fn find(&mut self, client: &ClientRecord) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.client.id == client.id)
    }

    /// Whether a replica has not caught up since its full synchronisation began, or with the file.
    fn has_catching_up(&self) -> bool {
        self.members.iter().any(|member| member.attachment.catches_up())
    }

    /// The first place that is held, in the file or in memory.
    fn first(&self) -> u64 {
        let first = self.backlog.first();
        self.spilled.as_ref().filter(|spilled| spilled.end() == first).map_or(first, Spilled::from)
    }

    /// The first place that a replica may still need.
    fn needed_from(&self) -> u64 {
        let sent = self.members.iter().filter_map(|member| member.attachment.sent());
        sent.min().unwrap_or(u64::MAX)
    }
}

/// What is kept for those that come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The place of the first byte.
    pub first: Ticket,
    /// Bytes, in memory and in the file.
    pub bytes: u64,
}

impl Feed {
    /// A stream without replicas for `workers` workers.
    pub fn new(workers: usize) -> Feed {
        Feed {
            state: Mutex::default(),
            news: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            replicas: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            has_backlog: AtomicBool::new(false),
            had_backlog: AtomicBool::new(false),
            wanted_bytes: AtomicU64::new(0),
            end: AtomicU64::new(0),
            kept_bytes: AtomicU64::new(0),
            lacking_bytes: AtomicU64::new(0),
            memory_bytes_max: AtomicU64::new(u64::MAX),
            spilled_bytes: AtomicU64::new(0),
            is_spilling: AtomicBool::new(false),
            cannot_spill: AtomicBool::new(false),
            alone_since_ms: AtomicU64::new(0),
            held: AtomicI64::new(0),
            acknowledged: std::array::from_fn(|_| AtomicU64::new(0)),
            era: AtomicU64::new(0),
        }
    }

    /// The place in the stream that replicas go by; 0 before the first.
    pub fn offset(&self, journal: &Journal) -> u64 {
        if self.had_backlog() { journal.end().0 } else { 0 }
    }

    /// Whether somebody may know a place in the stream: it was kept at some time.
    pub(super) fn had_backlog(&self) -> bool {
        self.had_backlog.load(Ordering::Relaxed)
    }

    /// How many sessions the stream is for.
    pub fn replica_count(&self) -> usize {
        self.replicas.load(Ordering::Relaxed)
    }

    /// Whether a session waits for a snapshot to be begun.
    pub fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Since when there is no replica at all, in Unix ms; `None` if there is one.
    pub(super) fn alone_since_ms(&self) -> Option<u64> {
        let is_alone = self.replica_count() == 0 && !self.has_waiting();
        is_alone.then(|| self.alone_since_ms.load(Ordering::Relaxed))
    }

    /// Workers hold so many bytes more for their replicas.
    pub(super) fn note_held(&self, change: i64) {
        self.held.fetch_add(change, Ordering::Relaxed);
    }

    /// Bytes of memory that are there because replicas have not taken them: of the stream what is beyond
    /// `repl-backlog-size`. O(1).
    pub fn buffered(&self) -> u64 {
        self.held.load(Ordering::Relaxed).max(0).cast_unsigned() + self.excess()
    }

    /// Bytes of the stream beyond `repl-backlog-size`, and what is held because blocks are held whole: whether a
    /// replica needs them still, or they are dropped by and by. O(1).
    fn excess(&self) -> u64 {
        let wanted = self.wanted_bytes.load(Ordering::Relaxed);
        let kept = self.kept_bytes.load(Ordering::Relaxed);
        self.stream_memory().1.max(kept.saturating_sub(wanted + BLOCK_BYTES_MAX as u64))
    }

    /// Bytes of the stream that are held: up to `repl-backlog-size`, and beyond it for slow replicas. O(1).
    pub fn stream_memory(&self) -> (u64, u64) {
        let held = self.kept_bytes.load(Ordering::Relaxed);
        let beyond = self.lacking_bytes.load(Ordering::Relaxed).min(held);
        (held - beyond, beyond)
    }

    /// `repl-backlog-size`: what is too much by now is dropped with the next part of the stream.
    pub fn set_backlog_bytes(&self, wanted: u64) {
        self.wanted_bytes.store(wanted, Ordering::Relaxed);
    }

    /// Of how many bytes in memory beyond `repl-backlog-size` on the stream goes to a file for replicas that
    /// are being synchronised.
    pub fn set_memory_bytes_max(&self, most: u64) {
        self.memory_bytes_max.store(most, Ordering::Relaxed);
    }

    fn memory_max(&self) -> u64 {
        let wanted = self.wanted_bytes.load(Ordering::Relaxed);
        wanted.saturating_add(self.memory_bytes_max.load(Ordering::Relaxed))
    }

    /// Bytes of the stream in a file, for replicas that are being synchronised. O(1).
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled_bytes.load(Ordering::Relaxed)
    }

    /// Whether the stream is kept. Changes only while all workers stand still.
    #[inline]
    pub fn has_backlog(&self) -> bool {
        self.has_backlog.load(Ordering::Relaxed)
    }

    /// What is kept, if anything is.
    pub fn kept(&self) -> Option<Kept> {
        let state = lock(&self.state);
        let first = state.first();
        let kept = Kept { first: Ticket(first), bytes: state.backlog.end() - first };
        self.has_backlog().then_some(kept)
    }

    /// The stream is kept from this place on, and nothing of what was before: who has not taken that is
    /// disconnected when its worker finds out. Only while all other workers stand still, behind
    /// [`Feed::pump`], and with the place at the journal's end.
    pub fn begin_backlog(&self, place: Ticket, now_ms: u64) {
        let mut state = lock(&self.state);
        state.backlog = Backlog::beginning_at(place.0);
        state.marks = Marks::default();
        state.spilled = None;
        self.alone_since_ms.store(now_ms, Ordering::Relaxed);
        self.had_backlog.store(true, Ordering::Relaxed);
        self.has_backlog.store(true, Ordering::Relaxed);
        self.publish(&state);
        self.announce(&state, |_| {});
    }

    /// Nothing is kept any more, nor is what comes. Whoever calls sees to it that the history gets another
    /// name before anything is changed. Only while all other workers stand still.
    pub fn forget_backlog(&self) {
        let mut state = lock(&self.state);
        state.backlog = Backlog::beginning_at(state.backlog.end());
        state.spilled = None;
        self.has_backlog.store(false, Ordering::Relaxed);
        self.publish(&state);
        self.end_era();
    }

    /// What replicas acknowledge from now on does not count for what clients were shown before: the stream
    /// is not kept any more, or is another server's. Only while all other workers stand still.
    pub fn end_era(&self) {
        self.era.fetch_add(1, Ordering::SeqCst);
    }

    /// In which acknowledgements count.
    #[inline]
    pub fn era(&self) -> u64 {
        self.era.load(Ordering::Relaxed)
    }

    /// Up to where at least so many replicas, 1 to [`REPLICAS_MAX`], have acknowledged the stream. O(1).
    #[inline]
    pub fn acknowledged_by(&self, count: usize) -> Ticket {
        Ticket(self.acknowledged[count - 1].load(Ordering::Acquire))
    }

    /// A session asks for a snapshot and for what follows it.
    pub fn attach(&self, member: Member) {
        let mut state = lock(&self.state);
        state.members.push(member);
        self.count_members(&state);
    }

    /// A session has everything before this place: it goes on from there, and how many bytes it lacks is
    /// returned. `None` if what it lacks is not kept; it is no member then.
    pub(super) fn resume(&self, mut member: Member, place: Ticket) -> Option<u64> {
        let mut state = lock(&self.state);
        if !self.has_backlog() || !(state.first()..=state.backlog.end()).contains(&place.0) {
            return None;
        }
        member.attachment.begin_at(place.0);
        if place.0 < state.backlog.first() {
            // What it lacks is in the file, so it does not count for its limit.
            member.attachment.set_catches_up(true);
        }
        member.attachment.set_stage(Stage::Online);
        member.acked_place = Some(place);
        self.news[member.client.worker].store(true, Ordering::Release);
        state.members.push(member);
        self.count_members(&state);
        Some(state.backlog.end() - place.0)
    }

    /// Attaches the sessions that wait for the content of this snapshot; they follow the stream from
    /// here on. Only while all other workers are quiesced, and after [`Feed::pump`].
    pub(super) fn join(
        &self,
        (transfer, filter): (&Arc<Transfer>, Option<Filter>),
        journal: &Journal,
        now_ms: u64,
    ) {
        debug_assert!(!journal.has_untaken(), "what was before is not for them");
        if !self.has_backlog() {
            self.begin_backlog(journal.end(), now_ms);
        }
        self.cannot_spill.store(false, Ordering::Relaxed);
        let state = lock(&self.state);
        journal.name_database();
        for member in state.members.iter().filter(|member| member.waits_for(filter)) {
            member.attachment.join(transfer, member.client.worker);
        }
        self.count_members(&state);
    }

    /// A session is gone.
    pub fn detach(&self, client: &ClientRecord, now_ms: u64) {
        let mut state = lock(&self.state);
        state.members.retain(|member| member.client.id != client.id);
        if state.members.is_empty() {
            self.alone_since_ms.store(now_ms, Ordering::Relaxed);
        }
        self.count_members(&state);
        self.trim_by(&mut state, 0);
    }

    fn count_members(&self, state: &State) {
        let follows = |member: &&Member| member.attachment.has_place();
        let replicas = state.members.iter().filter(follows).count();
        self.replicas.store(replicas, Ordering::Relaxed);
        self.waiting.store(state.members.len() - replicas, Ordering::Relaxed);
        self.count_acknowledged(state);
    }

    /// O(replicas²).
    fn count_acknowledged(&self, state: &State) {
        // One that came back while its last connection still seems to be there is one copy only: what counts
        // is the latest connection.
        let is_latest = |(at, one): &(usize, &Member)| {
            !state.members[at + 1..].iter().any(|other| one.is_same_as(other))
        };
        let latest = state.members.iter().enumerate().filter(is_latest).map(|(_, one)| one);
        let online = latest.filter(|member| member.is_online() && member.filter.is_none());
        let mut places: Vec<u64> = online.filter_map(|one| Some(one.acked_place?.0)).collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        for (at, acknowledged) in self.acknowledged.iter().enumerate() {
            acknowledged.store(places.get(at).copied().unwrap_or(0), Ordering::Release);
        }
    }

    /// A session has its snapshot.
    pub(super) fn note_online(&self, client: &ClientRecord, now_ms: u64) {
        let mut state = lock(&self.state);
        if let Some(member) = state.find(client) {
            member.acked_ms = now_ms;
        }
    }

    /// A session tells how far it has come, as an offset and as a place in the stream, and how far its
    /// append-only file if it has one.
    pub fn acknowledge(
        &self,
        client: &ClientRecord,
        (offset, place): (u64, Option<Ticket>),
        durable: Option<u64>,
        now_ms: u64,
    ) {
        let mut state = lock(&self.state);
        if let Some(member) = state.find(client) {
            (member.acked, member.acked_ms) = (offset, now_ms);
            member.has_acked = true;
            member.acked_durable = durable.or(member.acked_durable);
            // Offsets before this server's start have no position; offsets beyond the stream are not
            // credible.
            let end = Ticket(self.end.load(Ordering::Relaxed));
            member.acked_place = place.filter(|place| *place <= end);
            if member.attachment.set_awaits_ack(false) {
                self.news[client.worker].store(true, Ordering::Release);
            }
            self.count_acknowledged(&state);
        }
    }

    /// How many of the sessions that follow are such. O(their number).
    pub fn count(&self, is_such: impl Fn(&Member) -> bool) -> u64 {
        lock(&self.state).members.iter().filter(|member| is_such(member)).count() as u64
    }

    /// The sessions that follow. O(their number).
    pub fn members(&self) -> Vec<Member> {
        lock(&self.state).members.clone()
    }

    /// Hands what is new in the journal to who reads the stream; `wake` is called for each worker whose
    /// replicas have something to take.
    pub fn pump(&self, journal: &Journal, aof: &Aof, wake: impl FnMut(usize)) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        if !self.has_backlog() {
            aof.take_from(journal);
            return;
        }
        let from = journal.take(&mut state.bytes, &mut state.edits).0;
        if state.bytes.is_empty() {
            return;
        }
        assert_eq!(from, state.backlog.end(), "the stream has no gaps");
        aof.push(&state.bytes, &state.edits);
        state.edits.clear();
        state.backlog.append(&state.bytes);
        state.marks.note(from, unix_ms());
        let came = state.bytes.len();
        state.bytes.clear();
        state.bytes.shrink_to(BUFFER_KEPT_MAX);
        self.trim_by(state, came);
        if let Some(spiller) = &state.spiller
            && state.backlog.bytes() > self.memory_max()
        {
            spiller.unpark();
        }
        self.announce(state, wake);
    }

    /// Drops what replicas have been sent meanwhile.
    pub fn trim(&self) {
        if self.excess() > 0 || self.spilled_bytes() > 0 {
            self.trim_by(&mut lock(&self.state), 0);
        }
    }

    fn trim_by(&self, state: &mut State, came: usize) {
        let wanted = self.wanted_bytes.load(Ordering::Relaxed);
        if state.spilled.as_ref().is_some_and(|spilled| spilled.end() <= state.needed_from()) {
            state.spilled = None;
        }
        if state.backlog.bytes() > wanted {
            let needed_from = state.needed_from();
            state.backlog.trim(wanted, needed_from, came);
        }
        let acked = state.members.iter().map(|member| member.acked_place.unwrap_or_default().0);
        let first = state.backlog.first();
        state.marks.trim(acked.min().unwrap_or(first).min(first));
        self.publish(state);
    }

    /// Tells those who look without the lock. O(replicas).
    fn publish(&self, state: &State) {
        self.end.store(state.backlog.end(), Ordering::Release);
        self.kept_bytes.store(state.backlog.bytes(), Ordering::Relaxed);
        let wanted = self.wanted_bytes.load(Ordering::Relaxed);
        let needed_from = || state.needed_from().max(state.backlog.first());
        let lacking = match state.backlog.bytes() > wanted {
            true => state.backlog.end().saturating_sub(needed_from()).saturating_sub(wanted),
            false => 0,
        };
        let spilled = state.spilled.as_ref().map_or(0, Spilled::bytes);
        self.spilled_bytes.store(spilled, Ordering::Relaxed);
        self.lacking_bytes.store(lacking, Ordering::Relaxed);
    }

    /// Has all workers with replicas look at them.
    fn announce(&self, state: &State, mut wake: impl FnMut(usize)) {
        for member in state.members.iter().filter(|member| member.attachment.has_place()) {
            let worker = member.client.worker;
            if !self.news[worker].swap(true, Ordering::AcqRel) {
                wake(worker);
            }
        }
    }

    /// Whether a worker's replicas are to be looked at.
    #[inline]
    pub fn is_waiting(&self, worker: usize) -> bool {
        self.news[worker].load(Ordering::Relaxed)
    }

    /// The worker looks at them now: what comes from here on is news again.
    pub fn begin_look(&self, worker: usize) {
        self.news[worker].swap(false, Ordering::AcqRel);
    }

    /// Adds what a replica is to be sent next, of what stands before `until`: up to the first end of a
    /// transaction behind `most` bytes. How many bytes that are; `None` if what it lacks is not kept any
    /// more.
    pub fn take(
        &self,
        attachment: &Attachment,
        until: Ticket,
        most: usize,
        into: &mut Vec<Piece>,
    ) -> Option<u64> {
        let from = attachment.handed()?;
        let state = lock(&self.state);
        let spilled = state.spilled.as_ref().filter(|spilled| from < spilled.end());
        let end = if let Some(spilled) = spilled {
            let (part, end) = spilled.part(from, until.0, most)?;
            // Others are not to wait for the disk.
            drop(state);
            into.push(part.read().ok()?);
            end
        } else {
            state.backlog.take(from, until.0, most, into)?
        };
        attachment.hand(end);
        Some(end - from)
    }

    /// How many bytes of the stream a replica lacks, of those that it will get. O(1).
    pub fn behind(&self, attachment: &Attachment) -> u64 {
        attachment.sent().map_or(0, |sent| self.end.load(Ordering::Acquire).saturating_sub(sent))
    }

    /// For how long the oldest of what a replica has not acknowledged has been there, in ms; `None` while it
    /// has acknowledged nothing. O(log time).
    pub fn behind_ms(&self, member: &Member, now_ms: u64) -> Option<u64> {
        let place = member.acked_place.filter(|_| member.is_online())?.0;
        let state = lock(&self.state);
        if place >= state.backlog.end() {
            return Some(0);
        }
        Some(now_ms.saturating_sub(state.marks.made_ms(place)?))
    }

    /// The same, as far as `client-output-buffer-limit` counts it: for a replica that is being synchronised
    /// the stream goes into a file if that can be, so that it need not begin again; then only what is in
    /// memory beyond `repl-backlog-size` counts. Asked by its worker. O(1).
    pub fn counted_behind(&self, attachment: &Attachment) -> u64 {
        let behind = self.behind(attachment);
        if !attachment.catches_up() {
            return behind;
        }
        let most = self.memory_bytes_max.load(Ordering::Relaxed);
        if attachment.stage() == Stage::Online && behind <= most {
            attachment.set_catches_up(false);
        }
        if self.cannot_spill.load(Ordering::Relaxed) {
            return behind;
        }
        let kept = self.kept_bytes.load(Ordering::Relaxed);
        behind.min(kept.saturating_sub(self.wanted_bytes.load(Ordering::Relaxed)))
    }

    /// Whether a thread is to move blocks to the file: replicas are being synchronised, and none does so.
    /// Who asks does it from now on.
    pub(super) fn begin_spilling(&self) -> bool {
        self.replica_count() > 0
            && !self.cannot_spill.load(Ordering::Relaxed)
            && !self.is_spilling.load(Ordering::Relaxed)
            && lock(&self.state).has_catching_up()
            && !self.is_spilling.swap(true, Ordering::AcqRel)
    }

    pub(super) fn end_spilling(&self) {
        lock(&self.state).spiller = None;
        self.is_spilling.store(false, Ordering::Release);
    }

    /// It is not tried again for the replicas that there are.
    pub(super) fn give_up_spilling(&self) {
        self.cannot_spill.store(true, Ordering::Relaxed);
    }

    /// What is to be moved next: nothing while memory holds no more than it is to, until the thread is
    /// unparked. `None` if no replica is being synchronised. O(blocks moved + replicas).
    pub(super) fn next_move(&self) -> Option<Option<Move>> {
        let mut state = lock(&self.state);
        if self.cannot_spill.load(Ordering::Relaxed) || !state.has_catching_up() {
            return None;
        }
        state.spiller.get_or_insert_with(std::thread::current);
        if state.backlog.bytes() <= self.memory_max() {
            return Some(None);
        }
        let first = state.backlog.first();
        let needs = |member: &Member| {
            let sent = member.attachment.sent();
            member.attachment.catches_up() && sent.is_some_and(|sent| sent <= first)
        };
        let is_needed = state.members.iter().any(needs);
        let wanted = self.wanted_bytes.load(Ordering::Relaxed);
        let blocks = if is_needed { state.backlog.front(MOVED_BYTES, wanted) } else { vec![] };
        let is_empty = blocks.is_empty();
        let next = (!is_empty).then(|| Spilled::begin_move(state.spilled.as_ref(), first, blocks));
        Some(next)
    }

    /// It was moved to the file, unless it was dropped meanwhile.
    pub(super) fn end_move(&self, moved: &Move, file: Arc<File>) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let follows = state.spilled.as_ref().is_none_or(|spilled| spilled.end() == moved.from());
        if state.backlog.first() != moved.from() || !follows {
            return;
        }
        Spilled::note_moved(&mut state.spilled, moved, file);
        state.backlog.drop_front(moved.len());
        self.trim_by(state, 0);
    }

    /// Whether there is more of the stream than a replica was handed. O(1).
    pub fn has_more(&self, attachment: &Attachment) -> bool {
        let has_more = |handed| handed < self.end.load(Ordering::Acquire);
        attachment.handed().is_some_and(has_more) && !attachment.awaits_ack()
    }
}

/// A buffer for more is given back.
const BUFFER_KEPT_MAX: usize = 64 * 1024;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().even_poisoned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::testing::record;
    use brisk_engine::Keyspace;
    use brisk_engine::keyspace::{Cut, CutOptions, KeyHasher};

    fn member(client: u64, worker: usize) -> Member {
        Member::new(record(client, worker), Arc::default(), 0)
    }

    impl Feed {
        fn stream_bytes(&self) -> u64 {
            self.kept_bytes.load(Ordering::Relaxed)
        }
    }

    struct World {
        feed: Feed,
        aof: Aof,
        keyspace: Keyspace,
        journal: Journal,
    }

    impl World {
        fn new() -> World {
            let keyspace = Keyspace::new(1, KeyHasher::seeded(1, 2));
            let (feed, aof) = (Feed::new(2), Aof::new(2));
            feed.set_backlog_bytes(50_000);
            World { feed, aof, keyspace, journal: Journal::default() }
        }

        /// The workers that are woken.
        fn pump(&self, text: &[u8]) -> Vec<usize> {
            let mut woken = Vec::new();
            self.journal.append_request(text);
            self.feed.pump(&self.journal, &self.aof, |worker| woken.push(worker));
            woken
        }

        fn cut(&self) -> Arc<Cut> {
            let options =
                CutOptions { compresses: false, queue_bytes_max: u64::MAX, dataset_bytes: 0 };
            self.keyspace.begin_cut(options).expect("no other")
        }

        /// Those that wait follow from here on.
        fn join(&self) -> Arc<Transfer> {
            let transfer = Arc::new(Transfer::new(self.cut(), self.journal.end().0, None));
            self.feed.join((&transfer, None), &self.journal, 1);
            self.keyspace.end_cut(transfer.cut().unwrap());
            transfer
        }

        fn attach(&self, client: u64, worker: usize) -> Arc<Attachment> {
            let member = member(client, worker);
            let attachment = Arc::clone(&member.attachment);
            self.feed.attach(member);
            attachment
        }

        fn take(&self, attachment: &Attachment, most: usize) -> Option<Vec<u8>> {
            let mut pieces = Vec::new();
            self.feed.take(attachment, Ticket(u64::MAX), most, &mut pieces)?;
            Some(pieces.iter().flat_map(Piece::as_slice).copied().collect())
        }
    }

    #[test]
    fn what_is_in_the_journal_is_for_replicas_from_their_snapshots_on() {
        let world = World::new();
        let feed = &world.feed;
        assert!(world.pump(b"nobody follows").is_empty());
        let first = world.attach(1, 1);
        assert!(world.pump(b"one waits").is_empty() && feed.has_waiting());
        assert!(feed.replica_count() == 0 && !feed.has_backlog());
        assert_eq!(world.take(&first, 100), None);
        let transfer = world.join();
        assert!(feed.replica_count() == 1 && !feed.has_waiting() && feed.has_backlog());
        assert_eq!((first.handed(), first.sent()), (Some(23), Some(23)));
        world.attach(2, 0);
        assert_eq!(world.pump(b"one"), [1]);
        assert!(world.pump(b"two").is_empty() && feed.behind(&first) == 6);
        feed.begin_look(1);
        assert_eq!(world.take(&first, 100), Some(b"onetwo".to_vec()));
        assert!(!feed.has_more(&first) && feed.behind(&first) == 6, "nothing was sent");
        assert!(!feed.is_waiting(1) && !feed.is_waiting(0));
        feed.detach(&record(1, 1), 5);
        feed.detach(&record(2, 0), 7);
        assert_eq!(feed.alone_since_ms(), Some(7));
        // Nobody writes on for who is gone.
        first.leave();
        assert!(transfer.cut().unwrap().is_over());
        // What comes is kept for its return.
        assert!(world.pump(b"three").is_empty());
        assert_eq!(feed.kept(), Some(Kept { first: Ticket(23), bytes: 11 }));
    }

    #[test]
    fn who_comes_back_goes_on_where_it_was_if_that_is_kept() {
        let world = World::new();
        let feed = &world.feed;
        assert_eq!(feed.resume(member(1, 0), Ticket(0)), None);
        world.pump(b"before");
        feed.begin_backlog(world.journal.end(), 1);
        assert_eq!(feed.resume(member(1, 0), Ticket(5)), None);
        assert_eq!(feed.resume(member(1, 0), Ticket(7)), None);
        assert_eq!(feed.resume(member(1, 0), Ticket(6)), Some(0));
        assert!(feed.is_waiting(0) && feed.members()[0].is_online());
        world.pump(b"behind");
        let second = member(2, 1);
        let attachment = Arc::clone(&second.attachment);
        assert_eq!(feed.resume(second, Ticket(8)), Some(4));
        assert_eq!(world.take(&attachment, 100), Some(b"hind".to_vec()));
        // Another history: what they have not taken is not there any more.
        let late = Arc::clone(&feed.members()[0].attachment);
        feed.begin_backlog(world.journal.end(), 2);
        assert_eq!(world.take(&late, 100), None);
        assert_eq!(world.take(&attachment, 100), Some(vec![]));
        feed.forget_backlog();
        assert!(feed.kept().is_none() && feed.resume(member(3, 0), Ticket(12)).is_none());
        assert!(world.pump(b"not kept").is_empty() && feed.stream_bytes() == 0);
    }

    #[test]
    fn who_comes_back_goes_on_in_the_file_while_another_needs_it() {
        let world = World::new();
        let feed = &world.feed;
        feed.set_memory_bytes_max(100_000);
        let slow = world.attach(1, 0);
        world.join();
        for n in 0..100u8 {
            world.pump(&[n; 10_000]);
        }
        let dir = std::env::temp_dir();
        let name = format!("brisk-feed-{}", std::process::id());
        let file = Arc::new(crate::persistence::disk::nameless(&dir, &name).unwrap());
        while let Some(Some(moved)) = feed.next_move() {
            let mut at = moved.file().map_or(0, |(_, at)| at);
            for bytes in moved.blocks() {
                std::os::unix::fs::FileExt::write_all_at(&*file, bytes, at).unwrap();
                at += bytes.len() as u64;
            }
            feed.end_move(&moved, Arc::clone(&file));
        }
        assert!(feed.spilled_bytes() > 800_000 && feed.stream_bytes() < 200_000);
        assert_eq!(feed.kept(), Some(Kept { first: Ticket(0), bytes: 1_000_000 }));
        let second = member(2, 1);
        let attachment = Arc::clone(&second.attachment);
        // Within a transaction, as a link that was cut leaves it.
        assert_eq!(feed.resume(second, Ticket(123_456)), Some(1_000_000 - 123_456));
        // What is in the file does not count for its limit.
        assert!(feed.counted_behind(&attachment) < 200_000);
        let mut at = 123_456;
        while feed.has_more(&attachment) {
            for byte in world.take(&attachment, 1000).unwrap() {
                assert_eq!(u64::from(byte), at / 10_000);
                at += 1;
            }
        }
        assert_eq!(at, 1_000_000);
        attachment.begin_at(at);
        feed.counted_behind(&attachment);
        assert!(!attachment.catches_up() && slow.catches_up());
        // As soon as nobody needs it, it is gone, and nobody can come back to it.
        slow.begin_at(at);
        feed.trim();
        assert_eq!(feed.spilled_bytes(), 0);
        assert_eq!(feed.resume(member(3, 0), Ticket(123_456)), None);
    }

    #[test]
    fn the_slowest_decides_how_much_is_held_whatever_their_number() {
        let world = World::new();
        let feed = &world.feed;
        let slow: Vec<_> = (0..10).map(|client| world.attach(client, 0)).collect();
        world.join();
        for _ in 0..100 {
            world.pump(&[b'x'; 10_000]);
        }
        assert_eq!((feed.stream_bytes(), feed.buffered()), (1_000_000, 950_000));
        // All but one have been sent nearly everything.
        for one in &slow[1..] {
            one.begin_at(990_000);
        }
        feed.trim();
        assert_eq!(feed.stream_bytes(), 1_000_000);
        slow[0].begin_at(500_000);
        feed.trim();
        assert_eq!(feed.stream_bytes(), 500_000);
        slow[0].begin_at(990_000);
        feed.trim();
        assert_eq!((feed.stream_bytes(), feed.buffered()), (50_000, 0));
        // A lowered size is in force with the next part.
        feed.set_backlog_bytes(16_384);
        slow.iter().for_each(|one| one.begin_at(1_000_000));
        world.pump(b"x");
        assert_eq!(feed.stream_bytes(), 20_001);
    }

    #[test]
    fn what_a_slow_one_left_is_dropped_by_and_by_and_counts_for_nobody() {
        let world = World::new();
        let feed = &world.feed;
        world.attach(1, 0);
        world.join();
        for _ in 0..600 {
            world.pump(&[b'x'; 20_000]);
        }
        feed.detach(&record(1, 0), 1);
        let left = feed.stream_bytes();
        assert!(left > 50_000, "it takes more than one step");
        assert_eq!(feed.buffered(), left - 50_000 - BLOCK_BYTES_MAX as u64);
        while feed.buffered() > 0 {
            let before = feed.stream_bytes();
            feed.trim();
            assert!(feed.stream_bytes() < before);
        }
    }
}
