//! Sessions: how long their commands wait, when they end, and how a program without a runtime uses them. C1, C4.

use brisk::commands::{get, incr, set};
use brisk::{Client, Code, Event, Kind, Lanes, Phase, Script, Step};
use brisk_testkit::proxy::{Direction, Proxy};
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::wait_until;
use std::future::Future;
use std::time::Duration;

fn servers() -> [Server; 2] {
    [Launch::redis().start(), Launch::subject().start()]
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_blocking_command_may_take_as_long_as_its_own_timeout() {
    for server in servers() {
        run(async {
            let db = Client::builder(&server.address()).lanes(Lanes::Count(1)).timeout(millis(200));
            let db = db.connect().await.unwrap();
            let session = db.session().await.unwrap();
            // This is longer than a command of the client may take.
            assert_eq!(session.blpop::<String, String>("none", 0.6).await.unwrap(), None);
            assert_eq!(session.wait(1, 600).await.unwrap(), 0);
            let none: Option<()> = session.xread_block(600, "none", "$").await.unwrap();
            assert_eq!(none, None);
            let raw: Option<()> = session.raw("bzpopmin").key("none").arg(0.6).await.unwrap();
            assert_eq!(raw, None);
        });
    }
}

#[test]
fn a_server_that_is_silent_past_the_timeout_is_disconnected() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        // The silence limit is far above the timeout, so that the command times out first even on a loaded machine.
        let silence = millis(2000);
        let db = Client::builder(&link.address()).timeout(millis(200)).silence(silence);
        let db = db.connect().await.unwrap();
        let session = db.session().await.unwrap();
        session.ping().await.unwrap();
        link.swallow(Direction::ToClient, true);
        let error = session.blpop::<String, String>("none", 0.2).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Timeout(Phase::Sent));
        assert!(error.maybe_applied());
        // The session's connection can no longer be used, and later calls report this.
        loop {
            match session.ping().await.unwrap_err().kind() {
                Kind::Timeout(_) => {}
                kind => break assert_eq!(kind, Kind::Disconnected),
            }
        }
        link.heal();
        assert_eq!(db.session().await.unwrap().ping().await.unwrap(), "PONG");
    });
}

#[test]
fn a_session_never_confuses_replies() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            let session = db.session().await.unwrap();
            session.set("k", "value").await.unwrap();
            for words in [
                &["CLIENT", "REPLY", "SKIP"][..],
                &["client reply", "off"],
                &["Subscribe", "c"],
                &["PUNSUBSCRIBE"],
                &["MONITOR"],
                &["PSYNC", "?", "-1"],
            ] {
                let command = session.raw::<()>(words[0]).args(&words[1..]);
                assert_eq!(command.await.unwrap_err().kind(), Kind::Invalid, "{words:?}");
                assert_eq!(session.get::<String>("k").await.unwrap().as_deref(), Some("value"));
            }
            session.raw::<()>("CLIENT").args(["REPLY", "ON"]).await.unwrap();
            session.raw::<()>("SELECT").arg(1).await.unwrap();
            assert_eq!(session.get::<String>("k").await.unwrap(), None);
        });
    }
}

#[test]
fn sessions_end_with_their_client() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            let (session, waits) = (db.session().await.unwrap(), db.session().await.unwrap());
            session.ping().await.unwrap();
            let waits = tokio::spawn(async move { waits.blpop::<String, String>("none", 0).await });
            wait_until("it to wait", || server.info("blocked_clients") == "1");
            db.bulk().set("large", 1).await.unwrap();
            db.clone().close();
            assert_eq!(waits.await.unwrap().unwrap_err().kind(), Kind::Closed);
            assert_eq!(session.ping().await.unwrap_err().kind(), Kind::Closed);
            assert_eq!(db.session().await.unwrap_err().kind(), Kind::Closed);
            assert_eq!(db.bulk().get::<i64>("large").await.unwrap_err().kind(), Kind::Closed);
            // Only the connection of INFO is left.
            wait_until("all to be gone", || server.info("connected_clients") == "1");
        });
    }
}

#[test]
fn a_client_that_is_closed_before_its_lane_for_large_values_is_opened_opens_none() {
    let server = Launch::subject().start();
    run(async {
        let db = Client::connect(&server.address()).await.unwrap();
        db.close();
        assert_eq!(db.bulk().get::<i64>("k").await.unwrap_err().kind(), Kind::Closed);
    });
}

