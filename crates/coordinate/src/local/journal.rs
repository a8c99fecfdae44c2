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

/// Changes that are kept for watchers, which look 50 times a second. Each change of the topology
/// keeps its document, too.
pub(super) const CHANGES_MAX: usize = 128;
/// Bytes that hold a journal with [`CHANGES_MAX`] lines.
const JOURNAL_BYTES_MAX: usize = CHANGES_MAX * 100 + 200;
const MAGIC: &str = "brisk-coordinator 1";

/// One change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Topology,
    Node(NodeId),
    Gone(NodeId),
    Elected(NodeId),
    Vacant,
}

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Journal {
    /// The last revision that was given to a change.
    pub(super) last: Revision,
    /// Changes up to this revision are forgotten.
    pub(super) forgotten: Revision,
    /// In the order of revisions.
    pub(super) changes: VecDeque<(Revision, Change)>,
}

impl Journal {
    /// Adds a change with a revision above all earlier ones; forgets the oldest if there are too many.
    pub(super) fn push(&mut self, revision: Revision, change: Change) {
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
                Change::Topology => writeln!(text, "{revision} topology"),
                Change::Node(node) => writeln!(text, "{revision} node {node}"),
                Change::Gone(node) => writeln!(text, "{revision} gone {node}"),
                Change::Elected(node) => writeln!(text, "{revision} elected {node}"),
                Change::Vacant => writeln!(text, "{revision} vacant"),
            };
        }
        let checksum = crc32c::crc32c(text.as_bytes());
        _ = writeln!(text, "end {checksum:08x}");
        text
    }

    /// The journal of a file; `None` if it does not exist.
    pub(super) fn read(path: &Path) -> Result<Option<Journal>, CoordinatorError> {
        let Some(bytes) = files::read(path, JOURNAL_BYTES_MAX)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        Journal::decode(&text).map(Some).ok_or_else(|| CoordinatorError::Damaged {
            path: path.to_owned(),
            why: "its lines or its checksum are wrong".to_owned(),
            advice: "Stop all nodes and remove it: the topology stays, and the next start writes \
                     a new journal"
                .to_owned(),
        })
    }

    fn decode(text: &str) -> Option<Journal> {
        let body = text.strip_suffix('\n')?;
        let (body, end) = body.rsplit_once('\n')?;
        let body = &text[..=body.len()];
        let checksum = u32::from_str_radix(end.strip_prefix("end ")?, 16).ok()?;
        if checksum != crc32c::crc32c(body.as_bytes()) {
            return None;
        }
        let mut lines = body.lines();
        let (last, forgotten) = lines.next()?.strip_prefix(MAGIC)?.trim_start().split_once(' ')?;
        let mut journal = Journal {
            last: Revision(last.parse().ok()?),
            forgotten: Revision(forgotten.parse().ok()?),
            changes: VecDeque::new(),
        };
        for line in lines {
            let fields: Vec<&str> = line.split(' ').collect();
            let node = |text: &str| NodeId::parse(text).ok();
            let change = match fields[1..] {
                ["topology"] => Change::Topology,
                ["node", id] => Change::Node(node(id)?),
                ["gone", id] => Change::Gone(node(id)?),
                ["elected", id] => Change::Elected(node(id)?),
                ["vacant"] => Change::Vacant,
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
        let mut journal = Journal::default();
        journal.push(Revision(3), Change::Topology);
        journal.push(Revision(4), Change::Node(node('a')));
        journal.push(Revision(5), Change::Elected(node('a')));
        journal.push(Revision(6), Change::Vacant);
        journal.push(Revision(9), Change::Gone(node('b')));
        let text = journal.encode();
        assert_eq!(Journal::decode(&text), Some(journal));
        for cut in 0..text.len() {
            assert_eq!(Journal::decode(&text[..cut]), None, "cut at {cut}");
        }
        assert_eq!(Journal::decode(&text.replace("4 node", "5 node")), None);
    }

    #[test]
    fn the_oldest_changes_are_forgotten_and_the_file_stays_within_its_bound() {
        let mut journal = Journal::default();
        for revision in 1..=300 {
            journal.push(Revision(u64::MAX - 301 + revision), Change::Elected(node('c')));
        }
        assert_eq!(journal.changes.len(), CHANGES_MAX);
        assert_eq!(journal.forgotten.0 + 1, journal.changes[0].0.0);
        assert!(journal.encode().len() <= JOURNAL_BYTES_MAX);
    }
}
