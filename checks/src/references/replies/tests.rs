//! Compares the types of replies that a server sends with those in the table.

use super::{Shape, all, of};
use brisk_differential::generate::Generator;
use brisk_differential::peer::Peer;
use brisk_differential::table::Table;
use brisk_engine::table::{CommandTable, Row};
use brisk_testkit::random::Random;
use brisk_testkit::words::{line, split};
use brisk_testkit::{Launch, Server};
use std::collections::{BTreeMap, BTreeSet};

/// Number of random calls in each protocol.
const CALLS: usize = 15_000;

/// Commands that stop the connection or the server, need other servers, or always fail. The test does not run them.
/// Those of `cluster` could only run in cluster mode.
const NOT_RUN: &[&str] = &[
    "acl|load",
    "acl|save",
    "asking",
    "client|reply",
    "config|rewrite",
    "failover",
    "function|kill",
    "function|restore",
    "migrate",
    "module|load",
    "module|loadex",
    "module|unload",
    "monitor",
    "psync",
    "quit",
    "replconf",
    "restore-asking",
    "script|debug",
    "script|kill",
    "shutdown",
    "sync",
];

/// A reply that needs a second connection with a known address.
const NOT_SEEN: (&str, Shape) = ("client|kill", Shape::Status);

/// Calls that the generator does not make, in this order.
const LINES: &[&str] = &[
    "FLUSHALL",
    "RANDOMKEY",
    "SET k v",
    "RPUSH l a b c",
    "HSET h f v g w",
    "ZADD z 1 a 2 b",
    "ACL CAT",
    "ACL CAT string",
    "ACL SETUSER u on nopass +@all",
    "ACL SETUSER u -@all",
    "ACL DRYRUN u GET k",
    "ACL DELUSER u",
    "ACL DRYRUN default GET k",
    "ACL GENPASS",
    "ACL GETUSER default",
    "ACL GETUSER nosuch",
    "ACL LIST",
    "ACL LOG",
    "ACL LOG RESET",
    "ACL USERS",
    "ACL WHOAMI",
    "ACL HELP",
    "AUTH default x",
    "BGREWRITEAOF",
    "BGSAVE SCHEDULE",
    "SAVE",
    "CLIENT CAPA redirect",
    "READONLY",
    "READWRITE",
    "CLIENT DURABILITY MEMORY",
    "CLIENT HELP",
    "CLIENT INFO",
    "CLIENT LIST",
    "CLIENT KILL ID 1000000",
    "CLIENT NO-TOUCH ON",
    "CLIENT NO-TOUCH OFF",
    "CLIENT PAUSE 0",
    "CLIENT UNPAUSE",
    "CLIENT SETINFO LIB-NAME x",
    "CLIENT TRACKING ON OPTIN",
    "CLIENT CACHING YES",
    "CLIENT TRACKING OFF",
    "CLUSTER HELP",
    "COMMAND",
    "COMMAND COUNT",
    "COMMAND DOCS get",
    "COMMAND HELP",
    "COMMAND INFO get",
    "COMMAND LIST",
    "CONFIG HELP",
    "CONFIG SET maxmemory 0",
    "DEBUG SLEEP 0",
    "EVAL 'return 1' 0",
    "EVAL_RO 'return 1' 0",
    "SCRIPT LOAD 'return 1'",
    "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
    "EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
    "SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
    "SCRIPT SHOW e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
    "SCRIPT HELP",
    "SCRIPT FLUSH",
    "FUNCTION LOAD REPLACE \"#!lua name=l\\nredis.register_function{function_name='f', \
     callback=function() return 1 end, flags={'no-writes'}}\"",
    "FCALL f 0",
    "FCALL_RO f 0",
    "FUNCTION LIST WITHCODE",
    "FUNCTION STATS",
    "FUNCTION DUMP",
    "FUNCTION HELP",
    "FUNCTION DELETE l",
    "FUNCTION FLUSH",
    "GEOADD geo 1 2 a 3 4 b",
    "GEODIST geo a b",
    "HEXPIRE h 100 FIELDS 2 f nosuch",
    "HPEXPIRE h 100000 FIELDS 1 f",
    "HEXPIREAT h 9999999999 FIELDS 1 f",
    "HPEXPIREAT h 9999999999999 FIELDS 1 f",
    "HEXPIRETIME h FIELDS 1 f",
    "HPEXPIRETIME h FIELDS 1 f",
    "HTTL h FIELDS 1 f",
    "HPTTL h FIELDS 1 f",
    "HPERSIST h FIELDS 1 f",
    "HGETEX h FIELDS 1 f",
    "HSETEX h FIELDS 1 f v",
    "HGETDEL h FIELDS 1 f",
    "HTTL nosuch FIELDS 1 f",
    "HRANDFIELD h 2 WITHVALUES",
    "HSCAN h 0 NOVALUES",
    "INFO",
    "LATENCY DOCTOR",
    "LATENCY HELP",
    "LATENCY HISTOGRAM",
    "CONFIG SET latency-monitor-threshold 1",
    "DEBUG SLEEP 0.01",
    "LATENCY GRAPH command",
    "LOLWUT",
    "LPOS l b",
    "MEMORY DOCTOR",
    "MEMORY HELP",
    "MEMORY MALLOC-STATS",
    "MEMORY STATS",
    "MODULE HELP",
    "MODULE LIST",
    "MULTI",
    "DISCARD",
    "WATCH k",
    "SET k w",
    "MULTI",
    "EXEC",
    "MULTI",
    "EXEC",
    "OBJECT HELP",
    "CONFIG SET maxmemory-policy allkeys-lfu",
    "OBJECT FREQ k",
    "CONFIG SET maxmemory-policy noeviction",
    "BITOP NOT d k",
    "PFADD p a",
    "PFDEBUG ENCODING p",
    "PFSELFTEST",
    "PUBSUB HELP",
    "PUNSUBSCRIBE p",
    "SUNSUBSCRIBE c",
    "UNSUBSCRIBE c",
    "REPLICAOF NO ONE",
    "SLAVEOF NO ONE",
    "REPLICATION",
    "REPLICATION COMPARE",
    "REPLICATION HELP",
    "SLOWLOG HELP",
    "WAITAOF 0 0 1",
    "XADD s 1-1 a b",
    "XADD nosuch NOMKSTREAM 1-1 a b",
    "XGROUP CREATE s g 0",
    "XREADGROUP GROUP g c STREAMS s >",
    "XREADGROUP GROUP g c STREAMS s >",
    "XCLAIM s g c 0 1-1",
    "XAUTOCLAIM s g c 0 0",
    "XGROUP SETID s g 0",
    "XGROUP HELP",
    "XINFO HELP",
    "ZMPOP 1 z MIN",
    "ZRANK z b",
    "ZRANK z b WITHSCORE",
    "ZRANK z nosuch WITHSCORE",
    "ZREVRANK z b",
    "ZREVRANK z b WITHSCORE",
    "ZREVRANK z nosuch WITHSCORE",
    "ZSCORE z b",
    "ZSCAN z 0 NOSCORES",
    "CLIENT HELP",
    "RESET",
    "SUBSCRIBE c",
    "PING x",
    "PSUBSCRIBE p",
    "SSUBSCRIBE c",
];

