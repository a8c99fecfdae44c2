//! Comparisons as aligned tables, Markdown, CSV and JSON.

use super::comparison::{Comparison, Row};
use super::statistics::Ratio;
use crate::options::Format;
use serde_json::Value;
use std::path::Path;

/// The comparison in this format, with a line end.
#[must_use]
pub fn render(comparison: &Comparison, format: Format) -> String {
    match format {
        Format::Long | Format::Quiet => table(comparison),
        Format::Markdown => markdown(comparison),
        Format::Csv => csv(comparison),
        Format::Json => json(comparison),
    }
}

/// The output format for a file's extension.
///
/// # Errors
/// If the extension is unknown.
pub fn format_of(path: &Path) -> Result<Format, String> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("md") => Ok(Format::Markdown),
        Some("csv") => Ok(Format::Csv),
        Some("json") => Ok(Format::Json),
        Some("txt") => Ok(Format::Long),
        _ => Err(format!("{}: --save writes .md, .csv, .json or .txt", path.display())),
    }
}

/// Writes the comparison to a file, in the format that its extension names.
///
/// # Errors
/// If the extension is unknown, or the file cannot be written.
pub fn save(comparison: &Comparison, path: &Path) -> Result<(), String> {
    std::fs::write(path, render(comparison, format_of(path)?))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a comparison that was written as JSON.
///
/// # Errors
/// If the file cannot be read, or is not a comparison.
pub fn load(path: &Path) -> Result<Comparison, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text)
        .map_err(|error| format!("{}: not the JSON of a comparison: {error}", path.display()))
}

fn conditions(comparison: &Comparison) -> String {
    let conditions = &comparison.conditions;
    let mut parts = vec![
        format!("{} rounds", conditions.rounds),
        format!("{} clients", conditions.clients),
        format!("{} threads", conditions.threads),
    ];
    parts.extend(conditions.requests.map(|requests| format!("{requests} requests")));
    parts.extend(conditions.seconds.map(|seconds| format!("{seconds} s")));
    parts.extend(conditions.rate.map(|rate| format!("open loop at {rate}/s")));
    if !conditions.keep_alive {
        parts.push("one connection per batch".to_owned());
    }
    parts.extend(conditions.keyspace.map(|keys| format!("{keys} keys, {}", conditions.keys)));
    parts.join(", ")
}

fn server_line(comparison: &Comparison, i: usize) -> String {
    let server = &comparison.servers[i];
    let version = server.version.as_deref().unwrap_or("of unknown version");
    format!("{}: {version} ({})", server.name, server.place)
}

/// Column titles: the servers, then the ratios.
fn columns(comparison: &Comparison) -> Vec<String> {
    let names = comparison.servers.iter().map(|server| server.name.clone());
    let base = &comparison.servers[comparison.baseline].name;
    let others = comparison.servers.iter().enumerate();
    let ratios = others
        .filter(|&(i, _)| i != comparison.baseline)
        .map(|(_, server)| format!("{}/{base}", server.name));
    names.chain(ratios).collect()
}

/// The cells of a row, in the order of the columns.
fn cells(comparison: &Comparison, row: &Row) -> Vec<String> {
    let medians = row.medians.iter().map(|median| median.map_or("-".to_owned(), format_number));
    let ratios = row.ratios.iter().enumerate();
    let ratios = ratios
        .filter(|&(i, _)| i != comparison.baseline)
        .map(|(_, ratio)| ratio.as_ref().map_or("-".to_owned(), ratio_text));
    medians.chain(ratios).collect()
}

fn ratio_text(ratio: &Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{:.2} ({low:.2}-{high:.2})", ratio.value),
        _ => format!("{:.2}", ratio.value),
    }
}

/// A number with about four significant digits.
fn format_number(n: f64) -> String {
    match n.abs() {
        a if a >= 1000.0 => format!("{n:.0}"),
        a if a >= 10.0 => format!("{n:.1}"),
        a if a >= 0.1 || a == 0.0 => format!("{n:.3}"),
        _ => format!("{n:.4}"),
    }
}

