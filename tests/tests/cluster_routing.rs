//! Routing in cluster mode: runs the same commands on a node of a real Redis Cluster and on our node with the same
//! slots.
//!
//! Both serve the slots up to [`OWN_LAST`]. A second real node has the slots up to [`OTHER_LAST`]; our node knows that
//! node from its topology document, so redirects are equal byte for byte. The remaining slots have no owner.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::port::Port;
use brisk_testkit::reply::Reply;
use brisk_testkit::{Conn, Launch, Server, TempDir, wait_until};

const OWN_LAST: u16 = 8000;
const OTHER_LAST: u16 = 16_000;

const OWN_ID: &str = "00000000000000000000000000000000000000aa";
const OTHER_ID: &str = "00000000000000000000000000000000000000bb";
const RUN: &str = "1";

/// A key in a slot that both nodes serve, another key in this slot, and a key in a different served slot.
const OWN: &str = "b";
const OWN_TOO: &str = "{b}2";
const OWN_ELSEWHERE: &str = "f";
/// A key of the second real node.
const OTHER: &str = "a";

/// A real node and our node with the same slots, and the second real node.
struct Nodes {
    redis: Server,
    other: Server,
    brisk: Server,
    /// A key in a slot without an owner.
    unowned: String,
    _files: TempDir,
}

/// The role of a node in its document.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Primary,
    Replica,
}

fn real_node(bus: &Port) -> Server {
    Launch::redis()
        .set("cluster-enabled", "yes")
        .set("cluster-port", &bus.number().to_string())
        .set("cluster-require-full-coverage", "no")
        .set("cluster-allow-replica-migration", "no")
        .set("repl-diskless-sync-delay", "0")
        .start()
}

