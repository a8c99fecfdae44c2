//! Words of comments: phrases that readers stumble over, and the plain ones in their place.
//!
//! The rule holds for the crates in [`CRATES`]; a crate is added when its comments follow it.

/// The crates whose comments are checked.
const CRATES: &[&str] = &[
    "crates/acl/",
    "crates/cluster/",
    "crates/config/",
    "crates/coordinate/",
    "crates/engine/",
    "crates/node/",
    "crates/observe/",
    "crates/persist/",
    "crates/reactor/",
    "crates/resp/",
    "crates/script/",
    "crates/server/",
    "crates/structures/",
];

/// Phrases anywhere in a comment, in lower case, each with the advice.
const PHRASES: &[(&str, &str)] = &[
    ("amid", "write `during`"),
    ("anew", "write `again`"),
    ("as from", "write `since`"),
    ("beside", "write `next to` or `compared with`"),
    ("besides", "write `also`"),
    ("dear", "write `expensive`"),
    ("dearer", "write `costs more`"),
    ("hinder", "write `slow down` or `block`"),
    ("hinders", "write `slows down` or `blocks`"),
    ("mend", "write `fix`"),
    ("mended", "write `fixed`"),
    ("mends", "write `fixes`"),
    ("nobody", "name the actor: `no client`, `no thread`"),
    ("so many", "write `N`, or name the number"),
    ("told", "write `reported`, `notified` or `described`"),
];

/// Words that begin no sentence of a comment.
const OPENINGS: &[(&str, &str)] = &[
    ("Of a ", "begin with the subject"),
    ("Of the ", "begin with the subject"),
    ("What is ", "name the thing"),
    ("What the ", "name the thing"),
    ("Who ", "name the actor"),
];

/// The line numbers (from 1) of phrases in the comments of a file, with advice. O(bytes).
pub(crate) fn findings(path: &str, text: &str) -> Vec<(usize, String)> {
    if !CRATES.iter().any(|prefix| path.starts_with(prefix)) || !path.ends_with(".rs") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut follows_comment = false;
    for (at, line) in text.lines().enumerate() {
        let Some(prose) = prose_of(line) else {
            follows_comment = false;
            continue;
        };
        let words: String = prose
            .to_lowercase()
            .replace(|letter: char| !letter.is_alphanumeric() && letter != '_', " ");
        let padded = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
        for (phrase, advice) in PHRASES {
            if padded.contains(&format!(" {phrase} ")) {
                findings.push((at + 1, format!("`{phrase}`: {advice}")));
            }
        }
        for (opening, advice) in OPENINGS {
            let begins = !follows_comment && prose.starts_with(opening);
            if begins || prose.contains(&format!(". {opening}")) {
                findings.push((at + 1, format!("`{}`: {advice}", opening.trim_end())));
            }
        }
        follows_comment = !prose.is_empty();
    }
    findings
}

/// The text of a line that is a comment.
fn prose_of(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        findings("crates/engine/src/x.rs", text).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn phrases_are_found_in_comments_only() {
        assert_eq!(
            lines("//! Nobody reads it.\nlet told = 1;\n// It was told, so Many times."),
            [1, 3, 3]
        );
        assert!(lines("/// A whole sentence about clients that wait.\nfn who() {}").is_empty());
    }

    #[test]
    fn openings_count_at_the_beginning_of_a_sentence_only() {
        let text = "/// Of the keys, some.\nfn a() {}\n/// Some\n/// Of the keys.\n\n// First. What is left.";
        assert_eq!(lines(text), [1, 6]);
    }

    #[test]
    fn crates_outside_of_the_list_are_not_checked() {
        assert!(findings("crates/cli/src/x.rs", "//! Nobody.").is_empty());
        assert!(findings("crates/engine/Cargo.toml", "// Nobody.").is_empty());
    }
}
