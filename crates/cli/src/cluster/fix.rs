//! `fix`: completes interrupted slot moves, assigns owners to slots without one, and resolves slots that several nodes
//! claim.

use super::slots::{Move, Planned, Verbosity, failed, move_slot, set_slot};
use super::view::{View, checked};
use super::{Done, Task, messages};
use crate::session::AlreadyReported;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn run(task: &Task<'_>) -> Done {
    let (host, port) = task.entry()?;
    let (mut view, findings) = checked(&host, port, task)?;
    if findings.is_well() {
        return Ok(());
    }
    if view.unreachable_masters > 0 && !task.options.fix_with_unreachable_masters {
        return messages::fail(&format!(
            "*** Fixing with {} unreachable masters is dangerous: their slots would be given to the \
             nodes that can be reached, and what they hold be lost. If that is what you want, use \
             the --cluster-fix-with-unreachable-masters option.\n",
            view.unreachable_masters
        ));
    }
    for slot in findings.open {
        open_slot(&mut view, task, slot)?;
    }
    if !findings.uncovered.is_empty() {
        cover(&mut view, task, &findings.uncovered)?;
    }
    for (slot, owners) in findings.multiple {
        one_owner(&mut view, task, slot, &owners)?;
    }
    Ok(())
}

/// Completes the move of an open slot, and closes the slot on its future owner.
fn open_slot(view: &mut View, task: &Task<'_>, slot: u16) -> Done {
    messages::step(&format!(">>> Fixing open slot {slot}\n"));
    let masters = view.masters();
    let states = |view: &View, wanted: fn(&super::node::Line) -> &Vec<(u16, String)>| {
        let open = |at: &usize| wanted(&view.nodes[*at].is).iter().any(|(it, _)| *it == slot);
        masters.iter().copied().filter(open).collect::<Vec<usize>>()
    };
    let migrating = states(view, |line| &line.migrating);
    let mut importing = states(view, |line| &line.importing);
    let owner = masters.iter().copied().find(|&at| view.nodes[at].is.slots.contains(&slot));
    // Every master that has keys of the slot takes part, whatever state it reports.
    for &at in &masters {
        let listed = migrating.contains(&at) || importing.contains(&at) || owner == Some(at);
        if !listed && view.nodes[at].keys_in(slot) > 0 {
            let place = view.nodes[at].place();
            messages::warning(&format!("*** Found keys about slot {slot} in node {place}!\n"));
            importing.push(at);
        }
    }
    let list = |nodes: &[usize], view: &View| {
        let places: Vec<String> = nodes.iter().map(|&at| view.nodes[at].place()).collect();
        places.join(",")
    };
    messages::say(&format!("Set as migrating in: {}\n", list(&migrating, view)));
    messages::say(&format!("Set as importing in: {}\n", list(&importing, view)));
    let owner = match owner {
        Some(owner) => owner,
        None => choose_owner(view, slot, &masters)?,
    };
    match (migrating.as_slice(), importing.as_slice()) {
        // An interrupted move continues.
        (&[from], &[to]) if from == owner && to != owner => {
            let how = Move { is_open: true, ..Move::plain(task, Verbosity::Everything) };
            moved(view, task, Planned { slot, from }, to, how)
        }
        // The keys of the slot on other masters move to the owner, which then has all of them.
        (_, others) => {
            for &from in others.iter().filter(|&&at| at != owner) {
                let how = Move {
                    is_open: true,
                    is_keys_only: true,
                    ..Move::plain(task, Verbosity::Everything)
                };
                moved(view, task, Planned { slot, from }, owner, how)?;
                stable(view, slot, from)?;
            }
            for &at in migrating.iter().chain(std::iter::once(&owner)) {
                stable(view, slot, at)?;
            }
            Ok(())
        }
    }
}

fn moved(view: &mut View, task: &Task<'_>, planned: Planned, to: usize, how: Move) -> Done {
    move_slot(view, task, planned, to, how).or_else(|text| {
        messages::say("\n");
        failed(&text)
    })
}

fn stable(view: &mut View, slot: u16, at: usize) -> Done {
    let place = view.nodes[at].place();
    messages::say(&format!(">>> Setting {slot} as STABLE in {place}\n"));
    set_slot(&mut view.nodes[at], slot, &["STABLE"]).or_else(|text| failed(&text))
}

/// Makes the master with the most keys of a slot its owner.
fn choose_owner(view: &mut View, slot: u16, masters: &[usize]) -> Result<usize, AlreadyReported> {
    messages::warning(
        ">>> No single clear owner for the slot, selecting an owner by # of keys...\n",
    );
    let mut best: Option<(i64, usize)> = None;
    for &at in masters {
        let keys = view.nodes[at].keys_in(slot);
        if best.is_none_or(|(most, _)| keys > most) {
            best = Some((keys, at));
        }
    }
    let Some((_, owner)) = best else {
        return messages::fail("[ERR] Can't select a slot owner. Impossible to fix.\n");
    };
    let place = view.nodes[owner].place();
    messages::warning(&format!("*** Configuring {place} as the slot owner\n"));
    take(view, slot, owner)?;
    Ok(owner)
}

