//! Makes one server a replica of the other, shows the progress of the copy, and restores the server after a failure.

use super::peer::Peer;
use super::say;
use crate::amount::{bytes, counted, duration};
use crate::screen;
use rustix::{stdio, termios};
use std::time::{Duration, Instant};

/// The interval between two reports of the progress.
const POLL: Duration = Duration::from_millis(200);
/// A copy without progress fails after this time.
const STALLED_AFTER: Duration = Duration::from_secs(60);

/// The state of a replica before.
struct Before {
    masterauth: String,
    masteruser: String,
    keys: u64,
}

/// Makes the new server a replica of the old one, and waits until it is in sync. After a failure, it is as before.
///
/// # Errors
/// The reason of the failure, and the state of the servers.
pub(super) fn begin(new: &mut Peer, old: &Peer) -> Result<(), String> {
    say(&format!(
        "Copying {} ({}) from {} to {}.\n",
        counted(old.keys(), "key"),
        bytes(old.info.decimal("used_memory")),
        old.place,
        new.place
    ));
    replicate(new, old)
}

/// Makes the old server a replica of the new one, as [`begin`].
///
/// # Errors
/// The reason of the failure, and the state of the servers.
pub(super) fn begin_back(old: &mut Peer, new: &Peer) -> Result<(), String> {
    say(&format!("Copying from {} to {}.\n", new.place, old.place));
    replicate(old, new)
}

fn replicate(replica: &mut Peer, primary: &Peer) -> Result<(), String> {
    let before = Before {
        masterauth: replica.config("masterauth")?,
        masteruser: replica.config("masteruser")?,
        keys: replica.keys(),
    };
    let done = start(replica, primary).and_then(|()| wait(replica));
    done.map_err(|error| {
        let restored = restore(replica, &before);
        match restored {
            Ok(()) => format!(
                "{error}\n{} and {} are as before. The log of {} may say more. Run the command again after the \
                 problem is fixed",
                primary.place, replica.place, replica.place
            ),
            Err(failure) => format!(
                "{error}\n{} could not be restored: {failure}. If it still is a replica: brisk-cli -u {} replicaof no one",
                replica.place, replica.uri
            ),
        }
    })
}

fn start(replica: &mut Peer, primary: &Peer) -> Result<(), String> {
    let options = primary.options();
    if let Some(password) = &options.password {
        let user = options.user.clone().unwrap_or_default();
        // The user `default` needs no name.
        let user = if user == b"default" { Vec::new() } else { user };
        replica.request(&[&b"CONFIG"[..], b"SET", b"masteruser", &user])?;
        replica.request(&[&b"CONFIG"[..], b"SET", b"masterauth", password])?;
    }
    let (host, port) = (options.host.clone(), options.port.to_string());
    replica.request(&["REPLICAOF", &host, &port])?;
    // A new replica rejects writes itself.
    match replica.request(&["CLIENT", "UNPAUSE"]) {
        Ok(_) => Ok(()),
        // Servers before 6.2 have no CLIENT UNPAUSE, and this program has not paused them.
        Err(_) => Ok(()),
    }
}

fn restore(replica: &mut Peer, before: &Before) -> Result<(), String> {
    replica.request_again(&["REPLICAOF", "NO", "ONE"])?;
    replica.request(&["CONFIG", "SET", "masteruser", &before.masteruser])?;
    replica.request(&["CONFIG", "SET", "masterauth", &before.masterauth])?;
    if before.keys == 0 {
        // A part of the copy may have arrived. Until now, the server has accepted no other writes.
        replica.request(&["FLUSHALL"])?;
        return Ok(());
    }
    replica.reload()?;
    match replica.keys() {
        keys if keys < before.keys => Err(format!(
            "it has {} instead of {}, because the copy has replaced a part of its data",
            counted(keys, "key"),
            counted(before.keys, "key")
        )),
        _ => Ok(()),
    }
}

/// Waits until a replica is in sync, and shows the progress on a terminal.
///
/// # Errors
/// If there is no progress for a minute, or Ctrl-C was pressed.
pub(super) fn wait(replica: &mut Peer) -> Result<(), String> {
    let begin = Instant::now();
    let (mut last, mut changed) = (String::new(), Instant::now());
    let is_shown = termios::isatty(stdio::stderr());
    let clear = || {
        if is_shown {
            screen::warn("\r\x1b[K");
        }
    };
    loop {
        if let Err(error) = replica.reload() {
            clear();
            return Err(error);
        }
        if replica.info.is("master_link_status", "up") {
            clear();
            return Ok(());
        }
        let progress = progress(replica, begin.elapsed());
        if is_shown {
            screen::warn(format!("\r{progress}\x1b[K"));
        }
        let state = ["master_sync_read_bytes", "master_sync_left_bytes", "loading_loaded_bytes"]
            .map(|field| replica.info.get(field).unwrap_or_default().to_owned())
            .join(" ");
        if state != last {
            (last, changed) = (state, Instant::now());
        }
        let failed = match changed.elapsed() > STALLED_AFTER {
            true => Err(format!("no progress for {}", duration(STALLED_AFTER))),
            false => replica.rest(POLL),
        };
        if let Err(error) = failed {
            clear();
            return Err(error);
        }
    }
}

/// The progress of a copy, with an estimate of the remaining time.
fn progress(replica: &Peer, elapsed: Duration) -> String {
    let info = &replica.info;
    if info.is("loading", "1") {
        let left = Duration::from_secs(replica.number("loading_eta_seconds").max(1));
        let percent = info.decimal("loading_loaded_perc");
        return format!("Loading the copy: {percent:.0} %, about {} left", duration(left));
    }
    let (total, read) =
        (info.decimal("master_sync_total_bytes"), info.decimal("master_sync_read_bytes"));
    if read <= 0.0 {
        return "Waiting for the snapshot of the primary".to_owned();
    }
    if total <= 0.0 {
        return format!("Copying: {}", bytes(read));
    }
    let left = elapsed.as_secs_f64() * (total - read).max(0.0) / read;
    format!(
        "Copying: {:.0} %, {} of {}, about {} left",
        100.0 * read / total,
        bytes(read),
        bytes(total),
        duration(Duration::from_secs_f64(left.clamp(1.0, 1e9)))
    )
}
