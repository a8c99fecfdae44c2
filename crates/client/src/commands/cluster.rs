//! Commands of the group `cluster`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BINDS, PLAIN};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::options;
use crate::request::Request;

/// Has no effect, because slots are not imported.
///
/// `ASKING`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn asking() -> Command<(), ()> {
    Command::typed(Request::new("ASKING", BINDS))
}

/// Assigns slots to this node.
///
/// `CLUSTER ADDSLOTS slot …`
///
/// O(N) in the number of slots. Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_addslots(slots: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("CLUSTER ADDSLOTS", PLAIN);
    request.args(slots);
    Command::typed(request)
}

/// Assigns ranges of slots to this node.
///
/// `CLUSTER ADDSLOTSRANGE start-slot end-slot …`
///
/// O(N) in the number of slots in the ranges. Since Redis 7.0.0. Errors: those of the server.
pub fn cluster_addslotsrange(slot_ranges: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("CLUSTER ADDSLOTSRANGE", PLAIN);
    request.args(slot_ranges);
    Command::typed(request)
}

/// Returns the epoch of the topology, and does not change it.
///
/// `CLUSTER BUMPEPOCH`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_bumpepoch() -> Command<(), String> {
    Command::typed(Request::new("CLUSTER BUMPEPOCH", PLAIN))
}

/// Returns 0, because nodes do not send failure reports.
///
/// `CLUSTER COUNT-FAILURE-REPORTS node-id`
///
/// O(N) in the number of reports. Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_count_failure_reports(node_id: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("CLUSTER COUNT-FAILURE-REPORTS", PLAIN);
    request.arg(node_id);
    Command::typed(request)
}

/// Returns the number of keys in a slot.
///
/// `CLUSTER COUNTKEYSINSLOT slot`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_countkeysinslot(slot: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("CLUSTER COUNTKEYSINSLOT", PLAIN);
    request.arg(slot);
    Command::typed(request)
}

/// Unassigns slots from this node.
///
/// `CLUSTER DELSLOTS slot …`
///
/// O(N) in the number of slots. Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_delslots(slots: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("CLUSTER DELSLOTS", PLAIN);
    request.args(slots);
    Command::typed(request)
}

/// Unassigns ranges of slots from this node.
///
/// `CLUSTER DELSLOTSRANGE start-slot end-slot …`
///
/// O(N) in the number of slots in the ranges. Since Redis 7.0.0. Errors: those of the server.
pub fn cluster_delslotsrange(slot_ranges: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("CLUSTER DELSLOTSRANGE", PLAIN);
    request.args(slot_ranges);
    Command::typed(request)
}

/// Promotes this replica to primary.
///
/// `CLUSTER FAILOVER [FORCE | TAKEOVER]`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_failover() -> Command<(), (), options::ClusterFailover> {
    Command::typed(Request::new("CLUSTER FAILOVER", PLAIN))
}

/// Unassigns all slots from this node.
///
/// `CLUSTER FLUSHSLOTS`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_flushslots() -> Command<(), ()> {
    Command::typed(Request::new("CLUSTER FLUSHSLOTS", PLAIN))
}

/// Removes a node from the cluster.
///
/// `CLUSTER FORGET node-id`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_forget(node_id: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLUSTER FORGET", PLAIN);
    request.arg(node_id);
    Command::typed(request)
}

/// Returns keys in a slot.
///
/// `CLUSTER GETKEYSINSLOT slot count`
///
/// O(log(N)) in the number of requested keys. Since Redis 3.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn cluster_getkeysinslot<T>(slot: impl ToArg, count: impl ToArg) -> Command<(), Vec<T>> {
    let mut request = Request::new("CLUSTER GETKEYSINSLOT", PLAIN);
    request.arg(slot);
    request.arg(count);
    Command::typed(request)
}

/// Lists the subcommands.
///
/// `CLUSTER HELP`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn cluster_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("CLUSTER HELP", PLAIN))
}

/// Shows the state of the cluster.
///
/// `CLUSTER INFO`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_info() -> Command<(), String> {
    Command::typed(Request::new("CLUSTER INFO", PLAIN))
}

/// Computes the slot of a key.
///
/// `CLUSTER KEYSLOT key`
///
/// O(N) in the length of the key. Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_keyslot(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("CLUSTER KEYSLOT", PLAIN);
    request.arg(key);
    Command::typed(request)
}

/// Lists the links of the cluster bus; in Brisk, there are none.
///
/// `CLUSTER LINKS`
///
/// O(N) in the number of nodes. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn cluster_links<T>() -> Command<(), Vec<T>> {
    Command::typed(Request::new("CLUSTER LINKS", PLAIN))
}

/// Adds another node to the cluster.
///
/// `CLUSTER MEET ip port [cluster_bus_port]`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_meet(ip: impl ToArg, port: impl ToArg) -> Command<(), (), options::ClusterMeet> {
    let mut request = Request::new("CLUSTER MEET", PLAIN);
    request.arg(ip);
    request.arg(port);
    Command::typed(request)
}

