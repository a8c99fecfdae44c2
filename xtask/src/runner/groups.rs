//! Defines which tests run together in one process.
//!
//! Each module of an integration test executable is a group. Any other executable is one group. A group's name begins
//! with its package: `brisk-tests/failover`, `brisk-engine/lib`, `brisk-cli/bin:brisk-cli`. The name of a test begins
//! with its group: `brisk-tests/failover::a_replica_takes_over`. If the tests of an integration test executable are not
//! in modules, the group has the executable's name. So a group keeps its name when its file becomes a module of a
//! larger executable.

use crate::artifacts::{Target, TestExecutable};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::process::Command;

/// Tests of one executable that run in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group<'b> {
    pub(super) name: String,
    pub(super) executable: &'b TestExecutable,
    /// The names of the tests within the executable.
    pub(super) tests: Vec<String>,
}

impl Group<'_> {
    /// The name by which the runner shows a test.
    pub(super) fn full_name(&self, test: &str) -> String {
        full_name(&self.name, test)
    }
}

/// The groups of an executable.
pub(super) fn groups_of(executable: &TestExecutable) -> Result<Vec<Group<'_>>> {
    let mut command = Command::new(&executable.path);
    let listed = command.arg("--list").current_dir(&executable.directory).output();
    let listed = listed.with_context(|| format!("cannot run {}", executable.path.display()))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let tests = listed_tests(&text).with_context(|| {
        format!("{} does not list its tests (harness = false?)", executable.path.display())
    })?;
    Ok(grouped(executable, tests))
}

/// The names in the output of `--list`, which ends with their number.
fn listed_tests(text: &str) -> Result<Vec<&str>> {
    let tests: Vec<&str> = text.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let last = text.lines().last().unwrap_or_default();
    let number = last.split(' ').next().unwrap_or_default();
    if !last.contains(" benchmark") || number.parse() != Ok(tests.len()) {
        bail!("{} tests, but the last line is `{last}`", tests.len());
    }
    Ok(tests)
}

fn grouped<'b>(executable: &'b TestExecutable, tests: Vec<&str>) -> Vec<Group<'b>> {
    let package = &executable.package;
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for test in tests {
        let name = match &executable.target {
            Target::Library => format!("{package}/lib"),
            Target::Program(program) => format!("{package}/bin:{program}"),
            Target::Integration(target) => {
                let module = test.split_once("::").map_or(target.as_str(), |(module, _)| module);
                format!("{package}/{module}")
            }
        };
        groups.entry(name).or_default().push(test.to_owned());
    }
    let groups = groups.into_iter();
    groups.map(|(name, tests)| Group { name, executable, tests }).collect()
}

/// The name by which the runner shows a test of a group.
pub(super) fn full_name(group: &str, test: &str) -> String {
    let (_, module) = group.split_once('/').unwrap_or(("", group));
    let own = test.strip_prefix(module).and_then(|rest| rest.strip_prefix("::")).unwrap_or(test);
    format!("{group}::{own}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executable(target: Target) -> TestExecutable {
        let package = "p".to_owned();
        TestExecutable { path: "x".into(), package, target, directory: "d".into() }
    }

    fn names(target: Target, tests: &[&str]) -> Vec<String> {
        let executable = executable(target);
        let groups = grouped(&executable, tests.to_vec());
        let tests = groups.iter().flat_map(|g| g.tests.iter().map(|test| g.full_name(test)));
        tests.collect()
    }

    #[test]
    fn modules_of_integration_tests_are_groups_and_other_executables_are_one() {
        let integration = |name: &str| Target::Integration(name.to_owned());
        assert_eq!(
            names(integration("it"), &["a::t", "a::m::t", "b::t"]),
            ["p/a::t", "p/a::m::t", "p/b::t"]
        );
        assert_eq!(names(integration("failover"), &["t", "u"]), ["p/failover::t", "p/failover::u"]);
        assert_eq!(names(Target::Library, &["a::t", "b::t"]), ["p/lib::a::t", "p/lib::b::t"]);
        assert_eq!(names(Target::Program("q".to_owned()), &["t"]), ["p/bin:q::t"]);
        assert_eq!(names(Target::Library, &[]), Vec::<String>::new());
    }

    #[test]
    fn an_executable_that_does_not_list_its_tests_is_an_error() {
        assert_eq!(
            listed_tests("a: test\nb::c: test\n\n2 tests, 0 benchmarks\n").unwrap(),
            ["a", "b::c"]
        );
        assert_eq!(listed_tests("a: test\n\n1 test, 0 benchmarks\n").unwrap(), ["a"]);
        assert!(listed_tests("0 tests, 0 benchmarks\n").unwrap().is_empty());
        for other in ["", "running …\n", "a: test\n\n2 tests, 0 benchmarks\n"] {
            assert!(listed_tests(other).is_err(), "{other}");
        }
    }
}
