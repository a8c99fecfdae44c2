//! Identifiers: nodes, shards, runs of a node's process, terms, epochs, changes.
//!
//! Each is written to the document as text and read back by [`FromStr`], which accepts exactly the text that
//! `Display` writes.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Bytes of a node or shard id; its text has twice as many digits.
const ID_BYTES: usize = 20;

/// Why a text is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("an id must have 40 hexadecimal digits in lower case")]
    Hex40,
    #[error(
        "an incarnation must have 1 to 16 hexadecimal digits in lower case, without leading zeros"
    )]
    Incarnation,
    #[error("a run of a node must have the form <node id>@<incarnation>")]
    NodeRun,
    #[error("a change must have the form <node id>@<incarnation>:<number>")]
    Change,
}

/// The id of a node: 40 hexadecimal digits in lower case, as in Redis.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct NodeId([u8; ID_BYTES]);

/// The id of a shard: a primary with its replicas.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ShardId([u8; ID_BYTES]);

/// The id of a migration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct MigrationId([u8; ID_BYTES]);

impl NodeId {
    /// The id with these bytes, which should be random.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; ID_BYTES]) -> NodeId {
        NodeId(bytes)
    }
}

impl ShardId {
    /// The id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; ID_BYTES]) -> ShardId {
        ShardId(bytes)
    }

    /// The id of the shard that `founder` founds in the document with the epoch `epoch`. The epoch makes the id differ
    /// from those of earlier shards of the same node, so that term 1 of a new shard does not look like a step back.
    #[must_use]
    pub fn founded(founder: NodeId, epoch: Epoch) -> ShardId {
        let mut bytes = founder.0;
        for (byte, part) in bytes.iter_mut().rev().zip(epoch.0.to_le_bytes()) {
            *byte ^= part;
        }
        ShardId(bytes)
    }
}

impl MigrationId {
    /// The id with these bytes, which should be random.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; ID_BYTES]) -> MigrationId {
        MigrationId(bytes)
    }
}

fn write_hex(bytes: &[u8; ID_BYTES], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn parse_hex(text: &str) -> Result<[u8; ID_BYTES], IdError> {
    let digits = text.as_bytes();
    if digits.len() != 2 * ID_BYTES {
        return Err(IdError::Hex40);
    }
    let mut bytes = [0; ID_BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = digit(pair[0]).ok_or(IdError::Hex40)?;
        let low = digit(pair[1]).ok_or(IdError::Hex40)?;
        *byte = high << 4 | low;
    }
    Ok(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// One run of a node's process: a random number that the process draws when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// A node in one incarnation. In-sync sets name runs, so that a restarted process is not a member until it is in sync
/// again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct NodeRun {
    pub node: NodeId,
    pub incarnation: Incarnation,
}

/// Identifies a change of the document: the process that wrote it and a number that this process uses only once. A
/// writer whose request timed out reads the document again: the change has taken effect if the document, or a version
/// in its history, carries the change's id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ChangeId {
    pub writer: NodeRun,
    pub number: u64,
}

/// Counts the primaries of a shard. A new primary has a higher term than all previous primaries.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Term(pub u64);

impl Term {
    /// The term of a new shard.
    pub const FIRST: Term = Term(1);

    /// The term of the next primary.
    #[must_use]
    pub const fn next(self) -> Term {
        Term(self.0.saturating_add(1))
    }
}

/// Counts the versions of the document.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of the next document.
    #[must_use]
    pub const fn next(self) -> Epoch {
        Epoch(self.0.saturating_add(1))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for MigrationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Display for NodeRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.node, self.incarnation)
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.writer, self.number)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for NodeId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<NodeId, IdError> {
        parse_hex(text).map(NodeId)
    }
}

impl FromStr for ShardId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<ShardId, IdError> {
        parse_hex(text).map(ShardId)
    }
}

impl FromStr for MigrationId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<MigrationId, IdError> {
        parse_hex(text).map(MigrationId)
    }
}

