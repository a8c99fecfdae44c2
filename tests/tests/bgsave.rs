//! BGSAVE and save points: their replies and their status in INFO, how they are ended, and the effects of a failure.
//! `point_in_time` tests that a file is a point-in-time snapshot.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::matrix::each_backend;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, TempDir, assert_reply, wait_until};
use brisk_tests::snapshots::{delay, fill, make_endless};
use std::fs;
use std::path::Path;

const STARTED: &str = "Background saving started";
const RUNNING: &str = "(error) ERR Background save already in progress";

/// Settings with which no test reaches a save point, and the end of a test does not cause a save.
fn quiet(program: Launch) -> Launch {
    program.set("save", "3600 1000000").set("shutdown-on-sigterm", "nosave")
}

fn launch() -> Launch {
    quiet(Launch::subject())
}

fn begin(conn: &mut Conn) {
    assert_reply!(conn, "BGSAVE", STARTED);
    assert_eq!(conn.info("rdb_bgsave_in_progress"), "1");
}

fn wait_for_end(conn: &mut Conn) {
    wait_until("the snapshot has ended", || conn.info("rdb_bgsave_in_progress") == "0");
}

/// Starts another BGSAVE and waits until it has ended.
fn save(conn: &mut Conn) {
    assert_reply!(conn, "BGSAVE", STARTED);
    wait_for_end(conn);
}

/// The names of files with this prefix.
fn files(dir: &Path, prefix: &str) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name.starts_with(prefix)).collect()
}

/// Loads a file into a server, and returns the reply to a query.
fn in_file(program: Launch, rdb: &[u8], query: &str) -> String {
    let home = TempDir::new();
    fs::write(home.path("dump.rdb"), rdb).unwrap();
    let server = program.set("dir", home.path("").to_str().unwrap()).start();
    server.wait_for_info("loading", |loading| loading == "0");
    server.connect().cmd(query).to_string()
}

#[test]
fn bgsave_replies_at_once_and_saves_the_present_dataset() {
    each_backend(launch, |server| {
        let mut conn = server.connect();
        let before = conn.cmd("LASTSAVE").integer();
        assert_reply!(conn, "SET k v", "OK");
        save(&mut conn);
        assert!(conn.cmd("LASTSAVE").integer() >= before);
        let rdb = fs::read(server.dir().join("dump.rdb")).unwrap();
        for program in [Launch::redis(), Launch::subject()] {
            assert_eq!(in_file(program, &rdb, "GET k"), "\"v\"");
        }
        assert!(files(server.dir(), "temp").is_empty());
        let log = server.log();
        for line in [STARTED, "DB saved on disk", "Background saving terminated with success"] {
            assert!(log.contains(line), "{line}: {log}");
        }
        // An empty dataset can be saved too.
        assert_reply!(conn, "FLUSHDB", "OK");
        save(&mut conn);
        let rdb = fs::read(server.dir().join("dump.rdb")).unwrap();
        assert_eq!(in_file(Launch::redis(), &rdb, "DBSIZE"), "(integer) 0");
    });
}

#[test]
fn unknown_arguments_of_bgsave_are_rejected() {
    let server = launch().start();
    let mut conn = server.connect();
    for line in ["BGSAVE now", "BGSAVE SCHEDULE now", "BGSAVE \"\"", "BGSAVE SCHEDULES"] {
        assert_reply!(conn, line, "(error) ERR syntax error");
    }
    let refused = conn.cmd("EVAL \"return redis.call('bgsave')\" 0").to_string();
    assert!(refused.contains("This Redis command is not allowed from script"), "{refused}");
    assert_reply!(conn, "BGSAVE schedule", STARTED);
    wait_for_end(&mut conn);
}

#[test]
fn one_snapshot_is_taken_at_a_time() {
    let server = launch().start();
    let [mut conn, mut other] = server.connections();
    make_endless(&mut conn);
    begin(&mut conn);
    assert_reply!(conn, "BGSAVE", RUNNING);
    assert_reply!(other, "BGSAVE SCHEDULE", RUNNING);
    assert_reply!(other, "SAVE", RUNNING);
    assert_reply!(conn, "MULTI", "OK");
    assert_reply!(conn, "BGSAVE", "QUEUED");
    assert_reply!(conn, "EXEC", "1) (error) ERR Background save already in progress");
    assert_eq!(conn.info("rdb_saves"), "1");
}

