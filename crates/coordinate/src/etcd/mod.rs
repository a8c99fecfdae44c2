//! `etcd://` and `etcds://`: a coordinator in etcd, accessed through its JSON gateway over
//! HTTP/1.1.
//!
//! | file | about |
//! |---|---|
//! | `client` | which member is called, for how long, and what its errors mean |
//! | `connection` | one connection with time limits, plain or TLS |
//! | `http` | reads responses |
//! | `messages` | requests and responses of the gateway |
//! | `tls` | certificates |
//! | `version` | rejects versions that lose data |
//! | `watch` | the stream of changes |
//!
//! ```text
//! /<name>/topology    the document
//! /<name>/nodes/<id>  attached to the node's lease: incarnation, line end, details
//! /<name>/controller  attached to the controller's lease: node id
//! /<name>/status/<id> attached to the node's lease: status
//! ```
//!
//! etcd's revisions are the revisions of this interface. A write request that got no response has
//! an unknown outcome. etcd may apply it later, even after a quorum was lost and restored.

mod client;
mod connection;
mod http;
mod messages;
mod tls;
mod version;
mod watch;

use self::client::{CallError, CallLimits, Credentials, EtcdClient, Repeat};
use self::connection::WaitLimit;
use self::messages::{Compare, KeyValue, MessageError, Operation, TransactionResponse};
use self::tls::EtcdTls;
use self::watch::EtcdWatch;
use crate::clock::BootTime;
use crate::coordinator::{Coordinator, Watch};
use crate::error::CoordinatorError;
use crate::setting::Endpoint;
use crate::stop::StopFlag;
use crate::values::{
    Campaign, ChangeOutcome, Claim, ClusterName, ClusterSnapshot, Controller, DETAILS_BYTES_MAX,
    DOCUMENT_BYTES_MAX, Lease, LeaseId, LeaseTtl, NODES_MAX, NodeId, NodeRegistration, NodeStatus,
    RegisteredNode, Revision, STATUS_BYTES_MAX, Topology, TopologyChange, check_size,
    decode_registration, encode_registration,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of attempts to register while another process registers the same id.
const REGISTRATIONS_MAX: usize = 5;
/// A renewal takes at most 1/`RENEWAL_PARTS` of the TTL.
const RENEWAL_PARTS: u32 = 2;

/// How to authenticate to etcd, and which certificates to trust.
#[derive(Clone, Default)]
pub struct EtcdOptions {
    /// `cluster-coordinator-user` and `cluster-coordinator-password`.
    pub user: Option<String>,
    pub password: Option<String>,
    /// `cluster-coordinator-ca-file`: CA certificates in PEM format. Without this file, the
    /// system's CA certificates are used.
    pub ca_file: Option<PathBuf>,
    /// A client certificate in PEM format. Its subject must have no common name.
    pub certificate_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
}

/// The password is not shown.
impl std::fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdOptions")
            .field("user", &self.user)
            .field("ca_file", &self.ca_file)
            .field("certificate_file", &self.certificate_file)
            .finish_non_exhaustive()
    }
}

/// A [`Coordinator`] in etcd. Host names are resolved by the system for each new connection; the
/// resolver's time limits are added to the limits here.
#[derive(Debug)]
pub struct EtcdCoordinator {
    client: Arc<EtcdClient>,
    keys: EtcdKeys,
}

/// The keys of a cluster.
#[derive(Debug, Clone)]
struct EtcdKeys {
    root: String,
}

impl EtcdKeys {
    fn topology(&self) -> String {
        format!("{}topology", self.root)
    }

    fn controller(&self) -> String {
        format!("{}controller", self.root)
    }

    fn nodes(&self) -> String {
        format!("{}nodes/", self.root)
    }

    fn node(&self, node: NodeId) -> String {
        format!("{}nodes/{node}", self.root)
    }

    fn statuses(&self) -> String {
        format!("{}status/", self.root)
    }

    fn status(&self, node: NodeId) -> String {
        format!("{}status/{node}", self.root)
    }
}

