//! `call` and `set-timeout`: run the same command on each node.

use super::view::View;
use super::{Done, Task, messages};
use crate::format::{self, Delimiters};
use crate::quote::leading_number;
use crate::screen;
use crate::session::AlreadyReported;

/// With a lower timeout, nodes would consider one another failed.
const TIMEOUT_MS_MIN: i64 = 100;

pub(super) fn call(task: &Task<'_>) -> Done {
    let (host, port) = task.entry()?;
    let skipped = if task.arguments[0].contains(':') { 1 } else { 2 };
    let words: Vec<Vec<u8>> = task.session.options.cluster.arguments[skipped..].to_vec();
    let mut view = View::load(&host, port, task.session)?;
    messages::step(">>> Calling");
    for word in &words {
        screen::print([b" ", &word[..]].concat());
    }
    messages::say("\n");
    for node in &mut view.nodes {
        let wanted = match node.is_master() {
            true => !task.options.only_replicas,
            false => !task.options.only_masters,
        };
        if !wanted {
            continue;
        }
        match node.raw(&words) {
            Some(reply) => {
                let reply = format::verbatim(&reply, &Delimiters::default());
                screen::print([node.place().as_bytes(), b": ", &reply, b"\n"].concat());
            }
            None => messages::say(&format!("{}: Failed!\n", node.place())),
        }
    }
    Ok(())
}

pub(super) fn set_timeout(task: &Task<'_>) -> Done {
    let (host, port) = task.entry()?;
    let timeout = leading_number(task.arguments[task.arguments.len() - 1].as_bytes());
    if timeout < TIMEOUT_MS_MIN {
        screen::flush();
        screen::warn("Setting a node timeout of less than 100 milliseconds is a bad idea.\n");
        return Err(AlreadyReported);
    }
    let mut view = View::load(&host, port, task.session)?;
    messages::step(">>> Reconfiguring node timeout in every cluster node...\n");
    let (mut good, mut bad) = (0, 0);
    for node in &mut view.nodes {
        let place = node.place();
        let value = timeout.to_string();
        let done = node
            .request(&["CONFIG", "SET", "cluster-node-timeout", &value])
            .and_then(|_| node.request(&["CONFIG", "REWRITE"]));
        match done {
            Ok(_) => {
                messages::warning(&format!("*** New timeout set for {place}\n"));
                good += 1;
            }
            Err(text) => {
                messages::error(&format!("ERR setting node-timeout for {place}: {text}\n"));
                bad += 1;
            }
        }
    }
    messages::step(&format!(">>> New node timeout set. {good} OK, {bad} ERR.\n"));
    Ok(())
}
