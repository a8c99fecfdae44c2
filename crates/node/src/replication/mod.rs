//! The stream of effects that replicas follow: what transactions of all workers changed, in one
//! order.
//!
//! | file | about |
//! |---|---|
//! | `feed` | transactions come in by ticket, bytes go out in order |
//! | `replica` | what is known of a session that follows |
//! | `acks` | WAIT and WAITAOF: what is acknowledged |
//! | `follow` | how sessions begin to follow |
//! | `migration` | MIGRATE's connections to other servers |

pub mod migration;

pub mod acks;
pub mod feed;
pub mod follow;
pub mod replica;

use self::feed::Feed;
use self::replica::Replica;

/// The state of replication that all workers share.
pub struct Replication {
    /// The changes of all workers in one order.
    pub feed: Feed,
    /// Names the history of this data set to replicas.
    pub id: String,
}

impl Replication {
    /// Without a replica, for so many workers.
    pub fn new(workers: usize, id: String) -> Replication {
        Replication { feed: Feed::new(workers), id }
    }

    /// So much of a snapshot may still be unsent at most.
    pub fn note_snapshot_left(&self, replica: &mut Replica, most: u64) {
        replica.snapshot_left = replica.snapshot_left.min(most);
        if replica.snapshot_left == 0 {
            let held = std::mem::take(&mut replica.snapshot_held);
            self.feed.note_snapshots(-held.cast_signed());
        }
    }
}
