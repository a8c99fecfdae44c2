//! Client-side caching: invalidation messages, their receivers, format and order.

use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Server, assert_reply, each_backend, each_config, wait_until};
use brisk_tests::{until_slow, with_workers};
use std::collections::HashMap;

/// A tracking connection, and the connection that receives its messages: with RESP3 the connection itself, otherwise a
/// RESP2 subscriber to which messages are redirected.
struct Cacher {
    conn: Conn,
    ear: Option<Conn>,
}

impl Cacher {
    #[track_caller]
    fn new(server: &Server, resp: u8, options: &str) -> Cacher {
        let mut conn = server.connect();
        conn.hello(resp);
        let mut cacher = Cacher { conn, ear: None };
        if resp == 2 {
            let mut ear = server.connect();
            let id = ear.id();
            ear.cmd("SUBSCRIBE __redis__:invalidate");
            cacher.ear = Some(ear);
            cacher.track(&format!("{options} REDIRECT {id}"));
        } else {
            cacher.track(options);
        }
        cacher
    }

    #[track_caller]
    fn track(&mut self, options: &str) {
        assert_reply!(self.conn, &format!("CLIENT TRACKING ON {options}"), "OK");
    }

    #[track_caller]
    fn read(&mut self, line: &str) {
        let reply = self.conn.cmd(line);
        assert!(!matches!(reply, Reply::Push(_)), "{line}: {reply}");
    }

    /// Asserts that the next message contains exactly these keys, byte by byte.
    #[track_caller]
    fn hears(&mut self, keys: &[&str]) {
        let mut array = format!("*{}\r\n", keys.len());
        for key in keys {
            array.push_str(&format!("${}\r\n{key}\r\n", key.len()));
        }
        self.hears_raw(&array);
    }

    #[track_caller]
    fn hears_raw(&mut self, keys: &str) {
        match &mut self.ear {
            None => {
                let head = ">2\r\n$10\r\ninvalidate\r\n";
                self.conn.expect_bytes(format!("{head}{keys}").as_bytes());
            }
            Some(ear) => {
                let head = "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n";
                ear.expect_bytes(format!("{head}{keys}").as_bytes());
            }
        }
    }

    #[track_caller]
    fn hears_that_all_is_invalid(&mut self) {
        let null = if self.ear.is_some() { "$-1\r\n" } else { "_\r\n" };
        self.hears_raw(null);
    }

    /// Asserts that there are no further messages.
    #[track_caller]
    fn heard_all(&mut self) {
        self.conn.assert_in_step();
        if let Some(ear) = &mut self.ear {
            assert_reply!(ear, "PING heard", "1) \"pong\"\n2) \"heard\"");
        }
    }
}

#[test]
fn a_client_that_read_a_key_gets_one_invalidation() {
    each_config(|server| {
        let mut cacher = Cacher::new(server, server.resp(), "");
        let mut other = server.connect();
        other.pipeline(&["SET a 1", "SET b 1"]);
        cacher.read("MGET a b nothing");
        other.pipeline(&["SET a 2", "SET a 3"]);
        cacher.hears(&["a"]);
        other.cmd("INCR b");
        cacher.hears(&["b"]);
        other.cmd("LPUSH nothing x");
        cacher.hears(&["nothing"]);
        cacher.heard_all();
        cacher.read("GET a");
        other.cmd("DEL a");
        cacher.hears(&["a"]);
        cacher.heard_all();
    });
}

