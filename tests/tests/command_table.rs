//! Compares the command table that the server reports, field by field, with that of Redis 7.0.15.
//!
//! For every command that the server has, COMMAND INFO, COMMAND DOCS and COMMAND GETKEYS must return the same as the
//! reference. Commands of later versions, which the reference lacks, are not checked here.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::words::{line, split};
use brisk_testkit::{Conn, Launch, Server};
use brisk_tests::facts;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Intended differences: command (or `*`), field, reason.
const INTENDED: &[(&str, &str, &str)] = &[
    ("client|kill", "arguments", "has the filter MAXAGE of later versions"),
    ("hscan", "arguments", "has the option NOVALUES of later versions"),
    ("migrate", "arguments", "the empty string is shown as two quotes, as Redis 7.0 does"),
    ("zrank", "arity", "has the option of later versions"),
    ("zrank", "arguments", "has the option of later versions"),
    ("zrevrank", "arity", "has the option of later versions"),
    ("zrevrank", "arguments", "has the option of later versions"),
    ("zscan", "arguments", "has the option NOSCORES of later versions"),
    ("memory|usage", "complexity", "sizes are known, nothing is sampled"),
];

/// Groups of which the server has every command, except those in [`NEVER`] and [`LATER`].
const GROUPS: &[&str] = &[
    "string",
    "list",
    "hash",
    "set",
    "sorted-set",
    "generic",
    "connection",
    "server",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "transactions",
    "pubsub",
    "scripting",
    "cluster",
];

/// Commands of [`GROUPS`] for features that the server does not support yet.
const LATER: &[(&str, &str)] = &[];

/// Commands of the reference that the server will never support, each with the reason.
const NEVER: &[(&str, &str)] = &[];

fn server() -> (Server, Conn) {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    conn.hello(3); // maps and sets are more specific than arrays
    (server, conn)
}

fn json_of(reply: &Reply) -> Value {
    match reply {
        Reply::Null => Value::Null,
        Reply::Integer(n) => json!(n),
        Reply::Map(pairs) => {
            pairs.iter().map(|(k, v)| (k.text(), json_of(v))).collect::<Map<_, _>>().into()
        }
        Reply::Array(_) | Reply::Set(_) => {
            reply.elements().into_iter().map(json_of).collect::<Vec<_>>().into()
        }
        other => other.text().into(),
    }
}

/// Sorts a list of words, whose order does not matter.
fn sorted(value: &Value) -> Value {
    let mut words: Vec<String> =
        value.as_array().into_iter().flatten().map(|v| v.as_str().unwrap_or("").into()).collect();
    words.sort();
    json!(words)
}

/// Sorts the flags everywhere in a tree of arguments or key specifications. Drops notes, display texts, and the empty
/// lists that some versions omit.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, value)| {
                !matches!(name.as_str(), "notes" | "display_text") && !is_empty(value)
            })
            .map(|(name, value)| {
                (name.clone(), if name == "flags" { sorted(value) } else { plain(value) })
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

/// The commands and subcommands of the reference by full name.
fn reference() -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for (name, command) in facts("redis-7.0.15.commands").as_object().unwrap() {
        for (full, sub) in command["subcommands"].as_object().into_iter().flatten() {
            all.insert(full.clone(), sub.clone());
        }
        all.insert(name.clone(), command.clone());
    }
    all
}

/// The names that the server lists, including subcommands.
fn listed(conn: &mut Conn) -> Vec<String> {
    let reply = conn.cmd("COMMAND LIST");
    let mut names: Vec<String> = reply.elements().iter().map(|name| name.text()).collect();
    names.sort();
    names
}

/// Collects differences, except the intended ones.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn same(&mut self, command: &str, field: &str, ours: &Value, theirs: &Value) {
        let intended =
            INTENDED.iter().any(|row| (row.0 == command || row.0 == "*") && row.1 == field);
        if ours != theirs && !intended {
            self.0.push(format!("{command}: {field}: ours {ours}, reference {theirs}"));
        }
    }

    #[track_caller]
    fn assert_none(self) {
        assert!(self.0.is_empty(), "{} differences:\n{}", self.0.len(), self.0.join("\n"));
    }
}

#[test]
fn command_info_agrees_with_the_reference() {
    let (_server, mut conn) = server();
    let reference = reference();
    let mut findings = Findings::default();
    for name in listed(&mut conn) {
        let Some(wanted) = reference.get(&name) else { continue };
        let reply = json_of(&conn.cmd(&format!("COMMAND INFO {name}")));
        let info = &reply[0];
        let list = |field: &str| sorted(&wanted[field]);
        findings.same(&name, "name", &info[0], &json!(name));
        findings.same(&name, "arity", &info[1], &wanted["arity"]);
        findings.same(&name, "flags", &sorted(&info[2]), &list("flags"));
        for (place, field) in [(3, "first"), (4, "last"), (5, "step")] {
            findings.same(&name, field, &info[place], &wanted[field]);
        }
        findings.same(&name, "acl", &sorted(&info[6]), &list("acl"));
        findings.same(&name, "tips", &sorted(&info[7]), &list("tips"));
        let none = json!([]);
        let specs = wanted.get("keyspecs").unwrap_or(&none);
        findings.same(&name, "keyspecs", &plain(&info[8]), &plain(specs));
    }
    findings.assert_none();
}

