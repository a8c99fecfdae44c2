//! Startup: the replies of a server while it is loading its file, and loading with several threads. Saving and
//! restoring are tested in `persistence`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::random::Random;
use brisk_testkit::server::{rdb_fixtures, subject_is_redis};
use brisk_testkit::{Conn, Launch, Server, TempDir, assert_reply, wait_until};
use std::fs;
use std::path::PathBuf;

/// Number of keys in the file that loads slowly. Loading each key takes [`DELAY_US`].
const KEYS: usize = 4000;
/// The delay per key. In total, this is more time than any test needs. Tests end the delay when they have seen enough.
const DELAY_US: &str = "5000";
const LOADING: &str = "(error) LOADING Redis is loading the dataset in memory";
/// Number of damaged files to try.
const DAMAGED: usize = 40;

/// A directory with a file to load.
struct Home(TempDir);

impl Home {
    /// A file with this number of small strings.
    fn with_keys(keys: usize) -> Home {
        let home = Home(TempDir::new());
        let server = home.launch(Launch::subject()).start();
        let mut conn = server.connect();
        for chunk in (0..keys).collect::<Vec<_>>().chunks(500) {
            let words = chunk.iter().map(|n| format!(" key:{n} {n:0>100}"));
            let words: String = words.collect();
            assert_reply!(conn, &format!("MSET{words}"), "OK");
        }
        assert_reply!(conn, "SAVE", "OK");
        home
    }

    fn with_file(bytes: &[u8]) -> Home {
        let home = Home(TempDir::new());
        fs::write(home.file(), bytes).unwrap();
        home
    }

    fn file(&self) -> PathBuf {
        self.0.path("dump.rdb")
    }

    fn launch(&self, launch: Launch) -> Launch {
        launch.set("dir", self.0.path("").to_str().unwrap())
    }

    /// A server that loads slowly.
    fn slow(&self, launch: Launch) -> Launch {
        // A real Redis serves its clients each time it has loaded this number of bytes.
        self.launch(launch)
            .while_loading()
            .set("key-load-delay", DELAY_US)
            .set("loading-process-events-interval-bytes", "1024")
    }

    fn start_slow(&self) -> (Server, Conn) {
        let server = self.slow(Launch::subject()).start();
        let conn = server.connect();
        (server, conn)
    }
}

/// Makes the server load the rest without delay.
fn hurry(conn: &mut Conn) {
    assert_reply!(conn, "CONFIG SET key-load-delay 0", "OK");
    wait_until("all is loaded", || conn.cmd("PING").text() == "PONG");
}

#[test]
fn commands_without_keys_are_executed_while_loading() {
    let home = Home::with_keys(KEYS);
    let (server, mut conn) = home.start_slow();
    for line in [
        "PING",
        "GET key:1",
        "SET key:1 v",
        "DBSIZE",
        "KEYS *",
        "EVAL 'return 1' 0",
        "FCALL f 0",
        "FUNCTION LIST",
        "SCRIPT EXISTS a",
        "FLUSHALL",
        "SAVE",
        "BGSAVE",
        "ECHO",
        "SWAPDB 0 1",
        "BLPOP k 0",
        "OBJECT FREQ key:1",
    ] {
        let want = if line == "ECHO" {
            "(error) ERR wrong number of arguments for 'echo' command"
        } else {
            LOADING
        };
        assert_reply!(conn, line, want);
    }
    for (line, want) in [
        ("SELECT 1", "OK"),
        ("CLIENT SETNAME me", "OK"),
        ("CLIENT GETNAME", "\"me\""),
        ("CONFIG SET maxmemory-samples 7", "OK"),
        ("CONFIG RESETSTAT", "OK"),
        ("LATENCY RESET", "(integer) 0"),
        ("CONFIG SET slowlog-log-slower-than -1", "OK"),
        ("SLOWLOG RESET", "OK"),
        ("SLOWLOG LEN", "(integer) 0"),
        ("COMMAND COUNT", ""),
        ("HELLO 3", ""),
        ("WATCH a", "OK"),
        ("UNWATCH", "OK"),
        ("PUBLISH nobody x", "(integer) 0"),
        ("RESET", "RESET"),
        ("LASTSAVE", ""),
        ("ROLE", ""),
        ("ACL WHOAMI", "\"default\""),
    ] {
        let reply = conn.cmd(line).to_string();
        assert!(want.is_empty() || reply == want, "{line}: {reply}");
        assert_ne!(reply, LOADING, "{line}");
    }
    let mut listener = server.connect();
    assert_reply!(listener, "SUBSCRIBE news", "1) \"subscribe\"\n2) \"news\"\n3) (integer) 1");
    assert_reply!(conn, "PUBLISH news hello", "(integer) 1");
    assert_eq!(listener.reply().to_string(), "1) \"message\"\n2) \"news\"\n3) \"hello\"");
    hurry(&mut conn);
    assert_eq!(conn.cmd("DBSIZE").integer(), KEYS as i64);
    assert_eq!(conn.info("loading"), "0");
}

