//! Sentinel: a client follows the primary through failovers and crashes. The program needs no new client, and no
//! command is executed twice.

use crate::scripted::{array, serve};
use brisk::{Builder, Client, Event, Kind, Lanes, Phase, Subscriber};
use brisk_testkit::kind::Kind as Of;
use brisk_testkit::proxy::{Direction, Proxy};
use brisk_testkit::sentinels::{SERVICE, Sentinels};
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::wait_until;
use std::collections::HashSet;
use std::future::Future;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// A primary with two replicas. At the beginning, the primary is the first server.
struct Group {
    servers: Vec<Server>,
    launch: Launch,
    sentinels: Sentinels,
}

impl Group {
    fn start(of: Of) -> Group {
        Group::with(of, Sentinels::watch)
    }

    fn with(of: Of, watch: impl Fn(u16, usize) -> Sentinels) -> Group {
        // With a configuration file, so that a restarted server keeps its role.
        let launch = of.launch().file("");
        let servers: Vec<Server> = (0..3).map(|_| launch.clone().start()).collect();
        for replica in &servers[1..] {
            let follow = format!("REPLICAOF 127.0.0.1 {}", servers[0].port());
            assert_eq!(replica.connect().cmd(&follow).to_string(), "OK");
            replica.wait_for_info("master_link_status", |status| status == "up");
        }
        let sentinels = watch(servers[0].port(), 2);
        Group { servers, launch, sentinels }
    }

    fn client(&self) -> Builder {
        let client = Builder::sentinel(self.sentinels.addresses(), SERVICE);
        // The limits are long, so that the client does not give up on a stalled server by itself.
        let client = client.timeout(Duration::from_secs(30)).silence(Duration::from_secs(30));
        client.lanes(Lanes::Count(2))
    }

    fn at(&self, address: &str) -> usize {
        let at = self.servers.iter().position(|server| server.address() == address);
        at.expect("one of the group")
    }

    /// Waits until the sentinels agree on a primary, which also reports that role itself and has both replicas.
    fn settled(&self) -> String {
        let mut primary = None;
        wait_until("a primary with two replicas", || {
            primary = self.sentinels.primary().filter(|address| {
                let server = &self.servers[self.at(address)];
                let info = server.connect().cmd("INFO replication").text();
                info.contains("role:master") && info.matches("state=online").count() == 2
            });
            primary.is_some() && self.sentinels.are_content()
        });
        primary.expect("it was waited for")
    }

    /// Waits until the client is at the primary, and returns its address. On a busy machine, the sentinels may have
    /// considered the next primary dead as well, and have chosen another one.
    async fn follows(&self, db: &Client) -> String {
        let runtime = tokio::runtime::Handle::current();
        let is_at = || tokio::task::block_in_place(|| runtime.block_on(self.is_at(db)));
        let mut primary = None;
        wait_until("the client to follow", || {
            primary = self.sentinels.primary().filter(|address| is_at() == *address);
            primary.is_some()
        });
        primary.expect("it was waited for")
    }

    /// The address of the client's server, according to that server. During a failover, it may be the text of an error
    /// instead.
    async fn is_at(&self, db: &Client) -> String {
        let port = db.raw::<(String, u16)>("CONFIG GET").arg("port").await;
        port.map_or_else(|error| error.to_string(), |port| format!("127.0.0.1:{}", port.1))
    }
}

/// The numbers of acknowledged writes and of writes with an unknown outcome of one caller.
#[derive(Default)]
struct Ledger {
    applied: u64,
    unknown: u64,
}

/// Writes and reads until `over` is set; `done` counts the replies.
async fn go_on(db: Client, caller: String, over: Arc<AtomicBool>, done: Arc<AtomicU64>) -> Ledger {
    let mut ledger = Ledger::default();
    let (counter, list) = (format!("n:{caller}"), format!("l:{caller}"));
    for round in 0_u64.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let counted = db.incr(&counter).await.map(drop);
        let pushed = db.raw::<i64>("RPUSH").key(&list).arg(round).await.map(drop);
        for (at, written) in [counted, pushed].into_iter().enumerate() {
            match written {
                Ok(()) if at == 0 => ledger.applied += 1,
                Ok(()) => {}
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Disconnected, "{error}");
                    assert!(error.maybe_applied(), "{error}");
                    ledger.unknown += u64::from(at == 0);
                }
            }
        }
        db.get::<u64>(&counter).await.expect("a read is sent again");
        done.fetch_add(1, Ordering::Relaxed);
    }
    ledger
}

