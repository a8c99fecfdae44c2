//! Scripts and functions over sockets: their replies, their permissions, their visibility to other clients, and slow
//! scripts.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::matrix::each_config_of;
use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, each_config, wait_until};
use brisk_tests::{one_of_each_worker, until_slow, with_workers};
use std::time::Duration;

const BUSY: &str = "(error) BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                    SHUTDOWN NOSAVE.";

/// Runs EVAL with `source`. The first `keys` arguments are keys.
#[track_caller]
fn eval(conn: &mut Conn, source: &str, keys: usize, words: &[&str]) -> Reply {
    let keys = keys.to_string();
    let mut request = vec!["EVAL", source, &keys];
    request.extend(words);
    conn.call(&request)
}

/// Runs a script on another connection until it is stopped. Waits until the server considers it slow.
fn run_slow(server: &Server, conn: &mut Conn, source: &str, key: Option<&str>) {
    let words = match key {
        Some(key) => format!("EVAL \"{source}\" 1 {key}"),
        None => format!("EVAL \"{source}\" 0"),
    };
    conn.send(&words);
    let mut probe = server.connect();
    wait_until("the script is slow", || probe.cmd("PING").to_string() == BUSY);
}

#[test]
fn a_script_gets_its_keys_and_arguments_and_calls_commands() {
    each_config(|server| {
        let mut conn = server.connect();
        let source = "return {KEYS[1], ARGV[1], redis.call('SET', KEYS[1], ARGV[1]), \
                      redis.call('GET', KEYS[1]), #KEYS, #ARGV}";
        let reply = eval(&mut conn, source, 1, &["k", "v"]).to_string();
        assert_eq!(reply, "1) \"k\"\n2) \"v\"\n3) OK\n4) \"v\"\n5) (integer) 1\n6) (integer) 1");
        assert_reply!(conn, "GET k", "\"v\"");
        for (line, reply) in [
            ("EVAL 'return 1' x", "(error) ERR value is not an integer or out of range"),
            ("EVAL 'return 1' -1", "(error) ERR Number of keys can't be negative"),
            (
                "EVAL 'return 1' 1",
                "(error) ERR Number of keys can't be greater than number of args",
            ),
            ("EVALSHA short 0", "(error) NOSCRIPT No matching script. Please use EVAL."),
            ("FCALL nofunction 0", "(error) ERR Function not found"),
            ("SCRIPT FLUSH NOW", "(error) ERR SCRIPT FLUSH only support SYNC|ASYNC option"),
            ("SCRIPT KILL", "(error) NOTBUSY No scripts in execution right now."),
            ("FUNCTION KILL", "(error) NOTBUSY No scripts in execution right now."),
        ] {
            assert_reply!(conn, line, reply);
        }
    });
}

#[test]
fn errors_name_the_script_and_the_line() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.cmd("SET text x");
        for (source, reply) in [
            ("\nreturn redis.call('INCR', KEYS[1])", "ERR value is not an integer or out of range"),
            (
                "return redis.call('LPUSH', KEYS[1], 1)",
                "WRONGTYPE Operation against a key holding \
              the wrong kind of value",
            ),
            ("error('broken')", "ERR user_script:1: broken"),
            ("error({err='OWN error'})", "OWN error"),
            ("return redis.call('BLAH')", "ERR Unknown Redis command called from script"),
            (
                "return redis.call('GET')",
                "ERR Wrong number of args calling Redis command from script",
            ),
            (
                "return redis.call('EVAL', '', 0)",
                "ERR This Redis command is not allowed from script",
            ),
        ] {
            let digest = conn.call(&["SCRIPT", "LOAD", source]).to_string();
            let digest = digest.trim_matches('"');
            let line = if source.starts_with('\n') { 2 } else { 1 };
            let expected = format!("(error) {reply} script: {digest}, on @user_script:{line}.");
            assert_eq!(eval(&mut conn, source, 1, &["text"]).to_string(), expected);
        }
        let reply = eval(&mut conn, "return {err='MINE is returned'}", 0, &[]).to_string();
        assert_eq!(reply, "(error) MINE is returned");
        let reply = eval(&mut conn, "local ok = pcall(redis.call, 'BLAH') return ok", 0, &[]);
        assert_eq!(reply.to_string(), "(nil)");
    });
}

#[test]
fn scripts_are_found_by_their_digest_until_they_are_flushed() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        let digest = conn.call(&["SCRIPT", "LOAD", "return ARGV[1]"]).text();
        let upper = digest.to_uppercase();
        assert_reply!(other, &format!("EVALSHA {digest} 0 a"), "\"a\"");
        assert_reply!(other, &format!("EVALSHA {upper} 0 b"), "\"b\"");
        assert_reply!(
            other,
            &format!("SCRIPT EXISTS {digest} x"),
            "1) (integer) 1\n2) (integer) 0"
        );
        let no_script = "(error) NOSCRIPT No matching script. Please use EVAL.";
        // SCRIPT SHOW is a command of Valkey 8.
        if !subject_is_redis() {
            assert_reply!(other, &format!("SCRIPT SHOW {digest}"), "\"return ARGV[1]\"");
            assert_reply!(conn, &format!("SCRIPT SHOW {upper}"), "\"return ARGV[1]\"");
            assert_reply!(other, &format!("SCRIPT SHOW {}", "a".repeat(40)), no_script);
            assert_reply!(other, &format!("SCRIPT SHOW {}", &digest[1..]), no_script);
        }
        assert_reply!(conn, "SCRIPT FLUSH", "OK");
        if !subject_is_redis() {
            assert_reply!(other, &format!("SCRIPT SHOW {digest}"), no_script);
        }
        assert_reply!(other, &format!("EVALSHA {digest} 0 a"), no_script);
        assert_reply!(conn, &format!("EVALSHA {digest} 0 a"), no_script);
        assert_reply!(conn, "EVAL 'return ARGV[1]' 0 c", "\"c\"");
        assert_reply!(other, &format!("EVALSHA_RO {digest} 0 d"), "\"d\"");
    });
}

