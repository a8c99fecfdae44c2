//! What is known of a session that follows the stream.

use brisk_reactor::Token;
use std::net::IpAddr;

/// What a session said of itself by REPLCONF, and whether it follows.
#[derive(Debug, Default)]
pub struct Replica {
    pub port: u16,
    pub ip: Option<IpAddr>,
    pub follows: bool,
    /// It tells how far it has come, about once a second: it asked by PSYNC.
    pub acknowledges: bool,
    /// Bytes of the snapshot that are not sent yet: no limit of output counts them.
    pub snapshot_left: u64,
    /// Bytes of memory that the snapshot takes until all of it is sent.
    pub(super) snapshot_held: u64,
}

impl Replica {
    /// Whether its silence for long means that it is gone.
    pub fn is_to_be_heard(&self) -> bool {
        self.follows && self.acknowledges && self.snapshot_left == 0
    }
}

/// A session of a worker that follows the stream from an offset on.
#[derive(Debug, Clone, Copy)]
pub struct Follower {
    pub token: Token,
    pub from: u64,
}
