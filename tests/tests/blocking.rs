//! Blocking commands: the order in which clients are served, what makes a key ready, and other ways in which a wait
//! ends.

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, assert_reply, each_config, wait_until};
use brisk_tests::with_workers;
use std::collections::HashMap;
use std::time::Duration;

/// Asserts that the next reply is this text in redis-cli's format.
macro_rules! assert_next_reply {
    ($conn:expr, $text:expr) => {
        assert_eq!($conn.reply().to_string(), $text)
    };
}

/// Sends a command that blocks, and returns when the server reports `blocked` blocked clients.
#[track_caller]
fn block(waiter: &mut Conn, line: &str, other: &mut Conn, blocked: usize) {
    waiter.send(line);
    wait_for_blocked(other, blocked);
}

#[track_caller]
fn wait_for_blocked(conn: &mut Conn, blocked: usize) {
    wait_until(&format!("{blocked} clients are blocked"), || {
        conn.info("blocked_clients") == blocked.to_string()
    });
}

#[test]
fn waiters_are_served_in_order_of_arrival() {
    each_config(|server| {
        let [mut a, mut b, mut c, mut pusher] = server.connections();
        block(&mut a, "BLPOP q 0", &mut pusher, 1);
        block(&mut b, "BRPOP q 0", &mut pusher, 2);
        block(&mut c, "BLPOP q 0", &mut pusher, 3);
        assert_reply!(pusher, "RPUSH q 1 2 3 4", "(integer) 4");
        assert_next_reply!(a, "1) \"q\"\n2) \"1\"");
        assert_next_reply!(b, "1) \"q\"\n2) \"4\"");
        assert_next_reply!(c, "1) \"q\"\n2) \"2\"");
        assert_reply!(pusher, "LRANGE q 0 -1", "1) \"3\"");
        assert_eq!(pusher.info("blocked_clients"), "0");
    });
}

#[test]
fn one_wait_for_several_keys_ends_once() {
    each_config(|server| {
        let [mut waiter, mut other] = server.connections();
        block(&mut waiter, "BLPOP a b c b 0", &mut other, 1);
        other.cmd("RPUSH c 1");
        assert_next_reply!(waiter, "1) \"c\"\n2) \"1\"");
        other.cmd("RPUSH b 2");
        assert_reply!(waiter, "BLPOP a b 0", "1) \"b\"\n2) \"2\"");
        assert_reply!(other, "EXISTS a b c", "(integer) 0");
    });
}

#[test]
fn a_timed_out_wait_returns_null() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "BLPOP nothing 0.02", "(nil)");
        assert_reply!(conn, "BLMOVE nothing there LEFT LEFT 0.02", "(nil)");
        assert_reply!(conn, "BRPOPLPUSH nothing there 0.02", "(nil)");
        assert_reply!(conn, "BLMPOP 0.02 2 nothing more LEFT", "(nil)");
        assert_reply!(conn, "BZPOPMIN nothing 0.02", "(nil)");
        assert_reply!(conn, "BZMPOP 0.02 1 nothing MAX", "(nil)");
        conn.assert_in_step();
    });
}

#[test]
fn timeouts_must_be_numbers_that_are_not_negative() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "BLPOP k -1", "(error) ERR timeout is negative");
        let text = "(error) ERR timeout is not a float or out of range";
        assert_reply!(conn, "BLPOP k soon", text);
    });
}

#[test]
fn commands_after_a_blocking_one_run_when_it_is_unblocked() {
    each_config(|server| {
        let [mut waiter, mut other] = server.connections();
        waiter.send_raw(b"BLPOP q 0\r\nSET after yes\r\nGET after\r\n");
        wait_for_blocked(&mut other, 1);
        assert_reply!(other, "EXISTS after", "(integer) 0");
        other.cmd("LPUSH q x");
        assert_next_reply!(waiter, "1) \"q\"\n2) \"x\"");
        assert_next_reply!(waiter, "OK");
        assert_next_reply!(waiter, "\"yes\"");
    });
}

