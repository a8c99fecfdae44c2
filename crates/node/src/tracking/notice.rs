//! Messages to clients that cache keys.

use brisk_engine::keyspace::{KeyName, TrackingClient};
use brisk_resp::reply::encode;
use smallvec::SmallVec;
use std::sync::Arc;

/// The bytes before the keys for RESP3 clients.
pub const HEAD_RESP3: &[u8] = b">2\r\n$10\r\ninvalidate\r\n";
/// The bytes before the keys for RESP2 clients, which receive the message as a Pub/Sub message.
pub const HEAD_RESP2: &[u8] = b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n";

/// The message to a RESP3 client if its invalidations cannot be delivered to client `to`.
pub fn redirection_broken(to: u64) -> Vec<u8> {
    let mut wire = b">2\r\n$21\r\ntracking-redir-broken\r\n".to_vec();
    encode::integer(&mut wire, to as i64);
    wire
}

/// A message for sessions of one worker.
#[derive(Debug)]
pub enum Notice {
    /// These clients may have cached the keys; `keys` is an array in wire format.
    Keys { clients: SmallVec<[u64; 2]>, keys: Arc<Vec<u8>>, by: u64 },
    /// All cached keys are invalid.
    All { by: u64 },
    /// Keys with a certain prefix were changed.
    Broadcast(Arc<Broadcast>),
    /// The message for client `of`, redirected to client `to`.
    Redirected { to: u64, of: TrackingClient, keys: Arc<Vec<u8>> },
    /// The client to which a client of this worker redirects has disconnected.
    Unreachable { of: u64 },
}

impl Notice {
    /// The size of the message in bytes, which is used to limit waiting messages.
    pub fn bytes(&self) -> usize {
        match self {
            Notice::Keys { keys, .. } | Notice::Redirected { keys, .. } => keys.len(),
            Notice::Broadcast(broadcast) => broadcast.all.len(),
            Notice::All { .. } | Notice::Unreachable { .. } => 0,
        }
    }
}

/// Changed keys, for the sessions that track one prefix.
#[derive(Debug)]
pub struct Broadcast {
    pub prefix: Box<[u8]>,
    /// The keys, each with the client that changed it last; 0 for none.
    keys: Box<[(KeyName, u64)]>,
    /// All keys, as an array in wire format.
    pub all: Arc<Vec<u8>>,
}

impl Broadcast {
    pub(super) fn new(prefix: &[u8], keys: &[(&[u8], u64)]) -> Broadcast {
        Broadcast {
            prefix: prefix.into(),
            all: Arc::new(array(keys.iter().map(|(key, _)| *key))),
            keys: keys.iter().map(|(key, by)| (KeyName::from_slice(key), *by)).collect(),
        }
    }

    /// The keys, except those that `client` itself changed. `None` if there are no other keys. O(keys).
    pub fn without(&self, client: u64) -> Option<Arc<Vec<u8>>> {
        if self.keys.iter().all(|(_, by)| *by != client) {
            return Some(Arc::clone(&self.all));
        }
        let others = self.keys.iter().filter(|(_, by)| *by != client);
        let others: Vec<&[u8]> = others.map(|(key, _)| key.as_slice()).collect();
        (!others.is_empty()).then(|| Arc::new(array(others.into_iter())))
    }
}

pub(super) fn array<'k>(keys: impl ExactSizeIterator<Item = &'k [u8]>) -> Vec<u8> {
    const FRAMING_BYTES: usize = 16;
    let mut wire = Vec::with_capacity((keys.len() + 1) * FRAMING_BYTES);
    encode::array(&mut wire, keys.len());
    keys.for_each(|key| encode::bulk(&mut wire, key));
    wire
}
