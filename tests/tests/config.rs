//! CONFIG: GET returns what SET has set, and an invalid SET is rejected as a whole.

use brisk_testkit::reply::Reply;
use brisk_testkit::server::{Program, brisk_binary, subject_is_redis};
use brisk_testkit::{Launch, Server, assert_reply, each_config, each_protocol};
use std::process::Command;

#[test]
fn config_get_returns_the_values_that_were_set() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CONFIG SET maxmemory 100mb timeout 30", "OK");
        let reply = conn.cmd("CONFIG GET maxmemory");
        assert_eq!(reply.field("maxmemory").unwrap().text(), "104857600");
        // The reply contains the name as it was requested.
        assert_eq!(conn.cmd("CONFIG GET TIMEOUT").field("TIMEOUT").unwrap().text(), "30");
        assert_eq!(conn.info("maxmemory"), "104857600");
        let several = conn.cmd("CONFIG GET maxmemory* timeout");
        let names: Vec<String> = several.elements().iter().step_by(2).map(|r| r.text()).collect();
        for name in ["maxmemory", "maxmemory-policy", "maxmemory-samples", "timeout"] {
            assert!(names.contains(&name.to_owned()), "{name} is missing in {names:?}");
        }
    });
}

#[test]
fn old_and_new_names_are_one_setting() {
    each_protocol(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CONFIG SET hash-max-ziplist-entries 7", "OK");
        let reply = conn.cmd("CONFIG GET hash-max-*-entries");
        assert_eq!(reply.field("hash-max-listpack-entries").unwrap().text(), "7");
        assert_eq!(reply.field("hash-max-ziplist-entries").unwrap().text(), "7");
    });
}

#[test]
fn a_wrong_value_changes_nothing_of_its_call() {
    each_protocol(|server| {
        let mut conn = server.connect();
        assert_reply!(
            conn,
            "CONFIG SET timeout 5 maxmemory-policy nosuch",
            "(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - \
             argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, \
             volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction"
        );
        assert_eq!(conn.cmd("CONFIG GET timeout").field("timeout").unwrap().text(), "0");
        assert_reply!(
            conn,
            "CONFIG SET timeout x",
            "(error) ERR CONFIG SET failed (possibly related to argument 'timeout') - \
             argument couldn't be parsed into an integer"
        );
        assert_reply!(
            conn,
            "CONFIG SET nosuch 1",
            "(error) ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'"
        );
        assert_reply!(
            conn,
            "CONFIG SET port",
            "(error) ERR wrong number of arguments for 'config|set' command"
        );
        assert_reply!(
            conn,
            "CONFIG SET daemonize yes",
            "(error) ERR CONFIG SET failed (possibly related to argument 'daemonize') - \
             can't set immutable config"
        );
    });
}

/// Some programs set all directives that they have read, except those that Redis rejects.
#[test]
fn immutable_directives_of_brisk_can_be_set_to_their_present_values() {
    if subject_is_redis() {
        return;
    }
    each_config(|server| {
        let mut conn = server.connect();
        for name in ["io-backend", "threads", "admin-port", "admin-unixsocketperm"] {
            let value = conn.cmd(&format!("CONFIG GET {name}")).field(name).unwrap().text();
            assert_reply!(conn, &format!("CONFIG SET timeout 3 {name} {value}"), "OK");
            let other = if value == "1" { "2" } else { "1" };
            let other = if name == "io-backend" { "epoll" } else { other };
            if other != value {
                let refusal = format!(
                    "(error) ERR CONFIG SET failed (possibly related to argument '{name}') - \
                     can't set immutable config"
                );
                assert_reply!(conn, &format!("CONFIG SET timeout 4 {name} {other}"), refusal);
            }
        }
        assert_eq!(conn.cmd("CONFIG GET timeout").field("timeout").unwrap().text(), "3");
        let threads = conn.cmd("CONFIG GET io-threads").field("io-threads").unwrap().text();
        assert_reply!(
            conn,
            &format!("CONFIG SET io-threads {threads}"),
            "(error) ERR CONFIG SET failed (possibly related to argument 'io-threads') - \
             can't set immutable config"
        );
    });
}

#[test]
fn nothing_matches_an_unknown_name() {
    each_config(|server| {
        let mut conn = server.connect();
        let empty = if server.resp() == 3 { "(empty hash)" } else { "(empty array)" };
        assert_reply!(conn, "CONFIG GET nosuch*", empty);
    });
}

