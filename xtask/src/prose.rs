//! Checks the wording of comments and test names: finds phrases that readers stumble over, and suggests plain ones.
//!
//! The rule for comments applies to the paths in [`COMMENTED`]. A path is added when its comments follow the rule. The
//! rule for names applies to all tests.

/// The paths whose comments are checked.
const COMMENTED: &[&str] = &[
    "crates/acl/",
    "crates/analyze/",
    "crates/benchmark/",
    "crates/check/",
    "crates/cli/",
    "crates/client/",
    "crates/cluster/",
    "crates/config/",
    "crates/coordinate/",
    "crates/derive/",
    "crates/dial/",
    "crates/differential/",
    "crates/engine/",
    "crates/net/",
    "crates/node/",
    "crates/observe/",
    "crates/persist/",
    "crates/reactor/",
    "crates/resp/",
    "crates/script/",
    "crates/server/",
    "crates/structures/",
    "crates/testkit/",
    "checks/",
    "fuzz/",
    "tests/",
    "xtask/",
];

/// Phrases that must not occur in a comment, in lower case, each with advice.
const PHRASES: &[(&str, &str)] = &[
    ("also if", "write `even if`"),
    ("also when", "write `even when`"),
    ("amid", "write `during`"),
    ("anew", "write `again`"),
    ("answered", "write `replied to`, or name the reply"),
    ("anybody", "name the actor: `any client`"),
    ("as from", "write `since`"),
    ("asked", "write `requested`, `queried` or `configured`"),
    ("asked for", "write `requested`"),
    ("asks", "write `requests`, `queries` or `prompts for`"),
    ("beside", "write `next to` or `compared with`"),
    ("besides", "write `also`"),
    ("dear", "write `expensive`"),
    ("dearer", "write `costs more`"),
    ("everybody", "name the actors: `all clients`"),
    ("folder", "write `directory`"),
    ("folders", "write `directories`"),
    ("heard", "write `received`"),
    ("hears", "write `receives`, or name the message"),
    ("hinder", "write `slow down` or `block`"),
    ("hinders", "write `slows down` or `blocks`"),
    ("mend", "write `fix`"),
    ("mended", "write `fixed`"),
    ("mends", "write `fixes`"),
    ("nobody", "name the actor: `no client`, `no thread`"),
    ("processor", "write `CPU`"),
    ("processors", "write `CPUs`"),
    ("serves on", "write `keeps serving`"),
    ("so many", "write `N`, or name the number"),
    ("somebody", "name the actor: `another client`"),
    ("tells", "write `reports`, `describes` or `shows`"),
    ("told", "write `reported`, `notified` or `described`"),
    ("whoever", "write `the client that`, or name the actor"),
    ("whom", "name the actor"),
];

/// Words that must not end a clause in a comment.
const CLAUSE_ENDS: &[(&str, &str)] = &[("meanwhile", "write `during …` or `in the meantime`")];

/// Words that must not begin a sentence in a comment.
const OPENINGS: &[(&str, &str)] = &[
    ("Of a ", "begin with the subject"),
    ("Of the ", "begin with the subject"),
    ("What a ", "name the thing"),
    ("What has ", "name the thing"),
    ("What is ", "name the thing"),
    ("What it ", "name the thing"),
    ("What the ", "name the thing"),
    ("What they ", "name the thing"),
    ("What was ", "name the thing"),
    ("Who ", "name the actor"),
    ("Whom ", "name the actor"),
];

/// Words that must not be part of a test name, in addition to the single words in [`PHRASES`].
const NAME_WORDS: &[&str] = &["meanwhile", "refused", "refuses", "spoken", "who"];

/// Prefixes of test names that are not statements.
const NAME_OPENINGS: &[&str] = &["of_", "such_", "those_", "what_", "whatever_", "whether_"];

/// The line numbers (from 1) of phrases in the comments and test names of a file, with advice. O(bytes).
pub(crate) fn findings(path: &str, text: &str) -> Vec<(usize, String)> {
    let mut findings = Vec::new();
    if !path.ends_with(".rs") {
        return findings;
    }
    if COMMENTED.iter().any(|prefix| path.starts_with(prefix)) {
        comments(text, &mut findings);
    }
    names(text, &mut findings);
    findings
}

