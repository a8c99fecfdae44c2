//! AUTH, HELLO AUTH and RESET: which clients may use a server that has a password. (S5)
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, each_backend, each_config};

const WRONG: &str = "(error) WRONGPASS invalid username-password pair or user is disabled.";
const UNAUTHENTICATED: &str = "(error) NOAUTH Authentication required.";
const HELLO_FIRST: &str = "(error) NOAUTH HELLO must be called with the client already \
    authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the \
    client and select the RESP protocol version at the same time";

fn protected() -> Launch {
    Launch::subject().set("requirepass", "secret")
}

fn each_protected(body: impl Fn(&mut Server)) {
    each_backend(protected, body);
}

#[test]
fn a_stranger_may_do_nothing_but_introduce_itself() {
    each_protected(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "PING", UNAUTHENTICATED);
        assert_reply!(conn, "CLIENT GETNAME", UNAUTHENTICATED);
        assert_reply!(conn, "MONITOR", UNAUTHENTICATED);
        assert_reply!(
            conn,
            "nosuch",
            "(error) ERR unknown command 'nosuch', with args beginning with: "
        );
        assert_reply!(conn, "GET", "(error) ERR wrong number of arguments for 'get' command");
        assert_reply!(conn, "RESET", "RESET");
        assert_reply!(conn, "PING", UNAUTHENTICATED);
        conn.send("QUIT");
        assert_eq!(conn.read_to_end(), b"+OK\r\n");
    });
}

#[test]
fn auth_succeeds_only_with_the_right_password() {
    each_protected(|server| {
        let mut conn = server.connect();
        for wrong in ["wrong", "''", "secre", "secret2", "default wrong", "somebody secret"] {
            assert_reply!(conn, &format!("AUTH {wrong}"), WRONG);
            assert_reply!(conn, "PING", UNAUTHENTICATED);
        }
        assert_reply!(conn, "AUTH a b c", "(error) ERR syntax error");
        assert_reply!(conn, "AUTH", "(error) ERR wrong number of arguments for 'auth' command");
        assert_reply!(conn, "AUTH secret", "OK");
        assert_reply!(conn, "PING", "PONG");
        assert_reply!(conn, "AUTH default secret", "OK");
        // After a failed AUTH, the client stays authenticated.
        assert_reply!(conn, "AUTH wrong", WRONG);
        assert_reply!(conn, "PING", "PONG");
    });
}

#[test]
fn without_a_password_auth_says_so() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(
            conn,
            "AUTH x",
            "(error) ERR AUTH <password> called without any password configured for the default \
             user. Are you sure your configuration is correct?"
        );
        assert_reply!(conn, "AUTH default x", "OK");
        assert_reply!(conn, "AUTH somebody x", WRONG);
    });
}

#[test]
fn hello_introduces_and_authenticates_at_once() {
    each_protected(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "HELLO", HELLO_FIRST);
        assert_reply!(conn, "HELLO 3", HELLO_FIRST);
        assert_reply!(conn, "HELLO 4", "(error) NOPROTO unsupported protocol version");
        assert_reply!(conn, "HELLO 3 AUTH default wrong", WRONG);
        assert_reply!(
            conn,
            "HELLO 3 AUTH default",
            "(error) ERR Syntax error in HELLO option 'AUTH'"
        );
        let hello = conn.cmd("HELLO 3 AUTH default secret SETNAME me");
        assert_eq!(hello.field("proto").unwrap().integer(), 3);
        assert_eq!(hello.field("server").unwrap().text(), "redis");
        assert_reply!(conn, "CLIENT GETNAME", "\"me\"");
    });
}

#[test]
fn hello_checks_all_its_options_before_it_applies_any() {
    if subject_is_redis() {
        return; // 7.0 applies each option as it reads it; 7.2 behaves as tested here
    }
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CLIENT SETNAME before", "OK");
        for wrong in ["SETNAME first AUTH a b", "AUTH a b SETNAME second"] {
            assert_reply!(conn, &format!("HELLO 2 {wrong}"), WRONG);
            assert_reply!(conn, "CLIENT GETNAME", "\"before\"");
        }
        assert_reply!(
            conn,
            "HELLO 3 SETNAME x NO",
            "(error) ERR Syntax error in HELLO option 'NO'"
        );
        assert_reply!(
            conn,
            "HELLO 03",
            "(error) ERR Protocol version is not an integer or out of range"
        );
        assert_reply!(
            conn,
            "HELLO 2 SETNAME 'a b'",
            "(error) ERR Client names cannot contain spaces, newlines or special characters."
        );
        assert_reply!(conn, "CLIENT GETNAME", "\"before\"");
        // If an option is repeated, the last one applies.
        conn.cmd("HELLO 2 AUTH a b SETNAME first SETNAME last AUTH default x");
        assert_reply!(conn, "CLIENT GETNAME", "\"last\"");
    });
}

