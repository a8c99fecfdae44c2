//! The results of experiments as plain data, for tables and reports.

use crate::compare::statistics::median;
use crate::outcome::Summary;
use serde::Serialize;

/// The result of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The name on the command line.
    pub name: String,
    /// A short title.
    pub title: String,
    /// A description of the experiment.
    pub what: String,
    /// The results.
    pub rows: Vec<Row>,
    /// Results over a range of inputs.
    pub plots: Vec<Plot>,
    /// Additional notes for readers.
    pub notes: Vec<String>,
    /// If the experiment failed, the reason.
    pub failure: Option<String>,
    /// The duration of the experiment.
    pub seconds: f64,
}

/// One metric, for all servers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The measured quantity.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// Whether higher or lower is better.
    pub better: Better,
    /// The value that the article measured on its machine.
    pub article: Option<f64>,
    /// Medians over the rounds, by server, in the order of the report's servers.
    pub values: Vec<Option<f64>>,
    /// Texts that are shown after the values, by server; empty if no value has one.
    pub details: Vec<Option<String>>,
}

/// Whether higher or lower values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Higher is better.
    More,
    /// Lower is better.
    Less,
    /// Neither is better.
    Neither,
}

/// The comparison of a number with that of the first server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Better by more than 5%.
    Win,
    /// Worse by more than 5%.
    Loss,
    /// Neither, or it cannot be determined.
    Even,
}

/// The largest relative difference that is not reported as better or worse. Differences of this size are not
/// significant without many rounds.
const EVEN_WITHIN: f64 = 0.05;

impl Better {
    /// The meaning of a ratio to the first server.
    #[must_use]
    pub fn verdict(self, ratio: f64) -> Verdict {
        let gain = match self {
            Better::More => ratio,
            Better::Less => 1.0 / ratio,
            Better::Neither => 1.0,
        };
        match gain {
            gain if gain > 1.0 + EVEN_WITHIN => Verdict::Win,
            gain if gain < 1.0 / (1.0 + EVEN_WITHIN) => Verdict::Loss,
            _ => Verdict::Even,
        }
    }
}

impl Row {
    /// The value of a server divided by that of the first server.
    #[must_use]
    pub fn ratio(&self, server: usize) -> Option<f64> {
        let (value, base) = ((*self.values.get(server)?)?, (*self.values.first()?)?);
        (server > 0 && base != 0.0).then(|| value / base)
    }

    /// The article's value divided by that of the first server.
    #[must_use]
    pub fn article_ratio(&self) -> Option<f64> {
        let (article, base) = (self.article?, (*self.values.first()?)?);
        (base != 0.0).then(|| article / base)
    }
}

/// A plot of lines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The quantity of the horizontal axis.
    pub x: String,
    /// The quantity of the vertical axis.
    pub y: String,
    /// True if both axes are logarithmic. Otherwise the vertical axis begins at 0.
    pub logarithmic: bool,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line of a plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The name in the legend.
    pub name: String,
    /// Index of the server that determines the color; `None` if the line does not belong to a server.
    pub server: Option<usize>,
    /// True if the values were computed rather than measured.
    pub computed: bool,
    /// The points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// One measured value of one server in one round, with its description.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    what: String,
    unit: &'static str,
    better: Better,
    article: Option<f64>,
    value: Option<f64>,
    /// A text that is shown after the value.
    detail: Option<String>,
    /// True if the generator was the limit, so that the server may be better than this value.
    limited: bool,
}

impl Measurement {
    /// A value of which more is better.
    pub fn more(what: impl Into<String>, unit: &'static str, value: f64) -> Measurement {
        Measurement::new(what.into(), unit, Better::More, Some(value))
    }

    /// A value of which less is better; `None` if it could not be measured.
    pub fn less(
        what: impl Into<String>,
        unit: &'static str,
        value: impl Into<Option<f64>>,
    ) -> Measurement {
        Measurement::new(what.into(), unit, Better::Less, value.into())
    }

    /// A value that is neither good nor bad.
    pub fn plain(what: impl Into<String>, unit: &'static str, value: f64) -> Measurement {
        Measurement::new(what.into(), unit, Better::Neither, Some(value))
    }

    fn new(what: String, unit: &'static str, better: Better, value: Option<f64>) -> Measurement {
        Measurement { what, unit, better, article: None, value, detail: None, limited: false }
    }

    /// Adds the value that the article measured, if there is one.
    #[must_use]
    pub fn article(mut self, value: impl Into<Option<f64>>) -> Measurement {
        self.article = value.into();
        self
    }

