//! Exchange of the append-only file with a real Redis: each server loads and continues the other's file, and both
//! truncate an incomplete file at the same byte. (I5)
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_persist::aof::{
    AofEventKind, AofReader, BaseFormat, FileKind, Manifest, has_preamble, manifest, writer,
};
use brisk_persist::rdb::{KeyMetadata, RdbEvent, RdbReader, RdbWriter, VERSION, Value, dump};
use brisk_testkit::server::redis_tool;
use brisk_testkit::{Conn, Launch, Server, TempDir, assert_reply, wait_until};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const NAME: &[u8] = b"appendonly.aof";

/// A directory with an append-only file in it.
struct Home(TempDir);

impl Home {
    fn new() -> Home {
        let home = Home(TempDir::new());
        fs::create_dir(home.directory()).unwrap();
        home
    }

    /// The directory of the append-only file.
    fn directory(&self) -> PathBuf {
        self.0.path("appendonlydir")
    }

    fn manifest_path(&self) -> PathBuf {
        self.directory().join(OsStr::from_bytes(&manifest::manifest_name(NAME)))
    }

    fn manifest(&self) -> Manifest {
        let text = fs::read(self.manifest_path()).unwrap();
        let manifest = Manifest::parse(&text).unwrap();
        assert_eq!(manifest.format(), text, "we write manifests as a real server does");
        manifest
    }

    /// A real Redis that loads the existing file, and writes each command before its reply.
    fn redis(&self) -> Launch {
        Launch::redis()
            .set("dir", self.0.path("").to_str().unwrap())
            .set("appendonly", "yes")
            .set("appendfsync", "always")
    }

    /// Starts a server and waits until it has loaded everything.
    fn load(&self, launch: Launch) -> Server {
        let server = launch.start();
        server.wait_for_info("loading", |state| state == "0");
        server
    }

    /// Writes a manifest with one increment that contains these bytes. Returns the increment's path.
    fn put_increment(&self, bytes: &[u8]) -> PathBuf {
        let mut manifest = Manifest::new();
        let path = manifest.new_increment(NAME).path_in(&self.directory());
        fs::write(&path, bytes).unwrap();
        fs::write(self.manifest_path(), manifest.format()).unwrap();
        path
    }
}

fn commands(lines: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        writer::command(&mut out, &line.split(' ').collect::<Vec<_>>());
    }
    out
}

/// Timestamps and batches of commands.
fn batches() -> Vec<u8> {
    let mut out = Vec::new();
    writer::timestamp(&mut out, 1_628_217_470);
    let first = commands(&["SELECT 0", "SET k 1", "MULTI", "INCR k", "RPUSH l a b", "EXEC"]);
    writer::batch_line(&mut out, 3, &first);
    out.extend(first);
    writer::timestamp(&mut out, 1_628_217_471);
    let second = commands(&["SELECT 3", "SADD s x y z", "SELECT 0", "SET gone x PXAT 1000"]);
    writer::batch_line(&mut out, u64::MAX, &second);
    out.extend(second);
    writer::batch_line(&mut out, 9, b"");
    out
}