#[test]
fn a_flush_frees_the_memory_of_scripts() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    let bytes = |conn: &mut Conn| conn.info("used_memory_vm_eval").parse::<u64>().unwrap();
    let fill = "local t = {} for i = 1, 20000 do t[i] = i .. 'th' end return #t";
    assert_eq!(conn.call(&["EVAL", fill, "0"]).integer(), 20_000);
    let full = bytes(&mut conn);
    assert_reply!(conn, "SCRIPT FLUSH SYNC", "OK");
    let left = bytes(&mut conn);
    assert!(left + 500_000 < full, "{left} of {full}");
    assert_eq!(conn.call(&["EVAL", fill, "0"]).integer(), 20_000);
}

/// The maximum length of a string is as large as the memory limit of an interpreter.
#[test]
fn scripts_run_after_one_that_was_passed_more_than_the_memory_limit() {
    let server = with_workers(1).start();
    let mut conn = server.connect();
    assert_reply!(conn, "SETRANGE huge 536870911 x", "(integer) 536870912");
    let script = "local ok, r = pcall(redis.call, unpack(ARGV)) return {ok, type(r), r}";
    conn.call(&["EVAL", script, "1", "huge", "GETSET", "huge", "small"]);
    for _ in 0..3 {
        assert_reply!(conn, "EVAL \"return {ARGV[1], 'b'}\" 0 a", "1) \"a\"\n2) \"b\"");
    }
    let bytes = conn.info("used_memory_vm_eval").parse::<u64>().unwrap();
    assert!(bytes < 100 << 20, "{bytes}");
}

#[test]
fn read_only_scripts_write_nothing() {
    each_config(|server| {
        let mut conn = server.connect();
        let text = "ERR Write commands are not allowed from read-only scripts.";
        for line in [
            "EVAL_RO \"return redis.call('SET', KEYS[1], 1)\" 1 k",
            "EVAL \"#!lua flags=no-writes\\nreturn redis.call('SET', KEYS[1], 1)\" 1 k",
            "EVAL_RO \"return redis.call('PUBLISH', 'c', 1)\" 0",
        ] {
            let reply = conn.cmd(line).to_string();
            assert!(reply.starts_with(&format!("(error) {text}")), "{line}: {reply}");
        }
        assert_reply!(conn, "EXISTS k", "(integer) 0");
        assert_reply!(
            conn,
            "EVAL_RO \"#!lua\\nreturn 1\" 0",
            "(error) ERR Can not execute a script with write flag using *_ro command."
        );
    });
}

#[test]
fn a_script_has_its_own_database_and_protocol() {
    each_config(|server| {
        let mut conn = server.connect();
        let source = "redis.setresp(3) redis.call('SELECT', 9) redis.call('SET', KEYS[1], 1) \
                      return redis.call('HGETALL', 'none')";
        let reply = eval(&mut conn, source, 1, &["k"]).to_string();
        assert!(reply == "(empty array)" || reply == "(empty hash)", "{reply}");
        assert_reply!(conn, "EXISTS k", "(integer) 0");
        conn.cmd("SELECT 9");
        assert_reply!(conn, "EXISTS k", "(integer) 1");
    });
}

/// Scripts are atomic even on undeclared keys: no client sees an intermediate state.
#[test]
fn scripts_are_atomic_with_declared_and_undeclared_keys() {
    const TURNS: usize = 400;
    let server = with_workers(2).start();
    let mut conn = server.connect();
    conn.cmd("MSET a 0 b 0");
    // Keys are undeclared, partly declared and accessed after a write, or declared.
    let sources = [
        ("redis.call('INCR', 'a') redis.call('INCR', 'b') return 1", 0),
        ("redis.call('INCR', KEYS[1]) redis.call('INCR', 'b') return 1", 1),
        ("redis.call('INCR', KEYS[1]) redis.call('INCR', KEYS[2]) return 1", 2),
    ];
    std::thread::scope(|scope| {
        for (source, keys) in sources {
            let server = &server;
            scope.spawn(move || {
                let mut conn = server.connect();
                for _ in 0..TURNS {
                    let reply = eval(&mut conn, source, keys, &["a", "b"][..keys]).to_string();
                    assert_eq!(reply, "(integer) 1");
                }
            });
        }
        let server = &server;
        scope.spawn(move || {
            let mut conn = server.connect();
            for _ in 0..TURNS {
                let both = conn.cmd("MGET a b");
                let both = both.elements();
                assert_eq!(both[0].text(), both[1].text());
            }
        });
    });
    let total = (3 * TURNS).to_string();
    assert_reply!(conn, "MGET a b", format!("1) \"{total}\"\n2) \"{total}\""));
}

/// Each script accesses undeclared keys for the first time, after a write, while other scripts do the same and hold the
/// slots that it needs.
#[test]
fn scripts_with_undeclared_keys_in_common_all_complete() {
    const ROUNDS: usize = 60;
    const CLIENTS: usize = 4;
    let server = with_workers(2).start();
    let mut conn = server.connect();
    for round in 0..ROUNDS {
        conn.cmd("MSET a 0 b 0 c 0 d 0");
        let start = std::sync::Barrier::new(CLIENTS);
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (server, start) = (&server, &start);
                scope.spawn(move || {
                    let mut conn = server.connect();
                    let own = ["a", "b", "c", "d"][client];
                    let next = ["b", "c", "d", "a"][client];
                    // Each round has a different script. In its first call, it accesses only its declared key.
                    let source = format!(
                        "redis.call('INCR', KEYS[1]) for i = 1, #ARGV do redis.call('INCR', \
                         ARGV[i]) end return {round}"
                    );
                    let reply = format!("(integer) {round}");
                    assert_eq!(eval(&mut conn, &source, 1, &[own]).to_string(), reply);
                    start.wait();
                    for _ in 0..5 {
                        let ended = eval(&mut conn, &source, 1, &[own, next, own]).to_string();
                        assert_eq!(ended, reply);
                    }
                });
            }
        });
        // Each key was incremented once in the first call, and three times in each of the five rounds.
        assert_reply!(conn, "MGET a b c d", "1) \"16\"\n2) \"16\"\n3) \"16\"\n4) \"16\"");
    }
}

