//! `brisk-server --doctor`: the real program on this machine. The unit tests of the checks (`crates/server/src/doctor`)
//! cover other machines.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::TempDir;
use brisk_testkit::server::{brisk_binary, subject_is_redis};
use serde_json::Value;
use std::process::{Command, Output};

fn doctor(words: &[&str]) -> Output {
    Command::new(brisk_binary().unwrap()).arg("--doctor").args(words).output().unwrap()
}

/// The findings for a topic: the state and the description.
fn of_topic(output: &Output, topic: &str) -> Vec<(String, String)> {
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = all.as_array().unwrap().iter().filter(|finding| finding["topic"] == topic);
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    all.map(|finding| (text(finding, "state"), text(finding, "what"))).collect()
}

#[test]
fn the_doctor_reports_what_it_finds_on_this_machine() {
    if subject_is_redis() {
        return;
    }
    let dir = TempDir::new();
    let directory = dir.path("");
    let directory = directory.to_str().unwrap();
    // Nothing is saved, so that the disk of the test machine cannot be a problem, and the few clients fit within any
    // limit.
    let well = ["--dir", directory, "--save", "", "--maxclients", "10", "--maxmemory", "2mb"];
    let output = doctor(&[&["--json"][..], &well].concat());
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    for topic in ["configuration", "kernel", "open files", "maxmemory", "disk", "room", "access"] {
        let found = of_topic(&output, topic);
        assert_eq!((found.len(), found[0].0.as_str()), (1, "ok"), "{topic}: {printed}");
    }
    assert_eq!(of_topic(&output, "persistence")[0].0, "note");
    let output = doctor(&well);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\nproblems: 0, warnings: "), "{text}");
    assert!(text.lines().any(|line| line.starts_with("ok       disk             fsync takes ")));
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
}

#[test]
fn problems_are_reported_and_set_the_exit_code() {
    if subject_is_redis() {
        return;
    }
    let dir = TempDir::new();
    let file = dir.path("brisk.conf");
    let name = file.to_str().unwrap();
    for (text, topic, said) in [
        ("port 1\nnosuch 5\n", "configuration", "at line 2 >>> 'nosuch 5'"),
        ("bind *\nprotected-mode no\n", "access", "protected-mode is off"),
        ("maxmemory 1000000gb\n", "maxmemory", "more than the total memory"),
        ("tls-port 7000\n", "tls", "No tls-cert-file configured!"),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = doctor(&["--json", name]);
        let found = of_topic(&output, topic);
        assert_eq!(found[0].0, "problem", "{text}: {found:?}");
        assert!(found[0].1.contains(said), "{text}: {found:?}");
        assert_eq!(output.status.code(), Some(1));
    }
}
