//! The page of the configuration directives.

use super::text::{MARK, anchor, cell, escaped, wrapped};
use brisk_config::Config;
use brisk_config::directive::{Directive, Kind, SupportStatus};
use brisk_config::directives::{self, THEMES, Theme};
use std::fmt::Write as _;

/// Names of directives that are also ordinary words.
const WORDS: &[&str] = &[
    "bind",
    "databases",
    "dialect",
    "include",
    "port",
    "save",
    "supervised",
    "threads",
    "timeout",
    "user",
];

const INTRODUCTION: &str = "\
# Configuration reference

This page describes all directives, with their defaults. A directive is one line of the configuration file, an option of
the command line, or an argument of CONFIG SET:

```text
maxmemory 4gb
brisk-server brisk.conf --maxmemory 4gb
CONFIG SET maxmemory 4gb
```

`brisk-server --print-config` prints a configuration file with all directives and the same descriptions. Configuration
files of Redis 7 load unchanged. Some directives of Valkey 8 are errors, for example `prefetch-batch-max-size`.

- A value with spaces must be quoted. In the file, several values of one directive, for example of `bind`, need no
  quotes.
- Amounts of memory are in bytes or have a unit: `k`, `m` and `g` are powers of 1000, `kb`, `mb` and `gb` are powers of
  1024.
- CONFIG REWRITE writes the values that were changed with CONFIG SET to the file.
- A protected directive can be changed with CONFIG SET only if
  [`enable-protected-configs`](#enable-protected-configs) allows it.

";

const NO_EFFECT: &str = "Directives without effect";

/// Returns the page.
pub(super) fn page() -> String {
    let mut out = format!("{MARK}\n{INTRODUCTION}");
    for title in THEMES.iter().filter(|theme| in_force(theme).next().is_some()).map(|t| t.title) {
        _ = writeln!(out, "- [{title}](#{})", anchor(title));
    }
    _ = writeln!(out, "- [{NO_EFFECT}](#{})", anchor(NO_EFFECT));
    let defaults = Config::default();
    for theme in &THEMES {
        if in_force(theme).next().is_some() {
            _ = write!(out, "\n## {}\n", theme.title);
        }
        for row in in_force(theme) {
            describe(&mut out, row, &defaults);
        }
    }
    _ = write!(
        out,
        "\n## {NO_EFFECT}\n\nThese directives are accepted so that existing configuration files load. CONFIG GET \
         shows their values.\n\n| directive | purpose in Redis or Valkey | why it has no effect |\n|---|---|---|\n"
    );
    for row in directives::all().filter(|row| row.support_status != SupportStatus::InForce) {
        let (about, reason) = (linked(row.about, row.name), linked(row.reason, row.name));
        _ = writeln!(out, "| `{}` | {} | {} |", row.name, cell(&about), cell(&reason));
    }
    out
}

fn in_force(theme: &Theme) -> impl Iterator<Item = &'static Directive> + use<> {
    theme.rows.iter().filter(|row| row.support_status == SupportStatus::InForce)
}

fn describe(out: &mut String, row: &Directive, defaults: &Config) {
    let about = wrapped(&linked(row.about, row.name), "");
    _ = write!(out, "\n### {}\n\n{about}\n\n", row.name);
    if row.is_setting() {
        let lines = row.default_lines(defaults);
        let default = match lines.as_slice() {
            [] => "none".to_owned(),
            lines => {
                let shown = |line: &String| match line.as_str() {
                    "\"\"" => "empty".to_owned(),
                    line => format!("`{line}`"),
                };
                lines.iter().map(shown).collect::<Vec<String>>().join(", ")
            }
        };
        _ = writeln!(out, "- **Default:** {default}");
    }
    _ = writeln!(out, "- **Value:** {}", values(&row.kind));
    _ = writeln!(out, "- **Changed:** {}", changed(row));
    if let Some(alias) = row.alias {
        _ = writeln!(out, "- **Alias:** `{alias}`");
    }
}

/// Returns the valid values.
fn values(kind: &Kind) -> String {
    let form = kind.form();
    match kind {
        Kind::Switch(_) => "`yes` or `no`".to_owned(),
        Kind::Choice(_) => {
            let words = form.trim_start_matches("one of ");
            let words: Vec<String> = words.split(", ").map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        _ => escaped(&form),
    }
}

/// Returns how the directive can be changed.
fn changed(row: &Directive) -> &'static str {
    match (row.is_setting(), row.immutable || row.fixed, row.protected) {
        (false, ..) => "at startup only, in the configuration file",
        (_, true, _) => "at startup only",
        (_, _, true) => "with CONFIG SET, if `enable-protected-configs` allows it",
        _ => "with CONFIG SET",
    }
}

/// Returns a text with links from the names of directives to their sections.
fn linked(text: &str, own: &str) -> String {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let text = escaped(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find(is_of_name) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !is_of_name(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        let is_part = before.ends_with(['/', '.', '`']) || after.starts_with(['/', '`']);
        let row = directives::find(word.as_bytes()).filter(|row| {
            row.names().any(|name| name == word) && !WORDS.contains(&word) && !is_part
        });
        out.push_str(before);
        match row {
            Some(row) if row.name == own || row.support_status != SupportStatus::InForce => {
                _ = write!(out, "`{word}`");
            }
            Some(row) => _ = write!(out, "[`{word}`](#{})", row.name),
            None => out.push_str(word),
        }
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_directives_are_links_and_ordinary_words_are_not() {
        assert_eq!(linked("as maxmemory says", "hz"), "as [`maxmemory`](#maxmemory) says");
        assert_eq!(linked("hz times", "hz"), "`hz` times");
        assert_eq!(linked("the port, and save it", "hz"), "the port, and save it");
        assert_eq!(linked("in /a/dir/b", "hz"), "in /a/dir/b");
        assert_eq!(linked("see activedefrag.", "hz"), "see `activedefrag`.");
    }
}
