//! The report: experiments and comparisons as one self-contained HTML file.
//!
//! | file | contents |
//! |---|---|
//! | `comparison` | tables and plots of a comparison |
//! | `plot`, `bars` | lines and bars as SVG |
//! | `svg` | a plot as a separate file, for other pages |
//! | `style.css`, `svg.css` | the styles, light or dark according to the reader's system |
//!
//! Every number on the page comes from the [`Report`]. All external text is escaped.

mod bars;
mod comparison;
mod plot;
pub mod svg;

use crate::compare::{Comparison, ServerInfo};
use crate::experiments::finding::{Finding, Row, Verdict};
use crate::experiments::render::{cells, columns};
use serde::Serialize;
use std::path::Path;

const STYLE: &str = include_str!("style.css");

/// The contents of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// CPUs, memory, kernel.
    pub machine: String,
    /// Name and version of the generator.
    pub generator: String,
    /// The servers. The numbers of the others are compared with those of the first.
    pub servers: Vec<ServerInfo>,
    /// The results of the experiments, in order.
    pub experiments: Vec<Finding>,
    /// A comparison in addition to the experiments or instead of them. It has its own servers.
    pub comparison: Option<Comparison>,
    /// Caveats for readers of the numbers.
    pub warnings: Vec<String>,
}

impl Report {
    /// A report without results yet.
    #[must_use]
    pub fn new(machine: String, servers: Vec<ServerInfo>) -> Report {
        Report {
            machine,
            generator: concat!("brisk-benchmark ", env!("CARGO_PKG_VERSION")).to_owned(),
            servers,
            experiments: Vec::new(),
            comparison: None,
            warnings: Vec::new(),
        }
    }

    /// The report of a comparison.
    #[must_use]
    pub fn of(comparison: Comparison) -> Report {
        Report {
            machine: comparison.machine.clone(),
            generator: comparison.generator.clone(),
            servers: comparison.servers.clone(),
            experiments: Vec::new(),
            warnings: comparison.warnings.clone(),
            comparison: Some(comparison),
        }
    }

    /// The number of failed experiments.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.experiments.iter().filter(|finding| finding.failure.is_some()).count()
    }

    /// The whole page.
    #[must_use]
    pub fn html(&self) -> String {
        let title = match self.experiments.is_empty() {
            true => "Servers side by side",
            false => "Experiments",
        };
        let names: Vec<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
        let title = format!("{title}: {}", names.join(", "));
        let mut body = self.head(&title);
        body += &self.contents();
        for finding in &self.experiments {
            body += &self.experiment(finding);
        }
        if let Some(comparison) = &self.comparison {
            body += &comparison::section(comparison);
        }
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\
             </main>\n</body>\n</html>\n",
            escaped(&title)
        )
    }

    /// Writes the page to a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), String> {
        std::fs::write(path, self.html()).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn head(&self, title: &str) -> String {
        let mut text = format!("<header>\n<h1>{}</h1>\n", escaped(title));
        text += &format!(
            "<p class=\"machine\">{}; {}</p>\n<ul class=\"servers\">\n",
            escaped(&self.machine),
            escaped(&self.generator)
        );
        for (i, server) in self.servers.iter().enumerate() {
            let version = server.version.as_deref().unwrap_or("of unknown version");
            text += &format!(
                "<li><span class=\"swatch b{}\"></span><b>{}</b> {} <code>{}</code></li>\n",
                plot::color(Some(i)),
                escaped(&server.name),
                escaped(version),
                escaped(&server.place)
            );
        }
        text += "</ul>\n";
        for warning in &self.warnings {
            text += &format!("<p class=\"warning\">{}</p>\n", escaped(warning));
        }
        text + "</header>\n"
    }

    /// Links to the experiments, with the counts of better and worse numbers.
    fn contents(&self) -> String {
        if self.experiments.len() < 2 {
            return String::new();
        }
        let mut text = "<nav>\n<table>\n<thead><tr><th>experiment</th><th></th>".to_owned();
        for server in self.servers.iter().skip(1) {
            let first = self.servers.first().map_or("", |server| server.name.as_str());
            text += &format!(
                "<th class=\"n\">{} compared with {}</th>",
                escaped(&server.name),
                escaped(first)
            );
        }
        text += "</tr></thead>\n<tbody>\n";
        for finding in &self.experiments {
            text += &format!(
                "<tr><td><a href=\"#{0}\">{1}</a></td><td>{2}</td>",
                escaped(&finding.name),
                escaped(&finding.name.to_uppercase()),
                escaped(&finding.title)
            );
            for server in 1..self.servers.len() {
                let count = |verdict| count(&finding.rows, server, verdict);
                let part = |verdict, word| match count(verdict) {
                    0 => String::new(),
                    n => format!("<span class=\"{}\">{n} {word}</span> ", class(verdict)),
                };
                text += &format!(
                    "<td class=\"n\">{}{}{}</td>",
                    part(Verdict::Win, "better"),
                    part(Verdict::Even, "even"),
                    part(Verdict::Loss, "worse")
                );
            }
            text += "</tr>\n";
        }
        text + "</tbody>\n</table>\n</nav>\n"
    }

    fn experiment(&self, finding: &Finding) -> String {
        let mut text = format!(
            "<section id=\"{}\">\n<h2><span class=\"id\">{}</span> {}</h2>\n<p>{}</p>\n",
            escaped(&finding.name),
            escaped(&finding.name.to_uppercase()),
            escaped(&finding.title),
            prose(&finding.what)
        );
        if !finding.rows.is_empty() {
            text += &table(&finding.rows, &self.servers);
        }
        let mut plots: String = finding.plots.iter().map(plot::lines).collect();
        if plots.is_empty() {
            plots = bars::of_rows(&finding.rows, &self.servers);
        }
        if !plots.is_empty() {
            text += &format!("<div class=\"plots\">\n{plots}</div>\n");
        }
        if let Some(failure) = &finding.failure {
            text += &format!("<p class=\"warning\">Failed: {}</p>\n", escaped(failure));
        }
        for note in &finding.notes {
            text += &format!("<p class=\"note\">{}</p>\n", escaped(note));
        }
        text += &format!("<p class=\"note\">Took {:.0} s.</p>\n", finding.seconds);
        text + "</section>\n"
    }
}

