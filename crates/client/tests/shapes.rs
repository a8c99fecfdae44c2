//! Calls of more than one command: batches, transactions, sessions, scripts, listeners. C1, C4.

use brisk::commands;
use brisk::{
    Client, Code, Command, Event, Executed, Kind, Lanes, Message, Request, Script, Step, Traits,
};
use brisk_testkit::proxy::{Disconnect, Proxy};
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::wait_until;
use std::future::Future;

fn servers() -> [Server; 2] {
    [Launch::redis().start(), Launch::subject().start()]
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

fn command<T>(words: &[&str]) -> Command<(), T> {
    let mut request = Request::new(words[0], Traits::default());
    words.iter().skip(1).take(1).for_each(|key| request.key(key));
    request.args(words.get(2..).unwrap_or_default());
    Command::new(request)
}

#[test]
fn a_batch_returns_each_reply_with_its_type_and_errors_in_place() {
    for server in servers() {
        for protocol in ["2", "3"] {
            run(async {
                let url = format!("redis://{}?protocol={protocol}", server.address());
                let db = Client::connect(&url).await.unwrap();
                db.raw::<()>("FLUSHALL").await.unwrap();
                let (set, n, list, error, none) = db
                    .batch((
                        command::<bool>(&["SET", "a", "1"]),
                        command::<i64>(&["INCR", "a"]),
                        command::<Vec<String>>(&["LRANGE", "l", "0", "-1"]),
                        command::<brisk::Result<i64>>(&["LPUSH", "a", "x"]),
                        command::<Option<String>>(&["GET", "none"]),
                    ))
                    .await
                    .unwrap();
                assert_eq!((set, n, list, none), (true, 2, vec![], None));
                assert_eq!(error.unwrap_err().code(), Some(Code::WrongType));
                let failed = db
                    .batch((command::<i64>(&["LPUSH", "a", "x"]), command::<i64>(&["INCR", "a"])))
                    .await;
                assert_eq!(failed.unwrap_err().code(), Some(Code::WrongType));
                // All commands were executed nevertheless.
                let many = (0..500).map(|_| command::<i64>(&["INCR", "a"])).collect::<Vec<_>>();
                assert!(db.batch(many).await.unwrap().into_iter().eq(4..504));
                let nothing = db.batch(Vec::<Command<(), i64>>::new()).await.unwrap();
                assert!(nothing.is_empty());
            });
        }
    }
}

#[test]
fn a_transaction_is_executed_as_a_whole_or_not_at_all() {
    for server in servers() {
        run(async {
            let db =
                Client::builder(&server.address()).lanes(Lanes::Count(3)).connect().await.unwrap();
            let (n, list) = db
                .transaction((command::<i64>(&["INCR", "n"]), command::<i64>(&["RPUSH", "l", "a"])))
                .await
                .unwrap();
            assert_eq!((n, list), (1, 1));
            let refused = db
                .transaction((command::<i64>(&["INCR", "n"]), command::<i64>(&["NOSUCH", "n"])))
                .await
                .unwrap_err();
            assert_eq!(refused.code(), Some(Code::Err), "{refused}");
            assert!(refused.message().contains("unknown command"), "{refused}");
            let failed = db
                .transaction((command::<i64>(&["LPUSH", "n", "x"]), command::<i64>(&["INCR", "n"])))
                .await
                .unwrap_err();
            assert_eq!(failed.code(), Some(Code::WrongType));
            assert_eq!(command::<i64>(&["GET", "n"]).on(&db).await.unwrap(), 2);
            // Commands of other callers on the same lanes are never placed between MULTI and EXEC.
            let adds = (0..200).map(|_| {
                let db = &db;
                async move {
                    let both = (command::<i64>(&["INCR", "t"]), command::<i64>(&["INCR", "t"]));
                    let (one, two) = db.transaction(both).await.unwrap();
                    assert_eq!(two, one + 1);
                    command::<i64>(&["INCR", "t"]).on(db).await.unwrap();
                }
            });
            futures_util::future::join_all(adds).await;
            assert_eq!(command::<i64>(&["GET", "t"]).on(&db).await.unwrap(), 600);
        });
    }
}

#[test]
fn an_error_says_which_commands_of_a_batch_or_transaction_were_executed() {
    use Executed::{No, Yes};
    for server in servers() {
        for protocol in [2, 3] {
            run(async {
                let db = Client::builder(&server.address()).protocol(protocol);
                let db = db.connect().await.unwrap();
                db.flushall().await.unwrap();
                let incr = || commands::incr("n");
                let lpush = || commands::lpush("n", "x");
                let failed = db.transaction((incr(), lpush(), incr())).await.unwrap_err();
                assert_eq!(failed.code(), Some(Code::WrongType));
                assert_eq!(failed.executed(), [Yes, No, Yes]);
                assert!(failed.maybe_applied(), "{failed}");
                assert!(failed.message().ends_with("(executed: commands 1, 3 of 3)"), "{failed}");
                let failed = db.batch((incr(), lpush())).await.unwrap_err();
                assert_eq!((failed.executed(), failed.maybe_applied()), (&[Yes, No][..], true));
                // The command is executed, but its reply cannot be converted.
                let wrong = || incr().reply_as::<Vec<String>>();
                let failed = db.batch((incr(), wrong())).await.unwrap_err();
                assert_eq!(failed.kind(), Kind::UnexpectedReply);
                assert_eq!((failed.executed(), failed.maybe_applied()), (&[Yes, Yes][..], true));
                let failed = db.transaction((wrong(), incr())).await.unwrap_err();
                assert_eq!((failed.executed(), failed.maybe_applied()), (&[Yes, Yes][..], true));
                assert!(wrong().on(&db).await.unwrap_err().maybe_applied());
                assert_eq!(db.get::<i64>("n").await.unwrap(), Some(8));
                // Nothing was changed: the commands were only reads, or were rejected as a whole, or each was rejected.
                let read = || commands::get::<Vec<String>>("n");
                let failed = db.batch((commands::get::<i64>("n"), read())).await.unwrap_err();
                assert_eq!((failed.executed(), failed.maybe_applied()), (&[Yes, Yes][..], false));
                assert!(!read().on(&db).await.unwrap_err().maybe_applied());
                let refused = || command::<i64>(&["NOSUCH", "n"]);
                let failed = db.transaction((incr(), refused())).await.unwrap_err();
                assert!(failed.executed().is_empty() && !failed.maybe_applied(), "{failed}");
                let failed = db.batch((lpush(), refused())).await.unwrap_err();
                assert_eq!((failed.executed(), failed.maybe_applied()), (&[No, No][..], false));
                let failed = db.batch((lpush(),)).await.unwrap_err();
                assert!(failed.executed().is_empty() && !failed.maybe_applied(), "{failed}");
                assert_eq!(db.get::<i64>("n").await.unwrap(), Some(8));
                // The text names only some of many commands.
                let many: Vec<_> = (0..500).map(|_| incr()).collect();
                let all = many.into_iter().chain([lpush().reply_as()]).collect::<Vec<_>>();
                let failed = db.batch(all).await.unwrap_err();
                assert_eq!(failed.executed().iter().filter(|one| **one == Yes).count(), 500);
                assert!(
                    failed.message().ends_with("1, 2, 3, 4, 5, 6, 7, 8, and 492 more of 501)"),
                    "{failed}"
                );
            });
        }
    }
}

#[test]
fn a_session_has_exclusive_use_of_its_connection() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            let session = db.session().await.unwrap();
            session.raw::<()>("SELECT").arg(3).await.unwrap();
            command::<()>(&["SET", "k", "three"]).on(&session).await.unwrap();
            assert_eq!(command::<Option<String>>(&["GET", "k"]).on(&db).await.unwrap(), None);
            // The session may block, and no other caller waits for it.
            let waits =
                tokio::spawn(async move { session.blpop::<String, String>("queue", 20).await });
            wait_until("it to wait", || server.info("blocked_clients") == "1");
            command::<i64>(&["RPUSH", "queue", "no"]).on(&db).await.unwrap();
            let other = db.session().await.unwrap();
            other.raw::<()>("SELECT").arg(3).await.unwrap();
            command::<i64>(&["RPUSH", "queue", "yes"]).on(&other).await.unwrap();
            let popped = waits.await.unwrap().unwrap();
            assert_eq!(popped, Some(("queue".to_owned(), "yes".to_owned())));
            let blocks = Request::new("BLPOP", Traits { blocks: true, ..Traits::default() });
            let refused = Command::<(), ()>::new(blocks).key("q").arg(0).on(&db).await.unwrap_err();
            assert_eq!(refused.kind(), Kind::Invalid);
        });
    }
}

