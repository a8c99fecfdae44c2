//! The configuration as a whole: against the reference values, against a running redis-server, and read back
//! after being written.

use std::ffi::OsString;
use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::args::{Invocation, Launch, parse};
use super::directive::{Kind, Write};
use super::*;

/// A directory of its own for one test, removed at its end.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("brisk-config-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(std::fs::canonicalize(path).unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

const ANYONE: Caller = Caller { local: true };

fn launch(arguments: &[&str]) -> Launch {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    match parse(&arguments) {
        Invocation::Run(launch) => launch,
        other => panic!("{other:?}"),
    }
}

fn load_text(text: &str) -> Result<Store, FileError> {
    load(&launch(&["-"]), &mut text.as_bytes())
}

fn get(store: &Store, name: &str) -> String {
    let found = store.get(&[name.as_bytes()]);
    assert_eq!(found.len(), 1, "{name}");
    String::from_utf8_lossy(&found[0].1).into_owned()
}

fn set(store: &mut Store, pairs: &[(&str, &str)]) -> Result<Vec<&'static str>, String> {
    let pairs: Vec<_> = pairs.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
    store.set(&pairs, ANYONE, &mut |_, _| Ok(())).map_err(|error| error.to_string())
}

/// A redis-server of the test's own.
struct Redis {
    child: Child,
    stream: TcpStream,
    dir: TempDir,
}

impl Redis {
    /// Starts one on a free port; `None` where no redis-server is installed.
    fn start() -> Option<Self> {
        let dir = TempDir::new();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .current_dir(dir.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let Ok(mut child) = child else {
            eprintln!("redis-server is not installed: nothing to compare with");
            return None;
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                return Some(Self { child, stream, dir });
            }
            assert!(child.try_wait().unwrap().is_none(), "redis-server ended");
            assert!(Instant::now() < deadline, "redis-server does not listen");
            std::thread::yield_now();
        }
    }

    /// A store with the settings the server was started with.
    fn twin(&self) -> Store {
        let mut store = Store::new(Config::default(), None);
        store.adopt(|config| {
            config.process.dir =
                std::fs::canonicalize(self.dir.path("")).unwrap().to_str().unwrap().into();
            config.persistence.save.clear(); // as on the command line of `start`
        });
        store
    }

