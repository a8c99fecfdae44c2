//! `rebalance`: moves slots between the masters until each has its share, by weight.

use super::slots::{Move, Verbosity, failed, move_slot, plan};
use super::view::View;
use super::{Done, SLOTS, Task, messages};
use crate::session::AlreadyReported;

/// A master and its share of the slots.
struct Share {
    node: usize,
    weight: f64,
    /// The number of surplus slots; negative if slots are missing.
    balance: i64,
}

pub(super) fn run(task: &Task<'_>) -> Done {
    let (host, port) = task.entry()?;
    let mut view = View::load(&host, port, task.session)?;
    let mut shares = weights(&view, task)?;
    if !view.check(task, true).is_well() {
        return messages::fail("*** Please fix your cluster problems before rebalancing\n");
    }
    let total: f64 = shares.iter().map(|share| share.weight).sum();
    if !balance(&view, &mut shares, total, task.options.threshold) {
        messages::warning(&format!(
            "*** No rebalancing needed! All nodes are within the {:.2}% threshold.\n",
            task.options.threshold
        ));
        return Ok(());
    }
    messages::step(&format!(
        ">>> Rebalancing across {} nodes. Total weight = {total:.2}\n",
        shares.len()
    ));
    shares.sort_by_key(|share| share.balance);
    if task.session.options.verbose {
        for share in &shares {
            let place = view.nodes[share.node].place();
            messages::say(&format!("{place} balance is {} slots\n", share.balance));
        }
    }
    let (mut poor, mut rich) = (0, shares.len() - 1);
    while poor < rich {
        let count = (-shares[poor].balance).min(shares[rich].balance);
        if count > 0 {
            give(&mut view, task, shares[rich].node, shares[poor].node, count as usize)?;
        }
        let count = count.max(0);
        shares[poor].balance += count;
        shares[rich].balance -= count;
        if shares[poor].balance >= 0 {
            poor += 1;
        }
        if rich > 0 && shares[rich].balance <= 0 {
            rich -= 1;
        }
    }
    Ok(())
}

fn give(view: &mut View, task: &Task<'_>, from: usize, to: usize, count: usize) -> Done {
    let (source, target) = (view.nodes[from].place(), view.nodes[to].place());
    messages::say(&format!("Moving {count} slots from {source} to {target}\n"));
    if task.options.simulate {
        messages::say(&"#".repeat(count));
    } else {
        for planned in plan(view, &[from], count) {
            let how = Move::plain(task, Verbosity::Nothing);
            if let Err(text) = move_slot(view, task, planned, to, how) {
                messages::say("\n");
                return failed(&text);
            }
            messages::say("#");
        }
    }
    messages::say("\n");
    Ok(())
}

/// The masters that take part. Those without slots take part only on request.
fn weights(view: &View, task: &Task<'_>) -> Result<Vec<Share>, AlreadyReported> {
    let mut given: Vec<(usize, f64)> = Vec::new();
    for word in &task.options.weights {
        let parsed = word.split_once('=').and_then(|(id, weight)| {
            Some((id, weight.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0)?))
        });
        let Some((id, weight)) = parsed else {
            messages::error(&format!("*** invalid input {word}\n"));
            return Err(AlreadyReported);
        };
        let id = id.to_ascii_lowercase();
        let fitting = view.masters().into_iter().find(|&at| view.nodes[at].is.id.starts_with(&id));
        let Some(node) = fitting else {
            return messages::fail(&format!("*** No such master node {id}\n"));
        };
        given.push((node, weight));
    }
    let mut shares = Vec::new();
    for node in view.masters() {
        let is_empty = view.nodes[node].is.slots.is_empty();
        let weight = match given.iter().find(|(at, _)| *at == node) {
            Some((_, weight)) => *weight,
            None if is_empty && !task.options.use_empty_masters => continue,
            None => 1.0,
        };
        shares.push(Share { node, weight, balance: 0 });
    }
    if shares.iter().map(|share| share.weight).sum::<f64>() <= 0.0 {
        return messages::fail("*** No master has a weight.\n");
    }
    Ok(shares)
}

/// Computes the surplus of each master. Returns whether any exceeds the threshold.
fn balance(view: &View, shares: &mut [Share], total: f64, threshold: f64) -> bool {
    let mut is_off = false;
    for share in shares.iter_mut() {
        let has = view.nodes[share.node].is.slots.len() as i64;
        let expected = (f64::from(SLOTS) / total * share.weight) as i64;
        share.balance = has - expected;
        is_off |= if has > 0 {
            (100.0 - 100.0 * expected as f64 / has as f64).abs() > threshold
        } else {
            expected > 1
        };
    }
    // Shares are rounded down. The masters that receive slots also get the rest.
    let mut rest: i64 = shares.iter().map(|share| share.balance).sum();
    let mut at = 0;
    while rest > 0 && shares.iter().any(|share| share.balance <= 0) {
        if shares[at].balance <= 0 {
            shares[at].balance -= 1;
            rest -= 1;
        }
        at = (at + 1) % shares.len();
    }
    is_off
}
