//! The reasons why a migration would fail, and warnings about differences between the servers. Nothing is changed.

use super::peer::Peer;
use crate::amount::{bytes, counted};
use std::net::IpAddr;

/// Checks both servers. Returns warnings.
///
/// # Errors
/// The reason why the migration would fail, and what to do.
pub(super) fn check(old: &mut Peer, new: &mut Peer) -> Result<Vec<String>, String> {
    both(old, new)?;
    if old.is_replica() {
        let (host, port) = (old.info.get("master_host"), old.info.get("master_port"));
        let primary = format!("{}:{}", host.unwrap_or("?"), port.unwrap_or("?"));
        return Err(format!("{} is a replica. Migrate from its primary: {primary}", old.place));
    }
    if new.is_replica() && !new.is_replica_of(old) {
        return Err(format!(
            "{} is a replica of another server. To promote it: brisk-cli -u {} replicaof no one",
            new.place, new.uri
        ));
    }
    if !new.is_replica() && new.keys() > 0 {
        return Err(format!(
            "{} has {}, which the copy would replace. If they are not needed: brisk-cli -u {} flushall",
            new.place,
            counted(new.keys(), "key"),
            new.uri
        ));
    }
    memory(old, new)?;
    databases(old, new)?;
    tls(old, new)?;
    Ok(warnings(old, new))
}

/// Checks whether the old server can become a replica of the new one.
///
/// # Errors
/// The reason why it cannot, and what to do.
pub(super) fn check_way_back(old: &mut Peer, new: &mut Peer) -> Result<(), String> {
    both(old, new)?;
    if new.is_replica() {
        return Err(format!("{} is not the primary. Switch over first", new.place));
    }
    if old.is_replica() && !old.is_replica_of(new) {
        return Err(format!("{} is a replica of another server", old.place));
    }
    tls(new, old)?;
    match (rdb_version(old)?, rdb_version(new)?) {
        (Some(reads), Some(writes)) if reads < writes => Err(format!(
            "{} cannot read the data of {}: RDB version {reads} instead of {writes}. Nothing was changed",
            old.place, new.place
        )),
        _ => Ok(()),
    }
}

fn both(old: &Peer, new: &Peer) -> Result<(), String> {
    if old.info.get("run_id") == new.info.get("run_id") {
        return Err("both addresses belong to the same server".to_owned());
    }
    for peer in [old, new] {
        if peer.info.is("cluster_enabled", "1") {
            return Err(format!(
                "{} is in cluster mode. Copy the data of a cluster with --cluster import",
                peer.place
            ));
        }
        if peer.info.is("loading", "1") && !peer.is_replica() {
            return Err(format!("{} is loading its data. Try again later", peer.place));
        }
    }
    if new.is_brisk() && old.info.with_prefix("module").any(|(_, value)| value.starts_with("name="))
    {
        return Err(format!("{} uses modules, which {} does not support", old.place, new.place));
    }
    if is_loopback(&old.options().host) != is_loopback(&new.options().host) {
        return Err("one address is local to this machine, and the other is not. Use addresses with which the servers can reach each other".to_owned());
    }
    Ok(())
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn memory(old: &Peer, new: &Peer) -> Result<(), String> {
    let (used, limit) = (old.number("used_memory"), new.number("maxmemory"));
    let shown = |count: u64| bytes(count as f64);
    // The overhead of an empty server is not copied.
    let data = used.saturating_sub(old.number("used_memory_startup"));
    if limit > 0 && data > limit {
        return Err(format!(
            "{} uses {}, but maxmemory of {} is {}. Raise it: brisk-cli -u {} config set maxmemory {}",
            old.place,
            shown(used),
            new.place,
            shown(limit),
            new.uri,
            used + used / 4
        ));
    }
    let total = new.number("total_system_memory");
    if total > 0 && data + new.number("used_memory") > total {
        return Err(format!(
            "{} uses {}, but the machine of {} has {}",
            old.place,
            shown(used),
            new.place,
            shown(total)
        ));
    }
    Ok(())
}

fn databases(old: &Peer, new: &mut Peer) -> Result<(), String> {
    let Some(highest) = old.databases().iter().map(|(number, _)| *number).max() else {
        return Ok(());
    };
    // A user without access to CONFIG may still migrate.
    let Some(count) = new.config("databases").ok().and_then(|it| it.parse::<u32>().ok()) else {
        return Ok(());
    };
    if highest >= count {
        return Err(format!(
            "{} has keys in database {highest}, but {} has {count} databases. Restart it with --databases {}",
            old.place,
            new.place,
            highest + 1
        ));
    }
    Ok(())
}

/// A replica uses TLS only if `tls-replication` is set.
fn tls(primary: &Peer, replica: &mut Peer) -> Result<(), String> {
    let uses_tls = replica.config("tls-replication").unwrap_or_default() == "yes";
    match (primary.options().tls, uses_tls) {
        (true, false) => Err(format!(
            "{} uses TLS, so {} needs tls-replication yes and tls-ca-cert-file: brisk-cli -u {} config set tls-replication yes",
            primary.place, replica.place, replica.uri
        )),
        (false, true) => Err(format!(
            "{} does not use TLS, so {} needs tls-replication no: brisk-cli -u {} config set tls-replication no",
            primary.place, replica.place, replica.uri
        )),
        _ => Ok(()),
    }
}

fn warnings(old: &Peer, new: &Peer) -> Vec<String> {
    let mut warnings = Vec::new();
    let version = |peer: &Peer| -> Vec<u32> {
        let text = peer.info.get("redis_version").unwrap_or_default();
        text.split('.').filter_map(|part| part.parse().ok()).take(2).collect()
    };
    if version(old) > version(new) {
        warnings.push(format!(
            "{} ({}) is newer than {} ({}), which may not know all of its commands and formats",
            old.place,
            old.version(),
            new.place,
            new.version()
        ));
    }
    let policy = |peer: &Peer| peer.info.get("maxmemory_policy").unwrap_or_default().to_owned();
    if policy(old) != policy(new) {
        warnings.push(format!(
            "maxmemory-policy is {} on the old server, but {} on the new one",
            policy(old),
            policy(new)
        ));
    }
    let (limit, other) = (old.number("maxmemory"), new.number("maxmemory"));
    if limit != other {
        let shown =
            |limit: u64| if limit == 0 { "not set".to_owned() } else { bytes(limit as f64) };
        warnings.push(format!(
            "maxmemory is {} on the old server, but {} on the new one",
            shown(limit),
            shown(other)
        ));
    }
    warnings
}

/// The RDB version that a server writes, by the end of a DUMP payload; `None` if it has no keys.
fn rdb_version(peer: &mut Peer) -> Result<Option<u16>, String> {
    let Some(&(database, _)) = peer.databases().first() else { return Ok(None) };
    peer.request(&["SELECT", &database.to_string()])?;
    let key = peer.request(&["RANDOMKEY"])?;
    let Some(key) = key.as_bytes() else { return Ok(None) };
    let payload = peer.request(&[b"DUMP", key])?;
    // The payload ends with two bytes of the version and eight bytes of a checksum.
    let version = payload.as_bytes().and_then(|payload| {
        let end = payload.len().checked_sub(10)?;
        Some(u16::from_le_bytes([payload[end], payload[end + 1]]))
    });
    Ok(version)
}
