//! Each example does what it says, with a Redis server and a Brisk server, and leaves no keys in the database. C5.

use brisk_testkit::server::{Launch, Server, workspace_root};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The directory of the examples, if they are built already.
const EXAMPLES_DIR: &str = "BRISK_EXAMPLES_DIR";

/// The directory of the examples, which are built with the same profile as this test.
fn directory() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(directory) = std::env::var_os(EXAMPLES_DIR) {
            return directory.into();
        }
        let executable = std::env::current_exe().expect("this test's own path");
        // target/<profile>/deps/examples-1234
        let profile = executable.ancestors().nth(2).expect("a directory of the profile");
        let name = profile.file_name().and_then(|name| name.to_str()).unwrap_or("debug");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // If all tests are run, the examples are already built. If this test is run alone, they may be outdated or
        // missing.
        let built = Command::new(cargo)
            .args(["build", "--quiet", "--package", "brisk", "--examples", "--profile"])
            .arg(if name == "debug" { "dev" } else { name })
            .current_dir(workspace_root())
            .env("CARGO_TARGET_DIR", profile.parent().unwrap_or(profile))
            .output()
            .expect("cargo runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        profile.join("examples")
    })
}

#[track_caller]
fn runs_alone_to_its_end(example: &str) {
    let program = directory().join(example);
    for server in [Launch::redis().start(), Launch::subject().start()] {
        runs(&program, &server);
    }
}

#[track_caller]
fn runs(program: &Path, server: &Server) {
    let url = format!("redis://{}", server.address());
    let done = Command::new(program).arg(url).output().expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{}: {out}{err}", program.display());
    let left = server.connect().cmd("KEYS *");
    assert!(left.elements().is_empty(), "{} leaves {left:?}", program.display());
}

#[test]
fn quick_start() {
    runs_alone_to_its_end("quick_start");
}

#[test]
fn cache_aside() {
    runs_alone_to_its_end("cache_aside");
}

#[test]
fn lock() {
    runs_alone_to_its_end("lock");
}

#[test]
fn rate_limiter() {
    runs_alone_to_its_end("rate_limiter");
}

#[test]
fn consumer_group() {
    runs_alone_to_its_end("consumer_group");
}

#[test]
fn sharded_map() {
    runs_alone_to_its_end("sharded_map");
}

#[test]
fn bloom() {
    runs_alone_to_its_end("bloom");
}

#[test]
fn pubsub() {
    runs_alone_to_its_end("pubsub");
}

#[test]
fn transactions() {
    runs_alone_to_its_end("transactions");
}
