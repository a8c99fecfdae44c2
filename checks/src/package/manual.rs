//! Generates manual pages and completions from the `--help` output of programs that do not print these themselves, so
//! that options are described in only one place.
//!
//! A help text begins with `Usage:`, followed by lines with the same indentation as the text after this word. Then come
//! headings (unindented lines with indented lines below), paragraphs (unindented lines without indented lines below),
//! and options. An option is an indented line that begins with a dash. Its explanation follows after two or more
//! spaces, and continues in lines that are indented further.

use super::programs::Program;
use std::fmt::Write;

/// An option for a completion.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) word: String,
    /// The placeholder of its value, for example `file`.
    pub(super) value: Option<String>,
    pub(super) about: String,
}

/// An option in a help text, with its explanation.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    head: String,
    about: Vec<String>,
}

/// A piece of a help text.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Heading(String),
    Paragraph(Vec<String>),
    Option(Entry),
    /// Lines that are shown unchanged.
    Verbatim(Vec<String>),
}

/// Parses the usage lines, and the pieces below them.
fn read(help: &str) -> (Vec<String>, Vec<Piece>) {
    let mut lines = help.lines().peekable();
    let mut usage = Vec::new();
    while let Some(line) = lines.next_if(|line| line.starts_with("Usage:") || is_deep(line)) {
        usage.push(line.trim_start_matches("Usage:").trim().to_owned());
    }
    let mut pieces: Vec<Piece> = Vec::new();
    while let Some(line) = lines.next() {
        let text = line.trim();
        let margin = line.len() - line.trim_start().len();
        if text.is_empty() {
            // An empty line ends the current piece.
            pieces.push(Piece::Paragraph(Vec::new()));
        } else if margin == 0 {
            let heads = lines.peek().is_some_and(|next| next.starts_with(' '));
            match pieces.last_mut() {
                _ if heads && !text.ends_with(['.', ',']) => {
                    pieces.push(Piece::Heading(text.trim_end_matches(':').to_owned()));
                }
                Some(Piece::Paragraph(before)) => before.push(text.to_owned()),
                _ => pieces.push(Piece::Paragraph(vec![text.to_owned()])),
            }
        } else if text.starts_with('-') && margin < 8 {
            let (head, about) = text.split_once("  ").unwrap_or((text, ""));
            let about = Some(about.trim().to_owned()).filter(|about| !about.is_empty());
            let entry = Entry { head: head.to_owned(), about: about.into_iter().collect() };
            pieces.push(Piece::Option(entry));
        } else {
            match pieces.last_mut() {
                Some(Piece::Option(entry)) if margin >= 8 => entry.about.push(text.to_owned()),
                Some(Piece::Verbatim(before)) => before.push(text.to_owned()),
                _ => pieces.push(Piece::Verbatim(vec![text.to_owned()])),
            }
        }
    }
    pieces.retain(|piece| !matches!(piece, Piece::Paragraph(lines) if lines.is_empty()));
    (usage, pieces)
}

/// Reports whether a line is indented as far as the text after `Usage:`.
fn is_deep(line: &str) -> bool {
    line.starts_with("       ")
}

/// The manual page of a program, for section 1.
pub(super) fn page(program: &Program, help: &str, see_also: &str) -> String {
    let (usage, pieces) = read(help);
    let name = program.name;
    let mut page = head(name, 1, program.summary);
    page.push_str(".SH SYNOPSIS\n.nf\n");
    for line in &usage {
        let _ = writeln!(page, "{}", escaped(line));
    }
    page.push_str(".fi\n");
    page.push_str(".SH DESCRIPTION\n");
    if !program.more.is_empty() {
        let _ = writeln!(page, "{}", paragraph(program.more));
    }
    for piece in &pieces {
        let _ = match piece {
            Piece::Heading(text) => writeln!(page, ".SH \"{}\"", escaped(text)),
            Piece::Paragraph(lines) => {
                writeln!(page, ".PP\n{}", paragraph(&lines.join("\n")))
            }
            Piece::Option(Entry { head, about }) => {
                writeln!(page, ".TP\n.B {}\n{}", escaped(head), paragraph(&about.join("\n")))
            }
            Piece::Verbatim(lines) => {
                writeln!(page, ".nf\n{}\n.fi", paragraph(&lines.join("\n")))
            }
        };
    }
    let _ = writeln!(page, ".SH \"SEE ALSO\"\n{see_also}");
    page
}

/// The header of a page.
pub(super) fn head(name: &str, section: u8, summary: &str) -> String {
    let version = Program::version();
    format!(
        ".TH \"{}\" {section} \"\" \"Brisk {version}\" \"Brisk\"\n.SH NAME\n{} \\- {}\n",
        name.to_uppercase(),
        escaped(name),
        escaped(summary)
    )
}

/// Formats text as lines, none of which begins with a roff request.
pub(super) fn paragraph(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            let line = escaped(line.trim());
            if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
        })
        .collect();
    lines.join("\n")
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// The options of a help text, with a separate entry for each name.
pub(super) fn words(help: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for piece in read(help).1 {
        let Piece::Option(Entry { head, about }) = piece else { continue };
        let about = about.first().map_or(String::new(), |line| first_clause(line));
        // In `-a, --pass <word>`, the value belongs to both names. In `--cert <file>, --key <file>`, each has its own.
        let mut of_line: Vec<Word> = Vec::new();
        for part in head.split(", ") {
            let mut parts = part.split_whitespace();
            let Some(word) = parts.next().filter(|word| word.starts_with('-')) else { continue };
            let value = parts
                .next()
                .map(|value| value.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned());
            of_line.push(Word { word: word.to_owned(), value, about: about.clone() });
        }
        let value = of_line.last().and_then(|word| word.value.clone());
        for mut word in of_line {
            word.value = word.value.or_else(|| value.clone());
            if words.iter().all(|known| known.word != word.word) {
                words.push(word);
            }
        }
    }
    words
}

