//! The dataset on disk: saved by SAVE and at shutdown, and loaded at startup, by our server and by a real Redis. The
//! format of individual values is tested in `dump`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::matrix::each_backend;
use brisk_testkit::port::Port;
use brisk_testkit::server::{brisk_binary, signal, subject_is_redis};
use brisk_testkit::{Conn, Launch, Server, TempDir, assert_reply, wait_until};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Barrier;

/// A data directory that several servers use one after the other.
struct Home(TempDir);

impl Home {
    fn new() -> Home {
        Home(TempDir::new())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn file(&self) -> PathBuf {
        self.path("dump.rdb")
    }

    /// The server under test, which saves at shutdown.
    fn launch(&self) -> Launch {
        self.at_home(Launch::subject())
    }

    fn at_home(&self, launch: Launch) -> Launch {
        launch.set("dir", self.path("").to_str().unwrap()).set("save", "3600 1 300 100")
    }

    fn start(&self) -> (Server, Conn) {
        let server = self.launch().start();
        let conn = server.connect();
        (server, conn)
    }

    /// Names of the files in the directory.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

const LIBRARY: &str =
    "#!lua name=lib\nredis.register_function('answer', function() return 42 end)\n";

/// Writes values of every type, TTLs, several databases, and function libraries.
fn fill(conn: &mut Conn) {
    let many = |line: &str, item: &dyn Fn(usize) -> String| {
        (0..600).fold(line.to_owned(), |line, n| format!("{line} {}", item(n)))
    };
    for line in [
        "SET string hello",
        "SET number -70000",
        "SET later v PXAT 33000000000000",
        "SETRANGE large 100000 end",
        "PFADD hll a b c",
        "RPUSH list a b c",
        &many("RPUSH list:long", &|n| format!("element-{n}")),
        "SADD ints 1 2 3",
        "SADD set a b c",
        &many("SADD set:large", &|n| format!("member-{n}")),
        "HSET hash f v g w",
        &many("HSET hash:large", &|n| format!("f{n} {n}")),
        "ZADD zset 1 a -inf b 2.5 c",
        &many("ZADD zset:large", &|n| format!("{n}.25 m{n}")),
        "XADD stream 1-1 a b",
        "XADD stream 2-1 a b c d",
        "XGROUP CREATE stream group 0",
        "XREADGROUP GROUP group me COUNT 1 STREAMS stream >",
        "SELECT 3",
        "SET other-database yes",
        "EXPIRE other-database 100000",
        "SELECT 15",
        "RPUSH last-database 1",
        "SELECT 0",
    ] {
        let reply = conn.cmd(line).to_string();
        assert!(!reply.starts_with("(error)"), "{line}: {reply}");
    }
    assert_eq!(conn.call(&["FUNCTION", "LOAD", LIBRARY]).text(), "lib");
}

/// Values that distinguish two datasets.
fn dataset(conn: &mut Conn) -> [String; 4] {
    ["DEBUG DIGEST", "FUNCTION LIST WITHCODE", "PEXPIRETIME later", "INFO keyspace"]
        .map(|line| conn.cmd(line).to_string())
        .map(|text| text.lines().filter(|line| !line.contains("avg_ttl")).collect())
}

#[test]
fn all_data_is_recovered_after_a_clean_shutdown() {
    let home = Home::new();
    let (server, mut conn) = home.start();
    fill(&mut conn);
    let before = dataset(&mut conn);
    conn.send("SHUTDOWN");
    assert_eq!(conn.read_to_end(), b"");
    let log = server.ended();
    assert!(log.contains("Saving the final RDB snapshot before exiting."), "{log}");
    assert!(log.contains("DB saved on disk"), "{log}");
    assert_eq!(home.files(), ["dump.rdb"]);

    let (server, mut conn) = home.start();
    assert_eq!(dataset(&mut conn), before);
    assert_reply!(conn, "FCALL answer 0", "(integer) 42");
    assert_eq!(conn.info("rdb_last_load_keys_loaded"), "17");
    assert_eq!(conn.info("rdb_last_load_keys_expired"), "0");
    assert_eq!(conn.info("rdb_changes_since_last_save"), "0");
    let log = server.log();
    for line in [
        "Loading RDB produced by version",
        "RDB age ",
        "RDB memory usage when created ",
        "Done loading RDB, keys loaded: 17, keys expired: 0.",
        "DB loaded from disk: ",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
    assert_reply!(conn, "SET one more", "OK");
    let before = dataset(&mut conn);
    server.signal("TERM");
    let log = server.ended();
    assert!(log.contains("Received SIGTERM scheduling shutdown..."), "{log}");
    assert!(log.contains("Saving the final RDB snapshot before exiting."), "{log}");

    let (server, mut conn) = home.start();
    assert_eq!(dataset(&mut conn), before);
    assert_reply!(conn, "DEL one", "(integer) 1");
    server.signal("INT");
    server.ended();
    let (_server, mut conn) = home.start();
    assert_reply!(conn, "EXISTS one string", "(integer) 1");
}

#[test]
fn a_saved_dataset_survives_the_loss_of_the_process() {
    let home = Home::new();
    let (server, mut conn) = home.start();
    fill(&mut conn);
    assert_reply!(conn, "SAVE", "OK");
    let saved = dataset(&mut conn);
    assert_reply!(conn, "SET later-than-that lost", "OK");
    server.kill();
    let (_server, mut conn) = home.start();
    assert_eq!(dataset(&mut conn), saved);
}

#[test]
fn a_real_server_loads_our_file_and_we_load_its() {
    let home = Home::new();
    let (server, mut conn) = home.start();
    fill(&mut conn);
    let before = dataset(&mut conn);
    conn.send("SHUTDOWN");
    server.ended();

    let theirs = home.at_home(Launch::redis()).start();
    let mut conn = theirs.connect();
    assert_eq!(dataset(&mut conn), before);
    assert_reply!(conn, "RPUSH list theirs", "(integer) 4");
    assert_reply!(conn, "HSET hash theirs 1", "(integer) 1");
    let before = dataset(&mut conn);
    assert_reply!(conn, "SAVE", "OK");
    theirs.kill();

    let (_server, mut conn) = home.start();
    assert_eq!(dataset(&mut conn), before);
}

#[test]
fn settings_of_the_file_are_in_force() {
    for (name, value) in
        [("rdbcompression", "no"), ("rdbchecksum", "no"), ("rdb-save-incremental-fsync", "no")]
    {
        let home = Home::new();
        let launch = || home.launch().set(name, value).set("dbfilename", "other.rdb");
        let server = launch().start();
        let mut conn = server.connect();
        fill(&mut conn);
        let before = dataset(&mut conn);
        let check_file = || {
            assert_eq!(home.files(), ["other.rdb"]);
            let bytes = fs::read(home.path("other.rdb")).unwrap();
            assert_eq!(bytes.ends_with(&[0; 8]), name == "rdbchecksum");
            assert_eq!(bytes.len() > 100_000, name == "rdbcompression");
        };
        // BGSAVE compresses on another thread than SHUTDOWN.
        assert_reply!(conn, "BGSAVE", "Background saving started");
        wait_until("BGSAVE to end", || conn.info("rdb_bgsave_in_progress") == "0");
        check_file();
        conn.send("SHUTDOWN");
        server.ended();
        check_file();
        let server = launch().start();
        assert_eq!(dataset(&mut server.connect()), before, "{name}");
    }
}

#[test]
fn the_file_is_written_to_a_changed_directory() {
    let (home, other) = (Home::new(), Home::new());
    let (server, mut conn) = home.start();
    assert_reply!(conn, "SET k v", "OK");
    assert_reply!(conn, &format!("CONFIG SET dir {}", other.path("").display()), "OK");
    conn.send("SHUTDOWN");
    server.ended();
    assert!(home.files().is_empty());
    assert_eq!(other.files(), ["dump.rdb"]);
}

#[test]
fn shutdown_saves_only_as_configured_or_requested() {
    for (save, words, is_saved) in [
        ("", "", false),
        ("", "SAVE", true),
        ("3600 1", "NOSAVE", false),
        ("3600 1", "NOW", true),
        ("3600 1", "NOSAVE NOW FORCE", false),
    ] {
        let home = Home::new();
        let server = home.launch().set("save", save).start();
        let mut conn = server.connect();
        assert_reply!(conn, "SET k v", "OK");
        conn.send(&format!("SHUTDOWN {words}"));
        let log = server.ended();
        assert_eq!(home.file().exists(), is_saved, "{save:?} {words}");
        assert_eq!(log.contains("Saving the final RDB snapshot"), is_saved, "{log}");
    }
    for (save, how, is_saved) in
        [("", "default", false), ("", "save", true), ("3600 1", "nosave now", false)]
    {
        let home = Home::new();
        let server = home.launch().set("save", save).set("shutdown-on-sigterm", how).start();
        assert_reply!(server.connect(), "SET k v", "OK");
        server.signal("TERM");
        server.ended();
        assert_eq!(home.file().exists(), is_saved, "{save:?} {how}");
    }
}

/// A write that was acknowledged before the shutdown is in the file, however busy the server was.
#[test]
fn every_acknowledged_write_is_in_the_last_snapshot() {
    let home = Home::new();
    each_backend(
        || home.launch(),
        |server| {
            let acknowledged = write_until_the_end(server);
            wait_until("the server has ended", || !server.is_running());
            let (_server, mut conn) = home.start();
            for (client, acknowledged) in acknowledged.into_iter().enumerate() {
                let kept = conn.cmd(&format!("GET counter:{client}")).text();
                let kept: i64 = kept.parse().unwrap();
                // The last write may have been executed without a reply.
                assert!(
                    kept == acknowledged || kept == acknowledged + 1,
                    "{kept} of {acknowledged}"
                );
            }
        },
    );
}

/// Writes until SHUTDOWN ends the server. Returns the last reply of each client.
fn write_until_the_end(server: &Server) -> Vec<i64> {
    const CLIENTS: usize = 8;
    let mut conn = server.connect();
    let address = server.address();
    let begun = Barrier::new(CLIENTS + 1);
    std::thread::scope(|scope| {
        let write = |client: usize| {
            let (address, begun) = (&address, &begun);
            scope.spawn(move || {
                let mut conn = Conn::tcp(address);
                let line = format!("INCR counter:{client}");
                let mut last = conn.cmd(&line).integer();
                begun.wait();
                while let Ok(reply) = conn.try_cmd(&line) {
                    last = reply.integer();
                }
                last
            })
        };
        let threads: Vec<_> = (0..CLIENTS).map(write).collect();
        begun.wait();
        conn.send("SHUTDOWN");
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_failed_save_is_an_error_and_the_server_continues() {
    let (home, other) = (Home::new(), Home::new());
    let (mut server, mut conn) = home.start();
    assert_reply!(conn, "SAVE", "OK");
    let last_save = conn.cmd("LASTSAVE").integer();
    fs::remove_dir_all(home.path("")).unwrap();
    assert_reply!(conn, "SET k v", "OK");
    assert_reply!(conn, "SAVE", "(error) ERR");
    assert_eq!(conn.info("rdb_changes_since_last_save"), "1");
    assert_eq!(conn.info("rdb_last_bgsave_status"), "ok");
    assert_eq!(conn.cmd("LASTSAVE").integer(), last_save);
    let refused = "(error) ERR Errors trying to SHUTDOWN. Check logs.";
    assert_reply!(conn, "SHUTDOWN", refused);
    assert_reply!(conn, "SHUTDOWN SAVE NOW", refused);
    let said = "Errors trying to shut down the server. Check the logs for more information.";
    assert_eq!(server.log().matches(said).count(), 2, "{}", server.log());
    server.signal("TERM");
    wait_until("it could not save", || server.log().matches(said).count() == 3);
    assert!(server.is_running());
    assert_reply!(conn, "GET k", "\"v\"");
    let log = server.log();
    assert!(log.contains("Failed opening the temp RDB file temp-"), "{log}");
    assert!(log.contains("for saving: No such file or directory"), "{log}");
    assert!(log.contains("Error trying to save the DB, can't exit."), "{log}");

    // With a valid directory for the file, SAVE succeeds again.
    assert_reply!(conn, &format!("CONFIG SET dir {}", other.path("").display()), "OK");
    assert_reply!(conn, "SAVE", "OK");
    assert_eq!(conn.info("rdb_changes_since_last_save"), "0");
    assert_eq!(other.files(), ["dump.rdb"]);

    // With a directory at the path of the file, everything is written, but the file cannot be renamed to this path.
    fs::remove_file(other.file()).unwrap();
    fs::create_dir(other.file()).unwrap();
    assert_reply!(conn, "SAVE", "(error) ERR");
    let log = server.log();
    assert!(log.contains("Error moving temp DB file temp-"), "{log}");
    assert!(log.contains("on the final destination dump.rdb (in server root dir "), "{log}");
    assert_eq!(other.files(), ["dump.rdb"], "the temporary file is gone");
    conn.send("SHUTDOWN FORCE");
    let log = server.ended();
    assert!(log.contains("Error trying to save the DB. Exit anyway."), "{log}");
}

#[test]
fn a_file_that_cannot_be_loaded_stops_the_start_and_is_left_alone() {
    let home = Home::new();
    let (server, mut conn) = home.start();
    fill(&mut conn);
    conn.send("SHUTDOWN");
    server.ended();
    let whole = fs::read(home.file()).unwrap();
    let flipped = {
        let mut bytes = whole.clone();
        let at = bytes.len() - 1;
        bytes[at] ^= 1;
        bytes
    };
    let duplicate =
        [&b"REDIS0010"[..], b"\0\x01k\x01v", b"\0\x01k\x01w", b"\xff", &[0; 8]].concat();
    let half = whole.len() / 2;
    for (bytes, said) in [
        (&whole[..half], format!("ends at byte {half}, ")),
        (b"", "ends at byte 0, ".to_owned()),
        (&flipped, format!("byte {0} of {0}", whole.len())),
        (&flipped, "RDB CRC error".to_owned()),
        (b"REDIS0099\xff\0\0\0\0\0\0\0\0", "RDB version 99 cannot be read".to_owned()),
        (b"NOTHING LIKE IT", "this is not an RDB file".to_owned()),
        (&duplicate, "the key \"k\" already exists".to_owned()),
        (b"REDIS0010\xfe\x28\xff\0\0\0\0\0\0\0\0", "database 40 does not exist".to_owned()),
    ] {
        fs::write(home.file(), bytes).unwrap();
        let error = home.launch().try_start().unwrap_err();
        assert!(error.contains("the server ended with "), "{said}: {error}");
        // A real Redis crashes on a duplicate key.
        if !subject_is_redis() {
            assert!(error.contains("the server ended with exit status: 1:"), "{said}: {error}");
            assert!(error.contains("Fatal error loading the DB: "), "{error}");
            assert!(error.contains(&said), "{said}: {error}");
            let expected = "Terminating server after rdb file reading failure.";
            assert!(error.contains(expected), "{said}: {error}");
        }
        assert!(!error.contains("Ready to accept connections"), "{error}");
        assert_eq!(fs::read(home.file()).unwrap(), bytes, "{said}");
    }
}

#[test]
fn a_server_that_loads_can_be_stopped() {
    if subject_is_redis() {
        return; // it waits for the file
    }
    let home = Home::new();
    // The named pipe has no writer, so loading it never ends.
    assert!(Command::new("mkfifo").arg(home.file()).status().unwrap().success());
    let (port, log) = (Port::claim(), fs::File::create(home.path("log")).unwrap());
    let mut child = Command::new(brisk_binary().unwrap())
        .args(["--port", &port.number().to_string(), "--dir"])
        .arg(home.path(""))
        .stdin(Stdio::null())
        .stdout(log)
        .spawn()
        .unwrap();
    let said = || fs::read_to_string(home.path("log")).unwrap();
    wait_until("it loads", || said().contains("Server initialized"));
    signal(child.id(), "TERM");
    wait_until("it has ended", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", said());
    assert!(said().contains("Received SIGTERM during loading, exiting now."), "{}", said());
    assert_eq!(home.files(), ["dump.rdb", "log"]);
}

#[test]
fn keys_that_have_expired_are_not_loaded() {
    let home = Home::new();
    let (server, mut conn) = home.start();
    assert_reply!(conn, "DEBUG SET-ACTIVE-EXPIRE 0", "OK");
    assert_reply!(conn, "MSET a 1 b 2", "OK");
    assert_reply!(conn, "SET short v PX 1", "OK");
    // No client accesses the key, so it still exists.
    assert_reply!(conn, "DBSIZE", "(integer) 3");
    conn.send("SHUTDOWN");
    server.ended();
    let (server, mut conn) = home.start();
    assert_reply!(conn, "DBSIZE", "(integer) 2");
    assert_eq!(conn.info("rdb_last_load_keys_loaded"), "2");
    assert_eq!(conn.info("rdb_last_load_keys_expired"), "1");
    let log = server.log();
    assert!(log.contains("Done loading RDB, keys loaded: 2, keys expired: 1."), "{log}");
}

#[test]
fn info_and_lastsave_show_the_last_save() {
    let home = Home::new();
    let (_server, mut conn) = home.start();
    let started = conn.cmd("LASTSAVE").integer();
    assert_eq!(conn.info("rdb_last_save_time"), started.to_string());
    assert_reply!(conn, "MSET a 1 b 2", "OK");
    assert_eq!(conn.info("rdb_changes_since_last_save"), "2");
    assert_eq!(conn.info("rdb_saves"), "0");
    assert_reply!(conn, "SAVE", "OK");
    let saved = conn.cmd("LASTSAVE").integer();
    assert!(saved >= started);
    assert_eq!(conn.info("rdb_last_save_time"), saved.to_string());
    for (field, value) in [
        ("rdb_changes_since_last_save", "0"),
        ("rdb_saves", "1"),
        ("rdb_last_bgsave_status", "ok"),
        ("rdb_last_load_keys_loaded", "0"),
    ] {
        assert_eq!(conn.info(field), value, "{field}");
    }
    assert_reply!(conn, "INCR a", "(integer) 2");
    assert_eq!(conn.info("rdb_changes_since_last_save"), "1");
    assert_reply!(conn, "DEBUG RELOAD", "OK");
    for (field, value) in [
        ("rdb_changes_since_last_save", "0"),
        ("rdb_saves", "1"),
        ("rdb_last_load_keys_loaded", "2"),
    ] {
        assert_eq!(conn.info(field), value, "{field}");
    }
    assert_reply!(conn, "CONFIG RESETSTAT", "OK");
    assert_eq!(conn.info("rdb_saves"), "0");
    assert_reply!(conn, "SAVE now", "(error) ERR wrong number of arguments for 'save' command");
    assert_reply!(conn, "MULTI", "OK");
    let refused = "(error) ERR Command not allowed inside a transaction";
    assert_reply!(conn, "SAVE", refused);
}

/// The script has made only half of its writes, so ending now would leave them incomplete.
#[test]
fn a_signal_waits_for_the_end_of_a_script() {
    let home = Home::new();
    let server = home.launch().set("busy-reply-threshold", "1").start();
    let [mut conn, mut other] = server.connections();
    conn.send("EVAL 'while true do end' 0");
    wait_until("the script takes long", || {
        other.cmd("GET k").to_string().starts_with("(error) BUSY")
    });
    server.signal("TERM");
    let said = "Received SIGTERM scheduling shutdown...";
    wait_until("it is logged", || server.log().contains(said));
    assert_reply!(other, "SCRIPT KILL", "OK");
    let log = server.ended();
    assert!(log.contains("DB saved on disk"), "{log}");
    assert!(home.file().exists());
}
