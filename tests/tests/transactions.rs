//! Transactions: which commands are queued or rejected, what EXEC runs, and which changes WATCH detects.

use brisk_testkit::random::Random;
use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, assert_reply, each_backend, each_config, wait_until};
use brisk_tests::with_workers;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const ABORTED: &str = "(error) EXECABORT Transaction discarded because of previous errors.";

/// Starts a transaction and queues lines in it.
#[track_caller]
fn queue(conn: &mut Conn, lines: &[&str]) {
    assert_reply!(conn, "MULTI", "OK");
    for line in lines {
        assert_reply!(conn, line, "QUEUED");
    }
}

#[test]
fn queued_commands_run_in_order_and_reply_together() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        queue(&mut conn, &["SET k 1", "INCR k", "GET none", "client getname"]);
        assert_reply!(other, "EXISTS k", "(integer) 0");
        assert_reply!(conn, "EXEC", "1) OK\n2) (integer) 2\n3) (nil)\n4) (nil)");
        assert_reply!(conn, "EXEC", "(error) ERR EXEC without MULTI");
        queue(&mut conn, &[]);
        assert_reply!(conn, "EXEC", "(empty array)");
        queue(&mut conn, &["SET k 5"]);
        assert_reply!(conn, "DISCARD", "OK");
        assert_reply!(conn, "DISCARD", "(error) ERR DISCARD without MULTI");
        assert_reply!(conn, "GET k", "\"2\"");
    });
}

#[test]
fn an_error_while_queueing_aborts_and_one_while_running_does_not() {
    each_config(|server| {
        let mut conn = server.connect();
        for line in ["nosuch", "GET", "DISCARD x", "CLIENT NOSUCH", "SHUTDOWN"] {
            queue(&mut conn, &["SET k 1"]);
            let reply = conn.cmd(line).to_string();
            assert!(reply.starts_with("(error) ERR"), "{line}: {reply}");
            assert_reply!(conn, "SET k 2", "QUEUED");
            assert_reply!(conn, "EXEC", ABORTED);
            assert_reply!(conn, "EXISTS k", "(integer) 0");
        }
        queue(&mut conn, &[]);
        let text = "(error) ERR Command not allowed inside a transaction";
        assert_reply!(conn, "SHUTDOWN NOSAVE", text);
        assert_reply!(conn, "EXEC", ABORTED);
        queue(&mut conn, &["SET k x", "LPUSH k 1", "SELECT 99", "SET l y"]);
        let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
        let reply = format!(
            "1) OK\n2) (error) {wrong_type}\n3) (error) ERR DB index is out of range\n4) OK"
        );
        assert_reply!(conn, "EXEC", reply);
    });
}

#[test]
fn a_rejected_exec_ends_the_transaction() {
    each_config(|server| {
        let mut conn = server.connect();
        let text = "(error) EXECABORT Transaction discarded because of: \
                    wrong number of arguments for 'exec' command";
        queue(&mut conn, &["SET k 1"]);
        assert_reply!(conn, "EXEC now", text);
        assert_reply!(conn, "EXEC", "(error) ERR EXEC without MULTI");
        assert_reply!(conn, "EXEC now", text);
    });
}

#[test]
fn transactions_do_not_nest_and_watches_come_before() {
    each_config(|server| {
        let mut conn = server.connect();
        queue(&mut conn, &["PING"]);
        assert_reply!(conn, "MULTI", "(error) ERR MULTI calls can not be nested");
        assert_reply!(conn, "WATCH k", "(error) ERR WATCH inside MULTI is not allowed");
        assert_reply!(conn, "UNWATCH", "QUEUED");
        assert_reply!(conn, "EXEC", "1) PONG\n2) OK");
    });
}

#[test]
fn select_within_a_transaction_applies_to_later_commands() {
    each_config(|server| {
        let mut conn = server.connect();
        let lines =
            ["SET k 0", "SELECT 3", "SET k 3", "SELECT 77", "APPEND k !", "SELECT 1", "GET k"];
        queue(&mut conn, &lines);
        let reply = "1) OK\n2) OK\n3) OK\n4) (error) ERR DB index is out of range\n\
                      5) (integer) 2\n6) OK\n7) (nil)";
        assert_reply!(conn, "EXEC", reply);
        conn.cmd("SELECT 3");
        assert_reply!(conn, "GET k", "\"3!\"");
    });
}

