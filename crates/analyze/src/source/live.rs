//! Reads a server's keys into records, with SCAN in every database and a few read commands for each key. The server's
//! data is not changed.
//!
//! ```text
//!  SCAN ── keys of a step ── TYPE · OBJECT ENCODING · MEMORY USAGE · PTTL · OBJECT IDLETIME or FREQ
//!                       └─── DUMP of some, to examine their contents
//! ```
//! **Share of time.** The analysis uses the server's time at most while it waits for a reply. So after each round trip
//! of length t, it sends nothing for t · (1 / share - 1). Steps are so small that none takes long.
//!
//! **Rejected commands** are counted, and the report is marked as incomplete. A key without a type or size is skipped,
//! because a size of 0 bytes would be wrong. An error such as BUSY or LOADING ends the scan. The file for resuming the
//! scan contains only keys for which all replies succeeded.
//!
//! **Traces.** CLIENT NO-TOUCH keeps DUMP from counting as an access to the key. Servers before 7.2 do not support it,
//! so the keys whose values are read appear as just used.

use super::SourceError;
use super::resume_file::{Found, Place, ResumeFile};
use crate::analysis::Analysis;
use crate::measure::Limits;
use crate::model::Classes;
use crate::progress::{Progress, Unit};
use crate::record::{Encoding, Kind};
use brisk_resp::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Number of keys per step: initially, and at most.
const STEP_FIRST: u64 = 16;
const STEP_MAX: u64 = 512;
/// The intended maximum duration of a step. If a step took longer, the next ones are smaller. If it took less than a
/// quarter of this time, the next ones are larger.
const STEP_TIME: Duration = Duration::from_millis(8);
/// The maximum size of a value that is read.
const VALUE_BYTES_MAX: u64 = 1 << 20;
/// Maximum memory of the values that are read in one round trip.
const VALUES_BYTES_MAX: u64 = 4 << 20;
/// If access to this number of keys was denied and none could be examined, the scan ends.
const REFUSED_KEYS_MAX: u64 = 10_000;
/// Maximum pause between two steps, no matter how slow the last one was.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The arguments of a request.
pub type Words = Vec<Vec<u8>>;

/// A connection to a server.
pub trait Server {
    /// Sends all requests together, and waits for all replies.
    ///
    /// # Errors
    /// If the connection fails, a text that says how.
    fn request_all(&mut self, requests: &[Words]) -> Result<Vec<Value>, String>;

    /// Waits for this long.
    fn pause(&mut self, time: Duration);
}

/// The settings of the scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The share of the server's time that the scan may use.
    pub share: f64,
    /// Maximum number of keys to examine.
    pub limit: Option<u64>,
    pub reads_values: bool,
    /// The file for resuming the scan.
    pub resume: Option<PathBuf>,
    /// The size classes of the allocator, if the server is not queried for them.
    pub classes: Option<Classes>,
}

/// Examines all keys.
///
/// # Errors
/// If the connection fails before anything is known. A later failure is recorded in the findings.
pub fn read(
    server: &mut dyn Server,
    options: &Options,
    analysis: &mut Analysis,
    progress: &mut Progress,
) -> Result<(), SourceError> {
    let begun = Instant::now();
    let mut scan = KeyScan::new(server, options);
    let properties = scan.read_server_info(analysis)?;
    let run_id = properties.run_id.clone();
    let (mut resume_file, place) = ResumeFile::open(options.resume.as_deref(), &run_id, analysis)?;
    let resumed = analysis.keys();
    if resumed > 0 {
        analysis.facts.notes.push(format!("{resumed} keys from an earlier run"));
    }
    let done = scan.databases(&properties, place, analysis, &mut resume_file, progress);
    progress.end();
    let (waited, elapsed) = (scan.waited.as_secs_f64(), begun.elapsed().as_secs_f64().max(1e-9));
    analysis.facts.notes.push(format!(
        "waited {waited:.2} s of {elapsed:.1} s for the server, so it used at most {:.1} % of its time",
        100.0 * waited / elapsed
    ));
    match done {
        Ok(End::All) => {}
        Ok(End::Limit) => {
            let part = analysis.keys() as f64 / properties.keys().max(1) as f64;
            analysis.facts.scanned_fraction = Some(part.min(1.0));
        }
        Err(error) => analysis.facts.error = Some(error.to_string()),
    }
    if analysis.facts.error.is_none() {
        analysis.facts.error = scan.rejected_commands.summary();
    }
    Ok(())
}