#[test]
fn every_command_has_its_reply_in_the_table_once() {
    let table = brisk_server::commands::table(&[]).unwrap().0;
    for row in table.all() {
        let is_container = row.is_container() && row.spec.arity.abs() > 1;
        assert_eq!(of(row).is_none(), is_container, "{}: its reply belongs in `replies`", row.name);
    }
    let mut names = BTreeSet::new();
    for (name, _) in all() {
        assert!(table.find_full(name.as_bytes()).is_some(), "{name} is no command");
        assert!(names.insert(name), "{name} is there twice");
    }
}

/// Reports whether a reply has the type.
fn fits(shape: Shape, reply: &[u8], is_resp3: bool) -> bool {
    let kind = reply[0];
    let is_null = reply.starts_with(b"$-1") || reply.starts_with(b"*-1");
    match (shape, is_resp3) {
        (Shape::Any | Shape::Nothing, _) => true,
        (Shape::Null | Shape::NullArray, true) => kind == b'_',
        (Shape::Null, false) => reply.starts_with(b"$-1"),
        (Shape::NullArray, false) => reply.starts_with(b"*-1"),
        _ if is_null => false,
        (Shape::Status, _) => kind == b'+',
        (Shape::Integer, _) => kind == b':',
        (Shape::Bulk, _) | (Shape::Double | Shape::Verbatim, false) => kind == b'$',
        (Shape::Double, true) => kind == b',',
        (Shape::Verbatim, true) => kind == b'=',
        (Shape::Array | Shape::Pairs, _) => kind == b'*',
        (Shape::Map | Shape::Set | Shape::Streams | Shape::Messages, false) => kind == b'*',
        (Shape::Map | Shape::Streams, true) => kind == b'%',
        (Shape::Set, true) => kind == b'~',
        (Shape::Messages, true) => kind == b'>',
    }
}

