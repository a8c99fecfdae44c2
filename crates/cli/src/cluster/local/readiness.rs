//! Checks whether a node is ready to serve, by its own reports.

use crate::cluster::node::{Line, Node, parse_nodes, ranges};
use crate::info::InfoFields;
use crate::session::{ConnectFailure, Session};
use std::time::Duration;

/// The number of slots in the format of CLUSTER INFO.
const ALL_SLOTS: &str = "16384";
/// A local node that does not reply within this time is considered not ready.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of a starting node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NodeReadiness {
    /// It is serving. The text describes its role.
    Ready(String),
    /// It is registered, but the topology does not contain it.
    Outside,
    /// It is loading its data, which may take any time.
    Loading,
    /// It is waiting for the described event.
    Waiting(String),
    /// It rejects commands, with this error.
    Refused(String),
}

/// Checks the node on a port.
pub(super) fn probe(port: u16, session: &Session) -> NodeReadiness {
    let mut node = match Node::reach("127.0.0.1", i64::from(port), session, REPLY_TIMEOUT) {
        Ok(node) => node,
        Err(ConnectFailure::Rejected(text)) => return NodeReadiness::Refused(text),
        Err(_) => return NodeReadiness::Waiting("it accepts no connection".to_owned()),
    };
    look(&mut node).unwrap_or_else(|text| match text {
        text if text.starts_with("NOAUTH") || text.starts_with("NOPERM") => {
            NodeReadiness::Refused(text)
        }
        text => NodeReadiness::Waiting(text),
    })
}

fn look(node: &mut Node) -> Result<NodeReadiness, String> {
    let waiting = |text: String| Ok(NodeReadiness::Waiting(text));
    let server = node.fields(&["INFO"])?;
    if server.is("loading", "1") || server.is("async_loading", "1") {
        return Ok(NodeReadiness::Loading);
    }
    if !server.is("cluster_enabled", "1") {
        return Ok(NodeReadiness::Refused("cluster mode is off".to_owned()));
    }
    let cluster = node.fields(&["CLUSTER", "INFO"])?;
    if !cluster.is("cluster_slots_assigned", ALL_SLOTS) {
        let known = node.coordinator_report();
        if known.is_some_and(|known| known.has_topology && !known.is_member) {
            return Ok(NodeReadiness::Outside);
        }
        let assigned = cluster.get("cluster_slots_assigned").unwrap_or("0");
        return waiting(format!("{assigned} of {ALL_SLOTS} slots are assigned"));
    }
    if !cluster.is("cluster_state", "ok") {
        return waiting("its cluster_state is not ok".to_owned());
    }
    let nodes = node.text(&["CLUSTER", "NODES"])?;
    let lines = parse_nodes(&nodes).ok_or("its CLUSTER NODES has another format")?;
    Ok(match role(&lines, &server) {
        Ok(role) => NodeReadiness::Ready(role),
        Err(text) => NodeReadiness::Waiting(text),
    })
}

/// The role of the node itself.
///
/// # Errors
/// If its replicas, or its link to the primary, are not ready.
fn role(lines: &[Line], info: &InfoFields) -> Result<String, String> {
    let own = lines.iter().find(|line| line.has_flag("myself"));
    let own = own.ok_or("it does not list itself in CLUSTER NODES")?;
    if let Some(primary) = &own.replicates {
        if !info.is("master_link_status", "up") {
            return Err("its link to the primary is down".to_owned());
        }
        let primary = lines.iter().find(|line| line.id == *primary);
        let place = primary.map(|line| format!("{}:{}", line.host, line.port));
        return Ok(format!("replica of {}", place.unwrap_or_else(|| "an unknown node".to_owned())));
    }
    let replicas = lines.iter().filter(|line| line.replicates.as_ref() == Some(&own.id)).count();
    let online = info.replicas().iter().filter(|replica| replica.is_online).count();
    if online < replicas {
        return Err(format!("{online} of its {replicas} replicas are online"));
    }
    let slots = ranges(&own.slots).replace(['[', ']'], "");
    Ok(if slots.is_empty() {
        "primary without slots".to_owned()
    } else {
        format!("primary of slots {slots}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = "aa 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-5460\n\
                         bb 127.0.0.1:7003@17003 slave aa 0 0 1 connected\n";

    #[test]
    fn a_primary_is_ready_once_its_replicas_are_online() {
        let lines = parse_nodes(NODES).unwrap();
        let online = InfoFields::parse("slave0:ip=127.0.0.1,port=7003,state=online,offset=0,lag=0");
        assert_eq!(role(&lines, &online).unwrap(), "primary of slots 0-5460");
        let copying = InfoFields::parse("slave0:ip=127.0.0.1,port=7003,state=send_bulk,offset=0");
        assert_eq!(role(&lines, &copying).unwrap_err(), "0 of its 1 replicas are online");
    }

    #[test]
    fn a_replica_is_ready_once_its_link_is_up() {
        let text = NODES.replace("myself,", "").replace("slave", "myself,slave");
        let lines = parse_nodes(&text).unwrap();
        let up = InfoFields::parse("master_link_status:up");
        assert_eq!(role(&lines, &up).unwrap(), "replica of 127.0.0.1:7000");
        let down = InfoFields::parse("master_link_status:down");
        assert_eq!(role(&lines, &down).unwrap_err(), "its link to the primary is down");
    }
}
