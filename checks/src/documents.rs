//! `cargo xtask ci documents`: checks that the commands in the user documents work as described.
//!
//! Every document is executed in a separate clean Debian, from its first command to its last, in one shell on a
//! terminal, as a reader would do it. In `console` blocks, lines that begin with `$ ` are commands. A command that ends
//! with a backslash continues on the next line. Each command must succeed. The lines below a command, if there are any,
//! are its output. In them, `...` stands for any text within a line, and alone on a line for any number of lines.

use crate::outcome::Outcome;
use crate::package::{Clean, Inside, built, skip_reason};
use anyhow::{Context, Result, bail};
use brisk_testkit::server::workspace_root;
use std::fs;
use std::process::Stdio;

/// The documents to execute.
const DOCUMENTS: &[&str] = &[
    "docs/install.md",
    "docs/quick-start.md",
    "docs/moving-from-redis.md",
    "docs/durability.md",
    "docs/replication.md",
    "docs/security.md",
    "docs/monitoring.md",
    "docs/backup.md",
    "docs/upgrades.md",
    "docs/capacity.md",
    "docs/troubleshooting.md",
];
/// Time limit for a document, in seconds.
const LIMIT_S: &str = "300";
/// Separates the outputs of commands. Text does not contain this character.
const MARK: char = '\u{1}';

/// Executes all documents.
#[expect(clippy::print_stdout, reason = "why nothing is checked is the output of the command")]
pub(crate) fn main() -> Result<Outcome> {
    if let Some(why) = skip_reason() {
        println!("documents: NOT CHECKED in a clean Debian: {why}");
        return Ok(Outcome::Skipped);
    }
    let release = built()?;
    let mut good = true;
    for document in DOCUMENTS {
        let name = document.rsplit('/').next().unwrap_or(document);
        let clean = Clean::make(&release, name.trim_end_matches(".md"))?;
        good &= clean.run("document", &[document])?;
    }
    Ok(good.into())
}

/// A command, and the lines below it.
#[derive(Debug, PartialEq, Eq)]
struct Command {
    text: String,
    output: Vec<String>,
}

/// Executes one document, as the first process of a clean Debian.
#[expect(clippy::print_stdout, reason = "what differs is the output of the command")]
pub(crate) fn inside(debian: &Inside, words: &[String]) -> Result<bool> {
    let [document] = words else { bail!("inside document: which?") };
    let text = fs::read_to_string(workspace_root().join(document)).context(document.clone())?;
    let commands = commands(&text);
    if commands.is_empty() {
        bail!("{document} has no command");
    }
    fs::write(debian.path("root/.commands"), script(&commands))?;
    let shell = ["timeout", LIMIT_S, "script", "-qec", "bash .commands", "/dev/null"];
    let printed = debian.command(&shell).stdin(Stdio::null()).output()?.stdout;
    let printed = String::from_utf8_lossy(&printed).replace('\r', "");
    for (at, command) in commands.iter().enumerate() {
        let found = part(&printed, at);
        let why = match found {
            None => "did not end".to_owned(),
            Some((0, output)) if is_as_said(&command.output, output) => continue,
            Some((0, _)) => format!("should print\n{}", command.output.join("\n")),
            Some((status, _)) => format!("ended with {status}"),
        };
        let output = found.map_or_else(|| printed.rsplit(MARK).next().unwrap_or(""), |(_, o)| o);
        println!("{document}: `{}` {why}\nIt printed\n{output}", command.text);
        return Ok(false);
    }
    println!("{document}: {} commands do what stands there", commands.len());
    Ok(true)
}

/// The shell script that runs the commands up to the first that fails, and prints marks between them.
fn script(commands: &[Command]) -> String {
    let mut script = String::new();
    for (at, Command { text, .. }) in commands.iter().enumerate() {
        script.push_str(&format!(
            "printf '\\001begin {at}\\n'\n{text}\ns=$?; printf '\\001end {at} %d\\n' $s; \
             [ $s = 0 ] || exit 1\n"
        ));
    }
    script
}

/// The exit status and the output of the command with this number.
fn part(printed: &str, at: usize) -> Option<(i32, &str)> {
    let (_, rest) = printed.split_once(&format!("{MARK}begin {at}\n"))?;
    let (output, rest) = rest.split_once(&format!("{MARK}end {at} "))?;
    Some((rest.lines().next()?.trim().parse().ok()?, output))
}