const CALLERS: usize = 20;

/// A name that no other caller has.
fn named(run: u64, caller: usize) -> String {
    format!("{run}:{caller}")
}

/// Runs `body` while callers write and read. Afterwards, all callers must continue, and no write may have been executed
/// twice.
async fn while_used(db: &Client, body: impl AsyncFnOnce()) {
    let (over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            tokio::spawn(go_on(db.clone(), named(run, caller), over.clone(), done.clone()))
        })
        .collect();
    let goes_on = || {
        let before = done.load(Ordering::Relaxed);
        let enough = before + 10 * CALLERS as u64;
        wait_until("all to go on", || done.load(Ordering::Relaxed) > enough);
    };
    goes_on();
    body().await;
    goes_on();
    over.store(true, Ordering::Relaxed);
    for (caller, ledger) in callers.into_iter().enumerate() {
        let (ledger, caller) = (ledger.await.expect("a caller"), named(run, caller));
        let value: Option<u64> = db.get(format!("n:{caller}")).await.expect("a reply");
        let value = value.unwrap_or(0);
        // An acknowledged write may be lost with the only server that had it, but no write is executed twice.
        assert!(value <= ledger.applied + ledger.unknown, "{value} {}", ledger.applied);
        let pushed: Vec<u64> =
            db.raw("LRANGE").key(format!("l:{caller}")).args([0, -1]).await.expect("a list");
        let distinct: HashSet<u64> = pushed.iter().copied().collect();
        assert_eq!(distinct.len(), pushed.len(), "something was pushed twice");
    }
}

fn a_dead_primary(of: Of) {
    let mut group = Group::start(of);
    run(async {
        let db = group.client().connect().await.expect("a primary");
        let first = group.settled();
        assert_eq!(group.is_at(&db).await, first);
        while_used(&db, async || {
            let at = group.at(&first);
            group.servers[at].kill_for_now();
            group.sentinels.wait_until_it_is_not(&first);
        })
        .await;
        assert_ne!(group.follows(&db).await, first);
        // The first primary comes back as a replica, and then the new primary dies.
        let at = group.at(&first);
        let launch = group.launch.clone();
        launch.start_again(&mut group.servers[at]);
        let next = group.settled();
        while_used(&db, async || {
            let at = group.at(&next);
            group.servers[at].kill_for_now();
            group.sentinels.wait_until_it_is_not(&next);
        })
        .await;
        assert_ne!(group.follows(&db).await, next);
    });
}

#[test]
fn commands_continue_after_a_redis_primary_dies() {
    a_dead_primary(Of::Redis);
}

#[test]
fn commands_continue_after_a_brisk_primary_dies() {
    a_dead_primary(Of::Brisk);
}

/// The next message of this listener, and whether a gap was reported before it.
async fn next_message(news: &mut Subscriber) -> (String, bool) {
    let mut has_gap = false;
    loop {
        match news.next().await.expect("the runtime is there") {
            Event::Message(message) => {
                return (String::from_utf8_lossy(&message.payload).into_owned(), has_gap);
            }
            Event::Gap => has_gap = true,
            _ => {}
        }
    }
}

#[test]
fn all_connections_follow_a_planned_switch_even_after_sentinels_restart() {
    for of in [Of::Redis, Of::Brisk] {
        let mut group = Group::start(of);
        run(async {
            let url =
                format!("redis-sentinel://{}/{SERVICE}", group.sentinels.addresses().join(","));
            let db = Client::builder(&url).timeout(Duration::from_secs(30)).connect().await;
            let db = db.unwrap();
            let first = group.settled();
            let mut news = db.subscriber().await.unwrap();
            news.subscribe(["news"]).await.unwrap();
            let session = db.session().await.unwrap();
            session.set("k", 1).await.unwrap();
            for sentinel in 0..3 {
                group.sentinels.restart(sentinel);
            }
            group.settled();
            while_used(&db, async || {
                group.sentinels.hand_over();
                group.sentinels.wait_until_it_is_not(&first);
            })
            .await;
            let next = group.follows(&db).await;
            // A session does not follow a failover. It fails instead.
            let lost = session.get::<i64>("k").await.unwrap_err();
            assert_eq!(lost.kind(), Kind::Disconnected, "{lost}");
            db.session().await.unwrap().set("k", 2).await.unwrap();
            let server = &group.servers[group.at(&next)];
            wait_until("the listener to have followed", || {
                server.connect().cmd("PUBLISH news heard").integer() == 1
            });
            assert_eq!(next_message(&mut news).await, ("heard".to_owned(), true));
        });
    }
}

