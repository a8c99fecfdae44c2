//! Temporary directories for tests.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary directory for one test, removed when the value is dropped.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// Creates a new directory.
    ///
    /// # Panics
    /// If the directory cannot be created.
    #[expect(clippy::new_without_default, reason = "it is made, not defaulted")]
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("brisk-dir-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a test needs its directory");
        Self(std::fs::canonicalize(path).expect("a test needs its directory"))
    }

    /// The path of a file with this name in the directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}
