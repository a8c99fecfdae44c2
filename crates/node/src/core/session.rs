//! A session: one connected client, seen from inside the server.

use crate::clients::accounts::Account;
use crate::clients::{ClientRecord, Traffic, flag};
use crate::core::input::Input;
use crate::persistence::aof::unlogged::Unlogged;
use crate::pubsub::{Space, Subscriptions};
use crate::replication::acks::{AckWait, RequestedDurability};
use crate::replication::replica::ReplicaSession;
use crate::tracking::{Mode, Tracker};
use crate::transactions::Transaction;
use brisk_acl::User;
use brisk_engine::command::{Flags, InMulti};
use brisk_engine::keyspace::Ticket;
use brisk_engine::keyspace::{Waiter, Watches};
use brisk_engine::reply::ReplyStream;
use brisk_engine::table::Row;
use brisk_engine::{DbIndex, DbNumber};
use brisk_net::tls::TlsStream;
use brisk_reactor::Token;
use brisk_resp::{Protocol, RequestDecoder};
use brisk_structures::alloc::SetAside;
use brisk_structures::slab::Id;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The reply to a remote client while protected mode is on.
pub const PROTECTED_MODE: &str = "-DENIED Brisk is running in protected mode: no password is set \
     for the default user, and clients from other machines are not served. To serve them, set a \
     password (CONFIG SET requirepass, or requirepass in the configuration file), or turn protected \
     mode off (CONFIG SET protected-mode no from this machine, protected-mode no in the \
     configuration file, or --protected-mode no at start); do the latter only where nobody you do \
     not trust can reach the server.\r\n";

/// The memory of held replies is published to other threads when it has changed by this many bytes.
const SET_ASIDE_STEP: u64 = 16 * 1024;

/// Rounds in which a request could not lock its slots before all other workers are stopped for it;
/// a power of two. A round without other work takes some microseconds.
const SLOT_REFUSALS_MAX: u32 = 64;

/// Why a session executes nothing at the moment. Its unread input stays in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// It executes commands.
    None,
    /// Its client does not read its replies: the session waits until the output has drained. (P4)
    Output,
    /// Another worker held a slot, or the session used its share of this round.
    NextRound,
    /// CLIENT PAUSE.
    Paused,
    /// Its command waits for a key.
    Waiting,
    /// Its command is computed by another thread.
    Elsewhere,
    /// Its command would write to data from which another command is being computed.
    Frozen,
    /// It is a replica that is being sent its snapshot.
    Synchronises,
}

impl Stall {
    /// Reports whether unexecuted requests are dropped when the client disconnects. This is so
    /// during a pause or a wait, as in Redis, and for a replica that waits for its snapshot.
    /// Otherwise the requests are executed first, since a client that only shut its sending side
    /// may still read the replies.
    pub fn ends_with_the_client(self) -> bool {
        matches!(self, Stall::Paused | Stall::Waiting | Stall::Synchronises)
    }
}

/// The mode that CLIENT REPLY selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyMode {
    On,
    Off,
    /// The replies to CLIENT REPLY SKIP itself and to the next command are left out.
    SkipNext,
    Skipping,
    /// The running transaction is replied to; the next reply is left out.
    SkipBehindExec,
    /// The running transaction is replied to; nothing after it is.
    OffBehindExec,
}

impl ReplyMode {
    /// Reports whether the present command is replied to.
    #[inline]
    fn answers(self) -> bool {
        matches!(self, ReplyMode::On | ReplyMode::SkipBehindExec | ReplyMode::OffBehindExec)
    }

    /// The mode after CLIENT REPLY OFF. The reply to EXEC is sent whole or not at all: clients
    /// expect the number of elements that its header announces.
    #[must_use]
    pub fn turned_off(self, in_exec: bool) -> ReplyMode {
        if in_exec && self.answers() { ReplyMode::OffBehindExec } else { ReplyMode::Off }
    }

    /// The mode after CLIENT REPLY SKIP.
    #[must_use]
    pub fn skipping(self, in_exec: bool) -> ReplyMode {
        match self {
            ReplyMode::Off | ReplyMode::OffBehindExec => self,
            _ if in_exec && self.answers() => ReplyMode::SkipBehindExec,
            _ => ReplyMode::SkipNext,
        }
    }
}

