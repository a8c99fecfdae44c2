//! The page contains the numbers of the data, and does not load external resources.

use super::*;
use crate::compare::{CaseResult, Conditions, Sample, ServerUse};
use crate::experiments::finding::{Better, Line, Plot};
use crate::experiments::render::format_number;
use crate::outcome::Latency;

fn server(name: &str) -> ServerInfo {
    ServerInfo {
        name: name.to_owned(),
        place: format!("{name} --port {{port}} --save \"\""),
        version: Some("Redis 7.0.15".to_owned()),
        local: true,
    }
}

fn row(what: &str, better: Better, article: Option<f64>, values: [Option<f64>; 2]) -> Row {
    let (what, unit) = (what.to_owned(), "ms".to_owned());
    Row { what, unit, better, article, values: values.to_vec(), details: Vec::new() }
}

fn finding(name: &str) -> Finding {
    let points = vec![(1.0, 1234.0), (10.0, 54_321.0), (100.0, 987_654.0)];
    let line =
        Line { name: "here".to_owned(), server: Some(1), computed: false, points: points.clone() };
    let formula = Line { computed: true, server: Some(0), ..line.clone() };
    Finding {
        name: name.to_owned(),
        title: "a <b>title</b> & more".to_owned(),
        what: "what".to_owned(),
        rows: vec![
            row("gained", Better::Less, Some(431.0), [Some(200.0), Some(50.5)]),
            row("lost", Better::More, None, [Some(98_765.0), Some(12_345.0)]),
            row("unseen", Better::Less, None, [None, Some(77.25)]),
        ],
        plots: vec![Plot {
            title: "plot".to_owned(),
            x: "depth".to_owned(),
            y: "requests/s".to_owned(),
            logarithmic: true,
            lines: vec![line, formula],
        }],
        notes: vec!["a note".to_owned()],
        failure: None,
        seconds: 1.0,
    }
}

fn comparison() -> Comparison {
    let sample = |rate: f64| Sample {
        rate,
        latency_ms: Latency {
            p50: 0.5,
            p90: 0.9,
            p99: 3.25,
            p99_9: 4.0,
            p99_99: 5.0,
            ..Latency::default()
        },
        ..Sample::default()
    };
    let case = |depth, rate: f64| {
        let rounds = |rate: f64| vec![sample(rate * 0.99), sample(rate), sample(rate * 1.01)];
        CaseResult::new("GET".to_owned(), depth, vec![rounds(rate), rounds(rate * 2.0)], 0)
    };
    Comparison {
        machine: "machine".to_owned(),
        date: "2026-01-31".to_owned(),
        command: "brisk-benchmark compare".to_owned(),
        generator: "generator".to_owned(),
        servers: vec![server("a"), server("b")],
        baseline: 0,
        conditions: Conditions {
            rounds: 3,
            clients: 50,
            threads: 1,
            requests: Some(1000),
            seconds: None,
            warmup_seconds: 0.0,
            rate: None,
            keep_alive: true,
            keyspace: None,
            keys: String::new(),
            sizes: String::new(),
            server_cpus: Vec::new(),
            load_cpus: Vec::new(),
        },
        cases: vec![case(1, 91_234.0), case(16, 765_432.0)],
        warnings: vec!["noisy".to_owned()],
    }
}

fn report() -> Report {
    let mut report = Report::new("2 x machine".to_owned(), vec![server("peer"), server("ours")]);
    report.experiments = vec![finding("s1"), finding("p3")];
    report.comparison = Some(comparison());
    report
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let html = report().html().to_lowercase();
    for word in ["http:", "https:", "//", "src=", "url(", "@import", "<link", "<script", "<iframe"]
    {
        assert!(!html.contains(word), "{word}");
    }
    // All links point to targets within the page.
    for reference in html.split("href=\"").skip(1) {
        let name = reference.split('"').next().unwrap();
        let id = name.strip_prefix('#').unwrap();
        assert!(html.contains(&format!("id=\"{id}\"")), "{name}");
    }
}

#[test]
fn every_number_of_the_data_is_in_the_page() {
    let report = report();
    let html = report.html();
    let shown = |text: String| assert!(html.contains(&text), "{text}");
    shown("b: 3.25 ms at 99 percentile".to_owned());
    for finding in &report.experiments {
        for row in &finding.rows {
            for value in row.values.iter().chain([&row.article]).flatten() {
                shown(format!(">{}</td>", format_number(*value)));
            }
        }
        for (_, y) in
            finding.plots.iter().flat_map(|plot| &plot.lines).flat_map(|line| &line.points)
        {
            shown(format!("here: {} requests/s", format_number(*y)));
        }
    }
    for row in report.comparison.iter().flat_map(|it| &it.cases).flat_map(|case| &case.rows) {
        for value in row.medians.iter().flatten() {
            shown(format!(">{}</td>", format_number(*value)));
        }
    }
}

