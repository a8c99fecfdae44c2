//! Shared connections: many callers, one order, no reply to the wrong caller. C1, C2.

use brisk::{Budget, Bytes, Client, Kind, Lanes, Phase, Value, WhenFull};
use brisk_testkit::proxy::{Direction, Proxy};
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::wait_until;
use futures_util::future::join_all;
use std::future::Future;
use std::time::Duration;

/// A Redis server and a Brisk server.
fn servers() -> [Server; 2] {
    [Launch::redis().start(), Launch::subject().start()]
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

fn set<'a>(db: &'a Client, key: &str, value: impl brisk::ToArg) -> brisk::Command<&'a Client, ()> {
    db.raw("SET").key(key).arg(value)
}

fn get<'a, T>(db: &'a Client, key: &str) -> brisk::Command<&'a Client, Option<T>> {
    db.raw("GET").key(key)
}

#[test]
fn both_protocols_over_tcp_and_unix_sockets_give_what_was_set() {
    for server in servers() {
        for protocol in [2, 3] {
            let unix = format!("unix://{}?protocol={protocol}", server.unix_socket().display());
            let tcp = format!("redis://{}/1?protocol={protocol}", server.address());
            for url in [unix, tcp] {
                run(async {
                    let db = Client::builder(&url).name("tests").connect().await.unwrap();
                    set(&db, "key", "value").await.unwrap();
                    assert_eq!(get::<String>(&db, "key").await.unwrap().as_deref(), Some("value"));
                    assert_eq!(get::<String>(&db, "none").await.unwrap(), None);
                    assert_eq!(
                        get::<Bytes>(&db, "none").required().await.unwrap_err().kind(),
                        Kind::Missing
                    );
                    let error = db.raw::<i64>("LPUSH").key("key").arg(1).await.unwrap_err();
                    assert_eq!(error.code(), Some(brisk::Code::WrongType));
                    let name: String = db.raw("CLIENT GETNAME").await.unwrap();
                    assert_eq!(name, "tests");
                    let large = "x".repeat(300_000);
                    set(&db, "large", &large).await.unwrap();
                    let read: Bytes = get(&db, "large").required().await.unwrap();
                    assert_eq!(read, large.as_bytes());
                });
            }
        }
    }
}

#[test]
fn a_program_without_a_runtime_waits() {
    for server in servers() {
        let db = Client::builder(&server.address()).connect_blocking().unwrap();
        set(&db, "n", 1).wait().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        db.raw::<i64>("INCR").key("n").wait().unwrap();
                    }
                });
            }
        });
        assert_eq!(get(&db, "n").wait().unwrap(), Some(4001));
    }
}

#[test]
fn hundreds_of_callers_each_get_their_own_reply() {
    for server in servers() {
        for lanes in [1, 3] {
            run(async {
                let db = Client::builder(&server.address()).lanes(Lanes::Count(lanes));
                let db = db.connect().await.unwrap();
                let callers = (0..300).map(|caller| {
                    let db = db.clone();
                    tokio::spawn(async move {
                        let key = format!("key:{caller}");
                        for round in 0..50 {
                            // Some values are copied out of the buffer, others share it.
                            let value = format!("{caller}:{round}:{}", "x".repeat(round * 9));
                            set(&db, &key, &value).await.unwrap();
                            assert_eq!(get(&db, &key).await.unwrap(), Some(value));
                        }
                    })
                });
                for done in join_all(callers).await {
                    done.unwrap();
                }
                wait_until("nothing to be under way", || db.pending() == 0);
            });
        }
    }
}

#[test]
fn commands_of_a_key_are_executed_in_the_order_in_which_they_were_polled() {
    for server in servers() {
        run(async {
            let db =
                Client::builder(&server.address()).lanes(Lanes::Count(4)).connect().await.unwrap();
            for key in ["a", "b", "c", "d", "e", "f"] {
                let pushes = (0..2000).map(|n| db.raw::<i64>("RPUSH").key(key).arg(n));
                let lengths = join_all(pushes).await;
                assert!(lengths.into_iter().map(Result::unwrap).eq(1..=2000));
                let list: Vec<i64> = db.raw("LRANGE").key(key).args([0, -1]).await.unwrap();
                assert!(list.into_iter().eq(0..2000));
            }
        });
    }
}