fn label(row: &Row) -> String {
    let (name, unit) = row.metric.what();
    format!("{name}, {unit}")
}

fn table(comparison: &Comparison) -> String {
    let mut text = format!("{}\n{}\n", comparison.machine, conditions(comparison));
    for i in 0..comparison.servers.len() {
        text += &server_line(comparison, i);
        text.push('\n');
    }
    let columns = columns(comparison);
    for case in &comparison.cases {
        let rows: Vec<Vec<String>> = case.rows.iter().map(|row| cells(comparison, row)).collect();
        let labels: Vec<String> = case.rows.iter().map(label).collect();
        let first = labels.iter().map(String::len).max().unwrap_or(0);
        let width = |i: usize| {
            let longest = rows.iter().filter_map(|row| Some(row.get(i)?.len())).max();
            longest.unwrap_or(0).max(columns[i].len())
        };
        let widths: Vec<usize> = (0..columns.len()).map(width).collect();
        let line = |label: &str, cells: &[String]| {
            let cells: String = cells
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("  {cell:>width$}"))
                .collect();
            format!("  {label:<first$}{cells}\n")
        };
        text += &format!("\n{}\n", case.heading());
        text += &line("", &columns);
        for (label, cells) in labels.iter().zip(&rows) {
            text += &line(label, cells);
        }
    }
    text
}

fn markdown(comparison: &Comparison) -> String {
    let mut text = format!("{}; {}.\n\n", comparison.machine, conditions(comparison));
    for i in 0..comparison.servers.len() {
        text += &format!("- {}\n", server_line(comparison, i));
    }
    let columns = columns(comparison);
    for case in &comparison.cases {
        text += &format!("\n### {}\n\n", case.heading());
        text += &format!("| median | {} |\n", columns.join(" | "));
        text += &format!("|---|{}\n", "--:|".repeat(columns.len()));
        for row in &case.rows {
            text += &format!("| {} | {} |\n", label(row), cells(comparison, row).join(" | "));
        }
    }
    if !comparison.warnings.is_empty() {
        text += "\nWarnings:\n\n";
        comparison.warnings.iter().for_each(|warning| text += &format!("- {warning}\n"));
    }
    text
}

fn csv(comparison: &Comparison) -> String {
    let mut text =
        "case,pipeline,server,metric,unit,median,ratio,ratio_low,ratio_high\n".to_owned();
    let number = |n: Option<f64>| n.map_or(String::new(), |n| n.to_string());
    for case in &comparison.cases {
        for row in &case.rows {
            for (i, server) in comparison.servers.iter().enumerate() {
                let ratio = row.ratios[i];
                let fields = [
                    quoted(&case.title),
                    case.pipeline.to_string(),
                    quoted(&server.name),
                    quoted(row.metric.what().0),
                    quoted(&row.unit),
                    number(row.medians[i]),
                    number(ratio.map(|ratio| ratio.value)),
                    number(ratio.and_then(|ratio| ratio.low)),
                    number(ratio.and_then(|ratio| ratio.high)),
                ];
                text += &fields.join(",");
                text.push('\n');
            }
        }
    }
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn json(comparison: &Comparison) -> String {
    // The comparison contains only strings, numbers and lists, so this cannot fail.
    let value = serde_json::to_value(comparison).unwrap_or_default();
    let mut text = String::new();
    append_lines(&mut text, &value, 0);
    text + "\n"
}

/// Appends a value. Lists and objects that fit on one line are written on one line.
fn append_lines(text: &mut String, value: &Value, indent: usize) {
    const LINE_WIDTH: usize = 240;
    let line = value.to_string();
    let items: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            let named = |(name, item)| (format!("{}: ", Value::from(String::as_str(name))), item);
            members.iter().map(named).collect()
        }
        Value::Array(items) => items.iter().map(|item| (String::new(), item)).collect(),
        _ => Vec::new(),
    };
    if items.is_empty() || indent + line.len() <= LINE_WIDTH {
        *text += &line;
        return;
    }
    let (open, close) = if value.is_array() { ('[', ']') } else { ('{', '}') };
    text.push(open);
    for (i, (name, item)) in items.into_iter().enumerate() {
        let separator = if i == 0 { "" } else { "," };
        *text += &format!("{separator}\n{:1$}{name}", "", indent + 2);
        append_lines(text, item, indent + 2);
    }
    *text += &format!("\n{:indent$}{close}", "");
}

