//! A strict parser of metrics in the Prometheus text format 0.0.4 and in OpenMetrics 1.0. It is stricter than both
//! formats where monitoring systems differ in what they accept.

use std::collections::BTreeMap;

/// The meaning of the samples of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
    Unknown,
}

/// One line.
#[derive(Debug, Clone)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// All samples with one name.
#[derive(Debug)]
pub struct Family {
    pub kind: Kind,
    pub samples: Vec<Sample>,
}

/// A complete text. Counter families have the names of their samples in both formats.
#[derive(Debug)]
pub struct Exposition {
    pub families: BTreeMap<String, Family>,
}

impl Exposition {
    /// Parses a text in OpenMetrics or in the older format.
    ///
    /// # Panics
    /// If the text violates its specification.
    #[track_caller]
    pub fn parse(text: &str, is_open: bool) -> Exposition {
        let body = if is_open {
            text.strip_suffix("# EOF\n").expect("OpenMetrics ends with EOF")
        } else {
            text
        };
        assert!(body.ends_with('\n') && !body.contains("\n\n") && !body.contains("# EOF"));
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        let (mut current, mut helped) = (String::new(), None);
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("HELP has a text");
                assert!(is_name(name) && !help.is_empty(), "{line}");
                check_escapes(help, is_open);
                helped = Some(name.to_owned());
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, word) = rest.split_once(' ').expect("TYPE has a type");
                assert_eq!(helped.take().as_deref(), Some(name), "HELP stands above: {line}");
                let kind = kind(word, is_open);
                let is_counter = kind == Kind::Counter;
                current = match name.ends_with("_total") {
                    false if is_counter && is_open => format!("{name}_total"),
                    ends => {
                        assert_eq!(ends, is_counter, "{line}");
                        name.to_owned()
                    }
                };
                let before = families.insert(current.clone(), Family { kind, samples: Vec::new() });
                assert!(before.is_none(), "{name} comes twice");
            } else {
                let sample = sample(line);
                let family = families.get_mut(&current).expect("a sample has a family above it");
                let part = sample.name.strip_prefix(&current);
                let part = part.unwrap_or_else(|| panic!("{line} stands under {current}"));
                assert!(parts(family.kind).contains(&part), "{line}");
                let is_same =
                    |other: &Sample| (&other.name, &other.labels) == (&sample.name, &sample.labels);
                assert!(!family.samples.iter().any(is_same), "twice: {line}");
                family.samples.push(sample);
            }
        }
        for (name, family) in &families {
            assert!(!family.samples.is_empty(), "{name} has no samples");
            match family.kind {
                Kind::Histogram => check_histogram(name, family),
                Kind::Counter => {
                    assert!(family.samples.iter().all(|sample| sample.value >= 0.0), "{name}");
                }
                _ => {}
            }
        }
        Exposition { families }
    }

    /// The value of the only sample with this name and at least these labels.
    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &&Sample| {
            let same = |(label, value): &(&str, &str)| {
                sample.labels.get(*label).is_some_and(|found| found == value)
            };
            sample.name == name && labels.iter().all(same)
        };
        let found: Vec<&Sample> = self.samples().filter(has).collect();
        assert_eq!(found.len(), 1, "{name}{labels:?}: {found:?}");
        found[0].value
    }

    /// The sum over all samples of this name.
    pub fn sum(&self, name: &str) -> f64 {
        self.samples().filter(|sample| sample.name == name).map(|sample| sample.value).sum()
    }

    /// Reports whether there is a sample with this name.
    pub fn has_sample(&self, name: &str) -> bool {
        self.samples().any(|sample| sample.name == name)
    }

    /// Violations of the Prometheus naming conventions, by the rules of `promtool check metrics`.
    /// `parse` already checks that HELP is present and that only counters end in `_total`.
    pub fn lint(&self) -> Vec<String> {
        self.families.iter().flat_map(|(name, family)| lint(name, family)).collect()
    }

    fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.families.values().flat_map(|family| &family.samples)
    }
}

/// Abbreviations of units, which must be written out in names.
const ABBREVIATED_UNITS: [&str; 15] =
    ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d", "min"];
/// Units that must be replaced in names with the base units, seconds and bytes.
const DERIVED_UNITS: [&str; 10] = [
    "milliseconds",
    "microseconds",
    "nanoseconds",
    "minutes",
    "hours",
    "days",
    "bits",
    "kilobytes",
    "megabytes",
    "gigabytes",
];

fn lint(name: &str, family: &Family) -> Vec<String> {
    let is_histogram = family.kind == Kind::Histogram;
    let is_summed = is_histogram || family.kind == Kind::Summary;
    let mut found = Vec::new();
    let mut object = |is_wrong: bool, why: &str| {
        if is_wrong {
            found.push(format!("{name}: {why}"));
        }
    };
    for word in name.split('_') {
        object(ABBREVIATED_UNITS.contains(&word), "abbreviated unit");
        object(DERIVED_UNITS.contains(&word), "no base unit");
        let types = ["counter", "gauge", "histogram", "summary", "untyped"];
        object(types.contains(&word), "type in the name");
    }
    object(name.ends_with("_bucket") && !is_histogram, "suffix of a histogram");
    let is_part = name.ends_with("_count") || name.ends_with("_sum");
    object(is_part && !is_summed, "suffix of a histogram or summary");
    let labels = || family.samples.iter().flat_map(|sample| sample.labels.keys());
    object(labels().any(|label| label == "le") && !is_histogram, "label of a histogram");
    let has_quantile = labels().any(|label| label == "quantile");
    object(has_quantile && family.kind != Kind::Summary, "label of a summary");
    let is_snake_case = |name: &str| !name.bytes().any(|byte| byte.is_ascii_uppercase());
    object(!is_snake_case(name) || !labels().all(|label| is_snake_case(label)), "camel case");
    found
}

