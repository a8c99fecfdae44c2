//! `migrate`: moves the data of a server to another one by replication, and switches over. The new server becomes a
//! replica of the old one. If a step fails, both servers get the state that they had before.
//!
//! | file | about |
//! |---|---|
//! | here | the steps |
//! | `peer.rs` | a server: its connection and its reports |
//! | `checks.rs` | the reasons why a migration would fail |
//! | `sync.rs` | making one server a replica of the other, with its progress |
//! | `compare.rs` | comparing the data of both |
//! | `switch.rs` | promoting the new server |

mod checks;
mod compare;
mod peer;
mod switch;
mod sync;

use self::peer::Peer;
use crate::link::Interrupts;
use crate::options::Options;
use crate::screen;
use crate::session::Session;
use rustix::{stdio, termios};
use std::io::BufRead as _;
use std::rc::Rc;

const USAGE: &str =
    "Usage: brisk-cli [options] migrate redis://OLD redis://NEW [--switch | --back] [--yes]\n";

pub(super) fn run(session: &Session) -> i32 {
    let options = &session.options;
    let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
    let [old, new] = options.words.as_slice() else {
        screen::warn(USAGE);
        return 1;
    };
    let (old, new) = (text(old), text(new));
    if options.warns_of_password && (old.contains('@') || new.contains('@')) {
        screen::warn("Warning: Using a password on the command line interface may not be safe.\n");
    }
    match migrate(options, &old, &new) {
        Ok(()) => 0,
        Err(text) => {
            screen::flush();
            screen::warn(format!("Error: {text}\n"));
            1
        }
    }
}

/// Runs the requested steps.
fn migrate(options: &Options, old: &str, new: &str) -> Result<(), String> {
    // Ctrl-C ends waits, so that the servers can be restored.
    let interrupts = Interrupts::take_over().ok();
    let mut old = Peer::connect(options, old, interrupts.as_ref())?;
    let mut new = Peer::connect(options, new, interrupts.as_ref())?;
    say(&format!("old: {} at {}\n", old.version(), old.place));
    say(&format!("new: {} at {}\n", new.version(), new.place));
    if options.migrate.goes_back {
        return go_back(&mut old, &mut new);
    }
    let warnings = checks::check(&mut old, &mut new)?;
    for warning in warnings {
        say(&format!("warning: {warning}\n"));
    }
    if new.is_replica_of(&old) {
        say(&format!("{} already is a replica of {}.\n", new.place, old.place));
        sync::wait(&mut new)?;
    } else {
        sync::begin(&mut new, &old)?;
    }
    say(&format!("{} is in sync with {}.\n", new.place, old.place));
    compare::compare(&mut old, &mut new)?;
    let question =
        format!("Pause writes to {} and make {} the primary now? [y/N] ", old.place, new.place);
    if options.migrate.switches || options.yes || is_confirmed(&question, interrupts.as_deref()) {
        switch::switch(&mut old, &mut new)?;
        say(&after_switch(&old, &new));
    } else {
        say(&format!(
            "{} stays a replica of {}. To switch over: brisk-cli migrate {} {} --switch\n\
             To stop the migration: brisk-cli -u {} replicaof no one\n",
            new.place, old.place, old.uri, new.uri, new.uri
        ));
    }
    Ok(())
}

/// The text after a switch: the next steps and the way back.
fn after_switch(old: &Peer, new: &Peer) -> String {
    format!(
        "{new} is the primary now. Connect the clients to it.\n\
         Writes to {old} stay paused for 24 hours, so that no client writes to it by mistake.\n\
         The way back:\n  \
         to keep {old} up to date as a replica:   brisk-cli migrate {old_uri} {new_uri} --back\n  \
         to return to it afterwards:   brisk-cli migrate {new_uri} {old_uri} --switch\n  \
         to return to it now, without the writes to {new} since the switch:   brisk-cli -u {old_uri} client unpause\n",
        old = old.place,
        new = new.place,
        old_uri = old.uri,
        new_uri = new.uri,
    )
}

/// Makes the old server a replica of the new one.
fn go_back(old: &mut Peer, new: &mut Peer) -> Result<(), String> {
    checks::check_way_back(old, new)?;
    if old.is_replica_of(new) {
        sync::wait(old)?;
    } else {
        sync::begin_back(old, new)?;
    }
    say(&format!(
        "{} is a replica of {} and in sync. To return to it: brisk-cli migrate {} {} --switch\n",
        old.place, new.place, new.uri, old.uri
    ));
    Ok(())
}

/// Prompts for a confirmation. Without a terminal, there is none.
fn is_confirmed(question: &str, interrupts: Option<&Interrupts>) -> bool {
    if !termios::isatty(stdio::stdin()) || !screen::is_terminal() {
        return false;
    }
    screen::print(question);
    screen::flush();
    if let Some(interrupts) = interrupts
        && !interrupts.wait_for(stdio::stdin()).unwrap_or_default()
    {
        screen::print("\n");
        return false;
    }
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn say(text: &str) {
    screen::print(text);
    screen::flush();
}

type Interruptible = Option<Rc<Interrupts>>;