#[test]
fn an_idle_client_leaves_the_former_primary() {
    let group = Group::start(Of::Redis);
    run(async {
        let db = group.client().name("idle").connect().await.unwrap();
        db.set("k", 1).await.unwrap();
        let first = group.settled();
        let is_there = |address: &str| {
            let server = &group.servers[group.at(address)];
            server.connect().cmd("CLIENT LIST").text().contains("name=idle")
        };
        wait_until("both lanes to be there", || is_there(&first));
        group.sentinels.hand_over();
        let next = group.sentinels.wait_until_it_is_not(&first);
        wait_until("it to be at the new one", || is_there(&next) && !is_there(&first));
    });
}

/// The old primary does not close its connections: only the sentinels report the new one.
#[test]
fn the_client_leaves_a_stalled_primary_and_reports_the_commands_it_sent_there() {
    let group = Group::start(Of::Redis);
    run(async {
        let db = group.client().name("idle").lanes(Lanes::Count(1)).connect().await.unwrap();
        let mut news = db.subscriber().await.unwrap();
        news.subscribe(["news"]).await.unwrap();
        let session = db.session().await.unwrap();
        session.set("k", 1).await.unwrap();
        // The next primary has the key, whichever replica it is.
        assert_eq!(session.wait(2, 30_000).await.unwrap(), 2);
        let first = group.settled();
        let stopped = &group.servers[group.at(&first)];
        stopped.signal("STOP");
        let written = tokio::spawn({
            let db = db.clone();
            async move { db.incr("n").await }
        });
        let read = tokio::spawn({
            let db = db.clone();
            async move { db.get::<i64>("k").await }
        });
        let next = group.sentinels.wait_until_it_is_not(&first);
        let error = written.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), Kind::Disconnected);
        assert!(error.maybe_applied() && error.to_string().contains(&next), "{error}");
        assert_eq!(read.await.unwrap().unwrap(), Some(1));
        let lost = session.get::<i64>("k").await.unwrap_err();
        assert!(lost.to_string().contains(&next), "{lost}");
        let server = &group.servers[group.at(&next)];
        wait_until("the listener to have followed", || {
            server.connect().cmd("PUBLISH news heard").integer() == 1
        });
        assert_eq!(next_message(&mut news).await, ("heard".to_owned(), true));
        stopped.signal("CONT");
    });
}

#[test]
fn a_write_that_a_replica_rejects_is_sent_again() {
    let group = Group::start(Of::Redis);
    run(async {
        let db = group.client().lanes(Lanes::Count(1)).connect().await.unwrap();
        db.set("n", 1).await.unwrap();
        let first = group.settled();
        // The primary becomes a replica without the sentinels' knowledge, and keeps its clients.
        let demoted = &group.servers[group.at(&first)];
        let other = group.servers.iter().find(|server| server.address() != first).unwrap();
        other.wait_for_info("slave_repl_offset", |offset| {
            demoted.info("master_repl_offset") == offset
        });
        let follow = format!("REPLICAOF 127.0.0.1 {}", other.port());
        assert_eq!(demoted.connect().cmd(&follow).to_string(), "OK");
        use brisk::commands::{get, incr};
        let (one, both, whole) = tokio::join!(
            async { db.incr("n").await },
            async { db.transaction((incr("m"), get::<i64>("m"))).await },
            async { db.batch((incr("o"), incr("p"))).await },
        );
        assert_eq!(one.unwrap(), 2);
        assert_eq!(both.unwrap(), (1, Some(1)));
        assert_eq!(whole.unwrap(), (1, 1));
        group.sentinels.wait_until_it_is_not(&first);
        assert_ne!(group.follows(&db).await, first);
    });
}

