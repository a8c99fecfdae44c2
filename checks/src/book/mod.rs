//! `cargo xtask ci book`: builds the pages in `docs` as a book, and checks that the targets of all of its links exist.
//!
//! mdBook builds it from `book.toml` and `docs/SUMMARY.md` into the directory `book` of the target directory. A pinned
//! version of mdBook is installed next to it, once.
//!
//! | file | contents |
//! |---|---|
//! | `links` | the links of the built pages |

mod links;

use crate::cargo::cargo;
use anyhow::{Context, Result, bail};
use brisk_testkit::server::workspace_root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of mdBook. A newer version may generate different anchors, which `references::text::anchor` must then
/// generate too.
const VERSION: &str = "0.4.52";

/// Builds the book and checks its links.
#[expect(clippy::print_stdout, reason = "the findings are the output of the command")]
pub(crate) fn main() -> Result<bool> {
    let root = workspace_root();
    if !root.join("book.toml").is_file() {
        bail!("book.toml is missing");
    }
    let target = target_directory()?;
    let mdbook = installed(&target.join("tools"))?;
    let book = target.join("book");
    let mut build = Command::new(&mdbook);
    build.arg("build").arg("--dest-dir").arg(&book).arg(root);
    if !build.status().with_context(|| mdbook.display().to_string())?.success() {
        return Ok(false);
    }
    let findings = links::broken(&book)?;
    for finding in &findings {
        println!("book: {finding}");
    }
    if findings.is_empty() {
        println!("book: {} has no broken link", book.join("index.html").display());
    }
    Ok(findings.is_empty())
}

/// The target directory, which contains this program.
fn target_directory() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let directory = program.ancestors().nth(2);
    Ok(directory.context("this program is in no target directory")?.to_owned())
}

/// Returns the path of mdBook. Installs this version first if it is missing.
fn installed(tools: &Path) -> Result<PathBuf> {
    let program = tools.join("bin/mdbook");
    let version = Command::new(&program).arg("--version").output();
    let wanted = format!("mdbook v{VERSION}");
    if version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == wanted) {
        return Ok(program);
    }
    let tools = tools.to_str().context("the target directory is not UTF-8")?;
    let mut install = vec!["install", "mdbook", "--version", VERSION, "--locked", "--force"];
    install.extend(["--no-default-features", "--features", "search", "--root", tools]);
    if !cargo(&install)? {
        bail!("mdBook {VERSION} cannot be installed");
    }
    Ok(program)
}