#[test]
fn command_docs_agrees_with_the_reference() {
    let (_server, mut conn) = server();
    let reference = reference();
    let mut findings = Findings::default();
    for name in listed(&mut conn) {
        let Some(wanted) = reference.get(&name) else { continue };
        let reply = json_of(&conn.cmd(&format!("COMMAND DOCS {name}")));
        let docs = &reply[&name];
        assert!(docs["summary"].as_str().is_some_and(|text| !text.is_empty()), "{name}: summary");
        // The wording is our own, but the complexity class at the beginning must be the same.
        let class = |docs: &Value| {
            let text = docs["complexity"].as_str().unwrap_or("");
            json!(text.split_inclusive(')').next().unwrap_or(""))
        };
        if class(wanted).as_str().is_some_and(|class| class.starts_with("O(")) {
            findings.same(&name, "complexity", &class(docs), &class(wanted));
        }
        for field in ["since", "group", "deprecated_since", "replaced_by"] {
            findings.same(&name, field, &docs[field], &wanted[field]);
        }
        findings.same(
            &name,
            "doc_flags",
            &sorted(&docs["doc_flags"]),
            &sorted(&wanted["doc_flags"]),
        );
        findings.same(&name, "arguments", &plain(&docs["arguments"]), &plain(&wanted["arguments"]));
    }
    findings.assert_none();
}

#[test]
fn keys_are_found_where_the_reference_finds_them() {
    let (_server, mut conn) = server();
    let names = listed(&mut conn);
    let reference = reference();
    let mut findings = Findings::default();
    for (call, wanted) in facts("redis-7.0.15.keys").as_object().unwrap() {
        let words: Vec<Vec<u8>> = split(call).unwrap();
        let word = |i: usize| words.get(i).map(|w| String::from_utf8_lossy(w).to_lowercase());
        let first = word(0).unwrap_or_default();
        let full = format!("{first}|{}", word(1).unwrap_or_default());
        if !reference.contains_key(&first) {
            continue;
        }
        if !names.contains(&first) || (has_subcommands(&names, &first) && !names.contains(&full)) {
            continue;
        }
        for (place, command) in [(0, "GETKEYSANDFLAGS"), (1, "GETKEYS")] {
            let ours = conn.cmd(&format!("COMMAND {command} {}", line(&words)));
            let ours = if ours.is_error() { json!(ours.to_string()) } else { json_of(&ours) };
            findings.same(call, command, &flags_sorted(&ours), &flags_sorted(&wanted[place]));
        }
    }
    findings.assert_none();
}

fn has_subcommands(names: &[String], command: &str) -> bool {
    names.iter().any(|name| name.strip_prefix(command).is_some_and(|rest| rest.starts_with('|')))
}

/// Sorts the flags in pairs of a key and its flags. Other values stay unchanged.
fn flags_sorted(value: &Value) -> Value {
    let pair = |item: &Value| {
        if item.is_array() { json!([item[0], sorted(&item[1])]) } else { item.clone() }
    };
    match value {
        Value::Array(items) => items.iter().map(pair).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

#[test]
fn count_list_and_the_whole_table_agree() {
    let (_server, mut conn) = server();
    let all = conn.cmd("COMMAND");
    let commands = all.elements().len() as i64;
    assert_eq!(conn.cmd("COMMAND COUNT").integer(), commands);
    let names = listed(&mut conn);
    assert_eq!(names.iter().filter(|name| !name.contains('|')).count() as i64, commands);
    assert_eq!(conn.cmd("COMMAND DOCS").elements().len() as i64 / 2, commands);
    let strings = conn.cmd("COMMAND LIST FILTERBY ACLCAT string");
    assert!(strings.elements().iter().any(|name| name.text() == "getrange"));
    let get = conn.cmd("COMMAND LIST FILTERBY PATTERN getr*");
    assert_eq!(get.to_string(), "1) \"getrange\"");
    assert_eq!(conn.cmd("COMMAND INFO nosuch get|x").to_string(), "1) (nil)\n2) (nil)");
}

/// Reports whether one of `rows` matches the command: by its name, or by the prefix before `*`.
fn is_in(rows: &[(&str, &str)], name: &str) -> bool {
    rows.iter().any(|row| match row.0.strip_suffix('*') {
        Some(family) => name.starts_with(family),
        None => name == row.0,
    })
}

#[test]
fn the_command_groups_are_complete() {
    let (_server, mut conn) = server();
    let names = listed(&mut conn);
    let mut missing = Vec::new();
    for (name, command) in reference() {
        let group = command["group"].as_str().unwrap();
        let excused = is_in(NEVER, &name) || is_in(LATER, &name);
        if GROUPS.contains(&group) && !excused && !names.contains(&name) {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "{} are missing: {}", missing.len(), missing.join(" "));
    let built: Vec<&String> = names.iter().filter(|name| is_in(LATER, name)).collect();
    assert!(built.is_empty() || subject_is_redis(), "strike from LATER: {built:?}");
}
