//! Where a server is, and URLs that say so as other clients take them.
//!
//! ```text
//! redis://[[user][:password]@]host[:port][/db][?…]      TCP
//! rediss://…                                            TCP with TLS
//! unix:///path/to/socket[?db=n&user=u&pass=p]           Unix socket; redis+unix:// and redis-socket:// too
//! valkey:// and valkeys:// are the same as redis:// and rediss://
//! redis-cluster://host[:port][,host[:port]…]            a cluster, by some of its nodes; rediss-cluster:// …
//! redis-sentinel://[…@]host[:port][,host[:port]…]/service[/db]    the primary of a service that sentinels know
//! redis-sentinel://[…@]host[:port][,host[:port]…][/db]#service    the same; rediss-sentinel:// with TLS
//! ```
//!
//! `rediss://…#insecure`, or `?insecure`, accepts any certificate, as other clients have it. Queries: `db`, `user`, `pass`, `protocol` (2, resp2, 3, resp3), `timeout` (`500ms`, `3s`), `clientName`,
//! `lanes`, `pool` (as many connections that are taken in turns); with sentinels `sentinelUser` and `sentinelPass`. What is not known is an error, not passed over.

use crate::credentials::Login;
use crate::error::{Error, Kind, Result};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// A host (a name or an IP address) and a port.
    Tcp {
        /// Host.
        host: String,
        /// Port.
        port: u16,
        /// Whether TLS is spoken there.
        tls: bool,
    },
    /// A socket in the file system.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A password: it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What sentinels know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) sentinels: Vec<Address>,
}

/// What a URL says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// With sentinels the first of them.
    pub(crate) address: Address,
    /// More nodes of the same cluster.
    pub(crate) seeds: Vec<Address>,
    pub(crate) is_cluster: bool,
    pub(crate) service: Option<Service>,
    pub(crate) sentinel_login: Login,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) db: u32,
    pub(crate) protocol: Option<u8>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) name: Option<String>,
    pub(crate) lanes: Option<usize>,
    pub(crate) pool: Option<usize>,
    /// Any certificate is good.
    pub(crate) is_insecure: bool,
}

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

impl Url {
    /// Nothing, for a server at this address.
    fn of(address: Address) -> Url {
        Url {
            address,
            seeds: Vec::new(),
            is_cluster: false,
            service: None,
            sentinel_login: Login::nobody(),
            user: None,
            password: None,
            db: 0,
            protocol: None,
            timeout: None,
            name: None,
            lanes: None,
            pool: None,
            is_insecure: false,
        }
    }

    /// The primary of a service.
    pub(crate) fn of_service<S: AsRef<str>>(
        sentinels: impl IntoIterator<Item = S>,
        name: String,
    ) -> Result<Url> {
        let invalid = |text: &str| {
            let text = format!("'{text}' is no address of a sentinel: host:port");
            Error::new(Kind::Invalid, text)
        };
        let read = |sentinel: S| {
            let text = sentinel.as_ref();
            let (host, port) = host_and_port(text, SENTINEL_PORT).ok_or_else(|| invalid(text))?;
            Ok(Address::Tcp { host, port, tls: false })
        };
        let sentinels = sentinels.into_iter().map(read).collect::<Result<Vec<_>>>()?;
        let first = sentinels.first().ok_or_else(|| invalid(""))?.clone();
        if name.is_empty() {
            return Err(Error::new(Kind::Invalid, "a service has a name"));
        }
        Ok(Url { service: Some(Service { name, sentinels }), ..Url::of(first) })
    }

