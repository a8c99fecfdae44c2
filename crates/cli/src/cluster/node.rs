//! One node of a cluster: its connection, and its reports about itself and the other nodes.

use super::slots::address_of;
use super::{SLOTS, messages, split_place};
use crate::info::InfoFields;
use crate::quote::leading_number;
use crate::screen;
use crate::session::{AlreadyReported, ConnectFailure, Loudness, Session};
use brisk_cluster::document::CoordinatorReport;
use brisk_resp::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// The default difference between a node's port and its bus port.
const BUS_PORT_OFFSET: i64 = 10_000;

/// A line of CLUSTER NODES.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) id: String,
    pub(super) host: String,
    pub(super) port: i64,
    /// The port of the cluster bus; `None` if it is not listed.
    pub(super) bus_port: Option<i64>,
    pub(super) flags: Vec<String>,
    pub(super) replicates: Option<String>,
    pub(super) epoch: u64,
    pub(super) is_linked: bool,
    pub(super) slots: BTreeSet<u16>,
    pub(super) migrating: Vec<(u16, String)>,
    pub(super) importing: Vec<(u16, String)>,
}

impl Line {
    pub(super) fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|it| it == flag)
    }

    /// Reads a line; `None` if it is malformed.
    fn parse(line: &str) -> Option<Line> {
        let mut words = line.split(' ');
        let mut next = || words.next();
        let id = next()?.to_owned();
        let place = next()?.split(',').next()?;
        let flags: Vec<String> = next()?.split(',').map(str::to_owned).collect();
        let replicates = Some(next()?).filter(|it| *it != "-").map(str::to_owned);
        let _ping_and_pong = (next()?, next()?);
        let epoch = next()?.parse().ok()?;
        let is_linked = next()? == "connected";
        let (host, port) = split_place(place)?;
        let port = leading_number(port.as_bytes());
        let bus_port = place.split_once('@').map(|(_, bus)| leading_number(bus.as_bytes()));
        let mut line = Line {
            id,
            host,
            port,
            bus_port,
            flags,
            replicates,
            epoch,
            is_linked,
            ..Line::default()
        };
        for word in words {
            line.add_slots(word)?;
        }
        Some(line)
    }

    /// Adds a slot, a slot range, or a slot that is being moved.
    fn add_slots(&mut self, word: &str) -> Option<()> {
        if let Some(open) = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) {
            if let Some((slot, to)) = open.split_once("->-") {
                self.migrating.push((slot.parse().ok()?, to.to_owned()));
            } else if let Some((slot, from)) = open.split_once("-<-") {
                self.importing.push((slot.parse().ok()?, from.to_owned()));
            }
            return Some(());
        }
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        self.slots.extend((first..=last).filter(|slot| *slot < SLOTS));
        Some(())
    }
}

/// The lines of a CLUSTER NODES reply; `None` if one of them is malformed.
pub(super) fn parse_nodes(text: &str) -> Option<Vec<Line>> {
    text.lines().map(Line::parse).collect()
}

/// A connected node.
#[derive(Debug)]
pub(super) struct Node {
    session: Session,
    pub(super) is: Line,
    /// The number of its known replicas.
    pub(super) replicas: usize,
}

impl Node {
    /// Connects to a node, which must be in cluster mode.
    ///
    /// # Errors
    /// If the node cannot be reached, or is not a cluster node.
    pub(super) fn connect(host: &str, port: i64, like: &Session) -> Result<Node, AlreadyReported> {
        let mut options = like.options.clone();
        (options.host, options.port, options.socket) = (host.to_owned(), port, None);
        let mut session = Session::new(options).map_err(|text| {
            screen::warn(format!("{text}\n"));
            AlreadyReported
        })?;
        session.connect(Loudness::Loud)?;
        let is = Line { host: host.to_owned(), port, ..Line::default() };
        Ok(Node { session, is, replicas: 0 })
    }

