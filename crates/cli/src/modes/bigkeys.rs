//! `--bigkeys` and `--memkeys`: the largest key of each type by elements or by memory, and averages.

use super::LinkResult;
use super::keyspace::{self, KeyScan, failed};
use crate::link::Link;
use crate::options::Options;
use crate::progress::{Progress, Unit};
use crate::quote::quote;
use crate::screen;
use brisk_resp::Value;

/// Progress is printed each time this number of keys has been scanned.
const KEYS_PER_PROGRESS_LINE: u64 = 1_000_000;
/// Maximum number of types, including those of modules.
const TYPES_MAX: usize = 256;

/// The measure of a key's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Elements,
    Memory,
}

/// The findings for one type.
#[derive(Debug)]
struct Kind {
    name: String,
    /// The command that returns the size of a value of this type, if there is one.
    command: Option<&'static str>,
    unit: &'static str,
    count: u64,
    size: u64,
    largest: u64,
    largest_key: Option<String>,
}

impl Kind {
    fn new(name: &str, command: Option<&'static str>, unit: &'static str) -> Kind {
        let (count, size, largest, largest_key) = (0, 0, 0, None);
        Kind { name: name.to_owned(), command, unit, count, size, largest, largest_key }
    }

    fn unit(&self, measure: Measure) -> &str {
        match measure {
            Measure::Elements => self.unit,
            Measure::Memory => "bytes",
        }
    }
}

/// The types in the order of the report.
fn kinds() -> Vec<Kind> {
    vec![
        Kind::new("list", Some("LLEN"), "items"),
        Kind::new("hash", Some("HLEN"), "fields"),
        Kind::new("string", Some("STRLEN"), "bytes"),
        Kind::new("stream", Some("XLEN"), "entries"),
        Kind::new("set", Some("SCARD"), "members"),
        Kind::new("zset", Some("ZCARD"), "members"),
    ]
}

/// The results of the scan.
struct Found {
    kinds: Vec<Kind>,
    total: u64,
    sampled: u64,
    key_bytes: u64,
    progress: Progress,
}

pub(super) fn run(link: &mut Link, options: &Options, measure: Measure) -> i32 {
    let total = match keyspace::size(link) {
        Ok(Some(total)) => total,
        Ok(None) => return 1,
        Err(error) => return super::lost(&error),
    };
    keyspace::print_header("biggest");
    let progress = Progress::new("Looking", Unit::Keys, Some(total));
    let mut found = Found { kinds: kinds(), total, sampled: 0, key_bytes: 0, progress };
    let mut scan = KeyScan::new(options.pattern.as_deref(), None);
    loop {
        match scan.step(link) {
            Ok(Some(keys)) => {
                if let Err(error) = found.look_at(link, &keys, measure, options.memory_samples) {
                    return super::lost(&error);
                }
                scan.pause_if_due(options.interval_us);
            }
            Ok(None) => break,
            Err(error) => return failed(error),
        }
    }
    found.progress.clear();
    screen::print(found.summary(measure));
    0
}

impl Found {
    fn look_at(
        &mut self,
        link: &mut Link,
        keys: &[Vec<u8>],
        measure: Measure,
        samples: i64,
    ) -> LinkResult<()> {
        let percent = percentage(self.sampled, self.total);
        let requests: Vec<_> = keys.iter().map(|key| vec![b"TYPE".to_vec(), key.clone()]).collect();
        let types = link.request_all(&requests)?;
        let mut known = Vec::new();
        for (key, reply) in keys.iter().zip(&types) {
            if let Some(text) = reply.as_error() {
                let text = String::from_utf8_lossy(text);
                screen::flush();
                screen::warn(format!("TYPE returned an error: {text}\n"));
                screen::exit(1);
            }
            if let Some(kind) = self.kind_of(reply) {
                known.push((key, kind));
            }
        }
        let sizes = self.sizes(link, &known, measure, samples)?;
        for ((key, kind), size) in known.into_iter().zip(sizes) {
            self.count(key, kind, size, percent, measure);
        }
        screen::flush();
        self.progress.at(self.sampled);
        Ok(())
    }

