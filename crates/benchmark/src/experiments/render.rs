//! Findings as aligned tables, Markdown and JSON.

use super::finding::{Better, Finding, Row, Verdict};
use crate::compare::ServerInfo;
use crate::html::Report;

/// The column titles after the first: article, servers, ratios to the first server.
#[must_use]
pub fn columns(servers: &[ServerInfo]) -> Vec<String> {
    let mut columns = vec!["article".to_owned()];
    columns.extend(servers.iter().map(|server| server.name.clone()));
    if let [first, others @ ..] = servers {
        columns.extend(others.iter().map(|server| format!("{}/{}", server.name, first.name)));
    }
    columns
}

/// The cells of a row, in the order of the columns.
#[must_use]
pub fn cells(row: &Row) -> Vec<String> {
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), format_number);
    let mut cells = vec![shown(row.article)];
    cells.extend(row.values.iter().enumerate().map(|(i, &value)| match row.details.get(i) {
        Some(Some(detail)) => format!("{} ({detail})", shown(value)),
        _ => shown(value),
    }));
    let ratio = |server| match row.ratio(server) {
        Some(ratio) if row.better == Better::Neither => format!("{ratio:.2}"),
        Some(ratio) => format!("{ratio:.2}{}", mark(row.better.verdict(ratio))),
        None => "-".to_owned(),
    };
    cells.extend((1..row.values.len()).map(ratio));
    cells
}

/// The mark for a verdict in output without colors.
const fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Win => " +",
        Verdict::Loss => " -",
        Verdict::Even => " =",
    }
}

/// A number with about four significant digits and thousands separators.
#[must_use]
pub fn format_number(n: f64) -> String {
    let text = match n.abs() {
        a if a >= 1000.0 => format!("{n:.0}"),
        a if a >= 100.0 => format!("{n:.1}"),
        a if a >= 1.0 || a == 0.0 => format!("{n:.2}"),
        _ => format!("{n:.4}"),
    };
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let whole = digits.split('.').next().unwrap_or_default().len();
    if whole <= 4 {
        return text;
    }
    let apart = digits.char_indices().map(|(i, digit)| {
        let gap = i > 0 && i < whole && (whole - i).is_multiple_of(3);
        format!("{}{digit}", if gap { "," } else { "" })
    });
    format!("{sign}{}", apart.collect::<String>())
}

/// A finding as a table for a terminal. `+` is better than the first server, `-` worse, `=` neither.
#[must_use]
pub fn table(finding: &Finding, servers: &[ServerInfo]) -> String {
    let columns = columns(servers);
    let lines: Vec<(String, Vec<String>)> = finding
        .rows
        .iter()
        .map(|row| (format!("{}, {}", row.what, row.unit), cells(row)))
        .collect();
    let first = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let width = |i: usize| {
        let longest = lines.iter().filter_map(|(_, cells)| Some(cells.get(i)?.len())).max();
        longest.unwrap_or(0).max(columns[i].len())
    };
    let line = |label: &str, cells: &[String]| {
        let cells = cells.iter().enumerate().map(|(i, cell)| format!("  {cell:>0$}", width(i)));
        format!("  {label:<first$}{}\n", cells.collect::<String>())
    };
    let mut text = format!("{}: {}\n", finding.name.to_uppercase(), finding.title);
    if !lines.is_empty() {
        text += &line("", &columns);
    }
    for (label, cells) in &lines {
        text += &line(label, cells);
    }
    if let Some(failure) = &finding.failure {
        text += &format!("  FAILED: {failure}\n");
    }
    for note in &finding.notes {
        text += &format!("  ({note})\n");
    }
    text
}

/// The report as Markdown.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = format!("{}; {}.\n\n", report.machine, report.generator);
    for server in &report.servers {
        let version = server.version.as_deref().unwrap_or("of unknown version");
        text += &format!("- {}: {version} (`{}`)\n", server.name, server.place);
    }
    for warning in &report.warnings {
        text += &format!("- Note: {warning}\n");
    }
    let columns = columns(&report.servers);
    for finding in &report.experiments {
        text += &format!("\n### {}: {}\n\n", finding.name.to_uppercase(), finding.title);
        text += &format!("{}\n\n", finding.what);
        if !finding.rows.is_empty() {
            text += &format!("| | {} |\n", columns.join(" | "));
            text += &format!("|---|{}\n", "--:|".repeat(columns.len()));
        }
        for row in &finding.rows {
            text += &format!("| {}, {} | {} |\n", row.what, row.unit, cells(row).join(" | "));
        }
        if let Some(failure) = &finding.failure {
            text += &format!("Failed: {failure}\n");
        }
        for note in &finding.notes {
            text += &format!("\nNote: {note}\n");
        }
    }
    text
}

/// The report as JSON.
#[must_use]
pub fn json(report: &Report) -> String {
    // The report contains only numbers and strings, so this cannot fail.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_is_shown_after_its_value() {
        let row = Row {
            what: "hash".to_owned(),
            unit: "bytes".to_owned(),
            better: Better::Less,
            article: None,
            values: vec![Some(2.0), Some(1.0)],
            details: vec![Some("listpack".to_owned()), None],
        };
        assert_eq!(cells(&row), ["-", "2.00 (listpack)", "1.00", "0.50 +"]);
    }

    #[test]
    fn numbers_have_thousands_separators() {
        for (n, wanted) in [
            (0.0, "0.00"),
            (0.01234, "0.0123"),
            (12.345, "12.35"),
            (-431.02, "-431.0"),
            (9805.4, "9805"),
            (13_823.0, "13,823"),
            (-1_234_567.8, "-1,234,568"),
        ] {
            assert_eq!(format_number(n), wanted);
        }
    }
}
