//! The entries of the slow log.

use brisk_resp::Value;

/// The number of entries to request, as text for SLOWLOG GET.
pub(crate) const ENTRIES: &str = "128";

/// An entry of the slow log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlowEntry {
    /// Newer entries have higher numbers.
    pub(crate) id: i64,
    pub(crate) unix_seconds: i64,
    pub(crate) us: u64,
    pub(crate) words: Vec<Vec<u8>>,
    /// The address and the name of the client; empty if the server does not report them.
    pub(crate) address: String,
    pub(crate) name: String,
}

impl SlowEntry {
    /// Parses an entry of the reply to SLOWLOG GET; `None` if it is malformed. O(bytes).
    pub(crate) fn parse(entry: &Value) -> Option<SlowEntry> {
        let fields = entry.as_slice()?;
        let integer = |at: usize| fields.get(at).and_then(Value::as_integer);
        let words = fields.get(3)?.as_slice()?.iter().filter_map(Value::as_bytes);
        let text = |at: usize| {
            let bytes = fields.get(at).and_then(Value::as_bytes);
            String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
        };
        Some(SlowEntry {
            id: integer(0)?,
            unix_seconds: integer(1)?,
            us: u64::try_from(integer(2)?).ok()?,
            words: words.map(<[u8]>::to_vec).collect(),
            address: text(4),
            name: text(5),
        })
    }
}
