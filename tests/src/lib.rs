//! Facts asked of real servers, kept in `data/`, for the tests that compare against them.
//!
//! The tests themselves stand in `tests/`, one file per behaviour. `BRISK_TEST_SUBJECT=redis cargo
//! test -p brisk-tests` runs them against a real Redis, which shows that they ask for the right
//! thing; what is asserted of our server only says so.
#![forbid(unsafe_code)]

use brisk_testkit::Launch;
use brisk_testkit::server::subject_is_redis;
use serde_json::Value;
use std::path::Path;

/// The facts in `data/<name>.json`.
#[track_caller]
pub fn facts(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(format!("{name}.json"));
    match std::fs::read_to_string(&path).map(|text| serde_json::from_str(&text)) {
        Ok(Ok(value)) => value,
        other => panic!("{}: {other:?}", path.display()),
    }
}

/// A server with so many workers; a real Redis has its own number.
pub fn with_workers(workers: usize) -> Launch {
    let launch = Launch::subject();
    if subject_is_redis() { launch } else { launch.set("threads", &workers.to_string()) }
}
