//! A cluster as the target of a run: its primaries, and for each primary the slot to which its keys belong.
//!
//! As in redis-benchmark, all keys for a node have the same hash tag, so that commands with several keys, and a list
//! that several tests share, stay on that node. When the node redirects a request, the topology is read again, and the
//! node gets the tag of another slot that it serves.

use crate::engine::plan::Target;
use crate::error::RunError;
use crate::load::tag::{SLOTS, Tag, tags_by_slot};
use crate::requester::{Requester, text_of};
use brisk_dial::address::Address;
use brisk_resp::Value;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The maximum number of primaries of a cluster; Redis recommends at most 1,000 nodes.
pub const NODES_MAX: usize = 1000;
/// Maximum number of slot ranges in an error text.
const RANGES_SHOWN: usize = 5;
/// Maximum number of times that a run reads the topology again: once per slot.
const FOLLOWS_MAX: usize = SLOTS;
/// How long a cluster may report that it is down before the run fails.
const DOWN_TIMEOUT: Duration = Duration::from_secs(30);
const DOWN_PAUSE: Duration = Duration::from_millis(100);
/// If the last report that the cluster is down is older than this, the cluster is considered to have been up in
/// between.
const DOWN_GAP: Duration = Duration::from_secs(1);

/// The primaries that a run addresses.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<ClusterNode>,
    /// Slots that no node serves, even though the cluster accepts commands.
    uncovered: Vec<u16>,
    state: Mutex<Following>,
}

/// A primary.
#[derive(Debug)]
pub struct ClusterNode {
    /// Its node ID.
    pub id: String,
    /// Its address.
    pub target: Target,
    tag: AtomicU32,
}

/// The known topology, and counters of followed redirections.
#[derive(Debug)]
struct Following {
    /// The slots of each node, in order.
    slots: Vec<Vec<u16>>,
    /// For each node, the slot whose tag its keys have.
    current: Vec<u16>,
    tags: Vec<Tag>,
    follows: usize,
    /// The times of the first and the last reply that the cluster is down.
    down: Option<(Instant, Instant)>,
}

/// A primary as CLUSTER SLOTS describes it.
#[derive(Debug, PartialEq, Eq)]
struct Primary {
    id: String,
    host: String,
    port: u16,
    slots: Vec<u16>,
}

impl ClusterNode {
    /// The hash tag of keys for this node.
    #[inline]
    #[must_use]
    pub fn tag(&self) -> Tag {
        Tag::from_bits(self.tag.load(Relaxed))
    }
}

impl Cluster {
    /// Reads the topology from one node of the cluster, and connects to every primary once.
    ///
    /// # Errors
    /// If the server is not a cluster node, the cluster is down, or a primary cannot be reached.
    pub fn discover(entry: &Target) -> Result<Cluster, RunError> {
        let mut requester = Requester::connect(entry)?;
        let primaries = primaries(&mut requester, entry)?;
        let covered: Vec<u16> = primaries.iter().flat_map(|it| it.slots.iter().copied()).collect();
        let uncovered = uncovered(&covered);
        let info = requester.request(&["CLUSTER", "INFO"])?;
        if let Value::Error(text) = &info {
            return Err(RunError::Reply(String::from_utf8_lossy(text).into_owned()));
        }
        let info = text_of(&info).unwrap_or_default();
        if !info.lines().any(|line| line.trim_end() == "cluster_state:ok") {
            return Err(RunError::Plan(match uncovered.as_slice() {
                [] => format!("Error: the cluster of {} is down (cluster_state)", entry.address),
                slots => {
                    format!(
                        "Error: the cluster of {} is down: {}",
                        entry.address,
                        slot_ranges(slots)
                    )
                }
            }));
        }
        if primaries.is_empty() || primaries.len() > NODES_MAX {
            return Err(RunError::Plan(format!(
                "Error: the cluster of {} has {} primaries with slots; 1 to {NODES_MAX} are supported",
                entry.address,
                primaries.len()
            )));
        }
        let tags = tags_by_slot();
        let mut nodes = Vec::new();
        let (mut slots, mut current) = (Vec::new(), Vec::new());
        for primary in primaries {
            let address = Address::tcp(&primary.host, primary.port).map_err(RunError::Plan)?;
            let target = Target { address, ..entry.clone() };
            // Connect once, so that a node that is down is reported before anything is measured.
            Requester::connect(&target)?;
            let first = primary.slots[0];
            let tag = AtomicU32::new(tags[usize::from(first)].to_bits());
            nodes.push(ClusterNode { id: primary.id, target, tag });
            slots.push(primary.slots);
            current.push(first);
        }
        let following = Following { slots, current, tags, follows: 0, down: None };
        Ok(Cluster { nodes, uncovered, state: Mutex::new(following) })
    }

