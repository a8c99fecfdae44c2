//! All nodes of a cluster from the viewpoint of one of them: the summary, and the check whether they agree.

use super::node::{Line, Node};
use super::{Done, SLOTS, Task, messages};
use crate::session::{AlreadyReported, Session};
use std::collections::BTreeSet;

/// The maximum number of nodes of a cluster that are examined.
const NODES_MAX: usize = 4096;

/// The reachable nodes, starting with the one on the command line.
#[derive(Debug)]
pub(super) struct View {
    pub(super) nodes: Vec<Node>,
    /// Number of masters that do not reply.
    pub(super) unreachable_masters: usize,
}

/// The findings of the check.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) disagree: bool,
    pub(super) open: BTreeSet<u16>,
    pub(super) uncovered: BTreeSet<u16>,
    pub(super) multiple: Vec<(u16, Vec<usize>)>,
}

impl Findings {
    pub(super) fn is_well(&self) -> bool {
        !self.disagree
            && self.open.is_empty()
            && self.uncovered.is_empty()
            && self.multiple.is_empty()
    }
}

impl View {
    /// Reads the list of other nodes from one node, and connects to them.
    pub(super) fn load(host: &str, port: i64, session: &Session) -> Result<View, AlreadyReported> {
        let mut first = Node::connect(host, port, session)?;
        let others = first.load()?;
        let mut view = View { nodes: vec![first], unreachable_masters: 0 };
        for line in others.into_iter().take(NODES_MAX) {
            if line.has_flag("noaddr") || line.has_flag("handshake") {
                continue;
            }
            let is_master = line.has_flag("master");
            let reached = if line.is_linked { view.reach(&line, session) } else { None };
            match reached {
                Some(node) => view.nodes.push(node),
                None => {
                    view.unreachable_masters += usize::from(is_master && !line.slots.is_empty())
                }
            }
        }
        view.count_replicas();
        Ok(view)
    }

    fn reach(&self, line: &Line, session: &Session) -> Option<Node> {
        let mut node = Node::connect(&line.host, line.port, session).ok()?;
        node.load().ok()?;
        Some(node)
    }

    fn count_replicas(&mut self) {
        let masters: Vec<String> =
            self.nodes.iter().filter_map(|node| node.is.replicates.clone()).collect();
        for node in &mut self.nodes {
            node.replicas = masters.iter().filter(|id| **id == node.is.id).count();
        }
        for node in &self.nodes {
            let unknown = node.is.replicates.as_ref().filter(|id| self.find(id).is_none());
            if let Some(id) = unknown {
                let place = node.place();
                messages::warning(&format!(
                    "*** WARNING: {place} claims to be slave of unknown node ID {id}.\n"
                ));
            }
        }
    }

