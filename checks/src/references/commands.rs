//! The pages of commands: one for each command, with its subcommands.

use super::replies;
use super::syntax::syntax;
use super::text::{MARK, Pages, cell, code_list, escaped, wrapped};
use super::{differences, facts};
use brisk_engine::table::{CommandTable, Row};
use std::fmt::Write as _;

/// The directory of the pages.
pub(super) const DIRECTORY: &str = "docs/commands";

/// Returns the pages of all commands.
pub(super) fn pages(table: &CommandTable) -> Pages {
    let path = |row: &Row| format!("{DIRECTORY}/{}.md", row.spec.name);
    table.rows().iter().map(|row| (path(row), page(row))).collect()
}

/// Returns the words of a command as clients write them.
pub(super) fn words(row: &Row) -> String {
    row.full_name().replace('|', " ").to_uppercase()
}

/// Returns the link to a command's description, from a page in `docs`.
pub(super) fn link(row: &Row) -> String {
    match row.parent {
        None => format!("commands/{}.md", row.spec.name),
        Some(parent) => format!("commands/{}.md#{}-{}", parent.name, parent.name, row.spec.name),
    }
}

fn page(row: &Row) -> String {
    let mut out = format!("{MARK}\n# {}\n", words(row));
    describe(&mut out, row, 2);
    if !row.subcommands.is_empty() {
        out.push_str("\n## Subcommands\n\n| subcommand | |\n|---|---|\n");
        for subcommand in &row.subcommands {
            let (words, summary) = (words(subcommand), cell(&escaped(subcommand.spec.summary)));
            let anchor = words.to_lowercase().replace(' ', "-");
            _ = writeln!(out, "| [{words}](#{anchor}) | {summary} |");
        }
    }
    for subcommand in &row.subcommands {
        _ = write!(out, "\n## {}\n", words(subcommand));
        if subcommand.spec.name == "help" {
            _ = write!(
                out,
                "\nReturns the subcommands with their syntax, one line in each element of an array.\n"
            );
            continue;
        }
        describe(&mut out, subcommand, 3);
    }
    out
}

/// Reports whether a row is a container without its own function, which has only a summary and subcommands.
fn is_only_container(row: &Row) -> bool {
    row.is_container() && row.spec.complexity.starts_with("Depends on subcommand")
}

/// Writes the description of a command. Headings have the level `level`.
fn describe(out: &mut String, row: &Row, level: usize) {
    let spec = row.spec;
    _ = write!(out, "\n{}\n", wrapped(&escaped(spec.summary), ""));
    if let Some(deprecated) = &spec.deprecated {
        _ = write!(out, "\n**{}**\n", facts::deprecated(spec, deprecated));
    }
    if spec.syscmd {
        out.push_str("\nServers and tools use this command; applications do not need it.\n");
    }
    if !is_only_container(row) {
        _ = write!(out, "\n```text\n{}\n```\n", syntax(&words(row), spec));
        facts_of(out, row);
    }
    if !spec.details.is_empty() {
        _ = write!(out, "\n{}\n", spec.details.trim());
    }
    let heading = "#".repeat(level);
    if let Some(variants) = replies::of(row) {
        replies::describe(out, variants, &heading);
    }
    for (title, texts) in differences::of(row.full_name()) {
        _ = write!(out, "\n{heading} {title}\n\n");
        for text in texts {
            _ = writeln!(out, "{}", wrapped(&format!("- {text}"), "  "));
        }
    }
    if !spec.history.is_empty() {
        _ = write!(out, "\n{heading} History\n\n");
        for (version, change) in spec.history {
            let change = format!("- {} {version}: {}", spec.origin.name(), escaped(change));
            _ = writeln!(out, "{}", wrapped(&change, "  "));
        }
    }
}

/// Writes the list of facts.
fn facts_of(out: &mut String, row: &Row) {
    let spec = row.spec;
    out.push('\n');
    let mut fact = |name: &str, value: &str| {
        if !value.is_empty() {
            _ = writeln!(out, "{}", wrapped(&format!("- **{name}:** {value}"), "  "));
        }
    };
    fact("Since", &facts::since(spec));
    fact("Complexity", &escaped(spec.complexity.trim_end_matches('.')));
    fact("Keys", &facts::keys(spec).join("; "));
    fact("ACL categories", &facts::categories(spec));
    fact("[Flags](../commands.md#reading-the-pages)", &code_list(facts::flags(spec)));
    fact(
        "[Tips for clients](../commands.md#reading-the-pages)",
        &code_list(spec.tips.iter().copied()),
    );
}
