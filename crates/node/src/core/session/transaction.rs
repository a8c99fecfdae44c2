//! The transaction of a session: the commands queued since MULTI, and the watched keys.

use super::Session;
use crate::transactions::Transaction;
use brisk_engine::command::{Flags, InMulti};
use brisk_engine::keyspace::{DbSlot, Watches};
use brisk_engine::table::Row;
use std::sync::atomic::Ordering;

/// The queued commands and the watched keys.
#[derive(Default)]
pub struct TransactionState {
    /// The commands queued since MULTI.
    queued: Option<Box<Transaction>>,
    /// The watched keys. Created by the first WATCH.
    watches: Option<Box<Watches>>,
}

impl TransactionState {
    /// Reports whether commands are being queued, because MULTI was called and EXEC was not.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.queued.is_some()
    }

    /// The commands queued since MULTI.
    #[inline]
    pub(crate) fn queued(&self) -> Option<&Transaction> {
        self.queued.as_deref()
    }

    pub(crate) fn queued_mut(&mut self) -> Option<&mut Transaction> {
        self.queued.as_deref_mut()
    }

    /// Begins to queue commands in `transaction`, or continues after [`TransactionState::take_queued`].
    pub(crate) fn open(&mut self, transaction: Box<Transaction>) {
        self.queued = Some(transaction);
    }

    /// Takes the queued commands, which ends queueing.
    pub(crate) fn take_queued(&mut self) -> Option<Box<Transaction>> {
        self.queued.take()
    }

    /// Bytes of the arguments of queued commands.
    #[inline]
    pub(super) fn words_bytes(&self) -> usize {
        self.queued.as_ref().map_or(0, |transaction| transaction.words_bytes())
    }

    /// Bytes of memory of queued commands.
    #[inline]
    pub(super) fn queue_memory(&self) -> usize {
        self.queued.as_ref().map_or(0, |transaction| transaction.memory())
    }

    /// The watched keys.
    #[inline]
    pub(crate) fn watches(&self) -> Option<&Watches> {
        self.watches.as_deref()
    }

    pub(crate) fn watches_mut(&mut self) -> Option<&mut Watches> {
        self.watches.as_deref_mut()
    }

    /// The slots of the watched keys.
    pub(crate) fn watched_slots(&self) -> impl Iterator<Item = DbSlot> {
        self.watches.iter().flat_map(|watches| watches.places())
    }

    /// Takes the watches, to add keys. [`TransactionState::put_watches`] puts them back.
    pub fn take_watches(&mut self) -> Option<Box<Watches>> {
        self.watches.take()
    }

    pub fn put_watches(&mut self, watches: Box<Watches>) {
        self.watches = Some(watches);
    }
}

impl Session {
    /// Reports whether the session is between MULTI and EXEC.
    #[inline]
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_open()
    }

    /// The flags of a command if this session runs it. EXEC has the flags of the queued commands.
    pub fn flags_of(&self, row: &Row) -> Flags {
        match self.transaction.queued() {
            Some(transaction) if row.spec.in_multi == InMulti::Executes => {
                transaction.flags(row.spec.flags)
            }
            _ => row.spec.flags,
        }
    }

    /// Publishes the data that CLIENT LIST shows about the transaction.
    pub fn publish_transaction(&self) {
        let queued = self.transaction.queued();
        let count = queued.map_or(-1, |transaction| transaction.len() as i64);
        let memory = queued.map_or(0, |transaction| transaction.memory() as u64);
        self.record.queued.store(count, Ordering::Relaxed);
        self.record.queued_memory.store(memory, Ordering::Relaxed);
    }
}
