//! The results of a run of several cases as one JSON document, from which `cargo xtask references` generates the tables
//! and the plot of `docs/benchmarks.md`.

use super::report::Limit;
use super::sides::release_binary;
use super::{CASES, Case, Report};
use anyhow::{Context, Result, ensure};
use brisk_benchmark::resources::machine_line;
use brisk_testkit::server::workspace_root;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A run of cases, and the conditions of the run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    /// The day on which the run began, in UTC.
    pub(crate) date: String,
    /// The commit of the cases that are added next.
    #[serde(skip)]
    pub(crate) commit: String,
    pub(crate) machine: String,
    pub(crate) rounds: usize,
    pub(crate) scale: f64,
    /// Names and versions of our server and its peers.
    pub(crate) ours: String,
    pub(crate) peers: Vec<String>,
    pub(crate) cases: Vec<CaseResult>,
}

/// The rows of a case.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CaseResult {
    pub(crate) name: String,
    pub(crate) about: String,
    /// The last commit that changed anything except documentation and `xtask`; `+` follows if the work tree had other
    /// uncommitted changes. `unknown` outside a repository.
    pub(crate) commit: String,
    /// How long the case took.
    pub(crate) seconds: u64,
    /// See [`Case::has_peer`].
    pub(crate) has_peer: bool,
    /// Why a part of the case could not be measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<String>,
    pub(crate) rows: Vec<RowResult>,
}

/// A row with its results next to each peer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RowResult {
    pub(crate) what: String,
    pub(crate) unit: String,
    pub(crate) limit: Limit,
    /// In the order of [`Results::peers`]; one result if the case has no peer.
    pub(crate) measured: Vec<Option<Measured>>,
}

/// Our result and that of the peer, from the same rounds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) ours: f64,
    pub(crate) theirs: Option<f64>,
}

impl Measured {
    /// Our result divided by the peer's.
    pub(crate) fn ratio(self) -> Option<f64> {
        self.theirs.filter(|&theirs| theirs > 0.0).map(|theirs| self.ours / theirs)
    }
}

impl RowResult {
    /// Our result next to the first peer.
    pub(crate) fn first(&self) -> Option<Measured> {
        self.measured.first().copied().flatten()
    }

    /// Reports whether the result next to the first peer is within the limit; `None` without a limit or a result.
    pub(crate) fn is_met(&self) -> Option<bool> {
        self.limit.is_met(self.first()?)
    }
}

impl Results {
    /// The conditions of a run, without results.
    pub(crate) fn new(
        ours: Option<&str>,
        peers: &[&str],
        rounds: usize,
        scale: f64,
    ) -> Result<Results> {
        let ours = match ours {
            Some(program) => version_of(program)?,
            None => version_of(&release_binary()?.display().to_string())?,
        };
        Ok(Results {
            date: output("date", &["-u", "+%Y-%m-%d"])?,
            commit: commit().unwrap_or_else(|_| "unknown".to_owned()),
            machine: machine_line(),
            rounds,
            scale,
            ours,
            peers: peers.iter().map(|program| version_of(program)).collect::<Result<_>>()?,
            cases: Vec::new(),
        })
    }

