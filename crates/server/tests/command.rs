//! Checks that COMMAND describes each of Brisk's commands as a real Redis server does, field by field.

use brisk_testkit::reply::Reply;
use brisk_testkit::server::Program;
use brisk_testkit::{Conn, Launch, Server};

fn brisk() -> Server {
    Launch::new(Program::At(env!("CARGO_BIN_EXE_brisk-server").into())).set("threads", "2").start()
}

/// Fields with Brisk's own texts. The test only checks that they exist.
const OWN_WORDS: &[&str] = &["summary", "complexity", "replaced_by", "notes"];

/// Subcommands are compared individually under their own names, because a container may not have all of them yet.
const SUBCOMMANDS: &str = "subcommands";

/// Commands of later versions, which the reference server lacks, and Brisk's own commands.
const LATER: &[&str] = &[
    "client|capa",
    "client|durability",
    "client|no-touch",
    "client|setinfo",
    "cluster|myshardid",
    "hexpire",
    "hexpireat",
    "hexpiretime",
    "hgetdel",
    "hgetex",
    "hpersist",
    "hpexpire",
    "hpexpireat",
    "hpexpiretime",
    "hpttl",
    "hsetex",
    "httl",
    "replication",
    "replication|compare",
    "replication|help",
    "script|show",
    "waitaof",
];

/// Commands whose reported properties differ intentionally, each with the reason.
const INTENDED: &[(&str, &str)] = &[
    ("client|kill", "has MAXAGE of later versions"),
    ("hscan", "has NOVALUES of 7.4"),
    ("zrank", "has WITHSCORE of 7.2"),
    ("zrevrank", "has WITHSCORE of 7.2"),
    ("zscan", "has NOSCORES of Valkey 8.0"),
];

/// The field with prose about a key specification.
const NOTES: &str = "notes";

/// Returns the reply without parts that may differ: Brisk's own texts and the order of unordered sets.
fn canonical(reply: &Reply) -> Reply {
    match reply {
        Reply::Array(items) if is_flat_map(items) => {
            let pairs = items.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
            canonical(&Reply::Map(pairs.collect()))
        }
        Reply::Map(pairs) => Reply::Map(
            pairs
                .iter()
                .filter(|(name, _)| name.text() != NOTES)
                .map(|(name, value)| (name.clone(), canonical_field(name, value)))
                .collect(),
        ),
        Reply::Array(items) => Reply::Array(items.iter().map(canonical).collect()),
        Reply::Set(items) => {
            let mut items: Vec<Reply> = items.iter().map(canonical).collect();
            items.sort();
            Reply::Set(items)
        }
        other => other.clone(),
    }
}

fn canonical_field(name: &Reply, value: &Reply) -> Reply {
    let name = name.text();
    if OWN_WORDS.contains(&name.as_str()) || name == SUBCOMMANDS {
        return Reply::Bulk(b"(not compared)".to_vec());
    }
    match name.as_str() {
        "history" => Reply::Array(
            value.elements().iter().map(|change| change.elements()[0].clone()).collect(),
        ),
        "flags" | "doc_flags" => {
            let mut flags: Vec<Reply> = value.elements().into_iter().cloned().collect();
            flags.sort();
            Reply::Array(flags)
        }
        _ => canonical(value),
    }
}

/// True if an array contains names and values alternately, which is how RESP2 represents a map.
fn is_flat_map(items: &[Reply]) -> bool {
    let first = items.first().map(Reply::text).unwrap_or_default();
    items.len().is_multiple_of(2)
        && ["name", "summary", "flags", "notes", "type"].contains(&first.as_str())
}

/// Returns an entry of COMMAND INFO: name, arity, flags, three numbers, categories, tips, keys,
/// subcommands. Sets are sorted.
fn entry(reply: &Reply) -> Vec<Reply> {
    let sorted = |reply: &Reply| {
        let mut items: Vec<Reply> = reply.elements().into_iter().cloned().collect();
        items.sort();
        Reply::Array(items)
    };
    let fields = reply.elements();
    let facts = fields.iter().enumerate().map(|(at, field)| match at {
        2 | 6 | 7 => sorted(field),
        8 => Reply::Array(field.elements().into_iter().map(canonical).collect()),
        9 => Reply::Array(Vec::new()),
        _ => (*field).clone(),
    });
    facts.collect()
}

/// Returns the names of Brisk's commands and subcommands that the reference server also has.
fn shared_names(ours: &mut Conn, theirs: &mut Conn) -> Vec<String> {
    let list = |conn: &mut Conn| -> Vec<String> {
        conn.cmd("COMMAND LIST").elements().iter().map(|name| name.text()).collect()
    };
    let (ours, theirs) = (list(ours), list(theirs));
    let unknown: Vec<&String> = ours.iter().filter(|name| !theirs.contains(name)).collect();
    for name in &unknown {
        assert!(LATER.contains(&name.as_str()), "{name} is in no reference");
    }
    let kept = |name: &String| {
        theirs.contains(name) && !INTENDED.iter().any(|(intended, _)| intended == name)
    };
    ours.into_iter().filter(kept).collect()
}

fn compare_all(ours: &mut Conn, theirs: &mut Conn) {
    for name in shared_names(ours, theirs) {
        let command = format!("COMMAND INFO {name}");
        let (our, their) = (ours.cmd(&command), theirs.cmd(&command));
        assert_eq!(entry(our.elements()[0]), entry(their.elements()[0]), "{command}");
        let command = format!("COMMAND DOCS {name}");
        let (our, their) = (ours.cmd(&command), theirs.cmd(&command));
        assert_eq!(our.elements()[0], their.elements()[0], "{command}");
        assert_eq!(canonical(our.elements()[1]), canonical(their.elements()[1]), "{command}");
    }
}

