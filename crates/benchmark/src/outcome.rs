//! The results of a run: rates, latencies, errors, and the resources of the generator itself.

use crate::cluster::Cluster;
use crate::engine::Share;
use crate::engine::plan::{Pace, Plan, Target};
use crate::error::RunError;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The maximum recorded latency, in ns: one hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Maximum number of error kinds that are counted by name.
const ERROR_KINDS_MAX: usize = 64;
/// If the generator's threads are busy for at least this fraction of the time, the generator is the limit of a closed
/// loop.
const BUSY_LIMIT: f64 = 0.90;
/// If threads spend this fraction of the time waiting for a CPU, more threads would not help.
const DELAYED_LIMIT: f64 = 0.20;
/// An open loop whose requests are sent later than this (at the 99th percentile) measures the generator.
const LATENESS_NS_LIMIT: u64 = 1_000_000;
/// An open loop has kept its rate if it achieved at least this fraction of it.
const RATE_KEPT_MIN: f64 = 0.99;

/// A histogram of nanoseconds with this number of significant digits.
///
/// # Errors
/// If the number of digits is not from 1 to 5.
pub fn new_histogram(precision: u8) -> Result<Histogram<u64>, RunError> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, precision)
        .map_err(|error| RunError::Plan(format!("precision {precision}: {error}")))
}

fn node_outcomes(cluster: &Cluster, precision: u8) -> Result<Vec<NodeOutcome>, RunError> {
    let outcome = |target: &Target| {
        let latency = new_histogram(precision)?;
        Ok(NodeOutcome { address: target.address.to_string(), latency })
    };
    cluster.nodes().iter().map(|node| outcome(&node.target)).collect()
}

/// Error replies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Errors {
    /// The number of error replies.
    pub count: u64,
    /// The number of error replies by their first word.
    pub by_code: BTreeMap<String, u64>,
    /// The text of the first error reply.
    pub first: Option<String>,
}

impl Errors {
    pub(crate) fn add(&mut self, text: &str) {
        self.count += 1;
        let code = text.split(' ').next().unwrap_or_default();
        self.count_code(code, 1);
        self.first.get_or_insert_with(|| text.to_owned());
    }

    fn count_code(&mut self, code: &str, count: u64) {
        let known = self.by_code.contains_key(code) || self.by_code.len() < ERROR_KINDS_MAX;
        *self.by_code.entry(if known { code } else { "others" }.to_owned()).or_default() += count;
    }

    pub(crate) fn merge(&mut self, other: &Errors) {
        self.count += other.count;
        other.by_code.iter().for_each(|(code, &count)| self.count_code(code, count));
        self.first = self.first.take().or_else(|| other.first.clone());
    }
}

/// The resources of the generator itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Generator {
    /// Threads that sent and received.
    pub threads: usize,
    /// CPU time of the whole process during the measurement, user and system.
    pub cpu_seconds: f64,
    /// Fraction of the time during which its threads were running or waiting for a CPU, 0 to 1.
    pub busy: f64,
    /// Fraction of the time during which its threads were waiting for a CPU.
    pub delayed: f64,
    /// The reason why the results show the generator, or its machine, rather than the server.
    pub limit: Option<String>,
}

/// The results of a run for one cluster node.
#[derive(Clone, Debug)]
pub struct NodeOutcome {
    /// The address of the node.
    pub address: String,
    /// Latencies in ns, one for each request that the node executed.
    pub latency: Histogram<u64>,
}

impl NodeOutcome {
    /// Requests that the node executed.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.latency.len()
    }
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The title of the workload.
    pub title: String,
    /// The number of replies.
    pub operations: u64,
    /// Seconds from the first request to the last reply.
    pub seconds: f64,
    /// Latencies in ns, one per request. In a closed loop, the time from sending the request's batch to the arrival of
    /// its reply. In an open loop, the time from when the request was due.
    pub latency: Histogram<u64>,
    /// In an open loop, how late requests were sent although a connection was free.
    pub lateness: Histogram<u64>,
    /// Results by node, in cluster mode.
    pub nodes: Vec<NodeOutcome>,
    /// Requests that a cluster node redirected, and that were sent again.
    pub redirections: u64,
    /// Error replies, if they do not end the run.
    pub errors: Errors,
    /// Replies that were not as expected, if they were verified.
    pub mismatches: u64,
    /// A description of the first mismatch.
    pub first_mismatch: Option<String>,
    /// The resources of the generator.
    pub generator: Generator,
    /// Further notes for the user.
    pub notes: Vec<String>,
    /// The target rate of an open loop, in requests per second.
    pub target_rate: Option<f64>,
}

