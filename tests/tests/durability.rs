//! CLIENT DURABILITY REPLICAS: replies wait until replicas have acknowledged the changes that the replies show.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::kind::{Kind, are_there};
use brisk_testkit::proxy::Direction;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Proxy, Server, assert_reply, wait_until};
use brisk_tests::links::Node;
use brisk_tests::with_workers;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use Kind::{Brisk, Redis};

/// How long a test waits to see that a reply is held. Replies that are not held arrive immediately.
const HELD: Duration = Duration::from_millis(60);

const ROLE_CHANGED: &str = "(error) UNBLOCKED force unblock from blocking operation, instance state \
                            changed (master -> replica?)";
const NOT_ACKNOWLEDGED: &str =
    "(error) UNBLOCKED too few replicas acknowledged the write within the timeout; it may be lost";

/// A primary, and a replica whose acknowledgements can be delayed.
struct Pair {
    primary: Server,
    replica: Node,
    link: Proxy,
}

impl Pair {
    fn start(kind: Kind) -> Pair {
        let primary = with_workers(2).start();
        let link = Proxy::to(&primary.address());
        let replica = follower(kind, &link, &primary);
        Pair { primary, replica, link }
    }

    /// Holds or releases the acknowledgements of the replica.
    fn hold_acks(&self, held: bool) {
        self.link.stall(Direction::ToServer, held);
    }

    /// A client whose replies wait for one replica.
    fn durable(&self) -> Conn {
        let mut conn = self.primary.connect();
        assert_reply!(conn, "CLIENT DURABILITY REPLICAS 1", "OK");
        conn
    }

    #[track_caller]
    fn wait_until_there(&self, key: &str) {
        wait_until_there(&self.replica, key);
    }
}

fn follower(kind: Kind, link: &Proxy, primary: &Server) -> Node {
    let replica = Node::start(kind, |launch| launch);
    replica.follow(link.port());
    replica.wait_until_it_follows();
    // The primary sends the replica nothing before its first acknowledgement, which a test may be about to delay. So
    // wait for a write.
    let key = format!("follows:{}", replica.server.address());
    assert_reply!(primary.connect(), &format!("SET {key} 1"), "OK");
    wait_until_there(&replica, &key);
    replica
}

/// Waits until the replica has executed the write of this key.
#[track_caller]
fn wait_until_there(replica: &Node, key: &str) {
    let mut conn = replica.server.connect();
    let line = format!("EXISTS {key}");
    wait_until("the replica to have it", || conn.cmd(&line).integer() == 1);
}

/// Runs `body` with a real Redis and with Brisk as the replica.
fn each_replica(body: impl Fn(Pair)) {
    if subject_is_redis() {
        return; // it has no such clients
    }
    for kind in [Redis, Brisk] {
        if are_there(&[kind]) {
            eprintln!("a replica of {kind}");
            body(Pair::start(kind));
        }
    }
}

#[track_caller]
fn assert_held(conn: &mut Conn) {
    assert!(!conn.has_reply_within(HELD), "{}", conn.reply());
}

