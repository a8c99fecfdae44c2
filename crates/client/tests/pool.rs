//! A pool of connections, each of which carries one command at a time. C2.

use brisk::{Args, Budget, Client, Command, Error, Kind, Lanes, Phase, ToArg, WhenFull, commands};
use brisk_testkit::proxy::{Direction, Disconnect, Proxy};
use brisk_testkit::random::Random;
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::wait_until;
use futures_util::future::join_all;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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

async fn pool(address: &str, connections: usize) -> Client {
    let builder = Client::builder(address).lanes(Lanes::Pool(connections));
    builder.timeout(Duration::from_secs(20)).connect().await.expect("a pool")
}

/// Waits for an element without a timeout.
fn blpop<'a>(db: &'a Client, key: &str) -> Command<&'a Client, Option<(String, String)>> {
    commands::blpop(key, 0).on(db)
}

fn blocked(server: &Server) -> usize {
    server.info("blocked_clients").parse().expect("a number")
}

/// A proxy between clients and a server, which records the largest number of requests in progress on a connection.
struct Tap {
    address: String,
    most: Arc<AtomicUsize>,
}

impl Tap {
    fn to(server: &str) -> Tap {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let most = Arc::new(AtomicUsize::new(0));
        let tap = Tap { address, most: Arc::clone(&most) };
        let server = server.to_owned();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&server) else { return };
                let under_way = Arc::new(AtomicUsize::new(0));
                let most = Arc::clone(&most);
                forward(&client, &server, {
                    let under_way = Arc::clone(&under_way);
                    move |bytes| {
                        let requests = bytes.windows(4).filter(|word| word == b"ECHO").count();
                        let now = under_way.fetch_add(requests, Ordering::SeqCst) + requests;
                        most.fetch_max(now, Ordering::SeqCst);
                    }
                });
                forward(&server, &client, move |bytes| {
                    // Each echoed text begins with this letter, and is short enough to arrive in one piece.
                    let replies = bytes.iter().filter(|byte| **byte == b'#').count();
                    under_way.fetch_sub(replies, Ordering::SeqCst);
                });
            }
        });
        tap
    }
}

