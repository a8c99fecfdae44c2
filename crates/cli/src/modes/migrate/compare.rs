//! Compares the data of both servers: with REPLICATION COMPARE if both are Brisk; otherwise the numbers of keys, and
//! the types, values and expiry times of a sample.

use super::peer::{Peer, text};
use super::say;
use crate::amount::{counted, grouped, readable};
use brisk_resp::Value;
use std::time::Duration;

/// Number of keys in the sample of a database.
const SAMPLE: usize = 200;
/// Number of attempts. While clients write, a difference may be temporary.
const ATTEMPTS: usize = 50;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);
/// Values with more elements are compared only by their number.
const ELEMENTS_MAX: i64 = 10_000;

/// Compares the data.
///
/// # Errors
/// If the data differs, or a server does not reply.
pub(super) fn compare(old: &mut Peer, new: &mut Peer) -> Result<(), String> {
    if old.is_brisk() && new.is_brisk() {
        return by_digest(old, new);
    }
    if let Some(differing) = differing_counts(old, new)? {
        // While clients write, the numbers may never be equal at the same time.
        say(&format!(
            "warning: the numbers of keys differ, because of writes or expired keys: {differing}\n"
        ));
    }
    let mut compared = 0;
    old.reload()?;
    for (database, _) in old.databases() {
        let select = ["SELECT".to_owned(), database.to_string()];
        old.request(&select)?;
        new.request(&select)?;
        for key in sample(old)? {
            if !key_is_equal(old, new, &key)? {
                return Err(format!(
                    "the key {} of database {database} differs. {} stays a replica; to stop the migration: \
                     brisk-cli -u {} replicaof no one",
                    readable(&key),
                    new.place,
                    new.uri
                ));
            }
            compared += 1;
        }
    }
    say(&format!(
        "Compared the number of keys ({}) and a sample of {}: equal.\n",
        grouped(old.keys()),
        counted(compared, "value")
    ));
    Ok(())
}

fn by_digest(old: &mut Peer, new: &Peer) -> Result<(), String> {
    let reply = old.request(&["REPLICATION", "COMPARE"])?;
    for replica in reply.as_slice().unwrap_or_default() {
        let fields = crate::docs::pairs(replica);
        let field = |name: &str| {
            let found = fields.iter().find(|(key, _)| key.as_bytes() == Some(name.as_bytes()));
            found.map(|(_, value)| text(value)).unwrap_or_default()
        };
        let (place, state) = (field("replica"), field("state"));
        if state != "equal" {
            return Err(format!(
                "REPLICATION COMPARE reports {state} for {place}. To repair it: brisk-cli -u {} replication compare heal",
                old.uri
            ));
        }
    }
    say(&format!("Compared the digests of {} with REPLICATION COMPARE: equal.\n", new.place));
    Ok(())
}

/// Waits until both servers have the same number of keys in each database, while writes are paused.
///
/// # Errors
/// If the numbers stay different, or a server does not reply.
pub(super) fn counts(old: &mut Peer, new: &mut Peer) -> Result<(), String> {
    let differing = differing_counts(old, new)?;
    differing.map_or(Ok(()), |differing| Err(format!("the numbers of keys differ: {differing}")))
}

/// Waits a limited time until both servers have the same number of keys in each database. Returns the numbers if they
/// stay different.
fn differing_counts(old: &mut Peer, new: &mut Peer) -> Result<Option<String>, String> {
    let mut differing = String::new();
    for _ in 0..ATTEMPTS {
        old.reload()?;
        new.reload()?;
        if old.databases() == new.databases() {
            return Ok(None);
        }
        differing = format!(
            "{} has {}, {} has {}",
            old.place,
            counted(old.keys(), "key"),
            new.place,
            counted(new.keys(), "key")
        );
        new.rest(BETWEEN_ATTEMPTS)?;
    }
    Ok(Some(differing))
}

/// Some keys of the selected database.
fn sample(peer: &mut Peer) -> Result<Vec<Vec<u8>>, String> {
    let (mut keys, mut cursor) = (Vec::new(), "0".to_owned());
    while keys.len() < SAMPLE {
        let reply = peer.request(&["SCAN", &cursor, "COUNT", "100"])?;
        let Some([next, found]) = reply.as_slice() else {
            return Err("SCAN has an unexpected reply".to_owned());
        };
        let found = found.as_slice().unwrap_or_default().iter().filter_map(Value::as_bytes);
        keys.extend(found.map(<[u8]>::to_vec));
        cursor = text(next);
        if cursor == "0" {
            break;
        }
    }
    keys.truncate(SAMPLE);
    Ok(keys)
}

/// Compares a key until it is equal on both servers.
fn key_is_equal(old: &mut Peer, new: &mut Peer, key: &[u8]) -> Result<bool, String> {
    for _ in 0..ATTEMPTS {
        if state(old, key)? == state(new, key)? {
            return Ok(true);
        }
        new.rest(BETWEEN_ATTEMPTS)?;
    }
    Ok(false)
}

/// The type, the expiry time, and the value of a key. Unordered values are sorted.
fn state(peer: &mut Peer, key: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let kind = text(&peer.request(&[b"TYPE", key])?);
    // Servers before 7.0 do not report the absolute time.
    let expiry = peer.request(&[b"PEXPIRETIME", key]).ok().and_then(|reply| reply.as_integer());
    let mut state = vec![kind.clone().into_bytes(), format!("{expiry:?}").into_bytes()];
    let (count, read): (&str, &[&str]) = match kind.as_str() {
        "string" => ("STRLEN", &["GET"]),
        "list" => ("LLEN", &["LRANGE", "0", "-1"]),
        "set" => ("SCARD", &["SMEMBERS"]),
        "hash" => ("HLEN", &["HGETALL"]),
        "zset" => ("ZCARD", &["ZRANGE", "0", "-1", "WITHSCORES"]),
        "stream" => ("XLEN", &["XRANGE", "-", "+"]),
        _ => return Ok(state),
    };
    let count = peer.request(&[count.as_bytes(), key])?.as_integer().unwrap_or(0);
    state.push(count.to_string().into_bytes());
    if count > ELEMENTS_MAX && kind != "string" {
        return Ok(state);
    }
    let mut words: Vec<&[u8]> = vec![read[0].as_bytes(), key];
    words.extend(read[1..].iter().map(|word| word.as_bytes()));
    let reply = peer.request(&words)?;
    let mut parts = Vec::new();
    match kind.as_str() {
        "hash" => {
            let pairs = crate::docs::pairs(&reply).into_iter();
            parts.extend(pairs.map(|(field, value)| format!("{field:?} {value:?}").into_bytes()));
        }
        _ => match reply.as_slice() {
            Some(elements) => {
                parts.extend(elements.iter().map(|it| format!("{it:?}").into_bytes()))
            }
            None => parts.push(reply.as_bytes().unwrap_or_default().to_vec()),
        },
    }
    if matches!(kind.as_str(), "hash" | "set") {
        parts.sort_unstable();
    }
    state.extend(parts);
    Ok(state)
}