#[test]
fn client_unblock_ends_a_wait_as_a_timeout_or_as_an_error() {
    each_config(|server| {
        let [mut waiter, mut other] = server.connections();
        let id = waiter.id();
        assert_reply!(other, &format!("CLIENT UNBLOCK {id}"), "(integer) 0");
        block(&mut waiter, "BLPOP q 0", &mut other, 1);
        let list = other.cmd("CLIENT LIST").text();
        let line = list.lines().find(|line| line.starts_with(&format!("id={id} "))).unwrap();
        assert!(line.contains(" flags=b ") && line.contains(" events=r "), "{line}");
        assert_reply!(other, &format!("CLIENT UNBLOCK {id}"), "(integer) 1");
        assert_next_reply!(waiter, "(nil)");
        block(&mut waiter, "BLPOP q 0", &mut other, 1);
        assert_reply!(other, &format!("CLIENT UNBLOCK {id} ERROR"), "(integer) 1");
        let text = "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK";
        assert_next_reply!(waiter, text);
        other.cmd("LPUSH q still-there");
        assert_reply!(waiter, "LPOP q", "\"still-there\"");
    });
}

#[test]
fn a_disconnected_client_gets_nothing() {
    each_config(|server| {
        let [mut disconnected, mut killed, mut waiter, mut other] = server.connections();
        let id = killed.id();
        block(&mut disconnected, "BLPOP q 0", &mut other, 1);
        block(&mut killed, "BLPOP q 0", &mut other, 2);
        block(&mut waiter, "BLPOP q 0", &mut other, 3);
        drop(disconnected);
        wait_for_blocked(&mut other, 2);
        assert_reply!(other, &format!("CLIENT KILL ID {id}"), "(integer) 1");
        wait_for_blocked(&mut other, 1);
        other.cmd("LPUSH q x");
        assert_next_reply!(waiter, "1) \"q\"\n2) \"x\"");
    });
}

#[test]
fn keys_of_another_type_are_passed_over() {
    each_config(|server| {
        let [mut waiter, mut other] = server.connections();
        block(&mut waiter, "BLPOP q 0", &mut other, 1);
        other.cmd("SET q text");
        other.cmd("DEL q");
        other.cmd("ZADD q 1 member");
        other.cmd("DEL q");
        other.cmd("LPUSH q x");
        assert_next_reply!(waiter, "1) \"q\"\n2) \"x\"");
        other.cmd("SET q text");
        let wrong = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_reply!(waiter, "BLPOP q 0", wrong);
    });
}

/// Each key is checked once, not once for each preceding key, which would take minutes.
#[test]
fn a_client_may_wait_for_very_many_keys() {
    each_config(|server| {
        let [mut waiter, mut other] = server.connections();
        let keys: Vec<String> = (0..40_000).map(|n| format!("k{}", n % 39_000)).collect();
        block(&mut waiter, &format!("BLPOP {} 0", keys.join(" ")), &mut other, 1);
        other.cmd("LPUSH k38999 x");
        assert_next_reply!(waiter, "1) \"k38999\"\n2) \"x\"");
        wait_for_blocked(&mut other, 0);
    });
}

/// Redis 7.0 replies with a fixed text. Redis 7.2 and Brisk execute the command again to get the reply.
#[test]
fn a_blocked_group_reader_gets_an_error_when_the_stream_is_deleted() {
    each_config(|server| {
        let [mut waiter, mut other] = server.connections();
        let [wrong_type, no_group] = ["WRONGTYPE", "NOGROUP"];
        for (how, ours) in [
            ("SET s text", wrong_type),
            ("RENAME other s", wrong_type),
            ("SUNIONSTORE s set", wrong_type),
            ("DEL s", no_group),
            ("RENAME s elsewhere", no_group),
            ("FLUSHALL", no_group),
        ] {
            other.cmd("FLUSHALL");
            other.cmd("SET other text");
            other.cmd("SADD set member");
            other.cmd("XGROUP CREATE s g $ MKSTREAM");
            let read = "XREADGROUP GROUP g alice BLOCK 0 STREAMS s >";
            block(&mut waiter, read, &mut other, 1);
            other.cmd(how);
            let reply = waiter.reply().to_string();
            let expected = if subject_is_redis() { "UNBLOCKED" } else { ours };
            assert!(reply.starts_with(&format!("(error) {expected}")), "{how}: {reply}");
        }
    });
}