    /// Loads the results of an interrupted run. Does nothing if the file does not exist.
    ///
    /// # Errors
    /// If the file cannot be read, or has results of a run with other conditions. The builds may differ, because each
    /// case has a commit. So this server must be the build of a commit.
    pub(crate) fn resume(&mut self, path: &Path) -> Result<()> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read.with_context(|| path.display().to_string())?,
        };
        let interrupted = Results::parse(&text).with_context(|| path.display().to_string())?;
        ensure!(
            self.commit != "unknown" && !self.commit.ends_with('+'),
            "--resume needs a work tree without uncommitted changes"
        );
        ensure!(
            self.has_conditions_of(&interrupted),
            "{} was measured with a different machine, peer, number of rounds or scale",
            path.display()
        );
        self.date = interrupted.date;
        self.cases = interrupted.cases;
        Ok(())
    }

    fn has_conditions_of(&self, other: &Results) -> bool {
        let conditions = |results: &Results| {
            let Results { machine, ours, peers, .. } = results;
            [machine, ours].into_iter().chain(peers).cloned().collect::<Vec<String>>()
        };
        conditions(self) == conditions(other)
            && (self.rounds, self.scale) == (other.rounds, other.scale)
    }

    /// Reports whether this case was measured completely.
    pub(crate) fn has_complete(&self, name: &str) -> bool {
        self.cases.iter().any(|case| case.name == name && case.failures.is_empty())
    }

    /// Adds an empty case, which [`Results::add_report`] fills. It replaces earlier results of the case.
    pub(crate) fn add_case(&mut self, case: &Case) {
        self.cases.retain(|earlier| earlier.name != case.name);
        self.cases.push(CaseResult {
            name: case.name.to_owned(),
            about: case.about.to_owned(),
            commit: self.commit.clone(),
            seconds: 0,
            has_peer: case.has_peer,
            failures: Vec::new(),
            rows: Vec::new(),
        });
    }

    /// Adds the results next to a peer to the case that was added last.
    pub(crate) fn add_report(&mut self, peer: usize, report: Report, took: Duration) {
        let Some(case) = self.cases.last_mut() else { return };
        case.seconds += took.as_secs();
        for row in report.into_rows() {
            let measured = Measured { ours: row.ours, theirs: row.theirs };
            let is_same = |known: &&mut RowResult| known.what == row.what && known.unit == row.unit;
            let known = match case.rows.iter_mut().find(is_same) {
                Some(known) => known,
                None => {
                    let (unit, limit) = (row.unit.to_owned(), row.limit);
                    let measured = Vec::new();
                    case.rows.push(RowResult { what: row.what, unit, limit, measured });
                    let Some(added) = case.rows.last_mut() else { return };
                    added
                }
            };
            known.measured.resize(peer, None);
            known.measured.push(Some(measured));
        }
    }

    /// Notes that the last case could not be measured completely next to a peer.
    pub(crate) fn add_failure(&mut self, peer: usize, error: &anyhow::Error) {
        let name = self.peers.get(peer).cloned().unwrap_or_default();
        if let Some(case) = self.cases.last_mut() {
            case.failures.push(format!("{name}: {error:#}"));
        }
    }

    /// The commits of the cases, in the order of the cases.
    pub(crate) fn commits(&self) -> Vec<&str> {
        let mut commits = Vec::new();
        for case in &self.cases {
            if !commits.contains(&case.commit.as_str()) {
                commits.push(&*case.commit);
            }
        }
        commits
    }

    /// Reports whether every case was measured completely.
    pub(crate) fn is_complete(&self) -> bool {
        self.cases.iter().all(|case| case.failures.is_empty())
    }

    /// Writes the results, in the order of [`CASES`].
    ///
    /// # Errors
    /// If the file cannot be written. An earlier file is then unchanged.
    pub(crate) fn save(&mut self, path: &Path) -> Result<()> {
        self.cases.sort_by_key(|result| CASES.iter().position(|case| case.name == result.name));
        let text = serde_json::to_string_pretty(self)? + "\n";
        let new = path.with_extension("new");
        fs::write(&new, text).with_context(|| new.display().to_string())?;
        fs::rename(&new, path).with_context(|| path.display().to_string())
    }

    /// # Errors
    /// If the text is not what [`Results::save`] writes.
    pub(crate) fn parse(text: &str) -> Result<Results> {
        let results: Results = serde_json::from_str(text)?;
        ensure!(!results.peers.is_empty(), "the results name no peer");
        Ok(results)
    }
}

/// Name and version of a server, for example `Redis 7.0.15`; its path if it prints its version in another form.
fn version_of(program: &str) -> Result<String> {
    let text = output(program, &["--version"])?;
    Ok(named_version(&text).unwrap_or_else(|| program.to_owned()))
}

/// Reads `Redis server v=7.0.15 sha=00000000:0 …`. Our server prints the version of Redis whose commands it has, and
/// then its own.
fn named_version(text: &str) -> Option<String> {
    let name = text.split_whitespace().next()?;
    let version_after =
        |start| text.split_whitespace().find_map(|word: &str| word.strip_prefix(start));
    match version_after("brisk=") {
        Some(version) => Some(format!("Brisk {version}")),
        None => Some(format!("{name} {}", version_after("v=")?)),
    }
}