/// Forwards one direction on a separate thread. `see` receives the bytes before they are forwarded.
fn forward(from: &TcpStream, to: &TcpStream, mut see: impl FnMut(&[u8]) + Send + 'static) {
    let (mut from, mut to) =
        (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            see(&buffer[..count]);
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

#[test]
fn a_connection_carries_one_command_at_a_time_and_all_callers_get_their_own_replies() {
    for server in servers() {
        let tap = Tap::to(&server.address());
        run(async {
            let db = pool(&tap.address, 8).await;
            let callers = (0..200).map(|caller| {
                let db = db.clone();
                tokio::spawn(async move {
                    for round in 0..20 {
                        let word = format!("#{caller}:{round}");
                        assert_eq!(db.raw::<String>("ECHO").arg(&word).await.unwrap(), word);
                    }
                })
            });
            join_all(callers).await.into_iter().for_each(|done| done.unwrap());
            wait_until("nothing to be under way", || db.pending() == 0);
        });
        assert_eq!(tap.most.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn the_number_of_concurrent_commands_is_the_number_of_connections() {
    for server in servers() {
        run(async {
            let db = pool(&server.address(), 8).await;
            let waits = |n: usize| {
                let db = db.clone();
                tokio::spawn(async move { blpop(&db, &format!("list:{n}")).await })
            };
            let mut first: Vec<_> = (0..8).map(waits).collect();
            wait_until("all of them to wait on the server", || blocked(&server) == 8);
            let late = waits(8);
            wait_until("the last to be in the queue", || db.pending() == 9);
            let mut other = server.connect();
            assert_eq!(other.cmd("RPUSH list:8 late").to_string(), "(integer) 1");
            assert_eq!(blocked(&server), 8, "there is no connection for the last one");
            assert_eq!(other.cmd("RPUSH list:3 x").to_string(), "(integer) 1");
            let served = first.remove(3).await.unwrap().unwrap();
            assert_eq!(served, Some(("list:3".into(), "x".into())));
            assert_eq!(late.await.unwrap().unwrap(), Some(("list:8".into(), "late".into())));
        });
    }
}

#[test]
fn waiting_calls_get_connections_in_order() {
    for server in servers() {
        run(async {
            let db = pool(&server.address(), 1).await;
            let first = tokio::spawn({
                let db = db.clone();
                async move { blpop(&db, "gate").await }
            });
            wait_until("the connection to be taken", || blocked(&server) == 1);
            let mut pushes: Vec<_> =
                (0..500).map(|n| Box::pin(db.raw::<i64>("RPUSH").key("list").arg(n))).collect();
            for push in &mut pushes {
                assert!(futures_util::poll!(push).is_pending());
            }
            wait_until("all of them to be known", || db.pending() == 501);
            server.connect().cmd("RPUSH gate open");
            first.await.unwrap().unwrap();
            let lengths = join_all(pushes).await.into_iter().map(Result::unwrap);
            assert!(lengths.eq(1..=500));
            let list: Vec<i64> = db.raw("LRANGE").key("list").args([0, -1]).await.unwrap();
            assert!(list.into_iter().eq(0..500));
        });
    }
}

/// Asserts that no connection of the pool is lost: this number of commands can block on the server at the same time.
async fn assert_whole(db: &Client, server: &Server, places: usize) {
    wait_until("nothing to be under way", || db.pending() == 0);
    let waits: Vec<_> = (0..places)
        .map(|_| {
            let db = db.clone();
            tokio::spawn(async move { blpop(&db, "whole").await })
        })
        .collect();
    wait_until("all places to be taken", || blocked(server) == places);
    let mut other = server.connect();
    (0..places).for_each(|_| drop(other.cmd("RPUSH whole x")));
    for done in join_all(waits).await {
        assert!(done.expect("a caller").expect("an element").is_some());
    }
}

#[test]
fn dropped_calls_leak_no_connection_and_give_no_wrong_reply() {
    let server = Launch::subject().start();
    run(async {
        let db = pool(&server.address(), 4).await;
        let callers = (0..32_u64).map(|caller| {
            let db = db.clone();
            tokio::spawn(async move {
                let mut random = Random::new(caller);
                for round in 0..400 {
                    let word = format!("{caller}:{round}:{}", "x".repeat(random.below(90)));
                    let mut echo = Box::pin(db.raw::<String>("ECHO").arg(&word));
                    if random.below(4) == 0 {
                        assert_eq!(echo.await.unwrap(), word);
                        continue;
                    }
                    for _ in 0..random.below(4) {
                        if let std::task::Poll::Ready(read) = futures_util::poll!(&mut echo) {
                            assert_eq!(read.unwrap(), word);
                            break;
                        }
                        tokio::task::yield_now().await;
                    }
                }
            })
        });
        join_all(callers).await.into_iter().for_each(|done| done.unwrap());
        assert_whole(&db, &server, 4).await;
    });
}

#[test]
fn cut_connections_are_replaced_and_nothing_is_applied_twice() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = pool(&link.address(), 4).await;
        let callers: Vec<_> = (0..16)
            .map(|caller| {
                let db = db.clone();
                tokio::spawn(async move {
                    let key = format!("n:{caller}");
                    let (mut applied, mut unknown) = (0, 0);
                    for _ in 0..300 {
                        match db.raw::<u64>("INCR").key(&key).await {
                            Ok(value) => {
                                applied += 1;
                                assert!((applied..=applied + unknown).contains(&value));
                            }
                            Err(error) => {
                                // A command that was not sent is sent on another connection, and does not fail.
                                assert_eq!(error.kind(), Kind::Disconnected, "{error}");
                                assert!(error.maybe_applied(), "{error}");
                                unknown += 1;
                            }
                        }
                    }
                    applied
                })
            })
            .collect();
        for cut in 0..12 {
            let before = link.written_bytes(Direction::ToServer);
            link.cut(if cut % 2 == 0 { Disconnect::Reset } else { Disconnect::End });
            wait_until("some bytes to pass", || {
                link.written_bytes(Direction::ToServer) > before + 500
                    || callers.iter().all(tokio::task::JoinHandle::is_finished)
            });
        }
        let mut applied = 0;
        for caller in callers {
            applied += caller.await.unwrap();
        }
        assert!(applied > 0 && link.accepted() > 12, "{applied} {}", link.accepted());
        assert_whole(&db, &server, 4).await;
    });
}

#[test]
fn an_abandoned_blocking_command_takes_no_element_and_leaks_no_connection() {
    for server in servers() {
        run(async {
            let db = pool(&server.address(), 2).await;
            for _ in 0..5 {
                let waits = tokio::spawn({
                    let db = db.clone();
                    async move { blpop(&db, "list").await }
                });
                wait_until("it to wait on the server", || blocked(&server) == 1);
                waits.abort();
                wait_until("the server to forget it", || blocked(&server) == 0);
            }
            let own = blpop(&db, "list").timeout(Duration::from_millis(50)).await.unwrap_err();
            assert_eq!(own.kind(), Kind::Timeout(Phase::Sent));
            wait_until("the server to forget it", || blocked(&server) == 0);
            server.connect().cmd("RPUSH list x");
            assert_eq!(db.raw::<i64>("LLEN").key("list").await.unwrap(), 1);
            assert_whole(&db, &server, 2).await;
        });
    }
}

#[test]
fn a_timed_out_command_keeps_its_connection_until_its_reply_arrives() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = pool(&link.address(), 1).await;
        db.set("k", 1).await.unwrap();
        link.stall(Direction::ToClient, true);
        let short = Duration::from_millis(60);
        let sent = db.get::<i64>("k").timeout(short).await.unwrap_err();
        assert_eq!(sent.kind(), Kind::Timeout(Phase::Sent));
        let queued = db.incr("k").timeout(short).await.unwrap_err();
        assert_eq!(queued.kind(), Kind::Timeout(Phase::Queued));
        assert!(!queued.maybe_applied());
        let next = tokio::spawn({
            let db = db.clone();
            async move { db.get::<i64>("k").await }
        });
        wait_until("it to be in the queue", || db.pending() == 2);
        link.stall(Direction::ToClient, false);
        // The command that timed out in the queue was never sent, and no other call gets the late reply.
        assert_eq!(next.await.unwrap().unwrap(), Some(1));
    });
}

