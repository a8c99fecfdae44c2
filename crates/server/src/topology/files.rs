//! The files of a node: `nodes.conf`, which contains its id, and next to it `topology.json`, which contains the last
//! document.
//!
//! ```text
//! dir/nodes.conf       as Redis writes it; only the own id is read back
//! dir/nodes.conf.lock  locked as long as the process lives
//! dir/topology.json    the document in force, as the coordinator had it
//! ```
//!
//! Each file is replaced atomically. After a crash, it has either the old or the new content.

use super::identity::new_id;
use brisk_cluster::document::{DOCUMENT_BYTES_MAX, Topology};
use brisk_cluster::id::NodeId;
use brisk_cluster::view::{NODES_FILE_BYTES_MAX, own_id};
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a starting process waits for the lock. The previous process may be about to end.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// The pause between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The files of this node.
#[derive(Debug)]
pub(super) struct TopologyFiles {
    nodes: PathBuf,
    topology: PathBuf,
    /// The lock is held as long as this file is open.
    _lock: File,
}

impl TopologyFiles {
    /// Locks the files of a node; `nodes` is the path of `nodes.conf`.
    ///
    /// # Errors
    /// Another process uses them, or the directory cannot be written.
    pub(super) fn open(nodes: &Path) -> Result<TopologyFiles, String> {
        let path = with_suffix(nodes, ".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        let until = Instant::now() + LOCK_WAIT;
        let locked = loop {
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::park_timeout(LOCK_PAUSE);
                }
                locked => break locked,
            }
        };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "Sorry, the cluster configuration file {} is already used by a different Redis \
                     Cluster node. Please make sure that different nodes use different cluster \
                     configuration files.",
                    nodes.display()
                ));
            }
            Err(TryLockError::Error(error)) => {
                return Err(format!("cannot lock {}: {error}", path.display()));
            }
        }
        let topology = nodes.with_file_name("topology.json");
        Ok(TopologyFiles { nodes: nodes.to_owned(), topology, _lock: lock })
    }

    /// The id of this node. A node without a file gets a new id.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub(super) fn own_id(&self) -> Result<NodeId, String> {
        let Some(bytes) = read(&self.nodes, NODES_FILE_BYTES_MAX)? else { return new_id() };
        own_id(&bytes).map_err(|error| {
            format!(
                "{} is damaged: {error}. Restore it from a backup, or remove it: the node then gets \
                 a new id and must join the cluster again",
                self.nodes.display()
            )
        })
    }

    /// The last document that this node had in force.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub(super) fn last_topology(&self) -> Result<Option<Topology>, String> {
        let Some(bytes) = read(&self.topology, DOCUMENT_BYTES_MAX)? else { return Ok(None) };
        Topology::parse(&bytes).map(Some).map_err(|error| {
            format!(
                "{} is damaged: {error}. Remove it: the node takes the document of its coordinator",
                self.topology.display()
            )
        })
    }

    /// Replaces `nodes.conf`.
    pub(super) fn write_nodes(&self, text: &str) -> io::Result<()> {
        replace(&self.nodes, text.as_bytes())
    }

    /// Replaces `topology.json`.
    pub(super) fn write_topology(&self, document: &[u8]) -> io::Result<()> {
        replace(&self.topology, document)
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// The content of a file; `None` if it does not exist.
fn read(path: &Path, bytes_max: usize) -> Result<Option<Vec<u8>>, String> {
    let mut bytes = Vec::new();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot open {}: {error}", path.display())),
    };
    // Read one byte more, so that the reader notices if the file is too large.
    let read = file.take(bytes_max as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(Some(bytes))
}

/// Replaces a file so that the new content survives a power failure.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = with_suffix(path, ".new");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_testkit::TempDir;

    #[test]
    fn two_processes_cannot_share_the_files() {
        let dir = TempDir::new();
        let path = dir.path("nodes.conf");
        let files = TopologyFiles::open(&path).unwrap();
        let error = TopologyFiles::open(&path).unwrap_err();
        assert!(error.contains("is already used by a different Redis Cluster node"), "{error}");
        drop(files);
        assert!(TopologyFiles::open(&path).is_ok());
    }

    #[test]
    fn an_id_is_kept_and_damage_is_an_error_that_names_the_file() {
        let dir = TempDir::new();
        let files = TopologyFiles::open(&dir.path("nodes.conf")).unwrap();
        assert_ne!(files.own_id().unwrap(), files.own_id().unwrap());
        let id = "bf6f07d819f95559636640ce7ecdf9d336ad8b96";
        files
            .write_nodes(&format!("{id} 127.0.0.1:7000@17000 myself,master - 0 0 1 connected\n"))
            .unwrap();
        assert_eq!(files.own_id().unwrap().to_string(), id);
        files.write_nodes("x").unwrap();
        assert!(files.own_id().unwrap_err().contains("nodes.conf is damaged: no line has"));
        assert_eq!(files.last_topology(), Ok(None));
        files.write_topology(b"{").unwrap();
        assert!(files.last_topology().unwrap_err().contains("topology.json is damaged"));
    }
}