#[test]
fn a_rejected_select_leaves_later_commands_in_their_database() {
    each_config(|server| {
        let mut admin = server.connect();
        admin.cmd("ACL SETUSER bob on nopass ~* +@all -select");
        let mut conn = server.connect();
        queue(&mut conn, &["AUTH bob x", "SELECT 1", "SET k bob", "GET k"]);
        let reply = "1) OK\n2) (error) NOPERM ACLs rules changed between the moment the \
                      transaction was accumulated and the EXEC call. This command is no longer \
                      allowed for the following reason: no permission to execute the command or \
                      subcommand\n3) OK\n4) \"bob\"";
        assert_reply!(conn, "EXEC", reply);
        assert_reply!(admin, "GET k", "\"bob\"");
        // The replies are the same if the permission is revoked while the commands are queued.
        let mut conn = server.connect();
        admin.cmd("ACL SETUSER ann on nopass ~* +@all");
        conn.cmd("AUTH ann x");
        queue(&mut conn, &["SELECT 1", "SET k ann", "GET k"]);
        admin.cmd("ACL SETUSER ann -select");
        let reply = "1) (error) NOPERM ACLs rules changed between the moment the \
                      transaction was accumulated and the EXEC call. This command is no longer \
                      allowed for the following reason: no permission to execute the command or \
                      subcommand\n2) OK\n3) \"ann\"";
        assert_reply!(conn, "EXEC", reply);
    });
}

#[test]
fn exec_says_which_right_was_lost_since_a_command_was_queued() {
    const LOST: &str = "(error) NOPERM ACLs rules changed between the moment the transaction was \
                        accumulated and the EXEC call. This command is no longer allowed for the \
                        following reason: no permission to";
    each_config(|server| {
        let [mut admin, mut conn] = server.connections();
        for (lost, queued, reason) in [
            ("-set", "SET k v", "execute the command or subcommand"),
            ("-config|get", "CONFIG GET dir", "execute the command or subcommand"),
            ("resetkeys %R~*", "SET k v", "touch the specified keys"),
            ("resetchannels", "PUBLISH c m", "access one of the channels used as arguments"),
            ("resetchannels", "SPUBLISH c m", "access one of the channels used as arguments"),
            ("resetchannels", "SUBSCRIBE c", "access one of the channels used as arguments"),
        ] {
            admin.cmd("ACL SETUSER ann reset on nopass ~* &* +@all");
            conn.cmd("AUTH ann x");
            queue(&mut conn, &[queued]);
            admin.cmd(&format!("ACL SETUSER ann {lost}"));
            assert_reply!(conn, "EXEC", format!("1) {LOST} {reason}"));
        }
    });
}

#[test]
fn commands_that_use_more_than_their_keys_work_in_transactions() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.cmd("MSET w_a 2 w_b 1");
        let lines = [
            "RPUSH l a b",
            "SORT l BY w_*",
            "MOVE l 1",
            "KEYS *",
            "DBSIZE",
            "COPY w_a w_a DB 1",
            "CONFIG SET slowlog-max-len 100",
            "SWAPDB 0 1",
            "EXISTS l w_a",
            "FLUSHALL",
            "SET k v",
            "RANDOMKEY",
            "SCAN 0",
            "DEBUG SLEEP 0.01",
            "DEBUG DIGEST",
            "MEMORY USAGE k",
            "MEMORY STATS",
        ];
        queue(&mut conn, &lines);
        let replies = conn.cmd("EXEC");
        let replies: Vec<String> = replies.elements().iter().map(|r| r.to_string()).collect();
        assert_eq!(replies[0], "(integer) 2");
        assert_eq!(replies[1], "1) \"b\"\n2) \"a\"");
        assert_eq!(replies[2], "(integer) 1");
        assert!(replies[3].contains("w_a") && replies[3].contains("w_b"));
        assert_eq!(replies[4..8], ["(integer) 2", "(integer) 1", "OK", "OK"]);
        assert_eq!(replies[8..12], ["(integer) 2", "OK", "OK", "\"k\""]);
        assert_eq!((replies.len(), &replies[13][..]), (lines.len(), "OK"));
        conn.assert_in_step();
    });
}