/// One connected client.
pub struct Session {
    pub token: Token,
    pub record: Arc<ClientRecord>,
    pub db: DbIndex,
    /// The stream selected this database, which does not exist here. Commands that use the selected
    /// database are skipped until the next successful SELECT. Only set for sessions for which
    /// [`Session::repeats`] is true.
    pub lacks_db: Option<DbNumber>,
    /// The first selected database that does not exist here.
    pub first_lacked: Option<DbNumber>,
    pub protocol: Protocol,
    pub authenticated: bool,
    /// The account whose user it acts as.
    pub account: Arc<Account>,
    /// The version of the user that applies to it.
    pub user: Arc<User>,
    /// Its commands must be checked: it is not authenticated, or has restricted permissions.
    pub restricted: bool,
    pub reply_mode: ReplyMode,
    /// Its commands do not update access clocks (CLIENT NO-TOUCH).
    pub no_touch: bool,
    pub stall: Stall,
    /// How often its present request was postponed because another worker held a slot.
    pub slot_refusals: u32,
    /// Monitors have been shown its next command, a script that still waits for its slots.
    pub script_shown: bool,
    /// The commands that it queued since MULTI.
    pub transaction: Option<Box<Transaction>>,
    /// The keys that it watches; created at the first WATCH.
    pub watches: Option<Box<Watches>>,
    /// A large reply that is written as the client reads it.
    pub stream: Option<ReplyStream>,
    /// Messages that arrived during that reply, or during a replica's snapshot, and follow it.
    pub held: Vec<u8>,
    /// Output that waits until the changes it shows are in the append-only file, or on replicas.
    pub unlogged: Unlogged,
    /// The last command was rejected, failed, or ran nothing. Sessions for which
    /// [`Session::repeats`] is true use this to keep such a command out of the append-only file.
    pub ran_nothing: bool,
    /// The memory of `held` and `unlogged`, which does not count for eviction.
    set_aside: SetAside,
    /// Upper bound of the bytes of unread output that no request of this client caused (published
    /// messages, invalidations, lines for monitors).
    pub pushed: usize,
    /// Invalidations were dropped: after the client has read, it is sent one about all keys.
    pub lacks_invalidations: bool,
    /// When the timers first noticed that the client has disconnected while replies wait for replicas,
    /// in Unix ms.
    pub left_ms: Option<u64>,
    /// It replays an append-only file: its commands wait for nothing.
    pub is_replay: bool,
    /// It applies the stream of this server's primary: its commands were executed there.
    pub is_primary: bool,
    /// The durability that its client requested for replies.
    pub asked: RequestedDurability,
    /// Its subscriptions.
    pub subscriptions: Subscriptions,
    /// It has a subscription.
    pub listens: bool,
    /// How it tracks the keys it reads.
    pub tracker: Option<Box<Tracker>>,
    /// It subscribes or tracks: other sessions may send it a message at any time.
    pub gets_messages: bool,
    /// The acknowledgements that its WAIT or WAITAOF waits for.
    pub acks: Option<AckWait>,
    /// The position in the stream of changes up to which it was shown the dataset.
    pub shown: Ticket,
    /// The wait of its command.
    pub waiter: Option<Arc<Waiter>>,
    /// The timer of that wait.
    pub wait_timer: Option<Id>,
    /// Bytes received and not yet executed, from the start of a request.
    pub input: Input,
    pub decoder: RequestDecoder,
    /// TLS, if the connection uses it.
    pub tls: Option<Box<TlsStream>>,
    /// The state that REPLCONF set, and whether it follows the stream.
    pub replica: Option<Box<ReplicaSession>>,
    /// The peer has shut its sending side.
    pub finished: bool,
    /// Unsent output was above the soft limit of its class since this moment, in Unix ms.
    pub over_soft_limit_since: Option<u64>,
    /// Bytes of input as its record shows them.
    pub published_input: usize,
    /// Output bytes of this session that are included in the worker's sum.
    pub counted_output: i64,
    /// Bytes of memory at the last measurement.
    pub weight: u64,
    /// The part of it that waited to be executed.
    pub input_weight: u64,
    /// The bytes that its client sent and received, and the number of commands run for it. The
    /// record has the values at the end of its last turn.
    pub traffic: Traffic,
}

