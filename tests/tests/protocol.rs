//! Bytes that are not commands, and switching the protocol with HELLO.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::reply::Reply;
use brisk_testkit::{Conn, Launch, assert_reply, each_backend, each_config};

/// Sends bytes that violate the protocol. Returns the reply, after which the connection must be closed.
#[track_caller]
fn last_words(mut conn: Conn, bytes: &[u8]) -> String {
    conn.send_raw(bytes);
    String::from_utf8(conn.read_to_end()).unwrap()
}

#[test]
fn a_broken_request_is_named_and_the_connection_closed() {
    each_backend(Launch::subject, |server| {
        for (bytes, words) in [
            (&b"*1\r\n+PING\r\n"[..], "-ERR Protocol error: expected '$', got '+'\r\n"),
            (b"*1\r\n:1\r\n", "-ERR Protocol error: expected '$', got ':'\r\n"),
            (b"*x\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
            (b"*2147483648\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
            (b"*1\r\n$x\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
            (b"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
            (b"*1\r\n$536870913\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
            (b"SET 'a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
            (b"SET \"a\"b\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
        ] {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(last_words(server.connect(), bytes), words, "after {shown:?}");
        }
    });
}

#[test]
fn endless_lines_are_cut_off() {
    each_backend(Launch::subject, |server| {
        let long = vec![b'a'; 70_000];
        let words = "-ERR Protocol error: too big inline request\r\n";
        assert_eq!(last_words(server.connect(), &long), words);
        let count = [b"*", &vec![b'1'; 70_000][..]].concat();
        let words = "-ERR Protocol error: too big mbulk count string\r\n";
        assert_eq!(last_words(server.connect(), &count), words);
        let length = [b"*1\r\n$", &vec![b'1'; 70_000][..]].concat();
        let words = "-ERR Protocol error: too big bulk count string\r\n";
        assert_eq!(last_words(server.connect(), &length), words);
    });
}

#[test]
fn replies_before_a_broken_request_are_still_sent() {
    each_backend(Launch::subject, |server| {
        let words = last_words(server.connect(), b"PING\r\n*1\r\n!\r\n");
        assert_eq!(words, "+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n");
    });
}

#[test]
fn a_broken_request_gets_no_reply_while_replies_are_off() {
    if brisk_testkit::server::subject_is_redis() {
        return; // does not reply either, but leaves the connection open
    }
    each_backend(Launch::subject, |server| {
        for (before, words) in [
            ("CLIENT REPLY OFF\r\n", ""),
            ("CLIENT REPLY SKIP\r\n", ""),
            ("CLIENT REPLY SKIP\r\nPING\r\n", "-ERR Protocol error: expected '$', got '!'\r\n"),
        ] {
            let bytes = [before, "*1\r\n!\r\n"].concat();
            assert_eq!(last_words(server.connect(), bytes.as_bytes()), words, "{before}");
        }
    });
}

#[test]
fn empty_requests_are_passed_over() {
    each_backend(Launch::subject, |server| {
        let mut conn = server.connect();
        conn.send_raw(b"\r\n\r\n*0\r\n*-1\r\n   \r\n\nPING\nPING\r\n");
        conn.expect_bytes(b"+PONG\r\n+PONG\r\n");
        conn.assert_in_step();
    });
}

#[test]
fn hello_describes_the_server_and_switches_the_protocol() {
    each_config(|server| {
        let mut conn = server.connect();
        let id = conn.id();
        let reply = conn.cmd(&format!("HELLO {}", server.resp()));
        assert_eq!(matches!(reply, Reply::Map(_)), server.resp() == 3);
        let names: Vec<String> = reply.elements().iter().step_by(2).map(|r| r.text()).collect();
        assert_eq!(names, ["server", "version", "proto", "id", "mode", "role", "modules"]);
        assert_eq!(reply.field("server").unwrap().text(), "redis");
        assert_eq!(reply.field("proto").unwrap().integer(), i64::from(server.resp()));
        assert_eq!(reply.field("id").unwrap().integer(), id);
        assert_eq!(reply.field("mode").unwrap().text(), "standalone");
        assert_eq!(reply.field("role").unwrap().text(), "master");
        assert!(reply.field("modules").unwrap().elements().is_empty());
    });
}

#[test]
fn hello_rejects_unknown_arguments() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "HELLO 4", "(error) NOPROTO unsupported protocol version");
        assert_reply!(conn, "HELLO 1", "(error) NOPROTO unsupported protocol version");
        assert_reply!(
            conn,
            "HELLO x",
            "(error) ERR Protocol version is not an integer or out of range"
        );
        assert_reply!(conn, "HELLO 3 NOSUCH", "(error) ERR Syntax error in HELLO option 'NOSUCH'");
        assert_reply!(
            conn,
            "HELLO 3 AUTH default wrong SETNAME x y",
            "(error) ERR Syntax error in HELLO option 'y'"
        );
        conn.assert_in_step();
    });
}

#[test]
fn resp3_has_its_own_shapes() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "MSET a ohmytext b mynewtext", "OK");
        conn.send_raw(b"GET none\r\nCONFIG GET timeout\r\nLCS a b IDX\r\nMGET a none\r\n");
        let matches = b"*2\r\n*2\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n\
                        *2\r\n*2\r\n:2\r\n:3\r\n*2\r\n:0\r\n:1\r\n";
        let (nil, config, lcs) = match server.resp() {
            3 => ("_\r\n", "%1\r\n", "%2\r\n"),
            _ => ("$-1\r\n", "*2\r\n", "*4\r\n"),
        };
        conn.expect_bytes(nil.as_bytes());
        conn.expect_bytes(format!("{config}$7\r\ntimeout\r\n$1\r\n0\r\n").as_bytes());
        conn.expect_bytes(format!("{lcs}$7\r\nmatches\r\n").as_bytes());
        conn.expect_bytes(matches);
        conn.expect_bytes(b"$3\r\nlen\r\n:6\r\n");
        conn.expect_bytes(format!("*2\r\n$8\r\nohmytext\r\n{nil}").as_bytes());
    });
}

