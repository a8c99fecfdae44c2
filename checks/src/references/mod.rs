//! `cargo xtask references`: generates the references for users from the tables in the code.
//!
//! | page | from |
//! |---|---|
//! | `docs/commands.md`, `docs/commands/` | the command table, `replies`, `differences` |
//! | `docs/configuration.md` | the directives |
//! | `docs/metrics.md` | the metrics of `/metrics` |
//! | the differences in `docs/compatibility.md` and `docs/cluster.md` | `differences` |
//! | the commands in `docs/SUMMARY.md` | the command table |
//! | the tables of `docs/benchmarks.md`, `docs/plots/ratios.svg` | `docs/benchmarks.json`, the results of `cargo xtask bench` |
//!
//! | file | contents |
//! |---|---|
//! | `commands` | the pages of commands |
//! | `syntax` | the syntax of a command, from its argument tree |
//! | `facts` | flags, keys and categories as text |
//! | `replies` | the reply of each command |
//! | `differences` | intended differences from Redis and Valkey |
//! | `index` | the list of all commands, and the list for the book's table of contents |
//! | `configuration`, `metrics`, `benchmarks` | those pages |
//! | `ratios` | the plot of the benchmarks |
//!
//! A test fails if a page differs from the tables.

mod benchmarks;
mod commands;
mod configuration;
mod differences;
mod facts;
mod index;
mod metrics;
mod ratios;
mod replies;
mod syntax;
mod text;

use crate::bench::results::Results;
use anyhow::{Context, Result, bail};
use brisk_testkit::server::workspace_root;
use std::fs;
use std::path::Path;
use text::{Pages, between_markers};

/// Writes all pages, and deletes pages of commands that no longer exist.
#[expect(clippy::print_stdout, reason = "the changed pages are the output of the command")]
pub(crate) fn main() -> Result<bool> {
    let root = workspace_root();
    let pages = pages(root)?;
    for path in differing(root, &pages)? {
        let file = root.join(&path);
        match pages.get(&path) {
            Some(text) => {
                if let Some(directory) = file.parent() {
                    fs::create_dir_all(directory)?;
                }
                fs::write(&file, text).with_context(|| path.clone())?;
                println!("references: {path} written");
            }
            None => {
                fs::remove_file(&file).with_context(|| path.clone())?;
                println!("references: {path} deleted");
            }
        }
    }
    Ok(true)
}

/// Generates all pages from the tables.
fn pages(root: &Path) -> Result<Pages> {
    let table = brisk_server::commands::table(&[]).map(|(table, _)| table);
    let table = table.map_err(|fault| anyhow::anyhow!(fault))?;
    let mut pages = commands::pages(&table);
    pages.insert("docs/commands.md".to_owned(), index::page(&table));
    pages.insert("docs/configuration.md".to_owned(), configuration::page());
    pages.insert("docs/metrics.md".to_owned(), metrics::page());
    let path = "docs/compatibility.md";
    let text = fs::read_to_string(root.join(path)).context(path)?;
    let text = between_markers(&text, "differences from Redis 7", &differences::sections())?;
    let text = between_markers(&text, "dialect valkey", &differences::with_valkey())?;
    pages.insert(path.to_owned(), text);
    let path = "docs/cluster.md";
    let text = fs::read_to_string(root.join(path)).context(path)?;
    let text = between_markers(
        &text,
        "differences from Redis Cluster",
        &differences::from_redis_cluster(),
    )?;
    pages.insert(path.to_owned(), text);
    let path = "docs/benchmarks.json";
    if let Ok(text) = fs::read_to_string(root.join(path)) {
        let results = Results::parse(&text).context(path)?;
        let path = "docs/benchmarks.md";
        let text = fs::read_to_string(root.join(path)).context(path)?;
        pages.insert(path.to_owned(), benchmarks::page(&text, &results)?);
        if let Some(plot) = ratios::plot(&results) {
            pages.insert("docs/plots/ratios.svg".to_owned(), plot);
        }
    }
    let path = "docs/SUMMARY.md";
    if let Ok(text) = fs::read_to_string(root.join(path)) {
        let text = between_markers(&text, "commands", &index::contents(&table))?;
        pages.insert(path.to_owned(), text);
    }
    Ok(pages)
}

/// Returns the paths of pages whose files differ, are missing, or should not exist.
fn differing(root: &Path, pages: &Pages) -> Result<Vec<String>> {
    let mut differing = Vec::new();
    for (path, text) in pages {
        if fs::read_to_string(root.join(path)).ok().as_ref() != Some(text) {
            differing.push(path.clone());
        }
    }
    let Ok(entries) = fs::read_dir(root.join(commands::DIRECTORY)) else { return Ok(differing) };
    for entry in entries {
        let name = entry?.file_name().into_string();
        let Ok(name) = name else { bail!("a name in {} is not UTF-8", commands::DIRECTORY) };
        let path = format!("{}/{name}", commands::DIRECTORY);
        if !pages.contains_key(&path) {
            differing.push(path);
        }
    }
    Ok(differing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_those_of_the_tables() {
        let root = workspace_root();
        let differing = differing(root, &pages(root).unwrap()).unwrap();
        assert!(
            differing.is_empty(),
            "these pages differ from the tables: {}. Run `cargo xtask references` and commit the result.",
            differing.join(", ")
        );
    }
}