impl Nodes {
    fn start(role: Role) -> Nodes {
        let (bus, other_bus) = (Port::claim(), Port::claim());
        let (redis, other) = (real_node(&bus), real_node(&other_bus));
        let slots_of_other = match role {
            Role::Primary => (OWN_LAST + 1, OTHER_LAST),
            Role::Replica => (0, OTHER_LAST),
        };
        let mut conn = redis.connect();
        ok(&mut conn, "CLUSTER SET-CONFIG-EPOCH 1");
        if role == Role::Primary {
            ok(&mut conn, &format!("CLUSTER ADDSLOTSRANGE 0 {OWN_LAST}"));
        }
        let mut other_conn = other.connect();
        ok(&mut other_conn, "CLUSTER SET-CONFIG-EPOCH 2");
        let (first, last) = slots_of_other;
        ok(&mut other_conn, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
        let port = other.port();
        ok(&mut conn, &format!("CLUSTER MEET 127.0.0.1 {port} {}", other_bus.number()));
        if role == Role::Replica {
            let id = other_conn.cmd("CLUSTER MYID").text();
            wait_until("the node to know its primary", || {
                conn.cmd(&format!("CLUSTER REPLICATE {id}")).to_string() == "OK"
            });
            wait_until_follows(&mut conn);
        }
        wait_until("the node to know all slots", || {
            let info = conn.cmd("CLUSTER INFO").text();
            info.contains("cluster_state:ok") && info.contains("cluster_slots_assigned:16001")
        });
        let files = TempDir::new();
        let brisk = start_ours(&files, role, port);
        if role == Role::Replica {
            wait_until_follows(&mut brisk.connect());
        }
        let is_unowned = |key: &String| brisk_testkit::cluster::slot(key) > OTHER_LAST;
        let unowned = (0..).map(|n| format!("key:{n}")).find(is_unowned).unwrap();
        Nodes { redis, other, brisk, unowned, _files: files }
    }

    /// Sends the lines to both nodes on new connections, and compares all replies.
    #[track_caller]
    fn compare(&self, lines: &[&str]) {
        let [theirs, ours] = [&self.redis, &self.brisk].map(|server| {
            let mut conn = server.connect();
            lines.iter().map(|line| conn.cmd(line).to_string()).collect::<Vec<_>>()
        });
        for (at, line) in lines.iter().enumerate() {
            assert_eq!(ours[at], theirs[at], "reply to {line} of {lines:?}");
        }
    }

    /// Compares each line on separate connections.
    #[track_caller]
    fn compare_each(&self, lines: &[&str]) {
        let mut conns = [&self.redis, &self.brisk].map(Server::connect);
        let mut different = Vec::new();
        for line in lines {
            let [theirs, ours] = conns.each_mut().map(|conn| conn.cmd(line).to_string());
            if ours != theirs {
                different.push(format!("{line}: {ours}, not {theirs}"));
            }
        }
        assert!(different.is_empty(), "{different:#?}");
    }

    /// Changes a directive on both nodes and waits until the cluster state of the real node is `state`.
    #[track_caller]
    fn set(&self, directive: &str, value: &str, state: &str) {
        let line = format!("CONFIG SET {directive} {value}");
        for server in [&self.redis, &self.other, &self.brisk] {
            ok(&mut server.connect(), &line);
        }
        let mut conn = self.redis.connect();
        // Changing a slot makes Redis recompute the state.
        for change in ["DELSLOTS", "ADDSLOTS"] {
            ok(&mut conn, &format!("CLUSTER {change} {OWN_LAST}"));
        }
        let state = format!("cluster_state:{state}");
        wait_until("the state of the cluster", || conn.cmd("CLUSTER INFO").text().contains(&state));
    }
}

#[track_caller]
fn ok(conn: &mut Conn, line: &str) {
    assert_eq!(conn.cmd(line).to_string(), "OK", "reply to {line}");
}

/// Waits until a replica has the dataset of its primary. Until then, it rejects commands with LOADING.
#[track_caller]
fn wait_until_follows(conn: &mut Conn) {
    wait_until("the replica to follow", || {
        conn.info("master_link_status") == "up" && conn.info("loading") == "0"
    });
}

/// Starts our node with a document that gives it the same slots and role.
fn start_ours(files: &TempDir, role: Role, port: u16) -> Server {
    let shard = |id: &str, slots: &str, primary: &str, replicas: &str| {
        format!(
            r#"{{"id":"{id}","slots":{slots},"term":1,"primary":"{primary}","isr":["{primary}@{RUN}"],"replicas":[{replicas}]}}"#
        )
    };
    let own = shard(OWN_ID, &format!("[[0,{OWN_LAST}]]"), OWN_ID, "");
    let shards = match role {
        Role::Primary => {
            let slots = format!("[[{},{OTHER_LAST}]]", OWN_LAST + 1);
            format!("{own},{}", shard(OTHER_ID, &slots, OTHER_ID, ""))
        }
        Role::Replica => {
            let slots = format!("[[0,{OTHER_LAST}]]");
            shard(OTHER_ID, &slots, OTHER_ID, &format!("\"{OWN_ID}\""))
        }
    };
    let member = |id: &str, port: u16| format!(r#""{id}":{{"ip":"127.0.0.1","port":{port}}}"#);
    let members = format!("{},{}", member(OWN_ID, 1), member(OTHER_ID, port));
    let document = format!(
        r#"{{"format":1,"epoch":1,"change":"{OWN_ID}@{RUN}:1","members":{{{members}}},"shards":[{shards}]}}"#
    );
    std::fs::write(files.path("topology.json"), document).unwrap();
    let line = format!("{OWN_ID} 127.0.0.1:1@10001 myself,master - 0 0 1 connected\n");
    let vars = "vars currentEpoch 1 lastVoteEpoch 0\n";
    std::fs::write(files.path("nodes.conf"), format!("{line}{vars}")).unwrap();
    Launch::subject()
        .set("cluster-enabled", "yes")
        .set("cluster-require-full-coverage", "no")
        .set("cluster-coordinator", &format!("static:{}", files.path("topology.json").display()))
        .set("cluster-config-file", &files.path("nodes.conf").display().to_string())
        .start()
}

/// A request for a command: its name, and the indexes of its keys among `len` words.
struct Shape {
    name: Vec<String>,
    len: usize,
    keys: Vec<usize>,
}

/// Commands whose key positions depend on the arguments. Each `K` stands for the next key.
const MOVABLE: &[&str] = &[
    "BLMPOP 1 2 K K LEFT",
    "BZMPOP 1 2 K K MIN",
    "EVAL \"return 1\" 2 K K",
    "EVAL_RO \"return 1\" 2 K K",
    "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 2 K K",
    "EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 2 K K",
    "FCALL nosuch 2 K K",
    "FCALL_RO nosuch 2 K K",
    "GEORADIUS K 1 1 1 m STORE K",
    "GEORADIUS K 1 1 1 m STOREDIST K",
    "GEORADIUSBYMEMBER K m 1 m STORE K",
    "LMPOP 2 K K LEFT",
    "MIGRATE 127.0.0.1 1 K 0 1",
    "MIGRATE 127.0.0.1 1 \"\" 0 1 KEYS K K",
    "SINTERCARD 2 K K",
    "SORT K",
    "SORT K STORE K",
    "SORT K BY nosort LIMIT 0 1 STORE K",
    "SORT_RO K",
    "XREAD COUNT 1 STREAMS K K 0 0",
    "XREAD BLOCK 1 STREAMS K K 0 0",
    "XREADGROUP GROUP g c COUNT 1 STREAMS K K > >",
    "ZDIFF 2 K K",
    "ZDIFFSTORE K 2 K K",
    "ZINTER 2 K K",
    "ZINTERCARD 2 K K",
    "ZINTERSTORE K 2 K K",
    "ZMPOP 2 K K MIN",
    "ZUNION 2 K K",
    "ZUNIONSTORE K 2 K K",
];

/// Commands whose keys are channels.
const PUBSUB: [&str; 3] = ["spublish", "ssubscribe", "sunsubscribe"];

/// The commands of a server that have keys at fixed positions, and the names of the others that have keys.
fn shapes(conn: &mut Conn) -> (Vec<Shape>, Vec<String>) {
    let (mut fixed, mut movable) = (Vec::new(), Vec::new());
    let reply = conn.cmd("COMMAND");
    let mut rows = reply.elements();
    while let Some(row) = rows.pop() {
        let fields = row.elements();
        rows.extend(fields[9].elements());
        let name = fields[0].text();
        let number = |at: usize| fields[at].integer();
        let (arity, first, last, step) = (number(1), number(3), number(4), number(5));
        let flags: Vec<String> = fields[2].elements().iter().map(|flag| flag.text()).collect();
        if flags.iter().any(|flag| flag == "movablekeys") {
            movable.push(name);
        } else if first > 0 {
            let word = |number: i64| usize::try_from(number).unwrap();
            // A negative last index counts from the end. In this case there are two keys.
            let least = if last < 0 { first + 2 * step - last - 1 } else { last + 1 };
            let len = word(arity.abs().max(least));
            let last = if last < 0 { len - word(-last) } else { word(last) };
            let keys = (word(first)..=last).step_by(word(step)).collect();
            fixed.push(Shape { name: name.split('|').map(str::to_owned).collect(), len, keys });
        }
    }
    (fixed, movable)
}

impl Shape {
    /// The request with these keys, which are used in rotation.
    fn request(&self, keys: &[&str]) -> Vec<String> {
        let mut words = self.name.clone();
        words.resize(self.len, "1".to_owned());
        for (at, key) in self.keys.iter().zip(keys.iter().cycle()) {
            words[*at] = (*key).to_owned();
        }
        words
    }
}

/// True for a reply with which a node routes a command.
fn routes(reply: &Reply) -> bool {
    let text = reply.to_string();
    ["MOVED ", "CROSSSLOT ", "CLUSTERDOWN ", "ASK ", "TRYAGAIN "]
        .iter()
        .any(|code| text.starts_with(&format!("(error) {code}")))
}

/// Sends every command that has keys to both nodes, with these keys in rotation, and compares the routing replies. If
/// `all` is true, every reply must be a routing reply.
#[track_caller]
fn compare_commands(nodes: &Nodes, keys: &[&str], all: bool) {
    let (fixed, movable) = shapes(&mut nodes.redis.connect());
    for name in &movable {
        let is_it = |line: &&&str| line.split(' ').next() == Some(&name.to_uppercase());
        assert!(MOVABLE.iter().any(|line| is_it(&line)), "{name} is not in the table");
    }
    let mut requests: Vec<Vec<String>> = fixed.iter().map(|shape| shape.request(keys)).collect();
    for line in MOVABLE {
        let words = brisk_testkit::words::split(line).unwrap();
        let mut next = keys.iter().cycle();
        let word = |word: Vec<u8>| match String::from_utf8(word).unwrap() {
            word if word == "K" => (*next.next().unwrap()).to_owned(),
            word => word,
        };
        requests.push(words.into_iter().map(word).collect());
    }
    assert!(requests.len() > 150, "{} commands with keys", requests.len());
    let connect = || [&nodes.redis, &nodes.brisk].map(Server::connect);
    let mut kept = connect();
    let mut different = Vec::new();
    for request in requests {
        // A node of a cluster that is down may serve shard channels, with a reply for each channel.
        let is_pubsub = PUBSUB.contains(&request[0].as_str());
        let mut conns = is_pubsub.then(connect);
        let [theirs, ours] = conns.as_mut().unwrap_or(&mut kept);
        let (their, our) = (theirs.call(&request), ours.call(&request));
        let is_routed = routes(&their) || routes(&our);
        let must_be = all && !is_pubsub;
        if is_routed && our.to_string() != their.to_string() || must_be && !is_routed {
            different.push(format!("{request:?}: {our}, not {their}"));
        }
    }
    assert!(different.is_empty(), "replies with the keys {keys:?}: {different:#?}");
}

#[test]
fn every_command_with_keys_is_routed_as_by_redis() {
    let nodes = Nodes::start(Role::Primary);
    compare_commands(&nodes, &[OTHER], true);
    compare_commands(&nodes, &[&nodes.unowned], true);
    compare_commands(&nodes, &[OWN, OTHER], false);
    compare_commands(&nodes, &[OTHER, OWN], true);
    compare_commands(&nodes, &[&nodes.unowned, OWN], true);
    nodes.set("cluster-require-full-coverage", "yes", "fail");
    compare_commands(&nodes, &[OWN], true);
    compare_commands(&nodes, &[OTHER], true);
    compare_commands(&nodes, &[&nodes.unowned], true);
    compare_commands(&nodes, &[OWN, OTHER], true);
    nodes.set("cluster-allow-reads-when-down", "yes", "fail");
    compare_commands(&nodes, &[OTHER], true);
    nodes.set("cluster-allow-pubsubshard-when-down", "no", "fail");
    compare_commands(&nodes, &[OTHER], true);
}

#[test]
fn requests_with_wrong_arguments_are_routed_by_the_keys_that_redis_finds() {
    let nodes = Nodes::start(Role::Primary);
    nodes.compare_each(&[
        "EVAL \"return 1\" 100 a",
        "EVAL \"return 1\" -1 a",
        "EVAL \"return 1\" x a",
        "EVAL \"not a script\" 1 a",
        "EVALSHA nosuch 1 a",
        "FCALL nosuch 1 a",
        "FCALL nosuch 100 a",
        "ZUNION 0 a",
        "ZUNION 5 a",
        "ZUNION 1 a WRONG",
        "ZUNIONSTORE a 5 a",
        "ZUNIONSTORE a 0 a",
        "ZUNIONSTORE a x a",
        "ZUNIONSTORE b 1 a",
        "ZINTERCARD 5 a",
        "LMPOP 0 a LEFT",
        "LMPOP 2 a LEFT",
        "LMPOP 1 a WRONG",
        "BLMPOP x 1 a LEFT",
        "BZMPOP 0 x a MIN",
        "SINTERCARD 5 a",
        "SINTERCARD 1 a LIMIT",
        "XREAD a 0",
        "XREAD STREAMS a",
        "XREAD COUNT x STREAMS a 0",
        "XREAD COUNT STREAMS a 0",
        "XREAD BLOCK STREAMS STREAMS a 0",
        "XREAD WRONG STREAMS a 0",
        "XREADGROUP GROUP g STREAMS a 0",
        "XREADGROUP GROUP STREAMS STREAMS STREAMS a 0",
        "XREADGROUP STREAMS a 0",
        "SORT a STORE",
        "SORT b STORE",
        "SORT b STORE b STORE a",
        "SORT b STORE a STORE b",
        "SORT b LIMIT 0 STORE a",
        "SORT b BY STORE a",
        "SORT b GET STORE a",
        "SORT b WRONG STORE a",
        "SORT_RO b STORE a",
        "GEORADIUS b 1 1 1 m STORE",
        "GEORADIUS b 1 1 1 m STORE a",
        "GEORADIUS b 1 1 1 m STORE a STOREDIST b",
        "GEORADIUS b 1 1 1 m COUNT STORE a",
        "GEORADIUS_RO b 1 1 1 m STORE a",
        "GEORADIUSBYMEMBER b x 1 m STOREDIST a",
        "MIGRATE 127.0.0.1 1 \"\" 0 1 KEYS",
        "MIGRATE 127.0.0.1 1 a 0 1 KEYS b",
        "MIGRATE 127.0.0.1 1 \"\" 0 1 AUTH KEYS KEYS a",
        "MIGRATE 127.0.0.1 1 \"\" 0 1 COPY KEYS a b",
        "MIGRATE 127.0.0.1 x a 0 1",
        "MSET a",
        "MSET a 1 b",
        "MSET b 1 a",
        "MSETNX b 1 a 1",
        "BITOP AND a",
        "BITOP WRONG a a",
        "SET a",
        "SET a 1 WRONG",
        "GETEX a WRONG",
        "COPY a a WRONG",
        "LCS a a WRONG",
        "OBJECT ENCODING",
        "OBJECT ENCODING a",
        "OBJECT WRONG a",
        "MEMORY USAGE a SAMPLES x",
        "XINFO STREAM a WRONG",
        "XGROUP CREATE a g",
        "XGROUP WRONG a g",
        "PFCOUNT",
        "PFDEBUG GETREG a",
        "PFMERGE b a",
        "DEBUG OBJECT a",
        "RESTORE a 0 x",
        "RESTORE-ASKING a 0 x",
        "NOSUCH a",
    ]);
}

#[test]
fn commands_of_other_databases_and_other_primaries_are_rejected() {
    let nodes = Nodes::start(Role::Primary);
    nodes.compare_each(&[
        "SELECT 0",
        "SELECT 1",
        "SELECT 100",
        "SELECT -1",
        "SELECT x",
        "SELECT 99999999999999999999",
        "SWAPDB 0 0",
        "SWAPDB 0 1",
        "SWAPDB x y",
        "MOVE b 0",
        "MOVE b 1",
        "MOVE b x",
        "MOVE a 1",
        "COPY b {b}2 DB 0",
        "COPY b {b}2 DB 1",
        "COPY b {b}2 DB 100",
        "COPY b {b}2 DB x",
        "COPY b b DB 0",
        "COPY b b DB 1",
        "COPY b {b}2 DB 1 WRONG",
        "COPY b a DB 1",
        "REPLICAOF NO ONE",
        "REPLICAOF 127.0.0.1 1",
        "REPLICAOF x y",
        "SLAVEOF NO ONE",
        "FAILOVER",
        "FAILOVER ABORT",
        "FAILOVER WRONG",
        "SORT b BY nosort",
        "SORT b BY w*",
        "SORT b BY w* LIMIT x y",
        "SORT b LIMIT x y BY w*",
        "SORT b GET #",
        "SORT b GET x STORE b",
        "SORT b GET x STORE a",
        "SORT_RO b BY w* ALPHA",
        "SORT_RO b GET #",
        "CONFIG GET databases",
        "CONFIG GET cluster-enabled",
        "PUBLISH a x",
        "DBSIZE",
        "KEYS *",
        "SCAN 0",
    ]);
    nodes.compare(&["ASKING", "GET a", "ASKING", "GET b"]);
    for server in [&nodes.redis, &nodes.brisk] {
        let hello = server.connect().cmd("HELLO");
        assert_eq!(hello.field("mode").unwrap().text(), "cluster");
    }
}

#[test]
fn redirects_name_the_preferred_endpoint() {
    let nodes = Nodes::start(Role::Primary);
    for endpoint in ["hostname", "unknown-endpoint", "ip"] {
        for server in [&nodes.redis, &nodes.brisk] {
            let line = format!("CONFIG SET cluster-preferred-endpoint-type {endpoint}");
            ok(&mut server.connect(), &line);
        }
        nodes.compare(&["GET a", "SSUBSCRIBE a", "EVAL \"return 1\" 1 a"]);
    }
}

#[test]
fn transactions_are_routed_when_queued_and_when_executed() {
    let nodes = Nodes::start(Role::Primary);
    let unowned = format!("GET {}", nodes.unowned);
    for lines in [
        &["MULTI", "GET b", "EXEC", "EXEC"][..],
        // Each key is served, but not all of them together.
        &["MULTI", "GET b", "GET f", "EXEC", "EXEC", "GET b"],
        &["MULTI", "GET b", "GET a", "GET f", "EXEC", "EXEC"],
        &["MULTI", "GET a", "DISCARD", "EXEC"],
        &["MULTI", "MGET b f", "EXEC"],
        &["MULTI", "GET b", "PING", "SELECT 1", "SELECT 0", "EXEC"],
        &["MULTI", "SWAPDB 0 1", "MOVE b 1", "COPY b {b}2 DB 1", "SORT b GET #", "EXEC"],
        &["MULTI", "NOSUCH", "GET b", "GET f", "EXEC"],
        &["MULTI", "PING", "EXEC"],
        &["MULTI", &unowned, "EXEC"],
        &["WATCH a"],
        &["WATCH b f"],
        &["WATCH b", "WATCH f", "MULTI", "GET b", "EXEC"],
        &["WATCH b", "MULTI", "WATCH a", "EXEC", "UNWATCH"],
        &["MULTI", "SET b 1", "SPUBLISH b x", "EXEC", "DEL b"],
        &["MULTI", "SET b 1", "SPUBLISH f x", "EXEC"],
        &["MULTI", "SPUBLISH a x", "EXEC"],
        &["MULTI", "SSUBSCRIBE b", "EXEC"],
        &["MULTI", "PUBLISH a x", "EXEC"],
        &["MULTI", "EVAL \"return redis.call('GET', 'b')\" 0", "EXEC"],
        &["MULTI", "EVAL \"return redis.call('GET', 'a')\" 0", "EXEC"],
        &["MULTI", "EVAL \"return redis.call('GET', KEYS[1])\" 1 b", "GET f", "EXEC"],
        &["MULTI", "GET f", "EVAL \"#!lua\\nreturn redis.call('GET', 'b')\" 0", "EXEC"],
        &[
            "MULTI",
            "EVAL \"#!lua\\nreturn redis.call('GET', 'b')\" 0",
            "EVAL \"#!lua\\nreturn redis.call('GET', 'f')\" 0",
            "EXEC",
        ],
    ] {
        nodes.compare(lines);
    }
}

#[test]
fn a_transaction_that_can_no_longer_be_served_ends_with_the_redirect() {
    let nodes = Nodes::start(Role::Primary);
    let mut conns = [&nodes.redis, &nodes.brisk].map(Server::connect);
    for conn in &mut conns {
        ok(conn, "MULTI");
        assert_eq!(conn.cmd("GET b").to_string(), "QUEUED");
    }
    nodes.set("cluster-require-full-coverage", "yes", "fail");
    for conn in &mut conns {
        let down = "(error) CLUSTERDOWN The cluster is down";
        assert_eq!(conn.cmd("EXEC").to_string(), down);
        assert_eq!(conn.cmd("EXEC").to_string(), "(error) ERR EXEC without MULTI");
    }
}

/// The first lines of scripts, each with different flags.
const HEADS: [&str; 6] = [
    "",
    "#!lua\\n",
    "#!lua flags=allow-cross-slot-keys\\n",
    "#!lua flags=no-cluster\\n",
    "#!lua flags=no-cluster,allow-cross-slot-keys\\n",
    "#!lua flags=no-writes\\n",
];

/// Scripts whose commands are routed, and scripts whose commands are not.
const SCRIPTS: &[&str] = &[
    "return redis.call('MGET', 'b', 'f')",
    "return redis.pcall('MGET', 'b', 'a')",
    "return redis.pcall('GET', 'a')",
    "redis.call('SET', 'b', 1) return redis.call('DEL', 'b', 'b')",
    "redis.call('SET', 'b', 1) redis.call('DEL', 'b') return redis.call('SET', 'a', 1)",
    "return redis.call('SPUBLISH', 'b', 'x')",
    "return redis.call('SPUBLISH', 'a', 'x')",
    "redis.call('GET', 'b') return redis.call('SPUBLISH', 'f', 'x')",
    "return redis.call('PUBLISH', 'a', 'x')",
    "return redis.call('SELECT', 1)",
    "return redis.call('COPY', 'b', '{b}2', 'DB', 1)",
    "return redis.call('SORT', 'b', 'GET', '#')",
    "return redis.call('READONLY')",
    "return redis.call('ASKING')",
    "return redis.call('EVAL', 'return 1', 1, 'a')",
];

const LIBRARY: &str = "#!lua name=lib\\n\
    redis.register_function('one', function(keys) return redis.call('GET', keys[1]) end)\\n\
    redis.register_function('two', function(keys, args) redis.call('GET', 'b') \
    return redis.call('GET', args[1]) end)\\n\
    redis.register_function{function_name='all', callback=function(keys, args) \
    redis.call('GET', 'b') return redis.call('GET', args[1]) end, \
    flags={'allow-cross-slot-keys'}}\\n\
    redis.register_function{function_name='alone', callback=function() return 1 end, \
    flags={'no-cluster'}}\\n\
    redis.register_function{function_name='reads', callback=function(keys, args) \
    return redis.call('GET', args[1]) end, flags={'no-writes'}}";

/// Calls of the functions of [`LIBRARY`].
const CALLS: &[&str] = &[
    "FCALL one 1 b",
    "FCALL one 1 a",
    "FCALL one 2 b f",
    "FCALL two 0 b",
    "FCALL two 0 f",
    "FCALL two 1 f b",
    "FCALL two 0 a",
    "FCALL all 0 f",
    "FCALL all 1 f f",
    "FCALL all 0 a",
    "FCALL alone 0",
    "FCALL alone 1 a",
    "FCALL_RO reads 0 b",
    "FCALL_RO reads 0 a",
    "FCALL_RO reads 1 f b",
    "FCALL_RO one 1 b",
];

/// Scripts that read keys one after the other, each with several lists of declared keys.
fn scripts_that_read(unowned: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let keys: [&[&str]; 8] = [
        &[],
        &[OWN],
        &[OTHER],
        &[OWN, OWN_TOO],
        &[OWN, OWN_ELSEWHERE],
        &[OWN, OTHER],
        &[unowned],
        &[OWN, unowned],
    ];
    for (head, keys) in HEADS.iter().flat_map(|head| keys.map(|keys| (head, keys))) {
        let calls = keys.iter().map(|key| format!("redis.call('GET', '{key}') "));
        let body = format!("{head}{}return 'done'", calls.collect::<String>());
        for declared in ["0", "1 b", "1 f", "1 a", "2 b f", "2 b {b}2"] {
            lines.push(format!("EVAL \"{body}\" {declared}"));
        }
    }
    lines
}

#[test]
fn scripts_and_functions_are_routed_by_their_keys_and_by_those_of_their_commands() {
    let nodes = Nodes::start(Role::Primary);
    let mut lines = scripts_that_read(&nodes.unowned);
    for (head, body) in HEADS[..2].iter().flat_map(|head| SCRIPTS.iter().map(move |s| (head, s))) {
        lines.push(format!("EVAL \"{head}{body}\" 0"));
        lines.push(format!("EVAL_RO \"{head}{body}\" 1 b"));
    }
    lines.push(format!("FUNCTION LOAD \"{LIBRARY}\""));
    lines.extend(CALLS.iter().map(|line| (*line).to_owned()));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    nodes.compare_each(&lines);
    nodes.set("cluster-require-full-coverage", "yes", "fail");
    nodes.compare_each(&lines);
    nodes.set("cluster-allow-reads-when-down", "yes", "fail");
    nodes.compare_each(&lines);
}

#[test]
fn shard_channels_are_routed_and_others_are_not() {
    let nodes = Nodes::start(Role::Primary);
    for lines in [
        &["SPUBLISH b x", "SPUBLISH a x", "PUBLISH a x"][..],
        &["SSUBSCRIBE b", "SSUBSCRIBE a", "SUNSUBSCRIBE a", "SUNSUBSCRIBE b", "SUNSUBSCRIBE"],
        &["SSUBSCRIBE b f"],
        &["SSUBSCRIBE a"],
        &["SUBSCRIBE a"],
        &["PSUBSCRIBE a*"],
        &["PUBSUB SHARDNUMSUB a b"],
        &["PUBSUB SHARDCHANNELS"],
    ] {
        nodes.compare(lines);
    }
    nodes.set("cluster-require-full-coverage", "yes", "fail");
    nodes.compare(&["SPUBLISH b x", "SPUBLISH a x", "SSUBSCRIBE b"]);
    nodes.set("cluster-allow-pubsubshard-when-down", "no", "fail");
    nodes.compare(&["SPUBLISH b x", "SPUBLISH a x", "SSUBSCRIBE b"]);
}

#[test]
fn a_replica_serves_reads_to_sessions_that_sent_readonly() {
    let nodes = Nodes::start(Role::Replica);
    for lines in [
        &["GET b", "READONLY", "GET b", "SET b 1", "READWRITE", "GET b"][..],
        &["READONLY", "GET b", "RESET", "GET b"],
        &["READONLY", "MGET b f", "MGET b {b}2", "DEL b"],
        &["READONLY", "MULTI", "GET b", "GET {b}2", "EXEC"],
        &["READONLY", "MULTI", "GET b", "SET b 1", "EXEC"],
        &["READONLY", "MULTI", "GET b", "GET f", "EXEC"],
        &["MULTI", "READONLY", "GET b", "EXEC", "GET b"],
        &["READONLY", "MULTI", "GET b", "READWRITE", "EXEC", "GET b"],
        &["READONLY", "EVAL \"return redis.call('GET', KEYS[1])\" 1 b"],
        &["READONLY", "EVAL_RO \"return redis.call('GET', KEYS[1])\" 1 b"],
        &["READONLY", "EVAL \"#!lua\\nreturn redis.call('GET', KEYS[1])\" 1 b"],
        &["READONLY", "EVAL \"#!lua flags=no-writes\\nreturn redis.call('GET', KEYS[1])\" 1 b"],
        &["EVAL \"return redis.call('GET', KEYS[1])\" 1 b"],
        &["EVAL \"return redis.call('GET', 'b')\" 0"],
        &["READONLY", "EVAL \"return redis.call('GET', 'b')\" 0"],
        &["READONLY", "XREAD STREAMS b 0"],
        &["READONLY", "BLPOP b 1"],
        &["WATCH b"],
        &["READONLY", "WATCH b"],
        &["SPUBLISH b x", "SSUBSCRIBE b"],
        &["SSUBSCRIBE b f"],
    ] {
        nodes.compare(lines);
    }
    for server in [&nodes.redis, &nodes.brisk] {
        let mut conn = server.connect();
        ok(&mut conn, "READONLY");
        assert!(conn.cmd("CLIENT INFO").text().contains(" flags=r "));
    }
}

#[test]
fn blocked_clients_get_an_error_when_the_cluster_goes_down() {
    let nodes = Nodes::start(Role::Primary);
    let lines =
        ["BLPOP b 0", "BZPOPMIN b 0", "XREAD BLOCK 0 STREAMS b $", "BLMOVE b {b}2 LEFT LEFT 0"];
    let mut conns = Vec::new();
    for server in [&nodes.redis, &nodes.brisk] {
        for line in lines {
            let mut conn = server.connect();
            conn.send(line);
            conns.push(conn);
        }
        server.wait_for_info("blocked_clients", |count| count == "4");
    }
    nodes.set("cluster-require-full-coverage", "yes", "fail");
    for conn in &mut conns {
        assert_eq!(conn.reply().to_string(), "(error) CLUSTERDOWN The cluster is down");
    }
    for server in [&nodes.redis, &nodes.brisk] {
        server.wait_for_info("blocked_clients", |count| count == "0");
        let stats = server.info("cmdstat_blpop");
        assert!(stats.starts_with("calls=1,") && stats.ends_with("failed_calls=0"), "{stats}");
    }
}
