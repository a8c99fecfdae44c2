//! Moves a slot with its keys from one node to another, and plans which slots to move.

use super::node::Node;
use super::view::View;
use super::{Done, Task, messages};
use crate::session::AlreadyReported;
use std::io;

/// Maximum number of rounds for one slot. If clients add keys as fast as they are moved, the move is given up.
const ROUNDS_MAX: usize = 1_000_000;

/// The error of a node that is not a master.
const NO_MASTER: &str = "SETSLOT only with masters";

/// How a move is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verbosity {
    /// Prints a line for each slot, and a dot for each key.
    Everything,
    /// Prints nothing.
    Nothing,
}

/// The options of a move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) verbosity: Verbosity,
    /// The slot is already open on both nodes.
    pub(super) is_open: bool,
    /// Only keys are moved. The owner of the slot does not change.
    pub(super) is_keys_only: bool,
    /// Existing keys on the target are overwritten.
    pub(super) replaces: bool,
}

impl Move {
    pub(super) fn plain(task: &Task<'_>, verbosity: Verbosity) -> Move {
        let replaces = task.options.replace;
        Move { verbosity, is_open: false, is_keys_only: false, replaces }
    }
}

/// One slot of a plan, and the node that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) slot: u16,
    pub(super) from: usize,
}

/// Moves a slot.
///
/// # Errors
/// If a node replies with an error. A started move stays open, for `fix` to complete.
pub(super) fn move_slot(
    view: &mut View,
    task: &Task<'_>,
    planned: Planned,
    to: usize,
    how: Move,
) -> Result<(), String> {
    let Planned { slot, from } = planned;
    let (from_id, to_id) = (view.nodes[from].is.id.clone(), view.nodes[to].is.id.clone());
    if how.verbosity == Verbosity::Everything {
        let (source, target) = (view.nodes[from].place(), view.nodes[to].place());
        messages::say(&format!("Moving slot {slot} from {source} to {target}: "));
    }
    if !how.is_open {
        set_slot(&mut view.nodes[to], slot, &["IMPORTING", &from_id])?;
        set_slot(&mut view.nodes[from], slot, &["MIGRATING", &to_id])?;
    }
    move_keys(view, task, planned, to, how)?;
    if how.verbosity == Verbosity::Everything {
        messages::say("\n");
    }
    if !how.is_keys_only {
        // Assign the slot on the new owner first, so that the slot always has an owner.
        set_slot(&mut view.nodes[to], slot, &["NODE", &to_id])?;
        match set_slot(&mut view.nodes[from], slot, &["NODE", &to_id]) {
            // A node that has lost its last slot may already be a replica of the new owner.
            Err(text) if !text.contains(NO_MASTER) => return Err(text),
            _ => {}
        }
        for other in view.masters() {
            if other != to && other != from {
                // A node that misses this message learns of the change from other nodes.
                let _ = set_slot(&mut view.nodes[other], slot, &["NODE", &to_id]);
            }
        }
        view.nodes[from].is.slots.remove(&slot);
        view.nodes[to].is.slots.insert(slot);
    }
    Ok(())
}

/// CLUSTER SETSLOT
pub(super) fn set_slot(node: &mut Node, slot: u16, state: &[&str]) -> Result<(), String> {
    let slot = slot.to_string();
    let words: Vec<&str> =
        ["CLUSTER", "SETSLOT", &slot].into_iter().chain(state.iter().copied()).collect();
    node.request(&words).map(drop)
}

fn move_keys(
    view: &mut View,
    task: &Task<'_>,
    planned: Planned,
    to: usize,
    how: Move,
) -> Result<(), String> {
    let (host, port) = (address_of(&view.nodes[to].is.host), view.nodes[to].is.port.to_string());
    let source = &mut view.nodes[planned.from];
    let slot = planned.slot.to_string();
    let batch = task.options.pipeline.to_string();
    for _ in 0..ROUNDS_MAX {
        let reply = source.request(&["CLUSTER", "GETKEYSINSLOT", &slot, &batch])?;
        let keys: Vec<Vec<u8>> = reply
            .as_slice()
            .unwrap_or_default()
            .iter()
            .filter_map(|key| key.as_bytes().map(<[u8]>::to_vec))
            .collect();
        if keys.is_empty() {
            return Ok(());
        }
        let request = |replaces: bool| {
            let extra: &[&[u8]] = if replaces { &[b"REPLACE"] } else { &[] };
            migrate(task, &host, &port, extra, &keys)
        };
        match source.request(&request(how.replaces)) {
            Ok(_) => {}
            Err(text) if text.contains("BUSYKEY") => {
                messages::say("\n*** Target key exists\n");
                if !how.is_keys_only {
                    return Err(text);
                }
                messages::say("*** Replacing target keys...\n");
                source.request(&request(true))?;
            }
            Err(text) => return Err(text),
        }
        if how.verbosity == Verbosity::Everything {
            messages::say(&".".repeat(keys.len()));
        }
    }
    Err(format!("keys are added to slot {slot} as fast as they are moved"))
}

/// MIGRATE, with the password that the nodes share.
pub(super) fn migrate(
    task: &Task<'_>,
    host: &str,
    port: &str,
    extra: &[&[u8]],
    keys: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let timeout = task.options.timeout_ms.to_string();
    let head: [&[u8]; 6] =
        [b"MIGRATE", host.as_bytes(), port.as_bytes(), b"", b"0", timeout.as_bytes()];
    let mut words: Vec<Vec<u8>> = head.iter().chain(extra).map(|word| word.to_vec()).collect();
    let options = &task.session.options;
    match (&options.user, &options.password) {
        (Some(user), Some(password)) => {
            words.extend([b"AUTH2".to_vec(), user.clone(), password.clone()]);
        }
        (None, Some(password)) => words.extend([b"AUTH".to_vec(), password.clone()]),
        (_, None) => {}
    }
    words.push(b"KEYS".to_vec());
    words.extend_from_slice(keys);
    words
}

/// The numeric address of a host, because nodes do not resolve names.
pub(super) fn address_of(host: &str) -> String {
    use std::net::ToSocketAddrs;
    let found: io::Result<Vec<_>> = (host, 0).to_socket_addrs().map(Iterator::collect);
    let mut found = found.unwrap_or_default();
    found.sort_by_key(std::net::SocketAddr::is_ipv6);
    found.first().map_or_else(|| host.to_owned(), |address| address.ip().to_string())
}

/// Plans to take this number of slots from the sources, in proportion to their sizes, starting with the largest source.
pub(super) fn plan(view: &View, sources: &[usize], wanted: usize) -> Vec<Planned> {
    let count = |at: usize| view.nodes[at].is.slots.len();
    let mut sources = sources.to_vec();
    sources.sort_by_key(|&at| std::cmp::Reverse(count(at)));
    let total: usize = sources.iter().map(|&at| count(at)).sum();
    let mut plan = Vec::new();
    for (nth, &from) in sources.iter().enumerate() {
        let share = wanted as f64 / total.max(1) as f64 * count(from) as f64;
        let share = if nth == 0 { share.ceil() } else { share.floor() } as usize;
        let slots = view.nodes[from].is.slots.iter().take(share);
        let room = wanted.saturating_sub(plan.len());
        plan.extend(slots.take(room).map(|&slot| Planned { slot, from }));
    }
    plan
}

/// Reports why a move has failed.
pub(super) fn failed(text: &str) -> Done {
    messages::error(&format!("clusterManagerMoveSlot failed: {text}\n"));
    Err(AlreadyReported)
}