    fn send(&mut self, words: &[&[u8]]) {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&request).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\r\n") {
            self.stream.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        String::from_utf8_lossy(&line[..line.len() - 2]).into_owned()
    }

    /// CONFIG SET: `Ok` or the error text.
    fn set(&mut self, pairs: &[(&str, &str)]) -> Result<(), String> {
        let mut words: Vec<&[u8]> = vec![b"CONFIG", b"SET"];
        words.extend(pairs.iter().flat_map(|(n, v)| [n.as_bytes(), v.as_bytes()]));
        self.send(&words);
        let line = self.line();
        line.strip_prefix('-').map_or(Ok(()), |error| Err(error.to_owned()))
    }

    fn array(&mut self) -> Vec<String> {
        let count: usize = self.line()[1..].parse().unwrap();
        let mut bulk = || {
            let length: usize = self.line()[1..].parse().unwrap();
            let mut text = vec![0; length + 2];
            self.stream.read_exact(&mut text).unwrap();
            String::from_utf8_lossy(&text[..length]).into_owned()
        };
        (0..count).map(|_| bulk()).collect()
    }

    fn get(&mut self, pattern: &str) -> Vec<(String, String)> {
        self.send(&[b"CONFIG", b"GET", pattern.as_bytes()]);
        let words = self.array();
        let mut pairs: Vec<_> =
            words.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        pairs.sort();
        pairs
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn patterns_match_what_redis_matches() {
    let Some(mut redis) = Redis::start() else { return };
    let letters = b"ab]-^\\";
    let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
    for length in 0..2 {
        let longer = texts
            .iter()
            .filter(|t| t.len() == length)
            .flat_map(|text| letters.iter().map(|letter| [text.as_slice(), &[*letter]].concat()));
        texts.extend(longer.collect::<Vec<_>>());
    }
    for text in &texts {
        redis.send(&[b"SET", text, b"1"]);
        assert_eq!(redis.line(), "+OK");
    }
    let pattern = prop::collection::vec(prop::sample::select(b"aab*?[]^-\\".to_vec()), 1..8);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..600 {
        let pattern =
            proptest::strategy::ValueTree::current(&pattern.new_tree(&mut runner).unwrap());
        if pattern == b"*" {
            continue; // KEYS takes this one for "all" without matching
        }
        redis.send(&[b"KEYS", &pattern]);
        let mut theirs: Vec<_> = redis.array().into_iter().map(String::into_bytes).collect();
        theirs.sort();
        let mut ours: Vec<_> =
            texts.iter().filter(|text| glob::matches(&pattern, text, false)).cloned().collect();
        ours.sort();
        assert_eq!(ours, theirs, "{:?}", String::from_utf8_lossy(&pattern));
    }
}

/// Names whose default is meant to differ from Redis, with the reason.
const DIFFERENT: [(&str, &str); 1] = [("io-threads", "one worker per core")];

/// What the comparing server was started with.
const GIVEN: [&str; 3] = ["port", "bind", "save"];

#[test]
fn every_directive_takes_its_default_and_has_a_name_of_its_own() {
    let mut names: Vec<_> = directives::all().flat_map(directive::Directive::names).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    let config = Config::default();
    for row in directives::all().filter(|row| row.is_setting() && has_default(row)) {
        let mut fresh = config.clone();
        row.set(&mut fresh, &[row.default.into()], Write::Replace)
            .unwrap_or_else(|reason| panic!("{}: {reason}", row.name));
        assert_eq!(fresh, config, "{}", row.name);
        assert_eq!(row.name.to_ascii_lowercase(), row.name);
    }
    assert_eq!(config.network.port, 6379);
    assert_eq!(config.process.threads.count(), std::thread::available_parallelism().unwrap().get());
}

#[test]
fn defaults_are_those_of_redis() {
    let Some(mut redis) = Redis::start() else { return };
    let store = redis.twin();
    let theirs = redis.get("*");
    assert!(theirs.len() > 180);
    for (name, value) in theirs {
        let known = |(different, _): &(&str, &str)| *different == name;
        if GIVEN.contains(&name.as_str()) || DIFFERENT.iter().any(known) {
            assert_eq!(store.get(&[name.as_bytes()]).len(), 1, "{name}");
        } else {
            assert_eq!(get(&store, &name), value, "{name}");
        }
    }
}

#[test]
fn config_get_star_has_every_name_of_redis_and_hides_what_redis_hides() {
    let Some(mut redis) = Redis::start() else { return };
    let store = Store::new(Config::default(), None);
    let ours: Vec<_> = store.get(&[b"*"]).into_iter().map(|(name, _)| name).collect();
    for (name, _) in redis.get("*") {
        assert!(ours.contains(&name.clone().into_bytes()), "{name}");
    }
    for row in directives::all().filter(|row| row.hidden) {
        assert!(!ours.contains(&row.name.into()));
        assert_eq!(redis.get(row.name)[0].1, get(&store, row.name), "{}", row.name);
    }
    for pattern in
        ["hash-max-*", "*-ziplist-*", "sl*", "TIMEOUT", "[st]imeout", "h?", "no-such", "user"]
    {
        let mut ours: Vec<_> = store
            .get(&[pattern.as_bytes()])
            .into_iter()
            .map(|(n, v)| (String::from_utf8(n).unwrap(), String::from_utf8(v).unwrap()))
            .collect();
        ours.sort();
        assert_eq!(ours, redis.get(pattern), "{pattern}");
    }
}

/// Sets the same on both; the answers and the values afterwards must be the same.
fn compare(redis: &mut Redis, ours: &mut Store, pairs: &[(&str, &str)]) {
    let theirs = redis.set(pairs);
    assert_eq!(set(ours, pairs).map(drop), theirs, "{pairs:?}");
    for (name, _) in pairs {
        let theirs = redis.get(name);
        if let [(_, value)] = theirs.as_slice() {
            assert_eq!(&get(ours, name), value, "{pairs:?}");
        }
    }
}

#[test]
fn every_setting_answers_odd_values_as_redis_does() {
    let Some(mut redis) = Redis::start() else { return };
    let mut ours = redis.twin();
    // Depends on the machine or on Redis's own build, or differs on purpose (see `DIFFERENT`).
    let skipped =
        ["port", "bind", "maxclients", "activedefrag", "io-threads", "threads", "tls-port"];
    let values = [
        "abc",
        "-1",
        "-99999999999999999",
        "2147483648",
        "1kb",
        "7",
        "yes",
        "default",
        "5 5",
        "x/y",
        "18446744073709551616",
        "20000000000gb",
        "7\0",
        "yes\0x",
        "\0",
    ];
    let names: Vec<_> = redis.get("*").into_iter().map(|(name, _)| name).collect();
    for name in names.iter().map(String::as_str) {
        if skipped.contains(&name) || name.starts_with("tls-") || name == "requirepass" {
            continue;
        }
        for value in values {
            compare(&mut redis, &mut ours, &[(name, value)]);
        }
    }
}

#[test]
fn settings_with_their_own_syntax_answer_as_redis_does() {
    let Some(mut redis) = Redis::start() else { return };
    let mut ours = redis.twin();
    let cases: [(&str, &[&str]); 14] = [
        (
            "save",
            &["", "3600 1", "3600 1 300", "a b", "0 1", "1 0", "-1 1", "3600 1 300 100", "3600  1"],
        ),
        (
            "client-output-buffer-limit",
            &["normal 1 2", "normal 1mb 2kb 3 pubsub 1 1 1", "foo 1 1 1", "slave x 1 1"],
        ),
        ("client-output-buffer-limit", &["replica 1mb 1 1", "normal 1 1 -1", "", "NORMAL 5 5 5"]),
        ("oom-score-adj-values", &["0 1", "0 2 8 9", "0 a 5", "0 2001 5", "800 200 0", " 1 2 3 "]),
        ("notify-keyspace-events", &["", "A", "KA", "gK", "AKE", "Em", "Kn", "KEAmn", "K x"]),
        (
            "latency-tracking-info-percentiles",
            &[
                "",
                "50",
                "0 100",
                "50.5 99.99",
                "a",
                "-1",
                "100.1",
                "99.9999999",
                "nan",
                "inf",
                "50 ",
            ],
        ),
        ("shutdown-on-sigterm", &["nosave now", "NOSAVE", "save nosave", "default force", "", "x"]),
        (
            "maxmemory",
            &[
                "1.1kb", "1KB", "1k", "1m", "1G", "1gb", "1b", " 1", "-5", "5kb5", "0x10", "1t",
                "b", "",
            ],
        ),
        (
            "maxmemory-clients",
            &[
                "50%",
                "-5",
                "101%",
                "%",
                "-5%",
                "0%",
                "100mb",
                "5kb%",
                "9223372036854775808",
                "5.5%",
            ],
        ),
        ("hz", &["0", "501", "7"]),
        ("proc-title-template", &["", "{title} {x}", "abc", "{title", "{port} {config-file}"]),
        ("cluster-announce-hostname", &["a b", "h.x", "a!"]),
        ("loglevel", &["DEBUG", "Notice", ""]),
        ("repl-backlog-size", &["1", "2mb"]),
    ];
    for (name, values) in cases {
        for value in values {
            compare(&mut redis, &mut ours, &[(name, value)]);
        }
    }
}

#[test]
fn several_pairs_at_once_are_judged_in_the_order_of_redis() {
    let Some(mut redis) = Redis::start() else { return };
    let mut ours = redis.twin();
    let pairs: [&[(&str, &str)]; 12] = [
        &[("timeout", "5"), ("TIMEOUT", "6")],
        &[("slave-priority", "5"), ("replica-priority", "6")],
        &[("timeout", "5"), ("foo", "6")],
        &[("foo", "1"), ("databases", "5")],
        &[("databases", "5"), ("foo", "1")],
        &[("timeout", "q"), ("databases", "5")],
        &[("timeout", "55"), ("hz", "abc")],
        &[("timeout", "q"), ("hz", "abc")],
        &[("rename-command", "x")],
        &[("include", "x")],
        &[("dir", "/"), ("timeout", "1")],
        &[("timeout", "9"), ("Slave-Priority", "8"), ("maxmemory", "3mb")],
    ];
    for pairs in pairs {
        compare(&mut redis, &mut ours, pairs);
    }
}

#[test]
fn a_refused_change_leaves_everything_as_it_was() {
    let mut store = Store::new(Config::default(), None);
    let before = store.current();
    let pairs: [(&[u8], &[u8]); 2] = [(b"timeout", b"9"), (b"PORT", b"1")];
    let mut apply = |old: &Config, new: &Config| {
        assert_eq!((old.clients.timeout, new.clients.timeout, new.network.port), (0, 9, 1));
        let reason = "Unable to listen on this port. Check server logs.".into();
        Err(Rejection { directive: "port", reason })
    };
    let error = store.set(&pairs, ANYONE, &mut apply).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check \
         server logs."
    );
    assert_eq!(store.current(), before);
    let changed = set(&mut store, &[("timeout", "9"), ("hz", "10")]);
    assert_eq!(changed, Ok(vec!["timeout"]));
}