#[test]
fn a_key_appears_by_rename_copy_move_and_swapdb_too() {
    each_config(|server| {
        let [mut waiter, mut other] = server.connections();
        for (prepare, how) in [
            ("RPUSH other x", "RENAME other q"),
            ("RPUSH other x", "COPY other q"),
            ("RPUSH other x", "LMOVE other q LEFT RIGHT"),
        ] {
            other.cmd("DEL other");
            block(&mut waiter, "BLPOP q 0", &mut other, 1);
            other.cmd(prepare);
            other.cmd(how);
            assert_next_reply!(waiter, "1) \"q\"\n2) \"x\"");
        }
        for how in ["MOVE q 0", "SWAPDB 0 5"] {
            block(&mut waiter, "BLPOP q 0", &mut other, 1);
            other.cmd("SELECT 5");
            other.cmd("RPUSH q x");
            other.cmd(how);
            assert_next_reply!(waiter, "1) \"q\"\n2) \"x\"");
            other.cmd("SELECT 0");
        }
    });
}

#[test]
fn serving_one_waiter_may_make_the_next_key_ready() {
    each_config(|server| {
        let [mut mover, mut last, mut other] = server.connections();
        block(&mut mover, "BLMOVE a b LEFT RIGHT 0", &mut other, 1);
        block(&mut last, "BLPOP b 0", &mut other, 2);
        other.cmd("RPUSH a x");
        assert_next_reply!(mover, "\"x\"");
        assert_next_reply!(last, "1) \"b\"\n2) \"x\"");
        assert_reply!(other, "EXISTS a b", "(integer) 0");
    });
}

#[test]
fn a_pause_holds_service_back() {
    each_config(|server| {
        let [mut waiter, mut other] = server.connections();
        block(&mut waiter, "BLPOP q 0", &mut other, 1);
        other.cmd("CLIENT PAUSE 100000 WRITE");
        assert!(!waiter.has_reply_within(Duration::from_millis(20)));
        other.cmd("CLIENT UNPAUSE");
        other.cmd("RPUSH q x");
        assert_next_reply!(waiter, "1) \"q\"\n2) \"x\"");
    });
}

#[test]
fn sorted_sets_serve_their_waiters() {
    each_config(|server| {
        let [mut min, mut max, mut many, mut other] = server.connections();
        block(&mut min, "BZPOPMIN z 0", &mut other, 1);
        block(&mut max, "BZPOPMAX other z 0", &mut other, 2);
        block(&mut many, "BZMPOP 0 2 other z MIN COUNT 2", &mut other, 3);
        other.cmd("ZADD z 1 a 2 b 3 c 4 d 5 e");
        let score = |score: u8| {
            if server.resp() == 3 { format!("(double) {score}") } else { format!("\"{score}\"") }
        };
        assert_next_reply!(min, format!("1) \"z\"\n2) \"a\"\n3) {}", score(1)));
        assert_next_reply!(max, format!("1) \"z\"\n2) \"e\"\n3) {}", score(5)));
        assert_eq!(many.reply().elements()[1].elements().len(), 2);
        assert_reply!(other, "ZCARD z", "(integer) 1");
    });
}

/// Producers and consumers on several workers: every element arrives once, and each producer's in
/// order.
#[test]
fn every_element_is_delivered_once_and_in_order() {
    const CONSUMERS: usize = 64;
    const PRODUCERS: usize = 4;
    const ELEMENTS: usize = 4000;
    let server = with_workers(2).start();
    let consumers: Vec<_> = (0..CONSUMERS)
        .map(|_| {
            let mut conn = server.connect();
            std::thread::spawn(move || {
                let mut got = Vec::new();
                loop {
                    let element = conn.cmd("BLPOP urgent work 0").elements()[1].text();
                    if element == "end" {
                        return got;
                    }
                    got.push(element);
                }
            })
        })
        .collect();
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let mut conn = server.connect();
            std::thread::spawn(move || {
                for element in 0..ELEMENTS {
                    conn.cmd(&format!("RPUSH work {producer}:{element}"));
                }
            })
        })
        .collect();
    producers.into_iter().for_each(|thread| thread.join().unwrap());
    let mut conn = server.connect();
    wait_until("all work is taken", || conn.cmd("LLEN work").integer() == 0);
    (0..CONSUMERS).for_each(|_| drop(conn.cmd("RPUSH work end")));
    let mut seen: HashMap<String, usize> = HashMap::new();
    for consumer in consumers {
        let got = consumer.join().unwrap();
        let mut last = [None; PRODUCERS];
        for element in got {
            let (producer, number) = element.split_once(':').unwrap();
            let (producer, number): (usize, usize) =
                (producer.parse().unwrap(), number.parse().unwrap());
            assert!(last[producer] < Some(number), "{element} after {:?}", last[producer]);
            last[producer] = Some(number);
            *seen.entry(element).or_default() += 1;
        }
    }
    assert_eq!(seen.len(), PRODUCERS * ELEMENTS);
    assert!(seen.values().all(|&times| times == 1));
    assert_eq!(conn.info("blocked_clients"), "0");
    assert_eq!(conn.cmd("EXISTS work urgent").integer(), 0);
}