/// Neither script waits for the other, which never ends.
#[test]
fn two_runaway_scripts_on_two_workers_are_both_killed() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(2).set("busy-reply-threshold", "50").start();
    let mut conn = server.connect();
    let mut runners: Vec<Conn> = (0..4).map(|_| server.connect()).collect();
    for (at, runner) in runners.iter_mut().enumerate() {
        runner.send(&format!("EVAL \"while true do end return {at}\" 1 key:{at}"));
    }
    // Those that find a worker without a script run. The others immediately get BUSY.
    for runner in &mut runners {
        wait_until("each is killed or refused", || {
            conn.cmd("SCRIPT KILL");
            runner.has_reply_within(Duration::from_millis(10))
        });
        let end = runner.reply().to_string();
        assert!(end.contains("killed by user") || end == BUSY, "{end}");
    }
    wait_until("the server serves again", || conn.cmd("PING").to_string() == "PONG");
}

/// A script that has written and needs a key of a slow script waits until the slow script ends.
#[test]
fn a_script_that_wrote_waits_for_keys_of_a_slow_one() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(2).set("busy-reply-threshold", "50").start();
    let mut conn = server.connect();
    // One client of each worker.
    let mut clients: Vec<Conn> = (0..2).map(|_| server.connect()).collect();
    let mut wrote = clients.pop().unwrap();
    let mut runner = clients.pop().unwrap();
    runner.send("EVAL \"while true do end\" 1 mine");
    wait_until("the script is slow", || conn.cmd("GET mine").to_string() == BUSY);
    assert_reply!(conn, "GET free", "(nil)");
    let source = "redis.call('INCR', KEYS[1]) redis.call('INCR', 'free') \
                  return redis.call('INCR', 'mine')";
    wrote.send(&format!("EVAL \"{source}\" 1 own"));
    if wrote.has_reply_within(Duration::from_millis(500)) {
        // Both are clients of one worker, which has one interpreter.
        assert_eq!(wrote.reply().to_string(), BUSY);
        assert_reply!(conn, "SCRIPT KILL", "OK");
        return;
    }
    assert_reply!(conn, "GET own", BUSY);
    assert_reply!(conn, "SCRIPT KILL", "OK");
    assert!(runner.reply().to_string().contains("killed by user"));
    assert_eq!(wrote.reply().to_string(), "(integer) 1");
    assert_reply!(conn, "MGET own free mine", "1) \"1\"\n2) \"1\"\n3) \"1\"");
}

/// A script that waits for a key of a script that cannot be killed makes no progress, but can be killed anyway.
#[test]
fn a_script_that_waits_for_another_is_killed() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(2).set("busy-reply-threshold", "50").start();
    let mut runners = one_of_each_worker(&server, 2);
    let mut probes = one_of_each_worker(&server, 2);
    runners[0].send("EVAL \"redis.call('SET', KEYS[1], '1') while true do end\" 1 mine");
    wait_until("the first is slow", || probes[1].cmd("GET mine").to_string() == BUSY);
    let source = "for i = 1, 1e6 do end return redis.call('GET', 'mine')";
    runners[1].send(&format!("EVAL \"{source}\" 1 own"));
    wait_until("the second waits", || probes[0].cmd("GET free").to_string() == BUSY);
    assert_reply!(probes[1], "SCRIPT KILL", "OK");
    assert!(runners[1].reply().to_string().contains("killed by user"));
    wait_until("the rest is free", || probes[0].cmd("GET free").to_string() == "(nil)");
    assert_reply!(probes[0], "GET mine", BUSY);
    assert!(probes[0].cmd("SCRIPT KILL").to_string().contains("UNKILLABLE"));
}

/// The library is stopped no matter which scripts ran before, including scripts that need no time limit.
#[test]
fn a_library_that_loops_while_it_is_loaded_is_stopped() {
    each_config(|server| {
        let mut conn = server.connect();
        for before in ["return 1", "for i = 1, 100 do end return 1"] {
            assert_eq!(eval(&mut conn, before, 0, &[]).integer(), 1);
            let reply = conn.call(&["FUNCTION", "LOAD", "#!lua name=endless\nwhile true do end"]);
            assert_eq!(
                reply.to_string(),
                "(error) ERR Error registering functions: ERR FUNCTION LOAD timeout"
            );
        }
        assert_reply!(conn, "PING", "PONG");
    });
}

/// The script is isolated from other clients before it becomes slow. Then it must yield, so that its worker can serve
/// them.
#[test]
fn a_script_that_exceeds_its_keys_next_to_a_slow_one_yields() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(2).set("busy-reply-threshold", "50").start();
    let mut runners = one_of_each_worker(&server, 2);
    let mut probes = one_of_each_worker(&server, 2);
    runners[0].send("EVAL \"while true do end\" 1 mine");
    wait_until("the first is slow", || probes[1].cmd("GET mine").to_string() == BUSY);
    runners[1].send("EVAL \"redis.call('GET', 'free') while true do end\" 1 own");
    wait_until("the second has the rest", || probes[0].cmd("GET free").to_string() == BUSY);
    assert_reply!(probes[1], "GET free", BUSY);
    assert_reply!(probes[1], "SCRIPT KILL", "OK");
    for runner in &mut runners {
        assert!(runner.reply().to_string().contains("killed by user"));
    }
}