fn comments(text: &str, findings: &mut Vec<(usize, String)>) {
    let mut follows_comment = false;
    for (at, line) in text.lines().enumerate() {
        let Some(prose) = prose_of(line) else {
            follows_comment = false;
            continue;
        };
        let plain = without_code(prose).to_lowercase();
        let words = plain.replace(|letter: char| !letter.is_alphanumeric() && letter != '_', " ");
        let padded = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
        for (phrase, advice) in PHRASES {
            if padded.contains(&format!(" {phrase} ")) {
                findings.push((at + 1, format!("`{phrase}`: {advice}")));
            }
        }
        for (word, advice) in CLAUSE_ENDS {
            if ['.', ',', ';', ':', ')'].iter().any(|end| plain.contains(&format!(" {word}{end}")))
            {
                findings.push((at + 1, format!("`{word}` at the end of a clause: {advice}")));
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
}

fn names(text: &str, findings: &mut Vec<(usize, String)>) {
    let mut is_test = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("#[") {
            is_test |= line.contains("test") && !line.contains("cfg(");
            continue;
        }
        if line.starts_with("//") {
            continue;
        }
        if std::mem::take(&mut is_test)
            && let Some((_, rest)) = line.split_once("fn ")
        {
            let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let name = &rest[..end.unwrap_or(rest.len())];
            let words = PHRASES.iter().map(|(phrase, _)| *phrase).chain(NAME_WORDS.iter().copied());
            for word in words.filter(|word| name.split('_').any(|part| part == *word)) {
                findings.push((at + 1, format!("`{word}` in a test name: state the behavior")));
            }
            for opening in NAME_OPENINGS.iter().filter(|opening| name.starts_with(**opening)) {
                findings.push((
                    at + 1,
                    format!("a test name begins with `{opening}`: state the behavior"),
                ));
            }
        }
    }
}

/// The text of a line that is a comment.
fn prose_of(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']).trim())
}

/// A comment without the code between backticks.
fn without_code(prose: &str) -> String {
    prose.split('`').step_by(2).collect::<Vec<_>>().join(" code ")
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
        assert_eq!(
            lines("// A folder of two processors.\n// It closes, also if it fails."),
            [1, 1, 2]
        );
    }

    #[test]
    fn code_in_comments_is_not_prose() {
        assert!(lines("/// Sets `told` and `asked` of [`Told`].").is_empty());
        assert_eq!(lines("/// Sets `x`, as told by `y`."), [1]);
    }

    #[test]
    fn words_at_the_end_of_a_clause_are_found() {
        assert_eq!(lines("// Others wait meanwhile.\n// It waits meanwhile; it is read."), [1, 2]);
        assert!(lines("// Meanwhile, others wait, and meanwhile it is read.").is_empty());
    }

    #[test]
    fn openings_count_at_the_beginning_of_a_sentence_only() {
        let text = "/// Of the keys, some.\nfn a() {}\n/// Some\n/// Of the keys.\n\n// First. What is left.";
        assert_eq!(lines(text), [1, 6]);
    }

    #[test]
    fn test_names_are_statements() {
        assert_eq!(lines("#[test]\nfn what_is_left_stays() {}"), [2]);
        assert_eq!(lines("#[tokio::test]\n// As in Redis.\nasync fn a_key_is_told() {}"), [3]);
        assert_eq!(lines("    #[test]\n    fn who_waits_is_refused() {}"), [2, 2]);
        assert!(lines("#[test]\nfn a_client_that_waits_is_rejected() {}").is_empty());
        assert!(lines("#[cfg(test)]\nfn what_is_left() {}\nfn who() {}").is_empty());
        assert!(lines("#[test]\nfn untold_and_unasked() {}").is_empty());
    }

    #[test]
    fn comments_outside_of_the_list_are_not_checked() {
        assert!(findings("benches/x.rs", "//! Nobody.").is_empty());
        assert_eq!(findings("benches/x.rs", "//! Nobody.\n#[test]\nfn who_waits() {}").len(), 1);
        assert!(findings("crates/engine/Cargo.toml", "// Nobody.").is_empty());
    }
}