#[test]
fn losses_are_shown_like_wins() {
    let html = report().html();
    assert!(html.contains("<span class=\"win\">0.25 <small>better</small></span>"));
    // 12,345 compared with 98,765, for a metric of which more is better.
    assert!(html.contains("<span class=\"loss\">0.12 <small>worse</small></span>"));
    assert!(html.contains("<span class=\"win\">1 better</span>"));
    assert!(html.contains("<span class=\"loss\">1 worse</span>"));
    // The comparison, with its interval.
    assert!(html.contains("<span class=\"win\">2.00 <small>better</small></span>"));
    assert!(html.contains("<td class=\"interval\">2.00-2.00</td>"));
}

#[test]
fn text_from_outside_is_escaped_and_tags_are_balanced() {
    let html = report().html();
    assert!(html.contains("a &lt;b&gt;title&lt;/b&gt; &amp; more"));
    for tag in ["table", "tr", "td", "th", "section", "svg", "figure", "div", "span", "text"] {
        let opened =
            html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn the_report_is_written_as_json_too() {
    let json = crate::experiments::render::json(&report());
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["experiments"][0]["rows"][0]["values"][1], 50.5);
    assert_eq!(value["experiments"][0]["rows"][0]["article"], 431.0);
    assert_eq!(value["comparison"]["cases"][1]["pipeline"], 16);
}

/// A comparison at four depths that has CPU times.
fn comparison_of_cpu() -> Comparison {
    let sample = |cpu_us| Sample {
        server: Some(ServerUse { cpu_us, ..ServerUse::default() }),
        ..Sample::default()
    };
    let case = |title: &str, pipeline, [one, other]: [f64; 2]| {
        CaseResult::new(title.to_owned(), pipeline, vec![vec![sample(one)], vec![sample(other)]], 0)
    };
    let cases = vec![
        case("GET", 1, [6.0, 4.5]),
        case("GET", 100, [0.8, 0.2]),
        case("<SET>", 100, [1.0, 0.2]),
        case("<SET>", 1, [8.0, 5.0]),
        case("PING", 1, [1.0, 1.0]),
    ];
    let mut comparison = Comparison { cases, ..comparison() };
    comparison.servers[1].version = Some("Brisk & more".to_owned());
    comparison.conditions.keyspace = Some(1_000_000);
    comparison
}

#[test]
fn a_plot_of_cpu_time_has_a_panel_for_each_test_with_several_depths() {
    let svg = svg::cpu_over_depth(&comparison_of_cpu()).unwrap();
    for wanted in
        [">GET</text>", ">&lt;SET&gt;</text>", ">Brisk &amp; more</text>", " 1,000,000 keys"]
    {
        assert!(svg.contains(wanted), "{wanted}: {svg}");
    }
    assert!(!svg.contains("PING"), "{svg}");
    // There are two lines in each panel, and a legend symbol for each server.
    assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (4, 10));
    for ratio in ["0.75", "0.25", "0.20", "0.62"] {
        assert!(svg.contains(&format!(">{ratio}</text>")), "{ratio}: {svg}");
    }
    for word in ["<script", "href", "url(", "@import"] {
        assert!(!svg.contains(word), "{word}");
    }
}

#[test]
fn a_plot_of_cpu_time_needs_two_depths_and_accepts_gaps_in_the_data() {
    let mut gaps = comparison_of_cpu();
    for row in gaps.cases.iter_mut().flat_map(|case| &mut case.rows) {
        row.medians.truncate(1);
        row.ratios.clear();
    }
    gaps.baseline = 7;
    assert_eq!(svg::cpu_over_depth(&gaps).unwrap().matches("<polyline").count(), 2);
    // Values that no axis can show are omitted.
    let mut extreme = comparison_of_cpu();
    extreme.cases[0].pipeline = 0;
    extreme.cases.extend([1e-320, 1e300].map(|cpu| {
        let mut case = comparison_of_cpu().cases.swap_remove(0);
        case.rows.iter_mut().for_each(|row| row.medians[1] = Some(cpu));
        case
    }));
    let drawn = svg::cpu_over_depth(&extreme).unwrap();
    assert!(!drawn.contains("inf") && !drawn.contains("NaN"), "{drawn}");
    gaps.servers.clear();
    assert!(svg::cpu_over_depth(&gaps).is_err());
    let mut one_depth = comparison_of_cpu();
    one_depth.cases.retain(|case| case.pipeline == 1);
    assert!(svg::cpu_over_depth(&one_depth).unwrap_err().contains("two pipeline depths"));
}
