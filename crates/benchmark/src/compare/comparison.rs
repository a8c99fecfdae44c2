//! The result of a comparison: plain data, for tables and reports.

use super::statistics::{Ratio, median, ratio};
use crate::noise::Noise;
use crate::outcome::Latency;
use serde::{Deserialize, Serialize};

/// A comparison of servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// CPUs, memory, kernel.
    pub machine: String,
    /// Name and version of the generator.
    pub generator: String,
    /// The UTC date on which it began, for example 2026-01-31.
    pub date: String,
    /// The command line, without passwords, addresses and directories.
    pub command: String,
    /// The servers, in the order in which they were named.
    pub servers: Vec<ServerInfo>,
    /// Index of the server with which the others are compared.
    pub baseline: usize,
    /// The conditions that all cases had in common.
    pub conditions: Conditions,
    /// The results of the cases, in the order in which they ran.
    pub cases: Vec<CaseResult>,
    /// Caveats for readers of the numbers.
    pub warnings: Vec<String>,
}

/// One of the servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// The name of the server in reports.
    pub name: String,
    /// Its address, or the command that started it.
    pub place: String,
    /// The name and version that the server reports.
    pub version: Option<String>,
    /// True if its process was visible.
    pub local: bool,
}

/// The conditions that all cases had in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Rounds per case.
    pub rounds: usize,
    /// Number of connections.
    pub clients: usize,
    /// Number of threads of the generator.
    pub threads: usize,
    /// Requests per round, unless rounds have a duration.
    pub requests: Option<u64>,
    /// Seconds per round, unless rounds have a number of requests.
    pub seconds: Option<f64>,
    /// Seconds of load before each measurement.
    pub warmup_seconds: f64,
    /// Target rate of an open loop, in requests per second.
    pub rate: Option<f64>,
    /// True if connections are kept open between requests.
    pub keep_alive: bool,
    /// Number of keys, if keys are random.
    pub keyspace: Option<u64>,
    /// The distribution of the keys.
    pub keys: String,
    /// Sizes of values.
    pub sizes: String,
    /// The CPUs of the servers, if they were chosen.
    pub server_cpus: Vec<usize>,
    /// The CPUs of the generator, if they were chosen.
    pub load_cpus: Vec<usize>,
}

/// One case: a workload at a pipeline depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// The title of the workload.
    pub title: String,
    /// Pipeline depth: number of requests sent together.
    pub pipeline: usize,
    /// Medians and ratios.
    pub rows: Vec<Row>,
    /// The samples from which these rows were computed: by server, then by round. Empty with `--public`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Vec<Sample>>,
}

/// One metric, for all servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The metric.
    pub metric: Metric,
    /// Its unit.
    pub unit: String,
    /// Medians over the rounds, by server.
    pub medians: Vec<Option<f64>>,
    /// Ratios to the baseline, by server; `None` for the baseline itself.
    pub ratios: Vec<Option<Ratio>>,
}

/// One round of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The number of replies.
    pub operations: u64,
    /// Requests per second.
    pub rate: f64,
    /// Latencies, ms.
    pub latency_ms: Latency,
    /// The resources of the server, if its process is visible.
    pub server: Option<ServerUse>,
    /// System calls of the server per request, if they were counted.
    pub syscalls: Option<f64>,
    /// Error replies.
    pub errors: u64,
    /// CPU time of the generator per request, µs.
    pub generator_us: f64,
    /// If the generator was the limit, the reason.
    pub generator_limit: Option<String>,
    /// Other load on the machine.
    pub noise: Noise,
}

/// The resources that a server used during a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    /// CPU time per request, µs.
    pub cpu_us: f64,
    /// CPU time per request in user mode, µs. The total has a resolution of 10 ms.
    pub user_us: f64,
    /// CPU time per request in the kernel, µs. The total has a resolution of 10 ms.
    pub system_us: f64,
    /// Voluntary context switches per request.
    pub voluntary_switches: f64,
    /// Involuntary context switches per request.
    pub involuntary_switches: f64,
    /// Resident memory at the end of the round, in MiB.
    pub rss_mib: f64,
}

/// A metric by which servers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "`Metric::what` describes each variant")]
pub enum Metric {
    Rate,
    Average,
    P50,
    P90,
    P99,
    P999,
    P9999,
    Max,
    ServerCpu,
    ServerUser,
    ServerSystem,
    VoluntarySwitches,
    InvoluntarySwitches,
    Syscalls,
    Rss,
    GeneratorCpu,
}

