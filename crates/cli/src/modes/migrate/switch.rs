//! Makes the new server the primary: pauses writes to the old one, waits until the new one has all of them, and
//! promotes it.

use super::peer::Peer;
use super::{compare, say};
use std::time::{Duration, Instant};

/// How long writes are paused at most while the new server catches up.
const PAUSE: Duration = Duration::from_secs(30);
/// How long writes to the old server stay paused after the switch.
const PAUSE_AFTER: Duration = Duration::from_secs(24 * 3600);
const POLL: Duration = Duration::from_millis(20);

/// Switches over. After a failure, clients can write to the old server again, and the new one is still its replica.
///
/// # Errors
/// The reason of the failure, and the state of the servers.
pub(super) fn switch(old: &mut Peer, new: &mut Peer) -> Result<(), String> {
    let ready = pause(old, PAUSE).and_then(|()| catch_up(old, new));
    // From now on, no write is accepted by both servers.
    let ready = ready.and_then(|()| pause(old, PAUSE_AFTER));
    let Err(error) = ready.and_then(|()| new.request(&["REPLICAOF", "NO", "ONE"]).map(drop)) else {
        return Ok(());
    };
    // The new server may have been promoted, although its reply was lost. Two servers must not accept writes.
    match is_primary(new) {
        Ok(true) => Ok(()),
        Ok(false) => Err(resume(old, new, &error)),
        Err(failure) => Err(format!(
            "{error}\nThe role of {} is unknown ({failure}), so writes to {} stay paused. Find it out: brisk-cli -u \
             {} role. If it is a slave: brisk-cli -u {} client unpause",
            new.place, old.place, new.uri, old.uri
        )),
    }
}

fn is_primary(new: &mut Peer) -> Result<bool, String> {
    let role = new.request_again(&["ROLE"])?;
    let role = role.as_slice().and_then(<[_]>::first).and_then(|role| role.as_bytes());
    Ok(role == Some(b"master"))
}

/// Ends the pause of the old server. Returns the text of the error.
fn resume(old: &mut Peer, new: &Peer, error: &str) -> String {
    match old.request_again(&["CLIENT", "UNPAUSE"]) {
        Ok(_) => format!(
            "{error}\n{} accepts writes as before, and {} is its replica. To try again: brisk-cli migrate {} {} --switch",
            old.place, new.place, old.uri, new.uri
        ),
        Err(failure) => format!(
            "{error}\nWrites to {} may still be paused ({failure}). To end the pause: brisk-cli -u {} client unpause",
            old.place, old.uri
        ),
    }
}

fn pause(old: &mut Peer, time: Duration) -> Result<(), String> {
    old.request(&["CLIENT", "PAUSE", &time.as_millis().to_string(), "WRITE"]).map(drop)
}

/// Waits until the new server has received all writes before the pause.
fn catch_up(old: &mut Peer, new: &mut Peer) -> Result<(), String> {
    let begin = Instant::now();
    old.reload()?;
    let wanted = old.number("master_repl_offset");
    say(&format!("Writes to {} are paused at offset {wanted}.\n", old.place));
    loop {
        new.reload()?;
        let is_up = new.info.is("master_link_status", "up");
        if is_up && new.number("slave_repl_offset") >= wanted {
            // The pause must not have ended before the promotion.
            return if begin.elapsed() < PAUSE / 2 { compare::counts(old, new) } else { late(new) };
        }
        if begin.elapsed() >= PAUSE / 2 {
            return late(new);
        }
        new.rest(POLL)?;
    }
}

fn late(new: &Peer) -> Result<(), String> {
    Err(format!("{} did not catch up within {} seconds", new.place, (PAUSE / 2).as_secs()))
}
