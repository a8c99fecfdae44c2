//! Putting changed settings in force: what CONFIG SET does beyond storing values.
//!
//! ```text
//!  Store::set ── values checked ── prepare (may fail, changes nothing) ── stored ── commit
//! ```
//!
//! `prepare` does everything that can fail and keeps the results; `commit` cannot fail. Settings
//! that workers merely read need neither: they take the new ones before their next batch.

use crate::config::{Config, Rejection, system};
use crate::mailbox::Message;
use crate::shared::Shared;
use brisk_reactor::Listener;

/// What was made ready for the new settings.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The TCP listeners of each worker.
    listeners: Option<Vec<Vec<Listener>>>,
}

/// Does what may fail on the way from `old` to `new`.
///
/// # Errors
/// The directive that is to blame; nothing was changed.
pub fn prepare(shared: &Shared, old: &Config, new: &Config) -> Result<Prepared, Rejection> {
    if new.clients.maxclients > old.clients.maxclients {
        reserve_files(shared, new.clients.maxclients)?;
    }
    let mut prepared = Prepared::default();
    let port_changed = new.network.port != old.network.port;
    if port_changed || new.network.bind != old.network.bind {
        let listeners = crate::listeners::open_tcp(old, new, shared.workers(), &shared.log);
        prepared.listeners = Some(listeners.map_err(|_| {
            if port_changed {
                let reason = "Unable to listen on this port. Check server logs.".into();
                Rejection { directive: "port", reason }
            } else {
                let reason = "Failed to bind to specified addresses.".into();
                Rejection { directive: "bind", reason }
            }
        })?);
    }
    Ok(prepared)
}

/// Raises the limit of open files to what so many clients need.
fn reserve_files(shared: &Shared, maxclients: i64) -> Result<(), Rejection> {
    let files = system::reserve_open_files(maxclients, system::FILES_RESERVED);
    for note in &files.notes {
        shared.log.warning(format_args!("{note}"));
    }
    if files.maxclients >= maxclients {
        return Ok(());
    }
    let possible = files.maxclients;
    let reason = format!(
        "The operating system is not able to handle the specified number of clients, try with \
         {possible}"
    );
    Err(Rejection { directive: "maxclients", reason: reason.into() })
}

/// Puts `new` in force: it is what the store holds by now. The workers other than the caller's
/// stand still.
pub fn commit(shared: &Shared, old: &Config, new: &Config, prepared: Prepared) {
    shared.log.set_level(new.process.loglevel);
    shared.publish_config(new.clone());
    let mailboxes = || shared.mailboxes.iter();
    for (mailbox, listeners) in mailboxes().zip(prepared.listeners.into_iter().flatten()) {
        mailbox.send(Message::Listen(listeners));
    }
    if new.network.tcp_keepalive != old.network.tcp_keepalive {
        for mailbox in mailboxes() {
            mailbox.send(Message::Keepalive(new.network.tcp_keepalive as u32));
        }
    }
}