#[test]
fn arguments_of_client_durability_are_checked() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(2).start();
    let mut conn = server.connect();
    let syntax = "(error) ERR syntax error";
    for (line, want) in [
        ("CLIENT DURABILITY REPLICAS", syntax),
        ("CLIENT DURABILITY REPLICAS x", "(error) ERR value is not an integer or out of range"),
        ("CLIENT DURABILITY REPLICAS -1", "(error) ERR value is out of range, must be positive"),
        ("CLIENT DURABILITY REPLICAS 17", "(error) ERR value is out of range"),
        ("CLIENT DURABILITY REPLICAS 1 MEMORY", syntax),
        ("CLIENT DURABILITY TIMEOUT 1", syntax),
        ("CLIENT DURABILITY REPLICAS 1 TIMEOUT -1", "(error) ERR timeout is negative"),
        ("CLIENT DURABILITY REPLICAS 1 TIMEOUT 5 5", syntax),
        ("CLIENT DURABILITY SOMEWHERE", syntax),
        (
            "CLIENT DURABILITY DISK REPLICAS 1",
            "(error) ERR there is no append-only file to wait for, set appendonly to yes",
        ),
        ("CLIENT DURABILITY REPLICAS 0", "OK"),
        ("SET a 1", "OK"),
        ("CLIENT DURABILITY MEMORY REPLICAS 16 TIMEOUT 0", "OK"),
        ("PING", "PONG"),
        ("CLIENT DURABILITY DEFAULT", "OK"),
    ] {
        assert_reply!(conn, line, want);
    }
    // The stream starts while all workers are quiesced, so it cannot start during a transaction.
    let alone = with_workers(2).start();
    let mut conn = alone.connect();
    conn.pipeline(&["MULTI", "CLIENT DURABILITY REPLICAS 1"]);
    assert!(conn.cmd("EXEC").to_string().contains("outside of MULTI"));
    let replica = with_workers(2).set("replicaof", &format!("127.0.0.1 {}", alone.port())).start();
    replica.wait_for_info("master_link_status", |status| status == "up");
    assert_reply!(
        replica.connect(),
        "CLIENT DURABILITY REPLICAS 1",
        "(error) ERR CLIENT DURABILITY REPLICAS cannot be used with replica instances, nor during loading"
    );
    conn.pipeline(&["MULTI", "CLIENT DURABILITY REPLICAS 1", "SET b 1"]);
    assert_reply!(conn, "EXEC", "1) OK\n2) OK");
}

#[test]
fn a_reply_leaves_when_the_replica_has_acknowledged_its_data() {
    each_replica(|pair| {
        let (mut durable, mut other) = (pair.durable(), pair.primary.connect());
        assert_reply!(durable, "SET before 1", "OK");
        pair.hold_acks(true);
        // Replies stay in order, and none overtakes another.
        for line in ["SET a 1", "PING", "INCR n", "GET a", "INFO server", "ECHO last"] {
            durable.send(line);
        }
        pair.wait_until_there("n");
        assert_held(&mut durable);
        // Other clients see the write, and wait only if they request it.
        assert_reply!(other, "GET a", "\"1\"");
        assert_reply!(other, "WAIT 1 1", "(integer) 0");
        let mut reader = pair.durable();
        assert_reply!(reader, "GET before", "\"1\"");
        reader.send("GET a");
        assert_held(&mut reader);
        pair.hold_acks(false);
        assert_eq!(durable.reply().text(), "OK");
        assert_eq!(durable.reply().text(), "PONG");
        assert_eq!(durable.reply().integer(), 1);
        assert_eq!(durable.reply().text(), "1");
        assert!(durable.reply().text().contains("tcp_port"));
        assert_eq!(durable.reply().text(), "last");
        assert_eq!(reader.reply().text(), "1");
        // Once the replica has acknowledged the write, no client waits.
        pair.hold_acks(true);
        assert_reply!(durable, "GET a", "\"1\"");
    });
}

/// All replies to pipelines on many connections arrive, each in order.
#[test]
fn pipelines_of_many_clients_keep_their_order() {
    each_replica(|pair| {
        let mut conns: Vec<Conn> = (0..8).map(|_| pair.durable()).collect();
        pair.link.delay(Duration::from_millis(2));
        for round in 0..20 {
            for (at, conn) in conns.iter_mut().enumerate() {
                for n in 0..50 {
                    conn.send(&format!("SET key:{at}:{n} {round}"));
                    conn.send(&format!("GET key:{at}:{n}"));
                }
            }
            for conn in &mut conns {
                for _ in 0..50 {
                    assert_eq!(conn.reply().text(), "OK");
                    assert_eq!(conn.reply().text(), round.to_string());
                }
            }
        }
        for conn in &mut conns {
            conn.assert_in_step();
        }
    });
}

