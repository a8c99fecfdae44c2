//! The reports of a server: INFO, CONFIG GET, SLOWLOG, LATENCY, MEMORY DOCTOR, CLIENT LIST, and the default user.

use crate::docs::pairs;
use crate::info::InfoFields;
use crate::link::LinkError;
use crate::session::Session;
use crate::slowlog::{self, SlowEntry};
use brisk_resp::Value;
use std::collections::HashMap;

/// Everything that the checks need. A part that the server does not report is empty.
#[derive(Debug, Default)]
pub(super) struct ServerFacts {
    pub(super) info: InfoFields,
    config: HashMap<String, String>,
    pub(super) slow: Vec<SlowEntry>,
    pub(super) latency: Vec<LatencyEvent>,
    /// The lines of MEMORY DOCTOR's list.
    pub(super) memory_doctor: Vec<String>,
    pub(super) clients: Vec<HashMap<String, String>>,
    /// True if clients need no password to be the default user; `None` if this is unknown.
    pub(super) is_open: Option<bool>,
    pub(super) cluster: InfoFields,
    /// The reports that the server has rejected, with its errors.
    pub(super) missing: Vec<String>,
}

/// A line of LATENCY LATEST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LatencyEvent {
    pub(super) name: String,
    pub(super) max_ms: u64,
}

impl ServerFacts {
    /// Requests the reports.
    ///
    /// # Errors
    /// If the connection fails.
    pub(super) fn load(session: &mut Session) -> Result<ServerFacts, LinkError> {
        let requests: [&[&str]; 8] = [
            &["INFO", "everything"],
            &["CONFIG", "GET", "*"],
            &["SLOWLOG", "GET", slowlog::ENTRIES],
            &["LATENCY", "LATEST"],
            &["MEMORY", "DOCTOR"],
            &["CLIENT", "LIST"],
            &["ACL", "GETUSER", "default"],
            &["CLUSTER", "INFO"],
        ];
        let replies = session.request_all(&requests.map(<[&str]>::to_vec))?;
        let mut facts = ServerFacts::default();
        for (request, reply) in requests.iter().zip(&replies) {
            match reply.as_error() {
                // A server outside of a cluster has no report about it.
                Some(_) if request[0] == "CLUSTER" => {}
                Some(error) => {
                    let error = String::from_utf8_lossy(error);
                    facts.missing.push(format!("{}: {error}", request.join(" ")));
                }
                None => facts.add(request[0], reply),
            }
        }
        // The name of the report is clearer than its arguments.
        for line in &mut facts.missing {
            *line = line.replacen("INFO everything", "INFO", 1);
        }
        Ok(facts)
    }

    fn add(&mut self, report: &str, reply: &Value) {
        match report {
            "INFO" => self.info = InfoFields::parse(&text(reply)),
            "CLUSTER" => self.cluster = InfoFields::parse(&text(reply)),
            "CONFIG" => {
                let pairs = pairs(reply).into_iter();
                self.config = pairs.map(|(name, value)| (text(name), text(value))).collect();
            }
            "SLOWLOG" => self.slow = list(reply).iter().filter_map(SlowEntry::parse).collect(),
            "LATENCY" => self.latency = list(reply).iter().filter_map(LatencyEvent::of).collect(),
            "MEMORY" => self.memory_doctor = points(&text(reply)),
            "CLIENT" => self.clients = text(reply).lines().map(client).collect(),
            _ => self.is_open = is_open(reply),
        }
    }

    /// A directive; `None` if it is unknown.
    pub(super) fn config(&self, name: &str) -> Option<&str> {
        self.config.get(name).map(String::as_str)
    }

    /// A number of INFO; 0 if it is missing.
    pub(super) fn number(&self, field: &str) -> u64 {
        self.info.number(field).and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    }

    /// The number of keys in all databases, and of those with a TTL.
    pub(super) fn keys(&self) -> (u64, u64) {
        let databases =
            self.info.with_prefix("db").filter(|(number, _)| number.parse::<u32>().is_ok());
        databases.fold((0, 0), |(keys, expires), (_, value)| {
            let of = |name| -> u64 {
                crate::info::part(value, name).and_then(|it| it.parse().ok()).unwrap_or(0)
            };
            (keys + of("keys"), expires + of("expires"))
        })
    }
}

impl LatencyEvent {
    fn of(value: &Value) -> Option<LatencyEvent> {
        let fields = value.as_slice()?;
        let max_ms = u64::try_from(fields.get(3)?.as_integer()?).ok()?;
        Some(LatencyEvent { name: text(fields.first()?), max_ms })
    }
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_slice().unwrap_or_default()
}

/// The points of a list: lines that begin with `-` or `*`. Servers without a problem print only a sentence.
fn points(text: &str) -> Vec<String> {
    let point = |line: &str| {
        let line = line.trim();
        let rest = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?;
        Some(rest.to_owned())
    };
    text.lines().filter_map(point).collect()
}

fn client(line: &str) -> HashMap<String, String> {
    let fields = line.split(' ').filter_map(|part| part.split_once('='));
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Reports whether a user in a reply to ACL GETUSER is on and needs no password.
fn is_open(reply: &Value) -> Option<bool> {
    let fields = pairs(reply);
    let flags = fields.iter().find(|(name, _)| name.as_bytes() == Some(b"flags"))?.1;
    let has = |flag: &str| list(flags).iter().any(|it| it.as_bytes() == Some(flag.as_bytes()));
    Some(has("on") && has("nopass"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Facts with these fields of INFO and these directives.
    pub(in super::super) fn facts(info: &str, config: &[(&str, &str)]) -> ServerFacts {
        ServerFacts {
            info: InfoFields::parse(&info.replace(' ', "\r\n")),
            config: config
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..ServerFacts::default()
        }
    }

    #[test]
    fn points_of_both_servers_are_found() {
        assert_eq!(
            points("Sam, I detected issues:\n\n * Peak memory: high\n\n * Other\n"),
            ["Peak memory: high", "Other"]
        );
        assert_eq!(points("- maxmemory is reached\n"), ["maxmemory is reached"]);
        assert!(points("No problem found.\n").is_empty());
    }

    #[test]
    fn keys_of_all_databases_are_counted() {
        let facts =
            facts("db0:keys=3,expires=1,avg_ttl=0 db1:keys=4,expires=0,avg_ttl=0 dbx:keys=9", &[]);
        assert_eq!(facts.keys(), (7, 1));
    }
}
