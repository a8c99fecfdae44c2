//! The record of steps that passed, `verified.tsv`, with a hash of the files on which the result of each step depends.
//!
//! Steps that need a release build or a clean Debian take minutes. The gate runs such a step only if its inputs differ
//! from the recorded ones. The hash covers the contents of the work tree, so it does not matter whether a change is
//! committed.

use crate::steps::{Step, workspace_root};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const HEAD: &str = "# `cargo xtask ci STEP --record` writes this file: a step, and the hash of its inputs when it passed.\n";

/// Reports whether the inputs of a step are the recorded ones. A step without inputs is never recorded.
pub(crate) fn is_current(step: &Step) -> Result<bool> {
    if step.inputs.is_empty() {
        return Ok(false);
    }
    let hash = hash_of(workspace_root(), step.inputs)?;
    Ok(lookup(&read()?, step.name) == Some(hash.as_str()))
}

/// Records the inputs of a step that has passed.
pub(crate) fn record(step: &Step) -> Result<()> {
    if step.inputs.is_empty() {
        return Ok(());
    }
    let hash = hash_of(workspace_root(), step.inputs)?;
    let path = path();
    fs::write(&path, with(&read()?, step.name, &hash)).with_context(|| path.display().to_string())
}

fn path() -> PathBuf {
    workspace_root().join("xtask/src/verified.tsv")
}

fn read() -> Result<String> {
    let path = path();
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The recorded hash of a step.
fn lookup<'t>(text: &'t str, step: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(step)?.strip_prefix('\t'))
}

/// The record with a new hash for a step.
fn with(text: &str, step: &str, hash: &str) -> String {
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with(&format!("{step}\t")))
        .map(str::to_owned)
        .collect();
    lines.push(format!("{step}\t{hash}"));
    lines.sort();
    lines.iter().fold(HEAD.to_owned(), |text, line| text + line + "\n")
}

/// A hash of the names and contents of the files that match the pathspecs, except ignored files.
fn hash_of(root: &Path, inputs: &[&str]) -> Result<String> {
    let mut list = vec!["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"];
    list.extend(inputs);
    let listed = git(root, &list, "")?;
    let mut names: Vec<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
    // Deleted files stay in the index until the next commit.
    names.retain(|name| root.join(name).is_file());
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        bail!("no file matches {}", inputs.join(", "));
    }
    let hashes =
        git(root, &["hash-object", "--no-filters", "--stdin-paths"], &(names.join("\n") + "\n"))?;
    let mut all = String::new();
    for (name, hash) in names.iter().zip(hashes.lines()) {
        all.push_str(&format!("{name} {hash}\n"));
    }
    Ok(git(root, &["hash-object", "--stdin"], &all)?.trim().to_owned())
}

/// Runs git and returns its output.
fn git(root: &Path, arguments: &[&str], input: &str) -> Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot run git")?;
    let mut stdin = child.stdin.take().context("standard input is piped")?;
    let input = input.to_owned();
    // Write in a separate thread, because both pipes may fill up.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    if !matches!(writer.join(), Ok(Ok(()))) || !output.status.success() {
        bail!("git {} ended with {}", arguments.join(" "), output.status);
    }
    String::from_utf8(output.stdout).context("a path that is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci;

    /// An empty repository in its own directory.
    struct Repository(PathBuf);

    impl Repository {
        fn new(name: &str) -> Repository {
            let root =
                std::env::temp_dir().join(format!("brisk-verified-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            fs::create_dir_all(root.join("a/b")).unwrap();
            git(&root, &["init", "--quiet"], "").unwrap();
            Repository(root)
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.0.join(path), text).unwrap();
        }

        fn hash(&self) -> String {
            hash_of(&self.0, &["a", ":(exclude)a/tests.rs"]).unwrap()
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_hash_follows_names_and_contents_of_the_work_tree() {
        let repository = Repository::new("hash");
        repository.write("a/one", "1");
        repository.write("a/b/two", "2");
        let first = repository.hash();
        git(&repository.0, &["add", "."], "").unwrap();
        assert_eq!(repository.hash(), first, "an index changes nothing");
        repository.write("other", "3");
        repository.write("a/tests.rs", "4");
        assert_eq!(repository.hash(), first, "other files change nothing");
        repository.write("a/one", "5");
        let changed = repository.hash();
        assert_ne!(changed, first);
        repository.write("a/one", "1");
        assert_eq!(repository.hash(), first);
        fs::rename(repository.0.join("a/one"), repository.0.join("a/three")).unwrap();
        let renamed = repository.hash();
        assert!(renamed != first && renamed != changed);
        assert!(hash_of(&repository.0, &["nothing"]).is_err());
    }

    #[test]
    fn a_record_has_one_line_for_each_step() {
        let text = with(&with("", "package", "12"), "jvm", "34");
        assert_eq!((lookup(&text, "package"), lookup(&text, "jvm")), (Some("12"), Some("34")));
        assert_eq!(lookup(&text, "pack"), None);
        let text = with(&text, "package", "56");
        assert_eq!(text, format!("{HEAD}jvm\t34\npackage\t56\n"));
    }

    #[test]
    fn every_input_of_a_step_exists() {
        for step in ci::STEPS {
            for input in step.inputs.iter().filter(|input| !input.starts_with(":(exclude)")) {
                let hash = hash_of(workspace_root(), &[input]);
                assert!(hash.is_ok(), "{}: {input}: {:?}", step.name, hash.err());
            }
        }
    }
}
