//! A comparison within the page: throughput by depth, latency percentiles, CPU time and memory,
//! then all numbers of every case.

use super::bars::bars;
use super::plot::{lines, lines_at};
use super::{escaped, ratio_cell};
use crate::compare::statistics::Ratio;
use crate::compare::{CaseResult, Comparison, Metric, Row};
use crate::experiments::finding::{Better, Line, Plot, Verdict};
use crate::experiments::render::format_number;

/// Maximum number of bar groups in one plot.
const GROUPS_MAX: usize = 24;
/// Maximum number of cases whose percentiles are drawn.
const PERCENTILE_PLOTS_MAX: usize = 12;

pub(super) fn section(comparison: &Comparison) -> String {
    let names: Vec<String> = comparison.servers.iter().map(|server| server.name.clone()).collect();
    let mut text = "<section id=\"comparison\">\n<h2>Side by side</h2>\n".to_owned();
    text += &format!("<p>{}</p>\n", escaped(&conditions(comparison)));
    let mut plots = String::new();
    plots += &depths(comparison);
    for (title, metric) in [("Server CPU", Metric::ServerCpu), ("Server memory", Metric::Rss)] {
        let groups = comparison.cases.iter().filter_map(|case| {
            let row = row_of(case, metric)?;
            Some((case.heading(), row.medians.clone()))
        });
        let groups: Vec<_> = groups.take(GROUPS_MAX).collect();
        plots += &bars(title, metric.what().1, &names, &groups);
    }
    for case in comparison.cases.iter().take(PERCENTILE_PLOTS_MAX) {
        plots += &percentiles(case, &names);
    }
    text += &format!("<div class=\"plots\">\n{plots}</div>\n");
    for case in &comparison.cases {
        text += &table(comparison, case);
    }
    text + "</section>\n"
}

fn conditions(comparison: &Comparison) -> String {
    let conditions = &comparison.conditions;
    let mut parts = vec![
        format!("Medians of {} rounds", conditions.rounds),
        format!("{} clients", conditions.clients),
    ];
    parts.extend(conditions.requests.map(|requests| format!("{requests} requests per round")));
    parts.extend(conditions.seconds.map(|seconds| format!("{seconds} s per round")));
    parts.extend(conditions.rate.map(|rate| format!("open loop at {rate} requests/s")));
    parts.extend(conditions.keyspace.map(|keys| format!("{keys} keys")));
    if !conditions.keep_alive {
        parts.push("one connection per batch".to_owned());
    }
    format!(
        "{}. Ratios are relative to {}, with 95 % confidence intervals. They are marked better or worse \
         if the interval excludes 1.",
        parts.join(", "),
        comparison.servers[comparison.baseline].name
    )
}

pub(super) fn row_of(case: &CaseResult, metric: Metric) -> Option<&Row> {
    case.rows.iter().find(|row| row.metric == metric)
}

fn lines_of(names: &[String], point: impl Fn(usize) -> Vec<(f64, f64)>) -> Vec<Line> {
    let line = |(server, name): (usize, &String)| Line {
        name: name.clone(),
        server: Some(server),
        computed: false,
        points: point(server),
    };
    names.iter().enumerate().map(line).collect()
}

/// Throughput by pipeline depth, for each workload that was measured at several depths.
fn depths(comparison: &Comparison) -> String {
    let plots = over_depth(comparison, Metric::Rate, "requests/s").into_iter();
    let titled = plots.map(|plot| Plot { title: format!("{}: throughput", plot.title), ..plot });
    titled.map(|plot| lines(&plot)).collect()
}

