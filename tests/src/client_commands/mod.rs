//! Generates the client's typed commands from the server's command table.
//!
//! | part | contents |
//! |---|---|
//! | `rows` | all rows as calls, with the types that have them as methods |
//! | `tree` | the argument trees, and the functions and options that are derived from them |
//! | `names` | the names of functions and options |
//! | `replies` | the types of replies |
//! | `write` | the generated code |
//!
//! The test `client_commands` compares the generated files with the committed ones. With `BRISK_BLESS=1`, it overwrites
//! them.

mod names;
mod replies;
mod rows;
mod tree;
mod write;

use brisk_engine::table::CommandTable;
use rows::{Call, Calls};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::{Command, Stdio};

/// The directory of the generated files, relative to the workspace.
pub const DIRECTORY: &str = "crates/client/src/commands";

/// A type that has the commands as methods.
struct Owner {
    /// The name of the type, and its path.
    name: &'static str,
    path: &'static str,
    directory: &'static str,
    about: &'static str,
    takes: fn(&Call<'_>) -> bool,
}

const OWNERS: &[Owner] = &[
    Owner {
        name: "Client",
        path: "crate::client::Client",
        directory: "methods",
        about: "shared connections",
        takes: |call| !call.traits.binds && !call.traits.blocks && is_recommended(call),
    },
    Owner {
        name: "Session",
        path: "crate::session::Session",
        directory: "session_methods",
        about: "a session",
        takes: |call| is_recommended(call) && !has_unpaired_replies(call),
    },
];

/// Reports whether replies no longer correspond to requests after this command. Only a `Subscriber` supports that.
fn has_unpaired_replies(call: &Call<'_>) -> bool {
    call.row.ends_with("subscribe")
        || ["client|reply", "monitor", "psync", "sync"].contains(&call.row)
}

/// Reports whether the command is neither deprecated nor only for communication between servers.
fn is_recommended(call: &Call<'_>) -> bool {
    call.spec.deprecated.is_none() && !call.spec.syscmd
}

/// The commands of the server.
///
/// # Panics
/// If the table cannot be built.
pub fn table() -> CommandTable {
    brisk_server::commands::table(&[]).expect("nothing is renamed").0
}

/// The rows, and the functions generated for each.
pub fn functions(table: &CommandTable) -> BTreeMap<String, Vec<String>> {
    let mut functions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for call in rows::calls(table).calls {
        functions.entry(call.row.to_owned()).or_default().push(call.function.name);
    }
    functions
}

/// Entries about replies that belong to no function or option, and duplicate entries.
pub fn replies_of_nothing(table: &CommandTable) -> Vec<&'static str> {
    let calls = rows::calls(table);
    let known: BTreeSet<_> = calls.calls.iter().map(|call| call.base.as_str()).collect();
    let mut seen = BTreeSet::new();
    let said = replies::REPLIES.iter().flat_map(|(_, names)| names.split_whitespace());
    let said: Vec<_> = said.filter(|name| !seen.insert(*name) || !known.contains(name)).collect();
    let has_option = |name: &str, option: &str| {
        let options = calls.options.iter().find(|options| options.base == name);
        options.is_some_and(|options| options.methods.iter().any(|method| method.name == option))
    };
    let switches = replies::SWITCHES.iter().filter(|(name, option, _)| !has_option(name, option));
    let notes = replies::NOTES.iter().map(|(name, _)| *name).filter(|name| !known.contains(name));
    said.into_iter().chain(switches.map(|(name, ..)| *name)).chain(notes).collect()
}

/// All generated files: the path in [`DIRECTORY`], and the text.
///
/// # Errors
/// If `rustfmt` is missing, or reports a syntax error.
pub fn files(table: &CommandTable) -> io::Result<BTreeMap<String, String>> {
    let calls = rows::calls(table);
    let mut files = BTreeMap::new();
    let groups: BTreeSet<_> =
        calls.calls.iter().map(|call| (module(call), call.spec.group.name())).collect();
    for (module, group) in &groups {
        files.insert(format!("{module}.rs"), group_file(&calls, module, group));
        let options = options_file(&calls, module, group);
        if let Some(options) = options {
            files.insert(format!("options/{module}.rs"), options);
        }
        for owner in OWNERS {
            if let Some(methods) = methods_file(owner, &calls, module, group) {
                files.insert(format!("{}/{module}.rs", owner.directory), methods);
            }
        }
    }
    files.insert("types.rs".to_owned(), types_file());
    let parts = |directory: &str| -> Vec<String> {
        let of =
            |path: &String| path.strip_prefix(directory)?.strip_suffix(".rs").map(str::to_owned);
        let parts = files.keys().filter_map(of);
        parts.filter(|part| !part.contains('/')).collect()
    };
    let (all, options) = (parts(""), parts("options/"));
    let owners: Vec<_> =
        OWNERS.iter().map(|owner| (owner, parts(&format!("{}/", owner.directory)))).collect();
    files.insert("mod.rs".to_owned(), root_file(&all) + &special(&calls));
    files.insert("options/mod.rs".to_owned(), options_root(&options));
    for (owner, parts) in owners {
        files.insert(format!("{}/mod.rs", owner.directory), methods_root(owner, &parts));
    }
    for text in files.values_mut() {
        *text = formatted(text)?;
    }
    Ok(files)
}

