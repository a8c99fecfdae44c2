//! The output of LATENCY GRAPH and LATENCY DOCTOR.

use brisk_config::Config;
use brisk_observe::latency::Series;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Columns of the graph, and the length of the line above it.
const COLUMNS: usize = 80;
/// Rows of the graph.
const ROWS: usize = 4;
/// The marks for a value that ends within a row, by height, lowest first.
const MARKS: [char; 3] = ['_', 'o', '#'];
/// The mark for a row that the value exceeds.
const FILL: char = '|';

/// Draws the spikes of an event as columns, with the age of each spike written vertically below its column.
pub(super) fn graph(event: &str, series: &Series, now_s: u64) -> String {
    let spikes = series.samples.iter().map(|(_, ms)| *ms);
    let high = spikes.clone().max().unwrap_or(0);
    let low = spikes.min().unwrap_or(0);
    let mut text = format!(
        "{event} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        series.worst_ms,
        "-".repeat(COLUMNS)
    );
    let samples: Vec<(u64, u64)> = series.samples.iter().copied().collect();
    for columns in samples.chunks(COLUMNS) {
        draw(&mut text, columns, low, high, now_s);
    }
    text
}

fn draw(text: &mut String, columns: &[(u64, u64)], low: u64, high: u64, now_s: u64) {
    let steps = MARKS.len() * ROWS;
    let range = (high - low).max(1);
    let height = |ms: u64| (((ms - low) as usize * steps) / range as usize).min(steps - 1);
    for row in 0..ROWS {
        let below = (ROWS - 1 - row) * MARKS.len();
        text.extend(columns.iter().map(|(_, ms)| match height(*ms).checked_sub(below) {
            None => ' ',
            Some(above) => MARKS.get(above).copied().unwrap_or(FILL),
        }));
        text.push('\n');
    }
    let labels: Vec<String> =
        columns.iter().map(|(second, _)| age(now_s.saturating_sub(*second))).collect();
    let longest = labels.iter().map(String::len).max().unwrap_or(0);
    text.extend(std::iter::repeat_n(' ', columns.len()));
    text.push('\n');
    for at in 0..longest {
        text.extend(
            labels.iter().map(|label| label.as_bytes().get(at).map_or(' ', |b| *b as char)),
        );
        text.push('\n');
    }
}

/// Formats a duration in its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Statistics of one event's spikes.
struct Summary {
    spikes: usize,
    average_ms: u64,
    /// Mean absolute deviation from the average.
    deviation_ms: u64,
    /// Average number of seconds between two spikes.
    period_s: f64,
}

impl Summary {
    fn of(series: &Series, now_s: u64) -> Summary {
        let spikes = series.samples.len();
        let count = spikes.max(1) as u64;
        let average_ms = series.samples.iter().map(|(_, ms)| ms).sum::<u64>() / count;
        let distance = series.samples.iter().map(|(_, ms)| ms.abs_diff(average_ms)).sum::<u64>();
        let first = series.samples.front().map_or(now_s, |(second, _)| *second);
        let span = now_s.saturating_sub(first).max(1);
        let period_s = span as f64 / count as f64;
        Summary { spikes, average_ms, deviation_ms: distance / count, period_s }
    }
}

/// Writes a report in plain English: what was slow, how often, and what to check.
pub(super) fn doctor(
    events: &BTreeMap<&'static str, Series>,
    config: &Config,
    now_s: u64,
) -> String {
    let threshold_ms = config.observe.latency_monitor_threshold_ms;
    if threshold_ms <= 0 && events.is_empty() {
        return "The latency monitor is disabled. To record latency spikes, set a threshold \
                with CONFIG SET latency-monitor-threshold <milliseconds>, and run this command \
                again after the server has been in use for a while.\n"
            .to_owned();
    }
    if events.is_empty() {
        return format!(
            "No latency spikes: no event since the last reset took {threshold_ms} \
             milliseconds or longer.\n"
        );
    }
    let mut text = String::from("Events that exceeded the threshold of the latency monitor:\n\n");
    for (number, (event, series)) in events.iter().enumerate() {
        let Summary { spikes, average_ms, deviation_ms, period_s } = Summary::of(series, now_s);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}. {event}: {spikes} spikes, {average_ms} ms on average (mean deviation \
             {deviation_ms} ms), one every {period_s:.2} s; the longest one took {} ms.",
            number + 1,
            series.worst_ms
        );
    }
    text.push_str("\nRecommendations:\n\n");
    for advice in advices(events, config) {
        let _ = writeln!(text, "- {advice}");
    }
    text
}

fn advices(events: &BTreeMap<&'static str, Series>, config: &Config) -> Vec<String> {
    let has = |event: &str| events.contains_key(event);
    let mut advices = Vec::new();
    if has("command") || has("fast-command") {
        let threshold_us = config.observe.latency_monitor_threshold_ms.max(0) * 1000;
        let slowlog_us = config.observe.slowlog_log_slower_than_us;
        if slowlog_us < 0 || slowlog_us > threshold_us {
            advices.push(format!(
                "The slow log omits commands that the latency monitor records. To see them in \
                 SLOWLOG GET, use CONFIG SET slowlog-log-slower-than {threshold_us}."
            ));
        } else {
            advices.push("SLOWLOG GET lists the slow commands.".to_owned());
        }
    }
    if has("command") {
        advices.push(
            "Commands that process many elements or keys (KEYS, or whole collections) keep \
             a worker busy: the SCAN commands do the same work in small steps."
                .to_owned(),
        );
    }
    if has("fast-command") {
        advices.push(
            "Commands with constant complexity should not be slow. If they are, the process may \
             lack CPU time or memory: check for swapping, other programs on the machine, and \
             very large arguments."
                .to_owned(),
        );
    }
    if has("expire-cycle") {
        advices.push(
            "Many keys expire at the same time: slightly different TTLs spread the work."
                .to_owned(),
        );
    }
    if has("eviction-cycle") {
        advices.push(
            "Eviction takes time when memory is full: a higher maxmemory or shorter TTLs \
             reduce it."
                .to_owned(),
        );
    }
    if advices.is_empty() {
        advices.push("LATENCY GRAPH shows whether the spikes are periodic.".to_owned());
    }
    advices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: &[(u64, u64)]) -> Series {
        let worst_ms = samples.iter().map(|(_, ms)| *ms).max().unwrap_or(0);
        Series { samples: samples.iter().copied().collect(), worst_ms }
    }

    /// Redis 7.0.15 drew the expected graphs from the same spikes.
    #[test]
    fn graphs_look_as_the_references_do() {
        let drawn = graph("command", &series(&[(1, 54), (2, 10), (3, 30)]), 4);
        let rule = "-".repeat(COLUMNS);
        let head = "command - high 54 ms, low 10 ms (all time high 54 ms)\n";
        assert_eq!(drawn, format!("{head}{rule}\n#  \n|  \n| #\n|_|\n   \n321\nsss\n"));
        let drawn = graph("command", &series(&[(5, 26)]), 5);
        let head = "command - high 26 ms, low 26 ms (all time high 26 ms)\n";
        assert_eq!(drawn, format!("{head}{rule}\n \n \n \n_\n \n0\ns\n"));
    }

    #[test]
    fn a_graph_wider_than_its_columns_continues_below() {
        let many: Vec<(u64, u64)> = (0..100).map(|at| (at, at)).collect();
        let drawn = graph("command", &series(&many), 100);
        assert!(drawn.lines().all(|line| line.len() <= COLUMNS));
    }
}
