//! Results of single runs as redis-benchmark prints them, and as JSON.

use crate::cluster::Cluster;
use crate::engine::Progress;
use crate::engine::plan::Plan;
use crate::outcome::{Latency, Outcome};
use hdrhistogram::Histogram;
use std::fmt::Write;

/// The header of `--csv`.
pub const CSV_HEAD: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\
     \"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"";

/// The cumulative distribution has steps of 0.1 ms up to this latency, and steps of 1 ms above it.
const FINE_NS_MAX: u64 = 2_000_000;
const FINE_STEP_NS: u64 = 100_000;
const COARSE_STEP_NS: u64 = 1_000_000;

/// The settings of a server, for the long report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostConfiguration {
    /// `save`
    pub save: String,
    /// `appendonly`
    pub append_only: String,
}

/// The single line that `-q` prints.
#[must_use]
pub fn quiet(outcome: &Outcome) -> String {
    let p50 = Latency::of(&outcome.latency).p50;
    format!("{}: {:.2} requests per second, p50={p50:.3} msec", outcome.title, outcome.rate())
}

/// A line per cluster node, for `-q`. Empty without a cluster.
#[must_use]
pub fn quiet_nodes(outcome: &Outcome) -> String {
    let mut text = String::new();
    for node in &outcome.nodes {
        let (address, rate) = (&node.address, outcome.node_rate(node));
        let p50 = Latency::of(&node.latency).p50;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {address}: {rate:.2} requests per second, p50={p50:.3} msec");
    }
    text
}

/// The primaries of a cluster, as redis-benchmark prints them.
#[must_use]
pub fn cluster(cluster: &Cluster) -> String {
    let mut text = format!("Cluster has {} master nodes:\n\n", cluster.nodes().len());
    for (at, node) in cluster.nodes().iter().enumerate() {
        let _ = writeln!(text, "Master {at}: {} {}", node.id, node.target.address);
    }
    text.push('\n');
    text
}

/// One line of `--csv`.
#[must_use]
pub fn csv(outcome: &Outcome) -> String {
    let Latency { avg, min, p50, p95, p99, max, .. } = Latency::of(&outcome.latency);
    format!(
        "\"{}\",\"{:.2}\",\"{avg:.3}\",\"{min:.3}\",\"{p50:.3}\",\"{p95:.3}\",\"{p99:.3}\",\
         \"{max:.3}\"",
        outcome.title.replace('"', "\"\""),
        outcome.rate(),
    )
}

/// One JSON object, on one line.
#[must_use]
pub fn json(outcome: &Outcome) -> String {
    // The summary contains only numbers and strings, so this cannot fail.
    serde_json::to_string(&outcome.summary()).unwrap_or_default()
}

/// A text for standard error: the resources of the generator, and whether it was the limit.
#[must_use]
pub fn generator(outcome: &Outcome) -> String {
    let generator = &outcome.generator;
    let mut text = format!(
        "generator: {:.3} us of CPU per request, threads busy {:.0} % of the time",
        outcome.generator_us(),
        generator.busy * 100.0
    );
    if let Some(limit) = &generator.limit {
        // Writing to a string cannot fail.
        let _ = write!(text, "\nWARNING: the generator was the limit: {limit}.");
    }
    text
}