#[test]
fn all_apis_work_without_a_runtime() {
    static ADD: Script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    for server in servers() {
        let db = Client::builder(&server.address()).connect_blocking().unwrap();
        let session = brisk::wait(db.session()).unwrap();
        session.select(2).wait().unwrap();
        session.set("k", 1).wait().unwrap();
        assert_eq!(db.get::<i64>("k").wait().unwrap(), None);
        assert_eq!(session.blpop::<String, String>("none", 0.05).wait().unwrap(), None);

        let sum: i64 = brisk::wait(ADD.run(&db, ["n"], [5])).unwrap();
        assert_eq!(sum, 5);
        let both = db.batch((incr("n"), get::<i64>("n"))).wait().unwrap();
        assert_eq!(both, (6, Some(6)));
        assert_eq!(db.transaction((incr("n"),)).wait().unwrap(), (7,));

        let changed = brisk::wait(db.watch("n", async |session| {
            let n: Option<i64> = session.get("n").await?;
            Ok(Step::Commit((set("n", n.unwrap_or_default() * 2),)))
        }));
        assert_eq!(changed.unwrap(), Some((true,)));
        assert_eq!(db.get::<i64>("n").wait().unwrap(), Some(14));

        let mut news = brisk::wait(db.subscriber()).unwrap();
        brisk::wait(news.subscribe(["news"])).unwrap();
        assert_eq!(db.publish("news", "hello").wait().unwrap(), 1);
        let Some(Event::Message(message)) = brisk::wait(news.next()) else { panic!("no message") };
        assert_eq!(message.payload, "hello");

        let large = brisk::wait(async {
            db.bulk().set("large", "x".repeat(1 << 20)).await?;
            db.bulk().strlen("large").await
        });
        assert_eq!(large.unwrap(), 1 << 20);
        let refused = brisk::wait(ADD.run::<i64>(&db, ["n"], ["x"])).unwrap_err();
        assert_eq!(refused.code(), Some(Code::Err));
    }
}

#[test]
fn the_error_of_connecting_without_a_runtime_names_the_alternative() {
    let error = brisk::wait(Client::connect("127.0.0.1:1")).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.message().contains("connect_blocking"), "{error}");
}

/// A single-threaded runtime in which a client was created.
fn on_one_thread(server: &Server) -> (tokio::runtime::Runtime, Client) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let builder = Client::builder(&server.address()).timeout(millis(100));
    let db = runtime.block_on(builder.connect()).expect("a client");
    (runtime, db)
}

#[test]
fn waiting_on_the_thread_that_runs_the_connections_is_an_error() {
    let server = Launch::subject().start();
    let (runtime, db) = on_one_thread(&server);
    let refused = |error: brisk::Error| {
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert!(error.message().contains("`.await`"), "{error}");
    };
    runtime.block_on(async {
        db.set("k", "value").await.unwrap();
        let mut session = None;
        let mut streamed = db.stream(get::<brisk::Bytes>("k")).await.unwrap().unwrap();
        let mut news = db.subscriber().await.unwrap();
        for _ in 0..2 {
            refused(db.get::<String>("k").wait().unwrap_err());
            refused(db.get::<String>("k").required().wait().unwrap_err());
            refused(db.batch((get::<String>("k"),)).wait().unwrap_err());
            refused(db.transaction((incr("n"),)).wait().unwrap_err());
            refused(db.scan_keys::<String>().wait_next().unwrap_err());
            refused(brisk::wait(db.session()).unwrap_err());
            refused(brisk::wait(Client::connect(&server.address())).unwrap_err());
            refused(
                brisk::wait(db.watch(["k"], async |_| Ok(Step::Commit((incr("n"),))))).unwrap_err(),
            );
            refused(db.subscriber_blocking().unwrap_err());
            refused(news.subscribe(["news"]).wait().unwrap_err());
            assert!(news.wait_next().is_none());
            let cache = db.cache(Default::default()).await.unwrap();
            refused(get::<String>("k").on(&cache).wait().unwrap_err());
            // The rejected waits did no harm. Tasks run as before.
            session = Some(db.session().await.unwrap());
            refused(session.as_ref().unwrap().get::<String>("k").wait().unwrap_err());
            assert_eq!(db.get("k").await.unwrap(), Some("value".to_owned()));
        }
        drop(session);
        assert_eq!(brisk::wait(streamed.chunk()).unwrap().unwrap(), "value", "it had come");
        refused(brisk::wait(db.stream(get::<brisk::Bytes>("k"))).unwrap_err());
        // Other threads may wait, because this thread runs the connections.
        let other = db.clone();
        let waited = tokio::task::spawn_blocking(move || other.get::<String>("k").wait()).await;
        assert_eq!(waited.unwrap().unwrap().as_deref(), Some("value"));
    });
}

#[test]
fn any_thread_can_wait_for_a_client_with_its_own_thread() {
    let server = Launch::subject().start();
    let db = Client::builder(&server.address()).connect_blocking().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        db.set("k", 1).wait().unwrap();
        assert_eq!(brisk::wait(async { db.session().await?.get("k").await }).unwrap(), Some(1));
    });
}

#[test]
fn a_call_times_out_when_no_thread_runs_the_connections() {
    let server = Launch::subject().start();
    let (runtime, db) = on_one_thread(&server);
    // This thread has left the runtime, and no other thread runs it.
    let (alone, batch) = (db.incr("n").wait(), db.batch((incr("n"),)).wait());
    for error in [alone.unwrap_err(), batch.unwrap_err()] {
        assert_eq!(error.kind(), Kind::Timeout(Phase::Sent), "{error}");
        assert!(
            error.maybe_applied() && error.to_string().contains("is blocked or has ended"),
            "{error}"
        );
    }
    drop(runtime);
}