/// The replies of CONFIG SET while a dataset is being loaded, with `enable-protected-configs`.
fn sets_what_has_no_part_in_loading(conn: &mut Conn) {
    let unknown = "(error) ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'";
    let immutable = "(error) ERR CONFIG SET failed (possibly related to argument 'databases') - \
                     can't set immutable config";
    let twice = "(error) ERR CONFIG SET failed (possibly related to argument \
                 'maxmemory-samples') - duplicate parameter";
    for (pairs, want) in [
        ("appendonly yes", LOADING),
        ("appendonly no", LOADING),
        ("appendonly nonsense", LOADING),
        ("APPENDONLY yes", LOADING),
        ("dir .", LOADING),
        ("dir /there/is/none", LOADING),
        ("repl-diskless-load swapdb", LOADING),
        ("maxmemory-samples 6 appendonly yes", LOADING),
        ("appendonly yes appendonly yes", LOADING),
        ("appendonly yes nosuch 1", LOADING),
        ("appendonly yes databases 5", LOADING),
        ("nosuch 1 appendonly yes", unknown),
        ("databases 5 appendonly yes", immutable),
        ("maxmemory-samples 6 maxmemory-samples 6 dir .", twice),
        ("dbfilename other.rdb", "OK"),
        ("dbfilename dump.rdb", "OK"),
        ("appendfsync always", "OK"),
        ("save '100 1'", "OK"),
    ] {
        assert_reply!(conn, &format!("CONFIG SET {pairs}"), want);
    }
    assert_reply!(conn, "CONFIG GET maxmemory-samples", "1) \"maxmemory-samples\"\n2) \"5\"");
    assert_reply!(conn, "CONFIG GET appendonly", "1) \"appendonly\"\n2) \"no\"");
}

#[test]
fn settings_used_by_loading_cannot_be_changed_while_loading() {
    let home = Home::with_keys(KEYS);
    let protected = |launch: Launch| launch.set("enable-protected-configs", "yes");
    let server = protected(home.slow(Launch::subject())).start();
    let mut conn = server.connect();
    assert_eq!(conn.info("loading"), "1");
    sets_what_has_no_part_in_loading(&mut conn);
    hurry(&mut conn);
    assert_reply!(conn, "CONFIG SET appendonly no repl-diskless-load swapdb dir .", "OK");
}

#[test]
fn a_transaction_is_discarded_if_it_would_look_at_keys() {
    let home = Home::with_keys(KEYS);
    let (_server, mut conn) = home.start_slow();
    assert_reply!(conn, "MULTI", "OK");
    assert_reply!(conn, "GET key:1", LOADING);
    assert_reply!(
        conn,
        "EXEC",
        "(error) EXECABORT Transaction discarded because of previous errors."
    );
    assert_reply!(conn, "MULTI", "OK");
    assert_reply!(conn, "SELECT 1", "QUEUED");
    assert_reply!(conn, "CLIENT GETNAME", "QUEUED");
    assert_reply!(conn, "EXEC", "1) OK\n2) (nil)");
    hurry(&mut conn);
}

#[test]
fn passwords_come_before_loading() {
    let home = Home::with_keys(KEYS);
    let server = home.slow(Launch::subject()).set("requirepass", "secret").start();
    let mut conn = server.connect();
    assert_reply!(conn, "PING", "(error) NOAUTH Authentication required.");
    assert_reply!(conn, "GET key:1", "(error) NOAUTH Authentication required.");
    assert_reply!(
        conn,
        "AUTH wrong",
        "(error) WRONGPASS invalid username-password pair or user is disabled."
    );
    assert_reply!(conn, "AUTH secret", "OK");
    assert_reply!(conn, "PING", LOADING);
    hurry(&mut conn);
    let mut late = server.connect();
    assert_reply!(
        late,
        "HELLO 2 AUTH default wrong SETNAME x",
        "(error) WRONGPASS invalid username-password pair or user is disabled."
    );
}

