//! The software bill of materials: every crate that is compiled into a program, with its version, its license, and its
//! checksum from Cargo.lock. The format is CycloneDX 1.5 as JSON.

use super::output;
use super::programs::{PROGRAMS, Program};
use anyhow::{Context, Result};
use brisk_testkit::server::workspace_root;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::process::Command;

/// Maximum number of crates in a bill. A longer graph would be an error.
const CRATES_MAX: usize = 10_000;

/// Cargo's metadata about the workspace and its dependencies, for one target.
pub(super) fn metadata(target: &str) -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version=1", "--locked", "--filter-platform", target]);
    let text = output(command.current_dir(workspace_root()))?;
    serde_json::from_str(&text).context("cargo metadata: no JSON")
}

/// The bill of all programs of a release.
pub(super) fn bill(metadata: &Value, built: &str) -> Result<Value> {
    let lock = fs::read_to_string(workspace_root().join("Cargo.lock")).context("Cargo.lock")?;
    let checksums = checksums(&lock);
    let packages: HashMap<&str, &Value> =
        list(metadata, "/packages")?.iter().filter_map(|p| Some((text(p, "id")?, p))).collect();
    let edges = edges(metadata)?;
    let roots: BTreeSet<&str> = PROGRAMS.iter().map(|program| program.package).collect();
    let mut open: Vec<&str> = packages
        .iter()
        .filter(|(_, p)| {
            p["source"].is_null() && text(p, "name").is_some_and(|n| roots.contains(n))
        })
        .map(|(id, _)| *id)
        .collect();
    let mut reached = BTreeSet::new();
    while let Some(id) = open.pop() {
        if reached.len() < CRATES_MAX && reached.insert(id) {
            open.extend(edges.get(id).into_iter().flatten());
        }
    }
    let reference = |id: &str| packages.get(id).map(|p| purl(p)).unwrap_or_default();
    let mut components = BTreeMap::new();
    let mut dependencies = BTreeMap::new();
    for id in &reached {
        let package = packages.get(id).with_context(|| format!("{id}: no such package"))?;
        components.insert(purl(package), component(package, &checksums));
        let mut on: Vec<String> =
            edges.get(id).into_iter().flatten().map(|to| reference(to)).collect();
        on.sort();
        on.dedup();
        dependencies.insert(purl(package), json!({"ref": purl(package), "dependsOn": on}));
    }
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": built,
            "component": {
                "type": "application",
                "bom-ref": "brisk",
                "name": "brisk",
                "version": Program::version(),
                "licenses": [{"expression": "Apache-2.0 OR MIT"}],
            },
        },
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies.into_values().collect::<Vec<_>>(),
    }))
}

/// The dependencies of each package, without those that only tests need.
fn edges(metadata: &Value) -> Result<HashMap<&str, Vec<&str>>> {
    let mut edges: HashMap<&str, Vec<&str>> = HashMap::new();
    for node in list(metadata, "/resolve/nodes")? {
        let Some(from) = text(node, "id") else { continue };
        for dependency in node["deps"].as_array().into_iter().flatten() {
            let compiled = dependency["dep_kinds"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"));
            if let (true, Some(to)) = (compiled, text(dependency, "pkg")) {
                edges.entry(from).or_default().push(to);
            }
        }
    }
    Ok(edges)
}

fn component(package: &Value, checksums: &HashMap<(String, String), String>) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": name,
        "version": version,
        "purl": purl(package),
    });
    if let Some(licence) = text(package, "license") {
        // Older crates separate licenses with a slash.
        component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    let key = (name.unwrap_or_default().to_owned(), version.unwrap_or_default().to_owned());
    if let Some(sum) = checksums.get(&key) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    component
}

/// The package URL of a crate.
fn purl(package: &Value) -> String {
    let part = |key| text(package, key).unwrap_or_default();
    format!("pkg:cargo/{}@{}", part("name"), part("version"))
}

/// The checksums in a Cargo.lock, by name and version.
fn checksums(lock: &str) -> HashMap<(String, String), String> {
    let mut sums = HashMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.strip_prefix(" = ")?.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) =
            (value("name"), value("version"), value("checksum"))
        {
            sums.insert((name, version), sum);
        }
    }
    sums
}

fn list<'a>(value: &'a Value, path: &str) -> Result<&'a Vec<Value>> {
    value.pointer(path).and_then(Value::as_array).with_context(|| format!("no list {path}"))
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value[key].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_has_what_is_compiled_and_not_what_only_tests_need() {
        let bill = bill(&metadata("x86_64-unknown-linux-gnu").unwrap(), "then").unwrap();
        let components = bill["components"].as_array().unwrap();
        let find = |name: &str| components.iter().find(|component| component["name"] == name);
        assert_eq!(find("memchr").unwrap()["hashes"][0]["alg"], "SHA-256");
        assert_eq!(find("mlua").unwrap()["licenses"][0]["expression"], "MIT");
        assert!(find("tikv-jemalloc-sys").is_some() && find("luau0-src").is_some());
        assert!(find("brisk-testkit").is_none() && find("rcgen").is_none());
        let known: BTreeSet<&str> =
            components.iter().filter_map(|component| component["bom-ref"].as_str()).collect();
        for dependency in bill["dependencies"].as_array().unwrap() {
            for on in dependency["dependsOn"].as_array().unwrap() {
                assert!(known.contains(on.as_str().unwrap()), "{on}");
            }
        }
    }
}
