//! Repeats measurements from published articles. Each experiment also measures a peer, and the article's numbers are in
//! the same table.
//!
//! | file | contents |
//! |---|---|
//! | `finding` | the results as data |
//! | `stage` | the servers, fresh for each experiment; writing data; measuring |
//! | `crowd` | idle clients |
//! | `render` | tables, Markdown, JSON |
//! | `s1` … `m8` | one experiment each, named after the requirement (`docs/requirements.md`) |
//! | `unfinished` | like `p4`, for input instead of output |
//! | `unread` | all kinds of output that clients do not read |
//! | `callers`, `c1`, `c2`, `c3` | the client library: one connection, several, a pool |
//! | `figures`, `kept` | the limits that Brisk promises, compared with Redis |
//!
//! An experiment is a constant with a name, a description, and a function that returns rows and plots.

mod c1;
mod c2;
mod c3;
mod callers;
mod crowd;
mod figures;
pub mod finding;
mod i1;
mod kept;
mod m1;
mod m2;
mod m3;
mod m4;
mod m5;
mod m6;
mod m8;
mod p2;
mod p3;
mod p4;
mod p5;
pub mod render;
mod s1;
mod s2;
pub mod stage;
mod unfinished;
mod unread;

use crate::compare::ServerInfo;
use crate::html::Report;
use crate::noise::Moment;
use crate::options::experiments::ExperimentOptions;
use crate::resources::{Usage, listener_of, machine_line};
use crate::subject::{Place, SubjectSpec};
use brisk_dial::address::Address;
use finding::{Finding, Plot, Row};
use stage::{Size, Stage};
use std::path::PathBuf;
use std::time::Instant;

/// Default number of rounds of timed parts, in a full and in a short run.
const ROUNDS: (usize, usize) = (3, 1);
/// Default fraction of the article's amount of data, in a full and in a short run.
const SCALE: (f64, f64) = (0.05, 0.01);

/// An experiment.
#[derive(Debug)]
pub struct Experiment {
    /// The name on the command line.
    pub name: &'static str,
    /// A short title.
    pub title: &'static str,
    /// A description of the experiment.
    pub what: &'static str,
    run: fn(&mut Stage<'_>) -> Result<Found, String>,
}

/// The result of an experiment's function.
#[derive(Debug, Default)]
struct Found {
    rows: Vec<Row>,
    plots: Vec<Plot>,
}

impl From<Vec<Row>> for Found {
    fn from(rows: Vec<Row>) -> Found {
        Found { rows, plots: Vec::new() }
    }
}

/// All experiments, in the order in which they run.
pub const EXPERIMENTS: &[Experiment] = &[
    s1::EXPERIMENT,
    s2::EXPERIMENT,
    i1::EXPERIMENT,
    p2::EXPERIMENT,
    p3::EXPERIMENT,
    p4::EXPERIMENT,
    unfinished::EXPERIMENT,
    unread::EXPERIMENT,
    p5::EXPERIMENT,
    m1::EXPERIMENT,
    m2::EXPERIMENT,
    m3::EXPERIMENT,
    m4::EXPERIMENT,
    m5::EXPERIMENT,
    m6::EXPERIMENT,
    m8::EXPERIMENT,
    c1::EXPERIMENT,
    c2::EXPERIMENT,
    c3::EXPERIMENT,
    figures::EXPERIMENT,
];

/// Runs the experiments that the options name, or all. `notify` receives lines of progress, and `found` receives each
/// finding when it is complete.
///
/// # Errors
/// If a name is unknown or a server is not available. The failure of an experiment is reported in its finding, so that
/// the other findings are not lost.
pub fn experiments(
    options: &ExperimentOptions,
    notify: &mut dyn FnMut(&str),
    found: &mut dyn FnMut(&Finding, &[ServerInfo]),
) -> Result<Report, String> {
    let chosen = chosen(&options.names)?;
    let specs = specs(&options.servers)?;
    let servers = server_infos(&specs, options)?;
    let standing = Standing::among(&specs);
    let size = Size {
        short: options.short,
        scale: options.scale.unwrap_or(if options.short { SCALE.1 } else { SCALE.0 }),
        rounds: options.rounds.unwrap_or(if options.short { ROUNDS.1 } else { ROUNDS.0 }),
        load_cpus: options.load_cpus.clone(),
    };
    let mut report = Report::new(machine_line(), servers);
    if options.short {
        report.warnings.push(
            "short run: less data, fewer rounds, and results that vary more than these ratios show"
                .to_owned(),
        );
    }
    for experiment in chosen {
        let (begun, before) = (Instant::now(), standing.moment());
        let name = experiment.name;
        let mut notify_named = |text: &str| notify(&format!("{name}: {text}"));
        let mut stage = Stage {
            specs: &specs,
            server_cpus: &options.server_cpus,
            size: size.clone(),
            notify: &mut notify_named,
            notes: Vec::new(),
        };
        let result = (experiment.run)(&mut stage);
        let mut notes = std::mem::take(&mut stage.notes);
        let (Found { rows, plots }, failure) = match result {
            Ok(found) => (found, None),
            Err(error) => (Found::default(), Some(error)),
        };
        // Processes that this program started have ended, so their CPU time is known.
        notes.extend(standing.moment().noise_since(&before).description());
        let finding = Finding {
            name: name.to_owned(),
            title: experiment.title.to_owned(),
            what: experiment.what.to_owned(),
            rows,
            plots,
            notes,
            failure,
            seconds: begun.elapsed().as_secs_f64(),
        };
        found(&finding, &report.servers);
        report.experiments.push(finding);
    }
    Ok(report)
}

/// Processes of servers that run before and after the experiments.
struct Standing(Vec<u32>);

impl Standing {
    /// Selects the servers that run on this machine and whose processes are visible.
    fn among(specs: &[SubjectSpec]) -> Standing {
        let pid = |spec: &SubjectSpec| match &spec.place {
            Place::At(address) => listener_of(&Address::parse(address).ok()?),
            Place::StartedBy(_) => None,
        };
        Standing(specs.iter().filter_map(pid).collect())
    }