    /// Connects to a node without printing errors. Each wait lasts at most `timeout`, unless `-t` sets a different
    /// limit.
    ///
    /// # Errors
    /// If the node does not accept the connection or the password.
    pub(super) fn reach(
        host: &str,
        port: i64,
        like: &Session,
        timeout: Duration,
    ) -> Result<Node, ConnectFailure> {
        let mut options = like.options.clone();
        (options.host, options.port, options.socket) = (host.to_owned(), port, None);
        options.timeout = options.timeout.or(Some(timeout));
        let mut session = Session::new(options).map_err(ConnectFailure::Tls)?;
        session.open()?;
        let is = Line { host: host.to_owned(), port, ..Line::default() };
        Ok(Node { session, is, replicas: 0 })
    }

    /// `host:port`
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.is.host, self.is.port)
    }

    /// Sends a request. An error reply is returned as an error.
    ///
    /// # Errors
    /// The text of the error.
    pub(super) fn request<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, String> {
        let reply = self.session.request(words).map_err(|error| error.to_string())?;
        match reply.as_error() {
            Some(text) => Err(String::from_utf8_lossy(text).into_owned()),
            None => Ok(reply),
        }
    }

    /// Like [`Node::request`], but prints an error.
    ///
    /// # Errors
    /// If there was an error, which has been printed.
    pub(super) fn demand<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, AlreadyReported> {
        self.request(words).map_err(|text| {
            let place = self.place();
            messages::error(&format!("Node {place} replied with error:\n{text}\n"));
            AlreadyReported
        })
    }

    /// Sends a request. Returns any reply, even an error.
    pub(super) fn raw(&mut self, words: &[Vec<u8>]) -> Option<Value> {
        self.session.request(words).ok()
    }

    /// The reply to a request as text.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub(super) fn text(&mut self, words: &[&str]) -> Result<String, String> {
        let reply = self.request(words)?;
        Ok(String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned())
    }

    /// The reply to INFO or CLUSTER INFO.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub(super) fn fields(&mut self, words: &[&str]) -> Result<InfoFields, String> {
        Ok(InfoFields::parse(&self.text(words)?))
    }

    /// The facts that the node has from its coordinator; `None` if it is not a node of Brisk, or rejects the request.
    pub(super) fn coordinator_report(&mut self) -> Option<CoordinatorReport> {
        let reply = self.request(&["REPLCONF", "brisk-coordinator", "?"]).ok()?;
        CoordinatorReport::parse(reply.as_bytes()?).ok()
    }

    /// Returns the lines of CLUSTER NODES for the other nodes, and stores its own line.
    ///
    /// # Errors
    /// If it is not a cluster node, or a request fails.
    pub(super) fn load(&mut self) -> Result<Vec<Line>, AlreadyReported> {
        let info = self.demand(&["INFO", "cluster"])?;
        let info = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
        if !info.contains("cluster_enabled:1") {
            let place = self.place();
            return messages::fail(&format!(
                "[ERR] Node {place} is not configured as a cluster node.\n"
            ));
        }
        let reply = self.demand(&["CLUSTER", "NODES"])?;
        let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned();
        let Some(mut lines) = parse_nodes(&text) else {
            return messages::fail("Error: invalid CLUSTER NODES reply\n");
        };
        let own = lines.iter().position(|line| line.has_flag("myself"));
        if let Some(own) = own {
            let own = lines.remove(own);
            // The node may not know its own address, so keep the one with which we connected.
            let (host, port) = (self.is.host.clone(), self.is.port);
            self.is = Line { host, port, ..own };
            self.is.flags.retain(|flag| flag != "myself");
        }
        Ok(lines)
    }

    /// Makes the node join the cluster of another node.
    ///
    /// # Errors
    /// If the node rejects the command. The error has been printed.
    pub(super) fn meet(&mut self, other: &Line) -> Result<(), AlreadyReported> {
        let (host, port) = (address_of(&other.host), other.port.to_string());
        // Servers before 7.0 support only the default bus port, so the argument is omitted for it.
        let bus_port =
            other.bus_port.filter(|bus| ![0, other.port + BUS_PORT_OFFSET].contains(bus));
        let bus_port = bus_port.map(|bus| bus.to_string());
        let words = ["CLUSTER", "MEET", &host, &port].into_iter().chain(bus_port.as_deref());
        self.demand(&words.collect::<Vec<&str>>()).map(drop)
    }

    pub(super) fn is_master(&self) -> bool {
        self.is.has_flag("master")
    }

    /// The number of keys on the node.
    ///
    /// # Errors
    /// If the node does not reply.
    pub(super) fn keys(&mut self) -> Result<i64, AlreadyReported> {
        Ok(self.demand(&["DBSIZE"])?.as_integer().unwrap_or(0))
    }

    /// The number of keys of a slot on the node.
    pub(super) fn keys_in(&mut self, slot: u16) -> i64 {
        let reply = self.request(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()]);
        reply.ok().and_then(|reply| reply.as_integer()).unwrap_or(0)
    }

    /// The node's view of all slots, as a text that can be compared.
    pub(super) fn signature(&mut self) -> Option<String> {
        let own = self.is.id.clone();
        let lines = self.load().ok()?;
        let owned = |line: &Line| (line.id.clone(), line.slots.clone());
        let mut all: Vec<_> = lines.iter().map(owned).collect();
        all.push((own, self.is.slots.clone()));
        all.retain(|(_, slots)| !slots.is_empty());
        all.sort();
        Some(format!("{all:?}"))
    }

    /// Its connection, for a snapshot.
    pub(super) fn link(&mut self) -> Option<crate::link::Link> {
        self.session.take_link()
    }

    /// Several lines that describe the node, each after a margin.
    pub(super) fn describe(&self, margin: &str) -> String {
        let Line { id, slots, replicates, .. } = &self.is;
        let kind = if self.is_master() { 'M' } else { 'S' };
        let flags: Vec<&str> =
            self.is.flags.iter().map(String::as_str).filter(|flag| *flag != "myself").collect();
        let mut text = format!(
            "{margin}{kind}: {id} {}\n{margin}   slots:{} ({} slots) {}\n",
            self.place(),
            ranges(slots),
            slots.len(),
            flags.join(",")
        );
        if let Some(master) = replicates {
            text.push_str(&format!("{margin}   replicates {master}\n"));
        } else if self.replicas > 0 {
            text.push_str(&format!("{margin}   {} additional replica(s)\n", self.replicas));
        }
        text
    }
}

