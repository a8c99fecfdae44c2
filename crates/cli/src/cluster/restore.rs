//! `restore-topology`: writes a topology to a coordinator that has lost its data. Each node keeps the latest topology
//! in `topology.json`.

use super::{Done, Task, count, messages};
use crate::link::plain;
use brisk_cluster::document::{
    DOCUMENT_BYTES_MAX, DocumentError, Topology, check_installation, stated_epoch,
};
use brisk_coordinate::etcd::EtcdOptions;
use brisk_coordinate::setting::CoordinatorSetting;
use brisk_coordinate::values::{ChangeOutcome, ClusterName, TopologyChange};
use std::fs::File;
use std::io::Read;

/// `cluster-name`, if the topology has no name.
const CLUSTER_NAME: &str = "brisk";

pub(super) fn run(task: &Task<'_>) -> Done {
    restore(task).or_else(|text| messages::fail(&format!("[ERR] {text}\n")))
}

fn restore(task: &Task<'_>) -> Result<(), String> {
    let [setting, files @ ..] = task.arguments.as_slice() else { return Ok(()) };
    let setting: CoordinatorSetting = setting.parse().map_err(|error| format!("{error}"))?;
    if matches!(setting, CoordinatorSetting::Static(_)) {
        return Err("static: keeps its topology in a file: replace the file itself".to_owned());
    }
    let topology = newest(files)?;
    let name = topology.name.clone().unwrap_or_else(|| CLUSTER_NAME.to_owned());
    check_installation(&name, None, Some(&topology)).map_err(|error| error.to_string())?;
    let cluster = ClusterName::parse(&name).map_err(|error| error.to_string())?;
    let coordinator = brisk_coordinate::open(&setting, &cluster, &etcd_options(task));
    let coordinator = coordinator.map_err(|error| error.to_string())?;
    let present = coordinator.read().map_err(|error| error.to_string())?;
    if let Some(document) = &present.document {
        let kept = match Topology::parse(document) {
            Ok(topology) => Some(format!("of epoch {}", topology.epoch)),
            Err(error @ DocumentError::Format(_)) => Some(format!("of a later version ({error})")),
            // No node accepts this document, unless a later version wrote it.
            Err(error) => stated_epoch(document)
                .filter(|epoch| *epoch > topology.epoch)
                .map(|epoch| format!("of epoch {epoch} that is not valid ({error})")),
        };
        if let Some(kept) = kept {
            return Err(format!(
                "cluster {name} has a topology {kept} in this coordinator; it was not changed"
            ));
        }
    }
    let document = topology.to_json().map_err(|error| error.to_string())?;
    let change =
        TopologyChange { expected: present.revision, document: &document, controller: None };
    match coordinator.change(&change) {
        ChangeOutcome::Changed(_) => {
            let (epoch, members) = (topology.epoch, count(topology.members.len(), "node"));
            messages::good(&format!(
                "[OK] Restored the topology of cluster {name}: epoch {epoch}, {members}.\n"
            ));
            Ok(())
        }
        ChangeOutcome::Conflict => Err("another topology was written in the meantime".to_owned()),
        ChangeOutcome::Unknown(error) => {
            Err(format!("the outcome is unknown: {error}. Run the command again"))
        }
        ChangeOutcome::Refused(error) => Err(error.to_string()),
    }
}

/// The topology with the highest epoch.
///
/// # Errors
/// If a file cannot be read, or is of another cluster: another name, or no node in common. Two clusters may have the
/// same name, so the epoch alone could choose the wrong one.
fn newest(files: &[String]) -> Result<Topology, String> {
    let mut all = Vec::new();
    for file in files {
        all.push((file, read(file)?));
    }
    let newest = all.iter().rev().max_by_key(|(_, topology)| topology.epoch);
    let Some((newest_file, newest)) = newest else {
        return Err("specify at least one topology.json".to_owned());
    };
    for (file, topology) in &all {
        let is_same = topology.name == newest.name
            && topology.members.keys().any(|id| newest.members.contains_key(id));
        if file != newest_file && !is_same {
            return Err(format!(
                "{file} and {newest_file} are of different clusters: they have different names, or no node in \
                 common. Give only the files of one cluster"
            ));
        }
    }
    Ok(newest.clone())
}

fn read(file: &str) -> Result<Topology, String> {
    let failed = |error: std::io::Error| format!("Cannot read {file}: {}", plain(&error));
    let mut bytes = Vec::new();
    // One byte more than the limit, so that the parser notices a larger file.
    let limit = DOCUMENT_BYTES_MAX as u64 + 1;
    File::open(file).map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Topology::parse(&bytes).map_err(|error| format!("{file}: {error}"))
}

/// The user, the password and the certificate authorities for etcd are those of the command line.
fn etcd_options(task: &Task<'_>) -> EtcdOptions {
    let options = &task.session.options;
    let text = |bytes: &Option<Vec<u8>>| {
        bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    EtcdOptions {
        user: text(&options.user),
        password: options.user.as_ref().and_then(|_| text(&options.password)),
        ca_file: options.tls_files.ca_file.clone(),
        certificate_file: options.tls_files.certificate.clone(),
        key_file: options.tls_files.key.clone(),
    }
}
