//! The links between a primary and its replicas, and the state of a cluster.

use super::facts::ServerFacts;
use crate::amount::{counted, duration, grouped};
use crate::info::part;
use brisk_findings::Finding;
use std::time::Duration;

/// The lag of a replica that is reported, in seconds. A replica acknowledges once per second.
const LAG_SECONDS_MIN: u64 = 10;

pub(super) fn check(facts: &ServerFacts, place: &str, findings: &mut Vec<Finding>) {
    findings.extend(link(facts));
    findings.extend(replicas(facts));
    findings.extend(too_few(facts));
    findings.extend(backlog(facts));
    findings.extend(differences(facts));
    findings.extend(cluster(facts, place));
}

/// The link of a replica to its primary.
fn link(facts: &ServerFacts) -> Option<Finding> {
    let info = &facts.info;
    if !info.is("role", "slave") || info.is("master_link_status", "up") {
        return None;
    }
    let (host, port) = (info.get("master_host")?, info.get("master_port")?);
    if info.is("master_sync_in_progress", "1") {
        let what = format!("copying the dataset of {host}:{port}");
        return Some(Finding::note("replication", what));
    }
    let since = match info.number("master_link_down_since_seconds") {
        Some(seconds) if seconds > 0 => {
            format!(" for {}", duration(Duration::from_secs(seconds.unsigned_abs())))
        }
        _ => String::new(),
    };
    Some(
        Finding::problem("replication", format!("the link to the primary {host}:{port} is down{since}"))
            .means("This replica does not receive writes, and reads return old data.")
            .todo(format!("brisk-cli -h {host} -p {port} ping; if it replies, check masterauth with CONFIG GET masterauth, and read the log")),
    )
}

/// The replicas of a primary.
fn replicas(facts: &ServerFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = facts.info.with_prefix("slave");
    for (_, line) in lines.filter(|(number, _)| number.parse::<u32>().is_ok()) {
        let of = |name| part(line, name).unwrap_or("?");
        let place = format!("{}:{}", of("ip"), of("port"));
        let lag: u64 = of("lag").parse().unwrap_or(0);
        if of("state") != "online" {
            let what = format!("replica {place} is not online yet: {}", of("state"));
            findings.push(Finding::note("replication", what));
        } else if lag >= LAG_SECONDS_MIN {
            let what = format!("replica {place} has not acknowledged for {lag} s");
            findings.push(
                Finding::warning("replication", what)
                    .means("It is overloaded, or the network between the servers is slow.")
                    .todo(format!("brisk-cli -h {} -p {} top", of("ip"), of("port"))),
            );
        }
    }
    findings
}

fn too_few(facts: &ServerFacts) -> Option<Finding> {
    let wanted: u64 = facts.config("min-replicas-to-write")?.parse().ok()?;
    let good = facts.number("min_slaves_good_slaves");
    (wanted > 0 && facts.info.is("role", "master") && good < wanted).then(|| {
        let what =
            format!("{} of {wanted} replicas that min-replicas-to-write requires", grouped(good));
        Finding::problem("replication", what)
            .means("Writes fail with NOREPLICAS.")
            .todo(format!("start the missing replicas, or CONFIG SET min-replicas-to-write {good}"))
    })
}

fn backlog(facts: &ServerFacts) -> Option<Finding> {
    let failed = facts.number("sync_partial_err");
    // The first synchronization of a replica can also be a partial one that fails.
    (failed > facts.number("connected_slaves").max(1)).then(|| {
        let size: u64 =
            facts.config("repl-backlog-size").and_then(|it| it.parse().ok()).unwrap_or(0);
        let what = format!(
            "{} needed a full copy, backlog of {} bytes",
            counted(failed, "reconnection"),
            grouped(size)
        );
        Finding::warning("replication", what)
            .means("The backlog is too small for the interruptions.")
            .todo(format!("CONFIG SET repl-backlog-size {}", size.max(1 << 20) * 4))
    })
}

/// The result of Brisk's comparison of primary and replicas.
fn differences(facts: &ServerFacts) -> Option<Finding> {
    let differing = facts.number("last_comparison_differing_slots");
    (differing > facts.number("last_comparison_healed_slots")).then(|| {
        let what = format!("replicas differ from the primary in {}", counted(differing, "slot"));
        Finding::problem("replication", what)
            .means("The last comparison found it.")
            .todo("REPLICATION COMPARE HEAL")
    })
}

fn cluster(facts: &ServerFacts, place: &str) -> Option<Finding> {
    let state = facts.cluster.get("cluster_state")?;
    (state != "ok").then(|| {
        Finding::problem("cluster", format!("cluster_state is {state}"))
            .means("Commands fail with CLUSTERDOWN.")
            .todo(format!("brisk-cli --cluster status {place}"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::facts;
    use super::*;
    use brisk_findings::Severity;

    #[test]
    fn a_link_that_is_down_is_a_problem_but_a_copy_is_not() {
        let down = "role:slave master_link_status:down master_host:h master_port:7 master_sync_in_progress:";
        let found = |sync: &str| {
            link(&facts(&format!("{down}{sync} master_link_down_since_seconds:65"), &[])).unwrap()
        };
        assert_eq!(found("0").severity, Severity::Problem);
        assert_eq!(found("0").what, "the link to the primary h:7 is down for 1 min 5 s");
        assert_eq!(found("1").severity, Severity::Note);
        assert_eq!(link(&facts("role:slave master_link_status:up", &[])), None);
    }

    #[test]
    fn late_and_missing_replicas_are_reported() {
        let info = "role:master connected_slaves:2 min_slaves_good_slaves:1 \
                    slave0:ip=a,port=1,state=online,offset=1,lag=30 slave1:ip=b,port=2,state=wait_bgsave,offset=0,lag=0";
        let facts = facts(info, &[("min-replicas-to-write", "2")]);
        let severities: Vec<Severity> =
            replicas(&facts).iter().map(|found| found.severity).collect();
        assert_eq!(severities, [Severity::Warning, Severity::Note]);
        assert_eq!(
            too_few(&facts).unwrap().what,
            "1 of 2 replicas that min-replicas-to-write requires"
        );
    }

    #[test]
    fn repeated_full_copies_and_differences_are_reported() {
        let found = backlog(&facts(
            "sync_partial_err:5 connected_slaves:1",
            &[("repl-backlog-size", "1048576")],
        ))
        .unwrap();
        assert_eq!(found.todo, "CONFIG SET repl-backlog-size 4194304");
        assert!(
            differences(&facts(
                "last_comparison_differing_slots:2 last_comparison_healed_slots:0",
                &[]
            ))
            .is_some()
        );
        assert_eq!(
            differences(&facts(
                "last_comparison_differing_slots:2 last_comparison_healed_slots:2",
                &[]
            )),
            None
        );
    }
}
