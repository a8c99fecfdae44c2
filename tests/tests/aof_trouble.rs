//! The append-only file when something is wrong: incomplete and damaged files, a full or slow disk, files of a real
//! Redis. Recovery after a kill is tested in `aof`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::words::encode_into;
use brisk_testkit::{Conn, Launch, Server, TempDir, assert_reply, wait_until};
use brisk_tests::aof::{AofHome, MANIFEST};
use brisk_tests::one_of_each_worker;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[track_caller]
fn run(conn: &mut Conn, lines: &[&str]) {
    for line in lines {
        let reply = conn.cmd(line).to_string();
        assert!(!reply.starts_with("(error)"), "{line}: {reply}");
    }
}

/// The file of a server that was killed after a few commands, each in a separate batch.
fn small_file(home: &AofHome) -> (PathBuf, Vec<u8>) {
    let server = home.launch("always").start();
    let mut conn = server.connect();
    run(&mut conn, &["SET a 1", "MULTI", "SET b 2", "RPUSH c 3", "EXEC", "SADD d 4", "INCR a"]);
    server.kill();
    let path = home.increment();
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

#[track_caller]
fn assert_refused(launch: Launch, said: &str) {
    let error = launch.try_start().unwrap_err();
    assert!(error.contains("the server ended with exit status: 1:"), "{said}: {error}");
    assert!(error.contains(said), "{said}: {error}");
    assert!(!error.contains("Ready to accept connections"), "{error}");
}

#[test]
fn a_torn_end_is_truncated_or_rejected_as_configured() {
    if subject_is_redis() {
        return; // it writes no batches, so its files can end at other bytes
    }
    let home = AofHome::new();
    let (path, whole) = small_file(&home);
    // A file that is cut at the start of a batch is complete.
    let begins = |at: &usize| whole[*at..].starts_with(b"#B:");
    let places: Vec<usize> = (0..whole.len()).filter(begins).chain([whole.len()]).collect();
    assert_eq!(places.len(), 6, "a line for each batch, and an empty one first");
    for cut in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
        fs::write(&path, &whole[..cut]).unwrap();
        let kept = *places.iter().rfind(|place| **place <= cut).unwrap();
        if kept < cut {
            let launch = home.launch("always").set("aof-load-truncated", "no");
            assert_refused(launch, "Unexpected end of file reading the append only file");
            assert_eq!(fs::read(&path).unwrap().len(), cut, "it was left alone");
        }
        let server = AofHome::load(home.launch("always"));
        let goes_on = b"#B:0:0:00000000:0\r\n";
        let expected = [&whole[..kept], goes_on].concat();
        assert_eq!(fs::read(&path).unwrap(), expected, "cut at {cut}");
        let mut conn = server.connect();
        let batches = places.iter().position(|place| *place == kept).unwrap();
        let found = conn.cmd("MGET a b").to_string();
        let wanted = [
            "1) (nil)\n2) (nil)",
            "1) (nil)\n2) (nil)",
            "1) \"1\"\n2) (nil)",
            "1) \"1\"\n2) \"2\"",
            "1) \"1\"\n2) \"2\"",
            "1) \"2\"\n2) \"2\"",
        ];
        assert_eq!(found, wanted[batches], "cut at {cut}");
        let other = conn.cmd("EXISTS c d").integer() as usize;
        assert_eq!(other, batches.saturating_sub(2).min(2), "cut at {cut}");
        // Commands that are appended after the truncation are loaded at the next start.
        run(&mut conn, &["SET more 1"]);
        server.kill();
        let server = AofHome::load(home.launch("always"));
        assert_reply!(server.connect(), "GET more", "\"1\"");
        server.kill();
    }
}