    /// The primaries, in the order of their slots.
    #[must_use]
    pub fn nodes(&self) -> &[ClusterNode] {
        &self.nodes
    }

    /// The node that a client uses. Each node has a contiguous share of the clients.
    #[must_use]
    pub fn node_of(&self, client: usize, clients: usize) -> usize {
        (client * self.nodes.len() / clients.max(1)).min(self.nodes.len() - 1)
    }

    /// A warning about the cluster for the user, before the run.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        (!self.uncovered.is_empty()).then(|| slot_ranges(&self.uncovered))
    }

    /// Called after a node has redirected requests with this tag. Reads the topology from the node and gives it the tag
    /// of the next slot that it serves, unless another thread has already done so. Blocks until this is done.
    ///
    /// # Errors
    /// If the topology cannot be read, the node no longer serves any slot, or the cluster stays down.
    pub(crate) fn follow(&self, node: usize, seen: Tag, error: &str) -> Result<(), RunError> {
        let target = &self.nodes[node].target;
        let mut state = self.state();
        if self.nodes[node].tag() != seen {
            return Ok(());
        }
        if error.starts_with("CLUSTERDOWN") {
            let down = state.down.filter(|(_, last)| last.elapsed() < DOWN_GAP);
            let since = down.map_or_else(Instant::now, |(since, _)| since);
            state.down = Some((since, Instant::now()));
            if since.elapsed() > DOWN_TIMEOUT {
                return Err(RunError::Reply(error.to_owned()));
            }
            std::thread::park_timeout(DOWN_PAUSE);
            return Ok(());
        }
        state.follows += 1;
        if state.follows > FOLLOWS_MAX {
            return Err(RunError::Reply(format!("{error} (redirected {FOLLOWS_MAX} times)")));
        }
        let primaries = primaries(&mut Requester::connect(target)?, target)?;
        for (at, node) in self.nodes.iter().enumerate() {
            let found = primaries.iter().find(|primary| primary.id == node.id);
            state.slots[at] = found.map(|primary| primary.slots.clone()).unwrap_or_default();
        }
        let next = {
            let (slots, current) = (&state.slots[node], state.current[node]);
            slots.iter().find(|slot| **slot > current).or(slots.first()).copied()
        };
        let Some(next) = next else {
            return Err(RunError::Plan(format!(
                "Error: {} no longer serves any slot ({error})",
                target.address
            )));
        };
        state.current[node] = next;
        self.nodes[node].tag.store(state.tags[usize::from(next)].to_bits(), Relaxed);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, Following> {
        self.state.lock().expect("nothing that panics is done with it")
    }
}

/// Reports whether an error reply says that another node serves the slot, or that no node does at the moment.
pub(crate) fn is_redirection(error: &str) -> bool {
    ["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"]
        .contains(&error.split(' ').next().unwrap_or_default())
}

/// Queries a node for the primaries that serve slots.
fn primaries(requester: &mut Requester, target: &Target) -> Result<Vec<Primary>, RunError> {
    let reply = requester.request(&["CLUSTER", "SLOTS"])?;
    match &reply {
        Value::Error(text) => Err(RunError::Plan(format!(
            "Error: {} does not describe a cluster: {}",
            target.address,
            String::from_utf8_lossy(text)
        ))),
        reply => read_slots(reply, target.address.host()).ok_or_else(|| {
            RunError::Plan(format!("Error: {} sent no valid CLUSTER SLOTS reply", target.address))
        }),
    }
}

/// Parses a reply to CLUSTER SLOTS. `target` is the host of nodes that are listed without one.
fn read_slots(reply: &Value, target: &str) -> Option<Vec<Primary>> {
    let mut primaries: Vec<Primary> = Vec::new();
    for range in array(reply)? {
        let [first, last, primary, ..] = array(range)? else { return None };
        let (first, last) = (slot(first)?, slot(last)?);
        let [host, port, id, ..] = array(primary)? else { return None };
        let host = text_of(host).filter(|host| !host.is_empty() && host != "?");
        let Value::Integer(port) = port else { return None };
        let (port, id) = (u16::try_from(*port).ok()?, text_of(id)?);
        let slots = first..=last;
        match primaries.iter_mut().find(|known| known.id == id) {
            Some(known) => known.slots.extend(slots),
            None => primaries.push(Primary {
                id,
                host: host.unwrap_or_else(|| target.to_owned()),
                port,
                slots: slots.collect(),
            }),
        }
    }
    for primary in &mut primaries {
        primary.slots.sort_unstable();
        primary.slots.dedup();
    }
    primaries.retain(|primary| !primary.slots.is_empty());
    primaries.sort_by_key(|primary| primary.slots[0]);
    Some(primaries)
}