/// As much of an explanation as fits next to an option, without characters that a shell would interpret.
fn first_clause(line: &str) -> String {
    let end = line.find(['.', ';', '(']).unwrap_or(line.len());
    line[..end].trim().replace(['\'', '"', '[', ']', ':', '`', '$', '\\'], "")
}

/// Reports whether a value is a path.
fn is_path(word: &Word) -> bool {
    let value = word.value.as_deref().unwrap_or_default();
    ["file", "path", "dir", "socket"].contains(&value)
}

/// Writes the completion of a program with these options.
pub(super) type Completion = fn(&str, &[Word]) -> String;

/// The completion for bash.
pub(super) fn bash(name: &str, words: &[Word]) -> String {
    let function = format!("_{}", name.replace('-', "_"));
    let of = |keep: &dyn Fn(&Word) -> bool| {
        let kept: Vec<&str> =
            words.iter().filter(|word| keep(word)).map(|word| word.word.as_str()).collect();
        kept.join("|")
    };
    let paths = of(&is_path);
    let valued = of(&|word| word.value.is_some() && !is_path(word));
    let all = words.iter().map(|word| word.word.as_str()).collect::<Vec<_>>().join(" ");
    let mut cases = String::new();
    if !paths.is_empty() {
        let _ = writeln!(cases, "    {paths}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;");
    }
    if !valued.is_empty() {
        let _ = writeln!(cases, "    {valued}) COMPREPLY=(); return ;;");
    }
    format!(
        "# Completion of {name} for bash, made of its help.\n\
         {function}() {{\n  local word=${{COMP_WORDS[COMP_CWORD]}}\n  \
         case ${{COMP_WORDS[COMP_CWORD-1]}} in\n{cases}  esac\n  \
         case $word in\n    -*) COMPREPLY=($(compgen -W '{all}' -- \"$word\")) ;;\n    \
         *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n}}\n\
         complete -o filenames -F {function} {name}\n"
    )
}

/// The completion for zsh.
pub(super) fn zsh(name: &str, words: &[Word]) -> String {
    let mut text = format!("#compdef {name}\n# Made of its help.\n_arguments -s \\\n");
    for word in words {
        let value = match &word.value {
            None => String::new(),
            Some(value) if is_path(word) => format!(":{value}:_files"),
            Some(value) => format!(":{value}: "),
        };
        let _ = writeln!(text, "  '{}[{}]{value}' \\", word.word, word.about);
    }
    text.push_str("  '*:argument:_files'\n");
    text
}

/// The completion for fish.
pub(super) fn fish(name: &str, words: &[Word]) -> String {
    let mut text = format!("# Completion of {name} for fish, made of its help.\n");
    for word in words {
        let kind = match word.word.strip_prefix("--") {
            Some(long) => format!("-l {long}"),
            None if word.word.len() == 2 => format!("-s {}", &word.word[1..]),
            None => format!("-o {}", &word.word[1..]),
        };
        let value = match &word.value {
            None => "",
            Some(_) if is_path(word) => " -r -F",
            Some(_) => " -x",
        };
        let _ = writeln!(text, "complete -c {name} {kind}{value} -d '{}'", word.about);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::programs::TextSource;
    use super::*;

    const HELP: &str = "\
Usage: tool [options] FILE
       tool --version

Measures what it's told. Fast.

Server:
 -h <host>          Host (default 127.0.0.1)
 --cert <file>, --key <file>   Both of
                    them. More
 -a, --pass <word>  Password
 --help, --version
";

    #[test]
    fn options_are_found_with_their_values() {
        let found: Vec<(String, Option<String>)> =
            words(HELP).into_iter().map(|word| (word.word, word.value)).collect();
        let value = |text: &str| Some(text.to_owned());
        let expected = [
            ("-h", value("host")),
            ("--cert", value("file")),
            ("--key", value("file")),
            ("-a", value("word")),
            ("--pass", value("word")),
            ("--help", None),
            ("--version", None),
        ];
        assert_eq!(found, expected.map(|(word, value)| (word.to_owned(), value)));
    }

    #[test]
    fn a_page_has_usage_headings_and_options() {
        let texts = TextSource::Help;
        let program = Program { name: "tool", package: "tool", summary: "a tool", texts, more: "" };
        let page = page(&program, HELP, "none");
        for part in [
            "tool [options] FILE\ntool \\-\\-version\n.fi",
            "Measures what it's told. Fast.",
            ".SH \"Server\"",
            ".TP\n.B \\-h <host>\nHost (default 127.0.0.1)",
            ".B \\-\\-cert <file>, \\-\\-key <file>\nBoth of\nthem. More",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }

    #[test]
    fn no_line_of_text_becomes_a_request() {
        assert_eq!(paragraph(".so /etc/passwd\n'x\nplain"), "\\&.so /etc/passwd\n\\&'x\nplain");
    }
}