#[track_caller]
fn kind(word: &str, is_open: bool) -> Kind {
    match word {
        "counter" => Kind::Counter,
        "gauge" => Kind::Gauge,
        "histogram" => Kind::Histogram,
        "summary" => Kind::Summary,
        "unknown" if is_open => Kind::Unknown,
        "untyped" if !is_open => Kind::Unknown,
        _ => panic!("there is no type {word}"),
    }
}

fn parts(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Histogram => &["_bucket", "_sum", "_count"],
        Kind::Summary => &["", "_sum", "_count"],
        _ => &[""],
    }
}

fn is_name(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_of_name)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
}

#[track_caller]
fn check_escapes(text: &str, quotes: bool) {
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' {
            let next = letters.next();
            assert!(matches!(next, Some('\\' | 'n')) || (quotes && next == Some('"')), "{text}");
        } else {
            assert!(letter != '"' || !quotes, "{text}");
        }
    }
}

#[track_caller]
fn sample(line: &str) -> Sample {
    let name_end = line.find(['{', ' ']).expect("a sample has a value");
    let (name, mut rest) = line.split_at(name_end);
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        let mut left = inside;
        loop {
            let (label, after) = left.split_once("=\"").expect("a label has a value");
            assert!(is_name(label), "{line}");
            let (value, after) = label_value(after);
            assert!(labels.insert(label.to_owned(), value).is_none(), "twice: {line}");
            match after.strip_prefix(',') {
                Some(further) => left = further,
                None => {
                    rest = after.strip_prefix('}').expect("labels end");
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ').expect("a space stands before the value");
    let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
    assert!(value.is_finite(), "{line}");
    Sample { name: name.to_owned(), labels, value }
}

/// A value up to its closing quote, and what follows it.
#[track_caller]
fn label_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[at + 1..]),
            '\\' => match letters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, letter @ ('\\' | '"'))) => value.push(letter),
                other => panic!("escape {other:?} in {text}"),
            },
            letter => value.push(letter),
        }
    }
    panic!("no closing quote: {text}");
}

/// Checks that bucket counts grow with their bounds, and that the last bucket, without a bound, is the count.
#[track_caller]
fn check_histogram(name: &str, family: &Family) {
    let mut series: BTreeMap<BTreeMap<String, String>, Vec<&Sample>> = BTreeMap::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        labels.remove("le");
        series.entry(labels).or_default().push(sample);
    }
    for (labels, samples) in series {
        let is = |part: &str| format!("{name}{part}");
        let buckets: Vec<&&Sample> =
            samples.iter().filter(|sample| sample.name == is("_bucket")).collect();
        let bounds: Vec<f64> = buckets
            .iter()
            .map(|sample| match sample.labels["le"].as_str() {
                "+Inf" => f64::INFINITY,
                bound => bound.parse().expect("a bound is a number"),
            })
            .collect();
        assert!(bounds.is_sorted_by(|one, next| one < next), "{name}{labels:?}: {bounds:?}");
        assert!(buckets.is_sorted_by(|one, next| one.value <= next.value), "{name}{labels:?}");
        assert_eq!(bounds.last(), Some(&f64::INFINITY));
        let of = |part: &str| samples.iter().find(|sample| sample.name == is(part));
        let count = of("_count").expect("a histogram has a count").value;
        assert_eq!(buckets.last().map(|last| last.value), Some(count), "{name}{labels:?}");
        assert!(of("_sum").is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_against_the_conventions_are_found() {
        // `promtool check metrics` 2.42 reports a problem in each line except the first.
        for (line, kind, objections) in [
            ("a_bytes 1", "gauge", 0),
            ("a_time_ms_total 1", "counter", 1),
            ("a_duration_sec 1", "gauge", 1),
            ("a_ops_per_sec 1", "gauge", 1),
            ("a_milliseconds 1", "gauge", 1),
            ("a_count 1", "gauge", 1),
            ("a_sum 1", "gauge", 1),
            ("a_bucket 1", "gauge", 1),
            ("a_gauge 1", "gauge", 1),
            ("aB 1", "gauge", 1),
            ("a{bC=\"\"} 1", "gauge", 1),
            ("a{le=\"1\"} 1", "gauge", 1),
            ("a{quantile=\"1\"} 1", "gauge", 1),
        ] {
            let name = line.split([' ', '{']).next().unwrap_or_default();
            let text = format!("# HELP {name} x\n# TYPE {name} {kind}\n{line}\n");
            let found = Exposition::parse(&text, false).lint();
            assert_eq!(found.len(), objections, "{line}: {found:?}");
        }
    }
}