    fn moment(&self) -> Moment {
        let used = self.0.iter().filter_map(|&pid| Usage::of(pid));
        Moment::now(used.map(|usage| usage.cpu_ns).sum())
    }
}

fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, String> {
    if names.is_empty() {
        return Ok(EXPERIMENTS.iter().collect());
    }
    let named = |name: &String| {
        let found = EXPERIMENTS.iter().find(|one| one.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let all: Vec<&str> = EXPERIMENTS.iter().map(|one| one.name).collect();
            format!("there is no experiment \"{name}\"; the experiments are {}", all.join(", "))
        })
    };
    names.iter().map(named).collect()
}

/// The servers on the command line, or Redis and Brisk.
fn specs(servers: &[String]) -> Result<Vec<SubjectSpec>, String> {
    if servers.is_empty() {
        let start = |name: &str, program: &str| {
            let path = program_named(program)?;
            let command = format!("'{}' --port {{port}} --save \"\"", path.display());
            Ok::<_, String>(SubjectSpec { name: name.to_owned(), place: Place::StartedBy(command) })
        };
        return Ok(vec![start("redis", "redis-server")?, start("brisk", "brisk-server")?]);
    }
    let specs: Vec<SubjectSpec> = servers.iter().map(|text| SubjectSpec::parse(text)).collect();
    for (i, spec) in specs.iter().enumerate() {
        if specs[..i].iter().any(|other| other.name == spec.name) {
            return Err(format!("two servers are named {}; use other names: a=… b=…", spec.name));
        }
    }
    Ok(specs)
}

/// The path of a program next to this one, or in `PATH`.
fn program_named(program: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().ok();
    let own_directory =
        own.as_deref().and_then(std::path::Path::parent).map(std::path::Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = own_directory.into_iter().chain(std::env::split_paths(&path));
    let found = places.find_map(|dir| Some(dir.join(program)).filter(|file| file.is_file()));
    found.ok_or_else(|| {
        format!("no {program} next to this program or in PATH; specify the servers with --servers")
    })
}

/// The names and versions that the servers report. Each server is started once for this.
fn server_infos(
    specs: &[SubjectSpec],
    options: &ExperimentOptions,
) -> Result<Vec<ServerInfo>, String> {
    let info = |spec: &SubjectSpec| {
        let subject = stage::start(spec, &options.server_cpus)?;
        let (Place::At(place) | Place::StartedBy(place)) = &spec.place;
        Ok(ServerInfo {
            name: spec.name.clone(),
            place: place.clone(),
            version: subject.version.clone(),
            local: subject.usage().is_some(),
        })
    };
    specs.iter().map(info).collect()
}
