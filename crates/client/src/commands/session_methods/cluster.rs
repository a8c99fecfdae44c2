//! Commands of the group `cluster` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::options;
use crate::session::Session;

/// Commands of the group `cluster`.
impl Session {
    /// Has no effect, because slots are not imported.
    ///
    /// `ASKING`
    pub fn asking(&self) -> Command<&Session, ()> {
        commands::asking().on(self)
    }

    /// Assigns slots to this node.
    ///
    /// `CLUSTER ADDSLOTS slot …`
    pub fn cluster_addslots(&self, slots: impl ToArgs) -> Command<&Session, ()> {
        commands::cluster_addslots(slots).on(self)
    }

    /// Assigns ranges of slots to this node.
    ///
    /// `CLUSTER ADDSLOTSRANGE start-slot end-slot …`
    pub fn cluster_addslotsrange(&self, slot_ranges: impl ToArgs) -> Command<&Session, ()> {
        commands::cluster_addslotsrange(slot_ranges).on(self)
    }

    /// Returns the epoch of the topology, and does not change it.
    ///
    /// `CLUSTER BUMPEPOCH`
    pub fn cluster_bumpepoch(&self) -> Command<&Session, String> {
        commands::cluster_bumpepoch().on(self)
    }

    /// Returns 0, because nodes do not send failure reports.
    ///
    /// `CLUSTER COUNT-FAILURE-REPORTS node-id`
    pub fn cluster_count_failure_reports(&self, node_id: impl ToArg) -> Command<&Session, i64> {
        commands::cluster_count_failure_reports(node_id).on(self)
    }

    /// Returns the number of keys in a slot.
    ///
    /// `CLUSTER COUNTKEYSINSLOT slot`
    pub fn cluster_countkeysinslot(&self, slot: impl ToArg) -> Command<&Session, i64> {
        commands::cluster_countkeysinslot(slot).on(self)
    }

    /// Unassigns slots from this node.
    ///
    /// `CLUSTER DELSLOTS slot …`
    pub fn cluster_delslots(&self, slots: impl ToArgs) -> Command<&Session, ()> {
        commands::cluster_delslots(slots).on(self)
    }

    /// Unassigns ranges of slots from this node.
    ///
    /// `CLUSTER DELSLOTSRANGE start-slot end-slot …`
    pub fn cluster_delslotsrange(&self, slot_ranges: impl ToArgs) -> Command<&Session, ()> {
        commands::cluster_delslotsrange(slot_ranges).on(self)
    }

    /// Promotes this replica to primary.
    ///
    /// `CLUSTER FAILOVER [FORCE | TAKEOVER]`
    pub fn cluster_failover(&self) -> Command<&Session, (), options::ClusterFailover> {
        commands::cluster_failover().on(self)
    }

    /// Unassigns all slots from this node.
    ///
    /// `CLUSTER FLUSHSLOTS`
    pub fn cluster_flushslots(&self) -> Command<&Session, ()> {
        commands::cluster_flushslots().on(self)
    }

    /// Removes a node from the cluster.
    ///
    /// `CLUSTER FORGET node-id`
    pub fn cluster_forget(&self, node_id: impl ToArg) -> Command<&Session, ()> {
        commands::cluster_forget(node_id).on(self)
    }

    /// Returns keys in a slot.
    ///
    /// `CLUSTER GETKEYSINSLOT slot count`
    pub fn cluster_getkeysinslot<T>(
        &self,
        slot: impl ToArg,
        count: impl ToArg,
    ) -> Command<&Session, Vec<T>> {
        commands::cluster_getkeysinslot(slot, count).on(self)
    }

    /// Lists the subcommands.
    ///
    /// `CLUSTER HELP`
    pub fn cluster_help(&self) -> Command<&Session, Vec<String>> {
        commands::cluster_help().on(self)
    }

    /// Shows the state of the cluster.
    ///
    /// `CLUSTER INFO`
    pub fn cluster_info(&self) -> Command<&Session, String> {
        commands::cluster_info().on(self)
    }

    /// Computes the slot of a key.
    ///
    /// `CLUSTER KEYSLOT key`
    pub fn cluster_keyslot(&self, key: impl ToArg) -> Command<&Session, i64> {
        commands::cluster_keyslot(key).on(self)
    }