/// How a scan ended.
enum End {
    All,
    /// The limit on the number of keys was reached.
    Limit,
}

/// Rejected commands, each with the number of rejections and the first error. There are at most as many entries as
/// commands per key.
#[derive(Default)]
struct RejectedCommands(Vec<(String, u64, String)>);

impl RejectedCommands {
    /// Records the rejection if the reply is an error.
    ///
    /// # Errors
    /// If the error says that the server currently rejects all commands.
    fn take(&mut self, command: &str, reply: &Value) -> Result<bool, SourceError> {
        let Value::Error(text) = reply else { return Ok(false) };
        let text = String::from_utf8_lossy(text);
        let is_of_this_command = text.starts_with("NOPERM") || text.starts_with("ERR");
        if !is_of_this_command {
            return Err(SourceError::Server(text.into_owned()));
        }
        match self.0.iter_mut().find(|(known, ..)| known == command) {
            Some((_, times, _)) => *times += 1,
            None => self.0.push((command.to_owned(), 1, text.into_owned())),
        }
        Ok(true)
    }

    fn summary(&self) -> Option<String> {
        let each = self.0.iter().map(|(command, times, text)| {
            let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            format!("{command} was rejected {times}: {text}")
        });
        let all: Vec<String> = each.collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Properties of the server.
struct ServerProperties {
    run_id: String,
    /// The databases that have keys, with their numbers of keys.
    databases: Vec<(u64, u64)>,
    is_lfu: bool,
}

impl ServerProperties {
    fn keys(&self) -> u64 {
        self.databases.iter().map(|(_, keys)| keys).sum()
    }
}

struct KeyScan<'a> {
    server: &'a mut dyn Server,
    options: &'a Options,
    /// Total time spent waiting for replies.
    waited: Duration,
    step: u64,
    rejected_commands: RejectedCommands,
}

fn words(words: &[&str]) -> Words {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn of_key(name: &[&str], key: &[u8]) -> Words {
    let mut request = words(name);
    request.push(key.to_vec());
    request
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Simple(text) | Value::Bulk(text) | Value::Verbatim { text, .. } => Some(text),
        _ => None,
    }
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(bytes(value).unwrap_or_default()).into_owned()
}

/// A number, possibly as text.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        other => str::from_utf8(bytes(other)?).ok()?.parse().ok(),
    }
}

