//! The map from slots to nodes: shards and their members.

use super::topology::{Peer, Topology};
use crate::address::Address;
use crate::client::node::Node;
use crate::error::Result;
use crate::lane::cell::retired;
use brisk_resp::slot::SLOTS;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Marks a slot without a known node.
const UNASSIGNED: u16 = u16::MAX;

/// A server in one role, and the lanes to it. If a server changes its role, it becomes a new member, and requests that
/// wait for the old member are sent elsewhere.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) address: Address,
    /// True for a replica that serves reads. Its connections send READONLY.
    pub(crate) reads: bool,
    pub(crate) zone: Option<String>,
    /// Created when first needed.
    node: OnceLock<Node>,
    is_retired: AtomicBool,
}

impl Member {
    pub(crate) fn new(peer: Peer, reads: bool) -> Member {
        let Peer { address, zone } = peer;
        Member { address, reads, zone, node: OnceLock::new(), is_retired: AtomicBool::new(false) }
    }

    /// Returns the member's lanes, which `make` creates on first use.
    ///
    /// # Errors
    /// The member has been retired and accepts no more requests.
    pub(crate) fn node(&self, make: impl FnOnce() -> Node) -> Result<&Node> {
        let node = self.node.get_or_init(make);
        // The check comes after the lanes are created, so either this check sees that the member is retired, or the
        // retiring thread sees the lanes.
        if self.is_retired.load(Ordering::SeqCst) {
            node.retire();
            return Err(retired());
        }
        Ok(node)
    }

    /// The member's lanes, if they have been created.
    pub(crate) fn known_node(&self) -> Option<&Node> {
        self.node.get()
    }

    /// Retires the member. It accepts no more requests; replies to sent requests are still delivered.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::SeqCst);
        self.node.get().into_iter().for_each(Node::retire);
    }

    pub(crate) fn is_down(&self) -> bool {
        self.node.get().is_some_and(Node::is_down)
    }
}

/// A primary and its replicas.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(crate) primary: Arc<Member>,
    pub(crate) replicas: Vec<Arc<Member>>,
}

impl Shard {
    pub(crate) fn members(&self) -> impl Iterator<Item = &Arc<Member>> {
        std::iter::once(&self.primary).chain(&self.replicas)
    }
}

#[derive(Debug)]
pub(crate) struct Map {
    /// For each slot, the index of its shard.
    slots: Box<[u16]>,
    shards: Vec<Shard>,
    pub(crate) topology: Topology,
}

impl Map {
    /// Builds a map from a topology. Members of the previous map are kept, with their lanes.
    pub(crate) fn new(topology: Topology, before: Option<&Map>) -> Map {
        let kept = |peer: &Peer, reads: bool| {
            let is_same = |member: &&Arc<Member>| {
                (member.reads, &member.address, &member.zone) == (reads, &peer.address, &peer.zone)
            };
            let known = before.and_then(|before| before.members().find(is_same));
            known.cloned().unwrap_or_else(|| Arc::new(Member::new(peer.clone(), reads)))
        };
        let mut slots = vec![UNASSIGNED; usize::from(SLOTS)].into_boxed_slice();
        let mut shards = Vec::with_capacity(topology.shards.len());
        for (at, placed) in topology.shards.iter().enumerate() {
            for range in &placed.slots {
                slots[usize::from(*range.start())..=usize::from(*range.end())].fill(at as u16);
            }
            shards.push(Shard {
                primary: kept(&placed.primary, false),
                replicas: placed.replicas.iter().map(|peer| kept(peer, true)).collect(),
            });
        }
        Map { slots, shards, topology }
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.shards.iter().flat_map(Shard::members)
    }

    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Reports whether a slot has a known node.
    pub(crate) fn serves(&self, slot: u16) -> bool {
        self.slots.get(usize::from(slot)).is_some_and(|at| *at != UNASSIGNED)
    }

    /// The index of a slot's shard. Without a slot, or if the slot's node is unknown, the index of the first slot's
    /// shard. O(1).
    #[inline]
    pub(crate) fn shard_index(&self, slot: Option<u16>) -> usize {
        let at = slot.and_then(|slot| self.slots.get(usize::from(slot)));
        at.filter(|at| **at != UNASSIGNED).map_or(0, |at| usize::from(*at))
    }

