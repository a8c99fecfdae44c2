//! Options of the commands of the group `cluster`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArg;
use crate::command::Command;

/// Options of `CLUSTER FAILOVER`, see [`cluster_failover`](crate::commands::cluster_failover).
#[derive(Clone, Copy, Debug)]
pub struct ClusterFailover(());

impl<C, T> Command<C, T, ClusterFailover> {
    /// `FORCE`.
    pub fn force(self) -> Self {
        self.option(|request| request.arg("FORCE"))
    }

    /// `TAKEOVER`.
    pub fn takeover(self) -> Self {
        self.option(|request| request.arg("TAKEOVER"))
    }
}

/// Options of `CLUSTER MEET`, see [`cluster_meet`](crate::commands::cluster_meet).
#[derive(Clone, Copy, Debug)]
pub struct ClusterMeet(());

impl<C, T> Command<C, T, ClusterMeet> {
    /// `cluster_bus_port`, since Redis 4.0.0.
    pub fn cluster_bus_port(self, cluster_bus_port: impl ToArg) -> Self {
        self.option(|request| request.arg(cluster_bus_port))
    }
}

/// Options of `CLUSTER RESET`, see [`cluster_reset`](crate::commands::cluster_reset).
#[derive(Clone, Copy, Debug)]
pub struct ClusterReset(());

impl<C, T> Command<C, T, ClusterReset> {
    /// `HARD`.
    pub fn hard(self) -> Self {
        self.option(|request| request.arg("HARD"))
    }

    /// `SOFT`.
    pub fn soft(self) -> Self {
        self.option(|request| request.arg("SOFT"))
    }
}