impl EtcdCoordinator {
    /// A coordinator that connects with its first call.
    ///
    /// # Errors
    /// The files for TLS cannot be used.
    pub fn new(
        endpoints: &[Endpoint],
        is_tls: bool,
        cluster: &ClusterName,
        options: &EtcdOptions,
    ) -> Result<EtcdCoordinator, CoordinatorError> {
        if endpoints.is_empty() {
            return Err(CoordinatorError::Unreachable("no endpoint is set".to_owned()));
        }
        let credentials = options.user.as_ref().map(|user| Credentials {
            user: user.clone(),
            password: options.password.clone().unwrap_or_default(),
        });
        let client = EtcdClient {
            endpoints: endpoints.to_vec(),
            tls: if is_tls { Some(EtcdTls::new(options)?) } else { None },
            credentials,
            stop: StopFlag::default(),
            current: 0.into(),
            idle: Vec::new().into(),
            token: None.into(),
        };
        let keys = EtcdKeys { root: format!("/{cluster}/") };
        Ok(EtcdCoordinator { client: Arc::new(client), keys })
    }

    fn check_running(&self) -> Result<(), CoordinatorError> {
        if self.client.stop.is_stopped() { Err(CoordinatorError::Stopped) } else { Ok(()) }
    }

    /// A call that may be repeated.
    fn read_call<T>(
        &self,
        path: &str,
        body: &Value,
        limits: CallLimits,
        parse: impl Fn(&Value) -> Result<T, MessageError>,
    ) -> Result<T, CoordinatorError> {
        self.check_running()?;
        let response = self.client.call(path, body, limits, Repeat::Safe);
        let response = response.map_err(|failed| failed.error)?;
        parse(&response).map_err(|error| self.invalid_response(error))
    }

    fn invalid_response(&self, error: MessageError) -> CoordinatorError {
        self.client.misread(self.client.current(), error).error
    }

    /// A transaction whose outcome may be unknown.
    fn write_transaction(
        &self,
        transaction: &Value,
        limits: CallLimits,
    ) -> Result<TransactionResponse, CallError> {
        let path = "/v3/kv/txn";
        let response = self.client.call(path, transaction, limits, Repeat::Never)?;
        TransactionResponse::parse(&response)
            .map_err(|error| self.client.misread(self.client.current(), error))
    }

    fn range_prefix(&self, prefix: &str) -> Result<Vec<KeyValue>, CoordinatorError> {
        let range = messages::range_prefix(prefix, NODES_MAX + 1);
        let found =
            self.read_call("/v3/kv/range", &range, CallLimits::READ, messages::key_values)?;
        check_count(found)
    }

    /// Grants a lease: its number and its TTL.
    fn grant(&self, ttl: LeaseTtl) -> Result<(LeaseId, LeaseTtl), CoordinatorError> {
        let body = json!({"TTL": ttl.seconds().to_string()});
        self.read_call("/v3/lease/grant", &body, CallLimits::READ, |response| {
            let id = messages::number(response, "ID")?;
            let granted = Duration::from_secs(messages::number(response, "TTL")?);
            // A lease without a number or a TTL is not valid.
            let is_lease = id > 0 && !granted.is_zero();
            if is_lease {
                Ok((LeaseId(id), LeaseTtl::at_least(granted)))
            } else {
                Err(MessageError::Field)
            }
        })
    }

    fn revoke(&self, lease: LeaseId) -> Result<(), CoordinatorError> {
        let body = json!({"ID": lease.0.to_string()});
        match self.read_call("/v3/lease/revoke", &body, CallLimits::READ, |_| Ok(())) {
            // The lease had already ended.
            Err(CoordinatorError::LeaseLost) => Ok(()),
            other => other,
        }
    }

