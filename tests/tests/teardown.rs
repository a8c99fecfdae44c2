//! A closed connection leaves nothing behind. (S1)

use brisk_testkit::{Launch, assert_reply, each_backend, each_config, wait_until};

#[test]
fn a_closed_connection_leaves_the_registry() {
    each_config(|server| {
        let mut control = server.connect();
        wait_until("the kit's own first connection is closed", || {
            control.info("connected_clients") == "1"
        });
        let descriptors = server.open_fds();
        let many: Vec<_> = (0..200).map(|_| server.connect()).collect();
        server.wait_for_info("connected_clients", |n| n.parse::<usize>().unwrap_or(0) >= 201);
        drop(many);
        wait_until("all are gone", || {
            control.info("connected_clients") == "1" && server.open_fds() <= descriptors
        });
        assert_eq!(control.cmd("CLIENT LIST").text().lines().count(), 1);
    });
}

#[test]
fn incomplete_requests_are_not_executed_at_a_disconnect() {
    each_backend(Launch::subject, |server| {
        let mut disconnected = server.connect();
        disconnected.send_raw(b"SET whole 1\r\n*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$1\r\n");
        disconnected.expect_bytes(b"+OK\r\n");
        drop(disconnected);
        let mut other = server.connect();
        server.wait_for_info("connected_clients", |n| n == "2");
        assert_reply!(other, "EXISTS whole half", "(integer) 1");
    });
}

#[test]
fn a_client_that_left_before_its_wait_began_is_not_waited_for() {
    each_backend(Launch::subject, |server| {
        let mut other = server.connect();
        let text = "abcdefghijklmnop".repeat(40);
        other.call(&["MSET", "{t}a", &text, "{t}b", &text]);
        // Each request takes a fifth of a millisecond, so the end of the connection arrives long before BLPOP is
        // executed.
        let mut requests = b"LCS {t}a {t}b LEN\r\n".repeat(100);
        requests.extend_from_slice(b"BLPOP nothing 0\r\n");
        let mut disconnected = server.connect();
        disconnected.send_raw(&requests);
        disconnected.finish_sending();
        disconnected.read_to_end();
        wait_until("no client waits", || other.info("blocked_clients") == "0");
        wait_until("it is gone", || other.info("connected_clients") == "1");
    });
}