#[test]
fn blocking_commands_do_not_block_and_blocked_clients_are_served_after_exec() {
    each_config(|server| {
        let [mut conn, mut waiter] = server.connections();
        queue(&mut conn, &["BLPOP q 0", "BLMOVE q r LEFT LEFT 0", "XREAD BLOCK 0 STREAMS s 0"]);
        assert_reply!(conn, "EXEC", "1) (nil)\n2) (nil)\n3) (nil)");
        waiter.send("BLPOP q 0");
        wait_until("a client is blocked", || conn.info("blocked_clients") == "1");
        // Elements that are pushed and popped within the transaction are never visible to other clients.
        queue(&mut conn, &["RPUSH q 1 2", "LPOP q", "LLEN q"]);
        assert_reply!(conn, "EXEC", "1) (integer) 2\n2) \"1\"\n3) (integer) 1");
        assert_eq!(waiter.reply().to_string(), "1) \"q\"\n2) \"2\"");
    });
}

#[test]
fn a_waiting_client_that_is_unblocked_in_a_transaction_is_not_served_by_it() {
    each_config(|server| {
        let [mut conn, mut waiter] = server.connections();
        let id = waiter.id();
        waiter.send("BLPOP q 0");
        wait_until("a client is blocked", || conn.info("blocked_clients") == "1");
        queue(&mut conn, &["RPUSH q 1", &format!("CLIENT UNBLOCK {id}"), "LLEN q"]);
        assert_reply!(conn, "EXEC", "1) (integer) 1\n2) (integer) 1\n3) (integer) 1");
        assert_eq!(waiter.reply().to_string(), "(nil)");
        assert_reply!(conn, "LLEN q", "(integer) 1");
    });
}

#[test]
fn watched_keys_that_change_make_exec_return_null() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        for (line, runs) in [
            ("SET k 1", false),
            ("GET k", true),
            ("SET j 1", true),
            ("EXPIRE k 100", false),
            ("DEL k", false),
            ("DEL k", true),
            ("LPUSH k 1", false),
            ("FLUSHALL", false),
            ("FLUSHALL", true),
        ] {
            assert_reply!(conn, "WATCH k k other", "OK");
            other.cmd(line);
            queue(&mut conn, &["PING"]);
            let reply = if runs { "1) PONG" } else { "(nil)" };
            assert_reply!(conn, "EXEC", reply);
            // The watch ends in either case.
            other.cmd("SET other 1");
            queue(&mut conn, &["PING"]);
            assert_reply!(conn, "EXEC", "1) PONG");
            other.cmd("DEL other");
        }
        // A client's own changes also count, except those between MULTI and EXEC.
        conn.cmd("WATCH k");
        conn.cmd("SET k own");
        queue(&mut conn, &["PING"]);
        assert_reply!(conn, "EXEC", "(nil)");
        conn.cmd("WATCH k");
        queue(&mut conn, &["SET k a", "SET k b"]);
        assert_reply!(conn, "EXEC", "1) OK\n2) OK");
        queue(&mut conn, &["GET k"]);
        assert_reply!(conn, "EXEC", "1) \"b\"");
    });
}

#[test]
fn a_watch_concerns_a_key_in_one_database() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        conn.cmd("SELECT 1");
        conn.cmd("WATCH k");
        conn.cmd("SELECT 0");
        other.cmd("SET k 0");
        queue(&mut conn, &["PING"]);
        assert_reply!(conn, "EXEC", "1) PONG");
        conn.cmd("WATCH k");
        other.cmd("SWAPDB 0 1");
        queue(&mut conn, &["PING"]);
        assert_reply!(conn, "EXEC", "(nil)");
    });
}

#[test]
fn a_watched_key_that_expires_aborts_even_before_it_is_removed() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        other.cmd("SET k v PX 30");
        conn.cmd("WATCH k");
        wait_until("the key has expired", || other.cmd("PTTL k").to_string() == "(integer) -2");
        queue(&mut conn, &["PING"]);
        assert_reply!(conn, "EXEC", "(nil)");
        conn.cmd("WATCH k");
        queue(&mut conn, &["PING"]);
        assert_reply!(conn, "EXEC", "1) PONG");
    });
}