fn module(call: &Call<'_>) -> &'static str {
    names::module(call.spec.group.name())
}

fn head(paragraphs: &[&str]) -> String {
    let written =
        "Written by the test `client_commands` from the server's command table: do not edit.";
    let mut head = String::new();
    let all: Vec<_> = paragraphs.iter().chain(&[written]).map(|text| (*text).to_owned()).collect();
    write::docs(&mut head, "//!", &all);
    head + "\n"
}

/// The possible imports: the path, and the names.
const IMPORTS: &[(&str, &[&str])] = &[
    ("super", &["BINDS", "BINDS_AND_BLOCKS", "BLOCKS", "PLAIN", "READS", "READS_AND_BLOCKS"]),
    ("crate::arg", &["ToArg", "ToArgs"]),
    ("crate::command", &["Command"]),
    ("crate::commands", &["options", "types"]),
    ("crate::request", &["Request"]),
];

/// The imports that `text` needs.
fn with_imports(head: &str, text: &str) -> String {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    let code = text.lines().filter(|line| !line.trim_start().starts_with("///"));
    let words: BTreeSet<_> = code.flat_map(|line| line.split(|c| !letter(c))).collect();
    let mut out = head.to_owned();
    for (path, names) in IMPORTS {
        let used: Vec<_> = names.iter().filter(|name| words.contains(**name)).copied().collect();
        if !used.is_empty() {
            out += &format!("use {path}::{{{}}};\n", used.join(", "));
        }
    }
    out + "\n" + text
}

fn group_file(calls: &Calls<'_>, of: &str, group: &str) -> String {
    let mut text = String::new();
    let own = calls.calls.iter().filter(|call| module(call) == of);
    own.for_each(|call| call.write_function(&mut text));
    with_imports(&head(&[&format!("Commands of the group `{group}`.")]), &text)
}

fn options_file(calls: &Calls<'_>, module: &str, group: &str) -> Option<String> {
    let mut text = String::new();
    for options in calls.options.iter().filter(|options| options.module == module) {
        write::write_options(&mut text, options);
    }
    let head = head(&[&format!("Options of the commands of the group `{group}`.")]);
    (!text.is_empty()).then(|| with_imports(&head, &text))
}

fn methods_file(owner: &Owner, calls: &Calls<'_>, of: &str, group: &str) -> Option<String> {
    let mut text = String::new();
    let own = calls.calls.iter().filter(|call| module(call) == of && (owner.takes)(call));
    own.for_each(|call| call.write_method(&mut text, owner.name));
    if text.is_empty() {
        return None;
    }
    let text = format!(
        "/// Commands of the group `{group}`.\nimpl {} {{\n{}\n}}\n",
        owner.name,
        text.trim_end()
    );
    let about = format!("Commands of the group `{group}` as methods of {}.", owner.about);
    let commands = format!("use {};\nuse crate::commands;\n", owner.path);
    Some(with_imports(&(head(&[&about]) + &commands), &text))
}

fn types_file() -> String {
    let mut text = "use crate::arg::{Args, ToArg};\n\n".to_owned();
    write::write_types(&mut text);
    head(&["Arguments with a fixed set of values."]) + &text
}

fn root_file(parts: &[String]) -> String {
    let mut text = head(&[
        "Free functions that build a command without a client: for a batch, or for a client that sends it \
         ([`on`](crate::Command::on)).",
        "Required arguments are parameters. Optional arguments are methods of the command, see [`options`]. The \
         number of keys is not a parameter: it is counted.",
    ]);
    let groups = parts.iter().filter(|part| *part != "types");
    for part in groups.clone() {
        text += &format!("mod {part};\n");
    }
    for owner in OWNERS {
        text += &format!("mod {};\n", owner.directory);
    }
    text += "pub mod options;\npub mod types;\n\nuse crate::request::Traits;\n\n";
    for part in groups {
        text += &format!("pub use {part}::*;\n");
    }
    text.push('\n');
    let constants = [
        (false, false, false),
        (true, false, false),
        (false, true, false),
        (true, true, false),
        (false, false, true),
        (false, true, true),
    ];
    for (reads_only, blocks, binds) in constants {
        let name = rows::Traits { reads_only, blocks, binds }.constant();
        text += &format!(
            "const {name}: Traits = Traits {{ reads_only: {reads_only}, blocks: {blocks}, binds: {binds} \
             }};\n"
        );
    }
    text
}

/// Lists of commands that are not suitable for shared connections, for commands that callers specify by name.
fn special(calls: &Calls<'_>) -> String {
    let list = |about: &str, name: &str, takes: fn(&Call<'_>) -> bool| {
        let taken = calls.calls.iter().filter(|call| takes(call));
        let words: BTreeSet<&str> = taken.map(|call| call.words.as_str()).collect();
        let words: Vec<&str> = words.into_iter().collect();
        format!("\n/// {about}\npub(crate) const {name}: &[&str] = &{words:?};\n")
    };
    // XREAD and similar commands block only on request.
    list("Commands that change the state of their connection; sorted.", "BINDING", |call| {
        call.traits.binds
    }) + &list("Commands that may block until another client acts; sorted.", "BLOCKING", |call| {
        call.traits.blocks && !call.words.starts_with('X')
    })
}

fn options_root(parts: &[String]) -> String {
    let mut text = head(&["Optional arguments of commands: a type for each command that has any."]);
    parts.iter().for_each(|part| text += &format!("mod {part};\n"));
    parts.iter().for_each(|part| text += &format!("pub use {part}::*;\n"));
    text
}

fn methods_root(owner: &Owner, parts: &[String]) -> String {
    let mut text = head(&[&format!("The commands as methods of {}.", owner.about)]);
    parts.iter().for_each(|part| text += &format!("mod {part};\n"));
    text
}

/// Formats code like `cargo fmt`.
fn formatted(text: &str) -> io::Result<String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config", "max_width=100,use_small_heuristics=Max"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = rustfmt.stdin.take().expect("it is a pipe");
    // rustfmt reads all input before it writes anything.
    io::Write::write_all(&mut stdin, text.as_bytes())?;
    drop(stdin);
    let output = rustfmt.wait_with_output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}