#[test]
fn a_slow_script_in_a_transaction_is_killed_as_well() {
    for workers in [1, 2] {
        let server = with_workers(workers).set("busy-reply-threshold", "50").start();
        let [mut runner, mut conn] = server.connections();
        for line in [
            "MULTI",
            "SELECT 3",
            "SET before 1",
            "EVAL \"redis.call('SELECT', 5) while true do end\" 0",
            "INCR before",
            "EVAL \"while true do end\" 0",
            "SELECT 4",
            "SET after 1",
        ] {
            runner.cmd(line);
        }
        runner.send("EXEC");
        wait_until("the script is slow", || conn.cmd("GET before").to_string() == BUSY);
        assert_reply!(conn, "FUNCTION KILL", BUSY);
        wait_until("both are killed", || {
            conn.cmd("SCRIPT KILL");
            runner.has_reply_within(Duration::from_millis(10))
        });
        let reply = runner.reply();
        let parts: Vec<String> = reply.elements().iter().map(|part| part.to_string()).collect();
        assert_eq!(parts.len(), 7, "{reply}");
        assert_eq!(parts[..2], ["OK", "OK"]);
        assert!(parts[2].contains("killed by user"), "{reply}");
        assert_eq!(parts[3], "(integer) 2");
        assert!(parts[4].contains("killed by user"), "{reply}");
        assert_eq!(parts[5..], ["OK", "OK"]);
        assert_reply!(runner, "GET after", "\"1\"");
        assert_reply!(conn, "SELECT 3", "OK");
        assert_reply!(conn, "GET before", "\"2\"");
        assert_reply!(conn, "GET after", "(nil)");
    }
}

#[test]
fn scripts_run_within_transactions() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "MULTI", "OK");
        for line in [
            "SET k 1",
            "EVAL \"return redis.call('INCR', KEYS[1])\" 1 k",
            "EVAL \"return redis.call('INCRBY', 'other', 5)\" 0",
            "EVAL \"error('x')\" 0",
            "GET k",
        ] {
            assert_reply!(conn, line, "QUEUED");
        }
        let reply = conn.cmd("EXEC").to_string();
        let lines: Vec<&str> = reply.lines().collect();
        assert_eq!(lines[..3], ["1) OK", "2) (integer) 2", "3) (integer) 5"]);
        assert!(lines[3].contains("user_script:1: x script:"), "{reply}");
        assert_eq!(lines[4], "5) \"2\"");
    });
}

#[test]
fn commands_that_wait_do_not_wait_in_a_script() {
    each_config(|server| {
        if subject_is_redis() {
            // Redis 7.0 rejects blocking commands in scripts.
            return;
        }
        let mut conn = server.connect();
        let source = "return redis.call('BLPOP', KEYS[1], 0)";
        assert_eq!(eval(&mut conn, source, 1, &["none"]).to_string(), "(nil)");
        conn.cmd("RPUSH some x");
        let reply = eval(&mut conn, source, 1, &["some"]).to_string();
        assert_eq!(reply, "1) \"some\"\n2) \"x\"");
    });
}