#[test]
fn a_reply_is_the_same_in_any_pieces() {
    for server in servers() {
        let link = Proxy::to(&server.address());
        for seed in 0..3 {
            link.split(Some(brisk_testkit::proxy::Split {
                single_bytes: 3000,
                bytes_max: 90,
                seed,
            }));
            run(async {
                let db = Client::builder(&link.address())
                    .lanes(Lanes::Count(1))
                    .connect()
                    .await
                    .unwrap();
                let lists = (0..40).map(|n| {
                    let db = &db;
                    async move {
                        let key = format!("list:{seed}:{n}");
                        let items: Vec<String> = (0..n).map(|i| "y".repeat(i * 7 + n)).collect();
                        if n > 0 {
                            db.raw::<i64>("RPUSH").key(&key).args(&items).await.unwrap();
                        }
                        let read: Vec<String> =
                            db.raw("LRANGE").key(&key).args([0, -1]).await.unwrap();
                        assert_eq!(read, items);
                    }
                });
                join_all(lists).await;
            });
        }
    }
}

#[test]
fn a_dropped_call_shifts_no_other_reply() {
    for server in servers() {
        run(async {
            let db =
                Client::builder(&server.address()).lanes(Lanes::Count(1)).connect().await.unwrap();
            for n in 0..200 {
                set(&db, &format!("k{n}"), n).await.unwrap();
            }
            for round in 0..200 {
                // The calls are polled once, so that they are sent, and then dropped.
                let mut left: Vec<_> = (0..50).map(|n| get::<i64>(&db, &format!("k{n}"))).collect();
                for one in &mut left {
                    let one = std::pin::Pin::new(one);
                    assert!(futures_util::poll!(one).is_pending());
                }
                drop(left);
                let n = round % 200;
                assert_eq!(get(&db, &format!("k{n}")).await.unwrap(), Some(n));
            }
            wait_until("nothing to be under way", || db.pending() == 0);
        });
    }
}

#[test]
fn a_server_that_does_not_reply_causes_a_timeout_of_a_sent_command() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = Client::builder(&link.address()).lanes(Lanes::Count(1)).connect().await.unwrap();
        set(&db, "k", 1).await.unwrap();
        link.stall(Direction::ToClient, true);
        let error = get::<i64>(&db, "k").timeout(Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Timeout(Phase::Sent));
        assert!(error.maybe_applied());
        link.stall(Direction::ToClient, false);
        // No other call gets the late reply.
        assert_eq!(get(&db, "k").await.unwrap(), Some(1));
    });
}

#[test]
fn commands_without_a_connection_wait_until_they_are_sent_or_time_out() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = Client::builder(&link.address()).lanes(Lanes::Count(1)).connect().await.unwrap();
        link.refuse(true);
        link.cut(brisk_testkit::proxy::Disconnect::Reset);
        let short = Duration::from_millis(100);
        let mut error = set(&db, "k", 1).timeout(short).await.unwrap_err();
        if error.kind() == Kind::Disconnected {
            // The command was sent on the connection that was being cut.
            error = set(&db, "k", 1).timeout(short).await.unwrap_err();
        }
        assert_eq!(error.kind(), Kind::Timeout(Phase::Queued));
        assert!(!error.maybe_applied());
        assert!(
            error.to_string().contains("closed")
                || error.to_string().contains("reset")
                || error.to_string().contains("no connection"),
            "{error}"
        );
        let waits = tokio::spawn({
            let db = db.clone();
            async move { set(&db, "k", 2).timeout(Duration::from_secs(20)).await }
        });
        link.refuse(false);
        waits.await.unwrap().unwrap();
        assert_eq!(get(&db, "k").await.unwrap(), Some(2));
    });
}