#[cfg(test)]
mod tests {
    use super::super::comparison::{CaseResult, Conditions, Sample, ServerInfo};
    use super::*;

    fn comparison() -> Comparison {
        let server = |name: &str| ServerInfo {
            name: name.to_owned(),
            place: ":1".to_owned(),
            version: Some("Redis 7.0.15".to_owned()),
            local: true,
        };
        let sample = |rate: f64| Sample { rate, ..Sample::default() };
        let samples = vec![
            vec![sample(1000.0), sample(1100.0), sample(900.0)],
            vec![sample(2000.0), sample(2200.0), sample(1800.0)],
        ];
        Comparison {
            machine: "a machine".to_owned(),
            generator: "brisk-benchmark".to_owned(),
            date: "2026-01-31".to_owned(),
            command: "brisk-benchmark compare".to_owned(),
            servers: vec![server("old"), server("new")],
            baseline: 0,
            conditions: Conditions {
                rounds: 3,
                clients: 50,
                threads: 1,
                requests: Some(7),
                seconds: None,
                warmup_seconds: 0.0,
                rate: None,
                keep_alive: true,
                keyspace: Some(9),
                keys: "uniform".to_owned(),
                sizes: "fixed(3)".to_owned(),
                server_cpus: Vec::new(),
                load_cpus: Vec::new(),
            },
            cases: vec![CaseResult::new("GET".to_owned(), 16, samples, 0)],
            warnings: vec!["the machine was noisy".to_owned()],
        }
    }

    #[test]
    fn every_format_has_the_numbers() {
        let comparison = comparison();
        let table = render(&comparison, Format::Long);
        assert!(table.contains("GET, pipeline 16\n"), "{table}");
        let line = table.lines().find(|line| line.contains("throughput")).unwrap();
        let cells: Vec<&str> = line.split_whitespace().skip(2).collect();
        assert_eq!(cells, ["1000", "2000", "2.00", "(2.00-2.00)"]);

        let markdown = render(&comparison, Format::Markdown);
        let row = "| throughput, requests/s | 1000 | 2000 | 2.00 (2.00-2.00) |";
        assert!(markdown.contains(row) && markdown.contains("| median | old | new | new/old |"));
        assert!(markdown.contains("- the machine was noisy"));

        let csv = render(&comparison, Format::Csv);
        assert!(
            csv.contains("\"GET\",16,\"new\",\"throughput\",\"requests/s\",2000,2,2,2\n"),
            "{csv}"
        );

        let json: serde_json::Value =
            serde_json::from_str(&render(&comparison, Format::Json)).unwrap();
        assert_eq!(json["cases"][0]["rows"][0]["ratios"][1]["value"], 2.0);
        assert_eq!(json["cases"][0]["samples"][1][2]["rate"], 1800.0);
    }

    #[test]
    fn json_can_be_read_back_and_has_a_line_for_each_row() {
        let comparison = comparison();
        let text = render(&comparison, Format::Json);
        assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), comparison);
        let rows = text.lines().filter(|line| line.trim_start().starts_with("{\"metric\":"));
        assert_eq!(rows.count(), comparison.cases[0].rows.len(), "{text}");
    }
}