/// Runs redis-check-aof. Returns whether it succeeded, and its output.
fn check_aof(path: &Path) -> (bool, String) {
    let output = Command::new(redis_tool("redis-check-aof")).arg(path).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[track_caller]
fn assert_accepted(path: &Path) {
    let (content, said) = check_aof(path);
    assert!(content && said.contains("valid") && !said.contains("not valid"), "{said}");
}

#[test]
fn a_real_server_loads_batches_and_timestamps_and_continues_the_file() {
    let home = Home::new();
    let path = home.put_increment(&batches());
    assert_accepted(&home.manifest_path());
    assert_accepted(&path);
    let ours = fs::metadata(&path).unwrap().len();
    let server = home.load(home.redis());
    let mut conn = server.connect();
    assert_reply!(conn, "GET k", "\"2\"");
    assert_reply!(conn, "LLEN l", "(integer) 2");
    assert_reply!(conn, "EXISTS gone", "(integer) 0");
    conn.cmd("SELECT 3");
    assert_reply!(conn, "SCARD s", "(integer) 3");
    conn.cmd("SET after restart");
    server.terminate();
    assert_accepted(&home.manifest_path());

    let mut reader = AofReader::new(File::open(&path).unwrap(), 0).unwrap();
    let (mut tickets, mut theirs) = (Vec::new(), Vec::new());
    while let Some(event) = reader.next_event().unwrap() {
        match event.kind {
            AofEventKind::Batch { ticket, .. } => tickets.push(ticket),
            AofEventKind::Command(command) if event.start >= ours => {
                theirs.push(command.args().collect::<Vec<_>>().join(&b' '));
            }
            _ => {}
        }
    }
    assert_eq!(tickets, [3, u64::MAX, 9]);
    assert!(theirs.contains(&b"SET after restart".to_vec()));
}

#[test]
fn a_real_server_loads_our_base_in_both_formats() {
    for format in [BaseFormat::Rdb, BaseFormat::Commands] {
        let home = Home::new();
        let mut manifest = Manifest::new();
        let base = manifest.replace_base(NAME, format).path_in(&home.directory());
        match format {
            BaseFormat::Commands => fs::write(&base, batches()).unwrap(),
            BaseFormat::Rdb => {
                let mut writer = RdbWriter::new(File::create(&base).unwrap(), VERSION);
                writer.aux("aof-base", b"1");
                writer.select_db(0);
                let value = brisk_persist::rdb::value::StringValue::Int(2);
                writer.entry(b"k", KeyMetadata::default(), &Value::String(value));
                writer.finish().unwrap();
            }
        }
        let increment = manifest.new_increment(NAME).path_in(&home.directory());
        fs::write(&increment, commands(&["SELECT 0", "INCR k"])).unwrap();
        fs::write(home.manifest_path(), manifest.format()).unwrap();
        assert_accepted(&home.manifest_path());
        let server = home.load(home.redis());
        assert_reply!(server.connect(), "GET k", "\"3\"");
    }
}

/// Commands of many kinds, in several databases, in transactions and scripts.
fn fill(conn: &mut Conn, round: usize) {
    for line in [
        format!("SET s{round} value"),
        format!("SET e{round} value EX 100000"),
        format!("RPUSH l{round} a b c"),
        format!("HSET h{round} f v g w"),
        format!("ZADD z{round} 1 a 2.5 b"),
        format!("XADD x{round} 1-1 f v"),
        "MULTI".to_owned(),
        "INCR n".to_owned(),
        format!("SADD set{round} 1 2 3"),
        "EXEC".to_owned(),
        "EVAL \"redis.call('INCR', KEYS[1]); redis.call('INCR', KEYS[2])\" 2 a b".to_owned(),
        format!("SELECT {}", round % 3),
        "DEL n".to_owned(),
    ] {
        conn.cmd(&line);
    }
    conn.call(&[&b"SET"[..], b"binary\r\n*1\r\n", &[0, 255, 13, 10]]);
    // A value that is larger than the reader's buffer.
    conn.call(&[&b"SET"[..], b"large", &vec![b'v'; 700_000]]);
}

fn rewrite(server: &Server, conn: &mut Conn, home: &Home) {
    let before = home.manifest().base().map(|base| base.seq);
    conn.cmd("BGREWRITEAOF");
    server.wait_for_info("aof_rewrite_in_progress", |state| state == "0");
    wait_until("a new base", || home.manifest().base().map(|base| base.seq) != before);
}

/// Sends all commands in the files to a server.
fn replay(home: &Home, into: &mut Conn) {
    for file in home.manifest().files_to_load() {
        let mut source = File::open(file.path_in(&home.directory())).unwrap();
        let mut start = 0;
        if has_preamble(&mut source).unwrap() {
            assert_eq!(file.kind, FileKind::Base);
            let mut reader = RdbReader::new(&source).unwrap();
            while let Some(event) = reader.next_event().unwrap() {
                match event {
                    RdbEvent::SelectDb(db) => drop(into.cmd(&format!("SELECT {db}"))),
                    RdbEvent::Entry(entry) => {
                        let deadline = entry.metadata.expire_at_ms.unwrap_or(0).to_string();
                        let payload = dump::write(&entry.value);
                        let words: [&[u8]; 5] =
                            [b"RESTORE", &entry.key, deadline.as_bytes(), &payload, b"ABSTTL"];
                        assert_eq!(into.call(&words).to_string(), "OK");
                    }
                    _ => {}
                }
            }
            start = reader.position();
        }
        let mut reader = AofReader::new(source, start).unwrap();
        while let Some(event) = reader.next_event().unwrap() {
            if let AofEventKind::Command(command) = event.kind {
                into.send_raw(command.bytes());
                let reply = into.reply().to_string();
                assert!(!reply.starts_with("(error)"), "{reply}");
            }
        }
    }
}

#[test]
fn files_of_a_real_server_are_read() {
    for (preamble, timestamps) in [("yes", "no"), ("no", "no"), ("yes", "yes"), ("no", "yes")] {
        let home = Home::new();
        let server = home
            .redis()
            .set("aof-use-rdb-preamble", preamble)
            .set("aof-timestamp-enabled", timestamps)
            .start();
        let mut conn = server.connect();
        fill(&mut conn, 0);
        fill(&mut conn, 1);
        rewrite(&server, &mut conn, &home);
        fill(&mut conn, 2);
        let manifest = home.manifest();
        let base = manifest.base().unwrap();
        let end = if preamble == "yes" { "rdb" } else { "aof" };
        assert_eq!(base.name, format!("appendonly.aof.2.base.{end}").as_bytes());
        let copy = Launch::redis().start();
        let mut into = copy.connect();
        replay(&home, &mut into);
        assert_eq!(into.cmd("DEBUG DIGEST"), conn.cmd("DEBUG DIGEST"));
        assert_ne!(into.cmd("DEBUG DIGEST").to_string(), "0".repeat(40));
    }
}

#[test]
fn timestamps_of_a_real_server_are_read() {
    let home = Home::new();
    let server = home.redis().set("aof-timestamp-enabled", "yes").start();
    server.connect().cmd("SET k v");
    server.terminate();
    let manifest = home.manifest();
    let path = manifest.increments().last().unwrap().path_in(&home.directory());
    let mut reader = AofReader::new(File::open(path).unwrap(), 0).unwrap();
    let first = reader.next_event().unwrap().unwrap();
    assert!(matches!(first.kind, AofEventKind::Timestamp(seconds) if seconds > 1_600_000_000));
}

/// The offset at which a file must be truncated.
fn cut_of(path: &Path) -> u64 {
    let mut reader = AofReader::new(File::open(path).unwrap(), 0).unwrap();
    loop {
        match reader.next_event() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("{}: the file is whole", path.display()),
            Err(error) => break error.truncate_at().unwrap(),
        }
    }
}

