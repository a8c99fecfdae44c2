//! `static:FILE`: a document from a file. It never changes while the process runs, and there is no
//! failover.

use crate::clock::BootTime;
use crate::coordinator::{Coordinator, Watch};
use crate::error::CoordinatorError;
use crate::stop::StopFlag;
use crate::values::{
    Campaign, ChangeOutcome, Claim, ClusterSnapshot, DOCUMENT_BYTES_MAX, Lease, LeaseId, LeaseTtl,
    NodeRegistration, NodeStatus, RegisteredNode, Revision, STATUS_BYTES_MAX, Topology,
    TopologyChange, WatchEvent, check_size,
};
use brisk_structures::poison::EvenPoisoned as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// The revision of the document.
const REVISION: Revision = Revision(1);

/// A [`Coordinator`] with a document from a file. It knows only the nodes of its own process.
#[derive(Debug)]
pub struct FixedCoordinator {
    document: Vec<u8>,
    stop: StopFlag,
    entries: Mutex<OwnEntries>,
}

/// The registrations of this process.
#[derive(Debug, Default)]
struct OwnEntries {
    last: u64,
    nodes: Vec<OwnEntry>,
}

#[derive(Debug)]
struct OwnEntry {
    lease: LeaseId,
    registration: NodeRegistration,
    status: Option<Vec<u8>>,
}

impl FixedCoordinator {
    /// Reads the document.
    ///
    /// # Errors
    /// The file cannot be read or exceeds [`DOCUMENT_BYTES_MAX`].
    pub fn open(file: &Path) -> Result<FixedCoordinator, CoordinatorError> {
        let mut document = Vec::new();
        File::open(file)
            .and_then(|opened| {
                opened.take(DOCUMENT_BYTES_MAX as u64 + 1).read_to_end(&mut document)
            })
            .map_err(|error| CoordinatorError::file("read", file, error))?;
        check_size("document", document.len(), DOCUMENT_BYTES_MAX)?;
        let entries = Mutex::new(OwnEntries::default());
        Ok(FixedCoordinator { document, stop: StopFlag::default(), entries })
    }

    fn check_running(&self) -> Result<(), CoordinatorError> {
        if self.stop.is_stopped() { Err(CoordinatorError::Stopped) } else { Ok(()) }
    }
}

impl Coordinator for FixedCoordinator {
    fn now(&self) -> BootTime {
        BootTime::now()
    }

    fn read_within(&self, _: Duration) -> Result<Topology, CoordinatorError> {
        self.check_running()?;
        Ok(Topology { revision: REVISION, document: Some(self.document.clone()) })
    }

    fn snapshot_within(&self, _: Duration) -> Result<ClusterSnapshot, CoordinatorError> {
        let topology = self.read()?;
        let entries = self.entries.lock().even_poisoned();
        let registered = |entry: &OwnEntry| RegisteredNode {
            registration: entry.registration.clone(),
            revision: REVISION,
        };
        let mut nodes: Vec<RegisteredNode> = entries.nodes.iter().map(registered).collect();
        nodes.sort_by_key(|node| node.registration.node);
        Ok(ClusterSnapshot { revision: REVISION, topology, nodes, controller: None })
    }

    fn change_within(&self, _: &TopologyChange<'_>, _: Duration) -> ChangeOutcome {
        ChangeOutcome::Refused(CoordinatorError::ReadOnly)
    }

    fn register(
        &self,
        registration: &NodeRegistration,
        ttl: LeaseTtl,
        _: Claim,
    ) -> Result<Lease, CoordinatorError> {
        self.check_running()?;
        let mut entries = self.entries.lock().even_poisoned();
        entries.nodes.retain(|entry| entry.registration.node != registration.node);
        entries.last += 1;
        let id = LeaseId(entries.last);
        let registration = registration.clone();
        let (node, incarnation) = (registration.node, registration.incarnation.clone());
        entries.nodes.push(OwnEntry { lease: id, registration, status: None });
        Ok(Lease { id, node, incarnation, ttl, expires_at: None })
    }

    fn renew(&self, lease: &Lease) -> Result<Lease, CoordinatorError> {
        self.check_running()?;
        let entries = self.entries.lock().even_poisoned();
        let is_alive = entries.nodes.iter().any(|entry| entry.lease == lease.id);
        if is_alive { Ok(lease.clone()) } else { Err(CoordinatorError::LeaseLost) }
    }

