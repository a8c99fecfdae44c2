//! Markdown functions that the pages share.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The first line of a page that is generated as a whole.
pub(super) const MARK: &str = "<!-- `cargo xtask references` generates this page. -->\n";

/// Maximum width of a line of prose.
const WIDTH: usize = 120;

/// Pages by their path in the repository.
pub(super) type Pages = BTreeMap<String, String>;

/// Replaces the text between the two marker comments of a name.
///
/// # Errors
/// If the text lacks the markers.
pub(super) fn between_markers(text: &str, name: &str, content: &str) -> Result<String> {
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let missing = || format!("the markers `{}` and `{close}` are missing", open.trim_end());
    let (before, rest) = text.split_once(&open).with_context(missing)?;
    let (_, after) = rest.split_once(&close).with_context(missing)?;
    Ok(format!("{before}{open}{content}{close}{after}"))
}

/// Returns text for a cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Returns text as a paragraph without the meaning that `<`, `*` and `_` have in Markdown. Text in
/// backquotes is not changed.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_code = false;
    for letter in text.chars() {
        match letter {
            '`' => in_code = !in_code,
            '<' | '*' | '[' | ']' if !in_code => out.push('\\'),
            _ => {}
        }
        out.push(letter);
    }
    out
}

/// Returns text in lines of at most [`WIDTH`] columns. All lines except the first begin with `indent`.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut column = 0;
    for word in text.split_ascii_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            _ = write!(out, "\n{indent}");
            column = indent.len();
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out
}

/// Returns words in backquotes, separated by commas.
pub(super) fn code_list<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// Returns the anchor of a heading, as GitHub and mdBook build it.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_between_markers_is_replaced_and_nothing_else() {
        let text = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n";
        let new = between_markers(text, "x", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n");
        assert_eq!(between_markers(&new, "x", "new\n").unwrap(), new);
        assert!(between_markers(text, "y", "").is_err());
    }

    #[test]
    fn lines_are_wrapped_at_the_width() {
        let word = "x".repeat(59);
        assert_eq!(
            wrapped(&format!("{word} {word} {word}"), "  "),
            format!("{word} {word}\n  {word}")
        );
    }
}
