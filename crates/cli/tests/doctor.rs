//! `brisk-cli doctor` against servers with real problems.

use crate::harness::{brisk_cli, text};
use brisk_testkit::port::Port;
use brisk_testkit::{Launch, Server, wait_until};

fn launches() -> [Launch; 2] {
    [Launch::redis(), Launch::subject()]
}

/// The exit code and the output.
#[track_caller]
fn doctor(server: &Server) -> (i32, String) {
    let found = brisk_cli(server, &["doctor"]);
    assert_eq!(text(&found.stderr), "");
    (found.status.code().expect("it exits"), text(&found.stdout))
}

/// Asserts that the output has a line that begins with the severity and the topic and contains the text.
#[track_caller]
fn assert_line(shown: &str, severity: &str, topic: &str, part: &str) {
    let begin = format!("{severity:<8} {topic:<12} ");
    let found = shown.lines().any(|line| line.starts_with(&begin) && line.contains(part));
    assert!(found, "no line {begin:?} with {part:?} in\n{shown}");
}

#[test]
fn a_server_without_problems_is_not_reported_as_one() {
    for launch in launches() {
        // On a loaded machine, any command may take longer than the default of 10 ms.
        let launch = launch.set("slowlog-log-slower-than", "60000000");
        let server = launch.set("save", "3600 1").set("maxmemory", "100mb").start();
        let (code, shown) = doctor(&server);
        assert_eq!(code, 0, "{shown}");
        assert!(shown.contains(&format!(" at 127.0.0.1:{}\n", server.port())), "{shown}");
        assert!(shown.ends_with("0 problems, 0 warnings, 0 notes\n"), "{shown}");
        let json = brisk_cli(&server, &["doctor", "--json"]);
        assert_eq!(text(&json.stdout), "[\n\n]\n");
    }
}

#[test]
fn a_memory_limit_that_is_nearly_reached_is_a_problem() {
    for launch in launches() {
        let server = launch.start();
        let mut conn = server.connect();
        let (_, shown) = doctor(&server);
        assert_line(&shown, "warning", "maxmemory", "To do: CONFIG SET maxmemory ");
        // Next to this value, the memory of a connection does not matter. The command itself is short, because Redis
        // frees the memory for a long one some time later.
        conn.cmd(&format!("SETRANGE filler {} x", (32 << 20) - 1));
        let used: u64 = server.info("used_memory").parse().expect("it is a number");
        conn.cmd(&format!("CONFIG SET maxmemory {}", used + used / 20));
        let (code, shown) = doctor(&server);
        assert_eq!(code, 1, "{shown}");
        assert_line(&shown, "problem", "maxmemory", "At 100 %, writes fail with OOM");
        conn.cmd(&format!("CONFIG SET maxmemory {}", used / 2));
        assert!(conn.cmd("SET key value").text().contains("OOM"));
        let (_, shown) = doctor(&server);
        assert_line(&shown, "warning", "maxmemory", "1 rejected command with OOM");
        conn.cmd("CONFIG SET maxmemory-policy volatile-lru");
        conn.cmd(&format!("CONFIG SET maxmemory {}", used * 2));
        conn.cmd("SET key value");
        let (code, shown) = doctor(&server);
        assert_eq!(code, 1, "{shown}");
        assert_line(
            &shown,
            "problem",
            "eviction",
            "To do: CONFIG SET maxmemory-policy allkeys-lru",
        );
    }
}

#[test]
fn many_evictions_are_a_warning() {
    for launch in launches() {
        let server = launch.start();
        let mut conn = server.connect();
        let used: u64 = server.info("used_memory").parse().expect("it is a number");
        conn.cmd("CONFIG SET maxmemory-policy allkeys-random");
        conn.cmd(&format!("CONFIG SET maxmemory {}", used + (4 << 20)));
        let value = "x".repeat(64 << 10);
        wait_until("keys are evicted", || {
            for number in 0..100 {
                let number = number + conn.cmd("INCR counter").integer() * 100;
                conn.cmd(&format!("SET k{number} {value}"));
            }
            server.info("evicted_keys").parse::<u64>().is_ok_and(|evicted| evicted > 300)
        });
        let (_, shown) = doctor(&server);
        assert_line(&shown, "warning", "eviction", " keys evicted, ");
    }
}

