//! A running primary finds, slot by slot, differences between its data and that of its replicas, and repairs them.
//!
//! `BRISK_COMPARE_ROUNDS` and `BRISK_COMPARE_SEED` change the default run.

use brisk_resp::slot::key_slot;
use brisk_testkit::digest::assert_same;
use brisk_testkit::kind::Kind::{self, Brisk, Redis};
use brisk_testkit::reply::Reply;
use brisk_testkit::writers::{Writers, wait_until_nothing_expires};
use brisk_testkit::{Conn, Launch, Server, wait_until};
use brisk_tests::links::{Node, sized, wait_until_caught_up};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

const WRITERS: u64 = 3;

/// Pairs of a database and a slot.
type Places = BTreeSet<(i64, i64)>;

/// The result of a comparison for one replica.
#[derive(Debug)]
struct Found {
    state: String,
    offset: i64,
    compared: i64,
    skipped: i64,
    differing: Places,
    unnamed: i64,
    repaired: Places,
}

fn places(reply: &Reply) -> Places {
    let place = |one: &&Reply| {
        let numbers = one.elements();
        assert!(numbers[2].integer() > 0, "an offset: {one}");
        (numbers[0].integer(), numbers[1].integer())
    };
    reply.elements().iter().map(place).collect()
}

/// Runs a comparison. Returns the results by replica.
fn compare(conn: &mut Conn, line: &str) -> Vec<(String, Found)> {
    let reply = conn.cmd(line);
    assert!(!reply.is_error(), "{line}: {reply}");
    let found = |one: &&Reply| {
        let field = |name: &str| one.field(name).unwrap_or_else(|| panic!("{name}: {one}"));
        let found = Found {
            state: field("state").text(),
            offset: field("offset").integer(),
            compared: field("compared").integer(),
            skipped: field("skipped").integer(),
            differing: places(field("differing")),
            unnamed: field("unnamed").integer(),
            repaired: places(field("healed")),
        };
        (field("replica").text(), found)
    };
    reply.elements().iter().map(found).collect()
}

/// Runs a comparison with a single replica.
#[track_caller]
fn compare_one(conn: &mut Conn, line: &str) -> Found {
    let mut all = compare(conn, line);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).1
}

fn start(kind: Kind) -> Node {
    // The timeout is longer than any wait of these tests, so that a missing report is noticed.
    let launch =
        |launch: Launch| launch.set("repl-backlog-size", "64mb").set("repl-timeout", "600");
    Node::start(kind, launch)
}

fn following(kind: Kind, primary: &Server) -> Node {
    let node = start(kind);
    node.follow(primary.port());
    node.wait_until_it_follows();
    node
}

/// Waits until the primary reports its replicas as online, which happens a moment after the replicas are connected.
#[track_caller]
fn wait_until_online(primary: &Server, count: usize) {
    let mut conn = primary.connect();
    let online =
        |conn: &mut Conn| conn.cmd("INFO replication").text().matches("state=online").count();
    wait_until("replicas to be online", || online(&mut conn) == count);
}

/// Changes a replica without its primary noticing.
fn change(replica: &Server, lines: &[&str]) {
    let mut conn = replica.connect();
    conn.cmd("CONFIG SET replica-read-only no");
    for line in lines {
        let reply = conn.cmd(line);
        assert!(!reply.is_error(), "{line}: {reply}");
    }
    conn.cmd("CONFIG SET replica-read-only yes");
}

fn slot(key: &str) -> i64 {
    i64::from(key_slot(key.as_bytes()))
}

fn all_of(db: i64, keys: &[&str]) -> Places {
    keys.iter().map(|key| (db, slot(key))).collect()
}

/// Writes keys of all types that the writers do not change.
fn fill(conn: &mut Conn) {
    for number in 0..2000 {
        conn.cmd(&format!("SET still:{number} {number}"));
    }
    for line in [
        "SET kept:string text",
        "SET kept:deadline 1 PX 100000000",
        "RPUSH kept:list a b c",
        "SADD kept:set a b c",
        "ZADD kept:zset 1 a 2 b",
        "HSET kept:hash f v",
        "XADD kept:stream 1-1 f v",
        "XGROUP CREATE kept:stream g 0",
        "XREADGROUP GROUP g c STREAMS kept:stream >",
    ] {
        let reply = conn.cmd(line);
        assert!(!reply.is_error(), "{line}: {reply}");
    }
}