impl Session {
    /// A new connection, which acts as the default user.
    pub fn new(record: Arc<ClientRecord>, default: &Arc<Account>) -> Session {
        let user = default.user();
        let authenticated = user.is_open();
        Session {
            token: record.token,
            record,
            db: DbIndex::FIRST,
            lacks_db: None,
            first_lacked: None,
            protocol: Protocol::Resp2,
            authenticated,
            account: Arc::clone(default),
            restricted: !authenticated || !user.is_unrestricted(),
            user,
            reply_mode: ReplyMode::On,
            no_touch: false,
            stall: Stall::None,
            slot_refusals: 0,
            script_shown: false,
            transaction: None,
            watches: None,
            stream: None,
            held: Vec::new(),
            unlogged: Unlogged::default(),
            set_aside: SetAside::default(),
            pushed: 0,
            lacks_invalidations: false,
            left_ms: None,
            asked: RequestedDurability::default(),
            ran_nothing: false,
            is_replay: false,
            is_primary: false,
            subscriptions: Subscriptions::default(),
            listens: false,
            tracker: None,
            gets_messages: false,
            acks: None,
            shown: Ticket::default(),
            waiter: None,
            wait_timer: None,
            input: Input::default(),
            decoder: RequestDecoder::new(),
            tls: None,
            replica: None,
            finished: false,
            over_soft_limit_since: None,
            published_input: 0,
            counted_output: 0,
            weight: 0,
            input_weight: 0,
            traffic: Traffic::default(),
        }
    }

    /// A second session of the same client, user and database, to run commands while the client's
    /// own session does something else.
    pub fn standing_for(session: &Session) -> Session {
        Session {
            db: session.db,
            authenticated: session.authenticated,
            user: Arc::clone(&session.user),
            restricted: session.restricted,
            no_touch: session.no_touch,
            ..Session::new(Arc::clone(&session.record), &session.account)
        }
    }

    /// Reports whether its commands were executed before, earlier or on another server, and are
    /// repeated here. They are not rejected, and do not wait for other sessions.
    #[inline]
    pub fn repeats(&self) -> bool {
        self.is_replay || self.is_primary
    }

    /// Reports whether the client is on this machine.
    pub fn is_local(&self) -> bool {
        self.record.local
    }

    /// Reports whether the client connected through the admin lane.
    pub fn is_admin(&self) -> bool {
        self.record.has(flag::ADMIN)
    }

    /// Bytes received that still wait to be executed, including those queued since MULTI.
    pub fn unexecuted_bytes(&self) -> u64 {
        let queued = self.transaction.as_ref().map_or(0, |transaction| transaction.words_bytes());
        (self.input.len() + queued) as u64
    }

    /// Bytes of memory of requests that are not executed yet, including those queued since MULTI.
    /// O(1).
    #[inline]
    pub fn input_memory(&self) -> usize {
        let queued = self.transaction.as_ref().map_or(0, |transaction| transaction.memory());
        self.input.capacity() + self.decoder.heap_bytes() + queued
    }

    /// Reports whether the client gets output that it did not request.
    pub fn is_pushed_to(&self) -> bool {
        self.gets_messages || self.record.has(flag::MONITOR)
    }

    /// Bytes of unread output. `unsent` of them are in the connection's output; the replies that are
    /// held back are added. O(1).
    #[inline]
    pub fn unread(&self, unsent: usize) -> usize {
        unsent + self.unlogged.memory() + self.held.len()
    }

    /// The part of [`Session::unread`] that the client's own requests caused, as a lower bound.
    pub fn unread_replies(&mut self, unsent: usize) -> usize {
        let unread = self.unread(unsent);
        self.pushed = self.pushed.min(unread);
        unread - self.pushed
    }

    /// Excludes the memory of held replies from the memory that triggers eviction.
    #[inline]
    pub fn set_unread_aside(&mut self) {
        let bytes = (self.held.capacity() + self.unlogged.memory()) as u64;
        let before = self.set_aside.bytes();
        if bytes.abs_diff(before) >= SET_ASIDE_STEP || (bytes == 0 && before > 0) {
            self.set_aside.resize(bytes);
        }
    }

