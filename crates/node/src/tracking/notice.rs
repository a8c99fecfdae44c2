//! Messages to those who cache, and how they come about.

use brisk_engine::keyspace::{KeyName, TrackingClient};
use brisk_resp::reply::encode;
use smallvec::SmallVec;
use std::sync::Arc;

/// What stands before the keys for clients of RESP3.
pub const HEAD_RESP3: &[u8] = b">2\r\n$10\r\ninvalidate\r\n";
/// The same for clients of RESP2, who get it as a message of a channel.
pub const HEAD_RESP2: &[u8] = b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n";

/// What a client of RESP3 hears whose messages cannot be delivered to client `to`.
pub fn redirection_broken(to: u64) -> Vec<u8> {
    let mut wire = b">2\r\n$21\r\ntracking-redir-broken\r\n".to_vec();
    encode::integer(&mut wire, to as i64);
    wire
}

/// A message for sessions of one worker.
#[derive(Debug)]
pub enum Notice {
    /// These clients may have had the keys, of which `keys` is an array on the wire.
    Keys { clients: SmallVec<[u64; 2]>, keys: Arc<Vec<u8>>, by: u64 },
    /// Whatever clients have is not true any more.
    All { by: u64 },
    /// Keys with a prefix were changed.
    Broadcast(Arc<Broadcast>),
    /// What client `of` is to hear, redirected to client `to`.
    Redirected { to: u64, of: TrackingClient, keys: Arc<Vec<u8>> },
    /// The client that a client of this worker redirects to is gone.
    Unreachable { of: u64 },
}

impl Notice {
    /// Bytes, to bound what waits.
    pub fn bytes(&self) -> usize {
        match self {
            Notice::Keys { keys, .. } | Notice::Redirected { keys, .. } => keys.len(),
            Notice::Broadcast(broadcast) => broadcast.all.len(),
            Notice::All { .. } | Notice::Unreachable { .. } => 0,
        }
    }
}

/// Keys that were changed, for who listens to one prefix.
#[derive(Debug)]
pub struct Broadcast {
    pub prefix: Box<[u8]>,
    /// With the client that changed each last; 0 for none.
    keys: Box<[(KeyName, u64)]>,
    /// All keys, as an array on the wire.
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

    /// Without the keys that `client` itself changed; `None` if there are no others. O(keys).
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
