//! The single build of the gate, and the executables that it produces.
//!
//! Cargo compiles the workspace once, with the features of all members together. `clippy-driver` stands in for `rustc`
//! where it compiles the workspace's own crates, so one pass gives both code and lints. It omits the checks of raw
//! pointers that `rustc` adds to debug builds, so the crates with unsafe code are linted first and then compiled by
//! `rustc` (`.ci/rustc-with-lints`). A cargo call without [`environment`] would compile the workspace again.

use crate::steps::{our_cargo, workspace_root};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

/// The settings of the dev profile in the gate.
///
/// Debug info would be four fifths of an executable. Without it, panics still show file and line, and backtraces still
/// show function names. Each crate is compiled only once, so the data for incremental compilation would only fill the
/// disk.
const PROFILE: [(&str, &str); 3] = [
    ("CARGO_INCREMENTAL", "0"),
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    ("CARGO_PROFILE_DEV_STRIP", "debuginfo"),
];

/// The packages with unsafe code.
const UNSAFE_PACKAGES: [&str; 2] = ["brisk-structures", "brisk-reactor"];

/// The environment of every cargo call of the gate.
pub(crate) fn environment() -> Vec<(&'static str, String)> {
    let wrapper = workspace_root().join(".ci/rustc-with-lints");
    let mut environment = PROFILE.map(|(name, value)| (name, value.to_owned())).to_vec();
    environment.extend([
        ("RUSTC_WORKSPACE_WRAPPER", wrapper.display().to_string()),
        ("PLAIN_CRATES", UNSAFE_PACKAGES.join(" ").replace('-', "_")),
        // Arguments of clippy-driver, in the form in which cargo-clippy passes them.
        ("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__".to_owned()),
    ]);
    environment
}

/// The sources of a test executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Library,
    Program(String),
    Integration(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestExecutable {
    pub(crate) path: PathBuf,
    pub(crate) package: String,
    pub(crate) target: Target,
    /// The package's directory, in which cargo runs the tests of the package.
    pub(crate) directory: PathBuf,
}

/// The executables of a build.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) tests: Vec<TestExecutable>,
    /// The programs by name.
    pub(crate) programs: BTreeMap<String, PathBuf>,
    /// The directory of the examples.
    pub(crate) examples: Option<PathBuf>,
}

impl Built {
    /// The program with this name.
    ///
    /// # Errors
    /// If there is no such program.
    pub(crate) fn program(&self, name: &str) -> Result<&Path> {
        let path = self.programs.get(name).with_context(|| format!("no program {name} was built"));
        path.map(PathBuf::as_path)
    }
}

/// The build of this process.
static BUILT: OnceLock<Built> = OnceLock::new();

/// The build of this process, if there was one.
pub(crate) fn kept() -> Option<&'static Built> {
    BUILT.get()
}

/// Builds the workspace, once per process. Returns `None` if it does not compile without warnings.
pub(crate) fn built() -> Result<Option<&'static Built>> {
    if BUILT.get().is_none() {
        match build()? {
            Some(built) => return Ok(Some(BUILT.get_or_init(|| built))),
            None => return Ok(None),
        }
    }
    Ok(BUILT.get())
}

fn build() -> Result<Option<Built>> {
    let arguments = ["build", "--workspace", "--all-targets", "--quiet"];
    let mut command = our_cargo(&arguments);
    command.arg("--message-format=json-render-diagnostics").envs(environment());
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let messages = child.stdout.take().context("standard output is piped")?;
    let built = read(BufReader::new(messages))?;
    Ok(child.wait()?.success().then_some(built))
}

/// Reads cargo's messages about a build.
fn read(messages: impl BufRead) -> Result<Built> {
    let mut built = Built::default();
    for line in messages.lines() {
        let line = line?;
        let message: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        let Some(path) = message["executable"].as_str().map(PathBuf::from) else { continue };
        let name = message["target"]["name"].as_str().unwrap_or_default().to_owned();
        let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
        let is_test = message["profile"]["test"].as_bool().unwrap_or(false);
        let target = match (kind, is_test) {
            ("bench" | "custom-build", _) => continue,
            ("example", _) => {
                built.examples = path.parent().map(Path::to_owned);
                continue;
            }
            ("bin", false) => {
                built.programs.insert(name, path);
                continue;
            }
            ("bin", true) => Target::Program(name),
            ("test", _) => Target::Integration(name),
            _ => Target::Library,
        };
        let manifest = message["manifest_path"].as_str().context("a target without a manifest")?;
        let directory = Path::new(manifest).parent().context("a manifest in no directory")?;
        let id = message["package_id"].as_str().context("a target without a package")?;
        let package = package_name(id).to_owned();
        built.tests.push(TestExecutable { path, package, target, directory: directory.to_owned() });
    }
    Ok(built)
}

/// The name in a package ID: `path+file:///dir/name#version`, or `…/dir#name@version` if the directory and the package
/// have different names.
fn package_name(id: &str) -> &str {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(package: &str, kind: &str, name: &str, test: bool, executable: &str) -> String {
        serde_json::json!({
            "reason": "compiler-artifact", "package_id": package, "manifest_path": "/w/crates/cli/Cargo.toml",
            "target": {"kind": [kind], "name": name}, "profile": {"test": test}, "executable": executable,
        })
        .to_string()
    }

    #[test]
    fn tests_programs_and_examples_are_distinguished() {
        let id = "path+file:///w/crates/cli#brisk-cli@0.1.0";
        let lines = [
            r#"{"reason":"compiler-artifact","executable":null}"#.to_owned(),
            message(id, "bin", "brisk-cli", false, "/t/debug/brisk-cli"),
            message(id, "bin", "brisk-cli", true, "/t/debug/deps/brisk_cli-1"),
            message(id, "lib", "brisk_cli", true, "/t/debug/deps/brisk_cli-2"),
            message(id, "test", "it", true, "/t/debug/deps/it-3"),
            message(id, "example", "lock", false, "/t/debug/examples/lock"),
            message(id, "bench", "faults", true, "/t/debug/deps/faults-4"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let built = read(lines.join("\n").as_bytes()).unwrap();
        let targets: Vec<Target> = built.tests.iter().map(|test| test.target.clone()).collect();
        let program = Target::Program("brisk-cli".to_owned());
        assert_eq!(targets, [program, Target::Library, Target::Integration("it".to_owned())]);
        assert!(built.tests.iter().all(|test| test.package == "brisk-cli"));
        assert_eq!(built.tests[0].directory, Path::new("/w/crates/cli"));
        assert_eq!(built.program("brisk-cli").unwrap(), Path::new("/t/debug/brisk-cli"));
        assert!(built.program("faults").is_err());
        assert_eq!(built.examples.as_deref(), Some(Path::new("/t/debug/examples")));
    }

    #[test]
    fn a_package_has_the_name_of_its_directory_unless_the_id_gives_another() {
        assert_eq!(package_name("path+file:///w/xtask#0.1.0"), "xtask");
        assert_eq!(package_name("path+file:///w/crates/client#brisk@0.1.0"), "brisk");
    }
}