#[test]
fn a_peer_that_vanishes_silently_is_noticed() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = Client::builder(&link.address())
            .lanes(Lanes::Count(1))
            .timeout(Duration::from_millis(300))
            .silence(Duration::from_millis(500));
        let db = db.connect().await.unwrap();
        db.set("k", 1).await.unwrap();
        link.swallow(Direction::ToClient, true);
        link.swallow(Direction::ToServer, true);
        let error = db.incr("k").await.unwrap_err();
        assert_eq!(error.kind(), Kind::Timeout(Phase::Sent));
        assert!(error.maybe_applied());
        // The dropped bytes never arrive on that connection, so the connection must be replaced.
        wait_until("it to be given up", || link.accepted() > 1);
        link.heal();
        let runtime = tokio::runtime::Handle::current();
        let has_reply =
            || tokio::task::block_in_place(|| runtime.block_on(async { db.get::<i64>("k").await }));
        wait_until("a reply", || matches!(has_reply(), Ok(Some(1))));
    });
}

#[test]
fn a_read_survives_a_dead_connection() {
    for server in servers() {
        for lanes in [Lanes::Count(1), Lanes::Pool(1)] {
            let link = Proxy::to(&server.address());
            run(async {
                // With the default time limits of a client.
                let db = Client::builder(&link.address()).lanes(lanes).connect().await.unwrap();
                db.set("k", 1).await.unwrap();
                let before = link.written_bytes(Direction::ToServer);
                link.swallow(Direction::ToServer, true);
                let reads = tokio::spawn({
                    let db = db.clone();
                    async move { db.batch((get_k(), get_k())).await }
                });
                wait_until("it to be lost", || link.written_bytes(Direction::ToServer) > before);
                // The bytes of this connection are lost for good. Another connection works.
                link.heal();
                assert_eq!(reads.await.unwrap().unwrap(), (Some(1), Some(1)));
                assert_eq!(link.accepted(), 2);
            });
        }
    }
}

/// While a server reads nothing, its kernel announces a full receive window. The connection is not dead.
#[test]
fn a_server_that_reads_nothing_for_a_while_keeps_its_connections() {
    const PAUSE_MS: u64 = 2000;
    const WRITES: usize = 64;
    let server = Launch::subject().start();
    for lanes in [Lanes::Count(1), Lanes::Pool(8)] {
        run(async {
            // The operating system gives up on a dead connection after 0.5 s.
            let db = Client::builder(&server.address()).lanes(lanes);
            let db = db.timeout(Duration::from_secs(60)).silence(Duration::from_millis(500));
            let db = db.connect().await.unwrap();
            let session = db.session().await.unwrap();
            let pause = format!("CLIENT PAUSE {PAUSE_MS} WRITE");
            assert_eq!(server.connect().cmd(&pause).to_string(), "OK");
            let value = "v".repeat(1 << 20);
            let writes = (0..WRITES).map(|n| {
                let (db, value, key) = (&db, &value, format!("key:{n}"));
                async move { set(db, &key, value).await }
            });
            let by_session = async { session.raw::<()>("SET").key("s").arg(&value).await };
            let (done, one) = tokio::join!(join_all(writes), by_session);
            // A write whose connection is lost is not sent again.
            done.into_iter().chain([one]).for_each(Result::unwrap);
        });
    }
}

fn get_k() -> brisk::Command<(), Option<i64>> {
    let mut request =
        brisk::Request::new("GET", brisk::Traits { reads_only: true, ..brisk::Traits::default() });
    request.key("k");
    brisk::Command::new(request)
}

#[test]
fn a_write_keeps_a_silent_connection_until_the_write_times_out() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = Client::builder(&link.address()).lanes(Lanes::Count(1));
        let db = db.timeout(Duration::from_millis(400)).connect().await.unwrap();
        db.set("k", 1).await.unwrap();
        link.stall(Direction::ToClient, true);
        // Once the command has timed out, another connection may be tried immediately, so only checks before that
        // count.
        let mut incr = std::pin::pin!(db.incr("k"));
        let error = loop {
            let accepted = link.accepted();
            match tokio::time::timeout(Duration::from_millis(5), &mut incr).await {
                Ok(reply) => break reply.unwrap_err(),
                Err(_) => assert_eq!(accepted, 1),
            }
        };
        assert_eq!(error.kind(), Kind::Timeout(Phase::Sent));
        link.heal();
        assert_eq!(db.get::<i64>("k").await.unwrap(), Some(2));
    });
}