#[test]
fn replicas_known_to_sentinels_serve_reads_before_and_after_a_switch() {
    let group = Group::start(Of::Redis);
    let first = group.settled();
    let reads = |server: &Server| {
        let info = server.connect().cmd("INFO commandstats").text();
        let calls = info.lines().find_map(|line| line.strip_prefix("cmdstat_get:calls="));
        calls.map_or(0, |rest| {
            rest.split(',').next().expect("a number").parse::<u64>().expect("a number")
        })
    };
    // The client reads from a replica only if the queried sentinel knows that the replica's link is up.
    let all_read = |db: &Client, primary: &str| {
        let runtime = tokio::runtime::Handle::current();
        wait_until("both replicas to be read from, and the primary not", || {
            let before: Vec<u64> = group.servers.iter().map(reads).collect();
            for _ in 0..10 {
                let read = async { db.get::<u64>("k").await.expect("a reply") };
                tokio::task::block_in_place(|| runtime.block_on(read));
            }
            let more = |at: usize| reads(&group.servers[at]) - before[at];
            let primary = group.at(primary);
            (0..3).all(|at| (at == primary) == (more(at) == 0))
        });
    };
    run(async {
        let db = group.client().read_from(brisk::ReadFrom::PreferReplica).connect().await.unwrap();
        db.set("k", 1).await.unwrap();
        all_read(&db, &first);
        while_used(&db, async || {
            group.sentinels.hand_over();
            group.sentinels.wait_until_it_is_not(&first);
        })
        .await;
        let second = group.settled();
        assert_ne!(second, first);
        db.set("k", 2).await.unwrap();
        all_read(&db, &second);
    });
}

#[test]
fn silent_ignorant_and_password_protected_sentinels_are_distinguished() {
    let watch = |port, replicas| Sentinels::with_password(port, replicas, "their-secret");
    let group = Group::with(Of::Redis, watch);
    let refused = |builder: Builder| run(builder.connect()).expect_err("no").to_string();
    let text = refused(group.client());
    assert!(text.contains("NOAUTH") && text.contains(SERVICE), "{text}");
    let text = refused(group.client().sentinel_login("default", "wrong"));
    assert!(text.contains("WRONGPASS"), "{text}");
    let unknown = Builder::sentinel(group.sentinels.addresses(), "nobody");
    let text = refused(unknown.sentinel_login("default", "their-secret"));
    assert!(text.contains("does not know the service") && text.contains("nobody"), "{text}");
    let text = refused(Builder::sentinel(["127.0.0.1:1"], SERVICE));
    assert!(text.contains("127.0.0.1:1"), "{text}");
    // Two silent sentinels come before one that replies.
    let silent: Vec<Proxy> =
        group.sentinels.addresses()[..2].iter().map(|at| Proxy::to(at)).collect();
    silent.iter().for_each(|link| link.swallow(Direction::ToClient, true));
    let mut named: Vec<String> = silent.iter().map(Proxy::address).collect();
    named.push(group.sentinels.addresses()[2].clone());
    run(async {
        let url =
            format!("redis-sentinel://{}#{SERVICE}?sentinelPass=their-secret", named.join(","));
        let misplaced = Client::connect(&url).await;
        assert!(misplaced.is_err(), "what is behind # is the name");
        let url =
            format!("redis-sentinel://{}?sentinelPass=their-secret#{SERVICE}", named.join(","));
        let db = Client::connect(&url).await.unwrap();
        db.set("k", 1).await.unwrap();
        assert_eq!(db.get("k").await.unwrap(), Some(1));
    });
}

/// A sentinel that sends the messages that a test provides.
struct Scripted {
    address: String,
    state: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    primary: u16,
    listeners: Vec<TcpStream>,
    /// Patterns that clients are subscribed to.
    patterns: usize,
}

impl Scripted {
    fn new(primary: u16) -> Scripted {
        let state = Arc::new(Mutex::new(Script { primary, ..Script::default() }));
        let theirs = Arc::clone(&state);
        let address = serve(move |request, stream| Some(reply_of(request, stream, &theirs)));
        let address = address.to_string();
        Scripted { address, state }
    }

