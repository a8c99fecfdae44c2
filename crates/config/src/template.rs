//! A self-explanatory configuration file: every directive with its description, its values and its
//! default, generated from the rows. `brisk-server --print-config` prints it. A server that is
//! started with it behaves like one without a file.
//!
//! A line that sets a default is active, so that it can be edited in place. It is commented out if
//! there is nothing to set: the directive does nothing, exists for tests, is only allowed in files,
//! or its default has no text.

use std::fmt::Write as _;

use super::config::Config;
use super::directive::{Directive, SupportStatus};
use super::directives::THEMES;

/// Maximum width of a comment in columns.
const WIDTH: usize = 96;

/// Returns the text of the file.
pub fn template() -> String {
    let mut out = String::from(HEAD);
    let defaults = Config::default();
    for theme in THEMES {
        _ = write!(out, "\n{}\n# {}\n", "#".repeat(WIDTH), theme.title);
        for row in theme.rows {
            out.push('\n');
            comment(&mut out, row.about);
            if row.support_status != SupportStatus::InForce {
                comment(&mut out, &format!("No effect: {}", row.reason));
            }
            comment(&mut out, &facts(row));
            lines(&mut out, row, &defaults);
        }
    }
    out
}

const HEAD: &str = "\
# Configuration of brisk-server, with every directive at its default, as printed by
# `brisk-server --print-config`. Start a server with it: brisk-server /path/to/brisk.conf
#
# Each directive is one line: its name, then its value. Values with spaces must be quoted.
# Amounts of memory are in bytes or have a unit: k, m and g are powers of 1000, kb, mb and gb
# are powers of 1024.
# The brackets after each description show the accepted values and how the directive can be
# changed: with CONFIG SET while the server runs, or at startup only.
";

/// Returns the valid values, how to change the directive, and its alias.
fn facts(row: &Directive) -> String {
    let mut facts = row.kind.form();
    facts.push_str(if row.immutable || row.fixed { "; at startup only" } else { "; CONFIG SET" });
    if row.protected {
        facts.push_str(" if enable-protected-configs allows it");
    }
    if let Some(alias) = row.alias {
        _ = write!(facts, "; also named {alias}");
    }
    format!("[{facts}]")
}

/// Writes the lines that set the default.
fn lines(out: &mut String, row: &Directive, defaults: &Config) {
    let arguments = row.default_lines(defaults);
    let mark = if row.hidden || row.support_status != SupportStatus::InForce { "# " } else { "" };
    if arguments.is_empty() {
        _ = writeln!(out, "# {}", row.name);
    }
    for arguments in arguments {
        _ = writeln!(out, "{mark}{} {arguments}", row.name);
    }
}

/// Writes a sentence as lines of a comment.
fn comment(out: &mut String, text: &str) {
    let mut column = WIDTH;
    for word in text.split_ascii_whitespace() {
        if column + 1 + word.len() > WIDTH {
            if !out.ends_with('\n') {
                out.push('\n');
            }
            out.push('#');
            column = 1;
        }
        _ = write!(out, " {word}");
        column += 1 + word.len();
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::Lenient;
    use crate::{directives, file, rewrite};

    #[test]
    fn a_server_with_the_template_is_set_as_one_without_a_file() {
        let config = file::parse_alone(template().as_bytes(), &Lenient).unwrap();
        assert_eq!(rewrite::shown(&config), rewrite::shown(&Config::default()));
    }

    #[test]
    fn every_directive_in_force_has_a_line_that_can_be_edited_and_all_are_named() {
        let text = template();
        for row in directives::all() {
            let named = |line: &str, mark: &str| {
                let rest = line.strip_prefix(mark).and_then(|line| line.strip_prefix(row.name));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            let active = text.lines().filter(|line| named(line, "")).count();
            let idle = text.lines().filter(|line| named(line, "# ")).count();
            let wanted = row.is_setting()
                && !row.hidden
                && row.support_status == SupportStatus::InForce
                && !row.lines(&Config::default()).is_empty();
            assert_eq!(active > 0, wanted, "{}", row.name);
            assert!(active + idle > 0, "{}", row.name);
        }
    }

    #[test]
    fn a_rewrite_of_the_template_changes_the_lines_that_changed() {
        let mut config = Config::default();
        config.network.port = 7777;
        let text = template();
        let merged = rewrite::merge(
            text.as_bytes(),
            &config,
            &file::Included::default(),
            &[],
            rewrite::Added::Changed,
        );
        let merged = String::from_utf8(merged).unwrap();
        let changed: Vec<(&str, &str)> =
            text.lines().zip(merged.lines()).filter(|(old, new)| old != new).collect();
        let dir = Config::default().process.dir.to_string_lossy().into_owned();
        assert_eq!(
            changed,
            [("port 6379", "port 7777"), ("dir .", format!("dir \"{dir}\"").as_str())]
        );
    }

    #[test]
    fn the_form_of_threads_names_its_bound() {
        let row = directives::find(b"threads").unwrap();
        assert_eq!(row.kind.form(), format!("number, 0 to {}", crate::THREADS_MAX));
    }

    #[test]
    fn lines_are_short_and_ascii() {
        for line in template().lines().filter(|line| line.starts_with('#')) {
            assert!(line.is_ascii() && line.len() <= WIDTH + 1, "{line}");
        }
    }
}
