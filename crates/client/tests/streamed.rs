//! Replies that are read piece by piece: the pieces are correct, pieces that were read are not kept, and a truncated
//! reply is never mistaken for a complete one.

use brisk::commands::{get, hgetall, incr, lrange, smembers, zrange};
use brisk::{Bytes, Client, Kind, Phase};
use brisk_testkit::proxy::{Direction, Disconnect, Proxy, Split};
use brisk_testkit::server::{Launch, Server};
use std::collections::HashMap;
use std::future::Future;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const MIB: usize = 1 << 20;

fn servers() -> [Server; 2] {
    [Launch::redis().start(), Launch::subject().start()]
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

async fn client(address: &str, protocol: u8) -> Client {
    let db = Client::builder(address).protocol(protocol).timeout(Duration::from_secs(60));
    db.connect().await.expect("a server")
}

/// Bytes whose values depend on their positions.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
}

#[test]
fn a_large_string_arrives_in_bounded_pieces() {
    for server in servers() {
        run(async {
            let db = client(&server.address(), 3).await;
            let value = pattern(32 * MIB + 7);
            db.bulk().set("large", &value).await.unwrap();
            let mut streamed = db.stream(get::<Bytes>("large")).await.unwrap().unwrap();
            assert_eq!(streamed.remaining(), value.len() as u64);
            let mut at = 0;
            while let Some(chunk) = streamed.chunk().await.unwrap() {
                assert!(!chunk.is_empty() && chunk.len() <= 64 << 10, "{}", chunk.len());
                assert!(value[at..].starts_with(&chunk), "another byte behind {at}");
                at += chunk.len();
            }
            assert_eq!((at, streamed.remaining()), (value.len(), 0));
            assert_eq!(streamed.chunk().await.unwrap(), None);
        });
    }
}

#[test]
fn collections_are_read_element_by_element_in_both_protocols() {
    for server in servers() {
        for protocol in [2, 3] {
            let link = Proxy::to(&server.address());
            link.split(Some(Split { single_bytes: 5000, bytes_max: 300, seed: 3 }));
            run(async {
                let db = client(&link.address(), protocol).await;
                db.flushall().await.unwrap();
                let direct = client(&server.address(), protocol).await;
                let fields: HashMap<u64, u64> = (0..2000).map(|field| (field, field * 7)).collect();
                for (field, value) in &fields {
                    direct.hset("h", (*field, *value)).await.unwrap();
                }
                let numbers: Vec<u64> = (0..2000).collect();
                direct.rpush("l", &numbers).await.unwrap();
                direct.sadd("s", &numbers).await.unwrap();

                let mut streamed = db.stream(hgetall::<()>("h")).await.unwrap().unwrap();
                assert_eq!(streamed.remaining(), 4000);
                let mut found = HashMap::new();
                while let Some((field, value)) = streamed.pair::<u64, u64>().await.unwrap() {
                    found.insert(field, value);
                }
                assert_eq!(found, fields);
                let mut streamed = db.stream(lrange::<()>("l", 0, -1)).await.unwrap().unwrap();
                let mut found = Vec::new();
                while let Some(number) = streamed.element::<u64>().await.unwrap() {
                    found.push(number);
                }
                assert_eq!(found, numbers);
                let mut streamed = db.stream(smembers::<()>("s")).await.unwrap().unwrap();
                let mut found = Vec::new();
                while let Some(number) = streamed.element::<u64>().await.unwrap() {
                    found.push(number);
                }
                found.sort_unstable();
                assert_eq!(found, numbers);
            });
        }
    }
}

#[test]
fn null_error_and_short_replies_are_read_correctly() {
    for server in servers() {
        for protocol in [2, 3] {
            run(async {
                let db = client(&server.address(), protocol).await;
                db.flushall().await.unwrap();
                assert!(db.stream(get::<Bytes>("none")).await.unwrap().is_none());
                db.rpush("l", ["a", "b"]).await.unwrap();
                let error = db.stream(get::<Bytes>("l")).await.unwrap_err();
                assert_eq!(error.code(), Some(brisk::Code::WrongType), "{error}");
                let mut number = db.stream(incr("n")).await.unwrap().unwrap();
                assert_eq!(number.element::<i64>().await.unwrap(), Some(1));
                assert_eq!(number.element::<i64>().await.unwrap(), None);
                let mut empty = db.stream(zrange::<()>("none", 0, -1)).await.unwrap().unwrap();
                assert_eq!(empty.element::<String>().await.unwrap(), None);
                db.set("empty", "").await.unwrap();
                let mut empty = db.stream(get::<Bytes>("empty")).await.unwrap().unwrap();
                assert_eq!(empty.chunk().await.unwrap(), None);
                let mut list = db.stream(lrange::<()>("l", 0, -1)).await.unwrap().unwrap();
                assert_eq!(list.chunk().await.unwrap_err().kind(), Kind::UnexpectedReply);
                // If an element has another type, only that element is lost.
                assert_eq!(list.element::<u64>().await.unwrap_err().kind(), Kind::UnexpectedReply);
                assert_eq!(list.element::<String>().await.unwrap().as_deref(), Some("b"));
                assert_eq!(list.element::<String>().await.unwrap(), None);
            });
        }
    }
}