#[test]
fn errors_that_end_a_wait_are_counted_as_failures() {
    each_config(|server| {
        let [mut waiter, mut other] = server.connections();
        let id = waiter.id();
        other.cmd("XGROUP CREATE s g $ MKSTREAM");
        other.cmd("CONFIG RESETSTAT");
        block(&mut waiter, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >", &mut other, 1);
        other.cmd("XGROUP DESTROY s g");
        assert!(waiter.reply().to_string().starts_with("(error) NOGROUP"));
        block(&mut waiter, "BLPOP q 0", &mut other, 1);
        other.cmd(&format!("CLIENT UNBLOCK {id} ERROR"));
        assert!(waiter.reply().to_string().starts_with("(error) UNBLOCKED"));
        assert_eq!(other.info("total_error_replies"), "2");
        let errors = other.cmd("INFO errorstats").text();
        assert!(errors.contains("errorstat_NOGROUP:count=1"), "{errors}");
        assert!(errors.contains("errorstat_UNBLOCKED:count=1"), "{errors}");
        let stats = other.cmd("INFO commandstats").text();
        for name in ["xreadgroup", "blpop"] {
            let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{name}:")));
            let line = line.unwrap_or_else(|| panic!("no {name} in {stats}"));
            assert!(line.contains("calls=1,") && line.contains("failed_calls=1"), "{line}");
        }
    });
}

/// Redis counts a blocking command when its wait ends since 7.2. Version 7.0 counts the command when it begins to wait.
#[test]
fn a_command_that_waits_is_counted_when_its_wait_is_over() {
    if subject_is_redis() {
        return;
    }
    each_config(|server| {
        let [mut waiter, mut other] = server.connections();
        let id = waiter.id();
        other.cmd("CONFIG SET slowlog-log-slower-than 0");
        other.cmd("CONFIG RESETSTAT");
        other.cmd("SLOWLOG RESET");
        let calls = |other: &mut Conn| {
            let stats = other.cmd("INFO commandstats").text();
            let line = stats.lines().find(|line| line.starts_with("cmdstat_blpop:"));
            line.map_or_else(String::new, |line| line.split(',').next().unwrap().to_owned())
        };
        let logged =
            |other: &mut Conn| other.cmd("SLOWLOG GET -1").to_string().matches("\"BLPOP\"").count();
        block(&mut waiter, "BLPOP q 0", &mut other, 1);
        assert_eq!((calls(&mut other), logged(&mut other)), (String::new(), 0));
        other.cmd("RPUSH q 1");
        assert_next_reply!(waiter, "1) \"q\"\n2) \"1\"");
        assert_eq!((calls(&mut other), logged(&mut other)), ("cmdstat_blpop:calls=1".into(), 1));
        assert_reply!(waiter, "BLPOP q 0.01", "(nil)");
        block(&mut waiter, "BLPOP q 0", &mut other, 1);
        other.cmd(&format!("CLIENT UNBLOCK {id} ERROR"));
        assert!(waiter.reply().to_string().starts_with("(error) UNBLOCKED"));
        assert_eq!((calls(&mut other), logged(&mut other)), ("cmdstat_blpop:calls=3".into(), 3));
    });
}

#[test]
fn info_shows_the_number_of_blocking_keys() {
    if subject_is_redis() {
        return; // since 7.2
    }
    each_config(|server| {
        let [mut a, mut b, mut member, mut other] = server.connections();
        other.cmd("XGROUP CREATE s g $ MKSTREAM");
        block(&mut a, "BLPOP q r 0", &mut other, 1);
        block(&mut b, "BLPOP q 0", &mut other, 2);
        block(&mut member, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >", &mut other, 3);
        assert_eq!(other.info("total_blocking_keys"), "3");
        assert_eq!(other.info("total_blocking_keys_on_nokey"), "1");
        other.cmd("RPUSH q 1 2");
        other.cmd("DEL s");
        wait_for_blocked(&mut other, 0);
        assert_eq!(other.info("total_blocking_keys"), "0");
        assert_eq!(other.info("total_blocking_keys_on_nokey"), "0");
    });
}