#[test]
fn wait_in_a_script_counts_replicas_with_dialect_valkey() {
    if subject_is_redis() {
        return;
    }
    let launch = Launch::subject().set("busy-reply-threshold", "1");
    let valkey = launch.clone().set("dialect", "valkey").set("repl-diskless-sync-delay", "0");
    let valkey = valkey.start();
    let address = valkey.address();
    let (_, port) = address.rsplit_once(':').unwrap();
    let replica = Launch::subject().start();
    let mut conn = valkey.connect();
    let mut eval_call = |turns: u64, call: &str| {
        let source = format!("for n = 1, {turns} do end return redis.call({call})");
        eval(&mut conn, &source, 0, &[]).to_string()
    };
    let wait = "'WAIT', 2, 0";
    let assert_no_replica = |eval_call: &mut dyn FnMut(&str) -> String| {
        assert_eq!(eval_call(wait), "(integer) 0");
        assert_eq!(eval_call("'WAITAOF', 0, 1, 0"), "1) (integer) 0\n2) (integer) 0");
    };
    assert_no_replica(&mut |call| eval_call(0, call));
    until_slow(&valkey, |turns| {
        assert_no_replica(&mut |call| eval_call(turns, call));
        2
    });
    assert_reply!(replica.connect(), &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
    wait_until("it is counted", || eval_call(0, wait) == "(integer) 1");
    let redis = launch.start();
    let mut conn = redis.connect();
    let refused = eval(&mut conn, "return redis.call('WAIT', 0, 0)", 0, &[]).to_string();
    assert!(refused.contains("This Redis command is not allowed from script"), "{refused}");
}

#[test]
fn monitors_see_a_script_and_then_its_commands() {
    let server = Launch::subject().start();
    let [mut conn, mut monitor] = server.connections();
    assert_reply!(monitor, "MONITOR", "OK");
    eval(&mut conn, "return redis.call('SET', KEYS[1], 1)", 1, &["k"]);
    let first = monitor.reply().to_string();
    let second = monitor.reply().to_string();
    assert!(first.contains("\"EVAL\""), "{first}");
    assert!(second.contains("[0 lua] \"SET\" \"k\" \"1\""), "{second}");
}

#[test]
fn a_runaway_script_can_be_killed_while_others_get_replies() {
    for workers in [1, 2] {
        let server = with_workers(workers).set("busy-reply-threshold", "50").start();
        let [mut runner, mut conn, mut other] = server.connections();
        run_slow(&server, &mut runner, "while true do end", None);
        assert_reply!(conn, "GET k", BUSY);
        assert_reply!(conn, "FUNCTION KILL", BUSY);
        assert_reply!(conn, "MULTI", "OK");
        assert_reply!(conn, "SET k 1", BUSY);
        let aborted = "(error) EXECABORT Transaction discarded because of previous errors.";
        let refused = conn.cmd("EXEC").to_string();
        assert!(refused == aborted || refused.contains("BUSY"), "{refused}");
        assert_reply!(other, "SCRIPT KILL", "OK");
        let end = runner.reply().to_string();
        assert!(end.contains("Script killed by user with SCRIPT KILL..."), "{end}");
        wait_until("the server serves again", || conn.cmd("PING").to_string() == "PONG");
        assert_reply!(runner, "EVAL 'return 1' 0", "(integer) 1");
        assert_reply!(other, "SCRIPT KILL", "(error) NOTBUSY No scripts in execution right now.");
    }
}

#[test]
fn a_script_that_catches_everything_is_killed_as_well() {
    let server = with_workers(1).set("busy-reply-threshold", "50").start();
    let [mut runner, mut conn] = server.connections();
    for source in [
        "while true do pcall(function() while true do end end) end",
        "local c = coroutine.wrap(function() while true do end end) c()",
    ] {
        run_slow(&server, &mut runner, source, None);
        assert_reply!(conn, "SCRIPT KILL", "OK");
        assert!(runner.reply().to_string().starts_with("(error) ERR"), "{source}");
        wait_until("the server serves again", || conn.cmd("PING").to_string() == "PONG");
    }
}

#[test]
fn a_script_that_wrote_is_not_killed_and_ends_with_the_server() {
    for workers in [1, 2] {
        let mut server = with_workers(workers).set("busy-reply-threshold", "50").start();
        let [mut runner, mut conn] = server.connections();
        run_slow(
            &server,
            &mut runner,
            "redis.call('SET', KEYS[1], 1) while true do end",
            Some("k"),
        );
        let reply = conn.cmd("SCRIPT KILL").to_string();
        assert!(
            reply.starts_with("(error) UNKILLABLE Sorry the script already executed"),
            "{reply}"
        );
        assert_reply!(conn, "GET k", BUSY);
        conn.send("SHUTDOWN NOSAVE");
        wait_until("the server has ended", || !server.is_running());
    }
}

#[test]
fn only_a_shutdown_without_saving_ends_a_slow_script() {
    const OF_FUNCTION: &str = "(error) BUSY Redis is busy running a script. You can only call \
                               FUNCTION KILL or SHUTDOWN NOSAVE.";
    let library = "#!lua name=l\nredis.register_function('f', function() while true do end end)";
    for (line, busy, end) in [
        ("EVAL 'while true do end' 0", BUSY, "SHUTDOWN NOSAVE NOW FORCE"),
        ("FCALL f 0", OF_FUNCTION, "SHUTDOWN nosave"),
    ] {
        let mut server = with_workers(2).set("busy-reply-threshold", "50").start();
        let [mut runner, mut conn] = server.connections();
        conn.call(&["FUNCTION", "LOAD", library]);
        runner.send(line);
        wait_until("the script is slow", || conn.cmd("PING").to_string() == busy);
        for words in ["", "NOW", "FORCE", "NOW FORCE", "SAVE", "SAVE FORCE"] {
            assert_reply!(conn, &format!("SHUTDOWN {words}"), busy);
        }
        assert_reply!(conn, "SHUTDOWN ABORT", "(error) ERR No shutdown in progress.");
        assert_reply!(conn, "SHUTDOWN NOSAVE SAVE", "(error) ERR syntax error");
        conn.send(end);
        wait_until("the server has ended", || !server.is_running());
    }
}

/// Unlike Redis, the server executes commands on keys that a slow script does not use.
#[test]
fn keys_that_a_slow_script_does_not_declare_are_served() {
    if subject_is_redis() {
        return;
    }
    for workers in [1, 2] {
        let server = with_workers(workers).set("busy-reply-threshold", "50").start();
        let [mut runner, mut conn, mut waiter] = server.connections();
        conn.cmd("SET other x");
        let source = "redis.call('INCR', KEYS[1]) \
                      while redis.call('INCR', KEYS[1]) < 300000 do end return 'done'";
        run_slow(&server, &mut runner, source, Some("mine"));
        assert_reply!(conn, "GET other", "\"x\"");
        assert_reply!(conn, "INCR others", "(integer) 1");
        assert_reply!(conn, "MULTI", "OK");
        assert_reply!(conn, "SET third 1", "QUEUED");
        assert_reply!(conn, "EXEC", "1) OK");
        assert_reply!(conn, "INCR mine", BUSY);
        assert_reply!(conn, "KEYS *", BUSY);
        assert_reply!(conn, "FLUSHALL", BUSY);
        waiter.send("BLPOP list 0");
        conn.send("LPUSH list x");
        assert_eq!(runner.reply().to_string(), "\"done\"");
        assert_eq!(conn.reply().to_string(), "(integer) 1");
        assert_eq!(waiter.reply().to_string(), "1) \"list\"\n2) \"x\"");
        assert_reply!(conn, "GET mine", "\"300000\"");
        assert_reply!(conn, "DBSIZE", "(integer) 4");
    }
}

#[test]
fn a_client_that_disconnects_does_not_stop_its_script() {
    let server = with_workers(1).set("busy-reply-threshold", "20").start();
    let mut conn = server.connect();
    {
        let mut runner = server.connect();
        let source = "for i = 1, 100000 do redis.call('INCR', KEYS[1]) end";
        run_slow(&server, &mut runner, source, Some("n"));
    }
    wait_until("the script has ended", || conn.cmd("GET n").to_string() == "\"100000\"");
}

/// FLUSHALL in a slow script: for a client whose replies are off, with a monitor, and for a disconnected client.
#[test]
fn a_slow_script_that_flushes_is_monitored_once_and_obeys_client_reply() {
    for workers in [1, 2] {
        let server = with_workers(workers).set("busy-reply-threshold", "1").start();
        until_slow(&server, |turns| {
            let [mut watcher, mut runner, mut conn] = server.connections();
            let slow = format!("for i = 1, {turns} do end return redis.call('FLUSHALL')");
            let eval = format!("EVAL \"{slow}\" 1 k\r\n");
            conn.cmd("SET k v");
            assert_reply!(watcher, "MONITOR", "OK");
            runner.send_raw(format!("CLIENT REPLY SKIP\r\n{eval}DBSIZE\r\n").as_bytes());
            runner.expect_bytes(b":0\r\n");
            runner.assert_in_step();
            let shown = [
                "\"CLIENT\" \"REPLY\" \"SKIP\"".to_owned(),
                format!("\"EVAL\" \"{slow}\" \"1\" \"k\""),
                "\"FLUSHALL\"".to_owned(),
                "\"DBSIZE\"".to_owned(),
                "\"ECHO\" \"in-step\"".to_owned(),
            ];
            for words in shown {
                let line = watcher.reply().text();
                assert!(line.ends_with(&format!("] {words}")), "{line}");
            }
            assert_reply!(conn, "SET k v", "OK");
            runner.send_raw(eval.as_bytes());
            drop(runner);
            wait_until("the script has flushed", || {
                conn.cmd("DBSIZE").to_string() == "(integer) 0"
            });
            2
        });
    }
}

#[test]
fn a_script_that_takes_all_memory_fails_and_gives_it_back() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(1).start();
    let mut conn = server.connect();
    let source = "local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 100000) .. i end";
    let reply = eval(&mut conn, source, 0, &[]).to_string();
    assert!(reply.contains("not enough memory"), "{reply}");
    let used = || server.info("used_memory_lua").parse::<u64>().unwrap();
    assert_reply!(conn, "EVAL 'return 1' 0", "(integer) 1");
    wait_until("the memory is back", || used() < 16 << 20);
    // The compiler may cache a closure with its code, and the closure retains the values that it uses.
    let source =
        "local t = {} pcall(function() while true do t[#t + 1] = {1} end end) error('enough')";
    // The error that is returned depends on the remaining memory.
    assert!(eval(&mut conn, source, 0, &[]).is_error());
    assert_reply!(conn, "EVAL 'return 2' 0", "(integer) 2");
    wait_until("the memory is back", || used() < 16 << 20);
}

