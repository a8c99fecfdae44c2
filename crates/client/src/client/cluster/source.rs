//! The source of the map: the nodes of a cluster, a primary, or sentinels.
//!
//! A primary with its replicas, without a cluster, is treated as a cluster of one shard that has all slots. This file
//! contains the differences: how the client discovers the nodes and connects to them. A command may also use any
//! combination of keys.

use super::NODES_MAX;
use super::refresh::{Discovered, Discovery, Scout};
use super::topology::{AddressContext, Topology};
use crate::address::Address;
use crate::client::sentinel::Sentinels;
use crate::error::{Error, Kind, Result};
use crate::lane::connect::{Setup, open};
use crate::reply::Reply;
use brisk_resp::reply::value::Value;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The interval at which the map is read without a hint. Cluster nodes redirect commands. Without a cluster, only a
/// refresh finds new replicas, so the interval for that case (the next constant) is shorter.
const INTERVAL: Duration = Duration::from_secs(30);
const INTERVAL_WITHOUT_REDIRECTS: Duration = Duration::from_secs(5);
/// The maximum length of the replication chain that is followed with ROLE, because a replica may replicate from another
/// replica.
pub(super) const ROLES_MAX: usize = 4;

/// The source of the list of nodes.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Any node of a cluster.
    Slots,
    /// ROLE: a primary lists its replicas, and each replica names its primary.
    Roles,
    /// Sentinels.
    Sentinels(Arc<Sentinels>),
}

impl Source {
    /// Reports whether the key decides which node a command goes to.
    pub(crate) fn is_sharded(&self) -> bool {
        matches!(self, Source::Slots)
    }

    /// The interval at which the map is read without a hint.
    pub(super) fn interval(&self) -> Duration {
        match self {
            Source::Slots => INTERVAL,
            Source::Roles | Source::Sentinels(_) => INTERVAL_WITHOUT_REDIRECTS,
        }
    }

    /// The setup of a connection to a node. With Sentinel, each connection finds the current primary.
    pub(super) fn setup_at(
        &self,
        setup: &Arc<Setup>,
        address: &Address,
        reads: bool,
    ) -> Arc<Setup> {
        if !reads && matches!(self, Source::Sentinels(_)) {
            return Arc::clone(setup);
        }
        let readonly = reads && self.is_sharded();
        let destination = Default::default();
        Arc::new(Setup { address: address.clone(), readonly, destination, ..Setup::clone(setup) })
    }

    pub(super) fn switches(&self) -> Switches {
        match self {
            Source::Sentinels(sentinels) => Switches(Some(sentinels.subscribe())),
            Source::Slots | Source::Roles => Switches(None),
        }
    }
}

/// Notifications of failovers from Sentinel.
pub(super) struct Switches(Option<watch::Receiver<u64>>);

impl Switches {
    /// Completes at the next failover.
    pub(super) async fn next(&mut self) {
        let Some(switches) = &mut self.0 else { return pending().await };
        if switches.changed().await.is_err() {
            pending().await
        }
    }
}

/// Reads the topology from Sentinel.
///
/// # Errors
/// No sentinel replies, or none knows the service.
pub(super) async fn by_sentinels(discovery: &Discovery, sentinels: &Sentinels) -> Result<Topology> {
    let replicas = sentinels.replicas().await?;
    let context = discovery.address_context(&discovery.setup.address);
    let replicas = replicas.iter().filter_map(|address| match address {
        Address::Tcp { host, port, .. } => context.address(host, *port),
        Address::Unix { .. } => None,
    });
    Ok(Topology::of_one(discovery.setup.address.clone(), replicas.collect()))
}

/// Queries a node, and follows the replication chain to its primary.
///
/// # Errors
/// A node does not reply, or the replication chain is too long or circular.
pub(super) async fn by_roles(discovery: &Discovery, mut address: Address) -> Result<Discovered> {
    for _ in 0..ROLES_MAX {
        let connection = open(&discovery.setup_at(&address, false)).await?;
        let mut scout = Scout::new(address.clone(), connection);
        match scout.role(discovery).await? {
            Role::Primary(replicas) => {
                let topology = Topology::of_one(address, replicas);
                return Ok(Discovered { topology, scout: Some(scout) });
            }
            Role::ReplicaOf(primary) => address = primary,
        }
    }
    Err(Error::new(
        Kind::Disconnected,
        format!("the replication chain at {address} is too long or circular"),
    ))
}

/// The role of a node, with its peers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    Primary(Vec<Address>),
    ReplicaOf(Address),
}

impl Role {
    /// Parses the reply to ROLE.
    ///
    /// # Errors
    /// The server's error, or a malformed reply.
    pub(super) fn read(reply: &Reply, context: &AddressContext<'_>) -> Result<Role> {
        let reply: Value = reply.read()?;
        let wrong = || Error::new(Kind::UnexpectedReply, "the reply to ROLE is malformed");
        // Ports are strings in one of the two replies, and integers in the other.
        let port = |value: &Value| match value.as_integer() {
            Some(port) => u16::try_from(port).ok(),
            None => std::str::from_utf8(value.as_bytes()?).ok()?.parse().ok(),
        };
        let address = |host: &Value, at: &Value| {
            let host = std::str::from_utf8(host.as_bytes()?).ok()?;
            context.address(host, port(at)?)
        };
        match reply.as_slice().ok_or_else(wrong)? {
            [role, _, replicas] if role.as_bytes() == Some(b"master") => {
                let replicas = replicas.as_slice().ok_or_else(wrong)?;
                let replica = |replica: &Value| match replica.as_slice()? {
                    [host, at, ..] => address(host, at),
                    _ => None,
                };
                let replicas = replicas.iter().take(NODES_MAX).filter_map(replica);
                Ok(Role::Primary(replicas.collect()))
            }
            [role, host, at, ..] if role.as_bytes() == Some(b"slave") => {
                address(host, at).map(Role::ReplicaOf).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Role> {
        let bytes = text.replace('|', "\r\n").into_bytes();
        let by = Address::Tcp { host: "queried".to_owned(), port: 1, tls: false };
        Role::read(&Reply::shared(bytes.into()), &AddressContext { by: &by, tls: false, map: None })
    }

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp { host: host.to_owned(), port, tls: false }
    }

    #[test]
    fn roles_are_parsed_from_the_replies_of_primaries_and_replicas() {
        let primary = "*3|$6|master|:14|*2|*3|$9|127.0.0.1|$4|9001|$1|7|*3|$1|h|$4|9002|$1|0|";
        assert_eq!(
            read(primary).unwrap(),
            Role::Primary(vec![tcp("127.0.0.1", 9001), tcp("h", 9002)])
        );
        let replica = "*5|$5|slave|$9|127.0.0.1|:9000|$9|connected|:3167|";
        assert_eq!(read(replica).unwrap(), Role::ReplicaOf(tcp("127.0.0.1", 9000)));
    }

    #[test]
    fn an_invalid_role_is_an_error() {
        for text in [
            "*0|",
            ":1|",
            "*2|$8|sentinel|*0|",
            "*3|$6|master|:1|:1|",
            "*5|$5|slave|$1|h|:0|$1|c|:1|",
            "-ERR no|",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
