//! Access to the server: addresses, passwords, and failed logins.

use super::facts::ServerFacts;
use crate::amount::counted;
use brisk_findings::rules::{Access, Setting};
use brisk_findings::{Finding, rules};

/// Number of failed logins that are reported.
const FAILED_LOGINS_MIN: u64 = 10;

pub(super) fn check(facts: &ServerFacts, findings: &mut Vec<Finding>) {
    findings.extend(access(facts));
    findings.extend(facts.config("requirepass").and_then(|it| rules::password(it.len())));
    findings.extend(failed_logins(facts));
}

fn access(facts: &ServerFacts) -> Option<Finding> {
    let is_port = |name| facts.config(name).is_some_and(|port| port != "0");
    let is_open = facts.is_open.or_else(|| Some(facts.config("requirepass")?.is_empty()))?;
    let access = Access {
        bind: facts.config("bind")?.split_whitespace().map(str::to_owned).collect(),
        has_port: is_port("port") || is_port("tls-port"),
        is_open,
        is_protected: facts.config("protected-mode") == Some("yes"),
    };
    Some(rules::access(&access, Setting::Running))
}

fn failed_logins(facts: &ServerFacts) -> Option<Finding> {
    let failed = facts.number("acl_access_denied_auth");
    (failed >= FAILED_LOGINS_MIN).then(|| {
        Finding::warning("logins", format!("{} since the start", counted(failed, "failed login")))
            .means("A client has a wrong password, or a password is being guessed.")
            .todo("ACL LOG shows the addresses of the clients")
    })
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::facts;
    use super::*;
    use brisk_findings::Severity;

    #[test]
    fn a_public_address_without_a_password_is_a_problem() {
        let config =
            [("bind", "* -::*"), ("port", "6379"), ("requirepass", ""), ("protected-mode", "no")];
        let mut open = facts("", &config);
        assert_eq!(access(&open).unwrap().severity, Severity::Problem);
        // The rules of the default user decide, not requirepass.
        open.is_open = Some(false);
        assert_eq!(access(&open).unwrap().severity, Severity::Ok);
        assert_eq!(access(&facts("", &[])), None);
    }

    #[test]
    fn many_failed_logins_are_a_warning() {
        assert_eq!(failed_logins(&facts("acl_access_denied_auth:9", &[])), None);
        assert!(failed_logins(&facts("acl_access_denied_auth:10", &[])).is_some());
    }
}
