//! The table of keys: hot keys from short samples of the requests, and big keys from a scan that continues in small
//! steps. A thread with its own connections collects them, so that the screen never waits.

use super::super::keyspace::{KeyScan, KeyScanError};
use super::super::sampling::{KeySample, SampledKey};
use super::SET_NAME;
use super::table::{Cell, Column, Table, rough_duration};
use crate::amount;
use crate::link::{Link, LinkError};
use crate::options::Options;
use crate::session::{ConnectFailure, Session};
use brisk_structures::poison::EvenPoisoned as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(super) const KEYS: &[Column] = &[
    Column::text("key").at_least(24),
    Column::number("db").dropped(2),
    Column::number("requests/s").dropped(1),
    Column::number("memory"),
];

/// Number of hot keys, and of big keys, that are kept.
const KEPT: usize = 200;
/// Number of keys that a step of the scan examines.
const STEP: i64 = 500;
/// The duration of the scan in each round.
const SCAN_TIME: Duration = Duration::from_millis(100);
/// The pause after a complete scan, as a multiple of the time that it took.
const PAUSE_FACTOR: u32 = 10;
/// Shorter pauses are not shown.
const SHOWN_PAUSE: Duration = Duration::from_secs(60);
/// The weight of a sample after the next one.
const DECAY: f64 = 0.9;
/// The weight of the previous rounds in the speed of the scan.
const SPEED_DECAY: f64 = 0.8;
/// Time limit for connecting and for each reply, unless `-t` sets a different one.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The keys that have been found so far.
#[derive(Debug, Default)]
pub(super) struct FoundKeys {
    sample: KeySample,
    database: i64,
    /// The biggest keys of the scan, by size and name.
    biggest: Vec<(u64, Vec<u8>)>,
    /// The number of keys that the current scan has examined.
    scanned: u64,
    total: u64,
    /// True if the last scan has reached its end, and the next one has not begun.
    is_complete: bool,
    /// True if a scan has reached its end.
    has_all: bool,
    /// How long the pause between two scans still lasts.
    pause: Duration,
    /// The speed of the scan; 0 before the second round.
    keys_per_second: f64,
}

/// Finds keys over its own connections.
struct KeyFinder {
    options: Options,
    link: Link,
    cursor: KeyScan<'static>,
    /// The end of the last round.
    last_round: Option<Instant>,
    /// The time that the current scan has taken.
    scan_time: Duration,
    /// The beginning of the next scan.
    next_scan: Instant,
    found: FoundKeys,
}

impl KeyFinder {
    fn new(options: &Options) -> Result<KeyFinder, String> {
        let mut options = options.clone();
        options.timeout = options.timeout.or(Some(TIMEOUT));
        let lost = |error: LinkError| error.to_string();
        let mut link = open_named(&options)?;
        let sample = KeySample::new(&mut link).map_err(lost)?;
        let found = FoundKeys { sample, database: options.database, ..FoundKeys::default() };
        Ok(KeyFinder {
            options,
            link,
            cursor: KeyScan::new(None, Some(STEP)),
            last_round: None,
            scan_time: Duration::ZERO,
            next_scan: Instant::now(),
            found,
        })
    }

    /// Takes one sample, and continues the scan for [`SCAN_TIME`] or waits for the next scan.
    fn round(&mut self) -> Result<(), String> {
        let lost = |error: LinkError| error.to_string();
        self.found.sample.decay(DECAY);
        self.found.sample.burst(open_named(&self.options)?, |_| true).map_err(lost)??;
        let reply = self.link.request(&["DBSIZE"]).map_err(lost)?;
        self.found.total = reply.as_integer().and_then(|it| u64::try_from(it).ok()).unwrap_or(0);
        let hot = self.found.sample.hottest(KEPT);
        let in_database = hot.iter().filter(|(key, _)| key.0 == self.found.database);
        let mut keys: BTreeSet<Vec<u8>> = in_database.map(|(key, _)| key.1.clone()).collect();
        if self.found.is_complete {
            keys.extend(self.found.biggest.iter().map(|(_, key)| key.clone()));
        }
        self.measure(keys.into_iter().collect()).map_err(lost)?;
        self.found.pause = self.next_scan.saturating_duration_since(Instant::now());
        if self.found.is_complete {
            self.last_round = None;
            if !self.found.pause.is_zero() {
                return Ok(());
            }
            // The biggest keys stay until the new scan finds them again.
            (self.cursor, self.found.is_complete) = (KeyScan::new(None, Some(STEP)), false);
            (self.found.scanned, self.scan_time) = (0, Duration::ZERO);
        }
        let (scanned, began) = (self.found.scanned, Instant::now());
        self.scan()?;
        let now = Instant::now();
        self.scan_time += now.saturating_duration_since(self.last_round.unwrap_or(began));
        if self.found.is_complete {
            self.found.pause = self.scan_time * PAUSE_FACTOR;
            self.next_scan = now + self.found.pause;
        }
        if let Some(last) = self.last_round.replace(now) {
            let time = now.saturating_duration_since(last);
            self.found.add_speed((self.found.scanned - scanned) as f64 / time.as_secs_f64());
        }
        Ok(())
    }

