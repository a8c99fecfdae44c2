//! The watch of a local coordinator: it checks the files 50 times a second.

use super::directory::{LOCK_WAIT_MAX, LocalDirectory};
use super::files;
use super::journal::{JournalChange, LocalJournal};
use crate::coordinator::Watch;
use crate::error::CoordinatorError;
use crate::stop::StopFlag;
use crate::values::{Controller, Revision, Topology, WatchEvent};
use std::time::{Duration, Instant};

/// Pause between two checks. The watch notices the death of a process within about this time.
const POLL_PAUSE: Duration = Duration::from_millis(20);
/// Maximum number of attempts to read a document that other processes delete in the meantime.
const READS_MAX: usize = 10;

/// See [`Watch`].
#[derive(Debug)]
pub(super) struct LocalWatch {
    pub(super) directory: LocalDirectory,
    pub(super) stop: StopFlag,
    pub(super) position: Revision,
    /// Set if changes after the position have been forgotten.
    pub(super) compacted: Option<Revision>,
}

impl Watch for LocalWatch {
    fn next(&mut self, limit: Duration) -> Result<Vec<WatchEvent>, CoordinatorError> {
        let end = Instant::now() + limit;
        loop {
            if self.stop.is_stopped() {
                return Err(CoordinatorError::Stopped);
            }
            if let Some(revision) = self.compacted {
                return Ok(vec![WatchEvent::Compacted { revision }]);
            }
            match self.look() {
                Ok(events) if events.is_empty() => {}
                Ok(events) => return Ok(events),
                Err(error) => {
                    // The pause keeps a caller that simply retries from spinning.
                    self.stop.pause(5 * POLL_PAUSE);
                    return Err(error);
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Vec::new());
            }
            self.stop.pause(left.min(POLL_PAUSE));
        }
    }

    fn position(&self) -> Revision {
        self.position
    }
}

impl LocalWatch {
    fn look(&mut self) -> Result<Vec<WatchEvent>, CoordinatorError> {
        if self.directory.has_dead_entries()? {
            // Taking the lock removes the dead entries.
            drop(self.directory.lock(LOCK_WAIT_MAX, &self.stop)?);
        }
        for _ in 0..READS_MAX {
            if let Some(events) = self.read_changes()? {
                return Ok(events);
            }
        }
        // A power failure can leave a journal that names a document whose file is missing.
        let revision = self.position;
        self.compacted = Some(revision);
        Ok(vec![WatchEvent::Compacted { revision }])
    }

    /// The events after the position; `None` if a document was forgotten while they were read.
    fn read_changes(&mut self) -> Result<Option<Vec<WatchEvent>>, CoordinatorError> {
        // The topology is read before the journal. If the journal does not contain the topology's
        // revision yet, it contains all lower ones.
        let topology = files::read_topology(&self.directory.topology())?;
        let mut journal = LocalJournal::read(&self.directory.journal())?.unwrap_or_default();
        if let Some((revision, _)) = &topology
            && *revision > journal.last
        {
            journal.push(*revision, JournalChange::Topology);
        }
        if self.position < journal.forgotten {
            let revision = journal.forgotten;
            self.compacted = Some(revision);
            return Ok(Some(vec![WatchEvent::Compacted { revision }]));
        }
        let mut events = Vec::new();
        for (revision, change) in &journal.changes {
            if *revision <= self.position {
                continue;
            }
            let revision = *revision;
            match *change {
                JournalChange::Topology => {
                    let found = topology.as_ref().filter(|(present, _)| *present == revision);
                    let document = match found {
                        Some((_, document)) => document.clone(),
                        None => match self.read_history(revision)? {
                            Some(document) => document,
                            None => return Ok(None),
                        },
                    };
                    let document = Some(document);
                    events.push(WatchEvent::Topology(Topology { revision, document }));
                }
                JournalChange::Node(node) => {
                    // If the entry has changed since then, a later event contains the new entry.
                    let entry = self.directory.read_node(node)?;
                    let entry = entry.filter(|entry| entry.revision == revision);
                    events.extend(entry.map(WatchEvent::NodeRegistered));
                }
                JournalChange::Removed(node) => {
                    events.push(WatchEvent::NodeRemoved { node, revision })
                }
                JournalChange::Elected(node) => {
                    let controller = Controller { node, since: revision };
                    events.push(WatchEvent::ControllerElected(controller));
                }
                JournalChange::Vacant => events.push(WatchEvent::ControllerRemoved { revision }),
            }
        }
        self.position = self.position.max(journal.last);
        Ok(Some(events))
    }

    fn read_history(&self, revision: Revision) -> Result<Option<Vec<u8>>, CoordinatorError> {
        // The document was replaced, either since the topology was read or before.
        let earlier = files::read_topology(&self.directory.history(revision))?;
        if let Some((_, document)) = earlier {
            return Ok(Some(document));
        }
        let present = files::read_topology(&self.directory.topology())?;
        Ok(present.filter(|(present, _)| *present == revision).map(|(_, document)| document))
    }
}
