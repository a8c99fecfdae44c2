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
