//! The coordinators against which the contract is tested.

use crate::gateway;
use brisk_coordinate::Coordinator;
use brisk_coordinate::etcd::{EtcdCoordinator, EtcdOptions};
use brisk_coordinate::local::LocalCoordinator;
use brisk_coordinate::model::{Model, ModelFaults};
use brisk_coordinate::setting::Endpoint;
use brisk_coordinate::values::{ClusterName, Incarnation, NodeId, NodeRegistration, Revision};
use brisk_testkit::TempDir;
use brisk_testkit::etcd::{Etcd, EtcdLaunch};
use brisk_testkit::wait::wait_until;
use std::time::Duration;

/// Virtual time that passes between two checks of a condition.
const MODEL_STEP: Duration = Duration::from_millis(100);

/// A store that tests connect to.
#[derive(Debug)]
pub(crate) enum Subject {
    Local(TempDir),
    Model(Model),
    Etcd(Etcd),
}

impl Subject {
    /// A new coordinator, as in a process of its own.
    pub(crate) fn connect(&self) -> Box<dyn Coordinator> {
        match self {
            Subject::Local(dir) => Box::new(open_local(dir)),
            Subject::Model(model) => Box::new(model.connect()),
            Subject::Etcd(etcd) => Box::new(open_etcd(etcd, &EtcdOptions::default())),
        }
    }

    /// Waits until a condition is true, while the virtual clock of a model advances.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        wait_until(what, || {
            if let Subject::Model(model) = self {
                model.advance(MODEL_STEP);
            }
            condition()
        });
    }

    /// Makes the store forget changes up to a revision, if it does not do so on its own.
    pub(crate) fn compact(&self, revision: Revision) {
        match self {
            Subject::Local(_) => {}
            Subject::Model(model) => model.compact(),
            Subject::Etcd(etcd) => {
                let body = format!("{{\"revision\":\"{revision}\"}}");
                gateway::post(&etcd.endpoints()[0], "/v3/kv/compaction", &body);
            }
        }
    }
}

/// The local coordinator in a test's directory.
pub(crate) fn open_local(dir: &TempDir) -> LocalCoordinator {
    LocalCoordinator::open(&dir.path("store"), &cluster()).expect("the directory can be used")
}

/// A coordinator that uses all members.
pub(crate) fn open_etcd(etcd: &Etcd, options: &EtcdOptions) -> EtcdCoordinator {
    open_endpoints(&etcd.endpoints(), false, options)
}

/// A coordinator that uses these addresses.
pub(crate) fn open_endpoints(
    addresses: &[String],
    is_tls: bool,
    options: &EtcdOptions,
) -> EtcdCoordinator {
    let endpoint = |address: &String| {
        let (host, port) = address.rsplit_once(':').expect("an address has a port");
        Endpoint { host: host.to_owned(), port: port.parse().expect("a port is a number") }
    };
    let endpoints: Vec<Endpoint> = addresses.iter().map(endpoint).collect();
    EtcdCoordinator::new(&endpoints, is_tls, &cluster(), options).expect("the options are good")
}

/// The name of the cluster that all tests use.
pub(crate) fn cluster() -> ClusterName {
    ClusterName::parse("brisk").expect("the name is valid")
}

/// Runs a test against each coordinator.
pub(crate) fn each_subject(test: impl Fn(&Subject)) {
    test(&Subject::Local(TempDir::new()));
    test(&Subject::Model(Model::new(1, ModelFaults::default())));
    let lagging = ModelFaults {
        watch_lag_max: Duration::from_millis(300),
        expiry_lag_max: Duration::from_millis(700),
        ..ModelFaults::default()
    };
    test(&Subject::Model(Model::new(2, lagging)));
    for members in [1, 3] {
        // On a busy machine, elections would leave the outcomes of some changes unknown.
        let launch = EtcdLaunch::new(members);
        let launch = launch.arg("--heartbeat-interval=300").arg("--election-timeout=3000");
        if let Some(etcd) = launch.start() {
            test(&Subject::Etcd(etcd));
        }
    }
}

/// The id that consists of one repeated digit.
pub(crate) fn id(digit: u8) -> NodeId {
    NodeId::parse(&digit.to_string().repeat(40)).expect("the id is valid")
}

/// The registration of a node.
pub(crate) fn registration(digit: u8, incarnation: &str) -> NodeRegistration {
    NodeRegistration {
        node: id(digit),
        incarnation: Incarnation::parse(incarnation).expect("the incarnation is valid"),
        details: format!("{{\"port\":700{digit}}}").into_bytes(),
    }
}
