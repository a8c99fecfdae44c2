//! One server, and the connections to it that all callers share.

use crate::error::{Error, Kind, Result};
use crate::lane::Lane;
use crate::observe::Counts;

/// A server's lanes.
#[derive(Debug)]
pub(crate) struct Node {
    lanes: Vec<Lane>,
}

impl Node {
    pub(crate) fn new(lanes: Vec<Lane>) -> Node {
        Node { lanes }
    }

    /// The lane for a key: always the same one, so that order is kept. Without a key it is the first. O(key).
    #[inline]
    pub(crate) fn lane(&self, key: Option<&[u8]>) -> Result<&Lane> {
        let at = match (self.lanes.len(), key) {
            (1, _) | (_, None) => 0,
            (count, Some(key)) => (hash(key) % count as u64) as usize,
        };
        self.lanes.get(at).ok_or_else(|| Error::new(Kind::Closed, "no connection"))
    }

    pub(crate) fn close(&self) {
        self.lanes.iter().for_each(Lane::close);
    }

    /// What each lane has counted.
    pub(crate) fn counts(&self) -> impl Iterator<Item = Counts> {
        self.lanes.iter().map(Lane::counts)
    }

    /// Commands whose replies have not come, about.
    pub(crate) fn pending(&self) -> usize {
        self.lanes.iter().map(Lane::pending).sum()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.close();
    }
}

/// FNV-1a: keys are short, and all that matters is that they are spread.
fn hash(key: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325, fold);
    hash ^ (hash >> 32)
}