#[test]
fn every_type_of_reply_is_encoded_in_the_current_protocol() {
    each_config(|server| {
        let mut conn = server.connect();
        let shapes: [(&str, &[u8], &[u8]); 8] = [
            ("double", b"$5\r\n3.141\r\n", b",3.141\r\n"),
            ("bignum", BIG_AS_BULK, BIG_AS_NUMBER),
            ("null", b"$-1\r\n", b"_\r\n"),
            ("array", b"*3\r\n:0\r\n:1\r\n:2\r\n", b"*3\r\n:0\r\n:1\r\n:2\r\n"),
            ("set", b"*3\r\n:0\r\n:1\r\n:2\r\n", b"~3\r\n:0\r\n:1\r\n:2\r\n"),
            (
                "map",
                b"*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
                b"%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
            ),
            ("true", b":1\r\n", b"#t\r\n"),
            ("false", b":0\r\n", b"#f\r\n"),
        ];
        for (name, resp2, resp3) in shapes {
            conn.send(&format!("DEBUG PROTOCOL {name}"));
            conn.expect_bytes(if server.resp() == 3 { resp3 } else { resp2 });
        }
        conn.assert_in_step();
    });
}

const BIG_AS_BULK: &[u8] = b"$37\r\n1234567999999999999999999999999999999\r\n";
const BIG_AS_NUMBER: &[u8] = b"(1234567999999999999999999999999999999\r\n";

#[test]
fn going_back_to_resp2_takes_effect_at_once() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.hello(3);
        conn.send_raw(b"GET none\r\n");
        conn.expect_bytes(b"_\r\n");
        conn.hello(2);
        conn.send_raw(b"GET none\r\n");
        conn.expect_bytes(b"$-1\r\n");
        conn.hello(3);
        assert_reply!(conn, "RESET", "RESET");
        conn.send_raw(b"GET none\r\n");
        conn.expect_bytes(b"$-1\r\n");
    });
}

#[test]
fn quit_replies_and_closes() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.send_raw(b"PING\r\nQUIT\r\nSET k v\r\n");
        assert_eq!(conn.read_to_end(), b"+PONG\r\n+OK\r\n");
        assert_reply!(server.connect(), "EXISTS k", "(integer) 0");
    });
}

#[test]
fn long_unknown_commands_are_quoted_in_part() {
    each_config(|server| {
        let mut conn = server.connect();
        let name = "n".repeat(200);
        let args = ["a".repeat(60), "b".repeat(60), "c".repeat(60)].join(" ");
        let reply = conn.cmd(&format!("{name} {args}")).to_string();
        let kept = |c: &str, n: usize| c.repeat(n);
        assert_eq!(
            reply,
            format!(
                "(error) ERR unknown command '{}', with args beginning with: '{}' '{}' '{}' ",
                kept("n", 128),
                kept("a", 60),
                kept("b", 60),
                // The arguments may have 128 characters in total, including quotes and blanks.
                kept("c", 2),
            )
        );
    });
}

#[test]
fn errors_quote_arguments_byte_for_byte_up_to_a_nul() {
    each_backend(Launch::subject, |server| {
        let mut conn = server.connect();
        conn.send_raw(b"*2\r\n$6\r\nnosuch\r\n$3\r\n\xff\x00a\r\n");
        conn.send_raw(b"*2\r\n$6\r\nOBJECT\r\n$2\r\n\xfe\x00\r\n");
        conn.send_raw(b"*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$1\r\n\xfe\r\n$1\r\na\r\n");
        conn.send_raw(b"SELECT 2147483648\r\nQUIT\r\n");
        let wanted = [
            &b"-ERR unknown command 'nosuch', with args beginning with: '\xff' \r\n"[..],
            b"-ERR unknown subcommand '\xfe'. Try OBJECT HELP.\r\n",
            b"-ERR Unknown option or number of arguments for CONFIG SET - '\xfe'\r\n",
            b"-ERR value is out of range, value must between -2147483648 and 2147483647\r\n",
            b"+OK\r\n",
        ];
        assert_eq!(conn.read_to_end(), wanted.concat());
    });
}

#[test]
fn an_http_request_is_closed_without_a_reply() {
    let server = Launch::subject().start();
    for line in ["POST / HTTP/1.1\r\nHost: x\r\n\r\nSET pwned 1\r\n", "Host: x\r\nSET pwned 1\r\n"]
    {
        let mut conn = server.connect();
        conn.send_raw(line.as_bytes());
        assert_eq!(conn.read_to_end(), b"", "{line:?}");
    }
    assert_reply!(server.connect(), "EXISTS pwned", "(integer) 0");
}