    /// Continues the scan for [`SCAN_TIME`].
    fn scan(&mut self) -> Result<(), String> {
        let lost = |error: LinkError| error.to_string();
        let until = Instant::now() + SCAN_TIME;
        loop {
            let step = match self.cursor.step(&mut self.link) {
                Ok(step) => step,
                Err(KeyScanError::Link(error)) => return Err(lost(error)),
                Err(KeyScanError::Rejected(text)) => return Err(text),
            };
            let Some(keys) = step else {
                (self.found.is_complete, self.found.has_all) = (true, true);
                return Ok(());
            };
            self.found.scanned += keys.len() as u64;
            self.measure(keys).map_err(lost)?;
            if Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Adds keys with their sizes to the findings.
    fn measure(&mut self, keys: Vec<Vec<u8>>) -> Result<(), LinkError> {
        let sizes = self.sizes(&keys)?;
        self.found.add(keys.into_iter().zip(sizes));
        Ok(())
    }

    /// The memory of each key; `None` if it no longer exists.
    fn sizes(&mut self, keys: &[Vec<u8>]) -> Result<Vec<Option<u64>>, LinkError> {
        let request = |key: &Vec<u8>| vec![b"MEMORY".to_vec(), b"USAGE".to_vec(), key.clone()];
        let requests: Vec<_> = keys.iter().map(request).collect();
        let replies = self.link.request_all(&requests)?;
        Ok(replies.iter().map(|it| it.as_integer().and_then(|it| u64::try_from(it).ok())).collect())
    }
}

/// Opens a connection that CLIENT LIST shows with the name of this program.
fn open_named(options: &Options) -> Result<Link, String> {
    let mut link = open(options)?;
    // A server may reject the name.
    link.request(&SET_NAME).map_err(|error| error.to_string())?;
    Ok(link)
}

fn open(options: &Options) -> Result<Link, String> {
    let mut session = Session::new(options.clone())?;
    session.open().map_err(|failure| match failure {
        ConnectFailure::Unreachable(text)
        | ConnectFailure::Tls(text)
        | ConnectFailure::Rejected(text) => text,
        ConnectFailure::Lost => "Server closed the connection".to_owned(),
    })?;
    session.take_link().ok_or_else(|| "no connection".to_owned())
}

impl FoundKeys {
    /// Adds keys with their sizes. A key that no longer exists is removed.
    fn add(&mut self, keys: impl Iterator<Item = (Vec<u8>, Option<u64>)>) {
        let mut sizes: BTreeMap<Vec<u8>, u64> =
            self.biggest.drain(..).map(|(size, key)| (key, size)).collect();
        for (key, size) in keys {
            match size {
                Some(size) => sizes.insert(key, size),
                None => sizes.remove(&key),
            };
        }
        self.biggest = sizes.into_iter().map(|(key, size)| (size, key)).collect();
        self.biggest.sort_unstable_by(|a, b| b.cmp(a));
        self.biggest.truncate(KEPT);
    }

    /// The hot keys and the big keys in one table.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(KEYS);
        let mut rows: BTreeMap<SampledKey, (Option<f64>, Option<u64>)> = BTreeMap::new();
        for (key, count) in self.sample.hottest(KEPT) {
            rows.entry(key.clone()).or_default().0 = Some(self.sample.rate(count));
        }
        for (size, key) in &self.biggest {
            rows.entry((self.database, key.clone())).or_default().1 = Some(*size);
        }
        for ((database, key), (rate, size)) in rows {
            table.rows.push(vec![
                Cell::Text(amount::readable(&key)),
                Cell::Number(database as f64, database.to_string()),
                rate.map_or(Cell::Missing, Cell::rate),
                size.map_or(Cell::Missing, |size| Cell::bytes(size as f64)),
            ]);
        }
        let what = match self.has_all {
            true => "biggest keys".to_owned(),
            false => {
                let scanned = amount::counted(self.scanned, "key");
                format!("biggest of the {scanned} scanned so far")
            }
        };
        table.title = format!("{what}; for hot keys, sort by requests/s");
        let hot = format!(
            "requests/s: sample of {} in {}",
            amount::counted(self.sample.requests, "request"),
            amount::counted(self.sample.bursts, "burst"),
        );
        table.remarks = vec![format!("memory: {}", self.progress()), hot];
        table
    }

    /// How many of the keys the scan has examined, and how long the rest takes.
    fn progress(&self) -> String {
        let keys = match self.total {
            total @ 1_000_000.. => format!("{:.1} M keys", total as f64 / 1e6),
            total => amount::counted(total, "key"),
        };
        if self.is_complete {
            let mut text = format!("all {keys} scanned");
            if self.pause >= SHOWN_PAUSE {
                text.push_str(&format!("; next scan in {}", rough_duration(self.pause)));
            }
            return text;
        }
        // A scan may find a key twice.
        let total = self.total.max(self.scanned).max(1);
        let percent = 100.0 * self.scanned as f64 / total as f64;
        let percent =
            if percent < 1.0 { format!("{percent:.2} %") } else { format!("{percent:.0} %") };
        if self.has_all {
            return format!("all {keys} scanned; next scan at {percent}");
        }
        let mut text = format!("{percent} of {keys} scanned");
        if self.keys_per_second > 0.0 {
            let seconds = (total - self.scanned) as f64 / self.keys_per_second;
            let left = rough_duration(Duration::from_secs(seconds as u64));
            text.push_str(&format!(", ~{left} left"));
        }
        text
    }

    /// Adds the speed of a round to the average.
    fn add_speed(&mut self, keys_per_second: f64) {
        self.keys_per_second = match self.keys_per_second {
            0.0 => keys_per_second,
            before => SPEED_DECAY * before + (1.0 - SPEED_DECAY) * keys_per_second,
        };
    }
}

/// Finds keys in one round, for output that is not live.
pub(super) fn once(options: &Options) -> Result<Table, String> {
    let mut finder = KeyFinder::new(options)?;
    finder.round()?;
    Ok(finder.found.table())
}

/// The thread that finds keys. It works one round for each request.
pub(super) struct KeysThread {
    requests: Sender<()>,
    replies: Receiver<()>,
    is_busy: bool,
    latest: Arc<Mutex<Result<Table, String>>>,
    /// The progress of a scan that has not reached its end.
    progress: Arc<Mutex<Option<String>>>,
}

impl KeysThread {
    /// Starts the thread. It ends with the value.
    pub(super) fn start(options: &Options) -> KeysThread {
        let (requests, wakes) = channel::<()>();
        let (done, replies) = channel();
        let mut waiting = Table::new(KEYS);
        waiting.remarks.push("Waiting for the first sample.".to_owned());
        let latest = Arc::new(Mutex::new(Ok(waiting)));
        let (options, shared) = (options.clone(), Arc::clone(&latest));
        let progress = Arc::new(Mutex::new(None));
        let shared_progress = Arc::clone(&progress);
        std::thread::spawn(move || {
            let mut finder: Option<KeyFinder> = None;
            while wakes.recv().is_ok() {
                let round = || -> Result<(KeyFinder, Table), String> {
                    let mut finder = finder.take().map_or_else(|| KeyFinder::new(&options), Ok)?;
                    finder.round()?;
                    let table = finder.found.table();
                    Ok((finder, table))
                };
                let result = { round }().map(|(kept, table)| {
                    let progress = (!kept.found.is_complete).then(|| kept.found.progress());
                    *shared_progress.lock().even_poisoned() = progress;
                    finder = Some(kept);
                    table
                });
                *shared.lock().even_poisoned() = result;
                if done.send(()).is_err() {
                    return;
                }
            }
        });
        KeysThread { requests, replies, is_busy: false, latest, progress }
    }

