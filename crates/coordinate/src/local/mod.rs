//! `local:DIR`: a coordinator for the processes of one machine. It consists of files and locks;
//! there is no server.
//!
//! | file | about |
//! |---|---|
//! | `directory` | the lock, the entries, and the order of each change |
//! | `files` | files that are replaced as a whole; the topology file |
//! | `journal` | the last revision and the latest changes |
//! | `watch` | polls for changes |
//! | `filesystem` | rejects network file systems |
//!
//! A node counts as alive as long as its process exists, so leases do not expire: a stopped process
//! keeps its lock. A process may die at any point of a change; no acknowledged document is lost or
//! torn.

mod directory;
mod files;
mod filesystem;
mod journal;
mod watch;

use self::directory::{LOCK_WAIT_MAX, LocalDirectory, names};
use self::files::{Durability, ReplaceError};
use self::watch::LocalWatch;
use crate::clock::BootTime;
use crate::coordinator::{Coordinator, Watch};
use crate::error::CoordinatorError;
use crate::stop::StopFlag;
use crate::values::{
    Campaign, ChangeOutcome, Claim, ClusterName, ClusterSnapshot, DETAILS_BYTES_MAX,
    DOCUMENT_BYTES_MAX, Lease, LeaseId, LeaseTtl, NodeId, NodeRegistration, NodeStatus, Revision,
    STATUS_BYTES_MAX, Topology, TopologyChange, check_size,
};
use brisk_structures::poison::EvenPoisoned as _;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// Maximum bytes of a status file: an incarnation and a status.
const STATUS_FILE_BYTES_MAX: usize = STATUS_BYTES_MAX + 128;

/// A [`Coordinator`] that stores its data in a directory. Dropping it releases its locks, as if the
/// process had exited: all other processes see its nodes as gone.
#[derive(Debug)]
pub struct LocalCoordinator {
    directory: LocalDirectory,
    stop: StopFlag,
    leases: Mutex<HeldLeases>,
}

/// The locks of this coordinator's leases.
#[derive(Debug, Default)]
struct HeldLeases {
    last: u64,
    entries: HashMap<LeaseId, HeldEntries>,
}

#[derive(Debug)]
struct HeldEntries {
    node: NodeId,
    node_entry: File,
    controller_entry: Option<File>,
}

impl LocalCoordinator {
    /// Opens or creates the directory of a cluster.
    ///
    /// # Errors
    /// [`CoordinatorError::NetworkFileSystem`], or the directory cannot be created.
    pub fn open(
        directory: &Path,
        cluster: &ClusterName,
    ) -> Result<LocalCoordinator, CoordinatorError> {
        let directory = LocalDirectory::create(directory.join(cluster.as_str()))?;
        filesystem::check(&directory.root)?;
        Ok(LocalCoordinator {
            directory,
            stop: StopFlag::default(),
            leases: Mutex::new(HeldLeases::default()),
        })
    }

    fn check_running(&self) -> Result<(), CoordinatorError> {
        if self.stop.is_stopped() { Err(CoordinatorError::Stopped) } else { Ok(()) }
    }

    fn lock(&self) -> Result<directory::LockedDirectory<'_>, CoordinatorError> {
        self.lock_within(LOCK_WAIT_MAX)
    }

    fn lock_within(
        &self,
        limit: Duration,
    ) -> Result<directory::LockedDirectory<'_>, CoordinatorError> {
        self.check_running()?;
        self.directory.lock(limit.min(LOCK_WAIT_MAX), &self.stop)
    }

    /// Replaces the document; the error's variant says whether the change may have happened.
    fn try_change(
        &self,
        change: &TopologyChange<'_>,
        limit: Duration,
    ) -> Result<Option<Revision>, ReplaceError> {
        let size = change.document.len();
        check_size("document", size, DOCUMENT_BYTES_MAX).map_err(ReplaceError::Before)?;
        let mut locked = self.lock_within(limit).map_err(ReplaceError::Before)?;
        let present = locked.topology.as_ref().map_or(Revision::NONE, |(revision, _)| *revision);
        if present != change.expected {
            return Ok(None);
        }
        if let Some(expected) = change.controller {
            let present = self.directory.read_controller().map_err(ReplaceError::Before)?;
            if present != Some(expected) {
                return Ok(None);
            }
        }
        locked.replace_topology(change.document).map(Some)
    }

    /// Checks whether a lease belongs to this coordinator and its node has not been replaced.
    fn is_held(&self, leases: &HeldLeases, lease: &Lease) -> bool {
        let entry = leases.entries.get(&lease.id);
        entry.is_some_and(|entry| names(&self.directory.node(entry.node), &entry.node_entry))
    }
}

impl Coordinator for LocalCoordinator {
    fn now(&self) -> BootTime {
        BootTime::now()
    }

    fn read_within(&self, _: Duration) -> Result<Topology, CoordinatorError> {
        self.check_running()?;
        let topology = files::read_topology(&self.directory.topology())?;
        Ok(topology_of(topology))
    }

    fn snapshot_within(&self, limit: Duration) -> Result<ClusterSnapshot, CoordinatorError> {
        let locked = self.lock_within(limit)?;
        let mut nodes = Vec::new();
        for node in self.directory.node_ids()? {
            nodes.extend(self.directory.read_node(node)?);
        }
        Ok(ClusterSnapshot {
            revision: locked.journal.last,
            topology: topology_of(locked.topology.clone()),
            nodes,
            controller: self.directory.read_controller()?,
        })
    }