#[test]
fn an_idle_connection_is_checked_with_ping() {
    for server in servers() {
        let link = Proxy::to(&server.address());
        run(async {
            let pings = |server: &Server| -> u64 {
                let info = server.connect().cmd("INFO commandstats").text();
                let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_ping:calls="));
                line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
            };
            let builder = Client::builder(&link.address()).lanes(Lanes::Count(1));
            let builder = builder.silence(Duration::from_millis(200));
            let pause = Some(Duration::from_millis(20));
            let db = builder.idle_ping(pause).connect().await.unwrap();
            let session = db.session().await.unwrap();
            wait_until("it to be asked", || pings(&server) > 2);
            db.set("k", 1).await.unwrap();
            wait_until("it to be asked again", || pings(&server) > 4);
            // A session is not probed: it may be inside a transaction.
            session.raw::<()>("MULTI").await.unwrap();
            let before = pings(&server);
            wait_until("it to be asked again", || pings(&server) > before + 2);
            assert!(session.raw::<Vec<i64>>("EXEC").await.unwrap().is_empty());
            link.swallow(Direction::ToServer, true);
            wait_until("a dead one to be replaced without a command", || link.accepted() > 2);
            link.heal();
            assert_eq!(db.get::<i64>("k").await.unwrap(), Some(1));
        });
    }
}

#[test]
fn a_lazy_client_can_start_before_its_server() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    link.refuse(true);
    let builder = || Client::builder(&link.address()).lazy();
    let early = run(builder().connect());
    assert_eq!(early.unwrap().pending(), 0);
    let blocking = builder().timeout(Duration::from_millis(50)).connect_blocking().unwrap();
    let error = blocking.incr("n").wait().unwrap_err();
    assert_eq!(error.kind(), Kind::Timeout(Phase::Queued));
    assert!(
        error.to_string().contains("no connection")
            || error.to_string().contains("closed")
            || error.to_string().contains("reset"),
        "{error}"
    );
    run(async {
        let db = builder().timeout(Duration::from_secs(20)).connect().await.unwrap();
        let waits = tokio::spawn({
            let db = db.clone();
            async move { db.incr("n").await }
        });
        wait_until("it to wait", || db.pending() == 1);
        link.refuse(false);
        assert_eq!(waits.await.unwrap().unwrap(), 1);
        let cluster = builder().cluster().connect().await.unwrap_err();
        assert_eq!(cluster.kind(), Kind::Invalid);
    });
}

#[test]
fn the_client_sends_its_library_name_unless_this_is_disabled() {
    let server = Launch::subject().start();
    run(async {
        let info = async |builder: brisk::Builder| {
            builder.connect().await.unwrap().client_info().await.unwrap()
        };
        let named = info(Client::builder(&server.address())).await;
        assert!(named.contains(" lib-name=brisk "), "{named}");
        let unnamed = info(Client::builder(&server.address()).no_client_info()).await;
        assert!(unnamed.contains(" lib-name= "), "{unnamed}");
    });
}

#[test]
fn the_system_error_is_the_source_of_an_error() {
    use std::error::Error as _;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let error = run(Client::connect(&address)).unwrap_err();
    assert_eq!(error.kind(), Kind::Disconnected);
    assert_eq!(error.io_kind(), Some(std::io::ErrorKind::ConnectionRefused));
    assert!(error.source().is_some_and(|source| source.is::<std::io::Error>()));
    let error = run(Client::connect("/nowhere/at/all")).unwrap_err();
    assert_eq!(error.io_kind(), Some(std::io::ErrorKind::NotFound));
}

#[test]
fn a_server_that_was_idle_may_reply_late() {
    let server = Launch::subject().start();
    run(async {
        let silence = Duration::from_millis(400);
        let db = Client::builder(&server.address()).lanes(Lanes::Count(1)).silence(silence);
        let db = db.connect().await.unwrap();
        db.set("k", 1).await.unwrap();
        let session = db.session().await.unwrap();
        let connections = || -> u64 { server.info("total_connections_received").parse().unwrap() };
        let before = connections();
        // This is longer than the timer runs without work, and longer than a peer may be silent.
        assert_eq!(session.blpop::<String, String>("none", 0.9).await.unwrap(), None);
        db.raw::<()>("DEBUG SLEEP").arg(0.1).await.unwrap();
        assert_eq!(db.get("k").await.unwrap(), Some(1));
        assert_eq!(connections() - before, 1, "that of INFO itself");
    });
}

