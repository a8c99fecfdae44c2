//! `doctor`: checks a running server. Each finding is one line: severity, state, consequence, and remedy.
//!
//! | file | about |
//! |---|---|
//! | `facts.rs` | the reports of the server on which the checks are based |
//! | `access.rs` | addresses, passwords, failed logins |
//! | `memory.rs` | the memory limit, evictions, MEMORY DOCTOR |
//! | `disk.rs` | snapshots and the append-only file |
//! | `replication.rs` | links between primary and replicas, the cluster |
//! | `load.rs` | clients, slow commands, latency |
//!
//! `brisk-findings` contains the rules that `brisk-server --doctor` also applies.

mod access;
mod disk;
mod facts;
mod load;
mod memory;
mod replication;

use self::facts::ServerFacts;
use crate::amount::counted;
use crate::format::Output;
use crate::screen;
use crate::session::Session;
use brisk_findings::{Finding, Severity, report};

pub(super) fn run(session: &mut Session) -> i32 {
    let place = session.place().to_string();
    let facts = match ServerFacts::load(session) {
        Ok(facts) => facts,
        Err(error) => return super::lost(&error),
    };
    if facts.info.get("redis_version").is_none() {
        screen::flush();
        let error = facts.missing.iter().find_map(|line| line.strip_prefix("INFO: "));
        screen::warn(format!("Error: {}\n", error.unwrap_or("the reply to INFO is not a report")));
        return 1;
    }
    let mut findings = findings(&facts, &place);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    screen::print(match session.options.output {
        Output::Json | Output::QuotedJson => report::json(&findings),
        _ => text(&findings, &facts, &place),
    });
    i32::from(report::has_problem(&findings))
}

/// All findings except those without a problem.
fn findings(facts: &ServerFacts, place: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    access::check(facts, &mut findings);
    memory::check(facts, &mut findings);
    disk::check(facts, &mut findings);
    replication::check(facts, place, &mut findings);
    load::check(facts, &mut findings);
    for missing in &facts.missing {
        let what = format!("not checked: {missing}");
        findings.push(
            Finding::note("permission", what).todo("use a user with more permissions: --user"),
        );
    }
    findings.retain(|finding| finding.severity != Severity::Ok);
    findings
}

fn text(findings: &[Finding], facts: &ServerFacts, place: &str) -> String {
    let mut text = format!("{} at {place}\n", super::version(&facts.info));
    text.extend(findings.iter().map(report::line));
    let count = |severity, noun| {
        counted(findings.iter().filter(|finding| finding.severity == severity).count() as u64, noun)
    };
    text.push_str(&format!(
        "{}, {}, {}\n",
        count(Severity::Problem, "problem"),
        count(Severity::Warning, "warning"),
        count(Severity::Note, "note")
    ));
    text
}