    fn change_within(&self, change: &TopologyChange<'_>, limit: Duration) -> ChangeOutcome {
        match self.try_change(change, limit) {
            Ok(Some(revision)) => ChangeOutcome::Changed(revision),
            Ok(None) => ChangeOutcome::Conflict,
            Err(ReplaceError::Before(error)) => ChangeOutcome::Refused(error),
            Err(ReplaceError::After(error)) => ChangeOutcome::Unknown(error),
        }
    }

    fn register(
        &self,
        registration: &NodeRegistration,
        ttl: LeaseTtl,
        claim: Claim,
    ) -> Result<Lease, CoordinatorError> {
        check_size("registration", registration.details.len(), DETAILS_BYTES_MAX)?;
        let node = registration.node;
        let mut locked = self.lock()?;
        if claim == Claim::Resume
            && let Some(present) = self.directory.read_node(node)?
            && present.registration.incarnation != registration.incarnation
        {
            return Err(CoordinatorError::taken_by(present.registration));
        }
        let (_, node_entry) = locked.add_node(registration)?;
        let mut leases = self.leases.lock().even_poisoned();
        // An earlier lease of the node ends with its entries: closing a file frees its lock.
        leases.entries.retain(|_, held| held.node != node);
        leases.last += 1;
        let id = LeaseId(leases.last);
        let held = HeldEntries { node, node_entry, controller_entry: None };
        leases.entries.insert(id, held);
        let incarnation = registration.incarnation.clone();
        Ok(Lease { id, node, incarnation, ttl, expires_at: None })
    }

    fn renew(&self, lease: &Lease) -> Result<Lease, CoordinatorError> {
        self.check_running()?;
        let mut leases = self.leases.lock().even_poisoned();
        if self.is_held(&leases, lease) {
            return Ok(lease.clone());
        }
        leases.entries.remove(&lease.id);
        Err(CoordinatorError::LeaseLost)
    }

    fn end(&self, lease: &Lease) -> Result<(), CoordinatorError> {
        let mut locked = self.lock()?;
        let mut leases = self.leases.lock().even_poisoned();
        let Some(held) = leases.entries.remove(&lease.id) else { return Ok(()) };
        let office = held.controller_entry.as_ref();
        if office.is_some_and(|entry| names(&self.directory.controller(), entry)) {
            locked.remove_controller()?;
        }
        if names(&self.directory.node(held.node), &held.node_entry) {
            locked.remove_node(held.node)?;
        }
        Ok(())
    }

    fn campaign(&self, lease: &Lease) -> Result<Campaign, CoordinatorError> {
        let mut locked = self.lock()?;
        let mut leases = self.leases.lock().even_poisoned();
        if !self.is_held(&leases, lease) {
            return Err(CoordinatorError::LeaseLost);
        }
        let Some(held) = leases.entries.get_mut(&lease.id) else {
            return Err(CoordinatorError::LeaseLost);
        };
        if let Some(controller) = self.directory.read_controller()? {
            let office = held.controller_entry.as_ref();
            let is_own = office.is_some_and(|entry| names(&self.directory.controller(), entry));
            return Ok(if is_own {
                Campaign::Elected(controller)
            } else {
                Campaign::Held(controller)
            });
        }
        let (controller, entry) = locked.add_controller(lease.node)?;
        held.controller_entry = Some(entry);
        Ok(Campaign::Elected(controller))
    }

    fn resign(&self, lease: &Lease) -> Result<(), CoordinatorError> {
        let mut locked = self.lock()?;
        let mut leases = self.leases.lock().even_poisoned();
        let office =
            leases.entries.get_mut(&lease.id).and_then(|held| held.controller_entry.take());
        if office.is_some_and(|entry| names(&self.directory.controller(), &entry)) {
            locked.remove_controller()?;
        }
        Ok(())
    }

    fn put_status(&self, lease: &Lease, status: &[u8]) -> Result<(), CoordinatorError> {
        self.check_running()?;
        check_size("status", status.len(), STATUS_BYTES_MAX)?;
        let leases = self.leases.lock().even_poisoned();
        if !self.is_held(&leases, lease) {
            return Err(CoordinatorError::LeaseLost);
        }
        let content = [lease.incarnation.as_str().as_bytes(), b"\n", status].concat();
        let path = self.directory.status(lease.node);
        Ok(files::replace(&path, &content, Durability::Unsynced)?)
    }

    fn statuses(&self) -> Result<Vec<NodeStatus>, CoordinatorError> {
        let mut statuses = Vec::new();
        for node in self.nodes()? {
            let (node, incarnation) = (node.registration.node, node.registration.incarnation);
            let content = files::read(&self.directory.status(node), STATUS_FILE_BYTES_MAX)?;
            let prefix = format!("{incarnation}\n");
            // The status of an earlier incarnation does not count.
            let status = content.as_deref().and_then(|bytes| bytes.strip_prefix(prefix.as_bytes()));
            statuses.extend(status.map(|status| NodeStatus { node, status: status.to_vec() }));
        }
        Ok(statuses)
    }

    fn watch(&self, after: Revision) -> Box<dyn Watch> {
        Box::new(LocalWatch {
            directory: self.directory.clone(),
            stop: self.stop.clone(),
            position: after,
            compacted: None,
        })
    }

    fn stop(&self) {
        self.stop.stop();
    }
}

fn topology_of(found: Option<(Revision, Vec<u8>)>) -> Topology {
    match found {
        Some((revision, document)) => Topology { revision, document: Some(document) },
        None => Topology { revision: Revision::NONE, document: None },
    }
}
