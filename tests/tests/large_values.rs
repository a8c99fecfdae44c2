//! Values of up to hundreds of megabytes are stored and returned completely.

use brisk_testkit::{Launch, assert_reply, each_backend, each_config, words};

/// Bytes with a pattern that reveals misplaced pieces.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

#[test]
fn values_of_every_size_around_the_limits_come_back_unchanged() {
    each_config(|server| {
        let mut conn = server.connect();
        for len in [
            0,
            1,
            43,
            44,
            45,
            63,
            64,
            65,
            4095,
            4096,
            16 * 1024 + 1,
            65_535,
            65_536,
            65_537,
            1 << 20,
        ] {
            let value = pattern(len);
            assert_eq!(conn.call(&[b"SET", &b"k"[..], &value]).to_string(), "OK");
            assert_eq!(conn.cmd("STRLEN k").integer(), len as i64);
            conn.send("GET k");
            let head = format!("${len}\r\n");
            conn.expect_bytes(head.as_bytes());
            assert!(conn.bytes(len) == value, "{len} bytes came back changed");
            conn.expect_bytes(b"\r\n");
        }
    });
}

#[test]
fn a_value_of_64_mib_is_written_and_read() {
    const LEN: usize = 64 << 20;
    each_backend(Launch::subject, |server| {
        let mut conn = server.connect();
        let value = pattern(LEN);
        let request = words::encode(&[b"SET", &b"big"[..], &value]);
        let mut other = server.connect();
        for piece in request.chunks(8 << 20) {
            conn.send_raw(piece);
            assert_reply!(other, "PING", "PONG");
        }
        conn.expect_bytes(b"+OK\r\n");
        conn.send("GET big");
        conn.expect_bytes(format!("${LEN}\r\n").as_bytes());
        assert!(conn.bytes(LEN) == value);
        conn.expect_bytes(b"\r\n");
        assert_reply!(conn, "SETRANGE big 5 xx", format!("(integer) {LEN}"));
        assert_reply!(conn, "GETRANGE big 5 6", "\"xx\"");
        assert_reply!(conn, "UNLINK big", "(integer) 1");
        conn.assert_in_step();
    });
}

#[test]
fn many_large_replies_in_one_pipeline_keep_their_order() {
    each_config(|server| {
        let mut conn = server.connect();
        let values: Vec<Vec<u8>> = (0..20).map(|i| pattern(200_000 + i)).collect();
        for (i, value) in values.iter().enumerate() {
            conn.call(&[b"SET", format!("k{i}").as_bytes(), value]);
        }
        let gets: Vec<String> = (0..20).map(|i| format!("GET k{i}")).collect();
        let gets: Vec<&str> = gets.iter().map(String::as_str).collect();
        for (reply, value) in conn.pipeline(&gets).iter().zip(&values) {
            assert!(matches!(reply, brisk_testkit::reply::Reply::Bulk(b) if b == value));
        }
    });
}

#[test]
fn strings_beyond_the_limit_are_rejected() {
    each_config(|server| {
        let mut conn = server.connect();
        let refused = "(error) ERR string exceeds maximum allowed size (proto-max-bulk-len)";
        assert_reply!(conn, "SETRANGE k 536870911 xx", refused);
        assert_reply!(conn, "SETRANGE k -1 x", "(error) ERR offset is out of range");
        assert_reply!(conn, "EXISTS k", "(integer) 0");
    });
}
