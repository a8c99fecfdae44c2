//! `reshard`: moves slots to one node, from one, several or all others. Prompts for values that the options do not
//! specify.

use super::slots::{self, Move, Planned, Verbosity, move_slot};
use super::view::View;
use super::{Done, SLOTS, Task, messages};
use crate::session::AlreadyReported;

pub(super) fn run(task: &Task<'_>) -> Done {
    let (host, port) = task.entry()?;
    let mut view = View::load(&host, port, task.session)?;
    if !view.check(task, false).is_well() {
        messages::say("*** Please fix your cluster problems before resharding\n");
        return Err(AlreadyReported);
    }
    let wanted = count(task)?;
    let to = target(&view, task)?;
    let sources = sources(&view, task, to)?;
    if sources.is_empty() {
        messages::say("*** No source nodes given, operation aborted.\n");
        return Err(AlreadyReported);
    }
    let mut text = format!("\nReady to move {wanted} slots.\n  Source nodes:\n");
    for &from in &sources {
        text.push_str(&view.nodes[from].describe("    "));
    }
    text.push_str("  Destination node:\n");
    text.push_str(&view.nodes[to].describe("    "));
    text.push_str("  Resharding plan:\n");
    let plan = slots::plan(&view, &sources, wanted);
    for Planned { slot, from } in &plan {
        let id = &view.nodes[*from].is.id;
        text.push_str(&format!("    Moving slot {slot} from {id}\n"));
    }
    messages::say(&text);
    if !task.options.yes {
        let question = "Do you want to proceed with the proposed reshard plan (yes/no)? ";
        if messages::prompt(question).is_none_or(|answer| !answer.eq_ignore_ascii_case("yes")) {
            return Err(AlreadyReported);
        }
    }
    for planned in plan {
        let how = Move::plain(task, Verbosity::Everything);
        if let Err(text) = move_slot(&mut view, task, planned, to, how) {
            messages::say("\n");
            return slots::failed(&text);
        }
    }
    Ok(())
}

fn count(task: &Task<'_>) -> Result<usize, AlreadyReported> {
    let fits = |count: &usize| (1..=usize::from(SLOTS)).contains(count);
    if task.options.slots > 0 {
        return Some(task.options.slots).filter(fits).ok_or(AlreadyReported);
    }
    loop {
        let question = format!("How many slots do you want to move (from 1 to {SLOTS})? ");
        let answer = messages::prompt(&question).ok_or(AlreadyReported)?;
        if let Some(count) = answer.parse().ok().filter(fits) {
            return Ok(count);
        }
    }
}

/// The index of the master with this ID.
fn master(view: &View, id: &str) -> Option<usize> {
    let found = view.find(id).filter(|&at| view.nodes[at].is_master());
    if found.is_none() {
        messages::error(&format!(
            "*** The specified node ({id}) is not known or not a master, please retry.\n"
        ));
    }
    found
}

fn target(view: &View, task: &Task<'_>) -> Result<usize, AlreadyReported> {
    if let Some(id) = &task.options.to {
        return master(view, id).ok_or(AlreadyReported);
    }
    loop {
        let id = messages::prompt("What is the receiving node ID? ").ok_or(AlreadyReported)?;
        if let Some(at) = master(view, &id) {
            return Ok(at);
        }
    }
}

fn sources(view: &View, task: &Task<'_>, to: usize) -> Result<Vec<usize>, AlreadyReported> {
    let all = || -> Vec<usize> {
        view.masters()
            .into_iter()
            .filter(|&at| at != to && !view.nodes[at].is.slots.is_empty())
            .collect()
    };
    let mut chosen = Vec::new();
    let mut choose = |id: &str| -> Option<()> {
        let at = master(view, id)?;
        if at == to {
            messages::say("*** It is not possible to use the target node as source node.\n");
            return None;
        }
        if !chosen.contains(&at) {
            chosen.push(at);
        }
        Some(())
    };
    if let Some(list) = &task.options.from {
        if list.eq_ignore_ascii_case("all") {
            return Ok(all());
        }
        for id in list.split(',').filter(|id| !id.is_empty()) {
            choose(id).ok_or(AlreadyReported)?;
        }
        return Ok(chosen);
    }
    messages::say(
        "Please enter all the source node IDs.\n  \
         Type 'all' to use all the nodes as source nodes for the hash slots.\n  \
         Type 'done' once you entered all the source nodes IDs.\n",
    );
    for number in 1usize.. {
        let answer =
            messages::prompt(&format!("Source node #{number}: ")).ok_or(AlreadyReported)?;
        match answer.as_str() {
            "all" => return Ok(all()),
            "done" => break,
            // The error has been reported.
            id => drop(choose(id)),
        }
    }
    Ok(chosen)
}