#[test]
fn protected_directives_follow_enable_protected_configs() {
    for (word, local, remote) in [("no", false, false), ("local", true, false), ("yes", true, true)]
    {
        let mut store = load_text(&format!("enable-protected-configs {word}")).unwrap();
        for (is_local, allowed) in [(true, local), (false, remote)] {
            let caller = Caller { local: is_local };
            let set = store.set(&[(b"dir", b"/")], caller, &mut |_, _| Ok(()));
            assert_eq!(set.is_ok(), allowed, "{word} {is_local}");
        }
    }
}

/// What redis-server prints after the banner of a fatal configuration error.
fn redis_refuses(arguments: &[&str], stdin: &str) -> Option<String> {
    let child = Command::new("redis-server")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, after) = text.split_once(" ***\n").unwrap_or_else(|| panic!("{stdin:?}: {text:?}"));
    Some(after.trim_end().to_owned())
}

fn we_refuse(arguments: &[&str], stdin: &str) -> String {
    let text = load(&launch(arguments), &mut stdin.as_bytes()).unwrap_err().to_string();
    let banner =
        format!("\n*** FATAL CONFIG FILE ERROR (Brisk {}) ***\n", env!("CARGO_PKG_VERSION"));
    text.strip_prefix(&banner).unwrap_or_else(|| panic!("{text}")).trim_end().to_owned()
}

