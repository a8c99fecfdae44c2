//! Pub/Sub: message formats, permitted commands of subscribers, message order, and the state after subscribers
//! disconnect.

use brisk_testkit::matrix::each_config_of;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Server, assert_reply, each_config, wait_until};
use brisk_tests::with_workers;
use std::time::Instant;

/// A message or confirmation with its first byte: a push in RESP3, or an array in RESP2.
fn framed(resp: u8, rest: &str) -> Vec<u8> {
    let sigil = if resp == 3 { '>' } else { '*' };
    format!("{sigil}{rest}").into_bytes()
}

#[test]
fn messages_and_confirmations_have_the_forms_of_redis() {
    each_config(|server| {
        let [mut sub, mut other] = server.connections();
        let resp = server.resp();
        let null = if resp == 3 { "_" } else { "$-1" };
        sub.send("UNSUBSCRIBE");
        sub.expect_bytes(&framed(resp, &format!("3\r\n$11\r\nunsubscribe\r\n{null}\r\n:0\r\n")));
        sub.send("SUBSCRIBE a b a");
        sub.expect_bytes(&framed(resp, "3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"));
        sub.expect_bytes(&framed(resp, "3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"));
        sub.expect_bytes(&framed(resp, "3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:2\r\n"));
        sub.send("PSUBSCRIBE ?");
        sub.expect_bytes(&framed(resp, "3\r\n$10\r\npsubscribe\r\n$1\r\n?\r\n:3\r\n"));
        sub.send("SSUBSCRIBE a");
        sub.expect_bytes(&framed(resp, "3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n"));
        assert_reply!(other, "PUBLISH a hello", "(integer) 2");
        sub.expect_bytes(&framed(resp, "3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\nhello\r\n"));
        let by_pattern = "4\r\n$8\r\npmessage\r\n$1\r\n?\r\n$1\r\na\r\n$5\r\nhello\r\n";
        sub.expect_bytes(&framed(resp, by_pattern));
        assert_reply!(other, "SPUBLISH a \"\"", "(integer) 1");
        sub.expect_bytes(&framed(resp, "3\r\n$8\r\nsmessage\r\n$1\r\na\r\n$0\r\n\r\n"));
        sub.send("UNSUBSCRIBE b nothing");
        sub.expect_bytes(&framed(resp, "3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:2\r\n"));
        sub.expect_bytes(&framed(resp, "3\r\n$11\r\nunsubscribe\r\n$7\r\nnothing\r\n:2\r\n"));
        sub.send("UNSUBSCRIBE");
        sub.expect_bytes(&framed(resp, "3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n"));
        sub.send("PUNSUBSCRIBE");
        sub.expect_bytes(&framed(resp, "3\r\n$12\r\npunsubscribe\r\n$1\r\n?\r\n:0\r\n"));
        sub.send("SUNSUBSCRIBE");
        sub.expect_bytes(&framed(resp, "3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n"));
        assert_reply!(sub, "GET nothing", "(nil)");
        assert_reply!(other, "PUBLISH a hello", "(integer) 0");
        sub.assert_in_step();
    });
}

#[test]
fn in_resp2_a_subscriber_can_only_change_subscriptions() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.cmd("SSUBSCRIBE c");
        if server.resp() == 3 {
            assert_reply!(conn, "GET nothing", "(nil)");
            assert_reply!(conn, "PING", "PONG");
            conn.hello(2);
        }
        let refused = |what: &str| {
            format!(
                "(error) ERR Can't execute '{what}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING \
                 / QUIT / RESET are allowed in this context"
            )
        };
        assert_reply!(conn, "GET nothing", refused("get"));
        assert_reply!(conn, "CLIENT ID", refused("client|id"));
        assert_reply!(conn, "HELLO 3", refused("hello"));
        assert_reply!(conn, "PUBLISH c x", refused("publish"));
        let text = "(error) ERR wrong number of arguments for 'get' command";
        assert_reply!(conn, "GET", text);
        conn.send("PING");
        conn.expect_bytes(b"*2\r\n$4\r\npong\r\n$0\r\n\r\n");
        conn.send("PING hello");
        conn.expect_bytes(b"*2\r\n$4\r\npong\r\n$5\r\nhello\r\n");
        assert_reply!(conn, "RESET", "RESET");
        assert_reply!(conn, "PING", "PONG");
        assert_reply!(conn, "PUBSUB SHARDCHANNELS", "(empty array)");
        conn.cmd("SUBSCRIBE c");
        assert_reply!(conn, "QUIT", "OK");
        assert!(conn.read_to_end().is_empty());
    });
}