#[test]
fn a_pipeline_continues_after_its_own_auth() {
    each_protected(|server| {
        let mut conn = server.connect();
        let replies =
            conn.pipeline(&["SET k v", "AUTH secret", "SET k v", "GET k", "RESET", "GET k"]);
        let texts: Vec<String> = replies.iter().map(ToString::to_string).collect();
        assert_eq!(texts[0], UNAUTHENTICATED);
        assert_eq!(texts[1..5], ["OK", "OK", "\"v\"", "RESET"]);
        assert_eq!(texts[5], UNAUTHENTICATED);
    });
}

#[test]
fn strangers_may_send_small_requests_only() {
    each_protected(|server| {
        let last_words = |bytes: &[u8]| {
            let mut conn = server.connect();
            conn.send_raw(bytes);
            String::from_utf8(conn.read_to_end()).unwrap()
        };
        let count = "-ERR Protocol error: unauthenticated multibulk length\r\n";
        assert_eq!(last_words(b"*11\r\n"), count);
        let length = "-ERR Protocol error: unauthenticated bulk length\r\n";
        assert_eq!(last_words(b"*10\r\n$16385\r\n"), length);

        // Requests at the limits, and above the limits after AUTH in the same write.
        let mut conn = server.connect();
        let limit = [b"*2\r\n$4\r\nECHO\r\n$16384\r\n", &vec![b'x'; 16384][..], b"\r\n"].concat();
        conn.send_raw(&limit);
        assert_eq!(conn.reply().to_string(), UNAUTHENTICATED);
        let above = [b"*2\r\n$4\r\nECHO\r\n$20000\r\n", &vec![b'x'; 20000][..], b"\r\n"].concat();
        conn.send_raw(&[b"AUTH secret\r\n", &above[..]].concat());
        assert_eq!(conn.reply().to_string(), "OK");
        assert_eq!(conn.reply().text().len(), 20000);
    });
}

#[test]
fn a_new_password_does_not_affect_connected_clients() {
    each_config(|server| {
        let mut early = server.connect();
        assert_reply!(early, "CONFIG SET requirepass secret", "OK");
        let mut late = Conn::tcp(&server.address());
        assert_reply!(late, "PING", UNAUTHENTICATED);
        assert_reply!(early, "PING", "PONG");
        // Without a password, every client is authenticated, regardless of when it connected.
        assert_reply!(early, "CONFIG SET requirepass ''", "OK");
        assert_reply!(late, "PING", "PONG");
        assert_reply!(early, "CONFIG SET requirepass other", "OK");
        assert_reply!(late, "PING", UNAUTHENTICATED);
        assert_reply!(early, "RESET", "RESET");
        assert_reply!(early, "PING", UNAUTHENTICATED);
        assert_reply!(early, "AUTH secret", WRONG);
        assert_reply!(early, "AUTH other", "OK");
    });
}

#[test]
fn reset_makes_a_connection_new() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.cmd("CLIENT SETNAME me");
        conn.cmd("SELECT 3");
        if !subject_is_redis() {
            conn.cmd("CLIENT NO-EVICT on"); // kept by Redis 7.0, reset by later versions
        }
        assert_reply!(conn, "RESET", "RESET");
        assert_reply!(conn, "CLIENT GETNAME", "(nil)");
        let info = conn.cmd("CLIENT INFO").text();
        for field in [" name= ", " flags=N ", " db=0 ", " resp=2"] {
            assert!(info.contains(field), "{field} in {info}");
        }
        conn.send("CLIENT REPLY OFF");
        conn.send("RESET");
        assert_eq!(conn.reply().to_string(), "RESET");
        conn.assert_in_step();
    });
}

/// Monitors also see a rejected EXEC. The hidden arguments of an earlier command do not affect it.
#[test]
fn monitors_see_a_rejected_exec_of_an_unauthenticated_client() {
    each_protected(|server| {
        let [mut admin, mut monitor] = [(); 2].map(|()| Conn::tcp(&server.address()));
        for conn in [&mut admin, &mut monitor] {
            assert_reply!(conn, "AUTH secret", "OK");
        }
        assert_reply!(monitor, "MONITOR", "OK");
        let mut stranger = Conn::tcp(&server.address());
        assert_reply!(stranger, "AUTH not that", WRONG);
        let aborted = "(error) EXECABORT Transaction discarded because of: ";
        let noauth = stranger.cmd("EXEC").to_string();
        assert_eq!(noauth, format!("{aborted}NOAUTH Authentication required."));
        assert_reply!(admin, "MULTI", "OK");
        let mut other = Conn::tcp(&server.address());
        assert_reply!(other, "AUTH default wrong", WRONG);
        let arity = admin.cmd("EXEC now").to_string();
        assert_eq!(arity, format!("{aborted}wrong number of arguments for 'exec' command"));
        let heard: Vec<String> = (0..5).map(|_| monitor.reply().text()).collect();
        let words = heard.iter().map(|line| line.split_once("] ").unwrap().1);
        let redacted = "\"AUTH\" \"(redacted)\"";
        let twice = &*format!("{redacted} \"(redacted)\"");
        assert_eq!(
            words.collect::<Vec<_>>(),
            [twice, "\"EXEC\"", "\"MULTI\"", twice, "\"EXEC\" \"now\""]
        );
        assert_reply!(stranger, "AUTH secret", "OK");
    });
}
