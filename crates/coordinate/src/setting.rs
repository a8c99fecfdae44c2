//! The setting `cluster-coordinator`: which coordinator a node uses.
//!
//! | form | meaning |
//! |---|---|
//! | `local:DIR` | a directory of this machine |
//! | `etcd://host:port,host:port` | etcd's members, plain HTTP |
//! | `etcds://host:port,host:port` | etcd's members, TLS |
//! | `static:FILE` | a document from a file, without changes or failover |

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Maximum number of endpoints in one setting. An etcd cluster has three or five members, seldom
/// seven.
pub const ENDPOINTS_MAX: usize = 16;

/// A parsed `cluster-coordinator`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoordinatorSetting {
    /// The directory of a [`LocalCoordinator`](crate::local::LocalCoordinator). A relative path is
    /// relative to the working directory.
    Local(PathBuf),
    /// The members of an etcd cluster; at least one, no duplicates.
    Etcd { endpoints: Vec<Endpoint>, is_tls: bool },
    /// The file of a [`FixedCoordinator`](crate::fixed::FixedCoordinator).
    Static(PathBuf),
}

/// A host with a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A name, an IPv4 address, or an IPv6 address without brackets.
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Why a text is not a valid setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error(
        "'{0}' is not a coordinator: use local:DIR, etcd://host:port,..., etcds://host:port,... \
         or static:FILE"
    )]
    UnknownForm(String),
    #[error("local: needs a directory, for example local:./brisk-cluster")]
    NoDirectory,
    #[error("static: needs a file, for example static:./topology.json")]
    NoFile,
    #[error("etcd:// needs at least one host:port")]
    NoEndpoint,
    #[error("etcd:// has {0} endpoints, at most {ENDPOINTS_MAX} are allowed")]
    TooManyEndpoints(usize),
    #[error("endpoint '{0}' is empty or has an empty host")]
    NoHost(String),
    #[error("endpoint '{0}' has no port: etcd's default is 2379")]
    NoPort(String),
    #[error("endpoint '{0}' has a port that is not between 1 and 65535")]
    BadPort(String),
    #[error("endpoint '{0}' has characters that a host cannot have")]
    BadHost(String),
    #[error("endpoint '{0}': an IPv6 address must be in brackets, for example [::1]:2379")]
    Unbracketed(String),
    #[error("endpoint '{0}' is given twice")]
    Duplicate(String),
    #[error(
        "an etcd:// address has no user and no password: use cluster-coordinator-user and \
         cluster-coordinator-password"
    )]
    Credentials,
    #[error(
        "an etcd:// address has no path, but '{0}' has one: the keys are derived from cluster-name"
    )]
    Path(String),
    #[error("give the scheme only once, before the first endpoint: '{0}'")]
    RepeatedScheme(String),
}

impl FromStr for CoordinatorSetting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<CoordinatorSetting, SettingError> {
        if let Some(directory) = text.strip_prefix("local:") {
            let is_empty = directory.is_empty();
            return if is_empty {
                Err(SettingError::NoDirectory)
            } else {
                Ok(Self::Local(directory.into()))
            };
        }
        if let Some(file) = text.strip_prefix("static:") {
            let is_empty = file.is_empty();
            return if is_empty {
                Err(SettingError::NoFile)
            } else {
                Ok(Self::Static(file.into()))
            };
        }
        let (list, is_tls) = match (text.strip_prefix("etcd://"), text.strip_prefix("etcds://")) {
            (Some(list), _) => (list, false),
            (_, Some(list)) => (list, true),
            _ => return Err(SettingError::UnknownForm(text.to_owned())),
        };
        Ok(Self::Etcd { endpoints: parse_endpoints(list)?, is_tls })
    }
}

fn parse_endpoints(list: &str) -> Result<Vec<Endpoint>, SettingError> {
    if list.is_empty() {
        return Err(SettingError::NoEndpoint);
    }
    let count = list.split(',').count();
    if count > ENDPOINTS_MAX {
        return Err(SettingError::TooManyEndpoints(count));
    }
    let mut endpoints = Vec::new();
    for text in list.split(',') {
        let endpoint = parse_endpoint(text)?;
        if endpoints.contains(&endpoint) {
            return Err(SettingError::Duplicate(text.to_owned()));
        }
        endpoints.push(endpoint);
    }
    Ok(endpoints)
}