/// The commands of a document.
fn commands(document: &str) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for block in blocks(document, "console") {
        let mut goes_on = false;
        let first = commands.len();
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(text) => {
                    goes_on = text.ends_with('\\');
                    commands.push(Command { text: text.to_owned(), output: Vec::new() });
                }
                None if commands.len() == first => {}
                None => {
                    let Some(command) = commands.last_mut() else { continue };
                    if goes_on {
                        command.text.push('\n');
                        command.text.push_str(line);
                        goes_on = line.ends_with('\\');
                    } else {
                        command.output.push(line.to_owned());
                    }
                }
            }
        }
    }
    commands
}

/// The contents of a document's blocks of one kind. The indentation of blocks in lists is removed.
pub(crate) fn blocks(document: &str, kind: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, bool, String)> = None;
    for line in document.lines() {
        let margin = line.len() - line.trim_start().len();
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(word), None) => open = Some((margin, word.trim() == kind, String::new())),
            (Some(_), Some(_)) => {
                if let Some((_, true, text)) = open.take() {
                    blocks.push(text);
                }
            }
            (None, Some((margin, _, text))) => {
                text.push_str(line.get(*margin..).unwrap_or(""));
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Reports whether the output matches the document. An empty expectation matches every output.
fn is_as_said(said: &[String], output: &str) -> bool {
    let said: Vec<&str> = said.iter().map(|line| line.trim_end()).collect();
    let found: Vec<&str> = output.lines().map(str::trim_end).collect();
    said.is_empty()
        || fits(&said, &found, "...", &|said, found| {
            let (said, found): (Vec<&str>, Vec<String>) =
                (pieces(said), found.chars().map(String::from).collect());
            let said: Vec<String> = said.iter().flat_map(|piece| letters(piece)).collect();
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            let said: Vec<&str> = said.iter().map(String::as_str).collect();
            fits(&said, &found, "...", &|a, b| a == b)
        })
}

/// Splits a line so that each `...` is a separate piece.
fn pieces(line: &str) -> Vec<&str> {
    let mut pieces: Vec<&str> = Vec::new();
    for (at, piece) in line.split("...").enumerate() {
        if at > 0 {
            pieces.push("...");
        }
        pieces.push(piece);
    }
    pieces
}

fn letters(piece: &str) -> Vec<String> {
    match piece {
        "..." => vec![piece.to_owned()],
        _ => piece.chars().map(String::from).collect(),
    }
}

/// Reports whether a list of items matches a pattern, in which `any` stands for any number of items. O(product of their
/// lengths).
fn fits(said: &[&str], found: &[&str], any: &str, same: &dyn Fn(&str, &str) -> bool) -> bool {
    // `reached[n]`: the pattern so far matches the first n items found.
    let mut reached = vec![false; found.len() + 1];
    reached[0] = true;
    for word in said {
        let mut next = vec![false; found.len() + 1];
        if *word == any {
            let first = reached.iter().position(|&r| r).unwrap_or(reached.len());
            for place in &mut next[first.min(found.len() + 1)..] {
                *place = true;
            }
        } else {
            for (n, place) in found.iter().enumerate() {
                next[n + 1] = reached[n] && same(word, place);
            }
        }
        reached = next;
    }
    reached[found.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_their_output_and_continue_after_a_backslash() {
        let text = "x\n```console\n$ a \\\n    b\none\ntwo\n$ c\n```\n\n1. y\n\n   ```console\n   $ d\n   \
                    z\n   ```\n```sh\n$ no\n```\n";
        let command = |text: &str, output: &[&str]| Command {
            text: text.to_owned(),
            output: output.iter().map(|&line| line.to_owned()).collect(),
        };
        assert_eq!(
            commands(text),
            [command("a \\\n    b", &["one", "two"]), command("c", &[]), command("d", &["z"])]
        );
    }

    #[test]
    fn three_dots_match_any_text_and_everything_else_matches_itself() {
        let said = |lines: &[&str], output| {
            is_as_said(&lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>(), output)
        };
        assert!(said(&[], "anything\n"));
        assert!(said(&["a", "..."], "a\nb\nc\n") && said(&["...", "c"], "a\nb\nc\n"));
        assert!(
            said(&["used: ...M"], "used: 1.25M\n") && said(&["(error) ..."], "(error) ERR x\n")
        );
        assert!(!said(&["a"], "a\nb\n") && !said(&["a", "b"], "a\n") && !said(&["a...c"], "a b\n"));
    }

    #[test]
    fn the_output_of_a_command_is_the_text_between_its_marks() {
        let printed = "\u{1}begin 0\nhello\n\u{1}end 0 0\n\u{1}begin 1\nno\n\u{1}end 1 7\n";
        assert_eq!(part(printed, 0), Some((0, "hello\n")));
        assert_eq!(part(printed, 1), Some((7, "no\n")));
        assert_eq!(part(printed, 2), None);
    }
}
