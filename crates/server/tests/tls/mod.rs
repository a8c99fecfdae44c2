//! Tests of TLS: handshakes, client certificates, long and many values, hostile bytes, slow readers.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails at that point")]

mod certificates;
mod client;
mod cluster;
mod console;
mod hostile;
mod http;
mod link;
mod settings;

use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{each_backend, wait_until, words};
use certificates::Authority;
use client::{Client, Site};
use rustls::ProtocolVersion;
use rustls::version::{TLS12, TLS13};
use std::io::{ErrorKind, Write};

#[test]
fn commands_work_over_both_tls_versions_next_to_the_plain_port() {
    let site = Site::new();
    each_backend(
        || site.launch(),
        |server| {
            for (version, named) in
                [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)]
            {
                let mut client = site.try_client(None, &[version]).unwrap();
                assert_eq!(client.stream.conn.protocol_version(), Some(named));
                assert_eq!(client.request(&["SET", "k", "over tls"]).to_string(), "OK");
                assert_eq!(server.connect().cmd("GET k").to_string(), "\"over tls\"");
                assert_eq!(client.request(&["GET", "k"]).to_string(), "\"over tls\"");
            }
        },
    );
}

#[test]
fn the_plain_port_may_be_left_out() {
    let site = Site::new();
    let server = site.launch().set("port", "0").start();
    assert_eq!(site.client().request(&["ECHO", "x"]).to_string(), "\"x\"");
    assert!(brisk_testkit::Conn::try_tcp(&server.address()).is_err());
}

#[test]
fn all_workers_serve_tls() {
    let site = Site::new();
    let _server = site.launch().set("io-threads", "4").start();
    let mut clients: Vec<_> = (0..40).map(|_| site.client()).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        let word = index.to_string();
        assert_eq!(client.request(&["ECHO", &word]).to_string(), format!("\"{word}\""));
    }
}

#[test]
fn a_pipeline_of_ten_thousand_gets_replies_in_order() {
    let site = Site::new();
    each_backend(
        || site.launch(),
        |_| {
            let mut client = site.client();
            let mut requests = Vec::new();
            for index in 0..10_000 {
                words::encode_into(&mut requests, &["ECHO".to_owned(), index.to_string()]);
            }
            client.send(&requests);
            for index in 0..10_000 {
                assert_eq!(client.reply().to_string(), format!("\"{index}\""));
            }
        },
    );
}

#[test]
fn requests_may_be_cut_anywhere_into_records() {
    let site = Site::new();
    let _server = site.start();
    let mut client = site.client();
    for byte in words::encode(&["ECHO", "in pieces"]) {
        client.send(&[byte]);
    }
    assert_eq!(client.reply().to_string(), "\"in pieces\"");
}

#[test]
fn a_value_of_ten_megabytes_is_written_and_read() {
    let site = Site::new();
    each_backend(
        || site.launch(),
        |_| {
            let value: Vec<u8> = (0..10 * 1024 * 1024u32).map(|n| (n % 251) as u8).collect();
            for versions in [&[&TLS12], &[&TLS13]] {
                let mut client = site.try_client(None, versions).unwrap();
                client.send(&words::encode(&[b"SET".as_slice(), b"big", &value]));
                assert_eq!(client.reply().to_string(), "OK");
                client.send(&words::encode(&["GET", "big"]));
                assert!(
                    client.reply() == Reply::Bulk(value.clone()),
                    "the value came back changed"
                );
            }
        },
    );
}

#[test]
fn clients_present_certificates_as_the_server_requires() {
    let site = Site::new();
    let ours = site.authority.issue();
    let foreign = Authority::new("somebody else").issue();
    for (demand, without, with_foreign) in
        [("yes", false, false), ("optional", true, false), ("no", true, true)]
    {
        let _server = site.launch().set("tls-auth-clients", demand).start();
        for version in [&TLS12, &TLS13] {
            let connects = |identity| site.try_client(identity, &[version]).is_ok();
            assert!(connects(Some(&ours)), "{demand}, a good certificate");
            assert_eq!(connects(None), without, "{demand}, no certificate");
            assert_eq!(connects(Some(&foreign)), with_foreign, "{demand}, a foreign certificate");
        }
    }
}

#[test]
fn a_client_rejects_a_server_certificate_from_another_ca() {
    let site = Site::new();
    let server = site.start();
    let config = client::config(&Authority::new("other"), None, rustls::ALL_VERSIONS);
    let error = client::Client::connect(site.port.number(), config).err().unwrap();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    wait_until("a line in the log", || {
        server.log().contains("Error accepting a client connection: ")
    });
}

#[test]
fn closing_the_sending_side_still_gets_all_replies_and_a_notice() {
    if subject_is_redis() {
        return; // Redis closes without a notice
    }
    let site = Site::new();
    each_backend(
        || site.launch(),
        |_| {
            let mut client = site.client();
            let request = words::encode(&["ECHO", "last words"]);
            client.send(&request.repeat(1000));
            client.stream.conn.send_close_notify();
            client.stream.flush().unwrap();
            let replies = client.read_to_end().unwrap();
            assert_eq!(replies, b"$10\r\nlast words\r\n".repeat(1000));
        },
    );
}