    /// Attaches the node's key to a granted lease.
    fn attach(
        &self,
        registration: &NodeRegistration,
        lease: LeaseId,
        claim: Claim,
    ) -> Result<(), CoordinatorError> {
        let node = registration.node;
        let key = self.keys.node(node);
        let value = encode_registration(registration);
        for _ in 0..REGISTRATIONS_MAX {
            let range = messages::range(&key);
            let found =
                self.read_call("/v3/kv/range", &range, CallLimits::READ, messages::key_values)?;
            let present = found.first();
            let earlier = present.and_then(|present| decode_registration(node, &present.value));
            if claim == Claim::Resume
                && let Some(earlier) = earlier
                && earlier.incarnation != registration.incarnation
            {
                return Err(CoordinatorError::taken_by(earlier));
            }
            let revision = present.map_or(0, |present| present.mod_revision);
            let put = Operation::Put { key: &key, value: &value, lease: lease.0 };
            let compare = Compare::ModRevision(&key, revision);
            let transaction = messages::transaction(&[compare], &[put], &[]);
            let response = self.write_transaction(&transaction, CallLimits::WRITE);
            let response = response.map_err(|failed| failed.error)?;
            if response.succeeded {
                let old = present.map_or(0, |present| present.lease);
                if old != 0 && old != lease.0 {
                    // The earlier process notices this at its next renewal. If the revocation gets
                    // no response, the lease ends on its own, and a renewal also checks the key.
                    _ = self.revoke(LeaseId(old));
                }
                return Ok(());
            }
        }
        Err(CoordinatorError::Rejected(format!("node {node} is registered by several processes")))
    }

    /// Renews a lease at one endpoint.
    ///
    /// A member that believes itself to be the leader responds to a keepalive even without a
    /// quorum. A linearizable read from the same member therefore follows. If both responses have
    /// the same raft term, then the keepalive reached the leader of that term, and a later leader
    /// restarts the TTL.
    fn renew_at(&self, lease: &Lease, at: usize, limit: &WaitLimit) -> Result<Lease, CallError> {
        let client = &*self.client;
        let sent_at = BootTime::now();
        let body = json!({"ID": lease.id.0.to_string()}).to_string();
        let response = client.call_at(at, "/v3/lease/keepalive", &body, limit)?;
        let misread = |error| client.misread(at, error);
        let Some(result) = response.get("result") else {
            let status = 500;
            let error = response.get("error").unwrap_or(&response);
            return Err(client.meaning(at, status, error, &error.to_string()));
        };
        let (_, term) = messages::header(result).map_err(misread)?;
        let ttl = messages::number(result, "TTL").map_err(misread)?;
        if ttl == 0 {
            return Err(CallError::final_error(CoordinatorError::LeaseLost));
        }
        let range = messages::range(&self.keys.node(lease.node)).to_string();
        let response = client.call_at(at, "/v3/kv/range", &range, limit)?;
        let (_, read_term) = messages::header(&response).map_err(misread)?;
        let found = messages::key_values(&response).map_err(misread)?;
        if found.first().is_none_or(|entry| entry.lease != lease.id.0) {
            return Err(CallError::final_error(CoordinatorError::LeaseLost));
        }
        if read_term != term {
            let why = format!("{}: the leader changed during the request", client.endpoints[at]);
            return Err(CallError::other_endpoint(CoordinatorError::NoLeader(why)));
        }
        let ttl = LeaseTtl::at_least(Duration::from_secs(ttl));
        Ok(Lease { ttl, expires_at: Some(sent_at.after(ttl.duration())), ..lease.clone() })
    }

    fn try_change(
        &self,
        change: &TopologyChange<'_>,
        limits: CallLimits,
    ) -> Result<Option<Revision>, CallError> {
        let size = check_size("document", change.document.len(), DOCUMENT_BYTES_MAX);
        size.and_then(|()| self.check_running()).map_err(CallError::final_error)?;
        let (topology, controller) = (self.keys.topology(), self.keys.controller());
        let mut compare = vec![Compare::ModRevision(&topology, change.expected.0)];
        let since = change.controller.map(|controller| controller.since.0);
        compare.extend(since.map(|since| Compare::CreateRevision(&controller, since)));
        let put = Operation::Put { key: &topology, value: change.document, lease: 0 };
        let transaction = messages::transaction(&compare, &[put], &[]);
        let response = self.write_transaction(&transaction, limits)?;
        Ok(response.succeeded.then_some(Revision(response.revision)))
    }

