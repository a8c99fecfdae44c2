//! Command rows from the reference table of a real server (the JSON files in `tests/data`).
//!
//! With them the runner can compare real Redis with real Redis, even for commands that we do not support yet. A
//! difference found this way is a missing row in [`super::rules`], not a bug of a server.

use super::table::{Row, Table};
use anyhow::{Context, Result, bail};
use brisk_engine::command::{Arg, ArgKind, Flags, Group, Spec};
use serde_json::Value;
use std::path::Path;

/// The table in the JSON file at `path`. Its rows live as long as the process.
pub fn read(path: &Path) -> Result<Table> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let json: Value = serde_json::from_str(&text)?;
    let mut table = Table::default();
    for (name, facts) in json.as_object().context("not an object of commands")? {
        let word = leak(name);
        table.rows.push(Row { name: name.clone(), words: vec![word], spec: spec(word, facts)? });
        for (full, facts) in facts["subcommands"].as_object().into_iter().flatten() {
            let sub = leak(full.split_once('|').context("a subcommand without `|`")?.1);
            let words = vec![word, sub];
            table.rows.push(Row { name: full.clone(), words, spec: spec(sub, facts)? });
        }
    }
    Ok(table)
}

fn spec(name: &'static str, facts: &Value) -> Result<&'static Spec> {
    let mut flags = Flags::empty();
    for flag in facts["flags"].as_array().into_iter().flatten() {
        let known = Flags::NAMES.iter().find(|row| flag.as_str() == Some(row.1));
        flags = flags.union(known.with_context(|| format!("unknown flag {flag}"))?.0);
    }
    Ok(Box::leak(Box::new(Spec {
        name,
        group: group(&facts["group"]),
        arity: facts["arity"].as_i64().context("no arity")?.try_into()?,
        flags,
        args: args(&facts["arguments"])?,
        ..Spec::EMPTY
    })))
}

fn group(name: &Value) -> Group {
    const GROUPS: [Group; 16] = [
        Group::Generic,
        Group::String,
        Group::List,
        Group::Set,
        Group::SortedSet,
        Group::Hash,
        Group::PubSub,
        Group::Transactions,
        Group::Connection,
        Group::Server,
        Group::Scripting,
        Group::HyperLogLog,
        Group::Cluster,
        Group::Geo,
        Group::Stream,
        Group::Bitmap,
    ];
    let found = GROUPS.into_iter().find(|group| name.as_str() == Some(group.name()));
    found.unwrap_or(Group::Generic)
}

fn args(list: &Value) -> Result<&'static [Arg]> {
    let made: Result<Vec<Arg>> = list.as_array().into_iter().flatten().map(arg).collect();
    Ok(Vec::leak(made?))
}

fn arg(facts: &Value) -> Result<Arg> {
    let name = leak(facts["name"].as_str().unwrap_or(""));
    let has = |flag: &str| {
        facts["flags"].as_array().into_iter().flatten().any(|f| f.as_str() == Some(flag))
    };
    let kind = match facts["type"].as_str().unwrap_or("") {
        "string" => ArgKind::String,
        "integer" => ArgKind::Integer,
        "double" => ArgKind::Double,
        "key" => ArgKind::Key,
        "pattern" => ArgKind::Pattern,
        "unix-time" => ArgKind::UnixTime,
        "pure-token" => ArgKind::Token,
        "oneof" => ArgKind::OneOf(args(&facts["arguments"])?),
        "block" => ArgKind::Block(args(&facts["arguments"])?),
        other => bail!("unknown argument type {other}"),
    };
    let mut arg = Arg::string(name).after(leak(facts["token"].as_str().unwrap_or("")));
    arg.kind = kind;
    arg.optional = has("optional");
    arg.multiple = has("multiple");
    arg.multiple_token = has("multiple_token");
    Ok(arg)
}

fn leak(text: &str) -> &'static str {
    String::leak(text.to_owned())
}