/// The fields that exist only while a file is being loaded, with their values.
fn progress(conn: &mut Conn) -> Vec<(String, String)> {
    let text = conn.cmd("INFO persistence").text();
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    let all: Vec<_> =
        fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
    let own = |(name, _): &&(String, String)| name.contains("loading");
    let order = all.iter().skip_while(|(name, _)| name != "module_fork_last_cow_size").skip(1);
    let last: Vec<_> = order.cloned().collect();
    assert!(last.iter().all(|field| own(&field)), "{last:?}");
    all.into_iter().filter(|field| own(&field)).collect()
}

#[test]
fn info_shows_the_progress_of_loading() {
    let home = Home::with_keys(KEYS);
    let (_server, mut conn) = home.start_slow();
    let fields = progress(&mut conn);
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "loading",
            "async_loading",
            "loading_start_time",
            "loading_total_bytes",
            "loading_rdb_used_mem",
            "loading_loaded_bytes",
            "loading_loaded_perc",
            "loading_eta_seconds"
        ]
    );
    let bytes = fs::metadata(home.file()).unwrap().len();
    let number = |conn: &mut Conn, name: &str| -> u64 { conn.info(name).parse().unwrap() };
    assert_eq!(number(&mut conn, "loading"), 1);
    assert_eq!(number(&mut conn, "async_loading"), 0);
    assert_eq!(number(&mut conn, "loading_total_bytes"), bytes);
    assert!(number(&mut conn, "loading_rdb_used_mem") > 100_000);
    let began = number(&mut conn, "loading_start_time");
    let now: u64 =
        conn.cmd("TIME").to_string().split('"').nth(1).map_or(began, |text| text.parse().unwrap());
    assert!(began <= now && now - began < 20, "{began} {now}");
    let first = number(&mut conn, "loading_loaded_bytes");
    wait_until("more is loaded", || number(&mut conn, "loading_loaded_bytes") > first);
    let fields = progress(&mut conn);
    let loaded: f64 = fields[5].1.parse().unwrap();
    let percent: f64 = fields[6].1.parse().unwrap();
    assert!((percent - loaded * 100.0 / bytes as f64).abs() < 0.01, "{fields:?}");
    wait_until("there is enough to tell the end by", || {
        let eta = number(&mut conn, "loading_eta_seconds");
        eta > 1 && eta < 100
    });
    hurry(&mut conn);
    assert_eq!(
        progress(&mut conn),
        [("loading".to_owned(), "0".to_owned()), ("async_loading".to_owned(), "0".to_owned()),]
    );
}

/// A directory with an append-only file of commands, including a transaction that is longer than a batch of commands.
fn home_of_commands() -> Home {
    let home = Home(TempDir::new());
    let server = home.launch(Launch::subject()).set("appendonly", "yes").start();
    let mut conn = server.connect();
    for n in 0..KEYS {
        assert_reply!(conn, &format!("SET key:{n} {n:0>100}"), "OK");
    }
    assert_reply!(conn, "MULTI", "OK");
    for n in 0..KEYS {
        assert_reply!(conn, &format!("RPUSH list {n:0>100}"), "QUEUED");
    }
    conn.cmd("EXEC");
    home
}

#[test]
fn the_server_replies_while_it_executes_the_append_only_file() {
    let home = home_of_commands();
    let launch = |launch: Launch| launch.set("appendonly", "yes").set("io-threads", "1");
    let server = home.slow(launch(Launch::subject())).start();
    let mut conn = server.connect();
    for line in ["GET key:1", "SET key:1 v", "DBSIZE", "BGREWRITEAOF"] {
        assert_reply!(conn, line, LOADING);
    }
    let mut seen = Vec::new();
    wait_until("it is on its way", || {
        let loaded: u64 = conn.info("loading_loaded_bytes").parse().unwrap();
        seen.push(loaded);
        seen.first() < seen.last()
    });
    assert_eq!(conn.info("loading"), "1");
    assert!(conn.info("loading_total_bytes").parse::<u64>().unwrap() > *seen.last().unwrap());
    hurry(&mut conn);
    assert_eq!(conn.cmd("DBSIZE").integer(), KEYS as i64 + 1);
    assert_eq!(conn.cmd("LLEN list").integer(), KEYS as i64);
    assert_reply!(conn, "SET more 1", "OK");
    drop(server);
    let server = home.launch(launch(Launch::subject())).start();
    assert_reply!(server.connect(), "GET more", "\"1\"");
}