/// A plot of a metric by pipeline depth, with its title, for each workload that was measured at several depths.
pub(super) fn over_depth(comparison: &Comparison, metric: Metric, unit: &str) -> Vec<Plot> {
    let names: Vec<String> = comparison.servers.iter().map(|server| server.name.clone()).collect();
    let mut titles: Vec<&str> = Vec::new();
    for case in &comparison.cases {
        if !titles.contains(&case.title.as_str()) {
            titles.push(&case.title);
        }
    }
    let mut plots = Vec::new();
    for title in titles {
        let mut cases: Vec<&CaseResult> =
            comparison.cases.iter().filter(|case| case.title == title).collect();
        cases.sort_by_key(|case| case.pipeline);
        if cases.len() < 2 {
            continue;
        }
        let point = |server: usize| {
            let median = |case: &&CaseResult| {
                let median = (*row_of(case, metric)?.medians.get(server)?)?;
                Some((case.pipeline as f64, median))
            };
            cases.iter().filter_map(median).collect()
        };
        plots.push(Plot {
            title: title.to_owned(),
            x: "pipeline depth".to_owned(),
            y: unit.to_owned(),
            logarithmic: true,
            lines: lines_of(&names, point),
        });
    }
    plots
}

/// The percentiles of a case. The horizontal axis is stretched toward the highest percentiles.
fn percentiles(case: &CaseResult, names: &[String]) -> String {
    const PERCENTILES: [(Metric, f64, &str); 5] = [
        (Metric::P50, 2.0, "50"),
        (Metric::P90, 10.0, "90"),
        (Metric::P99, 100.0, "99"),
        (Metric::P999, 1000.0, "99.9"),
        (Metric::P9999, 10_000.0, "99.99"),
    ];
    let point = |server: usize| {
        let at = |&(metric, x, _): &(Metric, f64, &str)| {
            Some((x, row_of(case, metric)?.medians[server]?))
        };
        PERCENTILES.iter().filter_map(at).collect()
    };
    let plot = Plot {
        title: format!("{}: latency", case.heading()),
        x: "percentile".to_owned(),
        y: "ms".to_owned(),
        logarithmic: true,
        lines: lines_of(names, point),
    };
    let places = PERCENTILES.iter().map(|&(_, x, label)| (x, label.to_owned()));
    lines_at(&plot, &places.collect())
}

fn table(comparison: &Comparison, case: &CaseResult) -> String {
    let base = &comparison.servers[comparison.baseline].name;
    let mut text = format!(
        "<h3>{}</h3>\n<div class=\"wide\"><table>\n<thead><tr><th>median</th><th>unit</th>",
        escaped(&case.heading())
    );
    for server in &comparison.servers {
        text += &format!("<th class=\"n\">{}</th>", escaped(&server.name));
    }
    let others = || (0..comparison.servers.len()).filter(|&i| i != comparison.baseline);
    for i in others() {
        text += &format!(
            "<th class=\"n\">{}/{}</th><th>95 %</th>",
            escaped(&comparison.servers[i].name),
            escaped(base)
        );
    }
    text += "</tr></thead>\n<tbody>\n";
    for row in &case.rows {
        let (name, unit) = row.metric.what();
        text += &format!("<tr><td>{name}</td><td class=\"unit\">{unit}</td>");
        for median in &row.medians {
            let shown = median.map_or("-".to_owned(), format_number);
            text += &format!("<td class=\"n\">{shown}</td>");
        }
        for i in others() {
            text += &match &row.ratios[i] {
                Some(ratio) => {
                    let interval = match (ratio.low, ratio.high) {
                        (Some(low), Some(high)) => format!("{low:.2}-{high:.2}"),
                        _ => String::new(),
                    };
                    ratio_cell(&format!("{:.2}", ratio.value), verdict(row.metric, ratio))
                        + &format!("<td class=\"interval\">{interval}</td>")
                }
                None => "<td class=\"n\">-</td><td></td>".to_owned(),
            };
        }
        text += "</tr>\n";
    }
    text + "</tbody>\n</table></div>\n"
}

/// The meaning of a ratio. If its interval contains 1, there is no verdict.
fn verdict(metric: Metric, ratio: &Ratio) -> Option<Verdict> {
    let better = match metric {
        Metric::Rate => Better::More,
        Metric::GeneratorCpu => return None,
        _ => Better::Less,
    };
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) if low <= 1.0 && high >= 1.0 => Some(Verdict::Even),
        _ => Some(better.verdict(ratio.value)),
    }
}