#[test]
fn damage_is_rejected_and_located() {
    if subject_is_redis() {
        return; // it has no checksums, and loads some of it
    }
    let home = AofHome::new();
    let (path, whole) = small_file(&home);
    let launch = || home.launch("always");
    let find = |what: &[u8]| whole.windows(what.len()).position(|here| here == what).unwrap();

    let mut flipped = whole.clone();
    flipped[find(b"SADD") + 11] ^= 1;
    fs::write(&path, &flipped).unwrap();
    assert_refused(launch(), "Bad file format reading the append only file");
    assert_eq!(fs::read(&path).unwrap(), flipped, "it was left alone");

    let unknown = [&whole[..], b"*2\r\n$6\r\nNOSUCH\r\n$1\r\nk\r\n"].concat();
    fs::write(&path, unknown).unwrap();
    assert_refused(launch(), "Unknown command 'NOSUCH' reading the append only file");
    // The server exits in the same way with every setting, because ending by a signal would look like a crash.
    let launch_to_panic = launch().set("propagation-error-behavior", "panic");
    assert_refused(launch_to_panic, "Unknown command 'NOSUCH' reading the append only file");

    // A real Redis executes the following commands on the previously selected database.
    let (beyond, none) = ("raise `databases`", "selects an invalid database");
    for (select, said) in [
        ("SELECT 20", beyond),
        ("SELECT 16", beyond),
        ("SELECT -1", none),
        ("SELECT x", none),
        ("MULTI\nSELECT 20\nSET k 1\nEXEC", beyond),
        ("MULTI\nSELECT 20\nSET k 1\nSELECT 0\nEXEC", beyond),
    ] {
        let mut file = whole.clone();
        for line in select.lines() {
            encode_into(&mut file, &line.split(' ').collect::<Vec<&str>>());
        }
        encode_into(&mut file, &["SET", "k", "1"]);
        fs::write(&path, &file).unwrap();
        assert_refused(launch(), said);
        assert_eq!(fs::read(&path).unwrap(), file, "it was left alone");
    }
    let beyond = [&whole[..], b"*2\r\n$6\r\nSELECT\r\n$2\r\n20\r\n"].concat();
    fs::write(&path, beyond).unwrap();
    let server = launch().set("databases", "32").start();
    assert_reply!(server.connect(), "GET a", "\"2\"");
    server.kill();

    let nonsense = [&whole[..], b"*1\r\n$4\r\nPING\r\nnonsense\r\n*1\r\n$4\r\nPING\r\n"].concat();
    fs::write(&path, nonsense).unwrap();
    assert_refused(launch(), "Bad file format reading the append only file");

    fs::remove_file(&path).unwrap();
    assert_refused(launch(), "can't open the append log file appendonly.aof.1.incr.aof");
    fs::write(&path, &whole).unwrap();

    let manifest = home.files().join(MANIFEST);
    let lines = fs::read_to_string(&manifest).unwrap();
    for damaged in ["", "file x seq", "nonsense\n", &lines.replace("seq 1 type i", "seq 1 type z")]
    {
        fs::write(&manifest, damaged).unwrap();
        assert_refused(launch(), "AOF manifest");
    }
    fs::write(&manifest, &lines).unwrap();
    let server = AofHome::load(launch());
    assert_reply!(server.connect(), "MGET a b", "1) \"2\"\n2) \"2\"");
}

/// Tools expect a timestamp in the first line. Redis writes it with the first command, and Brisk when it opens the
/// file.
#[test]
fn a_timestamp_is_the_first_line_of_each_file_of_commands() {
    if subject_is_redis() {
        return; // a new file created within the same second has none
    }
    let home = AofHome::new();
    let server = home
        .at_home(Launch::subject())
        .set("appendfsync", "always")
        .set("aof-timestamp-enabled", "yes")
        .set("aof-use-rdb-preamble", "no")
        .start();
    let mut conn = server.connect();
    for _ in 0..2 {
        run(&mut conn, &["SET a 1"]);
        for line in home.manifest() {
            let file = home.files().join(line.split(' ').nth(1).unwrap());
            let bytes = fs::read(&file).unwrap();
            let first = bytes.split(|byte| *byte == b'\n').next().unwrap();
            let second = first.strip_prefix(b"#TS:").and_then(|line| line.strip_suffix(b"\r"));
            let is_number = second.is_some_and(|text| text.iter().all(u8::is_ascii_digit));
            assert!(is_number, "{}: {}", file.display(), bytes.escape_ascii());
        }
        run(&mut conn, &["BGREWRITEAOF"]);
        wait_for_base(&mut conn);
    }
    server.kill();
    let server = AofHome::load(home.launch("always"));
    assert_reply!(server.connect(), "GET a", "\"1\"");
    server.kill();
}