#[test]
fn bad_lines_are_refused_in_the_words_of_redis() {
    let lines = [
        "port abc",
        "PoRt 99999",
        "foo bar",
        "port",
        "port 1 2",
        "save 1",
        "maxmemory 1xb",
        "bind\nport x",
        "daemonize maybe",
        "requirepass \"abc",
        "requirepass \"a\"b",
        "   port   abc  ",
        "\"\" x",
        "rename-command get",
        "user",
        "user default on\nuser default off",
        "loglevel foo",
        "unixsocketperm 999",
        "unixsocketperm 1000",
        "dbfilename a/b",
        "appendfilename \"\"",
        "appenddirname a/b",
        "client-output-buffer-limit normal 1",
        "notify-keyspace-events q",
        "oom-score-adj-values 1 2",
        "replicaof a",
        "replicaof a b",
        "maxmemory-clients 200%",
        "shutdown-on-sigint foo",
        "shutdown-on-sigint save nosave",
        "maxclients 0",
        "dir /nonexistent",
        "list-max-ziplist-entries",
        "list-max-ziplist-entries 5\nport x",
        "sentinel monitor x",
        "timeout \"\"",
        "timeout 5 # not a comment",
        "# a comment\n\n \t# another\r\nport 1\r\nport abc\r",
        "cluster-enabled yes\nreplicaof 1.1.1.1 5",
        "include a b",
        "save \"900\"",
    ];
    for text in lines {
        let Some(theirs) = redis_refuses(&["-"], text) else { return };
        assert_eq!(we_refuse(&["-"], text), theirs, "{text:?}");
    }
}

#[test]
fn bad_options_are_refused_in_the_words_of_redis() {
    let dir = TempDir::new();
    std::fs::write(dir.path("t.conf"), "port 0\n").unwrap();
    let file = dir.path("t.conf");
    let file = file.to_str().unwrap();
    let cases: [&[&str]; 15] = [
        &["--port", "abc"],
        &["--port abc"],
        &["--port"],
        &["--port", "1", "2"],
        &["--save", "", "--port", "abc"],
        &["--save", "--port", "abc"],
        &["--foo", "a b"],
        &[file, "port", "abc"],
        &[file, "--port", "abc"],
        &["--requirepass", "--foo", "--port", "abc"],
        &["--requirepass", "--timeout", "5"],
        &["--timeout", "--5"],
        &["--notify-keyspace-events", "K", "A"],
        &["--loadmodule", "/x", "a", "--b", "c"],
        &["-x"],
    ];
    for arguments in cases {
        let Some(theirs) = redis_refuses(arguments, "") else { return };
        assert_eq!(we_refuse(arguments, ""), theirs, "{arguments:?}");
    }
}

