//! Compares every row of the command table with data from a real server of version 7.0.15.
//!
//! `data/commands.json` has the output of COMMAND INFO and COMMAND DOCS, without prose: of each
//! history only the versions, of each complexity only the formula, and of a key specification's
//! notes only whether they exist. `data/keys.json` has the output of COMMAND GETKEYSANDFLAGS for
//! example requests.

use brisk_engine::command::{Arg, ArgKind, Begin, Find, Flags, KeyFlags, KeySpec, Spec};
use brisk_engine::{Command, commands, keyspec};
use serde_json::{Map, Value, json};

/// Intended differences: command and field. For this complexity, the reference has whole sentences,
/// and our row has a formula and our own text.
const INTENDED: &[(&str, &str)] = &[("migrate", "complexity")];

fn reference() -> Map<String, Value> {
    serde_json::from_str(include_str!("data/commands.json")).expect("the data file is JSON")
}

/// The names that fit, in alphabetical order.
fn names<'a>(names: impl Iterator<Item = &'a str>) -> Value {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    json!(names)
}

fn flag_names(flags: KeyFlags) -> Value {
    let listed = KeyFlags::NAMES.iter().filter(|(flag, _)| flags.contains(*flag));
    json!(listed.map(|(_, name)| *name).collect::<Vec<_>>())
}

fn formula(complexity: &str) -> &str {
    let mut depth = 0;
    for (at, byte) in complexity.bytes().enumerate() {
        depth += i32::from(byte == b'(') - i32::from(byte == b')');
        if byte == b')' && depth == 0 {
            return &complexity[..=at];
        }
    }
    complexity
}

fn key_spec_facts(spec: &KeySpec) -> Value {
    let begin = match spec.begin {
        Begin::Index(index) => json!({"type": "index", "spec": {"index": index}}),
        Begin::Keyword { keyword, from } => {
            json!({"type": "keyword", "spec": {"keyword": keyword, "startfrom": from}})
        }
        Begin::Unknown => json!({"type": "unknown", "spec": {}}),
    };
    let find = match spec.find {
        Find::Range { last, step, limit } => {
            json!({"type": "range", "spec": {"lastkey": last, "keystep": step, "limit": limit}})
        }
        Find::KeyNum { count_at, first, step } => {
            let spec = json!({"keynumidx": count_at, "firstkey": first, "keystep": step});
            json!({"type": "keynum", "spec": spec})
        }
        Find::Unknown => json!({"type": "unknown", "spec": {}}),
    };
    let mut facts = Map::new();
    if !spec.notes.is_empty() {
        facts.insert("notes".into(), json!(true));
    }
    facts.insert("flags".into(), flag_names(spec.flags));
    facts.insert("begin_search".into(), begin);
    facts.insert("find_keys".into(), find);
    Value::Object(facts)
}

fn arg_facts(arg: &Arg) -> Value {
    let (kind, parts) = match arg.kind {
        ArgKind::String => ("string", None),
        ArgKind::Integer => ("integer", None),
        ArgKind::Double => ("double", None),
        ArgKind::Key => ("key", None),
        ArgKind::Pattern => ("pattern", None),
        ArgKind::UnixTime => ("unix-time", None),
        ArgKind::Token => ("pure-token", None),
        ArgKind::OneOf(parts) => ("oneof", Some(parts)),
        ArgKind::Block(parts) => ("block", Some(parts)),
    };
    let mut facts = Map::new();
    facts.insert("name".into(), json!(arg.name));
    facts.insert("type".into(), json!(kind));
    if let Some(index) = arg.key_spec {
        facts.insert("key_spec_index".into(), json!(index));
    }
    for (name, text) in
        [("token", arg.token), ("since", arg.since), ("deprecated_since", arg.deprecated_since)]
    {
        // An empty text can be a token: MIGRATE has one.
        if !text.is_empty() || (name == "token" && matches!(arg.kind, ArgKind::Token)) {
            facts.insert(name.into(), json!(text));
        }
    }
    let flags = [
        (arg.optional, "optional"),
        (arg.multiple, "multiple"),
        (arg.multiple_token, "multiple_token"),
    ];
    let flags: Vec<&str> = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
    if !flags.is_empty() {
        facts.insert("flags".into(), json!(flags));
    }
    if let Some(parts) = parts {
        facts.insert("arguments".into(), parts.iter().map(arg_facts).collect());
    }
    Value::Object(facts)
}