    /// The index of a type among the kinds; `None` if the key is gone.
    fn kind_of(&mut self, reply: &Value) -> Option<usize> {
        let name = String::from_utf8_lossy(reply.as_bytes()?).into_owned();
        if name == "none" {
            return None;
        }
        if let Some(at) = self.kinds.iter().position(|kind| kind.name == name) {
            return Some(at);
        }
        if self.kinds.len() >= TYPES_MAX {
            return None;
        }
        self.kinds.push(Kind::new(&name, None, "?"));
        Some(self.kinds.len() - 1)
    }

    fn sizes(
        &self,
        link: &mut Link,
        known: &[(&Vec<u8>, usize)],
        measure: Measure,
        samples: i64,
    ) -> LinkResult<Vec<u64>> {
        let request = |key: &Vec<u8>, kind: usize| match (measure, self.kinds[kind].command) {
            (Measure::Memory, _) => {
                let mut request = vec![b"MEMORY".to_vec(), b"USAGE".to_vec(), key.clone()];
                if samples != 0 {
                    request.extend([b"SAMPLES".to_vec(), samples.to_string().into_bytes()]);
                }
                Some(request)
            }
            (Measure::Elements, Some(command)) => {
                Some(vec![command.as_bytes().to_vec(), key.clone()])
            }
            (Measure::Elements, None) => None,
        };
        let requests: Vec<_> = known.iter().map(|(key, kind)| request(key, *kind)).collect();
        let sent: Vec<_> = requests.iter().flatten().cloned().collect();
        let mut replies = link.request_all(&sent)?.into_iter();
        let mut sizes = Vec::with_capacity(known.len());
        for ((key, kind), request) in known.iter().zip(&requests) {
            let reply = request.as_ref().and_then(|_| replies.next());
            let size = reply.as_ref().and_then(Value::as_integer);
            if reply.is_some() && size.is_none() {
                // The key may have been deleted, or may now have a different type.
                let command = self.kinds[*kind].command.unwrap_or("MEMORY USAGE");
                let command = if measure == Measure::Memory { "MEMORY USAGE" } else { command };
                let key = String::from_utf8_lossy(key);
                screen::flush();
                screen::warn(format!(
                    "Warning:  {command} on '{key}' failed (may have changed type)\n"
                ));
            }
            sizes.push(u64::try_from(size.unwrap_or(0)).unwrap_or(0));
        }
        Ok(sizes)
    }

    fn count(&mut self, key: &[u8], kind: usize, size: u64, percent: f64, measure: Measure) {
        let kind = &mut self.kinds[kind];
        kind.size = kind.size.saturating_add(size);
        kind.count += 1;
        self.key_bytes += key.len() as u64;
        self.sampled += 1;
        if kind.largest < size {
            self.progress.clear();
            let shown = quote(key);
            let (name, unit) = (&kind.name, kind.unit(measure));
            screen::print(format!(
                "[{percent:05.2}%] Biggest {name:<6} found so far '{shown}' with {size} {unit}\n"
            ));
            kind.largest = size;
            kind.largest_key = Some(shown);
        }
        if self.sampled.is_multiple_of(KEYS_PER_PROGRESS_LINE) {
            let sampled = self.sampled;
            screen::print(format!("[{percent:05.2}%] Sampled {sampled} keys so far\n"));
        }
    }

    fn summary(&self, measure: Measure) -> String {
        let sampled = self.sampled;
        let mut text = format!(
            "\n-------- summary -------\n\nSampled {sampled} keys in the keyspace!\n\
             Total key length in bytes is {} (avg len {:.2})\n\n",
            self.key_bytes,
            ratio(self.key_bytes, sampled)
        );
        for kind in &self.kinds {
            if let Some(key) = &kind.largest_key {
                let (name, unit, largest) = (&kind.name, kind.unit(measure), kind.largest);
                text.push_str(&format!("Biggest {name:>6} found '{key}' has {largest} {unit}\n"));
            }
        }
        text.push('\n');
        for kind in &self.kinds {
            text.push_str(&format!(
                "{} {}s with {} {} ({:05.2}% of keys, avg size {:.2})\n",
                kind.count,
                kind.name,
                kind.size,
                kind.unit(measure),
                percentage(kind.count, sampled),
                ratio(kind.size, kind.count)
            ));
        }
        text
    }
}

/// A ratio, or 0 if nothing was counted.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A ratio in percent, or 0 if nothing was counted.
pub(super) fn percentage(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
