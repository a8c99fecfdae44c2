//! `repl-diskless-load`: the dataset that a primary sends, and the previous dataset of the replica.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::digest::assert_same;
use brisk_testkit::proxy::{Direction, Disconnect};
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::writers::wait_until_nothing_expires;
use brisk_testkit::{Conn, Kind, Launch, Proxy, Server, assert_reply, wait_until};
use brisk_tests::acted::{ID, accept_psync, listen};
use brisk_tests::links::{Node, wait_until_caught_up, while_written_to};
use brisk_tests::snapshots::take_disk_away;
use std::io::Write;
use std::net::Shutdown;

const FORMS: [&str; 3] = ["disabled", "on-empty-db", "swapdb"];
const LOADING: &str = "(error) LOADING Redis is loading the dataset in memory";

/// With any setting, any previous dataset and any sender, primary and replica have the same data in the end.
#[test]
fn every_form_ends_with_the_data_of_the_primary() {
    if subject_is_redis() {
        return;
    }
    std::thread::scope(|scope| {
        for primary in [Kind::Brisk, Kind::Redis] {
            for streams in ["yes", "no"] {
                scope.spawn(move || every_form_of(primary, streams));
            }
        }
    });
}

fn every_form_of(primary: Kind, streams: &str) {
    let primary = Node::start(primary, |launch| launch.set("repl-diskless-sync", streams));
    let forms: Vec<(&str, bool)> =
        FORMS.into_iter().flat_map(|form| [(form, false), (form, true)]).collect();
    let replicas: Vec<Node> = forms
        .iter()
        .map(|(form, has_keys)| {
            let node = Node::start(Kind::Brisk, |launch| launch.set("repl-diskless-load", form));
            if *has_keys {
                let mut conn = node.server.connect();
                conn.cmd("SET foreign 1");
                conn.cmd("SELECT 3");
                conn.cmd("HSET foreign f 1");
            }
            let is_read = *form == "disabled" || (*form == "on-empty-db" && *has_keys);
            if !is_read {
                take_disk_away(&node.server);
            }
            node
        })
        .collect();
    while_written_to(&primary.server, || {
        replicas.iter().for_each(|replica| replica.follow(primary.server.port()));
        replicas.iter().for_each(Node::wait_until_it_follows);
    });
    wait_until_nothing_expires(&primary.server.address());
    for replica in &replicas {
        wait_until_caught_up(&primary.server, &replica.server);
        assert_same(&primary.holder(), &replica.holder());
    }
    let to_parser = |replica: &Node| replica.server.log().contains("to parser");
    let seen: Vec<bool> = replicas.iter().map(to_parser).collect();
    assert_eq!(seen, [false, false, true, false, true, true]);
}

/// A replica that needs another full copy, and has an older state of the dataset.
struct Again {
    primary: Server,
    link: Proxy,
    replica: Node,
}

impl Again {
    fn start(kind: Kind, form: &str) -> Again {
        let primary = Kind::Brisk.launch().set("repl-backlog-size", "16kb").start();
        let link = Proxy::to(&primary.address());
        let replica = Node::start(kind, |launch| launch.set("repl-diskless-load", form));
        replica.follow(link.port());
        replica.wait_until_it_follows();
        let mut conn = primary.connect();
        for n in 0..2000 {
            conn.cmd(&format!("SET key:{n} old"));
        }
        wait_until_caught_up(&primary, &replica.server);
        Again { primary, link, replica }
    }

    /// Slows loading down on the replica, so that the load does not end.
    fn begin(&self) -> Conn {
        let mut conn = self.replica.server.connect();
        let events = self.replica.kind == Kind::Redis;
        let more = if events { " loading-process-events-interval-bytes 1024" } else { "" };
        assert_reply!(conn, &format!("CONFIG SET key-load-delay 10000{more}"), "OK");
        self.link.refuse(true);
        self.link.cut(Disconnect::Reset);
        let mut writer = self.primary.connect();
        for n in 0..2000 {
            writer.cmd(&format!("SET key:{n} new"));
        }
        // While loading, Redis replies to clients once per KiB of the dataset. These keys make the dataset large enough
        // for all commands of the test.
        let padding = "p".repeat(40);
        for n in 0..4000 {
            writer.cmd(&format!("SET padding:{n} {padding}"));
        }
        let code = "#!lua name=l\nredis.register_function{function_name='f', \
                    callback=function() return 7 end, flags={'no-writes'}}";
        assert_eq!(writer.call(&["FUNCTION", "LOAD", code]).to_string(), "\"l\"");
        self.link.refuse(false);
        wait_until("the dataset to be loaded", || conn.info("async_loading") == "1");
        conn
    }
}

