//! Metrics as text: the Prometheus text format 0.0.4 and OpenMetrics 1.0.
//!
//! Samples are collected by family and written one family at a time. The HELP and TYPE of a family are written once,
//! before all of its samples, regardless of the order in which samples were added. All differences between the two
//! formats are in this file. OpenMetrics names a family of counters without `_total`, calls a family without a known
//! type `unknown`, escapes quotes in HELP, and ends with `# EOF`.

use std::collections::HashMap;
use std::fmt::Write as _;

/// The format of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Format {
    Prometheus,
    OpenMetrics,
}

const OPEN_METRICS: &str = "application/openmetrics-text";

impl Format {
    /// Returns the format that an `Accept` header requests. This is OpenMetrics if the header names it with at least
    /// the weight that it gives to text.
    pub(in crate::http) fn accepted(accept: &str) -> Format {
        let (mut open, mut text) = (0, 0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let weight = parts.filter_map(|part| part.split_once('=')).find_map(|(name, value)| {
                name.trim().eq_ignore_ascii_case("q").then(|| thousandths(value.trim()))
            });
            let weight = weight.unwrap_or(1000);
            if kind.eq_ignore_ascii_case(OPEN_METRICS) {
                open = open.max(weight);
            } else if kind.eq_ignore_ascii_case("text/plain") {
                text = text.max(weight);
            }
        }
        if open > 0 && open >= text { Format::OpenMetrics } else { Format::Prometheus }
    }

    pub(in crate::http) fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Parses a weight from 0 to 1 and returns it in thousandths. An invalid weight counts as 0.
fn thousandths(value: &str) -> u32 {
    let weight = value.parse::<f64>().ok().filter(|weight| (0.0..=1.0).contains(weight));
    weight.map_or(0, |weight| (weight * 1000.0) as u32)
}

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
    /// Has the name of a gauge but increases like a counter. The exporter that defines these names does the same.
    Unknown,
}

impl Kind {
    /// Returns the type's name in the OpenMetrics format.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
            Kind::Unknown => "unknown",
        }
    }
}

/// Labels of a sample: names and values.
pub(super) type Labels<'l> = &'l [(&'l str, &'l str)];

struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    samples: String,
}

/// The families so far, in the order in which they were added.
#[derive(Default)]
pub(super) struct Families {
    all: Vec<Family>,
    by_name: HashMap<&'static str, usize>,
}

impl Families {
    /// Adds a sample to a family. Creates the family if there is none with this name. Names of counters end with
    /// `_total`.
    pub(super) fn add(
        &mut self,
        (name, kind, help): (&'static str, Kind, &'static str),
        labels: Labels<'_>,
        value: impl std::fmt::Display,
    ) {
        self.add_part((name, kind, help), "", labels, value);
    }

    /// Adds a sample for a part of a histogram or summary, for example `_sum`.
    pub(super) fn add_part(
        &mut self,
        (name, kind, help): (&'static str, Kind, &'static str),
        part: &str,
        labels: Labels<'_>,
        value: impl std::fmt::Display,
    ) {
        debug_assert_eq!(kind == Kind::Counter, name.ends_with("_total"), "{name}");
        let at = *self.by_name.entry(name).or_insert_with(|| {
            self.all.push(Family { name, kind, help, samples: String::new() });
            self.all.len() - 1
        });
        let out = &mut self.all[at].samples;
        out.push_str(name);
        out.push_str(part);
        for (number, (label, value)) in labels.iter().enumerate() {
            out.push(if number == 0 { '{' } else { ',' });
            out.push_str(label);
            out.push_str("=\"");
            escape(out, value, true);
            out.push('"');
        }
        if !labels.is_empty() {
            out.push('}');
        }
        // Writing to a string cannot fail.
        _ = writeln!(out, " {value}");
    }

    /// Returns the whole text.
    pub(super) fn text(self, format: Format) -> String {
        let is_open = format == Format::OpenMetrics;
        let room = self.all.iter().map(|family| family.samples.len() + 200).sum();
        let mut out = String::with_capacity(room);
        for family in self.all {
            let (mut name, mut kind) = (family.name, family.kind.word());
            if is_open {
                name = name.strip_suffix("_total").unwrap_or(name);
            } else if family.kind == Kind::Unknown {
                kind = "untyped";
            }
            _ = write!(out, "# HELP {name} ");
            escape(&mut out, family.help, is_open);
            _ = write!(out, "\n# TYPE {name} {kind}\n");
            out.push_str(&family.samples);
        }
        if is_open {
            out.push_str("# EOF\n");
        }
        out
    }
}

/// Writes text escaped for a label, with quotes, or for HELP.
fn escape(out: &mut String, text: &str, quotes: bool) {
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            letter => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_family_are_adjacent_and_named_by_format() {
        let families = || {
            let mut families = Families::default();
            let calls = ("a_total", Kind::Counter, "Says \"a\" and \\.");
            families.add(calls, &[("cmd", "x\"y\\z\nw"), ("b", "")], 1);
            families.add(("b", Kind::Unknown, "b"), &[], 2.5);
            families.add(calls, &[], 3);
            families.add_part(("h", Kind::Histogram, "h"), "_bucket", &[("le", "+Inf")], 4);
            families
        };
        // The escapes of the examples in both specifications.
        assert_eq!(
            families().text(Format::Prometheus),
            "# HELP a_total Says \"a\" and \\\\.\n# TYPE a_total counter\n\
             a_total{cmd=\"x\\\"y\\\\z\\nw\",b=\"\"} 1\na_total 3\n\
             # HELP b b\n# TYPE b untyped\nb 2.5\n\
             # HELP h h\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 4\n"
        );
        assert_eq!(
            families().text(Format::OpenMetrics),
            "# HELP a Says \\\"a\\\" and \\\\.\n# TYPE a counter\n\
             a_total{cmd=\"x\\\"y\\\\z\\nw\",b=\"\"} 1\na_total 3\n\
             # HELP b b\n# TYPE b unknown\nb 2.5\n\
             # HELP h h\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 4\n# EOF\n"
        );
    }

    #[test]
    fn the_format_with_the_higher_weight_is_used() {
        for (accept, format) in [
            ("", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("text/plain", Format::Prometheus),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("Application/OpenMetrics-Text; version=1.0.0", Format::OpenMetrics),
            ("application/openmetrics-text;q=0, */*", Format::Prometheus),
            ("application/openmetrics-text;q=x", Format::Prometheus),
            ("application/openmetrics-text;q=0.4,text/plain;q=0.5", Format::Prometheus),
            // The headers that Prometheus 2.40 and 3.0 send.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
                 version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.2",
                Format::OpenMetrics,
            ),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }
}
