//! `import`: moves the keys of a standalone server to the cluster nodes that own their slots.

use super::node::Node;
use super::slots::{address_of, migrate};
use super::view::View;
use super::{Done, Task, messages, split_place};
use crate::password;
use crate::quote::leading_number;
use crate::screen;
use crate::session::{AlreadyReported, Loudness, Session};
use brisk_resp::Value;

/// The COUNT of each SCAN call.
const COUNT: &str = "1000";

pub(super) fn run(task: &Task<'_>) -> Done {
    let Some(from) = &task.options.from else {
        screen::warn("[ERR] Option '--cluster-from' is required for subcommand 'import'.\n");
        return Err(AlreadyReported);
    };
    let Some((from_host, from_port)) = split_place(from) else {
        screen::warn(
            "[ERR] Invalid --cluster-from host. You need to pass a valid address (ie. 120.0.0.1:7000).\n",
        );
        return Err(AlreadyReported);
    };
    let from_port = leading_number(from_port.as_bytes());
    let (host, port) = task.entry()?;
    messages::step(&format!(
        ">>> Importing data from {from_host}:{from_port} to cluster {host}:{port}\n"
    ));
    let mut view = View::load(&host, port, task.session)?;
    if !view.check(task, false).is_well() {
        return Err(AlreadyReported);
    }
    let mut source = source(task, &from_host, from_port)?;
    let info = request(&mut source, &["INFO", "cluster"])?;
    let info = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
    if info.contains("cluster_enabled:1") {
        return messages::fail("[ERR] The source node should not be a cluster node.\n");
    }
    let size = request(&mut source, &["DBSIZE"])?.as_integer().unwrap_or(0);
    messages::warning(&format!("*** Importing {size} keys from DB 0\n"));
    let mut extra: Vec<&[u8]> = Vec::new();
    if task.options.copy {
        extra.push(b"COPY");
    }
    if task.options.replace {
        extra.push(b"REPLACE");
    }
    let mut failed = false;
    let mut cursor = "0".to_owned();
    loop {
        let reply = request(&mut source, &["SCAN", &cursor, "COUNT", COUNT])?;
        let Some([next, keys]) = reply.as_slice() else {
            return messages::fail("Invalid element count from SCAN!\n");
        };
        cursor = String::from_utf8_lossy(next.as_bytes().unwrap_or(b"0")).into_owned();
        for key in keys.as_slice().unwrap_or_default().iter().filter_map(Value::as_bytes) {
            failed |= !import(&mut view, &mut source, task, key, &extra)?;
        }
        if cursor == "0" {
            return if failed { Err(AlreadyReported) } else { Ok(()) };
        }
    }
}

/// Moves a key. Returns whether this succeeded.
fn import(
    view: &mut View,
    source: &mut Session,
    task: &Task<'_>,
    key: &[u8],
    extra: &[&[u8]],
) -> Result<bool, AlreadyReported> {
    let slot = slot_of(&mut view.nodes[0], key)?;
    let owner = view.masters().into_iter().find(|&at| view.nodes[at].is.slots.contains(&slot));
    let Some(owner) = owner else {
        return messages::fail(&format!("[ERR] Slot {slot} has no owner\n"));
    };
    let target = &view.nodes[owner];
    let shown = String::from_utf8_lossy(key);
    messages::say(&format!("Migrating {shown} to {}: ", target.place()));
    let (host, port) = (address_of(&target.is.host), target.is.port.to_string());
    let request = migrate(task, &host, &port, extra, &[key.to_vec()]);
    let reply = source.request(&request).map_err(|error| {
        messages::error(&format!("{error}\n"));
        AlreadyReported
    })?;
    match reply.as_error() {
        Some(text) => {
            let (place, text) = (source.place(), String::from_utf8_lossy(text).into_owned());
            messages::error(&format!("Source {place} replied with error:\n{text}\n"));
            Ok(false)
        }
        None => {
            messages::say("OK\n");
            Ok(true)
        }
    }
}

fn slot_of(node: &mut Node, key: &[u8]) -> Result<u16, AlreadyReported> {
    let reply = node.demand(&[&b"CLUSTER"[..], b"KEYSLOT", key])?;
    reply.as_integer().and_then(|slot| u16::try_from(slot).ok()).ok_or(AlreadyReported)
}

fn source(task: &Task<'_>, host: &str, port: i64) -> Result<Session, AlreadyReported> {
    let mut options = task.session.options.clone();
    (options.host, options.port, options.socket) = (host.to_owned(), port, None);
    options.user = task.options.from_user.clone();
    options.password = match task.options.asks_from_password {
        true => password::prompt("Please input import source node password: "),
        false => task.options.from_password.clone(),
    };
    let mut session = Session::new(options).map_err(|text| {
        messages::error(&format!("{text}\n"));
        AlreadyReported
    })?;
    session.connect(Loudness::Loud)?;
    Ok(session)
}

fn request<W: AsRef<[u8]>>(source: &mut Session, words: &[W]) -> Result<Value, AlreadyReported> {
    let failed = |text: String| {
        messages::error(&format!("Source node replied with error:\n{text}\n"));
        AlreadyReported
    };
    let reply = source.request(words).map_err(|error| failed(error.to_string()))?;
    match reply.as_error() {
        Some(text) => Err(failed(String::from_utf8_lossy(text).into_owned())),
        None => Ok(reply),
    }
}