#[test]
fn an_older_state_is_served_until_the_new_one_is_complete() {
    if subject_is_redis() {
        return;
    }
    for kind in [Kind::Redis, Kind::Brisk] {
        let again = Again::start(kind, "swapdb");
        let mut conn = again.begin();
        assert_eq!(conn.info("loading"), "0");
        assert_eq!(conn.info("master_link_status"), "down");
        assert_eq!(conn.info("master_sync_in_progress"), "1");
        wait_until("some of it", || conn.info("loading_loaded_bytes") != "0");
        assert_reply!(conn, "PING", "PONG");
        assert_reply!(conn, "FCALL_RO f 0", "(error) ERR Function not found");
        assert_reply!(conn, "GET key:1", "\"old\"");
        assert_reply!(conn, "DBSIZE", "(integer) 2000");
        for refused in ["BGSAVE", "SAVE", "REPLICAOF NO ONE", "PSYNC ? -1", "BGREWRITEAOF"] {
            assert_eq!(conn.cmd(refused).to_string(), LOADING, "{kind}: {refused}");
        }
        for pair in ["appendonly yes", "repl-diskless-load disabled"] {
            assert_eq!(conn.cmd(&format!("CONFIG SET {pair}")).to_string(), LOADING, "{kind}");
        }
        assert_reply!(conn, "CONFIG SET dbfilename dump.rdb", "OK");
        assert_reply!(conn, "CONFIG SET replica-serve-stale-data no", "OK");
        assert!(conn.cmd("GET key:1").to_string().starts_with("(error) MASTERDOWN"));
        assert_reply!(conn, "CONFIG SET replica-serve-stale-data yes", "OK");
        if kind == Kind::Brisk {
            // No client sees a part of the new dataset.
            assert_reply!(conn, "MULTI", "OK");
            assert_reply!(conn, "GET key:1", "QUEUED");
            assert_reply!(conn, "GET key:1999", "QUEUED");
            assert_reply!(conn, "EXEC", "1) \"old\"\n2) \"old\"");
        }
        let mut watching = again.replica.server.connect();
        assert_reply!(watching, "WATCH key:7", "OK");
        assert_reply!(watching, "MULTI", "OK");
        assert_reply!(watching, "GET key:7", "QUEUED");
        let mut tracking = again.replica.server.connect();
        tracking.hello(3);
        assert_reply!(tracking, "CLIENT TRACKING on", "OK");
        assert_reply!(tracking, "GET key:8", "\"old\"");
        assert_reply!(conn, "CONFIG SET key-load-delay 0", "OK");
        again.replica.wait_until_it_follows();
        assert_reply!(conn, "GET key:1", "\"new\"");
        assert_reply!(conn, "FCALL_RO f 0", "(integer) 7");
        assert_eq!(conn.info("async_loading"), "0");
        assert_reply!(watching, "EXEC", "(nil)");
        assert_eq!(tracking.reply().to_string(), "1) \"invalidate\"\n2) (nil)");
        wait_until_caught_up(&again.primary, &again.replica.server);
        assert_same(
            &Node { kind: Kind::Brisk, server: again.primary }.holder(),
            &again.replica.holder(),
        );
    }
}

#[test]
fn no_client_sees_a_part_of_the_dataset_when_the_link_breaks() {
    if subject_is_redis() {
        return;
    }
    let again = Again::start(Kind::Brisk, "swapdb");
    again.link.refuse(true);
    again.link.cut(Disconnect::Reset);
    let mut writer = again.primary.connect();
    for n in 0..2000 {
        writer.cmd(&format!("SET key:{n} new"));
    }
    // Cut the connection within the dataset, which is larger than this.
    again.link.cut_next_after(Direction::ToClient, 20_000, Disconnect::Reset);
    again.link.refuse(false);
    let mut conn = again.replica.server.connect();
    let look = ["MULTI", "DBSIZE", "GET key:0", "GET key:1999", "EXEC"];
    wait_until("the new state", || {
        let seen = conn.pipeline(&look)[4].to_string();
        let of = |state: &str| format!("1) (integer) 2000\n2) \"{state}\"\n3) \"{state}\"");
        assert!(seen == of("old") || seen == of("new"), "{seen}");
        seen == of("new")
    });
    let log = again.replica.server.log();
    assert_eq!(log.matches("Discarding temporary DB in background").count(), 1, "{log}");
}