#[test]
fn replies_of_transactions_scripts_and_blocked_clients_wait_too() {
    each_replica(|pair| {
        let mut other = pair.primary.connect();
        let [mut exec, mut script, mut popper, mut listener] = [(); 4].map(|()| pair.durable());
        listener.send("SUBSCRIBE news");
        listener.reply();
        popper.send("BLPOP queue 0");
        pair.primary.wait_for_info("blocked_clients", |count| count == "1");
        pair.hold_acks(true);
        exec.send_raw(b"MULTI\r\nSET in:exec 1\r\nGET in:exec\r\nEXEC\r\n");
        script.send("EVAL \"return redis.call('INCR', KEYS[1])\" 1 in:script");
        assert_reply!(other, "RPUSH queue element", "(integer) 1");
        assert_reply!(other, "SET told 1", "OK");
        assert_reply!(other, "PUBLISH news told", "(integer) 1");
        pair.wait_until_there("told");
        pair.wait_until_there("in:exec");
        pair.wait_until_there("in:script");
        for conn in [&mut exec, &mut script, &mut popper, &mut listener] {
            assert_held(conn);
        }
        pair.hold_acks(false);
        assert_eq!([(); 3].map(|()| exec.reply().to_string()), ["OK", "QUEUED", "QUEUED"]);
        assert_eq!(exec.reply().to_string(), "1) OK\n2) \"1\"");
        assert_eq!(script.reply().integer(), 1);
        assert_eq!(popper.reply().elements()[1].text(), "element");
        assert_eq!(listener.reply().elements()[2].text(), "told");
    });
}

/// The durability is lowered within a pipeline. Each command keeps the durability that applied to it.
#[test]
fn earlier_commands_keep_their_durability_after_it_is_lowered() {
    each_replica(|pair| {
        let mut conn = pair.primary.connect();
        pair.hold_acks(true);
        for ends in ["CLIENT DURABILITY DEFAULT", "CLIENT DURABILITY MEMORY", "RESET"] {
            let key = ends.split(' ').next_back().unwrap_or_default();
            let lines = [
                "CLIENT DURABILITY REPLICAS 1".to_owned(),
                format!("SET {key} 1"),
                ends.to_owned(),
                "ECHO done".to_owned(),
            ];
            conn.send_raw(format!("{}\r\n", lines.join("\r\n")).as_bytes());
            pair.wait_until_there(key);
            assert_held(&mut conn);
            pair.hold_acks(false);
            let replies: Vec<String> = (0..4).map(|_| conn.reply().text()).collect();
            assert!(replies[1] == "OK" && replies[3] == "done", "{replies:?}");
            pair.hold_acks(true);
            assert_reply!(conn, &format!("SET {key} 2"), "OK");
        }
    });
}

#[test]
fn a_reply_waits_for_the_requested_number_of_replicas() {
    if subject_is_redis() {
        return;
    }
    let pair = Pair::start(Redis);
    let second = Proxy::to(&pair.primary.address());
    let mut conn = pair.primary.connect();
    assert_reply!(conn, "CLIENT DURABILITY REPLICAS 2", "OK");
    // There is one replica, so the reply waits for another to connect.
    conn.send("SET a 1");
    pair.wait_until_there("a");
    assert_held(&mut conn);
    let other = follower(Brisk, &second, &pair.primary);
    assert_eq!(conn.reply().text(), "OK");
    second.stall(Direction::ToServer, true);
    conn.send("SET b 1");
    pair.wait_until_there("b");
    assert_held(&mut conn);
    // One replica is not enough, whichever it is.
    assert_reply!(pair.durable(), "SET c 1", "OK");
    assert_held(&mut conn);
    second.stall(Direction::ToServer, false);
    assert_eq!(conn.reply().text(), "OK");
    // If one replica disconnects, the reply waits until there is another.
    drop(other);
    pair.primary.wait_for_info("connected_slaves", |count| count == "1");
    conn.send("SET d 1");
    pair.wait_until_there("d");
    assert_held(&mut conn);
    let _third = follower(Redis, &second, &pair.primary);
    assert_eq!(conn.reply().text(), "OK");
}

#[test]
fn a_client_that_waits_too_long_gets_an_error_and_is_disconnected() {
    each_replica(|pair| {
        let mut conn = pair.primary.connect();
        assert_reply!(conn, "CLIENT DURABILITY REPLICAS 1 TIMEOUT 60000", "OK");
        assert_reply!(conn, "SET a 1", "OK");
        assert_reply!(conn, "CLIENT DURABILITY REPLICAS 1 TIMEOUT 50", "OK");
        pair.hold_acks(true);
        conn.send_raw(b"SET a 2\r\nSET a 3\r\n");
        assert_eq!(conn.reply().to_string(), NOT_ACKNOWLEDGED);
        assert_eq!(conn.read_to_end(), b"");
        // The write was executed anyway.
        assert_reply!(pair.primary.connect(), "GET a", "\"3\"");
    });
}