impl<'a> KeyScan<'a> {
    fn new(server: &'a mut dyn Server, options: &'a Options) -> KeyScan<'a> {
        let rejected_commands = RejectedCommands::default();
        KeyScan { server, options, waited: Duration::ZERO, step: STEP_FIRST, rejected_commands }
    }

    /// Sends requests, and then pauses as long as the share requires. Returns the replies and the time that they took.
    fn request(&mut self, requests: &[Words]) -> Result<(Vec<Value>, Duration), SourceError> {
        let begun = Instant::now();
        let replies = self.server.request_all(requests).map_err(SourceError::Server)?;
        let took = begun.elapsed();
        self.waited += took;
        let pause = took.mul_f64((1.0 / self.options.share - 1.0).max(0.0)).min(PAUSE_MAX);
        if !pause.is_zero() {
            self.server.pause(pause);
        }
        Ok((replies, took))
    }

    fn read_server_info(
        &mut self,
        analysis: &mut Analysis,
    ) -> Result<ServerProperties, SourceError> {
        let (replies, _) = self.request(&[
            words(&["INFO"]),
            words(&["MEMORY", "MALLOC-STATS"]),
            words(&["CONFIG", "GET", "hash-max-listpack-*"]),
            words(&["CONFIG", "GET", "zset-max-listpack-*"]),
            words(&["CONFIG", "GET", "set-max-intset-entries"]),
            words(&["CLIENT", "NO-TOUCH", "ON"]),
        ])?;
        let [info, allocator, settings @ .., _] = &replies[..] else {
            return Err(SourceError::Server("the server sent too few replies".to_owned()));
        };
        if let Value::Error(text) = info {
            return Err(SourceError::Server(String::from_utf8_lossy(text).into_owned()));
        }
        let info = text(info);
        let field = |name: &str| {
            let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned);
            info.lines().find_map(value)
        };
        let facts = &mut analysis.facts;
        let port = field("tcp_port").unwrap_or_default();
        let version = field("redis_version").unwrap_or_default();
        facts.source = match field("brisk_version") {
            Some(brisk) => format!("Brisk {brisk} (as Redis {version}) at port {port}"),
            None => format!("Redis {version} at port {port}"),
        };
        facts.used_memory = field("used_memory").and_then(|bytes| bytes.parse().ok());
        facts.startup_memory = field("used_memory_startup").and_then(|bytes| bytes.parse().ok());
        let policy = field("maxmemory_policy").unwrap_or_default();
        if policy.contains("lfu") {
            facts.notes.push("LFU policy: idle times are unknown".to_owned());
        }
        let classes = self.options.classes.or(classes(&text(allocator)));
        let classes = classes.unwrap_or(Classes::BUNDLED);
        facts.notes.push(format!("allocations in steps of {}", classes.quantum()));
        analysis.set_server(classes, limits(settings));
        analysis.set_now(now_ms());
        let databases = info.lines().filter_map(database).collect();
        let run_id = field("run_id").unwrap_or_default();
        Ok(ServerProperties { run_id, databases, is_lfu: policy.contains("lfu") })
    }

    fn databases(
        &mut self,
        properties: &ServerProperties,
        from: Option<Place>,
        analysis: &mut Analysis,
        resume_file: &mut ResumeFile,
        progress: &mut Progress,
    ) -> Result<End, SourceError> {
        for (db, _) in &properties.databases {
            let mut cursor = match &from {
                Some(place) if place.db > *db => continue,
                Some(place) if place.db == *db && place.is_over() => continue,
                Some(place) if place.db == *db => place.cursor.clone(),
                _ => b"0".to_vec(),
            };
            let (replies, _) = self.request(&[words(&["SELECT", &db.to_string()])])?;
            if let Some(Value::Error(text)) = replies.first() {
                return Err(SourceError::Server(String::from_utf8_lossy(text).into_owned()));
            }
            loop {
                let seen = analysis.keys() + analysis.facts.skipped_keys;
                if self.options.limit.is_some_and(|limit| seen >= limit) {
                    return Ok(End::Limit);
                }
                if analysis.keys() == 0 && seen >= REFUSED_KEYS_MAX {
                    return self
                        .rejected_commands
                        .summary()
                        .map_or(Ok(End::Limit), |text| Err(SourceError::Server(text)));
                }
                let place =
                    self.scan_step(*db, cursor, properties.is_lfu, analysis, resume_file)?;
                progress.show(analysis.keys(), properties.keys(), Unit::Keys);
                if place.is_over() {
                    break;
                }
                cursor = place.cursor;
            }
        }
        Ok(End::All)
    }

    /// Runs one step: examines some keys from the cursor on. Returns the position after them.
    fn scan_step(
        &mut self,
        db: u64,
        cursor: Vec<u8>,
        is_lfu: bool,
        analysis: &mut Analysis,
        resume_file: &mut ResumeFile,
    ) -> Result<Place, SourceError> {
        let request =
            [b"SCAN".to_vec(), cursor, b"COUNT".to_vec(), self.step.to_string().into_bytes()];
        let (replies, took_scan) = self.request(&[request.to_vec()])?;
        let (cursor, keys) = match replies.into_iter().next() {
            Some(Value::Array(parts)) => match <[Value; 2]>::try_from(parts) {
                Ok([cursor, Value::Array(keys)]) => (bytes(&cursor).unwrap_or(b"0").to_vec(), keys),
                _ => {
                    return Err(SourceError::Server(
                        "SCAN returned an unexpected reply".to_owned(),
                    ));
                }
            },
            Some(Value::Error(text)) => {
                return Err(SourceError::Server(String::from_utf8_lossy(&text).into_owned()));
            }
            _ => return Err(SourceError::Server("SCAN returned an unexpected reply".to_owned())),
        };
        let keys: Vec<Vec<u8>> = keys.iter().filter_map(bytes).map(<[u8]>::to_vec).collect();
        let mut all = Vec::new();
        let mut took = took_scan;
        // SCAN may return more keys than requested.
        for keys in keys.chunks(STEP_MAX as usize) {
            let (found, skipped_keys, more) = self.facts(db, keys, is_lfu)?;
            analysis.facts.skipped_keys += skipped_keys;
            took = took.max(more);
            all.extend(found);
        }
        if self.options.reads_values {
            took = took.max(self.values(&mut all, analysis)?);
        }
        self.step = match took {
            took if took > STEP_TIME => (self.step / 2).max(1),
            took if took < STEP_TIME / 4 => (self.step * 2).min(STEP_MAX),
            _ => self.step,
        };
        let place = Place { db, cursor };
        // After a rejected command nothing is stored, so a user with more permissions resumes before it.
        if self.rejected_commands.0.is_empty() {
            resume_file.keep(&all, &place)?;
        }
        all.iter().for_each(|found| found.add_to(analysis));
        Ok(place)
    }

    /// Sends small read commands for each key. Keys that no longer exist, or are denied, are counted.
    fn facts(
        &mut self,
        db: u64,
        keys: &[Vec<u8>],
        is_lfu: bool,
    ) -> Result<(Vec<Found>, u64, Duration), SourceError> {
        let use_of = if is_lfu { "FREQ" } else { "IDLETIME" };
        let mut requests = Vec::with_capacity(keys.len() * 5);
        for key in keys {
            requests.push(of_key(&["TYPE"], key));
            requests.push(of_key(&["OBJECT", "ENCODING"], key));
            requests.push(of_key(&["MEMORY", "USAGE"], key));
            requests.push(of_key(&["PTTL"], key));
            requests.push(of_key(&["OBJECT", use_of], key));
        }
        let (replies, took) = self.request(&requests)?;
        let now_ms = now_ms();
        let mut found = Vec::with_capacity(keys.len());
        for (key, replies) in keys.iter().zip(replies.chunks_exact(5)) {
            let [kind, encoding, usage, ttl, used] = replies else { continue };
            let mut refused = false;
            for (command, reply) in [("TYPE", kind), ("MEMORY USAGE", usage)] {
                refused |= self.rejected_commands.take(command, reply)?;
            }
            self.rejected_commands.take("OBJECT ENCODING", encoding)?;
            self.rejected_commands.take("PTTL", ttl)?;
            // A setting determines whether idle times or frequencies are available, and it may have changed since.
            let is_setting = matches!(used, Value::Error(text) if text.starts_with(b"ERR"));
            if !is_setting {
                self.rejected_commands.take("OBJECT IDLETIME", used)?;
            }
            let kind = bytes(kind).unwrap_or_default();
            if refused || kind == b"none" || kind.is_empty() {
                continue;
            }
            let used = number(used).and_then(|used| u64::try_from(used).ok());
            found.push(Found {
                db,
                key: key.clone(),
                kind: Kind::of_name(kind),
                encoding: Encoding::of_name(bytes(encoding).unwrap_or_default()),
                reported_bytes: number(usage).and_then(|bytes| u64::try_from(bytes).ok()),
                deadline_ms: number(ttl).filter(|ttl| *ttl >= 0).map(|ttl| now_ms + ttl),
                idle_seconds: used.filter(|_| !is_lfu),
                frequency: used.filter(|_| is_lfu).map(|used| used.min(255) as u8),
                dump: None,
            });
        }
        let missing = (keys.len() - found.len()) as u64;
        Ok((found, missing, took))
    }

    /// Reads the values of keys whose groups need more samples.
    fn values(
        &mut self,
        found: &mut [Found],
        analysis: &Analysis,
    ) -> Result<Duration, SourceError> {
        let wanted = |found: &Found| {
            let is_small = found.reported_bytes.unwrap_or(u64::MAX) <= VALUE_BYTES_MAX;
            is_small && analysis.wants_value(found.db, &found.key, found.kind, found.encoding)
        };
        let mut chosen: Vec<&mut Found> = found.iter_mut().filter(|found| wanted(found)).collect();
        let mut longest = Duration::ZERO;
        let mut from = 0;
        while from < chosen.len() {
            let mut sum = 0;
            let fits = chosen[from..].iter().take_while(|found| {
                sum += found.reported_bytes.unwrap_or(0);
                sum <= VALUES_BYTES_MAX
            });
            let to = from + fits.count().max(1);
            let requests: Vec<Words> =
                chosen[from..to].iter().map(|found| of_key(&["DUMP"], &found.key)).collect();
            let (replies, took) = self.request(&requests)?;
            longest = longest.max(took);
            for (found, reply) in chosen[from..to].iter_mut().zip(replies) {
                self.rejected_commands.take("DUMP", &reply)?;
                if let Value::Bulk(dump) = reply {
                    found.dump = Some(dump);
                }
            }
            from = to;
        }
        Ok(longest)
    }
}