/// A value that is stored once may occur many times in a reply.
#[test]
fn command_replies_above_the_memory_limit_of_a_script_are_errors() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(1).start();
    let mut conn = server.connect();
    let resident = || server.info("used_memory_rss").parse::<u64>().unwrap();
    assert_reply!(conn, "SETRANGE big 999999 x", "(integer) 1000000");
    assert_reply!(
        conn,
        "EVAL \"for i = 1, 20000 do redis.call('RPUSH', 'l', ('x'):rep(30000)) end\" 0",
        "(nil)"
    );
    let before = resident();
    let too_long = "ERR the reply is longer than 536870912 bytes";
    let mget =
        "local t = {} for i = 1, 5000 do t[i] = 'big' end return #redis.call('MGET', unpack(t))";
    let reply = eval(&mut conn, mget, 0, &[]).to_string();
    assert!(reply.contains(too_long), "{reply}");
    assert!(resident() < before + (1 << 30));
    let reply = eval(&mut conn, "return #redis.call('LRANGE', 'l', 0, -1)", 0, &[]).to_string();
    assert!(reply.contains(too_long), "{reply}");
    let caught = "local t = {} for i = 1, 600 do t[i] = 'big' end \
                  return redis.pcall('MGET', unpack(t)).err";
    assert_eq!(eval(&mut conn, caught, 0, &[]).text(), too_long);
    assert_eq!(eval(&mut conn, "return #redis.call('MGET', 'big', 'big')", 0, &[]).integer(), 2);
}

fn payload_of(conn: &mut Conn) -> Vec<u8> {
    match conn.cmd("FUNCTION DUMP") {
        Reply::Bulk(bytes) => bytes,
        other => panic!("{other}"),
    }
}

const LIBRARY: &str = "#!lua name=lib\nlocal function get(keys) return redis.call('GET', keys[1]) end\n\
                       redis.register_function('get', get)\n\
                       redis.register_function{function_name='set', description='sets', \
                       callback=function(keys, args) return redis.call('SET', keys[1], args[1]) end}\n\
                       redis.register_function{function_name='peek', callback=get, \
                       flags={'no-writes'}}";

#[test]
fn functions_are_loaded_called_listed_and_removed() {
    each_config(|server| {
        let [mut conn, mut other] = server.connections();
        assert_eq!(conn.call(&["FUNCTION", "LOAD", LIBRARY]).text(), "lib");
        let again = conn.call(&["FUNCTION", "LOAD", LIBRARY]).to_string();
        assert_eq!(again, "(error) ERR Library 'lib' already exists");
        assert_eq!(conn.call(&["FUNCTION", "LOAD", "REPLACE", LIBRARY]).text(), "lib");
        assert_reply!(other, "FCALL set 1 k v", "OK");
        assert_reply!(other, "FCALL GET 1 k", "\"v\"");
        assert_reply!(other, "FCALL_RO peek 1 k", "\"v\"");
        let text = "(error) ERR Can not execute a script with write flag using *_ro command.";
        assert_reply!(other, "FCALL_RO get 1 k", text);
        assert_eq!(other.cmd("FUNCTION LIST LIBRARYNAME L*").elements().len(), 1);
        assert_eq!(other.cmd("FUNCTION LIST LIBRARYNAME x* WITHCODE").elements().len(), 0);
        let payload = payload_of(&mut other);
        assert_reply!(conn, "FUNCTION DELETE lib", "OK");
        assert_reply!(conn, "FUNCTION DELETE lib", "(error) ERR Library not found");
        assert_reply!(other, "FCALL get 1 k", "(error) ERR Function not found");
        let restore = |conn: &mut Conn, policy: &[&str]| {
            let mut words = vec![b"FUNCTION".to_vec(), b"RESTORE".to_vec(), payload.clone()];
            words.extend(policy.iter().map(|word| word.as_bytes().to_vec()));
            conn.call(&words).to_string()
        };
        assert_eq!(restore(&mut conn, &[]), "OK");
        assert_eq!(restore(&mut conn, &[]), "(error) ERR Library lib already exists");
        assert_eq!(restore(&mut conn, &["REPLACE"]), "OK");
        assert_eq!(restore(&mut conn, &["FLUSH"]), "OK");
        assert_reply!(other, "FCALL get 1 k", "\"v\"");
        assert_reply!(conn, "FUNCTION FLUSH", "OK");
        assert_reply!(other, "FCALL get 1 k", "(error) ERR Function not found");
    });
}

