//! Commands on many elements: other clients continue, and no client sees an intermediate state.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, assert_reply, each_config, wait_until};
use brisk_tests::with_workers;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Enough elements to make every command long.
const MANY: usize = 50_000;

/// Enough places to make searches long.
const PLACES: usize = 12_000;

/// Adds members `m<from>` and so on to a set.
fn add(conn: &mut Conn, key: &str, from: usize, count: usize) {
    for start in (from..from + count).step_by(1000) {
        let mut words = vec!["SADD".to_owned(), key.to_owned()];
        words.extend((start..(start + 1000).min(from + count)).map(|i| format!("m{i}")));
        conn.call(&words);
    }
}

#[test]
fn long_commands_reply_in_pipeline_order() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        add(&mut conn, "a", 0, MANY);
        add(&mut conn, "b", MANY / 2, MANY);
        let replies = conn.pipeline(&[
            "SET before 1",
            "SUNIONSTORE d a b",
            "SCARD d",
            "SINTERCARD 2 a b",
            "SADD a new",
            "SDIFFSTORE d a b",
            "SISMEMBER d new",
            "SORT a",
            "SINTER a b",
            "GET before",
        ]);
        let shown: Vec<String> = replies.iter().map(ToString::to_string).collect();
        assert_eq!(shown[0], "OK");
        assert_eq!(shown[1], format!("(integer) {}", MANY + MANY / 2));
        assert_eq!(shown[2], shown[1]);
        assert_eq!(shown[3], format!("(integer) {}", MANY / 2));
        assert_eq!(shown[5], format!("(integer) {}", MANY / 2 + 1));
        assert_eq!(shown[6], "(integer) 1");
        assert!(shown[7].starts_with("(error) ERR One or more scores"), "{}", shown[7]);
        assert_eq!(replies[8].elements().len(), MANY / 2);
        assert_eq!(shown[9], "\"1\"");
        assert_reply!(other, "EXISTS a b d", "(integer) 3");
        conn.assert_in_step();
    });
}

#[test]
fn every_member_of_a_long_reply_arrives_once() {
    each_config(|server| {
        let mut conn = server.connect();
        add(&mut conn, "a", 0, MANY);
        add(&mut conn, "b", MANY / 2, MANY);
        let reply = conn.cmd("SUNION a b");
        let mut members: Vec<String> = reply.elements().iter().map(|m| m.text()).collect();
        members.sort_unstable();
        members.dedup();
        assert_eq!(members.len(), MANY + MANY / 2);
        let sorted = conn.cmd("SORT a ALPHA DESC LIMIT 0 2");
        assert_eq!(sorted.to_string(), "1) \"m9999\"\n2) \"m9998\"");
        assert_eq!(conn.cmd("KEYS *").elements().len(), 2);
    });
}

#[test]
fn long_commands_give_the_same_results_inside_a_transaction() {
    each_config(|server| {
        let mut conn = server.connect();
        let place = |i: usize| format!("{}.{:05} {}.5 p{i}", i % 4, i * 7919 % PLACES, i % 40);
        for batch in (0..PLACES).map(place).collect::<Vec<_>>().chunks(1000) {
            conn.cmd(&format!("GEOADD g {}", batch.join(" ")));
            conn.cmd(&format!("RPUSH l {}", batch.join(" ")));
        }
        let Reply::Bulk(payload) = conn.cmd("DUMP g") else { panic!("no payload") };
        let mut broken = payload.clone();
        broken[PLACES] ^= 1;
        let plain = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let commands: [Vec<Vec<u8>>; 8] = [
            plain("ZRANGESTORE d g 5 -5 REV"),
            plain("GEOSEARCHSTORE d g FROMMEMBER p77 BYRADIUS 3000 km"),
            plain("GEOSEARCH g FROMLONLAT 2 20 BYBOX 500 3000 km ASC WITHDIST"),
            plain("GEORADIUS g 2 20 3000 km STOREDIST d"),
            plain("LPOS l p77 RANK -1 COUNT 2"),
            plain("LPOS l nothing"),
            [plain("RESTORE d 0"), vec![payload, b"REPLACE".to_vec()]].concat(),
            [plain("RESTORE d 0"), vec![broken, b"REPLACE".to_vec()]].concat(),
        ];
        for words in &commands {
            let line = String::from_utf8_lossy(&words[0]);
            let got = (conn.call(words), conn.cmd("DUMP d"));
            conn.cmd("MULTI");
            conn.call(words);
            let at_once = conn.cmd("EXEC");
            assert!(*at_once.elements()[0] == got.0, "{line}: another reply");
            assert!(conn.cmd("DUMP d") == got.1, "{line}: another value");
        }
        assert_reply!(conn, "ZCARD d", format!("(integer) {PLACES}"));
        conn.assert_in_step();
    });
}