    /// The outcome of a change to which etcd has replied that it has no space. etcd applies the request that exceeds
    /// the quota and rejects later ones. In both cases the outcome is certain once the reply has arrived.
    fn outcome_without_space(&self, change: &TopologyChange<'_>, limit: Duration) -> ChangeOutcome {
        match self.read_within(limit) {
            Ok(topology) if topology.document.as_deref() == Some(change.document) => {
                ChangeOutcome::Changed(topology.revision)
            }
            Ok(topology) if topology.revision == change.expected => {
                ChangeOutcome::Refused(CoordinatorError::NoSpace)
            }
            // Another node may have changed the document after this change.
            Ok(_) => ChangeOutcome::Unknown(CoordinatorError::NoSpace),
            Err(error) => ChangeOutcome::Unknown(error),
        }
    }
}

impl Coordinator for EtcdCoordinator {
    fn now(&self) -> BootTime {
        BootTime::now()
    }

    fn read_within(&self, limit: Duration) -> Result<Topology, CoordinatorError> {
        let (range, limits) =
            (messages::range(&self.keys.topology()), CallLimits::READ.within(limit));
        let found = self.read_call("/v3/kv/range", &range, limits, messages::key_values)?;
        Ok(topology_of(found.first()))
    }

    fn snapshot_within(&self, limit: Duration) -> Result<ClusterSnapshot, CoordinatorError> {
        let (topology, controller) = (self.keys.topology(), self.keys.controller());
        let nodes = self.keys.nodes();
        let operations = [
            Operation::Range(&topology),
            Operation::Range(&controller),
            Operation::RangePrefix(&nodes, NODES_MAX + 1),
        ];
        let transaction = messages::transaction(&[], &operations, &[]);
        let limits = CallLimits::READ.within(limit);
        let response =
            self.read_call("/v3/kv/txn", &transaction, limits, TransactionResponse::parse)?;
        let entries = check_count(response.ranges.get(2).cloned().unwrap_or_default())?;
        Ok(ClusterSnapshot {
            revision: Revision(response.revision),
            topology: topology_of(response.first(0)),
            nodes: entries.iter().filter_map(|entry| node_of(entry, &nodes)).collect(),
            controller: response.first(1).and_then(controller_of),
        })
    }

    fn change_within(&self, change: &TopologyChange<'_>, limit: Duration) -> ChangeOutcome {
        match self.try_change(change, CallLimits::WRITE.within(limit)) {
            Ok(Some(revision)) => ChangeOutcome::Changed(revision),
            Ok(None) => ChangeOutcome::Conflict,
            Err(CallError { error: CoordinatorError::NoSpace, .. }) => {
                self.outcome_without_space(change, limit)
            }
            Err(failed) if failed.may_have_happened => ChangeOutcome::Unknown(failed.error),
            Err(failed) => ChangeOutcome::Refused(failed.error),
        }
    }

    fn register(
        &self,
        registration: &NodeRegistration,
        ttl: LeaseTtl,
        claim: Claim,
    ) -> Result<Lease, CoordinatorError> {
        check_size("registration", registration.details.len(), DETAILS_BYTES_MAX)?;
        let sent_at = BootTime::now();
        let (id, ttl) = self.grant(ttl)?;
        if let Err(error) = self.attach(registration, id, claim) {
            // If this fails, the unused lease ends on its own.
            _ = self.revoke(id);
            return Err(error);
        }
        let (node, incarnation) = (registration.node, registration.incarnation.clone());
        Ok(Lease { id, node, incarnation, ttl, expires_at: Some(sent_at.after(ttl.duration())) })
    }

    fn renew(&self, lease: &Lease) -> Result<Lease, CoordinatorError> {
        self.check_running()?;
        let renew = |at, limit: &WaitLimit| self.renew_at(lease, at, limit);
        let limits = CallLimits::READ.within(lease.ttl.duration() / RENEWAL_PARTS);
        let renewed = self.client.call_with(limits, Repeat::Safe, renew);
        renewed.map_err(|failed| failed.error)
    }

    fn end(&self, lease: &Lease) -> Result<(), CoordinatorError> {
        self.revoke(lease.id)
    }

