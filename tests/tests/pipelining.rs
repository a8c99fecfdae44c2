//! Commands that are sent together get their replies in order, no matter how the bytes are split. (P1)
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::{Launch, assert_reply, each_backend, each_config};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn inline_commands_with_quotes_get_replies_in_order() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.send_raw(b"INCR 'some_key'\r\nINCR 'some_key'\r\n");
        conn.expect_bytes(b":1\r\n:2\r\n");
        assert_reply!(conn, "GET some_key", "\"2\"");
    });
}

#[test]
fn netcat_gets_both_replies_of_two_lines() {
    each_backend(Launch::subject, |server| {
        // -N shuts down the sending direction at the end of the input. -w sets a timeout of 20 s.
        let mut netcat = Command::new("nc")
            .args(["-N", "-w", "20", "127.0.0.1", &server.port().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("nc, of the Debian package netcat-openbsd");
        let mut input = netcat.stdin.take().unwrap();
        input.write_all(b"INCR 'some_key'\r\nINCR 'some_key'\r\n").unwrap();
        drop(input);
        let output = netcat.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), ":1\r\n:2\r\n");
    });
}

#[test]
fn a_thousand_requests_in_one_write_get_a_thousand_replies_in_order() {
    each_config(|server| {
        let mut conn = server.connect();
        let lines: Vec<String> = (0..1000).map(|i| format!("ECHO {i}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        for (i, reply) in conn.pipeline(&lines).iter().enumerate() {
            assert_eq!(reply.text(), i.to_string());
        }
    });
}

#[test]
fn requests_cut_at_every_byte_are_understood() {
    each_config(|server| {
        let mut conn = server.connect();
        let request =
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
        for cut in 1..request.len() {
            conn.send_raw(&request[..cut]);
            if let Some(whole_replies) = complete_before(cut) {
                // Wait for the replies to complete requests, so that the rest arrives in a separate
                // segment.
                conn.expect_bytes(&REPLIES[..whole_replies]);
                conn.send_raw(&request[cut..]);
                conn.expect_bytes(&REPLIES[whole_replies..]);
            } else {
                conn.send_raw(&request[cut..]);
                conn.expect_bytes(REPLIES);
            }
        }
    });
}

const REPLIES: &[u8] = b"+OK\r\n+PONG\r\n$4\r\na\r\nb\r\n";

/// The number of bytes of [`REPLIES`] that the server sends after the first `cut` bytes of the request, if any.
fn complete_before(cut: usize) -> Option<usize> {
    match cut {
        0..31 => None,
        31..37 => Some(5),
        _ => Some(12),
    }
}

#[test]
fn an_error_in_the_middle_does_not_disturb_its_neighbors() {
    each_config(|server| {
        let mut conn = server.connect();
        let replies = conn.pipeline(&["SET k v", "INCR k", "nosuch a", "GET", "GET k"]);
        let texts: Vec<String> = replies.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "OK",
                "(error) ERR value is not an integer or out of range",
                "(error) ERR unknown command 'nosuch', with args beginning with: 'a' ",
                "(error) ERR wrong number of arguments for 'get' command",
                "\"v\"",
            ]
        );
    });
}

#[test]
fn replies_follow_even_if_the_client_stops_sending() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.send_raw(b"PING\r\nECHO a\r\n");
        conn.finish_sending();
        assert_eq!(conn.read_to_end(), b"+PONG\r\n$1\r\na\r\n");
    });
}

#[test]
fn the_unix_socket_serves_like_tcp() {
    each_config(|server| {
        let mut conn = server.connect_unix();
        conn.send_raw(b"SET 'a b' \"\\x00\\r\"\r\nGET 'a b'\r\n");
        conn.expect_bytes(b"+OK\r\n$2\r\n\x00\r\r\n");
    });
}
