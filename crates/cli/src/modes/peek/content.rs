//! Reads the elements of lists, sets, hashes, sorted sets and streams in steps, as rows of a table.

use super::PeekError;
use crate::amount::readable;
use crate::session::Session;
use brisk_resp::Value;
use std::time::Duration;

/// Number of elements that a request returns.
const STEP: usize = 500;
/// Maximum number of stream fields that become columns.
const FIELD_COLUMNS_MAX: usize = 12;

/// The elements of a key, which are read step by step.
pub(super) struct Elements<'a> {
    key: &'a [u8],
    kind: Kind,
    /// The cursor of a scan, or the ID of the last entry.
    cursor: Vec<u8>,
    read: usize,
    is_over: bool,
}

/// The types with elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    List,
    Set,
    Hash,
    SortedSet,
    Stream,
}

/// Some rows with their headings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) headings: Vec<String>,
    pub(super) are_numbers: Vec<bool>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Rows {
    fn new(columns: &[(&str, bool)], rows: Vec<Vec<String>>) -> Rows {
        let headings = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        Rows {
            headings,
            are_numbers: columns.iter().map(|(_, is_number)| *is_number).collect(),
            rows,
        }
    }
}

impl Kind {
    /// The kind of a type's name; `None` for strings and unknown types.
    pub(super) fn of(name: &str) -> Option<Kind> {
        Some(match name {
            "list" => Kind::List,
            "set" => Kind::Set,
            "hash" => Kind::Hash,
            "zset" => Kind::SortedSet,
            "stream" => Kind::Stream,
            _ => return None,
        })
    }

    /// The command for the number of elements, and the name of an element.
    pub(super) fn count(self) -> (&'static str, &'static str) {
        match self {
            Kind::List => ("LLEN", "element"),
            Kind::Set => ("SCARD", "member"),
            Kind::Hash => ("HLEN", "field"),
            Kind::SortedSet => ("ZCARD", "member"),
            Kind::Stream => ("XLEN", "entry"),
        }
    }
}

impl<'a> Elements<'a> {
    pub(super) fn new(key: &'a [u8], kind: Kind) -> Elements<'a> {
        let cursor = if kind == Kind::Stream { b"-".to_vec() } else { b"0".to_vec() };
        Elements { key, kind, cursor, read: 0, is_over: false }
    }

    /// The next rows, at most `limit` of them; `None` at the end.
    pub(super) fn next(
        &mut self,
        session: &mut Session,
        limit: usize,
    ) -> Result<Option<Rows>, PeekError> {
        if self.is_over || limit == 0 {
            return Ok(None);
        }
        let count = limit.min(STEP);
        let (first, last) = (self.read.to_string(), (self.read + count - 1).to_string());
        let (key, text_count) = (self.key, count.to_string());
        let request = |session: &mut Session, words: &[&[u8]]| super::request(session, words);
        let rows = match self.kind {
            Kind::List => {
                let words = [b"LRANGE", key, first.as_bytes(), last.as_bytes()];
                let reply = request(session, &words)?;
                list(elements(&reply), self.read)
            }
            Kind::SortedSet => {
                let words = [b"ZRANGE", key, first.as_bytes(), last.as_bytes(), b"WITHSCORES"];
                let reply = request(session, &words)?;
                sorted_set(elements(&reply))
            }
            Kind::Stream => {
                let words = [b"XRANGE", key, &self.cursor, b"+", b"COUNT", text_count.as_bytes()];
                let reply = request(session, &words)?;
                let entries = elements(&reply);
                if let Some(id) = entries.last().and_then(entry_id) {
                    self.cursor = [b"(", id].concat();
                }
                stream(entries)
            }
            Kind::Set | Kind::Hash => {
                let command: &[u8] = if self.kind == Kind::Set { b"SSCAN" } else { b"HSCAN" };
                let words = [command, key, &self.cursor, b"COUNT", text_count.as_bytes()];
                let reply = request(session, &words)?;
                let Some([cursor, found]) = reply.as_slice() else {
                    return Err(PeekError::shape());
                };
                self.cursor = cursor.as_bytes().unwrap_or(b"0").to_vec();
                self.is_over = self.cursor == b"0";
                let found = found.as_slice().unwrap_or_default();
                match self.kind {
                    Kind::Set => set(&found[..found.len().min(limit)]),
                    _ => {
                        let found = &found[..found.len().min(limit.saturating_mul(2))];
                        hash(found, field_ttls(session, key, found))
                    }
                }
            }
        };
        self.read += rows.rows.len();
        if !matches!(self.kind, Kind::Set | Kind::Hash) {
            self.is_over = rows.rows.len() < count;
        }
        Ok(Some(rows))
    }
}

fn elements(reply: &Value) -> &[Value] {
    reply.as_slice().unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        // A score in RESP3.
        Value::Double(double) => String::from_utf8_lossy(&double.text).into_owned(),
        value => readable(value.as_bytes().unwrap_or_default()),
    }
}

fn list(elements: &[Value], first: usize) -> Rows {
    let row = |(at, element): (usize, &Value)| vec![(first + at).to_string(), text(element)];
    Rows::new(
        &[("index", true), ("element", false)],
        elements.iter().enumerate().map(row).collect(),
    )
}

