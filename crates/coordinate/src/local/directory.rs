//! The directory of a cluster: its lock, its entries, and the changes that are made under the lock.
//!
//! ```text
//! DIR/<name>/lock           flock of the process that changes something
//! DIR/<name>/topology       the document, see `files`
//! DIR/<name>/history/<rev>  earlier documents that the journal still names
//! DIR/<name>/journal        the last revision and the latest changes, see `journal`
//! DIR/<name>/nodes/<id>     locked by the node's process; revision and registration
//! DIR/<name>/controller     locked by the controller's process; revision and node id
//! DIR/<name>/status/<id>    incarnation and status
//! ```
//!
//! A live process holds an exclusive `flock` on its entry; the kernel frees the lock when the process dies. Other
//! processes probe with a shared lock, so that two probes never mistake each other for the owner. An entry gets its
//! name only after it is locked. Each change writes the entry first and then the journal, so that a process may die at
//! any point. [`LockedDirectory::begin`] repairs a journal that lags behind.

use super::files::{self, Durability, ReplaceError};
use super::journal::{JournalChange, LocalJournal};
use crate::error::CoordinatorError;
use crate::stop::StopFlag;
use crate::values::{
    Controller, DETAILS_BYTES_MAX, NODES_MAX, NodeId, NodeRegistration, RegisteredNode, Revision,
    decode_registration, encode_registration,
};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a call waits for the lock. A process holds it for a few disk writes, and waiting processes get it in no
/// particular order. CLUSTER commands wait this long too.
pub(super) const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause between two attempts to take the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(1);
/// Maximum bytes of a node's entry: a revision, an incarnation and details.
const ENTRY_BYTES_MAX: usize = DETAILS_BYTES_MAX + 128;

/// The paths of a cluster.
#[derive(Debug, Clone)]
pub(super) struct LocalDirectory {
    pub(super) root: PathBuf,
}

impl LocalDirectory {
    /// Creates the directories that do not exist.
    pub(super) fn create(root: PathBuf) -> Result<LocalDirectory, CoordinatorError> {
        for part in ["nodes", "status", "history"] {
            let path = root.join(part);
            fs::create_dir_all(&path)
                .map_err(|error| CoordinatorError::file("create", &path, error))?;
        }
        Ok(LocalDirectory { root })
    }