/// If the server ignored these faults, it would start without the base, or with only some of the files.
#[test]
fn a_damaged_manifest_is_rejected_and_left_alone() {
    if subject_is_redis() {
        return; // it loads most of these, without the base
    }
    let home = AofHome::new();
    small_file(&home);
    let manifest = home.files().join(MANIFEST);
    let lines = fs::read_to_string(&manifest).unwrap();
    let line = "file appendonly.aof.1.incr.aof seq 1 type i\n";
    assert!(lines.ends_with(line), "{lines}");
    for (damaged, said) in [
        (lines.replacen('\n', "\t", 1), "the same key twice"),
        (lines.replacen('\n', " ", 1), "the same key twice"),
        (lines.replacen('\n', "\0", 1), "zero byte"),
        (format!("#{}", lines.replace("seq 1 type i", "seq 2 type i")), "lists no base"),
        ("# nothing\n".to_owned(), "lists no file to load"),
        (lines.replace("type b", "type h").replace("type i", "type h"), "lists no file to load"),
        (lines.replace("type b", "type b later yes"), "unknown key"),
        (lines.replace("type b", "type base"), "Unknown AOF file type"),
        (lines.replace("seq 1 type b", "seq 1x type b"), "Invalid AOF manifest file format"),
        (lines.trim_end().to_owned(), "has no newline"),
        (format!("{lines}# end"), "has no newline"),
        (format!("{lines}\n"), "Invalid AOF manifest file format"),
        (format!("{lines}{line}"), "non-monotonic sequence number"),
        (lines.replace(".1.base.rdb", ".1.incr.aof"), "the same file twice"),
        (lines.replace("file a", "file /a"), "can't be a path"),
        (lines.replace("type i", "type b"), "duplicate base"),
    ] {
        fs::write(&manifest, &damaged).unwrap();
        assert_refused(home.launch("always"), said);
        assert_eq!(fs::read_to_string(&manifest).unwrap(), damaged, "it was left alone");
    }
    fs::write(&manifest, &lines).unwrap();
    let server = AofHome::load(home.launch("always"));
    assert_reply!(server.connect(), "MGET a b", "1) \"2\"\n2) \"2\"");
}

/// An RDB file is never empty. The increments alone contain only a part of the dataset.
#[test]
fn a_base_that_lost_its_content_is_rejected() {
    if subject_is_redis() {
        return; // it starts with the data of the increments
    }
    let home = AofHome::new();
    let server = home.launch("always").start();
    run(&mut server.connect(), &["SET a 1", "BGREWRITEAOF"]);
    let mut conn = server.connect();
    wait_until("it is rewritten", || conn.info("aof_rewrite_in_progress") == "0");
    run(&mut conn, &["SET b 1"]);
    server.kill();
    let base = home.files().join("appendonly.aof.2.base.rdb");
    let whole = fs::read(&base).unwrap();
    for lost in [&b""[..], b"\0\0\0\0\0\0\0\0", b"#TS:1\r\n", b"*1\r\n$4\r\nPING\r\n", b"REDI"] {
        fs::write(&base, lost).unwrap();
        let said = "Bad file format reading the append only file appendonly.aof.2.base.rdb: the file \
                    is damaged: its name says that it is an RDB file";
        assert_refused(home.launch("always"), said);
        assert_eq!(fs::read(&base).unwrap(), lost, "it was left alone");
    }
    fs::write(&base, &whole).unwrap();
    let server = AofHome::load(home.launch("always"));
    assert_reply!(server.connect(), "EXISTS a b", "(integer) 2");
}

/// The files of a server that was started without keys: a base of commands is empty, and an increment is empty until
/// the first write.
#[test]
fn empty_files_that_servers_write_are_loaded() {
    for (launch, preamble) in
        [(Launch::redis(), "no"), (Launch::subject(), "no"), (Launch::redis(), "yes")]
    {
        let home = AofHome::new();
        home.at_home(launch).set("aof-use-rdb-preamble", preamble).start().kill();
        let len = |file: &str| fs::metadata(home.files().join(file)).unwrap().len();
        let ending = if preamble == "no" { "aof" } else { "rdb" };
        let base = format!("appendonly.aof.1.base.{ending}");
        assert_eq!(len(&base) == 0, preamble == "no");
        // An increment before the last one may be empty too.
        let second = "appendonly.aof.2.incr.aof";
        fs::write(home.files().join("appendonly.aof.1.incr.aof"), b"").unwrap();
        let third = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
        fs::write(home.files().join(second), third).unwrap();
        let lines = home.manifest().join("\n");
        let lines = format!("{lines}\nfile {second} seq 2 type i\n");
        fs::write(home.files().join(MANIFEST), lines).unwrap();
        let server = AofHome::load(home.launch("always"));
        assert_reply!(server.connect(), "GET a", "\"1\"");
        let warned = format!("The base AOF {base} is empty");
        assert_eq!(server.log().contains(&warned), preamble == "no" && !subject_is_redis());
        server.kill();
    }
}

fn is_locked(home: &AofHome, server: &Server) -> String {
    let lock = home.files().join("appendonly.aof.lock").display().to_string();
    format!("is in use by another server (process {}): {lock} is locked", server.pid())
}

const NOT_TURNED_ON: &str = "(error) ERR CONFIG SET failed (possibly related to argument 'appendonly') - Unable to turn on \
     AOF. Check server logs.";

fn wait_for_base(conn: &mut Conn) {
    wait_until("there is a base", || {
        conn.info("aof_rewrite_in_progress") == "0" && conn.info("aof_rewrite_scheduled") == "0"
    });
}