/// Shows the id of this node.
///
/// `CLUSTER MYID`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_myid() -> Command<(), String> {
    Command::typed(Request::new("CLUSTER MYID", PLAIN))
}

/// Shows the id of the shard of this node.
///
/// `CLUSTER MYSHARDID`
///
/// O(1). Since Redis 7.2.0. Errors: those of the server.
pub fn cluster_myshardid() -> Command<(), String> {
    Command::typed(Request::new("CLUSTER MYSHARDID", PLAIN))
}

/// Lists the nodes known to this node.
///
/// `CLUSTER NODES`
///
/// O(N) in the number of nodes. Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_nodes() -> Command<(), String> {
    Command::typed(Request::new("CLUSTER NODES", PLAIN))
}

/// Shows the replicas of a primary.
///
/// `CLUSTER REPLICAS node-id`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn cluster_replicas<T>(node_id: impl ToArg) -> Command<(), Vec<T>> {
    let mut request = Request::new("CLUSTER REPLICAS", PLAIN);
    request.arg(node_id);
    Command::typed(request)
}

/// Makes this node a replica of a primary.
///
/// `CLUSTER REPLICATE node-id`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_replicate(node_id: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLUSTER REPLICATE", PLAIN);
    request.arg(node_id);
    Command::typed(request)
}

/// Removes this node from the cluster.
///
/// `CLUSTER RESET [HARD | SOFT]`
///
/// O(N) in the number of known nodes, and the cost of FLUSHALL on a replica. Since Redis 3.0.0. Errors: those
/// of the server.
pub fn cluster_reset() -> Command<(), (), options::ClusterReset> {
    Command::typed(Request::new("CLUSTER RESET", PLAIN))
}

/// Has no effect, because the node saves every change of the topology.
///
/// `CLUSTER SAVECONFIG`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_saveconfig() -> Command<(), ()> {
    Command::typed(Request::new("CLUSTER SAVECONFIG", PLAIN))
}

/// Checks its argument and has no other effect.
///
/// `CLUSTER SET-CONFIG-EPOCH config-epoch`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_set_config_epoch(config_epoch: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLUSTER SET-CONFIG-EPOCH", PLAIN);
    request.arg(config_epoch);
    Command::typed(request)
}

/// Assigns a slot without an owner to this node.
///
/// `CLUSTER SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_setslot_importing(slot: impl ToArg, node_id: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLUSTER SETSLOT", PLAIN);
    request.arg(slot);
    request.arg("IMPORTING");
    request.arg(node_id);
    Command::typed(request)
}

/// Assigns a slot without an owner to this node.
///
/// `CLUSTER SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_setslot_migrating(slot: impl ToArg, node_id: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLUSTER SETSLOT", PLAIN);
    request.arg(slot);
    request.arg("MIGRATING");
    request.arg(node_id);
    Command::typed(request)
}

/// Assigns a slot without an owner to this node.
///
/// `CLUSTER SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_setslot_node(slot: impl ToArg, node_id: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLUSTER SETSLOT", PLAIN);
    request.arg(slot);
    request.arg("NODE");
    request.arg(node_id);
    Command::typed(request)
}

/// Assigns a slot without an owner to this node.
///
/// `CLUSTER SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
pub fn cluster_setslot_stable(slot: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLUSTER SETSLOT", PLAIN);
    request.arg(slot);
    request.arg("STABLE");
    Command::typed(request)
}

/// Shows slots and nodes by shard.
///
/// `CLUSTER SHARDS`
///
/// O(N) in the number of nodes. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn cluster_shards<T>() -> Command<(), Vec<T>> {
    Command::typed(Request::new("CLUSTER SHARDS", PLAIN))
}

/// Shows the replicas of a primary.
///
/// `CLUSTER SLAVES node-id`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
#[deprecated(note = "since Redis 5.0.0: `CLUSTER REPLICAS` instead")]
pub fn cluster_slaves<T>(node_id: impl ToArg) -> Command<(), Vec<T>> {
    let mut request = Request::new("CLUSTER SLAVES", PLAIN);
    request.arg(node_id);
    Command::typed(request)
}

/// Shows the nodes that serve each range of slots.
///
/// `CLUSTER SLOTS`
///
/// O(N) in the number of nodes. Since Redis 3.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
#[deprecated(note = "since Redis 7.0.0: `CLUSTER SHARDS` instead")]
pub fn cluster_slots<T>() -> Command<(), Vec<T>> {
    Command::typed(Request::new("CLUSTER SLOTS", PLAIN))
}

/// Allows this connection to read from a replica.
///
/// `READONLY`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn readonly() -> Command<(), ()> {
    Command::typed(Request::new("READONLY", BINDS))
}

/// Disables READONLY for this connection.
///
/// `READWRITE`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn readwrite() -> Command<(), ()> {
    Command::typed(Request::new("READWRITE", BINDS))
}