/// Later acknowledgements of replicas refer to a different history.
#[test]
fn a_primary_that_becomes_a_replica_acknowledges_nothing_more() {
    each_replica(|pair| {
        let other = with_workers(2).start();
        let [mut waits, mut idle] = [(); 2].map(|()| pair.durable());
        assert_reply!(idle, "SET idle 1", "OK");
        pair.hold_acks(true);
        waits.send_raw(b"SET lost 1\r\nGET lost\r\n");
        pair.wait_until_there("lost");
        let to = format!("REPLICAOF 127.0.0.1 {}", other.port());
        assert_reply!(pair.primary.connect(), &to, "OK");
        assert_eq!(waits.reply().to_string(), ROLE_CHANGED);
        assert_eq!(waits.read_to_end(), b"");
        pair.hold_acks(false);
        // Clients with CLIENT DURABILITY get the error, even if they did not write.
        assert_reply!(pair.primary.connect(), "CONFIG SET replica-read-only no", "OK");
        idle.send("SET own 1");
        assert_eq!(idle.reply().to_string(), ROLE_CHANGED);
        assert_eq!(idle.read_to_end(), b"");
        // When it is a primary again, it provides durability again.
        wait_until("it to follow", || pair.primary.info("master_link_status") == "up");
        assert_reply!(pair.primary.connect(), "REPLICAOF NO ONE", "OK");
        let mut conn = pair.durable();
        wait_until("the replica to be there again", || {
            pair.primary.connect().cmd("INFO replication").text().contains("state=online")
        });
        assert_reply!(conn, "SET kept 1", "OK");
        pair.wait_until_there("kept");
    });
}

#[test]
fn without_a_replica_a_reply_waits_for_one_and_not_for_ever() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(2).start();
    let mut conn = server.connect();
    assert_reply!(conn, "CLIENT DURABILITY REPLICAS 1", "OK");
    conn.send("SET a 1");
    assert_held(&mut conn);
    let link = Proxy::to(&server.address());
    let replica = follower(Redis, &link, &server);
    assert_eq!(conn.reply().text(), "OK");
    assert_reply!(replica.server.connect(), "GET a", "\"1\"");
    // When the replication stream is no longer kept, there is nothing to acknowledge.
    drop(replica);
    server.wait_for_info("connected_slaves", |count| count == "0");
    conn.send("SET a 2");
    assert_held(&mut conn);
    assert_reply!(server.connect(), "CONFIG SET repl-backlog-ttl 1", "OK");
    assert_eq!(conn.reply().to_string(), ROLE_CHANGED);
    assert_eq!(conn.read_to_end(), b"");
}

/// A client with CLIENT DURABILITY DISK and REPLICAS waits for both.
#[test]
fn a_reply_waits_for_the_file_and_for_replicas() {
    if subject_is_redis() {
        return;
    }
    let primary = with_workers(2).set("appendonly", "yes").set("appendfsync", "no").start();
    let link = Proxy::to(&primary.address());
    let replica = follower(Redis, &link, &primary);
    for level in ["", "MEMORY ", "LOG ", "DISK "] {
        let mut conn = primary.connect();
        assert_reply!(conn, &format!("CLIENT DURABILITY {level}REPLICAS 1"), "OK");
        link.stall(Direction::ToServer, true);
        let key = format!("at:{}", level.trim());
        conn.send(&format!("SET {key} 1"));
        wait_until_there(&replica, &key);
        assert_held(&mut conn);
        link.stall(Direction::ToServer, false);
        assert_eq!(conn.reply().text(), "OK");
        assert_reply!(conn, "WAITAOF 1 0 0", "1) (integer) 1\n2) (integer) 0");
    }
}