#[test]
fn shutdown_while_loading_leaves_the_file() {
    let home = Home::with_keys(KEYS);
    let before = fs::read(home.file()).unwrap();
    for words in ["", " NOSAVE", " SAVE", " NOSAVE NOW FORCE"] {
        let server = home.slow(Launch::subject()).set("save", "3600 1").start();
        let mut conn = server.connect();
        assert_reply!(conn, "PING", LOADING);
        conn.send(&format!("SHUTDOWN{words}"));
        assert_eq!(conn.read_to_end(), b"");
        let log = server.ended();
        assert!(!log.contains("Ready to accept connections"), "{log}");
        assert!(fs::read(home.file()).unwrap() == before, "{words}");
    }
}

#[test]
fn nothing_expires_or_is_evicted_or_saved_while_loading() {
    let home = Home::with_keys(KEYS);
    let server = home
        .slow(Launch::subject())
        .set("maxmemory", "1mb")
        .set("maxmemory-policy", "allkeys-lru")
        .set("save", "1 1")
        .start();
    let mut conn = server.connect();
    assert_reply!(conn, "GET key:1", LOADING);
    wait_until("a part is loaded", || {
        let loaded: f64 = conn.info("loading_loaded_perc").parse().unwrap();
        loaded > 5.0
    });
    assert_eq!(conn.info("evicted_keys"), "0");
    assert_eq!(conn.info("expired_keys"), "0");
    assert_eq!(conn.info("rdb_bgsave_in_progress"), "0");
    assert_reply!(conn, "CONFIG SET maxmemory 0", "OK");
    hurry(&mut conn);
    assert_eq!(conn.cmd("DBSIZE").integer(), KEYS as i64);
}

/// The result of starting a server with the file.
fn outcome(home: &Home, threads: &str) -> Result<String, String> {
    let launch = home.launch(Launch::new(brisk_testkit::server::Program::Brisk));
    let server = launch.set("threads", threads).try_start()?;
    let mut conn = server.connect();
    let [digest, size, info] =
        ["DEBUG DIGEST", "DBSIZE", "INFO keyspace"].map(|line| conn.cmd(line).to_string());
    let info: String = info.lines().filter(|line| !line.contains("avg_ttl")).collect();
    Ok(format!("{digest} {size} {info}"))
}

/// The end of a log, without times, threads and paths.
fn reason(error: &str) -> &str {
    let from = error.find("Fatal error loading the DB: ");
    let line = &error[from.unwrap_or_else(|| panic!("not reported: {error}"))..];
    line.lines().next().unwrap()
}

#[test]
fn every_fixture_loads_the_same_by_one_thread_and_by_four() {
    let files = rdb_fixtures();
    assert!(files.len() > 50);
    let mut loaded = 0;
    for path in files {
        let home = Home::with_file(&fs::read(&path).unwrap());
        match (outcome(&home, "1"), outcome(&home, "4")) {
            (Ok(one), Ok(four)) => {
                assert_eq!(one, four, "{}", path.display());
                loaded += 1;
            }
            (Err(one), Err(four)) => assert_eq!(reason(&one), reason(&four), "{}", path.display()),
            (one, four) => panic!("{}: {one:?} {four:?}", path.display()),
        }
    }
    assert!(loaded > 30);
}

/// A file with values of all sizes in several databases, so that it has many blocks.
fn large_file() -> Home {
    let home = Home(TempDir::new());
    let launch = Launch::new(brisk_testkit::server::Program::Brisk);
    let server = home.launch(launch).set("rdbcompression", "no").start();
    let mut conn = server.connect();
    for db in [0, 3, 9] {
        conn.cmd(&format!("SELECT {db}"));
        assert_reply!(conn, "DEBUG POPULATE 20000 small 10", "OK");
        assert_reply!(conn, "DEBUG POPULATE 300 large 5000", "OK");
        assert_reply!(conn, "SETRANGE huge 3000000 end", "(integer) 3000003");
        for number in 0..40 {
            let fields = (0..300).map(|n| format!(" f{n} {number}:{n}")).collect::<String>();
            assert_reply!(conn, &format!("HSET hash:{number}{fields}"), "(integer) 300");
            conn.cmd(&format!("RPUSH list:{number}{fields}"));
            conn.cmd(&format!("SADD set:{number}{fields}"));
            conn.cmd(&format!("EXPIRE hash:{number} 100000"));
        }
    }
    assert_reply!(conn, "SAVE", "OK");
    drop(server);
    home
}