#[test]
fn the_calls_that_wait_for_a_connection_are_bounded() {
    let server = Launch::subject().start();
    for when_full in [WhenFull::Fail, WhenFull::Wait] {
        run(async {
            let db = Client::builder(&server.address())
                .lanes(Lanes::Pool(1))
                .budget(Budget::bytes(100_000).when_full(when_full))
                .timeout(Duration::from_secs(20));
            let db = db.connect().await.unwrap();
            let gate = tokio::spawn({
                let db = db.clone();
                async move { blpop(&db, "gate").await }
            });
            wait_until("the connection to be taken", || blocked(&server) == 1);
            let writes: Vec<_> = (0..30)
                .map(|n| {
                    let db = db.clone();
                    tokio::spawn(async move { db.set(format!("w{n}"), "x".repeat(10_000)).await })
                })
                .collect();
            wait_until("the budget to be spent", || db.pending() == 10);
            let late = db.set("late", "x".repeat(10_000)).timeout(Duration::from_millis(60)).await;
            let expected = match when_full {
                WhenFull::Fail => Kind::Overloaded,
                _ => Kind::Timeout(Phase::Queued),
            };
            assert_eq!(late.unwrap_err().kind(), expected);
            server.connect().cmd("RPUSH gate open");
            gate.await.unwrap().unwrap();
            let done = join_all(writes).await.into_iter().map(Result::unwrap);
            let written = done.filter(Result::is_ok).count();
            assert_eq!(written, if when_full == WhenFull::Fail { 9 } else { 30 });
        });
    }
}