#[test]
fn pubsub_lists_channels_and_counts_subscribers() {
    each_config(|server| {
        let [mut a, mut b, mut conn] = server.connections();
        a.pipeline(&["SUBSCRIBE news", "PSUBSCRIBE n*", "SSUBSCRIBE shard"]);
        b.pipeline(&["SUBSCRIBE news", "SUBSCRIBE other", "PSUBSCRIBE n*"]);
        assert_reply!(conn, "PUBSUB NUMSUB", "(empty array)");
        let counts = "1) \"news\"\n2) (integer) 2\n3) \"none\"\n4) (integer) 0";
        assert_reply!(conn, "PUBSUB NUMSUB news none", counts);
        assert_reply!(conn, "PUBSUB NUMPAT", "(integer) 1");
        assert_reply!(conn, "PUBSUB CHANNELS n*", "1) \"news\"");
        assert_eq!(conn.cmd("PUBSUB CHANNELS").elements().len(), 2);
        assert_reply!(conn, "PUBSUB SHARDCHANNELS", "1) \"shard\"");
        assert_reply!(conn, "PUBSUB SHARDNUMSUB shard", "1) \"shard\"\n2) (integer) 1");
        assert_reply!(conn, "PUBLISH news x", "(integer) 4");
        for (field, value) in
            [("pubsub_channels", "2"), ("pubsub_patterns", "1"), ("pubsubshard_channels", "1")]
        {
            assert_eq!(conn.info(field), value, "{field}");
        }
        let text = "(error) ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. \
                    Try PUBSUB HELP.";
        assert_reply!(conn, "PUBSUB CHANNELS a b", text);
    });
}

#[test]
fn transactions_listen_to_all_but_shard_channels() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        conn.cmd("MULTI");
        for line in ["SSUBSCRIBE s t", "SET k v", "SUBSCRIBE a", "PSUBSCRIBE p*", "SUNSUBSCRIBE s"]
        {
            assert_reply!(conn, line, "QUEUED");
        }
        conn.send("EXEC");
        let mut expected =
            b"*5\r\n-ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client\r\n+OK\r\n".to_vec();
        expected.extend(framed(server.resp(), "3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"));
        expected.extend(framed(server.resp(), "3\r\n$10\r\npsubscribe\r\n$2\r\np*\r\n:2\r\n"));
        expected.extend(framed(server.resp(), "3\r\n$12\r\nsunsubscribe\r\n$1\r\ns\r\n:0\r\n"));
        conn.expect_bytes(&expected);
        assert_reply!(other, "PUBSUB SHARDCHANNELS", "(empty array)");
        assert_reply!(other, "PUBSUB CHANNELS", "1) \"a\"");
    });
}

#[test]
fn client_list_and_kill_know_subscribers() {
    each_config(|server| {
        let [mut sub, mut conn] = server.connections();
        let id = sub.id();
        sub.pipeline(&["SUBSCRIBE a", "SUBSCRIBE b", "PSUBSCRIBE p", "SSUBSCRIBE s"]);
        let line = conn.cmd("CLIENT LIST TYPE pubsub").text();
        for field in [&format!("id={id} "), " flags=P ", " sub=2 psub=1 ssub=1 "] {
            assert!(line.contains(field), "{field} in {line}");
        }
        assert_eq!(line.lines().count(), 1);
        assert!(!conn.cmd("CLIENT LIST TYPE normal").text().contains(&format!("id={id} ")));
        assert_reply!(conn, "CLIENT KILL TYPE pubsub", "(integer) 1");
        assert!(sub.read_to_end().is_empty());
        wait_until("no client listens", || conn.info("pubsub_channels") == "0");
        assert_eq!(conn.info("pubsub_patterns"), "0");
        assert_eq!(conn.info("pubsubshard_channels"), "0");
    });
}

#[test]
fn client_reply_off_silences_replies_but_no_messages() {
    each_config(|server| {
        let [mut sub, mut other] = server.connections();
        sub.send("CLIENT REPLY OFF");
        assert_eq!(sub.cmd("SUBSCRIBE c").elements()[1].text(), "c");
        sub.send("PING");
        other.cmd("PUBLISH c x");
        assert_eq!(sub.reply().elements()[2].text(), "x");
        assert_eq!(sub.cmd("UNSUBSCRIBE c").elements()[0].text(), "unsubscribe");
    });
}