/// After the primary is killed, every acknowledged write is on the replica that takes its place.
#[test]
fn acknowledged_writes_survive_the_loss_of_the_primary() {
    const ROUNDS: usize = 4;
    const CLIENTS: usize = 4;
    const WRITES: usize = 300;
    each_replica(|mut pair| {
        for round in 0..ROUNDS {
            let acknowledged = [(); CLIENTS].map(|()| Mutex::new(0_usize));
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for (client, count) in acknowledged.iter().enumerate() {
                    let mut conn = pair.durable();
                    let is_over = &is_over;
                    scope.spawn(move || {
                        for n in 1.. {
                            let line = format!("SET key:{client}:{n} {n}");
                            match conn.try_cmd(&line) {
                                Ok(reply) => assert_eq!(reply.text(), "OK"),
                                Err(_) => break,
                            }
                            *count.lock().unwrap() = n;
                        }
                        assert!(is_over.load(Ordering::SeqCst), "disconnected before the end");
                    });
                }
                wait_until("all to write", || {
                    acknowledged.iter().all(|count| *count.lock().unwrap() >= WRITES)
                });
                is_over.store(true, Ordering::SeqCst);
                pair.primary.kill_for_now();
            });
            let mut conn = pair.replica.server.connect();
            assert_reply!(conn, "REPLICAOF NO ONE", "OK");
            for (client, count) in acknowledged.iter().enumerate() {
                let count = *count.lock().unwrap();
                for n in 1..=count {
                    let reply = conn.cmd(&format!("GET key:{client}:{n}")).to_string();
                    assert_eq!(reply, format!("\"{n}\""), "round {round}: key:{client}:{n}");
                }
            }
            if round + 1 < ROUNDS {
                pair = Pair::start(pair.replica.kind);
            }
        }
    });
}

/// INFO brisk shows the lag of each replica, in seconds.
#[test]
fn info_shows_the_lag_of_a_replica_in_seconds() {
    each_replica(|pair| {
        let mut conn = pair.primary.connect();
        let mut lag_seconds = || -> i64 {
            let text = conn.cmd("INFO brisk").text();
            let line = text.lines().find(|line| line.starts_with("replica0:")).map(str::to_owned);
            let line = line.expect("there is a replica");
            assert!(line.starts_with("replica0:ip=127.0.0.1,port="), "{line}");
            line.rsplit_once("behind_seconds=").unwrap().1.parse().unwrap()
        };
        wait_until("it to have everything", || lag_seconds() == 0);
        pair.hold_acks(true);
        assert_reply!(pair.primary.connect(), "SET late 1", "OK");
        wait_until("it to be two seconds behind", || lag_seconds() >= 2);
        pair.hold_acks(false);
        wait_until("it to have everything again", || lag_seconds() == 0);
        if pair.replica.kind == Brisk {
            let mut replica = pair.replica.server.connect();
            assert_eq!(replica.info("behind_primary_seconds"), "0");
            pair.link.refuse(true);
            pair.link.cut(brisk_testkit::proxy::Disconnect::Reset);
            wait_until("it to notice", || replica.info("behind_primary_seconds").as_str() >= "1");
            pair.link.refuse(false);
            wait_until("it to catch up", || replica.info("behind_primary_seconds") == "0");
        }
        assert!(!pair.primary.info("slave0").contains("behind"), "as parsers of Redis's know it");
    });
}