/// A writer continuously adds to a source. Each union must contain everything that was acknowledged before the request
/// was sent, and nothing that was sent after its reply.
#[test]
fn a_stored_result_is_consistent_during_writes_to_its_sources() {
    let server = with_workers(2).start();
    let mut conn = server.connect();
    add(&mut conn, "a", 0, MANY);
    add(&mut conn, "b", 0, MANY);
    let (sent, acknowledged) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = server.connect();
            while !done.load(Ordering::SeqCst) {
                let number = sent.fetch_add(1, Ordering::SeqCst);
                assert_eq!(writer.cmd(&format!("SADD a new{number}")).integer(), 1);
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        });
        wait_until("the writer writes", || acknowledged.load(Ordering::SeqCst) > 0);
        for _ in 0..10 {
            let before = acknowledged.load(Ordering::SeqCst);
            let stored = conn.cmd("SUNIONSTORE d a b").integer() as usize - MANY;
            assert!(before <= stored, "{before} were there, {stored} were stored");
            assert!(stored <= sent.load(Ordering::SeqCst));
            assert_eq!(conn.cmd("SCARD d").integer() as usize, stored + MANY);
        }
        done.store(true, Ordering::SeqCst);
    });
    // The slots that were frozen for the command are released.
    assert_reply!(conn, "SADD a last", "(integer) 1");
}

#[test]
fn a_result_is_stored_even_if_its_client_has_disconnected() {
    let server = with_workers(1).start();
    let mut conn = server.connect();
    add(&mut conn, "a", 0, MANY);
    let mut disconnected = server.connect();
    disconnected.send("SUNIONSTORE d a nothing");
    wait_until("the command has arrived", || {
        // The test's own commands are listed too, so look for the request of the other client.
        conn.cmd("CLIENT LIST").text().contains("cmd=sunionstore")
            || conn.cmd("EXISTS d").integer() == 1
    });
    drop(disconnected);
    wait_until("it is stored", || conn.cmd("SCARD d").integer() as usize == MANY);
    wait_until("the client is gone", || conn.info("connected_clients") == "1");
}

#[test]
fn a_pause_holds_back_what_is_to_be_stored() {
    if subject_is_redis() {
        return; // it runs nothing else while a command is running
    }
    let server = with_workers(1).start();
    let [mut conn, mut other] = server.connections();
    add(&mut conn, "a", 0, 20 * MANY);
    // Both are in one batch, so the pause begins while the command is running.
    conn.send("SUNIONSTORE d a nothing");
    other.cmd("CLIENT PAUSE 100000 WRITE");
    let there = other.cmd("EXISTS d").integer();
    assert!(!conn.has_reply_within(std::time::Duration::from_millis(20)) || there == 1);
    other.cmd("CLIENT UNPAUSE");
    assert_eq!(conn.reply().integer() as usize, 20 * MANY);
}

#[test]
fn long_commands_are_counted_once_with_all_their_time() {
    each_config(|server| {
        let mut conn = server.connect();
        add(&mut conn, "a", 0, 4 * MANY);
        conn.cmd("CONFIG SET slowlog-log-slower-than 2000");
        conn.cmd("CONFIG RESETSTAT");
        conn.cmd("SLOWLOG RESET");
        conn.cmd("SUNIONSTORE d a nothing m1 m2");
        conn.cmd("SORT a ALPHA LIMIT 0 1");
        conn.cmd("SORT a LIMIT 0 1");
        let stats = conn.cmd("INFO commandstats").text();
        let line = |name: &str| {
            let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{name}:")));
            line.unwrap_or_else(|| panic!("no {name} in {stats}")).to_owned()
        };
        assert!(line("sunionstore").contains("calls=1,"), "{stats}");
        assert!(line("sort").contains("calls=2,"), "{stats}");
        assert!(line("sort").contains("failed_calls=1"), "{stats}");
        assert_eq!(conn.info("total_error_replies"), "1");
        let slow = conn.cmd("SLOWLOG GET 10").to_string();
        assert!(slow.contains("\"ALPHA\""), "{slow}");
    });
}