#[test]
fn no_call_waits_forever_after_the_runtime_has_ended() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    for lanes in [1, 2] {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let builder = Client::builder(&link.address()).lanes(Lanes::Count(lanes)).no_timeout();
        let db = runtime.block_on(builder.connect()).unwrap();
        link.stall(Direction::ToClient, true);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| db.get::<i64>("k").wait());
            wait_until("it to wait", || db.pending() > 0);
            runtime.shutdown_background();
            assert_eq!(waits.join().unwrap().unwrap_err().kind(), Kind::Closed);
        });
        assert_eq!(db.get::<i64>("k").wait().unwrap_err().kind(), Kind::Closed);
        link.heal();
    }
}

#[test]
fn the_waiting_requests_are_bounded() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        for when_full in [WhenFull::Fail, WhenFull::Wait] {
            let budget = Budget::bytes(100_000).when_full(when_full);
            let db = Client::builder(&link.address()).lanes(Lanes::Count(1)).budget(budget);
            let db = db.connect().await.unwrap();
            link.stall(Direction::ToServer, true);
            let value = "x".repeat(10_000);
            let writes: Vec<_> = (0..30)
                .map(|n| {
                    let (db, value) = (db.clone(), value.clone());
                    tokio::spawn(async move {
                        set(&db, &format!("w{n}"), &value).timeout(Duration::from_secs(30)).await
                    })
                })
                .collect();
            wait_until("the budget to be spent", || db.pending() >= 9);
            if when_full == WhenFull::Wait {
                let late = set(&db, "late", &value).timeout(Duration::from_millis(100)).await;
                assert_eq!(late.unwrap_err().kind(), Kind::Timeout(Phase::Queued));
            } else {
                let refused = || {
                    let db = &db;
                    async move { set(db, "late", "x".repeat(100_000)).await }
                };
                assert_eq!(refused().await.unwrap_err().kind(), Kind::Overloaded);
            }
            link.stall(Direction::ToServer, false);
            let done = join_all(writes).await.into_iter().map(Result::unwrap);
            let (done, refused): (Vec<_>, Vec<_>) = done.partition(Result::is_ok);
            match when_full {
                WhenFull::Wait => assert_eq!(done.len(), 30),
                _ => {
                    assert!((9..30).contains(&done.len()), "{}", done.len());
                    assert!(
                        refused.iter().all(|error| {
                            error.as_ref().unwrap_err().kind() == Kind::Overloaded
                        })
                    );
                }
            }
        }
    });
}

#[test]
fn large_values_are_sent_both_ways_at_the_same_time() {
    let server = Launch::subject().start();
    run(async {
        let db = Client::builder(&server.address()).lanes(Lanes::Count(1));
        let db = db.timeout(Duration::from_secs(30)).connect().await.unwrap();
        let value = vec![b'x'; 16 << 20];
        let rounds = (0..4).map(|n| {
            let (db, value) = (&db, &value);
            async move {
                let key = format!("large:{n}");
                set(db, &key, value).await.unwrap();
                let read: Bytes = get(db, &key).required().await.unwrap();
                assert!(read == *value);
            }
        });
        join_all(rounds).await;
        let all: Value = db.raw("MGET").key("large:0").arg("large:1").await.unwrap();
        assert_eq!(all.as_slice().map(<[Value]>::len), Some(2));
    });
}

#[test]
fn calls_of_a_closed_client_fail() {
    let server = Launch::subject().start();
    run(async {
        let db = Client::connect(&server.address()).await.unwrap();
        let other = db.clone();
        db.close();
        assert_eq!(get::<i64>(&other, "k").await.unwrap_err().kind(), Kind::Closed);
    });
    let error = run(Client::connect("127.0.0.1:1")).unwrap_err();
    assert_eq!(error.kind(), Kind::Disconnected);
}

