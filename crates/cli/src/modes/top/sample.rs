//! A sample of a server's metrics: the replies to INFO and CLIENT LIST at one instant.

use crate::info::{InfoFields, part};
use brisk_resp::Value;
use std::collections::HashMap;
use std::time::Instant;

/// The metrics at one instant.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) at: Instant,
    pub(super) info: InfoFields,
    pub(super) clients: Vec<ClientLine>,
}

/// A line of CLIENT LIST.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientLine {
    fields: HashMap<String, String>,
}

impl ClientLine {
    fn parse(line: &str) -> Option<ClientLine> {
        let fields = line.split(' ').filter_map(|part| part.split_once('='));
        let fields: HashMap<_, _> =
            fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        fields.contains_key("id").then_some(ClientLine { fields })
    }

    /// The value of a field; empty if the server does not report it.
    pub(super) fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.fields.get(name)?.parse().ok()
    }
}

impl Sample {
    /// The requests of a sample.
    pub(super) fn requests(with_clients: bool) -> Vec<Vec<&'static str>> {
        let mut requests = vec![vec!["INFO", "everything"]];
        if with_clients {
            requests.push(vec!["CLIENT", "LIST"]);
        }
        requests
    }

    /// Parses the replies to these requests.
    ///
    /// # Errors
    /// The error of the server.
    pub(super) fn of(replies: &[Value]) -> Result<Sample, String> {
        let text = |reply: Option<&Value>| -> Result<String, String> {
            let Some(reply) = reply else { return Ok(String::new()) };
            if let Some(error) = reply.as_error() {
                return Err(String::from_utf8_lossy(error).into_owned());
            }
            Ok(String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned())
        };
        let info = InfoFields::parse(&text(replies.first())?);
        let clients = text(replies.get(1))?.lines().filter_map(ClientLine::parse).collect();
        Ok(Sample { at: Instant::now(), info, clients })
    }
}

/// Two samples, and the rates between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval<'a> {
    pub(super) before: &'a Sample,
    pub(super) now: &'a Sample,
}

impl Interval<'_> {
    pub(super) fn seconds(&self) -> f64 {
        (self.now.at - self.before.at).as_secs_f64().max(1e-6)
    }

    /// The increase of a field of INFO; 0 if it was reset.
    pub(super) fn increase(&self, field: &str) -> f64 {
        (self.now.info.decimal(field) - self.before.info.decimal(field)).max(0.0)
    }

    pub(super) fn rate(&self, field: &str) -> f64 {
        self.increase(field) / self.seconds()
    }

    /// The increase of a part of a field such as `cmdstat_get:calls=1,usec=2`; 0 if it was reset.
    pub(super) fn part_increase(&self, field: &str, name: &str) -> f64 {
        let of = |sample: &Sample| -> f64 {
            let value = sample.info.get(field).and_then(|value| part(value, name));
            value.and_then(|value| value.parse().ok()).unwrap_or(0.0)
        };
        (of(self.now) - of(self.before)).max(0.0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::time::Duration;

    /// A sample with these replies, this many seconds after another one.
    pub(in super::super) fn sample(
        info: &str,
        clients: &str,
        after: Option<(&Sample, u64)>,
    ) -> Sample {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let mut sample = Sample::of(&[bulk(info), bulk(clients)]).expect("the replies are texts");
        if let Some((before, seconds)) = after {
            sample.at = before.at + Duration::from_secs(seconds);
        }
        sample
    }

    #[test]
    fn rates_are_increases_per_second_and_never_negative() {
        let before = sample("a:10\r\nb:5\r\nc:calls=1,usec=10\r\n", "", None);
        let now = sample("a:30\r\nb:1\r\nc:calls=5,usec=20\r\n", "", Some((&before, 2)));
        let interval = Interval { before: &before, now: &now };
        assert_eq!([interval.rate("a"), interval.rate("b"), interval.rate("x")], [10.0, 0.0, 0.0]);
        assert_eq!(interval.part_increase("c", "usec"), 10.0);
        assert_eq!(interval.part_increase("d", "usec"), 0.0);
    }

    #[test]
    fn clients_have_fields_and_an_error_is_returned() {
        let text = "id=3 addr=127.0.0.1:5 name= db=0 cmd=client|list\nnonsense\n";
        let clients = sample("", text, None).clients;
        assert_eq!(clients.len(), 1);
        assert_eq!((clients[0].text("addr"), clients[0].number("id")), ("127.0.0.1:5", Some(3)));
        assert_eq!(Sample::of(&[Value::Error(b"NOPERM".to_vec())]).unwrap_err(), "NOPERM");
    }
}