    fn campaign(&self, lease: &Lease) -> Result<Campaign, CoordinatorError> {
        let key = self.keys.controller();
        let value = lease.node.as_str().as_bytes();
        let put = Operation::Put { key: &key, value, lease: lease.id.0 };
        let compare = Compare::CreateRevision(&key, 0);
        let transaction = messages::transaction(&[compare], &[put], &[Operation::Range(&key)]);
        // A repeated attempt finds the key of the first one.
        let limits = CallLimits::READ;
        let response =
            self.read_call("/v3/kv/txn", &transaction, limits, TransactionResponse::parse)?;
        if response.succeeded {
            let since = Revision(response.revision);
            return Ok(Campaign::Elected(Controller { node: lease.node, since }));
        }
        let entry = response.first(0);
        let controller = entry.and_then(controller_of);
        let controller = controller.ok_or_else(|| self.invalid_response(MessageError::Field))?;
        if entry.is_some_and(|entry| entry.lease == lease.id.0) {
            return Ok(Campaign::Elected(controller));
        }
        // etcd checks the lease only if the office is vacant.
        let body = json!({"ID": lease.id.0.to_string()});
        let is_ended = |ttl: &Value| ttl.as_str() == Some("-1") || ttl.as_i64() == Some(-1);
        let left = |response: &Value| Ok(!response.get("TTL").is_some_and(is_ended));
        if !self.read_call("/v3/lease/timetolive", &body, limits, left)? {
            return Err(CoordinatorError::LeaseLost);
        }
        Ok(Campaign::Held(controller))
    }

    fn resign(&self, lease: &Lease) -> Result<(), CoordinatorError> {
        let key = self.keys.controller();
        let compare = Compare::Lease(&key, lease.id.0);
        let transaction = messages::transaction(&[compare], &[Operation::Delete(&key)], &[]);
        self.read_call("/v3/kv/txn", &transaction, CallLimits::READ, |_| Ok(()))
    }

    fn put_status(&self, lease: &Lease, status: &[u8]) -> Result<(), CoordinatorError> {
        check_size("status", status.len(), STATUS_BYTES_MAX)?;
        let key = self.keys.status(lease.node);
        let put = Operation::Put { key: &key, value: status, lease: lease.id.0 };
        let transaction = messages::transaction(&[], &[put], &[]);
        self.read_call("/v3/kv/txn", &transaction, CallLimits::READ, |_| Ok(()))
    }

    fn statuses(&self) -> Result<Vec<NodeStatus>, CoordinatorError> {
        let prefix = self.keys.statuses();
        let found = self.range_prefix(&prefix)?;
        let status = |entry: KeyValue| {
            let node = NodeId::parse(entry.key.strip_prefix(&prefix)?).ok()?;
            Some(NodeStatus { node, status: entry.value })
        };
        Ok(found.into_iter().filter_map(status).collect())
    }

    fn watch(&self, after: Revision) -> Box<dyn Watch> {
        Box::new(EtcdWatch::new(Arc::clone(&self.client), self.keys.clone(), after))
    }

    fn stop(&self) {
        self.client.stop.stop();
    }
}

fn check_count(found: Vec<KeyValue>) -> Result<Vec<KeyValue>, CoordinatorError> {
    if found.len() > NODES_MAX {
        return Err(CoordinatorError::TooManyNodes { max: NODES_MAX });
    }
    Ok(found)
}

fn topology_of(entry: Option<&KeyValue>) -> Topology {
    match entry {
        Some(entry) => {
            Topology { revision: Revision(entry.mod_revision), document: Some(entry.value.clone()) }
        }
        None => Topology { revision: Revision::NONE, document: None },
    }
}

/// The node of a key; `None` if other software wrote it.
fn node_of(entry: &KeyValue, prefix: &str) -> Option<RegisteredNode> {
    let node = NodeId::parse(entry.key.strip_prefix(prefix)?).ok()?;
    let registration = decode_registration(node, &entry.value)?;
    Some(RegisteredNode { registration, revision: Revision(entry.mod_revision) })
}

fn controller_of(entry: &KeyValue) -> Option<Controller> {
    let node = NodeId::parse(std::str::from_utf8(&entry.value).ok()?).ok()?;
    Some(Controller { node, since: Revision(entry.create_revision) })
}
