//! A session: the server's state for one connected client.
//!
//! | part | purpose |
//! |---|---|
//! | `identity` | the account that the session acts as, and the permissions of its user |
//! | `options` | what the client has set for its connection: database, protocol, CLIENT REPLY |
//! | `execution` | whether the session is stalled, and retries of its current request |
//! | `transaction` | commands queued since MULTI, and watched keys |
//! | `blocked` | its blocked command, which waits for keys, replicas or the disk |
//! | `connection` | input that has not been executed yet, its decoder, TLS |
//! | `output` | output that has not reached the connection |
//! | `push` | subscriptions and tracking |
//! | `replication` | its state as a replica, and the durability that its replies wait for |
//! | `source` | whether its commands come from a client, a file or the primary |
//! | `accounting` | its part of the numbers that INFO and CLIENT LIST show |
//!
//! Each part has private fields. An operation that also changes the client's record is a method of [`Session`].

mod accounting;
mod blocked;
mod connection;
mod execution;
mod identity;
mod options;
mod output;
mod push;
mod replication;
mod source;
mod transaction;

pub use self::accounting::SessionAccounting;
pub use self::blocked::BlockedCommand;
pub use self::connection::ConnectionState;
pub use self::execution::Stall;
pub use self::output::SessionOutput;
pub use self::push::PushState;
pub use self::replication::SessionReplication;
pub use self::source::CommandSource;
pub use self::transaction::TransactionState;

use self::execution::ExecutionState;
use self::identity::SessionIdentity;
use self::options::ClientOptions;
use crate::clients::accounts::Account;
use crate::clients::{ClientRecord, flag};
use brisk_engine::DbIndex;
use brisk_reactor::Token;
use brisk_resp::Protocol;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The reply to a remote client in protected mode.
pub const PROTECTED_MODE: &str = "-DENIED Brisk is running in protected mode: no password is set \
     for the default user, and clients from other machines are not served. To serve them, set a \
     password (CONFIG SET requirepass, or requirepass in the configuration file), or turn protected \
     mode off (CONFIG SET protected-mode no from this machine, protected-mode no in the \
     configuration file, or --protected-mode no at start); do the latter only where nobody you do \
     not trust can reach the server.\r\n";

/// One connected client.
pub struct Session {
    pub token: Token,
    pub record: Arc<ClientRecord>,
    identity: SessionIdentity,
    options: ClientOptions,
    execution: ExecutionState,
    pub transaction: TransactionState,
    pub blocked: BlockedCommand,
    pub connection: ConnectionState,
    pub output: SessionOutput,
    pub push: PushState,
    pub replication: SessionReplication,
    pub source: CommandSource,
    pub accounting: SessionAccounting,
}

impl Session {
    /// A new connection, which acts as the default user.
    pub fn new(record: Arc<ClientRecord>, default: &Arc<Account>) -> Session {
        Session {
            token: record.token,
            record,
            identity: SessionIdentity::of_default(default),
            options: ClientOptions::default(),
            execution: ExecutionState::default(),
            transaction: TransactionState::default(),
            blocked: BlockedCommand::default(),
            connection: ConnectionState::default(),
            output: SessionOutput::default(),
            push: PushState::default(),
            replication: SessionReplication::default(),
            source: CommandSource::default(),
            accounting: SessionAccounting::default(),
        }
    }

    /// A second session for the same client, user and database. It runs commands while the client's own session does
    /// something else.
    pub fn standing_for(session: &Session) -> Session {
        Session {
            identity: session.identity.clone(),
            options: ClientOptions::standing_for(&session.options),
            ..Session::new(Arc::clone(&session.record), session.account())
        }
    }

    pub fn id(&self) -> u64 {
        self.record.id
    }

    /// Reports whether the client is on this machine.
    pub fn is_local(&self) -> bool {
        self.record.local
    }

    /// Reports whether the client connected through the admin lane.
    pub fn is_admin(&self) -> bool {
        self.record.has(flag::ADMIN)
    }

    /// Received bytes that wait to be executed, including commands queued since MULTI.
    pub fn unexecuted_bytes(&self) -> u64 {
        (self.connection.input().len() + self.transaction.words_bytes()) as u64
    }

    /// Bytes of memory of requests that have not been executed yet, including commands queued since MULTI. O(1).
    #[inline]
    pub fn input_memory(&self) -> usize {
        self.connection.input_memory() + self.transaction.queue_memory()
    }

    /// Bytes of memory of the session, including `output` bytes of output memory. Exact for buffers and strings, an
    /// estimate for table entries. O(1).
    #[inline]
    pub fn memory(&self, output: usize) -> u64 {
        let own = size_of::<Session>() + size_of::<ClientRecord>();
        let texts = self.record.addr.heap_bytes()
            + self.record.laddr.heap_bytes()
            + self.record.text_bytes.load(Ordering::Relaxed) as usize;
        let buffers = self.input_memory() + self.output.memory() + output;
        let extras = self.transaction.watches().is_some() || self.push.gets_messages();
        let extras = if extras { self.memory_of_extras() } else { 0 };
        (own + texts + buffers + extras) as u64
    }

    #[cold]
    fn memory_of_extras(&self) -> usize {
        self.transaction.watches().map_or(0, |watches| watches.memory()) + self.push.memory()
    }

    /// Resets the session to the state of a new connection. Only the name and version of the client library stay.
    pub fn reset(&mut self, default: &Arc<Account>) {
        self.select(DbIndex::FIRST);
        self.set_protocol(Protocol::Resp2);
        self.act_as(default, default.user().is_open());
        self.options.reset();
        let taken_back = flag::MONITOR | flag::NO_EVICT | flag::NO_TOUCH | flag::READS_REPLICA;
        self.record.set(taken_back, false);
        self.record.edit_texts(|texts| texts.name.clear());
    }

    /// Closes the session after its output has been sent. No more commands are executed for it.
    pub fn close_after_reply(&mut self) {
        self.record.set(flag::CLOSE_AFTER_REPLY, true);
    }

    /// Closes a session that has killed itself, after its reply. Once the client has read that reply, the session can
    /// no longer be found.
    pub fn close_as_killed(&mut self) {
        self.close_after_reply();
        self.record.killed.store(true, Ordering::Relaxed);
    }

    /// Closes the session even if there is unsent output. No more commands are executed for it.
    pub fn close_at_once(&mut self) {
        self.record.set(flag::CLOSE_ASAP, true);
    }

    /// Reports whether no more commands are executed for this session.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.record.has(flag::CLOSE_AFTER_REPLY | flag::CLOSE_ASAP)
    }

    /// Reports whether the session is a replica whose snapshot has not been sent yet.
    #[inline]
    pub fn is_in_full_sync(&self) -> bool {
        self.record.has(flag::IN_FULL_SYNC)
    }

    /// Reports whether the session is closing, its user was changed, or the session is a replica that must wait or gets
    /// no replies.
    #[inline]
    pub fn has_pending_state(&self) -> bool {
        let ends = flag::CLOSE_AFTER_REPLY | flag::CLOSE_ASAP;
        self.record.has(ends | flag::USER_CHANGED | flag::REPLICA)
    }
}