#[test]
fn a_torn_file_is_cut_where_a_real_server_cuts_it() {
    let start = commands(&["SELECT 0", "SET k v"]);
    let transaction = commands(&["MULTI", "INCR n", "INCR n", "EXEC"]);
    let file = [&start[..], &transaction, &commands(&["DEL k"])].concat();
    let multi = start.len() + commands(&["MULTI"]).len();
    let exec = start.len() + transaction.len();
    let increment = commands(&["INCR n"]).len();
    for len in [
        start.len() - 1,
        start.len() - 6,
        start.len() + 2,
        multi,
        multi + increment,
        exec + 4,
        file.len() - 1,
    ] {
        let home = Home::new();
        let ours = cut_of(&home.put_increment(&file[..len]));
        let server = home.load(home.redis().set("aof-load-truncated", "yes"));
        let log = server.log();
        assert!(log.contains(&format!("at offset {ours} !!!")), "{len}, {ours}: {log}");
    }
    // If a file ends within a command of a transaction, Redis 7.0 does not truncate the beginning of the transaction.
    // At its next start, it loses what it has appended since. redis-check-aof handles this correctly.
    for len in [multi + 3, exec - 3] {
        let home = Home::new();
        let path = home.put_increment(&file[..len]);
        assert_eq!(cut_of(&path), start.len() as u64);
        let (content, said) = check_aof(&path);
        assert!(!content && said.contains(&format!("ok_up_to={},", start.len())), "{said}");
    }
}

#[test]
fn a_real_server_moves_a_single_file_as_we_do() {
    let home = Home(TempDir::new());
    fs::write(home.0.path("appendonly.aof"), commands(&["SELECT 0", "SET k v"])).unwrap();
    let server = home.load(home.redis());
    assert_reply!(server.connect(), "GET k", "\"v\"");
    let mut ours = Manifest::upgraded(NAME);
    ours.new_increment(NAME);
    assert_eq!(home.manifest(), ours);
}

#[test]
fn manifests_are_rejected_with_the_texts_of_a_real_server() {
    let long = format!("file a seq 1 type b x {}\n", "y".repeat(1002));
    // Redis's error text does not mention that the line has no newline.
    let cut = "file a seq 1 type b";
    let home = Home::new();
    fs::write(home.manifest_path(), cut).unwrap();
    let log = home.redis().try_start().unwrap_err();
    assert!(log.contains("The AOF manifest file contains too long line"), "{log}");
    assert!(Manifest::parse(cut.as_bytes()).is_err());
    for text in [
        "\n",
        "!!!\n",
        "file a seq 1\n",
        long.as_str(),
        "file a/b seq 1 type b\n",
        "file a seq 1 type b\nfile b seq 2 type b\n",
        "file a seq 2 type i\nfile b seq 1 type i\n",
        "file a seq 1 type x\n",
        "# x\nfile a seq 0 type b\n",
        "",
    ] {
        let home = Home::new();
        fs::write(home.manifest_path(), text).unwrap();
        let error = Manifest::parse(text.as_bytes()).unwrap_err();
        let log = home.redis().try_start().unwrap_err();
        assert!(log.contains(&error.to_string()), "{error}: {log}");
        if let Some((number, line)) = error.line {
            assert!(log.contains(&format!("at line {number}")), "{log}");
            assert!(log.contains(&format!(">>> '{}'", String::from_utf8(line).unwrap())), "{log}");
        }
    }
}