#[test]
fn requests_of_several_rounds_before_the_close_all_get_replies() {
    if subject_is_redis() {
        return; // Redis closes without executing them
    }
    let site = Site::new();
    each_backend(
        || site.launch(),
        |_| {
            let mut client = site.client();
            let text = "abcdefghijklmnop".repeat(40);
            client.request(&["MSET", "{t}a", &text, "{t}b", &text]);
            // Each command takes a fifth of a millisecond, and half of the commands together take longer than a
            // session's turn.
            client.send(&words::encode(&["LCS", "{t}a", "{t}b", "LEN"]).repeat(50));
            client.stream.conn.send_close_notify();
            client.stream.flush().unwrap();
            assert_eq!(client.read_to_end().unwrap(), b":640\r\n".repeat(50));
        },
    );
}

#[test]
fn a_client_that_half_closes_after_a_blocking_command_is_dropped() {
    /// How the client closes the connection after the command has begun to wait.
    type End = fn(&mut Client);
    let ends: [End; 3] = [
        |client| client.stream.conn.send_close_notify(),
        |client| {
            client.stream.conn.writer().write_all(b"PING\r\n").unwrap();
            client.stream.conn.send_close_notify();
        },
        |client| client.stream.sock.shutdown(std::net::Shutdown::Write).unwrap(),
    ];
    let site = Site::new();
    each_backend(
        || site.launch(),
        |server| {
            let mut control = server.connect();
            for end in ends {
                let mut client = site.client();
                client.send(&words::encode(&["BLPOP", "nothing", "0"]));
                wait_until("it waits", || control.info("blocked_clients") == "1");
                end(&mut client);
                client.stream.flush().unwrap();
                // The server closes the TCP connection without a notification, as Redis does
                // (OpenSSL may send an alert before).
                let error = client.read_to_end().unwrap_err().kind();
                let closed = [ErrorKind::UnexpectedEof, ErrorKind::InvalidData];
                assert!(closed.contains(&error), "{error:?}");
            }
        },
    );
}

#[test]
fn quit_gets_a_reply_and_a_close_notify() {
    let site = Site::new();
    let _server = site.start();
    let mut client = site.client();
    client.send(&words::encode(&["QUIT"]));
    assert_eq!(client.read_to_end().unwrap(), b"+OK\r\n");
}

#[test]
fn a_protocol_error_is_reported_and_the_connection_closed() {
    let site = Site::new();
    let server = site.start();
    let mut client = site.client();
    client.send(b"*1\r\n!\r\n");
    let mut plain = server.connect();
    plain.send_raw(b"*1\r\n!\r\n");
    let reply = client.read_to_end().unwrap();
    assert!(reply.starts_with(b"-") && reply == plain.read_to_end());
}

#[test]
fn a_client_that_does_not_read_holds_little_memory() {
    if subject_is_redis() {
        return; // Redis queues all replies
    }
    const VALUE: usize = 1024 * 1024;
    const COUNT: usize = 200;
    let site = Site::new();
    each_backend(
        || site.launch(),
        |server| {
            let mut client = site.client();
            let value = "v".repeat(VALUE);
            client.request(&["SET", "big", &value]);
            let mut plain = server.connect();
            plain.cmd("PING");
            let before = server.rss();
            client.send(&words::encode(&["GET", "big"]).repeat(COUNT));
            // Run rounds of the event loop that let the other client have its turn.
            for _ in 0..200 {
                assert_eq!(plain.cmd("PING").to_string(), "PONG");
            }
            let grown = server.rss().saturating_sub(before);
            assert!(grown < 32 * VALUE as u64, "grown by {grown} bytes");
            for _ in 0..COUNT {
                assert!(client.reply() == Reply::Bulk(value.clone().into_bytes()));
            }
            assert_eq!(client.request(&["PING"]).to_string(), "PONG");
        },
    );
}

#[test]
fn connections_that_come_and_go_leave_no_descriptors() {
    let site = Site::new();
    each_backend(
        || site.launch(),
        |server| {
            site.client();
            let mut plain = server.connect();
            plain.cmd("PING");
            // The first client's descriptor closes at some point, so use the minimum that is observed.
            let mut before = server.open_fds();
            for _ in 0..100 {
                site.client();
                before = before.min(server.open_fds());
            }
            for _ in 0..400 {
                site.client();
            }
            wait_until("as few descriptors as before", || server.open_fds() <= before);
        },
    );
}

#[test]
fn clients_are_listed_with_their_addresses_and_may_monitor() {
    let site = Site::new();
    each_backend(
        || site.launch(),
        |server| {
            let mut client = site.client();
            let address = client.stream.sock.local_addr().unwrap();
            let list = client.request(&["CLIENT", "LIST"]).text();
            assert!(list.contains(&format!(" addr={address} laddr=127.0.0.1:")), "{list}");
            assert_eq!(client.request(&["MONITOR"]).text(), "OK");
            server.connect().cmd("ECHO seen");
            let line = client.reply().text();
            assert!(line.ends_with("\"ECHO\" \"seen\""), "{line}");
        },
    );
}