#[test]
fn a_publisher_gets_its_own_message_after_the_reply() {
    each_config(|server| {
        if server.resp() == 2 || subject_is_redis() {
            return; // Before 7.2, Redis sent the message first.
        }
        let mut conn = server.connect();
        conn.pipeline(&["SUBSCRIBE c", "PSUBSCRIBE c*"]);
        conn.send_raw(b"PUBLISH c one\r\nPING\r\nPUBLISH c two\r\nUNSUBSCRIBE c\r\n");
        conn.expect_bytes(b":2\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\none\r\n");
        conn.expect_bytes(b">4\r\n$8\r\npmessage\r\n$2\r\nc*\r\n$1\r\nc\r\n$3\r\none\r\n");
        conn.expect_bytes(b"+PONG\r\n:2\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\ntwo\r\n");
        conn.expect_bytes(b">4\r\n$8\r\npmessage\r\n$2\r\nc*\r\n$1\r\nc\r\n$3\r\ntwo\r\n");
        conn.expect_bytes(b">3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:1\r\n");
    });
}

#[test]
fn a_large_message_arrives_complete_at_every_subscriber() {
    each_config(|server| {
        let mut subs: [Conn; 4] = server.connections();
        subs[3].hello(if server.resp() == 3 { 2 } else { 3 });
        for (at, sub) in subs.iter_mut().enumerate() {
            sub.cmd(if at % 2 == 0 { "SUBSCRIBE large" } else { "PSUBSCRIBE l*" });
        }
        let mut publisher = server.connect();
        let sizes = [0, 1, 1000, 2047, 2048, 5000, 200_000, 3_000_000];
        for len in sizes {
            let message = vec![b'm'; len];
            let receivers = publisher.call(&[b"PUBLISH".as_slice(), b"large", &message]);
            assert_eq!(receivers.integer(), 4);
        }
        for sub in &mut subs {
            for (at, len) in sizes.into_iter().enumerate() {
                let reply = sub.reply();
                let message = reply.elements().last().expect("a message").text();
                assert_eq!(message.len(), len, "message {at}");
            }
        }
    });
}

#[test]
fn messages_that_fill_an_inbox_hold_commands_back_only_until_it_is_emptied() {
    // Each message alone reaches the limit for messages that wait for a worker.
    const LEN: usize = 8 * 1024 * 1024;
    let server = with_workers(2).start();
    let mut subs: [Conn; 2] = server.connections();
    for sub in &mut subs {
        sub.cmd("SUBSCRIBE huge");
    }
    let mut publishers: [Conn; 2] = server.connections();
    let message = vec![b'm'; LEN];
    for turn in 0..10 {
        let publisher = &mut publishers[turn % 2];
        assert_eq!(publisher.call(&[b"PUBLISH".as_slice(), b"huge", &message]).integer(), 2);
        for sub in &mut subs {
            assert_eq!(sub.reply().elements()[2].text().len(), LEN);
        }
        assert_reply!(publisher, "PING", "PONG");
    }
}

/// Publishes `count` numbered messages as publisher `who`, many in each batch.
fn publish_numbers(conn: &mut Conn, who: usize, count: usize) {
    const AT_ONCE: usize = 500;
    for first in (0..count).step_by(AT_ONCE) {
        let numbers = first..(first + AT_ONCE).min(count);
        let sent: String = numbers.clone().map(|n| format!("PUBLISH c {who}:{n}\r\n")).collect();
        conn.send_raw(sent.as_bytes());
        for _ in numbers {
            conn.reply();
        }
    }
}

/// Reads all messages and asserts that those of each publisher are in order.
fn assert_in_order(sub: &mut Conn, publishers: usize, count: usize) -> Vec<String> {
    let mut next = vec![0; publishers];
    let mut all = Vec::with_capacity(publishers * count);
    for _ in 0..publishers * count {
        let text = sub.reply().elements().last().expect("a message").text();
        let (who, number) = text.split_once(':').expect("publisher and number");
        let who: usize = who.parse().expect("a publisher");
        assert_eq!(number, next[who].to_string(), "of publisher {who}");
        next[who] += 1;
        all.push(text);
    }
    all
}