#[test]
fn directives_of_the_command_line_are_in_force() {
    let mut server = Launch::subject().set("maxmemory", "50mb").set("databases", "4").start();
    let mut conn = server.connect();
    assert_eq!(conn.cmd("CONFIG GET maxmemory").field("maxmemory").unwrap().text(), "52428800");
    assert_reply!(conn, "SELECT 3", "OK");
    assert_reply!(conn, "SELECT 4", "(error) ERR DB index is out of range");
    assert!(server.is_running());
}

/// The reply of CONFIG GET *, without the directives that always differ between two servers.
fn settings(server: &Server) -> Vec<(String, String)> {
    let reply = server.connect().cmd("CONFIG GET *");
    let texts: Vec<String> = reply.elements().iter().map(|reply| reply.text()).collect();
    let mut pairs: Vec<(String, String)> =
        texts.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    pairs.retain(|(name, _)| !["port", "dir", "unixsocket", "logfile"].contains(&name.as_str()));
    pairs.sort();
    pairs
}

#[test]
fn the_printed_configuration_file_has_the_same_effect_as_no_file() {
    if subject_is_redis() {
        return;
    }
    let printed = Command::new(brisk_binary().unwrap()).arg("--print-config").output().unwrap();
    assert!(printed.status.success());
    let text = String::from_utf8(printed.stdout).unwrap();
    let with = settings(&Launch::bare(Program::Brisk).file(&text).start());
    let without = settings(&Launch::bare(Program::Brisk).start());
    assert!(without.len() > 150);
    assert_eq!(with, without);
}

#[test]
fn a_wrong_directive_stops_the_start_and_is_named() {
    let error = Launch::subject().set("maxmemory-policy", "nosuch").try_start().unwrap_err();
    assert!(error.contains("maxmemory-policy"), "{error}");
    let error = Launch::subject().set("no-such-directive", "1").try_start().unwrap_err();
    assert!(error.contains("no-such-directive"), "{error}");
    assert!(!error.contains("Did you mean"), "{error}");
    if subject_is_redis() {
        return;
    }
    let reason = "Bad directive or wrong number of arguments. Did you mean `maxmemory-policy`?";
    for mistyped in ["maxmemory_policy", "maxmemory-polcy", "MAXMEMORY-POLICYS"] {
        let error = Launch::subject().set(mistyped, "noeviction").try_start().unwrap_err();
        assert!(error.contains(mistyped) && error.contains(reason), "{error}");
        // Clients compare the error of CONFIG SET, so it has no hint.
        let server = Launch::subject().start();
        let text = format!(
            "(error) ERR Unknown option or number of arguments for CONFIG SET - '{mistyped}'"
        );
        assert_reply!(server.connect(), &format!("CONFIG SET {mistyped} noeviction"), text);
    }
    // The directive is known, so the error is only about its values.
    let error = Launch::subject().file("maxmemory-policy\n").try_start().unwrap_err();
    assert!(!error.contains("Did you mean"), "{error}");
}

#[test]
fn directives_without_effect_are_logged_at_startup() {
    if subject_is_redis() {
        return;
    }
    let log =
        Launch::subject().set("rdb-del-sync-files", "yes").set("cluster-port", "7").start().log();
    let named = "not implemented, so they have no effect: rdb-del-sync-files.";
    assert!(log.contains(named), "{log}");
    let log = Launch::subject().start().log();
    assert!(!log.contains("have no effect"), "{log}");
}

#[test]
fn resetstat_sets_the_counters_back() {
    each_protocol(|server| {
        let mut conn = server.connect();
        conn.pipeline(&["SET k v", "GET k", "GET none"]);
        assert_eq!(conn.info("keyspace_hits"), "1");
        assert_eq!(conn.info("keyspace_misses"), "1");
        assert_reply!(conn, "CONFIG RESETSTAT", "OK");
        assert_eq!(conn.info("keyspace_hits"), "0");
        assert_eq!(conn.info("keyspace_misses"), "0");
    });
}

#[test]
fn sigterm_ends_the_server_orderly() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    assert_reply!(conn, "SET k v", "OK");
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(conn.read_to_end(), b"");
}

