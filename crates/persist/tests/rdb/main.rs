//! RDB files and DUMP payloads: read, written, corrupted, and exchanged with a real server.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

mod digest;
mod exchange;
mod fixtures;
mod layouts;
mod mutated;
mod split;

use brisk_structures::alloc::Peak;
use std::alloc::System;
use std::path::{Path, PathBuf};

#[global_allocator]
static ALLOCATOR: Peak<System> = Peak(System);

/// Returns all RDB files of the fixtures, or of the directory in `RDB_FIXTURES`.
fn fixture_files() -> Vec<PathBuf> {
    let root = std::env::var_os("RDB_FIXTURES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/rdb"),
        PathBuf::from,
    );
    let mut files: Vec<PathBuf> = [root.clone(), root.join("old")]
        .iter()
        .flat_map(|directory| std::fs::read_dir(directory).expect("fixtures are there"))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rdb"))
        .collect();
    files.sort();
    files
}
