//! The measured tables of `docs/benchmarks.md`, and their plot.

use super::text::{between_markers, cell};
use crate::bench::report::format_number;
use crate::bench::results::{CaseResult, Measured, Results, RowResult};
use anyhow::Result;
use std::fmt::Write as _;

/// Cases with a row for each command. They have tables of their own.
const LISTS: [&str; 3] = ["every", "large", "strings"];

/// Replaces the tables of the page by those of the results.
///
/// # Errors
/// If the page lacks a marker.
pub(super) fn page(text: &str, results: &Results) -> Result<String> {
    let (with_peer, alone): (Vec<&CaseResult>, Vec<&CaseResult>) = results
        .cases
        .iter()
        .filter(|case| !LISTS.contains(&case.name.as_str()))
        .partition(|case| case.has_peer);
    let text = between_markers(text, "conditions", &conditions(results))?;
    let text = between_markers(&text, "results", &bounded(&with_peer, &results.peers))?;
    let own = ["compared with".to_owned()];
    let text = between_markers(&text, "results of settings", &bounded(&alone, &own))?;
    LISTS.into_iter().try_fold(text, |text, name| {
        let case = results.cases.iter().find(|case| case.name == name);
        let table = case.map_or_else(String::new, |case| list(case, &results.peers));
        between_markers(&text, &format!("results of {name}"), &table)
    })
}

fn conditions(results: &Results) -> String {
    let Results { date, machine, rounds, scale, ours, peers, cases, .. } = results;
    let minutes = cases.iter().map(|case| case.seconds).sum::<u64>() / 60;
    let mut out = format!(
        "- Date and machine: {date}, {machine}\n- Servers: {ours} (commit {}), {}\n- Rounds: {rounds}; scale: {scale}; \
         duration of the run: {minutes} minutes\n",
        results.commits().join(", "),
        peers.join(", ")
    );
    for case in cases {
        for failure in &case.failures {
            _ = writeln!(out, "- Not measured completely: {}: {}", case.name, cell(failure));
        }
    }
    out
}

/// Column titles for our result and those of the peers.
fn titles(peers: &[String]) -> String {
    peers.iter().fold("| Brisk ".to_owned(), |out, peer| out + &format!("| {peer} | ratio "))
}

/// Alignments for the columns of [`titles`].
fn alignments(peers: &[String]) -> String {
    format!("|--:{}", "|--:|--:".repeat(peers.len()))
}

/// Our result next to the first peer, and the result and the ratio of each peer.
fn values(row: &RowResult, peers: usize) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), format_number);
    let ours = row.measured.iter().flatten().next().map(|measured| measured.ours);
    let mut out = format!("| {} ", number(ours));
    for at in 0..peers {
        let measured = row.measured.get(at).copied().flatten();
        let ratio = measured.and_then(Measured::ratio);
        let ratio = ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
        _ = write!(out, "| {} | {ratio} ", number(measured.and_then(|measured| measured.theirs)));
    }
    out
}

/// The rows that have a bound.
fn bounded(cases: &[&CaseResult], peers: &[String]) -> String {
    let mut out = format!(
        "| case | measured | unit {}| bound | result |\n|---|---|---{}|---|---|\n",
        titles(peers),
        alignments(peers)
    );
    for case in cases {
        for row in &case.rows {
            let Some(is_met) = row.is_met() else { continue };
            _ = writeln!(
                out,
                "| {} | {} | {} {}| {} | {} |",
                case.name,
                cell(&row.what),
                row.unit,
                values(row, peers.len()),
                row.limit.text(),
                if is_met { "met" } else { "**missed**" }
            );
        }
    }
    out
}

/// All rows of a case.
fn list(case: &CaseResult, peers: &[String]) -> String {
    let is_one_unit =
        case.rows.iter().all(|row| Some(&row.unit) == case.rows.first().map(|row| &row.unit));
    let unit = if is_one_unit { "" } else { "| unit " };
    let mut out = format!(
        "| command {unit}{}|\n|---{}{}|\n",
        titles(peers),
        if is_one_unit { "" } else { "|---" },
        alignments(peers)
    );
    for row in &case.rows {
        let unit = if is_one_unit { String::new() } else { format!("| {} ", row.unit) };
        _ = writeln!(out, "| {} {unit}{}|", cell(&row.what), values(row, peers.len()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = r#"{
        "date": "2026-11-29", "machine": "2 x AMD EPYC", "rounds": 5, "scale": 1.0,
        "ours": "Brisk 0.1.0", "peers": ["Redis 7.0.15", "Valkey 8.0.1"],
        "cases": [
            {"name": "throughput", "about": "GET", "commit": "1415f15045", "seconds": 125, "has_peer": true,
             "failures": ["Valkey 8.0.1: no port"], "rows": [
                {"what": "GET P1", "unit": "CPU µs/op", "limit": {"ratio": 0.75},
                 "measured": [{"ours": 4.5, "theirs": 6.0}, {"ours": 4.4, "theirs": 5.5}]},
                {"what": "GET P1", "unit": "req/s", "limit": "none",
                 "measured": [{"ours": 100.0, "theirs": 80.0}]}]},
            {"name": "workers", "about": "two", "commit": "1415f15045", "seconds": 1, "has_peer": false, "rows": [
                {"what": "LCS", "unit": "req/s", "limit": {"ratio_at_least": 1.9},
                 "measured": [{"ours": 1870.0, "theirs": 1000.0}]}]},
            {"name": "every", "about": "all", "commit": "1415f15046", "seconds": 1, "has_peer": true, "rows": [
                {"what": "`A|B`", "unit": "CPU µs/op", "limit": {"ratio": 1.0},
                 "measured": [{"ours": 0.5, "theirs": null}, null]}]}
        ]}"#;

    #[test]
    fn the_tables_contain_the_results_and_their_bounds() {
        let names = ["conditions", "results", "results of settings"].map(str::to_owned);
        let lists = LISTS.map(|name| format!("results of {name}"));
        let markers = |name: &String| format!("<!-- {name} -->\n<!-- /{name} -->\n");
        let text: String = names.iter().chain(&lists).map(markers).collect();
        let page = page(&text, &Results::parse(RESULTS).unwrap()).unwrap();
        for line in [
            "- Servers: Brisk 0.1.0 (commit 1415f15045, 1415f15046), Redis 7.0.15, Valkey 8.0.1",
            "- Rounds: 5; scale: 1; duration of the run: 2 minutes",
            "- Not measured completely: throughput: Valkey 8.0.1: no port",
            "| case | measured | unit | Brisk | Redis 7.0.15 | ratio | Valkey 8.0.1 | ratio | bound | result |",
            "| throughput | GET P1 | CPU µs/op | 4.500 | 6.000 | 0.75 | 5.500 | 0.80 | ratio ≤ 0.75 | met |",
            "| workers | LCS | req/s | 1870 | 1000 | 1.87 | ratio ≥ 1.9 | **missed** |",
            "| command | Brisk | Redis 7.0.15 | ratio | Valkey 8.0.1 | ratio |",
            "| `A\\|B` | 0.500 | – | – | – | – |",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\n{page}");
        }
        assert!(!page.contains("80.0"), "{page}");
    }
}
