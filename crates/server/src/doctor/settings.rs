//! Checks the configuration alone, and compares it with the memory of the host.

use super::machine::Machine;
use brisk_config::value::Text;
use brisk_config::{Config, system};
use brisk_findings::rules::{Access, Setting, is_local};
use brisk_findings::{Finding, rules};
use brisk_net::tls::TlsSettings;

pub(super) fn check(config: &Config, machine: &Machine, findings: &mut Vec<Finding>) {
    findings.push(access(config));
    let checks = [
        password(config),
        ineffective_password(config),
        rules::maxmemory(config.memory.maxmemory, machine.memory_total(), Setting::File),
        nothing_saved(config),
        effects(config),
        http(config),
        tls(config),
    ];
    findings.extend(checks.into_iter().flatten());
}

/// True if clients need no password to be the user `default`, as far as the configuration shows. The rules of an ACL
/// file are unknown.
fn is_open(config: &Config) -> bool {
    let security = &config.security;
    match configured_default(config) {
        Some(rules) => needs_no_password(rules),
        None => security.requirepass.is_empty() && security.aclfile.is_empty(),
    }
}

/// The rules in the line `user default …`, which replace the effect of `requirepass`.
fn configured_default(config: &Config) -> Option<&[Text]> {
    let lines = config.security.users.iter().filter_map(|line| line.split_first());
    lines.filter(|(name, _)| name.as_bytes() == b"default").map(|(_, rules)| rules).next()
}

/// True if a user with these rules is on and needs no password. Before the first rule, the user is off.
fn needs_no_password(rules: &[Text]) -> bool {
    let (mut is_on, mut has_nopass) = (false, false);
    for rule in rules {
        match &rule.as_bytes().to_ascii_lowercase()[..] {
            b"on" => is_on = true,
            b"off" => is_on = false,
            b"nopass" => has_nopass = true,
            b"resetpass" => has_nopass = false,
            b"reset" => (is_on, has_nopass) = (false, false),
            [b'>' | b'#', ..] => has_nopass = false,
            _ => {}
        }
    }
    is_on && has_nopass
}

fn access(config: &Config) -> Finding {
    let facts = Access {
        bind: config.network.bind.clone(),
        has_port: config.network.port > 0 || config.tls.port > 0,
        is_open: is_open(config),
        is_protected: config.network.protected_mode,
    };
    rules::access(&facts, Setting::File)
}

/// Reports a `requirepass` that clients do not need.
fn ineffective_password(config: &Config) -> Option<Finding> {
    let is_ignored = configured_default(config).is_some_and(needs_no_password);
    (is_ignored && !config.security.requirepass.is_empty()).then(|| {
        Finding::warning("requirepass", "the line \"user default\" contains nopass".to_owned())
            .means("The line replaces the effect of requirepass: clients need no password.")
            .todo("remove nopass from the line and add the password: user default on ><password> …")
    })
}

fn password(config: &Config) -> Option<Finding> {
    rules::password(config.security.requirepass.as_bytes().len())
}

fn nothing_saved(config: &Config) -> Option<Finding> {
    let persistence = &config.persistence;
    rules::nothing_saved(!persistence.save.is_empty(), persistence.appendonly)
}

fn effects(config: &Config) -> Option<Finding> {
    let names = system::without_effect(config);
    (!names.is_empty()).then(|| {
        Finding::warning("directives", format!("set, but not implemented: {}", names.join(", ")))
            .means("These directives have no effect.")
            .todo("remove them from the configuration")
    })
}

fn http(config: &Config) -> Option<Finding> {
    let network = &config.network;
    if network.http_port == 0 || network.http_bind.iter().all(|address| is_local(address)) {
        return None;
    }
    let bind = network.http_bind.join(" ");
    Some(match (network.http_password.is_empty(), network.protected_mode, network.http_tls) {
        (true, true, _) => {
            Finding::warning("http", format!("http-bind {bind}, without http-password"))
                .means("Protected mode rejects requests from other machines.")
                .todo("set http-password")
        }
        (true, false, _) => Finding::warning("http", format!("http-bind {bind}, and no password"))
            .means("Anyone who can reach the port can read the metrics, but no data.")
            .todo("set http-password"),
        (false, _, false) => Finding::note("http", format!("http-bind {bind}, not encrypted"))
            .means("The password is sent unencrypted.")
            .todo("set http-tls yes"),
        (false, _, true) => {
            Finding::ok("http", format!("http-bind {bind}, with TLS and a password"))
        }
    })
}

