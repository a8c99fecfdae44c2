//! Checks of `packaging/Containerfile` that need no container engine: it is parsed as intended, copies only existing
//! files, and does not start as root.

use super::programs::PROGRAMS;
use brisk_testkit::server::workspace_root;
use serde_json::Value;
use std::fs;

/// The instructions that this file may use.
const KNOWN: &[&str] = &[
    "FROM",
    "RUN",
    "WORKDIR",
    "COPY",
    "USER",
    "VOLUME",
    "EXPOSE",
    "STOPSIGNAL",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
];

/// The instructions, each with its arguments. Lines that end with a backslash continue on the next line.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let split = |line: &str| {
        let (name, rest) = line.trim().split_once(' ')?;
        Some((name.to_owned(), rest.split_whitespace().collect::<Vec<_>>().join(" ")))
    };
    joined.lines().filter_map(split).collect()
}

fn container() -> Vec<(String, String)> {
    let path = workspace_root().join("packaging/Containerfile");
    instructions(&fs::read_to_string(path).expect("the file is part of the project"))
}

/// The arguments of all instructions with one name.
fn of<'a>(all: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    all.iter().filter(|(known, _)| known == name).map(|(_, words)| words.as_str()).collect()
}

/// A command as a list of arguments, without a shell.
fn words(text: &str) -> Vec<String> {
    let list: Value = serde_json::from_str(text).expect("a list of words in JSON");
    let list = list.as_array().expect("a list");
    list.iter().map(|word| word.as_str().expect("a word").to_owned()).collect()
}

#[test]
fn every_instruction_is_known_and_two_stages_begin_with_a_named_image() {
    let all = container();
    for (name, _) in &all {
        assert!(KNOWN.contains(&name.as_str()), "{name}");
    }
    assert_eq!(all[0].0, "FROM");
    let [build, last] = of(&all, "FROM")[..] else { panic!("two stages") };
    assert!(build.ends_with(" AS build") && !last.contains(" AS "), "{build}, {last}");
    for image in [build, last] {
        let (name, tag) = image.split(' ').next().unwrap().split_once(':').unwrap();
        assert!(name.starts_with("docker.io/library/") && tag != "latest", "{image}");
    }
}

#[test]
fn copied_files_are_built_first() {
    let all = container();
    let built = of(&all, "RUN").into_iter().find(|run| run.contains("cargo build")).unwrap();
    for copy in of(&all, "COPY").into_iter().filter(|copy| copy.starts_with("--from=build ")) {
        let paths: Vec<&str> = copy.split(' ').skip(1).collect();
        for path in &paths[..paths.len() - 1] {
            let name = path.rsplit('/').next().unwrap();
            match PROGRAMS.iter().find(|program| program.name == name) {
                Some(program) => {
                    assert!(built.contains(&format!("--package {}", program.package)), "{name}");
                }
                None => assert!(workspace_root().join(name).exists(), "{path}"),
            }
        }
    }
}

#[test]
fn the_container_starts_the_server_without_root_and_checks_it() {
    let all = container();
    let last = all.iter().rposition(|(name, _)| name == "FROM").unwrap();
    let all = &all[last..];
    assert_eq!(of(all, "USER"), ["brisk"]);
    assert_eq!(of(all, "EXPOSE"), ["6379"]);
    let entry = words(of(all, "ENTRYPOINT")[0]);
    assert_eq!(entry, ["/usr/local/bin/brisk-server"]);
    let directory = of(all, "VOLUME")[0];
    let arguments = words(of(all, "CMD")[0]);
    let at = arguments.iter().position(|word| word == "--dir").unwrap();
    assert_eq!(arguments[at + 1], directory);
    let (_, check) = of(all, "HEALTHCHECK")[0].split_once("CMD ").unwrap();
    assert_eq!(words(check), ["/usr/local/bin/brisk-cli", "-e", "ping"]);
}