#[test]
fn all_subscribers_get_all_messages_in_one_order() {
    const PUBLISHERS: usize = 4;
    const COUNT: usize = 1000;
    each_config_of(
        || with_workers(2),
        |server| {
            let mut subs: [Conn; 8] = server.connections();
            for (at, sub) in subs.iter_mut().enumerate() {
                sub.cmd(if at % 3 == 0 { "PSUBSCRIBE c*" } else { "SUBSCRIBE c" });
            }
            std::thread::scope(|scope| {
                for who in 0..PUBLISHERS {
                    let mut conn = server.connect();
                    scope.spawn(move || publish_numbers(&mut conn, who, COUNT));
                }
            });
            let heard: Vec<Vec<String>> =
                subs.iter_mut().map(|sub| assert_in_order(sub, PUBLISHERS, COUNT)).collect();
            for other in &heard[1..] {
                assert!(other == &heard[0], "two subscribers heard different orders");
            }
        },
    );
}

#[test]
fn messages_arrive_in_order_across_publishers() {
    each_config_of(
        || with_workers(2),
        |server| {
            let mut subs: [Conn; 4] = server.connections();
            let mut publishers: [Conn; 4] = server.connections();
            for sub in &mut subs {
                sub.cmd("SUBSCRIBE c");
            }
            for n in 0..400 {
                publishers[n % 4].cmd(&format!("PUBLISH c {n}"));
            }
            for sub in &mut subs {
                for n in 0..400 {
                    assert_eq!(sub.reply().elements()[2].text(), n.to_string());
                }
            }
        },
    );
}

#[test]
fn no_message_from_before_the_subscription_arrives() {
    each_config_of(
        || with_workers(2),
        |server| {
            // Other clients also listen, so that each message is sent to every worker.
            let mut others: [Conn; 4] = server.connections();
            let mut subs: [Conn; 4] = server.connections();
            let mut publisher = server.connect();
            for other in &mut others {
                other.cmd("SUBSCRIBE c");
            }
            for round in 0..100 {
                publisher.cmd(&format!("PUBLISH c before-{round}"));
                for sub in &mut subs {
                    assert_eq!(sub.cmd("SUBSCRIBE c").elements()[0].text(), "subscribe");
                }
                assert_eq!(publisher.cmd(&format!("PUBLISH c {round}")).integer(), 8);
                for sub in &mut subs {
                    assert_eq!(sub.reply().elements()[2].text(), round.to_string());
                    assert_eq!(sub.cmd("UNSUBSCRIBE c").elements()[0].text(), "unsubscribe");
                }
            }
        },
    );
}

#[test]
fn a_worker_that_is_busy_holds_publishers_back_and_loses_nothing() {
    const COUNT: usize = 40_000;
    each_config_of(
        || with_workers(2).set("busy-reply-threshold", "100000"),
        |server| {
            let mut subs: [Conn; 4] = server.connections();
            let mut publishers: [Conn; 4] = server.connections();
            let mut busy: [Conn; 2] = server.connections();
            for sub in &mut subs {
                sub.cmd("SUBSCRIBE c");
            }
            // Run the scripts one after the other, so that only one worker is blocked at a time.
            for conn in &mut busy {
                let turns = |count: u64| format!("EVAL \"for n = 1, {count} do end\" 0");
                let began = Instant::now();
                conn.cmd(&turns(100_000));
                let turns_of_300_ms = 30_000_000_000 / began.elapsed().as_micros().max(1) as u64;
                conn.send(&turns(turns_of_300_ms));
                std::thread::scope(|scope| {
                    for (who, conn) in publishers.iter_mut().enumerate() {
                        scope.spawn(move || publish_numbers(conn, who, COUNT / 8));
                    }
                    for sub in &mut subs {
                        scope.spawn(|| assert_in_order(sub, 4, COUNT / 8));
                    }
                });
                conn.reply();
            }
        },
    );
}

fn assert_no_subscribers(server: &Server) {
    let mut conn = server.connect();
    for field in ["pubsub_channels", "pubsub_patterns", "pubsubshard_channels"] {
        wait_until(field, || conn.info(field) == "0");
    }
    wait_until("they are gone", || conn.info("connected_clients") == "1");
    assert_eq!(conn.cmd("PUBLISH c x").integer(), 0);
    assert_reply!(conn, "PUBSUB CHANNELS", "(empty array)");
}

