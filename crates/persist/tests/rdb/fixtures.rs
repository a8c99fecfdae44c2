//! Files written by old and new servers load as their manifests say, or are rejected.

use crate::{digest, fixture_files};
use brisk_persist::LoadError;
use brisk_persist::rdb::value::{StreamId, StreamValue};
use brisk_persist::rdb::{Checksum, RdbEntry, RdbEvent, RdbReader, Value, dump};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

/// The content of a file.
#[derive(Default)]
struct Loaded {
    entries: BTreeMap<(u64, Vec<u8>), RdbEntry>,
    functions: Vec<String>,
    checksum: Option<Checksum>,
}

fn load(path: &Path) -> Result<Loaded, LoadError> {
    let mut reader = RdbReader::new(File::open(path)?)?;
    let mut loaded = Loaded::default();
    let mut db = 0;
    while let Some(event) = reader.next_event()? {
        match event {
            RdbEvent::SelectDb(number) => db = number,
            RdbEvent::Entry(entry) => {
                let old = loaded.entries.insert((db, entry.key.clone()), entry);
                assert!(old.is_none(), "no file has a key twice");
            }
            RdbEvent::Function(source) => {
                loaded.functions.push(String::from_utf8(source).unwrap());
            }
            RdbEvent::End(checksum) => loaded.checksum = Some(checksum),
            _ => {}
        }
    }
    assert_eq!(reader.position(), fs::metadata(path)?.len(), "all is read");
    Ok(loaded)
}

fn manifest(path: &Path) -> Json {
    let text = fs::read(path.with_extension("json")).expect("each file has a manifest");
    serde_json::from_slice(&text).expect("manifests are JSON")
}

/// Strings in manifests are bytes, encoded as Latin-1 characters.
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).expect("latin-1")).collect()
}

fn latin1(bytes: &[u8]) -> Json {
    bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into()
}

#[test]
fn every_file_loads_or_is_rejected_as_its_manifest_says() {
    let files = fixture_files();
    assert!(files.len() > 50);
    let mut rejected = 0;
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let manifest = manifest(&path);
        let loaded = load(&path);
        if manifest["loads"] == false {
            assert!(loaded.is_err(), "{name} must be rejected");
            rejected += 1;
            continue;
        }
        let loaded = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
        compare(&name, &manifest, loaded);
    }
    assert_eq!(rejected, 3);
}