#[test]
fn in_a_transaction_bgsave_is_scheduled_for_later() {
    let server = launch().start();
    let mut conn = server.connect();
    for line in ["MULTI", "SET a 1", "BGSAVE", "BGSAVE SCHEDULE", "SET b 1"] {
        conn.cmd(line);
    }
    let replies = "1) OK\n2) Background saving scheduled\n3) Background saving scheduled\n4) OK";
    assert_reply!(conn, "EXEC", replies);
    // The file contains the effects of later commands in the transaction.
    wait_until("it was saved", || conn.info("rdb_changes_since_last_save") == "0");
    let rdb = fs::read(server.dir().join("dump.rdb")).unwrap();
    assert_eq!(in_file(Launch::redis(), &rdb, "EXISTS a b"), "(integer) 2");
    assert_eq!(conn.info("rdb_saves"), "1");
}

#[test]
fn info_shows_the_running_and_the_last_bgsave() {
    let server = launch().start();
    let mut conn = server.connect();
    assert_eq!(conn.info("rdb_last_bgsave_time_sec"), "-1");
    assert_eq!(conn.info("rdb_last_cow_size"), "0");
    make_endless(&mut conn);
    let changes: i64 = conn.info("rdb_changes_since_last_save").parse().unwrap();
    begin(&mut conn);
    wait_until("keys are known", || conn.info("current_save_keys_total") == "100");
    let processed: u64 = conn.info("current_save_keys_processed").parse().unwrap();
    assert!(processed <= 100);
    assert_ne!(conn.info("rdb_current_bgsave_time_sec"), "-1");
    assert_eq!(conn.info("rdb_changes_since_last_save"), changes.to_string());
    assert_eq!(conn.info("rdb_saves"), "1");
    if !subject_is_redis() {
        conn.info("snapshot_bytes").parse::<u64>().unwrap();
        conn.info("snapshot_quiesced_us").parse::<u64>().unwrap();
    }
    // A snapshot uses the settings at its start, and resetting statistics does not affect it.
    for line in ["CONFIG RESETSTAT", "CONFIG SET save \"3600 5\"", "CONFIG SET rdbcompression no"] {
        assert_reply!(conn, line, "OK");
    }
    assert_eq!(conn.info("rdb_saves"), "0");
    assert_eq!(conn.info("rdb_bgsave_in_progress"), "1");
    assert_eq!(conn.info("rdb_last_bgsave_time_sec"), "-1");
    conn.send("SHUTDOWN NOSAVE");
    assert!(files(server.dir(), "temp").len() <= 1, "{}", server.log());
    server.ended();

    let server = launch().start();
    let mut conn = server.connect();
    save(&mut conn);
    for (field, value) in [
        ("current_save_keys_total", "0"),
        ("current_save_keys_processed", "0"),
        ("current_fork_perc", "0.00"),
        ("rdb_current_bgsave_time_sec", "-1"),
        ("rdb_last_bgsave_time_sec", "0"),
        ("rdb_last_bgsave_status", "ok"),
        ("rdb_changes_since_last_save", "0"),
    ] {
        assert_eq!(conn.info(field), value, "{field}");
    }
    let saved = conn.cmd("LASTSAVE").integer().to_string();
    assert_eq!(conn.info("rdb_last_save_time"), saved);
}

/// Changes after the start of the snapshot are not in the file.
#[test]
fn only_changes_before_the_snapshot_are_no_longer_counted() {
    let server = launch().start();
    let mut conn = server.connect();
    fill(&mut conn, 20, 50_000);
    begin(&mut conn);
    for n in 1..=7 {
        assert_reply!(conn, "INCR counter", format!("(integer) {n}"));
    }
    wait_for_end(&mut conn);
    assert_eq!(conn.info("rdb_changes_since_last_save"), "7");
    let rdb = fs::read(server.dir().join("dump.rdb")).unwrap();
    assert_eq!(in_file(Launch::redis(), &rdb, "DBSIZE"), "(integer) 20");
    assert_eq!(in_file(Launch::subject(), &rdb, "EXISTS counter"), "(integer) 0");
}