    /// What stands behind the question mark; else why it cannot be.
    fn read_queries(
        &mut self,
        query: &str,
        has_sentinels: bool,
    ) -> std::result::Result<(), String> {
        let wrong = str::to_owned;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value).ok_or_else(|| wrong("a % sign without two digits"))?;
            match name {
                "db" | "database" => {
                    self.db = value.parse().map_err(|_| wrong("the database is no number"))?;
                }
                "user" | "username" => self.user = Some(value),
                "pass" | "password" => self.password = Some(Secret(value)),
                "protocol" => {
                    self.protocol = Some(match value.as_str() {
                        "2" | "resp2" => 2,
                        "3" | "resp3" => 3,
                        _ => return Err(wrong("protocol is 2 or 3")),
                    });
                }
                "timeout" => {
                    self.timeout = Some(duration(&value).ok_or_else(|| wrong("timeout"))?);
                }
                "clientName" | "client_name" => self.name = Some(value),
                "sentinelUser" | "sentinelUsername" if has_sentinels => {
                    self.sentinel_login.user = Some(value);
                }
                "sentinelPass" | "sentinelPassword" if has_sentinels => {
                    self.sentinel_login.password = Some(Secret(value));
                }
                "insecure" => {
                    self.is_insecure = matches!(value.as_str(), "" | "true" | "yes" | "1")
                }
                "lanes" => self.lanes = Some(value.parse().map_err(|_| wrong("lanes"))?),
                "pool" => self.pool = Some(value.parse().map_err(|_| wrong("pool"))?),
                _ => return Err(format!("'{name}' is not known")),
            }
        }
        Ok(())
    }

    /// Whether TLS is spoken.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.address, Address::Tcp { tls: true, .. })
    }

    /// TLS is to be spoken; false if it cannot be.
    pub(crate) fn wants_tls(&mut self) -> bool {
        let sentinels = self.service.iter_mut().flat_map(|service| &mut service.sentinels);
        for address in sentinels.chain([&mut self.address]) {
            match address {
                Address::Tcp { tls, .. } => *tls = true,
                Address::Unix(_) => return false,
            }
        }
        true
    }
}

/// Reads a URL, or `host:port` alone.
pub(crate) fn parse(text: &str) -> Result<Url> {
    let invalid =
        |why: &str| Error::new(Kind::Invalid, format!("'{}' is no address: {why}", hidden(text)));
    let (scheme, rest) = text.split_once("://").unwrap_or(("redis", text));
    let (rest, fragment) = split_fragment(rest);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url::of(Address::Unix(PathBuf::new()));
    let mut fragment = fragment;
    let (scheme, has_sentinels) = match scheme.strip_suffix("-sentinel") {
        Some(scheme @ ("redis" | "valkey" | "rediss" | "valkeys")) => (scheme, true),
        _ => (scheme, false),
    };
    let (scheme, is_cluster) = match scheme.strip_suffix("-cluster") {
        Some(scheme @ ("redis" | "valkey" | "rediss" | "valkeys")) => (scheme, true),
        _ => (scheme, false),
    };
    match scheme {
        "redis" | "valkey" | "rediss" | "valkeys" => {
            let (authority, mut path) = rest.split_once('/').unwrap_or((rest, ""));
            let (login, server) = authority.rsplit_once('@').unwrap_or(("", authority));
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            let decoded =
                |text: &str| decode(text).ok_or_else(|| invalid("a % sign without two digits"));
            let tls = matches!(scheme, "rediss" | "valkeys");
            if has_sentinels {
                let name = match fragment.take() {
                    Some(name) => name,
                    None => {
                        let (name, db) = path.split_once('/').unwrap_or((path, ""));
                        path = db;
                        name
                    }
                };
                url = Url::of_service(server.split(','), decoded(name)?)?;
                if tls {
                    url.wants_tls();
                }
            } else {
                let mut addresses = server.split(',').map(|server| {
                    let (host, port) =
                        host_and_port(server, PORT).ok_or_else(|| invalid("host or port"))?;
                    Ok(Address::Tcp { host, port, tls })
                });
                url.address = addresses.next().ok_or_else(|| invalid("host or port"))??;
                url.seeds = addresses.collect::<Result<_>>()?;
            }
            url.user = Some(decoded(user)?).filter(|user| !user.is_empty());
            url.password =
                Some(decoded(password)?).filter(|password| !password.is_empty()).map(Secret);
            // As Lettuce has it: a word alone is the password.
            if !login.contains(':') {
                url.password = url.user.take().map(Secret);
            }
            if !path.is_empty() {
                url.db = path.parse().map_err(|_| invalid("the database is no number"))?;
            }
        }
        "unix" | "redis+unix" | "valkey+unix" | "redis-socket" => {
            if rest.is_empty() {
                return Err(invalid("no path"));
            }
            url.address = Address::Unix(PathBuf::from(rest));
        }
        _ => return Err(invalid("the scheme is not known")),
    }
    url.is_cluster = is_cluster;
    url.read_queries(query, has_sentinels).map_err(|why| invalid(&why))?;
    if url.lanes.is_some() && url.pool.is_some() {
        return Err(invalid("either lanes or a pool"));
    }
    match fragment {
        None => {}
        Some("insecure") => url.is_insecure = true,
        Some(_) => return Err(invalid("behind # there is only 'insecure'")),
    }
    if url.is_insecure && !url.is_tls() {
        return Err(invalid("only what speaks TLS can be insecure: rediss://"));
    }
    Ok(url)
}

