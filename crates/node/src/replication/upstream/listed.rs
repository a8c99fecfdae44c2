//! The connection to the primary, which CLIENT LIST shows as a client of this server.

use super::wire::Wire;
use crate::clients::address::Address;
use crate::clients::{ClientRecord, flag};
use crate::core::shared::Shared;
use brisk_reactor::{PeerAddr, Token, unix_ms};
use std::cell::Cell;
use std::io;
use std::sync::Arc;

/// The id of the client and the time of its first connection, in Unix ms. They stay the same as long as the
/// stream continues, over any number of connections.
#[derive(Debug, Default)]
pub(super) struct ClientIdentity(Cell<Option<(u64, u64)>>);

impl ClientIdentity {
    /// Notes that another stream begins: the next connection gets another identity.
    pub(super) fn forget(&self) {
        self.0.set(None);
    }

    /// The record of this connection. CLIENT LIST does not show it yet.
    pub(super) fn record(&self, shared: &Shared, wire: &Wire) -> io::Result<Arc<ClientRecord>> {
        let (id, since_ms) = self.0.get().unwrap_or_else(|| (shared.clients.next_id(), unix_ms()));
        self.0.set(Some((id, since_ms)));
        let [peer, own] = wire.ends()?.map(PeerAddr::Tcp);
        let addresses = (Address::Socket(peer), Address::Socket(own));
        // The client belongs to the first worker, which executes the stream, but to none of this worker's sessions.
        let token = Token::from_u64(u64::MAX);
        let record =
            ClientRecord::new(id, 0, token, wire.fd(), peer.is_local(), false, addresses, since_ms);
        record.set(flag::PRIMARY, true);
        Ok(Arc::new(record))
    }
}

/// A client that is visible to CLIENT LIST and other commands until this value is dropped.
pub(super) struct ListedClient {
    shared: &'static Shared,
    record: Arc<ClientRecord>,
}

impl ListedClient {
    pub(super) fn new(shared: &'static Shared, record: Arc<ClientRecord>) -> ListedClient {
        // The connection counts as a client, but is not rejected because of `maxclients`.
        shared.clients.admit(false, i64::MAX.cast_unsigned());
        shared.clients.add(Arc::clone(&record));
        ListedClient { shared, record }
    }
}

impl Drop for ListedClient {
    fn drop(&mut self) {
        self.shared.clients.remove(&self.record);
    }
}