/// Two servers that append to one file would each truncate and interleave the other's commands.
#[test]
fn a_second_server_does_not_use_the_same_append_only_file() {
    if subject_is_redis() {
        return; // Redis does so
    }
    let home = AofHome::new();
    let server = home.launch("always").start();
    run(&mut server.connect(), &["SET a 1"]);
    assert_refused(home.launch("always"), &is_locked(&home, &server));
    run(&mut server.connect(), &["SET b 1"]);

    // CONFIG SET rejects it too, even if there is only a base.
    let other = home.launch("always").set("appendonly", "no").start();
    let mut conn = other.connect();
    assert_reply!(conn, "CONFIG SET appendonly yes", NOT_TURNED_ON);
    assert!(other.log().contains(&is_locked(&home, &server)), "{}", other.log());
    let refused = conn.cmd("BGREWRITEAOF").to_string();
    assert!(
        refused.starts_with("(error) ERR Can't execute an AOF background rewriting"),
        "{refused}"
    );
    let refused = conn.cmd("DEBUG LOADAOF").to_string();
    assert!(refused.starts_with("(error)"), "{refused}");
    run(&mut conn, &["SET other 1", "SAVE"]);

    // The kernel releases the lock when the process exits.
    server.kill();
    let server = AofHome::load(home.launch("always"));
    let mut first = server.connect();
    assert_reply!(first, "EXISTS a b other", "(integer) 2");
    // The server releases the lock when it closes the file.
    assert_reply!(first, "CONFIG SET appendonly no", "OK");
    assert_reply!(conn, "CONFIG SET appendonly yes", "OK");
    wait_for_base(&mut conn);
    assert_reply!(first, "CONFIG SET appendonly yes", NOT_TURNED_ON);
    other.kill();
    assert_reply!(first, "CONFIG SET appendonly yes", "OK");
    wait_for_base(&mut first);
}

#[test]
fn servers_with_other_files_share_a_directory() {
    let home = AofHome::new();
    let _first = home.launch("always").start();
    let second = home.launch("always").set("appendfilename", "other.aof").start();
    run(&mut second.connect(), &["SET a 1"]);
    let elsewhere = home.launch("always").set("appenddirname", "other").start();
    run(&mut elsewhere.connect(), &["SET a 1"]);
    // Without an append-only file, no lock is taken.
    let home = AofHome::new();
    for _ in 0..2 {
        let server = home.launch("always").set("appendonly", "no").start();
        run(&mut server.connect(), &["SET a 1", "SAVE"]);
    }
    assert!(!home.files().exists());
}

#[test]
fn the_lock_goes_with_the_files_to_another_directory() {
    if subject_is_redis() {
        return;
    }
    let [old, new] = [(); 2].map(|()| AofHome::new());
    let server = old.launch("always").set("enable-protected-configs", "yes").start();
    let mut conn = server.connect();
    let dir = new.path("").display().to_string();
    run(&mut conn, &["SET a 1", &format!("CONFIG SET dir {dir}")]);
    // The files are still there.
    assert_refused(old.launch("always"), &is_locked(&old, &server));
    run(&mut conn, &["BGREWRITEAOF"]);
    wait_until("it is rewritten", || conn.info("aof_rewrite_in_progress") == "0");
    assert_refused(new.launch("always"), &is_locked(&new, &server));
    let second = AofHome::load(old.launch("always"));
    assert_reply!(second.connect(), "EXISTS a", "(integer) 1");
}

#[test]
fn a_command_that_fails_during_replay_is_logged() {
    let home = AofHome::new();
    let (path, whole) = small_file(&home);
    fs::write(&path, [&whole[..], b"*3\r\n$5\r\nLPUSH\r\n$1\r\na\r\n$1\r\nx\r\n"].concat())
        .unwrap();
    let server = AofHome::load(home.launch("always"));
    assert_reply!(server.connect(), "MGET a b", "1) \"2\"\n2) \"2\"");
    let expected = "== CRITICAL == This server is sending an error to its AOF-loading-client: \
                '-WRONGTYPE Operation against a key holding the wrong kind of value";
    let log = server.log();
    let line = log.lines().find(|line| line.contains(expected)).unwrap_or(&log);
    assert!(line.contains("after processing the command 'lpush'"), "{line}");
}

/// Approximate trimming is written to the file with its actual effect, even with LIMIT.
#[test]
fn trimmed_streams_are_recovered_unchanged() {
    let home = AofHome::new();
    let server = home.launch("always").set("stream-node-max-entries", "10").start();
    let mut conn = server.connect();
    for id in 1..=100 {
        run(&mut conn, &[&format!("XADD s {id} f v"), &format!("XADD t {id} f v")]);
    }
    run(&mut conn, &["XADD s MAXLEN ~ 55 LIMIT 30 101 f v", "XTRIM t MINID ~ 55 LIMIT 30"]);
    assert_reply!(conn, "XLEN s", "(integer) 71");
    assert_reply!(conn, "XLEN t", "(integer) 70");
    let before = digest(&server);
    assert_reply!(conn, "CONFIG SET stream-node-max-entries 1", "OK");
    assert_reply!(conn, "DEBUG LOADAOF", "OK");
    assert_eq!(digest(&server), before);
}