/// What stands behind the last `#`, if that is not one of a password.
fn split_fragment(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('#') {
        Some((rest, fragment)) if !fragment.contains(['@', '/', '?']) => (rest, Some(fragment)),
        _ => (text, None),
    }
}

/// Without the password, for messages.
fn hidden(text: &str) -> String {
    let text = text.split('?').next().unwrap_or_default();
    match text.rsplit_once('@') {
        Some((login, server)) => {
            let scheme = login.split_once("://").map(|(scheme, _)| format!("{scheme}://"));
            format!("{}***@{server}", scheme.unwrap_or_default())
        }
        None => text.to_owned(),
    }
}

fn host_and_port(text: &str, otherwise: u16) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, port.strip_prefix(':').or_else(|| port.is_empty().then_some(""))?)
        }
        None => text.rsplit_once(':').unwrap_or((text, "")),
    };
    let port = if port.is_empty() { otherwise } else { port.parse().ok()? };
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Some((host.to_owned(), port))
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        if byte == b'%' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.push(byte);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

/// `500ms`, `3s`, `2m`; a number alone is seconds.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    Some(match &text[digits..] {
        "ms" => Duration::from_millis(number),
        "s" | "" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.checked_mul(60)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16, tls: bool) -> Address {
        Address::Tcp { host: host.to_owned(), port, tls }
    }

    #[test]
    fn urls_are_read_as_other_clients_read_them() {
        let url = parse("redis://user:p%40ss@example.org:7000/3").unwrap();
        assert_eq!(url.address, tcp("example.org", 7000, false));
        assert_eq!(
            (url.user.as_deref(), url.password),
            (Some("user"), Some(Secret("p@ss".into())))
        );
        assert_eq!(url.db, 3);
        let url = parse("redis://:secret@localhost").unwrap();
        assert_eq!((url.user, url.password), (None, Some(Secret("secret".into()))));
        let url = parse("redis://secret@localhost").unwrap();
        assert_eq!((url.user, url.password), (None, Some(Secret("secret".into()))));
        assert_eq!(parse("rediss://h").unwrap().address, tcp("h", 6379, true));
        assert!(!parse("rediss://h").unwrap().is_insecure);
        for text in ["rediss://h#insecure", "valkeys://h/1#insecure", "rediss://h?insecure&db=1"] {
            assert!(parse(text).unwrap().is_insecure, "{text}");
        }
        let url = parse("redis://:p#ss@localhost").unwrap();
        assert_eq!(url.password, Some(Secret("p#ss".into())));
        assert_eq!(parse("[::1]:1").unwrap().address, tcp("::1", 1, false));
        assert_eq!(parse("127.0.0.1:6380").unwrap().address, tcp("127.0.0.1", 6380, false));
        let url = parse("unix:///tmp/s?db=2&pass=x&protocol=resp2&timeout=500ms&lanes=4").unwrap();
        assert_eq!(url.address, Address::Unix(PathBuf::from("/tmp/s")));
        assert_eq!((url.db, url.protocol, url.lanes), (2, Some(2), Some(4)));
        assert_eq!(url.timeout, Some(Duration::from_millis(500)));
        assert_eq!(parse("redis://h?pool=50").unwrap().pool, Some(50));
    }

    #[test]
    fn a_cluster_has_several_nodes() {
        let url = parse("redis-cluster://u:p@h1:7000,h2,[::1]:7002?protocol=2").unwrap();
        assert_eq!(url.address, tcp("h1", 7000, false));
        assert_eq!(url.seeds, [tcp("h2", 6379, false), tcp("::1", 7002, false)]);
        assert!(url.is_cluster && url.password.is_some());
        let url = parse("valkeys-cluster://h1").unwrap();
        assert_eq!((url.address, url.is_cluster), (tcp("h1", 6379, true), true));
        assert!(!parse("redis://h1").unwrap().is_cluster);
        assert!(parse("unix-cluster:///tmp/s").is_err());
    }

    #[test]
    fn the_primary_of_a_service_is_named_in_two_ways() {
        let sentinels = [tcp("s1", 26379, false), tcp("s2", 5000, false), tcp("::1", 1, false)];
        for (text, db) in [
            ("redis-sentinel://u:p@s1,s2:5000,[::1]:1/my%20service", 0),
            ("redis-sentinel://u:p@s1,s2:5000,[::1]:1/my%20service/2", 2),
            ("redis-sentinel://u:p@s1,s2:5000,[::1]:1#my service", 0),
            ("valkey-sentinel://u:p@s1,s2:5000,[::1]:1/2#my%20service", 2),
        ] {
            let url = parse(text).unwrap();
            let service = url.service.unwrap();
            assert_eq!((&service.name[..], &service.sentinels[..]), ("my service", &sentinels[..]));
            assert_eq!((url.user.as_deref(), url.db), (Some("u"), db), "{text}");
        }
        let text = "rediss-sentinel://s1/name?insecure&sentinelUser=u&sentinelPass=p";
        let url = parse(text).unwrap();
        assert!(url.is_tls() && url.is_insecure);
        assert_eq!(url.sentinel_login, Login::new("u", "p"));
        assert_eq!(url.service.unwrap().sentinels, [tcp("s1", 26379, true)]);
        for text in [
            "redis-sentinel://s1",
            "redis-sentinel://s1:x/name",
            "redis-sentinel:///name/x",
            "redis-sentinel://s1/1",
            "redis://h?sentinelUser=u",
            "unix-sentinel:///s",
        ] {
            let expected = if text.ends_with("/1") { None } else { Some(Kind::Invalid) };
            assert_eq!(parse(text).err().map(|error| error.kind()), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_does_not_show_the_password() {
        for text in [
            "http://h",
            "redis://h:x",
            "redis://h/x",
            "redis://h?protocol=4",
            "redis://h?what=1",
            "unix://",
            "redis://%4@h",
            "redis://[::1",
            "redis://h?timeout=1y",
            "redis://h?pool=many",
            "redis://h?pool=8&lanes=2",
            "redis://h#insecure",
            "rediss://h#what",
        ] {
            assert_eq!(parse(text).unwrap_err().kind(), Kind::Invalid, "{text}");
        }
        let error = parse("redis://u:secret@h:x").unwrap_err();
        assert!(!error.message().contains("secret"), "{error}");
        let error = parse("redis://h?pass=secret&what=1").unwrap_err();
        assert!(!error.message().contains("secret"), "{error}");
        assert!(!format!("{:?}", parse("redis://:secret@h")).contains("secret"));
    }
}
