//! Connections by the thousand, and the limit on their number. (S2, S3)

use brisk_testkit::{Conn, Launch, assert_reply, each_backend, wait_until};

#[test]
fn a_storm_of_connections_is_served_while_others_work() {
    const STORM: usize = 3_000;
    each_backend(Launch::subject, |server| {
        let mut working = server.connect();
        // The limit applies from the next iteration on.
        assert_reply!(working, "CONFIG SET max-new-connections-per-cycle 1", "OK");
        let address = server.address();
        let storm = std::thread::spawn(move || {
            let mut open: Vec<Conn> = (0..STORM).map(|_| Conn::tcp(&address)).collect();
            for conn in &mut open {
                conn.send_raw(b"PING\r\n");
            }
            for conn in &mut open {
                conn.expect_bytes(b"+PONG\r\n");
            }
        });
        let mut served = 0u64;
        while !storm.is_finished() {
            served += 1;
            assert_eq!(working.cmd("INCR n").integer(), served as i64);
        }
        storm.join().unwrap();
        assert!(served > 0);
        wait_until("the storm has passed", || working.info("connected_clients") == "1");
    });
}

#[test]
fn short_connections_are_all_served() {
    each_backend(Launch::subject, |server| {
        for _ in 0..2_000 {
            let mut conn = server.connect();
            conn.send_raw(b"PING\r\n");
            conn.expect_bytes(b"+PONG\r\n");
        }
        let mut control = server.connect();
        wait_until("all are closed", || control.info("connected_clients") == "1");
        // The test kit also connected to check whether the server replies.
        let received: u64 = control.info("total_connections_received").parse().unwrap();
        assert!((2_001..2_100).contains(&received), "{received}");
    });
}

#[test]
fn maxclients_replies_with_an_error_and_frees_places_again() {
    let launch = || Launch::subject().set("maxclients", "10");
    each_backend(launch, |server| {
        let mut kept: Vec<Conn> = Vec::new();
        wait_until("the kit's own first connection is closed", || {
            kept.clear();
            kept.push(server.connect());
            kept[0].info("connected_clients") == "1"
        });
        for _ in 1..10 {
            let mut conn = server.connect();
            assert_reply!(conn, "PING", "PONG");
            kept.push(conn);
        }
        let mut refused = server.connect();
        let words = refused.read_to_end();
        assert_eq!(String::from_utf8(words).unwrap(), "-ERR max number of clients reached\r\n");
        assert_eq!(kept[0].info("rejected_connections"), "1");
        kept.pop();
        wait_until("a place is free", || {
            Conn::try_tcp(&server.address())
                .and_then(|mut conn| conn.try_cmd("PING"))
                .is_ok_and(|reply| reply.to_string() == "PONG")
        });
        assert_reply!(kept[0], "CONFIG SET maxclients 20", "OK");
        let more: Vec<Conn> = (0..9).map(|_| server.connect()).collect();
        for mut conn in more {
            assert_reply!(conn, "PING", "PONG");
        }
    });
}