#[test]
fn a_failed_snapshot_and_missing_persistence_are_reported() {
    for launch in launches() {
        let server = launch.set("dbfilename", "blocked.rdb").start();
        let mut conn = server.connect();
        conn.cmd("SET key value");
        let (code, shown) = doctor(&server);
        assert_eq!(code, 0, "{shown}");
        assert_line(&shown, "note", "persistence", "CONFIG SET appendonly yes");
        // A file cannot replace a directory.
        std::fs::create_dir(server.dir().join("blocked.rdb")).expect("it can be created");
        conn.cmd("BGSAVE");
        server.wait_for_info("rdb_last_bgsave_status", |status| status == "err");
        let (code, shown) = doctor(&server);
        assert_eq!(code, 1, "{shown}");
        assert_line(&shown, "problem", "snapshot", "the last BGSAVE failed, 1 change not saved");
        conn.cmd("CONFIG SET save '3600 1'");
        let (_, shown) = doctor(&server);
        assert_line(&shown, "problem", "snapshot", "Writes fail with MISCONF");
        // With save points, a server whose snapshots fail does not exit.
        conn.cmd("CONFIG SET save ''");
    }
}

#[test]
fn a_lost_primary_and_missing_replicas_are_problems() {
    for launch in launches() {
        let server = launch.start();
        let mut conn = server.connect();
        conn.cmd("CONFIG SET min-replicas-to-write 1");
        let (code, shown) = doctor(&server);
        assert_eq!(code, 1, "{shown}");
        assert_line(
            &shown,
            "problem",
            "replication",
            "0 of 1 replicas that min-replicas-to-write requires",
        );
        let nowhere = Port::claim();
        conn.cmd(&format!("REPLICAOF 127.0.0.1 {}", nowhere.number()));
        let (code, shown) = doctor(&server);
        assert_eq!(code, 1, "{shown}");
        let remedy = format!("brisk-cli -h 127.0.0.1 -p {} ping", nowhere.number());
        assert_line(&shown, "problem", "replication", &remedy);
    }
}

#[test]
fn slow_commands_and_unread_replies_are_reported() {
    for launch in launches() {
        let server = launch.start();
        let mut conn = server.connect();
        conn.cmd("CONFIG SET slowlog-log-slower-than 0");
        conn.cmd("KEYS *");
        conn.cmd("CONFIG SET slowlog-log-slower-than -1");
        let (_, shown) = doctor(&server);
        assert!(shown.contains(" 1 slow call of KEYS, the slowest took "), "{shown}");
        assert!(shown.contains("To do: use SCAN instead of KEYS; SLOWLOG GET 10"), "{shown}");
        conn.cmd(&format!("SET large {}", "x".repeat(2 << 20)));
        let mut greedy = server.connect();
        let id = greedy.id();
        for _ in 0..30 {
            greedy.send("GET large");
        }
        let has_output = |client: &str| {
            let waiting = client.split("omem=").nth(1).and_then(|rest| rest.split(' ').next());
            waiting
                .and_then(|waiting| waiting.parse::<u64>().ok())
                .is_some_and(|bytes| bytes > 1 << 20)
        };
        wait_until("replies wait", || conn.cmd("CLIENT LIST").text().lines().any(has_output));
        let (_, shown) = doctor(&server);
        assert_line(&shown, "warning", "clients", &format!("To do: CLIENT KILL ID {id}"));
    }
}

#[test]
fn open_access_is_a_problem_and_a_short_password_a_warning() {
    for launch in launches() {
        let server = launch.start();
        let mut conn = server.connect();
        // The server ignores the second address, because no interface has it.
        conn.cmd("CONFIG SET bind '127.0.0.1 -192.0.2.1'");
        conn.cmd("CONFIG SET protected-mode no");
        let (code, shown) = doctor(&server);
        assert_eq!(code, 1, "{shown}");
        assert_line(&shown, "problem", "access", "To do: CONFIG SET requirepass PASSWORD");
        conn.cmd("CONFIG SET requirepass secret");
        let found = brisk_cli(&server, &["-a", "secret", "--no-auth-warning", "doctor"]);
        let shown = text(&found.stdout);
        assert_eq!(found.status.code(), Some(0), "{shown}");
        assert_line(&shown, "warning", "password", "requirepass has 6 bytes");
    }
}

#[test]
fn a_user_without_permissions_sees_which_checks_are_missing() {
    for launch in launches() {
        let server = launch.start();
        server.connect().cmd("ACL SETUSER reader on >pw +info");
        let args = ["--user", "reader", "-a", "pw", "--no-auth-warning", "doctor"];
        let found = brisk_cli(&server, &args);
        let shown = text(&found.stdout);
        assert_line(&shown, "note", "permission", "not checked: CONFIG GET *: NOPERM");
        server.connect().cmd("ACL SETUSER reader -info");
        let found = brisk_cli(&server, &args);
        assert_eq!(found.status.code(), Some(1));
        assert!(text(&found.stderr).contains("NOPERM"), "{}", text(&found.stderr));
    }
}