    /// Publishes to clients subscribed by pattern or by name.
    fn publish(&self, channel: &str, text: &str, by_pattern: bool) {
        let message = match by_pattern {
            true => ["pmessage", channel, channel, text].to_vec(),
            false => ["message", channel, text].to_vec(),
        };
        let message = array(&message);
        for mut listener in &self.state.lock().expect("nobody panicked").listeners {
            let _ = listener.write_all(message.as_bytes());
        }
    }
}

fn reply_of(request: &[String], stream: &TcpStream, state: &Mutex<Script>) -> String {
    match (request[0].as_str(), request.get(1).map(String::as_str)) {
        ("SENTINEL", Some("GET-MASTER-ADDR-BY-NAME")) => {
            array(&["127.0.0.1", &state.lock().expect("nobody panicked").primary.to_string()])
        }
        ("SENTINEL", _) => "*0\r\n".to_owned(),
        ("PING", _) => array(&["pong", ""]),
        ("SUBSCRIBE" | "PSUBSCRIBE", _) => {
            let kind = request[0].to_lowercase();
            let mut state = state.lock().expect("nobody panicked");
            state.listeners.push(stream.try_clone().expect("a socket"));
            state.patterns += usize::from(kind == "psubscribe") * (request.len() - 1);
            let confirmed = request[1..].iter().zip(1..).map(|(name, count)| {
                let head = array(&[&kind, name]).replacen("*2", "*3", 1);
                format!("{head}:{count}\r\n")
            });
            confirmed.collect()
        }
        _ => "+OK\r\n".to_owned(),
    }
}

#[test]
fn writes_during_a_planned_switch_are_held_and_go_to_the_next_primary() {
    for lanes in [Lanes::Count(2), Lanes::Pool(2)] {
        let [first, second] = [Launch::subject().start(), Launch::subject().start()];
        let sentinel = Scripted::new(first.port());
        run(async {
            let builder = Builder::sentinel([&sentinel.address], SERVICE).protocol(2).lanes(lanes);
            let db = builder.timeout(Duration::from_secs(30)).connect().await.unwrap();
            assert_eq!(db.incr("n").await.unwrap(), 1);
            wait_until("it to listen", || sentinel.state.lock().unwrap().patterns == 3);
            let begins = |channel: &str, service: &str| {
                let port = second.port();
                let text =
                    format!("slave 127.0.0.1:{port} 127.0.0.1 {port} @ {service} 127.0.0.1 1");
                sentinel.publish(&format!("+failover-state-{channel}"), &text, true);
            };
            let is_held = async || {
                let short = db.incr("other").timeout(Duration::from_millis(100)).await;
                let error = short.err().map(|error| (error.kind(), error.maybe_applied()));
                let queued = Some((Kind::Timeout(Phase::Queued), false));
                assert!(error.is_none() || error == queued, "{error:?}");
                error.is_some()
            };
            begins("send-slaveof-noone", SERVICE);
            while !is_held().await {}
            // The failover is aborted, and commands continue.
            let text = format!("master {SERVICE} 127.0.0.1 1");
            sentinel.publish("-failover-abort-slave-timeout", &text, true);
            assert_eq!(db.incr("n").await.unwrap(), 2);
            // Another service does not concern this client.
            begins("wait-promotion", "another");
            begins("wait-promotion", SERVICE);
            while !is_held().await {}
            let held: Vec<_> = (0..20)
                .map(|n| {
                    let db = db.clone();
                    tokio::spawn(async move { db.rpush("list", n).await })
                })
                .collect();
            wait_until("them to wait", || db.pending() >= 20);
            sentinel.state.lock().unwrap().primary = second.port();
            let (from, to) = (first.port(), second.port());
            let text = format!("{SERVICE} 127.0.0.1 {from} 127.0.0.1 {to}");
            sentinel.publish("+switch-master", &text, false);
            for write in held {
                write.await.unwrap().unwrap();
            }
            assert_eq!(second.connect().cmd("LLEN list").integer(), 20);
            assert_eq!(first.connect().cmd("LLEN list").integer(), 0);
            assert_eq!(first.connect().cmd("GET n").to_string(), "\"2\"");
        });
    }
}