/// A replica that reconnects while its previous connection still seems to be open counts once.
#[test]
fn a_replica_with_two_connections_counts_once() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(2).start();
    let line = |conn: &mut Conn| -> String {
        let mut line = Vec::new();
        loop {
            match conn.bytes(1)[0] {
                b'\n' if line.is_empty() => {}
                b'\n' => return String::from_utf8(line).unwrap().trim_end().to_owned(),
                byte => line.push(byte),
            }
        }
    };
    let request_psync = |port: u16, psync: &str| -> (Conn, String) {
        let mut conn = server.connect();
        assert_reply!(conn, &format!("REPLCONF listening-port {port} capa psync2"), "OK");
        conn.send(psync);
        let reply = line(&mut conn);
        (conn, reply)
    };
    let (mut first, reply) = request_psync(7777, "PSYNC ? -1");
    let words: Vec<&str> = reply.split(' ').collect();
    let ["+FULLRESYNC", id, place] = words[..] else { panic!("{reply}") };
    let place: u64 = place.parse().unwrap();
    let len: usize = line(&mut first).strip_prefix('$').unwrap().parse().unwrap();
    first.bytes(len);
    let mut client = server.connect();
    assert_reply!(client, "CLIENT DURABILITY REPLICAS 2", "OK");
    client.send("SET key 1");
    server.wait_for_info("master_repl_offset", |offset| offset.parse::<u64>().unwrap() > place);
    let goes_on = format!("PSYNC {id} {}", place + 1);
    let mut replicas = vec![first];
    for port in [7777, 7778] {
        assert!(!client.has_reply_within(HELD), "one has it");
        let (conn, reply) = request_psync(port, &goes_on);
        assert!(reply.starts_with("+CONTINUE"), "{reply}");
        replicas.push(conn);
        let end = server.info("master_repl_offset");
        for conn in &mut replicas {
            conn.send(&format!("REPLCONF ACK {end}"));
        }
    }
    assert_eq!(client.reply().text(), "OK");
}

/// Replies that wait for a replica count toward the memory of their client, like all replies.
#[test]
fn replies_that_wait_for_a_replica_stall_their_pipeline() {
    if subject_is_redis() {
        return;
    }
    brisk_testkit::each_backend(
        || with_workers(2),
        |server| {
            let mut control = server.connect();
            let list = |control: &mut Conn, field: &str| -> Option<u64> {
                let list = control.cmd("CLIENT LIST").text();
                let line = list.lines().find(|line| line.contains(" name=durable "))?;
                let value = |word: &str| word.strip_prefix(field)?.strip_prefix('=')?.parse().ok();
                line.split(' ').find_map(value)
            };
            // Many small replies, each from a separate batch, and a few large ones.
            for (value, times) in [(60_000, 200), (1, 40_000)] {
                control.call(&["SET", "value", &"v".repeat(value)]);
                let mut conn = server.connect();
                conn.cmd("CLIENT SETNAME durable");
                conn.cmd("CLIENT DURABILITY REPLICAS 1");
                let stalls: u64 = control.info("output_stalls").parse().unwrap();
                let request = b"SET other v\r\nGET value\r\n".repeat(times);
                conn.send_raw(&request);
                wait_until("it is stalled, or all is executed", || {
                    let now = list(&mut control, "tot-cmds").unwrap_or(0);
                    let stalled = control.info("output_stalls").parse::<u64>().unwrap() > stalls;
                    stalled || now >= 2 * times as u64
                });
                let held = list(&mut control, "tot-mem").unwrap();
                assert!(held < 4 << 20, "{held} bytes for values of {value}");
                // A client that has disconnected uses no memory and no longer counts.
                drop(conn);
                wait_until("it is gone", || list(&mut control, "id").is_none());
                wait_until("nothing is left of it", || control.info("clients_output_bytes") == "0");
            }
        },
    );
}

/// A client may shut down its sending direction after its last request.
#[test]
fn a_client_that_has_ended_its_stream_gets_the_replies_that_a_replica_acknowledges() {
    if subject_is_redis() {
        return;
    }
    /// The server holds the replies for at least this time.
    const KEPT: Duration = Duration::from_secs(1);
    const ATTEMPTS: usize = 20;
    each_replica(|pair| {
        let attempt = || {
            let mut conn = pair.durable();
            let begun = Instant::now();
            conn.send_raw(b"SET half 1\r\nGET half\r\n");
            conn.finish_sending();
            (conn.read_to_end(), begun.elapsed())
        };
        let (mut replies, mut time) = attempt();
        for _ in 1..ATTEMPTS {
            // If the machine pauses for a long time, the server may close the client's connection before the
            // acknowledgement arrives.
            if !replies.is_empty() || time < KEPT {
                break;
            }
            brisk_testkit::skipped("the machine paused for a second, so a part was repeated");
            (replies, time) = attempt();
        }
        assert_eq!(replies, b"+OK\r\n$1\r\n1\r\n");
    });
}