fn count(rows: &[Row], server: usize, verdict: Verdict) -> usize {
    let verdicts = rows.iter().filter_map(|row| {
        let judged = row.better != crate::experiments::finding::Better::Neither;
        Some(row.better.verdict(row.ratio(server)?)).filter(|_| judged)
    });
    verdicts.filter(|&one| one == verdict).count()
}

fn table(rows: &[Row], servers: &[ServerInfo]) -> String {
    let mut text = "<div class=\"wide\"><table>\n<thead><tr><th></th><th>unit</th>".to_owned();
    for column in columns(servers) {
        text += &format!("<th class=\"n\">{}</th>", escaped(&column));
    }
    text += "</tr></thead>\n<tbody>\n";
    for row in rows {
        text += &format!(
            "<tr><td>{}</td><td class=\"unit\">{}</td>",
            escaped(&row.what),
            escaped(&row.unit)
        );
        let cells = cells(row);
        let (numbers, ratios) = cells.split_at(1 + row.values.len());
        for (i, cell) in numbers.iter().enumerate() {
            let class = if i == 0 { "n article" } else { "n" };
            text += &format!("<td class=\"{class}\">{}</td>", escaped(cell));
        }
        for server in 1..=ratios.len() {
            text += &match row.ratio(server) {
                Some(ratio) => {
                    let judged = row.better != crate::experiments::finding::Better::Neither;
                    let verdict = judged.then(|| row.better.verdict(ratio));
                    ratio_cell(&format!("{ratio:.2}"), verdict)
                }
                None => "<td class=\"n\">-</td>".to_owned(),
            };
        }
        text += "</tr>\n";
    }
    text + "</tbody>\n</table></div>\n"
}

/// A ratio with its meaning in a word, so that readers need not distinguish colors.
fn ratio_cell(text: &str, verdict: Option<Verdict>) -> String {
    let word = match verdict {
        Some(Verdict::Win) => " <small>better</small>",
        Some(Verdict::Loss) => " <small>worse</small>",
        Some(Verdict::Even) => " <small>even</small>",
        None => "",
    };
    let class = verdict.map_or("", class);
    format!("<td class=\"n\"><span class=\"{class}\">{}{word}</span></td>", escaped(text))
}

const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Win => "win",
        Verdict::Loss => "loss",
        Verdict::Even => "even",
    }
}

/// A whole number with commas between thousands.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let with_comma = |(i, digit): (usize, char)| {
        let comma = (i > 0 && (digits.len() - i).is_multiple_of(3)).then_some(',');
        comma.into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(with_comma).collect()
}

/// Text that is escaped for use between tags and in quoted attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter => out.push(letter),
        }
    }
    out
}

/// Escaped text, in which text between backquotes is formatted as code.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(i, part)| match i % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    });
    parts.collect()
}

#[cfg(test)]
mod tests;
