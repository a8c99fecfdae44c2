//! What a closing connection leaves behind: nothing. (S1)

use brisk_testkit::{Launch, assert_reply, each_backend, each_config};

#[test]
fn a_closed_connection_leaves_the_registry() {
    each_config(|server| {
        let mut control = server.connect();
        let before = control.info("connected_clients");
        let descriptors = server.open_fds();
        let many: Vec<_> = (0..200).map(|_| server.connect()).collect();
        server.wait_for_info("connected_clients", |n| n.parse::<usize>().unwrap_or(0) >= 201);
        drop(many);
        brisk_testkit::wait_until("all are gone", || {
            control.info("connected_clients") == before && server.open_fds() <= descriptors
        });
        assert_eq!(control.cmd("CLIENT LIST").text().lines().count(), 1);
    });
}

#[test]
fn a_closed_connection_waits_for_nothing() {
    each_config(|server| {
        let [mut gone, mut stays, mut producer] = server.connections();
        gone.send("BLPOP q 0");
        server.wait_for_info("blocked_clients", |n| n == "1");
        stays.send("BLPOP q 0");
        server.wait_for_info("blocked_clients", |n| n == "2");
        drop(gone);
        server.wait_for_info("blocked_clients", |n| n == "1");
        assert_reply!(producer, "RPUSH q x", "(integer) 1");
        assert_eq!(stays.reply().to_string(), "1) \"q\"\n2) \"x\"");
    });
}

#[test]
fn a_closed_subscriber_is_not_counted() {
    each_config(|server| {
        let [mut subscriber, mut publisher] = server.connections();
        subscriber.send("SUBSCRIBE a b");
        subscriber.reply();
        subscriber.reply();
        subscriber.send("PSUBSCRIBE c*");
        subscriber.reply();
        assert_reply!(publisher, "PUBLISH a m", "(integer) 1");
        drop(subscriber);
        server.wait_for_info("pubsub_channels", |n| n == "0");
        assert_reply!(publisher, "PUBLISH a m", "(integer) 0");
        assert_reply!(publisher, "PUBLISH c1 m", "(integer) 0");
        assert_reply!(publisher, "PUBSUB NUMPAT", "(integer) 0");
    });
}

#[test]
fn a_transaction_cut_off_by_a_disconnect_does_nothing() {
    each_config(|server| {
        let [mut gone, mut other] = server.connections();
        let replies = gone.pipeline(&["WATCH k", "MULTI", "SET k v"]);
        assert_eq!(replies[2].to_string(), "QUEUED");
        drop(gone);
        server.wait_for_info("connected_clients", |n| n == "2"); // `other` and the one that asks
        assert_reply!(other, "EXISTS k", "(integer) 0");
        assert_reply!(other, "SET k w", "OK");
    });
}

#[test]
fn bytes_cut_off_by_a_disconnect_are_no_command() {
    each_backend(Launch::subject, |server| {
        let mut gone = server.connect();
        gone.send_raw(b"SET whole 1\r\n*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$1\r\n");
        gone.expect_bytes(b"+OK\r\n");
        drop(gone);
        let mut other = server.connect();
        server.wait_for_info("connected_clients", |n| n == "2");
        assert_reply!(other, "EXISTS whole half", "(integer) 1");
    });
}
