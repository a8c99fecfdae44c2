//! Observers receive each command once, with its outcome, even if connections are lost. This file also tests the
//! statistics of a client.

use brisk::{
    Budget, Call, Client, Command, Connected, Endpoint, Error, Kind, Lanes, Observer, Outcome,
    Replay, Token, WhenFull, commands,
};
use brisk_testkit::proxy::{Direction, Disconnect, Proxy};
use brisk_testkit::server::Launch;
use brisk_testkit::wait::wait_until;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Default, Debug)]
struct Heard {
    started: Vec<String>,
    finished: Vec<(String, usize, Option<String>)>,
    full: usize,
    connected: Vec<String>,
    disconnected: Vec<Kind>,
    reconnecting: usize,
}

/// Records all reports.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Heard>>);

impl Recorder {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().expect("no test panics while it holds it")
    }

    fn finished(&self) -> Vec<(String, usize, Option<String>)> {
        std::mem::take(&mut self.heard().finished)
    }
}

impl Observer for Recorder {
    fn command_started(&self, call: &Call<'_>) -> Token {
        self.heard().started.push(call.name().to_owned());
        Token::new(call.name().to_owned())
    }

    fn command_finished(&self, call: &Call<'_>, token: Token, _: Duration, outcome: Outcome<'_>) {
        assert_eq!(token.into::<String>().as_deref(), Some(call.name()));
        let outcome = outcome.error_type().map(str::to_owned);
        self.heard().finished.push((call.name().to_owned(), call.commands(), outcome));
    }

    fn queue_full(&self, _: &Call<'_>) {
        self.heard().full += 1;
    }

    fn connected(&self, endpoint: &Endpoint, connection: &Connected) {
        assert_eq!(connection.peer.map(|peer| peer.port()), endpoint.port());
        let text = format!("{endpoint} {} {}", endpoint.db(), connection.protocol);
        self.heard().connected.push(text);
    }

    fn disconnected(&self, _: &Endpoint, why: &Error) {
        self.heard().disconnected.push(why.kind());
    }

