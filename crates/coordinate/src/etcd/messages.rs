//! The requests and responses of etcd's JSON gateway.
//!
//! The gateway writes 64-bit numbers as strings and omits zeros, false and empty lists: a failed
//! transaction has no `succeeded`, a read of an absent key has no `kvs`.

use brisk_structures::base64;
use serde_json::{Value, json};

/// A comparison of a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Compare<'k> {
    /// The revision of the key's last change; 0 for an absent key.
    ModRevision(&'k str, u64),
    /// The revision of the key's creation; 0 for an absent key.
    CreateRevision(&'k str, u64),
    /// The lease that the key is attached to.
    Lease(&'k str, u64),
}

impl Compare<'_> {
    fn to_json(self) -> Value {
        let (key, target, field, number) = match self {
            Compare::ModRevision(key, number) => (key, "MOD", "mod_revision", number),
            Compare::CreateRevision(key, number) => (key, "CREATE", "create_revision", number),
            Compare::Lease(key, number) => (key, "LEASE", "lease", number),
        };
        let mut compare = json!({"key": encode(key), "target": target, "result": "EQUAL"});
        compare[field] = Value::String(number.to_string());
        compare
    }
}

/// An operation of a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation<'k> {
    Range(&'k str),
    /// All keys with a prefix, at most a number of them.
    RangePrefix(&'k str, usize),
    Put {
        key: &'k str,
        value: &'k [u8],
        lease: u64,
    },
    Delete(&'k str),
}

impl Operation<'_> {
    fn to_json(self) -> Value {
        match self {
            Operation::Range(key) => json!({"request_range": range(key)}),
            Operation::RangePrefix(prefix, max) => {
                json!({"request_range": range_prefix(prefix, max)})
            }
            Operation::Put { key, value, lease } => json!({"request_put": {
                "key": encode(key),
                "value": base64::encode(value),
                "lease": lease.to_string(),
            }}),
            Operation::Delete(key) => json!({"request_delete_range": {"key": encode(key)}}),
        }
    }
}

fn encode(key: &str) -> String {
    base64::encode(key.as_bytes())
}

/// `/v3/kv/range` of one key. Reads are linearizable unless the request says otherwise.
pub(super) fn range(key: &str) -> Value {
    json!({"key": encode(key)})
}

/// `/v3/kv/range` of all keys with a prefix.
pub(super) fn range_prefix(prefix: &str, max: usize) -> Value {
    json!({"key": encode(prefix), "range_end": encode(&end_of(prefix)), "limit": max.to_string()})
}

/// `/v3/kv/txn`.
pub(super) fn transaction(
    compare: &[Compare<'_>],
    success: &[Operation<'_>],
    failure: &[Operation<'_>],
) -> Value {
    let operations = |list: &[Operation<'_>]| list.iter().map(|o| o.to_json()).collect::<Vec<_>>();
    json!({
        "compare": compare.iter().map(|compare| compare.to_json()).collect::<Vec<_>>(),
        "success": operations(success),
        "failure": operations(failure),
    })
}

/// `/v3/watch` of all keys with a prefix.
pub(super) fn watch(prefix: &str, start_revision: u64) -> Value {
    json!({"create_request": {
        "key": encode(prefix),
        "range_end": encode(&end_of(prefix)),
        "start_revision": start_revision.to_string(),
        // Without this, one message contains up to 1,000 revisions.
        "fragment": true,
    }})
}

/// The first key after all keys with a prefix that ends with `/`.
fn end_of(prefix: &str) -> String {
    let stem = prefix.strip_suffix('/').unwrap_or(prefix);
    format!("{stem}0")
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyValue {
    pub(super) key: String,
    pub(super) value: Vec<u8>,
    pub(super) create_revision: u64,
    pub(super) mod_revision: u64,
    pub(super) lease: u64,
}

/// Why a response was not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum MessageError {
    #[error("it is not JSON")]
    Json,
    #[error("a field has an unexpected type")]
    Field,
    #[error("a key or value is not Base64")]
    Base64,
    #[error("a key is not UTF-8")]
    Key,
}

/// A number, which may be absent (0), a string or a JSON number.
pub(super) fn number(value: &Value, field: &str) -> Result<u64, MessageError> {
    match value.get(field) {
        None | Some(Value::Null) => Ok(0),
        Some(Value::String(digits)) => digits.parse().map_err(|_| MessageError::Field),
        Some(Value::Number(number)) => number.as_u64().ok_or(MessageError::Field),
        Some(_) => Err(MessageError::Field),
    }
}

/// A boolean, which may be absent (false).
pub(super) fn truth(value: &Value, field: &str) -> Result<bool, MessageError> {
    match value.get(field) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(truth)) => Ok(*truth),
        Some(_) => Err(MessageError::Field),
    }
}

/// A string, which may be absent (empty).
pub(super) fn text<'v>(value: &'v Value, field: &str) -> Result<&'v str, MessageError> {
    match value.get(field) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(MessageError::Field),
    }
}

/// A list, which may be absent (empty).
pub(super) fn list<'v>(value: &'v Value, field: &str) -> Result<&'v [Value], MessageError> {
    match value.get(field) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(MessageError::Field),
    }
}

