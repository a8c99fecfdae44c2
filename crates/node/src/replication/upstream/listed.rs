//! The connection to the primary as a client of this server: a line of CLIENT LIST.

use super::wire::Wire;
use crate::clients::address::Address;
use crate::clients::{ClientRecord, flag};
use crate::core::shared::Shared;
use brisk_reactor::{PeerAddr, Token, unix_ms};
use std::cell::Cell;
use std::io;
use std::sync::Arc;

/// Under which id it is known, and since when, in Unix ms: the same as long as the stream goes on, over as
/// many connections as it takes.
#[derive(Debug, Default)]
pub(super) struct Name(Cell<Option<(u64, u64)>>);

impl Name {
    /// Another stream begins.
    pub(super) fn forget(&self) {
        self.0.set(None);
    }

    /// This connection by that name. It is not listed yet.
    pub(super) fn record(&self, shared: &Shared, wire: &Wire) -> io::Result<Arc<ClientRecord>> {
        let (id, since_ms) = self.0.get().unwrap_or_else(|| (shared.clients.next_id(), unix_ms()));
        self.0.set(Some((id, since_ms)));
        let [peer, own] = wire.ends()?.map(PeerAddr::Tcp);
        let addresses = (Address::Socket(peer), Address::Socket(own));
        // It belongs to the first worker, which executes what comes by it, and to none of its sessions.
        let token = Token::from_u64(u64::MAX);
        let record =
            ClientRecord::new(id, 0, token, wire.fd(), peer.is_local(), false, addresses, since_ms);
        record.set(flag::PRIMARY, true);
        Ok(Arc::new(record))
    }
}

/// As long as it lives others find the client.
pub(super) struct Listed {
    shared: &'static Shared,
    record: Arc<ClientRecord>,
}

impl Listed {
    pub(super) fn new(shared: &'static Shared, record: Arc<ClientRecord>) -> Listed {
        // It is counted, and refused by no limit.
        shared.clients.admit(false, i64::MAX.cast_unsigned());
        shared.clients.add(Arc::clone(&record));
        Listed { shared, record }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.shared.clients.remove(&self.record);
    }
}