/// A text for standard error: error replies, unexpected replies, and notes.
#[must_use]
pub fn faults(outcome: &Outcome) -> Option<String> {
    let mut lines: Vec<String> =
        outcome.notes.iter().map(|note| format!("NOTE: {note}.")).collect();
    if outcome.redirections > 0 {
        let count = outcome.redirections;
        lines.push(format!("NOTE: nodes redirected {count} requests, which were sent again."));
    }
    let errors = &outcome.errors;
    if errors.count > 0 {
        let kinds: Vec<String> =
            errors.by_code.iter().map(|(code, count)| format!("{code} {count}")).collect();
        let first = errors.first.as_deref().unwrap_or_default();
        lines.push(format!(
            "{} of {} replies were errors ({}), the first: {first}",
            errors.count,
            outcome.operations,
            kinds.join(", ")
        ));
    }
    if outcome.mismatches > 0 {
        let first = outcome.first_mismatch.as_deref().unwrap_or_default();
        lines.push(format!("{} replies were not as expected; {first}", outcome.mismatches));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The progress line, without a line end.
#[must_use]
pub fn progress(title: &str, progress: &Progress) -> String {
    let overall = progress.operations as f64 / progress.seconds.max(1e-9);
    format!(
        "{title}: rps={:.1} (overall: {overall:.1}) avg_msec={:.3} (overall: {:.3})",
        progress.rate_now, progress.latency_now_ms, progress.latency_ms
    )
}

/// The long report.
#[must_use]
pub fn long(
    outcome: &Outcome,
    plan: &Plan,
    threads: usize,
    hosts: &[Option<HostConfiguration>],
) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    line(format!("====== {} ======", outcome.title));
    line(format!("  {} requests completed in {:.2} seconds", outcome.operations, outcome.seconds));
    line(format!("  {} parallel clients", plan.clients));
    line(format!("  {} bytes payload", plan.workload.payload_bytes));
    line(format!("  keep alive: {}", u8::from(plan.keep_alive)));
    let known = |host: &str| if host.is_empty() { "NONE".to_owned() } else { host.to_owned() };
    if plan.cluster.is_some() {
        line(format!("  cluster mode: yes ({} masters)", outcome.nodes.len()));
        for (at, host) in hosts.iter().enumerate() {
            let Some(host) = host else { continue };
            line(format!("  node [{at}] configuration:"));
            line(format!("    save: {}", known(&host.save)));
            line(format!("    appendonly: {}", known(&host.append_only)));
        }
    } else if let [Some(host)] = hosts {
        line(format!("  host configuration \"save\": {}", host.save));
        line(format!("  host configuration \"appendonly\": {}", host.append_only));
    }
    let threaded = threads > 0 || plan.cluster.is_some();
    line(format!("  multi-thread: {}", if threaded { "yes" } else { "no" }));
    if threaded {
        line(format!("  threads: {}", plan.threads));
    }
    if let Some(rate) = outcome.target_rate {
        line(format!("  open loop: target {rate} requests per second"));
    }
    line(String::new());
    line("Latency by percentile distribution:".to_owned());
    by_percentile(&outcome.latency).into_iter().for_each(&mut line);
    line(String::new());
    line("Cumulative distribution of latencies:".to_owned());
    cumulative(&outcome.latency).into_iter().for_each(&mut line);
    line(String::new());
    line("Summary:".to_owned());
    line(format!("  throughput summary: {:.2} requests per second", outcome.rate()));
    line("  latency summary (msec):".to_owned());
    let latency = Latency::of(&outcome.latency);
    row(&mut line, &["avg", "min", "p50", "p95", "p99", "max"].map(str::to_owned));
    let Latency { avg, min, p50, p90: _, p95, p99, p99_9, p99_99, max } = latency;
    row(&mut line, &[avg, min, p50, p95, p99, max].map(|ms| format!("{ms:.3}")));
    row(&mut line, &["p99.9", "p99.99"].map(str::to_owned));
    row(&mut line, &[p99_9, p99_99].map(|ms| format!("{ms:.3}")));
    for node in &outcome.nodes {
        let rate = outcome.node_rate(node);
        line(format!("  node {}: {rate:.2} requests per second", node.address));
        let latency = Latency::of(&node.latency);
        let Latency { avg, min, p50, p95, p99, max, .. } = latency;
        row(&mut line, &[avg, min, p50, p95, p99, max].map(|ms| format!("{ms:.3}")));
    }
    line(format!("  {}", generator(outcome).replace('\n', "\n  ")));
    text
}

fn row(line: &mut impl FnMut(String), cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>9}")).collect();
    line(format!("    {}", cells.join(" ")));
}

fn distribution_line(percent: f64, ns: u64, count: u64) -> String {
    let ms = ns as f64 / 1e6;
    format!("{percent:.3}% <= {ms:.3} milliseconds (cumulative count {count})")
}

/// Lines for 0, 50, 75, 87.5 … percent. Each step halves the remainder, as long as the count grows.
fn by_percentile(latency: &Histogram<u64>) -> Vec<String> {
    let total = latency.len();
    let (mut lines, mut seen, mut left) = (Vec::new(), None, 100.0);
    let mut percent = 0.0;
    if total == 0 {
        return lines;
    }
    loop {
        let ns = latency.value_at_percentile(percent);
        let count = latency.count_between(0, ns);
        if seen != Some(count) {
            lines.push(distribution_line(percent, ns, count));
        }
        seen = Some(count);
        if count >= total {
            // The maximum is shown again, as 100 percent.
            lines.push(distribution_line(100.0, latency.max(), total));
            return lines;
        }
        left /= 2.0;
        percent = 100.0 - left;
    }
}