    /// Requests the next round, unless one is being worked on.
    pub(super) fn request(&mut self) {
        self.is_busy &= self.replies.try_recv().is_err();
        if !self.is_busy {
            self.is_busy = self.requests.send(()).is_ok();
        }
    }

    /// The progress of the scan, unless it is complete.
    pub(super) fn progress(&self) -> Option<String> {
        self.progress.lock().even_poisoned().clone()
    }

    /// The result of the last round.
    pub(super) fn table(&self) -> Result<Table, String> {
        self.latest.lock().even_poisoned().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_biggest_keys_are_kept_and_deleted_keys_removed() {
        let mut found = FoundKeys::default();
        let key = |name: &str| name.as_bytes().to_vec();
        found.add([(key("a"), Some(5)), (key("b"), Some(9)), (key("c"), Some(1))].into_iter());
        found.add([(key("b"), None), (key("a"), Some(7))].into_iter());
        assert_eq!(found.biggest, [(7, key("a")), (1, key("c"))]);
        found.add((0..500u64).map(|at| (at.to_string().into_bytes(), Some(at))));
        assert_eq!((found.biggest.len(), found.biggest[0].0), (KEPT, 499));
    }

    #[test]
    fn the_progress_of_the_scan_comes_first() {
        let mut found = FoundKeys { scanned: 1000, total: 10_001_003, ..FoundKeys::default() };
        assert_eq!(found.progress(), "0.01 % of 10.0 M keys scanned");
        found.add_speed(10_000.0);
        assert_eq!(found.progress(), "0.01 % of 10.0 M keys scanned, ~16 min left");
        let table = found.table();
        assert_eq!(table.remarks[0], format!("memory: {}", found.progress()));
        let title = "biggest of the 1,000 keys scanned so far; for hot keys, sort by requests/s";
        assert_eq!(table.title, title);
        (found.is_complete, found.has_all, found.total) = (true, true, 1000);
        found.pause = Duration::from_secs(3000);
        assert_eq!(found.progress(), "all 1,000 keys scanned; next scan in 50 min");
        (found.is_complete, found.scanned) = (false, 500);
        assert_eq!(found.progress(), "all 1,000 keys scanned; next scan at 50 %");
        assert!(found.table().title.starts_with("biggest keys;"));
    }
}