    /// The index of a node.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let id = id.to_ascii_lowercase();
        self.nodes.iter().position(|node| node.is.id == id)
    }

    /// The indexes of all masters.
    pub(super) fn masters(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&at| self.nodes[at].is_master()).collect()
    }

    /// The master with the fewest replicas.
    pub(super) fn least_replicated(&self, but: Option<&str>) -> Option<usize> {
        let masters = self.masters().into_iter();
        let fitting = masters.filter(|&at| but.is_none_or(|id| self.nodes[at].is.id != id));
        fitting.min_by_key(|&at| self.nodes[at].replicas)
    }

    /// Prints the numbers of keys, slots and replicas of each master.
    fn summary(&mut self) -> Done {
        let (mut keys, mut masters) = (0, 0);
        for node in &mut self.nodes {
            if !node.is_master() {
                continue;
            }
            masters += 1;
            let count = node.keys()?;
            keys += count;
            let id: String = node.is.id.chars().take(8).collect();
            messages::say(&format!(
                "{} ({id}...) -> {count} keys | {} slots | {} slaves.\n",
                node.place(),
                node.is.slots.len(),
                node.replicas
            ));
        }
        messages::good(&format!("[OK] {keys} keys in {masters} masters.\n"));
        let each = keys as f64 / f64::from(SLOTS);
        messages::say(&format!("{each:.2} keys per slot on average.\n"));
        Ok(())
    }

    /// Checks whether all nodes agree, all slots are served, and no slot is being moved.
    pub(super) fn check(&mut self, task: &Task<'_>, is_quiet: bool) -> Findings {
        let place = self.nodes[0].place();
        messages::step(&format!(">>> Performing Cluster Check (using node {place})\n"));
        if !is_quiet {
            for node in &self.nodes {
                messages::say(&node.describe(""));
            }
        }
        let mut findings = Findings { disagree: !self.agree(), ..Findings::default() };
        if findings.disagree {
            messages::error("[ERR] Nodes don't agree about configuration!\n");
        } else {
            messages::good("[OK] All nodes agree about slots configuration.\n");
        }
        messages::step(">>> Check for open slots...\n");
        findings.open = self.open_slots();
        messages::step(">>> Check slots coverage...\n");
        let covered: BTreeSet<u16> =
            self.nodes.iter().flat_map(|node| node.is.slots.iter().copied()).collect();
        findings.uncovered = (0..SLOTS).filter(|slot| !covered.contains(slot)).collect();
        if findings.uncovered.is_empty() {
            messages::good(&format!("[OK] All {SLOTS} slots covered.\n"));
        } else {
            messages::error(&format!("[ERR] Not all {SLOTS} slots are covered by nodes.\n\n"));
        }
        if task.options.search_multiple_owners {
            messages::step(">>> Check for multiple slot owners...\n");
            findings.multiple = self.owned_twice();
            if findings.multiple.is_empty() {
                messages::good("[OK] No multiple owners found.\n");
            }
            for (slot, owners) in &findings.multiple {
                let count = owners.len();
                messages::warning(&format!("[WARNING] Slot {slot} has {count} owners:\n"));
                for &owner in owners {
                    messages::say(&format!("    {}\n", self.nodes[owner].place()));
                }
            }
        }
        findings
    }

    /// Reports whether all nodes agree on all slots.
    pub(super) fn agree(&mut self) -> bool {
        let mut signatures = self.nodes.iter_mut().map(Node::signature);
        let first = signatures.next().flatten();
        first.is_some() && signatures.all(|other| other == first)
    }

    fn open_slots(&self) -> BTreeSet<u16> {
        let mut open = BTreeSet::new();
        for node in &self.nodes {
            for (slots, state) in
                [(&node.is.migrating, "migrating"), (&node.is.importing, "importing")]
            {
                if slots.is_empty() {
                    continue;
                }
                let list: Vec<String> = slots.iter().map(|(slot, _)| slot.to_string()).collect();
                let (place, list) = (node.place(), list.join(","));
                messages::warning(&format!(
                    "[WARNING] Node {place} has slots in {state} state {list}.\n"
                ));
                open.extend(slots.iter().map(|(slot, _)| *slot));
            }
        }
        if !open.is_empty() {
            let list: Vec<String> = open.iter().map(u16::to_string).collect();
            let list = list.join(",");
            messages::warning(&format!("[WARNING] The following slots are open: {list}.\n"));
        }
        open
    }

    /// Slots that several masters claim.
    fn owned_twice(&self) -> Vec<(u16, Vec<usize>)> {
        let masters = self.masters();
        let owners = |slot: u16| -> Vec<usize> {
            masters.iter().copied().filter(|&at| self.nodes[at].is.slots.contains(&slot)).collect()
        };
        (0..SLOTS).map(|slot| (slot, owners(slot))).filter(|(_, all)| all.len() > 1).collect()
    }
}

/// `info`
pub(super) fn info_command(task: &Task<'_>) -> Done {
    let (host, port) = task.entry()?;
    View::load(&host, port, task.session)?.summary()
}

/// `check`
pub(super) fn check_command(task: &Task<'_>) -> Done {
    let (host, port) = task.entry()?;
    let (_, findings) = checked(&host, port, task)?;
    if findings.is_well() { Ok(()) } else { Err(AlreadyReported) }
}

/// Prints the summary and runs the check.
pub(super) fn checked(
    host: &str,
    port: i64,
    task: &Task<'_>,
) -> Result<(View, Findings), AlreadyReported> {
    let mut view = View::load(host, port, task.session)?;
    view.summary()?;
    let findings = view.check(task, false);
    Ok((view, findings))
}