    /// Bytes of memory of the session, including `output` bytes of output memory: exact for buffers and
    /// texts, an estimate for entries of tables. O(1).
    #[inline]
    pub fn memory(&self, output: usize) -> u64 {
        let own = size_of::<Session>() + size_of::<ClientRecord>();
        let texts = self.record.addr.heap_bytes()
            + self.record.laddr.heap_bytes()
            + self.record.text_bytes.load(Ordering::Relaxed) as usize;
        let buffers = self.input_memory() + self.held.capacity() + self.unlogged.memory() + output;
        let extras = self.watches.is_some() || self.gets_messages;
        let extras = if extras { self.memory_of_extras() } else { 0 };
        (own + texts + buffers + extras) as u64
    }

    /// Publishes what CLIENT LIST shows of its traffic and of its input buffer.
    #[inline]
    pub fn publish_traffic(&self) {
        self.record.query_capacity.store(self.input.capacity() as u64, Ordering::Relaxed);
        let (record, Traffic { bytes_in, bytes_out, commands }) = (&self.record, self.traffic);
        record.bytes_in.store(bytes_in, Ordering::Relaxed);
        record.bytes_out.store(bytes_out, Ordering::Relaxed);
        record.commands.store(commands, Ordering::Relaxed);
    }

    #[cold]
    fn memory_of_extras(&self) -> usize {
        /// An entry in the list of a topic, an entry in the list of the session, and an edge.
        const SUBSCRIPTION_BYTES: usize = 64;
        /// The share of a node and the prefix, in the session and in the table of its worker.
        const PREFIX_BYTES: usize = 96;
        let subscriptions =
            Space::ALL.map(|space| self.subscriptions.count(space)).iter().sum::<usize>();
        let prefixes = self.tracker.as_ref().map_or(0, |tracker| tracker.prefixes.len());
        self.watches.as_ref().map_or(0, |watches| watches.memory())
            + subscriptions * SUBSCRIPTION_BYTES
            + prefixes * PREFIX_BYTES
    }

    pub fn id(&self) -> u64 {
        self.record.id
    }

    /// Changes the selected database.
    pub fn select(&mut self, db: DbIndex) {
        self.db = db;
        self.lacks_db = None;
        self.record.db.store(db.number(), Ordering::Relaxed);
    }

    /// Notes that the stream selects a database that does not exist here.
    pub fn select_missing(&mut self, db: DbNumber) {
        self.lacks_db = Some(db);
        self.first_lacked.get_or_insert(db);
    }