    pub(super) fn topology(&self) -> PathBuf {
        self.root.join("topology")
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    pub(super) fn controller(&self) -> PathBuf {
        self.root.join("controller")
    }

    pub(super) fn node(&self, node: NodeId) -> PathBuf {
        self.root.join("nodes").join(node.as_str())
    }

    pub(super) fn status(&self, node: NodeId) -> PathBuf {
        self.root.join("status").join(node.as_str())
    }

    pub(super) fn history(&self, revision: Revision) -> PathBuf {
        self.root.join("history").join(revision.to_string())
    }

    /// The ids of all node entries, including those of dead nodes, sorted.
    pub(super) fn node_ids(&self) -> Result<Vec<NodeId>, CoordinatorError> {
        let path = self.root.join("nodes");
        let failed = |error| CoordinatorError::file("list", &path, error);
        let mut ids = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed)? {
            // Temporary files begin with a dot.
            let name = entry.map_err(failed)?.file_name();
            if let Some(id) = name.to_str().and_then(|name| NodeId::parse(name).ok()) {
                ids.push(id);
            }
            if ids.len() > NODES_MAX {
                return Err(CoordinatorError::TooManyNodes { max: NODES_MAX });
            }
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// The entry of a node; `None` if it does not exist or is malformed.
    pub(super) fn read_node(
        &self,
        node: NodeId,
    ) -> Result<Option<RegisteredNode>, CoordinatorError> {
        let Some(bytes) = files::read(&self.node(node), ENTRY_BYTES_MAX)? else { return Ok(None) };
        Ok(split_revision(&bytes).and_then(|(revision, rest)| {
            let registration = decode_registration(node, rest)?;
            Some(RegisteredNode { registration, revision })
        }))
    }

    /// The controller's entry; `None` if it does not exist or is malformed.
    pub(super) fn read_controller(&self) -> Result<Option<Controller>, CoordinatorError> {
        let Some(bytes) = files::read(&self.controller(), ENTRY_BYTES_MAX)? else {
            return Ok(None);
        };
        Ok(split_revision(&bytes).and_then(|(since, rest)| {
            let node = NodeId::parse(std::str::from_utf8(rest).ok()?).ok()?;
            Some(Controller { node, since })
        }))
    }

    /// Checks whether any entry belongs to a process that has died.
    pub(super) fn has_dead_entries(&self) -> Result<bool, CoordinatorError> {
        for node in self.node_ids()? {
            if is_dead(&self.node(node))? {
                return Ok(true);
            }
        }
        is_dead(&self.controller())
    }

    /// Takes the lock, repairs the journal if a process died during a change, and removes the entries of dead
    /// processes.
    pub(super) fn lock(
        &self,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<LockedDirectory<'_>, CoordinatorError> {
        let path = self.root.join("lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| CoordinatorError::file("open", &path, error))?;
        let give_up = Instant::now() + limit;
        while !try_lock(&lock, FlockOperation::NonBlockingLockExclusive, &path)? {
            if Instant::now() >= give_up {
                return Err(CoordinatorError::Locked { path, limit });
            }
            if stop.pause(LOCK_PAUSE) {
                return Err(CoordinatorError::Stopped);
            }
        }
        LockedDirectory::begin(self, lock)
    }
}

/// The directory while its lock is held.
#[derive(Debug)]
pub(super) struct LockedDirectory<'d> {
    directory: &'d LocalDirectory,
    pub(super) journal: LocalJournal,
    /// The current document.
    pub(super) topology: Option<(Revision, Vec<u8>)>,
    _lock: File,
}

impl<'d> LockedDirectory<'d> {
    fn begin(
        directory: &'d LocalDirectory,
        lock: File,
    ) -> Result<LockedDirectory<'d>, CoordinatorError> {
        let topology = files::read_topology(&directory.topology())?;
        let revision = topology.as_ref().map_or(Revision::NONE, |(revision, _)| *revision);
        let journal = LocalJournal::read(&directory.journal())?;
        // Without a journal, only the entries show which revisions were used earlier.
        let journal = match journal {
            Some(journal) => journal,
            None => {
                let last = directory.highest_revision()?.max(revision);
                LocalJournal { last, forgotten: last, ..LocalJournal::default() }
            }
        };
        let mut locked = LockedDirectory { directory, journal, topology, _lock: lock };
        if revision > locked.journal.last {
            locked.note(revision, JournalChange::Topology)?;
        }
        locked.remove_dead_entries()?;
        Ok(locked)
    }

    /// Writes a change to the journal.
    fn note(&mut self, revision: Revision, change: JournalChange) -> Result<(), CoordinatorError> {
        let forgotten = self.journal.forgotten;
        self.journal.push(revision, change);
        let text = self.journal.encode();
        files::replace(&self.directory.journal(), text.as_bytes(), Durability::Synced)?;
        if self.journal.forgotten != forgotten {
            self.forget_documents()?;
        }
        Ok(())
    }

    /// Removes the documents that the journal no longer names.
    fn forget_documents(&self) -> Result<(), CoordinatorError> {
        let path = self.directory.root.join("history");
        let entries =
            fs::read_dir(&path).map_err(|error| CoordinatorError::file("list", &path, error))?;
        for entry in entries.flatten() {
            let revision = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if revision.is_some_and(|revision| Revision(revision) <= self.journal.forgotten) {
                files::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    fn remove_dead_entries(&mut self) -> Result<(), CoordinatorError> {
        for node in self.directory.node_ids()? {
            if is_dead(&self.directory.node(node))? {
                self.remove_node(node)?;
            }
        }
        if is_dead(&self.directory.controller())? {
            self.remove_controller()?;
        }
        Ok(())
    }

    pub(super) fn remove_node(&mut self, node: NodeId) -> Result<(), CoordinatorError> {
        files::remove(&self.directory.status(node))?;
        files::remove(&self.directory.node(node))?;
        self.note(self.journal.next(), JournalChange::Removed(node))
    }

    pub(super) fn remove_controller(&mut self) -> Result<(), CoordinatorError> {
        files::remove(&self.directory.controller())?;
        self.note(self.journal.next(), JournalChange::Vacant)
    }

    /// Replaces the document.
    pub(super) fn replace_topology(&mut self, document: &[u8]) -> Result<Revision, ReplaceError> {
        let path = self.directory.topology();
        if let Some((earlier, _)) = &self.topology {
            // The earlier document stays readable for watchers that have not seen it.
            match fs::hard_link(&path, self.directory.history(*earlier)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    let error = CoordinatorError::file("link", &path, error);
                    return Err(ReplaceError::Before(error));
                }
                _ => {}
            }
        }
        let revision = self.journal.next();
        files::replace(&path, &files::encode_topology(revision, document), Durability::Synced)?;
        self.note(revision, JournalChange::Topology).map_err(ReplaceError::After)?;
        Ok(revision)
    }

    /// Writes the entry of a node. The node counts as alive as long as the returned file is open.
    pub(super) fn add_node(
        &mut self,
        registration: &NodeRegistration,
    ) -> Result<(Revision, File), CoordinatorError> {
        let ids = self.directory.node_ids()?;
        if ids.len() >= NODES_MAX && !ids.contains(&registration.node) {
            return Err(CoordinatorError::TooManyNodes { max: NODES_MAX });
        }
        let revision = self.journal.next();
        // The status of an earlier incarnation is removed together with its registration.
        files::remove(&self.directory.status(registration.node))?;
        let path = self.directory.node(registration.node);
        let entry = write_locked(&path, revision, &encode_registration(registration))?;
        self.note(revision, JournalChange::Node(registration.node))?;
        Ok((revision, entry))
    }

    /// Writes the controller's entry; the term of office lasts as long as the returned file is open.
    pub(super) fn add_controller(
        &mut self,
        node: NodeId,
    ) -> Result<(Controller, File), CoordinatorError> {
        let since = self.journal.next();
        let entry = write_locked(&self.directory.controller(), since, node.as_str().as_bytes())?;
        self.note(since, JournalChange::Elected(node))?;
        Ok((Controller { node, since }, entry))
    }
}

impl LocalDirectory {
    /// The highest revision of all entries and of the history.
    fn highest_revision(&self) -> Result<Revision, CoordinatorError> {
        let path = self.root.join("history");
        let entries =
            fs::read_dir(&path).map_err(|error| CoordinatorError::file("list", &path, error))?;
        let revisions = entries.flatten();
        let revisions = revisions.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut highest = revisions.map(Revision).max().unwrap_or_default();
        for node in self.node_ids()? {
            let entry = self.read_node(node)?;
            highest = highest.max(entry.map_or(Revision::NONE, |entry| entry.revision));
        }
        let controller = self.read_controller()?;
        Ok(highest.max(controller.map_or(Revision::NONE, |controller| controller.since)))
    }
}

/// Creates an entry that is locked before it gets its name.
fn write_locked(path: &Path, revision: Revision, content: &[u8]) -> Result<File, CoordinatorError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The directory's lock prevents other processes from using this name.
    let temporary = path.with_file_name(format!(".{name}"));
    let failed = |error| CoordinatorError::file("write", &temporary, error);
    files::remove(&temporary)?;
    let mut entry = File::create_new(&temporary).map_err(failed)?;
    entry.write_all(&[format!("{revision}\n").as_bytes(), content].concat()).map_err(failed)?;
    if !try_lock(&entry, FlockOperation::NonBlockingLockExclusive, &temporary)? {
        return Err(failed(io::ErrorKind::WouldBlock.into()));
    }
    fs::rename(&temporary, path).map_err(failed)?;
    Ok(entry)
}

/// The revision in the first line of an entry, and the rest.
fn split_revision(bytes: &[u8]) -> Option<(Revision, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let revision = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
    Some((Revision(revision), &bytes[end + 1..]))
}

/// Checks whether an entry exists and no process holds its lock.
fn is_dead(path: &Path) -> Result<bool, CoordinatorError> {
    match File::open(path) {
        // Closing the file frees the lock of the probe.
        Ok(entry) => try_lock(&entry, FlockOperation::NonBlockingLockShared, path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(CoordinatorError::file("open", path, error)),
    }
}

fn try_lock(file: &File, how: FlockOperation, path: &Path) -> Result<bool, CoordinatorError> {
    match flock(file, how) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(CoordinatorError::file("lock", path, error.into())),
    }
}

/// Checks whether a path still names this open file.
pub(super) fn names(path: &Path, entry: &File) -> bool {
    match (fs::metadata(path), entry.metadata()) {
        (Ok(named), Ok(open)) => (named.dev(), named.ino()) == (open.dev(), open.ino()),
        _ => false,
    }
}