#[test]
fn a_pool_has_the_given_number_of_connections_and_rejects_commands_that_change_one() {
    for server in servers() {
        run(async {
            let url = format!("redis://{}?pool=3&clientName=pooled", server.address());
            let db = Client::connect(&url).await.unwrap();
            let mut other = server.connect();
            wait_until("three connections", || {
                other.cmd("CLIENT LIST").to_string().matches("name=pooled").count() == 3
            });
            for name in ["SELECT", "WATCH", "MULTI", "SUBSCRIBE", "CLIENT REPLY", "WAIT"] {
                let refused = db.raw::<()>(name).arg(1).await.unwrap_err();
                assert_eq!(refused.kind(), Kind::Invalid, "{name}");
            }
            let batch = (commands::set("a", 1), commands::incr("a"));
            db.batch(batch).await.unwrap();
            let (two,) = db.transaction((commands::incr("a"),)).await.unwrap();
            assert_eq!(two, 3);
            assert_eq!(db.batch(Vec::<Command<(), i64>>::new()).await.unwrap(), Vec::<i64>::new());
        });
    }
    for builder in [Client::builder("h").lanes(Lanes::Pool(0)), Client::builder("h?pool=1025")] {
        assert_eq!(run(builder.connect()).unwrap_err().kind(), Kind::Invalid);
    }
}

#[test]
fn no_call_waits_forever_after_the_pool_or_its_runtime_has_ended() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    for closes in [true, false] {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let builder = Client::builder(&link.address()).lanes(Lanes::Pool(2)).no_timeout();
        let db = runtime.block_on(builder.connect()).unwrap();
        wait_until("both connections", || link.open() == 2);
        link.stall(Direction::ToClient, true);
        std::thread::scope(|scope| {
            let waits: Vec<_> = (0..5).map(|_| scope.spawn(|| db.get::<i64>("k").wait())).collect();
            wait_until("them to wait", || db.pending() == 5);
            match closes {
                true => db.close(),
                false => runtime.shutdown_background(),
            }
            for wait in waits {
                assert_eq!(wait.join().unwrap().unwrap_err().kind(), Kind::Closed);
            }
        });
        assert_eq!(db.get::<i64>("k").wait().unwrap_err().kind(), Kind::Closed);
        link.heal();
        drop(db);
        wait_until("no connection to be left", || link.open() == 0);
    }
}

#[test]
fn a_command_that_could_not_be_written_as_a_whole_is_not_sent() {
    struct Broken(Error);
    impl ToArg for Broken {
        fn write(&self, args: &mut Args<'_>) {
            args.fail(self.0.clone());
        }
    }
    for server in servers() {
        run(async {
            let db = pool(&server.address(), 2).await;
            let closed = pool(&server.address(), 1).await;
            closed.close();
            let error = closed.ping().await.unwrap_err();
            let add = db.raw::<i64>("SADD").key("set").arg("a").arg(Broken(error.clone()));
            assert_eq!(add.await.unwrap_err().kind(), error.kind());
            assert_eq!(db.scard("set").await.unwrap(), 0);
        });
    }
}

#[test]
fn a_blocking_command_on_a_stopped_server_times_out_after_its_own_and_the_clients_limit() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = Client::builder(&link.address()).lanes(Lanes::Pool(1));
        let db = db.timeout(Duration::from_millis(200)).connect().await.unwrap();
        let nothing = commands::blpop::<String, String>("q", 0.1).on(&db).await.unwrap();
        assert_eq!(nothing, None);
        link.stall(Direction::ToClient, true);
        let late = commands::blpop::<String, String>("q", 0.1).on(&db);
        let late = tokio::time::timeout(Duration::from_secs(30), late).await;
        let error = late.expect("an end").unwrap_err();
        assert!(error.maybe_applied(), "{error}");
    });
}