impl Outcome {
    pub(crate) fn new(plan: &Plan) -> Result<Outcome, RunError> {
        Ok(Outcome {
            title: plan.workload.title.clone(),
            operations: 0,
            seconds: 0.0,
            latency: new_histogram(plan.precision)?,
            lateness: new_histogram(plan.precision)?,
            nodes: match &plan.cluster {
                Some(cluster) => node_outcomes(cluster, plan.precision)?,
                None => Vec::new(),
            },
            redirections: 0,
            errors: Errors::default(),
            mismatches: 0,
            first_mismatch: None,
            generator: Generator { threads: plan.threads, ..Generator::default() },
            notes: Vec::new(),
            target_rate: match plan.pace {
                Pace::Open { rate, .. } => Some(rate),
                Pace::Closed | Pace::Idle => None,
            },
        })
    }

    pub(crate) fn add(&mut self, share: &Share) {
        self.operations += share.operations;
        // The histograms have the same bounds, so this cannot fail.
        for (node, latency) in &share.latency {
            let _ = self.latency.add(latency);
            if let Some(node) = self.nodes.get_mut(*node) {
                let _ = node.latency.add(latency);
            }
        }
        self.redirections += share.redirections;
        let _ = self.lateness.add(&share.lateness);
        self.errors.merge(&share.errors);
        self.mismatches += share.mismatches;
        self.first_mismatch = self.first_mismatch.take().or_else(|| share.first_mismatch.clone());
        let part = |ns: u64| (ns as f64 / 1e9 / self.seconds.max(1e-9)).min(1.0);
        let threads = self.generator.threads as f64;
        self.generator.busy += part(share.cpu_ns + share.delay_ns) / threads;
        self.generator.delayed += part(share.delay_ns) / threads;
    }

    /// Determines whether the generator was the limit.
    pub(crate) fn judge_generator(&mut self) {
        let generator = &self.generator;
        let late = self.lateness.value_at_quantile(0.99);
        let kept = self.target_rate.is_none_or(|rate| self.rate() >= RATE_KEPT_MIN * rate);
        let busy = generator.busy >= BUSY_LIMIT;
        let percent = |part: f64| part * 100.0;
        let advice = match generator.delayed >= DELAYED_LIMIT {
            true => format!(
                "{:.0} % of it waiting for a CPU used by other processes; reserve CPUs for it with \
                 --pin, or use another machine",
                percent(generator.delayed)
            ),
            false => "try more --threads".to_owned(),
        };
        let percent = percent(generator.busy);
        self.generator.limit = if self.target_rate.is_none() && busy {
            Some(format!(
                "its threads were busy {percent:.0} % of the time, so the server may be faster \
                 than this; {advice}"
            ))
        } else if self.target_rate.is_some() && !kept && busy {
            Some(format!(
                "it fell behind the rate with its threads busy {percent:.0} % of the time; {advice}"
            ))
        } else if self.target_rate.is_some() && late > LATENESS_NS_LIMIT {
            Some(format!(
                "1 % of the requests were sent more than {:.1} ms late, although a connection was free",
                late as f64 / 1e6
            ))
        } else {
            None
        };
    }

    /// Requests per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.operations as f64 / self.seconds } else { 0.0 }
    }

    /// CPU time of the generator per request, in µs.
    #[must_use]
    pub fn generator_us(&self) -> f64 {
        self.generator.cpu_seconds * 1e6 / (self.operations.max(1)) as f64
    }

    /// Requests per second at one node.
    #[must_use]
    pub fn node_rate(&self, node: &NodeOutcome) -> f64 {
        if self.seconds > 0.0 { node.operations() as f64 / self.seconds } else { 0.0 }
    }

    fn node_summary(&self, node: &NodeOutcome) -> NodeSummary {
        NodeSummary {
            address: node.address.clone(),
            operations: node.operations(),
            rate: self.node_rate(node),
            latency_ms: Latency::of(&node.latency),
        }
    }

    /// The numbers, without the histograms.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            title: self.title.clone(),
            operations: self.operations,
            seconds: self.seconds,
            rate: self.rate(),
            target_rate: self.target_rate,
            latency_ms: Latency::of(&self.latency),
            late_ms: self.target_rate.map(|_| Latency::of(&self.lateness)),
            nodes: self.nodes.iter().map(|node| self.node_summary(node)).collect(),
            redirections: self.redirections,
            errors: self.errors.clone(),
            mismatches: self.mismatches,
            generator_us: self.generator_us(),
            generator: self.generator.clone(),
            notes: self.notes.clone(),
        }
    }
}

/// The outcome for one cluster node, in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeSummary {
    /// The address of the node.
    pub address: String,
    /// Requests that the node executed.
    pub operations: u64,
    /// Requests per second.
    pub rate: f64,
    /// Latencies, ms.
    pub latency_ms: Latency,
}

