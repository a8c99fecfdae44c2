//! Hot keys without an LFU policy: a sample of the requests that a server executes, and the keys in it.
//!
//! MONITOR costs the server time for each request, so it runs only in short bursts. A burst ends after [`BURST`] or
//! [`LINES_MAX`] requests, and the connection is closed, which ends MONITOR immediately.

use super::LinkResult;
use crate::keyspec::CommandKeys;
use crate::link::{Link, LinkError};
use crate::quote::{leading_number, split};
use brisk_resp::Value;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The duration of a burst.
pub(super) const BURST: Duration = Duration::from_millis(100);
/// Maximum number of requests in a burst.
pub(super) const LINES_MAX: u64 = 20_000;
/// Maximum number of different keys. If there are more, those that were used once are forgotten.
const KEYS_MAX: usize = 100_000;
/// Keys whose count has decayed below this are forgotten.
const COUNT_MIN: f64 = 0.05;

/// A key and its database.
pub(super) type SampledKey = (i64, Vec<u8>);

/// The sampled keys, and the cost of the sample.
#[derive(Debug, Default)]
pub(super) struct KeySample {
    commands: CommandKeys,
    counts: HashMap<SampledKey, f64>,
    pub(super) bursts: u64,
    /// The number of requests that the server has sent.
    pub(super) requests: u64,
    pub(super) bytes: u64,
    /// The number of bursts that ended early because of [`LINES_MAX`].
    pub(super) cut_bursts: u64,
    /// The total duration of the bursts.
    pub(super) time: Duration,
    /// The duration, reduced in the same way as the counts.
    weighted_seconds: f64,
}

impl KeySample {
    /// An empty sample. Reads the key positions of the server's commands.
    ///
    /// # Errors
    /// If the connection fails.
    pub(super) fn new(link: &mut Link) -> LinkResult<KeySample> {
        let commands = CommandKeys::of(&link.request(&["COMMAND"])?);
        Ok(KeySample { commands, ..KeySample::default() })
    }

    /// Samples one burst over a new connection, and closes it. The inner error is that of the server.
    ///
    /// # Errors
    /// If the connection fails.
    pub(super) fn burst(
        &mut self,
        mut link: Link,
        is_counted: impl Fn(&[u8]) -> bool,
    ) -> LinkResult<Result<(), String>> {
        if let Some(text) = link.request(&["MONITOR"])?.as_error() {
            return Ok(Err(String::from_utf8_lossy(text).into_owned()));
        }
        let begin = Instant::now();
        let mut lines = 0;
        while lines < LINES_MAX {
            let left = BURST.saturating_sub(begin.elapsed());
            // Lines that have already arrived are counted even if the time is over.
            let line = match link.reply_within(left) {
                Ok(Some(Value::Simple(line))) => line,
                Ok(Some(_)) => continue,
                Ok(None) => break,
                Err(LinkError::Closed) => break,
                Err(error) => return Err(error),
            };
            if begin.elapsed() > BURST * 2 {
                break;
            }
            lines += 1;
            self.bytes += line.len() as u64 + 3;
            self.count(&line, &is_counted);
        }
        let took = begin.elapsed();
        self.bursts += 1;
        self.requests += lines;
        self.cut_bursts += u64::from(lines == LINES_MAX);
        self.time += took;
        self.weighted_seconds += took.as_secs_f64();
        Ok(Ok(()))
    }

    fn count(&mut self, line: &[u8], is_counted: &impl Fn(&[u8]) -> bool) {
        let Some((database, words)) = parse(line) else { return };
        for at in self.commands.positions(&words) {
            let Some(key) = words.get(at).filter(|key| is_counted(key)) else { continue };
            if self.counts.len() >= KEYS_MAX {
                self.counts.retain(|_, count| *count > 1.0);
            }
            if self.counts.len() < KEYS_MAX {
                *self.counts.entry((database, key.clone())).or_insert(0.0) += 1.0;
            }
        }
    }

    /// Reduces the weight of everything that has been sampled so far.
    pub(super) fn decay(&mut self, factor: f64) {
        self.weighted_seconds *= factor;
        self.counts.retain(|_, count| {
            *count *= factor;
            *count >= COUNT_MIN
        });
    }

    /// The most frequent keys and their counts, most frequent first.
    pub(super) fn hottest(&self, limit: usize) -> Vec<(&SampledKey, f64)> {
        let mut all: Vec<(&SampledKey, f64)> =
            self.counts.iter().map(|(key, count)| (key, *count)).collect();
        let order = |a: &(&SampledKey, f64), b: &(&SampledKey, f64)| {
            b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0))
        };
        if limit > 0 && all.len() > limit {
            all.select_nth_unstable_by(limit - 1, order);
        }
        all.truncate(limit);
        all.sort_unstable_by(order);
        all
    }

    /// The requests per second that a count stands for.
    pub(super) fn rate(&self, count: f64) -> f64 {
        count / self.weighted_seconds.max(1e-3)
    }
}

/// The database and the arguments of a line of MONITOR: `1700000000.123456 [0 127.0.0.1:5000] "get" "key"`.
fn parse(line: &[u8]) -> Option<(i64, Vec<Vec<u8>>)> {
    let open = line.iter().position(|byte| *byte == b'[')?;
    let rest = &line[open + 1..];
    let end = rest.windows(3).position(|part| part == b"] \"")?;
    Some((leading_number(rest), split(&rest[end + 2..])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_monitor_has_a_database_and_arguments() {
        let (database, words) = parse(br#"1.2 [3 [::1]:50] "get" "a b\x00""#).unwrap();
        assert_eq!((database, words), (3, vec![b"get".to_vec(), b"a b\0".to_vec()]));
        assert_eq!(parse(br#"1.2 [0 lua] "ping""#).unwrap().1, [b"ping".to_vec()]);
        assert_eq!(parse(b"OK"), None);
    }

    #[test]
    fn counts_decay_and_the_hottest_keys_come_first() {
        let mut sample = KeySample { weighted_seconds: 2.0, ..KeySample::default() };
        for (key, count) in [("a", 4.0), ("b", 6.0), ("c", 0.06)] {
            sample.counts.insert((0, key.as_bytes().to_vec()), count);
        }
        let hottest: Vec<_> =
            sample.hottest(2).iter().map(|(key, count)| (key.1[0], *count)).collect();
        assert_eq!(hottest, [(b'b', 6.0), (b'a', 4.0)]);
        sample.decay(0.5);
        assert_eq!((sample.hottest(9).len(), sample.rate(3.0)), (2, 3.0));
    }
}
