//! Parses and validates a node's reply to CLUSTER SLOTS: which node serves which slots.

use super::NODES_MAX;
use crate::address::Address;
use crate::error::{Error, Kind, Result};
use crate::reply::Reply;
use brisk_resp::reply::value::Value;
use brisk_resp::slot::SLOTS;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The user's function that translates the addresses of nodes.
#[derive(Clone)]
pub(crate) struct AddressMap(pub(crate) Arc<Translate>);

pub(crate) type Translate = dyn Fn(&str, u16) -> (String, u16) + Send + Sync;

impl fmt::Debug for AddressMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressMap")
    }
}

/// How to interpret addresses in a node's reply.
#[derive(Debug)]
pub(crate) struct AddressContext<'a> {
    /// The queried node. If an address in the reply has no host, it refers to this node.
    pub(crate) by: &'a Address,
    pub(crate) tls: bool,
    pub(crate) map: Option<&'a AddressMap>,
}

impl AddressContext<'_> {
    /// The address of a node. A port of 0 is invalid.
    pub(crate) fn address(&self, host: &str, port: u16) -> Option<Address> {
        if port == 0 {
            return None;
        }
        let host = match (host, self.by) {
            ("" | "?", Address::Tcp { host, .. }) => host,
            ("" | "?", _) => "127.0.0.1",
            _ => host,
        };
        let (host, port) = match self.map {
            Some(map) => (map.0)(host, port),
            None => (host.to_owned(), port),
        };
        Some(Address::Tcp { host, port, tls: self.tls })
    }
}

/// A node in the reply of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: Address,
    /// Its availability zone, if reported.
    pub(crate) zone: Option<String>,
}

/// A primary with its slots and replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotOwner {
    pub(crate) slots: Vec<RangeInclusive<u16>>,
    pub(crate) primary: Peer,
    pub(crate) replicas: Vec<Peer>,
}

/// All shards that serve slots, in the order of the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Topology {
    /// The cluster's epoch, which increases with each failover. A topology with a smaller epoch is older.
    pub(crate) epoch: u64,
    pub(crate) shards: Vec<SlotOwner>,
}

