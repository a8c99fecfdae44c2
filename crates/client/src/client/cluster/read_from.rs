//! The choice between a primary and its replicas for commands that only read.

use super::map::{Member, Shard};
use std::sync::Arc;

/// The nodes that receive commands that only read, if a primary has replicas.
///
/// A replica lags behind its primary, so it may not have a recent write yet. Only commands with a key go to replicas.
/// A replica is skipped while it is unreachable, is loading its dataset, or has lost its primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadFrom {
    /// The primary, as for writes.
    #[default]
    Primary,
    /// The replicas, in turn. If no replica is reachable, the primary.
    PreferReplica,
    /// The replicas in turn, never the primary. If no replica is reachable, commands fail.
    Replica,
    /// The replicas in the client's [zone](crate::Builder::zone). If none is reachable, the primary if it is in that
    /// zone; otherwise as with [`ReadFrom::PreferReplica`]. Zones are known only if the nodes report them in CLUSTER
    /// SLOTS (`availability-zone`). Brisk does not report them.
    Nearest,
}

impl ReadFrom {
    /// The member to use for this turn; `None` if none is permitted. O(replicas).
    pub(crate) fn choose<'a>(
        self,
        shard: &'a Shard,
        turn: usize,
        zone: Option<&str>,
    ) -> Option<&'a Arc<Member>> {
        let replicas = &shard.replicas;
        let first = turn.checked_rem(replicas.len()).unwrap_or(0);
        let next = |is_fit: &dyn Fn(&Member) -> bool| {
            let (before, after) = replicas.split_at(first);
            after.iter().chain(before).find(|member| is_fit(member))
        };
        let is_up = |member: &Member| !member.is_down();
        match self {
            ReadFrom::Primary => Some(&shard.primary),
            ReadFrom::PreferReplica => next(&is_up).or(Some(&shard.primary)),
            ReadFrom::Replica => next(&is_up).or_else(|| next(&|_| true)),
            ReadFrom::Nearest => {
                let is_near = |member: &Member| {
                    zone.is_some() && member.zone.as_deref() == zone && is_up(member)
                };
                next(&is_near)
                    .or_else(|| is_near(&shard.primary).then_some(&shard.primary))
                    .or_else(|| next(&is_up))
                    .or(Some(&shard.primary))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::Peer;
    use super::*;
    use crate::address::Address;

    fn member(port: u16, zone: &str, reads: bool) -> Arc<Member> {
        let address = Address::Tcp { host: "h".to_owned(), port, tls: false };
        Arc::new(Member::new(Peer { address, zone: Some(zone.to_owned()) }, reads))
    }

    fn chosen(read_from: ReadFrom, shard: &Shard, turn: usize) -> Option<String> {
        let member = read_from.choose(shard, turn, Some("b"));
        member.map(|member| member.address.to_string())
    }

    #[test]
    fn replicas_take_turns_and_those_of_the_zone_come_first() {
        let replicas = [(1, "a"), (2, "b"), (3, "a")];
        let shard = Shard {
            primary: member(0, "b", false),
            replicas: replicas.map(|(port, zone)| member(port, zone, true)).to_vec(),
        };
        let turns = |read_from| {
            (0..4).map(|turn| chosen(read_from, &shard, turn).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(turns(ReadFrom::Primary), ["h:0"; 4]);
        assert_eq!(turns(ReadFrom::PreferReplica), ["h:1", "h:2", "h:3", "h:1"]);
        assert_eq!(turns(ReadFrom::Nearest), ["h:2"; 4]);
        let near = Shard { replicas: vec![member(1, "a", true)], ..shard.clone() };
        assert_eq!(chosen(ReadFrom::Nearest, &near, 0).as_deref(), Some("h:0"));
        let far = Shard { primary: member(0, "c", false), ..near };
        assert_eq!(chosen(ReadFrom::Nearest, &far, 0).as_deref(), Some("h:1"));
    }

    #[test]
    fn without_replicas_reads_go_to_the_primary_unless_that_is_forbidden() {
        let shard = Shard { primary: member(0, "b", false), replicas: Vec::new() };
        assert_eq!(chosen(ReadFrom::PreferReplica, &shard, 5).as_deref(), Some("h:0"));
        assert_eq!(chosen(ReadFrom::Replica, &shard, 5), None);
    }
}
