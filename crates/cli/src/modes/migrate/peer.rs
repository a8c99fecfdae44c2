//! One of the two servers of a migration: its connection and its reports.

use super::Interruptible;
use crate::info::InfoFields;
use crate::link::Interrupts;
use crate::options::Options;
use crate::pause;
use crate::session::{ConnectFailure, Session};
use brisk_resp::Value;
use std::rc::Rc;
use std::time::Duration;

/// Time limit for connecting and for each reply, unless `-t` sets a different one.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server.
pub(super) struct Peer {
    session: Session,
    interrupts: Interruptible,
    /// `host:port`
    pub(super) place: String,
    /// The address without its password.
    pub(super) uri: String,
    pub(super) info: InfoFields,
}

impl Peer {
    /// Connects to the server at an address, and reads its INFO.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub(super) fn connect(
        options: &Options,
        uri: &str,
        interrupts: Option<&Rc<Interrupts>>,
    ) -> Result<Peer, String> {
        let mut options = options.at_uri(uri).map_err(|text| format!("{text}: {uri}"))?;
        options.timeout = options.timeout.or(Some(TIMEOUT));
        let place = format!("{}:{}", options.host, options.port);
        let scheme = if options.tls { "rediss" } else { "redis" };
        let uri = format!("{scheme}://{place}");
        let mut session = Session::new(options)?;
        session.heed(interrupts.cloned());
        let interrupts = interrupts.cloned();
        let mut peer = Peer { session, interrupts, place, uri, info: InfoFields::default() };
        peer.open()?;
        peer.reload()?;
        Ok(peer)
    }

    fn open(&mut self) -> Result<(), String> {
        self.session.open().map_err(|failure| {
            let text = match failure {
                ConnectFailure::Unreachable(text)
                | ConnectFailure::Tls(text)
                | ConnectFailure::Rejected(text) => text,
                ConnectFailure::Lost => "Server closed the connection".to_owned(),
            };
            format!("{}: {text}", self.place)
        })
    }

    pub(super) fn options(&self) -> &Options {
        &self.session.options
    }

    /// Sends a request. An error reply is an error.
    ///
    /// # Errors
    /// The text of the error, with the address of the server.
    pub(super) fn request<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, String> {
        let reply =
            self.session.request(words).map_err(|error| format!("{}: {error}", self.place))?;
        match reply.as_error() {
            Some(text) => Err(format!("{}: {}", self.place, String::from_utf8_lossy(text))),
            None => Ok(reply),
        }
    }

    /// Sends a request over a new connection if the current one fails. For restoring a server.
    ///
    /// # Errors
    /// The text of the error, with the address of the server.
    pub(super) fn request_again<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, String> {
        if let Some(interrupts) = &self.interrupts {
            interrupts.take();
        }
        // The reply to an interrupted request may still arrive on the old connection.
        self.open()?;
        self.request(words)
    }

    /// Reads INFO.
    ///
    /// # Errors
    /// If the server does not reply to it.
    pub(super) fn reload(&mut self) -> Result<(), String> {
        let reply = self.request(&["INFO", "everything"])?;
        self.info = InfoFields::parse(&text(&reply));
        match self.info.get("redis_version") {
            Some(_) => Ok(()),
            None => Err(format!("{}: the reply to INFO is not a report", self.place)),
        }
    }

    /// A directive.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn config(&mut self, name: &str) -> Result<String, String> {
        let reply = self.request(&["CONFIG", "GET", name])?;
        let pairs = crate::docs::pairs(&reply);
        Ok(pairs.first().map(|(_, value)| text(value)).unwrap_or_default())
    }

    /// Pauses. Ctrl-C is an error.
    ///
    /// # Errors
    /// If Ctrl-C was pressed.
    pub(super) fn rest(&self, time: Duration) -> Result<(), String> {
        pause::pause(time);
        match &self.interrupts {
            Some(interrupts) if interrupts.take() => Err("Interrupted".to_owned()),
            _ => Ok(()),
        }
    }

    pub(super) fn version(&self) -> String {
        super::super::version(&self.info)
    }

    pub(super) fn is_brisk(&self) -> bool {
        self.info.get("brisk_version").is_some()
    }

    pub(super) fn number(&self, field: &str) -> u64 {
        self.info.number(field).and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    }

    pub(super) fn is_replica(&self) -> bool {
        self.info.is("role", "slave")
    }

    /// Reports whether this server is a replica of another one.
    pub(super) fn is_replica_of(&self, other: &Peer) -> bool {
        self.is_replica()
            && self.info.is("master_host", &other.options().host)
            && self.info.is("master_port", &other.options().port.to_string())
    }

    /// The databases with keys, and the numbers of their keys.
    pub(super) fn databases(&self) -> Vec<(u32, u64)> {
        let databases = self.info.with_prefix("db").filter_map(|(number, value)| {
            let keys = crate::info::part(value, "keys")?.parse().ok()?;
            Some((number.parse().ok()?, keys))
        });
        databases.collect()
    }

    /// The number of keys in all databases.
    pub(super) fn keys(&self) -> u64 {
        self.databases().iter().map(|(_, keys)| keys).sum()
    }
}

pub(super) fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned()
}
