//! A directory with an append-only file, which several servers use one after the other.

use brisk_testkit::{Launch, Server, TempDir};
use std::path::PathBuf;

/// The manifest's name in its directory.
pub const MANIFEST: &str = "appendonly.aof.manifest";

/// The directory.
pub struct AofHome(TempDir);

impl Default for AofHome {
    fn default() -> AofHome {
        AofHome::new()
    }
}

impl AofHome {
    /// Creates an empty directory.
    pub fn new() -> AofHome {
        AofHome(TempDir::new())
    }

    /// A path in `dir`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    /// The directory that contains the files of the append-only file.
    pub fn files(&self) -> PathBuf {
        self.0.path("appendonlydir")
    }

    /// The lines of the manifest.
    ///
    /// # Panics
    /// If there is no manifest.
    pub fn manifest(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.files().join(MANIFEST));
        text.expect("there is a manifest").lines().map(str::to_owned).collect()
    }

    /// The file that is being written: the last one in the manifest.
    ///
    /// # Panics
    /// If there is no manifest.
    pub fn increment(&self) -> PathBuf {
        let lines = self.manifest();
        let name = lines.last().and_then(|line| line.split(' ').nth(1));
        self.files().join(name.expect("the manifest names a file"))
    }

    /// The server under test, with its append-only file in this directory.
    pub fn launch(&self, appendfsync: &str) -> Launch {
        self.at_home(Launch::subject()).set("appendfsync", appendfsync)
    }

    /// Any server, with its append-only file in this directory.
    ///
    /// # Panics
    /// If the path is not UTF-8.
    pub fn at_home(&self, launch: Launch) -> Launch {
        let dir = self.path("");
        let dir = dir.to_str().expect("a path of ASCII letters");
        launch.set("dir", dir).set("appendonly", "yes").set("auto-aof-rewrite-percentage", "0")
    }

    /// Starts a server, and waits until it has loaded everything.
    pub fn load(launch: Launch) -> Server {
        let server = launch.start();
        server.wait_for_info("loading", |state| state == "0");
        server
    }
}
