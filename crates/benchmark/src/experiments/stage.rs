//! The servers for experiments, fresh for each, and the measurements during a run.

use super::finding::{Measurement, Row, limits, rows};
use crate::engine::plan::{Plan, SessionSetup, Target};
use crate::engine::{Progress, Watch, run};
use crate::load::Workload;
use crate::outcome::Summary;
use crate::requester::{Requester, text_of};
use crate::resources::Usage;
use crate::subject::{Place, Subject, SubjectSpec};
use brisk_dial::address::Address;
use brisk_resp::Value;

/// Maximum bytes of requests that are sent before their replies are read.
const FILL_BYTES: usize = 32 * 1024;
/// One MiB.
pub const MIB: f64 = 1024.0 * 1024.0;

/// The size of the experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// True if a short run is more important than exact results.
    pub short: bool,
    /// Fraction of the article's amount of data, for experiments that would need gigabytes.
    pub scale: f64,
    /// Number of rounds of timed parts.
    pub rounds: usize,
    /// The CPUs of the generator.
    pub load_cpus: Vec<usize>,
}

impl Size {
    /// The value for a short or a full run.
    pub fn pick<T>(&self, short: T, full: T) -> T {
        if self.short { short } else { full }
    }

    /// The article's value, if the run is as large as the article's.
    #[must_use]
    pub fn if_full(&self, value: f64) -> Option<f64> {
        (!self.short).then_some(value)
    }

    /// A run with redis-benchmark's defaults.
    #[must_use]
    pub fn plan(&self, workload: Workload, target: &Target) -> Plan {
        Plan { cpus: self.load_cpus.clone(), ..Plan::new(workload, target.clone()) }
    }
}

/// The servers of a series of experiments.
pub struct Stage<'a> {
    pub(super) specs: &'a [SubjectSpec],
    pub(super) server_cpus: &'a [usize],
    /// The size of the experiments.
    pub size: Size,
    pub(super) notify: &'a mut dyn FnMut(&str),
    /// Notes in addition to the results.
    pub notes: Vec<String>,
}

/// Settings that all experiments need: many clients, from many loopback addresses.
const SETTINGS: [(&str, &str); 2] = [("protected-mode", "no"), ("maxclients", "11000")];

impl Stage<'_> {
    /// Starts a server, or uses a running one, which must be empty.
    fn start(&mut self, index: usize, settings: &[(&str, &str)]) -> Result<Guest, String> {
        let spec = &self.specs[index];
        (self.notify)(&format!("{}: starting", spec.name));
        let guest = Guest { subject: start(spec, self.server_cpus)?, before: None };
        guest.prepared(settings).map_err(|error| format!("{}: {error}", spec.name))
    }

    /// Runs one server after the other, each alone, to measure memory.
    ///
    /// # Errors
    /// The error of the experiment, with the server's name.
    pub fn alone(
        &mut self,
        settings: &[(&str, &str)],
        mut each: impl FnMut(&Subject, &Size, &mut Vec<String>) -> Result<Vec<Measurement>, String>,
    ) -> Result<Vec<Row>, String> {
        let mut measurements = Vec::new();
        for i in 0..self.specs.len() {
            let guest = self.start(i, settings)?;
            let name = &self.specs[i].name;
            (self.notify)(&format!("{name}: measuring"));
            let mut notes = Vec::new();
            let found = each(&guest.subject, &self.size, &mut notes)
                .map_err(|error| format!("{name}: {error}"))?;
            self.notes.extend(notes.into_iter().map(|note| format!("{name}: {note}")));
            measurements.push(vec![found]);
        }
        self.report_limits(&measurements);
        Ok(rows(&measurements))
    }

    /// Measures all servers in turn in each round, with rotating order, for timed parts.
    ///
    /// # Errors
    /// The error of the experiment, with the server's name.
    pub fn turns(
        &mut self,
        settings: &[(&str, &str)],
        mut prepare: impl FnMut(&Subject, &Size) -> Result<(), String>,
        mut each: impl FnMut(&Subject, &Size) -> Result<Vec<Measurement>, String>,
    ) -> Result<Vec<Row>, String> {
        let mut guests = Vec::new();
        for i in 0..self.specs.len() {
            let guest = self.start(i, settings)?;
            prepare(&guest.subject, &self.size)
                .map_err(|error| format!("{}: {error}", guest.subject.name))?;
            guests.push(guest);
        }
        let mut measurements: Vec<Vec<Vec<Measurement>>> =
            guests.iter().map(|_| Vec::new()).collect();
        for round in 0..self.size.rounds {
            for turn in 0..guests.len() {
                let i = (turn + round) % guests.len();
                let subject = &guests[i].subject;
                (self.notify)(&format!(
                    "{}: round {} of {}",
                    subject.name,
                    round + 1,
                    self.size.rounds
                ));
                let found = each(subject, &self.size);
                measurements[i].push(found.map_err(|error| format!("{}: {error}", subject.name))?);
            }
        }
        self.report_limits(&measurements);
        Ok(rows(&measurements))
    }

    fn report_limits(&mut self, measurements: &[Vec<Vec<Measurement>>]) {
        let names: Vec<&str> = self.names().collect();
        let text = limits(measurements, &names);
        self.notes.extend(text);
    }

    /// The names of the servers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(|spec| spec.name.as_str())
    }
}