#[test]
fn every_kind_of_change_invalidates_a_key() {
    each_config(|server| {
        let mut cacher = Cacher::new(server, server.resp(), "");
        let mut other = server.connect();
        for (reading, change) in [
            ("TTL k", "EXPIRE k 1000"),
            ("TTL k", "PERSIST k"),
            ("GET k", "GETEX k EX 1000"),
            ("STRLEN k", "APPEND k x"),
            ("EXISTS k", "COPY other k REPLACE"),
            ("GETRANGE k 0 -1", "SETRANGE k 0 y"),
            ("TYPE k", "RENAME k gone"),
            ("DUMP k", "RENAME gone k"),
            ("OBJECT ENCODING k", "MOVE k 1"),
            ("HGETALL h", "HSET h f 1"),
            ("HLEN h", "HINCRBY h f 2"),
            ("ZSCORE z m", "ZADD z 1 m"),
            ("SMISMEMBER s a b", "SADD s a"),
            ("LRANGE l 0 -1", "RPUSH l a b"),
            ("LLEN l", "LPOP l"),
            ("XLEN x", "XADD x 1-1 f v"),
            ("SORT_RO l", "LTRIM l 1 0"),
            ("GET no-string-h", "SET no-string-h 1"),
        ] {
            other.cmd("SET other value");
            if reading == "GETRANGE k 0 -1" || reading == "TTL k" {
                other.cmd("SETNX k value");
            }
            cacher.read(reading);
            let reply = other.cmd(change);
            assert!(!reply.is_error(), "{change}: {reply}");
            let key = reading.split(' ').find(|word| other_names(word)).unwrap_or_default();
            cacher.hears(&[key]);
        }
        cacher.heard_all();
    });
}

/// Reports whether an argument of a read command is its key.
fn other_names(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
}

#[test]
fn commands_that_fail_read_their_keys_too() {
    each_config(|server| {
        let mut cacher = Cacher::new(server, server.resp(), "");
        let mut other = server.connect();
        other.cmd("SADD set a");
        assert!(cacher.conn.cmd("GET set").is_error());
        // Write commands do not count as reads, regardless of what they return.
        cacher.read("GETSET value 1");
        cacher.read("INCR value");
        other.pipeline(&["SREM set a", "SET value 2"]);
        cacher.hears(&["set"]);
        cacher.heard_all();
    });
}

#[test]
fn keys_are_tracked_by_name_in_all_databases() {
    each_config(|server| {
        let mut cacher = Cacher::new(server, server.resp(), "");
        let mut other = server.connect();
        cacher.conn.cmd("SELECT 2");
        cacher.read("GET k");
        other.pipeline(&["SELECT 3", "SET k 1"]);
        cacher.hears(&["k"]);
        cacher.heard_all();
    });
}

#[test]
fn an_expired_key_is_invalidated() {
    each_config(|server| {
        let mut cacher = Cacher::new(server, server.resp(), "");
        let mut other = server.connect();
        let read_alive = |cacher: &mut Cacher, other: &mut Conn, key: &str| {
            let mut alive = false;
            while !alive {
                other.cmd(&format!("SET {key} x PX 200"));
                // On a slow machine, the key may already have expired.
                alive = cacher.conn.cmd(&format!("GET {key}")).text() == "x";
            }
        };
        read_alive(&mut cacher, &mut other, "active");
        cacher.hears(&["active"]);
        other.cmd("DEBUG SET-ACTIVE-EXPIRE 0");
        read_alive(&mut cacher, &mut other, "lazy");
        wait_until("the key has expired", || other.cmd("EXISTS lazy").integer() == 0);
        cacher.hears(&["lazy"]);
        cacher.heard_all();
    });
}

#[test]
fn an_evicted_key_is_invalidated_before_the_reply_of_the_evicting_command() {
    let server = with_workers(2).set("maxmemory-policy", "volatile-random").start();
    let mut cacher = Cacher::new(&server, 3, "");
    let mut other = server.connect();
    other.cmd("SET volatile x EX 1000");
    cacher.read("GET volatile");
    let used: u64 = other.info("used_memory").parse().unwrap_or(0);
    other.cmd(&format!("CONFIG SET maxmemory {}", used + 200_000));
    // Exceed the limit with a command that the server allows, so that the next command finds too much memory in use.
    // The zeros in a long string take no memory, so BITOP turns them into ones.
    other.cmd("SETBIT zeros 8000000 1");
    other.cmd("BITOP NOT ones zeros");
    other.cmd("EXISTS ones");
    cacher.hears(&["volatile"]);
    cacher.heard_all();
}

