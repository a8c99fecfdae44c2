//! All rows of the server's command table as calls of a client.

use super::names;
use super::replies::reply;
use super::tree::{BLOCK, Function, Method, Node, functions, variants};
use brisk_engine::command::{Flags, InMulti, Spec};
use brisk_engine::table::CommandTable;

/// The properties that decide how a command is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits {
    pub(super) reads_only: bool,
    pub(super) blocks: bool,
    pub(super) binds: bool,
}

impl Traits {
    /// The name of the constant with these traits.
    pub(super) fn constant(self) -> &'static str {
        match (self.reads_only, self.blocks, self.binds) {
            (false, false, false) => "PLAIN",
            (true, false, false) => "READS",
            (false, true, false) => "BLOCKS",
            (true, true, false) => "READS_AND_BLOCKS",
            (false, false, true) => "BINDS",
            (false, true, true) => "BINDS_AND_BLOCKS",
            (true, _, true) => panic!("no command that reads changes the connection"),
        }
    }
}

/// A function of the client.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// For example `client|list`.
    pub(super) row: &'a str,
    /// For example `client_list`. Several functions may share it.
    pub(super) base: String,
    /// For example `CLIENT LIST`.
    pub(super) words: String,
    pub(super) spec: &'static Spec,
    pub(super) function: Function,
    pub(super) syntax: String,
    pub(super) reply: &'static str,
    /// The marker type of its options, if it has options.
    pub(super) options: Option<String>,
    pub(super) traits: Traits,
}

/// Options that several functions share.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) base: String,
    /// One of the functions.
    pub(super) function: String,
    pub(super) words: String,
    pub(super) module: &'static str,
    pub(super) reply: &'static str,
    pub(super) methods: Vec<Method>,
}

/// The calls and options of all rows.
#[derive(Debug)]
pub(super) struct Calls<'a> {
    pub(super) calls: Vec<Call<'a>>,
    pub(super) options: Vec<Options>,
}

/// Commands that change the state of their connection, or depend on what was done on it. Commands whose rows already
/// show this (by an effect on a transaction or the selected database, or as part of Pub/Sub) are not listed.
const BINDS: &[&str] = &[
    // The identity of the connection.
    "auth",
    "client|setinfo",
    "client|setname",
    "hello",
    // The format of its replies.
    "client|caching",
    "client|capa",
    "client|durability",
    "client|reply",
    "client|tracking",
    "monitor",
    "script|debug",
    // How its commands are processed.
    "asking",
    "client|no-evict",
    "client|no-touch",
    "readonly",
    "readwrite",
    "unwatch",
    // Later commands are queued, or may be rejected.
    "multi",
    "watch",
    // They depend on what was written on this connection.
    "wait",
    "waitaof",
    // The connection becomes that of a replica.
    "psync",
    "replconf",
    "sync",
];

fn traits(row: &str, spec: &Spec, fork: Option<&str>, may_wait: bool) -> Traits {
    let subscribes = spec.flags.contains(Flags::PUBSUB)
        && (spec.flags.contains(Flags::NOSCRIPT) || spec.flags.contains(Flags::UNSUBSCRIBES));
    let of_transactions =
        matches!(spec.in_multi, InMulti::Selects | InMulti::Ends | InMulti::Executes);
    let binds = subscribes || of_transactions || BINDS.contains(&row);
    Traits {
        reads_only: spec.flags.contains(Flags::READONLY) && !binds,
        blocks: spec.flags.contains(Flags::BLOCKING) && (!may_wait || fork == Some(BLOCK)),
        binds,
    }
}

/// The calls of all rows except containers, whose subcommands have their own rows.
pub(super) fn calls(table: &CommandTable) -> Calls<'_> {
    let mut all = Calls { calls: Vec::new(), options: Vec::new() };
    for row in table.all().filter(|row| !row.is_container()) {
        let words = row.name.replace('|', " ").to_uppercase();
        let variants = variants(&row.name, row.spec.args);
        let may_wait = variants.iter().any(|variant| variant.fork == Some(BLOCK));
        for variant in variants {
            let (functions, methods) = functions(&row.name, &variant);
            let syntax: Vec<_> = variant.nodes.iter().map(Node::syntax).collect();
            let syntax = format!("{words} {}", syntax.join(" ")).trim().to_owned();
            let reply = reply(&variant.base);
            let traits = traits(&row.name, row.spec, variant.fork, may_wait);
            let options = (!methods.is_empty()).then(|| names::type_name(&variant.base));
            let first = functions.first().map(|function| function.name.clone());
            for function in functions {
                all.calls.push(Call {
                    row: &row.name,
                    base: variant.base.clone(),
                    words: words.clone(),
                    spec: row.spec,
                    function,
                    syntax: syntax.clone(),
                    reply,
                    options: options.clone(),
                    traits,
                });
            }
            if options.is_some() {
                all.options.push(Options {
                    base: variant.base,
                    function: first.unwrap_or_default(),
                    words: words.clone(),
                    module: names::module(row.spec.group.name()),
                    reply,
                    methods,
                });
            }
        }
    }
    all
}