#[test]
fn a_payload_of_functions_is_restored_by_redis_and_back() {
    let (ours, theirs) = (Launch::subject().start(), Launch::redis().start());
    let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
    ours.call(&["FUNCTION", "LOAD", LIBRARY]);
    let payload = payload_of(&mut ours);
    let restored = theirs.call(&[b"FUNCTION".as_slice(), b"RESTORE", &payload]);
    assert_eq!(restored.to_string(), "OK");
    let back = payload_of(&mut theirs);
    let restored = ours.call(&[b"FUNCTION".as_slice(), b"RESTORE", &back, b"FLUSH"]);
    assert_eq!(restored.to_string(), "OK");
    let list = "FUNCTION LIST WITHCODE";
    let sorted = |conn: &mut Conn| {
        let reply = conn.cmd(list).to_string();
        let mut lines: Vec<String> = reply.lines().map(|line| line.trim().to_owned()).collect();
        lines.sort();
        lines.len()
    };
    assert_eq!(sorted(&mut ours), sorted(&mut theirs));
}

#[test]
fn numbers_can_be_names_and_descriptions_of_functions() {
    const NO_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and \
                           must be at least one character long";
    const NOT_TEXT: &str = "argument given to redis.register_function must be a string";
    each_config(|server| {
        let mut conn = server.connect();
        let mut load = |arguments: &str| {
            conn.cmd("FUNCTION FLUSH");
            let head = "#!lua name=l\nlocal function f() return 7 end redis.register_function";
            let loaded = conn.call(&["FUNCTION", "LOAD", &format!("{head}{arguments}")]);
            let list = conn.cmd("FUNCTION LIST");
            let Some(library) = list.elements().first().copied() else { return loaded.text() };
            let function = library.field("functions").unwrap().elements()[0];
            let field = |name: &str| function.field(name).unwrap().to_string().replace('"', "");
            format!("{} {}", field("name"), field("description"))
        };
        for (arguments, registered) in [
            ("(1, f)", "1 (nil)"),
            ("(10, f)", "10 (nil)"),
            ("{function_name=1, callback=f}", "1 (nil)"),
            ("{function_name='x', callback=f, description=1}", "x 1"),
            ("{function_name='x', callback=f, description=1.5}", "x 1.5"),
            ("{function_name='x', callback=f, description=1e100}", "x 1e+100"),
            ("{function_name='x', callback=f, description=1/3}", "x 0.33333333333333"),
        ] {
            assert_eq!(load(arguments), registered, "{arguments}");
        }
        for (arguments, error) in [
            ("(1.5, f)", NO_NAME.to_owned()),
            ("(-1, f)", NO_NAME.to_owned()),
            ("{function_name=1e15, callback=f}", NO_NAME.to_owned()),
            ("(true, f)", "first argument to redis.register_function must be a string".to_owned()),
            ("{function_name=true, callback=f}", format!("function_name {NOT_TEXT}")),
            ("{function_name='x', callback=f, description={}}", format!("description {NOT_TEXT}")),
            ("{'x', f}", "unknown argument given to redis.register_function".to_owned()),
        ] {
            let text = format!("ERR Error registering functions: ERR {error}");
            assert_eq!(load(arguments), text, "{arguments}");
        }
        load("(1, f)");
        assert_reply!(conn, "FCALL 1 0", "(integer) 7");
    });
}

#[test]
fn a_slow_function_is_shown_and_killed() {
    let server = with_workers(2).set("busy-reply-threshold", "50").start();
    let [mut runner, mut conn] = server.connections();
    let code =
        "#!lua name=slow\nredis.register_function('forever', function() while true do end end)";
    conn.call(&["FUNCTION", "LOAD", code]);
    runner.send("FCALL forever 0");
    let busy = "(error) BUSY Redis is busy running a script. You can only call FUNCTION KILL or \
                SHUTDOWN NOSAVE.";
    wait_until("the function is slow", || conn.cmd("PING").to_string() == busy);
    let stats = conn.cmd("FUNCTION STATS").to_string();
    assert!(stats.contains("forever"), "{stats}");
    assert_reply!(conn, "SCRIPT KILL", busy);
    assert_reply!(conn, "FUNCTION KILL", "OK");
    assert!(runner.has_reply_within(Duration::from_secs(10)));
    assert!(runner.reply().to_string().contains("killed by user"));
    wait_until("the server serves again", || conn.cmd("PING").to_string() == "PONG");
}

/// A script also yields in callbacks of built-in functions. The server has only one worker.
#[test]
fn a_slow_script_yields_at_any_point() {
    let server = with_workers(1).set("busy-reply-threshold", "50").start();
    let [mut runner, mut conn] = server.connections();
    let busy = "(error) BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                SHUTDOWN NOSAVE.";
    let forever = "local function forever() while true do end end ";
    for place in [
        "forever()",
        "while true do pcall(forever) end",
        "string.gsub('x', 'x', forever)",
        "table.sort({1, 2, 3}, forever)",
        "return setmetatable({}, {__index = forever}).x",
        "return tostring(setmetatable({}, {__tostring = forever}))",
        "for i in forever do end",
        "coroutine.wrap(function() string.gsub('x', 'x', forever) end)()",
        "string.gsub('x', 'x', function() coroutine.wrap(forever)() end)",
        "string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 41))",
    ] {
        if place.starts_with("string.find") && subject_is_redis() {
            // Redis does not respond until the search has ended.
            continue;
        }
        runner.send(&format!("EVAL \"{forever}{place}\" 0"));
        wait_until("the script is slow", || conn.cmd("PING").to_string() == busy);
        assert_reply!(conn, "SCRIPT KILL", "OK");
        let killed = runner.reply().to_string();
        assert!(killed.contains("killed by user"), "{place}: {killed}");
        wait_until("the server serves again", || conn.cmd("PING").to_string() == "PONG");
    }
    // A slow call completes if no client kills it.
    let sort = "local t = {} for i = 1, 100000 do t[i] = i * 7919 % 100003 end \
                table.sort(t, function(a, b) return a < b end) return {t[1], t[50000], t[100000]}";
    let sorted = eval(&mut runner, sort, 0, &[]).to_string();
    assert_eq!(sorted, "1) (integer) 1\n2) (integer) 50000\n3) (integer) 100002");
    let replaced = "local n = 0 local s = string.gsub(string.rep('x', 2000), '.', function(x) \
                    for i = 1, 2000 do n = n + 1 end return redis.call('ECHO', 'y') end) \
                    return {n, #s, (string.gsub(s, 'y', ''))}";
    let replaced = eval(&mut runner, replaced, 0, &[]).to_string();
    assert_eq!(replaced, "1) (integer) 4000000\n2) (integer) 2000\n3) \"\"");
}

