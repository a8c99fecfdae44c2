//! The journal of a local coordinator: the last revision, and the latest changes for watchers.
//!
//! ```text
//! brisk-coordinator 1 <last revision> <revision up to which changes are forgotten>
//! <revision> topology
//! <revision> node <id>
//! <revision> gone <id>
//! <revision> elected <id>
//! <revision> vacant
//! end <CRC-32C of all before, in hexadecimal>
//! ```

use super::files;
use crate::error::CoordinatorError;
use crate::values::{NodeId, Revision};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;

/// Maximum number of changes that are kept for watchers, which poll 50 times a second. For each
/// change to the topology, the document is kept too.
pub(super) const CHANGES_MAX: usize = 128;
/// Maximum bytes of a journal with [`CHANGES_MAX`] lines.
const JOURNAL_BYTES_MAX: usize = CHANGES_MAX * 100 + 200;
const MAGIC: &str = "brisk-coordinator 1";

/// One change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JournalChange {
    Topology,
    Node(NodeId),
    Removed(NodeId),
    Elected(NodeId),
    Vacant,
}

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LocalJournal {
    /// The last revision that was given to a change.
    pub(super) last: Revision,
    /// Changes up to this revision are forgotten.
    pub(super) forgotten: Revision,
    /// In the order of revisions.
    pub(super) changes: VecDeque<(Revision, JournalChange)>,
}

impl LocalJournal {
    /// Adds a change with a revision above all earlier ones; forgets the oldest if there are too many.
    pub(super) fn push(&mut self, revision: Revision, change: JournalChange) {
        self.last = revision;
        self.changes.push_back((revision, change));
        while self.changes.len() > CHANGES_MAX {
            if let Some((forgotten, _)) = self.changes.pop_front() {
                self.forgotten = forgotten;
            }
        }
    }

    /// The revision for the next change.
    pub(super) fn next(&self) -> Revision {
        Revision(self.last.0 + 1)
    }

    pub(super) fn encode(&self) -> String {
        let mut text = format!("{MAGIC} {} {}\n", self.last, self.forgotten);
        for (revision, change) in &self.changes {
            // Writing into a string cannot fail.
            _ = match change {
                JournalChange::Topology => writeln!(text, "{revision} topology"),
                JournalChange::Node(node) => writeln!(text, "{revision} node {node}"),
                JournalChange::Removed(node) => writeln!(text, "{revision} gone {node}"),
                JournalChange::Elected(node) => writeln!(text, "{revision} elected {node}"),
                JournalChange::Vacant => writeln!(text, "{revision} vacant"),
            };
        }
        let checksum = crc32c::crc32c(text.as_bytes());
        _ = writeln!(text, "end {checksum:08x}");
        text
    }

    /// The journal of a file; `None` if it does not exist.
    pub(super) fn read(path: &Path) -> Result<Option<LocalJournal>, CoordinatorError> {
        let Some(bytes) = files::read(path, JOURNAL_BYTES_MAX)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        LocalJournal::decode(&text).map(Some).ok_or_else(|| CoordinatorError::Damaged {
            path: path.to_owned(),
            why: "its lines or its checksum are wrong".to_owned(),
            advice: "Stop all nodes and remove it: the topology stays, and the next start writes \
                     a new journal"
                .to_owned(),
        })
    }

    fn decode(text: &str) -> Option<LocalJournal> {
        let body = text.strip_suffix('\n')?;
        let (body, end) = body.rsplit_once('\n')?;
        let body = &text[..=body.len()];
        let checksum = u32::from_str_radix(end.strip_prefix("end ")?, 16).ok()?;
        if checksum != crc32c::crc32c(body.as_bytes()) {
            return None;
        }
        let mut lines = body.lines();
        let (last, forgotten) = lines.next()?.strip_prefix(MAGIC)?.trim_start().split_once(' ')?;
        let mut journal = LocalJournal {
            last: Revision(last.parse().ok()?),
            forgotten: Revision(forgotten.parse().ok()?),
            changes: VecDeque::new(),
        };
        for line in lines {
            let fields: Vec<&str> = line.split(' ').collect();
            let node = |text: &str| NodeId::parse(text).ok();
            let change = match fields[1..] {
                ["topology"] => JournalChange::Topology,
                ["node", id] => JournalChange::Node(node(id)?),
                ["gone", id] => JournalChange::Removed(node(id)?),
                ["elected", id] => JournalChange::Elected(node(id)?),
                ["vacant"] => JournalChange::Vacant,
                _ => return None,
            };
            journal.changes.push_back((Revision(fields[0].parse().ok()?), change));
        }
        Some(journal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(digit: char) -> NodeId {
        NodeId::parse(&digit.to_string().repeat(40)).unwrap()
    }

    #[test]
    fn a_journal_survives_its_file_form_and_damage_is_found() {
        let mut journal = LocalJournal::default();
        journal.push(Revision(3), JournalChange::Topology);
        journal.push(Revision(4), JournalChange::Node(node('a')));
        journal.push(Revision(5), JournalChange::Elected(node('a')));
        journal.push(Revision(6), JournalChange::Vacant);
        journal.push(Revision(9), JournalChange::Removed(node('b')));
        let text = journal.encode();
        assert_eq!(LocalJournal::decode(&text), Some(journal));
        for cut in 0..text.len() {
            assert_eq!(LocalJournal::decode(&text[..cut]), None, "cut at {cut}");
        }
        assert_eq!(LocalJournal::decode(&text.replace("4 node", "5 node")), None);
    }

    #[test]
    fn the_oldest_changes_are_forgotten_and_the_file_stays_within_its_bound() {
        let mut journal = LocalJournal::default();
        for revision in 1..=300 {
            journal.push(Revision(u64::MAX - 301 + revision), JournalChange::Elected(node('c')));
        }
        assert_eq!(journal.changes.len(), CHANGES_MAX);
        assert_eq!(journal.forgotten.0 + 1, journal.changes[0].0.0);
        assert!(journal.encode().len() <= JOURNAL_BYTES_MAX);
    }
}