#[test]
fn replaced_files_stay_until_they_can_be_deleted() {
    let home = AofHome::new();
    let launch = || home.launch("always").set("aof-disable-auto-gc", "yes");
    let server = AofHome::load(launch());
    let mut conn = server.connect();
    for _ in 0..2 {
        run(&mut conn, &["INCR a", "BGREWRITEAOF"]);
        wait_until("it is rewritten", || conn.info("aof_rewrite_in_progress") == "0");
    }
    let history = [
        "file appendonly.aof.3.base.rdb seq 3 type b",
        "file appendonly.aof.2.incr.aof seq 2 type h",
        "file appendonly.aof.2.base.rdb seq 2 type h",
        "file appendonly.aof.1.incr.aof seq 1 type h",
        "file appendonly.aof.1.base.rdb seq 1 type h",
        "file appendonly.aof.3.incr.aof seq 3 type i",
    ];
    assert_eq!(home.manifest(), history);
    server.kill();
    let server = AofHome::load(launch());
    assert_eq!(home.manifest(), history);
    let all = fs::read_dir(home.files()).unwrap().count();
    assert_eq!(all, history.len() + 2, "the manifest and the lock, too");
    let mut conn = server.connect();
    assert_reply!(conn, "GET a", "\"2\"");
    assert_reply!(conn, "CONFIG SET aof-disable-auto-gc no", "OK");
    assert_eq!(home.manifest(), [history[0], history[5]]);
    wait_until("they are gone", || fs::read_dir(home.files()).unwrap().count() == 4);

    assert_reply!(conn, "CONFIG SET aof-disable-auto-gc yes", "OK");
    run(&mut conn, &["BGREWRITEAOF"]);
    wait_until("it is rewritten", || conn.info("aof_rewrite_in_progress") == "0");
    assert_eq!(home.manifest().len(), 4);
    server.kill();
    let _server = AofHome::load(launch().set("aof-disable-auto-gc", "no"));
    assert_eq!(home.manifest().len(), 2);
}

/// Commands whose effects Redis 7.0 supports.
const LINES: [&str; 14] = [
    "SET a 1",
    "EXPIRE a 10000",
    "RPUSH l 1 2 3 x",
    "SADD s 1 2 3",
    "SADD t a b c",
    "SPOP t",
    "HSET h f v g w",
    "ZADD z 1.5 a 2 b",
    "XADD x 5-1 a b",
    "XGROUP CREATE x g 0",
    "XREADGROUP GROUP g me STREAMS x >",
    "SELECT 3",
    "PFADD p a b c",
    "SELECT 0",
];

fn digest(server: &Server) -> String {
    server.connect().cmd("DEBUG DIGEST").to_string()
}

#[test]
fn a_real_server_continues_our_file_and_we_continue_its() {
    for (preamble, timestamps) in [("yes", "no"), ("no", "yes"), ("no", "no"), ("yes", "yes")] {
        let home = AofHome::new();
        let with = |launch: Launch| {
            home.at_home(launch)
                .set("appendfsync", "always")
                .set("aof-use-rdb-preamble", preamble)
                .set("aof-timestamp-enabled", timestamps)
        };
        let mut before = String::new();
        for (turn, launch) in
            [Launch::redis(), Launch::subject(), Launch::redis(), Launch::subject()]
                .into_iter()
                .enumerate()
        {
            let server = AofHome::load(with(launch));
            if turn > 0 {
                assert_eq!(digest(&server), before, "turn {turn}, preamble {preamble}");
            }
            let mut conn = server.connect();
            run(&mut conn, &[&format!("SET turn:{turn} 1"), "DEL x"]);
            run(&mut conn, &LINES);
            run(&mut conn, &["MULTI", "INCR turns", "LPUSH l m", "EXEC"]);
            if turn < 2 {
                run(&mut conn, &["BGREWRITEAOF"]);
                wait_until("it is rewritten", || {
                    conn.info("aof_rewrite_in_progress") == "0"
                        && conn.info("aof_rewrite_scheduled") == "0"
                });
                run(&mut conn, &["SET behind 1", "SADD s more"]);
            }
            before = digest(&server);
            server.kill();
        }
    }
}