/// Formats slots, for example `[0-5],[7]`.
pub(super) fn ranges(slots: &BTreeSet<u16>) -> String {
    let each: Vec<String> = spans(slots)
        .into_iter()
        .map(
            |(first, last)| {
                if first == last { format!("[{first}]") } else { format!("[{first}-{last}]") }
            },
        )
        .collect();
    each.join(",")
}

/// The contiguous ranges in a set of slots.
pub(super) fn spans(slots: &BTreeSet<u16>) -> Vec<(u16, u16)> {
    let mut spans: Vec<(u16, u16)> = Vec::new();
    for &slot in slots {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == slot => *last = slot,
            _ => spans.push((slot, slot)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_cluster_is_read() {
        let text = "abc 10.0.0.1:7000@17000,name myself,master - 0 1 5 connected 0-2 7 [3->-def] [4-<-ghi]";
        let line = Line::parse(text).unwrap();
        assert_eq!((line.host.as_str(), line.port, line.epoch), ("10.0.0.1", 7000, 5));
        assert_eq!(line.bus_port, Some(17000));
        assert!(line.has_flag("master") && line.is_linked);
        assert_eq!(ranges(&line.slots), "[0-2],[7]");
        assert_eq!(line.migrating, [(3, "def".to_owned())]);
        assert_eq!(line.importing, [(4, "ghi".to_owned())]);
    }

    #[test]
    fn malformed_lines_are_rejected_and_invalid_slots_are_left_out() {
        for text in ["", "abc", "abc x master - 0 0 1 connected", "a b:1@2 m - 0 0 1 connected 9-x"]
        {
            assert_eq!(Line::parse(text), None, "{text}");
        }
        let line = Line::parse("a h:1@2 master - 0 0 1 connected 16383-65535").unwrap();
        assert_eq!(ranges(&line.slots), "[16383]");
    }
}