#[test]
fn secrets_are_kept_out_of_the_slow_log_as_in_redis() {
    let secrets = ["masteruser", "masterauth", "requirepass"];
    let shown = |launch: Launch| -> Vec<Vec<String>> {
        let server = launch.set("slowlog-log-slower-than", "0").start();
        let mut conn = server.connect();
        let changes = secrets.map(|secret| format!("CONFIG SET {secret} ''"));
        for change in changes.iter().map(String::as_str).chain(["CONFIG SET masteruser '' hz 10"]) {
            assert_reply!(conn, change, "OK");
        }
        let log = conn.cmd("SLOWLOG GET 4");
        let words =
            |entry: &&Reply| entry.elements()[3].elements().iter().map(|r| r.text()).collect();
        log.elements().iter().map(words).collect()
    };
    let (ours, theirs) = (shown(Launch::subject()), shown(Launch::redis()));
    assert_eq!(ours, theirs);
    assert!(ours.iter().flatten().filter(|word| *word == "(redacted)").count() > secrets.len());
}

/// Redis interprets the clock of the previous policy as a counter, which is then 0 for nearly every key, so that
/// existing keys are evicted first.
#[test]
fn keys_count_as_new_when_the_policy_begins_to_count_uses() {
    if subject_is_redis() {
        return;
    }
    let server = Launch::subject().start();
    let mut conn = server.connect();
    let dbs = ["SELECT 0", "SELECT 9"];
    let keys: Vec<String> = (0..300).map(|number| format!("key:{number}")).collect();
    for db in dbs {
        assert_reply!(conn, db, "OK");
        for key in &keys {
            assert_reply!(conn, &format!("SET {key} v"), "OK");
        }
        assert_reply!(conn, "RPUSH list a b", "(integer) 2");
    }
    for policy in ["allkeys-lfu", "volatile-lfu"] {
        assert_reply!(conn, &format!("CONFIG SET maxmemory-policy {policy}"), "OK");
        for db in dbs {
            assert_reply!(conn, db, "OK");
            for key in keys.iter().map(String::as_str).chain(["list"]) {
                // After a minute, the counter is one less.
                let frequency = conn.cmd(&format!("OBJECT FREQ {key}")).integer();
                assert!((3..=5).contains(&frequency), "{policy}, {key}: {frequency}");
            }
        }
        assert_reply!(conn, "CONFIG SET maxmemory-policy noeviction", "OK");
    }
    for db in dbs {
        assert_reply!(conn, db, "OK");
        for key in &keys {
            let idle = conn.cmd(&format!("OBJECT IDLETIME {key}")).integer();
            assert!((0..600).contains(&idle), "{key}: {idle}");
        }
    }
}

/// The expected OOM scores are those of Redis 7.0.15 after the same settings in the same order.
#[test]
fn the_score_for_the_kernel_is_set_as_in_redis() {
    let lines = [
        "CONFIG SET oom-score-adj relative",
        "CONFIG SET oom-score-adj-values '100 200 300'",
        "CONFIG SET oom-score-adj absolute",
        "CONFIG SET oom-score-adj-values '300 200 100'",
        "CONFIG SET oom-score-adj-values '1500 1600 1700'",
        "CONFIG SET oom-score-adj-values '1500 1600'",
        "CONFIG SET oom-score-adj-values '1 2 3000'",
        "CONFIG SET oom-score-adj sometimes",
        "CONFIG SET oom-score-adj-values '700 800 900'",
        "REPLICAOF 127.0.0.1 1",
        "REPLICAOF NO ONE",
        "CONFIG SET oom-score-adj no",
        "CONFIG SET oom-score-adj-values '710 810 910'",
        "CONFIG SET oom-score-adj yes",
        "CONFIG SET oom-score-adj no",
        // This is lower than at the start, which only a privileged process may set.
        "CONFIG SET oom-score-adj-values '-1500 0 0'",
        "CONFIG SET oom-score-adj absolute",
        "CONFIG SET oom-score-adj no",
        // A real Redis returns the directives that match a pattern in an order that depends on its random seed, so get
        // them one by one.
        "CONFIG GET oom-score-adj",
        "CONFIG GET oom-score-adj-values",
    ];
    let [ours, theirs] = [Launch::subject(), Launch::redis()].map(|launch| {
        let server =
            launch.set("oom-score-adj", "yes").set("oom-score-adj-values", "600 650 1").start();
        let mut conn = server.connect();
        let path = format!("/proc/{}/oom_score_adj", server.pid());
        let score = || std::fs::read_to_string(&path).unwrap().trim().to_owned();
        let mut seen = vec![score()];
        for line in lines {
            let reply = conn.cmd(line).to_string();
            seen.push(format!("{line}: {reply}: {}", score()));
        }
        seen
    });
    assert_eq!(ours, theirs);
}