#[test]
fn a_command_that_times_out_before_it_is_sent_is_never_executed() {
    let server = Launch::subject().start();
    run(async {
        let db = Client::builder(&server.address()).lanes(Lanes::Count(1));
        let db = db.timeout(Duration::from_secs(30)).connect().await.unwrap();
        let value = vec![b'x'; 12 << 20];
        server.signal("STOP");
        let large = tokio::spawn({
            let db = db.clone();
            async move { db.set("large", &value).await }
        });
        wait_until("it to be under way", || db.pending() > 0);
        // Commands that are queued together with the large one may have been sent.
        let mut attempt = 0;
        let key = loop {
            attempt += 1;
            let key = format!("n:{attempt}");
            let error = db.incr(&key).timeout(Duration::from_millis(100)).await.unwrap_err();
            assert_eq!(error.maybe_applied(), error.kind() == Kind::Timeout(Phase::Sent));
            if error.kind() == Kind::Timeout(Phase::Queued) {
                break key;
            }
        };
        server.signal("CONT");
        assert!(large.await.unwrap().unwrap());
        assert_eq!(db.get::<i64>(&key).await.unwrap(), None);
    });
}

#[test]
fn a_command_sent_before_the_client_was_closed_may_have_been_executed() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = Client::builder(&link.address()).lanes(Lanes::Count(1)).connect().await.unwrap();
        link.stall(Direction::ToClient, true);
        let add = tokio::spawn({
            let db = db.clone();
            async move { db.incr("n").await }
        });
        wait_until("it to be executed", || {
            server.connect().cmd("EXISTS n").to_string() == "(integer) 1"
        });
        db.close();
        let error = add.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), Kind::Closed);
        assert!(error.maybe_applied());
    });
}

#[test]
fn a_command_may_take_longer_than_a_peer_may_be_silent() {
    let server = Launch::subject().start();
    run(async {
        let db = Client::builder(&server.address()).silence(Duration::from_millis(200));
        for db in [db.clone().timeout(Duration::from_secs(20)), db.no_timeout()] {
            let db = db.connect().await.unwrap();
            db.raw::<()>("DEBUG SLEEP").arg(0.6).await.unwrap();
        }
    });
}

#[test]
fn commands_unsuitable_for_shared_connections_are_rejected() {
    let server = Launch::subject().start();
    run(async {
        let db = Client::connect(&server.address()).await.unwrap();
        for name in ["subscribe", "MULTI", "SELECT", "CLIENT REPLY", "monitor", "BLPOP", "WAIT"] {
            let refused = db.raw::<()>(name).arg(1).await.unwrap_err();
            assert_eq!(refused.kind(), Kind::Invalid, "{name}");
        }
        db.set("k", 1).await.unwrap();
    });
}

/// Commands that change or block a connection, in each spelling a caller may use.
const NOT_FOR_SHARED_CONNECTIONS: &[&[&str]] = &[
    &["CLIENT", "REPLY", "SKIP"],
    &["client", "Reply", "off"],
    &["CLIENT REPLY", "SKIP"],
    &["CLIENT REPLY ON"],
    &["CLIENT TRACKING", "ON"],
    &["CLIENT", "TRACKING", "ON", "BCAST"],
    &["client", "setname", "mine"],
    &["CLIENT", "NO-EVICT", "on"],
    &["CLIENT", "NO-TOUCH", "on"],
    &["CLIENT", "CACHING", "YES"],
    &["CLIENT", "SETINFO", "LIB-NAME", "x"],
    &["CLIENT", "IMPORT-SOURCE", "ON"],
    &["SCRIPT", "DEBUG", "YES"],
    &["script debug", "SYNC"],
    &["XREAD", "BLOCK", "0", "STREAMS", "none", "$"],
    &["xread", "count", "1", "block", "0", "streams", "none", "$"],
    &["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "none", ">"],
    &["blpop", "none", "0"],
    &["BLMOVE", "none", "none", "LEFT", "LEFT", "0"],
    &["WAIT", "1", "0"],
    &["SELECT", "1"],
    &["auth", "x"],
    &["HELLO", "2"],
    &["reset"],
    &["QUIT"],
    &["MULTI"],
    &["EXEC"],
    &["discard"],
    &["WATCH", "k"],
    &["SUBSCRIBE", "c"],
    &["psubscribe", "c*"],
    &["SSUBSCRIBE", "c"],
    &["UNSUBSCRIBE"],
    &["MONITOR"],
    &["SYNC"],
    &["PSYNC", "?", "-1"],
    &["REPLCONF", "ACK", "0"],
    &["READONLY"],
    &["ASKING"],
];

fn raw<'a>(db: &'a Client, words: &[&str]) -> brisk::Command<&'a Client, Value> {
    db.raw(words[0]).args(&words[1..])
}