/// Starts the server on these CPUs, or connects to a running one.
pub(super) fn start(spec: &SubjectSpec, cpus: &[usize]) -> Result<Subject, String> {
    let target_at = |address| Ok(Target { address, tls: None, session: SessionSetup::default() });
    match &spec.place {
        Place::At(address) => Subject::at(&spec.name, target_at(Address::parse(address)?)?),
        Place::StartedBy(command) => Subject::start(&spec.name, command, cpus, target_at),
    }
}

/// A server during an experiment. If it was already running, it is emptied afterwards and its settings are restored.
struct Guest {
    subject: Subject,
    /// Settings to restore. `None` until the server is known to be empty, because until then it must not be changed.
    before: Option<Vec<(String, String)>>,
}

impl Guest {
    fn prepared(mut self, settings: &[(&str, &str)]) -> Result<Guest, String> {
        let mut requester = connect(&self.subject)?;
        if !self.subject.is_own() && request(&mut requester, &["DBSIZE"])? != Value::Integer(0) {
            return Err("it holds data, and experiments write and delete: \
                        give a command that starts a server instead"
                .to_owned());
        }
        let restored = self.before.insert(Vec::new());
        for &(name, value) in SETTINGS.iter().chain(settings) {
            if !self.subject.is_own()
                && let Some(before) = requester.setting(name).map_err(|error| error.to_string())?
            {
                restored.push((name.to_owned(), before));
            }
            request(&mut requester, &["CONFIG", "SET", name, value])?;
        }
        // Write a first key, so that the server's one-time setup is not counted as memory of a key.
        request(&mut requester, &["SET", "first", "key"])?;
        request(&mut requester, &["DEL", "first"])?;
        Ok(self)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let Some(before) = self.before.take().filter(|_| !self.subject.is_own()) else { return };
        // If the server is gone, there is nothing to restore.
        if let Ok(mut requester) = connect(&self.subject) {
            let _ = requester.request(&["FLUSHALL"]);
            for (name, value) in &before {
                let _ = requester.request(&["CONFIG", "SET", name, value]);
            }
        }
    }
}

/// A connection for unmeasured requests.
///
/// # Errors
/// If the connection fails.
pub fn connect(subject: &Subject) -> Result<Requester, String> {
    Requester::connect(&subject.target).map_err(|error| error.to_string())
}

/// Sends a request, and returns its reply unless it is an error.
///
/// # Errors
/// If the reply is an error, or the connection fails.
pub fn request<W: AsRef<[u8]>>(requester: &mut Requester, words: &[W]) -> Result<Value, String> {
    match requester.request(words).map_err(|error| error.to_string())? {
        Value::Error(text) => {
            let command = words.first().map(|word| String::from_utf8_lossy(word.as_ref()));
            let text = String::from_utf8_lossy(&text);
            Err(format!("{}: {text}", command.unwrap_or_default()))
        }
        value => Ok(value),
    }
}

