//! The topology in cluster mode: its source, and how this process follows it.
//!
//! ```text
//!  brisk-lease ── register, renew, read ──┐
//!  brisk-coord ── status, decisions ──────┼── coordinator
//!  brisk-watch ── snapshot, watch ────────┘
//!          all ── TopologyWatcher::install ── one quiescent step on worker 0: map and role; then brisk-files
//! ```
//!
//! | file | about |
//! |---|---|
//! | here | starts and stops the threads |
//! | `fixed` | this node's run and address in a document that never changes |
//! | `identity` | the id of this node, and the address that it announces |
//! | `files` | `nodes.conf`, its lock, and `topology.json` |
//! | `signal` | wakes and stops the threads |
//! | `watcher` | the state that the threads share; installs documents |
//! | `document` | the document that was last examined; ensures that only one thread installs a document at a time |
//! | `quiesced` | work on worker 0 while the other workers are quiesced |
//! | `save` | writes the files after an installation (the thread `brisk-files`) |
//! | `role` | makes this server the primary or a replica, as the document requires |
//! | `handover` | hands over the shard of a primary that shuts down |
//! | `registered` | the nodes with a lease, as the watch reports them |
//! | `writer` | commits changes to the document |
//! | `watch` | the thread that follows the coordinator's events |
//! | `coordination` | the facts that this node has from its coordinator, for operators |
//! | `status` | the status report of this node, and the state of other nodes |
//! | `failures` | determines which members have failed |
//! | `query` | requests to other nodes |
//! | `controller` | carries out the decisions about failovers |
//! | `deadline` | the lease deadline |
//! | `switch` | hands a shard over to a replica (the thread `brisk-switch`) |
//! | `availability` | extends the deadline while the coordinator cannot be reached (the thread `brisk-acks`) |
//! | `lease` | registers this node, renews its lease, and sets the lease deadline (the thread `brisk-lease`) |
//! | `coord` | follows the role, reports the status, and acts as the controller (the thread `brisk-coord`) |

mod availability;
mod controller;
mod coord;
mod coordination;
mod deadline;
mod document;
mod failures;
mod files;
mod fixed;
mod handover;
mod identity;
mod lease;
mod query;
mod quiesced;
mod registered;
mod role;
mod save;
mod signal;
mod status;
mod switch;
#[cfg(test)]
mod tests;
mod watch;
mod watcher;
mod writer;

use self::files::TopologyFiles;
use self::watcher::{TopologyWatcher, WatcherParts};
use brisk_cluster::document::Topology;
use brisk_config::Config;
use brisk_coordinate::etcd::EtcdOptions;
use brisk_coordinate::setting::CoordinatorSetting;
use brisk_coordinate::values::ClusterName;
use brisk_node::cluster::peers;
use brisk_node::core::shared::Shared;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The body of a thread. It returns when the threads are stopped.
type ThreadBody = fn(&Arc<TopologyWatcher>);

/// The threads that follow the topology.
#[derive(Debug)]
pub(crate) struct TopologyThreads {
    watcher: Arc<TopologyWatcher>,
    threads: Vec<JoinHandle<()>>,
}

/// Turns cluster mode on if the settings say so, and starts the threads that follow the topology. Called before
/// the workers start and before the dataset is loaded.
///
/// # Errors
/// A setting or a file of this node cannot be used. A coordinator that cannot be reached is not an error.
pub(crate) fn start(
    shared: &'static Shared,
    config: &Config,
) -> Result<Option<TopologyThreads>, String> {
    let cluster = &config.cluster;
    if !cluster.cluster_enabled {
        return Ok(None);
    }
    let setting = setting(config)?;
    let name = ClusterName::parse(&cluster.cluster_name.to_string_lossy())
        .map_err(|error| format!("cluster-name: {error}"))?;
    let files = TopologyFiles::open(&config.path_in_dir(&cluster.cluster_config_file))?;
    let coordinator = brisk_coordinate::open(&setting, &name, &etcd_options(config))
        .map_err(|error| format!("cluster-coordinator: {error}"))?;
    let id = files.own_id()?;
    let routed_ip = identity::route_to(&setting);
    let mut own = identity::registration(config, id, routed_ip)?;
    if let CoordinatorSetting::Static(_) = setting {
        let read = coordinator.read().map_err(|error| error.to_string())?;
        let topology = read.document.map(|document| Topology::parse(&document)).transpose();
        if let Some(topology) = topology.map_err(|error| error.to_string())? {
            fixed::adopt_place(&mut own, &topology);
        }
    }
    shared.log.notice(format_args!("Node configuration loaded, I'm {}", own.id));
    shared.cluster.enable(own);
    let Some(state) = shared.cluster.state() else { return Ok(None) };
    if let CoordinatorSetting::Static(_) = setting {
        state.set_static();
    }
    peers::start(shared, state).map_err(|error| format!("cannot start a thread: {error}"))?;
    let parts = WatcherParts { shared, state, coordinator, setting, name, files, routed_ip };
    let watcher = TopologyWatcher::begin(parts)?;
    state.set_writer(Arc::clone(&watcher) as _);
    state.set_reporter(Arc::clone(&watcher) as _);
    let mut runs = vec![
        ("brisk-lease", lease::run as ThreadBody),
        ("brisk-coord", coord::run),
        ("brisk-watch", watch::run),
        ("brisk-files", save::run),
        ("brisk-switch", switch::run),
    ];
    if watcher.has_expiring_leases() {
        runs.push(("brisk-acks", availability::run));
    }
    let mut threads = Vec::new();
    for (name, run) in runs {
        let watcher = Arc::clone(&watcher);
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || run(&watcher));
        threads.push(thread.map_err(|error| format!("cannot start a thread: {error}"))?);
    }
    Ok(Some(TopologyThreads { watcher, threads }))
}

impl TopologyThreads {
    /// Hands over to a replica, ends the lease so that a failover can begin immediately, and stops the threads. The
    /// workers have already ended, so no client is served any more.
    pub(crate) fn stop(self) {
        self.watcher.stop();
        for thread in self.threads {
            // A thread that panicked has reported it on stderr.
            let _ = thread.join();
        }
    }
}

/// The coordinator that the settings name. Relative paths are relative to `dir`.
fn setting(config: &Config) -> Result<CoordinatorSetting, String> {
    let setting: CoordinatorSetting = config
        .cluster
        .cluster_coordinator
        .to_string_lossy()
        .parse()
        .map_err(|error| format!("cluster-coordinator: {error}"))?;
    let in_dir = |path: PathBuf| config.process.dir.as_path().join(path);
    Ok(match setting {
        CoordinatorSetting::Local(path) => CoordinatorSetting::Local(in_dir(path)),
        CoordinatorSetting::Static(path) => CoordinatorSetting::Static(in_dir(path)),
        etcd @ CoordinatorSetting::Etcd { .. } => etcd,
    })
}

fn etcd_options(config: &Config) -> EtcdOptions {
    let cluster = &config.cluster;
    let text = |text: &brisk_config::value::Text| {
        (!text.is_empty()).then(|| text.to_string_lossy().into_owned())
    };
    let ca_file = &cluster.cluster_coordinator_ca_file;
    EtcdOptions {
        user: text(&cluster.cluster_coordinator_user),
        password: text(&cluster.cluster_coordinator_password),
        ca_file: (!ca_file.is_empty()).then(|| config.path_in_dir(ca_file)),
        ..EtcdOptions::default()
    }
}
