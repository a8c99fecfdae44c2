//! Tables of the results: medians over the rounds, and medians of the ratios to each of the other clients.

use crate::NAMES;
use crate::cases::{Case, Measurements};
use std::collections::BTreeMap;
use std::fmt::Write;

pub(crate) type Found = BTreeMap<&'static str, Vec<Measurements>>;
pub(crate) type Results = Vec<(&'static Case, Found)>;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn of(rounds: &[Measurements], metric: impl Fn(&Measurements) -> f64) -> f64 {
    median(rounds.iter().map(metric).collect())
}

/// The median over the rounds of the ratio of our result to another client's.
fn ratio(ours: &[Measurements], theirs: &[Measurements], metric: impl Fn(&Measurements) -> f64) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| metric(ours) / metric(theirs)).collect())
}

fn others(found: &Found) -> impl Iterator<Item = (&'static str, &Vec<Measurements>)> {
    NAMES.iter().filter_map(|name| {
        (*name != "brisk").then(|| found.get(name).map(|rounds| (*name, rounds))).flatten()
    })
}

/// One case, for a terminal.
pub(crate) fn table(case: &Case, found: &Found) -> String {
    let mut text = format!(
        "{:10} {:>10} {:>9} {:>9} {:>8} {:>8}  {}\n",
        case.name, "per s", "p50 us", "p99 us", "CPU us", "server", case.extra.unwrap_or_default()
    );
    for name in NAMES {
        let Some(rounds) = found.get(name) else { continue };
        let _ = write!(
            text,
            "{name:10} {:>10.0} {:>9.1} {:>9.1} {:>8.3} {:>8.3}",
            of(rounds, |f| f.per_s), of(rounds, |f| f.p50_us), of(rounds, |f| f.p99_us),
            of(rounds, |f| f.cpu_us), of(rounds, |f| f.server_cpu_us)
        );
        if case.extra.is_some() {
            let _ = write!(text, "  {:.2}", of(rounds, |f| f.extra.unwrap_or_default()));
        }
        if name == "brisk" {
            for (other, theirs) in others(found) {
                let of = |metric: fn(&Measurements) -> f64| ratio(rounds, theirs, metric);
                let _ = match case.is_memory() {
                    true => write!(text, "  {other}: {:.2}", of(|f| f.extra.unwrap_or_default())),
                    false => write!(
                        text,
                        "  {other}: rate {:.2} p50 {:.2} CPU {:.2}",
                        of(|f| f.per_s), of(|f| f.p50_us), of(|f| f.cpu_us)
                    ),
                };
            }
        }
        text.push('\n');
    }
    text
}

/// All cases, as a table for a document. The number in parentheses is the ratio of our result to theirs.
pub(crate) fn markdown(results: &Results) -> String {
    let mut text = String::from(
        "| case | client | per s | p50 µs | p99 µs | CPU µs | server CPU µs | besides |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for (case, found) in results {
        for name in NAMES {
            let Some(rounds) = found.get(name) else { continue };
            let ours = found.get("brisk").filter(|_| name != "brisk");
            let cell = |metric: fn(&Measurements) -> f64, digits: usize| {
                let value = of(rounds, metric);
                if case.is_memory() {
                    return "–".to_owned();
                }
                match ours {
                    Some(ours) => format!("{value:.digits$} ({:.2})", ratio(ours, rounds, metric)),
                    None => format!("{value:.digits$}"),
                }
            };
            let extra = case.extra.map_or_else(String::new, |what| {
                format!("{:.2} {what}", of(rounds, |f| f.extra.unwrap_or_default()))
            });
            let _ = writeln!(
                text,
                "| `{}` | {name} | {} | {} | {} | {} | {} | {extra} |",
                case.name, cell(|f| f.per_s, 0), cell(|f| f.p50_us, 1), cell(|f| f.p99_us, 1),
                cell(|f| f.cpu_us, 3), cell(|f| f.server_cpu_us, 3)
            );
        }
    }
    text
}