    fn reconnecting(&self, _: &Endpoint, _: &Error, _: Duration) {
        self.heard().reconnecting += 1;
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

fn named(name: &str, commands: usize, outcome: Option<&str>) -> (String, usize, Option<String>) {
    (name.to_owned(), commands, outcome.map(str::to_owned))
}

#[test]
fn each_command_is_reported_once_with_its_outcome() {
    for server in [Launch::redis().start(), Launch::subject().start()] {
        let recorder = Recorder::default();
        run(async {
            let builder = Client::builder(&server.address()).lanes(Lanes::Count(1)).db(2);
            let db = builder.observer(recorder.clone()).connect().await.unwrap();
            db.set("text", "x").await.unwrap();
            db.config_get::<Vec<(String, String)>>("maxmemory").await.unwrap();
            db.incr("text").await.unwrap_err();
            db.lpush("text", "y").await.unwrap_err();
            db.raw::<()>("select").arg(1).await.unwrap_err();
            db.batch((commands::incr("n"), commands::incr("n"))).await.unwrap();
            db.batch((commands::incr("n"), commands::lpush("n", 1))).await.unwrap_err();
            db.transaction((commands::incr("n"), commands::incr("n"))).await.unwrap();
            let nothing: Vec<Command<(), i64>> = Vec::new();
            db.batch(nothing).await.unwrap();
            let session = db.session().await.unwrap();
            session.select(3).await.unwrap();
            drop(db.get::<String>("never polled"));
            let expected = [
                named("SET", 1, None),
                named("CONFIG GET", 1, None),
                named("INCR", 1, Some("ERR")),
                named("LPUSH", 1, Some("WRONGTYPE")),
                named("SELECT", 1, Some("invalid")),
                named("PIPELINE INCR", 2, None),
                named("PIPELINE", 2, Some("WRONGTYPE")),
                named("MULTI INCR", 2, None),
                named("SELECT", 1, None),
            ];
            assert_eq!(recorder.finished(), expected);
            let expected = expected.map(|(name, ..)| name);
            assert_eq!(recorder.heard().started, expected);
            drop((session, db));
        });
        let heard = recorder.heard();
        assert_eq!(heard.connected, vec![format!("{} 2 3", server.address()); 2]);
        assert_eq!(heard.disconnected, [Kind::Closed, Kind::Closed]);
        assert_eq!(heard.reconnecting, 0);
    }
}

#[test]
fn a_read_that_is_sent_again_is_reported_once_and_a_lost_write_as_lost() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    let recorder = Recorder::default();
    run(async {
        let builder = Client::builder(&link.address()).lanes(Lanes::Count(1));
        let db = builder.observer(recorder.clone()).connect().await.unwrap();
        db.set("k", "v").await.unwrap();
        link.stall(Direction::ToClient, true);
        let (reads, writes) = (db.get::<String>("k"), db.incr("n").replay(Replay::Reads));
        let waits = async {
            let both = futures_util::future::join(reads, writes);
            let cuts = async {
                tokio::task::spawn_blocking({
                    let db = db.clone();
                    move || wait_until("both to be sent", || db.pending() == 2)
                })
                .await
                .unwrap();
                wait_until("both to be executed", || {
                    server.connect().cmd("GET n").to_string().contains('1')
                });
                link.refuse(true);
                link.cut(Disconnect::Reset);
                link.stall(Direction::ToClient, false);
                let recorder = recorder.clone();
                tokio::task::spawn_blocking(move || {
                    wait_until("it to try", || recorder.heard().reconnecting > 0);
                })
                .await
                .unwrap();
                link.refuse(false);
            };
            futures_util::future::join(both, cuts).await.0
        };
        let (read, write) = waits.await;
        assert_eq!(read.unwrap().as_deref(), Some("v"));
        assert!(write.unwrap_err().maybe_applied());
        let mut finished = recorder.finished();
        finished.sort();
        let expected =
            [named("GET", 1, None), named("INCR", 1, Some("disconnected")), named("SET", 1, None)];
        assert_eq!(finished, expected);
        let total = db.statistics().total();
        assert_eq!((total.connections, total.connected), (2, 1));
        assert!(total.failed_connections > 0);
    });
    let heard = recorder.heard();
    assert_eq!(heard.started.len(), 3);
    assert_eq!(heard.connected.len(), 2);
    assert_eq!(heard.disconnected, [Kind::Disconnected, Kind::Closed]);
}

#[test]
fn dropped_timed_out_and_overloaded_calls_are_reported_with_their_outcome() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    let recorder = Recorder::default();
    run(async {
        let builder = Client::builder(&link.address()).lanes(Lanes::Count(1));
        let small = builder.clone().budget(Budget::bytes(100));
        let db = small.observer(recorder.clone()).connect().await.unwrap();
        link.stall(Direction::ToServer, true);
        let mut leaves = Box::pin(db.set("k", "x".repeat(200)));
        assert!(futures_util::poll!(&mut leaves).is_pending());
        let late = db.get::<String>("k").timeout(Duration::from_millis(30)).await.unwrap_err();
        assert!(matches!(late.kind(), Kind::Timeout(_)));
        drop(leaves);
        assert_eq!(recorder.heard().full, 1);
        let expected = [named("GET", 1, Some("timeout")), named("SET", 1, Some("cancelled"))];
        assert_eq!(recorder.finished(), expected);
        let refusing = Budget::bytes(100).when_full(WhenFull::Fail);
        link.stall(Direction::ToServer, false);
        let db = builder.budget(refusing).observer(recorder.clone()).connect().await.unwrap();
        link.stall(Direction::ToServer, true);
        let mut first = Box::pin(db.set("k", "x".repeat(200)));
        assert!(futures_util::poll!(&mut first).is_pending());
        db.set("k", "y").await.unwrap_err();
        assert_eq!(recorder.finished(), [named("SET", 1, Some("overloaded"))]);
        link.stall(Direction::ToServer, false);
        first.await.unwrap();
        assert_eq!(recorder.finished(), [named("SET", 1, None)]);
    });
}

#[test]
fn a_client_counts_the_traffic_of_its_lanes() {
    let server = Launch::subject().start();
    run(async {
        let builder = Client::builder(&server.address()).lanes(Lanes::Count(2));
        let db = builder.connect().await.unwrap();
        for n in 0..40 {
            db.set(n, "x".repeat(100)).await.unwrap();
        }
        db.incr("1").await.unwrap_err();
        db.batch((commands::incr("n"), commands::incr("n"))).await.unwrap();
        let statistics = db.statistics();
        let total = statistics.total();
        assert_eq!(statistics.lanes().len(), 2);
        assert!(statistics.lanes().iter().all(|lane| lane.commands > 0), "{statistics:?}");
        assert_eq!((total.commands, total.replies, total.errors, total.timeouts), (43, 43, 1, 0));
        assert_eq!((total.connections, total.connected), (2, 2));
        assert!(total.sent_bytes > 4000 && total.received_bytes > 200, "{total:?}");
        // The task of a lane updates these numbers when the lane is idle.
        let idle = db.clone();
        let rests = move || {
            let total = idle.statistics().total();
            (total.pending, total.pending_bytes) == (0, 0)
        };
        tokio::task::spawn_blocking(move || wait_until("the lanes to rest", rests)).await.unwrap();
        let slow = db.raw::<()>("DEBUG SLEEP").arg("0.3").timeout(Duration::from_millis(50));
        let error = slow.await.unwrap_err();
        assert!(matches!(error.kind(), Kind::Timeout(_)), "{error}");
        assert_eq!(db.statistics().total().timeouts, 1);
    });
}