/// The store's revision and the raft term in the header of a response.
pub(super) fn header(response: &Value) -> Result<(u64, u64), MessageError> {
    let header = response.get("header").unwrap_or(&Value::Null);
    Ok((number(header, "revision")?, number(header, "raft_term")?))
}

pub(super) fn key_value(value: &Value) -> Result<KeyValue, MessageError> {
    let bytes = |field| base64::decode(text(value, field)?).ok_or(MessageError::Base64);
    Ok(KeyValue {
        key: String::from_utf8(bytes("key")?).map_err(|_| MessageError::Key)?,
        value: bytes("value")?,
        create_revision: number(value, "create_revision")?,
        mod_revision: number(value, "mod_revision")?,
        lease: number(value, "lease")?,
    })
}

/// The keys in the response to a range request.
pub(super) fn key_values(response: &Value) -> Result<Vec<KeyValue>, MessageError> {
    list(response, "kvs")?.iter().map(key_value).collect()
}

/// The response to a transaction.
#[derive(Debug)]
pub(super) struct TransactionResponse {
    pub(super) revision: u64,
    pub(super) succeeded: bool,
    /// The keys that each operation has read.
    pub(super) ranges: Vec<Vec<KeyValue>>,
}

impl TransactionResponse {
    pub(super) fn parse(response: &Value) -> Result<TransactionResponse, MessageError> {
        let ranges = list(response, "responses")?
            .iter()
            .map(|range| range.get("response_range").map_or(Ok(Vec::new()), key_values));
        Ok(TransactionResponse {
            revision: header(response)?.0,
            succeeded: truth(response, "succeeded")?,
            ranges: ranges.collect::<Result<_, _>>()?,
        })
    }

    /// The first key that an operation has read.
    pub(super) fn first(&self, operation: usize) -> Option<&KeyValue> {
        self.ranges.get(operation)?.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_fields_are_zero_false_and_empty() {
        // The response of etcd 3.4.23 to a transaction whose comparison failed.
        let response = json!({
            "header": {"cluster_id": "16290230296511005681", "revision": "2", "raft_term": "2"},
            "responses": [{"response_range": {"header": {"revision": "2"}, "kvs": [{
                "key": "L3gvdG9wb2xvZ3k=", "create_revision": "2", "mod_revision": "2",
                "version": "1", "value": "ZG9jMQ=="}], "count": "1"}}],
        });
        let response = TransactionResponse::parse(&response).unwrap();
        assert!(!response.succeeded);
        assert_eq!(response.revision, 2);
        let expected = KeyValue {
            key: "/x/topology".to_owned(),
            value: b"doc1".to_vec(),
            create_revision: 2,
            mod_revision: 2,
            lease: 0,
        };
        assert_eq!(response.first(0), Some(&expected));
        let absent = json!({"header": {"revision": "1", "raft_term": "2"}});
        assert_eq!(key_values(&absent), Ok(Vec::new()));
    }

    #[test]
    fn a_prefix_ends_before_the_next_directory() {
        let range = range_prefix("/brisk/nodes/", 5);
        assert_eq!(range["range_end"], base64::encode(b"/brisk/nodes0"));
    }

    #[test]
    fn fields_of_a_wrong_type_are_errors() {
        let bad = json!({"n": [], "b": "true", "t": 1, "l": {}});
        assert_eq!(number(&bad, "n"), Err(MessageError::Field));
        assert_eq!(truth(&bad, "b"), Err(MessageError::Field));
        assert_eq!(text(&bad, "t"), Err(MessageError::Field));
        assert_eq!(list(&bad, "l"), Err(MessageError::Field));
        assert_eq!(key_value(&json!({"key": "?"})), Err(MessageError::Base64));
        assert_eq!(key_value(&json!({"key": "/w=="})), Err(MessageError::Key));
    }

    #[test]
    fn mutated_responses_are_values_or_errors() {
        let real = r#"{"header":{"revision":"2","raft_term":"2"},"succeeded":true,"kvs":[{"key":"L3g=",
            "create_revision":"2","mod_revision":"2","value":"ZG9jMQ=="}],"responses":[
            {"response_range":{"kvs":[{"key":"L3g=","lease":"7"}]}},{"response_put":{}}]}"#;
        let mut random = brisk_testkit::random::Random::new(11);
        let mut parsed = 0;
        for _ in 0..20_000 {
            let mut text = real.as_bytes().to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(text.len());
                match random.below(3) {
                    0 => text[at] = *random.pick(b"{}[]\":,0-9eEtfn\\ "),
                    1 => drop(text.remove(at)),
                    _ => text.insert(at, *random.pick(b"{}[]\":,0-9eEtfn\\ ")),
                }
            }
            let Ok(response) = serde_json::from_slice::<Value>(&text) else { continue };
            parsed += 1;
            drop((TransactionResponse::parse(&response), key_values(&response), header(&response)));
        }
        assert!(parsed > 1_000, "only {parsed} texts were JSON");
        // The parser limits the depth of nesting.
        let deep = "[".repeat(100_000);
        assert!(serde_json::from_str::<Value>(&deep).is_err());
    }
}