/// Lines in steps of 0.1 ms, later of 1 ms, wherever the count grows.
fn cumulative(latency: &Histogram<u64>) -> Vec<String> {
    let total = latency.len();
    let (mut lines, mut seen, mut ns, mut count) = (Vec::new(), None, 0, 0);
    // The histogram does not distinguish similar values. The smallest of them is used.
    let least = |ns: u64| latency.lowest_equivalent(ns);
    let mut recorded = latency.iter_recorded().peekable();
    while count < total {
        ns += if ns < FINE_NS_MAX { FINE_STEP_NS } else { COARSE_STEP_NS };
        while let Some(next) = recorded.next_if(|next| least(next.value_iterated_to()) <= ns) {
            count += next.count_since_last_iteration();
        }
        // There are no values before the next one, so skip to it.
        if let Some(next) = recorded.peek().filter(|_| ns >= FINE_NS_MAX) {
            let steps = (least(next.value_iterated_to()) - ns) / COARSE_STEP_NS;
            if seen == Some(count) {
                ns += steps * COARSE_STEP_NS;
                if least(next.value_iterated_to()) <= ns {
                    continue;
                }
            }
        }
        if seen != Some(count) {
            lines.push(distribution_line(count as f64 / total as f64 * 100.0, ns, count));
        }
        seen = Some(count);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan::{SessionSetup, Target};
    use crate::load::{Material, suite};
    use crate::outcome::new_histogram;
    use brisk_dial::address::Address;

    fn outcome(latencies_us: &[u64]) -> (Outcome, Plan) {
        let workload = Material::default().test(suite::test_named("set").unwrap());
        let address = Address::parse("127.0.0.1:1").unwrap();
        let target = Target { address, tls: None, session: SessionSetup::default() };
        let plan = Plan::new(workload, target);
        let mut outcome = Outcome::new(&plan).unwrap();
        outcome.latency = new_histogram(5).unwrap();
        for us in latencies_us {
            outcome.latency.record(us * 1000).unwrap();
        }
        outcome.operations = latencies_us.len() as u64;
        outcome.seconds = 2.0;
        (outcome, plan)
    }

    #[test]
    fn short_forms_are_those_of_redis_benchmark() {
        let (outcome, _) = outcome(&[100, 200, 300, 400]);
        assert_eq!(quiet(&outcome), "SET: 2.00 requests per second, p50=0.200 msec");
        assert_eq!(
            csv(&outcome),
            r#""SET","2.00","0.250","0.100","0.200","0.400","0.400","0.400""#
        );
        let json: serde_json::Value = serde_json::from_str(&json(&outcome)).unwrap();
        assert_eq!(json["operations"], 4);
        assert_eq!(json["title"], "SET");
        assert!((json["latency_ms"]["p99_99"].as_f64().unwrap() - 0.4).abs() < 1e-3);
    }

    #[test]
    fn the_long_report_has_both_distributions() {
        let latencies: Vec<u64> = (1..=100).map(|i| i * 50).collect();
        let (outcome, plan) = outcome(&latencies);
        let host = HostConfiguration { save: "3600 1".into(), append_only: "no".into() };
        let text = long(&outcome, &plan, 0, &[Some(host)]);
        for wanted in [
            "====== SET ======\n  100 requests completed in 2.00 seconds\n  50 parallel clients\n",
            "  3 bytes payload\n  keep alive: 1\n  host configuration \"save\": 3600 1\n",
            "  multi-thread: no\n\nLatency by percentile distribution:\n0.000% <= 0.050 ",
            "50.000% <= 2.500 milliseconds (cumulative count 50)\n75.000% <= 3.750 ",
            "100.000% <= 5.000 milliseconds (cumulative count 100)\n\nCumulative",
            "2.000% <= 0.100 milliseconds (cumulative count 2)\n4.000% <= 0.200 ",
            "40.000% <= 2.000 milliseconds (cumulative count 40)\n60.000% <= 3.000 ",
            "  throughput summary: 50.00 requests per second\n",
            "          avg       min       p50       p95       p99       max\n",
            "        2.525     0.050     2.500     4.750     4.950     5.000\n",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
        }
    }

    #[test]
    fn long_latencies_do_not_make_a_long_walk() {
        let (outcome, _) = outcome(&[10, 3_000_000]);
        let lines = cumulative(&outcome.latency);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[1].starts_with("100.000% <= 300"), "{lines:?}");
        assert!(cumulative(&new_histogram(3).unwrap()).is_empty());
        assert!(by_percentile(&new_histogram(3).unwrap()).is_empty());
    }

    #[test]
    fn errors_and_mismatches_are_reported() {
        let (mut outcome, _) = outcome(&[1, 1]);
        assert_eq!(faults(&outcome), None);
        outcome.errors.add("ERR no");
        outcome.mismatches = 1;
        outcome.first_mismatch = Some("expected the status OK, got :1".into());
        let text = faults(&outcome).unwrap();
        assert!(text.contains("1 of 2 replies were errors (ERR 1), the first: ERR no"), "{text}");
        assert!(text.contains("1 replies were not as expected; expected"), "{text}");
    }
}
