//! Subscriptions that are rejected, time out, are dropped, or end; and keyspace notifications.

use brisk::{Client, Code, Event, KeyspaceEvent, Kind, Lanes, Subscriber};
use brisk_testkit::proxy::{Direction, Disconnect, Proxy};
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::wait_until;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
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

/// A client whose user may listen to channels that begin with `ok`.
async fn limited(server: &Server, address: &str, protocol: u8) -> Client {
    server.connect().cmd("ACL SETUSER u on >secret ~* +@all resetchannels &ok*");
    let builder = Client::builder(address).login("u", "secret").protocol(protocol);
    builder.lanes(Lanes::Count(1)).connect().await.expect("a server")
}

/// The next event: the channel of a message, or the kind of the event.
async fn heard(news: &mut Subscriber) -> String {
    match news.next().await {
        Some(Event::Message(message)) => String::from_utf8_lossy(&message.channel).into_owned(),
        Some(Event::Gap) => "gap".to_owned(),
        Some(Event::Rejected { channel, error }) => {
            assert_eq!(error.code(), Some(Code::NoPerm));
            format!("refused {}", String::from_utf8_lossy(&channel))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn a_rejected_name_is_an_error_and_is_not_subscribed_to_again() {
    for server in servers() {
        for protocol in [2, 3] {
            let link = Proxy::to(&server.address());
            run(async {
                let db = limited(&server, &link.address(), protocol).await;
                let mut other = server.connect();
                let mut news = db.subscriber().await.unwrap();
                let error = news.subscribe(["ok1", "no", "ok2"]).await.unwrap_err();
                assert_eq!(error.code(), Some(Code::NoPerm));
                assert_eq!(news.psubscribe(["*"]).await.unwrap_err().code(), Some(Code::NoPerm));
                news.subscribe(["ok3"]).await.unwrap();
                news.unsubscribe(["ok3", "never"]).await.unwrap();
                other.pipeline(&[
                    "PUBLISH ok3 x",
                    "PUBLISH no x",
                    "PUBLISH ok1 x",
                    "PUBLISH ok2 x",
                ]);
                assert_eq!(heard(&mut news).await, "ok1");
                assert_eq!(heard(&mut news).await, "ok2");
                // On the next connection, only confirmed subscriptions are repeated.
                link.cut(Disconnect::Reset);
                assert_eq!(heard(&mut news).await, "gap");
                other.pipeline(&["PUBLISH ok3 x", "PUBLISH ok2 x"]);
                assert_eq!(heard(&mut news).await, "ok2");
                // If a permission is revoked later, no call fails, but an event reports it.
                other.cmd("ACL SETUSER u resetchannels &ok1");
                link.cut(Disconnect::Reset);
                assert_eq!(heard(&mut news).await, "refused ok2");
                assert_eq!(heard(&mut news).await, "gap");
                link.cut(Disconnect::Reset);
                assert_eq!(heard(&mut news).await, "gap");
            });
        }
    }
}

#[test]
fn the_rejection_of_an_abandoned_call_is_not_passed_to_the_next_call() {
    for server in servers() {
        run(async {
            let db = limited(&server, &server.address(), 3).await;
            let mut news = db.subscriber().await.unwrap();
            for round in 0..50 {
                {
                    let mut left = pin!(news.subscribe(["no", "ok-left"]));
                    let polled = left.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    assert!(polled.is_pending());
                }
                news.subscribe([format!("ok{round}")]).await.unwrap();
            }
            // The other channel of the call was not rejected, so the subscription to it exists.
            server.connect().cmd("PUBLISH ok-left x");
            assert_eq!(heard(&mut news).await, "ok-left");
        });
    }
}

#[test]
fn a_confirmation_has_the_timeout_of_a_command_and_the_order_stays() {
    for server in servers() {
        let link = Proxy::to(&server.address());
        run(async {
            let db = Client::builder(&link.address()).timeout(Duration::from_millis(100));
            let db = db.lanes(Lanes::Count(1)).connect().await.unwrap();
            let mut news = db.subscriber().await.unwrap();
            link.stall(Direction::ToClient, true);
            let error = news.subscribe(["late"]).await.unwrap_err();
            assert!(matches!(error.kind(), Kind::Timeout(_)) && error.maybe_applied(), "{error}");
            link.stall(Direction::ToClient, false);
            // The time limit also applies without a connection.
            link.refuse(true);
            link.cut(Disconnect::End);
            let error = news.subscribe(["later"]).await.unwrap_err();
            assert!(matches!(error.kind(), Kind::Timeout(_)), "{error}");
            let patient = news.subscribe(["last"]).timeout(Duration::from_secs(20));
            link.refuse(false);
            patient.await.unwrap();
            let mut other = server.connect();
            other.pipeline(&["PUBLISH late x", "PUBLISH later x", "PUBLISH last x"]);
            for expected in ["gap", "late", "later", "last"] {
                assert_eq!(heard(&mut news).await, expected);
            }
        });
    }
}

#[test]
fn a_subscriber_ends_with_its_client_even_without_a_runtime() {
    for server in servers() {
        let db = Client::builder(&server.address()).connect_blocking().unwrap();
        let mut news = db.subscriber_blocking().unwrap();
        let idle = db.subscriber_blocking().unwrap();
        news.subscribe(["news"]).wait().unwrap();
        assert_eq!(db.publish("news", "x").wait().unwrap(), 1);
        assert!(matches!(news.wait_next(), Some(Event::Message(_))));
        assert_eq!(db.publish("news", "y").wait().unwrap(), 1);
        std::thread::scope(|scope| {
            let listening = scope.spawn(|| {
                let mut count = 0;
                while news.wait_next().is_some() {
                    count += 1;
                }
                count
            });
            wait_until("it to listen", || server.info("pubsub_channels") == "1");
            db.close();
            assert!(listening.join().expect("no panic") <= 1);
        });
        let error = news.subscribe(["more"]).wait().unwrap_err();
        assert!(error.kind() == Kind::Closed && error.message().contains("client"), "{error}");
        assert_eq!(idle.subscribe(["more"]).wait().unwrap_err().kind(), Kind::Closed);
        assert_eq!(db.subscriber_blocking().unwrap_err().kind(), Kind::Closed);
        wait_until("the connections to end", || server.info("connected_clients") == "1");
    }
}

#[test]
fn keyspace_and_keyevent_messages_are_received() {
    for server in servers() {
        run(async {
            let db = Client::connect(&format!("redis://{}/3", server.address())).await.unwrap();
            let _ = server.connect().cmd("CONFIG SET notify-keyspace-events KEA");
            let mut events = db.subscriber().await.unwrap();
            events.keyspace_events(3, "user:*").await.unwrap();
            events.key_events(3, "rename_*").await.unwrap();
            let _ = db.set("other", 1).await.unwrap();
            let _ = db.hset("user:1", [("name", "ana")]).await.unwrap();
            db.rename("user:1", "user__:2").await.unwrap();
            let _ = db.del("user:1").await.unwrap();
            let _ = db.set("user:3", 1).await.unwrap();
            let mut seen = Vec::new();
            while seen.len() < 5 {
                let Some(Event::Message(message)) = events.next().await else { panic!("no gap") };
                let KeyspaceEvent { db, key, event, .. } = message.keyspace_event().unwrap();
                assert_eq!(db, 3);
                seen.push(format!("{} {event}", String::from_utf8_lossy(&key)));
            }
            let expected = [
                "user:1 hset",
                "user:1 rename_from",
                "user:1 rename_from",
                "user__:2 rename_to",
                "user:3 set",
            ];
            assert_eq!(seen, expected);
        });
    }
}

#[test]
fn subscribing_to_more_than_both_sides_can_buffer_works() {
    // The replies repeat the names, so about 24 MB go in each direction. The server stops reading until its replies are
    // read.
    let names: Vec<String> = (0..24_000).map(|n| format!("{n:01000}")).collect();
    for server in servers() {
        run(async {
            let db = Client::builder(&server.address()).connect().await.unwrap();
            let mut news = db.subscriber().await.unwrap();
            let all = news.subscribe(names.clone()).timeout(Duration::from_secs(60));
            all.await.unwrap();
            assert_eq!(db.publish(&names[23_999], "x").await.unwrap(), 1);
            assert_eq!(heard(&mut news).await, names[23_999]);
        });
    }
}

#[test]
fn names_may_be_borrowed_single_or_in_a_list() {
    let server = Launch::redis().start();
    run(async {
        let db = Client::connect(&server.address()).await.unwrap();
        let mut news = db.subscriber().await.unwrap();
        let name = String::from("one");
        news.subscribe(name.as_str()).await.unwrap();
        news.subscribe([name.as_str(), "two"]).await.unwrap();
        news.subscribe(vec!["three".to_owned(), "four".to_owned()]).await.unwrap();
        for channel in ["one", "two", "three", "four"] {
            assert_eq!(db.publish(channel, "x").await.unwrap(), 1);
            assert_eq!(heard(&mut news).await, channel);
        }
    });
}