#[test]
fn a_thousand_subscribers_get_everything_and_leave_nothing() {
    each_config_of(
        || with_workers(2),
        |server| {
            let mut subs: Vec<Conn> = (0..1000).map(|_| server.connect()).collect();
            for (at, sub) in subs.iter_mut().enumerate() {
                sub.cmd("SUBSCRIBE c");
                sub.cmd(&format!("SUBSCRIBE own-{at}"));
                if at % 10 == 0 {
                    sub.cmd("PSUBSCRIBE pattern-*");
                    sub.cmd("SSUBSCRIBE shard");
                }
            }
            let mut publisher = server.connect();
            assert_eq!(publisher.info("pubsub_channels"), "1001");
            for n in 0..20 {
                assert_eq!(publisher.cmd(&format!("PUBLISH c {n}")).integer(), 1000);
            }
            assert_eq!(publisher.cmd("SPUBLISH shard x").integer(), 100);
            assert_eq!(publisher.cmd("PUBLISH own-500 x").integer(), 1);
            for (at, sub) in subs.iter_mut().enumerate() {
                for n in 0..20 {
                    assert_eq!(sub.reply().elements()[2].text(), n.to_string());
                }
                if at % 10 == 0 {
                    assert_eq!(sub.reply().elements()[0].text(), "smessage");
                }
            }
            drop(subs);
            drop(publisher);
            assert_no_subscribers(server);
        },
    );
}

#[test]
fn a_subscriber_that_does_not_read_is_closed_and_others_continue() {
    each_config_of(
        || with_workers(2).set("client-output-buffer-limit", "pubsub 1mb 0 0"),
        |server| {
            let [mut slow, mut fast, mut publisher] = server.connections();
            slow.cmd("SUBSCRIBE c");
            fast.cmd("SUBSCRIBE c");
            let message = "m".repeat(100_000);
            let mut rounds = 0;
            while publisher.cmd(&format!("PUBLISH c {message}")).integer() == 2 {
                assert_eq!(fast.reply().elements()[2].text().len(), message.len());
                rounds += 1;
                assert!(rounds < 1000, "the slow one is never closed");
            }
            assert!(rounds > 10, "it was closed after {rounds} messages");
            assert_eq!(fast.reply().elements()[2].text().len(), message.len());
            wait_until("it is gone", || publisher.info("connected_clients") == "2");
            drop(slow);
        },
    );
}

#[test]
fn a_subscriber_above_the_soft_limit_is_closed_after_its_time() {
    each_config_of(
        || with_workers(2).set("client-output-buffer-limit", "pubsub 0 100kb 1"),
        |server| {
            let [mut slow, mut publisher] = server.connections();
            slow.cmd("SUBSCRIBE c");
            let message = "m".repeat(1_000_000);
            for _ in 0..20 {
                // On a slow machine, the script ends before the last message.
                publisher.cmd(&format!("PUBLISH c {message}"));
            }
            wait_until("it is closed", || {
                publisher.cmd("PUBLISH c x");
                publisher.info("connected_clients") == "1"
            });
            drop(slow);
        },
    );
}

#[test]
fn subscribers_are_never_idle() {
    each_config(|server| {
        let [mut sub, mut other] = server.connections();
        let mut idle = server.connect();
        sub.cmd("SUBSCRIBE c");
        other.cmd("CONFIG SET timeout 1");
        assert!(idle.read_to_end().is_empty());
        other = server.connect();
        assert_eq!(other.cmd("PUBLISH c x").integer(), 1);
        assert_eq!(sub.reply().elements()[2].text(), "x");
    });
}

#[test]
fn messages_wait_for_the_end_of_a_large_reply() {
    each_config(|server| {
        if server.resp() == 2 {
            return; // A subscriber of RESP2 gets no replies.
        }
        let [mut sub, mut other] = server.connections();
        for chunk in 0..40 {
            let members: Vec<String> =
                (0..5000).map(|n| format!("member-{chunk}-{n}-{}", "x".repeat(40))).collect();
            other.cmd(&format!("RPUSH list {}", members.join(" ")));
        }
        sub.cmd("SUBSCRIBE c");
        sub.send("LRANGE list 0 -1");
        for n in 0..50 {
            other.cmd(&format!("PUBLISH c {n}"));
        }
        sub.send("PING");
        let mut messages = 0;
        let mut replies = Vec::new();
        while messages < 50 || replies.len() < 2 {
            let reply = sub.reply();
            if reply.elements().len() == 3 {
                assert_eq!(reply.elements()[2].text(), messages.to_string());
                messages += 1;
            } else {
                replies.push(reply);
            }
        }
        assert_eq!(replies[0].elements().len(), 200_000);
        assert_eq!(replies[1].to_string(), "PONG");
    });
}