#[test]
fn files_and_options_give_the_values_redis_reads() {
    for (text, name, expected) in [
        ("save 60 1\nsave 30 2\n", "save", "60 1 30 2"),
        ("save 60 1\nsave \"\"\nsave 5 5\n", "save", "5 5"),
        ("timeout 5\nsave\n", "save", ""),
        (
            "client-output-buffer-limit slave 1 1 1\n",
            "client-output-buffer-limit",
            "normal 0 0 0 slave 1 1 1 pubsub 33554432 8388608 60",
        ),
        ("bind \"\"\n", "bind", ""),
        ("bind * -::*\n", "bind", "* -::*"),
        ("unixsocketperm 0700\n", "unixsocketperm", "700"),
        ("requirepass \"a\\x41\\q\"\n", "requirepass", "aAq"),
        ("slaveof no one\n", "replicaof", ""),
        ("replicaof h 5\n", "slaveof", "h 5"),
        ("hz 1000\n", "hz", "500"),
        ("timeout\t5\n", "timeout", "5"),
    ] {
        assert_eq!(get(&load_text(text).unwrap(), name), expected, "{text:?}");
    }
    let options = |arguments: &[&str]| load(&launch(arguments), &mut std::io::empty()).unwrap();
    assert_eq!(get(&options(&["--save", "60 1", "--save", "30 2"]), "save"), "60 1 30 2");
    assert_eq!(get(&options(&["--save"]), "save"), "");
    assert_eq!(get(&options(&["--masterauth", "--timeout 5"]), "masterauth"), "--timeout 5");
    assert_eq!(
        get(&options(&["--shutdown-on-sigint", "nosave", "force"]), "shutdown-on-sigint"),
        "nosave force"
    );
    assert_eq!(get(&options(&["--io-threads", "3"]), "threads"), "3");
}

#[test]
fn includes_take_patterns_and_end_when_they_nest_too_deep() {
    let dir = TempDir::new();
    std::fs::write(dir.path("a1.inc"), "timeout 7\n").unwrap();
    std::fs::write(dir.path("a2.inc"), "hz 20\n").unwrap();
    std::fs::write(dir.path(".a3.inc"), "hz 30\n").unwrap();
    let base = dir.path("").to_str().unwrap().to_owned();
    let store = load_text(&format!("include {base}a?.inc\ninclude {base}none*.inc\n")).unwrap();
    assert_eq!((get(&store, "timeout"), get(&store, "hz")), ("7".into(), "20".into()));
    // After `dir`, relative names are looked up there.
    let store = load_text(&format!("dir {base}\ninclude a[2].inc\n")).unwrap();
    assert_eq!(get(&store, "hz"), "20");

    let missing = load_text(&format!("include {base}missing\n")).unwrap_err().to_string();
    assert_eq!(
        missing,
        format!("Fatal error, can't open config file '{base}missing': No such file or directory")
    );
    std::fs::write(dir.path("loop"), format!("include {base}loop\n")).unwrap();
    let error = load_text(&format!("include {base}loop\n")).unwrap_err();
    assert!(matches!(error, FileError::Limit { .. }), "{error}");
    std::fs::write(dir.path("bad"), "# one\nport abc\n").unwrap();
    let error = load_text(&format!("\n\n\ninclude {base}bad\n")).unwrap_err();
    assert!(matches!(error, FileError::Line { line: 2, .. }), "{error}");
}

#[test]
fn a_configuration_shown_for_debugging_keeps_its_secrets() {
    let store = load_text("requirepass hidden\ntimeout 7\nuser a >hidden\n").unwrap();
    let shown = format!("{store:?}");
    assert!(shown.contains("\"timeout\": \"7\"") && !shown.contains("hidden"), "{shown}");
}