#[test]
fn many_blocks_load_the_same_by_any_number_of_threads_and_again() {
    let home = large_file();
    let one = outcome(&home, "1").unwrap();
    assert_eq!(one, outcome(&home, "3").unwrap());
    let server = home.launch(Launch::subject()).start();
    let mut conn = server.connect();
    let before = conn.cmd("DEBUG DIGEST").to_string();
    let used = |conn: &mut Conn| conn.info("used_memory").parse::<u64>().unwrap();
    assert!(one.starts_with(&before));
    for line in ["DEBUG RELOAD", "DEBUG RELOAD NOSAVE", "DEBUG RELOAD NOSAVE NOFLUSH MERGE"] {
        assert_reply!(conn, line, "OK");
        assert_eq!(conn.cmd("DEBUG DIGEST").to_string(), before, "{line}");
    }
    let once = used(&mut conn);
    for _ in 0..10 {
        assert_reply!(conn, "DEBUG RELOAD NOSAVE", "OK");
    }
    // Wait, because another thread frees flushed data.
    wait_until("no memory is lost", || used(&mut conn) < once + once / 5);
}

fn refused(bytes: &[u8], how: &str) {
    let home = Home::with_file(bytes);
    let launch = home.launch(Launch::new(brisk_testkit::server::Program::Brisk));
    match launch.set("threads", "4").set("rdbchecksum", "no").try_start() {
        // The change is within a text, so the file is still valid.
        Ok(server) => assert!(!server.log().contains("panicked"), "{how}: {}", server.log()),
        Err(error) => {
            assert!(error.contains("the server ended with exit status: 1:"), "{how}: {error}");
            let line = reason(&error);
            let place = line.contains("was read up to byte ") && line.contains(" of ");
            assert!(place, "{how}: {line}");
            assert!(!error.contains("panicked"), "{how}: {error}");
        }
    }
    assert!(fs::read(home.file()).unwrap() == bytes, "{how}: the file was changed");
}

#[test]
fn damaged_files_end_the_start_with_the_offset_of_the_damage() {
    if subject_is_redis() {
        return; // it loads some of them, and crashes on others
    }
    let whole = fs::read(large_file().file()).unwrap();
    for number in 0..DAMAGED {
        let mut random = Random::derived(23, number as u64);
        let mut bytes = whole.clone();
        let at = 9 + random.below(bytes.len() - 9);
        let how = match random.below(4) {
            0 => {
                bytes.truncate(at);
                "cut off"
            }
            1 => {
                bytes[at] = random.bits() as u8;
                "another byte"
            }
            2 => {
                bytes.splice(at..at, *b"\x81\x00\xff\xff\xff\xff\xff\xff\xff");
                "a huge length"
            }
            _ => {
                bytes.drain(at..(at + 1 + random.below(40)).min(whole.len()));
                "bytes missing"
            }
        };
        refused(&bytes, &format!("number {number}, {how} at {at}"));
    }
}

#[test]
fn the_first_damage_is_reported_with_any_number_of_threads() {
    if subject_is_redis() {
        return; // its error text differs
    }
    let whole = fs::read(large_file().file()).unwrap();
    let key = b"\x07large:1";
    let all: Vec<usize> =
        whole.windows(key.len()).enumerate().filter(|(_, w)| w == key).map(|(at, _)| at).collect();
    assert!(all.len() >= 3, "{all:?}");
    let mut bytes = whole;
    // There are invalid types before two keys. The error must be about the first one.
    for at in &all[..2] {
        bytes[at - 1] = 200;
    }
    let home = Home::with_file(&bytes);
    let said: Vec<String> = ["1", "2", "4"]
        .map(|threads| reason(&outcome(&home, threads).unwrap_err()).to_owned())
        .into();
    assert!(said[0].contains("unknown value type or opcode 200"), "{said:?}");
    assert!(said.iter().all(|line| *line == said[0]), "{said:?}");
}

#[test]
fn a_huge_length_takes_no_memory() {
    let head = b"REDIS0010\0\x01k";
    for length in
        [&b"\x81\x00\x00\x01\x00\x00\x00\x00\x00"[..], b"\x81\xff\xff\xff\xff\xff\xff\xff\xff"]
    {
        let home = Home::with_file(&[&head[..], length, b"some"].concat());
        let error = outcome(&home, "4").unwrap_err();
        assert!(reason(&error).contains("ends at byte "), "{error}");
    }
}