/// A dataset with one key, of RDB version 9, whose checksum is not checked. Tests truncate it.
const ONE_KEY: &[u8] = b"REDIS0009\xfe\x00\x00\x03new\x011\xff\0\0\0\0\0\0\0\0";
const MARK: &str = "abcdefghijklmnopqrstuvwxyzabcdefghijklmn";

/// Invalid payloads of a primary: the announcement, the bytes, and the text in the log.
fn broken() -> Vec<(String, Vec<u8>, &'static str)> {
    let mark = format!("$EOF:{MARK}\r\n");
    let with = |end: &[u8]| [ONE_KEY, end].concat();
    let sum = [&ONE_KEY[..ONE_KEY.len() - 1], b"x"].concat();
    vec![
        (mark.clone(), ONE_KEY[..20].to_vec(), "Connection with master lost"),
        // The dataset is complete, but the EOF mark is missing.
        (mark.clone(), ONE_KEY.to_vec(), "Connection with master lost"),
        (mark.clone(), with(&MARK.as_bytes()[..39]), "Connection with master lost"),
        // The mark comes before the dataset is complete.
        (mark.clone(), [&ONE_KEY[..20], MARK.as_bytes()].concat(), "the data ends at byte"),
        (mark, [&sum[..], MARK.as_bytes()].concat(), "RDB CRC error"),
        (format!("${}\r\n", ONE_KEY.len()), ONE_KEY[..20].to_vec(), "Connection with master lost"),
        (format!("${}\r\n", ONE_KEY.len()), sum, "RDB CRC error"),
        ("-ERR no\r\n".to_owned(), vec![], "MASTER aborted replication with an error"),
    ]
}

#[test]
fn an_incomplete_dataset_is_discarded() {
    if subject_is_redis() {
        return;
    }
    // The cases run concurrently, because each mostly waits for a replica that reconnects once per second.
    std::thread::scope(|scope| {
        for form in FORMS {
            for has_keys in [true, false] {
                scope.spawn(move || believes_nothing(form, has_keys));
            }
        }
    });
}

fn believes_nothing(form: &str, has_keys: bool) {
    let (listener, port) = listen();
    let server = Launch::subject().set("repl-diskless-load", form).start();
    let mut conn = server.connect();
    if has_keys {
        conn.cmd("SET kept 1");
    }
    let mut keys = i64::from(has_keys);
    assert_reply!(conn, &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
    for (head, bytes, said) in broken() {
        let before = server.log().len();
        let (mut stream, _) = accept_psync(&listener);
        let place = format!("+FULLRESYNC {ID} 100\r\n");
        stream.write_all(place.as_bytes()).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        // The replica may close the connection before the end.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        wait_until(said, || server.log()[before..].contains(said));
        // With a file, the replica discards the previous dataset before it loads the file.
        let by_file = form == "disabled" || (form == "on-empty-db" && keys > 0);
        let is_loaded = said == "RDB CRC error" || said.starts_with("the data ends");
        if by_file && is_loaded {
            keys = 0;
        }
        wait_until("what is left", || {
            conn.cmd("DBSIZE").to_string() == format!("(integer) {keys}")
        });
        assert_reply!(conn, "GET new", "(nil)");
    }
    // A complete payload is loaded.
    let (mut stream, _) = accept_psync(&listener);
    let text = format!("+FULLRESYNC {ID} 100\r\n$EOF:{MARK}\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    stream.write_all(&[ONE_KEY, MARK.as_bytes()].concat()).unwrap();
    wait_until("the new key", || conn.cmd("GET new").to_string() == "\"1\"");
    assert_reply!(conn, "DBSIZE", "(integer) 1");
    server.wait_for_info("slave_repl_offset", |offset| offset == "100");
}
