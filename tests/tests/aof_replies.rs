//! Replies and messages that wait for the append-only file: they are sent in order when the changes that they show have
//! reached the promised durability, no matter what the client does in the meantime.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Server, assert_reply, wait_until};
use brisk_tests::aof::AofHome;
use std::fs;
use std::process::Command;

/// A server whose writes to the file take long, so that replies and messages have to wait.
fn slow_server(home: &AofHome) -> Server {
    let server = home.launch("always").set("notify-keyspace-events", "KEA").start();
    assert_reply!(server.connect(), "DEBUG AOF-FLUSH-SLEEP 20000", "OK");
    server
}

#[test]
fn pipelined_replies_leave_in_order_after_the_file_is_written() {
    let home = AofHome::new();
    let server = slow_server(&home);
    let mut conn = server.connect();
    for round in 0..5 {
        let lines = [
            format!("RPUSH list {round}"),
            "PING".to_owned(),
            "LLEN list".to_owned(),
            "GET nothing".to_owned(),
            "INFO server".to_owned(),
            format!("ECHO {round}"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let replies = conn.pipeline(&lines);
        assert_eq!(replies[0].integer(), round + 1);
        assert_eq!(replies[1].text(), "PONG");
        assert_eq!(replies[2].integer(), round + 1);
        assert!(replies[4].text().contains("tcp_port"));
        assert_eq!(replies[5].text(), round.to_string());
    }
}

/// When a client gets a message about a change, the change is in the file.
#[test]
fn messages_leave_only_after_the_file_is_written() {
    let home = AofHome::new();
    let server = slow_server(&home);
    let [mut writer, mut popper] = server.connections();
    let mut listener = server.connect();
    listener.send("SUBSCRIBE news __keyevent@0__:set");
    listener.reply();
    listener.reply();
    let mut tracker = server.connect();
    tracker.hello(3);
    assert_reply!(tracker, "CLIENT TRACKING ON", "OK");
    tracker.cmd("GET key");
    popper.send("BLPOP queue 0");
    server.wait_for_info("blocked_clients", |count| count == "1");
    let path = home.increment();
    let holds = |text: &str| {
        let bytes = fs::read(&path).unwrap();
        bytes.windows(text.len()).any(|here| here == text.as_bytes())
    };
    writer.send("SET key first-value");
    writer.send("PUBLISH news key");
    writer.send("RPUSH queue second-value");
    // One event and one message, in this order.
    assert!(listener.reply().to_string().contains("\"key\""));
    assert!(holds("first-value"), "a message shows data that is not in the file");
    assert!(listener.reply().to_string().contains("news"));
    assert!(tracker.reply().to_string().contains("invalidate"));
    assert!(popper.reply().to_string().contains("second-value"));
    assert!(holds("second-value"), "given what is not in the file");
    assert_eq!(writer.reply().text(), "OK");
    assert_eq!(writer.reply().integer(), 1);
    assert_eq!(writer.reply().integer(), 1);
}

#[test]
fn a_client_that_ends_its_stream_gets_held_replies_and_a_closed_one_leaves_nothing() {
    let home = AofHome::new();
    let server = slow_server(&home);
    let mut conn = server.connect();
    conn.send_raw(b"SET quit 1\r\nQUIT\r\n");
    assert_eq!(conn.read_to_end(), b"+OK\r\n+OK\r\n");

    let mut conn = server.connect();
    conn.send_raw(b"SET half 1\r\nGET half\r\n");
    conn.finish_sending();
    assert_eq!(conn.read_to_end(), b"+OK\r\n$1\r\n1\r\n");

    let mut conn = server.connect();
    conn.send("CLIENT REPLY OFF");
    conn.send("SET off 1");
    conn.send("CLIENT REPLY ON");
    assert_eq!(conn.reply().text(), "OK");
    conn.send("CLIENT REPLY SKIP");
    conn.send("SET skipped 1");
    assert_reply!(conn, "MGET off skipped", "1) \"1\"\n2) \"1\"");

    // These clients disconnect while their replies are held. Their commands take effect anyway.
    for n in 0..20 {
        server.connect().send(&format!("SET gone:{n} 1"));
    }
    let mut conn = server.connect();
    wait_until("all were executed", || conn.cmd("KEYS gone:*").elements().len() == 20);
    conn.assert_in_step();
}

#[test]
fn large_replies_wait_like_others_and_are_bounded() {
    let home = AofHome::new();
    let server = slow_server(&home);
    let [mut writer, mut reader] = server.connections();
    let value = vec![b'v'; 10 << 20];
    assert_eq!(writer.call(&[b"SET", &b"large"[..], &value]).text(), "OK");
    for _ in 0..3 {
        writer.send("APPEND large x");
        let reply = reader.cmd("GET large").text();
        assert!(reply.len() >= value.len());
        assert!(writer.reply().integer() as usize > value.len());
    }
    // Many replies are due at the same time, but each is created only when there is room for it.
    let before = server.rss();
    writer.send("APPEND large x");
    const READS: usize = 30;
    let requests = "GET large\r\n".repeat(READS);
    reader.send_raw(requests.as_bytes());
    for _ in 0..READS {
        assert!(reader.reply().text().len() > value.len());
    }
    writer.reply();
    assert!(server.rss() < before + (150 << 20), "{} MB more", (server.rss() - before) >> 20);
}

/// Messages in the queue of held replies count toward the output limit of their client.
#[test]
fn output_that_is_kept_back_counts_towards_limits() {
    if subject_is_redis() {
        return; // it does not hold messages for subscribers
    }
    let home = AofHome::new();
    let server = home.launch("always").set("client-output-buffer-limit", "pubsub 1mb 0 0").start();
    let [mut writer, mut listener, mut conn] = server.connections();
    assert!(!listener.cmd("SUBSCRIBE news").is_error());
    assert_reply!(conn, "DEBUG AOF-FLUSH-SLEEP 2000000", "OK");
    let message = "m".repeat(100_000);
    writer.send("SET k v");
    for _ in 0..30 {
        writer.send(&format!("PUBLISH news {message}"));
    }
    wait_until("it is dropped", || conn.info("client_output_buffer_limit_disconnections") == "1");
    assert_reply!(conn, "DEBUG AOF-FLUSH-SLEEP 0", "OK");
    assert_eq!(writer.reply().text(), "OK");
}

/// Each reply to a client with CLIENT DURABILITY DISK is sent after a separate fdatasync. Replies to other clients need
/// none.
#[test]
fn a_client_with_durability_disk_gets_its_reply_after_the_sync() {
    if subject_is_redis() {
        return; // it has no such clients
    }
    let home = AofHome::new();
    let trace = home.path("trace");
    let strace = ["strace", "-f", "-e", "trace=fdatasync", "-o", trace.to_str().unwrap()];
    if !Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|s| s.success())
    {
        brisk_testkit::skipped("no strace on this machine");
        return;
    }
    let launch = home.launch("no").under(&strace);
    let server = launch.start();
    let count = || fs::read_to_string(&trace).unwrap().matches("fdatasync(").count();
    let mut conn = server.connect();
    // The file already has its first bytes before the first command is written.
    let began = count();
    for n in 0..10 {
        assert_reply!(conn, &format!("SET usual {n}"), "OK");
    }
    assert_eq!(count(), began, "no client requested it");
    assert_reply!(conn, "CLIENT DURABILITY DISK", "OK");
    for n in 1..=10 {
        assert_reply!(conn, &format!("SET asked {n}"), "OK");
        assert!(count() >= began + n, "{} for {n}", count());
    }
    // A read of synced data does not wait, and causes no fdatasync.
    let before = count();
    assert_reply!(conn, "GET asked", "\"10\"");
    assert_eq!(count(), before);
    // A change by another client is also shown only after it has been synced.
    let mut other = server.connect();
    assert_reply!(other, "SET later 1", "OK");
    let mut reader = Conn::tcp(&server.address());
    assert_reply!(reader, "CLIENT DURABILITY DISK", "OK");
    assert_reply!(reader, "GET later", "\"1\"");
    assert!(count() > before);
    // SHUTDOWN is used because a signal would be sent to strace.
    conn.send("SHUTDOWN NOSAVE");
    assert_eq!(conn.read_to_end(), b"");
    server.kill();
}