/// The single append-only file of servers before version 7, with or without a snapshot at its start, is moved to the
/// new directory.
#[test]
fn an_old_single_file_is_taken_over() {
    for preamble in ["yes", "no"] {
        let home = AofHome::new();
        let theirs = home.at_home(Launch::redis()).set("aof-use-rdb-preamble", preamble).start();
        let mut conn = theirs.connect();
        run(&mut conn, &LINES);
        run(&mut conn, &["BGREWRITEAOF"]);
        wait_until("it is rewritten", || conn.info("aof_rewrite_in_progress") == "0");
        let before = digest(&theirs);
        let base = home.manifest()[0].split(' ').nth(1).unwrap().to_owned();
        let bytes = fs::read(home.files().join(base)).unwrap();
        assert_eq!(bytes.starts_with(b"REDIS"), preamble == "yes");
        theirs.kill();
        let old = AofHome::new();
        let tail = b"*3\r\n$3\r\nSET\r\n$3\r\nold\r\n$1\r\n1\r\n*2\r\n$3\r\nDEL\r\n$3\r\nold\r\n";
        fs::write(old.path("appendonly.aof"), [&bytes[..], tail].concat()).unwrap();
        for _ in 0..2 {
            let server = AofHome::load(old.at_home(Launch::subject()));
            assert_eq!(digest(&server), before, "preamble {preamble}");
            assert!(!old.path("appendonly.aof").exists());
            assert_eq!(old.manifest()[0], "file appendonly.aof seq 1 type b");
            server.kill();
        }
    }
}

/// As in Redis, `appendonly yes` loads no RDB file. Users can lose data this way, so the server logs it.
#[test]
fn a_snapshot_that_is_not_loaded_is_reported_once() {
    if subject_is_redis() {
        return; // it logs nothing
    }
    let home = AofHome::new();
    let theirs = home.at_home(Launch::redis()).set("appendonly", "no").start();
    run(&mut theirs.connect(), &["SET a 1", "SAVE"]);
    theirs.kill();
    let snapshot = fs::read(home.path("dump.rdb")).unwrap();
    for is_reported in [true, false] {
        let server = AofHome::load(home.launch("always"));
        assert_eq!(server.connect().cmd("DBSIZE").integer(), 0);
        assert_eq!(server.log().contains("dump.rdb was not loaded"), is_reported);
        server.kill();
        assert_eq!(fs::read(home.path("dump.rdb")).unwrap(), snapshot);
    }
    // Do what the log recommends.
    fs::remove_dir_all(home.files()).unwrap();
    let server = AofHome::load(home.launch("always").set("appendonly", "no"));
    let mut conn = server.connect();
    run(&mut conn, &["CONFIG SET appendonly yes"]);
    wait_for_base(&mut conn);
    server.kill();
    let server = AofHome::load(home.launch("always"));
    assert_eq!(server.connect().cmd("GET a").text(), "1");
}