#[test]
fn a_truncated_reply_is_an_error_on_every_read_and_never_an_end() {
    let server = Launch::redis().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = client(&server.address(), 3).await;
        db.set("large", pattern(8 * MIB)).await.unwrap();
        let far = Client::builder(&link.address()).timeout(Duration::from_millis(300));
        let far = far.connect().await.unwrap();
        let take = async |streamed: &mut brisk::Streamed| loop {
            match streamed.chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("an end that is none"),
                Err(error) => return error,
            }
        };
        // The peer sends nothing more.
        let mut streamed = far.stream(get::<Bytes>("large")).await.unwrap().unwrap();
        drop(streamed.chunk().await.unwrap());
        link.stall(Direction::ToClient, true);
        let error = take(&mut streamed).await;
        assert_eq!(error.kind(), Kind::Timeout(Phase::Streaming), "{error}");
        assert!(error.maybe_applied());
        link.heal();
        assert_eq!(take(&mut streamed).await.kind(), Kind::Timeout(Phase::Streaming));
        // The connection is lost.
        let mut streamed = far.stream(get::<Bytes>("large")).await.unwrap().unwrap();
        drop(streamed.chunk().await.unwrap());
        link.cut(Disconnect::Reset);
        let error = take(&mut streamed).await;
        assert_eq!(error.kind(), Kind::Disconnected, "{error}");
        assert_eq!(take(&mut streamed).await.kind(), Kind::Disconnected);
        // The client is closed.
        let mut streamed = db.stream(get::<Bytes>("large")).await.unwrap().unwrap();
        db.close();
        assert_eq!(take(&mut streamed).await.kind(), Kind::Closed);
        assert_eq!(db.stream(get::<Bytes>("large")).await.unwrap_err().kind(), Kind::Closed);
    });
}

#[test]
fn a_program_without_a_runtime_streams_too() {
    let server = Launch::redis().start();
    let db = Client::builder(&server.address()).connect_blocking().unwrap();
    let value = pattern(MIB);
    db.set("large", &value).wait().unwrap();
    let mut streamed = brisk::wait(db.stream(get::<Bytes>("large"))).unwrap().unwrap();
    let mut taken = Vec::new();
    while let Some(chunk) = brisk::wait(streamed.chunk()).unwrap() {
        taken.extend_from_slice(&chunk);
    }
    assert_eq!(taken, value);
}

#[test]
fn a_field_of_another_type_loses_only_its_pair() {
    for server in servers() {
        for protocol in [2, 3] {
            run(async {
                let db = client(&server.address(), protocol).await;
                let list = ["one", "1", "2", "two", "3", "three", "4"];
                db.del("l").await.unwrap();
                db.rpush("l", list).await.unwrap();
                let mut pairs = db.stream(lrange::<()>("l", 0, -1)).await.unwrap().unwrap();
                let error = pairs.pair::<u64, String>().await.unwrap_err();
                assert_eq!(error.kind(), Kind::UnexpectedReply);
                let next = pairs.pair::<u64, String>().await.unwrap();
                assert_eq!(next, Some((2, "two".to_owned())));
                let error = pairs.pair::<u64, u64>().await.unwrap_err();
                assert_eq!(error.kind(), Kind::UnexpectedReply);
                assert_eq!(pairs.remaining(), 1);
                let error = pairs.pair::<u64, u64>().await.unwrap_err();
                assert_eq!(error.kind(), Kind::UnexpectedReply, "one too few");
                assert_eq!(pairs.pair::<u64, u64>().await.unwrap(), None);
            });
        }
    }
}

/// A server that sends a list of four elements up to the middle of the second one, and the rest after a message on the
/// channel.
fn halting() -> (String, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (go, wait) = mpsc::channel();
    let wait = Arc::new(Mutex::new(wait));
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let wait = Arc::clone(&wait);
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(read @ 1..) = socket.read(&mut bytes) {
                    let words = &bytes[..read];
                    if !words.windows(6).any(|word| word == b"LRANGE") {
                        // Each request is an array, and no argument contains an asterisk.
                        let requests = words.iter().filter(|byte| **byte == b'*').count();
                        socket.write_all("+OK\r\n".repeat(requests).as_bytes()).expect("a peer");
                        continue;
                    }
                    socket.write_all(b"*4\r\n$1\r\na\r\n$1\r\n").expect("a peer");
                    wait.lock().expect("no panic").recv().expect("to be notified");
                    socket.write_all(b"1\r\n$1\r\nb\r\n$1\r\n2\r\n").expect("a peer");
                }
            });
        }
    });
    (address, go)
}

#[test]
fn a_future_that_is_dropped_within_a_pair_loses_nothing_and_shifts_nothing() {
    let (address, go) = halting();
    run(async {
        let db = client(&address, 2).await;
        let mut pairs = db.stream(lrange::<()>("l", 0, -1)).await.unwrap().unwrap();
        let half = tokio::time::timeout(Duration::from_millis(100), pairs.pair::<char, u64>());
        assert!(half.await.is_err(), "the second is not whole");
        assert_eq!(pairs.remaining(), 4);
        go.send(()).unwrap();
        assert_eq!(pairs.pair::<char, u64>().await.unwrap(), Some(('a', 1)));
        assert_eq!(pairs.element::<char>().await.unwrap(), Some('b'));
        assert_eq!(pairs.element::<u64>().await.unwrap(), Some(2));
        assert_eq!(pairs.pair::<char, u64>().await.unwrap(), None);
    });
}