#[test]
fn facts_and_documentation_are_those_of_the_reference() {
    let (ours, theirs) = (brisk(), Launch::redis().start());
    compare_all(&mut ours.connect(), &mut theirs.connect());
}

#[test]
fn resp3_shows_sets_and_maps_where_the_reference_does() {
    let (ours, theirs) = (brisk(), Launch::redis().start());
    let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
    ours.hello(3);
    theirs.hello(3);
    for name in shared_names(&mut ours, &mut theirs) {
        let subcommands = |conn: &mut Conn| {
            let reply = conn.cmd(&format!("COMMAND LIST FILTERBY PATTERN {name}|*"));
            let mut names: Vec<Reply> = reply.elements().into_iter().cloned().collect();
            names.sort();
            names
        };
        if subcommands(&mut ours) != subcommands(&mut theirs) {
            continue;
        }
        for command in [format!("COMMAND INFO {name}"), format!("COMMAND DOCS {name}")] {
            assert_eq!(
                kinds(&canonical(&ours.cmd(&command))),
                kinds(&canonical(&theirs.cmd(&command))),
                "{command}"
            );
        }
    }
}

/// Returns the types of a reply's parts, without their number and order.
fn kinds(reply: &Reply) -> String {
    let parts = |open: char, items: Vec<&Reply>, close: char| {
        let mut inner: Vec<String> = items.into_iter().map(kinds).collect();
        inner.sort();
        inner.dedup();
        format!("{open}{}{close}", inner.concat())
    };
    match reply {
        Reply::Array(_) => parts('[', reply.elements(), ']'),
        Reply::Set(_) => parts('(', reply.elements(), ')'),
        Reply::Map(_) => parts('{', reply.elements(), '}'),
        Reply::Status(_) => "+".to_owned(),
        Reply::Bulk(_) => "$".to_owned(),
        Reply::Integer(_) => ":".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn all_subcommands_list_the_same_commands() {
    let server = brisk();
    let mut conn = server.connect();
    let count = conn.cmd("COMMAND COUNT").integer() as usize;
    assert_eq!(conn.cmd("COMMAND").elements().len(), count);
    assert_eq!(conn.cmd("COMMAND INFO").elements().len(), count);
    assert_eq!(conn.cmd("COMMAND DOCS").elements().len(), 2 * count);
    let names: Vec<String> =
        conn.cmd("COMMAND LIST").elements().iter().map(|name| name.text()).collect();
    assert_eq!(names.iter().filter(|name| !name.contains('|')).count(), count);
    let filtered = |conn: &mut Conn, line: &str| -> Vec<String> {
        let mut names: Vec<String> =
            conn.cmd(line).elements().iter().map(|name| name.text()).collect();
        names.sort();
        names
    };
    let line = "COMMAND LIST FILTERBY PATTERN *ReNaMe*";
    assert_eq!(filtered(&mut conn, line), ["rename", "renamenx"]);
    let blocking = filtered(&mut conn, "COMMAND LIST FILTERBY ACLCAT KeySpace");
    assert!(blocking.contains(&"object|encoding".to_owned()), "{blocking:?}");
}

#[test]
fn keys_and_errors_are_those_of_the_reference() {
    let (ours, theirs) = (brisk(), Launch::redis().start());
    let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
    for line in [
        "COMMAND NOSUCH",
        "COMMAND COUNT x",
        "COMMAND GETKEYS",
        "COMMAND GETKEYS GET",
        "COMMAND GETKEYS GET a",
        "COMMAND GETKEYS GET a b",
        "COMMAND GETKEYS SET a",
        "COMMAND GETKEYS nosuch a",
        "COMMAND GETKEYS PING a",
        "COMMAND GETKEYS mset a b c d",
        "COMMAND GETKEYS mset a b c",
        "COMMAND GETKEYS CONFIG GET",
        "COMMAND GETKEYS CONFIG GET x",
        "COMMAND GETKEYS CONFIG|GET x",
        "COMMAND GETKEYS OBJECT ENCODING k",
        "COMMAND GETKEYS OBJECT NOSUCH k",
        "COMMAND GETKEYSANDFLAGS SET a b",
        "COMMAND GETKEYSANDFLAGS SET a b GET",
        "COMMAND GETKEYSANDFLAGS RENAME a b",
        "COMMAND GETKEYSANDFLAGS PING a",
        "COMMAND INFO nosuch get|nosuch",
        "COMMAND DOCS nosuch",
        "COMMAND LIST FILTERBY",
        "COMMAND LIST FILTERBY NOSUCH x",
        "COMMAND LIST FILTERBY MODULE x",
        "COMMAND LIST FILTERBY ACLCAT nosuch",
        "COMMAND LIST x",
        "LOLWUT VERSION x",
        "TIME x",
    ] {
        assert_eq!(ours.cmd(line), theirs.cmd(line), "{line}");
    }
}

#[test]
fn lolwut_ends_with_the_version_and_time_is_now() {
    let server = brisk();
    let mut conn = server.connect();
    for line in ["LOLWUT", "LOLWUT VERSION 5 1 2", "LOLWUT nonsense"] {
        assert!(conn.cmd(line).text().ends_with("\nRedis ver. 7.2.4\n"), "{line}");
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let reply = conn.cmd("TIME");
    let words: Vec<u64> =
        reply.elements().iter().map(|word| word.text().parse().unwrap()).collect();
    assert!(words[0].abs_diff(since.as_secs()) < 60 && words[1] < 1_000_000, "{reply}");
}
