//! A sample of a server's metrics: the replies to INFO, CLIENT LIST and SLOWLOG at one instant. Also the samples of the
//! last minute, and the rates between two samples.

use super::slow_log;
use crate::info::{InfoFields, part};
use crate::options::TopTable;
use crate::slowlog::{self, SlowEntry};
use brisk_resp::Value;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The rates of commands are averages over this time.
pub(super) const RATES_TIME: Duration = Duration::from_secs(10);
/// A command keeps its row for this time after its last call.
pub(super) const ROWS_TIME: Duration = Duration::from_secs(60);
/// The shortest time between two kept samples, so about 120 samples are kept.
const SPACING: Duration = Duration::from_millis(500);

/// The metrics at one instant.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) at: Instant,
    pub(super) info: InfoFields,
    /// Empty if they were not requested.
    pub(super) clients: Vec<ClientLine>,
    /// The CLIENT ID of this connection.
    pub(super) own_id: Option<u64>,
    /// The slow log or the error of the server; `None` if it was not requested.
    pub(super) slow_log: Option<Result<Vec<SlowEntry>, String>>,
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
    /// The requests of a sample for this table.
    pub(super) fn requests(kind: TopTable) -> Vec<Vec<&'static str>> {
        let mut requests = vec![vec!["INFO", "everything"]];
        match kind {
            TopTable::Clients => requests.extend([vec!["CLIENT", "LIST"], vec!["CLIENT", "ID"]]),
            TopTable::SlowLog => requests.push(vec!["SLOWLOG", "GET", slowlog::ENTRIES]),
            TopTable::Commands | TopTable::Keys | TopTable::Workers => {}
        }
        requests
    }

    /// Parses the replies to these requests.
    ///
    /// # Errors
    /// The error of the server.
    pub(super) fn of(kind: TopTable, replies: &[Value]) -> Result<Sample, String> {
        let text = |reply: Option<&Value>| -> Result<String, String> {
            let Some(reply) = reply else { return Ok(String::new()) };
            if let Some(error) = reply.as_error() {
                return Err(String::from_utf8_lossy(error).into_owned());
            }
            Ok(String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned())
        };
        let info = InfoFields::parse(&text(replies.first())?);
        let mut sample =
            Sample { at: Instant::now(), info, clients: Vec::new(), own_id: None, slow_log: None };
        match kind {
            TopTable::Clients => {
                let lines = text(replies.get(1))?;
                sample.clients = lines.lines().filter_map(ClientLine::parse).collect();
                let id = replies.get(2).and_then(Value::as_integer);
                sample.own_id = id.and_then(|id| u64::try_from(id).ok());
            }
            TopTable::SlowLog => sample.slow_log = replies.get(1).map(slow_log::parse),
            TopTable::Commands | TopTable::Keys | TopTable::Workers => {}
        }
        Ok(sample)
    }

    /// Reports whether the server was restarted or its statistics were reset between another sample and this one.
    pub(super) fn is_reset_since(&self, before: &Sample) -> bool {
        let calls = |sample: &Sample| sample.info.decimal("total_commands_processed");
        calls(self) < calls(before)
    }
}

/// The samples of the last minute, oldest first, without clients.
#[derive(Debug, Default)]
pub(super) struct History(VecDeque<Sample>);

impl History {
    pub(super) fn add(&mut self, mut sample: Sample) {
        let at = sample.at;
        let age = |kept: &Sample| at.saturating_duration_since(kept.at);
        if self.0.back().is_some_and(|newest| age(newest) < SPACING) {
            return;
        }
        while self.0.front().is_some_and(|oldest| age(oldest) > ROWS_TIME + SPACING) {
            self.0.pop_front();
        }
        (sample.clients, sample.slow_log) = (Vec::new(), None);
        self.0.push_back(sample);
    }

    /// An interval that begins earlier: at the oldest sample of this time. Without such a sample, it is the same.
    pub(super) fn longer<'a>(&'a self, interval: &Interval<'a>, time: Duration) -> Interval<'a> {
        let age = |kept: &Sample| interval.now.at.saturating_duration_since(kept.at);
        let before = self.0.iter().find(|kept| age(kept) <= time + SPACING);
        Interval { before: before.unwrap_or(interval.before), now: interval.now }
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

    /// A sample with these replies, this many seconds after another one.
    pub(in super::super) fn sample(
        info: &str,
        clients: &str,
        after: Option<(&Sample, u64)>,
    ) -> Sample {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let mut sample =
            Sample::of(TopTable::Clients, &[bulk(info), bulk(clients), Value::Integer(2)])
                .expect("the replies are texts");
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
        let rejected = Sample::of(TopTable::Commands, &[Value::Error(b"NOPERM".to_vec())]);
        assert_eq!(rejected.unwrap_err(), "NOPERM");
    }

    #[test]
    fn an_interval_becomes_longer_by_the_samples_of_the_last_minute() {
        let first = sample("total_commands_processed:9\r\n", "", None);
        let samples: Vec<Sample> = (0..100).map(|at| sample("", "", Some((&first, at)))).collect();
        let mut history = History::default();
        samples.iter().for_each(|sample| history.add(sample.clone()));
        // A sample that follows immediately is not kept.
        history.add(samples[99].clone());
        assert!(history.0.len() <= 62, "{}", history.0.len());
        let now = sample("", "", Some((&first, 101)));
        let interval = Interval { before: &samples[99], now: &now };
        let seconds = |time| history.longer(&interval, time).seconds();
        assert_eq!([seconds(RATES_TIME), seconds(ROWS_TIME)], [10.0, 60.0]);
        // After a pause, the kept samples are too old.
        let late = sample("", "", Some((&first, 300)));
        let interval = Interval { before: &samples[99], now: &late };
        assert_eq!(history.longer(&interval, RATES_TIME).seconds(), 201.0);
        assert!(now.is_reset_since(&first) && !late.is_reset_since(&now));
    }
}
