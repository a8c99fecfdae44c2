//! CLIENT REPLY: which replies are suppressed, byte by byte, and its effect in a transaction.
//!
//! In a transaction, a real Redis sends the header of EXEC's array and then fewer elements than announced, which no
//! client can parse. Brisk sends EXEC's reply either completely or not at all. After EXEC, it suppresses the same
//! replies as Redis.

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, each_config};
use brisk_tests::{until_slow, with_workers};

/// Sends the lines together, and then one by one. Expects the bytes of all replies.
#[track_caller]
fn expect(connect: &dyn Fn() -> Conn, lines: &[&str], replies: &str) {
    for pipelined in [true, false] {
        let mut conn = connect();
        if pipelined {
            let text: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
            conn.send_raw(text.as_bytes());
        } else {
            lines.iter().for_each(|line| conn.send_raw(format!("{line}\r\n").as_bytes()));
        }
        conn.expect_bytes(replies.as_bytes());
        // Only the reply to the next command follows.
        conn.assert_in_step();
    }
}

#[test]
fn skip_suppresses_one_reply_and_off_all_until_on() {
    each_config(|server| {
        let connect = || server.connect();
        let cases: &[(&[&str], &str)] = &[
            (&["CLIENT REPLY SKIP", "ECHO a", "ECHO b"], "$1\r\nb\r\n"),
            (&["CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "ECHO a", "ECHO b"], "$1\r\nb\r\n"),
            (&["CLIENT REPLY SKIP", "CLIENT REPLY ON", "ECHO a"], "+OK\r\n$1\r\na\r\n"),
            (&["CLIENT REPLY SKIP", "NOSUCH", "ECHO a"], "$1\r\na\r\n"),
            (&["CLIENT REPLY SKIP", "EXEC", "ECHO a"], "$1\r\na\r\n"),
            (
                &["CLIENT REPLY SKIP", "MULTI", "ECHO a", "EXEC", "ECHO b"],
                "+QUEUED\r\n*1\r\n$1\r\na\r\n$1\r\nb\r\n",
            ),
            (
                &["MULTI", "CLIENT REPLY NOSUCH", "ECHO a", "EXEC", "ECHO b"],
                "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n-ERR syntax error\r\n$1\r\na\r\n$1\r\nb\r\n",
            ),
            (
                &["CLIENT REPLY OFF", "MULTI", "ECHO a", "EXEC", "CLIENT REPLY ON", "ECHO b"],
                "+OK\r\n$1\r\nb\r\n",
            ),
            // A command that does not run has no effect.
            (
                &["MULTI", "CLIENT REPLY SKIP", "DISCARD", "ECHO a"],
                "+OK\r\n+QUEUED\r\n+OK\r\n$1\r\na\r\n",
            ),
            (
                &["MULTI", "CLIENT REPLY OFF", "EXEC x", "ECHO a"],
                "+OK\r\n+QUEUED\r\n-EXECABORT Transaction discarded because of: wrong number of \
                 arguments for 'exec' command\r\n$1\r\na\r\n",
            ),
            (
                &["MULTI", "CLIENT REPLY ON", "ECHO a", "EXEC", "ECHO b"],
                "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$1\r\na\r\n$1\r\nb\r\n",
            ),
        ];
        for (lines, replies) in cases {
            expect(&connect, lines, replies);
        }
    });
}

#[test]
fn a_script_may_not_choose_which_replies_are_sent() {
    each_config(|server| {
        let mut conn = server.connect();
        let reply = conn.cmd("EVAL \"return redis.call('CLIENT', 'REPLY', 'SKIP')\" 0");
        assert!(reply.to_string().contains("not allowed from script"), "{reply}");
        conn.assert_in_step();
    });
}

/// The complete output for commands queued between MULTI and EXEC, two ECHOs after EXEC, and CLIENT
/// REPLY ON, for Brisk and for a real Redis.
struct Case {
    queued: &'static [&'static str],
    brisk: &'static str,
    redis: &'static str,
}

#[test]
fn client_reply_within_a_transaction_applies_after_exec() {
    const ECHO: &str = "ECHO x";
    const ON: &str = "+OK\r\n";
    let cases = [
        Case {
            queued: &["CLIENT REPLY SKIP", ECHO],
            brisk: "*2\r\n+OK\r\n$1\r\nx\r\n$1\r\n2\r\n",
            redis: "*2\r\n$1\r\nx\r\n$1\r\n2\r\n",
        },
        Case {
            queued: &[ECHO, "CLIENT REPLY SKIP"],
            brisk: "*2\r\n$1\r\nx\r\n+OK\r\n$1\r\n2\r\n",
            redis: "*2\r\n$1\r\nx\r\n$1\r\n2\r\n",
        },
        Case {
            queued: &["CLIENT REPLY SKIP", "CLIENT REPLY SKIP"],
            brisk: "*2\r\n+OK\r\n+OK\r\n$1\r\n2\r\n",
            redis: "*2\r\n$1\r\n2\r\n",
        },
        Case {
            queued: &["CLIENT REPLY SKIP", "EVAL \"return 7\" 0"],
            brisk: "*2\r\n+OK\r\n:7\r\n$1\r\n2\r\n",
            redis: "*2\r\n:7\r\n$1\r\n2\r\n",
        },
        Case {
            queued: &["CLIENT REPLY OFF", ECHO],
            brisk: "*2\r\n+OK\r\n$1\r\nx\r\n",
            redis: "*2\r\n",
        },
        Case {
            queued: &[ECHO, "CLIENT REPLY OFF", "CLIENT REPLY SKIP"],
            brisk: "*3\r\n$1\r\nx\r\n+OK\r\n+OK\r\n",
            redis: "*3\r\n$1\r\nx\r\n",
        },
        Case {
            queued: &["CLIENT REPLY OFF", "CLIENT REPLY ON", ECHO],
            brisk: "*3\r\n+OK\r\n+OK\r\n$1\r\nx\r\n$1\r\n1\r\n$1\r\n2\r\n",
            redis: "*3\r\n+OK\r\n$1\r\nx\r\n$1\r\n1\r\n$1\r\n2\r\n",
        },
        // The last mode applies. Only in this case does SKIP still apply after ON in Redis.
        Case {
            queued: &["CLIENT REPLY SKIP", "CLIENT REPLY ON"],
            brisk: "*2\r\n+OK\r\n+OK\r\n$1\r\n1\r\n$1\r\n2\r\n",
            redis: "*2\r\n+OK\r\n$1\r\n2\r\n",
        },
    ];
    each_config(|server| {
        let connect = || server.connect();
        for Case { queued, brisk, redis } in &cases {
            let mut lines = vec!["MULTI"];
            lines.extend(*queued);
            lines.extend(["EXEC", "ECHO 1", "ECHO 2", "CLIENT REPLY ON"]);
            let own = if subject_is_redis() { redis } else { brisk };
            let replies = format!("+OK\r\n{}{own}{ON}", "+QUEUED\r\n".repeat(queued.len()));
            expect(&connect, &lines, &replies);
        }
    });
}

/// In this case, the reply of EXEC takes a different code path from that of a transaction that runs without
/// interruption.
#[test]
fn client_reply_applies_after_exec_even_with_a_slow_script_in_between() {
    if subject_is_redis() {
        return; // sends fewer elements than it announces, as above
    }
    let server = with_workers(1).set("busy-reply-threshold", "1").start();
    until_slow(&server, |turns| {
        let eval = format!("EVAL \"for i = 1, {turns} do end return 7\" 0");
        for (mode, behind) in [("SKIP", "$1\r\n2\r\n+OK\r\n"), ("OFF", "+OK\r\n")] {
            let mut conn = server.connect();
            let queued = format!("CLIENT REPLY {mode}\r\n{eval}\r\nECHO x\r\n");
            let rest = "EXEC\r\nECHO 1\r\nECHO 2\r\nCLIENT REPLY ON\r\n";
            conn.send_raw(format!("MULTI\r\n{queued}{rest}").as_bytes());
            let own = format!("*3\r\n+OK\r\n:7\r\n$1\r\nx\r\n{behind}");
            let replies = format!("+OK\r\n{}{own}", "+QUEUED\r\n".repeat(3));
            conn.expect_bytes(replies.as_bytes());
            conn.assert_in_step();
        }
        2
    });
}

#[test]
fn exec_has_no_reply_while_replies_are_off_unless_turned_on_within() {
    each_config(|server| {
        let connect = || server.connect();
        let lines =
            ["CLIENT REPLY OFF", "MULTI", "ECHO x", "CLIENT REPLY ON", "ECHO y", "EXEC", "ECHO 1"];
        // A real Redis suppresses the header, but then sends elements.
        let exec = if subject_is_redis() { "" } else { "*3\r\n$1\r\nx\r\n" };
        expect(&connect, &lines, &format!("{exec}+OK\r\n$1\r\ny\r\n$1\r\n1\r\n"));
        // SKIP while replies are off has no effect, as outside of transactions.
        let lines =
            ["CLIENT REPLY OFF", "MULTI", "CLIENT REPLY SKIP", "EXEC", "CLIENT REPLY ON", "ECHO 1"];
        expect(&connect, &lines, "+OK\r\n$1\r\n1\r\n");
    });
}

#[test]
fn messages_arrive_even_if_a_transaction_has_turned_replies_off() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.hello(3);
        conn.send_raw(b"SUBSCRIBE c\r\n");
        conn.expect_bytes(b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
        let lines = "MULTI\r\nCLIENT REPLY OFF\r\nEXEC\r\nPUBLISH c m\r\nCLIENT REPLY ON\r\n";
        conn.send_raw(lines.as_bytes());
        let exec = if subject_is_redis() { "*1\r\n" } else { "*1\r\n+OK\r\n" };
        let message = ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n";
        conn.expect_bytes(format!("+OK\r\n+QUEUED\r\n{exec}{message}+OK\r\n").as_bytes());
        conn.assert_in_step();
    });
}