#[test]
fn a_flush_invalidates_all_keys() {
    each_config(|server| {
        let mut cacher = Cacher::new(server, server.resp(), "NOLOOP");
        let mut broadcast = Cacher::new(server, server.resp(), "BCAST PREFIX x");
        let mut other = server.connect();
        for flush in ["FLUSHALL", "FLUSHDB ASYNC", "FLUSHDB"] {
            cacher.read("GET k");
            assert_eq!(other.info("tracking_total_keys"), "1");
            other.cmd(flush);
            cacher.hears_that_all_is_invalid();
            broadcast.hears_that_all_is_invalid();
            assert_eq!(other.info("tracking_total_keys"), "0");
            assert_eq!(other.info("tracking_total_items"), "0");
        }
        other.cmd("SET k 1");
        cacher.read("GET k");
        other.cmd("SWAPDB 0 1");
        cacher.heard_all();
        broadcast.heard_all();
    });
}

#[test]
fn a_client_gets_invalidations_of_its_own_changes_after_the_replies() {
    let server = with_workers(2).start();
    let mut cacher = Cacher::new(&server, 3, "");
    cacher.read("MGET a b");
    cacher.conn.send_raw(b"SET a 1\r\nSET b 1\r\nPING\r\n");
    cacher.conn.expect_bytes(b"+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n");
    cacher.conn.expect_bytes(b"+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nb\r\n+PONG\r\n");
    cacher.read("MGET a b");
    cacher.conn.send_raw(b"MULTI\r\nSET a 1\r\nGET a\r\nSET b 1\r\nFLUSHALL\r\nEXEC\r\nPING\r\n");
    cacher.conn.expect_bytes(b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    cacher.conn.expect_bytes(b"*4\r\n+OK\r\n$1\r\n1\r\n+OK\r\n+OK\r\n");
    cacher.hears(&["a"]);
    cacher.hears(&["b"]);
    cacher.hears_that_all_is_invalid();
    cacher.conn.expect_bytes(b"+PONG\r\n");
}

#[test]
fn a_client_with_noloop_gets_no_invalidation_of_its_own_changes() {
    each_config(|server| {
        let mut cacher = Cacher::new(server, server.resp(), "NOLOOP");
        let mut other = server.connect();
        cacher.read("MGET a b c");
        other.cmd("SET a 1");
        cacher.hears(&["a"]);
        cacher.read("SET b 1");
        // The key was removed from the tracking table anyway.
        other.cmd("SET b 2");
        other.cmd("SET c 1");
        cacher.hears(&["c"]);
        cacher.heard_all();
    });
}

#[test]
fn optin_and_optout_choose_the_tracked_keys() {
    each_config(|server| {
        let mut optin = Cacher::new(server, server.resp(), "OPTIN");
        let mut optout = Cacher::new(server, server.resp(), "OPTOUT");
        let mut other = server.connect();
        for (cacher, word) in [(&mut optin, "YES"), (&mut optout, "NO")] {
            let chosen = ["with", "with2", "exec1", "exec2", "inner"];
            let plain = ["before", "after", "spent"];
            let caching = format!("CLIENT CACHING {word}");
            cacher.read("GET before");
            assert_reply!(cacher.conn, &caching, "OK");
            // Other CLIENT commands do not consume the effect of CLIENT CACHING.
            cacher.conn.cmd("CLIENT ID");
            cacher.read("MGET with with2");
            cacher.read("GET after");
            cacher.conn.cmd(&caching);
            cacher.conn.cmd("PING");
            cacher.read("GET spent");
            cacher.conn.cmd(&caching);
            cacher.conn.pipeline(&["MULTI", "GET exec1", "GET exec2", "EXEC"]);
            cacher.conn.pipeline(&["MULTI", &caching, "GET inner", "EXEC"]);
            let tracked = if word == "YES" { &chosen[..] } else { &plain[..] };
            for key in chosen.iter().chain(&plain) {
                other.cmd(&format!("SET {key} 1"));
                if tracked.contains(key) {
                    cacher.hears(&[key]);
                }
            }
            cacher.heard_all();
        }
    });
}

/// A slow script is executed in parts. The tracking mode at the time of the call applies to all of them.
#[test]
fn keys_are_remembered_however_late_a_slow_script_reads_them() {
    each_config(|server| {
        let mut other = server.connect();
        other.cmd("CONFIG SET busy-reply-threshold 1");
        let cases = [
            ("", None, true),
            ("OPTIN", Some("CLIENT CACHING YES"), true),
            ("OPTIN", None, false),
            ("OPTOUT", None, true),
            ("OPTOUT", Some("CLIENT CACHING NO"), false),
        ];
        for (options, caching, is_notified) in cases {
            until_slow(server, |turns| {
                let slow = format!(
                    "EVAL \"redis.call('GET', KEYS[1]) for i = 1, {turns} do end \
                     redis.call('GET', KEYS[2])\" 2 early late"
                );
                let mut cacher = Cacher::new(server, server.resp(), options);
                if let Some(caching) = caching {
                    assert_reply!(cacher.conn, caching, "OK");
                }
                cacher.read(&slow);
                other.pipeline(&["SET early 1", "SET late 1"]);
                if is_notified {
                    cacher.hears(&["early"]);
                    cacher.hears(&["late"]);
                }
                cacher.heard_all();
                if let Some(caching) = caching {
                    assert_reply!(cacher.conn, caching, "OK");
                }
                cacher.conn.pipeline(&["MULTI", &slow, "GET behind", &slow, "GET last", "EXEC"]);
                let keys = ["early", "late", "behind", "last"];
                for key in keys {
                    other.cmd(&format!("SET {key} 2"));
                }
                if is_notified {
                    keys.iter().for_each(|key| cacher.hears(&[key]));
                }
                cacher.heard_all();
                // The number of slow scripts: the single one, and both in the transaction.
                3
            });
        }
    });
}

#[test]
fn keys_of_several_prefixes_share_one_invalidation() {
    each_config(|server| {
        let mut all = Cacher::new(server, server.resp(), "BCAST");
        let mut some = Cacher::new(server, server.resp(), "BCAST PREFIX a: PREFIX b:");
        let mut own = Cacher::new(server, server.resp(), "BCAST PREFIX b: NOLOOP");
        let mut other = server.connect();
        assert_eq!(other.info("tracking_total_prefixes"), "3");
        other.cmd("MSET b:2 x c x b:1 x a:1 x b:1 y");
        all.hears(&["a:1", "b:1", "b:2", "c"]);
        some.hears(&["a:1"]);
        some.hears(&["b:1", "b:2"]);
        own.hears(&["b:1", "b:2"]);
        own.read("MSET b:3 x b:4 x");
        some.hears(&["b:3", "b:4"]);
        all.hears(&["b:3", "b:4"]);
        // The client has read nothing, but gets messages again.
        other.cmd("DEL b:1 nothing");
        for cacher in [&mut all, &mut some, &mut own] {
            cacher.hears(&["b:1"]);
            cacher.heard_all();
        }
        assert_reply!(all.conn, "CLIENT TRACKING OFF", "OK");
        other.pipeline(&["MULTI", "SET b:9 x PX 1000000", "INCR c", "SET a:9 x", "EXEC"]);
        for prefix in ["a:9", "b:9"] {
            some.hears(&[prefix]);
        }
        own.hears(&["b:9"]);
        all.heard_all();
        assert_eq!(other.info("tracking_total_prefixes"), "2");
    });
}

#[test]
fn a_broadcast_follows_the_replies_of_its_pipeline() {
    let server = with_workers(2).start();
    let mut cacher = Cacher::new(&server, 3, "BCAST");
    cacher.conn.send_raw(b"SET a 1\r\nSET b 1\r\nINCR a\r\n");
    cacher.conn.expect_bytes(b"+OK\r\n+OK\r\n:2\r\n");
    cacher.hears(&["a", "b"]);
    cacher.heard_all();
}

#[test]
fn a_client_is_notified_when_its_redirection_target_is_closed() {
    let server = with_workers(3).start();
    let [mut ear, mut other] = server.connections();
    let id = ear.id();
    let mut cacher = Cacher { conn: server.connect(), ear: None };
    cacher.conn.hello(3);
    cacher.track(&format!("REDIRECT {id}"));
    assert_reply!(cacher.conn, "CLIENT GETREDIR", format!("(integer) {id}"));
    let line = cacher.conn.cmd("CLIENT INFO").text();
    assert!(line.contains(" flags=t ") && line.contains(&format!(" redir={id} ")), "{line}");
    // A RESP2 client without a subscription gets no messages.
    cacher.read("GET k");
    other.cmd("SET k 1");
    // A redirected message passes through the worker of the tracking client, so synchronize with that connection first.
    cacher.conn.assert_in_step();
    ear.assert_in_step();
    ear.hello(3);
    cacher.read("GET k");
    other.cmd("SET k 2");
    ear.expect_bytes(b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
    cacher.read("GET k");
    assert_reply!(ear, "QUIT", "OK");
    wait_until("the listener is gone", || other.info("connected_clients") == "2");
    other.cmd("SET k 3");
    let broken = format!(">2\r\n$21\r\ntracking-redir-broken\r\n:{id}\r\n");
    cacher.conn.expect_bytes(broken.as_bytes());
    let info = cacher.conn.cmd("CLIENT TRACKINGINFO");
    let flags: Vec<String> =
        info.field("flags").into_iter().flat_map(Reply::elements).map(Reply::text).collect();
    assert_eq!(flags, ["on", "broken_redirect"]);
    assert!(cacher.conn.cmd("CLIENT INFO").text().contains(" flags=tR "));
    cacher.track("");
    assert!(cacher.conn.cmd("CLIENT INFO").text().contains(" flags=t "));
}

#[test]
fn invalidations_arrive_while_replies_are_off() {
    let server = with_workers(2).start();
    let mut cacher = Cacher::new(&server, 3, "");
    let mut other = server.connect();
    cacher.read("GET k");
    cacher.conn.send("CLIENT REPLY OFF");
    cacher.conn.send("SET k 0");
    cacher.hears(&["k"]);
    cacher.conn.send("GET k");
    wait_until("the key is tracked", || other.info("tracking_total_keys") == "1");
    other.cmd("SET k 1");
    cacher.hears(&["k"]);
    assert_reply!(cacher.conn, "CLIENT REPLY ON", "OK");
    cacher.heard_all();
}

#[test]
fn tracking_ends_with_off_reset_and_the_connection() {
    each_config(|server| {
        let mut other = server.connect();
        for end in ["CLIENT TRACKING OFF", "RESET", "QUIT"] {
            let mut cacher = Cacher::new(server, server.resp(), "");
            cacher.read("GET k");
            assert_eq!(other.info("tracking_clients"), "1");
            cacher.conn.cmd(end);
            wait_until("no client tracks", || other.info("tracking_clients") == "0");
            // The key stays in the tracking table until it is accessed.
            assert_eq!(other.info("tracking_total_keys"), "1");
            other.cmd("SET k 1");
            assert_eq!(other.info("tracking_total_items"), "0");
            if end != "QUIT" {
                assert_reply!(cacher.conn, "CLIENT GETREDIR", "(integer) -1");
                assert!(cacher.conn.cmd("CLIENT INFO").text().contains(" redir=-1 "));
                cacher.heard_all();
            }
        }
    });
}

#[test]
fn the_tracking_table_is_bounded_and_removed_keys_are_invalidated() {
    each_config(|server| {
        let mut other = server.connect();
        other.cmd("CONFIG SET tracking-table-max-keys 10");
        let mut cacher = Cacher::new(server, server.resp(), "");
        for key in 0..100 {
            cacher.conn.send(&format!("GET {key}"));
        }
        let (mut notified, mut replies) = (0, 0);
        let mut hear = |conn: &mut Conn, replies: &mut i32| match conn.reply() {
            Reply::Push(_) => notified += 1,
            Reply::Array(items) if items.len() == 3 => notified += 1,
            _ => *replies += 1,
        };
        while replies < 100 {
            hear(&mut cacher.conn, &mut replies);
        }
        wait_until("the table is small enough", || {
            other.info("tracking_total_keys").parse::<u64>().is_ok_and(|keys| keys <= 10)
        });
        cacher.conn.send("PING");
        if let Some(ear) = &mut cacher.ear {
            ear.send("PING");
        }
        let mut ends = 0;
        let conn = cacher.ear.as_mut().unwrap_or(&mut cacher.conn);
        while ends == 0 {
            hear(conn, &mut ends);
        }
        assert_eq!(notified, 90);
    });
}

#[test]
fn trackinginfo_describes_how_a_client_tracks() {
    each_config(|server| {
        let mut conn = server.connect();
        let info = |conn: &mut Conn| {
            let info = conn.cmd("CLIENT TRACKINGINFO");
            let words = |field: &str| {
                let words = info.field(field).into_iter().flat_map(Reply::elements);
                words.map(Reply::text).collect::<Vec<_>>().join(" ")
            };
            let redirect = info.field("redirect").map(Reply::text).unwrap_or_default();
            format!("{}; {redirect}; {}", words("flags"), words("prefixes"))
        };
        assert_eq!(info(&mut conn), "off; -1; ");
        conn.cmd("CLIENT TRACKING ON NOLOOP");
        assert_eq!(info(&mut conn), "on noloop; 0; ");
        conn.pipeline(&["CLIENT TRACKING ON OPTIN", "CLIENT CACHING YES"]);
        assert_eq!(info(&mut conn), "on optin caching-yes; 0; ");
        conn.pipeline(&["CLIENT TRACKING OFF", "CLIENT TRACKING ON OPTOUT", "CLIENT CACHING NO"]);
        assert_eq!(info(&mut conn), "on optout caching-no; 0; ");
        conn.pipeline(&["CLIENT TRACKING OFF", "CLIENT TRACKING ON BCAST PREFIX b PREFIX a"]);
        conn.cmd("CLIENT TRACKING ON BCAST PREFIX c");
        assert_eq!(info(&mut conn), "on bcast; 0; a b c");
        assert!(conn.cmd("CLIENT INFO").text().contains(" flags=tB "));
    });
}

#[test]
fn invalid_tracking_options_are_rejected() {
    each_config(|server| {
        let mut conn = server.connect();
        let mut refused = |line: &str, text: &str| {
            assert_reply!(conn, &format!("CLIENT {line}"), format!("(error) ERR {text}"));
        };
        let caching = "CLIENT CACHING can be called only when the client is in tracking mode with \
                       OPTIN or OPTOUT mode enabled";
        refused("CACHING YES", caching);
        refused("TRACKING MAYBE", "syntax error");
        refused("TRACKING ON REDIRECT", "syntax error");
        refused("TRACKING ON REDIRECT x", "value is not an integer or out of range");
        refused("TRACKING ON REDIRECT 999999", "The client ID you want redirect to does not exist");
        refused("TRACKING ON PREFIX a", "PREFIX option requires BCAST mode to be enabled");
        refused("TRACKING ON BCAST OPTIN", "OPTIN and OPTOUT are not compatible with BCAST");
        let both = "You can't specify both OPTIN mode and OPTOUT mode";
        refused("TRACKING ON OPTIN OPTOUT", both);
        let overlap = |a: &str, which: &str, b: &str| {
            format!(
                "Prefix '{a}' overlaps with {which} prefix '{b}'. Prefixes for a single client \
                 must not overlap."
            )
        };
        refused("TRACKING ON BCAST PREFIX ab PREFIX a", &overlap("ab", "another provided", "a"));
        let mut conn = server.connect();
        conn.cmd("CLIENT TRACKING ON BCAST PREFIX ab");
        let mut refused = |line: &str, text: &str| {
            assert_reply!(conn, &format!("CLIENT {line}"), format!("(error) ERR {text}"));
        };
        refused("TRACKING ON BCAST PREFIX a", &overlap("a", "an existing", "ab"));
        refused("TRACKING ON BCAST PREFIX abc", &overlap("abc", "an existing", "ab"));
        let switch = |what: &str| {
            format!(
                "You can't switch {what} before disabling tracking for this client, and then \
                 re-enabling it with a different mode."
            )
        };
        refused("TRACKING ON", &switch("BCAST mode on/off"));
        let only = "CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.";
        refused("CACHING YES", only);
        refused("CACHING maybe", "syntax error");
        conn.pipeline(&["CLIENT TRACKING OFF", "CLIENT TRACKING ON OPTIN"]);
        let text = format!("(error) ERR {}", switch("OPTIN/OPTOUT mode"));
        assert_reply!(conn, "CLIENT TRACKING ON OPTOUT", text);
    });
}

#[test]
fn a_served_blocked_client_gets_its_reply_before_the_invalidation() {
    let server = with_workers(1).start();
    let mut cacher = Cacher::new(&server, 3, "");
    let mut other = server.connect();
    other.cmd("RPUSH to a");
    cacher.read("LRANGE to 0 -1");
    cacher.conn.send("BLMOVE from to LEFT LEFT 0");
    wait_until("it waits", || other.info("blocked_clients") == "1");
    other.cmd("RPUSH from x");
    // Redis 7.0 sends the invalidation before the reply.
    if !subject_is_redis() {
        cacher.conn.expect_bytes(b"$1\r\nx\r\n");
        cacher.hears(&["to"]);
        cacher.heard_all();
    }
}

/// However the workers interleave, no cache contains outdated values in the end.
#[test]
fn no_cache_goes_stale_unnoticed() {
    let server = with_workers(4).start();
    let cachers: Vec<Cacher> = (0..4).map(|_| Cacher::new(&server, 3, "")).collect();
    let filled = std::thread::scope(|scope| {
        let fill = |cacher: Cacher| scope.spawn(move || fill_cache(cacher.conn));
        let caches: Vec<_> = cachers.into_iter().map(fill).collect();
        let writers: Vec<Conn> = (0..3).map(|_| server.connect()).collect();
        for conn in writers {
            scope.spawn(move || change_keys(conn));
        }
        caches.into_iter().map(|cache| cache.join()).collect::<Vec<_>>()
    });
    let mut conn = server.connect();
    for filled in filled {
        let Ok((mut cacher, mut cache)) = filled else { panic!("a cache was not filled") };
        // Expired keys are invalidated when they are accessed.
        for key in 0..20 {
            conn.cmd(&format!("GET key:{key}"));
        }
        take_until_pong(&mut cacher, &mut cache);
        for (key, cached) in cache {
            assert_eq!(conn.cmd(&format!("GET {key}")).to_string(), cached, "{key}");
        }
    }
}

fn change_keys(mut conn: Conn) {
    for step in 0..3000 {
        let key = step * 7 % 20;
        match step % 5 {
            0 => conn.cmd(&format!("DEL key:{key}")),
            1 => conn.cmd(&format!("SET key:{key} 5 PX 1")),
            _ => conn.cmd(&format!("INCR key:{key}")),
        };
    }
}

type Cache = HashMap<String, String>;

fn fill_cache(mut conn: Conn) -> (Conn, Cache) {
    let mut cache = Cache::new();
    for step in 0..6000 {
        let key = format!("key:{}", step % 20);
        if cache.contains_key(&key) {
            take_until_pong(&mut conn, &mut cache);
            continue;
        }
        conn.send(&format!("GET {key}"));
        loop {
            let reply = conn.reply();
            if !invalidate(&reply, &mut cache) {
                cache.insert(key, reply.to_string());
                break;
            }
        }
    }
    (conn, cache)
}

fn take_until_pong(conn: &mut Conn, cache: &mut Cache) {
    conn.send("PING");
    while invalidate(&conn.reply(), cache) {}
}

/// Removes the keys in a message from the cache. Returns false if the reply is not a message.
fn invalidate(reply: &Reply, cache: &mut Cache) -> bool {
    let Reply::Push(parts) = reply else { return false };
    for key in parts[1].elements() {
        cache.remove(&key.text());
    }
    true
}

#[test]
fn changes_of_a_slow_script_are_invalidated_when_it_ends() {
    let server = with_workers(2).set("busy-reply-threshold", "1").start();
    for options in ["", "BCAST"] {
        let mut cacher = Cacher::new(&server, 3, options);
        cacher.conn.cmd("GET k");
        let mut writer = server.connect();
        let source = "redis.call('SET', KEYS[1], 'v') local n = 0 \
                      for i = 1, 20000000 do n = n + i % 7 end return 1";
        assert_eq!(writer.call(&["EVAL", source, "1", "k"]).integer(), 1);
        // The message must arrive without a further write.
        let message = cacher.conn.reply();
        assert!(message.to_string().contains("invalidate"), "{options}: {message}");
    }
}

/// As with FLUSHALL, one message replaces many.
#[test]
fn a_tracker_that_does_not_read_is_sent_one_invalidation_about_all_keys() {
    if subject_is_redis() {
        return; // Redis keeps every message
    }
    let launch = || with_workers(2).set("output-soft-limit", "64kb");
    each_backend(launch, |server| {
        for resp in [2, 3] {
            hears_of_all(server, resp, "BCAST", |_, _| ());
        }
        // The client reads its own replies.
        hears_of_all(server, 2, "", |cacher, key| cacher.read(&format!("EXISTS {key}")));
    });
}

/// Changes keys while the client does not read, calling `before` before each change, and then reads. Each attempt
/// changes twice as many keys as the previous one, until the messages exceed the kernel's buffers.
fn hears_of_all(server: &Server, resp: u8, options: &str, before: impl Fn(&mut Cacher, &str)) {
    /// The last attempt sends 64 MiB. Linux buffers about 10 MiB per connection by default.
    const ATTEMPTS: u32 = 12;
    let mut cacher = Cacher::new(server, resp, options);
    let mut writer = server.connect();
    let padding = "k".repeat(16 << 10);
    let mut change = |cacher: &mut Cacher, key: &str| {
        before(cacher, key);
        assert_reply!(writer, &format!("SET {key} v"), "OK");
    };
    let mut looker = server.connect();
    let mut held = || -> u64 {
        let list = looker.cmd("CLIENT LIST").text();
        let omem = |line: &str| -> Option<u64> {
            line.split(" omem=").nth(1)?.split(' ').next()?.parse().ok()
        };
        list.lines().filter_map(omem).sum()
    };
    let was_about_all = (0..ATTEMPTS).any(|attempt| {
        for at in 0..1 << attempt {
            change(&mut cacher, &format!("{padding}:{attempt}:{at}"));
            change(&mut cacher, &format!("{padding}:{attempt}:{at}:second"));
            if at % 16 == 0 {
                let bytes = held();
                assert!(bytes < 512 << 10, "{bytes} bytes are held");
            }
        }
        change(&mut cacher, "last");
        hears_of_all_or_last(&mut cacher)
    });
    assert!(was_about_all, "no message was about all keys");
    // After it has read everything, the client gets a message for each key again. There may be several messages about
    // all keys, and any of them may include this change.
    loop {
        change(&mut cacher, "last");
        if !hears_of_all_or_last(&mut cacher) {
            break;
        }
    }
}

/// Reads messages up to the first one that is about all keys (returns true), or about the key `last` (returns false).
fn hears_of_all_or_last(cacher: &mut Cacher) -> bool {
    let listener = cacher.ear.as_mut().unwrap_or(&mut cacher.conn);
    loop {
        match listener.reply().elements().last().expect("an invalidation has elements") {
            Reply::Null => return true,
            keys if keys.elements().first().is_some_and(|key| key.text() == "last") => {
                return false;
            }
            _ => {}
        }
    }
}