impl FromStr for Incarnation {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Incarnation, IdError> {
        let is_canonical = text == "0" || !text.starts_with('0');
        let is_hex = text.bytes().all(|byte| digit(byte).is_some());
        if !is_canonical || !is_hex {
            return Err(IdError::Incarnation);
        }
        u64::from_str_radix(text, 16).map(Incarnation).map_err(|_| IdError::Incarnation)
    }
}

impl FromStr for NodeRun {
    type Err = IdError;

    fn from_str(text: &str) -> Result<NodeRun, IdError> {
        let (node, incarnation) = text.split_once('@').ok_or(IdError::NodeRun)?;
        Ok(NodeRun { node: node.parse()?, incarnation: incarnation.parse()? })
    }
}

impl FromStr for ChangeId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<ChangeId, IdError> {
        let (writer, digits) = text.rsplit_once(':').ok_or(IdError::Change)?;
        let number: u64 = digits.parse().map_err(|_| IdError::Change)?;
        if number.to_string() != digits {
            return Err(IdError::Change);
        }
        Ok(ChangeId { writer: writer.parse()?, number })
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for MigrationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for NodeRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<NodeId> for String {
    fn from(id: NodeId) -> String {
        id.to_string()
    }
}

impl From<ShardId> for String {
    fn from(id: ShardId) -> String {
        id.to_string()
    }
}

impl From<MigrationId> for String {
    fn from(id: MigrationId) -> String {
        id.to_string()
    }
}

impl From<NodeRun> for String {
    fn from(run: NodeRun) -> String {
        run.to_string()
    }
}

impl From<ChangeId> for String {
    fn from(change: ChangeId) -> String {
        change.to_string()
    }
}

impl TryFrom<String> for NodeId {
    type Error = IdError;

    fn try_from(text: String) -> Result<NodeId, IdError> {
        text.parse()
    }
}

impl TryFrom<String> for ShardId {
    type Error = IdError;

    fn try_from(text: String) -> Result<ShardId, IdError> {
        text.parse()
    }
}

impl TryFrom<String> for MigrationId {
    type Error = IdError;

    fn try_from(text: String) -> Result<MigrationId, IdError> {
        text.parse()
    }
}

impl TryFrom<String> for NodeRun {
    type Error = IdError;

    fn try_from(text: String) -> Result<NodeRun, IdError> {
        text.parse()
    }
}

impl TryFrom<String> for ChangeId {
    type Error = IdError;

    fn try_from(text: String) -> Result<ChangeId, IdError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "bf6f07d819f95559636640ce7ecdf9d336ad8b96";

    #[test]
    fn an_id_is_forty_digits_in_lower_case() {
        assert_eq!(ID.parse::<NodeId>().unwrap().to_string(), ID);
        for wrong in ["", "abc", &ID.to_uppercase(), &ID[1..], &format!("{ID}0"), &"g".repeat(40)] {
            assert_eq!(wrong.parse::<NodeId>(), Err(IdError::Hex40), "{wrong}");
        }
        assert_eq!("é".repeat(20).parse::<ShardId>(), Err(IdError::Hex40));
    }

    #[test]
    fn runs_and_changes_are_read_as_they_are_written() {
        let change: ChangeId = format!("{ID}@c3:17").parse().unwrap();
        assert_eq!((change.writer.incarnation, change.number), (Incarnation(0xc3), 17));
        assert_eq!(change.to_string(), format!("{ID}@c3:17"));
        for wrong in
            [":1", "@c3:1", &format!("{ID}:1"), &format!("{ID}@c3:+1"), &format!("{ID}@c3")]
        {
            assert!(wrong.parse::<ChangeId>().is_err(), "{wrong}");
        }
        for wrong in ["", "00", "0c3", "C3", "+3", "11111111111111111"] {
            assert_eq!(wrong.parse::<Incarnation>(), Err(IdError::Incarnation), "{wrong}");
        }
    }

    #[test]
    fn a_node_founds_a_different_shard_in_each_epoch() {
        let node: NodeId = ID.parse().unwrap();
        let shards: std::collections::BTreeSet<ShardId> =
            (0..1000).map(|epoch| ShardId::founded(node, Epoch(epoch))).collect();
        assert_eq!(shards.len(), 1000);
    }
}