#[test]
fn rewrite_keeps_comments_and_order_and_appends_what_is_new() {
    let dir = TempDir::new();
    let file = dir.path("brisk.conf");
    let before = "# head\nport 17962\nSAVE 100 1\nsave 200 2\nslave-priority 99\n\nmaxmemory 100mb\nmaxmemory \
                  200mb\nrename-command debug \"\"\nuser alice on nopass\n# tail\nhz 10\n";
    std::fs::write(&file, before).unwrap();
    let mut store = load(&launch(&[file.to_str().unwrap()]), &mut std::io::empty()).unwrap();
    set(&mut store, &[("save", "900 1"), ("requirepass", "a \"b\""), ("maxmemory", "300mb")])
        .unwrap();
    let users = Replacement { directive: "user", lines: vec!["alice off".into(), "bob on".into()] };
    store.rewrite(std::slice::from_ref(&users)).unwrap();
    let cwd = std::env::current_dir().unwrap();
    let expected = format!(
        "# head\nport 17962\nsave 900 1\nreplica-priority 99\n\nmaxmemory 300mb\nrename-command debug \"\"\n\
         user alice off\nuser bob on\n# tail\nhz 10\n\n# Generated by CONFIG REWRITE\ndir \"{}\"\n\
         requirepass \"a \\\"b\\\"\"\n",
        cwd.display()
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    store.rewrite(&[users]).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected, "a second time changes nothing");
    assert_eq!(std::fs::read_dir(dir.path("")).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn rewrite_without_a_file_or_a_folder_says_so() {
    let store = Store::new(Config::default(), None);
    let text = store.rewrite(&[]).unwrap_err().to_string();
    assert_eq!(text, "ERR The server is running without a config file");
    let store = Store::new(Config::default(), Some("/nonexistent/x.conf".into()));
    let text = store.rewrite(&[]).unwrap_err().to_string();
    assert_eq!(text, "ERR Rewriting config file: No such file or directory");
}

/// A value that the row might take.
fn candidate(row: &directive::Directive, number: i64, text: &[u8]) -> Vec<u8> {
    match row.kind {
        Kind::Switch(_) => if number % 2 == 0 { "yes" } else { "no" }.into(),
        Kind::Integer { min, max, .. } => number.clamp(min, max).to_string().into(),
        Kind::Memory { min, max, .. } => number.unsigned_abs().clamp(min, max).to_string().into(),
        Kind::MemoryShare(_) => format!("{}%", number.unsigned_abs() % 101).into(),
        Kind::Mode(_) => format!("{:o}", number & 0o777).into(),
        Kind::Choice(_) => {
            let words =
                ["yes", "no", "always", "allkeys-lfu", "debug", "swapdb", "epoll", "hostname"];
            words[number.unsigned_abs() as usize % words.len()].into()
        }
        Kind::Text { .. } => text.to_vec(),
        _ => {
            let words = [
                "",
                "60 1 30 2",
                "pubsub 1mb 5 6",
                "1 2 3",
                "KEAn",
                "1.5 99.999",
                "now force",
                "h.x 6379",
                "* -::*",
            ];
            words[number.unsigned_abs() as usize % words.len()].into()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_rewrite_writes_reads_back_to_the_same_settings(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<i64>(), any::<Vec<u8>>()), 0..40),
        old in prop::sample::select(vec![
            &b""[..], b"save 1 1\nsave 2 2\nsave 3 3\n", b"maxmemory 5mb\n# x\nbind 1.1.1.1\nsave \"\"",
            b"client-output-buffer-limit normal 1 1 1\nreplicaof a 5\nslaveof b 6\nnonsense \"\n",
        ]),
    ) {
        let rows: Vec<_> = directives::all().filter(|row| row.is_setting()).collect();
        let mut config = Config::default();
        for (index, number, text) in &changes {
            let row = index.get(&rows);
            let mut next = config.clone();
            if row.set(&mut next, &[candidate(row, *number, text)], Write::Replace).is_ok() {
                config = next;
            }
        }
        config.cluster.cluster_enabled = false;
        config.normalise();
        let written = rewrite::merge(old, &config, &[]);
        let readable: Vec<u8> = written
            .split_inclusive(|b| *b == b'\n')
            .filter(|line| !line.starts_with(b"nonsense"))
            .flatten()
            .copied()
            .collect();
        let again = file::parse_alone(&readable);
        prop_assert_eq!(again, Ok(config));
    }

    #[test]
    fn any_values_of_any_directive_can_be_loaded_without_harm(
        lines in prop::collection::vec((any::<prop::sample::Index>(), "[ -~]{0,24}"), 0..4),
    ) {
        let rows: Vec<_> = directives::all().collect();
        let text: String =
            lines.iter().map(|(row, values)| format!("{} {values}\n", row.get(&rows).name)).collect();
        fuzzing::config_file(text.as_bytes());
    }

    #[test]
    fn any_bytes_can_be_loaded_without_harm(data: Vec<u8>) {
        fuzzing::config_file(&data);
    }
}

#[test]
fn typical_files_survive_the_fuzz_entry() {
    for text in [
        "port 1\nsave 1 1\nsave 2 2\nbind a b\n",
        "requirepass \"\\x00\\xff\"\nnotify-keyspace-events AKEn\nmaxmemory-clients 7%\n",
        "latency-tracking-info-percentiles 1e-9 33.3333333\nproc-title-template {title}\n",
        "replicaof \"a b\" 1\nshutdown-on-sigint default\noom-score-adj relative\n",
    ] {
        fuzzing::config_file(text.as_bytes());
    }
}