#[test]
fn save_points_begin_a_snapshot_automatically() {
    let server = launch().set("save", "1 3").start();
    let mut conn = server.connect();
    let log = |text: &str| server.log().contains(text);
    assert_reply!(conn, "MSET a 1 b 2", "OK");
    assert_eq!(conn.info("rdb_saves"), "0");
    assert_reply!(conn, "SET c 3", "OK");
    wait_until("it was saved", || conn.info("rdb_changes_since_last_save") == "0");
    assert!(log("3 changes in 1 seconds. Saving..."), "{}", server.log());
    wait_until("it is logged", || log("Background saving terminated with success"));
    assert_eq!(conn.info("rdb_saves"), "1");
    let rdb = fs::read(server.dir().join("dump.rdb")).unwrap();
    assert_eq!(in_file(Launch::redis(), &rdb, "EXISTS a b c"), "(integer) 3");
    // A new save point applies immediately. Without save points, nothing is saved.
    assert_reply!(conn, "CONFIG SET save \"3600 10 1 1\"", "OK");
    assert_reply!(conn, "SET d 4", "OK");
    wait_until("it was saved again", || conn.info("rdb_changes_since_last_save") == "0");
}

#[test]
fn the_file_goes_where_the_settings_said_at_the_beginning() {
    if subject_is_redis() {
        return; // its child process writes the file to the new directory
    }
    let other = TempDir::new();
    let server = launch().start();
    let mut conn = server.connect();
    fill(&mut conn, 10, 50_000);
    begin(&mut conn);
    assert_reply!(conn, "CONFIG SET dbfilename other.rdb", "OK");
    assert_reply!(conn, &format!("CONFIG SET dir {}", other.path("").display()), "OK");
    wait_for_end(&mut conn);
    assert_eq!(files(server.dir(), "dump.rdb"), ["dump.rdb"]);
    assert!(files(&other.path(""), "").is_empty());
    delay(&mut conn, 0);
    save(&mut conn);
    assert_eq!(files(&other.path(""), ""), ["other.rdb"]);
}

#[test]
fn flushall_ends_a_snapshot_and_saves_the_empty_dataset() {
    let server = launch().start();
    let mut conn = server.connect();
    make_endless(&mut conn);
    assert_reply!(conn, "CONFIG SET rdb-key-save-delay 0", "OK");
    save(&mut conn);
    delay(&mut conn, 10_000_000);
    begin(&mut conn);
    let log = server.log();
    assert_reply!(conn, "FLUSHALL", "OK");
    wait_until("the empty dataset was saved", || {
        conn.info("rdb_changes_since_last_save") == "0"
            && conn.info("rdb_bgsave_in_progress") == "0"
    });
    assert!(server.log()[log.len()..].contains("DB saved on disk"), "{}", server.log());
    assert_eq!(conn.info("rdb_last_bgsave_status"), "ok");
    assert!(files(server.dir(), "temp").is_empty());
    let rdb = fs::read(server.dir().join("dump.rdb")).unwrap();
    assert_eq!(in_file(Launch::redis(), &rdb, "DBSIZE"), "(integer) 0");

    // The snapshot was not requested by a client, so it blocks no other command.
    for line in ["FLUSHALL", "SAVE", "FLUSHALL"] {
        assert_reply!(conn, line, "OK");
    }
    // Workers that write a canceled snapshot may need a moment to end.
    wait_until("BGSAVE to start", || conn.cmd("BGSAVE").to_string() == STARTED);
    wait_for_end(&mut conn);

    // Without save points, the file stays unchanged.
    fill(&mut conn, 10, 0);
    save(&mut conn);
    assert_reply!(conn, "CONFIG SET save \"\"", "OK");
    assert_reply!(conn, "FLUSHALL", "OK");
    fill(&mut conn, 5, 10_000_000);
    begin(&mut conn);
    assert_reply!(conn, "FLUSHALL", "OK");
    wait_for_end(&mut conn);
    let rdb = fs::read(server.dir().join("dump.rdb")).unwrap();
    assert_eq!(in_file(Launch::redis(), &rdb, "DBSIZE"), "(integer) 10");
}