/// FUNCTION STATS also shows a function that has written.
#[test]
fn a_slow_function_within_a_callback_is_shown() {
    let mut server = with_workers(1).set("busy-reply-threshold", "50").start();
    let [mut runner, mut conn] = server.connections();
    let code = "#!lua name=slow\nredis.register_function('forever', function(keys) \
                redis.call('SET', keys[1], 'x') \
                return string.gsub('x', 'x', function() while true do end end) end)";
    conn.call(&["FUNCTION", "LOAD", code]);
    runner.send("FCALL forever 1 k a");
    let busy = "(error) BUSY Redis is busy running a script. You can only call FUNCTION KILL or \
                SHUTDOWN NOSAVE.";
    wait_until("the function is slow", || conn.cmd("GET k").to_string() == busy);
    let stats = conn.cmd("FUNCTION STATS");
    let shown = stats.field("running_script").unwrap();
    assert_eq!(shown.field("name").unwrap().text(), "forever");
    let command = shown.field("command").unwrap();
    let words: Vec<String> = command.elements().into_iter().map(Reply::text).collect();
    assert_eq!(words, ["FCALL", "forever", "1", "k", "a"]);
    assert!(conn.cmd("FUNCTION KILL").to_string().starts_with("(error) UNKILLABLE"));
    conn.send("SHUTDOWN NOSAVE");
    wait_until("the server has ended", || !server.is_running());
}

#[test]
fn scripts_obey_maxmemory() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.cmd("CONFIG SET maxmemory 1");
        let set = "return redis.call('SET', KEYS[1], 1)";
        let reply = eval(&mut conn, set, 1, &["k"]).to_string();
        assert!(reply.starts_with("(error) OOM command not allowed"), "{reply}");
        let allowed = format!("#!lua flags=allow-oom\n{set}");
        assert_eq!(eval(&mut conn, &allowed, 1, &["k"]).to_string(), "OK");
        let reply = eval(&mut conn, "#!lua\nreturn 1", 0, &[]).to_string();
        assert!(reply.starts_with("(error) OOM "), "{reply}");
        assert_eq!(eval(&mut conn, "return redis.call('GET', KEYS[1])", 1, &["k"]).text(), "1");
        conn.cmd("CONFIG SET maxmemory 0");
    });
}

#[test]
fn a_script_of_eval_has_no_arguments_but_keys_and_argv() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "EVAL \"return select('#', ...)\" 1 k a", "(integer) 0");
        assert_reply!(conn, "EVAL \"local a = {...} return #a + #KEYS\" 1 k a", "(integer) 1");
        assert_reply!(conn, "EVAL \"return ARGV[1] -- ...\" 0 a", "\"a\"");
        let error = conn.cmd("EVAL \"\n\nlocal f = function(...) return ... end error(f('x'))\" 0");
        assert!(error.to_string().contains("user_script:3: x"), "{error}");
    });
}

#[test]
fn a_killed_script_reports_its_position() {
    each_config_of(
        || Launch::subject().set("busy-reply-threshold", "1"),
        |server| {
            let [mut runner, mut killer] = server.connections();
            let source = "local n = 0\nwhile true do pcall(function() n = n + 1 end) end";
            let digest = killer.call(&["SCRIPT", "LOAD", source]).text();
            runner.call(&["HELLO", "2"]);
            runner.send(&format!("EVALSHA {digest} 0"));
            wait_until("it is slow", || killer.cmd("PING").to_string() == BUSY);
            assert_reply!(killer, "SCRIPT KILL", "OK");
            let text = format!(
                "(error) ERR Script killed by user with SCRIPT KILL... script: {digest}, on \
                 @user_script:2."
            );
            assert_eq!(runner.reply().to_string(), text);
            // While the reply is being created, the position in the script is unknown.
            let source = "local t, u = {}, {} for i = 1, 20000 do t[i] = i end\n\
                          for i = 1, 3000 do u[i] = t end return u";
            let digest = killer.call(&["SCRIPT", "LOAD", source]).text();
            runner.send(&format!("EVALSHA {digest} 0"));
            wait_until("it is slow", || killer.cmd("PING").to_string() == BUSY);
            assert_reply!(killer, "SCRIPT KILL", "OK");
            let text = runner.reply().to_string();
            assert!(text.contains(&format!("KILL... script: {digest}")), "{text}");
        },
    );
}

#[test]
fn time_does_not_advance_until_the_script_is_slow() {
    each_config_of(
        || Launch::subject().set("busy-reply-threshold", "1"),
        |server| {
            let mut conn = server.connect();
            let [whole, part] = ["[1]", "[2]"].map(|part| format!("redis.call('TIME'){part}"));
            let source = format!(
                "local whole, part = {whole}, {part}\n\
                 while whole == {whole} and part == {part} do end return 'moved'"
            );
            assert_eq!(eval(&mut conn, &source, 0, &[]).text(), "moved");
        },
    );
}
