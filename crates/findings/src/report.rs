//! Findings, and how they are printed: as text, as one line each, and as JSON.

use std::fmt::Write as _;

/// The severity of a finding, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing to report.
    Ok,
    /// Worth knowing.
    Note,
    /// Reduces performance or may cause problems later.
    Warning,
    /// The server does not start, or data or its confidentiality is at risk.
    Problem,
}

impl Severity {
    /// The word that is printed for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Ok => "ok",
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Problem => "problem",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The checked part.
    pub topic: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The observed state.
    pub what: String,
    /// The consequence, unless it is obvious.
    pub means: String,
    /// The remedy, including the command to run.
    pub todo: String,
}

impl Finding {
    fn new(severity: Severity, topic: &'static str, what: String) -> Finding {
        Finding { topic, severity, what, means: String::new(), todo: String::new() }
    }

    /// Creates a finding without a problem.
    #[must_use]
    pub fn ok(topic: &'static str, what: String) -> Finding {
        Finding::new(Severity::Ok, topic, what)
    }

    /// Creates a note.
    #[must_use]
    pub fn note(topic: &'static str, what: String) -> Finding {
        Finding::new(Severity::Note, topic, what)
    }

    /// Creates a warning.
    #[must_use]
    pub fn warning(topic: &'static str, what: String) -> Finding {
        Finding::new(Severity::Warning, topic, what)
    }

    /// Creates a problem.
    #[must_use]
    pub fn problem(topic: &'static str, what: String) -> Finding {
        Finding::new(Severity::Problem, topic, what)
    }

    /// Adds the consequence.
    #[must_use]
    pub fn means(mut self, means: &str) -> Finding {
        means.clone_into(&mut self.means);
        self
    }

    /// Adds the remedy.
    #[must_use]
    pub fn todo(mut self, todo: impl Into<String>) -> Finding {
        self.todo = todo.into();
        self
    }
}

/// Reports whether one of the findings is a problem.
#[must_use]
pub fn has_problem(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Problem)
}

/// Formats findings for people: a line for each finding, followed by the consequence and the remedy.
#[must_use]
pub fn text(findings: &[Finding]) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for finding in findings {
        _ = writeln!(out, "{:<8} {:<16} {}", finding.severity.word(), finding.topic, finding.what);
        if !finding.means.is_empty() {
            _ = writeln!(out, "{:25} {}", "", finding.means);
        }
        if !finding.todo.is_empty() {
            _ = writeln!(out, "{:25} To do: {}", "", finding.todo);
        }
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (problems, warnings) = (count(Severity::Problem), count(Severity::Warning));
    _ = writeln!(out, "\nproblems: {problems}, warnings: {warnings}, checks: {}", findings.len());
    out
}

/// Formats a finding as one line with its line end: severity, topic, state, consequence, and remedy.
#[must_use]
pub fn line(finding: &Finding) -> String {
    let mut line = format!("{:<8} {:<12} {}", finding.severity.word(), finding.topic, finding.what);
    if !finding.means.is_empty() {
        let means = finding.means.trim_end_matches('.');
        _ = write!(line, ". {means}");
    }
    if !finding.todo.is_empty() {
        _ = write!(line, ". To do: {}", finding.todo);
    }
    line.push('\n');
    line
}

/// Formats findings as an array of objects, one per line.
#[must_use]
pub fn json(findings: &[Finding]) -> String {
    let lines: Vec<String> = findings
        .iter()
        .map(|finding| {
            let fields = [
                ("topic", finding.topic),
                ("state", finding.severity.word()),
                ("what", &finding.what),
                ("means", &finding.means),
                ("todo", &finding.todo),
            ];
            let fields = fields.map(|(name, value)| format!("{}:{}", quoted(name), quoted(value)));
            format!("{{{}}}", fields.join(","))
        })
        .collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            letter if letter.is_control() => _ = write!(out, "\\u{:04x}", u32::from(letter)),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// Formats an amount of memory for people.
#[must_use]
pub fn amount(bytes: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >= 1 << shift {
            return format!("{:.1} {unit}", bytes as f64 / f64::from(1 << shift));
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_printed_for_people_and_for_programs() {
        let findings = [
            Finding::ok("a", "well".to_owned()),
            Finding::warning("b", "say \"x\\y\"\n".to_owned()).means("bad").todo("do"),
        ];
        let printed = text(&findings);
        assert!(printed.contains("ok       a                well\n"), "{printed}");
        assert!(printed.ends_with("\nproblems: 0, warnings: 1, checks: 2\n"), "{printed}");
        assert!(json(&findings).contains(r#""what":"say \"x\\y\"\u000a""#));
        assert_eq!(line(&findings[0]), "ok       a            well\n");
        let warning = Finding::warning("b", "high".to_owned()).means("It is bad.").todo("lower it");
        assert_eq!(line(&warning), "warning  b            high. It is bad. To do: lower it\n");
        assert!(!has_problem(&findings));
        assert!(has_problem(&[Finding::problem("c", String::new())]));
        assert_eq!([amount(5), amount(2048), amount(3 << 29)], ["5 bytes", "2.0 KiB", "1.5 GiB"]);
    }
}
