//! The outcome of a case: a table for people, JSON lines for programs.

use super::results::Measured;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One result of our server, with that of the peer.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) ours: f64,
    pub(crate) theirs: Option<f64>,
    /// The limit for our result.
    pub(crate) limit: Limit,
}

/// The limit for a result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// None; shown for information.
    None,
    /// The largest ratio of our result to the peer's.
    Ratio(f64),
    /// The smallest ratio of our result to the peer's.
    RatioAtLeast(f64),
    /// The largest value of our result, in the row's unit.
    Most(f64),
    /// The smallest value of our result, in the row's unit.
    Least(f64),
}

impl Limit {
    pub(crate) fn text(self) -> String {
        match self {
            Limit::None => String::new(),
            Limit::Ratio(r) => format!("ratio ≤ {r}"),
            Limit::RatioAtLeast(r) => format!("ratio ≥ {r}"),
            Limit::Most(n) => format!("≤ {n}"),
            Limit::Least(n) => format!("≥ {n}"),
        }
    }

    /// Reports whether a result is within the limit; `None` without a limit, or if the peer has no result.
    pub(crate) fn is_met(self, measured: Measured) -> Option<bool> {
        match self {
            Limit::None => None,
            Limit::Ratio(r) => measured.ratio().map(|ratio| ratio <= r),
            Limit::RatioAtLeast(r) => measured.ratio().map(|ratio| ratio >= r),
            Limit::Most(n) => Some(measured.ours <= n),
            Limit::Least(n) => Some(measured.ours >= n),
        }
    }
}

impl Row {
    fn measured(&self) -> Measured {
        Measured { ours: self.ours, theirs: self.theirs }
    }

    fn ratio(&self) -> Option<f64> {
        self.measured().ratio()
    }

    fn is_met(&self) -> Option<bool> {
        self.limit.is_met(self.measured())
    }
}

/// The rows of a case.
pub(crate) struct Report {
    case: &'static str,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) const fn new(case: &'static str) -> Report {
        Report { case, rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds a row without a peer.
    pub(crate) fn ours(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        ours: f64,
        limit: Limit,
    ) {
        self.add(Row { what: what.into(), unit, ours, theirs: None, limit });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    /// The rows that exceed their limit.
    pub(crate) fn missed(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_met() == Some(false))
    }

    /// The table in Markdown.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "\n### {}\n\n| what | unit | ours | peer | ours/peer | limit | |\n|---|---|--:|--:|--:|---|---|\n",
            self.case
        );
        for row in &self.rows {
            let optional = |n: Option<f64>| n.map_or("–".to_owned(), format_number);
            let verdict = match row.is_met() {
                Some(true) => "ok",
                Some(false) => "MISSED",
                None => "",
            };
            text += &format!(
                "| {} | {} | {} | {} | {} | {} | {verdict} |\n",
                row.what,
                row.unit,
                format_number(row.ours),
                optional(row.theirs),
                row.ratio().map_or("–".to_owned(), |r| format!("{r:.2}")),
                row.limit.text(),
            );
        }
        text
    }

    /// One JSON object per row.
    pub(crate) fn json_lines(&self) -> String {
        let line = |row: &Row| {
            json!({
                "case": self.case, "what": row.what, "unit": row.unit, "ours": row.ours,
                "peer": row.theirs, "ratio": row.ratio(), "limit": row.limit.text(),
                "kept": row.is_met(),
            })
            .to_string()
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A number with about three significant digits.
pub(crate) fn format_number(n: f64) -> String {
    match n.abs() {
        a if a >= 1000.0 => format!("{n:.0}"),
        a if a >= 10.0 => format!("{n:.1}"),
        _ => format!("{n:.3}"),
    }
}

/// The middle of `values`, or the mean of the two middle ones.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn a_missed_limit_is_named() {
        let mut report = Report::new("x");
        report.add(Row {
            what: "GET".into(),
            unit: "µs",
            ours: 2.0,
            theirs: Some(1.0),
            limit: Limit::Ratio(0.5),
        });
        assert!(report.table().contains("MISSED"));
        assert!(report.json_lines().contains("\"kept\":false"));
    }
}
