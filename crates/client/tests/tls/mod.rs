//! TLS: the guarantees of plain connections also apply to TLS connections, and a wrong identity is detected.

mod site;

use brisk::{Builder, Bytes, Client, Event, Kind, Lanes, Phase, Tls};
use brisk_testkit::proxy::{Direction, Disconnect, Proxy, Split};
use brisk_testkit::random::Random;
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::wait_until;
use futures_util::future::join_all;
use site::{Authority, Site};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// A Redis server and a Brisk server, each with its own site.
fn sites() -> [(Site, Server); 2] {
    [Launch::redis(), Launch::subject()].map(|launch| {
        let site = Site::new();
        let server = site.start(launch);
        (site, server)
    })
}

/// Connects, which must fail, and returns the text of the error.
fn refusal(builder: Builder) -> String {
    let error = run(builder.connect()).expect_err("it must not be let in");
    let may_be = [Kind::Tls, Kind::Disconnected, Kind::Invalid];
    assert!(may_be.contains(&error.kind()), "{error:?}");
    // A TLS error is not reported as a network error.
    let text = error.to_string();
    let is_tls = text.contains("TLS: ") && !text.contains("ended without close_notify");
    assert_eq!(error.kind() == Kind::Tls, is_tls && error.kind() != Kind::Invalid, "{error:?}");
    assert!(error.kind() != Kind::Tls || std::error::Error::source(&error).is_some(), "{error:?}");
    error.to_string()
}

#[test]
fn commands_listeners_and_sessions_work_in_both_protocols() {
    for (site, server) in sites() {
        for protocol in [2, 3] {
            run(async {
                let db = site.client(&site.address()).protocol(protocol).lanes(Lanes::Count(2));
                let db = db.connect().await.unwrap();
                db.set("k", "over TLS").await.unwrap();
                assert_eq!(server.connect().cmd("GET k").to_string(), "\"over TLS\"");
                assert_eq!(db.get("k").await.unwrap(), Some("over TLS".to_owned()));
                let large = "x".repeat(300_000);
                db.set("large", &large).await.unwrap();
                assert_eq!(db.get("large").await.unwrap(), Some(large));
                let session = db.session().await.unwrap();
                assert_eq!(session.blpop::<String, String>("none", 0.01).await.unwrap(), None);
                let mut news = db.subscriber().await.unwrap();
                news.subscribe(["news"]).await.unwrap();
                db.publish("news", "heard").await.unwrap();
                let Some(Event::Message(message)) = news.next().await else { panic!("no message") };
                assert_eq!(message.payload, "heard");
            });
        }
    }
}

#[test]
fn a_program_without_a_runtime_waits() {
    let site = Site::new();
    let _server = site.start(Launch::subject());
    let db = site.client(&site.address()).connect_blocking().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    db.incr("n").wait().unwrap();
                }
            });
        }
    });
    assert_eq!(db.get("n").wait().unwrap(), Some(1600));
}