/// Runs calls on one connection, and records which commands have replied without an error.
struct Runner<'t> {
    table: &'t CommandTable,
    peer: Peer,
    is_resp3: bool,
    /// The commands, and the indexes of the reply variants that were seen.
    seen: BTreeSet<(String, usize)>,
    /// Replies with unexpected types, by command and type.
    findings: BTreeMap<(String, u8), String>,
}

impl Runner<'_> {
    fn run(&mut self, words: &[Vec<u8>]) {
        let reply =
            self.peer.request(words).unwrap_or_else(|error| panic!("{}: {error}", line(words)));
        if reply.starts_with(b"-") {
            return;
        }
        let Some(row) = row_of(self.table, words) else { return };
        // The reply of a command that MULTI queues is that of MULTI.
        if reply == b"+QUEUED\r\n" {
            return;
        }
        let variants = of(row).unwrap_or_default();
        let fitting = (0..variants.len())
            .filter(|number| fits(variants[*number].0, reply, self.is_resp3))
            .map(|number| (row.full_name().to_owned(), number));
        self.seen.extend(fitting.clone());
        if fitting.count() == 0 {
            let start = String::from_utf8_lossy(&reply[..reply.len().min(80)]);
            let resp = if self.is_resp3 { 3 } else { 2 };
            let finding = format!("RESP{resp}: {}: {start:?}", line(words));
            self.findings.insert((row.full_name().to_owned(), reply[0]), finding);
        }
    }
}

fn row_of<'t>(table: &'t CommandTable, words: &[Vec<u8>]) -> Option<&'t Row> {
    let row = table.find(words.first()?)?;
    Some(words.get(1).and_then(|word| row.subcommand(word)).unwrap_or(row))
}

fn run(server: &Server, table: &CommandTable, is_resp3: bool) -> BTreeSet<(String, usize)> {
    let peer = Peer::connect(&server.address()).unwrap();
    let mut runner =
        Runner { table, peer, is_resp3, seen: BTreeSet::new(), findings: BTreeMap::new() };
    let hello = if is_resp3 { "HELLO 3" } else { "HELLO 2" };
    runner.run(&split(hello).unwrap());
    let mut calls = Table::default();
    calls.add(brisk_engine::commands::all());
    calls.add(brisk_server::commands::all());
    calls.retain(|name| !matches!(name, "hello" | "reset" | "exec" | "discard" | "auth"));
    let mut generator = Generator::new(&calls, Random::new(1));
    for _ in 0..CALLS {
        runner.run(&generator.words());
    }
    for words in LINES {
        runner.run(&split(words).unwrap());
        if *words == "RESET" {
            runner.run(&split(hello).unwrap());
        }
    }
    let findings: Vec<String> = runner.findings.into_values().collect();
    assert!(findings.is_empty(), "types that the table lacks:\n{}", findings.join("\n"));
    runner.seen
}

#[test]
fn a_server_replies_with_the_types_of_the_table() {
    let table = brisk_server::commands::table(&[]).unwrap().0;
    let server = Launch::subject().start();
    let mut seen = run(&server, &table, false);
    seen.extend(run(&server, &table, true));
    let mut missing = Vec::new();
    for row in table.all().filter(|row| !row.full_name().starts_with("cluster|")) {
        let name = row.full_name();
        for (number, (shape, text)) in of(row).unwrap_or_default().iter().enumerate() {
            let is_run = !NOT_RUN.contains(&name) && *shape != Shape::Nothing;
            if is_run && (name, *shape) != NOT_SEEN && !seen.contains(&(name.to_owned(), number)) {
                missing.push(format!("{name}: {shape:?}: {text}"));
            }
        }
    }
    assert!(missing.is_empty(), "LINES lacks calls with these replies:\n{}", missing.join("\n"));
}
