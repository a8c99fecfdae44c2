//! `Debug` of the types that hold requests, replies or cached values shows none of their bytes. The exceptions are the
//! types that are a value themselves: `Value`, `Part`, `Bytes`, `Json`.

use brisk::{CacheOptions, Client, Event, Lanes, Message, Reply, Scan, Step, commands};
use brisk_testkit::server::Launch;
use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

/// A value of the tests.
const SECRET: &str = "s3cr3t-value";

/// Fails if the output of `Debug` contains the value, as text or as decimal bytes.
fn assert_hides(shown: &dyn Debug) -> String {
    let text = format!("{shown:?}");
    let decimal = format!("{:?}", SECRET.as_bytes());
    let decimal = decimal.trim_matches(['[', ']']);
    assert!(!text.contains(SECRET) && !text.contains(decimal), "{text}");
    assert!(text.len() < 1000, "too long for a log line: {text}");
    text
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// Polls a future once.
async fn poll_once(future: &mut (impl Future + Unpin)) {
    tokio::select! {
        biased;
        _ = future => panic!("it should be pending"),
        () = std::future::ready(()) => {}
    }
}

#[test]
fn a_client_that_has_queued_requests_shows_none_of_their_values() {
    for lanes in [Lanes::Count(2), Lanes::Pool(2)] {
        run(async {
            let db = Client::builder("127.0.0.1:1").lanes(lanes).lazy().connect().await.unwrap();
            let mut set = db.set("k", SECRET);
            poll_once(&mut set).await;
            let text = assert_hides(&db);
            assert!(text.contains("127.0.0.1:1") && text.contains("lanes: 2"), "{text}");
            assert!(text.contains("pending: 1"), "{text}");
            assert_hides(&set);
            assert_hides(&db.bulk());
        });
    }
}

#[test]
fn requests_that_are_not_sent_show_no_values() {
    run(async {
        let db = Client::builder("127.0.0.1:1").lazy().connect().await.unwrap();
        let set = || commands::set("k", SECRET);
        assert_hides(&set());
        assert_hides(&set().on(&db));
        assert_hides(&commands::hget::<String>("k", SECRET).required());
        assert_hides(&db.batch((set(), set())));
        assert_hides(&db.transaction((set(), set())));
        assert_hides(&Step::Commit((set(),)));
        assert_hides(&db.publish("news", SECRET));
        let found: Scan<'_, Client, String> = db.scan_set("members").pattern(SECRET);
        assert_hides(&found);
        let map = brisk::recipes::ShardedMap::new(&db, "base", 100, 10).unwrap();
        assert_hides(&map);
        assert_hides(&map.scan::<String, String>());
    });
}

#[test]
fn replies_and_messages_show_no_values() {
    let server = Launch::redis().start();
    run(async {
        let db = Client::connect(&server.address()).await.unwrap();
        let large = SECRET.repeat(100);
        db.set("k", SECRET).await.unwrap();
        db.set("large", &large).await.unwrap();
        db.sadd("members", [SECRET, "other"]).await.unwrap();
        for key in ["k", "large"] {
            let reply: Reply = db.get::<String>(key).reply_as().await.unwrap();
            assert_hides(&reply);
            assert_hides(&reply.reader());
            assert_hides(&db.stream(commands::get::<String>(key)).await.unwrap().unwrap());
        }
        let mut found = db.scan_set::<String>("members");
        found.next().await.unwrap().unwrap();
        assert_hides(&found);

        let cache = db.cache(CacheOptions::default()).await.unwrap();
        for key in ["k", "large"] {
            commands::get::<String>(key).on(&cache).await.unwrap();
        }
        let text = assert_hides(&cache);
        assert!(text.contains("entries: 2"), "{text}");
        assert_hides(&cache.no_older_than(Duration::ZERO));

        let session = db.session().await.unwrap();
        session.set("k", SECRET).await.unwrap();
        assert_hides(&session);

        let mut news = db.subscriber().await.unwrap();
        news.subscribe(["news"]).await.unwrap();
        assert_hides(&news.subscribe(["more"]));
        db.publish("news", SECRET).await.unwrap();
        db.publish("news", SECRET).await.unwrap();
        let event = news.next().await.unwrap();
        assert_hides(&event);
        let Event::Message(message) = event else { panic!("not a message: {event:?}") };
        assert_hides(&Message::clone(&message));
        // The second message is still unread.
        assert_hides(&news);
        assert_hides(&db);
    });
}

#[test]
fn an_entry_of_a_stream_shows_no_values() {
    let server = Launch::redis().start();
    run(async {
        let db = Client::connect(&server.address()).await.unwrap();
        db.xadd("orders", "*", [("token", SECRET)]).await.unwrap();
        let consumer = db.consumer("orders").group("g").member("m");
        let consumer = consumer.begin(brisk::consumer::Begin::Oldest);
        assert_hides(&consumer);
        let (seen, mut entries) = tokio::sync::mpsc::unbounded_channel();
        let ran = consumer.run(move |entry: brisk::consumer::Message| {
            seen.send(format!("{entry:?}")).expect("a receiver");
            async { Ok::<(), brisk::Error>(()) }
        });
        tokio::select! {
            _ = ran => panic!("the consumer ended"),
            shown = entries.recv() => {
                let shown = shown.expect("an entry");
                assert!(shown.contains("fields: 1") && !shown.contains(SECRET), "{shown}");
            }
        }
    });
}

#[cfg(feature = "mock")]
#[test]
fn a_mock_shows_no_values() {
    let mock = brisk::mock::Mock::start().unwrap();
    mock.expect(["SET", "k", SECRET]).reply(SECRET);
    assert_hides(&mock.expect(["SET", "k", SECRET]));
    assert_hides(&brisk::mock::MockReply::from(SECRET));
    assert_hides(&mock);
}