/// The epoch in the reply to CLUSTER INFO; 0 if it has none.
pub(crate) fn epoch(info: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix("cluster_current_epoch:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

impl Topology {
    /// Parses the reply to CLUSTER SLOTS.
    ///
    /// # Errors
    /// The server's error; an invalid reply, for example a slot out of range; or no slot is served.
    pub(crate) fn read(
        reply: &Reply,
        epoch: u64,
        context: &AddressContext<'_>,
    ) -> Result<Topology> {
        let reply: Value = reply.read()?;
        let wrong = || Error::new(Kind::UnexpectedReply, "the reply to CLUSTER SLOTS is malformed");
        let mut ranges: Vec<SlotOwner> = Vec::new();
        for range in reply.as_slice().ok_or_else(wrong)? {
            ranges.push(placed(range, context).ok_or_else(wrong)?);
        }
        ranges.sort_by_key(|range| *range.slots[0].start());
        let mut shards: Vec<SlotOwner> = Vec::new();
        let mut nodes = 0;
        for range in ranges {
            let known = |shard: &&mut SlotOwner| shard.primary.address == range.primary.address;
            if let Some(shard) = shards.iter_mut().find(known) {
                shard.slots.extend(range.slots);
                continue;
            }
            nodes += 1 + range.replicas.len();
            if nodes > NODES_MAX {
                let text = format!("a cluster of more than {NODES_MAX} nodes");
                return Err(Error::new(Kind::UnexpectedReply, text));
            }
            shards.push(range);
        }
        if shards.is_empty() {
            return Err(Error::new(Kind::Disconnected, "the cluster serves no slots"));
        }
        Ok(Topology { epoch, shards })
    }
}

impl Topology {
    /// The topology of a primary and its replicas, to which all slots belong.
    pub(crate) fn of_one(primary: Address, replicas: Vec<Address>) -> Topology {
        let peer = |address| Peer { address, zone: None };
        let mut replicas: Vec<Peer> = replicas.into_iter().map(peer).collect();
        in_one_order(&mut replicas);
        let slots = vec![0..=SLOTS - 1];
        Topology { epoch: 0, shards: vec![SlotOwner { slots, primary: peer(primary), replicas }] }
    }
}

/// Sorts the replicas, so that equivalent replies compare equal.
fn in_one_order(replicas: &mut Vec<Peer>) {
    replicas.sort_by_cached_key(|peer| peer.address.to_string());
    replicas.dedup();
}

/// Parses one range of slots with its nodes. The primary comes first.
fn placed(range: &Value, context: &AddressContext<'_>) -> Option<SlotOwner> {
    let [first, last, primary, replicas @ ..] = range.as_slice()? else { return None };
    let slot = |value: &Value| {
        let slot = u16::try_from(value.as_integer()?).ok()?;
        (slot < SLOTS).then_some(slot)
    };
    let (first, last) = (slot(first)?, slot(last)?);
    if first > last {
        return None;
    }
    let mut replicas: Vec<Peer> = replicas.iter().filter_map(|node| peer(node, context)).collect();
    in_one_order(&mut replicas);
    Some(SlotOwner { slots: vec![first..=last], primary: peer(primary, context)?, replicas })
}

/// Parses a node: `[host, port, id, metadata]`. The metadata is a map or a flat list.
fn peer(node: &Value, context: &AddressContext<'_>) -> Option<Peer> {
    let [host, port, more @ ..] = node.as_slice()? else { return None };
    let host = String::from_utf8_lossy(host.as_bytes().unwrap_or_default());
    let port = u16::try_from(port.as_integer()?).ok()?;
    let pairs: Vec<(&Value, &Value)> = match more.get(1).map(Value::without_attributes) {
        Some(Value::Map(pairs)) => pairs.iter().map(|(name, value)| (name, value)).collect(),
        Some(Value::Array(list)) => list.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect(),
        _ => Vec::new(),
    };
    let is_zone =
        |name: &Value| matches!(name.as_bytes(), Some(b"availability-zone" | b"availability_zone"));
    let zone = pairs.iter().find(|(name, _)| is_zone(name)).and_then(|(_, zone)| zone.as_bytes());
    let zone = zone.filter(|zone| !zone.is_empty());
    Some(Peer {
        address: context.address(&host, port)?,
        zone: zone.map(|zone| String::from_utf8_lossy(zone).into_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp { host: host.to_owned(), port, tls: false }
    }

    fn read(text: &str, map: Option<&AddressMap>) -> Result<Topology> {
        let bytes = text.replace('|', "\r\n").into_bytes();
        let context = AddressContext { by: &tcp("queried", 1), tls: false, map };
        Topology::read(&Reply::shared(bytes.into()), 7, &context)
    }

    const TWO: &str = "*2|\
        *4|:8000|:16383|*3|$9|127.0.0.1|:7001|$1|b|*4|$0||:7003|$1|d|*2|$17|availability-zone|$2|z1|\
        *3|:0|:7999|*4|$-1|:7000|$1|a|*2|$8|hostname|$1|h|";

    #[test]
    fn ranges_are_read_in_slot_order_with_zones_and_the_host_that_was_queried() {
        let read = read(TWO, None).unwrap();
        let primaries: Vec<_> = read.shards.iter().map(|shard| &shard.primary.address).collect();
        assert_eq!(primaries, [&tcp("queried", 7000), &tcp("127.0.0.1", 7001)]);
        assert_eq!(read.shards[0].slots, [0..=7999]);
        let replica = &read.shards[1].replicas[0];
        assert_eq!(replica.address, tcp("queried", 7003));
        assert_eq!(replica.zone.as_deref(), Some("z1"));
        assert_eq!(read.epoch, 7);
    }

    #[test]
    fn addresses_are_translated() {
        let map = AddressMap(Arc::new(|_: &str, port| ("outside".to_owned(), port + 1)));
        let read = read(TWO, Some(&map)).unwrap();
        assert_eq!(read.shards[1].primary.address, tcp("outside", 7002));
    }

    #[test]
    fn an_invalid_topology_is_an_error() {
        for text in [
            "*0|",
            ":1|",
            "*1|*3|:0|:16384|*2|$1|h|:1|",
            "*1|*3|:5|:4|*2|$1|h|:1|",
            "*1|*3|:-1|:4|*2|$1|h|:1|",
            "*1|*2|:0|:4|",
            "*1|*3|:0|:4|*2|$1|h|:0|",
            "*1|*3|:0|:4|*2|$1|h|:70000|",
            "-ERR This instance has cluster support disabled|",
        ] {
            assert!(read(text, None).is_err(), "{text}");
        }
        let nodes: String = (0..=NODES_MAX).map(|n| format!("*2|$1|h|:{}|", n + 1)).collect();
        let many = format!("*1|*{}|:0|:1|{nodes}", NODES_MAX + 3);
        assert!(read(&many, None).is_err());
    }

    #[test]
    fn the_epoch_is_found_in_the_text() {
        assert_eq!(epoch("cluster_state:ok\r\ncluster_current_epoch:12\r\n"), 12);
        assert_eq!(epoch(""), 0);
    }
}