    /// The number of the database that the stream selected last.
    pub fn selected(&self) -> DbNumber {
        self.lacks_db.unwrap_or_else(|| self.db.into())
    }

    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        let version = if protocol == Protocol::Resp3 { 3 } else { 2 };
        self.record.resp.store(version, Ordering::Relaxed);
    }

    /// Reports whether it may only receive messages: RESP2 cannot tell messages from replies.
    #[inline]
    pub fn only_listens(&self) -> bool {
        self.listens && self.protocol == Protocol::Resp2
    }

    /// Resets it to the state of a new connection; only the name and version of the client library
    /// stay.
    pub fn reset(&mut self, default: &Arc<Account>) {
        self.select(DbIndex::FIRST);
        self.set_protocol(Protocol::Resp2);
        self.act_as(default, default.user().is_open());
        // The reply to RESET itself may be left out by CLIENT REPLY SKIP.
        if self.reply_mode != ReplyMode::Skipping {
            self.reply_mode = ReplyMode::On;
        }
        self.no_touch = false;
        let taken_back = flag::MONITOR | flag::NO_EVICT | flag::NO_TOUCH | flag::READS_REPLICA;
        self.record.set(taken_back, false);
        self.record.edit_texts(|texts| texts.name.clear());
    }

    /// Executes nothing more for it; it is closed after its output was sent.
    pub fn close_after_reply(&mut self) {
        self.record.set(flag::CLOSE_AFTER_REPLY, true);
    }

    /// The same for a session that has killed itself. A client that has read that reply no longer
    /// finds the session.
    pub fn close_as_killed(&mut self) {
        self.close_after_reply();
        self.record.killed.store(true, Ordering::Relaxed);
    }

    /// Executes nothing more for it; it is closed even if output is unsent.
    pub fn close_at_once(&mut self) {
        self.record.set(flag::CLOSE_ASAP, true);
    }

    /// Reports whether nothing more is to be executed for it.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.record.has(flag::CLOSE_AFTER_REPLY | flag::CLOSE_ASAP)
    }

    /// Reports whether it is a replica whose snapshot was not sent yet.
    #[inline]
    pub fn synchronises(&self) -> bool {
        self.record.has(flag::SYNCHRONISES)
    }

    /// Reports whether messages go to [`Session::held`], so that they do not interrupt a reply or a
    /// snapshot.
    #[inline]
    pub fn holds_messages(&self) -> bool {
        self.stream.is_some() || self.synchronises()
    }

    /// Reports whether it is closing, its user was changed, or it is a replica that may execute
    /// nothing for now or gets no replies.
    #[inline]
    pub fn needs_attention(&self) -> bool {
        let ends = flag::CLOSE_AFTER_REPLY | flag::CLOSE_ASAP;
        self.record.has(ends | flag::USER_CHANGED | flag::REPLICA)
    }

    /// Reports whether replies to the present command are sent.
    #[inline]
    pub fn wants_reply(&self) -> bool {
        self.reply_mode.answers()
    }

    /// Reports whether its present request was postponed so often that it is tried while all other
    /// workers are quiesced. A request that needs several slots in constant use might never find
    /// them free at once. The pauses between tries grow, because a script that holds a slot for
    /// long cannot be stopped.
    #[inline]
    pub fn is_starved(&self) -> bool {
        self.slot_refusals >= SLOT_REFUSALS_MAX && self.slot_refusals.is_power_of_two()
    }

    /// Called after each command: ends a skipped reply.
    #[inline]
    pub fn after_command(&mut self) {
        self.slot_refusals = 0;
        match self.reply_mode {
            ReplyMode::On | ReplyMode::Off => {}
            ReplyMode::SkipNext | ReplyMode::SkipBehindExec => {
                self.reply_mode = ReplyMode::Skipping;
            }
            ReplyMode::Skipping => self.reply_mode = ReplyMode::On,
            ReplyMode::OffBehindExec => self.reply_mode = ReplyMode::Off,
        }
    }
}

impl Session {
    /// Reports whether it is between MULTI and EXEC.
    #[inline]
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// The flags of a command as this session would run it: EXEC has the flags of the queued
    /// commands.
    pub fn flags_of(&self, row: &Row) -> Flags {
        match &self.transaction {
            Some(transaction) if row.spec.in_multi == InMulti::Executes => {
                transaction.flags(row.spec.flags)
            }
            _ => row.spec.flags,
        }
    }

    /// Publishes what CLIENT LIST shows of the transaction.
    pub fn publish_transaction(&self) {
        let queued = self.transaction.as_ref();
        let count = queued.map_or(-1, |transaction| transaction.len() as i64);
        let memory = queued.map_or(0, |transaction| transaction.memory() as u64);
        self.record.queued.store(count, Ordering::Relaxed);
        self.record.queued_memory.store(memory, Ordering::Relaxed);
    }
}

impl Session {
    /// Called after it starts or stops subscribing or tracking.
    pub fn update_gets_messages(&mut self) {
        self.gets_messages = self.listens || self.tracker.is_some();
    }

    /// Publishes what CLIENT LIST shows of its tracking.
    pub fn publish_tracking(&self) {
        let tracker = self.tracker.as_deref();
        self.record.set(flag::TRACKING, tracker.is_some());
        self.record.set(flag::TRACKING_BROKEN, tracker.is_some_and(|t| t.broken));
        let broadcast = tracker.is_some_and(|t| t.mode == Mode::Broadcast);
        self.record.set(flag::TRACKING_BROADCAST, broadcast);
        let redirect = tracker.map_or(-1, |t| t.redirect as i64);
        self.record.redirect.store(redirect, Ordering::Relaxed);
    }
}