    /// Lists the links of the cluster bus; in Brisk, there are none.
    ///
    /// `CLUSTER LINKS`
    pub fn cluster_links<T>(&self) -> Command<&Session, Vec<T>> {
        commands::cluster_links().on(self)
    }

    /// Adds another node to the cluster.
    ///
    /// `CLUSTER MEET ip port [cluster_bus_port]`
    pub fn cluster_meet(
        &self,
        ip: impl ToArg,
        port: impl ToArg,
    ) -> Command<&Session, (), options::ClusterMeet> {
        commands::cluster_meet(ip, port).on(self)
    }

    /// Shows the id of this node.
    ///
    /// `CLUSTER MYID`
    pub fn cluster_myid(&self) -> Command<&Session, String> {
        commands::cluster_myid().on(self)
    }

    /// Shows the id of the shard of this node.
    ///
    /// `CLUSTER MYSHARDID`
    pub fn cluster_myshardid(&self) -> Command<&Session, String> {
        commands::cluster_myshardid().on(self)
    }

    /// Lists the nodes known to this node.
    ///
    /// `CLUSTER NODES`
    pub fn cluster_nodes(&self) -> Command<&Session, String> {
        commands::cluster_nodes().on(self)
    }

    /// Shows the replicas of a primary.
    ///
    /// `CLUSTER REPLICAS node-id`
    pub fn cluster_replicas<T>(&self, node_id: impl ToArg) -> Command<&Session, Vec<T>> {
        commands::cluster_replicas(node_id).on(self)
    }

    /// Makes this node a replica of a primary.
    ///
    /// `CLUSTER REPLICATE node-id`
    pub fn cluster_replicate(&self, node_id: impl ToArg) -> Command<&Session, ()> {
        commands::cluster_replicate(node_id).on(self)
    }

    /// Removes this node from the cluster.
    ///
    /// `CLUSTER RESET [HARD | SOFT]`
    pub fn cluster_reset(&self) -> Command<&Session, (), options::ClusterReset> {
        commands::cluster_reset().on(self)
    }

    /// Has no effect, because the node saves every change of the topology.
    ///
    /// `CLUSTER SAVECONFIG`
    pub fn cluster_saveconfig(&self) -> Command<&Session, ()> {
        commands::cluster_saveconfig().on(self)
    }

    /// Checks its argument and has no other effect.
    ///
    /// `CLUSTER SET-CONFIG-EPOCH config-epoch`
    pub fn cluster_set_config_epoch(&self, config_epoch: impl ToArg) -> Command<&Session, ()> {
        commands::cluster_set_config_epoch(config_epoch).on(self)
    }

    /// Assigns a slot without an owner to this node.
    ///
    /// `CLUSTER SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>`
    pub fn cluster_setslot_importing(
        &self,
        slot: impl ToArg,
        node_id: impl ToArg,
    ) -> Command<&Session, ()> {
        commands::cluster_setslot_importing(slot, node_id).on(self)
    }

    /// Assigns a slot without an owner to this node.
    ///
    /// `CLUSTER SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>`
    pub fn cluster_setslot_migrating(
        &self,
        slot: impl ToArg,
        node_id: impl ToArg,
    ) -> Command<&Session, ()> {
        commands::cluster_setslot_migrating(slot, node_id).on(self)
    }

    /// Assigns a slot without an owner to this node.
    ///
    /// `CLUSTER SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>`
    pub fn cluster_setslot_node(
        &self,
        slot: impl ToArg,
        node_id: impl ToArg,
    ) -> Command<&Session, ()> {
        commands::cluster_setslot_node(slot, node_id).on(self)
    }

    /// Assigns a slot without an owner to this node.
    ///
    /// `CLUSTER SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>`
    pub fn cluster_setslot_stable(&self, slot: impl ToArg) -> Command<&Session, ()> {
        commands::cluster_setslot_stable(slot).on(self)
    }

    /// Shows slots and nodes by shard.
    ///
    /// `CLUSTER SHARDS`
    pub fn cluster_shards<T>(&self) -> Command<&Session, Vec<T>> {
        commands::cluster_shards().on(self)
    }

    /// Allows this connection to read from a replica.
    ///
    /// `READONLY`
    pub fn readonly(&self) -> Command<&Session, ()> {
        commands::readonly().on(self)
    }

    /// Disables READONLY for this connection.
    ///
    /// `READWRITE`
    pub fn readwrite(&self) -> Command<&Session, ()> {
        commands::readwrite().on(self)
    }
}