#[test]
fn no_spelling_of_a_command_lets_a_caller_change_a_shared_connection() {
    for server in servers() {
        run(async {
            let db =
                Client::builder(&server.address()).lanes(Lanes::Count(2)).connect().await.unwrap();
            for reader in 0..16 {
                set(&db, &format!("key:{reader}"), format!("value {reader}")).await.unwrap();
            }
            let readers = (0..16).map(|reader| {
                let db = db.clone();
                tokio::spawn(async move {
                    let key = format!("key:{reader}");
                    for _ in 0..500 {
                        let read: Option<String> = get(&db, &key).await.unwrap();
                        assert_eq!(read, Some(format!("value {reader}")));
                    }
                })
            });
            let readers: Vec<_> = readers.collect();
            for words in NOT_FOR_SHARED_CONNECTIONS {
                // Without a key the command uses the first lane; with a key, the lane of that key.
                for command in [raw(&db, words), raw(&db, words).key("key:1")] {
                    let error = command.await.unwrap_err();
                    assert_eq!(error.kind(), Kind::Invalid, "{words:?}: {error}");
                }
                let mut request = brisk::Request::named(words[0]);
                request.args(&words[1..]);
                let command = || brisk::Command::<(), Value>::new(request.clone());
                let harmless = brisk::commands::get::<String>("key:1");
                let batch = db.batch((harmless, command())).await;
                let transaction = db.transaction((brisk::commands::incr("n"), command())).await;
                for error in [batch.unwrap_err(), transaction.unwrap_err()] {
                    assert_eq!(error.kind(), Kind::Invalid, "{words:?}: {error}");
                }
            }
            for done in join_all(readers).await {
                done.unwrap();
            }
            let streams = ["COUNT", "1", "STREAMS", "none", "0"];
            assert_eq!(db.raw::<Option<()>>("XREAD").args(streams).await.unwrap(), None);
            db.raw::<i64>("CLIENT").arg("id").await.unwrap();
        });
    }
}

#[test]
fn a_pool_accepts_blocking_stream_reads_in_every_spelling() {
    for server in servers() {
        run(async {
            let db = Client::builder(&server.address()).lanes(Lanes::Pool(2));
            let db = db.timeout(Duration::from_millis(200)).connect().await.unwrap();
            for name in ["XREAD", "xread"] {
                let words = ["BLOCK", "500", "STREAMS", "none", "$"];
                assert_eq!(db.raw::<Option<()>>(name).args(words).await.unwrap(), None);
            }
            for words in NOT_FOR_SHARED_CONNECTIONS.iter().filter(|words| words[0].starts_with('S'))
            {
                assert_eq!(raw(&db, words).await.unwrap_err().kind(), Kind::Invalid, "{words:?}");
            }
        });
    }
}

#[test]
fn the_error_of_a_rejected_login_gives_the_reason_without_the_password() {
    let server = Launch::subject().set("requirepass", "secret").start();
    run(async {
        let error = Client::connect(&server.address()).await.unwrap_err();
        assert_eq!(error.code(), Some(brisk::Code::NoAuth), "{error}");
        let error =
            Client::connect(&format!("redis://:wrong@{}", server.address())).await.unwrap_err();
        assert_eq!(error.code(), Some(brisk::Code::WrongPass), "{error}");
        let db = Client::connect(&format!("redis://:secret@{}", server.address())).await.unwrap();
        db.ping().await.unwrap();
        assert!(!format!("{db:?}").contains("secret"));
    });
}

#[test]
fn the_rejection_of_a_blocking_command_names_the_alternatives() {
    run(async {
        let db = Client::builder("127.0.0.1:1").lazy().connect().await.unwrap();
        let error = brisk::commands::blpop::<String, String>("q", 1).on(&db).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(
            error.message().ends_with("use a Session, or a client with Lanes::Pool"),
            "{error}"
        );
        let error = db.raw::<()>("SELECT").arg(1).await.unwrap_err();
        assert!(error.message().ends_with("use a Session"), "{error}");
    });
}