#[test]
fn optimistic_transactions_are_retried_until_they_succeed() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            command::<()>(&["SET", "stock", "30"]).on(&db).await.unwrap();
            let sell = || {
                let db = db.clone();
                tokio::spawn(async move {
                    let mut sold = 0;
                    loop {
                        let left = db
                            .watch(["stock"], async |session| {
                                let left: i64 = command(&["GET", "stock"]).on(session).await?;
                                let left = (left - 1).to_string();
                                Ok(match left.as_str() {
                                    "-1" => Step::Abort,
                                    left => Step::Commit((command::<()>(&["SET", "stock", left]),)),
                                })
                            })
                            .await;
                        match left {
                            Ok(Some(_)) => sold += 1,
                            Ok(None) => return sold,
                            Err(error) => assert_eq!(error.kind(), Kind::Aborted),
                        }
                    }
                })
            };
            let (one, two) = (sell(), sell());
            assert_eq!(one.await.unwrap() + two.await.unwrap(), 30);
            assert_eq!(command::<i64>(&["GET", "stock"]).on(&db).await.unwrap(), 0);
        });
    }
}

#[test]
fn a_script_is_sent_by_digest_and_in_full_if_the_server_has_forgotten_it() {
    static ADD: Script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            for round in 1..=3 {
                let sum: i64 = ADD.run(&db, ["n"], [5]).await.unwrap();
                assert_eq!(sum, 5 * round);
                db.raw::<()>("SCRIPT FLUSH").await.unwrap();
            }
            let error = ADD.run::<i64>(&db, ["n"], ["x"]).await.unwrap_err();
            assert!(error.message().contains("not an integer"), "{error}");
        });
    }
}

