//! Expiry: what clients see at the expiry time, and that expired keys are removed soon.

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{assert_reply, each_config, wait_until};

#[test]
fn an_expired_key_does_not_exist_for_any_command() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "SET k v PX 30", "OK");
        wait_until("the deadline", || conn.cmd("EXISTS k").integer() == 0);
        assert_reply!(conn, "GET k", "(nil)");
        assert_reply!(conn, "TYPE k", "none");
        assert_reply!(conn, "PTTL k", "(integer) -2");
        assert_reply!(conn, "KEYS *", "(empty array)");
        assert_reply!(conn, "RENAME k l", "(error) ERR no such key");
        assert_reply!(conn, "INCR k", "(integer) 1");
    });
}

#[test]
fn a_deadline_in_the_past_deletes() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "SET k v", "OK");
        assert_reply!(conn, "EXPIREAT k 1", "(integer) 1");
        assert_reply!(conn, "EXISTS k", "(integer) 0");
        assert_reply!(conn, "SET k v PXAT 1", "OK");
        assert_reply!(conn, "GET k", "(nil)");
        assert_reply!(conn, "SET k v", "OK");
        assert_reply!(conn, "GETEX k EXAT 1", "\"v\"");
        assert_reply!(conn, "EXISTS k", "(integer) 0");
        assert_reply!(conn, "SET k v EX 0", "(error) ERR invalid expire time in 'set' command");
        assert_reply!(conn, "SETEX k -1 v", "(error) ERR invalid expire time in 'setex' command");
    });
}

#[test]
fn unread_keys_are_removed_soon_after_they_expire() {
    each_config(|server| {
        let mut conn = server.connect();
        const KEYS: usize = 20_000;
        let lines: Vec<String> = (0..KEYS).map(|i| format!("SET key:{i} v PX 300")).collect();
        for chunk in lines.chunks(1000) {
            let chunk: Vec<&str> = chunk.iter().map(String::as_str).collect();
            conn.pipeline(&chunk);
        }
        assert_reply!(conn, "SET stays v", "OK");
        // DBSIZE counts expired keys that have not been removed yet. The active expiry cycle of Redis leaves up to a
        // tenth of them for later. Our server must have removed all of them.
        let left = |n: i64| if subject_is_redis() { n <= 2_000 } else { n == 1 };
        wait_until("the dead are buried", || left(conn.cmd("DBSIZE").integer()));
        assert_reply!(conn, "GET stays", "\"v\"");
        let expired: usize = conn.info("expired_keys").parse().unwrap();
        assert!(expired + 2_000 >= KEYS, "{expired}");
    });
}

#[test]
fn a_new_value_drops_the_deadline_unless_it_is_kept() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "SET k v PXAT 4102444800000", "OK");
        assert_reply!(conn, "SET k w KEEPTTL", "OK");
        assert_reply!(conn, "PEXPIRETIME k", "(integer) 4102444800000");
        assert_reply!(conn, "APPEND k x", "(integer) 2");
        assert_reply!(conn, "PEXPIRETIME k", "(integer) 4102444800000");
        assert_reply!(conn, "RENAME k l", "OK");
        assert_reply!(conn, "EXPIRETIME l", "(integer) 4102444800");
        assert_reply!(conn, "SET l z", "OK");
        assert_reply!(conn, "TTL l", "(integer) -1");
    });
}
