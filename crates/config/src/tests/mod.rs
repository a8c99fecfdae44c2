//! Compares the whole configuration with the reference values and with a running redis-server, and
//! reads it back after writing it.

use crate::fuzzing::Lenient;
use std::ffi::OsString;
use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::args::{Invocation, Launch, parse};
use super::config::has_default;
use super::directive::{Kind, SupportStatus, Write};
use super::*;
use brisk_testkit::TempDir;

mod loading;
mod rewriting;

const ANYONE: Caller = Caller { local: true, while_loading: false };

fn launch(arguments: &[&str]) -> Launch {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    match parse(&arguments) {
        Invocation::Run(launch) => launch,
        other => panic!("{other:?}"),
    }
}

fn load_text(text: &str) -> Result<Store, FileError> {
    load(&launch(&["-"]), &mut text.as_bytes(), &Lenient)
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

/// A redis-server that belongs to the test.
struct Redis {
    child: Child,
    stream: TcpStream,
    dir: TempDir,
}

impl Redis {
    /// Starts a redis-server on a free port; `None` if no redis-server is installed.
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

    /// Returns a store with the settings with which the server was started.
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
            continue; // KEYS treats this one as "all" without matching
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

/// Names whose default differs from Redis on purpose, with the reason.
const DIFFERENT: [(&str, &str); 2] = [
    ("io-threads", "one worker per core"),
    ("cluster-node-timeout", "the TTL of a lease, which is fixed while the process lives"),
];

/// The settings with which the other server was started.
const GIVEN: [&str; 3] = ["port", "bind", "save"];

#[test]
fn every_directive_accepts_its_default_and_has_a_unique_name() {
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

/// Hidden directives of Valkey 8 that Redis lacks.
const HIDDEN_IN_VALKEY: &[&str] = &["enable-debug-assert", "cluster-ping-interval"];

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
        match redis.get(row.name).first() {
            Some((_, value)) => assert_eq!(*value, get(&store, row.name), "{}", row.name),
            None => assert!(HIDDEN_IN_VALKEY.contains(&row.name), "{}", row.name),
        }
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

/// Sets the same values on both servers. The replies and the values afterwards must be equal.
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
fn every_setting_handles_odd_values_as_redis_does() {
    let Some(mut redis) = Redis::start() else { return };
    let mut ours = redis.twin();
    // Depends on the machine or on Redis's build, or differs on purpose (see `DIFFERENT`).
    let skipped = [
        "port",
        "bind",
        "maxclients",
        "activedefrag",
        "io-threads",
        "threads",
        "tls-port",
        "cluster-node-timeout",
    ];
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
fn settings_with_their_own_syntax_behave_as_in_redis() {
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
fn a_rejected_change_leaves_everything_unchanged() {
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

/// Tests that the number of workers that was derived from the machine is not written to the file as
/// if it had been configured.
#[test]
fn setting_a_fixed_directive_to_the_shown_value_changes_nothing() {
    let dir = TempDir::new();
    let file = dir.path("conf");
    std::fs::write(&file, "threads 0\n").unwrap();
    let mut store =
        load(&launch(&[file.to_str().unwrap()]), &mut std::io::empty(), &Lenient).unwrap();
    let shown = get(&store, "threads");
    assert_eq!(set(&mut store, &[("timeout", "7"), ("threads", &shown)]), Ok(vec!["timeout"]));
    store.rewrite(&[], Added::Changed).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("threads 0\n") && text.contains("\ntimeout 7\n"), "{text}");
}

#[test]
fn protected_directives_follow_enable_protected_configs() {
    for (word, local, remote) in [("no", false, false), ("local", true, false), ("yes", true, true)]
    {
        let mut store = load_text(&format!("enable-protected-configs {word}")).unwrap();
        for (is_local, allowed) in [(true, local), (false, remote)] {
            let caller = Caller { local: is_local, while_loading: false };
            let set = store.set(&[(b"dir", b"/")], caller, &mut |_, _| Ok(()));
            assert_eq!(set.is_ok(), allowed, "{word} {is_local}");
        }
    }
}

/// Returns the text of all sources in a directory and its subdirectories, except `except`.
fn sources(dir: &Path, except: &str) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with(except) {
            text += &sources(&path, except);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text += &std::fs::read_to_string(&path).unwrap();
        }
    }
    text
}

/// Returns the field after the first `c.theme.` or `!(theme.`, if it comes before `end`.
fn field_in<'t>(text: &'t str, end: &str) -> Option<&'t str> {
    let text = text.split(end).next()?;
    let themes = [
        "clients",
        "cluster",
        "encoding",
        "memory",
        "network",
        "observe",
        "persistence",
        "process",
        "replication",
        "security",
        "tls",
    ];
    let begins = themes.iter().flat_map(|theme| [format!("c.{theme}."), format!("!({theme}.")]);
    let at = begins.filter_map(|begin| Some(text.find(&begin)? + begin.len())).min()?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text[at..].split(|c| !is_of_name(c)).next()
}

/// A row whose field is never read must be planned or ignored. Rows without a field of their own
/// are not checked.
#[test]
fn every_implemented_setting_is_read_somewhere() {
    // These settings are read within this crate.
    const EXCEPT: [&str; 2] = ["dir", "enable-protected-configs"];
    const READERS: [&str; 4] = ["net", "node", "observe", "server"];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let rows = sources(&crates.join("config/src"), "tests");
    let readers: String =
        READERS.iter().map(|name| sources(&crates.join(name).join("src"), "tests")).collect();
    let mut looked_at = 0;
    for row in directives::all().filter(|row| row.support_status == SupportStatus::InForce) {
        let is_row = |text: &&str| {
            let mut parts = text.split('"');
            let begin = parts.next().is_some_and(|begin| begin.trim_end().ends_with('('));
            begin && parts.next() == Some(row.name)
        };
        let text = rows.split("Directive::").find(is_row).unwrap();
        let special = ["special::", "notify::"].into_iter().find_map(|of| text.split_once(of));
        let field = field_in(text, "];").or_else(|| {
            let name = special?.1.split(|c: char| !(c.is_ascii_uppercase() || c == '_')).next()?;
            field_in(rows.split_once(&format!("const {name}: Special"))?.1, "const ")
        });
        let Some(field) = field.filter(|_| !EXCEPT.contains(&row.name)) else { continue };
        looked_at += 1;
        let is_end =
            |after: &str| !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let read = readers.split(&format!(".{field}")).skip(1).any(is_end);
        assert!(read, "{} is in force, but no code reads {field}", row.name);
    }
    assert!(looked_at > 80, "{looked_at}");
}
