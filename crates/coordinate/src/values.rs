//! The typed values of the [`Coordinator`](crate::Coordinator) interface: names, revisions, leases,
//! registrations, changes and their outcomes.

use crate::clock::BootTime;
use crate::error::CoordinatorError;
use std::fmt;
use std::time::Duration;

/// Largest topology document in bytes. etcd rejects requests above 1.5 MiB by default.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Largest `details` of a registration in bytes: an address, a zone and a version fit many times
/// over.
pub const DETAILS_BYTES_MAX: usize = 2 << 10;
/// Largest status of a node in bytes.
pub const STATUS_BYTES_MAX: usize = 8 << 10;
/// Maximum number of nodes in one list. A Redis Cluster has at most 1,000 nodes.
pub const NODES_MAX: usize = 1_000;

/// Shortest TTL of a lease in seconds: etcd grants no shorter one with its default timing.
const TTL_SECONDS_MIN: u64 = 2;
/// Longest TTL of a lease in seconds: one hour. A dead node is noticed only when its lease ends.
const TTL_SECONDS_MAX: u64 = 3_600;
/// Longest name of a cluster in bytes: the name is a part of each key and a directory name.
const NAME_BYTES_MAX: usize = 64;
/// Longest incarnation in bytes.
const INCARNATION_BYTES_MAX: usize = 40;
/// Length of a node id in hexadecimal digits, as in Redis Cluster.
const ID_DIGITS: usize = 40;

/// A text that is not a valid value of its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    #[error("'{0}' is not a node id: it must have 40 lowercase hexadecimal digits")]
    NodeId(String),
    #[error("'{0}' is not an incarnation: it must have 1 to 40 ASCII letters and digits")]
    Incarnation(String),
    #[error(
        "'{0}' is not a cluster name: it must have 1 to 64 ASCII letters, digits, '-', '_' or '.', \
         and must not begin with '.'"
    )]
    ClusterName(String),
}

/// The identity of a node: 40 lowercase hexadecimal digits, as in Redis Cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId([u8; ID_DIGITS]);

impl NodeId {
    /// Checks the digits of an id.
    ///
    /// # Errors
    /// The text does not have exactly 40 lowercase hexadecimal digits.
    pub fn parse(text: &str) -> Result<NodeId, InvalidValue> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match <[u8; ID_DIGITS]>::try_from(text.as_bytes()) {
            Ok(digits) if digits.iter().all(is_digit) => Ok(NodeId(digits)),
            _ => Err(InvalidValue::NodeId(text.to_owned())),
        }
    }

    /// The 40 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // `parse` has checked that the digits are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

/// One run of a node's process. A restarted process has a different incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Incarnation(String);

impl Incarnation {
    /// Checks the text of an incarnation.
    ///
    /// # Errors
    /// The text is empty, has more than 40 bytes, or contains anything but ASCII letters and
    /// digits.
    pub fn parse(text: &str) -> Result<Incarnation, InvalidValue> {
        let fits = (1..=INCARNATION_BYTES_MAX).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            Ok(Incarnation(text.to_owned()))
        } else {
            Err(InvalidValue::Incarnation(text.to_owned()))
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a cluster (`cluster-name`). It separates clusters that share one coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClusterName(String);

impl ClusterName {
    /// Checks a name.
    ///
    /// # Errors
    /// The text is empty, has more than 64 bytes, begins with a dot, or contains anything but ASCII
    /// letters, digits, `-`, `_` and `.`.
    pub fn parse(text: &str) -> Result<ClusterName, InvalidValue> {
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.starts_with('.');
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if fits && text.bytes().all(is_allowed) {
            Ok(ClusterName(text.to_owned()))
        } else {
            Err(InvalidValue::ClusterName(text.to_owned()))
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A point in the history of a cluster's entries. Each change to the topology, a node or the
/// controller gets a higher revision. Revisions may have gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision of a topology that does not exist: a change that expects it creates the document.
    pub const NONE: Revision = Revision(0);
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The TTL of a lease: whole seconds, from 2 seconds to one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseTtl(u64);

impl LeaseTtl {
    /// The TTL for a duration, rounded up to whole seconds and clamped to the allowed range.
    #[must_use]
    pub fn at_least(duration: Duration) -> LeaseTtl {
        let seconds = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
        LeaseTtl(seconds.clamp(TTL_SECONDS_MIN, TTL_SECONDS_MAX))
    }

    /// The TTL in seconds.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0
    }

    /// The TTL as a duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

/// The number that the coordinator gave to a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// A lease of a registered node. This is plain data: dropping it does not end the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub id: LeaseId,
    pub node: NodeId,
    pub incarnation: Incarnation,
    /// The granted TTL, which may be longer than the requested one.
    pub ttl: LeaseTtl,
    /// The lease does not end before this time. It is the time at which the last successful request
    /// was *sent*, plus the TTL. `None`: the lease lasts as long as the process.
    pub expires_at: Option<BootTime>,
}

/// The registration of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRegistration {
    pub node: NodeId,
    pub incarnation: Incarnation,
    /// Opaque bytes for other nodes: version and announced address. At most [`DETAILS_BYTES_MAX`].
    pub details: Vec<u8>,
}

/// How a registration treats an earlier one of the same node id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The process has started: its registration replaces the one of an earlier incarnation.
    Start,
    /// The process kept running after its lease was lost: a live registration of another
    /// incarnation wins, and the call fails with [`CoordinatorError::NodeIdTaken`].
    Resume,
}

/// A node whose lease is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredNode {
    pub registration: NodeRegistration,
    /// The revision at which the node registered.
    pub revision: Revision,
}

/// The controller in office.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Controller {
    pub node: NodeId,
    /// The revision at which the node became the controller. No other term of office has the same
    /// revision.
    pub since: Revision,
}