#[test]
fn serving_a_blocked_client_breaks_a_watch() {
    each_config(|server| {
        let [mut conn, mut waiter, mut pusher] = server.connections();
        conn.cmd("WATCH there");
        waiter.send("BLMOVE q there LEFT LEFT 0");
        wait_until("a client is blocked", || pusher.info("blocked_clients") == "1");
        pusher.cmd("LPUSH q x");
        assert_eq!(waiter.reply().to_string(), "\"x\"");
        queue(&mut conn, &["PING"]);
        assert_reply!(conn, "EXEC", "(nil)");
    });
}

#[test]
fn unwatch_discard_and_reset_forget_what_is_watched() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        for forget in ["UNWATCH", "DISCARD", "RESET", "EXEC x"] {
            conn.cmd("WATCH k");
            other.cmd("SET k 1");
            if forget != "UNWATCH" {
                conn.cmd("MULTI");
            }
            conn.cmd(forget);
            queue(&mut conn, &["PING"]);
            assert_reply!(conn, "EXEC", "1) PONG");
        }
    });
}

#[test]
fn client_list_shows_transactions_and_broken_watches() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        let id = conn.id();
        let shown = |other: &mut Conn, text: &str| {
            let line = other.cmd(&format!("CLIENT LIST ID {id}")).text();
            assert!(line.contains(text), "{text}: {line}");
        };
        shown(&mut other, "multi=-1 ");
        conn.cmd("WATCH k");
        shown(&mut other, "flags=N ");
        queue(&mut conn, &["SET a 1", "SET b 2"]);
        shown(&mut other, "flags=x ");
        shown(&mut other, "multi=2 ");
        other.cmd("SET k 1");
        shown(&mut other, "flags=xd ");
        let line = other.cmd(&format!("CLIENT LIST ID {id}")).text();
        assert!(!line.contains("multi-mem=0 "), "{line}");
        conn.cmd("EXEC");
        shown(&mut other, "flags=N ");
        shown(&mut other, "multi-mem=0 ");
        queue(&mut conn, &["CLIENT INFO"]);
        let own = conn.cmd("EXEC").elements()[0].text();
        assert!(own.contains("multi=1 ") && own.contains("cmd=exec "), "{own}");
    });
}

#[test]
fn monitors_see_what_is_run_when_it_is_run() {
    each_config(|server| {
        let [mut watcher, mut conn] = server.connections();
        assert_reply!(watcher, "MONITOR", "OK");
        queue(&mut conn, &["SET k 1", "AUTH secret", "MONITOR"]);
        let refused = "MONITOR isn't allowed for DENY BLOCKING client";
        assert_eq!(conn.cmd("EXEC").elements()[2].to_string(), format!("(error) ERR {refused}"));
        queue(&mut conn, &["GET k"]);
        conn.cmd("nosuch");
        conn.cmd("EXEC");
        conn.cmd("EXEC now");
        conn.cmd("PING end");
        let shown: Vec<String> = std::iter::from_fn(|| {
            let text = watcher.reply().text();
            let words = text.split_once("] ").map(|(_, words)| words.to_owned());
            words.filter(|words| !words.contains("end"))
        })
        .collect();
        let wanted = [
            r#""MULTI""#,
            r#""SET" "k" "1""#,
            r#""AUTH" "(redacted)""#,
            r#""EXEC""#,
            r#""MULTI""#,
            r#""EXEC""#,
            r#""EXEC" "now""#,
        ];
        assert_eq!(shown, wanted);
    });
}

