//! Snapshots and the append-only file.

use super::facts::ServerFacts;
use crate::amount::counted;
use brisk_findings::{Finding, rules};

pub(super) fn check(facts: &ServerFacts, findings: &mut Vec<Finding>) {
    findings.extend(failed_snapshot(facts));
    findings.extend(failed_aof(facts));
    findings.extend(persistence(facts));
    if facts.info.is("loading", "1") {
        let percent = facts.info.get("loading_loaded_perc").unwrap_or("0");
        findings.push(Finding::note("loading", format!("{percent} % of the data loaded")));
    }
}

fn failed_snapshot(facts: &ServerFacts) -> Option<Finding> {
    if !facts.info.is("rdb_last_bgsave_status", "err") {
        return None;
    }
    let changes = facts.number("rdb_changes_since_last_save");
    let what = format!("the last BGSAVE failed, {} not saved", counted(changes, "change"));
    let stops = facts.config("stop-writes-on-bgsave-error") == Some("yes");
    let has_points = facts.config("save").is_some_and(|points| !points.is_empty());
    let means = if stops && has_points {
        "Writes fail with MISCONF."
    } else {
        "A crash loses these changes."
    };
    let dir = facts.config("dir").unwrap_or("of CONFIG GET dir");
    Some(Finding::problem("snapshot", what).means(means).todo(format!(
        "read the log for the reason, check space and permissions of the directory {dir}, then BGSAVE"
    )))
}

fn failed_aof(facts: &ServerFacts) -> Option<Finding> {
    let todo = "read the log for the reason, and check the space on the disk";
    if facts.info.is("aof_last_write_status", "err") {
        let what = "the last write to the append-only file failed".to_owned();
        return Some(Finding::problem("aof", what).means("Writes fail with MISCONF.").todo(todo));
    }
    facts.info.is("aof_last_bgrewrite_status", "err").then(|| {
        let what = "the last rewrite of the append-only file failed".to_owned();
        Finding::problem("aof", what)
            .means("The file grows, and a restart takes longer.")
            .todo(format!("{todo}, then BGREWRITEAOF"))
    })
}

fn persistence(facts: &ServerFacts) -> Option<Finding> {
    let save = facts.config("save")?;
    let finding = rules::nothing_saved(!save.is_empty(), facts.info.is("aof_enabled", "1"))?;
    let replicas = facts.number("connected_slaves");
    let remedy = "CONFIG SET appendonly yes";
    if replicas == 0 {
        return Some(finding.todo(format!("{remedy}, unless the data is only a cache")));
    }
    Some(
        Finding::warning(
            "persistence",
            format!("{}, with {}", finding.what, counted(replicas, "replica")),
        )
        .means("If this primary restarts, it is empty, and its replicas copy the empty dataset.")
        .todo(remedy),
    )
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::facts;
    use super::*;
    use brisk_findings::Severity;

    #[test]
    fn failures_of_the_disk_are_problems() {
        let info = "rdb_last_bgsave_status:err rdb_changes_since_last_save:1";
        let config = [("stop-writes-on-bgsave-error", "yes"), ("save", "60 1"), ("dir", "/data")];
        let found = failed_snapshot(&facts(info, &config)).unwrap();
        assert_eq!(
            (found.severity, found.means.as_str()),
            (Severity::Problem, "Writes fail with MISCONF.")
        );
        assert!(found.todo.contains("/data"));
        assert_eq!(
            failed_snapshot(&facts(info, &[])).unwrap().means,
            "A crash loses these changes."
        );
        assert_eq!(failed_snapshot(&facts("rdb_last_bgsave_status:ok", &[])), None);
        for field in ["aof_last_write_status", "aof_last_bgrewrite_status"] {
            assert!(failed_aof(&facts(&format!("{field}:err"), &[])).is_some());
        }
    }

    #[test]
    fn a_primary_without_persistence_is_worse_than_a_single_server() {
        let severity =
            |info, save| persistence(&facts(info, &[("save", save)])).map(|found| found.severity);
        assert_eq!(severity("aof_enabled:0", ""), Some(Severity::Note));
        assert_eq!(severity("aof_enabled:0 connected_slaves:1", ""), Some(Severity::Warning));
        assert_eq!(
            (severity("aof_enabled:1", ""), severity("aof_enabled:0", "60 1")),
            (None, None)
        );
    }
}