/// A field of INFO.
///
/// # Errors
/// If the server does not report it.
pub fn info(requester: &mut Requester, section: &str, field: &str) -> Result<String, String> {
    let text = text_of(&request(requester, &["INFO", section])?).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.map(|value| value.trim().to_owned()).ok_or_else(|| format!("INFO contains no {field}"))
}

/// The memory in use (`used_memory`) that the server reports.
///
/// # Errors
/// If the server does not report it.
pub fn used_bytes(requester: &mut Requester) -> Result<f64, String> {
    let text = info(requester, "memory", "used_memory")?;
    text.parse().map_err(|_| format!("used_memory:{text}"))
}

/// How much the memory that the server reports grows when this data is written.
///
/// # Errors
/// If writing fails.
pub fn growth_bytes(
    subject: &Subject,
    write: impl FnOnce(&mut Filler) -> Result<(), String>,
) -> Result<f64, String> {
    let mut requester = connect(subject)?;
    let mut filler = Filler::new(subject)?;
    let before = used_bytes(&mut requester)?;
    write(&mut filler)?;
    filler.flush()?;
    // Also frees the connection's buffers, which are not part of the data.
    drop(filler);
    Ok((used_bytes(&mut requester)? - before).max(0.0))
}

/// Writes many commands over one connection. None of them may fail.
pub struct Filler {
    requester: Requester,
    bytes: Vec<u8>,
    waiting: usize,
}

impl Filler {
    /// Connects to the server.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn new(subject: &Subject) -> Result<Filler, String> {
        Ok(Filler { requester: connect(subject)?, bytes: Vec::new(), waiting: 0 })
    }

    /// Sends a command, now or together with later ones.
    ///
    /// # Errors
    /// If an earlier command failed.
    pub fn add<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<(), String> {
        brisk_resp::request::encode(&mut self.bytes, words);
        self.waiting += 1;
        if self.bytes.len() >= FILL_BYTES { self.flush() } else { Ok(()) }
    }

    /// Sends the remaining commands, and reads all replies.
    ///
    /// # Errors
    /// If a command failed.
    pub fn flush(&mut self) -> Result<(), String> {
        self.requester.send(&self.bytes).map_err(|error| error.to_string())?;
        self.bytes.clear();
        for _ in 0..std::mem::take(&mut self.waiting) {
            if let Value::Error(text) = self.requester.reply().map_err(|error| error.to_string())? {
                return Err(String::from_utf8_lossy(&text).into_owned());
            }
        }
        Ok(())
    }
}

/// A run, and the resources of the server during it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The measurements of the generator.
    pub summary: Summary,
    /// CPU time of the server per request, µs; `None` if its process is not visible.
    pub cpu_us: Option<f64>,
    /// The maximum growth of its resident memory in bytes, sampled a few times per second.
    pub rss_growth: Option<f64>,
}

/// Executes a plan, and records the server's resources before, during and after the run.
///
/// # Errors
/// The error of the run.
pub fn measure(plan: &Plan, subject: &Subject) -> Result<Measured, String> {
    let mut looks = Looks { subject, before: None, after: None, rss_max: 0 };
    let outcome = run(plan, &mut looks).map_err(|error| error.to_string())?;
    let used = looks.before.zip(looks.after);
    let operations = outcome.operations.max(1) as f64;
    Ok(Measured {
        summary: outcome.summary(),
        cpu_us: used.map(|(before, after)| {
            after.cpu_ns.saturating_sub(before.cpu_ns) as f64 / 1000.0 / operations
        }),
        rss_growth: used.map(|(before, after)| {
            looks.rss_max.max(after.rss_bytes).saturating_sub(before.rss_bytes) as f64
        }),
    })
}

struct Looks<'a> {
    subject: &'a Subject,
    before: Option<Usage>,
    after: Option<Usage>,
    rss_max: u64,
}

impl Watch for Looks<'_> {
    fn begins(&mut self) {
        self.before = self.subject.usage();
    }

    fn progress(&mut self, _: &Progress) {
        let rss = self.subject.usage().map_or(0, |usage| usage.rss_bytes);
        self.rss_max = self.rss_max.max(rss);
    }

    fn ends(&mut self) {
        self.after = self.subject.usage();
    }
}