/// A shutdown, or a command that replaces the dataset, first cancels a running snapshot, because its file would be
/// older than the next one.
#[test]
fn a_snapshot_does_not_delay_the_end_of_the_server() {
    for (how, is_saved) in [
        ("SHUTDOWN", true),
        ("SHUTDOWN NOSAVE", false),
        ("SHUTDOWN NOW FORCE", true),
        ("TERM", true),
    ] {
        let mut server = launch().set("shutdown-on-sigterm", "default").start();
        let mut conn = server.connect();
        fill(&mut conn, 5, 0);
        save(&mut conn);
        make_endless(&mut conn);
        begin(&mut conn);
        assert_reply!(conn, "SET late yes", "OK");
        // The delay per key applies to the child of a real Redis and to a save by the server itself.
        delay(&mut conn, 0);
        match how {
            "TERM" => server.signal("TERM"),
            _ => conn.send(how),
        }
        wait_until("the server has ended", || !server.is_running());
        let rdb = fs::read(server.dir().join("dump.rdb")).unwrap();
        assert!(files(server.dir(), "temp").is_empty(), "{how}");
        let log = server.ended();
        let killed = "There is a child saving an .rdb. Killing it!";
        assert!(log.contains(killed), "{how}: {log}");
        let size = if is_saved { "(integer) 101" } else { "(integer) 5" };
        assert_eq!(in_file(Launch::redis(), &rdb, "DBSIZE"), size, "{how}");
    }
}

#[test]
fn a_reload_ends_a_snapshot() {
    if subject_is_redis() {
        return; // does not stop the child, whose older file then replaces that of the reload
    }
    let server = launch().start();
    let mut conn = server.connect();
    make_endless(&mut conn);
    begin(&mut conn);
    delay(&mut conn, 0);
    assert_reply!(conn, "SET late yes", "OK");
    assert_reply!(conn, "DEBUG RELOAD", "OK");
    assert_reply!(conn, "DBSIZE", "(integer) 101");
    wait_for_end(&mut conn);
    assert_eq!(conn.info("rdb_last_bgsave_status"), "ok");
    assert!(files(server.dir(), "temp").is_empty());
    let rdb = fs::read(server.dir().join("dump.rdb")).unwrap();
    assert_eq!(in_file(Launch::redis(), &rdb, "DBSIZE"), "(integer) 101");
    save(&mut conn);
}

/// A server whose save has failed, and a directory in which it can save.
fn failed(program: Launch) -> (Server, Conn, TempDir) {
    let (missing, other) = (TempDir::new(), TempDir::new());
    let server = quiet(program).start();
    let mut conn = server.connect();
    for line in ["SET string v", "RPUSH list a b", "SADD set a", "SET number 1"] {
        conn.cmd(line);
    }
    for at in [missing.path("sub"), missing.path("sub").join("more")] {
        fs::create_dir(&at).unwrap();
        assert_reply!(conn, &format!("CONFIG SET dir {}", at.display()), "OK");
    }
    // Replace the directory with a file.
    fs::remove_dir_all(missing.path("sub")).unwrap();
    fs::write(missing.path("sub"), b"").unwrap();
    let errors = conn.cmd("LASTSAVE").integer();
    save(&mut conn);
    assert_eq!(conn.info("rdb_last_bgsave_status"), "err");
    assert_eq!(conn.cmd("LASTSAVE").integer(), errors);
    assert_ne!(conn.info("rdb_changes_since_last_save"), "0");
    (server, conn, other)
}

/// After a failed save, the error texts are those of a real Redis.
#[test]
fn after_a_failed_save_data_cannot_be_changed() {
    let lines = [
        "PING",
        "PING hello",
        "GET string",
        "SET string w",
        "set string",
        "DEL nothing",
        "APPEND string x",
        "BLPOP list 1",
        "SORT list ALPHA",
        "SORT list ALPHA STORE list",
        "GETEX string",
        "PFCOUNT hll",
        "PUBLISH channel message",
        "SWAPDB 0 1",
        "FLUSHALL",
        "FUNCTION FLUSH",
        "SCRIPT FLUSH",
        "LRANGE list 0 -1",
        "EVAL \"return redis.call('set', 'string', 'x')\" 0",
        "EVAL \"return redis.pcall('set', 'string', 'x')\" 0",
        "EVAL \"return redis.call('get', 'string')\" 0",
        "EVAL \"return redis.call('ping')\" 0",
        "EVAL \"#!lua\\nreturn 1\" 0",
        "EVAL \"#!lua flags=no-writes\\nreturn redis.call('get', 'string')\" 0",
        "EVAL_RO \"return redis.call('get', 'string')\" 0",
        "MULTI",
        "SET string w",
        "EXEC",
        "MULTI",
        "PING",
        "EXEC",
        "MULTI",
        "GET string",
        "EVAL \"return redis.call('set', 'string', 'x')\" 0",
        "EXEC",
        "CONFIG SET save \"\"",
        "INCR number",
        "PING",
        "CONFIG SET save \"3600 1000000\"",
        "INCR number",
        "CONFIG SET stop-writes-on-bgsave-error no",
        "INCR number",
        "PING",
        "CONFIG SET stop-writes-on-bgsave-error yes",
        "INCR number",
        "GET string",
    ];
    let [ours, theirs] = [Launch::subject(), Launch::redis()].map(|program| {
        let (_server, mut conn, _) = failed(program);
        lines.map(|line| format!("{line}: {}", conn.cmd(line)))
    });
    assert!(theirs[0].starts_with("PING: (error) MISCONF Redis is configured"), "{}", theirs[0]);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
}

