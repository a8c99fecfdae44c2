//! Server addresses, and URLs in the formats of other clients. `Client::builder` documents the formats for users.
//!
//! ```text
//! redis://[[user][:password]@]host[:port][/db][?…]      TCP
//! rediss://…                                            TCP with TLS
//! unix://[[user][:password]@]/path[?db=n&user=u&pass=p] Unix socket; redis+unix:// and redis-socket:// too
//! unix:/path, /path                                     the same, without a login
//! valkey:// and valkeys:// are the same as redis:// and rediss://
//! redis-cluster://host[:port][,host[:port]…]            a cluster, through some of its nodes; rediss-cluster:// …
//! redis-sentinel://[…@]host[:port][,host[:port]…]/service[/db]    the primary of a service that sentinels know
//! redis-sentinel://[…@]host[:port][,host[:port]…][/db]#service    the same; rediss-sentinel:// with TLS
//! ```
//!
//! The scheme may be in uppercase, and whitespace around the URL is ignored. In a user name or password, the characters
//! `/?#@:%` are percent-encoded (`/` is `%2F`). `/`, `?` and `#` are also accepted unescaped where they have no other
//! meaning, as in redis-cli. Errors never show any part of the URL, because it may be a password.
//!
//! `rediss://…#insecure`, or `?insecure`, accepts any certificate, as in other clients. Query parameters: `db`, `user`,
//! `pass`, `protocol` (2, resp2, 3, resp3), `timeout` (`500ms`, `3s`), `clientName`, `lanes`, `pool` (the size of a
//! pool of connections); with Sentinel also `sentinelUser` and `sentinelPass`. An unknown parameter is an error.

use crate::credentials::Login;
use crate::error::{Error, Kind, Result};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// A host (a name or an IP address) and a port.
    Tcp {
        /// Host.
        host: String,
        /// Port.
        port: u16,
        /// True if the connection uses TLS.
        tls: bool,
    },
    /// The path of a Unix socket.
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

/// A password. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A primary that Sentinel monitors: its service name, and the addresses of the sentinels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) sentinels: Vec<Address>,
}

/// The parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// The server; with Sentinel, the first sentinel.
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
    /// True if any certificate is accepted.
    pub(crate) is_insecure: bool,
}

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

impl Url {
    /// A URL with this address and defaults for the rest.
    fn of(address: Address) -> Url {
        Url {
            address,
            seeds: Vec::new(),
            is_cluster: false,
            service: None,
            sentinel_login: Login::none(),
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

    /// A URL for the primary of a service.
    pub(crate) fn of_service<S: AsRef<str>>(
        sentinels: impl IntoIterator<Item = S>,
        name: String,
    ) -> Result<Url> {
        let invalid = |why: &str| {
            let text = format!("a sentinel address must be host:port or [IPv6]:port: {why}");
            Error::new(Kind::Invalid, text)
        };
        let read = |sentinel: S| {
            let (host, port) = host_and_port(sentinel.as_ref(), SENTINEL_PORT).map_err(invalid)?;
            Ok(Address::Tcp { host, port, tls: false })
        };
        let sentinels = sentinels.into_iter().map(read).collect::<Result<Vec<_>>>()?;
        let first = sentinels.first().ok_or_else(|| invalid("there is none"))?.clone();
        if name.is_empty() {
            return Err(Error::new(Kind::Invalid, "the name of the service is empty"));
        }
        Ok(Url { service: Some(Service { name, sentinels }), ..Url::of(first) })
    }

    /// Parses the query. The error is the reason why it is invalid.
    fn read_queries(
        &mut self,
        query: &str,
        has_sentinels: bool,
    ) -> std::result::Result<(), String> {
        let wrong = str::to_owned;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value).ok_or_else(|| wrong(NOT_DECODED))?;
            match name {
                "db" | "database" => {
                    self.db = value.parse().map_err(|_| wrong(NO_DATABASE))?;
                }
                "user" | "username" => self.user = Some(value),
                "pass" | "password" => self.password = Some(Secret(value)),
                "protocol" => {
                    self.protocol = Some(match value.as_str() {
                        "2" | "resp2" => 2,
                        "3" | "resp3" => 3,
                        _ => return Err(wrong("protocol must be 2 or 3")),
                    });
                }
                "timeout" => {
                    let time = duration(&value);
                    self.timeout =
                        Some(time.ok_or_else(|| wrong("timeout must be like 500ms, 3s or 2m"))?);
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
                "lanes" => {
                    self.lanes = Some(value.parse().map_err(|_| wrong("lanes is not a number"))?)
                }
                "pool" => {
                    self.pool = Some(value.parse().map_err(|_| wrong("pool is not a number"))?)
                }
                // The option's name is not shown: it may be part of a password that contains a question
                // mark.
                _ => return Err(wrong(UNKNOWN_OPTION)),
            }
        }
        Ok(())
    }

    /// Reports whether the connection uses TLS.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.address, Address::Tcp { tls: true, .. })
    }