#[test]
fn statistics_and_the_slow_log_know_the_commands_that_ran() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.cmd("CONFIG SET slowlog-log-slower-than 0");
        conn.cmd("SLOWLOG RESET");
        queue(&mut conn, &["SET k x", "INCR k"]);
        conn.cmd("EXEC");
        conn.cmd("CONFIG SET slowlog-log-slower-than -1");
        let entries = conn.cmd("SLOWLOG GET 10").to_string();
        assert!(entries.contains("SET") && entries.contains("INCR"), "{entries}");
        assert!(!entries.contains("EXEC") && !entries.contains("QUEUED"), "{entries}");
        let stats = conn.cmd("INFO commandstats").text();
        let line = |name: &str| {
            let start = format!("cmdstat_{name}:");
            stats.lines().find(|line| line.starts_with(&start)).unwrap_or_default().to_owned()
        };
        assert!(line("set").contains("calls=1,"), "{stats}");
        let incr = line("incr");
        assert!(incr.contains("calls=1,") && incr.ends_with("failed_calls=1"), "{incr}");
        assert!(line("exec").ends_with("failed_calls=0"), "{stats}");
    });
}

#[test]
fn out_of_memory_rejects_commands_when_queued_and_when_run() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        other.cmd("SET k 1");
        let oom = "OOM command not allowed when used memory > 'maxmemory'.";
        queue(&mut conn, &["SET k 2"]);
        other.cmd("CONFIG SET maxmemory 1");
        let text = format!("(error) EXECABORT Transaction discarded because of: {oom}");
        assert_reply!(conn, "EXEC", text);
        queue(&mut conn, &[]);
        assert_reply!(conn, "GET k", format!("(error) {oom}"));
        assert_reply!(conn, "EXEC", ABORTED);
        other.cmd("CONFIG SET maxmemory 0");
        queue(&mut conn, &["GET k"]);
        other.cmd("CONFIG SET maxmemory 1");
        assert_reply!(conn, "EXEC", "1) \"1\"");
    });
}

#[test]
fn a_transaction_that_writes_waits_for_the_end_of_a_pause() {
    each_config(|server| {
        let [mut conn, mut reader, mut other] = server.connections();
        queue(&mut conn, &["SET k 1"]);
        queue(&mut reader, &["GET k"]);
        other.cmd("CLIENT PAUSE 100000 WRITE");
        assert_reply!(reader, "EXEC", "1) (nil)");
        conn.send("EXEC");
        wait_until("EXEC waits", || other.info("blocked_clients") == "1");
        other.cmd("CLIENT UNPAUSE");
        assert_eq!(conn.reply().to_string(), "1) OK");
    });
}

#[test]
fn large_replies_arrive_in_order() {
    each_config(|server| {
        let mut conn = server.connect();
        let items: Vec<String> = (0..30_000).map(|i| format!("item:{i}")).collect();
        conn.cmd(&format!("RPUSH l {}", items.join(" ")));
        let text = "x".repeat(300_000);
        let lines =
            ["LRANGE l 0 -1", &format!("SET s {text}"), "GET s", "DEL l s", "LRANGE l 0 -1"];
        queue(&mut conn, &lines);
        let replies = conn.cmd("EXEC");
        let replies = replies.elements();
        assert_eq!(replies[0].elements().len(), items.len());
        assert_eq!(replies[2].text(), text);
        assert_eq!(replies[3].to_string(), "(integer) 2");
        assert_eq!(replies[4].elements().len(), 0);
        conn.assert_in_step();
    });
}

#[test]
fn closed_sessions_leave_no_watches() {
    if subject_is_redis() {
        return; // counts nothing that would show it
    }
    each_config(|server| {
        let mut other = server.connect();
        for _ in 0..3 {
            let mut disconnected = server.connect();
            disconnected.cmd("WATCH a b c");
            disconnected.cmd("MULTI");
            disconnected.cmd("SET a 1");
        }
        wait_until("they are gone", || other.info("connected_clients") == "1");
        assert_reply!(other, "SET a 2", "OK");
        let mut conn = server.connect();
        conn.cmd("WATCH a");
        queue(&mut conn, &["GET a"]);
        assert_reply!(conn, "EXEC", "1) \"2\"");
    });
}

#[test]
fn queued_commands_are_bounded_like_other_input() {
    if subject_is_redis() {
        return; // 7.0 sets no limit, 7.2 does
    }
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        other.cmd("CONFIG SET client-query-buffer-limit 1048576");
        queue(&mut conn, &[]);
        let line = format!("SET k {}", "x".repeat(300_000));
        let queued = (0..9).take_while(|_| conn.try_cmd(&line).is_ok()).count();
        assert!((3..=4).contains(&queued), "{queued}");
        assert_reply!(other, "EXISTS k", "(integer) 0");
    });
}