#[test]
fn hundreds_of_callers_each_get_their_own_reply() {
    for (site, _server) in sites() {
        for lanes in [1, 3] {
            run(async {
                let db = site.client(&site.address()).lanes(Lanes::Count(lanes));
                let db = db.connect().await.unwrap();
                let callers = (0..300).map(|caller| {
                    let db = db.clone();
                    tokio::spawn(async move {
                        let key = format!("key:{caller}");
                        for round in 0..20 {
                            let value = format!("{caller}:{round}:{}", "x".repeat(round * 31));
                            db.set(&key, &value).await.unwrap();
                            assert_eq!(db.get(&key).await.unwrap(), Some(value));
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
fn tls_records_are_read_correctly_in_any_pieces() {
    for (site, _server) in sites() {
        let link = Proxy::to(&site.address());
        for seed in 0..2 {
            link.split(Some(Split { single_bytes: 4000, bytes_max: 90, seed }));
            run(async {
                let db = site.client(&link.address()).lanes(Lanes::Count(1));
                let db = db.connect().await.unwrap();
                let values = (0..30_usize).map(|n| {
                    let db = &db;
                    async move {
                        let (key, value) = (format!("{seed}:{n}"), "y".repeat(n * 97));
                        db.set(&key, &value).await.unwrap();
                        assert_eq!(db.get(&key).await.unwrap(), Some(value));
                    }
                });
                join_all(values).await;
            });
        }
    }
}

#[test]
fn large_values_are_sent_both_ways_at_the_same_time() {
    for (site, _server) in sites() {
        run(async {
            let db = site.client(&site.address()).lanes(Lanes::Count(1));
            let db = db.budget(brisk::Budget::bytes(100 << 20)).timeout(Duration::from_secs(60));
            let db = db.connect().await.unwrap();
            for (bytes, rounds) in [(300 << 10, 10), (20 << 20, 1)] {
                let value: Vec<u8> = (0..bytes).map(|n: u32| (n % 251) as u8).collect();
                let rounds = (0..rounds).map(|n| {
                    let (db, value) = (&db, &value);
                    async move {
                        let key = format!("large:{n}");
                        db.set(&key, value).await.unwrap();
                        let read: Bytes = db.get(&key).required().await.unwrap();
                        assert!(read == *value);
                        // A reply and a request are on their way at the same time.
                        let (again, ()) = tokio::join!(
                            async { db.get::<Bytes>(&key).required().await.unwrap() },
                            async {
                                db.set(format!("{key}:other"), value).await.unwrap();
                            }
                        );
                        assert!(again == *value);
                    }
                });
                join_all(rounds).await;
            }
        });
    }
}

/// Reading continues even if nothing can be written. Otherwise, client and server would wait for each other.
#[test]
fn replies_are_read_while_requests_cannot_be_written() {
    let site = Site::new();
    let _server = site.start(Launch::subject());
    let link = Proxy::to(&site.address());
    run(async {
        let db = site.client(&link.address()).lanes(Lanes::Count(1));
        let db = db.timeout(Duration::from_secs(60)).connect().await.unwrap();
        let value = vec![b'x'; 4 << 20];
        db.set("large", &value).await.unwrap();
        link.stall(Direction::ToClient, true);
        let before = link.written_bytes(Direction::ToServer);
        let reads: Vec<_> = (0..3)
            .map(|_| {
                let db = db.clone();
                tokio::spawn(async move { db.get::<Bytes>("large").required().await })
            })
            .collect();
        wait_until("the first of the reads to be with the server", || {
            db.pending() == 3 && link.written_bytes(Direction::ToServer) > before
        });
        link.stall(Direction::ToServer, true);
        let write = tokio::spawn({
            let (db, value) = (db.clone(), value.clone());
            async move { db.set("other", &value).await }
        });
        wait_until("the write to be under way", || db.pending() == 4);
        link.stall(Direction::ToClient, false);
        let mut reads = reads.into_iter();
        assert!(reads.next().expect("three").await.unwrap().unwrap() == value);
        assert!(!write.is_finished());
        // The other reads may not have been sent when the direction was stalled.
        link.stall(Direction::ToServer, false);
        for read in reads {
            assert!(read.await.unwrap().unwrap() == value);
        }
        assert!(write.await.unwrap().unwrap());
    });
}

#[test]
fn dropped_calls_give_no_wrong_reply() {
    let site = Site::new();
    let _server = site.start(Launch::subject());
    run(async {
        let db = site.client(&site.address()).lanes(Lanes::Count(2)).connect().await.unwrap();
        let dropped = Arc::new(AtomicU64::new(0));
        let callers = (0..32_u64).map(|caller| {
            let (db, dropped) = (db.clone(), Arc::clone(&dropped));
            tokio::spawn(async move {
                let mut random = Random::new(caller);
                while dropped.load(Ordering::Relaxed) < 10_000 {
                    let round = random.below(1 << 20);
                    let word = format!("{caller}:{round}:{}", "x".repeat(random.below(90)));
                    let echo = db.raw::<String>("ECHO").arg(&word);
                    if random.below(4) == 0 {
                        assert_eq!(echo.await.unwrap(), word);
                        continue;
                    }
                    let polls = random.below(4);
                    let mut echo = Box::pin(echo);
                    for _ in 0..polls {
                        if let std::task::Poll::Ready(read) = futures_util::poll!(&mut echo) {
                            assert_eq!(read.unwrap(), word);
                            break;
                        }
                        tokio::task::yield_now().await;
                    }
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        for done in join_all(callers).await {
            done.unwrap();
        }
        wait_until("nothing to be under way", || db.pending() == 0);
    });
}

/// Increments a counter until `over` is set. Returns the numbers of acknowledged increments and of those with an
/// unknown outcome.
async fn count(db: Client, key: String, over: Arc<AtomicBool>) -> (u64, u64) {
    let (mut applied, mut unknown) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        match db.incr(&key).await {
            Ok(_) => applied += 1,
            Err(error) => {
                assert_eq!(error.kind(), Kind::Disconnected, "{error}");
                assert!(error.maybe_applied(), "{error}");
                unknown += 1;
            }
        }
        let value = db.get::<u64>(&key).await.expect("a read is sent again").unwrap_or(0);
        assert!((applied..=applied + unknown).contains(&value), "{applied} {unknown} {value}");
    }
    (applied, unknown)
}

#[test]
fn cuts_apply_nothing_twice_and_lose_no_acknowledged_write() {
    let site = Site::new();
    let _server = site.start(Launch::subject());
    let link = Proxy::to(&site.address());
    run(async {
        let db = site.client(&link.address()).lanes(Lanes::Count(2));
        let db = db.timeout(Duration::from_secs(20)).connect().await.unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let callers: Vec<_> = (0..24)
            .map(|caller| tokio::spawn(count(db.clone(), format!("n:{caller}"), over.clone())))
            .collect();
        let mut random = Random::new(24);
        for cut in 0..20 {
            let before = link.written_bytes(Direction::ToServer);
            let bytes = 1 + random.below(20_000) as u64;
            let how = if cut % 2 == 0 { Disconnect::Reset } else { Disconnect::End };
            // One of the next connections ends within a record or a handshake.
            link.cut_next_after(Direction::BOTH[random.below(2)], bytes, how);
            link.cut(how);
            wait_until("some bytes to pass", || {
                link.written_bytes(Direction::ToServer) > before + bytes
            });
        }
        over.store(true, Ordering::Relaxed);
        let mut sums = (0, 0);
        for (caller, counted) in callers.into_iter().enumerate() {
            let (applied, unknown) = counted.await.unwrap();
            let value = db.get::<u64>(format!("n:{caller}")).await.unwrap().unwrap_or(0);
            assert!((applied..=applied + unknown).contains(&value));
            sums = (sums.0 + applied, sums.1 + unknown);
        }
        eprintln!("note: {sums:?}, {} connections", link.accepted());
        assert!(sums.0 > 0 && link.accepted() > 20);
    });
}

#[test]
fn a_cut_differs_from_a_clean_close_and_a_late_reply_from_a_missing_one() {
    for (site, server) in sites() {
        let link = Proxy::to(&site.address());
        run(async {
            let db = site.client(&link.address()).lanes(Lanes::Count(1)).connect().await.unwrap();
            link.stall(Direction::ToClient, true);
            let late = db.get::<String>("k").timeout(Duration::from_millis(50)).await;
            assert_eq!(late.unwrap_err().kind(), Kind::Timeout(Phase::Sent));
            link.stall(Direction::ToClient, false);
            db.set("k", 1).await.unwrap();
            // The proxy ends the TCP connection without ending the TLS session.
            let session = db.session().await.unwrap();
            link.cut(Disconnect::End);
            let error = session.get::<i64>("k").await.unwrap_err();
            assert_eq!(error.kind(), Kind::Disconnected);
            assert!(error.to_string().contains("ended without close_notify"), "{error}");
            // The lanes have new connections by then.
            assert_eq!(db.get("k").await.unwrap(), Some(1));
        });
        drop(server);
    }
}

#[test]
fn a_peer_with_the_wrong_identity_is_rejected() {
    for (site, _server) in sites() {
        let address = site.address();
        let other = Authority::new("another");
        let url = format!("rediss://{address}");
        let text = refusal(Client::builder(&url).tls(Tls::new().ca_pem(other.pem)));
        assert!(text.contains("UnknownIssuer") && text.contains(&address), "{text}");
        // The operating system does not trust the certificate authority either.
        let text = refusal(Client::builder(&url));
        assert!(text.contains("certificate") || text.contains("authorities"), "{text}");
        let text = refusal(site.client(&address).tls(site.tls().server_name("db.example.org")));
        assert!(text.contains("db.example.org"), "{text}");
        run(async {
            for url in [format!("{url}?insecure"), format!("{url}#insecure")] {
                Client::connect(&url).await.unwrap().ping().await.unwrap();
            }
            let tls = site.tls().server_name("localhost");
            site.client(&address).tls(tls).connect().await.unwrap().ping().await.unwrap();
        });
    }
    let site = Site::named(&["db.example.org"]);
    let _server = site.start(Launch::subject());
    let text = refusal(site.client(&site.address()));
    assert!(text.contains("127.0.0.1"), "{text}");
    let named = site.client(&site.address()).tls(site.tls().server_name("db.example.org"));
    run(async { named.connect().await.unwrap().ping().await.unwrap() });
}

#[test]
fn a_server_that_requires_a_client_certificate_gets_it_or_the_error_says_so() {
    for launch in [Launch::redis, Launch::subject] {
        let site = Site::new();
        let _server = site.launch(launch()).set("tls-auth-clients", "yes").start();
        let text = refusal(site.client(&site.address()));
        assert!(text.to_lowercase().contains("certificate"), "{text}");
        let ours = site.authority.issue(&["client"]);
        let tls = site.tls().client_pem(ours.certificate.clone(), ours.key.clone());
        let from_files = Tls::new()
            .ca_file(site.write("trusted.crt", &site.authority.pem))
            .client_files(site.write("c.crt", &ours.certificate), site.write("c.key", &ours.key));
        for tls in [tls, from_files] {
            assert!(!format!("{tls:?}").contains("PRIVATE"));
            run(async {
                let db = site.client(&site.address()).tls(tls).connect().await.unwrap();
                db.set("k", 1).await.unwrap();
            });
        }
        let foreign = Authority::new("another").issue(&["client"]);
        let tls = site.tls().client_pem(foreign.certificate, foreign.key);
        refusal(site.client(&site.address()).tls(tls));
    }
}

#[test]
fn invalid_tls_files_are_an_error_before_anything_is_sent() {
    let builder = || Client::builder("rediss://127.0.0.1:1");
    let ours = Authority::new("another").issue(&["client"]);
    for (tls, named) in [
        (Tls::new().ca_file("/nowhere/ca.crt"), "/nowhere/ca.crt"),
        (Tls::new().ca_pem("no certificate"), "PEM"),
        (Tls::new().insecure().client_files("/nowhere/c.crt", "/nowhere/c.key"), "/nowhere/c.crt"),
        (Tls::new().insecure().client_pem(ours.certificate, "no key"), "key"),
    ] {
        let error = run(builder().tls(tls).connect()).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.to_string().contains(named), "{error}");
    }
    let unix = Client::builder("unix:///nowhere").tls(Tls::new().insecure());
    assert_eq!(run(unix.connect()).unwrap_err().kind(), Kind::Invalid);
    let site = Site::new();
    let _server = site.start(Launch::subject());
    let text = refusal(site.client(&site.address()).tls(site.tls().server_name("no name!")));
    assert!(text.contains("no name!"), "{text}");
}

#[test]
fn connecting_with_tls_to_a_plain_server_or_vice_versa_is_an_error() {
    for (site, server) in sites() {
        let short = Duration::from_millis(300);
        // The server waits for the rest of a line, or replies that this is not a request.
        let error = run(site.client(&server.address()).connect_timeout(short).connect());
        let error = error.expect_err("the server does not use TLS");
        assert_eq!(error.kind(), Kind::Tls, "{error}");
        let text = error.to_string();
        assert!(text.contains(&server.address()), "{text}");
        assert!(text.ends_with(": does this port use TLS?"), "{text}");

        let error = run(Client::builder(&site.address()).connect_timeout(short).connect());
        let error = error.expect_err("the server uses TLS");
        assert!(matches!(error.kind(), Kind::Tls | Kind::Disconnected), "{error:?}");
        assert!(error.to_string().contains("use rediss://"), "{error}");
    }
}

#[test]
fn a_silent_server_is_given_up_within_the_time_limit() {
    let site = Site::new();
    let _server = site.start(Launch::subject());
    let link = Proxy::to(&site.address());
    link.stall(Direction::ToClient, true);
    let text = refusal(site.client(&link.address()).connect_timeout(Duration::from_millis(100)));
    assert!(text.contains("100ms"), "{text}");
}
