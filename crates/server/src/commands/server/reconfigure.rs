//! Applies changed settings. This is the part of CONFIG SET beyond storing values.
//!
//! ```text
//!  Store::set ── values checked ── prepare (may fail, changes nothing) ── stored ── commit
//! ```
//!
//! `prepare` does everything that can fail and keeps the results. `commit` cannot fail. Settings that workers only read
//! need neither, because workers load the new values before their next batch.

use brisk_config::{Config, Rejection, system};
use brisk_net::listeners::Purpose;
use brisk_net::listeners::{Reopened, Replacement};
use brisk_net::tls::TlsSettings;
use brisk_node::cluster::ClusterState;
use brisk_node::core::mailbox::Message;
use brisk_node::core::shared::Shared;
use brisk_node::persistence::aof::rewrite;
use brisk_structures::alloc;
use std::sync::Arc;

/// The prepared resources for the new settings.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    listeners: Vec<Reopened>,
    /// The configuration of new TLS connections.
    tls: Option<Arc<rustls::ServerConfig>>,
}

/// Does the work that may fail for the change from `old` to `new`. With `tls_named`, certificates and keys are read
/// again even if the directives have not changed, because the files may have changed.
///
/// # Errors
/// The error names the directive that failed. Nothing was changed.
pub(super) fn prepare(
    shared: &Shared,
    old: &Config,
    new: &Config,
    tls_named: Option<&'static str>,
) -> Result<Prepared, Rejection> {
    if new.clients.maxclients > old.clients.maxclients
        || new.clients.admin_maxclients > old.clients.admin_maxclients
    {
        reserve_files(shared, new)?;
    }
    if new.persistence.appendonly && !old.persistence.appendonly {
        rewrite::try_home(shared, new).map_err(|reason| {
            shared.log.warning(format_args!("{reason}"));
            let reason = "Unable to turn on AOF. Check server logs.".into();
            Rejection { directive: "appendonly", reason }
        })?;
    }
    let mut prepared = Prepared::default();
    if let Some(directive) = tls_named {
        prepared.tls = TlsSettings::prepare(new, &shared.log).map_err(|_| {
            let reason = "Unable to update TLS configuration. Check server logs.".into();
            Rejection { directive, reason }
        })?;
    }
    prepared.listeners = brisk_net::listeners::reopen(old, new, shared.workers(), &shared.log)
        .map_err(|purpose| {
            let (directive, changed) = match purpose {
                Purpose::Tls => ("tls-port", new.tls.port != old.tls.port),
                Purpose::Tcp | Purpose::Unix | Purpose::AdminTcp | Purpose::AdminUnix => {
                    ("port", new.network.port != old.network.port)
                }
            };
            if changed {
                let reason = "Unable to listen on this port. Check server logs.".into();
                Rejection { directive, reason }
            } else {
                let reason = "Failed to bind to specified addresses.".into();
                Rejection { directive: "bind", reason }
            }
        })?;
    // This comes last because it takes effect immediately, unlike the prepared changes above.
    set_oom_score(shared, old, new)?;
    Ok(prepared)
}

fn set_oom_score(shared: &Shared, old: &Config, new: &Config) -> Result<(), Rejection> {
    let settings =
        |config: &Config| (config.process.oom_score_adj, config.process.oom_score_adj_values);
    if settings(new) == settings(old) {
        return Ok(());
    }
    let score = &shared.process.oom_score;
    score.apply(new, &shared.log).map_err(|()| {
        // Restore the previous score. If that also fails, the failure is logged.
        let _ = score.apply(old, &shared.log);
        let changed = new.process.oom_score_adj != old.process.oom_score_adj;
        let directive = if changed { "oom-score-adj" } else { "oom-score-adj-values" };
        let reason = "Failed to set current oom_score_adj. Check server logs.".into();
        Rejection { directive, reason }
    })
}

/// Raises the limit on open files to the number that the configured clients need.
fn reserve_files(shared: &Shared, config: &Config) -> Result<(), Rejection> {
    let maxclients = config.clients.maxclients;
    let files = system::reserve_open_files(maxclients, system::reserved(config));
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

/// Applies `new`, which is already in the store. All workers except the caller's are quiesced.
pub(super) fn commit(shared: &Shared, old: &Config, new: &Config, prepared: Prepared) {
    shared.log.set_level(new.process.loglevel);
    shared.publish_config(new.clone());
    if let Some(writer) = shared.cluster.state().and_then(ClusterState::writer) {
        writer.take_settings();
    }
    shared.persistence.aof.configure(&new.persistence);
    let is_lfu = |config: &Config| {
        use brisk_config::choice::EvictionPolicy::{AllKeysLfu, VolatileLfu};
        matches!(config.memory.maxmemory_policy, AllKeysLfu | VolatileLfu)
    };
    if is_lfu(new) != is_lfu(old) {
        shared.keyspace.restart_clocks(is_lfu(new));
    }
    brisk_reactor::set_crash_reports(new.process.crash_log_enabled);
    if new.persistence.appendonly != old.persistence.appendonly {
        if new.persistence.appendonly {
            // A base file must be written first, which requires every worker to be between two
            // commands.
            shared.persistence.aof.schedule_rewrite();
        } else {
            rewrite::close(shared);
        }
    }
    if old.persistence.aof_disable_auto_gc && !new.persistence.aof_disable_auto_gc {
        rewrite::collect_history(shared);
    }
    if new.security.requirepass != old.security.requirepass {
        let password = new.security.requirepass.as_bytes();
        shared.accounts.set_default_password(password, &shared.clients);
    }
    if new.process.jemalloc_bg_thread != old.process.jemalloc_bg_thread {
        alloc::purge_in_background(new.process.jemalloc_bg_thread);
    }
    if let Some(settings) = prepared.tls {
        shared.network.set_tls(settings);
    }
    for reopened in prepared.listeners {
        shared.network.replace_listeners(&reopened);
        let Reopened { purpose, each } = reopened;
        for (worker, listeners) in each.into_iter().enumerate() {
            shared.mailboxes.send(worker, Message::Listen(Replacement { purpose, listeners }));
        }
    }
    if new.network.tcp_keepalive != old.network.tcp_keepalive {
        let seconds = new.network.tcp_keepalive as u32;
        shared.mailboxes.send_to_all(|| Message::Keepalive(seconds));
    }
}