    /// The shard of a slot, with the same rules as [`Map::shard_index`].
    #[inline]
    pub(crate) fn shard(&self, slot: Option<u16>) -> Option<&Shard> {
        self.shards.get(self.shard_index(slot))
    }

    /// The index of the primary at an address. An unknown address becomes a new shard. `None` if there are too many
    /// shards.
    pub(crate) fn primary_at(&mut self, address: &Address) -> Option<usize> {
        let is_there = |shard: &Shard| shard.primary.address == *address;
        if let Some(at) = self.shards.iter().position(is_there) {
            return Some(at);
        }
        if self.members().count() >= super::NODES_MAX {
            return None;
        }
        let zone = self.members().find(|member| member.address == *address);
        let peer =
            Peer { address: address.clone(), zone: zone.and_then(|member| member.zone.clone()) };
        let primary = Arc::new(Member::new(peer, false));
        self.shards.push(Shard { primary, replicas: Vec::new() });
        Some(self.shards.len() - 1)
    }

    /// Records that the shard at this index serves a slot, as a node has reported.
    pub(crate) fn correct(&mut self, slot: u16, index: usize) {
        if let (Some(at), Ok(index)) = (self.slots.get_mut(usize::from(slot)), u16::try_from(index))
        {
            *at = index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::SlotOwner;
    use super::*;

    fn peer(port: u16) -> Peer {
        let address = Address::Tcp { host: "h".to_owned(), port, tls: false };
        Peer { address, zone: None }
    }

    fn topology(shards: &[(std::ops::RangeInclusive<u16>, u16, &[u16])]) -> Topology {
        let placed = |(slots, primary, replicas): &(_, u16, &[u16])| SlotOwner {
            slots: vec![std::ops::RangeInclusive::clone(slots)],
            primary: peer(*primary),
            replicas: replicas.iter().map(|port| peer(*port)).collect(),
        };
        Topology { epoch: 1, shards: shards.iter().map(placed).collect() }
    }

    fn primary(map: &Map, slot: u16) -> String {
        map.shard(Some(slot)).unwrap().primary.address.to_string()
    }

    #[test]
    fn slots_map_to_their_shard_and_unassigned_slots_to_the_first_shard() {
        let mut map = Map::new(topology(&[(0..=99, 1, &[3]), (100..=200, 2, &[])]), None);
        assert_eq!((primary(&map, 0), primary(&map, 100)), ("h:1".into(), "h:2".into()));
        assert_eq!(map.shard(None).unwrap().primary.address, peer(1).address);
        assert!(map.serves(200) && !map.serves(201));
        assert_eq!(primary(&map, 201), "h:1");
        let index = map.primary_at(&peer(3).address).unwrap();
        map.correct(150, index);
        assert_eq!((primary(&map, 149), primary(&map, 150)), ("h:2".into(), "h:3".into()));
        assert!(!map.shard(Some(150)).unwrap().primary.reads);
        assert_eq!(map.primary_at(&peer(2).address), Some(1));
    }

    #[test]
    fn members_stay_in_a_new_map_if_their_role_is_unchanged() {
        let before = Map::new(topology(&[(0..=99, 1, &[3]), (100..=200, 2, &[4])]), None);
        let after = Map::new(topology(&[(0..=99, 3, &[1]), (100..=200, 2, &[4])]), Some(&before));
        let kept = |member: &&Arc<Member>| before.members().any(|old| Arc::ptr_eq(old, member));
        let kept: Vec<_> =
            after.members().filter(kept).map(|member| member.address.to_string()).collect();
        assert_eq!(kept, ["h:2", "h:4"]);
    }

    #[test]
    fn nodes_are_bounded() {
        let mut map = Map::new(topology(&[(0..=99, 1, &[])]), None);
        for port in 0..5000 {
            let _ = map.primary_at(&peer(port + 2).address);
        }
        assert_eq!(map.members().count(), super::super::NODES_MAX);
    }
}