/// Makes a master the owner of a slot, whatever node owned it before.
fn take(view: &mut View, slot: u16, owner: usize) -> Done {
    let node = &mut view.nodes[owner];
    let id = node.is.id.clone();
    let text = slot.to_string();
    // It does not matter if the node did not have the slot, or a state of the slot.
    let _ = set_slot(node, slot, &["STABLE"]);
    let _ = node.request(&["CLUSTER", "DELSLOTS", &text]);
    node.demand(&["CLUSTER", "ADDSLOTS", &text])?;
    // A new epoch, because other nodes trust the highest one.
    let _ = node.request(&["CLUSTER", "BUMPEPOCH"]);
    node.is.slots.insert(slot);
    for other in view.masters() {
        if other != owner {
            let node = &mut view.nodes[other];
            let _ = node.request(&["CLUSTER", "DELSLOTS", &text]);
            let _ = set_slot(node, slot, &["NODE", &id]);
            node.is.slots.remove(&slot);
        }
    }
    Ok(())
}

/// Reports whether this number of nodes with keys of a slot belongs to a class.
type IsOne = fn(usize) -> bool;

/// Gives slots without an owner to the master that has their keys, or else to the master with the fewest slots.
fn cover(view: &mut View, task: &Task<'_>, slots: &BTreeSet<u16>) -> Done {
    messages::step(">>> Fixing slots coverage...\n");
    let masters = view.masters();
    let mut holders: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for &slot in slots {
        let mut with_keys = Vec::new();
        for &at in &masters {
            if view.nodes[at].keys_in(slot) > 0 {
                with_keys.push(at);
            }
        }
        holders.insert(slot, with_keys);
    }
    let kinds: [(IsOne, &str, &str); 3] = [
        (
            |count| count == 0,
            "The following uncovered slots have no keys across the cluster:",
            "Fix these slots by covering with a random node?",
        ),
        (
            |count| count == 1,
            "The following uncovered slots have keys in just one node:",
            "Fix these slots by covering with those nodes?",
        ),
        (
            |count| count > 1,
            "The following uncovered slots have keys in multiple nodes:",
            "Fix these slots by moving keys into a single node?",
        ),
    ];
    for (is_one, title, question) in kinds {
        let those: BTreeSet<u16> = holders
            .iter()
            .filter(|(_, holders)| is_one(holders.len()))
            .map(|(slot, _)| *slot)
            .collect();
        if those.is_empty() {
            continue;
        }
        messages::say(&format!("{title}\n{}\n", super::node::ranges(&those)));
        messages::confirm(question, task.options.yes)?;
        for slot in those {
            let owner = match holders[&slot].as_slice() {
                [] => masters.iter().copied().min_by_key(|&at| view.nodes[at].is.slots.len()),
                all => all.iter().copied().max_by_key(|&at| view.nodes[at].keys_in(slot)),
            };
            let owner = owner.ok_or(AlreadyReported)?;
            let place = view.nodes[owner].place();
            messages::step(&format!(">>> Covering slot {slot} with {place}\n"));
            take(view, slot, owner)?;
            gather(view, task, slot, owner, &holders[&slot])?;
        }
    }
    Ok(())
}

/// Moves the keys of a slot to its owner.
fn gather(view: &mut View, task: &Task<'_>, slot: u16, owner: usize, holders: &[usize]) -> Done {
    let owner_id = view.nodes[owner].is.id.clone();
    for &from in holders.iter().filter(|&&at| at != owner) {
        let from_id = view.nodes[from].is.id.clone();
        // Open the slot on both nodes, so that they allow its keys to be moved.
        let opened = set_slot(&mut view.nodes[from], slot, &["NODE", &from_id])
            .and_then(|()| set_slot(&mut view.nodes[from], slot, &["MIGRATING", &owner_id]))
            .and_then(|()| set_slot(&mut view.nodes[owner], slot, &["IMPORTING", &from_id]));
        if let Err(text) = opened {
            // Some servers allow MIGRATE for keys of any slot, so continue.
            messages::warning(&format!("*** {text}\n"));
        }
        let how =
            Move { is_open: true, is_keys_only: true, ..Move::plain(task, Verbosity::Everything) };
        moved(view, task, Planned { slot, from }, owner, how)?;
        let _ = set_slot(&mut view.nodes[from], slot, &["STABLE"]);
        let _ = set_slot(&mut view.nodes[from], slot, &["NODE", &owner_id]);
        let _ = set_slot(&mut view.nodes[owner], slot, &["STABLE"]);
    }
    Ok(())
}

fn one_owner(view: &mut View, task: &Task<'_>, slot: u16, owners: &[usize]) -> Done {
    messages::step(&format!(">>> Fixing multiple owners for slot {slot}...\n"));
    let most = owners.iter().copied().max_by_key(|&at| view.nodes[at].keys_in(slot));
    let owner = most.ok_or(AlreadyReported)?;
    let place = view.nodes[owner].place();
    messages::say(&format!(">>> Setting slot {slot} owner: {place}\n"));
    take(view, slot, owner)?;
    gather(view, task, slot, owner, owners)
}