/// A file system with a few pages; `None` if mounting is not permitted on this machine.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<SmallDisk> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(at)
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then(|| SmallDisk(at.to_path_buf()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_rejects_writes_until_there_is_room() {
    if subject_is_redis() {
        return; // it exits with `always`
    }
    for policy in ["everysec", "always"] {
        let home = AofHome::new();
        let Some(_disk) = SmallDisk::mount(&home.path("")) else {
            brisk_testkit::skipped("nothing can be mounted on this machine");
            return;
        };
        let server = home.launch(policy).set("rdbcompression", "no").start();
        let [mut writer, mut conn] = server.connections();
        run(&mut conn, &["SET before 1"]);
        let ballast = home.path("ballast");
        fs::write(&ballast, vec![0; 150_000]).unwrap();
        // Commands are written in order. After the first one without a reply, none gets a reply.
        let value = "v".repeat(1000);
        let mut replied = 0;
        for n in 0..300 {
            writer.send(&format!("SET key:{n} {value}"));
            let (mut has_reply, mut has_failed) = (false, false);
            wait_until("the reply arrives, or cannot", || {
                has_failed = conn.info("aof_last_write_status") == "err";
                has_reply = writer.has_reply_within(Duration::from_millis(1));
                has_reply || has_failed
            });
            if !has_reply {
                break;
            }
            assert_eq!(writer.reply().text(), "OK");
            replied = n + 1;
        }
        assert!(replied < 300, "the disk was not full");
        let refused = "(error) MISCONF Errors writing to the AOF file: No space left on device";
        wait_until("the failure is known", || conn.info("aof_last_write_status") == "err");
        assert_reply!(conn, "SET other 1", refused);
        assert_reply!(conn, "PING", refused);
        assert_reply!(conn, "GET before", "\"1\"");
        assert!(server.log().contains("Error writing to the AOF file: No space left on device"));
        // A rewrite fails for lack of space too, which changes nothing.
        let _ = conn.cmd("BGREWRITEAOF");
        wait_until("it has failed", || conn.info("aof_rewrite_in_progress") == "0");
        fs::remove_file(&ballast).unwrap();
        // The held reply is sent.
        assert_eq!(writer.reply().text(), "OK");
        wait_until("it is written again", || conn.info("aof_last_write_status") == "ok");
        assert!(server.log().contains("The server can write again"), "{}", server.log());
        assert_reply!(conn, "SET other 1", "OK");
        server.kill();
        let server = AofHome::load(home.launch(policy));
        let mut conn = server.connect();
        for n in 0..=replied {
            assert_eq!(conn.cmd(&format!("EXISTS key:{n}")).integer(), 1, "{n} of {replied}");
        }
        assert_reply!(conn, "EXISTS other before", "(integer) 2");
        drop(server);
    }
}

#[test]
fn a_rewrite_without_a_directory_is_an_error_and_changes_nothing() {
    let home = AofHome::new();
    let server = home.launch("everysec").start();
    let mut conn = server.connect();
    run(&mut conn, &["SET k v"]);
    fs::remove_dir_all(home.files()).unwrap();
    // Create a file in place of the directory, so that the directory cannot be created again.
    fs::write(home.files(), b"").unwrap();
    let refused = "(error) ERR Can't execute an AOF background rewriting. Please check the server \
                   logs for more information.";
    assert_reply!(conn, "BGREWRITEAOF", refused);
    assert_eq!(conn.info("aof_last_bgrewrite_status"), "err");
    assert_eq!(conn.info("aof_rewrite_in_progress"), "0");
    assert!(server.log().contains("append-only file"), "{}", server.log());
    assert_reply!(conn, "SET k w", "OK");
    assert_reply!(conn, "GET k", "\"w\"");
    fs::remove_file(home.files()).unwrap();
    run(&mut conn, &["BGREWRITEAOF"]);
    wait_until("it is rewritten", || conn.info("aof_rewrite_in_progress") == "0");
    assert_eq!(conn.info("aof_last_bgrewrite_status"), "ok");
    server.kill();
    let server = AofHome::load(home.launch("everysec"));
    assert_reply!(server.connect(), "GET k", "\"w\"");
}

/// Existing files stay loadable until there is a new base.
#[test]
fn a_rewrite_without_an_append_only_file_makes_a_base_only() {
    let home = AofHome::new();
    let server = home.launch("everysec").start();
    run(&mut server.connect(), &["SET k 1"]);
    server.kill();
    let server = home.launch("everysec").set("appendonly", "no").start();
    let mut conn = server.connect();
    run(&mut conn, &["SET k 2", "BGREWRITEAOF"]);
    wait_until("it is rewritten", || conn.info("aof_rewrite_in_progress") == "0");
    assert_eq!(conn.info("aof_enabled"), "0");
    run(&mut conn, &["SET k 3"]);
    let lines = home.manifest();
    assert_eq!(lines, ["file appendonly.aof.2.base.rdb seq 2 type b"]);
    run(&mut conn, &["CONFIG SET appendonly yes"]);
    wait_until("it is rewritten", || conn.info("aof_rewrite_in_progress") == "0");
    run(&mut conn, &["SET l 4"]);
    server.kill();
    let server = AofHome::load(home.launch("everysec"));
    assert_reply!(server.connect(), "MGET k l", "1) \"3\"\n2) \"4\"");
}

#[test]
fn a_file_that_cannot_be_created_is_reported_with_the_texts_of_redis() {
    let outcomes = [Launch::subject(), Launch::redis()].map(|launch| {
        let home = TempDir::new();
        // There is a file in place of the directory.
        fs::write(home.path("appendonlydir"), b"in the way").unwrap();
        let server = launch.set("dir", home.path("").to_str().unwrap()).start();
        let mut conn = server.connect();
        let refused = conn.cmd("CONFIG SET appendonly yes").to_string();
        let after = conn.cmd("CONFIG GET appendonly").to_string();
        fs::remove_file(home.path("appendonlydir")).unwrap();
        let accepted = conn.cmd("CONFIG SET appendonly yes").to_string();
        // A real Redis does not exit while it is writing its first file.
        assert_reply!(conn, "CONFIG SET appendonly no", "OK");
        (refused, after, accepted)
    });
    assert_eq!(outcomes[0], outcomes[1]);
    assert!(outcomes[0].0.contains("Unable to turn on AOF"), "{outcomes:?}");
}

/// A separate thread writes the file, in addition to the workers.
fn with_writing_thread() -> (Server, Conn) {
    let server = Launch::subject()
        .set("appendonly", "yes")
        .set("appendfsync", "always")
        .set("auto-aof-rewrite-percentage", "0")
        .set("threads", "2")
        .start();
    let conn = server.connect();
    (server, conn)
}

/// Slows the file down, so that it falls behind a client that does not wait for it.
const SLOWLY: &str = "DEBUG AOF-FLUSH-SLEEP 1000000";

/// Clients that change the dataset by commands, transactions or scripts wait while more than 64 MiB of changes wait for
/// the file.
#[test]
fn unwritten_append_only_data_is_bounded_for_every_kind_of_write() {
    if subject_is_redis() {
        return;
    }
    let value = "v".repeat(1 << 20);
    let set: &[&str] = &["SET", "key", &value];
    let ways: [&[&[&str]]; 3] = [
        &[set],
        &[&["MULTI"], set, &["EXEC"]],
        &[&["EVAL", "redis.call('set',KEYS[1],ARGV[1])", "1", "key", &value]],
    ];
    for commands in ways {
        let mut way = Vec::new();
        commands.iter().for_each(|words| encode_into(&mut way, words));
        let (server, _) = with_writing_thread();
        // The worker that does not execute these commands continues to serve its clients, although it may be the one
        // that starts writing to the file.
        let mut clients = one_of_each_worker(&server, 2);
        let (mut control, mut sender) = (clients.remove(1), clients.remove(0));
        // Otherwise this client would see the waiting bytes only after they are on disk.
        assert_reply!(control, "CLIENT DURABILITY MEMORY", "OK");
        assert_reply!(sender, "CLIENT DURABILITY MEMORY", "OK");
        // Long enough for many commands to arrive in the meantime.
        assert_reply!(control, "DEBUG AOF-FLUSH-SLEEP 300000", "OK");
        // Send until the server is gone.
        let sender = std::thread::spawn(move || while sender.try_send_raw(&way).is_ok() {});
        let pending =
            |control: &mut Conn| -> u64 { control.info("mem_aof_buffer").parse().unwrap() };
        wait_until("much is pending", || pending(&mut control) > 60 << 20);
        let most = (0..200).map(|_| pending(&mut control)).max().unwrap();
        assert!(most < 80 << 20, "{most}");
        server.kill();
        sender.join().unwrap();
    }
}

/// Eviction could not free the data that waits for the file.
#[test]
fn unwritten_append_only_data_evicts_no_keys() {
    if subject_is_redis() {
        return;
    }
    let (server, mut control) = with_writing_thread();
    let mut conn = server.connect();
    let value = "v".repeat(1 << 19);
    assert_reply!(conn, "CLIENT DURABILITY MEMORY", "OK");
    for key in 0..60 {
        assert_reply!(conn, &format!("SET key:{key} {value}"), "OK");
    }
    wait_until("all is written", || control.info("mem_aof_buffer") == "0");
    let used: u64 = control.info("used_memory").parse().unwrap();
    let limit = used + (20 << 20);
    assert_reply!(control, SLOWLY, "OK");
    assert_reply!(control, &format!("CONFIG SET maxmemory {limit}"), "OK");
    assert_reply!(control, "CONFIG SET maxmemory-policy allkeys-lru", "OK");
    for _ in 0..80 {
        assert_reply!(conn, &format!("SET key:0 {value}"), "OK");
    }
    let pending: u64 = control.info("mem_aof_buffer").parse().unwrap();
    assert!(pending > 20 << 20, "{pending}");
    assert_eq!(conn.cmd("DBSIZE").integer(), 60);
    assert_eq!(control.info("evicted_keys"), "0");
    server.kill();
}

/// The commands in the file have already been executed once, so current limits must not reject them.
#[test]
fn a_file_is_loaded_despite_limits_that_apply_to_clients() {
    let home = AofHome::new();
    let server = home.at_home(Launch::subject()).start();
    let mut conn = server.connect();
    run(&mut conn, &LINES);
    let before = digest(&server);
    for line in ["CONFIG SET maxmemory 1", "CONFIG SET maxmemory-policy noeviction"] {
        assert_reply!(conn, line, "OK");
    }
    assert!(conn.cmd("SET a 1").to_string().contains("OOM"));
    assert_reply!(conn, "CONFIG SET slowlog-log-slower-than 0", "OK");
    assert_reply!(conn, "SLOWLOG RESET", "OK");
    assert_reply!(conn, "DEBUG LOADAOF", "OK");
    assert_eq!(digest(&server), before);
    // Loading is not the work of a client, so it is not in the slow log.
    assert!(conn.cmd("SLOWLOG LEN").integer() < 5);
    if subject_is_redis() {
        return;
    }
    assert_reply!(conn, "CONFIG SET maxmemory 0", "OK");
    assert_reply!(conn, "CLIENT PAUSE 100000 WRITE", "OK");
    assert_reply!(conn, "DEBUG LOADAOF", "OK");
    assert_eq!(digest(&server), before);
}