fn parse_endpoint(text: &str) -> Result<Endpoint, SettingError> {
    let named = |error: fn(String) -> SettingError| error(text.to_owned());
    if text.contains('@') {
        return Err(SettingError::Credentials);
    }
    if text.contains("://") {
        return Err(named(SettingError::RepeatedScheme));
    }
    if text.contains('/') {
        return Err(named(SettingError::Path));
    }
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or_else(|| named(SettingError::BadHost))?;
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(named(SettingError::BadHost));
        }
        (host, port.strip_prefix(':').ok_or_else(|| named(SettingError::NoPort))?)
    } else {
        let (host, port) = match text.rsplit_once(':') {
            Some(parts) => parts,
            None if text.is_empty() => return Err(named(SettingError::NoHost)),
            None => return Err(named(SettingError::NoPort)),
        };
        if host.contains(':') {
            return Err(named(SettingError::Unbracketed));
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !host.bytes().all(is_allowed) {
            return Err(named(SettingError::BadHost));
        }
        (host, port)
    };
    if host.is_empty() {
        return Err(named(SettingError::NoHost));
    }
    if port.is_empty() {
        return Err(named(SettingError::NoPort));
    }
    // A sign is not a digit, although `parse` accepts one.
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(port) if is_number && port > 0 => Ok(Endpoint { host: host.to_owned(), port }),
        _ => Err(named(SettingError::BadPort)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<CoordinatorSetting, SettingError> {
        text.parse()
    }

    #[test]
    fn each_form_is_parsed() {
        assert_eq!(parse("local:a dir"), Ok(CoordinatorSetting::Local("a dir".into())));
        assert_eq!(parse("static:/x:y"), Ok(CoordinatorSetting::Static("/x:y".into())));
        let endpoint = |host: &str, port| Endpoint { host: host.to_owned(), port };
        let endpoints =
            vec![endpoint("a-1.example", 2379), endpoint("::1", 1), endpoint("10.0.0.1", 65535)];
        let list = "a-1.example:2379,[::1]:1,10.0.0.1:65535";
        for (scheme, is_tls) in [("etcd", false), ("etcds", true)] {
            let expected = CoordinatorSetting::Etcd { endpoints: endpoints.clone(), is_tls };
            assert_eq!(parse(&format!("{scheme}://{list}")), Ok(expected));
        }
        let shown: Vec<String> = endpoints.iter().map(Endpoint::to_string).collect();
        assert_eq!(shown.join(","), list);
    }

    #[test]
    fn each_malformed_form_has_its_own_error() {
        use SettingError as E;
        let of = |text: &str| text.to_owned();
        let cases = [
            ("", E::UnknownForm(of(""))),
            ("zookeeper://a:1", E::UnknownForm(of("zookeeper://a:1"))),
            ("etcd:a:1", E::UnknownForm(of("etcd:a:1"))),
            ("local:", E::NoDirectory),
            ("static:", E::NoFile),
            ("etcd://", E::NoEndpoint),
            ("etcd://,a:1", E::NoHost(of(""))),
            ("etcd://a:1,", E::NoHost(of(""))),
            ("etcd://:1", E::NoHost(of(":1"))),
            ("etcd://a", E::NoPort(of("a"))),
            ("etcd://a:", E::NoPort(of("a:"))),
            ("etcd://[::1]", E::NoPort(of("[::1]"))),
            ("etcd://[::1]:", E::NoPort(of("[::1]:"))),
            ("etcd://a:0", E::BadPort(of("a:0"))),
            ("etcd://a:65536", E::BadPort(of("a:65536"))),
            ("etcd://a:+1", E::BadPort(of("a:+1"))),
            ("etcd://a b:1", E::BadHost(of("a b:1"))),
            ("etcd://a\r\nx:1", E::BadHost(of("a\r\nx:1"))),
            ("etcd://[x]:1", E::BadHost(of("[x]:1"))),
            ("etcd://[::1:1", E::BadHost(of("[::1:1"))),
            ("etcd://::1:2379", E::Unbracketed(of("::1:2379"))),
            ("etcd://a:1,a:1", E::Duplicate(of("a:1"))),
            ("etcd://u:p@a:1", E::Credentials),
            ("etcd://a:1/x", E::Path(of("a:1/x"))),
            ("etcd://a:1,etcd://b:1", E::RepeatedScheme(of("etcd://b:1"))),
        ];
        for (text, error) in cases {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
        let many = vec!["a:1"; ENDPOINTS_MAX + 1].join(",");
        assert_eq!(parse(&format!("etcd://{many}")), Err(E::TooManyEndpoints(ENDPOINTS_MAX + 1)));
    }
}