fn facts(command: &Command, container: Option<&Spec>) -> Map<String, Value> {
    let spec = &command.spec;
    let mut facts = Map::new();
    let mut put = |name: &str, value: Value| {
        let empty = value.as_array().is_some_and(Vec::is_empty);
        if !empty || ["flags", "acl"].contains(&name) {
            facts.insert(name.into(), value);
        }
    };
    put("arity", json!(spec.arity));
    let listed = Flags::NAMES.iter().filter(|(flag, _)| spec.flags.contains(*flag));
    put("flags", names(listed.map(|(_, name)| *name)));
    let categories = spec.all_categories();
    let listed = brisk_engine::command::Categories::NAMES.iter();
    let acl: Vec<String> = listed
        .filter(|(category, _)| categories.contains(*category))
        .map(|(_, name)| format!("@{name}"))
        .collect();
    put("acl", names(acl.iter().map(String::as_str)));
    put("tips", json!(spec.tips));
    put("keyspecs", spec.keys.iter().map(key_spec_facts).collect());
    put("group", json!(spec.group.name()));
    put("since", json!(spec.since));
    put("complexity", json!(formula(spec.complexity)));
    put("history", spec.history.iter().map(|(version, _)| json!(version)).collect());
    put("arguments", spec.args.iter().map(arg_facts).collect());
    let mut doc_flags = Vec::new();
    if let Some(deprecated) = &spec.deprecated {
        put("deprecated_since", json!(deprecated.since));
        put("replaced_by", json!(deprecated.replaced_by));
        doc_flags.push("deprecated");
    }
    if spec.syscmd {
        doc_flags.push("syscmd");
    }
    put("doc_flags", json!(doc_flags));
    assert!(container.is_none() || command.subcommands.is_empty());
    facts
}

fn compare(name: &str, got: &Map<String, Value>, want: &Map<String, Value>) -> Vec<String> {
    let fields = got.keys().chain(want.keys().filter(|field| !got.contains_key(*field)));
    fields
        .filter(|field| *field != "subcommands" && !INTENDED.contains(&(name, field.as_str())))
        .filter(|field| got.get(*field) != want.get(*field))
        .map(|field| {
            let shown = |side: &Map<String, Value>| match side.get(field) {
                Some(value) => value.to_string(),
                None => "nothing".to_owned(),
            };
            format!("{name}.{field}\n  is     {}\n  wanted {}", shown(got), shown(want))
        })
        .collect()
}

#[test]
fn every_row_states_the_facts_of_the_reference() {
    let reference = reference();
    let mut differences = Vec::new();
    for command in commands::all() {
        let name = command.spec.name;
        let Some(want) = reference.get(name).and_then(Value::as_object) else { continue };
        differences.extend(compare(name, &facts(command, None), want));
        for sub in command.subcommands {
            let full = format!("{name}|{}", sub.spec.name);
            match want["subcommands"][&full].as_object() {
                Some(want) => {
                    differences.extend(compare(&full, &facts(sub, Some(&command.spec)), want));
                }
                None => differences.push(format!("{full} is not in the reference")),
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_string_group_is_complete() {
    let is_string = |facts: &Value| facts["group"] == "string";
    let mut wanted: Vec<String> =
        reference().into_iter().filter(|(_, facts)| is_string(facts)).map(|(n, _)| n).collect();
    let strings = commands::all().filter(|command| command.spec.group.name() == "string");
    let mut found: Vec<&str> = strings.map(|command| command.spec.name).collect();
    wanted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn keys_are_found_with_the_flags_they_have_in_that_request() {
    let examples: Map<String, Value> =
        serde_json::from_str(include_str!("data/keys.json")).unwrap();
    for (line, want) in &examples {
        let words: Vec<&[u8]> =
            line.split(' ').map(|word| word.trim_matches('"').as_bytes()).collect();
        let named = |command: &&Command| {
            command.spec.name.as_bytes().eq_ignore_ascii_case(words[0])
                && command.subcommands.is_empty()
        };
        let Some(command) = commands::all().find(named) else { continue };
        if command.spec.keys.iter().any(|keys| matches!(keys.begin, Begin::Unknown)) {
            continue; // SORT: its own logic finds its keys.
        }
        let found = keyspec::find_keys(&command.spec, words.len(), &|index| words[index]).unwrap();
        let found: Vec<Value> = found
            .iter()
            .map(|key| json!([String::from_utf8_lossy(words[key.index]), flag_names(key.flags)]))
            .collect();
        assert_eq!(json!(found), want[0], "{line}");
    }
}