impl Metric {
    /// All metrics, in the order of the tables.
    pub const ALL: [Metric; 16] = [
        Metric::Rate,
        Metric::Average,
        Metric::P50,
        Metric::P90,
        Metric::P99,
        Metric::P999,
        Metric::P9999,
        Metric::Max,
        Metric::ServerCpu,
        Metric::ServerUser,
        Metric::ServerSystem,
        Metric::VoluntarySwitches,
        Metric::InvoluntarySwitches,
        Metric::Syscalls,
        Metric::Rss,
        Metric::GeneratorCpu,
    ];

    /// Its name in tables, and its unit.
    #[must_use]
    pub const fn what(self) -> (&'static str, &'static str) {
        match self {
            Metric::Rate => ("throughput", "requests/s"),
            Metric::Average => ("latency, mean", "ms"),
            Metric::P50 => ("latency, p50", "ms"),
            Metric::P90 => ("latency, p90", "ms"),
            Metric::P99 => ("latency, p99", "ms"),
            Metric::P999 => ("latency, p99.9", "ms"),
            Metric::P9999 => ("latency, p99.99", "ms"),
            Metric::Max => ("latency, max", "ms"),
            Metric::ServerCpu => ("server CPU", "us/request"),
            Metric::ServerUser => ("server CPU, user", "us/request"),
            Metric::ServerSystem => ("server CPU, system", "us/request"),
            Metric::VoluntarySwitches => ("server waits", "per request"),
            Metric::InvoluntarySwitches => ("server interrupted", "per request"),
            Metric::Syscalls => ("server system calls", "per request"),
            Metric::Rss => ("server memory", "MiB"),
            Metric::GeneratorCpu => ("generator CPU", "us/request"),
        }
    }

    fn of(self, sample: &Sample) -> Option<f64> {
        let latency = &sample.latency_ms;
        let server = sample.server.as_ref();
        match self {
            Metric::Rate => Some(sample.rate),
            Metric::Average => Some(latency.avg),
            Metric::P50 => Some(latency.p50),
            Metric::P90 => Some(latency.p90),
            Metric::P99 => Some(latency.p99),
            Metric::P999 => Some(latency.p99_9),
            Metric::P9999 => Some(latency.p99_99),
            Metric::Max => Some(latency.max),
            Metric::ServerCpu => server.map(|server| server.cpu_us),
            Metric::ServerUser => server.map(|server| server.user_us),
            Metric::ServerSystem => server.map(|server| server.system_us),
            Metric::VoluntarySwitches => server.map(|server| server.voluntary_switches),
            Metric::InvoluntarySwitches => server.map(|server| server.involuntary_switches),
            Metric::Syscalls => sample.syscalls,
            Metric::Rss => server.map(|server| server.rss_mib),
            Metric::GeneratorCpu => Some(sample.generator_us),
        }
    }
}

impl CaseResult {
    /// The title with the pipeline depth.
    #[must_use]
    pub fn heading(&self) -> String {
        format!("{}, pipeline {}", self.title, self.pipeline)
    }

    /// Medians and ratios of these samples. Metrics that no server has are omitted.
    #[must_use]
    pub fn new(
        title: String,
        pipeline: usize,
        samples: Vec<Vec<Sample>>,
        baseline: usize,
    ) -> CaseResult {
        let mut rows = Vec::new();
        for metric in Metric::ALL {
            let values: Vec<Vec<f64>> = samples
                .iter()
                .map(|rounds| rounds.iter().filter_map(|sample| metric.of(sample)).collect())
                .collect();
            if values.iter().all(Vec::is_empty) {
                continue;
            }
            let medians = values.iter().map(|v| (!v.is_empty()).then(|| median(v))).collect();
            let base = values.get(baseline).map(Vec::as_slice).unwrap_or_default();
            let ratios = values
                .iter()
                .enumerate()
                .map(|(i, values)| if i == baseline { None } else { ratio(values, base) })
                .collect();
            rows.push(Row { metric, unit: metric.what().1.to_owned(), medians, ratios });
        }
        CaseResult { title, pipeline, rows, samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_medians_and_ratios_to_the_baseline() {
        let sample = |rate: f64| Sample { rate, ..Sample::default() };
        let samples = vec![
            vec![sample(100.0), sample(110.0), sample(90.0)],
            vec![sample(200.0), sample(220.0), sample(180.0)],
        ];
        let case = CaseResult::new("GET".to_owned(), 1, samples, 0);
        let rate = &case.rows[0];
        assert_eq!(rate.metric, Metric::Rate);
        assert_eq!(rate.medians, [Some(100.0), Some(200.0)]);
        assert_eq!(rate.ratios[0], None);
        let ratio = rate.ratios[1].unwrap();
        assert_eq!((ratio.value, ratio.low, ratio.high), (2.0, Some(2.0), Some(2.0)));
        // No CPU time was measured, so there is no row for it.
        assert!(case.rows.iter().all(|row| row.metric != Metric::ServerCpu));
    }
}