/// The commands are queued before the failure and executed after it.
#[test]
fn a_transaction_that_writes_is_rejected_as_a_whole() {
    let [ours, theirs] = [Launch::subject(), Launch::redis()].map(|program| {
        let server = quiet(program).start();
        let [mut conn, mut reader] = server.connections();
        let missing = TempDir::new();
        fs::create_dir(missing.path("sub")).unwrap();
        let dir = missing.path("sub");
        assert_reply!(conn, &format!("CONFIG SET dir {}", dir.display()), "OK");
        fs::remove_dir(&dir).unwrap();
        for line in ["MULTI", "GET k", "SET k v"] {
            conn.cmd(line);
        }
        for line in ["MULTI", "GET k", "PING"] {
            reader.cmd(line);
        }
        save(&mut server.connect());
        [
            conn.cmd("EXEC").to_string(),
            reader.cmd("EXEC").to_string(),
            conn.cmd("GET k").to_string(),
        ]
    });
    assert!(theirs[0].contains("MISCONF"), "{theirs:?}");
    assert_eq!(ours, theirs);
}

#[test]
fn a_save_that_succeeds_ends_the_refusals() {
    for how in ["BGSAVE", "SAVE"] {
        let (server, mut conn, other) = failed(Launch::subject());
        let refused = conn.cmd("INCR number").to_string();
        assert!(refused.starts_with("(error) MISCONF "), "{refused}");
        let log = server.log();
        let child = if subject_is_redis() { "Background saving error" } else { "for saving: " };
        assert!(log.contains(child), "{log}");
        assert!(log.contains("Failed opening the temp RDB file temp-"), "{log}");
        assert_reply!(conn, &format!("CONFIG SET dir {}", other.path("").display()), "OK");
        assert!(conn.cmd("INCR number").to_string().starts_with("(error) MISCONF "));
        conn.cmd(how);
        wait_for_end(&mut conn);
        assert_eq!(conn.info("rdb_last_bgsave_status"), "ok", "{how}");
        assert_reply!(conn, "INCR number", "(integer) 2");
        assert_reply!(conn, "PING", "PONG");
        assert_eq!(files(&other.path(""), ""), ["dump.rdb"]);
    }
}

/// Save points retry automatically.
#[test]
fn a_failed_save_is_tried_again() {
    let (_server, mut conn, other) = failed(Launch::subject());
    assert_reply!(conn, &format!("CONFIG SET dir {}", other.path("").display()), "OK");
    assert_reply!(conn, "CONFIG SET save \"1 1\"", "OK");
    wait_until("it was saved", || conn.info("rdb_last_bgsave_status") == "ok");
    assert_eq!(files(&other.path(""), ""), ["dump.rdb"]);
}

/// Only the old file stays.
#[test]
fn a_full_disk_leaves_the_old_file() {
    if subject_is_redis() {
        return; // the name of its temporary file is not known in advance
    }
    let server = launch().start();
    let mut conn = server.connect();
    fill(&mut conn, 5, 0);
    save(&mut conn);
    let before = fs::read(server.dir().join("dump.rdb")).unwrap();
    let temporary = server.dir().join(format!("temp-bg-{}.rdb", server.pid()));
    std::os::unix::fs::symlink("/dev/full", &temporary).unwrap();
    fill(&mut conn, 100_000, 0);
    save(&mut conn);
    assert_eq!(conn.info("rdb_last_bgsave_status"), "err");
    let log = server.log();
    assert!(log.contains("No space left on device"), "{log}");
    assert!(files(server.dir(), "temp").is_empty(), "{log}");
    assert_eq!(fs::read(server.dir().join("dump.rdb")).unwrap(), before);
    assert!(conn.cmd("SET k v").to_string().starts_with("(error) MISCONF "));
    save(&mut conn);
    assert_eq!(conn.info("rdb_last_bgsave_status"), "ok");
    assert_reply!(conn, "SET k v", "OK");
}
