//! Opens the coordinator for a setting.

use crate::coordinator::Coordinator;
use crate::error::CoordinatorError;
use crate::etcd::{EtcdCoordinator, EtcdOptions};
use crate::fixed::FixedCoordinator;
use crate::local::LocalCoordinator;
use crate::setting::CoordinatorSetting;
use crate::values::ClusterName;

/// Opens the coordinator that `cluster-coordinator` names. `options` apply only to etcd.
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

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_testkit::TempDir;

    #[test]
    fn each_setting_opens_its_coordinator() {
        let dir = TempDir::new();
        std::fs::write(dir.path("topology.json"), "{}").unwrap();
        let cluster = ClusterName::parse("brisk").unwrap();
        let open = |setting: String| {
            let setting: CoordinatorSetting = setting.parse().unwrap();
            open(&setting, &cluster, &EtcdOptions::default())
        };
        let local = open(format!("local:{}", dir.path("store").display())).unwrap();
        assert_eq!(local.read().unwrap().document, None);
        let fixed = open(format!("static:{}", dir.path("topology.json").display())).unwrap();
        assert_eq!(fixed.read().unwrap().document.as_deref(), Some(&b"{}"[..]));
        // etcd is not contacted before the first call.
        assert!(open("etcd://127.0.0.1:1".to_owned()).is_ok());
        assert!(open(format!("static:{}", dir.path("none").display())).is_err());
    }
}