fn tls(config: &Config) -> Option<Finding> {
    if config.tls.port == 0 && !config.network.has_encrypted_http() {
        return None;
    }
    Some(match TlsSettings::load(config) {
        Ok(_) => Finding::ok("tls", "certificate and key are valid".to_owned()),
        Err(error) => Finding::problem("tls", error.to_string())
            .means("The server does not start.")
            .todo("correct the directives tls-cert-file, tls-key-file and tls-ca-cert-file"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_findings::Severity::{Note, Ok, Problem, Warning};

    #[test]
    fn open_access_is_a_problem() {
        let mut config = Config::default();
        assert_eq!(access(&config).severity, Ok);
        config.network.bind = vec!["10.0.0.1".to_owned(), "-::1".to_owned()];
        assert_eq!(access(&config).severity, Note);
        config.network.protected_mode = false;
        assert_eq!(access(&config).severity, Problem);
        config.security.requirepass = "secret".into();
        assert_eq!(access(&config).severity, Ok);
        assert_eq!(password(&config).map(|found| found.severity), Some(Warning));
        config.security.requirepass = "0123456789abcdef".into();
        assert_eq!(password(&config), None);
    }

    #[test]
    fn the_line_of_the_default_user_decides_about_the_password() {
        let mut config = Config::default();
        config.network.bind = vec!["10.0.0.1".to_owned()];
        config.network.protected_mode = false;
        config.security.requirepass = "0123456789abcdef".into();
        let mut found = |line: &str| {
            config.security.users = vec![line.split(' ').map(Into::into).collect()];
            let severities = [Some(access(&config)), ineffective_password(&config)];
            severities.map(|finding| finding.map(|finding| finding.severity))
        };
        let ignored = [Some(Problem), Some(Warning)];
        assert_eq!(found("default on nopass ~* +@all"), ignored);
        assert_eq!(found("default ON >secret NOPASS ~* +@all"), ignored);
        let kept = [Some(Ok), None];
        assert_eq!(found("default on ~* +@all"), kept);
        assert_eq!(found("default off nopass ~* +@all"), kept);
        assert_eq!(found("default on nopass >secret ~* +@all"), kept);
        assert_eq!(found("default on nopass reset on"), kept);
        assert_eq!(found("alice on nopass ~* +@all"), kept);
        // Rules of other users do not protect the default user.
        config.security.requirepass = "".into();
        assert_eq!(access(&config).severity, Problem);
    }

    #[test]
    fn the_memory_limit_is_compared_with_the_total_memory() {
        let maxmemory = |bytes, total| rules::maxmemory(bytes, total, Setting::File);
        let severity = |bytes, total| maxmemory(bytes, total).map(|found| found.severity);
        assert_eq!(severity(0, Some(1 << 30)), Some(Warning));
        assert_eq!(severity(1 << 29, Some(1 << 30)), Some(Ok));
        assert_eq!(severity(1000 << 20, Some(1 << 30)), Some(Warning));
        assert_eq!(severity(2 << 30, Some(1 << 30)), Some(Problem));
        assert_eq!(severity(5, None), None);
        assert_eq!(
            maxmemory(0, Some(1000 << 20)).unwrap().todo.split(',').next(),
            Some("set maxmemory 800mb")
        );
    }

    #[test]
    fn http_for_other_machines_needs_a_password_and_encryption() {
        let mut config = Config::default();
        config.network.http_port = 9121;
        assert_eq!(http(&config), None);
        config.network.http_bind = vec!["*".to_owned()];
        assert_eq!(http(&config).unwrap().severity, Warning);
        config.network.http_password = "secret".into();
        assert_eq!(http(&config).unwrap().severity, Note);
        config.network.http_tls = true;
        assert_eq!(http(&config).unwrap().severity, Ok);
        // There is no certificate.
        assert_eq!(tls(&config).unwrap().severity, Problem);
    }

    #[test]
    fn disabled_persistence_and_ignored_directives_are_reported() {
        let mut config = Config::default();
        assert_eq!((nothing_saved(&config), effects(&config)), (None, None));
        config.persistence.save.clear();
        config.cluster.cluster_enabled = true;
        assert_eq!(effects(&config), None);
        config.memory.activedefrag = true;
        assert_eq!(nothing_saved(&config).unwrap().severity, Note);
        assert!(effects(&config).unwrap().what.ends_with(": activedefrag"));
    }
}