    fn end(&self, lease: &Lease) -> Result<(), CoordinatorError> {
        self.entries.lock().even_poisoned().nodes.retain(|entry| entry.lease != lease.id);
        Ok(())
    }

    /// There is no controller, because nothing can be changed.
    fn campaign(&self, _: &Lease) -> Result<Campaign, CoordinatorError> {
        Err(CoordinatorError::ReadOnly)
    }

    fn resign(&self, _: &Lease) -> Result<(), CoordinatorError> {
        Ok(())
    }

    fn put_status(&self, lease: &Lease, status: &[u8]) -> Result<(), CoordinatorError> {
        self.check_running()?;
        check_size("status", status.len(), STATUS_BYTES_MAX)?;
        let mut entries = self.entries.lock().even_poisoned();
        let entry = entries.nodes.iter_mut().find(|entry| entry.lease == lease.id);
        entry.ok_or(CoordinatorError::LeaseLost)?.status = Some(status.to_vec());
        Ok(())
    }

    fn statuses(&self) -> Result<Vec<NodeStatus>, CoordinatorError> {
        self.check_running()?;
        let entries = self.entries.lock().even_poisoned();
        let status = |entry: &OwnEntry| {
            Some(NodeStatus { node: entry.registration.node, status: entry.status.clone()? })
        };
        let mut statuses: Vec<NodeStatus> = entries.nodes.iter().filter_map(status).collect();
        statuses.sort_by_key(|status| status.node);
        Ok(statuses)
    }

    fn watch(&self, after: Revision) -> Box<dyn Watch> {
        Box::new(FixedWatch {
            position: after,
            topology: self.document.clone(),
            stop: self.stop.clone(),
        })
    }

    fn stop(&self) {
        self.stop.stop();
    }
}

/// The watch of a document that never changes: it reports the document once.
#[derive(Debug)]
struct FixedWatch {
    position: Revision,
    topology: Vec<u8>,
    stop: StopFlag,
}

impl Watch for FixedWatch {
    fn next(&mut self, limit: Duration) -> Result<Vec<WatchEvent>, CoordinatorError> {
        if self.stop.is_stopped() {
            return Err(CoordinatorError::Stopped);
        }
        if self.position < REVISION {
            self.position = REVISION;
            let document = Some(self.topology.clone());
            return Ok(vec![WatchEvent::Topology(Topology { revision: REVISION, document })]);
        }
        if self.stop.pause(limit) { Err(CoordinatorError::Stopped) } else { Ok(Vec::new()) }
    }

    fn position(&self) -> Revision {
        self.position
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_testkit::TempDir;

    #[test]
    fn the_document_is_read_and_cannot_be_changed() {
        let dir = TempDir::new();
        std::fs::write(dir.path("t.json"), "{}").unwrap();
        let coordinator = FixedCoordinator::open(&dir.path("t.json")).unwrap();
        let topology = coordinator.read().unwrap();
        assert_eq!(topology.document.as_deref(), Some(&b"{}"[..]));
        let change =
            TopologyChange { expected: topology.revision, document: b"x", controller: None };
        let outcome = coordinator.change(&change);
        assert!(
            matches!(outcome, ChangeOutcome::Refused(CoordinatorError::ReadOnly)),
            "{outcome:?}"
        );
        let mut watch = coordinator.watch(Revision::NONE);
        assert_eq!(watch.next(Duration::ZERO).unwrap(), [WatchEvent::Topology(topology)]);
        assert_eq!(watch.next(Duration::ZERO).unwrap(), []);
        coordinator.stop();
        assert!(matches!(watch.next(Duration::from_secs(600)), Err(CoordinatorError::Stopped)));
    }

    #[test]
    fn a_file_that_is_missing_or_too_large_is_an_error_that_names_it() {
        let dir = TempDir::new();
        let error = FixedCoordinator::open(&dir.path("none.json")).unwrap_err().to_string();
        assert!(error.contains("none.json"), "{error}");
        std::fs::write(dir.path("big"), vec![b'x'; DOCUMENT_BYTES_MAX + 1]).unwrap();
        let error = FixedCoordinator::open(&dir.path("big")).unwrap_err();
        assert!(matches!(error, CoordinatorError::TooLarge { .. }), "{error}");
    }
}