/// An outcome in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The title of the workload.
    pub title: String,
    /// The number of replies.
    pub operations: u64,
    /// Seconds from the first request to the last reply.
    pub seconds: f64,
    /// Requests per second.
    pub rate: f64,
    /// The target rate of an open loop.
    #[serde(rename = "rate_asked")]
    pub target_rate: Option<f64>,
    /// Latencies, ms.
    pub latency_ms: Latency,
    /// In an open loop, how late requests were sent, in ms.
    pub late_ms: Option<Latency>,
    /// Results by node, in cluster mode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeSummary>,
    /// Requests that a cluster node redirected.
    pub redirections: u64,
    /// Error replies.
    pub errors: Errors,
    /// Replies that were not as expected.
    pub mismatches: u64,
    /// CPU time of the generator per request, µs.
    pub generator_us: f64,
    /// The resources of the generator.
    pub generator: Generator,
    /// Further notes for the user.
    pub notes: Vec<String>,
}

/// Percentiles of a histogram, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "percentiles are named after themselves")]
pub struct Latency {
    pub avg: f64,
    pub min: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub p99_99: f64,
    pub max: f64,
}

impl Latency {
    /// The latencies of a histogram of ns; zeros if it is empty.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Latency {
        if histogram.is_empty() {
            return Latency::default();
        }
        let ms = |ns: u64| ns as f64 / 1e6;
        let at = |quantile| ms(histogram.value_at_quantile(quantile));
        Latency {
            avg: histogram.mean() / 1e6,
            min: ms(histogram.min()),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: ms(histogram.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Material, suite};

    #[test]
    fn percentiles_of_known_values() {
        let mut histogram = new_histogram(3).unwrap();
        (1..=10_000u64).for_each(|i| histogram.record(i * 1_000_000).unwrap());
        let latency = Latency::of(&histogram);
        let near = |got: f64, wanted: f64| (got - wanted).abs() <= wanted / 1000.0;
        for (got, wanted) in [
            (latency.min, 1.0),
            (latency.avg, 5000.5),
            (latency.p50, 5000.0),
            (latency.p90, 9000.0),
            (latency.p95, 9500.0),
            (latency.p99, 9900.0),
            (latency.p99_9, 9990.0),
            (latency.p99_99, 9999.0),
            (latency.max, 10_000.0),
        ] {
            assert!(near(got, wanted), "{got} instead of {wanted}");
        }
        assert_eq!(Latency::of(&new_histogram(3).unwrap()), Latency::default());
    }

    #[test]
    fn the_generator_says_when_it_is_the_limit_and_what_would_help() {
        let workload = Material::default().test(suite::test_named("set").unwrap());
        let plan = Plan::new(workload, crate::subject::local_target(1));
        let judged = |target_rate, busy, delayed, late_ns| {
            let mut outcome = Outcome { target_rate, ..Outcome::new(&plan).unwrap() };
            (outcome.operations, outcome.seconds) = (1000, 1.0);
            (outcome.generator.busy, outcome.generator.delayed) = (busy, delayed);
            outcome.lateness.record(late_ns).unwrap();
            outcome.judge_generator();
            outcome.generator.limit
        };
        assert_eq!(judged(None, 0.89, 0.5, 1), None);
        let limit = judged(None, 0.97, 0.02, 1).unwrap();
        assert!(limit.starts_with("its threads were busy 97 % of"), "{limit}");
        assert!(limit.ends_with("; try more --threads"), "{limit}");
        let limit = judged(None, 0.97, 0.40, 1).unwrap();
        assert!(limit.contains("40 % of it waiting for a CPU used by other processes"), "{limit}");
        assert!(!limit.contains("--threads"), "{limit}");
        // An open loop that keeps its rate may be fully busy, unless requests are sent late.
        assert_eq!(judged(Some(1000.0), 0.97, 0.0, 1), None);
        assert!(judged(Some(2000.0), 0.97, 0.0, 1).unwrap().starts_with("it fell behind the rate"));
        let limit = judged(Some(1000.0), 0.1, 0.0, 3_000_000).unwrap();
        assert!(
            limit.starts_with("1 % of the requests were sent more than 3.0 ms late"),
            "{limit}"
        );
    }

    #[test]
    fn errors_are_counted_by_first_word_and_kinds_are_bounded() {
        let mut errors = Errors::default();
        errors.add("WRONGTYPE Operation");
        errors.add("WRONGTYPE again");
        (0..200).for_each(|i| errors.add(&format!("E{i} x")));
        assert_eq!(errors.count, 202);
        assert_eq!(errors.by_code["WRONGTYPE"], 2);
        assert!(errors.by_code.len() <= ERROR_KINDS_MAX + 1);
        assert_eq!(errors.by_code.values().sum::<u64>(), 202);
        assert_eq!(errors.first.as_deref(), Some("WRONGTYPE Operation"));
        let mut all = Errors::default();
        all.merge(&errors);
        assert_eq!((all.count, all.by_code["WRONGTYPE"]), (202, 2));
    }
}