    /// Turns TLS on. Returns false for Unix sockets.
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

const NO_DATABASE: &str = "the database, after the host and a slash, is not a number";
const NOT_DECODED: &str =
    "a % sign must be followed by two hexadecimal digits, and the decoded text must be UTF-8";
const UNKNOWN_OPTION: &str = "unknown option after ?; the options are db, user, pass, protocol, timeout, \
    clientName, insecure, lanes and pool, with sentinels sentinelUser and sentinelPass; in a password ? is written %3F";
const NO_PORT: &str = "the port is not a number from 0 to 65535";
const NO_HOST: &str = "the host has invalid characters, or an IPv6 address without brackets";

/// The scheme names of servers reached over TCP.
const TCP_SCHEMES: [&str; 4] = ["redis", "valkey", "rediss", "valkeys"];

/// The meaning of a URL's scheme.
#[derive(Clone, Copy, Debug, Default)]
struct Scheme {
    is_unix: bool,
    tls: bool,
    has_sentinels: bool,
    is_cluster: bool,
}

impl Scheme {
    /// `None` if the scheme is not known.
    fn of(name: &str) -> Option<Scheme> {
        let name = name.to_ascii_lowercase();
        let (base, scheme) = match name.rsplit_once('-') {
            Some((base, "sentinel")) => (base, Scheme { has_sentinels: true, ..Scheme::default() }),
            Some((base, "cluster")) => (base, Scheme { is_cluster: true, ..Scheme::default() }),
            _ => (&*name, Scheme::default()),
        };
        if TCP_SCHEMES.contains(&base) {
            return Some(Scheme { tls: base.ends_with("ss") || base.ends_with("ys"), ..scheme });
        }
        let is_unix = matches!(&*name, "unix" | "redis+unix" | "valkey+unix" | "redis-socket");
        is_unix.then_some(Scheme { is_unix, ..scheme })
    }
}

/// Parses a URL, or a plain `host:port` or path.
pub(crate) fn parse(text: &str) -> Result<Url> {
    // Lines that were read from a file may have whitespace around them.
    let text = text.trim_ascii();
    let (name, rest) = match text.split_once("://") {
        Some(split) => split,
        None if text.starts_with('/') => ("unix", text),
        None => match text.split_once(":/") {
            Some((name, _)) if name.eq_ignore_ascii_case("unix") => {
                ("unix", &text["unix:".len()..])
            }
            _ => ("redis", text),
        },
    };
    let Some(scheme) = Scheme::of(name) else {
        let text = "the scheme of the address is unknown; supported are redis://, rediss:// (TLS), \
                    redis-cluster://, redis-sentinel:// and unix://";
        return Err(Error::new(Kind::Invalid, text));
    };
    // A known scheme is not a secret.
    let name = name.to_ascii_lowercase();
    let invalid = |why: &str| {
        Error::new(Kind::Invalid, format!("the address {name}://… is not valid: {why}"))
    };
    let (login, rest) = split_login(rest, scheme);
    let (rest, fragment) = split_fragment(rest);
    let (server, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut fragment = fragment;
    let mut url = match scheme.is_unix {
        true if server.is_empty() => return Err(invalid("the path is empty")),
        true => Url::of(Address::Unix(PathBuf::from(server))),
        false => read_servers(server, scheme, &mut fragment).map_err(|why| invalid(&why))?,
    };
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let decoded = |text: &str| decode(text).ok_or_else(|| invalid(NOT_DECODED));
    url.user = Some(decoded(user)?).filter(|user| !user.is_empty());
    url.password = Some(decoded(password)?).filter(|password| !password.is_empty()).map(Secret);
    // As in Lettuce, a login without a colon is the password.
    if !login.contains(':') {
        url.password = url.user.take().map(Secret);
    }
    url.is_cluster = scheme.is_cluster;
    url.read_queries(query, scheme.has_sentinels).map_err(|why| invalid(&why))?;
    if url.lanes.is_some() && url.pool.is_some() {
        return Err(invalid("lanes and pool cannot be combined"));
    }
    match fragment {
        None => {}
        Some("insecure") => url.is_insecure = true,
        Some(_) => {
            return Err(invalid(
                "only 'insecure' is supported after #; write a # in a password as %23",
            ));
        }
    }
    if url.is_insecure && !url.is_tls() {
        return Err(invalid("'insecure' requires TLS: use rediss://"));
    }
    Ok(url)
}

/// Parses the server addresses of a TCP URL and the database after them. The error is the reason why they are invalid.
fn read_servers(
    text: &str,
    scheme: Scheme,
    fragment: &mut Option<&str>,
) -> std::result::Result<Url, String> {
    let (servers, path) = text.split_once('/').unwrap_or((text, ""));
    // A trailing slash is accepted, as in redis-cli and other clients.
    let mut path = path.strip_suffix('/').unwrap_or(path);
    let mut url = if scheme.has_sentinels {
        let name = match fragment.take() {
            Some(name) => name,
            None => {
                let (name, db) = path.split_once('/').unwrap_or((path, ""));
                path = db;
                name
            }
        };
        let name = decode(name).ok_or(NOT_DECODED)?;
        let of_service = Url::of_service(servers.split(','), name);
        let mut url = of_service.map_err(|error| error.message().to_owned())?;
        if scheme.tls {
            url.wants_tls();
        }
        url
    } else {
        let mut addresses = servers.split(',').map(|server| {
            let (host, port) = host_and_port(server, PORT)?;
            Ok::<_, &str>(Address::Tcp { host, port, tls: scheme.tls })
        });
        let first = addresses.next().ok_or(NO_HOST)??;
        Url { seeds: addresses.collect::<std::result::Result<_, _>>()?, ..Url::of(first) }
    };
    if !path.is_empty() {
        url.db = path.parse().map_err(|_| NO_DATABASE)?;
    }
    Ok(url)
}

/// Splits at the last `@` that ends a login. Returns the login and the text after the `@`.
///
/// A login normally ends before the first of `/?#`. If there is no `@` before that, and the text before it is not a
/// valid server, the password contains one of these characters unescaped.
fn split_login(rest: &str, scheme: Scheme) -> (&str, &str) {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    if let Some(at) = rest[..end].rfind('@') {
        return (&rest[..at], &rest[at + 1..]);
    }
    let late = match scheme.is_unix {
        // Paths begin with a slash.
        true if rest.starts_with('/') => None,
        true => rest.rfind("@/"),
        false => {
            let is_server = |server: &str| host_and_port(server, PORT).is_ok();
            let are_servers = !rest.starts_with(':') && rest[..end].split(',').all(is_server);
            if are_servers { None } else { rest.rfind('@') }
        }
    };
    late.map_or(("", rest), |at| (&rest[..at], &rest[at + 1..]))
}

/// Splits at the last `#`, unless that `#` is part of a password. Returns the text before it and the fragment.
fn split_fragment(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('#') {
        Some((rest, fragment)) if !fragment.contains(['@', '/', '?']) => (rest, Some(fragment)),
        _ => (text, None),
    }
}

/// Parses a host and a port. The error is the reason why they are invalid.
fn host_and_port(text: &str, otherwise: u16) -> std::result::Result<(String, u16), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(NO_HOST)?;
            let port =
                if port.is_empty() { port } else { port.strip_prefix(':').ok_or(NO_PORT)? };
            (host, port)
        }
        None => text.rsplit_once(':').unwrap_or((text, "")),
    };
    let port = if port.is_empty() { otherwise } else { port.parse().map_err(|_| NO_PORT)? };
    let is_bracketed = text.starts_with('[');
    let is_strange = |c: char| {
        c.is_whitespace() || c.is_control() || "/?#@[]".contains(c) || (c == ':' && !is_bracketed)
    };
    if host.contains(is_strange) {
        return Err(NO_HOST);
    }
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok((host.to_owned(), port))
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Parses a duration such as `500ms`, `3s` or `2m`. A number without a unit is in seconds.
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
    fn urls_that_other_clients_accept_are_accepted() {
        let unix = |path: &str| Address::Unix(PathBuf::from(path));
        for (text, address) in [
            ("REDIS://h", tcp("h", 6379, false)),
            ("Rediss://h/0", tcp("h", 6379, true)),
            ("VALKEYS-cluster://h", tcp("h", 6379, true)),
            (" redis://h:7\n", tcp("h", 7, false)),
            ("redis://h/0/\r\n", tcp("h", 6379, false)),
            ("redis://h/", tcp("h", 6379, false)),
            ("h:7\n", tcp("h", 7, false)),
            ("unix:/tmp/s", unix("/tmp/s")),
            ("UNIX:///tmp/s", unix("/tmp/s")),
            ("/tmp/s@h", unix("/tmp/s@h")),
            ("unix:///tmp/a@/b", unix("/tmp/a@/b")),
            ("unix://:secret@/tmp/s", unix("/tmp/s")),
        ] {
            let url = parse(text).unwrap();
            assert_eq!((url.address, url.db), (address, 0), "{text}");
        }
        assert_eq!(parse("unix:/tmp/s?db=3").unwrap().db, 3);
        assert_eq!(parse("redis://h/12/").unwrap().db, 12);
        for (text, user, password) in [
            ("unix://:secret@/tmp/s", None, "secret"),
            ("unix://ana:secret@/tmp/s", Some("ana"), "secret"),
            ("unix://ana:sec/ret@/tmp/s", Some("ana"), "sec/ret"),
            ("redis://:top?secret@h", None, "top?secret"),
            ("redis://:top/secret@h", None, "top/secret"),
            ("redis://:top#secret@h/0?protocol=2", None, "top#secret"),
            ("redis://ana:top?secret@h:7/0", Some("ana"), "top?secret"),
            ("redis://:p@s%3As@h", None, "p@s:s"),
            ("redis://h?user=ana&pass=p@s", Some("ana"), "p@s"),
        ] {
            let url = parse(text).unwrap();
            assert_eq!(url.user.as_deref(), user, "{text}");
            assert_eq!(url.password, Some(Secret(password.into())), "{text}");
            assert_eq!(url.db, 0, "{text}");
        }
    }

    #[test]
    fn neither_errors_nor_debug_show_a_part_of_a_url_that_may_be_a_secret() {
        for (text, why) in [
            ("redis://:12?secret@h", ""),
            ("redis://u:12?secret@h", UNKNOWN_OPTION),
            ("redis://12?secret@h", UNKNOWN_OPTION),
            ("redis://u:p@secret/secret@h", NO_DATABASE),
            ("redis://u:secret@h:x", NO_PORT),
            ("redis://u:secret@h:70000", NO_PORT),
            ("redis://u:secret@h h", NO_HOST),
            ("redis://u:secret@::1", NO_HOST),
            ("redis://u:secret@h/x", NO_DATABASE),
            ("redis://u:%s@secret", NOT_DECODED),
            ("redis://u:secret@h#secret", "after #"),
            ("redis://h?pass=secret&secret=1", UNKNOWN_OPTION),
            ("redis://h?secret", UNKNOWN_OPTION),
            ("unix://u:secret@", "the path is empty"),
            ("secret://secret@h", "scheme"),
            ("redis-sentinel://u:secret@s1:secret/name", NO_PORT),
            ("unix://:secret@/tmp/s", ""),
            ("redis://:secret@h", ""),
        ] {
            let parsed = parse(text);
            assert!(!format!("{parsed:?}").contains("secret"), "{parsed:?}");
            match parsed {
                Ok(_) => assert_eq!(why, "", "{text}"),
                Err(error) => {
                    assert!(error.message().contains(why) && !why.is_empty(), "{text}: {error}");
                    assert!(!error.to_string().contains("secret"), "{error}");
                    assert_eq!(error.kind(), Kind::Invalid, "{text}");
                }
            }
        }
        let error = Url::of_service(["redis://:secret@s1"], "name".to_owned()).unwrap_err();
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
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
    fn an_invalid_url_is_an_error_that_does_not_show_the_password() {
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