/// Parses a line such as `db0:keys=3,expires=0,avg_ttl=0`.
fn database(line: &str) -> Option<(u64, u64)> {
    let (db, rest) = line.strip_prefix("db")?.split_once(":keys=")?;
    let (keys, _) = rest.split_once(',')?;
    Some((db.parse().ok()?, keys.parse().ok()?))
}

/// The allocator's size classes, from jemalloc's report.
fn classes(report: &str) -> Option<Classes> {
    let value = report.lines().find_map(|line| line.trim().strip_prefix("Quantum size:"))?;
    Classes::of_quantum(value.trim().parse().ok()?)
}

/// The limits in the replies to CONFIG GET, or Redis's defaults if the command is denied.
fn limits(replies: &[Value]) -> Limits {
    let mut pairs: Vec<(String, u64)> = Vec::new();
    let mut take = |name: &Value, value: &Value| {
        if let Some(value) = number(value).and_then(|value| u64::try_from(value).ok()) {
            pairs.push((text(name), value));
        }
    };
    for reply in replies {
        match reply {
            Value::Array(parts) => {
                parts.chunks_exact(2).for_each(|pair| take(&pair[0], &pair[1]));
            }
            Value::Map(all) => all.iter().for_each(|(name, value)| take(name, value)),
            _ => {}
        }
    }
    let default = Limits::default();
    let limit = |name: &str, unknown: u64| {
        pairs.iter().find(|(known, _)| known == name).map_or(unknown, |(_, value)| *value)
    };
    Limits {
        hash_entries: limit("hash-max-listpack-entries", default.hash_entries),
        hash_text: limit("hash-max-listpack-value", default.hash_text),
        sorted_set_entries: limit("zset-max-listpack-entries", default.sorted_set_entries),
        sorted_set_text: limit("zset-max-listpack-value", default.sorted_set_text),
        intset_entries: limit("set-max-intset-entries", default.intset_entries),
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_of_the_server_are_parsed() {
        assert_eq!(database("db12:keys=3,expires=0,avg_ttl=0"), Some((12, 3)));
        assert_eq!(database("dbsize:3"), None);
        let report =
            "___ Begin jemalloc statistics ___\nArenas: 8\nQuantum size: 16\nPage size: 4096\n";
        assert_eq!(classes(report), Some(Classes::USUAL));
        assert_eq!(classes("Stats not supported for the current allocator"), None);
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let settings = Value::Array(vec![bulk("hash-max-listpack-entries"), bulk("1000")]);
        let found = limits(&[settings, Value::Error(b"NOPERM".to_vec())]);
        assert_eq!(found, Limits { hash_entries: 1000, ..Limits::default() });
    }
}
