//! MONITOR and SLOWLOG: observing a server's commands.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, assert_reply, each_backend, each_config};
use brisk_tests::{one_of_each_worker, with_workers};

/// A line of MONITOR without its time: `[db addr] "word" "word"`.
fn line(reply: &Reply) -> String {
    let text = reply.text();
    let (time, rest) = text.split_once(' ').unwrap();
    let (seconds, micros) = time.split_once('.').unwrap();
    assert!(seconds.len() == 10 && micros.len() == 6, "{text}");
    rest.to_owned()
}

#[test]
fn monitor_shows_commands_of_all_connections_as_sent() {
    each_config(|server| {
        let [mut watcher, mut worker] = server.connections();
        assert_reply!(watcher, "MONITOR", "OK");
        worker.cmd("SELECT 2");
        worker.cmd("set \"a\\x00\\n\\\"\" v");
        worker.cmd("nosuch");
        worker.cmd("GET");
        worker.cmd("GET k");
        let words: Vec<String> = (0..3)
            .map(|_| {
                let line = line(&watcher.reply());
                let (place, words) = line.split_once("] ").unwrap();
                assert!(place.starts_with("[0 127.0.0.1:") || place.starts_with("[2 127.0.0.1:"));
                words.to_owned()
            })
            .collect();
        // Neither the unknown command nor the one with too few arguments is executed, or shown.
        assert_eq!(words, [r#""SELECT" "2""#, r#""set" "a\x00\n\"" "v""#, r#""GET" "k""#]);
    });
}

#[test]
fn monitor_hides_secrets() {
    each_config(|server| {
        let [mut watcher, mut worker] = server.connections();
        assert_reply!(watcher, "MONITOR", "OK");
        worker.cmd("AUTH default secret");
        worker.cmd("PING");
        let shown = line(&watcher.reply());
        assert!(shown.ends_with(r#""AUTH" "(redacted)" "(redacted)""#), "{shown}");
        let shown = line(&watcher.reply());
        assert!(shown.ends_with("\"PING\""), "{shown}");
    });
}

#[test]
fn monitor_sees_the_commands_of_every_worker() {
    for workers in [1, 2] {
        each_backend(
            || with_workers(workers),
            |server| {
                let mut watchers: [Conn; 3] = server.connections();
                for watcher in &mut watchers {
                    assert_reply!(watcher, "MONITOR", "OK");
                }
                let mut others: [Conn; 8] = server.connections();
                for (at, other) in others.iter_mut().enumerate() {
                    other.cmd(&format!("ECHO {at}"));
                }
                for watcher in &mut watchers {
                    let mut words: Vec<String> = others
                        .iter()
                        .map(|_| line(&watcher.reply()).split_once("] ").unwrap().1.to_owned())
                        .collect();
                    words.sort();
                    let wanted: Vec<String> =
                        (0..others.len()).map(|at| format!("\"ECHO\" \"{at}\"")).collect();
                    assert_eq!(words, wanted);
                }
            },
        );
    }
}

#[test]
fn monitor_hides_administration_and_every_password() {
    each_config(|server| {
        let [mut watcher, mut worker] = server.connections();
        assert_reply!(watcher, "MONITOR", "OK");
        worker.cmd("CLIENT LIST");
        worker.cmd("CLIENT KILL ID 99999");
        worker.cmd("AUTH default a b");
        worker.cmd("hello 2 setname n AUTH default secret");
        worker.cmd("CLIENT ID");
        let words: Vec<String> =
            (0..3).map(|_| line(&watcher.reply()).split_once("] ").unwrap().1.to_owned()).collect();
        if !subject_is_redis() {
            // Redis shows the arguments of an AUTH with too many arguments.
            assert_eq!(words[0], r#""AUTH" "(redacted)" "(redacted)" "(redacted)""#);
        }
        let hello = r#""hello" "2" "setname" "n" "AUTH" "(redacted)" "(redacted)""#;
        assert_eq!(words[1], hello);
        assert_eq!(words[2], r#""CLIENT" "ID""#);
    });
}

/// The part of a MONITOR line after the address.
fn words(watcher: &mut Conn) -> String {
    line(&watcher.reply()).split_once("] ").unwrap().1.to_owned()
}

#[test]
fn monitor_shows_scripts_before_their_commands_even_if_rejected() {
    each_config(|server| {
        let [mut watcher, mut worker] = server.connections();
        assert_reply!(watcher, "MONITOR", "OK");
        for refused in [
            "FCALL nofn 0",
            "FCALL_RO nofn x",
            "EVALSHA aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0",
            "EVALSHA short 0",
            "EVAL 'syntax error here' 0",
            "EVAL '#!lua flags=none\nreturn 1' 0",
            "EVAL 'return 1' 1",
            "EVAL_RO 'return 1' x",
            "EVAL_RO '#!lua\nreturn 1' 0",
            "EVAL nosuch() 0",
        ] {
            assert!(worker.cmd(refused).to_string().starts_with("(error) "), "{refused}");
            let name = refused.split(' ').next().unwrap();
            assert!(words(&mut watcher).starts_with(&format!("\"{name}\" \"")), "{refused}");
        }
        // Calls with too few arguments do not run a script.
        worker.cmd("EVAL");
        worker.cmd("EVAL 'return 1'");
        let lines = ["MULTI", "FCALL nofn 0", "EVAL \"redis.call('SET','k','v') error('x')\" 0"];
        worker.pipeline(&lines);
        worker.cmd("EXEC");
        let shown: Vec<String> = (0..5).map(|_| words(&mut watcher)).collect();
        let script = r#""EVAL" "redis.call('SET','k','v') error('x')" "0""#;
        let wanted =
            [r#""MULTI""#, r#""FCALL" "nofn" "0""#, script, r#""SET" "k" "v""#, r#""EXEC""#];
        assert_eq!(shown, wanted);
        worker.assert_in_step();
        assert!(words(&mut watcher).starts_with(r#""ECHO""#));
    });
}

/// The second script is restarted repeatedly while the first one, which may access undeclared keys, is running.
#[test]
fn monitor_shows_a_restarted_script_once() {
    // The maximum number of iterations. More would exceed the timeout for replies. It depends on timing whether a
    // script is started twice.
    const TURNS_MAX: u64 = 1 << 25;
    const TRIES_MAX: usize = 30;
    let server = with_workers(2).set("busy-reply-threshold", "0").start();
    let [mut first, mut second] = if subject_is_redis() {
        server.connections()
    } else {
        one_of_each_worker(&server, 2).try_into().unwrap_or_else(|_| unreachable!())
    };
    let mut turns = 1 << 20;
    for _ in 0..TRIES_MAX {
        let mut watcher = server.connect();
        assert_reply!(watcher, "MONITOR", "OK");
        // Each script is new, because the server knows nothing about a script that never ran.
        let source = |turns| {
            format!(
                "redis.call('SET', KEYS[1], 1) if ARGV[1] then redis.call('GET', ARGV[1]) end \
                 for i = 1, {turns} do end return 1"
            )
        };
        first.send(&format!("EVAL \"{}\" 1 a", source(turns)));
        assert!(words(&mut watcher).starts_with(r#""EVAL""#));
        assert_eq!(words(&mut watcher), r#""SET" "a" "1""#);
        second.send(&format!("EVAL \"{}\" 1 b", source(turns / (1 << 20))));
        assert_eq!(first.reply().integer(), 1);
        assert_eq!(second.reply().integer(), 1);
        second.assert_in_step();
        assert!(words(&mut watcher).starts_with(r#""EVAL""#));
        assert_eq!(words(&mut watcher), r#""SET" "b" "1""#);
        assert_eq!(words(&mut watcher), r#""ECHO" "in-step""#);
        drop(watcher);
        if subject_is_redis() || second.info("slot_conflicts") != "0" {
            return;
        }
        turns = TURNS_MAX.min(turns * 4);
    }
    panic!("nothing was begun twice");
}

#[test]
fn monitor_names_clients_of_the_unix_socket() {
    each_config(|server| {
        let mut watcher = server.connect();
        assert_reply!(watcher, "MONITOR", "OK");
        server.connect_unix().assert_in_step();
        let path = server.unix_socket().display().to_string();
        assert_eq!(line(&watcher.reply()), format!("[0 unix:{path}] \"ECHO\" \"in-step\""));
    });
}

#[test]
fn a_monitor_may_not_look_at_keys_and_ends_by_reset() {
    each_config(|server| {
        let [mut watcher, mut worker] = server.connections();
        assert_reply!(watcher, "MONITOR", "OK");
        for words in ["GET k", "SET k v", "DBSIZE", "FLUSHALL"] {
            let error = "(error) ERR Replica can't interact with the keyspace";
            assert_reply!(watcher, words, error);
        }
        // The second MONITOR gets no reply.
        watcher.send("MONITOR");
        assert_reply!(watcher, "PING", "PONG");
        assert!(line(&watcher.reply()).ends_with("\"PING\""));
        let info = watcher.cmd("CLIENT INFO").text();
        assert!(info.contains(" flags=O "), "{info}");
        assert!(line(&watcher.reply()).ends_with("\"CLIENT\" \"INFO\""));
        assert_reply!(watcher, "RESET", "RESET");
        worker.assert_in_step();
        watcher.assert_in_step();
        assert_reply!(watcher, "SET k v", "OK");
    });
}

#[test]
fn slowlog_keeps_what_was_slower_than_the_limit() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3", "OK");
        assert_reply!(conn, "SLOWLOG RESET", "OK");
        conn.cmd("CLIENT SETNAME me");
        conn.cmd("SET k v");
        assert_reply!(conn, "CONFIG SET slowlog-log-slower-than -1", "OK");
        let entries = conn.cmd("SLOWLOG GET -1");
        let entries = entries.elements();
        assert_eq!(entries.len(), 3); // the third is SLOWLOG RESET or CONFIG SET
        let set = entries.iter().find(|e| e.elements()[3].elements()[0].text() == "SET").unwrap();
        let parts = set.elements();
        assert_eq!(parts.len(), 6);
        let words: Vec<String> = parts[3].elements().iter().map(|w| w.text()).collect();
        assert_eq!(words, ["SET", "k", "v"]);
        assert!(parts[4].text().starts_with("127.0.0.1:"));
        assert_eq!(parts[5].text(), "me");
        assert_reply!(conn, "SLOWLOG LEN", "(integer) 3");
        assert_reply!(conn, "SLOWLOG RESET", "OK");
        assert_reply!(conn, "SLOWLOG LEN", "(integer) 0");
    });
}

#[test]
fn slowlog_hides_passwords() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CONFIG SET slowlog-log-slower-than 0", "OK");
        conn.cmd("AUTH default secret");
        conn.cmd("HELLO 2 AUTH default secret");
        conn.cmd("CONFIG SET maxclients 100 requirepass secret");
        assert_reply!(conn, "CONFIG SET slowlog-log-slower-than -1", "OK");
        let log = conn.cmd("SLOWLOG GET").to_string();
        assert!(!log.contains("secret"), "{log}");
        assert_eq!(log.matches("\"(redacted)\"").count(), 5, "{log}");
    });
}

#[test]
fn slowlog_shortens_long_commands() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CONFIG SET slowlog-log-slower-than 0", "OK");
        let many: String = (0..100).map(|i| format!(" e{i}")).collect();
        conn.cmd(&format!("DEL k {}{many}", "x".repeat(200)));
        assert_reply!(conn, "CONFIG SET slowlog-log-slower-than -1", "OK");
        let entries = conn.cmd("SLOWLOG GET");
        let entries = entries.elements();
        let del = entries.iter().find(|e| e.elements()[3].elements()[0].text() == "DEL").unwrap();
        let words: Vec<String> = del.elements()[3].elements().iter().map(|w| w.text()).collect();
        assert_eq!(words.len(), 32);
        assert_eq!(words[2], format!("{}... (72 more bytes)", "x".repeat(128)));
        assert_eq!(words[31], "... (72 more arguments)");
    });
}