    /// Adds a text that is shown after the value, if there is one.
    #[must_use]
    pub fn detail(mut self, detail: Option<String>) -> Measurement {
        self.detail = detail;
        self
    }

    /// Records whether the generator was the limit of the run that produced this value.
    #[must_use]
    pub fn limited_as(mut self, run: &Summary) -> Measurement {
        self.limited = run.generator.limit.is_some();
        self
    }
}

/// A sentence that lists the results, by server and round, for which the generator was the limit rather than the
/// server.
#[must_use]
pub fn limits(measurements: &[Vec<Vec<Measurement>>], names: &[&str]) -> Option<String> {
    let first = measurements.first().and_then(|rounds| rounds.first())?;
    let limited = first.iter().enumerate().filter_map(|(i, measurement)| {
        let limits = |rounds: &Vec<Vec<Measurement>>| {
            rounds.iter().any(|round| round.get(i).is_some_and(|measurement| measurement.limited))
        };
        let servers = names.iter().zip(measurements).filter(|(_, rounds)| limits(rounds));
        let servers: Vec<&str> = servers.map(|(name, _)| *name).collect();
        (!servers.is_empty()).then(|| format!("{} ({})", measurement.what, servers.join(", ")))
    });
    let limited: Vec<String> = limited.collect();
    (!limited.is_empty()).then(|| {
        format!(
            "in these rows the load generator was the bottleneck, so the servers may be faster \
             than shown: {}",
            limited.join("; ")
        )
    })
}

/// The rows for results that are grouped by server and then by round. All lists contain the same kinds of results.
#[must_use]
pub fn rows(measurements: &[Vec<Vec<Measurement>>]) -> Vec<Row> {
    let Some(first) = measurements.first().and_then(|rounds| rounds.first()) else {
        return Vec::new();
    };
    let row = |(i, measurement): (usize, &Measurement)| {
        let values = measurements.iter().map(|rounds| {
            let of_round =
                |round: &Vec<Measurement>| round.get(i).and_then(|measurement| measurement.value);
            let values: Vec<f64> = rounds.iter().filter_map(of_round).collect();
            (!values.is_empty()).then(|| median(&values))
        });
        let details = measurements.iter().map(|rounds| rounds.first()?.get(i)?.detail.clone());
        Row {
            what: measurement.what.clone(),
            unit: measurement.unit.to_owned(),
            better: measurement.better,
            article: measurement.article,
            values: values.collect(),
            details: details.collect(),
        }
    };
    first.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_medians_by_server() {
        let round = |rate, cpu: Option<f64>| {
            vec![
                Measurement::more("rate", "requests/s", rate).article(10.0),
                Measurement::less("CPU", "us", cpu),
            ]
        };
        let measurements = [
            vec![round(1.0, Some(5.0)), round(3.0, None), round(2.0, Some(7.0))],
            vec![round(4.0, None), round(8.0, None), round(6.0, None)],
        ];
        let rows = rows(&measurements);
        assert_eq!(rows[0].values, [Some(2.0), Some(6.0)]);
        assert_eq!(
            (rows[0].article, rows[0].ratio(1), rows[0].ratio(0)),
            (Some(10.0), Some(3.0), None)
        );
        assert_eq!((rows[1].values.clone(), rows[1].ratio(1)), (vec![Some(6.0), None], None));
        assert_eq!((rows[0].article_ratio(), rows[1].article_ratio()), (Some(5.0), None));
    }

    #[test]
    fn measurements_limited_by_the_generator_are_named_with_the_servers() {
        let measurement =
            |what: &str, limited| Measurement { limited, ..Measurement::more(what, "/s", 1.0) };
        let round = |one, other| vec![measurement("one", one), measurement("other", other)];
        let quiet = [vec![round(false, false)], vec![round(false, false)]];
        assert_eq!(limits(&quiet, &["a", "b"]), None);
        // The generator was the limit in one of two rounds.
        let measurements = [
            vec![round(false, true), round(false, false)],
            vec![round(false, false), round(true, true)],
        ];
        let text = limits(&measurements, &["a", "b"]).unwrap_or_default();
        assert!(text.ends_with("shown: one (b); other (a, b)"), "{text}");
    }

    #[test]
    fn a_verdict_respects_the_better_direction() {
        assert_eq!(Better::More.verdict(1.5), Verdict::Win);
        assert_eq!(Better::Less.verdict(1.5), Verdict::Loss);
        assert_eq!(Better::Less.verdict(0.5), Verdict::Win);
        assert_eq!(Better::More.verdict(0.9), Verdict::Loss);
        assert_eq!(Better::More.verdict(1.03), Verdict::Even);
        assert_eq!(Better::Neither.verdict(9.0), Verdict::Even);
    }
}