fn array(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

fn slot(value: &Value) -> Option<u16> {
    match value {
        Value::Integer(slot) => u16::try_from(*slot).ok().filter(|slot| usize::from(*slot) < SLOTS),
        _ => None,
    }
}

/// The slots that are not in `covered`.
fn uncovered(covered: &[u16]) -> Vec<u16> {
    let mut is_covered = vec![false; SLOTS];
    covered.iter().for_each(|slot| is_covered[usize::from(*slot)] = true);
    let slots = (0u16..).zip(&is_covered);
    slots.filter(|(_, covered)| !**covered).map(|(slot, _)| slot).collect()
}

/// A text that lists slots without a node.
fn slot_ranges(slots: &[u16]) -> String {
    let ranges: Vec<String> = slots
        .chunk_by(|before, after| before + 1 == *after)
        .filter_map(|range| match range {
            [] => None,
            [only] => Some(only.to_string()),
            [first, .., last] => Some(format!("{first}-{last}")),
        })
        .collect();
    let more = if ranges.len() > RANGES_SHOWN { ", ..." } else { "" };
    let shown = ranges[..ranges.len().min(RANGES_SHOWN)].join(", ");
    format!("no node serves {} of {SLOTS} slots ({shown}{more})", slots.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_resp::{ReplyDecoder, ReplyLimits, ReplyStep};

    fn decoded(text: &str) -> Value {
        let bytes = text.replace(' ', "\r\n");
        match ReplyDecoder::new(ReplyLimits::default()).decode(bytes.as_bytes()).unwrap() {
            ReplyStep::Value { value, .. } => value,
            ReplyStep::Incomplete { .. } => panic!("{text}"),
        }
    }

    #[test]
    fn ranges_of_a_primary_are_put_together_and_replicas_are_not_addressed() {
        let reply = decoded(
            "*3 \
             *4 :10 :11 *4 $9 127.0.0.1 :7001 $1 b *0 *4 $9 127.0.0.1 :7009 $1 r *0 \
             *3 :0 :1 *4 $0  :7000 $1 a *0 \
             *3 :5 :5 *4 $9 127.0.0.1 :7001 $1 b *0 ",
        );
        let primary = |id: &str, host: &str, port, slots: &[u16]| Primary {
            id: id.to_owned(),
            host: host.to_owned(),
            port,
            slots: slots.to_vec(),
        };
        let wanted = vec![
            primary("a", "entry", 7000, &[0, 1]),
            primary("b", "127.0.0.1", 7001, &[5, 10, 11]),
        ];
        assert_eq!(read_slots(&reply, "entry"), Some(wanted));
    }

    #[test]
    fn a_reply_that_is_not_a_topology_is_rejected() {
        for text in [
            "+OK ",
            "*1 *2 :0 :1 ",
            "*1 *3 :0 :16384 *3 $1 h :1 $1 a ",
            "*1 *3 :-1 :5 *3 $1 h :1 $1 a ",
            "*1 *3 :0 :5 *3 $1 h :65536 $1 a ",
            "*1 *3 :0 :5 *2 $1 h :1 ",
        ] {
            assert_eq!(read_slots(&decoded(text), "entry"), None, "{text}");
        }
        // A range whose end is before its start has no slots.
        assert_eq!(read_slots(&decoded("*1 *3 :5 :4 *3 $1 h :1 $1 a "), "entry"), Some(vec![]));
    }

    #[test]
    fn slots_without_a_node_are_named() {
        let all: Vec<u16> = (0..16_384).collect();
        assert!(uncovered(&all).is_empty());
        let but = |missing: &[u16]| {
            let covered: Vec<u16> =
                all.iter().copied().filter(|slot| !missing.contains(slot)).collect();
            slot_ranges(&uncovered(&covered))
        };
        assert_eq!(but(&[3]), "no node serves 1 of 16384 slots (3)");
        assert_eq!(but(&[0, 1, 9]), "no node serves 3 of 16384 slots (0-1, 9)");
        assert_eq!(
            but(&[0, 2, 4, 6, 8, 10]),
            "no node serves 6 of 16384 slots (0, 2, 4, 6, 8, ...)"
        );
    }

    #[test]
    fn redirections_are_recognized_by_their_first_word() {
        assert!(is_redirection("MOVED 1 127.0.0.1:7000") && is_redirection("CLUSTERDOWN Hash"));
        assert!(!is_redirection("ERR MOVED") && !is_redirection("MOVEDX 1"));
    }
}
