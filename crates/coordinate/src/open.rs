//! Opens the coordinator of a setting.

use crate::coordinator::Coordinator;
use crate::error::CoordinatorError;
use crate::etcd::{EtcdCoordinator, EtcdOptions};
use crate::fixed::FixedCoordinator;
use crate::local::LocalCoordinator;
use crate::setting::CoordinatorSetting;
use crate::values::ClusterName;

/// Opens the coordinator that `cluster-coordinator` names. `options` concern etcd only.
///
/// # Errors
/// A directory or file cannot be used. etcd is not contacted yet.
pub fn open(
    setting: &CoordinatorSetting,
    cluster: &ClusterName,
    options: &EtcdOptions,
) -> Result<Box<dyn Coordinator>, CoordinatorError> {
    Ok(match setting {
        CoordinatorSetting::Local(directory) => {
            Box::new(LocalCoordinator::open(directory, cluster)?)
        }
        CoordinatorSetting::Static(file) => Box::new(FixedCoordinator::open(file)?),
        CoordinatorSetting::Etcd { endpoints, is_tls } => {
            Box::new(EtcdCoordinator::new(endpoints, *is_tls, cluster, options)?)
        }
    })
}