fn text(event: Option<Event>) -> (String, String, Option<String>) {
    let Some(Event::Message(Message { channel, payload, pattern, .. })) = event else {
        panic!("no message: {event:?}")
    };
    let text = |bytes: brisk::Bytes| String::from_utf8_lossy(&bytes).into_owned();
    (text(channel), text(payload), pattern.map(text))
}

#[test]
fn a_listener_receives_messages_and_learns_of_gaps() {
    for server in servers() {
        for protocol in ["2", "3"] {
            let link = Proxy::to(&server.address());
            run(async {
                let url = format!("redis://{}?protocol={protocol}", link.address());
                let db = Client::connect(&format!("redis://{}", server.address())).await.unwrap();
                let through = Client::connect(&url).await.unwrap();
                let mut news = through.subscriber().await.unwrap();
                news.subscribe(["news", "more"]).await.unwrap();
                news.psubscribe(["n*"]).await.unwrap();
                news.ssubscribe(["shard"]).await.unwrap();
                let publish = |command: &str, channel: &str, payload: &str| {
                    let payload = payload.to_owned();
                    let sent = db.raw::<i64>(command).arg(channel).arg(payload);
                    async move { sent.await.unwrap() }
                };
                assert_eq!(publish("PUBLISH", "more", "1").await, 1);
                assert_eq!(publish("PUBLISH", "news", "2").await, 2);
                assert_eq!(publish("SPUBLISH", "shard", &"x".repeat(1000)).await, 1);
                assert_eq!(text(news.next().await), ("more".into(), "1".into(), None));
                assert_eq!(text(news.next().await), ("news".into(), "2".into(), None));
                assert_eq!(text(news.next().await), ("news".into(), "2".into(), Some("n*".into())));
                assert_eq!(text(news.next().await).1.len(), 1000);
                news.punsubscribe(["n*"]).await.unwrap();
                assert_eq!(publish("PUBLISH", "news", "3").await, 1);
                assert_eq!(text(news.next().await).1, "3");
                link.cut(Disconnect::Reset);
                assert!(matches!(news.next().await, Some(Event::Gap)));
                wait_until("it to listen again", || {
                    server.connect().cmd("PUBSUB NUMSUB more").elements()[1].integer() == 1
                });
                assert_eq!(publish("PUBLISH", "more", "4").await, 1);
                assert_eq!(text(news.next().await).1, "4");
            });
        }
    }
}

#[test]
fn a_slow_listener_loses_the_oldest_messages_and_learns_how_many() {
    let server = Launch::subject().start();
    run(async {
        let db = Client::connect(&server.address()).await.unwrap();
        let mut news = db.subscriber().await.unwrap();
        news.subscribe(["news"]).await.unwrap();
        let payload = "x".repeat(1 << 20);
        for _ in 0..12 {
            db.raw::<i64>("PUBLISH").arg("news").arg(&payload).await.unwrap();
        }
        db.raw::<i64>("PUBLISH").arg("news").arg("last").await.unwrap();
        let (mut messages, mut lost) = (0, 0);
        loop {
            match news.next().await.unwrap() {
                Event::Overflow { lost: more } => lost += more,
                Event::Message(message) if message.payload == "last" => break,
                Event::Message(_) => messages += 1,
                event => panic!("{event:?}"),
            }
        }
        assert_eq!(messages + lost, 12);
    });
}

#[test]
fn without_multi_the_error_says_that_the_commands_may_have_been_executed() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            db.raw::<()>("ACL SETUSER")
                .arg("u")
                .args(["on", ">p", "~*", "+@all", "-multi"])
                .await
                .unwrap();
            let url = format!("redis://u:p@{}", server.address());
            let limited = Client::connect(&url).await.unwrap();
            let both = (command::<i64>(&["INCR", "n"]), command::<i64>(&["INCR", "n"]));
            let error = limited.transaction(both).await.unwrap_err();
            assert_eq!(error.code(), Some(Code::NoPerm));
            assert!(error.maybe_applied(), "{error}");
            assert_eq!(command::<i64>(&["GET", "n"]).on(&db).await.unwrap(), 2);
        });
    }
}