fn compare(name: &str, manifest: &Json, mut loaded: Loaded) {
    let version = manifest["rdb_version"].as_u64().unwrap();
    let expected = match name {
        _ if name.contains("nochecksum") || version < 5 => Checksum::None,
        _ => Checksum::Verified,
    };
    assert_eq!(loaded.checksum, Some(expected), "{name}");
    for (db, keys) in manifest["dbs"].as_object().unwrap() {
        for (key, described) in keys.as_object().unwrap() {
            let what = format!("{name}: db {db}, key {key}");
            let entry = loaded
                .entries
                .remove(&(db.parse().unwrap(), bytes(key)))
                .unwrap_or_else(|| panic!("{what} is missing"));
            compare_entry(&what, described, &entry);
        }
    }
    for (db, keys) in manifest["expired_keys"].as_object().into_iter().flatten() {
        for (key, expire_time) in keys.as_object().unwrap() {
            let removed = loaded.entries.remove(&(db.parse().unwrap(), bytes(key))).unwrap();
            assert_eq!(removed.metadata.expire_at_ms, expire_time.as_i64());
        }
    }
    // The remaining keys had expired when the manifest was made.
    let made_at = manifest["made_at_ms"].as_i64().unwrap_or(0);
    for ((db, key), entry) in loaded.entries {
        let expired = entry.metadata.expire_at_ms.is_some_and(|expire_time| expire_time < made_at);
        assert!(expired, "{name}: db {db} should not have {}", latin1(&key));
    }
    let mut functions: Vec<&str> = manifest["functions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|library| library["library_code"].as_str().unwrap())
        .collect();
    loaded.functions.sort();
    functions.sort_unstable();
    assert_eq!(loaded.functions, functions, "{name}");
    if let Some(hex) = manifest["function_dump_hex"].as_str() {
        let libraries = dump::read_functions(&unhex(hex)).unwrap();
        assert_eq!(libraries.len(), functions.len(), "{name}");
    }
}

fn compare_entry(what: &str, described: &Json, entry: &RdbEntry) {
    let value = &entry.value;
    assert_eq!(value.type_name(), described["type"], "{what}");
    assert_eq!(entry.metadata.expire_at_ms, described["pexpiretime"].as_i64(), "{what}");
    if let Some(frequency) = described["freq"].as_u64() {
        // The manifest was made after loading: counters had decayed, and the inspection had
        // increased them.
        let noted = entry.metadata.frequency.map(u64::from);
        assert!(noted.is_some_and(|noted| noted.abs_diff(frequency) < 4), "{what}");
    }
    // The idle time in the manifest was taken later than that in the file, so only its presence is
    // compared.
    assert_eq!(entry.metadata.idle_seconds.is_some(), described["idle"].is_u64(), "{what}");
    let expires = entry.metadata.expire_at_ms.is_some();
    // Later servers format a fractional score differently in the digest. The elements are compared
    // instead.
    let fractional = matches!(value, Value::SortedSet(_))
        && digest::scored(value).iter().any(|(_, score)| score.fract() != 0.0);
    assert!(digest::of(value, expires) == described["digest"] || fractional, "{what}");
    let plain = digest::of(value, false);
    let again = dump::read(&dump::write(value)).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(digest::of(&again, false), plain, "{what}: written and read");
    if let Some(hex) = described["dump_hex"].as_str() {
        let dumped = dump::read(&unhex(hex)).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(digest::of(&dumped, false), plain, "{what}: DUMP payload");
    }
    for (field, expire_time) in described["field_pexpiretime"].as_object().into_iter().flatten() {
        let all = digest::fields(value);
        let (_, _, found) = all.iter().find(|(name, _, _)| *name == bytes(field)).unwrap();
        assert_eq!(*found, expire_time.as_u64(), "{what}: {field}");
    }
    match value {
        Value::Stream(stream) => {
            compare_stream(what, &described["value"], stream);
            let Value::Stream(again) = &again else { panic!("{what}") };
            compare_stream(what, &described["value"], again);
        }
        _ => compare_elements(what, &described["value"], value),
    }
}

/// Compares values that the manifest holds in full. For long values the digest is enough.
fn compare_elements(what: &str, expected: &Json, value: &Value) {
    let found: Vec<Json> = match (expected, value) {
        (Json::Array(_), Value::List(_) | Value::Set(_)) => {
            digest::elements(value).iter().map(|element| latin1(element)).collect()
        }
        (Json::Array(_), Value::Hash(_)) => digest::fields(value)
            .iter()
            .map(|(field, text, _)| Json::Array(vec![latin1(field), latin1(text)]))
            .collect(),
        (Json::Object(_), Value::SortedSet(_)) => {
            let count = digest::scored(value).len();
            assert_eq!(Some(count as u64), expected["count"].as_u64(), "{what}");
            return;
        }
        (Json::Array(pairs), Value::SortedSet(_)) => {
            let found = digest::scored(value);
            assert_eq!(found.len(), pairs.len(), "{what}");
            for pair in pairs {
                let member = bytes(pair[0].as_str().unwrap());
                let score: f64 = pair[1].as_str().unwrap().parse().unwrap();
                assert!(found.contains(&(member, score)), "{what}: {pair}");
            }
            return;
        }
        _ => return,
    };
    let sorted = |list: &[Json]| {
        let mut texts: Vec<String> = list.iter().map(Json::to_string).collect();
        if !matches!(value, Value::List(_)) {
            texts.sort();
        }
        texts
    };
    assert_eq!(sorted(&found), sorted(expected.as_array().unwrap()), "{what}");
}

fn id(id: StreamId) -> String {
    format!("{}-{}", id.ms, id.seq)
}

fn compare_stream(what: &str, expected: &Json, stream: &StreamValue) {
    let Some(len) = expected["length"].as_u64() else {
        return; // The value is too long for the manifest.
    };
    assert_eq!(stream.len, len, "{what}");
    assert_eq!(id(stream.last_id), expected["last-generated-id"], "{what}");
    assert_eq!(id(stream.max_deleted_id), expected["max-deleted-entry-id"], "{what}");
    assert_eq!(id(stream.first_id), expected["recorded-first-entry-id"], "{what}");
    assert_eq!(stream.entries_added, expected["entries-added"].as_u64().unwrap(), "{what}");
    let Some(groups) = expected["groups"].as_array() else { return };
    assert_eq!(stream.groups_len(), groups.len(), "{what}");
    for expected in groups {
        let name = bytes(expected["name"].as_str().unwrap());
        let group = stream.groups().find(|group| group.name == name).expect("a group is missing");
        assert_eq!(id(group.last_id), expected["last-delivered-id"], "{what}");
        assert_eq!(group.entries_read, expected["entries-read"].as_u64(), "{what}");
        let names: Vec<&[u8]> = group.consumer_names().collect();
        let pending: Vec<Json> = group
            .pending
            .iter()
            .map(|entry| {
                let owner = latin1(names[entry.consumer as usize]);
                let counts = [entry.delivered_ms.into(), entry.deliveries.into()];
                [Json::from(id(entry.id)), owner].into_iter().chain(counts).collect()
            })
            .collect();
        assert_eq!(Json::Array(pending), expected["pending"], "{what}");
        let consumers = expected["consumers"].as_array().unwrap();
        assert_eq!(names.len(), consumers.len(), "{what}");
        for expected in consumers {
            let name = bytes(expected["name"].as_str().unwrap());
            let place = names.iter().position(|other| *other == name).unwrap();
            let seen = expected["seen-time"].as_i64();
            assert_eq!(Some(group.consumers[place].seen_ms), seen, "{what}");
        }
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}
