//! `cargo xtask tidy`: the coding rules that a program can check.
//!
//! Each rule is a row of [`RULES`] or a small function. A finding shows the file, the line, the rule, and advice. Rules
//! that the compiler or clippy already enforce are not repeated here. [`crate::layers`] defines which directories of a
//! crate may import which others.

use crate::steps::workspace_root;
use crate::{layers, prose};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of lines of a file. A longer file has more than one topic.
const LINES_MAX: usize = 1_200;

/// Maximum length of a comment line. `rustfmt` does not wrap comments.
const COMMENT_COLUMNS_MAX: usize = 120;

/// Directory and file names that do not describe their contents.
const BANNED_NAMES: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "misc", "manager", "support", "stuff", "part1",
    "part2",
];

/// Words that must not occur in code at certain paths.
struct Rule {
    /// Path prefixes to which the rule applies; empty means everywhere.
    within: &'static [&'static str],
    /// Path prefixes to which the rule does not apply.
    except: &'static [&'static str],
    words: &'static [&'static str],
    /// True if unit tests at the end of a file and `tests/` directories are exempt.
    tests_exempt: bool,
    advice: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        within: &["crates/cluster", "crates/engine", "crates/resp", "crates/structures"],
        except: &[],
        words: &["SystemTime", "Instant::"],
        tests_exempt: true,
        advice: "no clock here: take the time as an argument",
    },
    Rule {
        within: &[
            "crates/acl",
            "crates/cluster",
            "crates/engine",
            "crates/resp",
            "crates/script",
            "crates/structures",
        ],
        except: &[],
        words: &["std::fs", "fs::File"],
        tests_exempt: true,
        advice: "no files here: take bytes as an argument",
    },
    Rule {
        within: &["crates/cluster", "crates/engine", "crates/resp", "crates/structures"],
        except: &[],
        words: &["std::net", "std::thread::spawn", "TcpStream"],
        tests_exempt: true,
        advice: "no sockets and threads here: that is the reactor's and the server's business",
    },
    Rule {
        within: &[],
        // DEBUG SLEEP must sleep, and requests accumulate while the loop sleeps. The allocator does not report that it
        // has purged, and the kernel does not report that an ended thread is gone from its list.
        except: &[
            "crates/testkit/src/wait.rs",
            "crates/server/src/commands/server/debug.rs",
            "crates/reactor/src/coalesce.rs",
            "crates/reactor/src/process.rs",
            "crates/structures/src/alloc/jemalloc.rs",
        ],
        words: &["thread::sleep"],
        tests_exempt: false,
        advice: "wait for a condition with a deadline: brisk_testkit::wait_until",
    },
    Rule {
        within: &[],
        except: &["crates/structures", "crates/reactor"],
        words: &["unsafe {", "unsafe fn ", "unsafe impl ", "allow(unsafe_code"],
        tests_exempt: false,
        advice: "unsafe code lives in structures and reactor only",
    },
    Rule {
        within: &[],
        // The client library does not use our containers.
        except: &["crates/structures/src/poison.rs", "crates/client/src/poison.rs"],
        words: &[concat!("PoisonError::", "into_inner")],
        tests_exempt: true,
        advice: "what becomes of poisoned locks stands once: brisk_structures::poison",
    },
    Rule {
        within: &[],
        except: &[],
        words: &["#[ignore"],
        tests_exempt: false,
        advice: "assert what is wrong but accepted, with a note, instead of ignoring a test",
    },
    Rule {
        within: &["crates/engine/src/commands"],
        except: &[],
        words: &["Encoding::", "Listpack::", "Intset::", "Quicklist::", "IntSet::", "QuickList::"],
        tests_exempt: true,
        advice: "commands speak in the type's verbs; encodings are matched on in engine/types only",
    },
    Rule {
        within: &["crates/server", "crates/node", "crates/engine"],
        except: &[],
        words: &[
            "spec.name == \"",
            "spec.name != \"",
            "\" == spec.name",
            "match spec.name",
            ".spec.name.eq",
        ],
        tests_exempt: true,
        advice: "no code compares the name of a command: add a flag to the row instead",
    },
    Rule {
        within: &[],
        except: &[],
        // Split in two, so that this line does not violate the rule.
        words: &[concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/")],
        tests_exempt: false,
        advice: "no path of one machine in the sources",
    },
];

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) advice: String,
}

/// Checks all sources. Returns `Ok(false)` if there are findings.
#[expect(clippy::print_stdout, reason = "the findings are the output of the command")]
pub(crate) fn main() -> Result<bool> {
    let root = workspace_root();
    let mut files = Vec::new();
    for directory in ["crates", "xtask", "checks", "tests", "fuzz", ".ci"] {
        sources(&root.join(directory), &mut files)?;
    }
    let mut findings = Vec::new();
    let mut texts = BTreeMap::new();
    for file in &files {
        let path = file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(file).with_context(|| path.clone())?;
        findings.extend(check(&path, &text));
        findings.extend(layers::check(&path, &text));
        findings.extend(is_next_to_its_directory(&path, &files, file));
        texts.insert(path, text);
    }
    findings.extend(tests_that_never_run(&texts));
    for Finding { path, line, advice } in &findings {
        println!("{path}:{line}: {advice}");
    }
    println!("tidy: {} files, {} findings", files.len(), findings.len());
    Ok(findings.is_empty())
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    if !directory.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        if path.is_dir() && name != "target" && name != "data" && name != "corpus" {
            sources(&path, into)?;
        } else if matches!(path.extension().and_then(|e| e.to_str()), Some("rs" | "toml"))
            || name == "run"
        {
            into.push(path);
        }
    }
    Ok(())
}

fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |line: usize, advice: &str| {
        findings.push(Finding { path: path.to_owned(), line, advice: advice.to_owned() });
    };
    let rust = path.ends_with(".rs");
    if rust && !text.starts_with("//!") {
        found(1, "open the file with a `//!` head: what it is about, and what is elsewhere");
    }
    let lines = text.lines().count();
    if rust && lines > LINES_MAX {
        found(lines, &format!("over {LINES_MAX} lines: split it by meaning"));
    }
    let stem = |part: &str| part.trim_end_matches(".rs").to_ascii_lowercase();
    if path.split('/').any(|part| BANNED_NAMES.contains(&stem(part).as_str())) {
        found(1, "a name that says nothing: call the file after what it is about");
    }
    let test_code = first_test_line(path, text);
    for (at, line) in text.lines().enumerate() {
        let code = code_of(line, rust);
        for rule in RULES {
            let applies = (rule.within.is_empty() || starts(path, rule.within))
                && !starts(path, rule.except)
                && !(rule.tests_exempt && at >= test_code);
            if applies && rule.words.iter().any(|word| code.contains(word)) {
                found(at + 1, rule.advice);
            }
        }
    }
    for (at, line) in text.lines().enumerate().filter(|_| rust) {
        if is_long_comment(line) {
            found(at + 1, "a comment of more than 120 columns: wrap it");
        }
    }
    for (line, advice) in prose::findings(path, text) {
        found(line, &advice);
    }
    findings
}

/// A module with submodules must be `name/mod.rs`, so that all of it is in one directory.
fn is_next_to_its_directory(path: &str, files: &[PathBuf], file: &Path) -> Option<Finding> {
    let directory = file.with_extension("");
    let has_parts = file.extension().is_some_and(|end| end == "rs")
        && files.iter().any(|other| {
            other.parent() == Some(&directory) && other.extension().is_some_and(|end| end == "rs")
        });
    let advice = "a module with submodules is a directory: move it to `mod.rs` in there".to_owned();
    has_parts.then(|| Finding { path: path.to_owned(), line: 1, advice })
}

/// Finds integration test files that no executable contains. `cargo test` would pass without running them.
fn tests_that_never_run(texts: &BTreeMap<String, String>) -> Vec<Finding> {
    let unused = texts.keys().filter(|path| {
        let Some((package, within)) = path.split_once("/tests/") else { return false };
        let manifest = texts.get(&format!("{package}/Cargo.toml"));
        let is_test = within.ends_with(".rs") && !package.contains("/src");
        manifest.is_some_and(|manifest| is_test && !is_compiled(within, package, manifest, texts))
    });
    let advice = "no executable contains this file: name it as `mod` in the `main.rs` of `tests`";
    unused.map(|path| Finding { path: path.clone(), line: 1, advice: advice.to_owned() }).collect()
}

/// Reports whether cargo or another file includes a file, given by its path within a package's `tests`.
fn is_compiled(
    within: &str,
    package: &str,
    manifest: &str,
    texts: &BTreeMap<String, String>,
) -> bool {
    let (directory, file) = within.rsplit_once('/').unwrap_or(("", within));
    let found_by_cargo = directory.is_empty() || (file == "main.rs" && !directory.contains('/'));
    if manifest.contains(&format!("path = \"tests/{within}\""))
        || (found_by_cargo && !manifest.contains("autotests = false"))
    {
        return true;
    }
    let (parent, name) = match file {
        "mod.rs" => directory.rsplit_once('/').unwrap_or(("", directory)),
        _ => (directory, file.trim_end_matches(".rs")),
    };
    let parent = format!("{package}/tests/{parent}");
    let declaration = format!("mod {name};");
    let of_parent = |path: &str| {
        path.rsplit_once('/').is_some_and(|(of, _)| of == parent.trim_end_matches('/'))
    };
    texts.iter().filter(|(path, _)| of_parent(path)).any(|(_, text)| {
        text.lines().any(|line| line.strip_suffix(&declaration).is_some_and(is_visibility))
    })
}

/// Reports whether only a visibility precedes a declaration.
fn is_visibility(before: &str) -> bool {
    matches!(before.trim(), "" | "pub" | "pub(crate)" | "pub(super)")
}

/// Reports whether a line is a comment with more than 120 columns. Table rows and lines with a link are exempt, because
/// they cannot be wrapped.
fn is_long_comment(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with("//")
        && line.chars().count() > COMMENT_COLUMNS_MAX
        && !text.trim_start_matches(['/', '!']).trim_start().starts_with('|')
        && !text.contains("](")
        && !text.contains("://")
}