fn set(members: &[Value]) -> Rows {
    Rows::new(&[("member", false)], members.iter().map(|member| vec![text(member)]).collect())
}

fn sorted_set(elements: &[Value]) -> Rows {
    let rows = match elements.first() {
        // In RESP3, each member and its score are an array.
        Some(Value::Array(_)) => elements
            .iter()
            .filter_map(|pair| pair.as_slice())
            .filter_map(|pair| Some(vec![text(pair.get(1)?), text(pair.first()?)]))
            .collect(),
        _ => elements.chunks_exact(2).map(|pair| vec![text(&pair[1]), text(&pair[0])]).collect(),
    };
    Rows::new(&[("score", true), ("member", false)], rows)
}

/// The remaining TTL of each field; `None` if no field has one, or the server has no TTLs for fields.
fn field_ttls(session: &mut Session, key: &[u8], pairs: &[Value]) -> Option<Vec<i64>> {
    let fields: Vec<&[u8]> = pairs.chunks_exact(2).filter_map(|pair| pair[0].as_bytes()).collect();
    let count = fields.len().to_string();
    let words = [&[&b"HPTTL"[..], key, b"FIELDS", count.as_bytes()], &fields[..]].concat();
    let reply = session.request(&words).ok()?;
    let ttls: Vec<i64> = reply.as_slice()?.iter().filter_map(Value::as_integer).collect();
    (ttls.len() == fields.len() && ttls.iter().any(|ttl| *ttl >= 0)).then_some(ttls)
}

fn hash(pairs: &[Value], ttls: Option<Vec<i64>>) -> Rows {
    let rows = pairs.chunks_exact(2).map(|pair| vec![text(&pair[0]), text(&pair[1])]);
    let mut rows: Vec<Vec<String>> = rows.collect();
    let Some(ttls) = ttls else { return Rows::new(&[("field", false), ("value", false)], rows) };
    for (row, ttl) in rows.iter_mut().zip(ttls) {
        let ttl = u64::try_from(ttl).map(|ttl| crate::amount::duration(Duration::from_millis(ttl)));
        row.insert(1, ttl.unwrap_or_else(|_| "-".to_owned()));
    }
    Rows::new(&[("field", false), ("TTL", true), ("value", false)], rows)
}

fn entry_id(entry: &Value) -> Option<&[u8]> {
    entry.as_slice()?.first()?.as_bytes()
}

/// If all entries have the same fields, each field is a column.
fn stream(entries: &[Value]) -> Rows {
    let parts = |entry: &Value| -> Option<(String, Vec<(String, String)>)> {
        let id = String::from_utf8_lossy(entry_id(entry)?).into_owned();
        let fields = entry.as_slice()?.get(1)?.as_slice().unwrap_or_default();
        Some((id, fields.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()))
    };
    let entries: Vec<_> = entries.iter().filter_map(parts).collect();
    let names = |fields: &[(String, String)]| -> Vec<String> {
        fields.iter().map(|(name, _)| name.clone()).collect()
    };
    let first = entries.first().map(|(_, fields)| names(fields)).unwrap_or_default();
    let are_equal = entries.iter().all(|(_, fields)| names(fields) == first);
    if are_equal && first.len() <= FIELD_COLUMNS_MAX {
        let row = |(id, fields): &(String, Vec<(String, String)>)| {
            [id].into_iter().chain(fields.iter().map(|(_, value)| value)).cloned().collect()
        };
        let headings: Vec<String> = ["ID".to_owned()].into_iter().chain(first).collect();
        let are_numbers = vec![false; headings.len()];
        return Rows { headings, are_numbers, rows: entries.iter().map(row).collect() };
    }
    let row = |(id, fields): &(String, Vec<(String, String)>)| {
        let fields: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        vec![id.clone(), fields.join(" ")]
    };
    Rows::new(&[("ID", false), ("fields", false)], entries.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    fn entry(id: &str, fields: &[&str]) -> Value {
        Value::Array(vec![bulk(id), Value::Array(fields.iter().map(|it| bulk(it)).collect())])
    }

    #[test]
    fn equal_stream_fields_are_columns_and_others_a_list() {
        let rows =
            stream(&[entry("1-0", &["a", "1", "b", "2"]), entry("2-0", &["a", "3", "b", "4"])]);
        assert_eq!(rows.headings, ["ID", "a", "b"]);
        assert_eq!(rows.rows[1], ["2-0", "3", "4"]);
        let rows = stream(&[entry("1-0", &["a", "1"]), entry("2-0", &["b", "4"])]);
        assert_eq!(rows.rows, [["1-0", "a=1"], ["2-0", "b=4"]]);
    }

    #[test]
    fn members_and_scores_are_read_in_both_protocols() {
        let flat = sorted_set(&[bulk("m"), bulk("1.5")]);
        let pair = Value::Array(vec![bulk("m"), bulk("1.5")]);
        assert_eq!(
            (flat.rows.clone(), sorted_set(&[pair]).rows),
            (flat.rows, vec![vec!["1.5".to_owned(), "m".to_owned()]])
        );
    }
}