/// Runs `body` while writers write.
fn under_load<R>(writers: Writers, body: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    let is_over = &is_over;
    std::thread::scope(|scope| {
        let writing =
            scope.spawn(move || writers.run(WRITERS, |_| !is_over.load(Ordering::Relaxed)));
        // The writers must end even if `body` panics.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        is_over.store(true, Ordering::Relaxed);
        let written = writing.join().expect("writers say themselves what went wrong");
        assert!(written.commands > 0);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn equal_replicas_are_never_reported_as_different() {
    let rounds = sized("BRISK_COMPARE_ROUNDS", 30);
    let primary = start(Brisk);
    let mut conn = primary.server.connect();
    fill(&mut conn);
    let replica = following(Brisk, &primary.server);
    wait_until_online(&primary.server, 1);
    let (mut offset, mut compared) = (0, 0);
    let writers = Writers::to(&primary.server.address(), sized("BRISK_COMPARE_SEED", 1));
    under_load(writers, || {
        for round in 0..rounds {
            let found = compare_one(&mut conn, "REPLICATION COMPARE");
            assert_eq!(found.state, "equal", "round {round}: {found:?}");
            assert!(found.differing.is_empty() && found.unnamed == 0, "{found:?}");
            assert!(found.skipped == 0, "{found:?}");
            compared += found.compared;
            assert!(found.offset > offset, "{found:?}");
            offset = found.offset;
        }
    });
    // Databases with data are compared completely.
    assert!(compared > 0 && compared % 16_384 == 0, "{compared}");
    assert_eq!(conn.info("comparisons"), rounds.to_string());
    assert_eq!(conn.info("last_comparison_differing_slots"), "0");
    assert_eq!(conn.info("last_comparison_offset"), offset.to_string());
    wait_until_nothing_expires(&primary.server.address());
    wait_until_caught_up(&primary.server, &replica.server);
    assert_same(&primary.holder(), &replica.holder());
}

/// Each line causes a different kind of difference.
const CHANGES: &[&str] = &[
    "SET still:7 other",
    "DEL still:8",
    "SET only:there 1",
    "PEXPIRE kept:string 90000000",
    "PEXPIRE kept:deadline 90000000",
    "LSET kept:list 1 x",
    "SREM kept:set a",
    "ZADD kept:zset 1.5 a",
    "HSET kept:hash g 1",
    "XACK kept:stream g 1-1",
];
const CHANGED: &[&str] = &[
    "still:7",
    "still:8",
    "only:there",
    "kept:string",
    "kept:deadline",
    "kept:list",
    "kept:set",
    "kept:zset",
    "kept:hash",
    "kept:stream",
];

#[test]
fn slots_that_differ_are_named_and_repaired_under_load() {
    let primary = start(Brisk);
    let mut conn = primary.server.connect();
    fill(&mut conn);
    let replica = following(Brisk, &primary.server);
    // A replica of a different kind is ignored.
    let other = following(Redis, &primary.server);
    wait_until_online(&primary.server, 2);
    wait_until_caught_up(&primary.server, &replica.server);
    change(&replica.server, CHANGES);
    // A database in which the primary has no data.
    change(&replica.server, &["SELECT 9", "SET elsewhere 1"]);
    let mut changed = all_of(0, CHANGED);
    changed.extend(all_of(9, &["elsewhere"]));
    let writers = Writers::to(&primary.server.address(), 2).sparing_databases();
    under_load(writers, || {
        for _ in 0..3 {
            let found = compare_one(&mut conn, "REPLICATION COMPARE");
            assert_eq!((found.state.as_str(), &found.differing), ("differs", &changed));
            assert!(found.repaired.is_empty());
        }
        let found = compare_one(&mut conn, "REPLICATION COMPARE HEAL");
        assert_eq!((found.state.as_str(), &found.repaired), ("healed", &changed), "{found:?}");
        assert!(found.differing.is_empty());
        assert_eq!(conn.info("last_comparison_healed_slots"), changed.len().to_string());
        let found = compare_one(&mut conn, "REPLICATION COMPARE");
        assert_eq!(found.state, "equal", "{found:?}");
    });
    let log = primary.server.log();
    let line = log
        .lines()
        .find(|line| line.contains("differed from this server"))
        .expect("a line in the log");
    assert!(line.contains(&format!("{} of database 9", slot("elsewhere"))), "{line}");
    wait_until_nothing_expires(&primary.server.address());
    for node in [&replica, &other] {
        wait_until_caught_up(&primary.server, &node.server);
        assert_same(&primary.holder(), &node.holder());
    }
    assert!(!other.server.log().contains("CRITICAL"), "{}", other.server.log());
    assert_eq!(other.server.connect().info("total_error_replies"), "0");
}

#[test]
fn replicas_of_replicas_are_compared_and_repaired_too() {
    let primary = start(Brisk);
    let mut conn = primary.server.connect();
    fill(&mut conn);
    let middle = following(Brisk, &primary.server);
    let last = following(Brisk, &middle.server);
    // A replica of a server that does not support the markers.
    let apart = following(Redis, &primary.server);
    let last_apart = following(Brisk, &apart.server);
    wait_until_online(&primary.server, 2);
    wait_until_caught_up(&primary.server, &last.server);
    wait_until_caught_up(&primary.server, &last_apart.server);
    change(&last.server, &["SET still:1 other"]);
    change(&middle.server, &["DEL still:2"]);
    change(&last_apart.server, &["SET still:2 other", "SET {still:2}:more 1"]);
    let found = compare(&mut conn, "REPLICATION COMPARE HEAL");
    let name = format!("127.0.0.1:{}", middle.server.port());
    let (_, of_middle) = found.iter().find(|(who, _)| *who == name).expect("it has reported");
    assert_eq!(of_middle.repaired, all_of(0, &["still:2"]));
    // The name is the path to the replica.
    let name = format!("{name}/127.0.0.1:{}", last.server.port());
    let (_, of_last) = found.iter().find(|(who, _)| *who == name).expect("it was passed on");
    assert_eq!(of_last.repaired, all_of(0, &["still:1"]));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(primary.server.log().contains(&format!("Replica {name} differed from this server")));
    for node in [&middle, &last, &apart, &last_apart] {
        wait_until_caught_up(&primary.server, &node.server);
    }
    for node in [&middle, &last, &apart] {
        assert_same(&primary.holder(), &node.holder());
    }
    // This replica was not compared, but its stream also contains the repair of the slot for another replica.
    let mut replica_conn = last_apart.server.connect();
    assert_eq!(replica_conn.cmd("GET still:2").text(), "2");
    assert_eq!(replica_conn.cmd("EXISTS {still:2}:more").integer(), 0);
    let found = compare(&mut conn, "REPLICATION COMPARE");
    assert!(found.iter().all(|(_, found)| found.state == "equal"), "{found:?}");
}

/// The next line on a connection that receives the replication stream.
fn line(conn: &mut Conn) -> String {
    let mut line = Vec::new();
    loop {
        match conn.bytes(1)[0] {
            b'\n' if line.is_empty() => {}
            b'\n' => return String::from_utf8_lossy(&line).trim_end().to_owned(),
            byte => line.push(byte),
        }
    }
}

/// A connection that acts as a replica with comparison support, and executes nothing.
fn scripted_replica(primary: &Server) -> Conn {
    let mut conn = primary.connect();
    conn.cmd("REPLCONF listening-port 1 capa brisk-compare/1");
    conn.send("PSYNC ? -1");
    assert!(line(&mut conn).starts_with("+FULLRESYNC"));
    let len = line(&mut conn).strip_prefix('$').and_then(|len| len.parse().ok());
    conn.bytes(len.expect("a length"));
    conn
}

/// The number of the next comparison pass that ends in the stream; `None` if the connection is closed first.
fn next_round(replica: &mut Conn) -> Option<String> {
    loop {
        let command = replica.try_reply().ok()?;
        let message = command.elements().get(1).map(|word| word.text()).unwrap_or_default();
        let words: Vec<&str> = message.split(' ').collect();
        if let ["brisk-compare/1", "end", round, ..] = words[..] {
            return Some(round.to_owned());
        }
    }
}

fn send_report(replica: &mut Conn, report: &str) {
    let length = report.len();
    let request =
        format!("*3\r\n$8\r\nREPLCONF\r\n$14\r\nbrisk-compared\r\n${length}\r\n{report}\r\n");
    replica.send_raw(request.as_bytes());
}

/// Reports that a replica relays for its own replicas are treated in the same way.
#[test]
fn a_report_about_a_database_that_does_not_exist_is_ignored() {
    let primary = start(Brisk);
    let mut conn = primary.server.connect();
    conn.cmd("SET still:1 1");
    let mut replica = scripted_replica(&primary.server);
    wait_until_online(&primary.server, 1);
    let named = ["9999:5@1", "16:5@1", "4294967295:16383@1", "0:1@1 9999:5@1"];
    for place in named {
        for (who, others) in [("-", 0), ("127.0.0.1:7", 1)] {
            let found = std::thread::scope(|scope| {
                let comparing = scope.spawn(|| compare(&mut conn, "REPLICATION COMPARE HEAL"));
                let round = next_round(&mut replica).expect("a pass");
                if who != "-" {
                    send_report(&mut replica, &format!("{round} - {others} 1 16384 0 0 -"));
                }
                send_report(&mut replica, &format!("{round} {who} 0 1 1 0 1 - {place}"));
                comparing.join().expect("it is compared")
            });
            let reporter =
                if who == "-" { "127.0.0.1:1".to_owned() } else { format!("127.0.0.1:1/{who}") };
            let (_, found) =
                found.iter().find(|(name, _)| *name == reporter).unwrap_or_else(|| {
                    let mut names = found.iter().map(|(name, _)| name);
                    assert!(names.all(|name| name == "127.0.0.1:1"), "{reporter} {place}");
                    &found[0]
                });
            assert!(found.differing.is_empty() && found.repaired.is_empty(), "{place}: {found:?}");
        }
    }
    let ignored = primary.server.log().matches("its report was ignored").count();
    assert_eq!(ignored, 2 * named.len());
    assert_eq!(conn.cmd("GET still:1").text(), "1");
}

#[test]
fn a_replica_cannot_report_for_another_one() {
    let primary = start(Brisk);
    let mut conn = primary.server.connect();
    conn.cmd("SET still:1 1");
    let replica = following(Brisk, &primary.server);
    wait_until_caught_up(&primary.server, &replica.server);
    change(&replica.server, &["SET still:1 other"]);
    let name = format!("127.0.0.1:{}", replica.server.port());
    // A connection that claims to be a replica, and to have replicas of its own.
    let mut liar = scripted_replica(&primary.server);
    wait_until_online(&primary.server, 2);
    let found = std::thread::scope(|scope| {
        let comparing = scope.spawn(|| compare(&mut conn, "REPLICATION COMPARE"));
        let round = next_round(&mut liar).expect("a pass");
        for report in
            [format!("{round} {name} 0 1 16384 0 0 -"), format!("{round} - 1 1 16384 0 0 -")]
        {
            send_report(&mut liar, &report);
        }
        comparing.join().expect("it is compared")
    });
    let states: Vec<(&str, &str)> =
        found.iter().map(|(who, found)| (&**who, &*found.state)).collect();
    let claimed = format!("127.0.0.1:1/{name}");
    let mut want = [("127.0.0.1:1", "equal"), (&*claimed, "equal"), (&*name, "differs")];
    want.sort_unstable();
    assert_eq!(states, want);
}

#[test]
fn large_values_are_compared_and_more_slots_repaired_than_are_named_at_once() {
    let primary = start(Brisk);
    let mut conn = primary.server.connect();
    fill(&mut conn);
    for part in 0..20 {
        let members: String = (0..1000).map(|n| format!(" member:{}", part * 1000 + n)).collect();
        conn.cmd(&format!("SADD large{members}"));
        conn.cmd(&format!("RPUSH {{large}}:list{members}"));
    }
    let replica = following(Brisk, &primary.server);
    wait_until_online(&primary.server, 1);
    let found = compare_one(&mut conn, "REPLICATION COMPARE");
    assert_eq!((found.state.as_str(), found.skipped), ("equal", 0), "{found:?}");
    change(&replica.server, &["LSET {large}:list 9999 other"]);
    let found = compare_one(&mut conn, "REPLICATION COMPARE HEAL");
    assert_eq!(found.repaired, all_of(0, &["large"]), "{found:?}");
    // Slots beyond the limit on names are only counted.
    change(&replica.server, &["FLUSHALL"]);
    let found = compare_one(&mut conn, "REPLICATION COMPARE");
    assert_eq!((found.differing.len(), found.unnamed > 0), (1024, true), "{found:?}");
    let found = compare_one(&mut conn, "REPLICATION COMPARE HEAL");
    assert_eq!((found.state.as_str(), found.repaired.len() > 1024), ("healed", true), "{found:?}");
    wait_until_caught_up(&primary.server, &replica.server);
    assert_same(&primary.holder(), &replica.holder());
}

#[test]
fn the_timers_compare_and_repair_if_the_settings_say_so() {
    let primary = start(Brisk);
    let mut conn = primary.server.connect();
    fill(&mut conn);
    let replica = following(Brisk, &primary.server);
    wait_until_caught_up(&primary.server, &replica.server);
    change(&replica.server, &["SET still:5 other"]);
    conn.cmd("CONFIG SET replica-compare-period 1");
    wait_until("it to be found", || conn.info("last_comparison_differing_slots") == "1");
    assert_eq!(replica.server.connect().cmd("GET still:5").text(), "other");
    conn.cmd("CONFIG SET replica-compare-heal yes");
    wait_until("it to be healed", || conn.info("last_comparison_healed_slots") == "1");
    wait_until("nothing to be left", || conn.info("last_comparison_differing_slots") == "0");
    assert_eq!(replica.server.connect().cmd("GET still:5").text(), "5");
}

#[test]
fn repaired_keys_are_in_the_append_only_file() {
    let launch = |launch: Launch| launch.set("appendonly", "yes").set("dbfilename", "none.rdb");
    let primary = Node::start(Brisk, launch);
    let mut conn = primary.server.connect();
    fill(&mut conn);
    let mut replica = Node::start(Brisk, launch);
    replica.follow(primary.server.port());
    replica.wait_until_it_follows();
    wait_until_caught_up(&primary.server, &replica.server);
    change(&replica.server, &["SET {still:5}:more 1", "SET still:6 other"]);
    // The rewrite of the file includes the changes of the replica's clients.
    let mut replica_conn = replica.server.connect();
    wait_until("a rewrite", || !replica_conn.cmd("BGREWRITEAOF").is_error());
    wait_until("the rewrite's end", || {
        replica_conn.info("aof_rewrite_in_progress") == "0"
            && replica_conn.info("aof_rewrite_scheduled") == "0"
    });
    let found = compare_one(&mut conn, "REPLICATION COMPARE HEAL");
    assert_eq!(found.repaired, all_of(0, &["still:5", "still:6"]), "{found:?}");
    wait_until_caught_up(&primary.server, &replica.server);
    conn.send("SHUTDOWN");
    conn.read_to_end();
    drop(replica_conn);
    replica.server.kill_for_now();
    launch(Brisk.launch()).start_again(&mut replica.server);
    let mut replica_conn = replica.server.connect();
    assert_eq!(replica_conn.cmd("EXISTS {still:5}:more").integer(), 0);
    assert_eq!(replica_conn.cmd("GET still:6").text(), "6");
    assert_eq!(replica_conn.cmd("DBSIZE").integer(), 2007);
}

#[test]
fn comparison_needs_a_primary_with_brisk_replicas() {
    let primary = start(Brisk);
    let mut conn = primary.server.connect();
    assert!(compare(&mut conn, "REPLICATION COMPARE").is_empty());
    let _other = following(Redis, &primary.server);
    wait_until_online(&primary.server, 1);
    assert!(compare(&mut conn, "REPLICATION COMPARE HEAL").is_empty());
    assert_eq!(conn.cmd("REPLICATION COMPARE OFTEN").to_string(), "(error) ERR syntax error");
    conn.cmd("MULTI");
    assert!(conn.cmd("REPLICATION COMPARE").is_error());
    conn.cmd("DISCARD");
    let reply = conn.cmd("EVAL \"return redis.call('replication', 'compare')\" 0");
    assert!(reply.is_error(), "{reply}");
    let replica = following(Brisk, &primary.server);
    let reply = replica.server.connect().cmd("REPLICATION COMPARE");
    assert!(reply.to_string().contains("not valid when server is a replica"), "{reply}");
    // Markers of the stream have no effect if a client sends them.
    conn.cmd("SET key value");
    let keep = "brisk-compare/1 keep 00000000000000010000000000000002 0";
    let marker = format!("{keep} {}", slot("key"));
    assert_eq!(conn.call(&["PING", &marker]).text(), marker);
    assert_eq!(conn.cmd("GET key").text(), "value");
    assert!(conn.call(&["REPLCONF", "brisk-compared", "1 - 0 2 3 4 5 -"]).is_error());
}