fn starts(path: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| path.starts_with(prefix))
}

/// The code of a line without strings and comments: this file quotes the forbidden words, and strings may contain
/// paths.
fn code_of(line: &str, rust: bool) -> &str {
    let trimmed = line.trim_start();
    if rust && trimmed.starts_with("words: &[") && !trimmed.contains("concat!") { "" } else { line }
}

/// The line number (from 0) at which test code begins: `#[cfg(test)]` followed by a module, or the start of a file in a
/// `tests` directory.
pub(crate) fn first_test_line(path: &str, text: &str) -> usize {
    let whole = path.contains("/examples/")
        || path.contains("/tests/")
        || path.starts_with("tests/")
        || path.ends_with("/tests.rs");
    if whole {
        return 0;
    }
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.windows(2).position(|pair| {
        pair[0].trim() == "#[cfg(test)]"
            && pair[1].trim_start().starts_with("mod ")
            && pair[1].trim_end().ends_with('{')
    });
    start.unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(path: &str, text: &str) -> Vec<String> {
        check(path, text).into_iter().map(|f| format!("{}: {}", f.line, f.advice)).collect()
    }

    #[test]
    fn a_clock_in_the_engine_is_found_but_not_in_its_tests() {
        let text = "//! x\nlet t = SystemTime::now();\n#[cfg(test)]\nmod tests {\nSystemTime\n}\n";
        assert_eq!(
            advice("crates/engine/src/a.rs", text),
            ["2: no clock here: take the time as an argument"]
        );
        assert!(advice("crates/server/src/a.rs", text).is_empty());
    }

    #[test]
    fn a_file_needs_a_head_and_a_name() {
        assert_eq!(advice("crates/server/src/utils.rs", "fn x() {}").len(), 2);
        assert!(advice("crates/server/src/gate.rs", "//! Gates.\n").is_empty());
    }

    #[test]
    fn a_long_comment_is_found_but_a_row_of_a_table_is_not() {
        let long = "long ".repeat(30);
        let advice =
            |start: &str| advice("crates/server/src/a.rs", &format!("//! x\n{start}{long}\n"));
        assert_eq!(advice("/// "), ["2: a comment of more than 120 columns: wrap it"]);
        assert_eq!(advice("    // ").len(), 1);
        assert!(advice("/// | a | ").is_empty());
        assert!(advice("let text = ").is_empty());
    }

    #[test]
    fn sleeping_is_found_in_tests_too() {
        let sleeping = ["//! x\nstd::thread", "::sleep(d);\n"].concat();
        assert_eq!(advice("tests/tests/expiry.rs", &sleeping).len(), 1);
    }

    #[test]
    fn a_module_file_next_to_its_directory_is_found() {
        let files = ["a/gate.rs", "a/gate/lock.rs", "a/door.rs", "a/door/transcript.txt"];
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        let found = |path: &str| is_next_to_its_directory(path, &files, Path::new(path)).is_some();
        assert_eq!(["a/gate.rs", "a/gate/lock.rs", "a/door.rs"].map(found), [true, false, false]);
    }

    #[test]
    fn a_test_that_no_executable_contains_is_found() {
        let merged = "autotests = false\n[[test]]\nname = \"it\"\npath = \"tests/main.rs\"\n\
                      [[test]]\nname = \"alone\"\npath = \"tests/alone.rs\"\n";
        let mut texts = BTreeMap::new();
        for (path, text) in [
            ("crates/a/Cargo.toml", merged),
            ("crates/a/src/tests/unit.rs", ""),
            (
                "crates/a/tests/main.rs",
                "//! x\n\nmod acl;\n#[cfg(unix)]\nmod tls;\n// mod forgotten;\n",
            ),
            ("crates/a/tests/acl.rs", ""),
            ("crates/a/tests/alone.rs", ""),
            ("crates/a/tests/forgotten.rs", "mod line;\n"),
            ("crates/a/tests/tls/mod.rs", "pub(crate) mod site;\n"),
            ("crates/a/tests/tls/site.rs", ""),
            ("crates/a/tests/tls/acl.rs", ""),
            ("crates/a/tests/lost/mod.rs", ""),
            // Cargo discovers this file by default.
            ("crates/b/Cargo.toml", "[package]\n"),
            ("crates/b/tests/acl.rs", ""),
            ("crates/b/tests/rdb/main.rs", "mod digest;\n"),
            ("crates/b/tests/rdb/digest.rs", ""),
            ("crates/b/tests/rdb/split.rs", ""),
        ] {
            texts.insert(path.to_owned(), text.to_owned());
        }
        let found = tests_that_never_run(&texts);
        assert_eq!(
            found.iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(),
            [
                "crates/a/tests/forgotten.rs",
                "crates/a/tests/lost/mod.rs",
                "crates/a/tests/tls/acl.rs",
                "crates/b/tests/rdb/split.rs"
            ]
        );
    }

    #[test]
    fn the_sources_are_tidy() {
        assert!(main().unwrap(), "see the findings printed above");
    }
}
