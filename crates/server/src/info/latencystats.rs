//! INFO latencystats: latency percentiles of each command.

use super::View;
use brisk_observe::stats::{BUCKETS, upper_bound};
use brisk_observe::text::Text;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    if !view.config.observe.latency_tracking {
        return;
    }
    let wanted: Vec<(f64, String)> =
        view.config.observe.latency_percentiles.iter().map(|p| (*p, name(*p))).collect();
    for row in view.shared.table.all() {
        let mut counts = [0; BUCKETS];
        let mut any = false;
        for stats in &view.shared.observe.stats {
            any |= stats.commands[row.id].latency.add_to(&mut counts);
        }
        let total: u64 = counts.iter().sum();
        if !any || total == 0 {
            continue;
        }
        text.begin_line("latency_percentiles_usec_", row.full_name());
        for (at, (percentile, name)) in wanted.iter().enumerate() {
            text.push(if at == 0 { "" } else { "," });
            text.push(name);
            text.push("=");
            text.push_fixed(value_at(&counts, total, *percentile) as f64 / 1000.0, 3);
        }
        text.end();
    }
}

/// Formats a name, for example `p50` or `p99.9`.
fn name(percentile: f64) -> String {
    let fixed = format!("p{percentile:.6}");
    fixed.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the duration, in ns, that this percentage of the `total` calls did not exceed.
fn value_at(counts: &[u64; BUCKETS], total: u64, percentile: f64) -> u64 {
    let rank = ((percentile / 100.0 * total as f64).ceil() as u64).clamp(1, total);
    let mut seen = 0;
    let reached = counts.iter().position(|count| {
        seen += count;
        seen >= rank
    });
    upper_bound(reached.unwrap_or(BUCKETS - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_observe::stats::Histogram;

    #[test]
    fn percentiles_are_upper_bounds_of_that_share_of_durations() {
        let histogram = Histogram::default();
        for us in 1..=1000u64 {
            histogram.record(us * 1000);
        }
        let mut counts = [0; BUCKETS];
        assert!(histogram.add_to(&mut counts));
        for (percentile, us) in [(0.0, 1), (50.0, 500), (99.0, 990), (100.0, 1000)] {
            let got = value_at(&counts, 1000, percentile);
            let exact = us * 1000;
            assert!(got >= exact && got - exact <= exact / 31 + 1, "p{percentile}: {got}");
        }
        assert_eq!((name(50.0), name(99.9)), ("p50".to_owned(), "p99.9".to_owned()));
    }
}
