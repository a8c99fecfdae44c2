//! The text of `--help`.

use crate::options::table::own::{COMMANDS, OwnCommand};
use crate::options::table::{Row, SECTIONS};

/// The column at which explanations begin.
const COLUMN: usize = 23;
const WIDTH: usize = 79;

pub(super) const USAGE: &str = "brisk-cli [options] [command [argument ...]]";

/// The introduction of the program's own commands.
pub(super) const OWN: &str = "These commands are not sent to the server:";

pub(super) const EXAMPLES: &[&str] = &[
    "brisk-cli set greeting hello",
    "brisk-cli -x set photo < photo.jpg",
    "brisk-cli -r -1 -i 1 info clients",
    "brisk-cli --eval limit.lua user:7 , 100 60",
    "brisk-cli --scan --pattern 'session:*'",
    "brisk-cli analyze dump.rdb",
    "brisk-cli top --table clients",
];

/// All options, each with a line or two.
pub(crate) fn text() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(
        "brisk-cli {version}\n\nUsage: {USAGE}\n\n\
         Without a command, brisk-cli starts an interactive session.\n"
    );
    text.push_str(&format!("{OWN}\n"));
    for command in COMMANDS {
        add(&mut text, &own_heading(command), &format!("{}.", command.text));
    }
    for section in SECTIONS {
        text.push_str(&format!("\n{}\n", section.title));
        for row in section.rows {
            add(&mut text, &heading(row), row.text);
        }
    }
    text.push_str("\nExamples\n");
    for example in EXAMPLES {
        text.push_str(&format!("  {example}\n"));
    }
    text
}

/// The names of an option and its value.
pub(super) fn heading(row: &Row) -> String {
    let names = row.names.join(", ");
    if row.value.is_empty() { names } else { format!("{names} {}", row.value) }
}

/// The name of a command of the program, and its arguments.
pub(super) fn own_heading(command: &OwnCommand) -> String {
    format!("{} {}", command.name, command.arguments).trim_end().to_owned()
}

/// Appends a heading and its explanation, which begins at a column.
fn add(text: &mut String, heading: &str, explanation: &str) {
    let mut line = format!("  {heading}");
    if line.len() + 1 > COLUMN {
        text.push_str(&line);
        text.push('\n');
        line.clear();
    }
    wrap(text, format!("{line:COLUMN$}"), explanation, COLUMN);
}

/// Appends words to a started line. Continuation lines begin at a column.
fn wrap(text: &mut String, mut line: String, words: &str, column: usize) {
    for word in words.split(' ') {
        if line.len() + word.len() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(column);
        }
        line.push_str(word);
        line.push(' ');
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_are_aligned_and_lines_fit_a_terminal() {
        let text = text();
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.contains("\n  -h <host>            Host (127.0.0.1).\n"), "{text}");
        assert!(
            text.contains("\n  --memkeys-samples <n>\n                       The same,"),
            "{text}"
        );
    }
}