fn commit() -> Result<String> {
    // The gate's own program and records do not affect measurements.
    const CODE: [&str; 5] =
        ["--", ":/", ":(exclude,top)docs", ":(exclude,top)*.md", ":(exclude,top)xtask"];
    let root = workspace_root().display().to_string();
    let git = |words: &[&str]| output("git", &[&["-C", &root], words, &CODE].concat());
    let commit = git(&["log", "--max-count=1", "--format=%h", "--abbrev=10"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Ok(if changes.is_empty() { commit } else { commit + "+" })
}

fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let done = Command::new(program).args(arguments).output();
    let done = done.with_context(|| format!("cannot run {program}"))?;
    ensure!(done.status.success(), "{program} {}: {}", arguments.join(" "), done.status);
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::Row;
    use brisk_testkit::TempDir;

    fn report(ours: f64, theirs: f64, unit: &'static str) -> Report {
        let mut report = Report::new("throughput");
        let limit = Limit::Ratio(0.5);
        report.add(Row { what: "GET".to_owned(), unit, ours, theirs: Some(theirs), limit });
        report
    }

    fn run_of(commit: &str) -> Results {
        Results {
            date: "2026-11-29".to_owned(),
            commit: commit.to_owned(),
            machine: "2 x CPU".to_owned(),
            rounds: 5,
            scale: 1.0,
            ours: "Brisk 0.1.0".to_owned(),
            peers: vec!["Redis 7.0.15".to_owned(), "Valkey 8.0.1".to_owned()],
            cases: Vec::new(),
        }
    }

    #[test]
    fn an_interrupted_run_is_continued_with_its_complete_cases() {
        let directory = TempDir::new();
        let path = directory.path("results.json");
        run_of("a").resume(&path).unwrap();
        let mut interrupted = run_of("a");
        let [complete, failed, ..] = crate::bench::cases::CASES else { panic!("two cases") };
        interrupted.add_case(complete);
        interrupted.add_report(0, report(1.0, 4.0, "µs"), Duration::from_secs(3));
        interrupted.add_case(failed);
        interrupted.add_failure(0, &anyhow::anyhow!("no port"));
        interrupted.save(&path).unwrap();

        let mut continued = run_of("b");
        continued.resume(&path).unwrap();
        assert!(continued.has_complete(complete.name) && !continued.has_complete(failed.name));
        assert!(!continued.is_complete());
        continued.add_case(failed);
        assert!(continued.is_complete());
        assert_eq!(continued.cases[0].rows.len(), 1);
        assert_eq!(continued.commits(), ["a", "b"]);
        for other in ["a+", "unknown"] {
            assert!(run_of(other).resume(&path).is_err());
        }
        assert!(Results { scale: 0.5, ..run_of("a") }.resume(&path).is_err());
    }

    #[test]
    fn results_next_to_each_peer_belong_to_one_row_and_survive_the_file() {
        let mut results = run_of("0123456789");
        results.add_case(&crate::bench::cases::CASES[0]);
        results.add_report(0, report(1.0, 4.0, "µs"), Duration::from_secs(3));
        results.add_report(1, report(1.0, 2.0, "µs"), Duration::from_secs(4));
        results.add_report(1, report(1.0, 2.0, "ms"), Duration::ZERO);
        assert!(results.is_complete());
        results.add_failure(1, &anyhow::anyhow!("no port"));
        assert!(!results.is_complete());

        let read = Results::parse(&serde_json::to_string(&results).unwrap()).unwrap();
        let case = &read.cases[0];
        assert_eq!((case.seconds, &*case.failures), (7, &["Valkey 8.0.1: no port".to_owned()][..]));
        let ratios = |row: &RowResult| -> Vec<Option<f64>> {
            row.measured.iter().map(|measured| measured.and_then(Measured::ratio)).collect()
        };
        let [both, second] = &*case.rows else { panic!("{:?}", case.rows) };
        assert_eq!((ratios(both), both.is_met()), (vec![Some(0.25), Some(0.5)], Some(true)));
        assert_eq!((ratios(second), second.is_met()), (vec![None, Some(0.5)], None));
    }

    #[test]
    fn names_and_versions_are_read_from_what_servers_print() {
        let printed = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=d81b8ff71cfb150e";
        assert_eq!(named_version(printed).as_deref(), Some("Redis 7.0.15"));
        let ours =
            "Redis server v=7.2.4 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=0 brisk=0.1.0";
        assert_eq!(named_version(ours).as_deref(), Some("Brisk 0.1.0"));
        assert_eq!(named_version("nothing"), None);
    }
}