/// Number of rounds of each client in the races.
const ROUNDS: usize = 300;

#[test]
fn no_acknowledged_increment_is_lost() {
    const KEYS: [&str; 2] = ["counter:1", "counter:2"];
    each_backend(
        || with_workers(2),
        |server| {
            let done = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for client in 0..4 {
                    let (done, mut conn) = (&done, server.connect());
                    scope.spawn(move || {
                        for round in 0..ROUNDS {
                            let key = KEYS[(client + round) % 2];
                            conn.cmd(&format!("WATCH {key}"));
                            let now = conn.cmd(&format!("GET {key}"));
                            let now: u64 = now.text().parse().unwrap_or(0);
                            conn.cmd("MULTI");
                            conn.cmd(&format!("SET {key} {}", now + 1));
                            if conn.cmd("EXEC") != Reply::Null {
                                done.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
            });
            let mut conn = server.connect();
            let sum: u64 = KEYS
                .iter()
                .map(|key| conn.cmd(&format!("GET {key}")).text().parse().unwrap_or(0))
                .sum();
            assert_eq!(sum, done.load(Ordering::Relaxed));
            assert!(sum > 0);
        },
    );
}

#[test]
fn readers_never_see_half_a_transfer() {
    const ACCOUNTS: usize = 6;
    const EACH: i64 = 1000;
    each_backend(
        || with_workers(2),
        |server| {
            let mut conn = server.connect();
            for account in 0..ACCOUNTS {
                conn.cmd(&format!("SET account:{account} {EACH}"));
            }
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let writers: Vec<_> = (0..3)
                    .map(|client| {
                        let mut conn = server.connect();
                        scope.spawn(move || {
                            let mut random = Random::new(client);
                            for round in 0..ROUNDS {
                                let from = random.below(ACCOUNTS);
                                let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
                                let by = 1 + random.below(50);
                                // Sometimes a command needs all other workers quiesced.
                                let last = if round % 16 == 0 { "DBSIZE" } else { "PING" };
                                let last = if round % 16 == 8 { "RANDOMKEY" } else { last };
                                let replies = conn.pipeline(&[
                                    "MULTI",
                                    &format!("DECRBY account:{from} {by}"),
                                    &format!("INCRBY account:{to} {by}"),
                                    last,
                                    "EXEC",
                                ]);
                                assert_eq!(replies[4].elements().len(), 3, "{:?}", replies[4]);
                            }
                        })
                    })
                    .collect();
                let over = &over;
                let mut reader = server.connect();
                scope.spawn(move || {
                    let gets: Vec<String> =
                        (0..ACCOUNTS).map(|account| format!("GET account:{account}")).collect();
                    while !over.load(Ordering::Relaxed) {
                        let mut lines = vec!["MULTI"];
                        lines.extend(gets.iter().map(String::as_str));
                        lines.push("EXEC");
                        let replies = reader.pipeline(&lines);
                        let last = &replies[lines.len() - 1];
                        let number = |reply: &&Reply| reply.text().parse::<i64>().unwrap_or(0);
                        let sum: i64 = last.elements().iter().map(number).sum();
                        assert_eq!(sum, EACH * ACCOUNTS as i64);
                    }
                });
                for writer in writers {
                    let ended = writer.join();
                    over.store(true, Ordering::Relaxed);
                    ended.expect("all transfers were made");
                }
            });
        },
    );
}

#[test]
fn a_client_that_kills_itself_gets_no_later_replies() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        let id = conn.id();
        let kill = format!("CLIENT KILL ID {id} SKIPME no");
        conn.pipeline(&["MULTI", "SET a 1", &kill, "SET b 2", "PING"]);
        conn.send("EXEC");
        conn.expect_bytes(b"*4\r\n+OK\r\n:1\r\n");
        assert!(conn.read_to_end().is_empty());
        assert_reply!(other, "MGET a b", "1) \"1\"\n2) \"2\"");
    });
}