/// The result of a campaign for controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Campaign {
    /// The caller's lease holds the office. Repeating the campaign gives the same value.
    Elected(Controller),
    /// Another lease holds the office.
    Held(Controller),
}

/// The topology document with its revision. `Debug` shows only the length of the document.
#[derive(Clone, PartialEq, Eq)]
pub struct Topology {
    /// The revision of the last change, which the next change must expect; [`Revision::NONE`] if
    /// there is no document.
    pub revision: Revision,
    pub document: Option<Vec<u8>>,
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.document.as_ref().map(Vec::len);
        f.debug_struct("Topology")
            .field("revision", &self.revision.0)
            .field("document_bytes", &bytes)
            .finish()
    }
}

/// The topology, the nodes and the controller at one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSnapshot {
    /// A watch after this revision misses no later change.
    pub revision: Revision,
    pub topology: Topology,
    /// Sorted by node id.
    pub nodes: Vec<RegisteredNode>,
    pub controller: Option<Controller>,
}

/// A compare-and-set of the topology document.
#[derive(Debug, Clone, Copy)]
pub struct TopologyChange<'d> {
    /// The change happens only if the document still has this revision.
    pub expected: Revision,
    /// The new document, at most [`DOCUMENT_BYTES_MAX`].
    pub document: &'d [u8],
    /// If set: the change happens only if this term of office has not ended.
    pub controller: Option<Controller>,
}

/// The outcome of a [`TopologyChange`].
#[derive(Debug, Clone)]
pub enum ChangeOutcome {
    /// The document was changed and has this revision.
    Changed(Revision),
    /// A comparison failed. The document was not changed by this call.
    Conflict,
    /// The change may have happened, or may still happen. The caller reads the document again and
    /// looks for its change stamp. The error is the reason.
    Unknown(CoordinatorError),
    /// The document was not changed by this call and will not be.
    Refused(CoordinatorError),
}

/// The last status of a live node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    pub node: NodeId,
    pub status: Vec<u8>,
}

/// A change that a watch reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// The document was created or changed. The document is `None` if other software removed it.
    Topology(Topology),
    /// A node registered, or another incarnation of it did.
    NodeRegistered(RegisteredNode),
    /// The lease of a node ended.
    NodeRemoved { node: NodeId, revision: Revision },
    /// A controller took office.
    ControllerElected(Controller),
    /// The office of the controller is vacant.
    ControllerRemoved { revision: Revision },
    /// Events after the watch's position are no longer kept. The caller takes a snapshot and
    /// watches from there. This watch reports nothing else from now on.
    Compacted { revision: Revision },
    /// The coordinator has no leader. The watch continues on its own; events may be late.
    NoLeader,
}

/// Checks the size of a value that is to be stored.
pub(crate) fn check_size(
    what: &'static str,
    bytes: usize,
    max: usize,
) -> Result<(), CoordinatorError> {
    if bytes > max {
        return Err(CoordinatorError::TooLarge { what, bytes, max });
    }
    Ok(())
}

/// The stored form of a registration: the incarnation, a line end, the details.
pub(crate) fn encode_registration(registration: &NodeRegistration) -> Vec<u8> {
    [registration.incarnation.as_str().as_bytes(), b"\n", &registration.details].concat()
}

/// The registration of `node` from its stored form; `None` if the bytes have a different form.
pub(crate) fn decode_registration(node: NodeId, bytes: &[u8]) -> Option<NodeRegistration> {
    let end = bytes.iter().take(INCARNATION_BYTES_MAX + 1).position(|byte| *byte == b'\n')?;
    let incarnation = Incarnation::parse(std::str::from_utf8(&bytes[..end]).ok()?).ok()?;
    Some(NodeRegistration { node, incarnation, details: bytes[end + 1..].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_id_has_forty_lowercase_hexadecimal_digits() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(NodeId::parse(id).unwrap().to_string(), id);
        for bad in ["", &id[1..], &format!("{id}0"), &id.to_uppercase(), &id.replace('0', "g")] {
            assert_eq!(NodeId::parse(bad), Err(InvalidValue::NodeId(bad.to_owned())));
        }
    }

    #[test]
    fn a_cluster_name_cannot_leave_its_directory_or_key() {
        assert!(ClusterName::parse("brisk-2.prod_x").is_ok());
        for bad in ["", ".", "..", ".x", "a/b", "a b", "a\n", "ü", &"x".repeat(65)] {
            assert!(ClusterName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_ttl_is_rounded_up_to_whole_seconds_and_is_at_least_two() {
        let of = |ms| LeaseTtl::at_least(Duration::from_millis(ms)).seconds();
        assert_eq!([of(0), of(1), of(2_000), of(2_001), of(5_000)], [2, 2, 2, 3, 5]);
        assert_eq!(of(u64::MAX), 3_600);
    }

    #[test]
    fn a_registration_survives_its_stored_form() {
        let node = NodeId::parse(&"a".repeat(40)).unwrap();
        let incarnation = Incarnation::parse("c3").unwrap();
        let registration = NodeRegistration { node, incarnation, details: b"x\n\0y".to_vec() };
        let bytes = encode_registration(&registration);
        assert_eq!(decode_registration(node, &bytes), Some(registration));
        for bad in [&b""[..], b"c3", b"\nx", b"c 3\nx", b"\xff\nx"] {
            assert_eq!(decode_registration(node, bad), None);
        }
    }
}
