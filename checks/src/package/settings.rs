//! The package's brisk.conf, and its manual page.
//!
//! `brisk-server --print-config` prints every directive with its default and its description. `packaging/packaged.conf`
//! contains the settings of the package that differ from the defaults, with reasons.

use super::manual;
use anyhow::{Context, Result, bail};
use std::fmt::Write;

/// The defaults, with the lines of the package's settings replaced.
pub(super) fn packaged(defaults: &str, changes: &str) -> Result<String> {
    let mut lines: Vec<String> = defaults.lines().map(str::to_owned).collect();
    let mut reason: Vec<&str> = Vec::new();
    for line in changes.lines() {
        if line.starts_with('#') {
            reason.push(line);
        } else if line.is_empty() {
            reason.clear();
        } else {
            let name = line.split(' ').next().unwrap_or(line);
            let at = lines.iter().position(|old| sets(old, name));
            let at = at.with_context(|| format!("no line sets {name} in the defaults"))?;
            let mut new: Vec<String> = Vec::new();
            if !reason.is_empty() {
                new.push("# In this package:".to_owned());
                new.extend(reason.drain(..).map(str::to_owned));
            }
            new.push(line.to_owned());
            lines.splice(at..=at, new);
        }
    }
    if lines.is_empty() {
        bail!("the server printed no settings");
    }
    Ok(lines.join("\n") + "\n")
}

/// Reports whether a line sets `name`. A directive without a default is alone in a comment.
fn sets(line: &str, name: &str) -> bool {
    let given = line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '));
    given || line.strip_prefix("# ") == Some(name)
}

/// The names of all directives, as options of the server.
pub(super) fn names(defaults: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in defaults.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase())) {
        let name = line.split(' ').next().unwrap_or(line).to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The manual page: the comments above each directive, and its default.
pub(super) fn page(defaults: &str) -> String {
    let mut page = manual::head("brisk.conf", 5, "settings of brisk-server");
    page.push_str(".SH DESCRIPTION\n");
    let mut comment: Vec<&str> = Vec::new();
    let mut begun = false;
    for line in defaults.lines() {
        match line.strip_prefix('#') {
            _ if line.is_empty() => flush(&mut page, &mut comment, begun),
            Some(rule) if rule.chars().all(|c| c == '#') => begun = true,
            Some(text) => comment.push(text.trim()),
            None => {
                let _ = writeln!(page, ".TP\n.B {}", manual::escaped(line));
                flush(&mut page, &mut comment, false);
            }
        }
    }
    flush(&mut page, &mut comment, begun);
    page.push_str(".SH \"SEE ALSO\"\nbrisk\\-server(1)\n");
    page
}

/// Writes the lines of a comment. A single line below a horizontal rule is the heading of a section.
fn flush(page: &mut String, comment: &mut Vec<&str>, may_head: bool) {
    match comment.as_slice() {
        [] => {}
        [title] if may_head => {
            let _ = writeln!(page, ".SH \"{}\"", manual::escaped(title));
        }
        lines => {
            let _ = writeln!(page, "{}", manual::paragraph(&lines.join("\n")));
        }
    }
    comment.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: &str = "\
# Head.

####
# Network

# Where to listen.
# [number; at start only]
port 6379

# Path.
# unixsocket
";

    #[test]
    fn a_changed_setting_replaces_the_default_and_has_a_reason() {
        let changes = "# About this file.\n\n# Here.\nunixsocket /run/x\nport 1\n";
        let text = packaged(DEFAULTS, changes).unwrap();
        assert!(text.contains("only]\nport 1\n"), "{text}");
        assert!(
            text.contains("# Path.\n# In this package:\n# Here.\nunixsocket /run/x\n"),
            "{text}"
        );
        assert!(!text.contains("6379") && !text.contains("About"), "{text}");
    }

    #[test]
    fn changing_a_missing_line_is_rejected() {
        assert!(packaged(DEFAULTS, "ports 1\n").is_err());
    }

    #[test]
    fn the_page_has_themes_and_settings() {
        let page = page(DEFAULTS);
        assert!(page.contains(".SH \"Network\"\n.TP\n.B port 6379\nWhere to listen.\n"), "{page}");
        assert_eq!(names(DEFAULTS), ["port"]);
    }
}
